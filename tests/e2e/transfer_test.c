/*  Bytes through real programs: what goes in at the senders comes out at the
 *  receiver, for every framing, every size and every odd input.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MIB          ((size_t) 1024 * 1024)
#define RECORD_LIMIT (16 * MIB) /* limits.record_bytes by default */

/*  hawser-recv into one file per sender.  */
static process_t *start_collector (const char *directory, const char *framing, const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "files", "--framing", framing,
                          "--senders", senders, "--output-dir", directory, NULL);
}

static process_t *start_sender (const char *input, const char *framing, const char *label)
{
    const process_files_t files = {.input = input};
    return process_start (&files, "hawser-send", "--anchor", "files", "--framing", framing,
                          "--label", label, "--wait", "30", NULL);
}

/*  Eight senders at once; every output file equals its input.  */
static void transfer (const char *framing)
{
    const char *soak = getenv ("SOAK");
    const size_t size = soak ? 100 * MIB : process_scaled (6 * MIB, MIB / 2);
    const char *directory = process_path ("out");
    const char *inputs[8];
    process_t *senders[8];

    assert_int_equal (mkdir (directory, 0700), 0);
    for (size_t i = 0; i < 8; i++) {
        char name[32];
        snprintf (name, sizeof name, "in-%zu", i);
        inputs[i] = file_make_stream (name, framing, i + 1, size);
    }

    process_t *receiver = start_collector (directory, framing, "8");
    for (size_t i = 0; i < 8; i++) {
        char label[32];
        snprintf (label, sizeof label, "worker-%zu", i);
        senders[i] = start_sender (inputs[i], framing, label);
    }

    for (size_t i = 0; i < 8; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
    for (size_t i = 0; i < 8; i++) {
        file_expect_same (process_path ("out/worker-%zu", i), inputs[i]);
    }
}

static void eight_senders_of_lines_arrive_byte_for_byte (void **state)
{
    (void) state;
    transfer ("line");
}

static void eight_senders_of_nul_records_arrive_byte_for_byte (void **state)
{
    (void) state;
    transfer ("nul");
}

static void eight_senders_of_prefixed_records_arrive_byte_for_byte (void **state)
{
    (void) state;
    transfer ("length");
}

static void eight_senders_of_chunks_arrive_byte_for_byte (void **state)
{
    (void) state;
    transfer ("chunk");
}

/*  Appends a length-prefixed record of `size` bytes.  */
static void put_record (FILE *file, size_t size)
{
    const unsigned char prefix[4] = {(unsigned char) (size >> 24), (unsigned char) (size >> 16),
                                     (unsigned char) (size >> 8), (unsigned char) size};
    assert_int_equal (fwrite (prefix, 1, 4, file), 4);
    for (size_t i = 0; i < size; i++) {
        putc ((int) ((i * 7 + i / 251) & 0xff), file);
    }
}

static void records_of_0_1_64_ki_8_mi_and_the_limit_arrive (void **state)
{
    static const size_t sizes[] = {0, 1, 65536, 8 * MIB, 0, RECORD_LIMIT, 1};
    const char *input = process_path ("in");
    const char *output = process_path ("out");
    FILE *file = fopen (input, "we");

    (void) state;
    assert_non_null (file);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        put_record (file, sizes[i]);
    }
    assert_int_equal (fclose (file), 0);

    const process_files_t files = {.output = output};
    process_t *receiver = process_start (&files, "hawser-recv", "--anchor", "files", "--framing",
                                         "length", "--senders", "1", NULL);
    process_t *sender = start_sender (input, "length", "sizes");

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    file_expect_same (output, input);
}

static void a_record_over_the_limit_is_refused_at_the_sender (void **state)
{
    static const char first[] = "\0\0\0\5small";
    static const char prefix[] = "\1\0\0\1"; /* 16 MiB and 1 */

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "files", "--format",
                                         "json", "--senders", "1", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "files", "--framing",
                                       "length", "--label", "big", "--wait", "30", NULL);
    process_write (sender, first, sizeof first - 1);
    event_wait (receiver, "record", "big", 1);
    process_write (sender, prefix, sizeof prefix - 1);

    process_expect_exit (sender, 1);
    assert_non_null (strstr (process_errors (sender), "16777216"));
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "record", "big"), 1);
    assert_int_equal (event_count (receiver, "cancelled", "big"), 1);
}

/*  What `hawser-recv --framing …` prints for one sender with this input.  */
static void expect_output (const char *framing, const char *input, size_t input_size,
                           const char *output, size_t output_size)
{
    const char *path = file_make ("in", input, input_size);
    const process_files_t files = {.output = process_path ("out")};

    process_t *receiver = process_start (&files, "hawser-recv", "--anchor", "files", "--framing",
                                         framing, "--senders", "1", NULL);
    process_t *sender = start_sender (path, framing, "odd");

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    file_expect (files.output, output, output_size);
}

static void lines_keep_nul_and_invalid_utf8 (void **state)
{
    static const char bytes[] = "a\0b\n\xff\xfe\xc0\x80\n\n\r\n\0\n\xed\xa0\x80\n";

    (void) state;
    expect_output ("line", bytes, sizeof bytes - 1, bytes, sizeof bytes - 1);
}

