#include "base/json_writer.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>

void hws_json_writer_init (hws_json_writer_t *self, void *buffer, size_t size)
{
    *self = (hws_json_writer_t){.buffer = buffer, .size = size};
}

static void put (hws_json_writer_t *self, const void *data, size_t size)
{
    if (self->is_full || size > self->size - self->used) {
        self->is_full = true;
        return;
    }
    memcpy (self->buffer + self->used, data, size);
    self->used += size;
}

static void put_literal (hws_json_writer_t *self, const char *text)
{
    put (self, text, strlen (text));
}

static void begin_value (hws_json_writer_t *self)
{
    if (self->needs_comma) {
        put (self, ",", 1);
    }
    self->needs_comma = true;
}

void hws_json_put_name (hws_json_writer_t *self, const char *name)
{
    hws_json_put_text (self, hws_bytes_of_text (name));
    put (self, ":", 1);
    self->needs_comma = false;
}

void hws_json_open (hws_json_writer_t *self, char bracket)
{
    begin_value (self);
    put (self, &bracket, 1);
    self->needs_comma = false;
}

void hws_json_close (hws_json_writer_t *self, char bracket)
{
    put (self, &bracket, 1);
    self->needs_comma = true;
}

static void put_escape (hws_json_writer_t *self, uint32_t code_point)
{
    static const char plain[] = "\"\\\b\f\n\r\t";
    static const char letters[] = "\"\\bfnrt";
    const char *const found = memchr (plain, (int) code_point, sizeof plain - 1);
    if (found) {
        put (self, "\\", 1);
        put (self, &letters[found - plain], 1);
        return;
    }
    char text[8];
    snprintf (text, sizeof text, "\\u%04x", (unsigned) code_point);
    put_literal (self, text);
}

void hws_json_put_text (hws_json_writer_t *self, hws_bytes_t text)
{
    begin_value (self);
    put (self, "\"", 1);
    hws_cursor_t cursor = hws_cursor (text);
    while (cursor.left > 0) {
        const uint8_t *const at = cursor.at;
        uint32_t code_point;
        if (hws_utf8_next (&cursor, &code_point) < 0) {
            hws_cursor_take (&cursor, 1);
            put (self, "?", 1);
        } else if (code_point < 0x20 || code_point == '"' || code_point == '\\') {
            put_escape (self, code_point);
        } else {
            put (self, at, (size_t) (cursor.at - at));
        }
    }
    put (self, "\"", 1);
}

void hws_json_put_number (hws_json_writer_t *self, uint64_t value)
{
    char text[24];
    snprintf (text, sizeof text, "%" PRIu64, value);
    begin_value (self);
    put_literal (self, text);
}

void hws_json_put_decimal (hws_json_writer_t *self, uint64_t value)
{
    char text[24];
    snprintf (text, sizeof text, "\"%" PRIu64 "\"", value);
    begin_value (self);
    put_literal (self, text);
}

void hws_json_put_bool (hws_json_writer_t *self, bool value)
{
    begin_value (self);
    put_literal (self, value ? "true" : "false");
}

void hws_json_put_null (hws_json_writer_t *self)
{
    begin_value (self);
    put_literal (self, "null");
}
