/*  hawser-ctl, and the tokens of hawser-send and hawser-recv: cancels before the attach, during
 *  it and while the stream runs, over tcp and ipc.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  A new token, from hawser-ctl.  */
static const char *make_token (void)
{
    process_t *ctl = process_start (NULL, "hawser-ctl", "token", NULL);
    const char *const token = process_wait_output (ctl, "");
    process_expect_exit (ctl, 0);
    assert_true (strtoull (token, NULL, 10) != 0);
    return token;
}

static void cancel_token (const char *token, const char *reason)
{
    process_t *ctl =
        process_start (NULL, "hawser-ctl", "cancel-token", token, "--reason", reason, NULL);
    process_expect_exit (ctl, 0);
    assert_string_equal (process_errors (ctl), "");
}

static process_t *start_sender (const char *token)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--cancel-token", token,
                          "--wait", "30", NULL);
}

static void a_token_that_is_cancelled_before_the_attach_is_3 (void **state)
{
    const process_files_t files = {.input = file_make_text ("input", "one\ntwo\n")};
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--senders", "1", NULL);
    process_wait_error (receiver, "open port");
    const char *const token = make_token ();

    (void) state;
    cancel_token (token, "not needed any more");
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "port", "--cancel-token", token, NULL);
    process_expect_exit (sender, 3);
    assert_string_equal (
        process_errors (sender),
        "hawser-send: cancelled(requested) before it was attached: not needed any more\n");
    process_t *other = process_start (&files, "hawser-send", "--anchor", "port", NULL);
    process_expect_exit (other, 0);
    process_expect_exit (receiver, 0);

    assert_int_equal (event_count (receiver, "attached", NULL), 1);
    assert_int_equal (event_wait (receiver, "attached", NULL, 1).sender, 1);
    assert_int_equal (event_count (receiver, "record", NULL), 2);
}

static void an_attach_that_waits_is_cancelled_by_its_token (void **state)
{
    const char *const token = make_token ();
    process_t *sender = start_sender (token);
    fixture_wait_statistic ("waiting", 1);

    (void) state;
    cancel_token (token, "too late");

    process_expect_exit (sender, 3);
    assert_string_equal (process_errors (sender),
                         "hawser-send: cancelled(requested) before it was attached: too late\n");
    assert_int_equal (fixture_statistic ("waiting"), 0);
}

static void a_stream_that_runs_is_cancelled_by_its_token_at_both_ends (void **state)
{
    const char *const token = make_token ();
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "1", NULL);
    process_t *sender = start_sender (token);
    process_write (sender, "one\n", 4);
    process_wait_output (receiver, "one");

    (void) state;
    cancel_token (token, "too slow");

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 3);
    assert_int_equal (
        process_count_errors (sender, "the stream was cancelled(requested): too slow"), 1);
    assert_int_equal (process_count_errors (receiver, "sender 1 cancelled(requested)"), 1);
    assert_int_equal (process_count_errors (receiver, "too slow"), 1);
}

static void one_token_cancels_all_that_carry_it_and_nobody_else (void **state)
{
    const char *const token = make_token ();
    process_t *senders[3];
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--senders", "4", NULL);
    process_t *other =
        process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    for (size_t i = 0; i < 3; i++) {
        senders[i] = start_sender (token);
    }
    event_wait (receiver, "attached", NULL, 4);

    (void) state;
    cancel_token (token, "all of you");
    for (size_t i = 0; i < 3; i++) {
        process_expect_exit (senders[i], 3);
    }
    process_write (other, "still here\n", 11);
    process_close_input (other);

    process_expect_exit (other, 0);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "cancelled", NULL), 3);
    assert_int_equal (event_count (receiver, "detached", NULL), 1);
    assert_string_equal (event_wait (receiver, "cancelled", NULL, 1).reason, "all of you");
}

static void an_anchor_is_cancelled_by_its_token (void **state)
{
    const char *const token = make_token ();
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--cancel-token", token, NULL);
    process_t *sender =
        process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    event_wait (receiver, "attached", NULL, 1);

    (void) state;
    cancel_token (token, "the job is over");

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 3);
    assert_string_equal (event_wait (receiver, "cancelled", NULL, 1).cause, "requested");
    const event_t closed = event_wait (receiver, "closed", NULL, 1);
    assert_string_equal (closed.cause, "requested");
    assert_string_equal (closed.reason, "the job is over");
}

