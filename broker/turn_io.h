/*  One turn of the broker: what is read of all fronts, and what the engine wants done.
 *
 *  The shared front and the dedicated ones together have each a budget of messages, bytes
 *  and frames, so a turn has an end and nobody starves: timers, other fronts, signals.
 */
#ifndef HWS_TURN_IO_H
#define HWS_TURN_IO_H

#include "broker/fronts_io.h"

/*  What a turn works on; nothing of it is owned.  */
typedef struct {
    const hws_log_t *log;
    hws_engine_t *engine;
    hws_connections_t *connections;
    hws_front_t *front;    /* the shared one */
    hws_fronts_t *fronts;  /* the dedicated ones */
    bool has_more;         /* the shared front may have something to read */
    hws_ms_t binds_log_at; /* earliest next line about fronts that could not be bound */
} hws_turn_t;

/*  The monitor of the shared front has something to tell: what it tells comes before what is
 *  still to be read.  */
void hws_turn_hear (hws_turn_t *self, hws_ms_t now);

/*  Reads a bounded number of messages. A descriptor of libzmq tells only once of what there is
 *  to read, so what is left is read in the next turn unasked.  */
void hws_turn_read (hws_turn_t *self, hws_ms_t now);

/*  Does what the engine wants done. Returns false when there may be more: then the next turn
 *  follows at once.  */
bool hws_turn_act (hws_turn_t *self, hws_ms_t now);

/*  When a turn is due for the sake of connections and fronts, or HWS_NEVER.  */
hws_ms_t hws_turn_wake_at (const hws_turn_t *self, hws_ms_t now);

#endif
