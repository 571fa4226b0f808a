/*  What a program says to its user: lines on stderr, and, on a terminal, one line of
 *  progress that is redrawn in place below them.
 *
 *  Labels and reasons are made by strangers: control characters, invisible ones, those
 *  that turn the direction of text, and what is not UTF-8 are written as \xNN. Any
 *  thread may speak.
 */
#ifndef HWS_CONSOLE_IO_H
#define HWS_CONSOLE_IO_H

#include "base/log.h"

#include <pthread.h>
#include <stdbool.h>

typedef struct {
    const char *program;   /* what lines begin with; not owned */
    hws_log_level_t level; /* the least important that is said */
    bool draws_progress;   /* wanted, and stderr is a terminal */
    bool has_progress;     /* a line of progress stands there now */
    pthread_mutex_t lock;  /* of has_progress, and of the order of lines */
} hws_console_t;

/*  `wants_progress` counts only when stderr is a terminal.  */
void hws_console_init (hws_console_t *self, const char *program, hws_log_level_t level,
                       bool wants_progress);

/*  Leaves the last progress on a line of its own.  */
void hws_console_fini (hws_console_t *self);

/*  Writes "PROGRAM: text" as one line, unless the level is less important than what is
 *  wanted.  */
void hws_console_say (hws_console_t *self, hws_log_level_t level, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

/*  Draws the line of progress in the place of the one before.  */
void hws_console_draw (hws_console_t *self, const char *text);

#endif
