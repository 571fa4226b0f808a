/*  Anchors: where many senders attach and one receiver reads (docs/protocol.md, "State
 *  tables": "Anchor, at the broker").
 *
 *  An abandoned anchor is gone after its orphan TTL, an open one without senders after
 *  its unattached timeout. A gone anchor leaves a tombstone.
 */
#ifndef HWS_ANCHOR_H
#define HWS_ANCHOR_H

#include "base/list.h"
#include "broker/deadline.h"
#include "broker/dedicated.h"
#include "broker/engine.h"
#include "broker/target.h"
#include "broker/unseen.h"
#include "proto/batch.h"

typedef struct hws_peer hws_peer_t;
typedef struct hws_seat hws_seat_t;
typedef struct hws_anchor hws_anchor_t;
typedef struct hws_tombstone hws_tombstone_t;

typedef enum { HWS_ANCHOR_OPEN, HWS_ANCHOR_ABANDONED, HWS_ANCHOR_CLOSING } hws_anchor_state_t;

struct hws_anchor {
    hws_map_node_t by_handle; /* under handle */
    hws_map_node_t by_name;   /* under name, if it has one */
    hws_handle_t handle;
    hws_name_t name;
    hws_map_node_t by_open; /* under open_key */
    union {
        struct {
            hws_peer_t *owner;
            uint64_t open_id; /* the owner's own number */
        };
        uint8_t open_key[sizeof (hws_peer_t *) + sizeof (uint64_t)];
    };
    hws_link_t in_owner;
    hws_link_t in_engine;
    hws_timer_t in_intervals; /* of the engine, at heartbeat_interval_ms */

    hws_anchor_state_t state;
    bool is_receiver_present; /* runs may be forwarded */
    hws_ms_t away_at;         /* since when the receiver is away */
    hws_ms_t empty_at;        /* since when there is no seat */
    hws_deadline_t deadline;
    hws_target_t target; /* of its cancel token */

    uint64_t heartbeat_interval_ms;
    uint64_t reconnect_grace_ms;
    hws_optional_t unattached_timeout_ms;
    uint64_t orphan_ttl_ms;
    hws_optional_t max_senders;
    uint64_t buffer_bytes;
    uint64_t window_bytes_min;
    uint64_t window_bytes_max;
    uint64_t window_records;
    uint64_t record_bytes; /* largest record */

    hws_list_t seats; /* of hws_seat_t, through in_anchor, in order of attach */
    hws_list_t wants; /* of hws_seat_t, through in_wants, in order of asking */
    hws_list_t lent;  /* of hws_seat_t, through in_lent, in order of last use */
    uint64_t next_sender_id;
    uint64_t live_count;     /* seats that are not exiting */
    uint64_t reserved_bytes; /* sum over all seats; never above buffer_bytes */
    uint64_t lent_bytes;     /* what the live ones have of that beyond their floors */
    uint64_t lent_count;     /* how many of them have any */

    hws_dedicated_t dedicated;

    hws_unseen_t unseen; /* none if it was not made anew, in another life of the broker */

    uint16_t cause;             /* of its end, in CLOSING */
    char *reason;               /* owned; null for none */
    hws_tombstone_t *tombstone; /* owned; made ahead, so that remembering cannot fail */
    uint64_t detached, finalized, dropped, cancelled;
};

/*  Makes an anchor of a request; limits were checked. Returns null without memory.  */
hws_anchor_t *hws_anchor_new (hws_engine_t *engine, hws_peer_t *owner, const hws_open_t *request);

/*  Frees it and its seats without a word.  */
void hws_anchor_free (hws_engine_t *engine, hws_anchor_t *self);

/*  By handle or name, or by what its owner calls it, or null; `find_other` looks for the same
 * handle of the other kind.  */
hws_anchor_t *hws_anchor_find (const hws_engine_t *engine, hws_handle_t handle);
hws_anchor_t *hws_anchor_find_other (const hws_engine_t *engine, hws_handle_t handle);
hws_anchor_t *hws_anchor_of_open (const hws_engine_t *engine, const hws_peer_t *owner,
                                  uint64_t open_id);
hws_anchor_t *hws_anchor_named (const hws_engine_t *engine, const char *name);

/*  The receiver missed everything: its seats go on at what is acknowledged.  */
void hws_anchor_fall_back (hws_anchor_t *self);

/*  Another OPEN has it from now on. If its owner had it by another number, that one is told so
 *  when it comes again, from `tombstone` (of hws_tombstone_new), and another client at once. The
 *  receiver is away until hws_anchor_present.  */
void hws_anchor_move (hws_engine_t *engine, hws_anchor_t *self, hws_peer_t *owner, uint64_t open_id,
                      hws_tombstone_t *tombstone);

/*  The owner's OPEN, first or repeated, was answered: everything is announced again.  */
void hws_anchor_present (hws_engine_t *engine, hws_anchor_t *self);

/*  The owner asks for another unattached timeout, which runs in full from now if there is no
 *  seat. Absent, or the one in force, changes nothing: an OPEN that is only repeated must not
 *  put the end off. The deadline is armed by hws_anchor_present.  */
void hws_anchor_set_timeout (const hws_engine_t *engine, hws_anchor_t *self, hws_optional_t asked);

/*  The receiver is away from now on.  */
void hws_anchor_leave (hws_engine_t *engine, hws_anchor_t *self);

/*  The owner ends the anchor (cancel, BYE) or nobody is there to read it: every seat
 *  ends now, clean endings that were not acknowledged included, and the anchor is
 *  gone.  */
void hws_anchor_close (hws_engine_t *engine, hws_anchor_t *self, uint16_t cause,
                       const char *reason);

/*  Somebody else ends it: every live seat is cancelled; the anchor is gone when the
 *  receiver has acknowledged the last ending. Of one that is closing only a finalize is
 *  overtaken: it may yet fail, a cancel may not.  */
void hws_anchor_cancel (hws_engine_t *engine, hws_anchor_t *self, uint16_t cause,
                        const char *reason);

/*  The sender of an exclusive anchor finalizes it: no other comes, and the anchor is gone
 *  when the receiver has acknowledged the last ending.  */
void hws_anchor_finalize (hws_anchor_t *self);

/*  The finalizing sender got another ending: the anchor is open for the next, unless
 *  somebody cancelled it meanwhile.  */
void hws_anchor_reopen (hws_anchor_t *self);

/*  Whether one sender at a time may attach to it.  */
bool hws_anchor_is_exclusive (const hws_anchor_t *self);

/*  The deadline has come.  */
void hws_anchor_expire (hws_engine_t *engine, hws_anchor_t *self);

/*  A seat is gone: closes a closing anchor without seats, lets waiting attaches try,
 *  serves large records, arms the unattached timeout.  */
void hws_anchor_seat_gone (hws_engine_t *engine, hws_anchor_t *self);

/*  Arms the deadline for the earliest of what the anchor waits for.  */
void hws_anchor_arm (hws_engine_t *engine, hws_anchor_t *self);

#endif
