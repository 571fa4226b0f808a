/*  hawser-recv --resume: a receiver that is killed, stopped or taken over, whose disk is full or
 *  whose reader went away, and another process that goes on. Nothing is lost, and in files nothing
 *  comes twice.
 */
#include "receiver/resume_file.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define RESUME process_path ("resume")

/*  A receiver with the file, and more arguments up to a null.  */
static process_t *start_receiver (const process_files_t *files, const char *first, ...)
{
    const char *arguments[24] = {"hawser-recv", "--anchor", "port", "--wait",
                                 "30",          "--resume", RESUME, "--orphan-ttl",
                                 "60s",         "--grace",  "60s",  NULL};
    size_t count = 11;
    va_list more;

    va_start (more, first);
    for (const char *argument = first; argument; argument = va_arg (more, const char *)) {
        arguments[count++] = argument;
    }
    va_end (more);
    arguments[count] = NULL;
    return process_start_list (files, arguments);
}

static process_t *start_sender (const char *label, const char *file)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "30",
                          file, NULL);
}

static bool has_file (void)
{
    return access (RESUME, F_OK) == 0;
}

static uint64_t size_of (const char *path)
{
    struct stat status;

    return stat (path, &status) == 0 ? (uint64_t) status.st_size : 0;
}

/*  Reads on until the file has so many bytes.  */
static void wait_size (const char *path, uint64_t size)
{
    const int64_t give_up_at = process_now () + 60000;

    while (size_of (path) < size) {
        process_watch (5);
        if (process_now () > give_up_at) {
            process_fail ("%s has only %" PRIu64 " bytes", path, size_of (path));
        }
    }
}

/*  `count` lines, each its number.  */
static const char *make_lines (const char *name, size_t count)
{
    char *const text = malloc (count * 12 + 1);
    size_t size = 0;

    for (size_t i = 1; i <= count; i++) {
        size += (size_t) sprintf (text + size, "%zu\n", i);
    }
    const char *const path = file_make (name, text, size);
    free (text);
    return path;
}

