/*  Seats: the broker's state for one sender of one anchor (docs/protocol.md, "State
 *  tables": "Seat, at the broker").
 *
 *  EXITING is three states there: the sender's own clean ending was forwarded (exiting),
 *  can be rewound (rewound), or the ending is the broker's (ended). A seat that is gone
 *  leaves a tombstone.
 *
 *  Its limits are the business of broker/window.h.
 */
#ifndef HWS_SEAT_H
#define HWS_SEAT_H

#include "broker/anchor.h"
#include "broker/peer.h"

typedef enum { HWS_SEAT_ATTACHED, HWS_SEAT_AWAY, HWS_SEAT_EXITING } hws_seat_state_t;

/*  What few seats have.  */
typedef struct {
    hws_target_t target; /* of its cancel token, while it has no ending */
    hws_seat_t *seat;
    hws_handle_t stream_cancel_handle; /* the client's own */
    hws_name_t label;
} hws_seat_extra_t;

/*  There may be many thousands, most of them idle, so it matters what one takes.  */
struct hws_seat {
    hws_map_node_t by_session; /* under session_key */
    hws_map_node_t by_sender;  /* under sender_key */
    hws_map_node_t by_routing; /* under routing_session_id */
    union {
        struct {
            hws_peer_t *peer;
            uint64_t session_id; /* the client's own number */
        };
        uint8_t session_key[sizeof (hws_peer_t *) + sizeof (uint64_t)];
    };
    union {
        struct {
            hws_anchor_t *anchor;
            uint64_t sender_id;
        };
        uint8_t sender_key[sizeof (hws_anchor_t *) + sizeof (uint64_t)];
    };
    uint64_t routing_session_id;
    hws_seat_extra_t *extra; /* owned; null for none */
    hws_link_t in_anchor;
    hws_link_t in_peer;
    hws_link_t in_grants; /* a GRANT is due */
    hws_link_t in_wants;  /* a large record waits for room */
    hws_link_t in_lent;   /* something is lent to it, and it may be asked for that */

    hws_deadline_t deadline;
    hws_ms_t since_at;    /* when it left, while it is away; else no older silence counts */
    hws_ms_t rewound_at;  /* when the last REWIND was said */
    hws_ms_t replayed_at; /* when the receiver last opened again */

    hws_seat_state_t state;
    uint32_t grant_flags; /* of the GRANT that is due */
    bool has_gap;         /* runs ahead were dropped: REWIND comes again with each PONG */
    bool is_dead;         /* exiting, and its client is gone */
    bool is_unclaimed;    /* its client has given it up, or has come again and not attached yet */
    bool is_listed;       /* its receiver named it when it last resumed */
    bool is_asked;        /* RETURN was said, and WINDOW is to come */
    bool is_ending_ours;
    uint8_t ending;     /* run type of the ending, in EXITING */
    uint8_t own_ending; /* of the sender's own, which ours may have replaced; 0: none */
    uint16_t cause;     /* of the ending */
    char *reason;       /* of the ending; owned; null for none */
    uint64_t end_seq;   /* the number that the sender's own ending took */

    uint64_t next_seq; /* expected number */
    uint64_t next_bytes;
    uint64_t high_seq; /* highest number forwarded */
    uint64_t high_bytes;
    uint64_t acked_seq;
    uint64_t acked_bytes;
    uint64_t limit_seq;
    uint64_t limit_bytes;
    uint64_t want_bytes;     /* asked for one large record; 0: nothing */
    uint64_t reserved_bytes; /* its part of the anchor's budget */

    uint64_t records;    /* whole records forwarded */
    uint64_t bytes;      /* their payload */
    uint64_t part_bytes; /* payload of the parts of a record that is not whole yet */
};

/*  Seats a sender: takes an id (with `resume` that which it had, and its positions), a window and a
 * place in all the lists, and announces it to the receiver. Room was checked. Returns null without
 * memory.  */
hws_seat_t *hws_seat_new (hws_engine_t *engine, hws_anchor_t *anchor, hws_peer_t *peer,
                          const hws_attach_t *request);

