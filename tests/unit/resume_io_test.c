/*  The file that a receiver goes on with: made whole, ours alone, exact after any death.  */
#include "receiver/resume_io.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HANDLE "123456789abcdef08000000700000001"
#define TOKEN  "5b0e0000000000000000000000000001"

static char s_directory[64];
static char s_path[128];

static int set_up (void **state)
{
    (void) state;
    strcpy (s_directory, "/tmp/hawser-resume-XXXXXX");
    if (mkdtemp (s_directory) == NULL) {
        return -1;
    }
    snprintf (s_path, sizeof s_path, "%s/resume", s_directory);
    return 0;
}

static int tear_down (void **state)
{
    char command[128];

    (void) state;
    snprintf (command, sizeof command, "rm -rf '%s'", s_directory);
    return system (command);
}

static hws_resume_t *open_file (void)
{
    hws_resume_t *resume = NULL;

    if (hws_resume_open (&resume, s_path) != 0) {
        fail_msg ("%s", hws_resume_error (resume));
    }
    return resume;
}

/*  As a process does that opens the anchor, or goes on with it.  */
static hws_resume_t *begin (void)
{
    hws_resume_t *const resume = open_file ();

    if (hws_resume_begin (resume, "results", HANDLE, TOKEN, 0) != 0) {
        fail_msg ("%s", hws_resume_error (resume));
    }
    return resume;
}

static void expect_refused (int code, const char *text)
{
    hws_resume_t *resume = NULL;

    assert_int_equal (hws_resume_open (&resume, s_path), code);
    assert_non_null (strstr (hws_resume_error (resume), s_path));
    assert_non_null (strstr (hws_resume_error (resume), text));
    hws_resume_destroy (&resume);
}

static hws_event_t event_of (hws_event_kind_t kind, uint64_t sender_id, uint64_t seq)
{
    return (hws_event_t){.kind = kind, .sender_id = sender_id, .seq = seq};
}

static void note (hws_resume_t *self, hws_event_kind_t kind, uint64_t sender_id, uint64_t seq,
                  uint64_t size)
{
    const hws_event_t event = event_of (kind, sender_id, seq);

    hws_resume_note (self, &event, size);
}

static bool is_known (hws_resume_t *self, hws_event_kind_t kind, uint64_t sender_id, uint64_t seq)
{
    const hws_event_t event = event_of (kind, sender_id, seq);

    return hws_resume_is_known (self, &event);
}

static size_t file_count (void)
{
    char command[128];

    snprintf (command, sizeof command, "ls -A '%s' | wc -l", s_directory);
    FILE *const pipe = popen (command, "r");
    size_t count = 0;
    assert_int_equal (fscanf (pipe, "%zu", &count), 1);
    pclose (pipe);
    return count;
}

