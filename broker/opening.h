/*  An OPEN with resume, from when it came until its positions are complete (docs/protocol.md,
 *  "OPEN", "POSITION").
 *
 *  Nothing of the broker's changes meanwhile: what is collected is used in one step with the last
 *  position, or forgotten with the connection or the client's next OPEN. A client has one at a
 *  time. It is bounded by what the anchor may have: seats, and endings that are remembered.
 */
#ifndef HWS_OPENING_H
#define HWS_OPENING_H

#include "broker/peer.h"
#include "proto/batch.h"

/*  What a receiver says of one sender.  */
typedef struct {
    hws_position_t position;
    void *memory; /* owned; of the seat or tombstone that it becomes, null until that is made */
} hws_opening_item_t;

struct hws_opening {
    hws_control_t message;     /* the request */
    hws_opening_item_t *items; /* owned; null for none */
    size_t item_count;
    size_t item_room;  /* items that fit */
    size_t seat_count; /* of these, those that need a seat at an anchor that is made anew */
    int code;          /* 0, or why it is refused when the last position has come */
    hws_reason_t reason;
};

/*  The client's OPEN came: forgets what was collected for one before. It has a handle and a
 *  token. Returns 0 or HWS_ENO_MEMORY.  */
int hws_opening_begin (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);

/*  Forgets what was collected for the client; harmless when there is nothing.  */
void hws_opening_forget (hws_peer_t *peer);

/*  All positions have come: resumes the anchor, or makes it anew, or refuses, and forgets.  */
void hws_opening_complete (hws_engine_t *engine, hws_peer_t *peer);

#endif
