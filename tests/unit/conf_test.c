/*  Strict settings: every way in which a file or an option can be wrong, with the
 *  line that the user sees, and what becomes of good ones.
 */
#include "conf/conf.h"
#include "conf/near.h"
#include "conf/number.h"
#include "proto/control.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define COUNT(array)   (sizeof array / sizeof *array)
#define LITERAL(bytes) bytes, sizeof bytes - 1

/*  ---- A program of every kind of field ---- */

typedef struct {
    bool flag;
    uint64_t number;
    uint64_t size;
    uint64_t length_ms;
    hws_optional_t limit;
    hws_optional_t chosen; /* by somebody else when absent */
    int color;
    char *name;
    char *label;
    hws_texts_t list;
    hws_texts_t operands;
} values_t;

static const char *const s_colors[] = {"red", "green", "blue", NULL};

static bool check_no_x (hws_bytes_t text, char *why, size_t size)
{
    if (text.size > 0 && text.data[0] == 'x') {
        snprintf (why, size, "must not begin with x");
        return false;
    }
    return true;
}

#define AT(member) offsetof (values_t, member)

static const hws_field_t s_fields[] = {
    {.key = "flag",
     .type = HWS_FIELD_FLAG,
     .offset = AT (flag),
     .preset = "false",
     .option = {"flag", 'f', NULL},
     .help = "a flag"},
    {.key = "group.number",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (number),
     .preset = "7",
     .min = 1,
     .max = HWS_INTEGER_MAX,
     .option = {"number", 'n', "N"},
     .help = "a number"},
    {.key = "group.size_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (size),
     .preset = "4K",
     .min = 1024,
     .max = 1048576,
     .option = {"size", 0, "SIZE"},
     .help = "a size"},
    {.key = "group.length_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (length_ms),
     .preset = "2s",
     .min = 100,
     .max = 60000,
     .option = {"length", 0, "DURATION"},
     .help = "a length"},
    {.key = "limit",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limit),
     .is_nullable = true,
     .preset = "none",
     .max = 9,
     .option = {"limit", 0, "N"},
     .help = "a limit"},
    {.key = "chosen",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (chosen),
     .max = 9,
     .option = {"chosen", 0, "N"},
     .help = "chosen"},
    {.key = "color",
     .type = HWS_FIELD_WORD,
     .offset = AT (color),
     .preset = "green",
     .words = s_colors,
     .option = {"color", 0, "COLOR"},
     .help = "a color"},
    {.key = "name",
     .type = HWS_FIELD_TEXT,
     .offset = AT (name),
     .is_required = true,
     .check = check_no_x,
     .environment = "TEST_NAME",
     .option = {"name", 0, "NAME"},
     .help = "a name"},
    {.key = "label",
     .type = HWS_FIELD_TEXT,
     .offset = AT (label),
     .is_nullable = true,
     .option = {"label", 0, "LABEL"},
     .help = "a label"},
    {.key = "list",
     .type = HWS_FIELD_LIST,
     .offset = AT (list),
     .preset = "one",
     .min = 1,
     .max = 3,
     .check = check_no_x,
     .option = {"list", 0, "TEXT"},
     .help = "a list"},
    {.type = HWS_FIELD_OPERANDS, .offset = AT (operands), .max = 2},
};

static const hws_alias_t s_aliases[] = {
    {.option = {"bluer", 0, NULL}, .key = "color", .step = 1, .help = "more"},
    {.option = {"red", 0, NULL}, .key = "color", .value = "red", .help = "red"},
};

static int check_values (hws_conf_t *conf, const void *pointer)
{
    const values_t *const values = pointer;
    if (values->number > values->size) {
        return hws_conf_blame (conf, "group.number", "must be at most the size, %llu",
                               (unsigned long long) values->size);
    }
    return 0;
}

static const hws_program_t s_program = {
    .name = "test",
    .summary = "A test.",
    .operands = "[FILE]...",
    .fields = s_fields,
    .field_count = COUNT (s_fields),
    .aliases = s_aliases,
    .alias_count = COUNT (s_aliases),
    .values_size = sizeof (values_t),
    .check = check_values,
};

static hws_conf_t *new_conf (void)
{
    hws_conf_t *conf;
    assert_int_equal (hws_conf_new (&conf, &s_program), 0);
    return conf;
}

/*  Loads bytes of the exact size, so that the sanitizers see a read beyond them.  */
static int load (hws_conf_t *conf, const char *json, size_t size)
{
    uint8_t *const copy = malloc (size + (size == 0));
    memcpy (copy, json, size);
    const int rc = hws_conf_load (conf, "f", hws_bytes (copy, size));
    free (copy);
    return rc;
}

