/*  Brokers that die or leave under load and are started again at the same endpoint, with the
 *  same state directory: while senders and receiver live, every record comes once and in order,
 *  and every ending is true. Without the state the streams end, at both ends.
 *
 *  SOAK=1: ten senders of 10,000 records and ten restarts.
 */
#include "tests/support/crew.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*  Small windows, so that most of a file is still to be sent when something happens.  */
static const char *const s_patient =
    "{\"anchors\": {\"heartbeat_interval_ms\": 2000, \"reconnect_grace_ms\": 20000,"
    " \"window_records\": 100}}";

/*  The grace is longer than a client's longest pause between two tries.  */
static const char *const s_impatient =
    "{\"anchors\": {\"heartbeat_interval_ms\": 200, \"reconnect_grace_ms\": 6000,"
    " \"orphan_ttl_ms\": 1000}}";

static bool is_full (void)
{
    return getenv ("SOAK") != NULL;
}

/*  ---- Under load ---- */

/*  The broker gets the signal so many times while records flow.  */
static void restart_under_load (int signal)
{
    const size_t restarts = is_full () ? 10 : 3;
    const crew_options_t options = {.senders = is_full () ? 10 : 4,
                                    .records = is_full () ? 10000 : 1000};
    crew_t crew;

    crew_start (&crew, &options);
    for (size_t i = 1; i <= restarts; i++) {
        crew_wait_records (&crew, i * options.senders * options.records / (restarts + 1));
        if (signal == SIGKILL) {
            fixture_kill (fixture_broker ());
        } else {
            fixture_stop (fixture_broker ());
        }
        fixture_restart (fixture_broker ());
    }

    crew_expect_whole (&crew);
}

static void broker_killed_again_and_again_loses_and_doubles_nothing (void **state)
{
    (void) state;
    restart_under_load (SIGKILL);
}

static void rolling_restarts_lose_and_double_nothing (void **state)
{
    (void) state;
    restart_under_load (SIGTERM);
}

/*  Each time as soon as it listens: somebody is always about to resume.  */
static void broker_killed_while_its_clients_resume_loses_and_doubles_nothing (void **state)
{
    const size_t kills = is_full () ? 30 : 6;
    const crew_options_t options = {.senders = 4, .records = is_full () ? 10000 : 1000};
    crew_t crew;

    (void) state;
    crew_start (&crew, &options);
    crew_wait_records (&crew, options.records);
    fixture_kill (fixture_broker ());
    for (size_t i = 0; i < kills; i++) {
        fixture_restart (fixture_broker ());
        process_watch ((int64_t) (i * 37 % 200));
        fixture_kill (fixture_broker ());
    }
    fixture_restart (fixture_broker ());

    crew_expect_whole (&crew);
}

/*  Waits until a receiver has written so many bytes.  */
static void wait_for_bytes (process_t *receiver, size_t size)
{
    const int64_t until = process_now () + 60000;
    size_t got;

    while (process_output (receiver, &got), got < size) {
        if (!process_is_running (receiver) || process_now () > until) {
            process_fail ("%zu bytes came, not %zu", got, size);
        }
        process_watch (1);
    }
}

/*  Records that travel in many parts, and a broker that dies in the midst of some.  */
static void broker_killed_within_large_records_loses_and_doubles_nothing (void **state)
{
    const size_t restarts = is_full () ? 10 : 3;
    const size_t size = is_full () ? 200u << 20 : 24u << 20;
    const char *const path = file_make_stream ("large", "chunk", 7, size);
    const process_files_t files = {.input = path};
    size_t got;

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "raw",
                                         "--senders", "1", NULL);
    process_t *sender = process_start (&files, "hawser-send", "--anchor", "port", "--framing",
                                       "chunk", "--chunk-bytes", "1M", "--wait", "30", NULL);
    for (size_t i = 1; i <= restarts; i++) {
        wait_for_bytes (receiver, i * size / (restarts + 1));
        fixture_kill (fixture_broker ());
        fixture_restart (fixture_broker ());
    }

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    const char *const output = process_output (receiver, &got);
    file_expect (path, output, got);
}

/*  ---- Meanwhile ---- */

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, NULL);
}

static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "30",
                          NULL);
}

static void write_record (process_t *sender, const char *label, size_t number)
{
    const char *line = ledger_line (label, number);
    process_write (sender, line, strlen (line));
}

