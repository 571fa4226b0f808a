/*  How streams end between real programs: killed, silent, interrupted, cancelled,
 *  stopped. Every sender has exactly one ending, the same at both ends.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HEARTBEAT_MS 200 /* of the fixture's broker */

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, NULL);
}

/*  A sender whose stdin is a pipe that stays open.  */
static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "30",
                          NULL);
}

/*  `count` senders that have each sent a record which has arrived.  */
static void start_senders (process_t *receiver, process_t *senders[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = start_sender (label);
        process_write (senders[i], "hello\n", 6);
    }
    event_wait (receiver, "record", NULL, count);
}

static void expect_one_ending (const process_t *receiver, const char *kind, const char *label)
{
    static const char *const kinds[] = {"detached", "finalized", "dropped", "cancelled"};

    for (size_t i = 0; i < 4; i++) {
        const size_t expected = strcmp (kinds[i], kind) == 0 ? 1 : 0;
        const size_t count = event_count (receiver, kinds[i], label);
        if (count != expected) {
            process_fail ("%s has %zu times %s", label, count, kinds[i]);
        }
    }
}

static void a_killed_sender_is_dropped_once_and_the_others_complete (void **state)
{
    process_t *senders[5];
    process_t *receiver = start_receiver ("5");

    (void) state;
    start_senders (receiver, senders, 5);
    const int64_t killed_at = process_now ();
    process_signal (senders[2], SIGKILL);
    const event_t dropped = event_wait (receiver, "dropped", "s2", 1);
    const int64_t took_ms = process_now () - killed_at;
    for (size_t i = 0; i < 5; i++) {
        if (i != 2) {
            process_write (senders[i], "more\n", 5);
            process_close_input (senders[i]);
            process_expect_exit (senders[i], 0);
        }
    }
    process_expect_exit (senders[2], 128 + SIGKILL);
    process_expect_exit (receiver, 3);

    /*  The grace is the larger of 300 ms and four intervals.  */
    assert_string_equal (dropped.cause, "transport");
    assert_true (took_ms >= 4 * HEARTBEAT_MS - 1);
    expect_one_ending (receiver, "dropped", "s2");
    for (size_t i = 0; i < 5; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        assert_int_equal (event_count (receiver, "record", label), i == 2 ? 1 : 2);
        if (i != 2) {
            expect_one_ending (receiver, "detached", label);
        }
    }
}

static void grace_and_heartbeat_are_the_receivers_to_choose (void **state)
{
    process_t *sender;
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                       "1", "--heartbeat", "100ms", "--grace", "1500ms", NULL);

    (void) state;
    start_senders (receiver, &sender, 1);
    const int64_t killed_at = process_now ();
    process_signal (sender, SIGKILL);
    event_wait (receiver, "dropped", "s0", 1);
    const int64_t took_ms = process_now () - killed_at;

    process_wait_exit (sender);
    process_expect_exit (receiver, 3);
    assert_true (took_ms >= 1499);
}

static void three_silent_intervals_drop (void **state)
{
    process_t *senders[2];
    process_t *receiver = start_receiver ("2");

    (void) state;
    start_senders (receiver, senders, 2);
    const int64_t stopped_at = process_now ();
    process_signal (senders[0], SIGSTOP);
    const event_t dropped = event_wait (receiver, "dropped", "s0", 1);
    const int64_t took_ms = process_now () - stopped_at;
    process_signal (senders[0], SIGCONT);
    process_expect_exit (senders[0], 3);
    process_close_input (senders[1]);
    process_expect_exit (senders[1], 0);
    process_expect_exit (receiver, 3);

    /*  Its last message may be half an interval old when it stops.  */
    assert_string_equal (dropped.cause, "heartbeat");
    assert_true (took_ms >= 2 * HEARTBEAT_MS);
    assert_non_null (strstr (process_errors (senders[0]), "heartbeat"));
    expect_one_ending (receiver, "dropped", "s0");
    expect_one_ending (receiver, "detached", "s1");
}

/*  After SIGINT or SIGTERM of the receiver every sender ends with 3 and the reason.  */
static void interrupt_receiver (int signal, int status)
{
    process_t *senders[5];
    process_t *receiver = start_receiver ("5");

    start_senders (receiver, senders, 5);
    const int64_t signalled_at = process_now ();
    process_signal (receiver, signal);
    for (size_t i = 0; i < 5; i++) {
        process_expect_exit (senders[i], 3);
        assert_non_null (strstr (process_errors (senders[i]), "receiver_closed"));
    }
    const int64_t took_ms = process_now () - signalled_at;
    process_expect_exit (receiver, status);
    assert_true (took_ms < 5000);
}

static void sigint_to_the_receiver_ends_every_sender_with_the_reason (void **state)
{
    (void) state;
    interrupt_receiver (SIGINT, 130);
}