static void assert_refused (const char *json, size_t size, const char *line)
{
    hws_conf_t *conf = new_conf ();

    const int rc = load (conf, json, size);

    if (rc != HWS_EINVALID || strcmp (hws_conf_error (conf), line) != 0) {
        fail_msg ("%s: %d, \"%s\" instead of \"%s\"", json, rc, hws_conf_error (conf), line);
    }
    hws_conf_destroy (&conf);
}

static int set (hws_conf_t *conf, const char *key, const char *text)
{
    return hws_conf_set (conf, hws_program_field (&s_program, key), HWS_SOURCE_COMMAND_LINE, text);
}

typedef struct {
    const char *json;
    size_t size;
    const char *line;
} refused_t;

static void assert_all_refused (const refused_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_refused (rows[i].json, rows[i].size, rows[i].line);
    }
}

/*  ---- Files ---- */

static void presets_are_the_values_of_an_empty_file (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();

    assert_int_equal (load (conf, LITERAL (" {}\n")), 0);

    const values_t *const values = hws_conf_values (conf);
    assert_false (values->flag);
    assert_true (values->number == 7 && values->size == 4096 && values->length_ms == 2000);
    assert_int_equal (values->limit.state, HWS_NULL);
    assert_int_equal (values->chosen.state, HWS_ABSENT);
    assert_int_equal (values->color, 1);
    assert_null (values->name);
    assert_null (values->label);
    assert_int_equal (values->list.count, 1);
    assert_string_equal (values->list.text[0], "one");
    assert_int_equal (hws_conf_source (conf, "group.number"), HWS_SOURCE_DEFAULT);
    hws_conf_destroy (&conf);
}

static void a_file_sets_every_kind_of_field (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();

    const int rc = load (
        conf, LITERAL ("{\"$schema\": \"x\", \"flag\": true, \"group\": {\"number\": 8, "
                       "\"size_bytes\": 2048, \"length_ms\": 100}, \"limit\": 3, \"chosen\": 0, "
                       "\"color\": \"blue\", \"name\": \"n\\u00e9\", \"label\": \"l\", "
                       "\"list\": [\"a\", \"b\"]}"));

    assert_string_equal (hws_conf_error (conf), "");
    assert_int_equal (rc, 0);
    const values_t *const values = hws_conf_values (conf);
    assert_true (values->flag);
    assert_true (values->number == 8 && values->size == 2048 && values->length_ms == 100);
    assert_true (values->limit.state == HWS_VALUE && values->limit.value == 3);
    assert_true (values->chosen.state == HWS_VALUE && values->chosen.value == 0);
    assert_int_equal (values->color, 2);
    assert_string_equal (values->name, "n\xc3\xa9");
    assert_string_equal (values->label, "l");
    assert_int_equal (values->list.count, 2);
    assert_string_equal (values->list.text[1], "b");
    assert_int_equal (hws_conf_source (conf, "list"), HWS_SOURCE_FILE);
    hws_conf_destroy (&conf);
}

static void null_is_taken_where_it_means_something (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();
    assert_int_equal (set (conf, "limit", "5"), 0);
    assert_int_equal (set (conf, "label", "l"), 0);

    assert_int_equal (load (conf, LITERAL ("{\"limit\": null, \"label\": null}")), 0);

    const values_t *const values = hws_conf_values (conf);
    assert_int_equal (values->limit.state, HWS_NULL);
    assert_null (values->label);
    hws_conf_destroy (&conf);
}