static void write_file (const char *text, mode_t mode)
{
    const int fd = open (s_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal (write (fd, text, strlen (text)), strlen (text));
    assert_int_equal (fchmod (fd, mode), 0);
    close (fd);
}

static void a_new_file_has_handle_and_token_for_us_alone (void **state)
{
    struct stat status;

    (void) state;
    hws_resume_t *resume = open_file ();
    assert_false (hws_resume_is_there (resume));
    assert_int_equal (file_count (), 0);
    assert_int_equal (hws_resume_begin (resume, "results", HANDLE, TOKEN, 0), 0);
    hws_resume_destroy (&resume);

    assert_int_equal (stat (s_path, &status), 0);
    assert_int_equal (status.st_mode & 07777, 0600);
    assert_int_equal (file_count (), 1);
    resume = open_file ();
    assert_true (hws_resume_is_there (resume));
    assert_string_equal (hws_resume_handle (resume), HANDLE);
    assert_string_equal (hws_resume_owner_token (resume), TOKEN);
    assert_true (hws_resume_is_of (resume, "results"));
    assert_false (hws_resume_is_of (resume, "others"));
    assert_false (hws_resume_is_of (resume, NULL));
    hws_resume_destroy (&resume);
}

static void what_was_put_down_is_known_to_the_next (void **state)
{
    (void) state;
    hws_resume_t *resume = begin ();
    assert_int_equal (hws_resume_add (resume, 1, "gpu0"), 0);
    note (resume, HWS_EVENT_RECORD, 1, 0, 10);
    note (resume, HWS_EVENT_ERROR, 1, 1, 10);
    note (resume, HWS_EVENT_RECORD, 1, 2, 30);
    assert_int_equal (hws_resume_commit (resume), 0);
    hws_resume_destroy (&resume);

    resume = begin ();
    const hws_resume_sender_t *const sender = hws_resume_find (resume, 1);
    assert_non_null (sender);
    assert_string_equal (sender->file, "gpu0");
    assert_int_equal (sender->size, 30);
    assert_int_equal (sender->records, 2);
    assert_true (is_known (resume, HWS_EVENT_RECORD, 1, 2));
    assert_false (is_known (resume, HWS_EVENT_RECORD, 1, 3));
    assert_true (is_known (resume, HWS_EVENT_ERROR, 1, 1));
    assert_false (is_known (resume, HWS_EVENT_ATTACHED, 1, 0));
    assert_false (is_known (resume, HWS_EVENT_DETACHED, 1, 0));
    assert_false (is_known (resume, HWS_EVENT_RECORD, 2, 0));
    hws_resume_destroy (&resume);
}

static void what_was_not_put_down_is_not_known (void **state)
{
    (void) state;
    hws_resume_t *resume = begin ();
    assert_int_equal (hws_resume_add (resume, 1, "gpu0"), 0);
    note (resume, HWS_EVENT_RECORD, 1, 0, 10);
    assert_int_equal (hws_resume_commit (resume), 0);
    note (resume, HWS_EVENT_RECORD, 1, 1, 20);
    note (resume, HWS_EVENT_DETACHED, 1, 0, 0);
    hws_resume_destroy (&resume);

    resume = begin ();
    assert_int_equal (hws_resume_find (resume, 1)->size, 10);
    assert_false (is_known (resume, HWS_EVENT_RECORD, 1, 1));
    assert_false (is_known (resume, HWS_EVENT_DETACHED, 1, 0));
    hws_resume_destroy (&resume);
}

static void an_ended_sender_is_known_with_all_that_comes_of_it (void **state)
{
    uint64_t records = 0;
    uint64_t ended = 0;
    uint64_t bad = 0;

    (void) state;
    hws_resume_t *resume = begin ();
    assert_int_equal (hws_resume_add (resume, 1, ""), 0);
    assert_int_equal (hws_resume_add (resume, 2, ""), 0);
    assert_int_equal (hws_resume_add (resume, 3, ""), 0);
    note (resume, HWS_EVENT_RECORD, 1, 0, 0);
    note (resume, HWS_EVENT_DETACHED, 1, 0, 0);
    note (resume, HWS_EVENT_DROPPED, 2, 0, 0);
    note (resume, HWS_EVENT_RECORD, 3, 0, 0);
    assert_int_equal (hws_resume_commit (resume), 0);
    hws_resume_destroy (&resume);

    resume = begin ();
    hws_resume_totals (resume, &records, &ended, &bad);
    assert_int_equal (records, 2);
    assert_int_equal (ended, 2);
    assert_int_equal (bad, 1);
    assert_true (is_known (resume, HWS_EVENT_ATTACHED, 1, 0));
    assert_true (is_known (resume, HWS_EVENT_RECORD, 1, 99));
    assert_true (is_known (resume, HWS_EVENT_DETACHED, 1, 0));
    assert_true (is_known (resume, HWS_EVENT_DROPPED, 2, 0));
    assert_false (is_known (resume, HWS_EVENT_DETACHED, 3, 0));
    hws_resume_destroy (&resume);
}

static void an_ending_that_may_be_only_ours_is_put_down_when_it_is_believed (void **state)
{
    hws_event_t superseded = event_of (HWS_EVENT_CANCELLED, 1, 0);
    hws_event_t dropped = event_of (HWS_EVENT_DROPPED, 2, 0);

    (void) state;
    superseded.cause = "superseded";
    dropped.cause = "transport";
    hws_resume_t *resume = begin ();
    assert_int_equal (hws_resume_add (resume, 1, ""), 0);
    assert_int_equal (hws_resume_add (resume, 2, ""), 0);
    note (resume, HWS_EVENT_RECORD, 2, 0, 0);
    hws_resume_note (resume, &superseded, 0);
    hws_resume_note (resume, &dropped, 0);
    assert_true (hws_resume_has_doubts (resume));
    assert_int_equal (hws_resume_commit (resume), 0);
    hws_resume_destroy (&resume);

    resume = begin ();
    assert_false (is_known (resume, HWS_EVENT_CANCELLED, 1, 0));
    assert_true (is_known (resume, HWS_EVENT_RECORD, 2, 0));
    hws_resume_note (resume, &dropped, 0);
    hws_resume_believe (resume);
    assert_false (hws_resume_has_doubts (resume));
    assert_int_equal (hws_resume_commit (resume), 0);
    hws_resume_destroy (&resume);

    uint64_t records = 0;
    uint64_t ended = 0;
    uint64_t bad = 0;
    resume = begin ();
    hws_resume_totals (resume, &records, &ended, &bad);
    assert_true (is_known (resume, HWS_EVENT_DROPPED, 2, 0));
    assert_int_equal (ended, 1);
    assert_int_equal (bad, 1);
    hws_resume_destroy (&resume);
}

static void ended_senders_are_counted_when_their_lines_are_used_again (void **state)
{
    const uint64_t count = HWS_RESUME_ENDED_MAX + 100;
    uint64_t records = 0;
    uint64_t ended = 0;
    uint64_t bad = 0;
    struct stat status;

    (void) state;
    hws_resume_t *resume = begin ();
    for (uint64_t id = 1; id <= count; id++) {
        assert_int_equal (hws_resume_add (resume, id, ""), 0);
        note (resume, HWS_EVENT_RECORD, id, 0, 0);
        note (resume, id % 2 ? HWS_EVENT_DETACHED : HWS_EVENT_CANCELLED, id, 0, 0);
        assert_int_equal (hws_resume_commit (resume), 0);
    }
    hws_resume_destroy (&resume);

    assert_int_equal (stat (s_path, &status), 0);
    assert_true (status.st_size <= (HWS_RESUME_ENDED_MAX + 2) * HWS_RESUME_LINE_SIZE);
    resume = begin ();
    hws_resume_totals (resume, &records, &ended, &bad);
    assert_int_equal (records, count);
    assert_int_equal (ended, count);
    assert_int_equal (bad, count / 2);
    assert_null (hws_resume_find (resume, 1));
    assert_non_null (hws_resume_find (resume, count));
    hws_resume_destroy (&resume);
}

/*  The lines of a file that is full go round: the place of one does not say how old it is.  */
static void what_ended_last_is_known_longest_after_a_restart_too (void **state)
{
    const uint64_t count = HWS_RESUME_ENDED_MAX + HWS_RESUME_ENDED_MAX / 2;

    (void) state;
    hws_resume_t *resume = begin ();
    for (uint64_t id = 1; id <= count; id++) {
        assert_int_equal (hws_resume_add (resume, id, ""), 0);
        note (resume, HWS_EVENT_DETACHED, id, 0, 0);
        assert_int_equal (hws_resume_commit (resume), 0);
    }
    hws_resume_destroy (&resume);

    resume = begin ();
    for (uint64_t id = count + 1; id <= count + HWS_RESUME_ENDED_MAX / 2; id++) {
        assert_int_equal (hws_resume_add (resume, id, ""), 0);
        note (resume, HWS_EVENT_DETACHED, id, 0, 0);
        assert_int_equal (hws_resume_commit (resume), 0);
    }
    for (uint64_t id = count - HWS_RESUME_ENDED_MAX / 4; id <= count; id++) {
        assert_true (is_known (resume, HWS_EVENT_RECORD, id, 0));
    }
    hws_resume_destroy (&resume);
}

static void copy_line (size_t line, char *text, bool is_put)
{
    const off_t offset = (off_t) (line * HWS_RESUME_LINE_SIZE);
    const int fd = open (s_path, O_RDWR | O_CLOEXEC);

    assert_int_equal (is_put ? pwrite (fd, text, HWS_RESUME_LINE_SIZE, offset)
                             : pread (fd, text, HWS_RESUME_LINE_SIZE, offset),
                      HWS_RESUME_LINE_SIZE);
    close (fd);
}

/*  A kill between the two writes that give the line of a sender to another one.  */
static void a_line_that_was_counted_already_does_not_count_twice (void **state)
{
    const uint64_t count = HWS_RESUME_ENDED_MAX + 1;
    uint64_t records = 0;
    uint64_t ended = 0;
    uint64_t bad = 0;
    char line[HWS_RESUME_LINE_SIZE];

    (void) state;
    hws_resume_t *resume = begin ();
    for (uint64_t id = 1; id <= count; id++) {
        assert_int_equal (hws_resume_add (resume, id, ""), 0);
        note (resume, HWS_EVENT_RECORD, id, 0, 0);
        note (resume, HWS_EVENT_DROPPED, id, 0, 0);
    }
    assert_int_equal (hws_resume_commit (resume), 0);
    copy_line (1, line, false);
    assert_int_equal (hws_resume_add (resume, count + 1, ""), 0);
    copy_line (1, line, true);
    hws_resume_destroy (&resume);

    for (int i = 0; i < 2; i++) {
        resume = begin ();
        hws_resume_totals (resume, &records, &ended, &bad);
        assert_int_equal (records, count);
        assert_int_equal (ended, count);
        assert_int_equal (bad, count);
        assert_null (hws_resume_find (resume, count + 1 + (uint64_t) i));
        assert_int_equal (hws_resume_add (resume, count + 1 + (uint64_t) i, ""), 0);
        hws_resume_destroy (&resume);
    }
}

static void a_broken_file_is_refused_and_stays (void **state)
{
    struct stat status;
    char line[HWS_RESUME_LINE_SIZE];

    (void) state;
    write_file ("", 0600);
    expect_refused (HWS_EMALFORMED, "not a resume file");
    write_file ("{\"handle\":\"" HANDLE "\"}\n", 0600);
    expect_refused (HWS_EMALFORMED, "not a resume file");
    unlink (s_path);
    hws_resume_t *resume = begin ();
    assert_int_equal (hws_resume_add (resume, 1, ""), 0);
    assert_int_equal (hws_resume_add (resume, 2, ""), 0);
    hws_resume_destroy (&resume);
    copy_line (1, line, false);
    copy_line (2, line, true);
    expect_refused (HWS_EMALFORMED, "not a resume file");
    copy_line (0, line, true);
    expect_refused (HWS_EMALFORMED, "not a resume file");
    assert_int_equal (truncate (s_path, HWS_RESUME_LINE_SIZE - 1), 0);
    expect_refused (HWS_EMALFORMED, "not a resume file");

    assert_int_equal (stat (s_path, &status), 0);
}

static void a_file_that_others_can_use_is_refused (void **state)
{
    (void) state;
    hws_resume_t *resume = begin ();
    hws_resume_destroy (&resume);
    assert_int_equal (chmod (s_path, 0640), 0);
    expect_refused (HWS_EDENIED, "chmod 600");
    assert_int_equal (chmod (s_path, 0602), 0);
    expect_refused (HWS_EDENIED, "chmod 600");
}

static void what_is_no_file_is_refused (void **state)
{
    char elsewhere[160];

    (void) state;
    assert_int_equal (mkdir (s_path, 0700), 0);
    expect_refused (HWS_ESYSTEM, "Is a directory");
    rmdir (s_path);
    assert_int_equal (mkfifo (s_path, 0600), 0);
    expect_refused (HWS_EMALFORMED, "not a resume file");
    unlink (s_path);
    snprintf (elsewhere, sizeof elsewhere, "%s/elsewhere", s_directory);
    assert_int_equal (symlink (elsewhere, s_path), 0);
    expect_refused (HWS_ESYSTEM, "symbolic link");
    unlink (s_path);
    snprintf (s_path, sizeof s_path, "%s/nowhere/resume", s_directory);
    expect_refused (HWS_ESYSTEM, "No such file");
}

static void a_file_that_came_meanwhile_is_not_replaced (void **state)
{
    (void) state;
    hws_resume_t *late = open_file ();
    hws_resume_t *first = begin ();

    assert_int_equal (hws_resume_begin (late, "results", HANDLE, TOKEN, 0), HWS_ESYSTEM);
    assert_non_null (strstr (hws_resume_error (late), "File exists"));
    hws_resume_destroy (&late);
    assert_int_equal (hws_resume_add (first, 1, ""), 0);
    hws_resume_destroy (&first);
    assert_int_equal (file_count (), 1);
    first = begin ();
    assert_non_null (hws_resume_find (first, 1));
    hws_resume_destroy (&first);
}

static void who_takes_over_waits_for_the_last_words_of_the_one_before (void **state)
{
    (void) state;
    hws_resume_t *first = begin ();
    assert_int_equal (hws_resume_add (first, 1, "gpu0"), 0);
    hws_resume_t *second = open_file ();
    assert_true (hws_resume_is_there (second));
    assert_string_equal (hws_resume_owner_token (second), TOKEN);
    assert_int_equal (hws_resume_begin (second, "results", HANDLE, TOKEN, 0), HWS_EBUSY);
    note (first, HWS_EVENT_RECORD, 1, 0, 10);
    assert_int_equal (hws_resume_commit (first), 0);
    hws_resume_destroy (&first);

    assert_int_equal (hws_resume_begin (second, "results", HANDLE, TOKEN, 0), 0);
    assert_int_equal (hws_resume_find (second, 1)->size, 10);
    hws_resume_destroy (&second);
}

static void a_file_is_removed_by_who_has_it_only (void **state)
{
    (void) state;
    hws_resume_t *first = begin ();
    unlink (s_path);
    hws_resume_t *second = begin ();

    hws_resume_remove (first);
    assert_int_equal (file_count (), 1);
    hws_resume_remove (second);
    assert_int_equal (file_count (), 0);
    hws_resume_destroy (&first);
    hws_resume_destroy (&second);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)
        TEST (a_new_file_has_handle_and_token_for_us_alone),
        TEST (what_was_put_down_is_known_to_the_next),
        TEST (what_was_not_put_down_is_not_known),
        TEST (an_ended_sender_is_known_with_all_that_comes_of_it),
        TEST (an_ending_that_may_be_only_ours_is_put_down_when_it_is_believed),
        TEST (ended_senders_are_counted_when_their_lines_are_used_again),
        TEST (what_ended_last_is_known_longest_after_a_restart_too),
        TEST (a_line_that_was_counted_already_does_not_count_twice),
        TEST (a_broken_file_is_refused_and_stays),
        TEST (a_file_that_others_can_use_is_refused),
        TEST (what_is_no_file_is_refused),
        TEST (a_file_that_came_meanwhile_is_not_replaced),
        TEST (who_takes_over_waits_for_the_last_words_of_the_one_before),
        TEST (a_file_is_removed_by_who_has_it_only),
#undef TEST
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
