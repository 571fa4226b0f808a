/*  Framing: a stream cut into records, and records with their marks put together.  */
#include "base/error.h"
#include "base/random.h"
#include "framing/framing.h"
#include "framing/splitter.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 64
#define LIMIT       ((uint64_t) 16 * 1024 * 1024)

/*  What came out of a splitter, up to its last word.  */
typedef struct {
    char text[RECORDS_MAX][32]; /* small records only */
    size_t size[RECORDS_MAX];
    size_t count;
    int end;           /* the code after the last record */
    char explain[160]; /* its sentence */
} split_t;

/*  Feeds `size` bytes, `step` at a time, and takes what comes.  */
static split_t split (hws_framing_t framing, uint64_t limit, const void *data, size_t size,
                      size_t step)
{
    hws_splitter_t splitter;
    hws_bytes_t record;
    split_t result = {.count = 0};
    size_t fed = 0;

    hws_splitter_init (&splitter, framing, limit, HWS_FRAMING_CHUNK_SIZE);
    while ((result.end = hws_splitter_next (&splitter, &record)) == 0 ||
           result.end == HWS_EWOULD_BLOCK) {
        if (result.end == 0) {
            assert_non_null (record.data);
            assert_true (result.count < RECORDS_MAX);
            if (record.size <= sizeof result.text[0]) {
                memcpy (result.text[result.count], record.data, record.size);
            }
            result.size[result.count++] = record.size;
            continue;
        }
        size_t room_size;
        uint8_t *room = hws_splitter_room (&splitter, &room_size);
        assert_non_null (room);
        size_t next = size - fed < step ? size - fed : step;
        next = next < room_size ? next : room_size;
        if (next == 0) {
            hws_splitter_end (&splitter);
        } else {
            memcpy (room, (const char *) data + fed, next);
            hws_splitter_fill (&splitter, next);
            fed += next;
        }
    }
    hws_splitter_explain (&splitter, result.end, result.explain, sizeof result.explain);
    hws_splitter_fini (&splitter);
    return result;
}

static void expect_record (const split_t *result, size_t at, const void *data, size_t size)
{
    assert_true (at < result->count);
    assert_int_equal (result->size[at], size);
    assert_memory_equal (result->text[at], data, size);
}

static void a_line_ends_with_its_newline_and_does_not_hold_it (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_LINE, LIMIT, "one\ntwo\n", 8, 100);

    assert_int_equal (result.count, 2);
    expect_record (&result, 0, "one", 3);
    expect_record (&result, 1, "two", 3);
    assert_int_equal (result.end, HWS_EENDED);
}

static void a_last_line_without_newline_is_a_record (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_LINE, LIMIT, "a\nb", 3, 100);

    assert_int_equal (result.count, 2);
    expect_record (&result, 1, "b", 1);
    assert_int_equal (result.end, HWS_EENDED);
}

static void an_empty_line_is_a_record_of_no_bytes (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_LINE, LIMIT, "\n\nx\n", 4, 100);

    assert_int_equal (result.count, 3);
    assert_int_equal (result.size[0], 0);
    assert_int_equal (result.size[1], 0);
    expect_record (&result, 2, "x", 1);
}

static void an_empty_stream_has_no_record_in_any_framing (void **state)
{
    static const hws_framing_t framings[] = {HWS_FRAMING_LINE, HWS_FRAMING_NUL, HWS_FRAMING_LENGTH,
                                             HWS_FRAMING_CHUNK};

    (void) state;
    for (size_t i = 0; i < 4; i++) {
        const split_t result = split (framings[i], LIMIT, "", 0, 1);

        assert_int_equal (result.count, 0);
        assert_int_equal (result.end, HWS_EENDED);
    }
}

static void lines_keep_nul_carriage_return_and_invalid_utf8 (void **state)
{
    static const char bytes[] = "a\0b\r\n\xff\xfe\xc0\n";

    (void) state;
    const split_t result = split (HWS_FRAMING_LINE, LIMIT, bytes, sizeof bytes - 1, 2);

    assert_int_equal (result.count, 2);
    expect_record (&result, 0, "a\0b\r", 4);
    expect_record (&result, 1, "\xff\xfe\xc0", 3);
}

static void nul_records_keep_newlines (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_NUL, LIMIT, "a\nb\0\0last", 9, 3);

    assert_int_equal (result.count, 3);
    expect_record (&result, 0, "a\nb", 3);
    assert_int_equal (result.size[1], 0);
    expect_record (&result, 2, "last", 4);
}

