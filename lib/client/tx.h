/*  tx: one sender's stream, from the application's records to runs in batches.
 *
 *  It keeps every record until the receiver has acknowledged it, already in the form
 *  of a run's body, in slices (tx_part.h) of shared blocks of memory (block.h), with room for
 *  the headers in front. So a full slice that was not sent before leaves as it lies there, as
 *  one message; what is short, or sent again, is copied once. Memory is the window's and two
 * blocks' at most. Positions are absolute and exclusive; grants are absolute, so a lost or repeated
 * one does no harm.
 *
 *  Pure: it sends nothing and waits for nothing. The session (client/session.h)
 *  tells it what the broker says and takes its runs; client_io calls the rest for
 *  the application, all under one lock.
 *
 *  Its states: docs/protocol.md, "State tables": "Sender's stream, at its client". ENDED is
 *  an event when the broker said how the stream ended, refused the attach, or is given up.
 */
#ifndef HWS_TX_H
#define HWS_TX_H

#include "base/error.h"
#include "base/list.h"
#include "client/block.h"
#include "proto/batch.h"
#include "proto/control.h"

#define HWS_TX_LENT_MIN (32 * 1024) /* a shorter piece is copied */

typedef enum {
    HWS_TX_ATTACHING,  /* asked, not yet answered */
    HWS_TX_OPEN,       /* records may be appended */
    HWS_TX_ENDING,     /* its own ending is appended, not yet acknowledged */
    HWS_TX_CANCELLING, /* the application cancelled it, the broker has not said so yet */
    HWS_TX_ENDED       /* `result` says how */
} hws_tx_state_t;

typedef enum {
    HWS_TX_EVENT_ATTACHED,
    HWS_TX_EVENT_END,
    HWS_TX_EVENT_CANCEL,
    HWS_TX_EVENT_END_ACKED,
    HWS_TX_EVENT_ENDED
} hws_tx_event_t;

typedef struct hws_tx_slice hws_tx_slice_t;

/*  A large record, cut into parts, that is not appended yet.  */
typedef struct {
    hws_list_t slices; /* one for each part */
    uint64_t count;    /* of them */
    uint64_t size;     /* bytes that they count in the stream */
    size_t payload;    /* of the record */
} hws_tx_parts_t;

typedef struct {
    hws_tx_state_t state; /* written by hws_tx_advance () only */
    bool is_ready;        /* attached on this connection: runs may be sent */
    bool is_cancel_late;  /* its own ending came first: that one is sent again if asked for */
    bool is_early;        /* records may be appended, and sent, before ATTACH is answered */

    /* what the attach answer gave */
    uint64_t sender_id;
    uint64_t record_bytes; /* the largest record that the anchor takes */

    /* positions in numbers and in bytes */
    uint64_t acked_seq, acked_bytes; /* consumed by the receiver */
    uint64_t next_seq, next_bytes;   /* to be sent next */
    uint64_t sent_seq;               /* the highest next_seq ever */
    uint64_t end_seq, end_bytes;     /* appended */
    uint64_t limit_seq, limit_bytes; /* allowed */
    uint64_t due_seq, due_bytes;     /* may leave, if it is_gathered; else all may */
    bool is_gathered;                /* what is appended waits until it is flushed */
    bool is_over;                    /* more is appended than the limits let pass, which is … */
    uint64_t fit_seq, fit_bytes;     /*   … what is before this */
    bool has_ending;                 /* its own ending is appended */
    uint64_t want_bytes;             /* asked for with WINDOW for a large record; 0: nothing */
    bool owes_window;                /* was asked to give back, and has not answered */

    /* counts of records and of their payload */
    uint64_t records, record_payload;             /* appended */
    uint64_t acked_records, acked_record_payload; /* acknowledged */

    /* storage */
    hws_blocks_t *blocks; /* where blocks come from */
    hws_list_t slices;    /* what is not acknowledged, in order */
    hws_tx_slice_t *next; /* the slice that next_seq is in, null: at the end */
    hws_tx_slice_t *open; /* the last slice, if it takes more records, or null */
    size_t room;          /* bytes that it takes; 0 without it */
    hws_block_t *block;   /* the block that is being filled, held, or null */
    uint8_t *at;          /* in it: what is behind is free, to … */
    uint8_t *end;         /*   … here */
    size_t part_bytes;    /* payload of a full part; a longer record travels in parts */

    /* a reservation */
    bool is_reserved;     /* there is one */
    size_t reserved_size; /* the largest size that may be committed */
    uint8_t *scratch;     /* where one that may travel in parts is written */
    size_t scratch_size;
    bool is_scratch_used;

    /* how it ended */
    int result;          /* 0 while it lives or after a clean end, else HWS_E… */
    hws_word_t cause;    /* "" or the stable word */
    hws_reason_t reason; /* a sentence */
} hws_tx_t;

