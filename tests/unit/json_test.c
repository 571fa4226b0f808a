/*  The strict JSON check and the JSON writer: what they take and refuse, and that
 *  cJSON agrees with the check on everything it lets through.
 */
#include "base/error.h"
#include "base/json.h"
#include "base/json_writer.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cjson/cJSON.h>
#include <cmocka.h>

#define COUNT(array)   (sizeof array / sizeof *array)
#define LITERAL(bytes) bytes, sizeof bytes - 1

static const hws_json_limits_t s_limits = {.size_max = 65536, .depth_max = 16};

typedef struct {
    const char *json;
    size_t size;
    size_t offset; /* of the fault */
    const char *text;
} bad_t;

static int check (const char *json, size_t size, hws_json_fault_t *fault)
{
    *fault = (hws_json_fault_t){0};
    /*  A copy of the exact size, so that the sanitizers see a read beyond it.  */
    uint8_t *const copy = malloc (size + (size == 0));
    memcpy (copy, json, size);
    const int rc = hws_json_check (hws_bytes (copy, size), s_limits, fault);
    free (copy);
    return rc;
}

static void check_rows (const bad_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hws_json_fault_t fault;
        const int rc = check (rows[i].json, rows[i].size, &fault);
        if (rc != HWS_EMALFORMED || fault.offset != rows[i].offset ||
            strcmp (fault.text, rows[i].text) != 0) {
            fail_msg ("%s: %d, byte %zu: %s", rows[i].json, rc, fault.offset,
                      fault.text ? fault.text : "");
        }
    }
}

static void json_of_every_kind_is_taken (void **state)
{
    (void) state;
    static const char *const good[] = {
        "{}",
        "[]",
        " \t\r\n{ \"a\" : 1 , \"b\" : [ ] } \n",
        "null",
        "true",
        "false",
        "\"\"",
        "0",
        "-0",
        "-0.5e-7",
        "10E+2",
        "1e400",
        "[1,2,{\"a\":{\"a\":{\"a\":[]}}}]",
        "{\"a\":1,\"A\":2,\"\":3}",
        "[{\"a\":1},{\"a\":1}]",
        "{\"a\":{\"b\":1},\"b\":1}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0001\\uD83D\\ude00\\uffff\"",
        "\"Z\xc3\xbcrich \x7f \xf0\x9f\x98\x80\"",
        "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
        "123456789012345678901234567890123456789012345678901234567890123",
    };
    for (size_t i = 0; i < COUNT (good); i++) {
        hws_json_fault_t fault;

        const int rc = check (good[i], strlen (good[i]), &fault);

        if (rc != 0) {
            fail_msg ("%s: byte %zu: %s", good[i], fault.offset, fault.text);
        }
    }
}

static void what_cjson_lets_pass_is_refused (void **state)
{
    (void) state;
    static const bad_t rows[] = {
        {LITERAL ("{\"a\":1} trailing"), 8, "nothing may follow the value"},
        {LITERAL ("{}{}"), 2, "nothing may follow the value"},
        {LITERAL ("{}\0"), 2, "nothing may follow the value"},
        {LITERAL ("nullx"), 4, "nothing may follow the value"},
        {LITERAL ("[truefoo]"), 5, "a comma or ] is expected"},
        {LITERAL ("0x10"), 1, "nothing may follow the value"},
        {LITERAL ("[007]"), 1, "a number may not begin with 0"},
        {LITERAL ("[1.]"), 3, "a digit is expected after the point"},
        {LITERAL ("\xef\xbb\xbf{}"), 0, "a byte order mark is not allowed"},
        {LITERAL ("\"a\nb\""), 2, "a control character in a string must be escaped"},
        {LITERAL ("\"a\x1f\""), 2, "a control character in a string must be escaped"},
        {LITERAL ("\"a\0b\""), 2, "a control character in a string must be escaped"},
        {LITERAL ("\"x\\u0000y\""), 2, "a string contains NUL"},
        {LITERAL ("\"\xff\""), 1, "a string is not valid UTF-8"},
        {LITERAL ("\"\xc2\""), 1, "a string is not valid UTF-8"},
        {LITERAL ("{\"a\":1,\"a\":2}"), 7, "a member's name comes twice"},
        {LITERAL ("{\"a\":1,\"\\u0061\":2}"), 7, "a member's name comes twice"},
        {LITERAL ("{\"b\":1,\"a\":{\"x\":0,\"y\":0,\"x\":1},\"b\":1,\"b\":1}"), 24,
         "a member's name comes twice"},
        {LITERAL ("{\"a\":1,\"x\":{\"a\":1},\"a\":2}"), 19, "a member's name comes twice"},
        {LITERAL ("{\"b\":1,\"b\":2,\"b\":3}"), 7, "a member's name comes twice"},
        {LITERAL ("1234567890123456789012345678901234567890123456789012345678901234"), 0,
         "a number has more than 63 characters"},
    };

    check_rows (rows, COUNT (rows));
}