static void a_killed_receiver_comes_back_and_nothing_is_lost_or_doubled (void **state)
{
    const char *const directory = process_path ("out");
    const char *const inputs[] = {make_lines ("in0", process_scaled (1000000, 50000)),
                                  make_lines ("in1", process_scaled (1000000, 50000))};
    const char *const outputs[] = {process_path ("out/s0"), process_path ("out/s1")};
    const uint64_t size = size_of (inputs[0]);

    (void) state;
    process_t *receiver = start_receiver (NULL, "--output-dir", directory, "--senders", "2", NULL);
    process_t *const senders[] = {start_sender ("s0", inputs[0]), start_sender ("s1", inputs[1])};
    for (uint64_t part = 1; part <= 4; part++) {
        wait_size (outputs[part % 2], part * size / 8);
        process_signal (receiver, SIGKILL);
        process_wait_exit (receiver);
        receiver = start_receiver (NULL, "--output-dir", directory, "--senders", "2", NULL);
    }

    for (size_t i = 0; i < 2; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
    for (size_t i = 0; i < 2; i++) {
        file_expect_same (outputs[i], inputs[i]);
    }
    assert_false (has_file ());
}

/*  A sender that has sent one line, and a receiver that has it.  */
static process_t *start_pair (process_t **receiver)
{
    *receiver = start_receiver (NULL, "--format", "json", NULL);
    process_t *const sender = start_sender ("s0", NULL);
    process_write (sender, "one\n", 4);
    event_wait (*receiver, "record", "s0", 1);
    return sender;
}

/*  The rest of it with another receiver.  */
static void finish_pair (process_t *sender, process_t *receiver)
{
    process_write (sender, "two\n", 4);
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_string_equal (event_wait (receiver, "record", "s0", 1).data, "two");
    assert_int_equal (event_count (receiver, "record", NULL), 1);
    assert_int_equal (event_count (receiver, "detached", "s0"), 1);
    assert_int_equal (process_count_output (receiver, "\"records\":\"2\",\"bytes\":\"6\""), 1);
    assert_false (has_file ());
}

/*  The first word of the receiver is there when the sender begins, the last before it is told.  */
static void stop_and_go_on (int signal)
{
    process_t *receiver;
    process_t *const sender = start_pair (&receiver);

    process_signal (receiver, signal);
    process_expect_exit (receiver, 128 + signal);
    assert_int_equal (process_count_errors (receiver, "stays open for the next --resume"), 1);
    assert_true (has_file ());
    assert_true (process_is_running (sender));
    assert_int_equal (event_count (receiver, "cancelled", NULL), 0);
    assert_int_equal (event_count (receiver, "closed", NULL), 0);

    finish_pair (sender, start_receiver (NULL, "--format", "json", "--senders", "1", NULL));
}

static void a_receiver_that_is_stopped_leaves_its_anchor_open (void **state)
{
    (void) state;
    stop_and_go_on (SIGTERM);
    stop_and_go_on (SIGINT);
}

static void a_killed_broker_and_a_killed_receiver_lose_and_double_nothing (void **state)
{
    const char *const directory = process_path ("out");
    const char *const input = make_lines ("in", process_scaled (1000000, 50000));
    const char *const output = process_path ("out/s0");
    const uint64_t size = size_of (input);

    (void) state;
    process_t *receiver = start_receiver (NULL, "--output-dir", directory, "--senders", "1", NULL);
    process_t *const sender = start_sender ("s0", input);
    wait_size (output, size / 4);
    fixture_kill (fixture_broker ());
    process_signal (receiver, SIGKILL);
    process_wait_exit (receiver);
    receiver = start_receiver (NULL, "--output-dir", directory, "--senders", "1", NULL);
    fixture_restart (fixture_broker ());
    wait_size (output, size / 2);
    fixture_kill (fixture_broker ());
    fixture_restart (fixture_broker ());

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    file_expect_same (output, input);
    assert_int_equal (process_count_errors (sender, "went away"), 2);
    assert_int_equal (process_count_errors (sender, "is back"), 2);
    assert_false (has_file ());
}

/*  What the README points to.  */
static void the_example_loses_nothing (void **state)
{
    (void) state;
    process_t *const example = process_start (NULL, "/bin/bash", "examples/restart.sh", NULL);

    process_expect_exit (example, 0);
    process_wait_output (example, "All is right");
    assert_int_equal (process_count_output (example, "kill -9"), 3);
}

static void the_file_is_there_before_the_first_event_and_ours_alone (void **state)
{
    struct stat status;

    (void) state;
    process_t *receiver = start_receiver (NULL, "--format", "json", NULL);
    process_wait_output (receiver, "opened");
    assert_int_equal (stat (RESUME, &status), 0);
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 128 + SIGTERM);

    assert_int_equal (status.st_mode & 07777, 0600);
}

static void a_receiver_that_is_taken_over_ends_with_superseded (void **state)
{
    process_t *first;
    process_t *const sender = start_pair (&first);

    (void) state;
    process_t *const second = start_receiver (NULL, "--format", "json", "--senders", "1", NULL);
    process_expect_exit (first, 3);
    assert_non_null (strstr (process_errors (first), "closed(superseded)"));
    event_wait (second, "attached", "s0", 1);
    assert_true (has_file ());

    finish_pair (sender, second);
}

static void what_had_enough_is_closed_and_its_file_removed (void **state)
{
    (void) state;
    process_t *receiver = start_receiver (NULL, "--count", "1", NULL);
    process_t *const sender = start_sender ("s0", NULL);
    process_write (sender, "one\n", 4);
    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 0);

    assert_false (has_file ());
}

static void an_anchor_that_ended_meanwhile_is_told_and_its_file_removed (void **state)
{
    (void) state;
    process_t *receiver = start_receiver (NULL, "--orphan-ttl", "100ms", NULL);
    process_t *const sender = start_sender ("s0", NULL);
    process_wait_error (receiver, "attached");
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 128 + SIGTERM);
    process_expect_exit (sender, 3);
    assert_non_null (strstr (process_errors (sender), "abandoned"));

    receiver = start_receiver (NULL, NULL);
    process_expect_exit (receiver, 1);
    assert_non_null (strstr (process_errors (receiver), "has ended meanwhile"));
    assert_false (has_file ());
}

