/*  The beginning of a program: options, file and environment in their precedence, and
 *  the one line and status of everything that is wrong with a command line.
 */
#include "conf/program_io.h"

#include "base/version.h"
#include "receiver/settings.h"
#include "sender/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define ARGUMENTS_MAX 20
#define TEST(name)    cmocka_unit_test_setup (name, clear_environment)

/*  A command line as main gets it: writable, ended by a null.  */
typedef struct {
    int argc;
    char *argv[ARGUMENTS_MAX];
} command_t;

#define COMMAND(...) make_command ((const char *const[]){__VA_ARGS__, NULL})

static command_t make_command (const char *const *words)
{
    command_t command = {.argc = 1, .argv = {(char *) (uintptr_t) "program"}};
    while (*words) {
        command.argv[command.argc++] = (char *) (uintptr_t) *words++;
    }
    return command;
}

static hws_conf_t *read_good (const hws_program_t *program, command_t command)
{
    hws_conf_t *conf;
    char text[1024] = "";
    if (hws_program_read (&conf, program, command.argc, command.argv, text, sizeof text) != 0) {
        fail_msg ("%s", text);
    }
    return conf;
}

static void assert_refused (const hws_program_t *program, command_t command, const char *line)
{
    hws_conf_t *conf;
    char text[1024] = "";
    const int rc = hws_program_read (&conf, program, command.argc, command.argv, text, sizeof text);
    if (rc != HWS_EINVALID || strcmp (text, line) != 0) {
        fail_msg ("%s: %d, \"%s\" instead of \"%s\"", command.argv[1], rc, text, line);
    }
    assert_null (conf);
}

/*  A file of these bytes in a directory of its own, which the test removes.  */
typedef struct {
    char directory[64];
    char path[80];
} scratch_file_t;

static scratch_file_t make_file (const char *bytes)
{
    scratch_file_t file = {.directory = "/tmp/hawser-conf.XXXXXX"};
    assert_non_null (mkdtemp (file.directory));
    snprintf (file.path, sizeof file.path, "%s/c.json", file.directory);
    FILE *const stream = fopen (file.path, "w");
    assert_non_null (stream);
    fputs (bytes, stream);
    fclose (stream);
    return file;
}

static void remove_file (const scratch_file_t *file)
{
    unlink (file->path);
    rmdir (file->directory);
}

/*  What a start says on stdout and stderr, and its status.  */
typedef struct {
    int status;
    char out[16384];
    char error[1024];
} said_t;

/*  Points a stream's descriptor at a file of its own; returns the old one.  */
static int divert (FILE *stream, FILE *to)
{
    fflush (stream);
    const int kept = dup (fileno (stream));
    assert_true (kept >= 0);
    dup2 (fileno (to), fileno (stream));
    return kept;
}

static void restore (FILE *stream, int kept, FILE *from, char *text, size_t size)
{
    fflush (stream);
    dup2 (kept, fileno (stream));
    close (kept);
    rewind (from);
    text[fread (text, 1, size - 1, from)] = '\0';
    fclose (from);
}

static void print_versions (FILE *stream)
{
    fputs ("more versions\n", stream);
}

static said_t *start (const hws_program_t *program, command_t command)
{
    said_t *const said = calloc (1, sizeof *said);
    FILE *const out = tmpfile ();
    FILE *const error = tmpfile ();
    hws_conf_t *conf;
    const int kept_out = divert (stdout, out);
    const int kept_error = divert (stderr, error);

    said->status = hws_program_start (&conf, program, command.argc, command.argv, print_versions);

    restore (stderr, kept_error, error, said->error, sizeof said->error);
    restore (stdout, kept_out, out, said->out, sizeof said->out);
    assert_int_equal (conf != NULL, said->status == HWS_PROGRAM_RUN);
    hws_conf_destroy (&conf);
    return said;
}

static int clear_environment (void **state)
{
    (void) state;
    return unsetenv ("HAWSER_BROKER");
}

/*  ---- Options ---- */

static void options_set_values_in_every_way_they_can_be_written (void **state)
{
    (void) state;
    hws_conf_t *conf =
        read_good (&hws_send_program,
                   COMMAND ("-aone", "--label=two", "--wait", "500ms", "-w", "2", "-0", "--chunk",
                            "1K", "-vp", "f1", "--give-up", "none", "--", "-f2"));

    const hws_send_settings_t *const settings = hws_conf_values (conf);

    assert_string_equal (settings->anchor, "one");
    assert_string_equal (settings->label, "two");
    assert_true (settings->wait_ms.state == HWS_VALUE && settings->wait_ms.value == 2000);
    assert_int_equal (settings->framing, HWS_FRAMING_NUL);
    assert_true (settings->chunk_bytes == 1024);
    assert_int_equal (settings->log_level, 3);
    assert_true (settings->progress);
    assert_int_equal (settings->give_up_ms.state, HWS_NULL);
    assert_int_equal (settings->files.count, 2);
    assert_string_equal (settings->files.text[0], "f1");
    assert_string_equal (settings->files.text[1], "-f2");
    hws_conf_destroy (&conf);
}

