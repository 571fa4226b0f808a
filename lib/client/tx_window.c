/*  tx: what the broker asks back of a window that was lent (docs/protocol.md, "Windows").  */
#include "client/tx_part.h"

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
    self->want_bytes = 0;
}

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