static void a_length_is_big_endian_and_may_be_zero (void **state)
{
    static const char bytes[] = "\0\0\0\3abc\0\0\0\0\0\0\0\1z";

    (void) state;
    const split_t result = split (HWS_FRAMING_LENGTH, LIMIT, bytes, sizeof bytes - 1, 100);

    assert_int_equal (result.count, 3);
    expect_record (&result, 0, "abc", 3);
    assert_int_equal (result.size[1], 0);
    expect_record (&result, 2, "z", 1);
    assert_int_equal (result.end, HWS_EENDED);
}

static void an_input_cut_off_within_a_length_or_record_is_malformed (void **state)
{
    static const char bytes[] = "\0\0\0\2ab\0\0\0\3cde";

    (void) state;
    for (size_t size = 1; size < sizeof bytes - 1; size++) {
        const split_t result = split (HWS_FRAMING_LENGTH, LIMIT, bytes, size, 4);

        assert_int_equal (result.end, size == 6 ? HWS_EENDED : HWS_EMALFORMED);
        assert_int_equal (result.count, size >= 6 ? 1 : 0);
    }
}

static void a_cut_off_record_is_named_by_its_number (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_LENGTH, LIMIT, "\0\0\0\0\0\0\0\5abc", 11, 100);

    assert_string_equal (result.explain, "record 2 is cut off: the input ends within it");
}

static void a_record_may_be_as_large_as_the_limit_and_no_larger (void **state)
{
    (void) state;
    assert_int_equal (split (HWS_FRAMING_LINE, 3, "abc\n", 4, 1).end, HWS_EENDED);
    assert_int_equal (split (HWS_FRAMING_LINE, 3, "abc", 3, 1).end, HWS_EENDED);
    assert_int_equal (split (HWS_FRAMING_LINE, 3, "abcd\n", 5, 1).end, HWS_ETOO_LARGE);
    assert_int_equal (split (HWS_FRAMING_NUL, 3, "abc", 4, 9).end, HWS_EENDED);
    assert_int_equal (split (HWS_FRAMING_NUL, 3, "abcd", 5, 9).end, HWS_ETOO_LARGE);
    assert_int_equal (split (HWS_FRAMING_LENGTH, 3, "\0\0\0\3abc", 7, 9).end, HWS_EENDED);
    assert_int_equal (split (HWS_FRAMING_LENGTH, 3, "\0\0\0\4abcd", 8, 9).end, HWS_ETOO_LARGE);
    assert_int_equal (split (HWS_FRAMING_LINE, 0, "\n", 1, 1).end, HWS_EENDED);
    assert_int_equal (split (HWS_FRAMING_LINE, 0, "a\n", 2, 1).end, HWS_ETOO_LARGE);
}

static void a_line_over_the_limit_is_named_with_the_limit (void **state)
{
    (void) state;
    const split_t result = split (HWS_FRAMING_LINE, 16, "a\nb\n0123456789abcdefX\n", 22, 100);

    assert_int_equal (result.count, 2);
    assert_string_equal (result.explain, "line 3 is over the limit of 16 bytes");
}

static void a_line_without_end_is_refused_before_it_fills_memory (void **state)
{
    const size_t size = 4 * 1024 * 1024;
    char *data = malloc (size);
    hws_splitter_t splitter;
    hws_bytes_t record;
    size_t fed = 0;
    int rc;

    (void) state;
    assert_non_null (data);
    memset (data, 'x', size);
    hws_splitter_init (&splitter, HWS_FRAMING_LINE, 1024 * 1024, HWS_FRAMING_CHUNK_SIZE);
    while ((rc = hws_splitter_next (&splitter, &record)) == HWS_EWOULD_BLOCK && fed < size) {
        size_t room_size;
        uint8_t *room = hws_splitter_room (&splitter, &room_size);
        memcpy (room, data + fed, 4096);
        hws_splitter_fill (&splitter, 4096);
        fed += 4096;
    }

    assert_int_equal (rc, HWS_ETOO_LARGE);
    assert_int_equal (fed, 1024 * 1024 + 4096);
    assert_true (splitter.capacity < 4 * 1024 * 1024);
    hws_splitter_fini (&splitter);
    free (data);
}

static void a_chunk_is_what_has_come_and_never_too_large (void **state)
{
    static char bytes[3 * HWS_FRAMING_CHUNK_SIZE + 5];

    (void) state;
    const split_t slow = split (HWS_FRAMING_CHUNK, LIMIT, "abcdef", 6, 2);
    const split_t fast = split (HWS_FRAMING_CHUNK, LIMIT, bytes, sizeof bytes, sizeof bytes);
    const split_t small = split (HWS_FRAMING_CHUNK, 4, "abcdef", 6, 6);

    assert_int_equal (slow.count, 3);
    expect_record (&slow, 1, "cd", 2);
    assert_int_equal (fast.count, 4);
    assert_int_equal (fast.size[0], HWS_FRAMING_CHUNK_SIZE);
    assert_int_equal (fast.size[3], 5);
    assert_int_equal (small.count, 2);
    expect_record (&small, 1, "ef", 2);
}

