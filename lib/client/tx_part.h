/*  What tx.c, tx_slice.c and tx_send.c share with each other; nobody else includes this.
 *
 *  tx.c has what the application does: it appends, reserves, ends. tx_slice.c has the memory.
 *  tx_send.c has what the broker makes of it: what is acknowledged, what is sent, and sent
 *  again. tx_window.c has limits that are lower than what the application was promised.
 *
 *  A slice and all that belongs to it lie in one block:
 *
 *      | hws_tx_slice_t | headroom | body … | next slice … | free | … marks |
 *
 *  The headroom takes the headers of a batch and of its only run when the slice leaves as
 *  it is. From then on nothing of its body or headroom changes: the message may be read still.
 *  Marks grow downward from the end of what the block had free: the offset of every
 *  64th record, so that no position is looked for by walking a whole slice.
 */
#ifndef HWS_TX_PART_H
#define HWS_TX_PART_H

#include "client/tx.h"

enum {
    HWS_TX_HEADROOM = HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE,
    HWS_TX_MARKED = 64, /* records from one mark to the next */
    HWS_TX_MARK_SIZE = sizeof (uint32_t)
};

/*  A stretch of numbers that is sent as runs of one type.  */
struct hws_tx_slice {
    hws_link_t link;      /* in `slices`, or of a record in parts */
    hws_block_t *block;   /* that it lies in, held */
    uint32_t *marks;      /* the first mark is right before this, the next before that */
    uint64_t first_seq;   /* number of the first */
    uint64_t first_bytes; /* byte position there */
    uint32_t count;       /* numbers */
    uint32_t size;        /* bytes of the body */
    uint32_t payload;     /* of the whole record that this is the last part of, else 0 */
    uint8_t type;         /* hws_run_type_t */
    uint8_t flags;        /* of its runs */
    bool is_part;         /* one part of a record */
    bool is_lent;         /* it has left as it is */
};

/*  The slice of a link, or null.  */
static inline hws_tx_slice_t *hws_tx_slice_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_tx_slice_t, link) : NULL;
}

static inline uint8_t *hws_tx_slice_body (hws_tx_slice_t *self)
{
    return (uint8_t *) (self + 1) + HWS_TX_HEADROOM;
}

static inline uint64_t hws_tx_slice_end (const hws_tx_slice_t *self)
{
    return self->first_seq + self->count;
}

/*  The longest body that leaves in one message.  */
static inline size_t hws_tx_body_max (const hws_tx_t *self)
{
    return self->part_bytes + HWS_RECORD_HEADER_SIZE;
}

/*  Begins a slice at the end of the stream, open if it is for records, with room for a body of
 *  `size` bytes. Null without memory: then nothing has changed.  */
hws_tx_slice_t *hws_tx_slice_new (hws_tx_t *tx, hws_run_type_t type, size_t size);

/*  Notes where the next record of the open slice begins.  */
void hws_tx_slice_mark (hws_tx_t *tx);

/*  Counts a record of `wire` bytes that was written at the end of the open slice.  */
static inline void hws_tx_slice_grow (hws_tx_t *tx, size_t wire)
{
    tx->open->size += (uint32_t) wire;
    tx->at += wire;
    tx->room -= wire;
    if (++tx->open->count % HWS_TX_MARKED == 0) {
        hws_tx_slice_mark (tx);
    }
}

/*  No more records go to the slice that is open, if there is one.  */
void hws_tx_slice_close (hws_tx_t *tx);

/*  A slice in a block of its own, for one part. Null without memory.  */
hws_tx_slice_t *hws_tx_part_new (hws_blocks_t *blocks, size_t size);

/*  Takes it out of its list, and lets its block go.  */
void hws_tx_slice_free (hws_tx_slice_t *self);

/*  Nothing is kept any more: lets go of the block that is being filled, or fills it anew.  */
void hws_tx_slice_drop_block (hws_tx_t *tx);

/*  The offset in the body of the `number`th record, or its end.  */
uint32_t hws_tx_slice_offset (hws_tx_slice_t *self, uint32_t number);

/*  How many numbers from `number`, at `offset`, on fit into `room`, and their size.  */
uint32_t hws_tx_slice_fit (hws_tx_slice_t *self, uint32_t number, uint32_t offset, size_t room,
                           uint32_t *size);

/*  Finds out how far the limits let pass what is appended.  */
void hws_tx_fit (hws_tx_t *self);

/*  RETURN came.  */
void hws_tx_give_back (hws_tx_t *self);

/*  Takes the event; false when the state refuses it.  */
bool hws_tx_advance (hws_tx_t *self, hws_tx_event_t event);

#endif