static void sigterm_to_the_receiver_ends_every_sender_with_the_reason (void **state)
{
    (void) state;
    interrupt_receiver (SIGTERM, 143);
}

static void a_cancel_wakes_a_sender_that_waits_for_its_window (void **state)
{
    const char *input = file_make_stream ("in", "line", 1, 32u << 20);
    const process_files_t files = {.input = input};
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "1", NULL);

    /*  Nobody reads the receiver's stdout: it stands, and so does the sender.  */
    (void) state;
    process_hold_output (receiver, true);
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    process_watch (500);
    assert_true (process_is_running (sender));
    process_signal (receiver, SIGINT);

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 130);
    process_hold_output (receiver, false);
}

/*  A sender that gets a signal says cancelled(interrupted): never a clean end.  */
static void interrupt_sender (int signal, int status)
{
    process_t *senders[2];
    process_t *receiver = start_receiver ("2");

    start_senders (receiver, senders, 2);
    process_signal (senders[0], signal);
    const event_t cancelled = event_wait (receiver, "cancelled", "s0", 1);
    process_expect_exit (senders[0], status);
    process_close_input (senders[1]);
    process_expect_exit (senders[1], 0);
    process_expect_exit (receiver, 3);

    assert_string_equal (cancelled.cause, "interrupted");
    expect_one_ending (receiver, "cancelled", "s0");
    expect_one_ending (receiver, "detached", "s1");
}

static void sigint_to_a_sender_cancels_it_as_interrupted (void **state)
{
    (void) state;
    interrupt_sender (SIGINT, 130);
}

static void sigterm_to_a_sender_cancels_it_as_interrupted (void **state)
{
    (void) state;
    interrupt_sender (SIGTERM, 143);
}

/*  Thrice, for whom a broker finds first on waking, its deadlines or what was said
 *  meanwhile, is a matter of luck.  */
static void late_broker_does_not_judge (void **state)
{
    process_t *senders[3];
    process_t *receiver = start_receiver ("3");

    (void) state;
    start_senders (receiver, senders, 3);
    for (size_t nap = 1; nap <= 3; nap++) {
        process_signal (fixture_broker (), SIGSTOP);
        process_watch (5 * HEARTBEAT_MS);
        process_signal (fixture_broker (), SIGCONT);
        for (size_t i = 0; i < 3; i++) {
            process_write (senders[i], "after\n", 6);
        }
        event_wait (receiver, "record", NULL, 3 * (nap + 1));
    }
    for (size_t i = 0; i < 3; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }

    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "record", NULL), 12);
    assert_int_equal (event_count (receiver, "detached", NULL), 3);
}

static void a_receiver_that_slept_loses_nothing (void **state)
{
    process_t *senders[3];
    process_t *receiver = start_receiver ("3");

    (void) state;
    start_senders (receiver, senders, 3);
    process_signal (receiver, SIGSTOP);
    for (size_t i = 0; i < 3; i++) {
        process_write (senders[i], "while it sleeps\n", 16);
    }
    process_watch (5 * HEARTBEAT_MS);
    process_signal (receiver, SIGCONT);
    for (size_t i = 0; i < 3; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }

    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "record", NULL), 6);
    assert_int_equal (event_count (receiver, "detached", NULL), 3);
}

static void idle_streams_live_on (void **state)
{
    process_t *senders[2];
    process_t *receiver = start_receiver ("2");

    (void) state;
    start_senders (receiver, senders, 2);
    process_watch (6 * HEARTBEAT_MS);
    for (size_t i = 0; i < 2; i++) {
        process_write (senders[i], "still here\n", 11);
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }

    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "record", NULL), 4);
}

static void each_attach_after_a_detach_is_a_new_sender (void **state)
{
    process_t *receiver = start_receiver ("6");

    (void) state;
    for (size_t round = 1; round <= 6; round++) {
        process_t *sender = start_sender ("again");
        process_write (sender, "once\n", 5);
        process_close_input (sender);
        process_expect_exit (sender, 0);
    }

    process_expect_exit (receiver, 0);
    for (size_t round = 1; round <= 6; round++) {
        assert_int_equal (event_wait (receiver, "record", NULL, round).sender, round);
        assert_int_equal (event_wait (receiver, "detached", NULL, round).sender, round);
    }
}