static void a_last_line_without_newline_is_sent_and_gets_one (void **state)
{
    (void) state;
    expect_output ("line", "first\nlast", 10, "first\nlast\n", 11);
}

static void a_last_nul_record_without_delimiter_is_sent_and_gets_one (void **state)
{
    (void) state;
    expect_output ("nul", "fir\nst\0last", 11, "fir\nst\0last\0", 12);
}

static void an_empty_stdin_is_an_empty_stream (void **state)
{
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "files", "--format",
                                         "json", "--senders", "1", NULL);

    (void) state;
    process_t *sender = start_sender ("/dev/null", "line", "empty");

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "attached", "empty"), 1);
    assert_int_equal (event_count (receiver, "record", NULL), 0);
    assert_int_equal (event_count (receiver, "detached", "empty"), 1);
}

static void a_truncated_length_prefix_never_looks_like_a_clean_end (void **state)
{
    const char *path = file_make ("in", "\0\0\0\5abc", 7);

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "files", "--format",
                                         "json", "--senders", "1", NULL);
    process_t *sender = start_sender (path, "length", "cut");

    process_expect_exit (sender, 1);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "cancelled", "cut"), 1);
    assert_int_equal (event_count (receiver, "record", NULL), 0);
}

static void files_are_sent_in_the_order_of_the_arguments (void **state)
{
    const char *first = file_make_text ("first", "1\n2\n");
    const char *second = file_make_text ("second", "3\n");

    (void) state;
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "files", "--senders", "1", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "files", "--wait", "30",
                                       first, second, NULL);

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (process_count_output (receiver, ""), 3);
    assert_non_null (strstr (process_output (receiver, NULL), "3"));
}

static void json_shows_bytes_that_are_no_text_as_base64 (void **state)
{
    const char *path = file_make ("in", "text \"q\" \xc3\xa4\n\xff\0\n", 15);

    (void) state;
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "files", "--format",
                                         "json", "--senders", "1", NULL);
    process_t *sender = start_sender (path, "line", "mixed");

    const event_t record = event_wait (receiver, "record", "mixed", 1);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_string_equal (record.data, "text \"q\" \xc3\xa4");
    assert_int_equal (event_count (receiver, "record", "mixed"), 2);
    assert_int_equal (process_count_output (receiver, "\"data_base64\":\"/wA=\""), 1);
}

static void two_senders_of_one_label_get_two_files (void **state)
{
    const char *directory = process_path ("out");
    const char *first = file_make_text ("in-1", "one\n");
    const char *second = file_make_text ("in-2", "two\n");

    (void) state;
    assert_int_equal (mkdir (directory, 0700), 0);
    process_t *receiver = start_collector (directory, "line", "2");
    process_expect_exit (start_sender (first, "line", "twin"), 0);
    process_expect_exit (start_sender (second, "line", "twin"), 0);

    process_expect_exit (receiver, 0);
    file_expect_same (process_path ("out/twin"), first);
    file_expect_same (process_path ("out/twin.2"), second);
}

static void records_that_hold_the_delimiter_are_warned_of_once_for_each_sender (void **state)
{
    const char *input = file_make ("in", "a\nb\0c\nd\0plain\0", 14);

    (void) state;
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "files", "--senders", "2", NULL);
    process_expect_exit (start_sender (input, "nul", "one"), 0);
    process_expect_exit (start_sender (input, "nul", "two"), 0);

    process_expect_exit (receiver, 0);
    assert_int_equal (process_count_errors (receiver, "holds the delimiter"), 2);
    assert_int_equal (process_count_errors (receiver, "sender 1 \"one\": a record holds the "
                                                      "delimiter; give both ends another "
                                                      "--framing"),
                      1);
    assert_string_equal (process_output (receiver, NULL), "a\nb\nc\nd\nplain\n"
                                                          "a\nb\nc\nd\nplain\n");
}

static void records_travel_over_ipc_too (void **state)
{
    (void) state;
    transfer ("chunk");
}

#define OVER_TCP(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define OVER_IPC(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (eight_senders_of_lines_arrive_byte_for_byte),
        OVER_TCP (eight_senders_of_nul_records_arrive_byte_for_byte),
        OVER_TCP (eight_senders_of_prefixed_records_arrive_byte_for_byte),
        OVER_TCP (eight_senders_of_chunks_arrive_byte_for_byte),
        OVER_IPC (records_travel_over_ipc_too),
        OVER_TCP (records_of_0_1_64_ki_8_mi_and_the_limit_arrive),
        OVER_TCP (a_record_over_the_limit_is_refused_at_the_sender),
        OVER_TCP (lines_keep_nul_and_invalid_utf8),
        OVER_TCP (a_last_line_without_newline_is_sent_and_gets_one),
        OVER_TCP (a_last_nul_record_without_delimiter_is_sent_and_gets_one),
        OVER_TCP (an_empty_stdin_is_an_empty_stream),
        OVER_TCP (a_truncated_length_prefix_never_looks_like_a_clean_end),
        OVER_TCP (files_are_sent_in_the_order_of_the_arguments),
        OVER_TCP (json_shows_bytes_that_are_no_text_as_base64),
        OVER_TCP (two_senders_of_one_label_get_two_files),
        OVER_TCP (records_that_hold_the_delimiter_are_warned_of_once_for_each_sender),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
