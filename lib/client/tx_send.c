#include "client/tx_part.h"

#include "base/assert.h"

#include <string.h>

/*  ---- What the broker says ---- */

/*  Counts what lies between two places of a slice as consumed.  */
static void count_acked (hws_tx_t *self, const hws_tx_slice_t *slice, uint64_t numbers,
                         uint64_t bytes)
{
    if (slice->type != HWS_RUN_RECORDS) {
        return;
    }
    if (slice->is_part) {
        self->acked_records += !(slice->flags & HWS_RUN_MORE);
        self->acked_record_payload += slice->payload;
        return;
    }
    self->acked_records += numbers;
    self->acked_record_payload += bytes - numbers * HWS_RECORD_HEADER_SIZE;
}

/*  Frees a slice that is acknowledged to its end.  */
static void drop_slice (hws_tx_t *self, hws_tx_slice_t *slice)
{
    if (self->next == slice) {
        self->next = hws_tx_slice_of (slice->link.next);
    }
    if (self->open == slice) {
        self->open = NULL;
        self->room = 0;
    }
    hws_tx_slice_free (slice);
}

/*  Frees everything before `seq`, which is not above what was sent.  */
static void acknowledge (hws_tx_t *self, uint64_t seq)
{
    while (self->acked_seq < seq) {
        hws_tx_slice_t *const slice = hws_tx_slice_of (self->slices.head);
        hws_assert (slice != NULL);
        const uint64_t end_seq = hws_tx_slice_end (slice);
        const uint64_t to_seq = seq < end_seq ? seq : end_seq;
        const uint64_t to_bytes =
            slice->first_bytes +
            hws_tx_slice_offset (slice, (uint32_t) (to_seq - slice->first_seq));
        count_acked (self, slice, to_seq - self->acked_seq, to_bytes - self->acked_bytes);
        self->acked_seq = to_seq;
        self->acked_bytes = to_bytes;
        if (self->next_seq < to_seq) {
            self->next_seq = to_seq;
            self->next_bytes = to_bytes;
        }
        const bool is_kept = self->is_reserved && self->open == slice; /* the room is in it */
        if (to_seq == end_seq && !is_kept) {
            drop_slice (self, slice);
        } else if (self->next == slice && self->next_seq == end_seq) {
            self->next = NULL; /* it is the last; what is appended next is the next to send */
        }
    }
    if (self->slices.count == 0) {
        hws_tx_slice_drop_block (self);
    }
    if (self->acked_seq == self->end_seq && self->has_ending &&
        hws_tx_advance (self, HWS_TX_EVENT_END_ACKED)) {
        self->is_ready = false;
    }
}

/*  The stream is to be sent again from `seq`, between acked_seq and sent_seq.  */
static void rewind_to (hws_tx_t *self, uint64_t seq)
{
    hws_tx_slice_t *slice = hws_tx_slice_of (self->slices.head);
    while (slice && seq >= hws_tx_slice_end (slice)) {
        slice = hws_tx_slice_of (slice->link.next);
    }
    self->next = slice;
    self->next_seq = seq;
    self->next_bytes = slice ? slice->first_bytes +
                                   hws_tx_slice_offset (slice, (uint32_t) (seq - slice->first_seq))
                             : self->end_bytes;
}

static void raise_limits (hws_tx_t *self, uint64_t limit_seq, uint64_t limit_bytes)
{
    if (limit_seq > self->limit_seq) {
        self->limit_seq = limit_seq;
    }
    if (limit_bytes > self->limit_bytes) {
        self->limit_bytes = limit_bytes;
    }
}

