#include "io/log_io.h"

#include "io/clock_io.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void hws_log_bytes (const hws_log_t *self, hws_log_level_t level, hws_bytes_t text)
{
    if (!hws_log_wants (self, level)) {
        return;
    }
    hws_log_line_t line;
    size_t left = hws_log_write_line (line, hws_clock_unix_us (), level, text);
    const char *at = line;
    while (left > 0) {
        const ssize_t written = write (self->descriptor, at, left);
        if (written < 0) {
            if (errno == EINTR) {
                continue;
            }
            return;
        }
        at += written;
        left -= (size_t) written;
    }
}

void hws_log (const hws_log_t *self, hws_log_level_t level, const char *format, ...)
{
    if (!hws_log_wants (self, level)) {
        return;
    }
    char text[HWS_LOG_LINE_SIZE_MAX];
    va_list arguments;
    va_start (arguments, format);
    const int size = vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    if (size >= 0) {
        const size_t whole = (size_t) size;
        hws_log_bytes (self, level,
                       hws_bytes (text, whole < sizeof text ? whole : sizeof text - 1));
    }
}
