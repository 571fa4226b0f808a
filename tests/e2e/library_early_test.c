/*  hawser.h: senders that do not wait for their attach, against a real broker.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/fake_broker.h"
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LONG_MS = 20000 };

static hws_sender_t *attach_early (hws_client_t *client, int64_t wait_ms, uint64_t token)
{
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.early = true;
    options.wait_ms = wait_ms;
    options.cancel_token = token;
    hws_sender_t *sender = NULL;
    assert_int_equal (hws_sender_attach (&sender, client, "a", &options), 0);
    return sender;
}

/*  Receives `count` records that hold their number, from one sender, and its clean ending.  */
static void expect_records (hws_receiver_t *receiver, uint64_t count)
{
    hws_event_t event;
    expect_event (receiver, HWS_EVENT_ATTACHED, &event);
    for (uint64_t i = 0; i < count; i++) {
        expect_event (receiver, HWS_EVENT_RECORD, &event);
        assert_memory_equal (event.data, &i, sizeof i);
    }
    expect_event (receiver, HWS_EVENT_DETACHED, &event);
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
}

static void send_numbers (hws_sender_t *sender, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal (hws_sender_send (sender, &i, sizeof i, LONG_MS), 0);
    }
}

static hws_receiver_t *open_a (hws_client_t *client, bool is_dedicated)
{
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.dedicated = is_dedicated;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_open (&receiver, client, "a", &options), 0);
    return receiver;
}

/*  ---- Taken ---- */

static void transfer (uint64_t count, bool is_dedicated)
{
    hws_client_t *home = fixture_client ();
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_a (home, is_dedicated);

    hws_sender_t *sender = attach_early (client, 0, 0);
    send_numbers (sender, count);
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);

    expect_records (receiver, count);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), 0);
    assert_int_equal (hws_sender_id (sender), 1);
    assert_true (hws_sender_record_bytes (sender) > 0);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    hws_client_destroy (&home);
}

static void early_records_follow_attach (void **state)
{
    (void) state;
    transfer (10, false);
}

static void a_send_beyond_the_early_window_waits (void **state)
{
    (void) state;
    transfer (500, false);
}

static void early_records_go_to_a_dedicated_anchor (void **state)
{
    (void) state;
    transfer (10, true);
    transfer (500, true);
}

/*  Nobody calls the library between the sends and their arrival.  */
static void the_way_to_a_dedicated_anchor_needs_no_program (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_a (client, true);
    hws_event_t event;

    hws_sender_t *sender = attach_early (client, 0, 0);
    send_numbers (sender, 1);

    expect_event (receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (receiver, HWS_EVENT_RECORD, &event);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void dropped_early_records_are_sent_again (void **state)
{
    (void) state;
    hws_client_t *home = fixture_client ();
    hws_client_t *client = fixture_client ();
    hws_sender_t *sender = attach_early (client, LONG_MS, 0);
    send_numbers (sender, 10);
    fixture_wait_statistic ("waiting", 1);

    hws_receiver_t *receiver = open_a (home, false);
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);

    expect_records (receiver, 10);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), 0);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    hws_client_destroy (&home);
}

static void a_large_record_waits_for_the_answer (void **state)
{
    (void) state;
    static uint8_t data[1 << 20];
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_a (client, false);
    hws_event_t event;

    hws_sender_t *sender = attach_early (client, 0, 0);
    assert_int_equal (hws_sender_send (sender, data, sizeof data + 1, LONG_MS), HWS_ETOO_LARGE);
    assert_int_equal (hws_sender_send (sender, data, sizeof data, LONG_MS), 0);

    expect_event (receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (event.size, sizeof data);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  ---- Not taken ---- */

static void refused_early_attach_is_told (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    const char *cause, *reason;
    char text[256];

    hws_sender_t *sender = attach_early (client, 0, 0);
    struct pollfd item = {.fd = hws_sender_fd (sender), .events = POLLIN};
    assert_int_equal (hws_sender_send (sender, "x", 1, 0), 0);
    assert_int_equal (hws_sender_flush (sender, LONG_MS), HWS_ENOT_FOUND);

    assert_int_equal (poll (&item, 1, 0), 1);
    assert_int_equal (hws_sender_send (sender, "x", 1, 0), HWS_ENOT_FOUND);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), HWS_ENOT_FOUND);
    assert_int_equal (hws_sender_cancel_anchor (sender, NULL, LONG_MS), HWS_ENOT_FOUND);
    assert_int_equal (hws_sender_reason (sender, &cause, &reason), HWS_ENOT_FOUND);
    assert_string_equal (cause, "not_found");
    assert_non_null (strstr (reason, "there is no anchor named a"));
    hws_client_error (client, text, sizeof text);
    assert_string_equal (text, reason);
    assert_int_equal (hws_sender_id (sender), 0);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
}

static void flush_of_nothing_tells_a_refused_early_attach (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();

    hws_sender_t *sender = attach_early (client, 0, 0);

    assert_int_equal (hws_sender_flush (sender, LONG_MS), HWS_ENOT_FOUND);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
}

static void *flush_it (void *argument)
{
    hws_sender_t *const sender = *(hws_sender_t **) argument;
    *(int *) ((void **) argument)[1] = hws_sender_flush (sender, LONG_MS);
    return NULL;
}

