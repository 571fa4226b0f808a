/*  Senders of dedicated anchors against a real broker: they find the anchor's own front, share
 *  it, and learn their endings although it goes with the anchor.
 */
#include "tests/support/fixture.h"

#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

static hws_client_t *connect_to (const char *endpoint)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = endpoint;
    hws_client_t *client = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

static hws_receiver_t *open_dedicated (hws_client_t *client)
{
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.dedicated = true;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_open (&receiver, client, "own", &options), 0);
    return receiver;
}

static void expect (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

/*  Entries of a directory of /proc/self.  */
static size_t count_of (const char *directory)
{
    size_t count = 0;
    DIR *const entries = opendir (directory);
    assert_non_null (entries);
    while (readdir (entries)) {
        count++;
    }
    closedir (entries);
    return count;
}

/*  ---- The library ---- */

static void library_follows_a_dedicated_anchor (void **state)
{
    (void) state;
    hws_client_t *client = connect_to (fixture_endpoint ());
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *by_name, *by_handle;
    hws_event_t event;

    assert_int_equal (hws_sender_attach (&by_name, client, "own", NULL), 0);
    assert_int_equal (hws_sender_attach (&by_handle, client, hws_receiver_handle (receiver), NULL),
                      0);

    assert_int_equal (hws_sender_id (by_name), 1);
    assert_int_equal (hws_sender_id (by_handle), 2);
    assert_int_equal (hws_sender_send (by_name, "one", 3, LONG_MS), 0);
    expect (receiver, HWS_EVENT_ATTACHED, &event);
    expect (receiver, HWS_EVENT_ATTACHED, &event);
    expect (receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (event.sender_id, 1);
    assert_int_equal (hws_sender_detach (by_name, 0), HWS_EWOULD_BLOCK);
    expect (receiver, HWS_EVENT_DETACHED, &event);
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_detach (by_name, LONG_MS), 0);
    assert_int_equal (hws_sender_cancel (by_handle, "enough", LONG_MS), 0);
    expect (receiver, HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.reason, "enough");
    hws_sender_destroy (&by_name);
    hws_sender_destroy (&by_handle);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void senders_at_one_anchor_share_a_connection (void **state)
{
    (void) state;
    hws_client_t *client = connect_to (fixture_endpoint ());
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *senders[5];
    const size_t before = count_of ("/proc/self/task");

    assert_int_equal (hws_sender_attach (&senders[0], client, "own", NULL), 0);
    const size_t with_one = count_of ("/proc/self/task");
    for (int i = 1; i < 5; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], client, "own", NULL), 0);
    }

    assert_true (with_one > before);
    assert_int_equal (count_of ("/proc/self/task"), with_one);
    for (int i = 0; i < 5; i++) {
        hws_sender_destroy (&senders[i]);
    }
    assert_int_equal (count_of ("/proc/self/task"), before);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

typedef struct {
    hws_client_t *client;
    int results[20];
} comer_t;

static void *come_and_go (void *argument)
{
    comer_t *const self = argument;
    for (size_t i = 0; i < 20; i++) {
        hws_sender_t *sender = NULL;
        self->results[i] = hws_sender_attach (&sender, self->client, "own", NULL);
        hws_sender_destroy (&sender);
    }
    return NULL;
}

