/*  rx: one anchor's merged stream, from runs in batches to the application's events.
 *
 *  It has two sides. This is the accepting one, which belongs to the session and is called
 *  under the client's lock: it knows each stream's expected number, skips what was seen,
 *  joins parts, lets one ending of each stream through, and queues what is left in blocks,
 *  one for each batch. The other is rx_reader.h.
 *
 *  Payloads are opaque; a block holds the ones it views into until the reader has
 *  moved past it.
 *
 *  Its states: docs/protocol.md, "State tables": "Anchor, at its receiver"; each stream's:
 *  "Sender's stream, at the receiver".
 */
#ifndef HWS_RX_H
#define HWS_RX_H

#include "base/error.h"
#include "base/list.h"
#include "base/map.h"
#include "client/payload.h"
#include "client/rx_streams.h"
#include "client/seen.h"
#include "hawser.h"
#include "proto/batch.h"
#include "proto/control.h"

#define HWS_RX_REMEMBERED_MAX 8192 /* consumed endings that are still known */

typedef enum {
    HWS_RX_OPENING, /* asked, not yet answered */
    HWS_RX_OPEN,
    HWS_RX_CLOSING, /* the application cancelled it: only broker-made endings pass */
    HWS_RX_CLOSED   /* its CLOSED event is queued, or the open was refused */
} hws_rx_state_t;

typedef enum { HWS_RX_EVENT_OPENED, HWS_RX_EVENT_CANCEL, HWS_RX_EVENT_CLOSED } hws_rx_event_t;

typedef enum {
    HWS_RX_STREAM_LIVE,
    HWS_RX_STREAM_ENDED,   /* its ending is queued */
    HWS_RX_STREAM_FINISHED /* the application has consumed its ending */
} hws_rx_stream_state_t;

typedef struct hws_rx_block hws_rx_block_t;

struct hws_rx_stream {
    hws_map_node_t node;        /* in the client's map of streams, by `id` */
    hws_map_node_t sender_node; /* in the other, by `sender_key` */
    hws_link_t link;            /* in `live` or `remembered` of its rx */
    hws_link_t ack_link;        /* in `acks` of its rx */
    hws_link_t cancel_link;     /* in `cancels` of its rx */
    hws_rx_t *rx;               /* the anchor it belongs to */
    uint64_t id;                /* routing session id; 0: not told in this epoch */
    uint8_t key[8];             /* the same, as bytes of the map */
    uint8_t sender_key[HWS_RX_KEY_SIZE];
    uint64_t sender_id;
    uint64_t seat_key; /* the broker's, for positions */
    char *label;       /* owned; never null */

    /* accepting side */
    hws_rx_stream_state_t state;
    bool is_own_ending;        /* by the sender itself, not by the broker */
    bool is_refused;           /* it broke the rules: of it only an ending is taken */
    bool is_cancel_due;        /* a CANCEL of this sender is to be said, and again at a reconnect */
    const char *cancel_reason; /* null unless a cancel was asked for */
    char *cancel_text;         /* owned: the application's words for it, or null */
    uint8_t ending;            /* that is queued: hws_run_type_t; 0: none, or it was made here */
    uint16_t cause;            /* of the ending */
    uint64_t next_seq;         /* expected */
    uint64_t next_bytes;       /* likewise */
    uint64_t finished_take;    /* how many takes there were when it was finished */
    uint8_t *join;             /* the parts so far of a record, or null */
    size_t join_size;          /* bytes in it */
    size_t join_room;          /* bytes that fit */
    uint64_t join_seq;         /* number of its first part */
    uint64_t join_wire;        /* bytes that its parts count */

    /* reading side */
    bool is_broken;          /* a malformed run: nothing of it is delivered any more */
    bool is_touched;         /* in the reader's list */
    bool is_ending_consumed; /* by the application */
    bool is_ending_shown;    /* to the application */
    uint64_t consumed_seq, consumed_bytes;
    uint64_t records, bytes; /* whole records shown, and their bytes */
    hws_rx_stream_t *touched_next;

    /* published: what the next ACK says */
    uint64_t acked_seq, acked_bytes;
    bool is_ended_acked;
};