/*  A sender whose first record has come.  */
static process_t *start_writer (process_t *receiver, const char *label)
{
    process_t *sender = start_sender (label);

    write_record (sender, label, 0);
    event_wait (receiver, "record", label, 1);
    return sender;
}

static void sender_that_is_done_without_a_broker_waits_for_its_receiver (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = start_receiver ("1");
    process_t *sender = start_writer (receiver, "s");
    fixture_kill (fixture_broker ());
    process_wait_error (sender, "went away");
    for (size_t i = 1; i < 50; i++) {
        write_record (sender, "s", i);
    }
    process_close_input (sender);
    process_watch (300);
    assert_true (process_is_running (sender));
    fixture_restart (fixture_broker ());

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "s", 50, "detached", "");
}

static void sender_that_died_without_a_broker_is_dropped_once (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *doomed = start_writer (receiver, "doomed");
    process_t *other = start_writer (receiver, "other");
    fixture_kill (fixture_broker ());
    process_signal (doomed, SIGKILL);
    process_expect_exit (doomed, 128 + SIGKILL);
    fixture_restart (fixture_broker ());
    event_wait (receiver, "dropped", "doomed", 1);
    write_record (other, "other", 1);
    process_close_input (other);

    process_expect_exit (other, 0);
    process_expect_exit (receiver, 3);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "doomed", 1, "dropped", "transport");
    ledger_expect (&ledger, "other", 2, "detached", "");
}

static void receiver_that_died_without_a_broker_is_abandoned (void **state)
{
    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *senders[] = {start_writer (receiver, "a"), start_writer (receiver, "b")};
    fixture_kill (fixture_broker ());
    process_signal (receiver, SIGKILL);
    process_expect_exit (receiver, 128 + SIGKILL);
    fixture_restart (fixture_broker ());

    for (size_t i = 0; i < 2; i++) {
        process_expect_exit (senders[i], 3);
        assert_int_equal (process_count_errors (senders[i], "cancelled(abandoned)"), 1);
    }
}

/*  It asks for a name that the new broker does not know before the receiver is back.  */
static void sender_that_comes_without_a_broker_finds_its_receiver (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *first = start_writer (receiver, "first");
    fixture_kill (fixture_broker ());
    process_t *late = start_sender ("late");
    write_record (late, "late", 0);
    process_close_input (late);
    process_close_input (first);
    fixture_restart (fixture_broker ());

    process_expect_exit (first, 0);
    process_expect_exit (late, 0);
    process_expect_exit (receiver, 0);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "first", 1, "detached", "");
    ledger_expect (&ledger, "late", 1, "detached", "");
}

/*  What was said without a broker reaches it.  */
static void sender_interrupted_without_a_broker_is_cancelled (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *stopped = start_writer (receiver, "stopped");
    process_t *other = start_writer (receiver, "other");
    fixture_kill (fixture_broker ());
    process_signal (stopped, SIGINT);
    process_expect_exit (stopped, 130);
    fixture_restart (fixture_broker ());
    process_close_input (other);

    process_expect_exit (other, 0);
    process_expect_exit (receiver, 3);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "stopped", 1, "dropped", "transport");
    ledger_expect (&ledger, "other", 1, "detached", "");
}

/*  ---- Other kinds of anchors ---- */

static void exclusive_anchor_is_finalized_behind_a_restart (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--exclusive", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "port", "--label", "s",
                                       "--wait", "30", "--finalize", NULL);
    write_record (sender, "s", 0);
    event_wait (receiver, "record", "s", 1);
    fixture_kill (fixture_broker ());
    write_record (sender, "s", 1);
    process_close_input (sender);
    fixture_restart (fixture_broker ());

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "s", 2, "finalized", "");
}

/*  Its own socket is another one at the new broker.  */
static void dedicated_anchor_goes_on_behind_a_restart (void **state)
{
    ledger_t ledger;

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--dedicated", "--senders", "1", NULL);
    process_t *sender = start_writer (receiver, "s");
    fixture_kill (fixture_broker ());
    write_record (sender, "s", 1);
    process_close_input (sender);
    fixture_restart (fixture_broker ());

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "s", 2, "detached", "");
}

/*  ---- Another place ---- */

