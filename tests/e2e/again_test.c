/*  Who comes again: senders and receivers that crash and are started anew under the same name,
 *  two of one name at a time, a broker that was away, and one sender after the other. Nothing of
 *  the first gets mixed up with the second, and nothing is left of either.
 *
 *  SOAK=1: the full counts.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEARTBEAT_MS        200  /* of the fixture's broker */
#define LONGEST_BACK_OFF_MS 5000 /* of a client */

static size_t count_of (size_t full, size_t in_check)
{
    return getenv ("SOAK") ? full : process_scaled (in_check, 2);
}

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, "--wait", "60", "--give-up", "2m", NULL);
}

static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "60",
                          "--give-up", "2m", NULL);
}

static void write_records (process_t *sender, size_t count)
{
    char line[32];

    for (size_t i = 0; i < count; i++) {
        process_write (sender, line, (size_t) snprintf (line, sizeof line, "%zu\n", i));
    }
}

/*  ---- Senders ---- */

/*  The records of one sender id, which have to count from 0 on; returns how many.  */
static size_t count_records (const process_t *receiver, const char *sender)
{
    char part[64], data[64];
    size_t count = 0;

    snprintf (part, sizeof part, "\"record\",\"sender\":\"%s\"", sender);
    for (const char *at = process_output (receiver, NULL); (at = strstr (at, part)); at++) {
        snprintf (data, sizeof data, "\"data\":\"%zu\"}\n", count);
        const char *const line_end = strchr (at, '\n');
        assert_memory_equal (line_end + 1 - strlen (data), data, strlen (data));
        count++;
    }
    return count;
}

/*  Its records wait at a receiver that prints nothing when it is killed.  */
static void sender_started_again_under_its_label_is_a_stream_of_its_own (void **state)
{
    process_t *receiver = start_receiver ("2");
    process_t *first = start_sender ("s");

    (void) state;
    event_wait (receiver, "attached", "s", 1);
    process_hold_output (receiver, true);
    write_records (first, 1000);
    process_signal (first, SIGKILL);
    process_t *second = start_sender ("s");
    write_records (second, 100);
    process_close_input (second);
    process_hold_output (receiver, false);

    process_expect_exit (second, 0);
    process_expect_exit (first, 128 + SIGKILL);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "attached", "s"), 2);
    assert_int_equal (event_count (receiver, "dropped", "s"), 1);
    assert_int_equal (event_wait (receiver, "dropped", "s", 1).sender, 1);
    assert_int_equal (event_wait (receiver, "detached", "s", 1).sender, 2);
    assert_true (count_records (receiver, "1") <= 1000);
    assert_int_equal (count_records (receiver, "2"), 100);
}

/*  Of one client and of two, the first destroyed first and the second.  */
static void two_senders_of_one_label_come_and_go_in_every_order (void **state)
{
    const size_t rounds = count_of (1000, 100);
    hws_client_t *clients[2] = {fixture_client (), fixture_client ()};
    hws_receiver_t *receiver = NULL;
    hws_sender_options_t options;
    hws_event_t event;
    size_t endings = 0;

    (void) state;
    hws_sender_options_init (&options);
    options.label = "twin";
    assert_int_equal (hws_receiver_open (&receiver, clients[0], "port", NULL), 0);
    for (size_t i = 0; i < rounds; i++) {
        hws_sender_t *senders[2] = {NULL, NULL};
        const size_t first = i % 2;
        for (size_t k = 0; k < 2; k++) {
            hws_client_t *client = clients[i / 2 % 2 == 0 ? 0 : k];
            assert_int_equal (hws_sender_attach (&senders[k], client, "port", &options), 0);
        }
        hws_sender_destroy (&senders[first]);
        assert_int_equal (hws_sender_send (senders[1 - first], "x", 1, 60000), 0);
        hws_sender_destroy (&senders[1 - first]);
        while (endings < 2 * (i + 1)) {
            assert_int_equal (hws_receiver_recv (receiver, &event, 60000), 0);
            endings += event.kind == HWS_EVENT_CANCELLED ? 1 : 0;
            assert_int_not_equal (event.kind, HWS_EVENT_DROPPED);
        }
    }

    hws_receiver_recv (receiver, &event, 0);
    fixture_wait_statistic ("seats", 0);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
}

static void every_one_of_many_tiny_senders_delivers_its_record (void **state)
{
    const size_t count = count_of (10000, 100);
    char number[32], script[512];

    (void) state;
    snprintf (number, sizeof number, "%zu", count);
    snprintf (script, sizeof script,
              "i=0; while [ $i -lt %zu ]; do"
              " printf x | \"$0\" --anchor port || exit; i=$((i + 1)); done",
              count);
    process_t *receiver = start_receiver (number);
    process_wait_output (receiver, "opened");
    process_t *shell =
        process_start (NULL, "/bin/sh", "-c", script, process_program ("hawser-send"), NULL);
    for (size_t i = 1; i <= count; i += 100) {
        event_wait (receiver, "detached", NULL, i);
    }

    process_expect_exit (shell, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "record", NULL), count);
    assert_int_equal (event_count (receiver, "detached", NULL), count);
}

