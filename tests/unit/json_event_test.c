/*  Events as lines of JSON: exact numbers, any bytes, one line.  */
#include "receiver/json_event.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <string.h>

static hws_json_event_t s_json;

static int set_up (void **state)
{
    (void) state;
    s_json = (hws_json_event_t){.buffer = NULL};
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    hws_json_event_fini (&s_json);
    return 0;
}

static hws_bytes_t line_of (const hws_event_t *event)
{
    hws_bytes_t line;

    assert_int_equal (hws_json_event_write (&s_json, event, &line), 0);
    return line;
}

static void expect_line (const hws_event_t *event, const char *expected)
{
    const hws_bytes_t line = line_of (event);

    assert_int_equal (line.size, strlen (expected));
    assert_memory_equal (line.data, expected, line.size);
}

static hws_event_t record_of (const void *data, size_t size)
{
    return (hws_event_t){.kind = HWS_EVENT_RECORD,
                         .sender_id = 1,
                         .seq = 17,
                         .label = "gpu0",
                         .data = data,
                         .size = size};
}

static void a_record_of_text_has_data (void **state)
{
    const hws_event_t event = record_of ("say \"hi\"\\\t\xc3\xa4", 12);

    (void) state;
    expect_line (&event, "{\"event\":\"record\",\"sender\":\"1\",\"label\":\"gpu0\",\"seq\":\"17\","
                         "\"data\":\"say \\\"hi\\\"\\\\\\t\xc3\xa4\"}");
}

static void a_record_with_nul_and_newline_is_one_escaped_line (void **state)
{
    const hws_event_t event = record_of ("a\0b\n\x01", 5);

    (void) state;
    const hws_bytes_t line = line_of (&event);

    assert_null (memchr (line.data, '\n', line.size));
    assert_non_null (memmem (line.data, line.size, "\"a\\u0000b\\n\\u0001\"", 18));
}

static void an_empty_record_has_empty_data (void **state)
{
    const hws_event_t event = record_of ("", 0);

    (void) state;
    const hws_bytes_t line = line_of (&event);

    assert_non_null (memmem (line.data, line.size, "\"data\":\"\"", 9));
}

