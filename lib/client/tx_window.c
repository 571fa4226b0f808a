/*  tx: limits that are lower than before. The broker asks back what it has lent, and the stream
 *  keeps what the application was promised; a broker of another epoch knows of no promise, and
 *  what is appended beyond its limits waits (docs/protocol.md, "Windows").
 */
#include "client/tx_part.h"

/*  ---- RETURN ---- */

static uint64_t later (uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*  Up to where the application has been promised room: behind what is appended, a reservation,
 *  and the large record that it asked for and was allowed.  */
static uint64_t promised_bytes (const hws_tx_t *self)
{
    uint64_t promised = self->end_bytes;
    if (self->is_reserved) {
        const uint64_t parts = self->reserved_size / self->part_bytes + 1;
        promised += self->reserved_size + parts * HWS_RECORD_HEADER_SIZE;
    }
    const uint64_t wanted = self->acked_bytes + self->want_bytes;
    return wanted <= self->limit_bytes ? later (promised, wanted) : promised;
}

void hws_tx_give_back (hws_tx_t *self)
{
    const uint64_t promised = promised_bytes (self);
    if (promised < self->limit_bytes) {
        self->limit_bytes = promised;
    }
    self->owes_window = true;
}

void hws_tx_want_nothing (hws_tx_t *self)
{
    if (!self->is_over) { /* then it is for a record that is appended */
        self->want_bytes = 0;
    }
}

/*  ---- More than the limits ---- */

/*  Endings are free of limits.  */
static bool passes (const hws_tx_t *self, const hws_tx_slice_t *slice)
{
    return slice->type == HWS_RUN_DETACHED || slice->type == HWS_RUN_FINALIZED ||
           (hws_tx_slice_end (slice) <= self->limit_seq &&
            slice->first_bytes + slice->size <= self->limit_bytes);
}

/*  Where the records of the slice end that the limits let pass.  */
static void fit_in_slice (hws_tx_t *self, hws_tx_slice_t *slice)
{
    uint32_t count = 0;
    uint32_t size;
    if (slice->first_seq < self->limit_seq && slice->first_bytes < self->limit_bytes) {
        const uint64_t numbers = self->limit_seq - slice->first_seq;
        count = hws_tx_slice_fit (slice, 0, 0, self->limit_bytes - slice->first_bytes, &size);
        count = count < numbers ? count : (uint32_t) numbers;
    }
    self->fit_seq = slice->first_seq + count;
    self->fit_bytes = slice->first_bytes + hws_tx_slice_offset (slice, count);
}

/*  What has to be asked for: the record that is to be acknowledged next, with all its parts, when
 *  the limits do not let it pass; else 0.  */
static uint64_t wanted_bytes (const hws_tx_t *self)
{
    hws_tx_slice_t *slice = hws_tx_slice_of (self->slices.head);
    while (slice && hws_tx_slice_end (slice) <= self->acked_seq) {
        slice = hws_tx_slice_of (slice->link.next);
    }
    const bool is_wanted = self->state == HWS_TX_OPEN || self->state == HWS_TX_ENDING;
    if (!slice || !is_wanted || (self->fit_seq > self->acked_seq && !slice->is_part)) {
        return 0;
    }
    if (!slice->is_part) {
        const uint32_t number = (uint32_t) (self->acked_seq - slice->first_seq);
        return hws_tx_slice_offset (slice, number + 1) - hws_tx_slice_offset (slice, number);
    }
    uint64_t size = slice->size;
    while (slice->flags & HWS_RUN_MORE) {
        slice = hws_tx_slice_of (slice->link.next);
        size += slice->size;
    }
    return self->fit_seq < hws_tx_slice_end (slice) ? size : 0;
}

void hws_tx_fit (hws_tx_t *self)
{
    const bool was_over = self->is_over;
    hws_tx_slice_t *slice = hws_tx_slice_of (self->slices.head);
    while (slice && passes (self, slice)) {
        slice = hws_tx_slice_of (slice->link.next);
    }
    self->is_over = slice != NULL;
    if (slice) {
        fit_in_slice (self, slice);
    }
    if (self->is_over || was_over) {
        self->want_bytes = self->is_over ? wanted_bytes (self) : 0;
    }
}

bool hws_tx_keeps_larger (const hws_tx_t *self, uint64_t record_bytes)
{
    uint64_t parts_size = 0; /* of a record's parts so far */
    for (hws_link_t *link = self->slices.head; link; link = link->next) {
        hws_tx_slice_t *const slice = hws_tx_slice_of (link);
        if (slice->type != HWS_RUN_RECORDS) {
            continue;
        }
        for (uint32_t i = 0; i < slice->count && slice->size > record_bytes; i++) {
            const uint32_t wire =
                hws_tx_slice_offset (slice, i + 1) - hws_tx_slice_offset (slice, i);
            if (wire - HWS_RECORD_HEADER_SIZE > record_bytes) {
                return true;
            }
        }
        parts_size += slice->is_part ? slice->size - HWS_RECORD_HEADER_SIZE : 0;
        if (parts_size > record_bytes) {
            return true;
        }
        parts_size = slice->flags & HWS_RUN_MORE ? parts_size : 0;
    }
    return false;
}

/*  ---- WINDOW ---- */

bool hws_tx_next_window (hws_tx_t *self, hws_window_t *window)
{
    if (!self->is_ready || (!self->owes_window && self->want_bytes == 0)) {
        return false;
    }
    *window = (hws_window_t){.want_bytes = self->want_bytes};
    if (self->owes_window) {
        window->limit_seq = self->limit_seq;
        window->limit_bytes = self->limit_bytes;
        self->owes_window = false;
    }
    return true;
}
