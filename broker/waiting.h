/*  Attaches that wait: for an anchor that is not there yet, for room, or until the front of
 *  a dedicated anchor is bound (docs/protocol.md, "State tables": "ATTACH that waits, at the
 *  broker").
 *
 *  Those that wait for one anchor stand in one line by its name and in one by its handle, so that
 *  who waits for another is not looked at.
 *
 *  Bounded in number and in time. A waiting attach belongs to its client and is
 *  forgotten with its connection; the client asks again.
 */
#ifndef HWS_WAITING_H
#define HWS_WAITING_H

#include "broker/anchor.h"
#include "broker/peer.h"

typedef struct hws_line hws_line_t;

typedef struct {
    hws_link_t in_engine;
    hws_link_t in_peer;
    hws_link_t in_line;
    hws_line_t *line;          /* of those that name the same anchor in the same way */
    uint64_t order;            /* of all that wait, by when they came */
    hws_map_node_t by_session; /* under session_key */
    union {
        struct {
            hws_peer_t *peer;
            uint64_t session_id;
        };
        uint8_t session_key[sizeof (hws_peer_t *) + sizeof (uint64_t)];
    };
    hws_deadline_t deadline;
    hws_target_t target; /* of its cancel token */
    hws_ms_t until_at;   /* when it is refused */
    int code;            /* why it waits; HWS_EWOULD_BLOCK: for a bind */
    bool has_id;
    uint64_t id; /* of the request */
    hws_attach_t request;
} hws_waiting_t;

/*  Keeps the request until the anchor may take it. A request of the same session that
 *  waits already is replaced, its deadline kept. Returns 0, HWS_ELIMIT,
 *  HWS_ENO_MEMORY.  */
int hws_waiting_add (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                     int code);

/*  Whether an attach of this session waits.  */
bool hws_waiting_has (const hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id);

/*  The attach was asked again and answered: if it waits, it does no longer.  */
void hws_waiting_forget (hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id);

/*  An anchor came, has room again, is bound or is gone: the attaches that name it try again, in
 *  order. When one finds no room, only those that wait for a bind do behind it.  */
void hws_waiting_retry (hws_engine_t *engine, const hws_anchor_t *anchor);

/*  The anchor's front cannot be bound: the attaches that wait for it are refused.  */
void hws_waiting_fail (hws_engine_t *engine, const hws_anchor_t *anchor, int code,
                       const char *reason);

/*  It waits no longer: refused with the code and the sentence.  */
void hws_waiting_refuse (hws_engine_t *engine, hws_waiting_t *self, int code, const char *reason);

/*  The time is over: refused, unless it waits for a bind or for an anchor of the broker's life
 *  before, which ends by itself.  */
void hws_waiting_expire (hws_engine_t *engine, hws_waiting_t *self);

void hws_waiting_free (hws_engine_t *engine, hws_waiting_t *self);

#endif