static uint64_t sum (uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

void hws_tx_forget_limits (hws_tx_t *self)
{
    self->limit_seq = self->limit_bytes = 0;
}

void hws_tx_set_early (hws_tx_t *self, uint64_t records, uint64_t bytes)
{
    self->is_early = true;
    self->limit_seq = records;
    self->limit_bytes = bytes;
}

void hws_tx_attach_said (hws_tx_t *self)
{
    if (!self->is_early || !hws_tx_is_new (self)) {
        return;
    }
    const uint64_t ending_bytes = self->has_ending ? HWS_ENDING_HEADER_SIZE : 0;
    rewind_to (self, 0);
    self->is_ready = self->end_seq <= self->limit_seq + self->has_ending &&
                     self->end_bytes <= self->limit_bytes + ending_bytes;
}

void hws_tx_attached (hws_tx_t *self, const hws_attach_ok_t *answer)
{
    const bool was_new = hws_tx_is_new (self);
    if (!hws_tx_advance (self, HWS_TX_EVENT_ATTACHED)) {
        return;
    }
    self->sender_id = answer->sender_id;
    self->record_bytes = answer->record_bytes;
    if (was_new) {
        self->limit_seq = self->limit_bytes = 0; /* those of the early window */
    }
    raise_limits (self, sum (answer->next_seq, answer->initial_credit),
                  sum (answer->next_bytes, hws_attach_ok_window_bytes (answer)));
    self->is_ready = true;
    self->owes_window = false; /* the answer tells what is left */
    if (answer->acked_seq <= self->sent_seq) {
        acknowledge (self, answer->acked_seq);
    }
    hws_tx_fit (self);
    if (self->state == HWS_TX_ENDED) {
        return;
    }
    if (was_new && answer->early_kept && answer->next_seq <= self->next_seq) {
        return; /* what followed this ATTACH needs no repeating */
    }
    if (answer->next_seq >= self->acked_seq && answer->next_seq <= self->sent_seq) {
        rewind_to (self, answer->next_seq);
    } else {
        rewind_to (self, self->acked_seq);
    }
}

void hws_tx_grant (hws_tx_t *self, const hws_grant_t *grant)
{
    if (hws_tx_is_new (self) || self->state == HWS_TX_ENDED) {
        return;
    }
    if (grant->acked_seq <= self->sent_seq) {
        acknowledge (self, grant->acked_seq);
    }
    raise_limits (self, grant->limit_seq, grant->limit_bytes);
    if (self->is_over) {
        hws_tx_fit (self);
    }
    if ((grant->flags & HWS_GRANT_REWIND) && grant->next_seq >= self->acked_seq &&
        grant->next_seq <= self->sent_seq) {
        rewind_to (self, grant->next_seq);
    }
    if ((grant->flags & HWS_GRANT_RETURN) && self->is_ready) {
        hws_tx_give_back (self);
    }
}

/*  ---- Sending ---- */

void hws_tx_flush_to (hws_tx_t *self, uint64_t seq, uint64_t bytes)
{
    if (self->due_seq < seq) {
        self->due_seq = seq;
        self->due_bytes = bytes;
    }
}

void hws_tx_flush (hws_tx_t *self)
{
    hws_tx_flush_to (self, self->end_seq, self->end_bytes);
}

/*  Counts a run of the slice at hand as sent.  */
static void count_sent (hws_tx_t *self, uint32_t count, uint32_t size)
{
    self->next_seq += count;
    self->next_bytes += size;
    if (self->next_seq == hws_tx_slice_end (self->next)) {
        self->next = hws_tx_slice_of (self->next->link.next);
    }
    if (self->next_seq > self->sent_seq) {
        self->sent_seq = self->next_seq;
    }
}

/*  The header of a run from next_seq on.  */
static void put_run (const hws_tx_t *self, uint64_t stream, uint32_t count, uint32_t size,
                     uint8_t *at)
{
    hws_run_put (at, &(hws_run_t){.stream = stream,
                                  .first_seq = self->next_seq,
                                  .count = count,
                                  .type = self->next->type,
                                  .flags = self->next->flags,
                                  .body = {.data = NULL, .size = size}});
}

/*  How much of the slice at hand fits into `room`.  */
static uint32_t cut (const hws_tx_t *self, size_t room, uint32_t *size)
{
    hws_tx_slice_t *const slice = self->next;
    const uint32_t from = (uint32_t) (self->next_bytes - slice->first_bytes);
    const uint32_t number = (uint32_t) (self->next_seq - slice->first_seq);
    const bool is_due = hws_tx_slice_end (slice) <= hws_tx_due_seq (self);
    const uint32_t end =
        is_due ? slice->size : (uint32_t) (hws_tx_due_bytes (self) - slice->first_bytes);
    if (end - from <= room) {
        *size = end - from;
        return is_due ? slice->count - number : (uint32_t) (hws_tx_due_seq (self) - self->next_seq);
    }
    return hws_tx_slice_fit (slice, number, from, room, size);
}

/*  Only what is nearly a batch: cut shorter, messages would be more than copies cost. So a slice
 *  that may still grow is copied, and while the thread keeps up with the program all of it is.  */
bool hws_tx_can_lend (const hws_tx_t *self)
{
    const hws_tx_slice_t *const slice = self->next;
    return hws_tx_has_runs (self) && !self->is_gathered && !self->is_over && slice != self->open &&
           !slice->is_lent && self->next_seq == slice->first_seq &&
           slice->size >= HWS_TX_LENT_MIN && slice->size >= hws_tx_body_max (self) / 4 * 3 &&
           slice->size <= hws_tx_body_max (self);
}

size_t hws_tx_take (hws_tx_t *self, uint64_t stream, uint8_t *at, size_t room, uint32_t runs_max,
                    uint32_t *runs)
{
    uint8_t *const start = at;
    *runs = 0;
    while (hws_tx_has_runs (self) && *runs < runs_max && room >= HWS_RUN_HEADER_SIZE) {
        hws_tx_slice_t *const slice = self->next;
        uint32_t size;
        const uint32_t count = cut (self, room - HWS_RUN_HEADER_SIZE, &size);
        if (count == 0) {
            break;
        }
        put_run (self, stream, count, size, at);
        at += HWS_RUN_HEADER_SIZE;
        memcpy (at, hws_tx_slice_body (slice) + (self->next_bytes - slice->first_bytes), size);
        at += size;
        room -= HWS_RUN_HEADER_SIZE + size;
        ++*runs;
        count_sent (self, count, size);
        if (hws_tx_can_lend (self)) {
            break;
        }
    }
    return (size_t) (at - start);
}

hws_block_t *hws_tx_lend (hws_tx_t *self, uint64_t stream, uint8_t **message, size_t *size)
{
    hws_tx_slice_t *const slice = self->next;
    hws_assert (hws_tx_can_lend (self));
    uint8_t *const headroom = hws_tx_slice_body (slice) - HWS_TX_HEADROOM;
    hws_batch_put (headroom, HWS_BATCH_DATA, 1);
    put_run (self, stream, slice->count, slice->size, headroom + HWS_BATCH_HEADER_SIZE);
    *message = headroom;
    *size = HWS_TX_HEADROOM + slice->size;
    slice->is_lent = true;
    count_sent (self, slice->count, slice->size);
    slice->block->hold (slice->block);
    return slice->block;
}
