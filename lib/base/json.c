#include "base/json.h"

#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"

#include <stdlib.h>

#define END (-1) /* what peek gives behind the last byte */

/*  A member's name, to be compared with the others of its object.  */
typedef struct {
    hws_bytes_t name; /* between the quotes, escapes as written */
    size_t object;    /* number of the object that it stands in */
} member_t;

typedef struct {
    hws_bytes_t json;
    size_t at;              /* offset of the next byte */
    size_t depth;           /* arrays and objects that are open */
    size_t depth_max;       /* and may be */
    size_t object_count;    /* objects begun so far */
    member_t *members;      /* of all objects */
    size_t member_count;    /* used of them */
    size_t member_capacity; /* allocated */
    hws_json_fault_t *fault;
} scan_t;

static int fail (scan_t *scan, size_t offset, const char *text)
{
    *scan->fault = (hws_json_fault_t){.offset = offset, .text = text};
    return HWS_EMALFORMED;
}

static int peek (const scan_t *scan)
{
    return scan->at < scan->json.size ? scan->json.data[scan->at] : END;
}

static bool skip_char (scan_t *scan, char expected)
{
    if (peek (scan) != expected) {
        return false;
    }
    scan->at++;
    return true;
}

static void skip_space (scan_t *scan)
{
    while (peek (scan) == ' ' || peek (scan) == '\t' || peek (scan) == '\n' ||
           peek (scan) == '\r') {
        scan->at++;
    }
}

/*  ---- Strings ---- */

/*  Takes four hexadecimal digits; returns their value or -1.  */
static int32_t take_hex4 (hws_cursor_t *cursor)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = cursor->left > 0 ? hws_hex_digit (hws_cursor_u8 (cursor)) : -1;
        if (digit < 0) {
            return -1;
        }
        value = value << 4 | digit;
    }
    return value;
}

/*  Takes the rest of a \u escape, with the second one of a surrogate pair; returns
 *  the code point or -1.  */