static void a_record_larger_than_any_read_comes_whole (void **state)
{
    const size_t size = 8 * 1024 * 1024;
    uint8_t *data = calloc (1, size + 4);

    (void) state;
    assert_non_null (data);
    hws_put_u32 (data, (uint32_t) size);
    const split_t result = split (HWS_FRAMING_LENGTH, LIMIT, data, size + 4, 60000);
    free (data);

    assert_int_equal (result.count, 1);
    assert_int_equal (result.size[0], size);
    assert_int_equal (result.end, HWS_EENDED);
}

static void an_error_stays (void **state)
{
    hws_splitter_t splitter;
    hws_bytes_t record;
    size_t size;

    (void) state;
    hws_splitter_init (&splitter, HWS_FRAMING_LENGTH, 1, 1);
    memcpy (hws_splitter_room (&splitter, &size), "\0\0\0\2", 4);
    hws_splitter_fill (&splitter, 4);

    assert_int_equal (hws_splitter_next (&splitter, &record), HWS_ETOO_LARGE);
    assert_int_equal (hws_splitter_next (&splitter, &record), HWS_ETOO_LARGE);
    hws_splitter_fini (&splitter);
}

static void delimiters_follow_and_lengths_precede_a_record (void **state)
{
    hws_framing_marks_t marks;

    (void) state;
    assert_int_equal (hws_framing_marks (HWS_FRAMING_LINE, 9, &marks), 0);
    assert_int_equal (marks.before_size, 0);
    assert_int_equal (marks.after_size, 1);
    assert_int_equal (marks.after[0], '\n');
    assert_int_equal (hws_framing_marks (HWS_FRAMING_NUL, 9, &marks), 0);
    assert_int_equal (marks.after_size, 1);
    assert_int_equal (marks.after[0], 0);
    assert_int_equal (hws_framing_marks (HWS_FRAMING_LENGTH, 0x01020304, &marks), 0);
    assert_int_equal (marks.before_size, 4);
    assert_memory_equal (marks.before, "\1\2\3\4", 4);
    assert_int_equal (marks.after_size, 0);
    assert_int_equal (hws_framing_marks (HWS_FRAMING_CHUNK, 9, &marks), 0);
    assert_int_equal (marks.before_size + marks.after_size, 0);
}

static void a_length_that_does_not_fit_its_prefix_is_too_large (void **state)
{
    hws_framing_marks_t marks;

    (void) state;
    assert_int_equal (hws_framing_marks (HWS_FRAMING_LENGTH, UINT32_MAX, &marks), 0);
    assert_int_equal (hws_framing_marks (HWS_FRAMING_LENGTH, (size_t) UINT32_MAX + 1, &marks),
                      HWS_ETOO_LARGE);
}

static void only_its_own_delimiter_breaks_a_framing (void **state)
{
    const hws_bytes_t line = hws_bytes ("a\nb", 3);
    const hws_bytes_t nul = hws_bytes ("a\0", 2);

    (void) state;
    assert_true (hws_framing_is_broken_by (HWS_FRAMING_LINE, line));
    assert_false (hws_framing_is_broken_by (HWS_FRAMING_LINE, nul));
    assert_true (hws_framing_is_broken_by (HWS_FRAMING_NUL, nul));
    assert_false (hws_framing_is_broken_by (HWS_FRAMING_NUL, line));
    assert_false (hws_framing_is_broken_by (HWS_FRAMING_LENGTH, line));
    assert_false (hws_framing_is_broken_by (HWS_FRAMING_CHUNK, nul));
    assert_false (hws_framing_is_broken_by (HWS_FRAMING_LINE, hws_bytes (NULL, 0)));
}

static void words_name_the_framings_in_order (void **state)
{
    (void) state;
    assert_string_equal (hws_framing_words[HWS_FRAMING_LINE], "line");
    assert_string_equal (hws_framing_words[HWS_FRAMING_NUL], "nul");
    assert_string_equal (hws_framing_words[HWS_FRAMING_LENGTH], "length");
    assert_string_equal (hws_framing_words[HWS_FRAMING_CHUNK], "chunk");
    assert_null (hws_framing_words[HWS_FRAMING_CHUNK + 1]);
}