static void a_record_that_is_not_utf8_has_base64 (void **state)
{
    static const struct {
        const char *data;
        size_t size;
        const char *expected;
    } cases[] = {
        {"\xff", 1, "\"data_base64\":\"/w==\"}"},
        {"\xff\x00", 2, "\"data_base64\":\"/wA=\"}"},
        {"\xff\xfe\xfd", 3, "\"data_base64\":\"//79\"}"},
        {"\xff\xfe\xfd\xfb", 4, "\"data_base64\":\"//79+w==\"}"},
        {"abc\xed\xa0\x80", 6, "\"data_base64\":\"YWJj7aCA\"}"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const hws_event_t event = record_of (cases[i].data, cases[i].size);
        const hws_bytes_t line = line_of (&event);
        assert_non_null (
            memmem (line.data, line.size, cases[i].expected, strlen (cases[i].expected)));
        assert_null (memmem (line.data, line.size, "\"data\":", 7));
    }
}

static void sixty_four_bits_are_exact (void **state)
{
    hws_event_t event = record_of ("x", 1);

    (void) state;
    event.sender_id = UINT64_C (9007199254740993);
    event.seq = UINT64_MAX;

    expect_line (&event, "{\"event\":\"record\",\"sender\":\"9007199254740993\",\"label\":\"gpu0\","
                         "\"seq\":\"18446744073709551615\",\"data\":\"x\"}");
}

static void no_label_is_null (void **state)
{
    const hws_event_t event = {.kind = HWS_EVENT_ATTACHED, .sender_id = 3, .label = ""};

    (void) state;
    expect_line (&event, "{\"event\":\"attached\",\"sender\":\"3\",\"label\":null}");
}

static void a_label_of_odd_characters_is_still_json (void **state)
{
    const hws_event_t event = {
        .kind = HWS_EVENT_ATTACHED, .sender_id = 3, .label = "a\"} \x1b\n\xff\\"};

    (void) state;
    const hws_bytes_t line = line_of (&event);
    cJSON *object = cJSON_ParseWithLength ((const char *) line.data, line.size);

    assert_non_null (object);
    assert_string_equal (cJSON_GetObjectItem (object, "label")->valuestring, "a\"} \x1b\n?\\");
    cJSON_Delete (object);
}

static void a_clean_ending_has_counts_and_no_cause (void **state)
{
    const hws_event_t event = {.kind = HWS_EVENT_DETACHED,
                               .sender_id = 1,
                               .label = "a",
                               .cause = "none",
                               .reason = "",
                               .records = 3,
                               .bytes = 4096};

    (void) state;
    expect_line (&event, "{\"event\":\"detached\",\"sender\":\"1\",\"label\":\"a\",\"reason\":\"\","
                         "\"records\":\"3\",\"bytes\":\"4096\"}");
}

static void a_bad_ending_says_why_as_a_word_and_as_a_sentence (void **state)
{
    hws_event_t event = {.kind = HWS_EVENT_DROPPED,
                         .sender_id = 1,
                         .label = "a",
                         .cause = "heartbeat",
                         .reason = "silent for 15 s"};

    (void) state;
    expect_line (&event, "{\"event\":\"dropped\",\"sender\":\"1\",\"label\":\"a\","
                         "\"cause\":\"heartbeat\",\"reason\":\"silent for 15 s\","
                         "\"records\":\"0\",\"bytes\":\"0\"}");
    event.kind = HWS_EVENT_CANCELLED;
    event.cause = "interrupted";
    event.reason = "";
    expect_line (&event, "{\"event\":\"cancelled\",\"sender\":\"1\",\"label\":\"a\","
                         "\"cause\":\"interrupted\",\"reason\":\"\","
                         "\"records\":\"0\",\"bytes\":\"0\"}");
}

static void closed_is_no_senders_event (void **state)
{
    const hws_event_t event = {
        .kind = HWS_EVENT_CLOSED, .cause = "expired", .reason = "no sender came"};

    (void) state;
    expect_line (&event, "{\"event\":\"closed\",\"cause\":\"expired\","
                         "\"reason\":\"no sender came\"}");
}

static void opened_names_the_anchor_and_its_handle (void **state)
{
    static const struct {
        const char *anchor;
        const char *expected;
    } cases[] = {
        {"r\"1", "{\"event\":\"opened\",\"anchor\":\"r\\\"1\",\"handle\":\"0123\"}"},
        {NULL, "{\"event\":\"opened\",\"anchor\":null,\"handle\":\"0123\"}"},
    };

    (void) state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hws_bytes_t line;
        assert_int_equal (hws_json_event_write_opened (&s_json, cases[i].anchor, "0123", &line), 0);
        assert_int_equal (line.size, strlen (cases[i].expected));
        assert_memory_equal (line.data, cases[i].expected, line.size);
    }
}

static void an_error_has_its_text (void **state)
{
    hws_event_t event = record_of ("disk \xff full", 11);

    (void) state;
    event.kind = HWS_EVENT_ERROR;

    expect_line (&event, "{\"event\":\"error\",\"sender\":\"1\",\"label\":\"gpu0\",\"seq\":\"17\","
                         "\"text\":\"disk ? full\"}");
}

/*  Sizes around those at which the buffer grows; small lines follow large ones.  */
static void records_of_any_size_come_whole (void **state)
{
    static char data[100000];
    static const char frame[] =
        "{'event':'record','sender':'1','label':'gpu0','seq':'17','data':''}";
    static const char base64[] = "_base64";

    (void) state;
    memset (data, '\x01', sizeof data);
    for (size_t size = 1; size < sizeof data; size += 997) {
        data[0] = '\x01';
        const hws_event_t text = record_of (data, size);
        assert_int_equal (line_of (&text).size, sizeof frame - 1 + size * 6);

        data[0] = '\xff';
        const hws_event_t binary = record_of (data, size);
        assert_int_equal (line_of (&binary).size,
                          sizeof frame - 1 + sizeof base64 - 1 + (size + 2) / 3 * 4);
    }
}

#define TEST(test) cmocka_unit_test_setup_teardown (test, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_record_of_text_has_data),
        TEST (a_record_with_nul_and_newline_is_one_escaped_line),
        TEST (an_empty_record_has_empty_data),
        TEST (a_record_that_is_not_utf8_has_base64),
        TEST (sixty_four_bits_are_exact),
        TEST (no_label_is_null),
        TEST (a_label_of_odd_characters_is_still_json),
        TEST (a_clean_ending_has_counts_and_no_cause),
        TEST (a_bad_ending_says_why_as_a_word_and_as_a_sentence),
        TEST (closed_is_no_senders_event),
        TEST (opened_names_the_anchor_and_its_handle),
        TEST (an_error_has_its_text),
        TEST (records_of_any_size_come_whole),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