static void what_is_no_json_is_refused_where_it_goes_wrong (void **state)
{
    (void) state;
    static const bad_t rows[] = {
        {LITERAL (""), 0, "the text ends where a value is expected"},
        {LITERAL ("  "), 2, "the text ends where a value is expected"},
        {LITERAL ("{"), 1, "a member's name in quotes is expected"},
        {LITERAL ("{\"a\""), 4, "a colon is expected"},
        {LITERAL ("{\"a\":"), 5, "the text ends where a value is expected"},
        {LITERAL ("{\"a\":1"), 6, "a comma or } is expected"},
        {LITERAL ("{\"a\":1,"), 7, "a member's name in quotes is expected"},
        {LITERAL ("{\"a\":1,}"), 7, "a member's name in quotes is expected"},
        {LITERAL ("{a:1}"), 1, "a member's name in quotes is expected"},
        {LITERAL ("{\"a\" 1}"), 5, "a colon is expected"},
        {LITERAL ("[1,]"), 3, "a value is expected"},
        {LITERAL ("[1 2]"), 3, "a comma or ] is expected"},
        {LITERAL ("[}"), 1, "a value is expected"},
        {LITERAL ("]"), 0, "a value is expected"},
        {LITERAL ("'a'"), 0, "a value is expected"},
        {LITERAL ("nul"), 0, "a value is expected"},
        {LITERAL ("True"), 0, "a value is expected"},
        {LITERAL ("NaN"), 0, "a value is expected"},
        {LITERAL ("+1"), 0, "a value is expected"},
        {LITERAL (".5"), 0, "a value is expected"},
        {LITERAL ("-"), 1, "a digit is expected"},
        {LITERAL ("-a"), 1, "a digit is expected"},
        {LITERAL ("1e"), 2, "a digit is expected in the exponent"},
        {LITERAL ("1e+"), 3, "a digit is expected in the exponent"},
        {LITERAL ("\"abc"), 4, "a string does not end"},
        {LITERAL ("\"\\"), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\x41\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\u12\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\u12g4\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\ud800\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\ud800\\u0041\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\udc00\""), 1, "an escape in a string is not valid"},
        {LITERAL ("\"\\udc00\\udc00\""), 1, "an escape in a string is not valid"},
        {LITERAL ("// a\n1"), 0, "a value is expected"},
        {LITERAL ("[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]"), 16,
         "too many arrays and objects within each other"},
    };

    check_rows (rows, COUNT (rows));
}

static void size_is_limited_exactly (void **state)
{
    (void) state;
    char json[65537];
    memset (json, ' ', sizeof json);
    json[0] = '1';
    hws_json_fault_t fault;

    assert_int_equal (check (json, 65536, &fault), 0);
    assert_int_equal (check (json, 65537, &fault), HWS_EMALFORMED);

    assert_string_equal (fault.text, "the text is too long");
}

static void every_truncation_is_refused (void **state)
{
    (void) state;
    static const char json[] =
        "{\"a\":[1.5e3,true,null,\"\\ud83d\\ude00\xc3\xbc\"],\"b\":{\"c\":-1}}";
    hws_json_fault_t fault;
    assert_int_equal (check (LITERAL (json), &fault), 0);

    for (size_t size = 0; size < sizeof json - 1; size++) {
        assert_int_equal (check (json, size, &fault), HWS_EMALFORMED);
        assert_true (fault.offset <= size);
    }
}

static void thousands_of_members_are_checked_for_duplicates (void **state)
{
    (void) state;
    enum { MEMBERS = 6000 };
    char *const json = malloc (MEMBERS * 10 + 20);
    size_t size = 0;
    for (int i = 0; i < MEMBERS; i++) {
        size += (size_t) sprintf (json + size, "%c\"%x\":0", i ? ',' : '{', i * 7919 % MEMBERS);
    }
    hws_json_fault_t fault;

    json[size] = '}';
    const int rc = check (json, size + 1, &fault);
    const int rc_twice = check (json, size + (size_t) sprintf (json + size, ",\"abc\":0}"), &fault);

    free (json);
    assert_int_equal (rc, 0);
    assert_int_equal (rc_twice, HWS_EMALFORMED);
    assert_int_equal (fault.offset, size + 1);
}

