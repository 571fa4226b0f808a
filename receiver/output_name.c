#include "receiver/output_name.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

/*  Leaves room for a dot, 20 digits, another dot and a few more.  */
#define STEM_SIZE_MAX 230

static bool is_harmless (uint32_t code_point, bool is_leading)
{
    const bool is_misleading = is_leading && (code_point == '.' || code_point == '-');
    return !hws_utf8_is_control (code_point) && !is_misleading && code_point != '/';
}

/*  Writes the label, made harmless; returns its size.  */
static size_t put_stem (hws_output_name_t name, const char *label)
{
    hws_cursor_t cursor = hws_cursor (hws_bytes_of_text (label));
    size_t size = 0;
    bool is_leading = true;
    while (cursor.left > 0) {
        const uint8_t *const at = cursor.at;
        uint32_t code_point = 0;
        if (hws_utf8_next (&cursor, &code_point) < 0) {
            hws_cursor_take (&cursor, 1);
            code_point = 0;
        }
        const bool is_kept = is_harmless (code_point, is_leading);
        const size_t taken = is_kept ? (size_t) (cursor.at - at) : 1;
        if (taken > STEM_SIZE_MAX - size) {
            break;
        }
        memcpy (name + size, is_kept ? (const void *) at : "_", taken);
        size += taken;
        is_leading = is_leading && code_point == '.';
    }
    return size;
}

void hws_output_name (const char *label, uint64_t sender_id, unsigned attempt,
                      hws_output_name_t name)
{
    size_t size = put_stem (name, label);
    if (size == 0) {
        size = (size_t) snprintf (name, sizeof (hws_output_name_t), "%" PRIu64, sender_id);
    }
    const size_t left = sizeof (hws_output_name_t) - size;
    if (attempt == 0) {
        name[size] = '\0';
    } else if (attempt == 1) {
        snprintf (name + size, left, ".%" PRIu64, sender_id);
    } else {
        snprintf (name + size, left, ".%" PRIu64 ".%u", sender_id, attempt);
    }
}