static void what_is_no_json_is_refused_with_its_place (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL (""), "f:1:1: the text ends where a value is expected"},
        {LITERAL ("{} x"), "f:1:4: nothing may follow the value"},
        {LITERAL ("{\n\n  \"flag\": true\n} {}"), "f:4:3: nothing may follow the value"},
        {LITERAL ("\xef\xbb\xbf{}"), "f:1:1: a byte order mark is not allowed"},
        {LITERAL ("{\"group\": {\"number\": 007}}"),
         "f:1:22: group.number: a number may not begin with 0"},
        {LITERAL ("{\"group\": {\"number\": 0x10}}"),
         "f:1:23: group.number: a comma or } is expected"},
        {LITERAL ("{\"flag\": truefoo}"), "f:1:14: flag: a comma or } is expected"},
        {LITERAL ("{\"flag\": True}"), "f:1:10: flag: a value is expected"},
        {LITERAL ("{\"label\": \"a\nb\"}"),
         "f:1:13: label: a control character in a string must be escaped"},
        {LITERAL ("{\"label\": \"a\\u0000b\"}"), "f:1:13: label: a string contains NUL"},
        {LITERAL ("{\"label\": \"\xff\"}"), "f:1:12: label: a string is not valid UTF-8"},
        {LITERAL ("{\"label\": \"\\ud800\"}"), "f:1:12: label: an escape in a string is not valid"},
        {LITERAL ("{\"label\": \"abc"), "f:1:15: label: a string does not end"},
        {LITERAL ("{\"la"), "f:1:5: a string does not end"},
        {LITERAL ("{\"list\": [\"a\", ]}"), "f:1:16: list[1]: a value is expected"},
        {LITERAL ("{flag: true}"), "f:1:2: a member's name in quotes is expected"},
        {LITERAL ("{\"flag\" true}"), "f:1:9: flag: a colon is expected"},
        {LITERAL ("{\"\xc3\xa9\": 1, \"flag\": x}"), "f:1:18: flag: a value is expected"},
        {LITERAL ("{\0}"), "f:1:2: a member's name in quotes is expected"},
    };
    assert_all_refused (rows, COUNT (rows));
}

/*  B80.  */
static void a_trailing_comma_is_refused_with_its_line (void **state)
{
    (void) state;
    assert_refused (
        LITERAL ("{\n  \"group\": {\n    \"number\": 1,\n    \"size_bytes\": 2048\n  },\n"
                 "  \"flag\": true,\n}\n"),
        "f:7:1: a member's name in quotes is expected");
}

static void a_key_that_comes_twice_is_refused (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("{\"flag\": true,\n \"flag\": true}"),
         "f:2:2: flag: a member's name comes twice"},
        {LITERAL ("{\"group\": {\"number\": 1, \"n\\u0075mber\": 2}}"),
         "f:1:25: group.n\\u0075mber: a member's name comes twice"},
    };
    assert_all_refused (rows, COUNT (rows));
}

/*  B79.  */
static void an_unknown_key_is_refused_with_a_suggestion (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("{\"flga\": 5}"), "f:1:2: flga: unknown key; did you mean \"flag\"?"},
        {LITERAL ("{\"lenght_ms\": 5}"),
         "f:1:2: lenght_ms: unknown key; did you mean \"group.length_ms\"?"},
        {LITERAL ("{\"gruop\": {}}"), "f:1:2: gruop: unknown key; did you mean \"group\"?"},
        {LITERAL ("{\"group\": {\"limit\": 1}}"),
         "f:1:12: group.limit: unknown key; did you mean \"limit\"?"},
        {LITERAL ("{\"Flag\": true}"), "f:1:2: Flag: unknown key; did you mean \"flag\"?"},
        {LITERAL ("{\"elephant\": 5}"), "f:1:2: elephant: unknown key"},
        {LITERAL ("{\"group.number\": 5}"),
         "f:1:2: group.number: unknown key; groups are objects, not dots"},
        {LITERAL ("{\"\": 5}"), "f:1:2: unknown key"},
        {LITERAL ("{\"group\": {\"$schema\": \"x\"}}"), "f:1:12: group.$schema: unknown key"},
        {LITERAL ("{\"operands\": []}"), "f:1:2: operands: unknown key"},
    };
    assert_all_refused (rows, COUNT (rows));
}

static void a_very_long_key_is_refused (void **state)
{
    (void) state;
    char json[5000];
    memset (json, 'k', sizeof json);
    memcpy (json, "{\"", 2);
    memcpy (json + sizeof json - 4, "\":1}", 4);
    hws_conf_t *conf = new_conf ();

    assert_int_equal (load (conf, json, sizeof json), HWS_EINVALID);

    assert_non_null (strstr (hws_conf_error (conf), ": unknown key"));
    hws_conf_destroy (&conf);
}

