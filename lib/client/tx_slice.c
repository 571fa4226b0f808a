#include "client/tx_part.h"

/*  ---- Blocks ---- */

enum {
    ALIGNMENT = sizeof (uint64_t),
    OVERHEAD = sizeof (hws_tx_slice_t) + HWS_TX_HEADROOM,
    NOTES = OVERHEAD + HWS_TX_MARK_SIZE + 2 * ALIGNMENT /* all that a slice needs beside its body */
};

/*  A full batch has to fit into a block of its size and the extra.  */
_Static_assert (NOTES - HWS_TX_HEADROOM <= HWS_BLOCK_EXTRA, "a slice's notes are too long");

/*  Or a block that is filled anew may be in a message.  */
_Static_assert (HWS_BLOCK_SIZE_MIN + HWS_BLOCK_EXTRA < HWS_TX_LENT_MIN, "small blocks are lent");

static void fill_block (hws_tx_t *tx)
{
    tx->at = tx->block->bytes;
    tx->end = tx->block->bytes + tx->block->size / ALIGNMENT * ALIGNMENT;
}

/*  A block that doubles what is kept, so that a stream has what it needs and no more, for a body
 *  of `size` bytes at least.  */
static bool change_block (hws_tx_t *tx, size_t size)
{
    const size_t least = NOTES + size;
    const size_t most = NOTES + hws_tx_body_max (tx);
    const uint64_t kept = tx->end_bytes - tx->acked_bytes;
    size_t wanted = kept < HWS_BLOCK_SIZE_MIN ? HWS_BLOCK_SIZE_MIN : (size_t) kept;
    wanted = wanted < most ? wanted : most;
    hws_block_t *const block = tx->blocks->take (tx->blocks, wanted > least ? wanted : least);
    if (!block) {
        return false;
    }
    if (tx->block) {
        tx->block->release (tx->block);
    }
    tx->block = block;
    fill_block (tx);
    return true;
}

/*  Whether a slice may begin in the rest of the block. The last bit of a large one is left
 *  alone: it would make a short run.  */
static bool has_rest (const hws_tx_t *tx, hws_run_type_t type, size_t size)
{
    if (!tx->block) {
        return false;
    }
    const size_t rest = (size_t) (tx->end - tx->at);
    return rest >= NOTES + size && (type != HWS_RUN_RECORDS || rest >= tx->block->size / 8);
}

void hws_tx_slice_drop_block (hws_tx_t *tx)
{
    if (tx->block && tx->block->size > HWS_BLOCK_SIZE_MIN + HWS_BLOCK_EXTRA) {
        tx->block->release (tx->block);
        tx->block = NULL;
    } else if (tx->block) {
        fill_block (tx);
    }
}

/*  ---- Slices ---- */

/*  What the open slice takes still, if a mark follows.  */
static size_t room_of (const hws_tx_t *tx)
{
    const size_t straight = (size_t) (tx->end - tx->at);
    const size_t left =
        hws_tx_body_max (tx) > tx->open->size ? hws_tx_body_max (tx) - tx->open->size : 0;
    return straight < HWS_TX_MARK_SIZE          ? 0
           : straight - HWS_TX_MARK_SIZE < left ? straight - HWS_TX_MARK_SIZE
                                                : left;
}

void hws_tx_slice_close (hws_tx_t *tx)
{
    hws_tx_slice_t *const slice = tx->open;
    tx->open = NULL;
    tx->room = 0;
    if (slice && slice->count == 0) { /* a reservation that nothing came of */
        if (tx->next == slice) {
            tx->next = NULL;
        }
        hws_tx_slice_free (slice);
    }
}

hws_tx_slice_t *hws_tx_slice_new (hws_tx_t *tx, hws_run_type_t type, size_t size)
{
    if (!has_rest (tx, type, size) && !change_block (tx, size)) {
        return NULL;
    }
    hws_tx_slice_close (tx);
    const size_t misfit = (size_t) (tx->at - tx->block->bytes) % ALIGNMENT;
    tx->at += misfit > 0 ? ALIGNMENT - misfit : 0;
    hws_tx_slice_t *const slice = (hws_tx_slice_t *) (void *) tx->at;
    *slice = (hws_tx_slice_t){.block = tx->block,
                              .marks = (uint32_t *) (void *) tx->end,
                              .first_seq = tx->end_seq,
                              .first_bytes = tx->end_bytes,
                              .type = (uint8_t) type};
    slice->block->hold (slice->block);
    hws_list_append (&tx->slices, &slice->link);
    tx->at += OVERHEAD;
    if (type == HWS_RUN_RECORDS) {
        tx->open = slice;
        tx->room = room_of (tx);
    } else {
        tx->at += size;
    }
    return slice;
}

void hws_tx_slice_mark (hws_tx_t *tx)
{
    *(tx->open->marks - tx->open->count / HWS_TX_MARKED) = tx->open->size;
    tx->end -= HWS_TX_MARK_SIZE;
    tx->room = room_of (tx);
}

hws_tx_slice_t *hws_tx_part_new (hws_blocks_t *blocks, size_t size)
{
    hws_block_t *const block = blocks->take (blocks, OVERHEAD + size);
    if (!block) {
        return NULL;
    }
    hws_tx_slice_t *const slice = (hws_tx_slice_t *) (void *) block->bytes;
    *slice = (hws_tx_slice_t){.block = block,
                              .count = 1,
                              .size = (uint32_t) size,
                              .type = HWS_RUN_RECORDS,
                              .is_part = true};
    return slice;
}

void hws_tx_slice_free (hws_tx_slice_t *self)
{
    hws_list_remove (&self->link);
    self->block->release (self->block);
}

/*  ---- Places ---- */

static uint32_t item_size (hws_tx_slice_t *self, uint32_t offset)
{
    return self->type == HWS_RUN_RECORDS
               ? HWS_RECORD_HEADER_SIZE + hws_get_u32 (hws_tx_slice_body (self) + offset)
               : self->size;
}

/*  The offset of the record where the `index`th stretch between two marks begins.  */
static uint32_t mark_of (const hws_tx_slice_t *self, uint32_t index)
{
    return index > 0 ? *(self->marks - index) : 0;
}

uint32_t hws_tx_slice_offset (hws_tx_slice_t *self, uint32_t number)
{
    if (number == self->count) {
        return self->size;
    }
    uint32_t offset = mark_of (self, number / HWS_TX_MARKED);
    for (uint32_t i = number % HWS_TX_MARKED; i > 0; i--) {
        offset += item_size (self, offset);
    }
    return offset;
}

uint32_t hws_tx_slice_fit (hws_tx_slice_t *self, uint32_t number, uint32_t offset, size_t room,
                           uint32_t *size)
{
    uint32_t to = number;
    uint32_t end = offset;
    for (uint32_t i = number / HWS_TX_MARKED + 1;
         i <= self->count / HWS_TX_MARKED && mark_of (self, i) - offset <= room; i++) {
        to = i * HWS_TX_MARKED;
        end = mark_of (self, i);
    }
    while (to < self->count && item_size (self, end) <= room - (end - offset)) {
        end += item_size (self, end);
        to++;
    }
    *size = end - offset;
    return to - number;
}
