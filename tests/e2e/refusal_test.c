/*  What is refused is refused with one clear line on stderr and the exit status that
 *  README.md's table says, and hurts nobody who was there before.
 */
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*  Fails unless it ended with the status and one line that has the word in it.  */
static void expect_refusal (process_t *process, int status, const char *word)
{
    process_expect_exit (process, status);
    if (process_count_errors (process, "") != 1 || process_count_errors (process, word) != 1) {
        process_fail ("not one line with \"%s\"", word);
    }
    if (process_count_output (process, "") != 0) {
        process_fail ("something on stdout");
    }
}

/*  A second broker on the endpoint of the first.  */
static void expect_endpoint_taken (void)
{
    process_t *second =
        process_start (NULL, "hawser-broker", "--listen", fixture_endpoint (), NULL);
    expect_refusal (second, 5, fixture_endpoint ());

    /*  The first still works.  */
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "1", NULL);
    const process_files_t files = {.input = "/dev/null"};
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
}

static void a_second_broker_on_a_tcp_endpoint_is_refused (void **state)
{
    (void) state;
    expect_endpoint_taken ();
}

static void a_second_broker_on_an_ipc_endpoint_is_refused (void **state)
{
    (void) state;
    expect_endpoint_taken ();
}

static void a_killed_brokers_ipc_endpoint_can_be_taken_over (void **state)
{
    char endpoint[256];

    (void) state;
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGKILL);
    process_wait_exit (fixture_broker ());

    fixture_start_broker (endpoint, NULL);

    assert_string_equal (fixture_endpoint (), endpoint);
}

static void an_absent_broker_is_5_after_a_while (void **state)
{
    const process_files_t files = {.input = "/dev/null"};

    /*  A port that was free a moment ago; nobody else takes it meanwhile.  */
    (void) state;
    process_signal (fixture_broker (), SIGTERM);
    process_expect_exit (fixture_broker (), 0);
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", NULL);
    process_t *sender = process_start (&files, "hawser-send", "--anchor", "port", NULL);

    expect_refusal (sender, 5, fixture_endpoint ());
    expect_refusal (receiver, 5, fixture_endpoint ());
}

static void an_absent_anchor_is_1_and_named (void **state)
{
    const process_files_t files = {.input = "/dev/null"};
    process_t *sender = process_start (&files, "hawser-send", "--anchor", "nowhere", NULL);

    (void) state;
    expect_refusal (sender, 1, "nowhere");
}

static void an_unknown_handle_is_1_and_named (void **state)
{
    const process_files_t files = {.input = "/dev/null"};
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "00112233445566778899aabbccddeeff", NULL);

    (void) state;
    expect_refusal (sender, 1, "00112233445566778899aabbccddeeff");
}

static void an_anchor_still_absent_after_the_wait_is_4 (void **state)
{
    const process_files_t files = {.input = "/dev/null"};
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "nowhere", "--wait", "2", NULL);

    (void) state;
    expect_refusal (sender, 4, "nowhere");
}

static void a_name_in_use_is_refused_and_the_first_goes_on (void **state)
{
    process_t *first =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "1", NULL);
    process_t *sender =
        process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30", NULL);

    (void) state;
    process_write (sender, "1\n", 2);
    process_wait_output (first, "1");
    process_t *second = process_start (NULL, "hawser-recv", "--anchor", "port", NULL);
    expect_refusal (second, 1, "port is open (its receiver may be away: try --wait)");
    process_t *third =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--wait", "0.3", NULL);
    expect_refusal (third, 4, "port is open");
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (first, 0);
}

static void a_receiver_waits_for_its_dead_predecessors_name (void **state)
{
    (void) state;
    fixture_start_broker (NULL, "{\"anchors\": {\"heartbeat_interval_ms\": 100, "
                                "\"reconnect_grace_ms\": 100, \"orphan_ttl_ms\": 800}}");
    process_t *dead = process_start (NULL, "hawser-recv", "--anchor", "port", NULL);
    process_wait_error (dead, "open port");
    process_signal (dead, SIGKILL);
    process_expect_exit (dead, 128 + SIGKILL);

    process_t *next = process_start (NULL, "hawser-recv", "--anchor", "port", "--wait", "30", NULL);
    process_wait_error (next, "open port");
    process_signal (next, SIGTERM);

    process_expect_exit (next, 143);
}

static void a_signal_ends_the_wait_for_a_name (void **state)
{
    process_t *first = process_start (NULL, "hawser-recv", "--anchor", "port", NULL);

    (void) state;
    process_wait_error (first, "open port");
    process_t *second =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--wait", "none", NULL);
    process_watch (300);
    process_signal (second, SIGINT);

    process_expect_exit (second, 130);
    process_signal (first, SIGINT);
    process_expect_exit (first, 130);
}

static void a_sender_too_many_is_6_with_the_limit (void **state)
{
    process_t *senders[2];
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--senders", "2", "--max-senders", "2", NULL);

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        senders[i] = process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
        event_wait (receiver, "attached", NULL, i + 1);
    }
    process_t *third = process_start (NULL, "hawser-send", "--anchor", "port", NULL);
    expect_refusal (third, 6, "max_senders limit 2");
    for (size_t i = 0; i < 2; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
}

