#include "io/console_io.h"

#include "base/bytes.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define TEXT_SIZE_MAX 4096

/*  One line with its beginning, escaped, and what clears a terminal's line. A
 *  character becomes at most four bytes for each of its own.  */
typedef struct {
    char data[4 * TEXT_SIZE_MAX + 64];
    size_t size; /* bytes used of them */
} line_t;

static const char s_clear[] = "\r\033[K";

static void put (line_t *line, const void *data, size_t size)
{
    if (size <= sizeof line->data - line->size) {
        memcpy (line->data + line->size, data, size);
        line->size += size;
    }
}

static void put_escaped (line_t *line, hws_bytes_t text)
{
    hws_cursor_t cursor = hws_cursor (text);
    while (cursor.left > 0) {
        const uint8_t *const at = cursor.at;
        uint32_t code_point = 0;
        const bool is_valid = hws_utf8_next (&cursor, &code_point) > 0;
        if (!is_valid) {
            hws_cursor_take (&cursor, 1);
        }
        const size_t size = (size_t) (cursor.at - at);
        if (is_valid && hws_utf8_is_plain (code_point)) {
            put (line, at, size);
            continue;
        }
        for (size_t i = 0; i < size; i++) {
            char escape[5];
            snprintf (escape, sizeof escape, "\\x%02x", at[i]);
            put (line, escape, 4);
        }
    }
}

/*  What cannot be said is lost; there is nobody to tell.  */
static void write_line (const line_t *line)
{
    for (size_t done = 0; done < line->size;) {
        const ssize_t rc = write (STDERR_FILENO, line->data + done, line->size - done);
        if (rc < 0 && errno == EINTR) {
            continue;
        }
        if (rc <= 0) {
            return;
        }
        done += (size_t) rc;
    }
}

void hws_console_init (hws_console_t *self, const char *program, hws_log_level_t level,
                       bool wants_progress)
{
    *self = (hws_console_t){
        .program = program,
        .level = level,
        .draws_progress = wants_progress && isatty (STDERR_FILENO) == 1,
    };
    pthread_mutex_init (&self->lock, NULL);
}

void hws_console_fini (hws_console_t *self)
{
    if (self->has_progress) {
        write_line (&(line_t){.data = "\n", .size = 1});
    }
    pthread_mutex_destroy (&self->lock);
}

void hws_console_say (hws_console_t *self, hws_log_level_t level, const char *format, ...)
{
    if (level > self->level) {
        return;
    }
    char text[TEXT_SIZE_MAX];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);

    line_t line = {.size = 0};
    pthread_mutex_lock (&self->lock);
    if (self->has_progress) {
        put (&line, s_clear, sizeof s_clear - 1);
        self->has_progress = false;
    }
    put (&line, self->program, strlen (self->program));
    put (&line, ": ", 2);
    put_escaped (&line, hws_bytes_of_text (text));
    put (&line, "\n", 1);
    write_line (&line);
    pthread_mutex_unlock (&self->lock);
}

void hws_console_draw (hws_console_t *self, const char *text)
{
    if (!self->draws_progress) {
        return;
    }
    line_t line = {.size = 0};
    pthread_mutex_lock (&self->lock);
    put (&line, s_clear, sizeof s_clear - 1);
    put_escaped (&line, hws_bytes_of_text (text));
    write_line (&line);
    self->has_progress = true;
    pthread_mutex_unlock (&self->lock);
}
