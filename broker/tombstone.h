/*  Tombstones: what is remembered of streams and anchors that ended.
 *
 *  A retried or late request about them gets the ending back, not "not found". They
 *  are kept for the orphan TTL and bounded in number; beyond, the oldest is
 *  forgotten.
 */
#ifndef HWS_TOMBSTONE_H
#define HWS_TOMBSTONE_H

#include "broker/seat.h"

/*  Keys of the maps; without padding, for they are hashed as bytes. A client's own number is
 *  a session id or an open id.  */
typedef struct {
    uint8_t client_id[HWS_ID_SIZE];
    uint64_t number;
} hws_owner_key_t;

typedef struct {
    uint64_t handle_lo; /* of this broker's anchor */
    uint64_t sender_id;
} hws_sender_key_t;

struct hws_tombstone {
    hws_map_node_t by_session; /* a seat's, under owner_key */
    hws_map_node_t by_open;    /* an anchor's, under owner_key */
    hws_map_node_t by_sender;  /* a seat's, under sender_key */
    hws_map_node_t by_handle;  /* an anchor's, under handle */
    hws_owner_key_t owner_key;
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

/*  Frees a seat and remembers it, in its own memory: a stream whose end was forgotten for want
 *  of memory would begin a second life with the next ATTACH of its client.  */
void hws_tombstone_of_seat (hws_engine_t *engine, hws_seat_t *seat);

/*  Remembers a stream that its receiver says has ended, in memory that the caller gives up; by
 *  sender id, and by its seat key under nobody.  */
void hws_tombstone_of_position (hws_engine_t *engine, hws_handle_t handle,
                                const hws_position_t *position, hws_tombstone_t *self);

/*  Remembers that the client's OPEN has lost the anchor to another receiver; in memory of
 *  hws_tombstone_new, or nothing without.  */
void hws_tombstone_of_owner (hws_engine_t *engine, const hws_anchor_t *anchor,
                             hws_tombstone_t *self);

/*  Makes one for an anchor that begins, freed with free () if it is not used. Returns null
 *  without memory.  */
hws_tombstone_t *hws_tombstone_new (void);

/*  Remembers an anchor that is about to be freed: its tombstone and its reason are the
 *  engine's then, unless nothing is to be remembered.  */
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
