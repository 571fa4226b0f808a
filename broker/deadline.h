/*  A deadline of one of the engine's objects: a timer and what it belongs to.
 *
 *  All deadlines are in one heap; the engine pops what is due and calls the
 *  object's own expire function. An object that hears of many events does not arm
 *  its timer for each: it looks at the clock when the old deadline comes and arms
 *  it again for what is left.
 */
#ifndef HWS_DEADLINE_H
#define HWS_DEADLINE_H

#include "base/heap.h"

typedef enum {
    HWS_DEADLINE_PEER,       /* a client's silence */
    HWS_DEADLINE_FULL,       /* a connection that took no more: try again */
    HWS_DEADLINE_ANCHOR,     /* unattached timeout, receiver's silence, orphan TTL */
    HWS_DEADLINE_SEAT,       /* heartbeat, grace */
    HWS_DEADLINE_WAITING,    /* an attach that waits for its anchor */
    HWS_DEADLINE_TOMBSTONES, /* the oldest tombstone */
    HWS_DEADLINE_CANCELS,    /* the oldest cancel of a token */
    HWS_DEADLINE_YOUNG       /* the broker is young no longer */
} hws_deadline_kind_t;

typedef struct {
    hws_timer_t timer; /* first: a deadline is found from its timer by a cast */
    hws_deadline_kind_t kind;
} hws_deadline_t;

#endif
