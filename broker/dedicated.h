/*  Dedicated anchors: the front that an anchor has for itself.
 *
 *  A dedicated anchor seats only who comes on its own front. Whoever asks elsewhere is sent
 *  there: the first one waits while the shell binds the front (effect BIND, answered by
 *  hws_engine_bound), and the room is looked at again before it is told where to go. A front
 *  that then nobody was sent to is given up at once (UNBIND), else when its anchor ends.
 *  The number of a front never comes back (docs/protocol.md, "ATTACH"; "State
 *  tables": "Front of a dedicated anchor, at the broker").
 */
#ifndef HWS_DEDICATED_H
#define HWS_DEDICATED_H

#include "base/list.h"
#include "broker/engine.h"
#include "broker/out.h"

typedef struct hws_anchor hws_anchor_t;

typedef enum {
    HWS_DEDICATED_UNBOUND,
    HWS_DEDICATED_BINDING,
    HWS_DEDICATED_BOUND
} hws_dedicated_state_t;

/*  An anchor's part of it.  */
typedef struct {
    hws_link_t in_engine; /* in the engine's list of dedicated anchors; in none: not dedicated */
    hws_dedicated_state_t state;
    uint32_t front;            /* its number; 0 while unbound */
    bool is_told;              /* somebody was sent to this front */
    hws_endpoint_t *endpoints; /* owned; while bound, one for each of the broker's listeners */
    size_t endpoint_count;
    hws_outgoing_t *unbind; /* owned; made with BIND, so that giving up needs no memory */
} hws_dedicated_t;

/*  The anchor is a dedicated one.  */
void hws_dedicated_begin (hws_engine_t *engine, hws_anchor_t *anchor);

/*  Whether an attach of the peer is seated where it came: the anchor is not dedicated, or
 *  this is its front.  */
bool hws_dedicated_seats (const hws_anchor_t *anchor, const hws_peer_t *peer);

/*  Sends the peer to the anchor's front: returns 0 and an answer without a seat;
 *  HWS_EWOULD_BLOCK when the attach has to wait until the front is bound, which is begun if
 *  it is not; or the code of a refusal, with its sentence.  */
int hws_dedicated_direct (hws_engine_t *engine, hws_anchor_t *anchor, const hws_peer_t *peer,
                          hws_attach_ok_t *answer, hws_reason_t reason);

/*  See hws_engine_bound.  */
void hws_dedicated_bound (hws_engine_t *engine, uint32_t front, int rc,
                          const hws_endpoint_t *endpoints, size_t endpoint_count, const char *text);

/*  The anchor ends: so does its front.  */
void hws_dedicated_end (hws_engine_t *engine, hws_anchor_t *anchor);

#endif