/*  After the failure of a first receiver a second one gets all.  */
static void expect_whole (process_t *sender)
{
    assert_true (has_file ());
    assert_true (process_is_running (sender));
    process_t *const receiver = start_receiver (NULL, "--format", "raw", "--senders", "1", NULL);
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_string_equal (process_output (receiver, NULL), "onetwo");
}

static void a_disk_that_is_full_acknowledges_nothing (void **state)
{
    const process_files_t full = {.output = "/dev/full"};

    (void) state;
    process_t *const receiver = start_receiver (&full, NULL);
    process_t *const sender = start_sender ("s0", NULL);
    process_write (sender, "one\ntwo\n", 8);
    process_expect_exit (receiver, 1);
    assert_non_null (strstr (process_errors (receiver), "No space left on device"));

    expect_whole (sender);
}

static void a_reader_that_went_away_costs_nothing (void **state)
{
    (void) state;
    process_t *const receiver = start_receiver (NULL, NULL);
    process_t *const sender = start_sender ("s0", NULL);
    process_wait_error (receiver, "attached");
    process_close_output (receiver);
    process_write (sender, "one\ntwo\n", 8);
    process_expect_exit (receiver, 1);
    assert_non_null (strstr (process_errors (receiver), "nobody reads it any longer"));

    expect_whole (sender);
}

/*  A word of the sender, into a directory or, null, to stdout; then the receiver is stopped.  */
static void receive_word (process_t *sender, const char *word, const char *directory)
{
    const char *const file = process_path ("out/s0");
    process_t *const receiver =
        start_receiver (NULL, directory ? "--output-dir" : NULL, directory, NULL);

    process_wait_error (receiver, "sender 1");
    const uint64_t size = size_of (file);
    process_write (sender, word, strlen (word));
    process_write (sender, "\n", 1);
    if (directory) {
        wait_size (file, size + strlen (word) + 1);
    } else {
        process_wait_output (receiver, word);
    }
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 128 + SIGTERM);
}

static void a_receiver_that_writes_elsewhere_cuts_no_file (void **state)
{
    const char *const directory = process_path ("out");
    process_t *const sender = start_sender ("s0", NULL);

    (void) state;
    receive_word (sender, "one", directory);
    receive_word (sender, "two", NULL);
    process_t *const receiver =
        start_receiver (NULL, "--output-dir", directory, "--senders", "1", NULL);
    process_write (sender, "three\n", 6);
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);

    file_expect_same (process_path ("out/s0"), file_make_text ("expected", "one\nthree\n"));
}

static void senders_and_records_count_across_a_restart (void **state)
{
    (void) state;
    process_t *receiver = start_receiver (NULL, "--format", "json", "--senders", "3", NULL);
    process_t *const killed = start_sender ("s0", NULL);
    event_wait (receiver, "attached", "s0", 1);
    process_signal (killed, SIGTERM);
    process_expect_exit (killed, 128 + SIGTERM);
    process_t *sender = start_sender ("s1", file_make_text ("in1", "one\n"));
    process_expect_exit (sender, 0);
    process_signal (receiver, SIGKILL);
    process_wait_exit (receiver);

    receiver = start_receiver (NULL, "--format", "json", "--senders", "3", NULL);
    process_wait_output (receiver, "opened");
    sender = start_sender ("s2", file_make_text ("in2", "two\n"));
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "record", NULL), 1);
    assert_int_equal (event_count (receiver, "detached", "s2"), 1);
}

static void all_that_was_wanted_is_closed_when_it_was_written_before (void **state)
{
    (void) state;
    process_t *receiver = start_receiver (NULL, NULL);
    process_t *const sender = start_sender ("s0", file_make_text ("in0", "one\n"));
    process_expect_exit (sender, 0);
    process_signal (receiver, SIGKILL);
    process_wait_exit (receiver);

    receiver = start_receiver (NULL, "--count", "1", NULL);
    process_expect_exit (receiver, 0);
    assert_string_equal (process_output (receiver, NULL), "");
    assert_false (has_file ());
}

