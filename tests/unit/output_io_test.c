/*  Outputs: files that are new, inside their directory, and complete.  */
#include "receiver/output_io.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char s_directory[64];
static const hws_framing_marks_t s_line = {.after = {'\n'}, .after_size = 1};

static int set_up (void **state)
{
    (void) state;
    signal (SIGPIPE, SIG_IGN);
    strcpy (s_directory, "/tmp/hawser-output-XXXXXX");
    return mkdtemp (s_directory) ? 0 : -1;
}

static int tear_down (void **state)
{
    char command[128];

    (void) state;
    snprintf (command, sizeof command, "rm -rf '%s'", s_directory);
    return system (command);
}

static const char *path_of (const char *name)
{
    static char path[512];

    snprintf (path, sizeof path, "%s/%s", s_directory, name);
    return path;
}

static void expect_file (const char *name, const void *data, size_t size)
{
    char got[4096];
    const int fd = open (path_of (name), O_RDONLY | O_CLOEXEC);

    assert_true (fd >= 0);
    const ssize_t got_size = read (fd, got, sizeof got);
    close (fd);
    assert_int_equal (got_size, size);
    assert_memory_equal (got, data, size);
}

static hws_outputs_t *open_outputs (void)
{
    hws_outputs_t *outputs = NULL;

    assert_int_equal (hws_outputs_new (&outputs, s_directory), 0);
    return outputs;
}

static hws_output_t *add (hws_outputs_t *outputs, const char *label, uint64_t sender_id)
{
    hws_output_t *output = NULL;

    assert_int_equal (hws_outputs_add (outputs, label, sender_id, &output), 0);
    return output;
}

static void put (hws_output_t *output, const char *text)
{
    assert_int_equal (hws_output_put (output, &s_line, hws_bytes_of_text (text)), 0);
}

static void records_of_several_senders_go_to_their_files_in_order (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *a = add (outputs, "a", 1);
    hws_output_t *b = add (outputs, "b", 2);

    (void) state;
    put (a, "1");
    put (b, "2");
    put (b, "3");
    put (a, "4");
    assert_int_equal (hws_outputs_flush (outputs), 0);
    put (a, "5");

    expect_file ("a", "1\n4\n", 4);
    expect_file ("b", "2\n3\n", 4);
    assert_int_equal (hws_output_close (&a), 0);
    assert_int_equal (hws_output_close (&b), 0);
    expect_file ("a", "1\n4\n5\n", 6);
    hws_outputs_destroy (&outputs);
}

static void a_sender_without_records_has_an_empty_file (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "", 9);

    (void) state;
    assert_string_equal (hws_output_file (output), "9");
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);

    expect_file ("9", "", 0);
}

static void a_second_sender_of_a_label_gets_a_file_of_its_own (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *first = add (outputs, "twin", 1);
    hws_output_t *second = add (outputs, "twin", 2);
    hws_output_t *third = add (outputs, "twin.2", 3);

    (void) state;
    assert_string_equal (hws_output_file (first), "twin");
    assert_string_equal (hws_output_file (second), "twin.2");
    assert_string_equal (hws_output_file (third), "twin.2.3");
    hws_output_close (&first);
    hws_output_close (&second);
    hws_output_close (&third);
    hws_outputs_destroy (&outputs);
}

static void what_is_there_already_is_never_written_to (void **state)
{
    (void) state;
    const int fd = open (path_of ("old"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal (write (fd, "keep", 4), 4);
    close (fd);
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "old", 7);
    put (output, "new");

    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);
    expect_file ("old", "keep", 4);
    expect_file ("old.7", "new\n", 4);
}

static void no_link_is_followed (void **state)
{
    (void) state;
    assert_int_equal (symlink ("target", path_of ("link")), 0);
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "link", 1);

    assert_string_equal (hws_output_file (output), "link.1");
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);
    assert_int_not_equal (access (path_of ("target"), F_OK), 0);
}

static void a_label_that_points_outside_stays_inside (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "../../escaped", 1);

    (void) state;
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);

    expect_file ("___.._escaped", "", 0);
}

/*  Larger than the buffer, around records that are gathered.  */
static void large_and_small_records_keep_their_order (void **state)
{
    const size_t size = 1024 * 1024;
    char *data = malloc (size);
    struct stat status;
    char end[5];

    (void) state;
    assert_non_null (data);
    memset (data, 'x', size);
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "large", 1);
    put (output, "a");
    assert_int_equal (hws_output_put (output, &s_line, hws_bytes (data, size)), 0);
    put (output, "z");
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);
    free (data);

    const int fd = open (path_of ("large"), O_RDONLY | O_CLOEXEC);
    assert_int_equal (fstat (fd, &status), 0);
    assert_int_equal (status.st_size, size + 5);
    assert_int_equal (pread (fd, end, 5, (off_t) size), 5);
    assert_memory_equal (end, "xx\nz\n", 5);
    close (fd);
}

static void thousands_of_small_records_fill_the_buffer_many_times (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *files[2] = {add (outputs, "0", 1), add (outputs, "1", 2)};
    char line[32];

    (void) state;
    for (int i = 0; i < 100000; i++) {
        snprintf (line, sizeof line, "%d", i);
        put (files[i % 2], line);
    }
    assert_int_equal (hws_output_close (&files[0]), 0);
    assert_int_equal (hws_output_close (&files[1]), 0);
    hws_outputs_destroy (&outputs);

    for (int file = 0; file < 2; file++) {
        FILE *stream = fopen (path_of (file ? "1" : "0"), "re");
        assert_non_null (stream);
        for (int i = file; i < 100000; i += 2) {
            int value = -1;
            assert_int_equal (fscanf (stream, "%d\n", &value), 1);
            assert_int_equal (value, i);
        }
        assert_int_equal (fgetc (stream), EOF);
        fclose (stream);
    }
}

