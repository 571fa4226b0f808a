/*  Receivers that come back as another process (hawser-recv --resume): killed or stopped under
 *  load, each record comes at least once and in order within every process, and who only left
 *  is given nothing twice. Two of them never fight.
 *
 *  SOAK=1: twenty kills and ten times the records.
 */
#include "tests/support/fixture.h"
#include "tests/support/ledger.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SENDERS       3
#define RECEIVERS_MAX 21

static const char *const s_labels[SENDERS] = {"s0", "s1", "s2"};

static bool is_full (void)
{
    return getenv ("SOAK") != NULL;
}

static size_t record_count (void)
{
    return is_full () ? 20000 : 2000;
}

static process_t *start_receiver (void)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--resume",
                          process_path ("resume"), NULL);
}

static void start_senders (process_t *senders[SENDERS])
{
    for (size_t i = 0; i < SENDERS; i++) {
        const process_files_t files = {.input = ledger_input (s_labels[i], record_count ())};
        senders[i] = process_start (&files, "hawser-send", "--anchor", "port", "--label",
                                    s_labels[i], "--wait", "30", NULL);
    }
}

static void end_receiver (process_t *receiver, int signal)
{
    process_signal (receiver, signal);
    process_expect_exit (receiver, 128 + signal);
}

/*  Every sender has all it needs to end well; then the last receiver is stopped.  */
static void expect_all_sent (process_t *senders[SENDERS], process_t *receiver)
{
    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 0);
    }
    end_receiver (receiver, SIGTERM);
}

/*  All records, and an ending that is clean, though it may have come more than once. Returns
 *  how many records came more than once.  */
static size_t expect_whole (process_t *const receivers[], size_t count)
{
    size_t repeats = 0;
    ledger_t ledger;

    ledger_init (&ledger);
    for (size_t i = 0; i < count; i++) {
        ledger_read (&ledger, receivers[i]);
    }
    for (size_t i = 0; i < SENDERS; i++) {
        const ledger_sender_t *const sender = ledger_find (&ledger, s_labels[i]);
        assert_non_null (sender);
        assert_int_equal (sender->records, record_count ());
        assert_string_equal (sender->ending, "detached");
        repeats += sender->repeats;
    }
    return repeats;
}

/*  Waits until the receiver has printed its share, or there is nothing left: the one before may
 *  have printed more than its own.  */
static void wait_for_share (process_t *receiver, process_t *const senders[SENDERS], size_t lines)
{
    const int64_t until = process_now () + 60000;
    bool is_over = false;

    while (!is_over && process_count_output (receiver, "") < lines) {
        if (process_now () > until) {
            process_fail ("the records stand still");
        }
        process_watch (1);
        is_over = true;
        for (size_t i = 0; i < SENDERS; i++) {
            is_over = is_over && !process_is_running (senders[i]);
        }
    }
}

/*  Each receiver gets to print its share before it is ended by the signal.  */
static size_t run_receivers (int signal)
{
    const size_t count = is_full () ? RECEIVERS_MAX : 5;
    process_t *receivers[RECEIVERS_MAX], *senders[SENDERS];

    receivers[0] = start_receiver ();
    start_senders (senders);
    for (size_t i = 1; i < count; i++) {
        wait_for_share (receivers[i - 1], senders, SENDERS * record_count () / (count + 1));
        end_receiver (receivers[i - 1], signal);
        receivers[i] = start_receiver ();
    }
    expect_all_sent (senders, receivers[count - 1]);
    return expect_whole (receivers, count);
}

static void receiver_killed_again_and_again_is_given_each_record_at_least_once (void **state)
{
    (void) state;
    run_receivers (SIGKILL);
}

static void receiver_that_leaves_again_and_again_is_given_each_record_once (void **state)
{
    (void) state;
    assert_int_equal (run_receivers (SIGTERM), 0);
}

static void receiver_and_broker_killed_together_go_on_together (void **state)
{
    process_t *receivers[2], *senders[SENDERS];

    (void) state;
    receivers[0] = start_receiver ();
    start_senders (senders);
    process_wait_lines (receivers[0], record_count ());
    fixture_kill (fixture_broker ());
    end_receiver (receivers[0], SIGKILL);
    fixture_restart (fixture_broker ());
    receivers[1] = start_receiver ();

    expect_all_sent (senders, receivers[1]);
    expect_whole (receivers, 2);
}

static void second_receiver_of_a_file_takes_over_and_the_first_ends (void **state)
{
    process_t *receivers[2], *senders[SENDERS];

    (void) state;
    receivers[0] = start_receiver ();
    start_senders (senders);
    process_wait_lines (receivers[0], record_count ());
    receivers[1] = start_receiver ();

    process_expect_exit (receivers[0], 3);
    assert_int_equal (process_count_errors (receivers[0], "superseded"), 1);
    expect_all_sent (senders, receivers[1]);
    expect_whole (receivers, 2);
}

static void receiver_that_comes_back_too_late_finds_its_anchor_ended (void **state)
{
    process_t *senders[SENDERS];

    (void) state;
    process_t *first = start_receiver ();
    start_senders (senders);
    process_wait_lines (first, record_count ());
    end_receiver (first, SIGKILL);
    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 3);
        assert_int_equal (process_count_errors (senders[i], "cancelled(abandoned)"), 1);
    }
    process_t *second = start_receiver ();

    process_expect_exit (second, 1);
    assert_int_equal (process_count_errors (second, "ended meanwhile"), 1);
    assert_int_not_equal (access (process_path ("resume"), F_OK), 0);
}

/*  ---- Setup ---- */

static int setup (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"window_records\": 100}}");
}

static int setup_impatient (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (
        "{\"anchors\": {\"window_records\": 100, \"orphan_ttl_ms\": 200}}");
}

#define PATIENT(test)   cmocka_unit_test_setup_teardown (test, setup, fixture_teardown)
#define IMPATIENT(test) cmocka_unit_test_setup_teardown (test, setup_impatient, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        PATIENT (receiver_killed_again_and_again_is_given_each_record_at_least_once),
        PATIENT (receiver_that_leaves_again_and_again_is_given_each_record_once),
        PATIENT (receiver_and_broker_killed_together_go_on_together),
        PATIENT (second_receiver_of_a_file_takes_over_and_the_first_ends),
        IMPATIENT (receiver_that_comes_back_too_late_finds_its_anchor_ended),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