static void a_value_of_the_wrong_type_is_refused (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("[]"), "f:1:1: must be an object, not a list"},
        {LITERAL ("{\"flag\": 1}"), "f:1:10: flag: must be true or false, not a number"},
        {LITERAL ("{\"flag\": null}"), "f:1:10: flag: must be true or false, not null"},
        {LITERAL ("{\"group\": 1}"), "f:1:11: group: must be an object, not a number"},
        {LITERAL ("{\"group\": {\"number\": \"5\"}}"),
         "f:1:22: group.number: must be a whole number, not a text"},
        {LITERAL ("{\"group\": {\"number\": null}}"),
         "f:1:22: group.number: must be a whole number, not null"},
        {LITERAL ("{\"limit\": true}"), "f:1:11: limit: must be a whole number or null, not true"},
        {LITERAL ("{\"chosen\": null}"), "f:1:12: chosen: must be a whole number, not null"},
        {LITERAL ("{\"label\": {}}"), "f:1:11: label: must be a text or null, not an object"},
        {LITERAL ("{\"color\": 2}"), "f:1:11: color: must be a text, not a number"},
        {LITERAL ("{\"list\": \"a\"}"), "f:1:10: list: must be a list of texts, not a text"},
        {LITERAL ("{\"list\": [\"a\", [\"]\"], 3]}"),
         "f:1:16: list[1]: must be a text, not a list"},
        {LITERAL ("{\"$schema\": 1}"), "f:1:13: $schema: must be a text, not a number"},
        {LITERAL ("{\"$sources\": []}"), "f:1:14: $sources: must be an object, not a list"},
    };
    assert_all_refused (rows, COUNT (rows));
}

static void a_number_out_of_range_or_not_whole_is_refused (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("{\"group\": {\"length_ms\": 99}}"),
         "f:1:25: group.length_ms: must be from 100 to 60000"},
        {LITERAL ("{\"group\": {\"length_ms\": 60001}}"),
         "f:1:25: group.length_ms: must be from 100 to 60000"},
        {LITERAL ("{\"limit\": -1}"), "f:1:11: limit: must be from 0 to 9, or null"},
        {LITERAL ("{\"limit\": -0}"), "f:1:11: limit: must be from 0 to 9, or null"},
        {LITERAL ("{\"limit\": 1.0}"),
         "f:1:11: limit: must be a whole number, without point and exponent"},
        {LITERAL ("{\"limit\": 1e0}"),
         "f:1:11: limit: must be a whole number, without point and exponent"},
        {LITERAL ("{\"limit\": 1e400}"),
         "f:1:11: limit: must be a whole number, without point and exponent"},
        {LITERAL ("{\"limit\": 99999999999999999999999999}"),
         "f:1:11: limit: must be from 0 to 9, or null"},
    };
    assert_all_refused (rows, COUNT (rows));
}

static void both_ends_of_a_range_are_taken (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();

    assert_int_equal (load (conf, LITERAL ("{\"group\":{\"length_ms\":100},\"limit\":0}")), 0);
    assert_int_equal (load (conf, LITERAL ("{\"group\":{\"length_ms\":60000},\"limit\":9}")), 0);

    const values_t *const values = hws_conf_values (conf);
    assert_true (values->length_ms == 60000 && values->limit.value == 9);
    hws_conf_destroy (&conf);
}

/*  B76.  */
static void large_numbers_are_exact_or_refused (void **state)
{
    (void) state;
    static const char *const exact[] = {"6000000000000001", "1234567890123460", "9007199254740991"};
    for (size_t i = 0; i < COUNT (exact); i++) {
        char json[64], expected[64];
        snprintf (json, sizeof json, "{\"group\": {\"number\": %s}}", exact[i]);
        snprintf (expected, sizeof expected, "\"number\": %s,", exact[i]);
        hws_conf_t *conf = new_conf ();

        assert_int_equal (load (conf, json, strlen (json)), 0);

        char *const printed = hws_conf_print (conf);
        assert_non_null (strstr (printed, expected));
        free (printed);
        hws_conf_destroy (&conf);
    }
    static const refused_t rows[] = {
        {LITERAL ("{\"group\": {\"number\": 9007199254740993}}"),
         "f:1:22: group.number: must be from 1 to 9007199254740991"},
        {LITERAL ("{\"group\": {\"number\": 18446744073709551615}}"),
         "f:1:22: group.number: must be from 1 to 9007199254740991"},
        {LITERAL ("{\"group\": {\"number\": 18446744073709551617}}"),
         "f:1:22: group.number: must be from 1 to 9007199254740991"},
    };
    assert_all_refused (rows, COUNT (rows));
}

static void texts_and_lists_are_checked (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("{\"name\": \"xa\"}"), "f:1:10: name: must not begin with x"},
        {LITERAL ("{\"list\": [\"a\",\n\"xb\"]}"), "f:2:1: list[1]: must not begin with x"},
        {LITERAL ("{\"list\": []}"), "f:1:10: list: must have from 1 to 3 texts"},
        {LITERAL ("{\"list\": [\"\",\"\",\"\",\"\"]}"),
         "f:1:10: list: must have from 1 to 3 texts"},
        {LITERAL ("{\"color\": \"gren\"}"),
         "f:1:11: color: must be one of red, green, blue; did you mean \"green\"?"},
        {LITERAL ("{\"color\": \"\"}"), "f:1:11: color: must be one of red, green, blue"},
        {LITERAL ("{\"color\": \"elephant\"}"), "f:1:11: color: must be one of red, green, blue"},
    };
    assert_all_refused (rows, COUNT (rows));
}