/*  Puts down that the first sender has ended, as a receiver does that is killed before its broker
 *  hears of it.  */
static void put_ending_down (void)
{
    hws_resume_sender_t sender;
    char line[HWS_RESUME_LINE_SIZE];
    const int fd = open (RESUME, O_RDWR | O_CLOEXEC);

    assert_int_equal (pread (fd, line, sizeof line, sizeof line), sizeof line);
    assert_int_equal (hws_resume_sender_read (&sender, line), 0);
    sender.is_ended = true;
    hws_resume_sender_write (&sender, line);
    assert_int_equal (pwrite (fd, line, sizeof line, sizeof line), sizeof line);
    close (fd);
}

static void a_sender_that_is_done_ends_well_though_the_broker_was_not_told (void **state)
{
    process_t *receiver;
    process_t *const sender = start_pair (&receiver);

    (void) state;
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 128 + SIGTERM);
    put_ending_down ();
    process_close_input (sender);
    receiver = start_receiver (NULL, "--format", "json", "--senders", "1", NULL);

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "attached", NULL), 0);
    assert_int_equal (event_count (receiver, "detached", NULL), 0);
    assert_false (has_file ());
}

static void expect_refused (const char *anchor, const char *text)
{
    process_t *const receiver =
        process_start (NULL, "hawser-recv", "--anchor", anchor, "--resume", RESUME, NULL);

    process_expect_exit (receiver, 2);
    assert_int_equal (process_count_errors (receiver, ""), 1);
    assert_int_equal (process_count_errors (receiver, text), 1);
    assert_int_equal (process_count_errors (receiver, RESUME), 1);
}

static void a_file_that_is_not_right_is_refused_with_2 (void **state)
{
    (void) state;
    process_t *receiver = start_receiver (NULL, NULL);
    process_wait_error (receiver, "open port");
    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 128 + SIGTERM);

    expect_refused ("starboard", "is of another anchor than starboard");
    assert_int_equal (chmod (RESUME, 0644), 0);
    expect_refused ("port", "chmod 600");
    assert_int_equal (chmod (RESUME, 0600), 0);
    assert_int_equal (truncate (RESUME, 100), 0);
    expect_refused ("port", "not a resume file");
    assert_true (has_file ());
}

static void a_place_where_no_file_can_be_made_is_told_before_the_anchor_is_open (void **state)
{
    (void) state;
    process_t *const receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--resume",
                                               process_path ("nowhere/resume"), NULL);
    process_expect_exit (receiver, 1);

    assert_int_equal (process_count_errors (receiver, "No such file or directory"), 1);
    assert_int_equal (process_count_errors (receiver, "open port"), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown (name, fixture_setup_calm_tcp, fixture_teardown)
        TEST (a_killed_receiver_comes_back_and_nothing_is_lost_or_doubled),
        TEST (a_killed_broker_and_a_killed_receiver_lose_and_double_nothing),
        TEST (the_example_loses_nothing),
        TEST (a_receiver_that_is_stopped_leaves_its_anchor_open),
        TEST (the_file_is_there_before_the_first_event_and_ours_alone),
        TEST (a_receiver_that_is_taken_over_ends_with_superseded),
        TEST (what_had_enough_is_closed_and_its_file_removed),
        TEST (an_anchor_that_ended_meanwhile_is_told_and_its_file_removed),
        TEST (a_disk_that_is_full_acknowledges_nothing),
        TEST (a_reader_that_went_away_costs_nothing),
        TEST (a_receiver_that_writes_elsewhere_cuts_no_file),
        TEST (senders_and_records_count_across_a_restart),
        TEST (all_that_was_wanted_is_closed_when_it_was_written_before),
        TEST (a_sender_that_is_done_ends_well_though_the_broker_was_not_told),
        TEST (a_file_that_is_not_right_is_refused_with_2),
        TEST (a_place_where_no_file_can_be_made_is_told_before_the_anchor_is_open),
#undef TEST
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