/*  ---- Receivers ---- */

/*  Each one has the name as soon as its predecessor is given up, and hears its own senders.  */
static void receiver_that_is_started_again_and_again_gets_its_senders (void **state)
{
    const size_t rounds = count_of (20, 5);

    (void) state;
    for (size_t i = 0; i < rounds; i++) {
        process_t *receiver = start_receiver ("9");
        process_wait_output (receiver, "opened");
        process_t *senders[2] = {start_sender ("a"), start_sender ("b")};
        for (size_t k = 0; k < 2; k++) {
            write_records (senders[k], 50);
        }
        event_wait (receiver, "record", NULL, 100);
        process_signal (receiver, SIGKILL);
        process_expect_exit (receiver, 128 + SIGKILL);
        for (size_t k = 0; k < 2; k++) {
            process_expect_exit (senders[k], 3);
            assert_int_equal (process_count_errors (senders[k], "cancelled(abandoned)"), 1);
        }
        assert_int_equal (count_records (receiver, "1"), 50);
        assert_int_equal (count_records (receiver, "2"), 50);
    }
}

/*  Its receiver stands still and dies: the sender knows how many records had been consumed, and
 *  of all others that they were not.  */
static void what_a_crashed_receiver_did_not_consume_is_told (void **state)
{
    static const char record[1000];
    hws_client_t *client = fixture_client ();
    hws_sender_t *sender = NULL;
    hws_sender_options_t options;
    uint64_t accepted = 0, consumed = 0;
    const char *cause;

    (void) state;
    hws_sender_options_init (&options);
    options.wait_ms = 60000;
    process_t *receiver = start_receiver ("1");
    assert_int_equal (hws_sender_attach (&sender, client, "port", &options), 0);
    assert_int_equal (hws_sender_send (sender, record, sizeof record, 60000), 0);
    assert_int_equal (hws_sender_flush (sender, 60000), 0);
    process_signal (receiver, SIGSTOP);
    for (accepted = 1; hws_sender_send (sender, record, sizeof record, 0) == 0; accepted++) {
    }
    process_signal (receiver, SIGKILL);

    assert_int_equal (hws_sender_flush (sender, 60000), HWS_ECANCELLED);

    assert_int_equal (hws_sender_reason (sender, &cause, NULL), HWS_ECANCELLED);
    assert_string_equal (cause, "abandoned");
    hws_sender_progress (sender, &consumed, NULL);
    assert_int_equal (consumed, 1);
    assert_true (accepted > 1);
    fixture_wait_statistic ("cancelled", 1);
    process_expect_exit (receiver, 128 + SIGKILL);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
}

/*  ---- Brokers ---- */

static void broker_that_was_away_for_long_is_found_again_soon (void **state)
{
    const int64_t away_ms = getenv ("SOAK") ? 60000 : 2000;

    (void) state;
    process_t *receiver = start_receiver ("1");
    process_t *sender = start_sender ("s");
    write_records (sender, 1);
    event_wait (receiver, "record", "s", 1);
    process_signal (fixture_broker (), SIGSTOP);
    process_wait_error (sender, "went away");
    process_watch (away_ms);
    const int64_t back_at = process_now ();
    process_signal (fixture_broker (), SIGCONT);
    process_write (sender, "1\n", 2);
    event_wait (receiver, "record", "s", 2);
    const int64_t took_ms = process_now () - back_at;
    assert_true (took_ms < LONGEST_BACK_OFF_MS + 2 * HEARTBEAT_MS);

    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
}

/*  ---- Setup ---- */

static int setup_forgetful (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"heartbeat_interval_ms\": 1000,"
                                   " \"orphan_ttl_ms\": 100}}");
}

/*  A sender that waits for its next try is not away for too long.  */
static int setup_patient (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"heartbeat_interval_ms\": 200,"
                                   " \"reconnect_grace_ms\": 10000}}");
}

#define OVER_TCP(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define CALM(test)      cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define PATIENT(test)   cmocka_unit_test_setup_teardown (test, setup_patient, fixture_teardown)
#define FORGETFUL(test) cmocka_unit_test_setup_teardown (test, setup_forgetful, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (sender_started_again_under_its_label_is_a_stream_of_its_own),
        CALM (two_senders_of_one_label_come_and_go_in_every_order),
        CALM (every_one_of_many_tiny_senders_delivers_its_record),
        FORGETFUL (what_a_crashed_receiver_did_not_consume_is_told),
        FORGETFUL (receiver_that_is_started_again_and_again_gets_its_senders),
        PATIENT (broker_that_was_away_for_long_is_found_again_soon),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
