/*  A thread that waits for SIGINT and SIGTERM on behalf of a program whose main
 *  thread may be anywhere: in a blocked read, in a send that waits for room.
 *
 *  The first signal is remembered and calls the program's stop function, which
 *  makes the waits of the main thread end. A main thread that does not end after
 *  that, or a second signal, ends the process at once with 128 + the signal's
 *  number. The thread also calls a tick function in regular turns, for drawing
 *  progress.
 */
#ifndef HWS_WATCH_IO_H
#define HWS_WATCH_IO_H

#include "base/time.h"

#include <pthread.h>
#include <stdbool.h>

/*  Ends the waits of the main thread; called once, on the watching thread or within
 *  hws_watch_guard, and should not take longer than a second. Returns whether it did:
 *  if not, there is nothing to wait for, and the process ends at once.  */
typedef bool hws_watch_stop_t (void *context, int signal);

/*  Called every so often, on the watching thread.  */
typedef void hws_watch_tick_t (void *context);

typedef struct {
    pthread_t thread;
    _Atomic int signal;     /* the first that came, or 0 */
    pthread_mutex_t lock;   /* of what follows up to `is_ending` */
    hws_ms_t leave_at;      /* when the process ends whatever the main thread does */
    hws_watch_stop_t *stop; /* null while there is nothing to stop */
    void *stop_context;     /* for it */
    hws_watch_tick_t *tick; /* null: none */
    void *tick_context;     /* for it */
    hws_ms_t tick_ms;       /* how often */
    bool is_ending;         /* the thread is to return */
    int signal_fd;          /* readable when a signal is there */
    int wake_fd;            /* an eventfd; readable when tick or is_ending has changed */
} hws_watch_t;

/*  Takes SIGINT and SIGTERM over, also if they were ignored as in a shell's
 *  background, ignores SIGPIPE, and starts the thread. A standard descriptor that the
 *  program was started without becomes one that fails, so that no socket is taken
 *  for it. To be called before any other thread is made or any descriptor opened
 *  that stays. Returns 0 or HWS_ESYSTEM.  */
int hws_watch_start (hws_watch_t *self);

/*  From now on the first signal calls `stop`; if it has come already it is called
 *  now.  */
void hws_watch_guard (hws_watch_t *self, hws_watch_stop_t *stop, void *context);

/*  Calls `tick` every `tick_ms` from now on; null: no more, and it is not running any
 *  longer.  */
void hws_watch_tick (hws_watch_t *self, hws_watch_tick_t *tick, void *context, hws_ms_t tick_ms);

/*  What was guarded may be destroyed now: `stop` is not running and will not be
 *  called. Returns the signal that has come, or 0.  */
int hws_watch_release (hws_watch_t *self);

/*  The signal that has come, or 0; never waits.  */
int hws_watch_signal (hws_watch_t *self);

/*  Ends the thread.  */
void hws_watch_end (hws_watch_t *self);

#endif