/*  A stream that is being attached. `self` may lie anywhere and may not move.  */
void hws_tx_init (hws_tx_t *self, hws_blocks_t *blocks);

/*  Frees what the stream keeps.  */
void hws_tx_fini (hws_tx_t *self);

/*  The largest message that the broker takes, from its HELLO answer.  */
void hws_tx_set_batch_bytes (hws_tx_t *self, uint64_t batch_bytes);

/*  Whether what was cut for that may go to a broker which takes messages of `batch_bytes`.  */
bool hws_tx_is_cut_for (const hws_tx_t *self, uint64_t batch_bytes);

/*  Whether it keeps a record of more than so many bytes.  */
bool hws_tx_keeps_larger (const hws_tx_t *self, uint64_t record_bytes);

/*  Appends one record. Returns 0, HWS_EWOULD_BLOCK when the window has no room (and
 *  then `want_bytes` is set if it never would have), HWS_ETOO_LARGE, HWS_EENDED
 *  after its own ending, HWS_ENO_MEMORY, or how the stream ended. After an error nothing
 *  has changed.  */
int hws_tx_append (hws_tx_t *self, const void *data, size_t size);

/*  Whether hws_tx_append would take a record of this size; returns as it does, and asks for a
 *  larger window likewise.  */
int hws_tx_probe (hws_tx_t *self, size_t size);

/*  Whether a record of this size travels in parts. Such a record is made ready without the
 *  stream's lock, for copying it takes long, and then adopted under it.  */
static inline bool hws_tx_is_large (const hws_tx_t *self, size_t size)
{
    return size > self->part_bytes;
}

/*  Copies a large record and cuts it into parts of `part_bytes`. They are the caller's, for
 *  hws_tx_parts_fini, and may be empty. Returns 0 or HWS_ENO_MEMORY.  */
int hws_tx_parts_init (hws_tx_parts_t *parts, hws_blocks_t *blocks, size_t part_bytes,
                       const void *data, size_t size);
void hws_tx_parts_fini (hws_tx_parts_t *parts);

/*  Appends the record that is in parts, and takes them on success. Returns as
 *  hws_tx_append.  */
int hws_tx_adopt (hws_tx_t *self, hws_tx_parts_t *parts);

/*  Room for a record of at most `size` bytes, until the next call that appends;
 *  hws_tx_commit appends it with its true size, HWS_EINVALID without a reservation or
 *  when it is larger. Return as hws_tx_append.  */
int hws_tx_reserve (hws_tx_t *self, void **room, size_t size);
int hws_tx_commit (hws_tx_t *self, size_t size);

/*  Appends the text of an error; returns as hws_tx_append.  */
int hws_tx_append_error (hws_tx_t *self, const char *text, size_t size);

/*  Appends the clean ending, whatever the window: DETACHED, or FINALIZED, which also closes
 *  an exclusive anchor. The first one counts, another changes nothing. Returns 0,
 *  HWS_ENO_MEMORY, or how the stream ended.  */
int hws_tx_detach (hws_tx_t *self);
int hws_tx_finalize (hws_tx_t *self);

/*  The application gives the stream up; nothing more is sent. Returns false when
 *  it has ended already.  */
bool hws_tx_cancel (hws_tx_t *self);