struct hws_rx {
    hws_rx_state_t state;      /* written by advance () in rx.c only */
    hws_rx_streams_t *streams; /* the client's, of all its anchors */
    hws_handle_t handle;
    uint64_t record_bytes; /* the anchor's largest record; 0: not told */
    hws_list_t live;       /* streams not yet finished */
    hws_list_t remembered; /* finished ones that the reader may still look at, oldest first */
    hws_list_t past;       /* hws_rx_past_t: other finished ones, oldest first */
    hws_list_t acks;       /* streams with something to acknowledge */
    hws_list_t past_acks;  /* past ones likewise */
    hws_list_t cancels;    /* streams whose cancel is to be said */
    hws_list_t *busy;      /* the session's, of anchors with acks or cancels; null: nobody's */
    hws_link_t busy_link;
    uint64_t takes;       /* by the reader, so far */
    hws_seen_t seen;      /* sender ids that came */
    bool has_gap;         /* a run ahead came: the anchor is to be opened again */
    hws_rx_block_t *head; /* queue for the reader */
    hws_rx_block_t *tail;
    hws_rx_block_t *current; /* the block that the batch at hand fills, not yet queued */
    int result;              /* of the open, when it was refused: HWS_E… */
    bool is_cancelled;       /* by the application */
    bool is_cut;             /* it ended without the broker's word: only endings of the broker's are
                                acknowledged */
    bool is_closed_due;      /* CLOSED, with the endings before it, is still to be queued */
    uint16_t closed_cause;
    hws_reason_t closed_reason;
};

/*  An anchor that is being opened; streams are entered into `streams`.  */
void hws_rx_init (hws_rx_t *self, hws_rx_streams_t *streams);

/*  Frees streams and queue; the reader's blocks are freed by hws_rx_reader_fini.  */
void hws_rx_fini (hws_rx_t *self);

/*  OPEN was answered. No record in parts is joined beyond `record_bytes` (0: not told);
 *  the sender of a larger one is cancelled.  */
void hws_rx_opened (hws_rx_t *self, hws_handle_t handle, uint64_t record_bytes);

/*  The application cancels the anchor; its reader is told by hws_rx_reader_discard. False
 *  when it is closed already.  */
bool hws_rx_cancel (hws_rx_t *self);

/*  The anchor is about to be closed without the broker's word: the broker, which did not end
 *  the streams, is acknowledged nothing any more.  */
void hws_rx_cut (hws_rx_t *self);

/*  The endings that were consumed are acknowledged once more, for the word may have been lost
 *  with its connection: an anchor that is cancelled makes those cancelled that are not.  */
void hws_rx_acknowledge_endings (hws_rx_t *self);

/*  The anchor is gone: streams that have no ending yet get one with that cause, then comes
 *  CLOSED. So do those whose clean ending was not shown: nobody will acknowledge it any more,
 *  and their senders do not learn it either. The reader is told by hws_rx_reader_end.
 *  Idempotent.  */
void hws_rx_closed (hws_rx_t *self, uint16_t cause, const char *reason);

/*  Takes one run of a batch that has at most `runs_left` more. An ATTACHED run makes
 *  its stream, or says the number of one that is known from an earlier epoch; its body is
 *  `attached`. Any other goes to the stream of its number, which is this anchor's. Returns 0,
 * HWS_EPROTOCOL for what an honest broker would not send, HWS_ENO_MEMORY (the run is then as if it
 * had never come: a gap).  */
int hws_rx_attached (hws_rx_t *self, const hws_run_t *run, const hws_attached_t *attached,
                     hws_payload_t *payload, uint32_t runs_left);
int hws_rx_run (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                hws_payload_t *payload, uint32_t runs_left);

/*  The batch is at its end: what was taken of it is queued. Returns true when the
 *  reader has something new.  */
bool hws_rx_flush (hws_rx_t *self);

/*  Asks for the cancel of one sender. Returns 0, HWS_ENOT_FOUND, HWS_ENO_MEMORY.  */
int hws_rx_cancel_sender (hws_rx_t *self, uint64_t sender_id, const char *reason);

/*  The next sender whose cancel is to be said, or null; it is then said, unless it is asked
 *  for again.  */
hws_rx_stream_t *hws_rx_next_cancel (hws_rx_t *self);
void hws_rx_again_cancel (hws_rx_stream_t *stream);

/*  A new connection: cancels are to be said again.  */
void hws_rx_reconnected (hws_rx_t *self);

/*  A new epoch of the broker: streams have other routing session ids there, which ATTACHED will
 *  tell. Until then there is nothing to acknowledge.  */
void hws_rx_unbind (hws_rx_t *self);

/*  Takes the next acknowledgement. False when there is none.  */
bool hws_rx_next_ack (hws_rx_t *self, hws_ack_t *ack);

static inline bool hws_rx_has_events (const hws_rx_t *self)
{
    return self->head != NULL || self->is_closed_due;
}

#endif