static int32_t take_unicode_escape (hws_cursor_t *cursor)
{
    const int32_t high = take_hex4 (cursor);
    if (high < 0xd800 || high > 0xdfff) {
        return high;
    }
    if (high > 0xdbff || hws_cursor_u8 (cursor) != '\\' || hws_cursor_u8 (cursor) != 'u') {
        return -1;
    }
    const int32_t low = take_hex4 (cursor);
    if (low < 0xdc00 || low > 0xdfff) {
        return -1;
    }
    return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/*  Takes what follows a backslash; returns the code point or -1.  */
static int32_t take_escape (hws_cursor_t *cursor)
{
    switch (hws_cursor_u8 (cursor)) {
    case '"':
        return '"';
    case '\\':
        return '\\';
    case '/':
        return '/';
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        return take_unicode_escape (cursor);
    default:
        return -1;
    }
}

/*  Scans a string from its opening quote and gives what is between the quotes.  */
static int scan_string (scan_t *scan, hws_bytes_t *content)
{
    const size_t begin = ++scan->at;
    hws_cursor_t cursor = {.at = scan->json.data + begin, .left = scan->json.size - begin};
    for (;;) {
        const size_t at = scan->json.size - cursor.left;
        if (cursor.left == 0) {
            return fail (scan, at, "a string does not end");
        }
        uint32_t code_point;
        if (hws_utf8_next (&cursor, &code_point) < 0) {
            return fail (scan, at, "a string is not valid UTF-8");
        }
        if (code_point == '"') {
            *content = hws_bytes (scan->json.data + begin, at - begin);
            scan->at = at + 1;
            return 0;
        }
        if (code_point < 0x20) {
            return fail (scan, at, "a control character in a string must be escaped");
        }
        if (code_point == '\\') {
            const int32_t escaped = take_escape (&cursor);
            if (escaped < 0) {
                return fail (scan, at, "an escape in a string is not valid");
            }
            if (escaped == 0) {
                return fail (scan, at, "a string contains NUL");
            }
        }
    }
}

/*  The next character of a string that has been scanned, or END.  */
static int32_t next_char (hws_cursor_t *cursor)
{
    uint32_t code_point;
    if (hws_utf8_next (cursor, &code_point) <= 0) {
        return END;
    }
    return code_point == '\\' ? take_escape (cursor) : (int32_t) code_point;
}

/*  ---- Numbers and words ---- */

static bool is_digit (int byte)
{
    return byte >= '0' && byte <= '9';
}

/*  Skips digits; returns whether there was one.  */
static bool skip_digits (scan_t *scan)
{
    const size_t begin = scan->at;
    while (is_digit (peek (scan))) {
        scan->at++;
    }
    return scan->at > begin;
}

static int scan_number (scan_t *scan)
{
    const size_t begin = scan->at;
    skip_char (scan, '-');
    if (skip_char (scan, '0')) {
        if (is_digit (peek (scan))) {
            return fail (scan, begin, "a number may not begin with 0");
        }
    } else if (!skip_digits (scan)) {
        return fail (scan, scan->at, "a digit is expected");
    }
    if (skip_char (scan, '.') && !skip_digits (scan)) {
        return fail (scan, scan->at, "a digit is expected after the point");
    }
    if (skip_char (scan, 'e') || skip_char (scan, 'E')) {
        if (!skip_char (scan, '+')) {
            skip_char (scan, '-');
        }
        if (!skip_digits (scan)) {
            return fail (scan, scan->at, "a digit is expected in the exponent");
        }
    }
    if (scan->at - begin > HWS_JSON_NUMBER_SIZE_MAX) {
        return fail (scan, begin, "a number has more than 63 characters");
    }
    return 0;
}

static int scan_word (scan_t *scan, const char *word)
{
    const size_t begin = scan->at;
    for (const char *expected = word; *expected; expected++) {
        if (!skip_char (scan, *expected)) {
            return fail (scan, begin, "a value is expected");
        }
    }
    return 0;
}

/*  ---- Arrays and objects ---- */

static int scan_value (scan_t *scan);

static int scan_items (scan_t *scan)
{
    skip_space (scan);
    if (skip_char (scan, ']')) {
        return 0;
    }
    for (;;) {
        const int rc = scan_value (scan);
        if (rc != 0) {
            return rc;
        }
        skip_space (scan);
        if (skip_char (scan, ']')) {
            return 0;
        }
        if (!skip_char (scan, ',')) {
            return fail (scan, scan->at, "a comma or ] is expected");
        }
    }
}

static int remember (scan_t *scan, hws_bytes_t name, size_t object)
{
    if (scan->member_count == scan->member_capacity) {
        const size_t capacity = scan->member_capacity ? 2 * scan->member_capacity : 32;
        member_t *const members = realloc (scan->members, capacity * sizeof *members);
        if (members == NULL) {
            return HWS_ENO_MEMORY;
        }
        scan->members = members;
        scan->member_capacity = capacity;
    }
    scan->members[scan->member_count++] = (member_t){.name = name, .object = object};
    return 0;
}

static int scan_member (scan_t *scan, size_t object)
{
    skip_space (scan);
    if (peek (scan) != '"') {
        return fail (scan, scan->at, "a member's name in quotes is expected");
    }
    hws_bytes_t name;
    int rc = scan_string (scan, &name);
    if (rc == 0) {
        rc = remember (scan, name, object);
    }
    if (rc != 0) {
        return rc;
    }
    skip_space (scan);
    if (!skip_char (scan, ':')) {
        return fail (scan, scan->at, "a colon is expected");
    }
    return scan_value (scan);
}

static int scan_members (scan_t *scan)
{
    const size_t object = scan->object_count++;
    skip_space (scan);
    if (skip_char (scan, '}')) {
        return 0;
    }
    for (;;) {
        const int rc = scan_member (scan, object);
        if (rc != 0) {
            return rc;
        }
        skip_space (scan);
        if (skip_char (scan, '}')) {
            return 0;
        }
        if (!skip_char (scan, ',')) {
            return fail (scan, scan->at, "a comma or } is expected");
        }
    }
}

static int scan_container (scan_t *scan)
{
    if (scan->depth == scan->depth_max) {
        return fail (scan, scan->at, "too many arrays and objects within each other");
    }
    scan->depth++;
    const bool is_object = peek (scan) == '{';
    scan->at++;
    const int rc = is_object ? scan_members (scan) : scan_items (scan);
    scan->depth--;
    return rc;
}

static int scan_value (scan_t *scan)
{
    skip_space (scan);
    hws_bytes_t content;
    switch (peek (scan)) {
    case '{':
    case '[':
        return scan_container (scan);
    case '"':
        return scan_string (scan, &content);
    case 't':
        return scan_word (scan, "true");
    case 'f':
        return scan_word (scan, "false");
    case 'n':
        return scan_word (scan, "null");
    case END:
        return fail (scan, scan->at, "the text ends where a value is expected");
    default:
        if (peek (scan) == '-' || is_digit (peek (scan))) {
            return scan_number (scan);
        }
        return fail (scan, scan->at, "a value is expected");
    }
}

/*  ---- Duplicates ---- */

/*  Compares what the names mean, so that "a" and "\u0061" are the same.  */
static int compare_names (hws_bytes_t a, hws_bytes_t b)
{
    hws_cursor_t left = hws_cursor (a);
    hws_cursor_t right = hws_cursor (b);
    for (;;) {
        const int32_t x = next_char (&left);
        const int32_t y = next_char (&right);
        if (x != y) {
            return x < y ? -1 : 1;
        }
        if (x == END) {
            return 0;
        }
    }
}

static int compare_members (const void *a, const void *b)
{
    const member_t *const left = a;
    const member_t *const right = b;
    if (left->object != right->object) {
        return left->object < right->object ? -1 : 1;
    }
    const int order = compare_names (left->name, right->name);
    if (order != 0) {
        return order;
    }
    return left->name.data < right->name.data ? -1 : left->name.data > right->name.data;
}

static bool are_same_member (const member_t *a, const member_t *b)
{
    return a->object == b->object && compare_names (a->name, b->name) == 0;
}

/*  Sorting is what keeps ten thousand members from costing a second.  */
static int check_duplicates (scan_t *scan)
{
    if (scan->member_count < 2) {
        return 0;
    }
    qsort (scan->members, scan->member_count, sizeof *scan->members, compare_members);
    const uint8_t *first = NULL;
    for (size_t i = 1; i < scan->member_count; i++) {
        const uint8_t *const name = scan->members[i].name.data;
        if (are_same_member (&scan->members[i - 1], &scan->members[i]) &&
            (first == NULL || name < first)) {
            first = name;
        }
    }
    if (first == NULL) {
        return 0;
    }
    return fail (scan, (size_t) (first - scan->json.data) - 1, "a member's name comes twice");
}

int hws_json_check (hws_bytes_t json, hws_json_limits_t limits, hws_json_fault_t *fault)
{
    scan_t scan = {.json = json, .depth_max = limits.depth_max, .fault = fault};
    if (json.size > limits.size_max) {
        return fail (&scan, limits.size_max, "the text is too long");
    }
    if (json.size >= 3 && memcmp (json.data, "\xef\xbb\xbf", 3) == 0) {
        return fail (&scan, 0, "a byte order mark is not allowed");
    }
    int rc = scan_value (&scan);
    if (rc == 0) {
        skip_space (&scan);
        if (peek (&scan) != END) {
            rc = fail (&scan, scan.at, "nothing may follow the value");
        }
    }
    if (rc == 0) {
        rc = check_duplicates (&scan);
    }
    free (scan.members);
    return rc;
}
