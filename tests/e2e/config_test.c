/*  Configuration through the real programs: checked without a trace, printed so that
 *  it loads again, refused by place and name.
 */
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check_config_binds_and_creates_nothing (void **state)
{
    char text[512];

    /*  The endpoint is taken, and that does not matter.  */
    (void) state;
    const int size = snprintf (text, sizeof text, "{\"listen\": [\"%s\", \"ipc://%s/new\"]}",
                               fixture_endpoint (), process_directory ());
    const char *path = file_make ("checked.json", text, (size_t) size);
    const size_t entries = count_entries (process_directory ());
    process_t *broker = process_start (NULL, "hawser-broker", "-c", path, "--check-config", NULL);

    process_expect_exit (broker, 0);
    assert_int_equal (count_entries (process_directory ()), entries);
}

/*  Prints, loads what was printed, prints again: the same.  */
static void expect_printed_loads (const char *program, const char *const extra[2])
{
    const char *const first_arguments[] = {program, "--print-config", extra[0],
                                           extra[0] ? extra[1] : NULL, NULL};
    process_t *first = process_start_list (NULL, first_arguments);
    size_t size;

    process_expect_exit (first, 0);
    const char *printed = process_output (first, &size);
    const char *path = file_make ("printed.json", printed, size);
    process_t *check = process_start (NULL, program, "-c", path, "--check-config", NULL);
    process_expect_exit (check, 0);
    process_t *again = process_start (NULL, program, "-c", path, "--print-config", NULL);
    process_expect_exit (again, 0);
    if (extra[0] && !strstr (process_output (again, NULL), extra[1])) {
        process_fail ("%s is not in what was printed", extra[1]);
    }
}

static void printed_configuration_loads_again (void **state)
{
    static const char *const none[2] = {NULL, NULL};
    static const char *const listen[2] = {"--listen", "tcp://127.0.0.1:7799"};
    static const char *const anchor[2] = {"--anchor", "some-anchor"};
    static const char *const reason[2] = {"--reason", "some-reason"};

    (void) state;
    expect_printed_loads ("hawser-broker", none);
    expect_printed_loads ("hawser-broker", listen);
    expect_printed_loads ("hawser-send", anchor);
    expect_printed_loads ("hawser-recv", anchor);
    expect_printed_loads ("hawser-ctl", reason);
}

static void broken_configuration_is_2_with_file_line_and_column (void **state)
{
    static const struct {
        const char *text;
        const char *place;
        const char *word;
    } cases[] = {
        {"{\n  \"anchors\": {\n    \"heartbeat_interval_ms\": \"soon\"\n  }\n}",
         "broken.json:3:", "anchors.heartbeat_interval_ms"},
        {"{\n  \"anchor\": {}\n}", "broken.json:2:", "did you mean"},
        {"{ \"listen\": [\"tcp://127.0.0.1:*\"] } x", "broken.json:1:", ""},
        {"{\n \"listen\": [\"tcp://127.0.0.1:*\"],\n \"listen\": []\n}",
         "broken.json:3:", "listen"},
        {"{ \"limits\": { \"record_bytes\": -1 } }", "broken.json:1:", "limits.record_bytes"},
        {"{ \"limits\": { \"record_bytes\": 007 } }", "broken.json:1:", ""},
        {"{", "broken.json:", ""},
        {"", "broken.json:", ""},
        {"[]", "broken.json:1:", ""},
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = file_make_text ("broken.json", cases[i].text);
        process_t *broker = process_start (NULL, "hawser-broker", "-c", path, NULL);
        process_expect_exit (broker, 2);
        if (process_count_errors (broker, "") != 1 ||
            !strstr (process_errors (broker), cases[i].place) ||
            !strstr (process_errors (broker), cases[i].word)) {
            process_fail ("case %zu: not one line with %s and %s", i, cases[i].place,
                          cases[i].word);
        }
    }
}