/*  Takes it out of everything and frees what it owns, without a word. Its own memory is left,
 *  for its tombstone.  */
void hws_seat_take_out (hws_engine_t *engine, hws_seat_t *self);

/*  The same, and frees it; for the end of the engine.  */
void hws_seat_free (hws_engine_t *engine, hws_seat_t *self);

/*  The client attached again to the seat that it has.  */
void hws_seat_return (hws_engine_t *engine, hws_seat_t *self);

/*  The client is away from now on.  */
void hws_seat_leave (hws_engine_t *engine, hws_seat_t *self);

/*  The deadline has come.  */
void hws_seat_expire (hws_engine_t *engine, hws_seat_t *self);

/*  The broker ends the stream, at most once: the receiver gets the ending if it is
 *  present, the sender STREAM_CANCEL. `type` is HWS_RUN_DROPPED or
 *  HWS_RUN_CANCELLED, `reason` may be null. A clean ending of the sender is left
 *  alone, unless `override` says that its owner cancelled.  */
void hws_seat_end (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint16_t cause,
                   const char *reason, bool override);

/*  A run of the sender was forwarded: the expected number and byte move behind it.  */
void hws_seat_advance (hws_seat_t *self, const hws_run_t *run);

/*  The sender's own clean ending was forwarded, as number `seq`.  */
void hws_seat_exit (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint64_t seq);

/*  The ending is acknowledged or nobody is left to acknowledge it: leaves a tombstone
 *  and frees.  */
void hws_seat_gone (hws_engine_t *engine, hws_seat_t *self);

/*  The receiver has consumed up to here.  */
void hws_seat_acked (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes);

/*  The receiver has consumed the records up to here and the ending; the seat is gone. If it
 *  had consumed the sender's own ending before ours replaced it, that one counts.  */
void hws_seat_ended (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes);

/*  Says ATTACHED to the receiver. Returns 0 or HWS_ENO_MEMORY.  */
int hws_seat_announce (hws_engine_t *engine, hws_seat_t *self);

/*  Where it goes on at a receiver that missed everything: at what is acknowledged.  */
void hws_seat_fall_back (hws_seat_t *self);

/*  Where it goes on at a receiver that says where it stands. Its room may be good for others
 *  then; the caller sees to that. Returns 0, and the seat may be gone; or HWS_EPROTOCOL for what
 *  cannot be true.  */
int hws_seat_place (hws_engine_t *engine, hws_seat_t *self, const hws_position_t *position);

/*  The receiver opened again: announces the seat, then sends its ending again or makes
 *  the sender rewind to where it goes on.  */
void hws_seat_replay (hws_engine_t *engine, hws_seat_t *self);

/*  Makes the seat, in memory that the caller gives up, of what a receiver of the broker's life
 *  before says of it. It is nobody's. One that takes more than there is ends here.  */
void hws_seat_restore (hws_engine_t *engine, hws_anchor_t *anchor, hws_seat_t *self,
                       const hws_position_t *position);

/*  Nobody's seat is this client's from now on. Returns 0 or HWS_ENO_MEMORY.  */
int hws_seat_take (hws_engine_t *engine, hws_seat_t *self, hws_peer_t *peer,
                   const hws_attach_t *request);

/*  Asks the sender to begin again at next_seq.  */
void hws_seat_rewind (hws_engine_t *engine, hws_seat_t *self);

/*  The seat of a client's stream, of a sender id, of a routing session id; or null.  */
hws_seat_t *hws_seat_of_session (const hws_engine_t *engine, const hws_peer_t *peer,
                                 uint64_t session_id);
hws_seat_t *hws_seat_of_sender (const hws_engine_t *engine, const hws_anchor_t *anchor,
                                uint64_t sender_id);
hws_seat_t *hws_seat_of_routing (const hws_engine_t *engine, uint64_t routing_session_id);

/*  Fills an answer to ATTACH with what the seat has now.  */
void hws_seat_describe (const hws_engine_t *engine, const hws_seat_t *self,
                        hws_attach_ok_t *answer);

#endif
