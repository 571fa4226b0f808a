#include "conf/number.h"

#include "base/assert.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct {
    const char *word;
    uint64_t value; /* of one of it, in milliseconds or bytes */
} unit_t;

/*  Largest first; the last is what a bare number has.  */
static const unit_t s_durations[] = {
    {"h", 3600000}, {"m", 60000}, {"ms", 1}, {"s", 1000}, {"", 1000}};
static const unit_t s_sizes[] = {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"", 1}};
static const unit_t s_integers[] = {{"", 1}};

static const unit_t *units_of (hws_field_type_t type, size_t *count)
{
    if (type == HWS_FIELD_DURATION) {
        *count = sizeof s_durations / sizeof *s_durations;
        return s_durations;
    }
    if (type == HWS_FIELD_SIZE) {
        *count = sizeof s_sizes / sizeof *s_sizes;
        return s_sizes;
    }
    hws_assert (type == HWS_FIELD_INTEGER);
    *count = sizeof s_integers / sizeof *s_integers;
    return s_integers;
}

static bool is_digit (const hws_cursor_t *cursor)
{
    return cursor->left > 0 && *cursor->at >= '0' && *cursor->at <= '9';
}

/*  Takes digits into `value`; returns how many, or HWS_ETOO_LARGE.  */
static int take_digits (hws_cursor_t *cursor, uint64_t *value)
{
    int count = 0;
    *value = 0;
    for (; is_digit (cursor); count++) {
        const uint64_t digit = (uint64_t) (hws_cursor_u8 (cursor) - '0');
        if (*value > (UINT64_MAX - digit) / 10) {
            return HWS_ETOO_LARGE;
        }
        *value = *value * 10 + digit;
    }
    return count;
}

/*  Takes what follows the point of a duration: `numerator` / `denominator`.  */
static int take_fraction (hws_cursor_t *cursor, uint64_t *numerator, uint64_t *denominator)
{
    hws_cursor_u8 (cursor);
    const int count = take_digits (cursor, numerator);
    if (count < 1 || count > 9) {
        return HWS_EMALFORMED;
    }
    for (int i = 0; i < count; i++) {
        *denominator *= 10;
    }
    return 0;
}

int hws_number_parse (hws_field_type_t type, hws_bytes_t text, uint64_t *value)
{
    hws_cursor_t cursor = hws_cursor (text);
    uint64_t whole;
    const int count = take_digits (&cursor, &whole);
    if (count < 1) {
        return count < 0 ? count : HWS_EMALFORMED;
    }
    uint64_t numerator = 0, denominator = 1;
    if (type == HWS_FIELD_DURATION && cursor.left > 0 && *cursor.at == '.' &&
        take_fraction (&cursor, &numerator, &denominator) < 0) {
        return HWS_EMALFORMED;
    }

    const hws_bytes_t rest = hws_bytes (cursor.at, cursor.left);
    size_t unit_count;
    const unit_t *const units = units_of (type, &unit_count);
    for (size_t i = 0; i < unit_count; i++) {
        if (!hws_bytes_equal (rest, hws_bytes_of_text (units[i].word))) {
            continue;
        }
        const uint64_t part = numerator * units[i].value;
        if (part % denominator != 0) {
            return HWS_EMALFORMED;
        }
        if (whole > (UINT64_MAX - part / denominator) / units[i].value) {
            return HWS_ETOO_LARGE;
        }
        *value = whole * units[i].value + part / denominator;
        return 0;
    }
    return HWS_EMALFORMED;
}

void hws_number_print (hws_field_type_t type, uint64_t value, char text[HWS_NUMBER_TEXT_SIZE])
{
    size_t unit_count;
    const unit_t *const units = units_of (type, &unit_count);
    const unit_t *best = NULL;
    for (size_t i = 0; i < unit_count; i++) {
        const bool fits = value % units[i].value == 0 && (value > 0 || units[i].value == 1);
        if (fits && (best == NULL || units[i].value > best->value)) {
            best = &units[i];
        }
    }
    hws_assert (best != NULL);
    snprintf (text, HWS_NUMBER_TEXT_SIZE, "%" PRIu64 "%s", value / best->value, best->word);
}

const char *hws_number_description (hws_field_type_t type)
{
    if (type == HWS_FIELD_DURATION) {
        return "a duration such as 0.5, 500ms, 2s, 3m or 1h, in whole milliseconds";
    }
    return type == HWS_FIELD_SIZE ? "a size such as 4096, 64K, 16M or 1G" : "a whole number";
}