static void a_label_never_leads_out_of_the_output_directory (void **state)
{
    const char *absolute = process_path ("absolute");
    const char *const labels[] = {"../evil", absolute, "..", ".", "a/../../evil"};
    const char *directory = process_path ("in/out");
    const char *input = file_make_text ("input", "x\n");
    const process_files_t files = {.input = input};

    (void) state;
    assert_int_equal (mkdir (process_path ("in"), 0700), 0);
    assert_int_equal (mkdir (directory, 0700), 0);
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "6",
                                         "--output-dir", directory, NULL);
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        process_t *sender = process_start (&files, "hawser-send", "--anchor", "port", "--wait",
                                           "30", "--label", labels[i], NULL);
        process_expect_exit (sender, 0);
    }
    process_t *good = process_start (&files, "hawser-send", "--anchor", "port", "--wait", "30",
                                     "--label", "good", NULL);
    process_expect_exit (good, 0);
    process_expect_exit (receiver, 0);

    /*  Six files, all of them in there.  */
    assert_int_equal (count_entries (directory), 2 + 6);
    file_expect (process_path ("in/out/good"), "x\n", 2);
    assert_int_not_equal (access (process_path ("in/evil"), F_OK), 0);
    assert_int_not_equal (access (process_path ("evil"), F_OK), 0);
    assert_int_not_equal (access (absolute, F_OK), 0);
}

/*  One command line, its status, and a word of its one line.  */
typedef struct {
    const char *const arguments[10];
    int status;
    const char *word;
} refusal_t;

static void bad_command_lines_are_2_with_one_clear_line (void **state)
{
    static const refusal_t refusals[] = {
        {{"hawser-broker", "--lisen", "tcp://127.0.0.1:*"}, 2, "lisen"},
        {{"hawser-send", "--ancor", "x"}, 2, "ancor"},
        {{"hawser-recv", "--anchr", "x"}, 2, "anchr"},
        {{"hawser-send"}, 2, "anchor"},
        {{"hawser-send", "--anchor", ""}, 2, "anchor"},
        {{"hawser-send", "--anchor", "a\nb"}, 2, "anchor"},
        {{"hawser-send", "--anchor", "x", "--label", "\xff"}, 2, "label"},
        {{"hawser-send", "--anchor", "x", "--label", "a\tb"}, 2, "label"},
        {{"hawser-send", "--anchor", "x", "--broker", "tcp:/nowhere"}, 2, "--broker"},
        {{"hawser-send", "--anchor", "x", "--broker", "tcp://127.0.0.1:99999"}, 2, "port"},
        {{"hawser-send", "--anchor", "x", "--framing", "lines"}, 2, "framing"},
        {{"hawser-send", "--anchor", "x", "--wait", "soon"}, 2, "wait"},
        {{"hawser-recv", "--anchor", "x", "--senders", "-1"}, 2, "senders"},
        {{"hawser-recv", "--anchor", "x", "--format", "yaml"}, 2, "format"},
        {{"hawser-broker", "--listen", "inproc://x"}, 2, "--listen"},
        {{"hawser-broker", "--listen", "tcp://127.0.0.1:70000"}, 2, "port"},
        {{"hawser-broker", "--listen", "tcp://0.0.0.0:*"}, 2, "allow_insecure"},
        {{"hawser-broker", "surplus"}, 2, "surplus"},
        {{"hawser-broker", "-c", "/nowhere/at/all.json"}, 2, "/nowhere/at/all.json"},
        {{"hawser-send", "--anchor", "x", "/nowhere/at/all"}, 1, "/nowhere/at/all"},
        {{"hawser-recv", "--anchor", "x", "--output-dir", "/dev/null/x"}, 1, "/dev/null/x"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal_t *refusal = &refusals[i];
        process_t *process = process_start_list (NULL, refusal->arguments);
        expect_refusal (process, refusal->status, refusal->word);
    }
}

static void help_and_version_are_0_on_stdout (void **state)
{
    static const char *const programs[] = {"hawser-broker", "hawser-send", "hawser-recv"};
    static const char *const options[] = {"--help", "-h", "--version", "-V"};

    (void) state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t k = 0; k < 4; k++) {
            process_t *process = process_start (NULL, programs[i], options[k], NULL);
            process_expect_exit (process, 0);
            assert_true (process_count_output (process, "hawser") > 0);
            assert_string_equal (process_errors (process), "");
        }
    }
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)
#define BARE(test)     cmocka_unit_test_setup_teardown (test, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (a_second_broker_on_a_tcp_endpoint_is_refused),
        OVER_IPC (a_second_broker_on_an_ipc_endpoint_is_refused),
        OVER_IPC (a_killed_brokers_ipc_endpoint_can_be_taken_over),
        OVER_TCP (an_absent_broker_is_5_after_a_while),
        OVER_TCP (an_absent_anchor_is_1_and_named),
        OVER_IPC (an_absent_anchor_is_1_and_named),
        OVER_TCP (an_unknown_handle_is_1_and_named),
        OVER_TCP (an_anchor_still_absent_after_the_wait_is_4),
        OVER_TCP (a_name_in_use_is_refused_and_the_first_goes_on),
        BARE (a_receiver_waits_for_its_dead_predecessors_name),
        OVER_TCP (a_signal_ends_the_wait_for_a_name),
        OVER_TCP (a_sender_too_many_is_6_with_the_limit),
        OVER_TCP (a_label_never_leads_out_of_the_output_directory),
        OVER_TCP (bad_command_lines_are_2_with_one_clear_line),
        BARE (help_and_version_are_0_on_stdout),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