static void depth_is_limited_exactly (void **state)
{
    (void) state;
    char json[2 * HWS_CONF_DEPTH_MAX + 32] = "";
    strcat (json, "{\"$sources\":{\"a\":");
    const size_t used = strlen (json);
    memset (json + used, '[', HWS_CONF_DEPTH_MAX - 2);
    memset (json + used + HWS_CONF_DEPTH_MAX - 2, ']', HWS_CONF_DEPTH_MAX - 2);
    strcat (json, "}}");
    hws_conf_t *conf = new_conf ();

    assert_int_equal (load (conf, json, strlen (json)), 0);

    memmove (json + used + 1, json + used, strlen (json + used) + 1);
    assert_int_equal (load (conf, json, strlen (json)), HWS_EINVALID);
    assert_non_null (strstr (hws_conf_error (conf), "too many arrays and objects"));
    hws_conf_destroy (&conf);
}

static void size_is_limited_exactly (void **state)
{
    (void) state;
    char *const json = malloc (HWS_CONF_SIZE_MAX + 1);
    memset (json, ' ', HWS_CONF_SIZE_MAX + 1);
    memcpy (json, "{}", 2);
    hws_conf_t *conf = new_conf ();

    assert_int_equal (load (conf, json, HWS_CONF_SIZE_MAX), 0);

    assert_int_equal (load (conf, json, HWS_CONF_SIZE_MAX + 1), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "f:1:1048577: the text is too long");
    hws_conf_destroy (&conf);
    free (json);
}

static void an_error_is_one_line_whatever_is_in_it (void **state)
{
    (void) state;
    static const refused_t rows[] = {
        {LITERAL ("{\"\x7f\xc2\x85\": 1}"), "f:1:2: ???: unknown key"},
    };
    assert_all_refused (rows, COUNT (rows));
    hws_conf_t *conf = new_conf ();

    assert_int_equal (hws_conf_load (conf, "a\nb\xff", hws_bytes ("1", 1)), HWS_EINVALID);

    assert_string_equal (hws_conf_error (conf), "a?b?:1:1: must be an object, not a number");
    hws_conf_destroy (&conf);
}

static void every_truncation_of_a_file_is_refused (void **state)
{
    (void) state;
    static const char json[] = "{\"group\": {\"number\": 8, \"length_ms\": 500}, \"label\": "
                               "\"a\\\"\xc3\xa9\", \"list\": [\"a\", \"b\"], \"limit\": null}";
    for (size_t size = 0; size < sizeof json - 1; size++) {
        hws_conf_t *conf = new_conf ();
        assert_int_equal (load (conf, json, size), HWS_EINVALID);
        assert_memory_equal (hws_conf_error (conf), "f:1:", 4);
        hws_conf_destroy (&conf);
    }
}

/*  ---- Texts from options and the environment ---- */

static void assert_text_refused (const char *key, const char *text, const char *line)
{
    hws_conf_t *conf = new_conf ();

    const int rc = set (conf, key, text);

    if (rc != HWS_EINVALID || strcmp (hws_conf_error (conf), line) != 0) {
        fail_msg ("%s %s: %d, \"%s\" instead of \"%s\"", key, text, rc, hws_conf_error (conf),
                  line);
    }
    hws_conf_destroy (&conf);
}

static void an_option_is_refused_with_its_name (void **state)
{
    (void) state;
    assert_text_refused ("group.number", "0", "test: --number: must be from 1 to 9007199254740991");
    assert_text_refused ("group.number", "1K", "test: --number: must be a whole number");
    assert_text_refused ("group.size_bytes", "1023", "test: --size: must be from 1K to 1M");
    assert_text_refused ("group.length_ms", "61", "test: --length: must be from 100ms to 1m");
    assert_text_refused ("limit", "10", "test: --limit: must be from 0 to 9, or none");
    assert_text_refused ("group.length_ms", "none",
                         "test: --length: must be a duration such as 0.5, 500ms, 2s, 3m or 1h, in "
                         "whole milliseconds");
    assert_text_refused ("limit", "", "test: --limit: must be a whole number, or none");
    assert_text_refused ("limit", "-1", "test: --limit: must be a whole number, or none");
    assert_text_refused ("flag", "yes", "test: --flag: must be true or false");
    assert_text_refused ("color", "bleu",
                         "test: --color: must be one of red, green, blue; did you mean \"blue\"?");
    assert_text_refused ("name", "xn", "test: --name: must not begin with x");
}

