/*  hawser.h and a broker that refuses, is absent, comes late, goes, or stands; and what a client
 *  leaves behind, in a child of a fork and at its end.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

static void refusals_have_their_code_and_a_sentence (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL, *second = NULL;
    hws_sender_t *sender = NULL;
    char text[256];
    assert_int_equal (hws_receiver_open (&receiver, client, "a", NULL), 0);

    assert_int_equal (hws_receiver_open (&second, client, "a", NULL), HWS_ENAME_IN_USE);
    assert_int_equal (hws_receiver_open (&second, client, "a\n", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "nowhere", NULL), HWS_ENOT_FOUND);

    hws_client_error (client, text, sizeof text);
    assert_non_null (strstr (text, "nowhere"));
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void absent_broker_is_unreachable (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "tcp://127.0.0.1:1";
    options.connect_ms = 100;
    hws_client_t *client;
    hws_sender_t *sender;
    char text[256];
    assert_int_equal (hws_client_new (&client, &options), 0);

    assert_int_equal (hws_sender_attach (&sender, client, "a", NULL), HWS_EUNREACHABLE);

    hws_client_error (client, text, sizeof text);
    assert_string_equal (text, "no broker at tcp://127.0.0.1:1");
    hws_client_destroy (&client);
}

static void broker_that_comes_late_is_found_at_once (void **state)
{
    (void) state;
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGTERM);
    process_expect_exit (fixture_broker (), 0);
    hws_client_t *client = fixture_client ();
    char text[256] = "";
    const int64_t asked_at = process_now ();
    while (strstr (text, "no broker") == NULL && process_now () < asked_at + LONG_MS) {
        hws_client_error (client, text, sizeof text);
    }
    assert_true (process_now () < asked_at + 2000);

    fixture_start_broker (endpoint, NULL);
    const int64_t started_at = process_now ();
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    assert_true (process_now () < started_at + 2000);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  What the program is told of the connection, through a pipe.  */
typedef struct {
    int pipe[2];
} told_t;

static void tell (void *arg, bool is_connected, const char *text)
{
    const told_t *const self = arg;
    char line[256];
    const int size = snprintf (line, sizeof line, "%s %s", is_connected ? "back" : "away", text);
    const ssize_t written = write (self->pipe[1], line, (size_t) size);
    (void) written; /* what is missing is missed by the reader */
}

static void expect_told (const told_t *self, const char *expected)
{
    char line[256] = "";
    struct pollfd polled = {.fd = self->pipe[0], .events = POLLIN};
    assert_int_equal (poll (&polled, 1, LONG_MS), 1);
    assert_true (read (self->pipe[0], line, sizeof line - 1) > 0);
    assert_string_equal (line, expected);
}

/*  Waits until something that begins so has been told.  */
static void expect_told_of (const told_t *self, const char *begin)
{
    char line[1024];
    struct pollfd polled = {.fd = self->pipe[0], .events = POLLIN};
    do {
        assert_int_equal (poll (&polled, 1, LONG_MS), 1);
        memset (line, 0, sizeof line);
        assert_true (read (self->pipe[0], line, sizeof line - 1) > 0);
    } while (strstr (line, begin) == NULL);
}

static void program_is_told_that_the_broker_went_and_came_back (void **state)
{
    (void) state;
    told_t told;
    assert_int_equal (pipe (told.pipe), 0);
    hws_client_options_t options;
    hws_client_options_init (&options);
    char endpoint[64], away[128];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    snprintf (away, sizeof away, "away lost the connection to %s", endpoint);
    options.endpoint = endpoint;
    options.on_connection = tell;
    options.on_connection_arg = &told;
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    expect_told (&told, away);
    fixture_start_broker (endpoint, NULL);
    expect_told (&told, "back ");

    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    close (told.pipe[0]);
    close (told.pipe[1]);
}

/*  It says nothing and closes nothing, as when its machine loses power: after the silence
 *  that its client allows it is lost, and found again when it speaks.  */
static void dead_broker_is_noticed (void **state)
{
    (void) state;
    told_t told;
    assert_int_equal (pipe (told.pipe), 0);
    hws_client_options_t options;
    hws_receiver_options_t receiver_options;
    hws_event_t event;
    hws_client_options_init (&options);
    hws_receiver_options_init (&receiver_options);
    options.endpoint = fixture_endpoint ();
    options.on_connection = tell;
    options.on_connection_arg = &told;
    receiver_options.heartbeat_interval_ms = 100;
    receiver_options.reconnect_grace_ms = LONG_MS;
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    assert_int_equal (hws_receiver_open (&receiver, client, "a", &receiver_options), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "a", NULL), 0);

    process_signal (fixture_broker (), SIGSTOP);
    expect_told_of (&told, "away ");
    assert_int_equal (hws_sender_send (sender, "meanwhile", 9, LONG_MS), 0);
    process_signal (fixture_broker (), SIGCONT);
    expect_told_of (&told, "back ");

    expect_event (receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (receiver, HWS_EVENT_RECORD, &event);
    assert_memory_equal (event.data, "meanwhile", 9);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    close (told.pipe[0]);
    close (told.pipe[1]);
}

