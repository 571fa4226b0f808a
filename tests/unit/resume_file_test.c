/*  Lines of a resume file: what is written is read, anything else is refused.  */
#include "receiver/resume_file.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>

static const char s_anchor_text[] =
    "{\"handle\":\"123456789abcdef08000000700000001\","
    "\"owner_token\":\"5b0e0000000000000000000000000001\",\"anchor\":\"results\","
    "\"records\":\"7\",\"ended\":\"2\",\"bad\":\"1\",\"folded\":\"3\"}";
static const char s_sender_text[] =
    "{\"sender\":\"4\",\"next_seq\":\"17\",\"records\":\"16\","
    "\"bytes\":\"4080\",\"size\":\"4096\",\"ended\":true,\"bad\":false,\"order\":\"5\","
    "\"file\":\"gpu0\"}";

/*  A text as a line.  */
static const char *line_of (const char *text)
{
    static char line[HWS_RESUME_LINE_SIZE + 1];

    snprintf (line, sizeof line, "%-*s\n", HWS_RESUME_LINE_SIZE - 1, text);
    return line;
}

static void what_is_written_of_an_anchor_is_read (void **state)
{
    hws_resume_anchor_t anchor;
    char line[HWS_RESUME_LINE_SIZE];

    (void) state;
    assert_int_equal (hws_resume_anchor_read (&anchor, line_of (s_anchor_text)), 0);
    hws_resume_anchor_write (&anchor, line);

    assert_memory_equal (line, line_of (s_anchor_text), sizeof line);
    assert_string_equal (anchor.anchor, "results");
    assert_int_equal (anchor.records, 7);
    assert_int_equal (anchor.ended, 2);
    assert_int_equal (anchor.bad, 1);
    assert_int_equal (anchor.folded, 3);
}

static void what_is_written_of_a_sender_is_read (void **state)
{
    hws_resume_sender_t sender;
    char line[HWS_RESUME_LINE_SIZE];

    (void) state;
    assert_int_equal (hws_resume_sender_read (&sender, line_of (s_sender_text)), 0);
    hws_resume_sender_write (&sender, line);

    assert_memory_equal (line, line_of (s_sender_text), sizeof line);
    assert_int_equal (sender.sender_id, 4);
    assert_int_equal (sender.next_seq, 17);
    assert_int_equal (sender.records, 16);
    assert_int_equal (sender.bytes, 4080);
    assert_int_equal (sender.size, 4096);
    assert_true (sender.is_ended);
    assert_false (sender.is_bad);
    assert_int_equal (sender.order, 5);
    assert_string_equal (sender.file, "gpu0");
}

static void the_longest_names_fit (void **state)
{
    hws_resume_anchor_t anchor = {
        .records = UINT64_MAX, .ended = UINT64_MAX, .bad = UINT64_MAX, .folded = UINT64_MAX};
    hws_resume_sender_t sender = {.sender_id = UINT64_MAX,
                                  .next_seq = UINT64_MAX,
                                  .records = UINT64_MAX,
                                  .size = UINT64_MAX,
                                  .order = UINT64_MAX};
    char line[HWS_RESUME_LINE_SIZE];

    (void) state;
    memset (anchor.anchor, '"', sizeof anchor.anchor - 1);
    memset (sender.file, '\\', sizeof sender.file - 1);
    hws_resume_anchor_t read_anchor;
    hws_resume_sender_t read_sender;

    hws_resume_anchor_write (&anchor, line);
    assert_int_equal (hws_resume_anchor_read (&read_anchor, line), 0);
    hws_resume_sender_write (&sender, line);
    assert_int_equal (hws_resume_sender_read (&read_sender, line), 0);

    assert_string_equal (read_anchor.anchor, anchor.anchor);
    assert_string_equal (read_sender.file, sender.file);
    assert_true (read_sender.next_seq == UINT64_MAX);
}

static void expect_no_anchor (const char *text)
{
    hws_resume_anchor_t anchor;

    if (hws_resume_anchor_read (&anchor, line_of (text)) != HWS_EMALFORMED) {
        fail_msg ("taken for an anchor: %s", text);
    }
}

static void expect_no_sender (const char *text)
{
    hws_resume_sender_t sender;

    if (hws_resume_sender_read (&sender, line_of (text)) != HWS_EMALFORMED) {
        fail_msg ("taken for a sender: %s", text);
    }
}

static void what_nobody_would_write_is_refused (void **state)
{
    (void) state;
    expect_no_anchor ("");
    expect_no_anchor ("{}");
    expect_no_anchor ("[]");
    expect_no_anchor (s_sender_text);
    expect_no_anchor ("{\"handle\":\"123456789abcdef08000000700000001\"}");
    expect_no_anchor ("{\"handle\":\"123456789ABCDEF08000000700000001\","
                      "\"owner_token\":\"5b0e0000000000000000000000000001\",\"anchor\":\"results\","
                      "\"records\":\"7\",\"ended\":\"2\",\"bad\":\"1\",\"folded\":\"3\"}");
    expect_no_anchor ("{\"handle\":\"123456789abcdef08000000700000001\", "
                      "\"owner_token\":\"5b0e0000000000000000000000000001\",\"anchor\":\"results\","
                      "\"records\":\"7\",\"ended\":\"2\",\"bad\":\"1\",\"folded\":\"3\"}");
    expect_no_anchor ("{\"handle\":\"123456789abcdef08000000700000001\","
                      "\"owner_token\":\"5b0e\",\"anchor\":\"results\","
                      "\"records\":\"7\",\"ended\":\"2\",\"bad\":\"1\",\"folded\":\"3\"}");
    expect_no_sender (s_anchor_text);
    expect_no_sender (
        "{\"sender\":\"0\",\"next_seq\":\"17\",\"records\":\"16\",\"bytes\":\"9\",\"size\":\"9\","
        "\"ended\":true,\"bad\":false,\"order\":\"5\",\"file\":\"gpu0\"}");
    expect_no_sender (
        "{\"sender\":\"4\",\"next_seq\":17,\"records\":\"16\",\"bytes\":\"9\",\"size\":\"9\","
        "\"ended\":true,\"bad\":false,\"order\":\"5\",\"file\":\"gpu0\"}");
    expect_no_sender (
        "{\"sender\":\"4\",\"next_seq\":\"17\",\"records\":\"16\",\"bytes\":\"9\",\"size\":\"9\","
        "\"ended\":1,\"bad\":false,\"order\":\"5\",\"file\":\"gpu0\"}");
}

static void a_file_outside_the_directory_is_refused (void **state)
{
    (void) state;
    expect_no_sender (
        "{\"sender\":\"4\",\"next_seq\":\"17\",\"records\":\"16\",\"bytes\":\"9\",\"size\":\"9\","
        "\"ended\":true,\"bad\":false,\"order\":\"5\",\"file\":\"a/b\"}");
    expect_no_sender (
        "{\"sender\":\"4\",\"next_seq\":\"17\",\"records\":\"16\",\"bytes\":\"9\",\"size\":\"9\","
        "\"ended\":true,\"bad\":false,\"order\":\"5\",\"file\":\"..\"}");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_is_written_of_an_anchor_is_read),
        cmocka_unit_test (what_is_written_of_a_sender_is_read),
        cmocka_unit_test (the_longest_names_fit),
        cmocka_unit_test (what_nobody_would_write_is_refused),
        cmocka_unit_test (a_file_outside_the_directory_is_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