static void a_variable_is_refused_with_its_name (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();

    const int rc =
        hws_conf_set (conf, hws_program_field (&s_program, "name"), HWS_SOURCE_ENVIRONMENT, "xn");

    assert_int_equal (rc, HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "test: TEST_NAME: must not begin with x");
    hws_conf_destroy (&conf);
}

static void the_first_option_of_a_list_replaces_the_file_and_more_are_added (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();
    assert_int_equal (load (conf, LITERAL ("{\"list\": [\"a\", \"b\"]}")), 0);

    assert_int_equal (set (conf, "list", "c"), 0);
    assert_int_equal (set (conf, "list", "d"), 0);

    const values_t *const values = hws_conf_values (conf);
    assert_int_equal (values->list.count, 2);
    assert_string_equal (values->list.text[0], "c");
    assert_string_equal (values->list.text[1], "d");
    assert_int_equal (set (conf, "list", "e"), 0);
    assert_int_equal (set (conf, "list", "f"), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "test: --list: comes more than 3 times");
    hws_conf_destroy (&conf);
}

static void aliases_set_a_value_or_step_through_words_to_their_end (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();
    const values_t *const values = hws_conf_values (conf);

    assert_int_equal (hws_conf_set_alias (conf, &s_aliases[0]), 0);
    assert_int_equal (values->color, 2);
    assert_int_equal (hws_conf_set_alias (conf, &s_aliases[0]), 0);
    assert_int_equal (values->color, 2);
    assert_int_equal (hws_conf_set_alias (conf, &s_aliases[1]), 0);
    assert_int_equal (values->color, 0);
    hws_conf_destroy (&conf);
}

static void a_rule_between_fields_blames_the_place_of_the_value (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();
    assert_int_equal (load (conf, LITERAL ("{\"group\":\n {\"number\": 5000}}")), 0);

    assert_int_equal (hws_conf_check (conf), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf),
                         "f:2:13: group.number: must be at most the size, 4096");
    assert_int_equal (set (conf, "group.number", "6000"), 0);
    assert_int_equal (hws_conf_check (conf), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "test: --number: must be at most the size, 4096");
    hws_conf_destroy (&conf);
}

static void a_required_field_is_asked_for_by_its_option (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();

    assert_int_equal (hws_conf_check_required (conf), HWS_EINVALID);
    assert_string_equal (hws_conf_error (conf), "test: --name must be given");

    assert_int_equal (set (conf, "name", "n"), 0);
    assert_int_equal (hws_conf_check_required (conf), 0);
    hws_conf_destroy (&conf);
}

/*  ---- Printing ---- */

static void what_is_printed_says_where_it_came_from_and_loads_again (void **state)
{
    (void) state;
    hws_conf_t *conf = new_conf ();
    assert_int_equal (load (conf, LITERAL ("{\"group\": {\"number\": 8}}")), 0);
    assert_int_equal (hws_conf_set (conf, hws_program_field (&s_program, "name"),
                                    HWS_SOURCE_ENVIRONMENT, "a \"b\"\\\t\xc3\xa9"),
                      0);
    assert_int_equal (set (conf, "group.length_ms", "0.5"), 0);

    char *const printed = hws_conf_print (conf);

    assert_string_equal (printed, "{\n"
                                  "    \"flag\": false,\n"
                                  "    \"group\": {\n"
                                  "        \"number\": 8,\n"
                                  "        \"size_bytes\": 4096,\n"
                                  "        \"length_ms\": 500\n"
                                  "    },\n"
                                  "    \"limit\": null,\n"
                                  "    \"color\": \"green\",\n"
                                  "    \"name\": \"a \\\"b\\\"\\\\\\u0009\xc3\xa9\",\n"
                                  "    \"label\": null,\n"
                                  "    \"list\": [\"one\"],\n"
                                  "    \"$sources\": {\n"
                                  "        \"flag\": \"default\",\n"
                                  "        \"group.number\": \"file f:1:22\",\n"
                                  "        \"group.size_bytes\": \"default\",\n"
                                  "        \"group.length_ms\": \"command line --length\",\n"
                                  "        \"limit\": \"default\",\n"
                                  "        \"chosen\": \"not set\",\n"
                                  "        \"color\": \"default\",\n"
                                  "        \"name\": \"environment TEST_NAME\",\n"
                                  "        \"label\": \"default\",\n"
                                  "        \"list\": \"default\"\n"
                                  "    }\n"
                                  "}\n");
    hws_conf_t *again = new_conf ();
    assert_int_equal (load (again, printed, strlen (printed)), 0);
    const values_t *const values = hws_conf_values (again);
    assert_string_equal (values->name, "a \"b\"\\\t\xc3\xa9");
    assert_int_equal (values->length_ms, 500);
    hws_conf_destroy (&again);
    free (printed);
    hws_conf_destroy (&conf);
}

