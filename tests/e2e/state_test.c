/*  The state directory as the program sees it: which one it takes, what it says of it, and that the
 *  broker is the same in its next life.
 */
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ANY_PORT "tcp://127.0.0.1:*"

static const char *const s_no_state = "{\"state_dir\": null}";

/*  ---- Steps ---- */

static int setup_without_state (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_no_state);
}

/*  The environment of the next broker; null: not set.  */
static void set_places (const char *state_directory, const char *xdg, const char *home)
{
    const char *const variables[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"};
    const char *const values[] = {state_directory, xdg, home};

    for (size_t i = 0; i < 3; i++) {
        if (values[i]) {
            setenv (variables[i], values[i], 1);
        } else {
            unsetenv (variables[i]);
        }
    }
}

static process_t *start_broker (void)
{
    process_t *broker = process_start (NULL, "hawser-broker", "--listen", ANY_PORT, NULL);

    process_wait_output (broker, "hawser-broker: ready ");
    return broker;
}

static bool says_no_state (process_t *broker)
{
    return process_count_output (broker, "(no state directory: streams end when it stops)") == 1;
}

/*  What a member of the state file in that directory is, as a text.  */
static void read_member (const char *directory, const char *name, char text[128])
{
    char *json = file_read (
        process_path ("%s/broker.json", directory + strlen (process_directory ())), NULL);
    cJSON *object = cJSON_Parse (json);
    const cJSON *member = cJSON_GetObjectItemCaseSensitive (object, name);

    assert_non_null (member);
    if (cJSON_IsString (member)) {
        snprintf (text, 128, "%s", member->valuestring);
    } else {
        snprintf (text, 128, "%d", member->valueint);
    }
    cJSON_Delete (object);
    free (json);
}

static int read_epoch (const char *directory)
{
    char text[128];

    read_member (directory, "epoch", text);
    return atoi (text);
}

/*  A broker with that directory ends with 1 and one line, with these words in it.  */
static void expect_refused (const char *directory, const char *words)
{
    process_t *broker =
        process_start (NULL, "hawser-broker", "--listen", ANY_PORT, "--state-dir", directory, NULL);

    process_expect_exit (broker, 1);
    if (process_count_errors (broker, "") != 1 || process_count_errors (broker, words) != 1 ||
        process_count_errors (broker, directory) != 1 || process_count_output (broker, "") != 0) {
        process_fail ("not one line with %s and the path", words);
    }
}

/*  ---- Its lives ---- */

static void a_broker_is_the_same_in_its_next_life (void **state)
{
    static const char *const members[] = {"broker_id", "key"};
    char before[2][128];
    char after[128];

    (void) state;
    const char *directory = fixture_state_directory (fixture_broker ());
    for (size_t i = 0; i < 2; i++) {
        read_member (directory, members[i], before[i]);
    }
    assert_int_equal (read_epoch (directory), 1);

    fixture_kill (fixture_broker ());
    fixture_restart (fixture_broker ());
    assert_int_equal (read_epoch (directory), 2);
    fixture_stop (fixture_broker ());
    fixture_restart (fixture_broker ());

    assert_int_equal (read_epoch (directory), 3);
    assert_int_equal (process_count_errors (fixture_broker (), " epoch=3"), 1);
    for (size_t i = 0; i < 2; i++) {
        read_member (directory, members[i], after);
        assert_string_equal (after, before[i]);
    }
}

static void a_ready_line_says_when_there_is_no_state_directory (void **state)
{
    (void) state;
    assert_true (says_no_state (fixture_broker ()));

    fixture_start_broker (NULL, NULL);

    assert_false (says_no_state (fixture_broker ()));
    assert_int_equal (process_count_output (fixture_broker (), "hawser-broker: ready tcp://"), 1);
}

/*  ---- The directory that was named ---- */

static void a_named_directory_that_is_not_good_ends_the_broker_with_1 (void **state)
{
    (void) state;
    const char *directory = fixture_state_directory (fixture_broker ());
    expect_refused (directory, "another broker runs with the state directory");
    fixture_stop (fixture_broker ());

    expect_refused (process_path ("not/there"), "No such file or directory");
    expect_refused (file_make_text ("file", ""), "Not a directory");
    chmod (directory, 0750);
    expect_refused (directory, "is open to other users (mode 0750); say chmod go= on it");
    chmod (directory, 0700);
    const char *file = process_path ("broker-0.state/broker.json");
    chmod (file, 0640);
    expect_refused (directory, "broker.json is open to other users (mode 0640)");
    chmod (file, 0600);
    assert_int_equal (truncate (file, 40), 0);
    expect_refused (directory, "restore it from a backup, or move it away");
}

/*  ThreadSanitizer's runtime writes a file of its own before main, and would die of the limit.  */
#ifdef __SANITIZE_THREAD__
#define UNHURT "trap '' XFSZ; "
#else
#define UNHURT ""
#endif

static void no_room_in_the_named_directory_ends_the_broker_with_1 (void **state)
{
    (void) state;
    const char *directory = process_path ("new");
    process_t *broker =
        process_start (NULL, "/bin/sh", "-c",
                       UNHURT "ulimit -f 0; exec \"$0\" --listen " ANY_PORT " --state-dir \"$1\"",
                       process_program ("hawser-broker"), directory, NULL);

    process_expect_exit (broker, 1);

    assert_int_equal (process_count_errors (broker, "broker.json.new: File too large"), 1);
    assert_int_equal (access (process_path ("new/broker.json"), F_OK), -1);
}

static void a_configuration_is_checked_without_its_state_directory (void **state)
{
    (void) state;
    const char *path = file_make_text ("state.json", "{\"state_dir\": \"/nowhere/at/all\"}");
    const size_t entries = count_entries (process_directory ());
    process_t *check = process_start (NULL, "hawser-broker", "-c", path, "--check-config", NULL);
    process_t *print = process_start (NULL, "hawser-broker", "-c", path, "--print-config", NULL);
    process_t *automatic = process_start (NULL, "hawser-broker", "--print-config", NULL);
    process_t *none =
        process_start (NULL, "hawser-broker", "-c", file_make_text ("none.json", s_no_state),
                       "--print-config", NULL);

    process_expect_exit (check, 0);
    process_expect_exit (print, 0);
    process_expect_exit (automatic, 0);
    process_expect_exit (none, 0);

    assert_int_equal (process_count_output (print, "\"state_dir\": \"/nowhere/at/all\""), 1);
    assert_int_equal (process_count_output (automatic, "\"state_dir\": \"auto\""), 1);
    assert_int_equal (process_count_output (none, "\"state_dir\": null"), 1);
    assert_int_equal (count_entries (process_directory ()), entries + 1);
}

static void a_reload_does_not_move_the_state_directory (void **state)
{
    (void) state;
    const char *path = file_make_text ("moving.json", s_no_state);
    process_t *broker =
        process_start (NULL, "hawser-broker", "-c", path, "--listen", ANY_PORT, NULL);
    process_wait_output (broker, "hawser-broker: ready ");

    file_make_text ("moving.json", "{\"state_dir\": \"elsewhere\"}");
    process_signal (broker, SIGHUP);

    process_wait_error (broker, "event=reload_needs_restart key=state_dir");
    fixture_stop (broker);
}

/*  ---- The default directory ---- */

static void the_default_directory_is_made_where_the_environment_says (void **state)
{
    const struct {
        const char *state_directory;
        const char *xdg;
        const char *home;
        const char *made;
    } cases[] = {
        {process_path ("systemd/one:/nowhere"), process_path ("xdg"), process_path ("home"),
         process_path ("systemd/one")},
        {NULL, process_path ("xdg"), process_path ("home"), process_path ("xdg/hawser")},
        {"", "not/absolute", process_path ("home"), process_path ("home/.local/state/hawser")},
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set_places (cases[i].state_directory, cases[i].xdg, cases[i].home);
        process_t *broker = start_broker ();
        assert_false (says_no_state (broker));
        assert_int_equal (read_epoch (cases[i].made), 1);
        fixture_stop (broker);
    }
}

static void a_second_broker_in_the_default_directory_runs_without (void **state)
{
    (void) state;
    process_t *first = start_broker ();
    process_t *second = start_broker ();

    assert_false (says_no_state (first));
    assert_true (says_no_state (second));
    assert_int_equal (process_count_errors (second, "event=no_state_directory"), 1);
    fixture_stop (first);
    fixture_stop (second);
}

static void a_default_directory_that_cannot_be_made_is_done_without (void **state)
{
    (void) state;
    set_places (NULL, "/proc/none", NULL);
    process_t *first = start_broker ();
    set_places (NULL, NULL, NULL);
    process_t *second = start_broker ();

    assert_true (says_no_state (first));
    assert_true (says_no_state (second));
    assert_int_equal (process_count_errors (first, "level=warn event=no_state_directory"), 1);
    assert_int_equal (process_count_errors (second, "level=warn event=no_state_directory"), 1);
    fixture_stop (first);
    fixture_stop (second);
}

static void a_default_directory_that_is_broken_ends_the_broker_with_1 (void **state)
{
    (void) state;
    fixture_stop (start_broker ());
    assert_int_equal (truncate (process_path ("hawser/broker.json"), 10), 0);

    process_t *broker = process_start (NULL, "hawser-broker", "--listen", ANY_PORT, NULL);

    process_expect_exit (broker, 1);
    assert_int_equal (process_count_errors (broker, "restore it from a backup"), 1);
}

#define BARE(test)   cmocka_unit_test_setup_teardown (test, fixture_setup_bare, fixture_teardown)
#define SERVED(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        SERVED (a_broker_is_the_same_in_its_next_life),
        cmocka_unit_test_setup_teardown (a_ready_line_says_when_there_is_no_state_directory,
                                         setup_without_state, fixture_teardown),
        SERVED (a_named_directory_that_is_not_good_ends_the_broker_with_1),
        BARE (no_room_in_the_named_directory_ends_the_broker_with_1),
        BARE (a_configuration_is_checked_without_its_state_directory),
        BARE (a_reload_does_not_move_the_state_directory),
        BARE (the_default_directory_is_made_where_the_environment_says),
        BARE (a_second_broker_in_the_default_directory_runs_without),
        BARE (a_default_directory_that_cannot_be_made_is_done_without),
        BARE (a_default_directory_that_is_broken_ends_the_broker_with_1),
    };
    return cmocka_run_group_tests_name ("state", tests, NULL, NULL);
}