static void the_command_line_is_stronger_than_environment_and_file (void **state)
{
    const char *path = file_make_text ("client.json", "{\"broker\": \"tcp://127.0.0.1:7701\"}");

    (void) state;
    setenv ("HAWSER_BROKER", "tcp://127.0.0.1:7702", 1);
    process_t *with_all =
        process_start (NULL, "hawser-recv", "-c", path, "--anchor", "x", "--broker",
                       "tcp://127.0.0.1:7703", "--print-config", NULL);
    process_t *with_environment =
        process_start (NULL, "hawser-recv", "-c", path, "--anchor", "x", "--print-config", NULL);
    unsetenv ("HAWSER_BROKER");
    process_t *with_file =
        process_start (NULL, "hawser-recv", "-c", path, "--anchor", "x", "--print-config", NULL);

    process_expect_exit (with_all, 0);
    process_expect_exit (with_environment, 0);
    process_expect_exit (with_file, 0);
    assert_non_null (strstr (process_output (with_all, NULL), "7703"));
    assert_non_null (strstr (process_output (with_environment, NULL), "7702"));
    assert_non_null (strstr (process_output (with_file, NULL), "7701"));
}

static void every_example_passes_the_check (void **state)
{
    glob_t examples;

    (void) state;
    assert_int_equal (glob ("config/*.json", 0, NULL, &examples), 0);
    for (size_t i = 0; i < examples.gl_pathc; i++) {
        const char *path = examples.gl_pathv[i];
        const char *program = strstr (path, "send")   ? "hawser-send"
                              : strstr (path, "recv") ? "hawser-recv"
                              : strstr (path, "ctl")  ? "hawser-ctl"
                                                      : "hawser-broker";
        if (!strstr (path, "schema")) {
            process_t *process = process_start (NULL, program, "-c", path, "--check-config", NULL);
            process_expect_exit (process, 0);
        }
    }
    globfree (&examples);
}

static void a_broker_listens_on_all_its_endpoints (void **state)
{
    char ipc[256];
    const process_files_t files = {.input = "/dev/null"};

    (void) state;
    snprintf (ipc, sizeof ipc, "ipc://%s/second", process_directory ());
    process_t *broker = process_start (NULL, "hawser-broker", "--listen", "tcp://127.0.0.1:*",
                                       "--listen", ipc, NULL);
    const char *ready = process_wait_output (broker, "ready");
    assert_non_null (strstr (ready, ipc));
    assert_null (strstr (ready, "*"));
    char tcp[128];
    const char *begin = strstr (ready, "tcp://");
    snprintf (tcp, sizeof tcp, "%.*s", (int) strcspn (begin, " "), begin);

    process_t *receiver = process_start (NULL, "hawser-recv", "--broker", tcp, "--anchor", "port",
                                         "--senders", "1", NULL);
    process_t *sender = process_start (&files, "hawser-send", "--broker", ipc, "--anchor", "port",
                                       "--wait", "30", NULL);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    process_signal (broker, SIGTERM);
    process_expect_exit (broker, 0);
}

static void a_bad_reload_keeps_the_old_configuration (void **state)
{
    const char *path = file_make_text ("live.json", "{\"listen\": [\"tcp://127.0.0.1:*\"]}");
    const process_files_t files = {.input = "/dev/null"};

    (void) state;
    process_t *broker = process_start (NULL, "hawser-broker", "-c", path, NULL);
    const char *begin = strstr (process_wait_output (broker, "ready"), "tcp://");
    char tcp[128];
    snprintf (tcp, sizeof tcp, "%.*s", (int) strcspn (begin, " "), begin);
    file_make_text ("live.json", "{\"limits\": {\"anchor\": 1}}");
    process_signal (broker, SIGHUP);
    process_wait_error (broker, "did you mean \\\"limits.anchors\\\"?\"");

    process_t *receiver = process_start (NULL, "hawser-recv", "--broker", tcp, "--anchor", "port",
                                         "--senders", "1", NULL);
    process_t *sender = process_start (&files, "hawser-send", "--broker", tcp, "--anchor", "port",
                                       "--wait", "30", NULL);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    process_signal (broker, SIGINT);
    process_expect_exit (broker, 0);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define BARE(test)     cmocka_unit_test_setup_teardown (test, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (check_config_binds_and_creates_nothing),
        BARE (printed_configuration_loads_again),
        BARE (broken_configuration_is_2_with_file_line_and_column),
        BARE (the_command_line_is_stronger_than_environment_and_file),
        BARE (every_example_passes_the_check),
        BARE (a_broker_listens_on_all_its_endpoints),
        BARE (a_bad_reload_keeps_the_old_configuration),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