/*  In a mount namespace of its own, where /etc/hosts is the test's.  */
static process_t *start_with_hosts (const char *hosts, const char *program, const char *option,
                                    const char *value)
{
    return process_start (NULL, "/usr/bin/unshare", "-m", "/bin/sh", "-c",
                          "mount --bind \"$0\" /etc/hosts && exec \"$@\"", hosts,
                          process_program (program), "--anchor", "port", option, value, NULL);
}

/*  Not in a root that is no mount point, of a chroot say.  */
static bool may_unshare (void)
{
    return system ("unshare --mount true 2>/dev/null") == 0;
}

/*  The name leads elsewhere from now on, and so does the broker.  */
static void broker_that_moved_is_found_by_its_name (void **state)
{
    char config[512], here[64], there[64], named[64];

    (void) state;
    if (geteuid () != 0 || getenv ("HAWSER_WRAP") || !may_unshare ()) {
        print_message ("needs root, mounts of its own, and no HAWSER_WRAP\n");
        skip ();
    }
    const char *const port = strrchr (fixture_endpoint (), ':') + 1;
    fixture_kill (fixture_broker ());
    snprintf (config, sizeof config, "{\"state_dir\": \"%s\"}", process_path ("moving"));
    snprintf (here, sizeof here, "tcp://127.0.0.1:%s", port);
    snprintf (there, sizeof there, "tcp://127.0.0.2:%s", port);
    snprintf (named, sizeof named, "tcp://broker.test:%s", port);
    const char *const hosts = file_make_text ("hosts", "127.0.0.1 broker.test\n");
    fixture_start_broker (here, config);
    setenv ("HAWSER_BROKER", named, 1);
    process_t *receiver = start_with_hosts (hosts, "hawser-recv", "--senders", "1");
    process_t *sender = start_with_hosts (hosts, "hawser-send", "--wait", "30");
    process_write (sender, "before\n", 7);
    process_wait_output (receiver, "before");

    fixture_kill (fixture_broker ());
    file_make_text ("hosts", "127.0.0.2 broker.test\n");
    fixture_start_broker (there, config);
    process_write (sender, "after\n", 6);
    process_wait_output (receiver, "after");

    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
}

/*  ---- Without its state ---- */

static void broker_without_its_state_ends_all_as_lost (void **state)
{
    char endpoint[256];
    ledger_t ledger;

    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *senders[] = {start_writer (receiver, "a"), start_writer (receiver, "b")};
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    fixture_kill (fixture_broker ());
    fixture_start_broker (endpoint, "{\"state_dir\": null}");

    for (size_t i = 0; i < 2; i++) {
        process_expect_exit (senders[i], 3);
        assert_int_equal (process_count_errors (senders[i], "dropped(lost)"), 1);
    }
    process_expect_exit (receiver, 3);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "a", 1, "dropped", "lost");
    ledger_expect (&ledger, "b", 1, "dropped", "lost");
    assert_string_equal (ledger.closed, "lost");
}

/*  ---- Setup ---- */

static int setup (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_patient);
}

static int setup_impatient (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_impatient);
}

#define PATIENT(test)   cmocka_unit_test_setup_teardown (test, setup, fixture_teardown)
#define IMPATIENT(test) cmocka_unit_test_setup_teardown (test, setup_impatient, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        PATIENT (broker_killed_again_and_again_loses_and_doubles_nothing),
        PATIENT (rolling_restarts_lose_and_double_nothing),
        PATIENT (broker_killed_while_its_clients_resume_loses_and_doubles_nothing),
        PATIENT (broker_killed_within_large_records_loses_and_doubles_nothing),
        PATIENT (sender_that_is_done_without_a_broker_waits_for_its_receiver),
        PATIENT (exclusive_anchor_is_finalized_behind_a_restart),
        PATIENT (dedicated_anchor_goes_on_behind_a_restart),
        IMPATIENT (sender_that_died_without_a_broker_is_dropped_once),
        IMPATIENT (receiver_that_died_without_a_broker_is_abandoned),
        PATIENT (sender_that_comes_without_a_broker_finds_its_receiver),
        IMPATIENT (sender_interrupted_without_a_broker_is_cancelled),
        PATIENT (broker_that_moved_is_found_by_its_name),
        PATIENT (broker_without_its_state_ends_all_as_lost),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
