/*  Tombstones: what is remembered of streams and anchors that ended.
 *
 *  A retried or late request about them gets the ending back, not "not found". They
 *  are kept for the orphan TTL and bounded in number; beyond, the oldest is
 *  forgotten.
 */
#ifndef HWS_TOMBSTONE_H
#define HWS_TOMBSTONE_H

#include "broker/seat.h"

struct hws_tombstone {
    hws_map_node_t by_session; /* a seat's, under session_key */
    hws_map_node_t by_open;    /* an anchor's, under session_key: owner and open id */
    hws_map_node_t by_sender;  /* a seat's, under sender_key */
    hws_map_node_t by_handle;  /* an anchor's, under handle */
    hws_session_key_t session_key;
    hws_sender_key_t sender_key;
    hws_handle_t handle;
    hws_link_t in_engine; /* in order of age */
    hws_ms_t expires_at;
    uint8_t ending; /* run type; an anchor's is HWS_RUN_CANCELLED */
    uint16_t cause;
    uint64_t acked_seq;
    uint64_t acked_bytes;
    char *reason; /* owned; null for none */
};

/*  Makes one for a seat or an anchor that begins, freed with free () if it is not used. A
 *  stream whose end was forgotten for want of memory would begin a second life with the next
 *  ATTACH of its client. Returns null without memory.  */
hws_tombstone_t *hws_tombstone_new (void);

/*  Remembers a seat or an anchor that is about to be freed: its tombstone and its reason are
 *  the engine's then, unless nothing is to be remembered.  */
void hws_tombstone_of_seat (hws_engine_t *engine, hws_seat_t *seat);
void hws_tombstone_of_anchor (hws_engine_t *engine, hws_anchor_t *anchor);

hws_tombstone_t *hws_tombstone_of_session (const hws_engine_t *engine, const hws_peer_t *peer,
                                           uint64_t session_id);
hws_tombstone_t *hws_tombstone_of_sender (const hws_engine_t *engine, hws_handle_t handle,
                                          uint64_t sender_id);
hws_tombstone_t *hws_tombstone_of_handle (const hws_engine_t *engine, hws_handle_t handle);

hws_tombstone_t *hws_tombstone_of_open (const hws_engine_t *engine, const hws_peer_t *peer,
                                        uint64_t open_id);

/*  Forgets what is due and arms the deadline for the next.  */
void hws_tombstone_expire (hws_engine_t *engine);

/*  Forgets all.  */
void hws_tombstone_clear (hws_engine_t *engine);

#endif
