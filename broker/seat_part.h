/*  What the files of the seat share: seat.c, and seat_resume.c, for receivers and senders that
 *  come again.
 */
#ifndef HWS_SEAT_PART_H
#define HWS_SEAT_PART_H

#include "broker/engine_state.h"

#define HWS_REWIND_AGAIN_MS 200 /* REWIND is repeated at most so often while runs ahead come */

/*  What most attaches have nothing of. Returns 0 or HWS_ENO_MEMORY.  */
int hws_seat_take_extra (hws_engine_t *engine, hws_seat_t *self, const hws_attach_t *request);
void hws_seat_free_extra (hws_engine_t *engine, hws_seat_t *self);

/*  What carries its cancel token is not this seat any more.  */
void hws_seat_release_token (hws_engine_t *engine, hws_seat_t *self);

/*  Puts a new seat into the lists and maps of its anchor and its client. Under nobody, one
 *  whose session id is taken is found by its other numbers only.  */
void hws_seat_link_up (hws_engine_t *engine, hws_seat_t *self);

/*  The routing session id of the next seat.  */
static inline uint64_t hws_seat_next_routing (const hws_engine_t *engine)
{
    return ((uint64_t) engine->options.epoch << 32) + engine->seat_count + 1;
}

/*  Sets its deadline, by what was heard of its client.  */
void hws_seat_arm (hws_engine_t *engine, hws_seat_t *self);

/*  One ending of this type more, or with (uint64_t) -1 less.  */
void hws_seat_count_ending (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint64_t by);

/*  Sends the ending that the broker made to the receiver, if it is present.  */
void hws_seat_forward_ending (hws_engine_t *engine, hws_seat_t *self);

/*  The receiver has consumed up to here; only the seat itself is moved, not what its room is
 *  good for. Returns true when that is behind the sender's own ending: then the seat is to go.  */
bool hws_seat_consume (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes);

/*  The receiver has consumed the broker's ending, or the sender's own that was in its place.  */
void hws_seat_conclude (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes);

/*  Leaves a tombstone and frees; the anchor is still to be told.  */
void hws_seat_bury (hws_engine_t *engine, hws_seat_t *self);

#endif