static void a_command_line_can_be_read_again (void **state)
{
    (void) state;
    command_t command = COMMAND ("f1", "-a", "a", "f2");
    hws_conf_t *first = read_good (&hws_send_program, command);

    hws_conf_t *second = read_good (&hws_send_program, command);

    const hws_send_settings_t *const settings = hws_conf_values (second);
    assert_int_equal (settings->files.count, 2);
    assert_string_equal (settings->files.text[0], "f1");
    hws_conf_destroy (&second);
    hws_conf_destroy (&first);
}

static void a_bad_command_line_is_refused_in_one_line (void **state)
{
    (void) state;
    const hws_program_t *const send = &hws_send_program;
    const hws_program_t *const recv = &hws_recv_program;
    assert_refused (send, COMMAND ("--lable", "x"),
                    "hawser-send: unknown option --lable; did you mean --label?");
    assert_refused (send, COMMAND ("--lable=x"),
                    "hawser-send: unknown option --lable; did you mean --label?");
    assert_refused (send, COMMAND ("--elephant"),
                    "hawser-send: unknown option --elephant; see --help");
    assert_refused (send, COMMAND ("a", "-vZp"), "hawser-send: unknown option -Z; see --help");
    assert_refused (send, COMMAND ("--p"),
                    "hawser-send: --p could be --progress or --print-config");
    assert_refused (send, COMMAND ("--progress=1"), "hawser-send: --progress takes no value");
    assert_refused (send, COMMAND ("--label"), "hawser-send: --label: LABEL is missing");
    assert_refused (send, COMMAND ("-l"), "hawser-send: --label: LABEL is missing");
    assert_refused (send, COMMAND ("-a", "a", "--wait", "-1"),
                    "hawser-send: --wait: must be a duration such as 0.5, 500ms, 2s, 3m or 1h, in "
                    "whole milliseconds, or none");
    assert_refused (send, COMMAND ("-a", "a", ""), "hawser-send: an argument: must not be empty");
    assert_refused (send, COMMAND ("x"), "hawser-send: --anchor must be given");
    assert_refused (send, COMMAND ("-c", "a", "--config", "b"),
                    "hawser-send: --config comes twice");
    assert_refused (recv, COMMAND ("x\ny"), "hawser-recv: unexpected argument \"x?y\"");
}

/*  ---- Sources ---- */

static void each_source_overrides_the_one_below (void **state)
{
    (void) state;
    const scratch_file_t file =
        make_file ("{\"broker\": \"ipc://file\", \"anchor\": \"file\", \"label\": \"file\"}");
    setenv ("HAWSER_BROKER", "ipc://environment", 1);

    hws_conf_t *conf = read_good (&hws_send_program, COMMAND ("--label", "line", "-c", file.path));

    const hws_send_settings_t *settings = hws_conf_values (conf);
    assert_string_equal (settings->broker, "ipc://environment");
    assert_string_equal (settings->anchor, "file");
    assert_string_equal (settings->label, "line");
    assert_int_equal (settings->framing, HWS_FRAMING_LINE);
    hws_conf_destroy (&conf);
    conf = read_good (&hws_send_program, COMMAND ("-b", "ipc://line", "-c", file.path));
    settings = hws_conf_values (conf);
    assert_string_equal (settings->broker, "ipc://line");
    hws_conf_destroy (&conf);
    remove_file (&file);
}

static void an_empty_variable_counts_as_not_set (void **state)
{
    (void) state;
    setenv ("HAWSER_BROKER", "", 1);

    hws_conf_t *conf = read_good (&hws_recv_program, COMMAND ("-v"));

    const hws_recv_settings_t *const settings = hws_conf_values (conf);
    assert_string_equal (settings->broker, HWS_DEFAULT_ENDPOINT);
    hws_conf_destroy (&conf);
}

static void a_bad_variable_is_refused (void **state)
{
    (void) state;
    setenv ("HAWSER_BROKER", "localhost:7733", 1);

    assert_refused (&hws_recv_program, COMMAND ("-v"),
                    "hawser-recv: HAWSER_BROKER: an endpoint begins with tcp:// or ipc://");
}

static void a_file_that_cannot_be_read_is_refused (void **state)
{
    (void) state;
    assert_refused (&hws_recv_program, COMMAND ("-c", "/nonexistent/c.json"),
                    "/nonexistent/c.json: cannot be opened: No such file or directory");
    assert_refused (&hws_recv_program, COMMAND ("-c", "/tmp"),
                    "/tmp: cannot be read: Is a directory");
}

