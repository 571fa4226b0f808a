#include "base/log.h"

#include "base/utf8.h"

#include <stdio.h>

static const char ellipsis[] = "\xe2\x80\xa6\n"; /* "…" */

const char *hws_log_level_word (hws_log_level_t level)
{
    switch (level) {
    case HWS_LOG_ERROR:
        return "error";
    case HWS_LOG_WARN:
        return "warn";
    case HWS_LOG_INFO:
        return "info";
    case HWS_LOG_DEBUG:
        return "debug";
    }
    return "unknown";
}

/*  The size of the printable character at the beginning of the text, or 0: one that does
 *  not show, no UTF-8, or the end.  */
static size_t printable_size (hws_bytes_t text)
{
    hws_cursor_t cursor = hws_cursor (text);
    uint32_t code_point;
    if (hws_utf8_next (&cursor, &code_point) <= 0 || !hws_utf8_is_plain (code_point)) {
        return 0;
    }
    return text.size - cursor.left;
}

/*  The date of a day counted from 1970-01-01, by counting in eras of 400 years that
 *  begin in March, so that a leap day is the last of its year.  */
static void split_day (int64_t day, int *year, int *month, int *day_of_month)
{
    const int64_t shifted = day + 719468; /* from 0000-03-01 */
    const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    const int64_t day_of_era = shifted - era * 146097;
    const int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int64_t day_of_year =
        day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int64_t month_from_march = (5 * day_of_year + 2) / 153;
    *day_of_month = (int) (day_of_year - (153 * month_from_march + 2) / 5 + 1);
    *month = (int) (month_from_march < 10 ? month_from_march + 3 : month_from_march - 9);
    *year = (int) (year_of_era + era * 400 + (*month <= 2));
}

static size_t write_head (hws_log_line_t line, int64_t unix_us, hws_log_level_t level)
{
    const int64_t day_us = INT64_C (86400000000);
    const int64_t of_day = (unix_us % day_us + day_us) % day_us;
    int year, month, day;
    split_day ((unix_us - of_day) / day_us, &year, &month, &day);
    const int second_of_day = (int) (of_day / 1000000);
    const int size =
        snprintf (line, HWS_LOG_LINE_SIZE_MAX, "ts=%04d-%02d-%02dT%02d:%02d:%02d.%06dZ level=%s ",
                  year, month, day, second_of_day / 3600, second_of_day / 60 % 60,
                  second_of_day % 60, (int) (of_day % 1000000), hws_log_level_word (level));
    return size > 0 ? (size_t) size : 0;
}

size_t hws_log_write_line (hws_log_line_t line, int64_t unix_us, hws_log_level_t level,
                           hws_bytes_t text)
{
    static const char digits[] = "0123456789abcdef";
    size_t used = write_head (line, unix_us, level);

    while (text.size > 0) {
        size_t taken = printable_size (text);
        const size_t written = taken > 0 ? taken : 4;
        if (written > HWS_LOG_LINE_SIZE_MAX - sizeof ellipsis - used) {
            memcpy (line + used, ellipsis, sizeof ellipsis - 1);
            return used + sizeof ellipsis - 1;
        }
        if (taken > 0) {
            memcpy (line + used, text.data, taken);
        } else {
            taken = 1;
            const char escaped[4] = {'\\', 'x', digits[text.data[0] >> 4],
                                     digits[text.data[0] & 0x0f]};
            memcpy (line + used, escaped, sizeof escaped);
        }
        used += written;
        text = hws_bytes (text.data + taken, text.size - taken);
    }
    line[used] = '\n';
    return used + 1;
}