static void endpoint_that_breaks_the_rules_is_invalid (void **state)
{
    (void) state;
    static const char *const endpoints[] = {
        "",           "tcp://",           "tcp://host",    "tcp://host:0", "tcp://host:65536",
        "tcp://:1",   "tcp://host:7733x", "tcp://*:7733",  "tcp://::1:1",  "udp://host:1",
        "inproc://x", "ipc://",           "tcp://host:-1", "host:7733"};
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        hws_client_options_t options;
        hws_client_options_init (&options);
        options.endpoint = endpoints[i];
        hws_client_t *client = NULL;
        assert_int_equal (hws_client_new (&client, &options), HWS_EINVALID);
        assert_null (client);
    }
}

static void wait_for_error (hws_client_t *client, const char *part)
{
    char text[256] = "";
    const int64_t asked_at = process_now ();
    while (!strstr (text, part) && process_now () < asked_at + LONG_MS) {
        hws_client_error (client, text, sizeof text);
    }
    assert_non_null (strstr (text, part));
}

static void expect_closed_here (hws_receiver_t *receiver)
{
    hws_event_t event;
    expect_event (receiver, HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.cause, "receiver_closed");
    expect_event (receiver, HWS_EVENT_CLOSED, &event);
    assert_string_equal (event.cause, "receiver_closed");
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), HWS_ECLOSED);
}

static void cancel_and_close_end_at_once_without_a_broker (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    const char *cause;
    pair_open (&pair, NULL);
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    wait_for_error (pair.clients[0], "lost the connection");
    wait_for_error (pair.clients[1], "lost the connection");
    const int64_t asked_at = process_now ();

    assert_int_equal (hws_sender_cancel (pair.sender, "SIGINT", LONG_MS), HWS_EUNREACHABLE);
    assert_int_equal (hws_receiver_close (pair.receiver, "done", LONG_MS), HWS_EUNREACHABLE);

    assert_int_equal (hws_sender_reason (pair.sender, &cause, NULL), HWS_ECANCELLED);
    assert_string_equal (cause, "interrupted");
    expect_closed_here (pair.receiver);
    assert_true (process_now () < asked_at + 2000);
    pair_close (&pair);
}

static void close_whose_time_passes_ends_here (void **state)
{
    (void) state;
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    process_signal (fixture_broker (), SIGSTOP);

    assert_int_equal (hws_receiver_close (pair.receiver, "done", 20), HWS_ETIMEOUT);

    expect_closed_here (pair.receiver);
    process_signal (fixture_broker (), SIGCONT);
    pair_close (&pair);
}

/*  Its receiver has seen the clean ending, so the sender has to learn the same.  */
static void close_that_nobody_heard_can_be_waited_for (void **state)
{
    (void) state;
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_int_equal (hws_sender_detach (pair.sender, 0), HWS_EWOULD_BLOCK);
    expect_event (pair.receiver, HWS_EVENT_DETACHED, &event);
    process_signal (fixture_broker (), SIGSTOP);
    assert_int_equal (hws_receiver_close (pair.receiver, "done", 20), HWS_ETIMEOUT);
    assert_int_equal (hws_receiver_close (pair.receiver, "done", 20), HWS_ETIMEOUT);
    process_signal (fixture_broker (), SIGCONT);

    assert_int_equal (hws_receiver_close (pair.receiver, "done", LONG_MS), 0);

    assert_int_equal (hws_sender_detach (pair.sender, LONG_MS), 0);
    pair_close (&pair);
}

static void what_could_not_be_made_is_null (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "nowhere";
    hws_client_t *client = fixture_client ();
    hws_client_t *no_client = client;
    hws_receiver_t *receiver = (void *) client;
    hws_sender_t *sender = (void *) client;

    assert_int_equal (hws_client_new (&no_client, &options), HWS_EINVALID);
    assert_int_equal (hws_receiver_open (&receiver, client, "\n", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "nowhere", NULL), HWS_ENOT_FOUND);

    assert_null (no_client);
    assert_null (receiver);
    assert_null (sender);
    hws_client_destroy (&client);
}

/*  localhost has an IPv6 address too, where nobody listens.  */
static void every_address_of_a_name_is_tried (void **state)
{
    (void) state;
    const char *const port = strrchr (fixture_endpoint (), ':');
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "tcp://localhost%s", port);
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = endpoint;
    hws_client_t *client;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);

    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Many windows fill what lies between the client and a broker that has stopped.  */
