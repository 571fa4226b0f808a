#include "client/tx_part.h"

#include "base/assert.h"

#include <stdlib.h>
#include <string.h>

/*  ---- Places ---- */

static void ring_read (const hws_tx_t *self, uint64_t at, uint8_t *data, size_t size)
{
    const size_t offset = (size_t) at & (self->ring_size - 1);
    const size_t straight = self->ring_size - offset;
    if (size <= straight) {
        memcpy (data, self->ring + offset, size);
        return;
    }
    memcpy (data, self->ring + offset, straight);
    memcpy (data + straight, self->ring, size - straight);
}

/*  The size of the item at byte `offset` of the segment.  */
static uint32_t item_size (const hws_tx_t *self, const hws_tx_segment_t *segment, uint64_t offset)
{
    if (segment->type != HWS_RUN_RECORDS) {
        return (uint32_t) segment->size;
    }
    if (!segment->is_in_ring) {
        return HWS_RECORD_HEADER_SIZE + hws_get_u32 (segment->own + offset);
    }
    const uint64_t at = segment->ring_at + offset;
    const size_t straight = (size_t) at & (self->ring_size - 1);
    if (self->ring_size - straight >= HWS_RECORD_HEADER_SIZE) {
        return HWS_RECORD_HEADER_SIZE + hws_get_u32 (self->ring + straight);
    }
    uint8_t header[HWS_RECORD_HEADER_SIZE];
    ring_read (self, at, header, sizeof header);
    return HWS_RECORD_HEADER_SIZE + hws_get_u32 (header);
}

/*  The byte offset, in the segment, of the number `seq` of it, walking from an offset
 *  that is known for `from_seq`.  */
static uint64_t offset_of (const hws_tx_t *self, const hws_tx_segment_t *segment, uint64_t seq,
                           uint64_t from_seq, uint64_t from)
{
    if (seq == segment->first_seq + segment->count) {
        return segment->size;
    }
    for (; from_seq < seq; from_seq++) {
        from += item_size (self, segment, from);
    }
    return from;
}

/*  ---- What the broker says ---- */

/*  Counts what lies between two places of a segment as consumed.  */
static void count_acked (hws_tx_t *self, const hws_tx_segment_t *segment, uint64_t numbers,
                         uint64_t bytes, bool is_whole)
{
    if (segment->type != HWS_RUN_RECORDS) {
        return;
    }
    if (segment->is_parts) {
        self->acked_records += is_whole;
        self->acked_record_payload += is_whole ? segment->payload : 0;
        return;
    }
    self->acked_records += numbers;
    self->acked_record_payload += bytes - numbers * HWS_RECORD_HEADER_SIZE;
}

/*  Frees everything before `seq`, which is not above what was sent.  */
static void acknowledge (hws_tx_t *self, uint64_t seq)
{
    while (self->acked_seq < seq) {
        hws_tx_segment_t *const segment = hws_tx_segment_of (self->segments.head);
        hws_assert (segment != NULL);
        const uint64_t end_seq = segment->first_seq + segment->count;
        const uint64_t end_bytes = segment->first_bytes + segment->size;
        const uint64_t to_seq = seq < end_seq ? seq : end_seq;
        const uint64_t to_bytes =
            segment->first_bytes + offset_of (self, segment, to_seq, self->acked_seq,
                                              self->acked_bytes - segment->first_bytes);
        count_acked (self, segment, to_seq - self->acked_seq, to_bytes - self->acked_bytes,
                     to_seq == end_seq);
        if (segment->is_in_ring) {
            self->ring_head = segment->ring_at + (to_bytes - segment->first_bytes);
        }
        self->acked_seq = to_seq;
        self->acked_bytes = to_bytes;
        if (self->next_seq < to_seq) {
            self->next_seq = to_seq;
            self->next_bytes = to_bytes;
        }
        if (to_seq < end_seq) {
            break;
        }
        hws_assert (end_bytes == to_bytes);
        if (self->next == segment) {
            self->next = hws_tx_segment_of (segment->link.next);
        }
        hws_list_remove (&segment->link);
        free (segment);
    }
    if (self->acked_seq == self->end_seq && self->has_ending &&
        hws_tx_advance (self, HWS_TX_EVENT_END_ACKED)) {
        self->is_ready = false;
    }
}

