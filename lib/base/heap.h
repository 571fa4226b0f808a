/*  Deadlines in order: a pairing heap whose nodes live in the objects.
 *
 *  Setting and clearing a deadline never fails and never allocates, so an
 *  object may arm its timer in any handler. Two deadlines at the same time come
 *  out in the order in which they were set. Setting is O(1), taking the
 *  earliest O(log n) amortised (Fredman, Sedgewick, Sleator, Tarjan 1986).
 */
#ifndef HWS_HEAP_H
#define HWS_HEAP_H

#include "base/time.h"

#include <stdbool.h>

typedef struct hws_timer hws_timer_t;

struct hws_timer {
    hws_ms_t at;          /* when it is due; meaningful while armed */
    uint64_t order;       /* breaks ties: the count of settings up to this one; 0: not armed */
    hws_timer_t *child;   /* first child */
    hws_timer_t *sibling; /* next child of the same parent */
    hws_timer_t *back;    /* previous sibling, or the parent for a first child */
};

typedef struct {
    hws_timer_t *root; /* the earliest, or null */
    uint64_t order;    /* settings so far */
} hws_heap_t;

/*  Arms the timer for `at`, or moves it there; HWS_NEVER disarms it.  */
void hws_heap_set (hws_heap_t *self, hws_timer_t *timer, hws_ms_t at);

/*  Disarms the timer; harmless when it is not armed.  */
void hws_heap_clear (hws_heap_t *self, hws_timer_t *timer);

static inline bool hws_timer_is_armed (const hws_timer_t *self)
{
    return self->order > 0;
}

/*  The earliest deadline, or HWS_NEVER.  */
hws_ms_t hws_heap_first_at (const hws_heap_t *self);

/*  Disarms and returns the earliest timer that is due at `now`, or null.  */
hws_timer_t *hws_heap_pop_due (hws_heap_t *self, hws_ms_t now);

#endif