static void full_connection_is_given_up_like_any_other (void **state)
{
    (void) state;
    enum { SENDERS = 24 };
    static uint8_t data[10000];
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    pair_open (&pair, NULL);
    hws_sender_t *senders[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], pair.clients[1], "a", NULL), 0);
    }
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGSTOP);
    for (int i = 0; i < SENDERS; i++) {
        while (hws_sender_send (senders[i], data, sizeof data, 0) == 0) {
        }
    }
    assert_int_equal (hws_sender_flush (senders[0], 200), HWS_ETIMEOUT);

    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    fixture_start_broker (endpoint, "{}");

    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal (hws_sender_flush (senders[i], LONG_MS), HWS_ETRANSPORT);
        hws_sender_destroy (&senders[i]);
    }
    pair_close (&pair);
}

static void child_of_a_fork_may_use_nothing (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);

    const pid_t child = fork ();
    if (child == 0) {
        hws_event_t event;
        hws_client_t *client = pair.clients[0];
        const bool is_refused =
            hws_sender_send (pair.sender, "x", 1, LONG_MS) == HWS_EWRONG_PROCESS &&
            hws_receiver_recv (pair.receiver, &event, LONG_MS) == HWS_EWRONG_PROCESS &&
            hws_client_flush (client) == HWS_EWRONG_PROCESS &&
            hws_sender_detach (pair.sender, LONG_MS) == HWS_EWRONG_PROCESS;
        hws_sender_destroy (&pair.sender);
        hws_receiver_destroy (&pair.receiver);
        hws_client_destroy (&client);
        _exit (is_refused ? 0 : 1);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);

    assert_int_equal (status, 0);
    assert_int_equal (hws_sender_send (pair.sender, "x", 1, LONG_MS), 0);
    hws_event_t event;
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

static void client_comes_and_goes_without_a_leak (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    pair_close (&pair);
    const int before = dup (0);
    close (before);

    for (size_t i = 0; i < process_scaled (50, 5); i++) {
        pair_open (&pair, NULL);
        hws_sender_send (pair.sender, "x", 1, LONG_MS);
        pair_close (&pair);
    }

    const int after = dup (0);
    close (after);
    assert_int_equal (after, before);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, pair_setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, pair_setup_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)
#define BARE(name) cmocka_unit_test_setup_teardown (name, fixture_setup_bare, fixture_teardown)

/*  The broker has stopped, so that messages made of a sender's memory wait in the socket while
 *  the sender goes; what they hold arrives when the broker goes on.  */
static void destroyed_sender_leaves_its_messages_whole (void **state)
{
    (void) state;
    enum { SIZE = 1000 };
    char data[SIZE];
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    pair_open (&pair, NULL);
    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, pair.clients[1], "a", NULL), 0);
    process_signal (fixture_broker (), SIGSTOP);
    uint64_t sent = 0;
    while (memset (data, (int) (sent % 128), SIZE),
           hws_sender_send (sender, data, SIZE, 200) == 0) {
        sent++;
    }

    hws_sender_destroy (&sender);
    process_signal (fixture_broker (), SIGCONT);

    hws_event_t event = {.kind = HWS_EVENT_ATTACHED};
    uint64_t count = 0;
    while (event.kind == HWS_EVENT_ATTACHED || event.kind == HWS_EVENT_RECORD) {
        assert_int_equal (hws_receiver_recv (pair.receiver, &event, LONG_MS), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            memset (data, (int) (count++ % 128), SIZE);
            assert_int_equal (event.size, SIZE);
            assert_memory_equal (event.data, data, SIZE);
        }
    }
    assert_int_equal (event.kind, HWS_EVENT_CANCELLED);
    assert_in_range (count, 1, sent);
    pair_close (&pair);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TCP (refusals_have_their_code_and_a_sentence),
        BARE (absent_broker_is_unreachable),
        TCP (broker_that_comes_late_is_found_at_once),
        TCP (program_is_told_that_the_broker_went_and_came_back),
        BOTH (dead_broker_is_noticed),
        TCP (cancel_and_close_end_at_once_without_a_broker),
        BARE (close_whose_time_passes_ends_here),
        BARE (close_that_nobody_heard_can_be_waited_for),
        TCP (what_could_not_be_made_is_null),
        BARE (endpoint_that_breaks_the_rules_is_invalid),
        TCP (every_address_of_a_name_is_tried),
        BARE (full_connection_is_given_up_like_any_other),
        BARE (destroyed_sender_leaves_its_messages_whole),
        TCP (child_of_a_fork_may_use_nothing),
        TCP (client_comes_and_goes_without_a_leak),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