static void an_early_attach_is_cancelled_by_its_token (void **state)
{
    (void) state;
    hws_client_t *home = fixture_client ();
    hws_client_t *client = fixture_client ();
    uint64_t token;
    int rc = 0;
    assert_int_equal (hws_token_new (&token), 0);
    hws_sender_t *sender = attach_early (client, LONG_MS, token);
    assert_int_equal (hws_sender_send (sender, "x", 1, 0), 0);
    void *arguments[] = {sender, &rc};
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, flush_it, arguments), 0);
    fixture_wait_statistic ("waiting", 1);

    assert_int_equal (hws_client_cancel_token (home, token, "enough", LONG_MS), 0);

    pthread_join (thread, NULL);
    assert_int_equal (rc, HWS_ECANCELLED);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
    hws_client_destroy (&home);
}

static void a_token_that_is_cancelled_here_refuses_an_early_attach_at_once (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.early = true;
    assert_int_equal (hws_token_new (&options.cancel_token), 0);
    assert_int_equal (hws_client_cancel_token (client, options.cancel_token, "enough", LONG_MS), 0);

    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, client, "a", &options), HWS_ECANCELLED);

    assert_null (sender);
    hws_client_destroy (&client);
}

static void an_absent_broker_ends_an_early_attach (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "tcp://127.0.0.1:1";
    options.connect_ms = 100;
    hws_client_t *client;
    assert_int_equal (hws_client_new (&client, &options), 0);

    hws_sender_t *sender = attach_early (client, 0, 0);
    assert_int_equal (hws_sender_send (sender, "x", 1, 0), 0);

    assert_int_equal (hws_sender_detach (sender, LONG_MS), HWS_EUNREACHABLE);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
}

static void an_early_sender_may_be_destroyed_at_once (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_a (client, true);

    for (int i = 0; i < 50; i++) {
        hws_sender_t *sender = attach_early (client, 0, 0);
        assert_int_equal (hws_sender_send (sender, "x", 1, 0), 0);
        hws_sender_destroy (&sender);
    }

    hws_event_t event; /* of those that were seated all the same */
    do {
        while (hws_receiver_recv (receiver, &event, 200) == 0) {
        }
    } while (fixture_statistic ("seats") > 0);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  A broker that sends from place to place.  */
static void send_to_itself (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) number;
    fake_answer_elsewhere (answer, fake_broker_endpoint (broker));
}

static void an_early_sender_is_sent_on_once (void **state)
{
    (void) state;
    fake_broker_t *broker = fake_broker_start (send_to_itself);
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fake_broker_endpoint (broker);
    hws_client_t *client;
    assert_int_equal (hws_client_new (&client, &options), 0);

    hws_sender_t *sender = attach_early (client, 0, 0);

    assert_int_equal (hws_sender_flush (sender, LONG_MS), HWS_EPROTOCOL);
    assert_int_equal (fake_broker_attaches (broker), 2);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
    fake_broker_stop (&broker);
}

static fake_broker_t *s_front;       /* of the anchor, at first */
static fake_broker_t *s_later_front; /*   and later */

static void send_to_the_fronts (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    fake_answer_elsewhere (answer, fake_broker_endpoint (number == 1 ? s_front : s_later_front));
}

static void answer_nothing (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    (void) number;
    *answer = (hws_control_t){.verb = HWS_VERB_PONG, .form = HWS_FORM_REQUEST};
}

static void give_a_seat (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    (void) number;
    fake_answer_seat (answer);
}

static void an_early_sender_whose_front_is_gone_finds_the_next (void **state)
{
    (void) state;
    s_front = fake_broker_start (answer_nothing);
    s_later_front = fake_broker_start (give_a_seat);
    fake_broker_t *broker = fake_broker_start (send_to_the_fronts);
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fake_broker_endpoint (broker);
    hws_client_t *client;
    assert_int_equal (hws_client_new (&client, &options), 0);
    hws_sender_t *sender = attach_early (client, 0, 0);
    send_numbers (sender, 1);
    fake_broker_t *front = s_front; /* the broker's thread has read the other */
    assert_int_equal (fake_broker_batches (front, 1), 1);

    fake_broker_stop (&front);

    assert_true (fake_broker_batches (s_later_front, 1) >= 1); /* a second when it is answered */
    assert_int_equal (fake_broker_attaches (broker), 2);
    assert_int_equal (fake_broker_attaches (s_later_front), 1);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
    fake_broker_stop (&broker);
    fake_broker_stop (&s_later_front);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, pair_setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, pair_setup_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)
#define BARE(name) cmocka_unit_test_setup_teardown (name, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH (early_records_follow_attach),
        BOTH (a_send_beyond_the_early_window_waits),
        BOTH (early_records_go_to_a_dedicated_anchor),
        TCP (the_way_to_a_dedicated_anchor_needs_no_program),
        BOTH (dropped_early_records_are_sent_again),
        TCP (a_large_record_waits_for_the_answer),
        TCP (refused_early_attach_is_told),
        TCP (flush_of_nothing_tells_a_refused_early_attach),
        TCP (an_early_attach_is_cancelled_by_its_token),
        TCP (a_token_that_is_cancelled_here_refuses_an_early_attach_at_once),
        BARE (an_absent_broker_ends_an_early_attach),
        TCP (an_early_sender_may_be_destroyed_at_once),
        BARE (an_early_sender_is_sent_on_once),
        BARE (an_early_sender_whose_front_is_gone_finds_the_next),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
