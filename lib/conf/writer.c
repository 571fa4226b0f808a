#include "conf/writer.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  Makes room for `size` more bytes and a NUL.  */
static bool grow (hws_writer_t *self, size_t size)
{
    if (self->failed) {
        return false;
    }
    if (self->text && size < self->capacity - self->size) {
        return true;
    }
    const size_t capacity = 2 * self->capacity + size + 1;
    char *const text = realloc (self->text, capacity);
    if (text == NULL) {
        self->failed = true;
        return false;
    }
    self->text = text;
    self->capacity = capacity;
    return true;
}

void hws_writer_add_bytes (hws_writer_t *self, const char *bytes, size_t size)
{
    if (!grow (self, size)) {
        return;
    }
    memcpy (self->text + self->size, bytes, size);
    self->size += size;
    self->text[self->size] = '\0';
}

void hws_writer_add (hws_writer_t *self, const char *text)
{
    hws_writer_add_bytes (self, text, strlen (text));
}

void hws_writer_format (hws_writer_t *self, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    const int size = vsnprintf (NULL, 0, format, arguments);
    va_end (arguments);
    if (size < 0 || !grow (self, (size_t) size)) {
        return;
    }

    va_start (arguments, format);
    vsnprintf (self->text + self->size, (size_t) size + 1, format, arguments);
    va_end (arguments);
    self->size += (size_t) size;
}

void hws_writer_add_json (hws_writer_t *self, const char *text)
{
    hws_writer_add (self, "\"");
    hws_cursor_t cursor = hws_cursor (hws_bytes_of_text (text));
    while (cursor.left > 0) {
        const char *const at = (const char *) cursor.at;
        uint32_t code_point;
        if (hws_utf8_next (&cursor, &code_point) < 0) {
            hws_cursor_u8 (&cursor);
            hws_writer_add (self, "?");
        } else if (code_point == '"' || code_point == '\\') {
            hws_writer_format (self, "\\%c", (int) code_point);
        } else if (code_point < 0x20) {
            hws_writer_format (self, "\\u%04x", (unsigned) code_point);
        } else {
            hws_writer_add_bytes (self, at, (size_t) ((const char *) cursor.at - at));
        }
    }
    hws_writer_add (self, "\"");
}

void hws_writer_indent (hws_writer_t *self, size_t count)
{
    hws_writer_format (self, "%*s", (int) count, "");
}

char *hws_writer_take (hws_writer_t *self)
{
    char *text = self->text;
    if (self->failed) {
        free (text);
        text = NULL;
    }
    *self = (hws_writer_t){0};
    return text;
}