/*  Cuts the stream by reads of random sizes and joins the records again.  */
static void expect_same_bytes (hws_framing_t framing, hws_random_t *random, const uint8_t *data,
                               size_t size)
{
    hws_splitter_t splitter;
    hws_bytes_t record;
    hws_framing_marks_t marks;
    size_t fed = 0;
    size_t joined = 0;
    int rc;

    hws_splitter_init (&splitter, framing, LIMIT, 1 + hws_random_below (random, 1000));
    while ((rc = hws_splitter_next (&splitter, &record)) == 0 || rc == HWS_EWOULD_BLOCK) {
        if (rc == 0) {
            assert_int_equal (hws_framing_marks (framing, record.size, &marks), 0);
            assert_memory_equal (data + joined, marks.before, marks.before_size);
            joined += marks.before_size;
            assert_memory_equal (data + joined, record.data, record.size);
            joined += record.size;
            assert_memory_equal (data + joined, marks.after, marks.after_size);
            joined += marks.after_size;
            continue;
        }
        size_t room_size;
        uint8_t *room = hws_splitter_room (&splitter, &room_size);
        assert_non_null (room);
        size_t next = 1 + (size_t) hws_random_below (random, 3000);
        next = next < size - fed ? next : size - fed;
        if (next == 0) {
            hws_splitter_end (&splitter);
            continue;
        }
        memcpy (room, data + fed, next);
        hws_splitter_fill (&splitter, next);
        fed += next;
    }
    hws_splitter_fini (&splitter);

    assert_int_equal (rc, HWS_EENDED);
    assert_int_equal (joined, size);
}

/*  A stream of whole records, some of them empty; returns its size.  */
static size_t make_stream (hws_framing_t framing, hws_random_t *random, uint8_t *data, size_t room)
{
    size_t size = 0;
    while (room - size > 2100) {
        hws_framing_marks_t marks;
        const size_t record_size = (size_t) hws_random_below (random, 2000);
        assert_int_equal (hws_framing_marks (framing, record_size, &marks), 0);
        memcpy (data + size, marks.before, marks.before_size);
        size += marks.before_size;
        for (size_t i = 0; i < record_size; i++) {
            const uint8_t byte = (uint8_t) hws_random_next (random);
            const bool is_mark = marks.after_size > 0 && byte == marks.after[0];
            data[size++] = is_mark ? 'x' : byte;
        }
        memcpy (data + size, marks.after, marks.after_size);
        size += marks.after_size;
    }
    return size;
}

static void the_same_framing_on_both_ends_gives_the_same_bytes (void **state)
{
    static uint8_t data[100000];
    static const uint64_t seed = 20260101;

    (void) state;
    for (uint64_t round = 0; round < 40; round++) {
        hws_random_t random;
        hws_random_init (&random, seed + round);
        const hws_framing_t framing = (hws_framing_t) (round % 4);
        const size_t size = make_stream (framing, &random, data, sizeof data);

        expect_same_bytes (framing, &random, data, size);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_line_ends_with_its_newline_and_does_not_hold_it),
        cmocka_unit_test (a_last_line_without_newline_is_a_record),
        cmocka_unit_test (an_empty_line_is_a_record_of_no_bytes),
        cmocka_unit_test (an_empty_stream_has_no_record_in_any_framing),
        cmocka_unit_test (lines_keep_nul_carriage_return_and_invalid_utf8),
        cmocka_unit_test (nul_records_keep_newlines),
        cmocka_unit_test (a_length_is_big_endian_and_may_be_zero),
        cmocka_unit_test (an_input_cut_off_within_a_length_or_record_is_malformed),
        cmocka_unit_test (a_cut_off_record_is_named_by_its_number),
        cmocka_unit_test (a_record_may_be_as_large_as_the_limit_and_no_larger),
        cmocka_unit_test (a_line_over_the_limit_is_named_with_the_limit),
        cmocka_unit_test (a_line_without_end_is_refused_before_it_fills_memory),
        cmocka_unit_test (a_chunk_is_what_has_come_and_never_too_large),
        cmocka_unit_test (a_record_larger_than_any_read_comes_whole),
        cmocka_unit_test (an_error_stays),
        cmocka_unit_test (delimiters_follow_and_lengths_precede_a_record),
        cmocka_unit_test (a_length_that_does_not_fit_its_prefix_is_too_large),
        cmocka_unit_test (only_its_own_delimiter_breaks_a_framing),
        cmocka_unit_test (words_name_the_framings_in_order),
        cmocka_unit_test (the_same_framing_on_both_ends_gives_the_same_bytes),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
