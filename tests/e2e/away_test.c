/*  A broker that goes away under running programs: both say so, and when it is back; and a
 *  program that is to end meanwhile ends at once, with every ending and its status.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

/*  At once, on a machine with other things to do. A program that waited for the broker's
 *  word, and then for its endings, would take longer.  */
#define AT_ONCE_MS 3000

static process_t *start_receiver (const char *format, const char *option, const char *value)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", format, option,
                          value, NULL);
}

/*  A sender whose record has arrived.  */
static process_t *start_sender (process_t *receiver)
{
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "port", "--label", "s",
                                       "--wait", "30", NULL);

    process_write (sender, "hello\n", 6);
    process_wait_output (receiver, "hello");
    return sender;
}

static void kill_broker (void)
{
    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
}

static void both_programs_say_that_the_broker_went_away_and_is_back (void **state)
{
    char endpoint[256], away[320], away_for_ever[320], back[320];
    process_t *receiver = start_receiver ("text", "--give-up", "none");
    process_t *sender = start_sender (receiver);

    (void) state;
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    snprintf (away, sizeof away, "hawser-send: the broker at %s went away, trying for 1m",
              endpoint);
    snprintf (away_for_ever, sizeof away_for_ever,
              "hawser-recv: the broker at %s went away, trying for ever", endpoint);
    snprintf (back, sizeof back, ": the broker at %s is back", endpoint);
    kill_broker ();
    process_wait_error (sender, away);
    process_wait_error (receiver, away_for_ever);
    fixture_start_broker (endpoint, NULL);

    process_wait_error (sender, back);
    process_wait_error (receiver, back);
    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 3);
    assert_int_equal (process_count_errors (sender, "went away"), 1);
    assert_int_equal (process_count_errors (receiver, "went away"), 1);
}

/*  Interrupts both while there is no broker.  */
static void interrupt_without_broker (process_t *receiver)
{
    process_t *sender = start_sender (receiver);

    kill_broker ();
    process_wait_error (sender, "went away");
    process_wait_error (receiver, "went away");
    const int64_t signalled_at = process_now ();
    process_signal (sender, SIGINT);
    process_signal (receiver, SIGINT);
    process_expect_exit (sender, 130);
    process_expect_exit (receiver, 130);
    assert_true (process_now () - signalled_at < AT_ONCE_MS);
}

static void an_interrupt_without_broker_ends_at_once_with_endings_in_text (void **state)
{
    process_t *receiver = start_receiver ("text", "--give-up", "1m");

    (void) state;
    interrupt_without_broker (receiver);

    const char *errors = process_errors (receiver);
    const char *ending = strstr (errors, "sender 1 \"s\" cancelled(receiver_closed), 1 record, 5 "
                                         "bytes: the receiver got SIGINT\n");
    assert_non_null (ending);
    assert_non_null (strstr (ending, "closed(receiver_closed): the receiver got SIGINT\n"));
}

static void an_interrupt_without_broker_ends_at_once_with_endings_in_json (void **state)
{
    process_t *receiver = start_receiver ("json", "--give-up", "1m");

    (void) state;
    interrupt_without_broker (receiver);

    assert_int_equal (event_count (receiver, "opened", NULL), 1);
    assert_int_equal (event_count (receiver, "cancelled", "s"), 1);
    assert_int_equal (event_count (receiver, "closed", NULL), 1);
    assert_string_equal (event_wait (receiver, "closed", NULL, 1).cause, "receiver_closed");
}

static void a_time_limit_without_broker_ends_at_once_with_endings (void **state)
{
    process_t *receiver = start_receiver ("json", "--timeout", "3");
    process_t *sender = start_sender (receiver);

    (void) state;
    kill_broker ();
    process_wait_error (receiver, "went away");
    process_wait_error (receiver, "--timeout");
    const int64_t passed_at = process_now ();
    process_expect_exit (receiver, 4);

    assert_true (process_now () - passed_at < AT_ONCE_MS);
    assert_int_equal (event_count (receiver, "cancelled", "s"), 1);
    assert_int_equal (event_count (receiver, "closed", NULL), 1);
    process_signal (sender, SIGTERM);
    process_expect_exit (sender, 143);
}

static void an_interrupt_while_the_broker_stands_still_does_not_wait_for_it (void **state)
{
    process_t *receiver = start_receiver ("json", "--give-up", "1m");
    process_t *sender = start_sender (receiver);

    /*  A second that the broker gets; the receiver takes its leave in another.  */
    (void) state;
    process_signal (fixture_broker (), SIGSTOP);
    const int64_t signalled_at = process_now ();
    process_signal (sender, SIGINT);
    process_expect_exit (sender, 130);
    assert_true (process_now () - signalled_at < AT_ONCE_MS);
    process_signal (receiver, SIGINT);
    process_expect_exit (receiver, 130);
    process_signal (fixture_broker (), SIGCONT);

    assert_int_equal (event_count (receiver, "cancelled", "s"), 1);
    assert_int_equal (event_count (receiver, "closed", NULL), 1);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (both_programs_say_that_the_broker_went_away_and_is_back),
        OVER_IPC (both_programs_say_that_the_broker_went_away_and_is_back),
        OVER_TCP (an_interrupt_without_broker_ends_at_once_with_endings_in_text),
        OVER_TCP (an_interrupt_without_broker_ends_at_once_with_endings_in_json),
        OVER_TCP (an_interrupt_while_the_broker_stands_still_does_not_wait_for_it),
        OVER_TCP (a_time_limit_without_broker_ends_at_once_with_endings),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