/*  Runs one write to a stdout that is `fd`, which it closes; returns the outputs.  */
static hws_outputs_t *write_to (int fd, int *rc)
{
    hws_outputs_t *outputs = NULL;

    fflush (stdout);
    const int saved = dup (STDOUT_FILENO);
    dup2 (fd, STDOUT_FILENO);
    close (fd);
    hws_outputs_new (&outputs, NULL);
    hws_output_put (hws_outputs_stdout (outputs), &s_line, hws_bytes_of_text ("x"));
    *rc = hws_outputs_flush (outputs);
    dup2 (saved, STDOUT_FILENO);
    close (saved);
    return outputs;
}

static void a_full_disk_is_said_and_stays (void **state)
{
    int rc;

    (void) state;
    hws_outputs_t *outputs = write_to (open ("/dev/full", O_WRONLY | O_CLOEXEC), &rc);

    assert_int_equal (rc, HWS_ESYSTEM);
    assert_string_equal (hws_outputs_error (outputs), "standard output: No space left on device");
    assert_false (hws_outputs_is_unread (outputs));
    assert_int_equal (hws_output_put (hws_outputs_stdout (outputs), &s_line, hws_bytes ("x", 1)),
                      HWS_ESYSTEM);
    assert_int_equal (hws_outputs_flush (outputs), HWS_ESYSTEM);
    hws_outputs_destroy (&outputs);
}

static void a_pipe_that_nobody_reads_is_told_apart (void **state)
{
    int fds[2];
    int rc;

    (void) state;
    assert_int_equal (pipe (fds), 0);
    close (fds[0]);
    hws_outputs_t *outputs = write_to (fds[1], &rc);

    assert_int_equal (rc, HWS_ESYSTEM);
    assert_true (hws_outputs_is_unread (outputs));
    hws_outputs_destroy (&outputs);
}

static void a_directory_that_cannot_be_made_is_an_error (void **state)
{
    hws_outputs_t *outputs = NULL;

    (void) state;
    assert_int_equal (hws_outputs_new (&outputs, "/dev/null/x"), HWS_ESYSTEM);
    assert_null (outputs);
}

static void a_directory_is_made_when_it_is_not_there (void **state)
{
    hws_outputs_t *outputs = NULL;
    struct stat status;

    (void) state;
    assert_int_equal (hws_outputs_new (&outputs, path_of ("new")), 0);
    hws_outputs_destroy (&outputs);

    assert_int_equal (stat (path_of ("new"), &status), 0);
    assert_true (S_ISDIR (status.st_mode));
}

#define TEST(test) cmocka_unit_test_setup_teardown (test, set_up, tear_down)

static void a_file_goes_on_behind_what_counts (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "a", 1);

    (void) state;
    put (output, "1");
    put (output, "2");
    assert_int_equal (hws_output_size (output), 4);
    put (output, "half");
    assert_int_equal (hws_output_close (&output), 0);
    assert_int_equal (hws_outputs_continue (outputs, "a", 4, &output), 0);
    assert_int_equal (hws_output_size (output), 4);
    assert_string_equal (hws_output_file (output), "a");
    put (output, "3");
    assert_int_equal (hws_output_size (output), 6);
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);

    expect_file ("a", "1\n2\n3\n", 6);
}

static void expect_not_continued (const char *name, uint64_t size, const char *text)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = NULL;

    assert_int_equal (hws_outputs_continue (outputs, name, size, &output), HWS_ESYSTEM);
    assert_null (output);
    assert_non_null (strstr (hws_outputs_error (outputs), name));
    assert_non_null (strstr (hws_outputs_error (outputs), text));
    hws_outputs_destroy (&outputs);
}

static void a_file_that_has_lost_something_does_not_go_on (void **state)
{
    hws_outputs_t *outputs = open_outputs ();
    hws_output_t *output = add (outputs, "a", 1);

    (void) state;
    put (output, "1");
    assert_int_equal (hws_output_close (&output), 0);
    hws_outputs_destroy (&outputs);

    expect_not_continued ("a", 3, "has not all that was written to it before");
    expect_not_continued ("b", 0, "No such file");
    assert_int_equal (symlink ("a", path_of ("c")), 0);
    expect_not_continued ("c", 0, "symbolic links");
    expect_file ("a", "1\n", 2);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (records_of_several_senders_go_to_their_files_in_order),
        TEST (a_sender_without_records_has_an_empty_file),
        TEST (a_second_sender_of_a_label_gets_a_file_of_its_own),
        TEST (what_is_there_already_is_never_written_to),
        TEST (no_link_is_followed),
        TEST (a_label_that_points_outside_stays_inside),
        TEST (a_file_goes_on_behind_what_counts),
        TEST (a_file_that_has_lost_something_does_not_go_on),
        TEST (large_and_small_records_keep_their_order),
        TEST (thousands_of_small_records_fill_the_buffer_many_times),
        TEST (a_full_disk_is_said_and_stays),
        TEST (a_pipe_that_nobody_reads_is_told_apart),
        TEST (a_directory_that_cannot_be_made_is_an_error),
        TEST (a_directory_is_made_when_it_is_not_there),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