/*  Random texts of the bytes that JSON is made of, most of them nearly right.  */
static size_t make_text (hws_random_t *random, char *text, size_t room)
{
    static const char *const pieces[] = {
        "{",           "}",  "[",    "]",    ",",        ":",    "\"a\"", "\"b",     "\"", "1",
        "-2.5e1",      " ",  "null", "true", "\\",       "\xc3", "{}",    "\"a\":1", "[]", "0",
        "\"\\u0041\"", "00", "\"\"", "\n",   "\xc3\xbc", "\1",   "e",     "."};
    size_t size = 0;
    for (size_t i = hws_random_below (random, 12) + 1; i > 0; i--) {
        const char *const piece = pieces[hws_random_below (random, COUNT (pieces))];
        if (size + strlen (piece) < room) {
            memcpy (text + size, piece, strlen (piece));
            size += strlen (piece);
        }
    }
    text[size] = '\0';
    return size;
}

static void cjson_parses_whatever_passes (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    size_t passed = 0;
    for (size_t i = 0; i < test_scaled (300000); i++) {
        char text[256];
        const size_t size = make_text (&random, text, sizeof text);
        hws_json_fault_t fault;
        if (check (text, size, &fault) != 0) {
            continue;
        }
        passed++;

        cJSON *const tree = cJSON_ParseWithLengthOpts (text, size + 1, NULL, 1);

        if (tree == NULL) {
            fail_msg ("cJSON refuses: %s", text);
        }
        cJSON_Delete (tree);
    }

    assert_true (passed > test_scaled (300000) / 100);
}

/*  ---- Writing ---- */

static void writer_places_commas_and_escapes (void **state)
{
    (void) state;
    char buffer[256];
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, buffer, sizeof buffer);

    hws_json_open (&writer, '{');
    hws_json_put_name (&writer, "a");
    hws_json_open (&writer, '[');
    hws_json_put_number (&writer, 0);
    hws_json_put_decimal (&writer, UINT64_MAX);
    hws_json_open (&writer, '{');
    hws_json_close (&writer, '}');
    hws_json_put_bool (&writer, false);
    hws_json_put_null (&writer);
    hws_json_close (&writer, ']');
    hws_json_put_name (&writer, "b");
    hws_json_put_text (&writer, hws_bytes (LITERAL ("\"\\\b\f\n\r\t\0\x1f\x7f\xc3\xbc/")));
    hws_json_close (&writer, '}');

    static const char expected[] = "{\"a\":[0,\"18446744073709551615\",{},false,null],"
                                   "\"b\":\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\xc3\xbc/\"}";
    assert_false (writer.is_full);
    assert_int_equal (writer.used, sizeof expected - 1);
    assert_memory_equal (buffer, expected, sizeof expected - 1);
}

static void writer_replaces_what_is_not_utf8 (void **state)
{
    (void) state;
    char buffer[16];
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, buffer, sizeof buffer);

    hws_json_put_text (&writer, hws_bytes_of_text ("a\xff\xc3(\xe2\x82"));

    assert_int_equal (writer.used, 8);
    assert_memory_equal (buffer,
                         "\"a?"
                         "?(?"
                         "?\"",
                         8);
}

static void writer_stops_at_the_end_of_the_buffer (void **state)
{
    (void) state;
    for (size_t size = 0; size < 12; size++) {
        char buffer[12];
        memset (buffer, '#', sizeof buffer);
        hws_json_writer_t writer;
        hws_json_writer_init (&writer, buffer, size);

        hws_json_open (&writer, '[');
        hws_json_put_decimal (&writer, 12345);
        hws_json_put_number (&writer, 1);
        hws_json_close (&writer, ']');

        assert_int_equal (writer.is_full, size < 11);
        assert_true (writer.used <= size);
        assert_int_equal (buffer[size], '#');
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (json_of_every_kind_is_taken),
        cmocka_unit_test (what_cjson_lets_pass_is_refused),
        cmocka_unit_test (what_is_no_json_is_refused_where_it_goes_wrong),
        cmocka_unit_test (size_is_limited_exactly),
        cmocka_unit_test (every_truncation_is_refused),
        cmocka_unit_test (thousands_of_members_are_checked_for_duplicates),
        cmocka_unit_test (cjson_parses_whatever_passes),
        cmocka_unit_test (writer_places_commas_and_escapes),
        cmocka_unit_test (writer_replaces_what_is_not_utf8),
        cmocka_unit_test (writer_stops_at_the_end_of_the_buffer),
    };
    return cmocka_run_group_tests_name ("json", tests, NULL, NULL);
}
