/*  A broker that is told to leave: SIGTERM ends no stream, what is held leaves first, nobody who
 * comes meanwhile is turned away, and it takes no longer than it may.
 *
 *  A broker has something to hold when a receiver stands still and its sender does not.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD_RECORDS 120   /* more than the queues between broker and receiver take */
#define RECORD_SIZE  40000 /* with its newline */

/*  When the broker gives a connection up whose other end takes nothing.  */
#define CONNECTION_LOST_MS 30000

/*  Long intervals: who stands still is not away. The window has room for all that is sent. */
#define CONFIG(drain_timeout)                                                                      \
    "{\"anchors\": {\"heartbeat_interval_ms\": 300000, \"window_bytes_min\": 8388608,"             \
    " \"window_bytes_max\": 8388608},"                                                             \
    " \"limits\": {\"send_queue\": 16, \"batch_bytes\": 65536},"                                   \
    " \"drain_timeout_ms\": " drain_timeout "}"

static int setup_patient (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (CONFIG ("3600000"));
}

static int setup_hasty (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (CONFIG ("200"));
}

/*  ---- Steps ---- */

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, NULL);
}

static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "60",
                          NULL);
}

static void write_numbers (process_t *sender, size_t from, size_t to)
{
    char line[32];

    for (size_t i = from; i < to; i++) {
        process_write (sender, line, (size_t) snprintf (line, sizeof line, "%zu\n", i));
    }
}

/*  How many records of a label came, each once and in order.  */
static void expect_numbers (process_t *receiver, const char *label, size_t count)
{
    char data[32];

    for (size_t i = 0; i < count; i++) {
        const event_t record = event_wait (receiver, "record", label, i + 1);
        snprintf (data, sizeof data, "%zu", i);
        assert_string_equal (record.data, data);
    }
    assert_int_equal (event_count (receiver, "record", label), count);
}

/*  A receiver that stands still, and a sender whose records the broker has.  */
typedef struct {
    process_t *receiver;
    process_t *sender;
} held_t;

static held_t hold_records (const char *senders)
{
    char *line = malloc (RECORD_SIZE);
    const held_t held = {start_receiver (senders), start_sender ("held")};

    assert_non_null (line);
    event_wait (held.receiver, "attached", "held", 1);
    process_signal (held.receiver, SIGSTOP);
    for (int i = 0; i < HELD_RECORDS; i++) {
        memset (line, 'a' + i % 26, RECORD_SIZE);
        line[RECORD_SIZE - 1] = '\n';
        process_write (held.sender, line, RECORD_SIZE);
    }
    free (line);
    fixture_wait_statistic ("records_in", HELD_RECORDS);
    return held;
}

/*  They go on where they were.  */
static void finish (held_t held)
{
    process_signal (held.receiver, SIGCONT);
    process_close_input (held.sender);
    process_expect_exit (held.sender, 0);
    event_wait (held.receiver, "detached", "held", 1);
    assert_int_equal (event_count (held.receiver, "record", "held"), HELD_RECORDS);
}

static void tell_to_leave (void)
{
    process_signal (fixture_broker (), SIGTERM);
    process_wait_error (fixture_broker (), "event=drain");
}

/*  ---- Tests ---- */

static void no_stream_ends_by_sigterm (void **state)
{
    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *senders[] = {start_sender ("one"), start_sender ("two")};
    for (size_t i = 0; i < 2; i++) {
        write_numbers (senders[i], 0, 100);
    }
    expect_numbers (receiver, "one", 100);
    expect_numbers (receiver, "two", 100);

    for (size_t round = 1; round < 4; round++) {
        fixture_stop (fixture_broker ());
        for (size_t i = 0; i < 2; i++) {
            write_numbers (senders[i], 100 * round, 100 * round + 50);
        }
        fixture_restart (fixture_broker ());
        for (size_t i = 0; i < 2; i++) {
            write_numbers (senders[i], 100 * round + 50, 100 * round + 100);
        }
    }

    for (size_t i = 0; i < 2; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
    expect_numbers (receiver, "one", 400);
    expect_numbers (receiver, "two", 400);
    assert_int_equal (event_count (receiver, "detached", NULL), 2);
}

static void what_the_broker_holds_leaves_before_it_does (void **state)
{
    (void) state;
    held_t held = hold_records ("1");
    tell_to_leave ();
    process_watch (200);
    assert_true (process_is_running (fixture_broker ()));

    process_signal (held.receiver, SIGCONT);

    process_expect_exit (fixture_broker (), 0);
    event_wait (held.receiver, "record", "held", HELD_RECORDS);
    fixture_restart (fixture_broker ());
    finish (held);
    process_expect_exit (held.receiver, 0);
}

static void a_second_signal_makes_it_leave_at_once (void **state)
{
    (void) state;
    held_t held = hold_records ("1");
    tell_to_leave ();
    process_watch (200);
    assert_true (process_is_running (fixture_broker ()));

    fixture_stop (fixture_broker ());

    fixture_restart (fixture_broker ());
    finish (held);
    process_expect_exit (held.receiver, 0);
}

static void a_drain_takes_no_longer_than_it_may (void **state)
{
    (void) state;
    held_t held = hold_records ("1");
    const int64_t told_at = process_now ();

    fixture_stop (fixture_broker ());

    assert_true (process_now () < told_at + CONNECTION_LOST_MS / 2);
    fixture_restart (fixture_broker ());
    finish (held);
    process_expect_exit (held.receiver, 0);
}

static void who_comes_while_it_leaves_is_served_by_the_next (void **state)
{
    (void) state;
    held_t held = hold_records ("2");
    tell_to_leave ();

    process_t *late = start_sender ("late");
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "other", "--format",
                                         "json", "--senders", "1", "--wait", "60", NULL);
    fixture_wait_statistic ("peers", 4); /* who hears of it soon enough asks for nothing */
    fixture_stop (fixture_broker ());
    fixture_restart (fixture_broker ());
    process_t *sender =
        process_start (NULL, "hawser-send", "--anchor", "other", "--wait", "60", NULL);
    process_t *all[] = {late, sender};
    finish (held);
    for (size_t i = 0; i < 2; i++) {
        process_write (all[i], "0\n", 2);
        process_close_input (all[i]);
        process_expect_exit (all[i], 0);
    }

    process_expect_exit (receiver, 0);
    process_expect_exit (held.receiver, 0);
    expect_numbers (held.receiver, "late", 1);
}

#define BOTH(test)                                                                                 \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown),              \
        cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)
#define PATIENT(test) cmocka_unit_test_setup_teardown (test, setup_patient, fixture_teardown)
#define HASTY(test)   cmocka_unit_test_setup_teardown (test, setup_hasty, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH (no_stream_ends_by_sigterm),
        PATIENT (what_the_broker_holds_leaves_before_it_does),
        PATIENT (a_second_signal_makes_it_leave_at_once),
        HASTY (a_drain_takes_no_longer_than_it_may),
        PATIENT (who_comes_while_it_leaves_is_served_by_the_next),
    };
    return cmocka_run_group_tests_name ("drain", tests, NULL, NULL);
}