static void help_names_every_option_and_default_within_79_columns (void **state)
{
    (void) state;

    char *const help = hws_program_help (&s_program);

    for (size_t i = 0; i < COUNT (s_fields); i++) {
        if (s_fields[i].option.name) {
            char option[64];
            snprintf (option, sizeof option, "--%s", s_fields[i].option.name);
            assert_non_null (strstr (help, option));
        }
    }
    assert_non_null (strstr (help, "  -n, --number N              a number (default 7)\n"));
    assert_non_null (strstr (help, "      --red "));
    assert_non_null (strstr (help, "      --print-config "));
    for (const char *line = help; *line; line += strcspn (line, "\n") + 1) {
        assert_true (strcspn (line, "\n") <= 79);
    }
    free (help);
}

/*  ---- Numbers and words ---- */

static uint64_t parsed (hws_field_type_t type, const char *text)
{
    uint64_t value = 12345;
    const int rc = hws_number_parse (type, hws_bytes_of_text (text), &value);
    if (rc != 0) {
        fail_msg ("%s: %d", text, rc);
    }
    return value;
}

static void durations_are_read_in_every_unit (void **state)
{
    (void) state;
    assert_true (parsed (HWS_FIELD_DURATION, "0") == 0);
    assert_true (parsed (HWS_FIELD_DURATION, "2") == 2000);
    assert_true (parsed (HWS_FIELD_DURATION, "0.5") == 500);
    assert_true (parsed (HWS_FIELD_DURATION, "500ms") == 500);
    assert_true (parsed (HWS_FIELD_DURATION, "2s") == 2000);
    assert_true (parsed (HWS_FIELD_DURATION, "1.5m") == 90000);
    assert_true (parsed (HWS_FIELD_DURATION, "1h") == 3600000);
    assert_true (parsed (HWS_FIELD_DURATION, "0.001") == 1);
    assert_true (parsed (HWS_FIELD_DURATION, "18446744073709551615ms") == UINT64_MAX);
}

static void sizes_are_powers_of_1024 (void **state)
{
    (void) state;
    assert_true (parsed (HWS_FIELD_SIZE, "4096") == 4096);
    assert_true (parsed (HWS_FIELD_SIZE, "64K") == 65536);
    assert_true (parsed (HWS_FIELD_SIZE, "16M") == 16777216);
    assert_true (parsed (HWS_FIELD_SIZE, "3G") == UINT64_C (3221225472));
}

static void what_is_no_number_is_malformed_or_too_large (void **state)
{
    (void) state;
    static const char *const malformed[] = {"",    "s",    "-1",  "+1",  " 1",   "1 ",
                                            "1 s", "1d",   ".5",  "1.",  "1.s",  "1,5",
                                            "1e3", "0x10", "5MS", "1ss", "1.5",  "0.0001",
                                            "1K",  "64k",  "nan", "inf", "1.5K", "1.0000000001s"};
    for (size_t i = 0; i < COUNT (malformed); i++) {
        uint64_t value = 7;
        const bool is_size_or_duration =
            strcmp (malformed[i], "1.5") == 0 || strcmp (malformed[i], "1K") == 0;
        const hws_field_type_t type = is_size_or_duration ? HWS_FIELD_INTEGER : HWS_FIELD_DURATION;
        assert_int_equal (hws_number_parse (type, hws_bytes_of_text (malformed[i]), &value),
                          HWS_EMALFORMED);
        assert_int_equal (value, 7);
    }
    uint64_t value = 7;
    assert_int_equal (
        hws_number_parse (HWS_FIELD_SIZE, hws_bytes_of_text ("18446744073709551616"), &value),
        HWS_ETOO_LARGE);
    assert_int_equal (hws_number_parse (HWS_FIELD_SIZE, hws_bytes_of_text ("17179869184G"), &value),
                      HWS_ETOO_LARGE);
    assert_int_equal (
        hws_number_parse (HWS_FIELD_DURATION, hws_bytes_of_text ("18446744073709551.616"), &value),
        HWS_ETOO_LARGE);
    assert_int_equal (value, 7);
}

