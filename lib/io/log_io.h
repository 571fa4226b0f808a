/*  Where log lines go: a descriptor, stderr as a rule, one write per line.
 *
 *  Lines below the level are not even made. A line that cannot be written is
 *  lost: a log never stops the program.
 */
#ifndef HWS_LOG_IO_H
#define HWS_LOG_IO_H

#include "base/log.h"

typedef struct {
    int descriptor;        /* not owned */
    hws_log_level_t level; /* the least important one that is written */
} hws_log_t;

static inline bool hws_log_wants (const hws_log_t *self, hws_log_level_t level)
{
    return level <= self->level;
}

/*  Writes one event; the text has no newline.  */
void hws_log_bytes (const hws_log_t *self, hws_log_level_t level, hws_bytes_t text);

/*  The same, made by a format: "event=ready endpoint=%s".  */
void hws_log (const hws_log_t *self, hws_log_level_t level, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

#endif