static void fifty_cancels_at_once_are_one_ending_each (void **state)
{
    const size_t count = process_scaled (50, 5);
    process_t *receivers[50];
    process_t *senders[50];

    (void) state;
    for (size_t i = 0; i < count; i++) {
        char anchor[32];
        snprintf (anchor, sizeof anchor, "port-%zu", i);
        receivers[i] =
            process_start (NULL, "hawser-recv", "--anchor", anchor, "--format", "json", NULL);
        senders[i] = process_start (NULL, "hawser-send", "--anchor", anchor, "--label", "s",
                                    "--wait", "30", NULL);
    }
    for (size_t i = 0; i < count; i++) {
        event_wait (receivers[i], "attached", "s", 1);
    }
    for (size_t i = 0; i < count; i++) {
        process_signal (receivers[i], SIGINT);
    }

    for (size_t i = 0; i < count; i++) {
        process_expect_exit (senders[i], 3);
        process_expect_exit (receivers[i], 130);
        expect_one_ending (receivers[i], "cancelled", "s");
    }
}

static void a_crashed_receiver_leaves_its_senders_cancelled_as_abandoned (void **state)
{
    process_t *senders[2];

    (void) state;
    fixture_start_broker (NULL, "{\"anchors\": {\"heartbeat_interval_ms\": 100, "
                                "\"reconnect_grace_ms\": 100, \"orphan_ttl_ms\": 800}}");
    process_t *receiver = start_receiver ("2");
    start_senders (receiver, senders, 2);
    process_signal (receiver, SIGKILL);

    process_expect_exit (receiver, 128 + SIGKILL);
    for (size_t i = 0; i < 2; i++) {
        process_expect_exit (senders[i], 3);
        assert_non_null (strstr (process_errors (senders[i]), "abandoned"));
    }
}

static void enough_records_end_the_receiver_and_cancel_the_rest (void **state)
{
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--count", "2", NULL);
    process_t *sender = start_sender ("s");

    (void) state;
    process_write (sender, "1\n2\n3\n", 6);

    process_expect_exit (receiver, 0);
    process_expect_exit (sender, 3);
    assert_string_equal (process_output (receiver, NULL), "1\n2\n");
}

static void a_time_limit_ends_the_receiver_with_4 (void **state)
{
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--timeout", "300ms", NULL);

    (void) state;
    process_expect_exit (receiver, 4);
}

static void a_closed_stdout_ends_the_receiver_and_its_senders (void **state)
{
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", NULL);
    process_t *sender = start_sender ("s");

    (void) state;
    process_write (sender, "seen\n", 5);
    process_wait_output (receiver, "seen");
    process_close_output (receiver);
    process_write (sender, "into the void\n", 14);

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 0);
}

static void a_stopped_broker_ends_with_0_and_its_clients_with_5 (void **state)
{
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--give-up", "500ms", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30",
                                       "--give-up", "500ms", NULL);

    (void) state;
    process_write (sender, "seen\n", 5);
    process_wait_output (receiver, "seen");
    process_signal (fixture_broker (), SIGTERM);

    process_expect_exit (fixture_broker (), 0);
    process_expect_exit (sender, 5);
    process_expect_exit (receiver, 5);
}

static void a_killed_broker_ends_its_clients_with_5 (void **state)
{
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--give-up", "500ms", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30",
                                       "--give-up", "500ms", NULL);

    (void) state;
    process_write (sender, "seen\n", 5);
    process_wait_output (receiver, "seen");
    process_signal (fixture_broker (), SIGKILL);

    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    process_expect_exit (sender, 5);
    process_expect_exit (receiver, 5);
}

#define OVER_TCP(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)
#define BARE(test)      cmocka_unit_test_setup_teardown (test, fixture_setup_bare, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH (a_killed_sender_is_dropped_once_and_the_others_complete),
        OVER_TCP (grace_and_heartbeat_are_the_receivers_to_choose),
        OVER_BOTH (three_silent_intervals_drop),
        OVER_TCP (sigint_to_the_receiver_ends_every_sender_with_the_reason),
        OVER_IPC (sigterm_to_the_receiver_ends_every_sender_with_the_reason),
        OVER_TCP (a_cancel_wakes_a_sender_that_waits_for_its_window),
        OVER_TCP (sigint_to_a_sender_cancels_it_as_interrupted),
        OVER_IPC (sigterm_to_a_sender_cancels_it_as_interrupted),
        OVER_BOTH (late_broker_does_not_judge),
        OVER_BOTH (a_receiver_that_slept_loses_nothing),
        OVER_TCP (idle_streams_live_on),
        OVER_BOTH (each_attach_after_a_detach_is_a_new_sender),
        OVER_BOTH (fifty_cancels_at_once_are_one_ending_each),
        BARE (a_crashed_receiver_leaves_its_senders_cancelled_as_abandoned),
        OVER_TCP (enough_records_end_the_receiver_and_cancel_the_rest),
        OVER_TCP (a_time_limit_ends_the_receiver_with_4),
        OVER_TCP (a_closed_stdout_ends_the_receiver_and_its_senders),
        OVER_TCP (a_stopped_broker_ends_with_0_and_its_clients_with_5),
        OVER_TCP (a_killed_broker_ends_its_clients_with_5),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