static void a_file_that_never_ends_is_refused (void **state)
{
    (void) state;
    assert_refused (&hws_recv_program, COMMAND ("-c", "/dev/zero"),
                    "/dev/zero:1:1048577: the text is too long");
}

/*  ---- Shared options ---- */

static void a_bad_file_ends_the_start_with_status_2_and_its_line (void **state)
{
    (void) state;
    const scratch_file_t file = make_file ("{\n  \"labl\": 1\n}\n");
    char expected[256];
    snprintf (expected, sizeof expected, "%s:2:3: labl: unknown key; did you mean \"label\"?\n",
              file.path);

    said_t *const said = start (&hws_send_program, COMMAND ("-t", "-c", file.path));

    assert_int_equal (said->status, HWS_EXIT_USAGE);
    assert_string_equal (said->error, expected);
    assert_string_equal (said->out, "");
    free (said);
    remove_file (&file);
}

static void check_config_needs_no_more_than_a_good_file (void **state)
{
    (void) state;
    const scratch_file_t file = make_file ("{\"anchor\": \"a\"}");
    char expected[128];
    snprintf (expected, sizeof expected, "%s: ok\n", file.path);

    said_t *const said = start (&hws_send_program, COMMAND ("--check-config", "-c", file.path));

    assert_int_equal (said->status, HWS_EXIT_DONE);
    assert_string_equal (said->out, expected);
    assert_string_equal (said->error, "");
    free (said);
    remove_file (&file);
}

static void check_config_tells_what_a_run_needs_besides (void **state)
{
    (void) state;
    said_t *const said = start (&hws_send_program, COMMAND ("-t"));

    assert_int_equal (said->status, HWS_EXIT_DONE);
    assert_string_equal (said->out, "hawser-send: ok; a run also needs --anchor\n");
    assert_string_equal (said->error, "");
    free (said);
}

static void print_config_prints_what_loads_again (void **state)
{
    (void) state;
    said_t *const first = start (&hws_recv_program, COMMAND ("--print-config", "--grace", "1.5"));
    const scratch_file_t file = make_file (first->out);

    hws_conf_t *conf = read_good (&hws_recv_program, COMMAND ("-c", file.path));

    assert_int_equal (first->status, HWS_EXIT_DONE);
    assert_non_null (strstr (first->out, "\"reconnect_grace_ms\": \"command line --grace\""));
    const hws_recv_settings_t *const settings = hws_conf_values (conf);
    assert_true (settings->reconnect_grace_ms.value == 1500);
    assert_int_equal (settings->heartbeat_interval_ms.state, HWS_ABSENT);
    hws_conf_destroy (&conf);
    remove_file (&file);
    free (first);
}

static void help_and_version_need_nothing_else (void **state)
{
    (void) state;
    said_t *const help = start (&hws_send_program, COMMAND ("-h", "-c", "/nonexistent"));
    said_t *const version = start (&hws_send_program, COMMAND ("--version"));

    assert_int_equal (help->status, HWS_EXIT_DONE);
    assert_memory_equal (help->out, "Usage: hawser-send ", 19);
    assert_int_equal (version->status, HWS_EXIT_DONE);
    assert_string_equal (version->out, "hawser-send " HWS_VERSION "\nlibhawser " HWS_VERSION
                                       ", wire protocol 1\nmore versions\n");
    free (version);
    free (help);
}

static void a_bad_option_beats_help (void **state)
{
    (void) state;
    said_t *const said = start (&hws_send_program, COMMAND ("--help", "--elephant"));

    assert_int_equal (said->status, HWS_EXIT_USAGE);
    assert_string_equal (said->out, "");
    free (said);
}

static void good_settings_let_the_program_run_and_say_nothing (void **state)
{
    (void) state;
    said_t *const said = start (&hws_send_program, COMMAND ("-a", "a"));

    assert_int_equal (said->status, HWS_PROGRAM_RUN);
    assert_string_equal (said->out, "");
    assert_string_equal (said->error, "");
    free (said);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (options_set_values_in_every_way_they_can_be_written),
        TEST (a_command_line_can_be_read_again),
        TEST (a_bad_command_line_is_refused_in_one_line),
        TEST (each_source_overrides_the_one_below),
        TEST (an_empty_variable_counts_as_not_set),
        TEST (a_bad_variable_is_refused),
        TEST (a_file_that_cannot_be_read_is_refused),
        TEST (a_file_that_never_ends_is_refused),
        TEST (a_bad_file_ends_the_start_with_status_2_and_its_line),
        TEST (check_config_needs_no_more_than_a_good_file),
        TEST (check_config_tells_what_a_run_needs_besides),
        TEST (print_config_prints_what_loads_again),
        TEST (help_and_version_need_nothing_else),
        TEST (a_bad_option_beats_help),
        TEST (good_settings_let_the_program_run_and_say_nothing),
    };
    return cmocka_run_group_tests_name ("program", tests, NULL, NULL);
}