static void an_open_with_a_cancelled_token_is_3 (void **state)
{
    const char *const token = make_token ();

    (void) state;
    cancel_token (token, "never");
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--cancel-token", token, NULL);

    process_expect_exit (receiver, 3);
    assert_int_equal (process_count_errors (receiver, "never"), 1);
    assert_int_equal (fixture_statistic ("anchors"), 0);
}

static void a_cancelled_stream_of_a_dedicated_anchor_ends_too (void **state)
{
    const char *const token = make_token ();
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--dedicated",
                                         "--senders", "1", NULL);
    process_t *sender = start_sender (token);
    process_write (sender, "one\n", 4);
    process_wait_output (receiver, "one");

    (void) state;
    cancel_token (token, "too slow");

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 3);
}

static void cancels_beyond_the_limit_are_6 (void **state)
{
    process_t *second;

    (void) state;
    cancel_token ("7", "the only one that is remembered");
    cancel_token ("7", "again");
    second = process_start (NULL, "hawser-ctl", "cancel-token", "8", NULL);

    process_expect_exit (second, 6);
    assert_int_equal (process_count_errors (second, ""), 1);
    assert_int_equal (fixture_statistic ("cancel_orphans"), 1);
}

static void hawser_ctl_without_a_broker_is_5_and_4_when_it_waited (void **state)
{
    (void) state;
    process_signal (fixture_broker (), SIGTERM);
    process_expect_exit (fixture_broker (), 0);

    process_t *ctl = process_start (NULL, "hawser-ctl", "cancel-token", "7", NULL);
    process_t *patient =
        process_start (NULL, "hawser-ctl", "cancel-token", "7", "--wait", "0.3", NULL);

    process_expect_exit (patient, 4);
    process_expect_exit (ctl, 5);
    assert_int_equal (process_count_errors (ctl, fixture_endpoint ()), 1);
}

static void hawser_ctl_waits_for_the_broker (void **state)
{
    char endpoint[256];
    snprintf (endpoint, sizeof endpoint, "ipc://%s", process_path ("late"));
    process_t *ctl = process_start (NULL, "hawser-ctl", "cancel-token", "7", "--wait", "30",
                                    "--broker", endpoint, NULL);

    (void) state;
    fixture_start_broker (endpoint, NULL);

    process_expect_exit (ctl, 0);
    assert_int_equal (fixture_statistic ("cancel_orphans"), 1);
}

static void hawser_ctl_refuses_what_it_does_not_know (void **state)
{
    (void) state;
    process_t *none = process_start (NULL, "hawser-ctl", NULL);
    process_t *unknown = process_start (NULL, "hawser-ctl", "cancel", NULL);
    process_t *zero = process_start (NULL, "hawser-ctl", "cancel-token", "0", NULL);

    process_expect_exit (none, 2);
    process_expect_exit (unknown, 2);
    process_expect_exit (zero, 2);
    assert_string_equal (process_errors (none), "hawser-ctl: a command is missing; see --help\n");
}

static int setup_one_orphan (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"limits\": {\"cancel_orphans\": 1}}");
}

#define TCP(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define IPC(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)
#define BOTH(test) TCP (test), IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH (a_token_that_is_cancelled_before_the_attach_is_3),
        BOTH (an_attach_that_waits_is_cancelled_by_its_token),
        BOTH (a_stream_that_runs_is_cancelled_by_its_token_at_both_ends),
        BOTH (one_token_cancels_all_that_carry_it_and_nobody_else),
        BOTH (an_anchor_is_cancelled_by_its_token),
        TCP (an_open_with_a_cancelled_token_is_3),
        BOTH (a_cancelled_stream_of_a_dedicated_anchor_ends_too),
        cmocka_unit_test_setup_teardown (cancels_beyond_the_limit_are_6, setup_one_orphan,
                                         fixture_teardown),
        TCP (hawser_ctl_without_a_broker_is_5_and_4_when_it_waited),
        cmocka_unit_test_setup_teardown (hawser_ctl_waits_for_the_broker, fixture_setup_bare,
                                         fixture_teardown),
        cmocka_unit_test_setup_teardown (hawser_ctl_refuses_what_it_does_not_know,
                                         fixture_setup_bare, fixture_teardown),
    };
    return cmocka_run_group_tests_name ("ctl", tests, NULL, NULL);
}
