/*  Log lines: their levels and how they are written.
 *
 *  One event is one line of key=value pairs, begun by the time and the level:
 *
 *      ts=2026-11-30T19:08:01.123456Z level=info event=ready endpoints="…"
 *
 *  Whoever makes a line quotes the values in it; what reaches a log here can in no
 *  case break the line, drive a terminal or look like another name: control and
 *  invisible characters and what is not UTF-8 are written as \xNN.
 */
#ifndef HWS_LOG_H
#define HWS_LOG_H

#include "base/bytes.h"

#define HWS_LOG_LINE_SIZE_MAX 4096 /* with its newline; longer ones end in "…" */

/*  error: a person must act. warn: a limit or a broken peer. info: a few lines a
 *  day. debug: everything.  */
typedef enum { HWS_LOG_ERROR, HWS_LOG_WARN, HWS_LOG_INFO, HWS_LOG_DEBUG } hws_log_level_t;

typedef char hws_log_line_t[HWS_LOG_LINE_SIZE_MAX];

/*  The word of a level ("info"); static, never null.  */
const char *hws_log_level_word (hws_log_level_t level);

/*  Writes the whole line, newline included and without a NUL, and returns its
 *  size. `unix_us` is the time in microseconds since 1970.  */
size_t hws_log_write_line (hws_log_line_t line, int64_t unix_us, hws_log_level_t level,
                           hws_bytes_t text);

#endif