static void threads_come_and_go_at_one_anchor (void **state)
{
    (void) state;
    hws_client_t *client = connect_to (fixture_endpoint ());
    hws_receiver_t *receiver = open_dedicated (client);
    comer_t comers[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        comers[i].client = client;
        assert_int_equal (pthread_create (&threads[i], NULL, come_and_go, &comers[i]), 0);
    }

    for (int i = 0; i < 4; i++) {
        pthread_join (threads[i], NULL);
        for (int k = 0; k < 20; k++) {
            assert_int_equal (comers[i].results[k], 0);
        }
    }
    hws_event_t event;
    for (size_t attached = 0, ended = 0; ended < 80;) {
        assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
        attached += event.kind == HWS_EVENT_ATTACHED;
        ended += event.kind == HWS_EVENT_CANCELLED;
        assert_true (attached >= ended);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void child_may_destroy_what_it_must_not_use (void **state)
{
    (void) state;
    hws_client_t *client = connect_to (fixture_endpoint ());
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *sender;
    hws_event_t event;
    assert_int_equal (hws_sender_attach (&sender, client, "own", NULL), 0);

    const pid_t child = fork ();
    if (child == 0) {
        const bool is_refused = hws_sender_send (sender, "x", 1, 0) == HWS_EWRONG_PROCESS;
        hws_sender_destroy (&sender);
        hws_receiver_destroy (&receiver);
        hws_client_destroy (&client);
        _exit (is_refused ? 0 : 1);
    }

    int status = -1;
    assert_int_equal (waitpid (child, &status, 0), child);
    assert_int_equal (status, 0);
    assert_int_equal (hws_sender_send (sender, "y", 1, LONG_MS), 0);
    expect (receiver, HWS_EVENT_ATTACHED, &event);
    expect (receiver, HWS_EVENT_RECORD, &event);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  ---- Lost connections ---- */

static atomic_int s_losses, s_returns;

static void connection_changed (void *arg, bool is_connected, const char *text)
{
    (void) arg;
    (void) text;
    atomic_fetch_add (is_connected ? &s_returns : &s_losses, 1);
}

static void one_lost_broker_is_one_loss (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fixture_endpoint ();
    options.on_connection = connection_changed;
    atomic_store (&s_losses, 0);
    atomic_store (&s_returns, 0);
    hws_client_t *client = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, client, "own", NULL), 0);
    char endpoint[256];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());

    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    fixture_start_broker (endpoint, NULL);

    /*  The new broker knows neither: both ends are lost, and no stream waits any longer.  */
    assert_int_equal (hws_sender_detach (sender, LONG_MS), HWS_ETRANSPORT);
    for (int i = 0; i < 1000 && atomic_load (&s_returns) == 0; i++) {
        process_watch (10);
    }
    process_watch (300);
    assert_int_equal (atomic_load (&s_losses), 1);
    assert_int_equal (atomic_load (&s_returns), 1);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Over ipc the first front of a new broker is where that of the old one was.  */
static void stream_that_ended_does_not_keep_others_from_the_next_front_at_its_place (void **state)
{
    (void) state;
    hws_client_t *client = connect_to (fixture_endpoint ());
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *ended, *sender;
    assert_int_equal (hws_sender_attach (&ended, client, "own", NULL), 0);
    char endpoint[256];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    fixture_start_broker (endpoint, NULL);
    assert_int_equal (hws_sender_detach (ended, LONG_MS), HWS_ETRANSPORT);
    hws_receiver_destroy (&receiver);
    receiver = open_dedicated (client);

    const int rc = hws_sender_attach (&sender, client, "own", NULL);

    assert_int_equal (rc, 0);
    hws_sender_destroy (&sender);
    hws_sender_destroy (&ended);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  ---- Programs ---- */

static process_t *start_receiver (const char *senders)
{
    process_t *const receiver =
        process_start (NULL, "hawser-recv", "--anchor", "own", "--dedicated", "--format", "json",
                       "--senders", senders, NULL);
    event_wait (receiver, "opened", NULL, 1);
    return receiver;
}

static void programs_find_a_dedicated_anchor (void **state)
{
    process_t *const receiver = start_receiver ("5");
    process_t *senders[5];

    (void) state;
    for (int i = 0; i < 5; i++) {
        senders[i] = process_start (NULL, "hawser-send", "--anchor", "own", NULL);
        process_write (senders[i], "hello\nthere\n", 12);
        process_close_input (senders[i]);
    }
    for (int i = 0; i < 5; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);

    assert_int_equal (event_count (receiver, "record", NULL), 10);
    assert_int_equal (event_count (receiver, "detached", NULL), 5);
}

/*  The front is closed two seconds after its anchor at the latest; a sender that slept on asks
 *  at the broker's endpoint.  */
static void sender_that_slept_learns_its_ending_when_the_front_is_gone (void **state)
{
    process_t *const receiver = start_receiver ("1");
    process_t *const sender = process_start (NULL, "hawser-send", "--anchor", "own", NULL);

    (void) state;
    process_write (sender, "hello\n", 6);
    event_wait (receiver, "record", NULL, 1);
    process_signal (sender, SIGSTOP);
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 143);
    process_watch (2500);
    process_signal (sender, SIGCONT);

    process_expect_exit (sender, 3);
    assert_non_null (strstr (process_errors (sender), "the stream was"));
}

/*  ---- Every address ---- */

static int setup_any (void **state)
{
    const int rc = fixture_setup_bare (state);
    if (rc == 0) {
        fixture_start_broker ("tcp://0.0.0.0:0", "{\"allow_insecure\": true}");
    }
    return rc;
}

static void front_at_every_address_is_found_by_the_host_that_was_asked (void **state)
{
    (void) state;
    char endpoint[64];
    unsigned port = 0;
    assert_int_equal (sscanf (fixture_endpoint (), "tcp://0.0.0.0:%u", &port), 1);
    snprintf (endpoint, sizeof endpoint, "tcp://localhost:%u", port);
    hws_client_t *client = connect_to (endpoint);
    hws_receiver_t *receiver = open_dedicated (client);
    hws_sender_t *sender;

    assert_int_equal (hws_sender_attach (&sender, client, "own", NULL), 0);

    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (library_follows_a_dedicated_anchor),
        OVER_IPC (library_follows_a_dedicated_anchor),
        OVER_TCP (senders_at_one_anchor_share_a_connection),
        OVER_TCP (threads_come_and_go_at_one_anchor),
        OVER_IPC (threads_come_and_go_at_one_anchor),
        OVER_TCP (child_may_destroy_what_it_must_not_use),
        OVER_TCP (one_lost_broker_is_one_loss),
        OVER_IPC (stream_that_ended_does_not_keep_others_from_the_next_front_at_its_place),
        OVER_TCP (programs_find_a_dedicated_anchor),
        OVER_IPC (programs_find_a_dedicated_anchor),
        OVER_TCP (sender_that_slept_learns_its_ending_when_the_front_is_gone),
        cmocka_unit_test_setup_teardown (front_at_every_address_is_found_by_the_host_that_was_asked,
                                         setup_any, fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