static void numbers_are_printed_so_that_they_read_back (void **state)
{
    (void) state;
    static const struct {
        hws_field_type_t type;
        uint64_t value;
        const char *text;
    } rows[] = {
        {HWS_FIELD_DURATION, 0, "0ms"},
        {HWS_FIELD_DURATION, 1, "1ms"},
        {HWS_FIELD_DURATION, 1500, "1500ms"},
        {HWS_FIELD_DURATION, 2000, "2s"},
        {HWS_FIELD_DURATION, 60000, "1m"},
        {HWS_FIELD_DURATION, 86400000, "24h"},
        {HWS_FIELD_SIZE, 0, "0"},
        {HWS_FIELD_SIZE, 1023, "1023"},
        {HWS_FIELD_SIZE, 65536, "64K"},
        {HWS_FIELD_SIZE, 1 << 30, "1G"},
        {HWS_FIELD_INTEGER, UINT64_MAX, "18446744073709551615"},
    };
    for (size_t i = 0; i < COUNT (rows); i++) {
        char text[HWS_NUMBER_TEXT_SIZE];

        hws_number_print (rows[i].type, rows[i].value, text);

        assert_string_equal (text, rows[i].text);
        assert_true (parsed (rows[i].type, text) == rows[i].value);
    }
}

static void words_are_near_when_a_typing_error_explains_them (void **state)
{
    (void) state;
    assert_int_equal (hws_near_distance ("listen", "listen"), 0);
    assert_int_equal (hws_near_distance ("listne", "listen"), 1);
    assert_int_equal (hws_near_distance ("lsten", "listen"), 1);
    assert_int_equal (hws_near_distance ("heartbeat_intervall", "heartbeat_interval_ms"), 3);
    assert_int_equal (hws_near_distance ("a", "b"), HWS_NEAR_FAR);
    assert_int_equal (hws_near_distance ("", ""), 0);
    assert_int_equal (hws_near_distance ("format", "listen"), HWS_NEAR_FAR);
    char word[66];
    memset (word, 'w', 65);
    word[65] = '\0';
    assert_int_equal (hws_near_distance (word, word), HWS_NEAR_FAR);
    word[64] = '\0';
    assert_int_equal (hws_near_distance (word, word), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (presets_are_the_values_of_an_empty_file),
        cmocka_unit_test (a_file_sets_every_kind_of_field),
        cmocka_unit_test (null_is_taken_where_it_means_something),
        cmocka_unit_test (what_is_no_json_is_refused_with_its_place),
        cmocka_unit_test (a_trailing_comma_is_refused_with_its_line),
        cmocka_unit_test (a_key_that_comes_twice_is_refused),
        cmocka_unit_test (an_unknown_key_is_refused_with_a_suggestion),
        cmocka_unit_test (a_very_long_key_is_refused),
        cmocka_unit_test (a_value_of_the_wrong_type_is_refused),
        cmocka_unit_test (a_number_out_of_range_or_not_whole_is_refused),
        cmocka_unit_test (both_ends_of_a_range_are_taken),
        cmocka_unit_test (large_numbers_are_exact_or_refused),
        cmocka_unit_test (texts_and_lists_are_checked),
        cmocka_unit_test (depth_is_limited_exactly),
        cmocka_unit_test (size_is_limited_exactly),
        cmocka_unit_test (an_error_is_one_line_whatever_is_in_it),
        cmocka_unit_test (every_truncation_of_a_file_is_refused),
        cmocka_unit_test (an_option_is_refused_with_its_name),
        cmocka_unit_test (a_variable_is_refused_with_its_name),
        cmocka_unit_test (the_first_option_of_a_list_replaces_the_file_and_more_are_added),
        cmocka_unit_test (aliases_set_a_value_or_step_through_words_to_their_end),
        cmocka_unit_test (a_rule_between_fields_blames_the_place_of_the_value),
        cmocka_unit_test (a_required_field_is_asked_for_by_its_option),
        cmocka_unit_test (what_is_printed_says_where_it_came_from_and_loads_again),
        cmocka_unit_test (help_names_every_option_and_default_within_79_columns),
        cmocka_unit_test (durations_are_read_in_every_unit),
        cmocka_unit_test (sizes_are_powers_of_1024),
        cmocka_unit_test (what_is_no_number_is_malformed_or_too_large),
        cmocka_unit_test (numbers_are_printed_so_that_they_read_back),
        cmocka_unit_test (words_are_near_when_a_typing_error_explains_them),
    };
    return cmocka_run_group_tests_name ("conf", tests, NULL, NULL);
}