/*  The attach was answered: positions and limits in force.  */
void hws_tx_attached (hws_tx_t *self, const hws_attach_ok_t *answer);

/*  The answer that comes next is of another epoch: what the broker of before has allowed is void.
 *  More may be appended than the new limits let pass; that waits, and nothing of it is lost.  */
void hws_tx_forget_limits (hws_tx_t *self);

/*  Before the attach is answered records may be appended, and sent behind ATTACH, up to this
 *  window, none of them in parts; and so may the ending. What became of them the answer tells.  */
void hws_tx_set_early (hws_tx_t *self, uint64_t records, uint64_t bytes);

/*  ATTACH was said, or said again: what was appended early follows, from the beginning.  */
void hws_tx_attach_said (hws_tx_t *self);

/*  Whether the first ATTACH has not been answered yet.  */
static inline bool hws_tx_is_new (const hws_tx_t *self)
{
    return self->sender_id == 0 && self->state != HWS_TX_ENDED;
}

/*  The connection is gone: nothing is sent until the next attach answer.  */
void hws_tx_suspend (hws_tx_t *self);

/*  A grant came. Limits rise, but for RETURN: then the stream keeps what it has promised to the
 *  application, and owes WINDOW. What cannot be true is ignored.  */
void hws_tx_grant (hws_tx_t *self, const hws_grant_t *grant);

/*  The application waits no longer with its large record: it wants no room for it, and what was
 *  allowed may be asked back.  */
void hws_tx_want_nothing (hws_tx_t *self);

/*  The WINDOW that is to be said: the answer to RETURN, what is wanted, or both; but for its
 *  `stream`. Returns false if there is none.  */
bool hws_tx_next_window (hws_tx_t *self, hws_window_t *window);

/*  The stream is over, by somebody else's word. `result` 0: it ended cleanly. Ignored
 *  when it has ended already.  */
void hws_tx_end (hws_tx_t *self, int result, const char *cause, const char *reason);

/*  What a stream's end is for the program: the ending's word as a code.  */
int hws_tx_result_of (const char *ending);

/*  Of a stream that is gathered: what was appended, or what lies before a position, may leave.
 *  An ending, and a record that finds no room, have the same done.  */
void hws_tx_flush (hws_tx_t *self);
void hws_tx_flush_to (hws_tx_t *self, uint64_t seq, uint64_t bytes);

/*  The number that may not leave yet, and the position there.  */
static inline uint64_t hws_tx_due_seq (const hws_tx_t *self)
{
    const uint64_t due_seq = self->is_gathered ? self->due_seq : self->end_seq;
    return self->is_over && self->fit_seq < due_seq ? self->fit_seq : due_seq;
}

static inline uint64_t hws_tx_due_bytes (const hws_tx_t *self)
{
    const uint64_t due_bytes = self->is_gathered ? self->due_bytes : self->end_bytes;
    return self->is_over && self->fit_bytes < due_bytes ? self->fit_bytes : due_bytes;
}

/*  Whether hws_tx_take has something.  */
static inline bool hws_tx_has_runs (const hws_tx_t *self)
{
    return self->is_ready && self->next_seq < hws_tx_due_seq (self) &&
           (self->state != HWS_TX_CANCELLING || self->is_cancel_late) &&
           self->state != HWS_TX_ENDED;
}

/*  Writes runs into `room` bytes at `at`, at most `runs_max`, and counts them in
 *  `runs`; a run whose first record does not fit is left for the next batch, and so is what
 *  can be lent, if it is not the first. Returns
 *  the bytes written.  */
size_t hws_tx_take (hws_tx_t *self, uint64_t stream, uint8_t *at, size_t room, uint32_t runs_max,
                    uint32_t *runs);

/*  Whether what is next is long enough to leave without a copy, as a message of its own. What is
 *  gathered does not: it leaves with others.  */
bool hws_tx_can_lend (const hws_tx_t *self);

/*  That message, a batch of one run. Its bytes lie in the block that is returned, which is
 *  held for the caller.  */
hws_block_t *hws_tx_lend (hws_tx_t *self, uint64_t stream, uint8_t **message, size_t *size);

#endif