/*  The stream is to be sent again from `seq`, between acked_seq and sent_seq.  */
static void rewind_to (hws_tx_t *self, uint64_t seq)
{
    hws_tx_segment_t *segment = hws_tx_segment_of (self->segments.head);
    while (segment && seq >= segment->first_seq + segment->count) {
        segment = hws_tx_segment_of (segment->link.next);
    }
    self->next = segment;
    self->next_seq = seq;
    if (!segment) {
        self->next_bytes = self->end_bytes;
        return;
    }
    const bool is_first = segment->first_seq < self->acked_seq;
    const uint64_t from_seq = is_first ? self->acked_seq : segment->first_seq;
    const uint64_t from = is_first ? self->acked_bytes - segment->first_bytes : 0;
    self->next_bytes = segment->first_bytes + offset_of (self, segment, seq, from_seq, from);
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

void hws_tx_attached (hws_tx_t *self, const hws_attach_ok_t *answer)
{
    if (!hws_tx_advance (self, HWS_TX_EVENT_ATTACHED)) {
        return;
    }
    self->sender_id = answer->sender_id;
    self->record_bytes = answer->record_bytes;
    raise_limits (self, sum (answer->next_seq, answer->initial_credit),
                  sum (answer->next_bytes, hws_attach_ok_window_bytes (answer)));
    self->is_ready = true;
    self->owes_window = false; /* the answer tells what is left */
    if (answer->acked_seq <= self->sent_seq) {
        acknowledge (self, answer->acked_seq);
    }
    if (self->state == HWS_TX_ENDED) {
        return;
    }
    if (answer->next_seq >= self->acked_seq && answer->next_seq <= self->sent_seq) {
        rewind_to (self, answer->next_seq);
    } else {
        rewind_to (self, self->acked_seq);
    }
}

void hws_tx_grant (hws_tx_t *self, const hws_grant_t *grant)
{
    if (self->state == HWS_TX_ATTACHING || self->state == HWS_TX_ENDED) {
        return;
    }
    if (grant->acked_seq <= self->sent_seq) {
        acknowledge (self, grant->acked_seq);
    }
    raise_limits (self, grant->limit_seq, grant->limit_bytes);
    if ((grant->flags & HWS_GRANT_REWIND) && grant->next_seq >= self->acked_seq &&
        grant->next_seq <= self->sent_seq) {
        rewind_to (self, grant->next_seq);
    }
    if ((grant->flags & HWS_GRANT_RETURN) && self->is_ready) {
        hws_tx_give_back (self);
    }
}

/*  ---- Sending ---- */

/*  How much of the segment, from next_bytes on, fits into `room`.  */
static uint32_t cut (const hws_tx_t *self, const hws_tx_segment_t *segment, size_t room,
                     uint32_t *size)
{
    const uint64_t from = self->next_bytes - segment->first_bytes;
    const uint64_t left = segment->size - from;
    const uint64_t numbers = segment->first_seq + segment->count - self->next_seq;
    if (!segment->is_parts && left <= room && left <= UINT32_MAX && numbers <= UINT32_MAX) {
        *size = (uint32_t) left;
        return (uint32_t) numbers;
    }
    uint32_t count = 0;
    uint32_t taken = 0;
    const uint64_t most = segment->is_parts ? 1 : numbers;
    while (count < most && count < UINT32_MAX) {
        const uint32_t item = item_size (self, segment, from + taken);
        if (item > room - taken || item > UINT32_MAX - taken) {
            break;
        }
        taken += item;
        count++;
    }
    *size = taken;
    return count;
}

size_t hws_tx_take (hws_tx_t *self, uint64_t stream, uint8_t *at, size_t room, uint32_t runs_max,
                    uint32_t *runs)
{
    uint8_t *const start = at;
    *runs = 0;
    if (!hws_tx_has_runs (self)) {
        return 0;
    }
    while (self->next && *runs < runs_max && room >= HWS_RUN_HEADER_SIZE) {
        hws_tx_segment_t *const segment = self->next;
        const uint64_t end_seq = segment->first_seq + segment->count;
        uint32_t size;
        const uint32_t count = cut (self, segment, room - HWS_RUN_HEADER_SIZE, &size);
        if (count == 0) {
            break;
        }
        const bool is_more = segment->is_parts && self->next_seq + 1 < end_seq;
        hws_run_put (at, &(hws_run_t){.stream = stream,
                                      .first_seq = self->next_seq,
                                      .count = count,
                                      .type = segment->type,
                                      .flags = is_more ? HWS_RUN_MORE : 0,
                                      .body = {.data = NULL, .size = size}});
        at += HWS_RUN_HEADER_SIZE;
        const uint64_t from = self->next_bytes - segment->first_bytes;
        if (segment->is_in_ring) {
            ring_read (self, segment->ring_at + from, at, size);
        } else {
            memcpy (at, segment->own + from, size);
        }
        at += size;
        room -= HWS_RUN_HEADER_SIZE + size;
        ++*runs;
        self->next_seq += count;
        self->next_bytes += size;
        if (self->next_seq == end_seq) {
            self->next = hws_tx_segment_of (segment->link.next);
        }
    }
    if (self->next_seq > self->sent_seq) {
        self->sent_seq = self->next_seq;
    }
    return (size_t) (at - start);
}
