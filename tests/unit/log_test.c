#include "base/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static void assert_line (int64_t unix_us, const char *text, const char *expected)
{
    hws_log_line_t line;
    const size_t size = hws_log_write_line (line, unix_us, HWS_LOG_INFO, hws_bytes_of_text (text));
    assert_int_equal (size, strlen (expected));
    assert_memory_equal (line, expected, size);
}

static void a_line_begins_with_the_time_in_utc_and_the_level (void **state)
{
    (void) state;

    assert_line (0, "event=x", "ts=1970-01-01T00:00:00.000000Z level=info event=x\n");
    assert_line (INT64_C (951782399999999), "event=x",
                 "ts=2000-02-28T23:59:59.999999Z level=info event=x\n");
    assert_line (INT64_C (951868800000001), "event=x",
                 "ts=2000-03-01T00:00:00.000001Z level=info event=x\n");
    assert_line (INT64_C (1709164800000000), "event=x",
                 "ts=2024-02-29T00:00:00.000000Z level=info event=x\n");
    assert_line (INT64_C (1798761599000000), "event=x",
                 "ts=2026-12-31T23:59:59.000000Z level=info event=x\n");
    assert_line (-1, "event=x", "ts=1969-12-31T23:59:59.999999Z level=info event=x\n");
}

static void control_characters_are_escaped (void **state)
{
    (void) state;

    assert_line (
        0, "a\nb\x1b[1m\x7f\tc\xc2\x85",
        "ts=1970-01-01T00:00:00.000000Z level=info a\\x0ab\\x1b[1m\\x7f\\x09c\\xc2\\x85\n");
}

static void utf8_passes_and_what_is_not_is_escaped (void **state)
{
    (void) state;

    assert_line (0, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
                 "ts=1970-01-01T00:00:00.000000Z level=info "
                 "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n");
    assert_line (0, "\xff\xc0\xaf\xe0\x80\xaf",
                 "ts=1970-01-01T00:00:00.000000Z level=info \\xff\\xc0\\xaf\\xe0\\x80\\xaf\n");
    assert_line (0, "\xed\xa0\x80", "ts=1970-01-01T00:00:00.000000Z level=info \\xed\\xa0\\x80\n");
    assert_line (0, "\xf4\x90\x80\x80",
                 "ts=1970-01-01T00:00:00.000000Z level=info \\xf4\\x90\\x80\\x80\n");
    assert_line (0, "cut \xe2\x82", "ts=1970-01-01T00:00:00.000000Z level=info cut \\xe2\\x82\n");
}

static void a_nul_is_escaped_and_does_not_end_the_line (void **state)
{
    (void) state;
    hws_log_line_t line;

    const size_t size = hws_log_write_line (line, 0, HWS_LOG_WARN, hws_bytes ("a\0b", 3));

    const char expected[] = "ts=1970-01-01T00:00:00.000000Z level=warn a\\x00b\n";
    assert_int_equal (size, strlen (expected));
    assert_memory_equal (line, expected, size);
}

/*  Every length around the limit, of characters of one byte and of one written
 *  with four.  */
static void a_line_that_is_too_long_ends_in_an_ellipsis (void **state)
{
    (void) state;
    static char text[2 * HWS_LOG_LINE_SIZE_MAX];
    hws_log_line_t line;

    for (int is_escaped = 0; is_escaped <= 1; is_escaped++) {
        memset (text, is_escaped ? '\n' : 'x', sizeof text);
        for (size_t size = HWS_LOG_LINE_SIZE_MAX / 5; size <= sizeof text; size++) {
            const size_t used = hws_log_write_line (line, 0, HWS_LOG_DEBUG, hws_bytes (text, size));
            assert_true (used <= sizeof line);
            assert_int_equal (line[used - 1], '\n');
            assert_null (memchr (line, '\n', used - 1));
        }
        const size_t used =
            hws_log_write_line (line, 0, HWS_LOG_DEBUG, hws_bytes (text, sizeof text));
        assert_memory_equal (line + used - 4, "\xe2\x80\xa6\n", 4);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_line_begins_with_the_time_in_utc_and_the_level),
        cmocka_unit_test (control_characters_are_escaped),
        cmocka_unit_test (utf8_passes_and_what_is_not_is_escaped),
        cmocka_unit_test (a_nul_is_escaped_and_does_not_end_the_line),
        cmocka_unit_test (a_line_that_is_too_long_ends_in_an_ellipsis),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
