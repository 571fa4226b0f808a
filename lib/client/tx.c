#include "client/tx.h"

#include "client/tx_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RING_SIZE_MIN = 4096, EVENTS = HWS_TX_EVENT_ENDED + 1, REFUSED = -1 };

/*  docs/protocol.md, "State tables".  */
static const int8_t states[EVENTS][HWS_TX_ENDED + 1] = {
    [HWS_TX_EVENT_ATTACHED] = {HWS_TX_OPEN, HWS_TX_OPEN, HWS_TX_ENDING, HWS_TX_CANCELLING, REFUSED},
    [HWS_TX_EVENT_END] = {REFUSED, HWS_TX_ENDING, HWS_TX_ENDING, REFUSED, REFUSED},
    [HWS_TX_EVENT_CANCEL] = {HWS_TX_CANCELLING, HWS_TX_CANCELLING, HWS_TX_CANCELLING,
                             HWS_TX_CANCELLING, REFUSED},
    [HWS_TX_EVENT_END_ACKED] = {REFUSED, REFUSED, HWS_TX_ENDED, HWS_TX_ENDED, REFUSED},
    [HWS_TX_EVENT_ENDED] = {HWS_TX_ENDED, HWS_TX_ENDED, HWS_TX_ENDED, HWS_TX_ENDED, REFUSED},
};

bool hws_tx_advance (hws_tx_t *self, hws_tx_event_t event)
{
    const int8_t state = states[event][self->state];
    if (state == REFUSED) {
        return false;
    }
    self->state = (hws_tx_state_t) state;
    return true;
}

/*  ---- The ring ---- */

static void ring_write (uint8_t *ring, size_t ring_size, uint64_t at, const void *data, size_t size)
{
    const size_t offset = (size_t) at & (ring_size - 1);
    const size_t straight = ring_size - offset;
    if (size <= straight) {
        memcpy (ring + offset, data, size);
        return;
    }
    memcpy (ring + offset, data, straight);
    memcpy (ring, (const uint8_t *) data + straight, size - straight);
}

/*  Makes sure that `size` more bytes fit; the window has been checked, so the ring
 *  stays below twice the window.  */
static int ring_grow (hws_tx_t *self, size_t size)
{
    const size_t used = (size_t) (self->ring_tail - self->ring_head);
    size_t wanted = self->ring_size ? self->ring_size : RING_SIZE_MIN;
    while (wanted - used < size) {
        if (wanted > SIZE_MAX / 4) {
            return HWS_ENO_MEMORY;
        }
        wanted *= 2;
    }
    uint8_t *const ring = malloc (wanted);
    if (!ring) {
        return HWS_ENO_MEMORY;
    }
    if (used > 0) {
        const size_t offset = (size_t) self->ring_head & (self->ring_size - 1);
        const size_t straight = self->ring_size - offset;
        const size_t first = used < straight ? used : straight;
        ring_write (ring, wanted, self->ring_head, self->ring + offset, first);
        ring_write (ring, wanted, self->ring_head + first, self->ring, used - first);
    }
    free (self->ring);
    self->ring = ring;
    self->ring_size = wanted;
    return 0;
}

static inline bool ring_has_room (const hws_tx_t *self, size_t size)
{
    return size <= self->ring_size - (size_t) (self->ring_tail - self->ring_head);
}

/*  ---- Segments ---- */

static hws_tx_segment_t *segment_new (hws_tx_t *self, hws_run_type_t type, size_t own_size)
{
    hws_tx_segment_t *const segment = malloc (sizeof *segment + own_size);
    if (segment) {
        *segment = (hws_tx_segment_t){.type = (uint8_t) type,
                                      .first_seq = self->end_seq,
                                      .first_bytes = self->end_bytes,
                                      .ring_at = self->ring_tail};
    }
    return segment;
}

/*  Puts a finished segment at the end of the stream.  */
static void segment_append (hws_tx_t *self, hws_tx_segment_t *segment)
{
    hws_list_append (&self->segments, &segment->link);
    self->end_seq += segment->count;
    self->end_bytes += segment->size;
    if (!self->next) {
        self->next = segment;
    }
}

/*  The segment that the next small record goes to, or null without memory.  */
static hws_tx_segment_t *segment_for_record (hws_tx_t *self)
{
    hws_tx_segment_t *const tail = hws_tx_segment_of (self->segments.tail);
    if (tail && tail->is_in_ring) {
        return tail;
    }
    hws_tx_segment_t *const segment = segment_new (self, HWS_RUN_RECORDS, 0);
    if (segment) {
        segment->is_in_ring = true;
        hws_list_append (&self->segments, &segment->link);
    }
    return segment;
}

/*  ---- Appending ---- */

static int refusal (const hws_tx_t *self)
{
    switch (self->state) {
    case HWS_TX_OPEN:
        return 0;
    case HWS_TX_ATTACHING:
        return HWS_EWOULD_BLOCK;
    case HWS_TX_ENDING:
        return HWS_EENDED;
    case HWS_TX_CANCELLING:
        return HWS_ECANCELLED;
    case HWS_TX_ENDED:
        break;
    }
    return self->result ? self->result : HWS_EENDED;
}

/*  Whether `count` numbers and `size` bytes more are allowed: 0 or HWS_EWOULD_BLOCK. A
 *  record larger than the whole window is asked for once nothing is before it.  */
static int admit (hws_tx_t *self, uint64_t count, uint64_t size)
{
    if (self->end_seq <= self->limit_seq && count <= self->limit_seq - self->end_seq &&
        self->end_bytes <= self->limit_bytes && size <= self->limit_bytes - self->end_bytes) {
        self->want_bytes = 0;
        return 0;
    }
    if (self->acked_seq == self->end_seq) {
        self->want_bytes = size;
    }
    return HWS_EWOULD_BLOCK;
}

static int check_record (const hws_tx_t *self, size_t size)
{
    const int rc = refusal (self);
    if (rc) {
        return rc;
    }
    if (size > HWS_RECORD_SIZE_MAX || (self->record_bytes > 0 && size > self->record_bytes)) {
        return HWS_ETOO_LARGE;
    }
    return 0;
}

/*  How many parts a large record travels in, and the bytes that they count.  */
static uint64_t part_count (size_t part_bytes, size_t size)
{
    return (size + part_bytes - 1) / part_bytes;
}

static uint64_t parts_wire (size_t part_bytes, size_t size)
{
    return size + part_count (part_bytes, size) * HWS_RECORD_HEADER_SIZE;
}

hws_tx_segment_t *hws_tx_parts_new (size_t part_bytes, const void *data, size_t size)
{
    const uint64_t wire = parts_wire (part_bytes, size);
    hws_tx_segment_t *const segment = malloc (sizeof *segment + (size_t) wire);
    if (!segment) {
        return NULL;
    }
    *segment = (hws_tx_segment_t){.type = HWS_RUN_RECORDS,
                                  .is_parts = true,
                                  .count = part_count (part_bytes, size),
                                  .size = wire,
                                  .payload = size};
    const uint8_t *from = data;
    uint8_t *at = segment->own;
    for (size_t left = size; left > 0;) {
        const size_t taken = left < part_bytes ? left : part_bytes;
        hws_record_put (at, (uint32_t) taken);
        memcpy (at + HWS_RECORD_HEADER_SIZE, from, taken);
        at += HWS_RECORD_HEADER_SIZE + taken;
        from += taken;
        left -= taken;
    }
    return segment;
}

int hws_tx_adopt (hws_tx_t *self, hws_tx_segment_t **parts)
{
    hws_tx_segment_t *const segment = *parts;
    self->is_reserved = false;
    int rc = check_record (self, segment->payload);
    rc = rc ? rc : admit (self, segment->count, segment->size);
    if (rc) {
        return rc;
    }
    segment->first_seq = self->end_seq;
    segment->first_bytes = self->end_bytes;
    segment_append (self, segment);
    self->records++;
    self->record_payload += segment->payload;
    *parts = NULL;
    return 0;
}

static int admit_parts (hws_tx_t *self, size_t size)
{
    return admit (self, part_count (self->part_bytes, size), parts_wire (self->part_bytes, size));
}

int hws_tx_probe (hws_tx_t *self, size_t size)
{
    const int rc = check_record (self, size);
    if (rc) {
        return rc;
    }
    return hws_tx_is_large (self, size) ? admit_parts (self, size)
                                        : admit (self, 1, HWS_RECORD_HEADER_SIZE + size);
}

/*  The same for a caller that has no lock to spare: refuses before it copies.  */
static int append_large (hws_tx_t *self, const void *data, size_t size)
{
    const int rc = admit_parts (self, size);
    if (rc) {
        return rc;
    }
    hws_tx_segment_t *parts = hws_tx_parts_new (self->part_bytes, data, size);
    return parts ? hws_tx_adopt (self, &parts) : HWS_ENO_MEMORY;
}

/*  Counts a record of `wire` bytes that lies at the ring's tail.  */
static int take_record (hws_tx_t *self, size_t size)
{
    hws_tx_segment_t *const segment = segment_for_record (self);
    if (!segment) {
        return HWS_ENO_MEMORY;
    }
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    segment->count++;
    segment->size += wire;
    self->ring_tail += wire;
    self->end_seq++;
    self->end_bytes += wire;
    self->records++;
    self->record_payload += size;
    if (!self->next) {
        self->next = segment;
    }
    return 0;
}

int hws_tx_append (hws_tx_t *self, const void *data, size_t size)
{
    self->is_reserved = false;
    int rc = check_record (self, size);
    if (rc) {
        return rc;
    }
    if (hws_tx_is_large (self, size)) {
        return append_large (self, data, size);
    }
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    rc = admit (self, 1, wire);
    if (!rc && !ring_has_room (self, wire)) {
        rc = ring_grow (self, wire);
    }
    if (rc) {
        return rc;
    }
    const size_t offset = (size_t) self->ring_tail & (self->ring_size - 1);
    if (wire <= self->ring_size - offset) {
        hws_record_put (self->ring + offset, (uint32_t) size);
        if (size > 0) {
            memcpy (self->ring + offset + HWS_RECORD_HEADER_SIZE, data, size);
        }
    } else {
        uint8_t header[HWS_RECORD_HEADER_SIZE];
        hws_record_put (header, (uint32_t) size);
        ring_write (self->ring, self->ring_size, self->ring_tail, header, sizeof header);
        if (size > 0) {
            ring_write (self->ring, self->ring_size, self->ring_tail + sizeof header, data, size);
        }
    }
    return take_record (self, size);
}

int hws_tx_reserve (hws_tx_t *self, void **room, size_t size)
{
    self->is_reserved = false;
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    const bool is_parts = hws_tx_is_large (self, size);
    int rc = hws_tx_probe (self, size);
    if (!rc && !is_parts && !ring_has_room (self, wire)) {
        rc = ring_grow (self, wire);
    }
    if (rc) {
        return rc;
    }
    const size_t offset = is_parts ? 0 : (size_t) self->ring_tail & (self->ring_size - 1);
    self->is_scratch_used = is_parts || wire > self->ring_size - offset;
    if (self->is_scratch_used && size > self->scratch_size) {
        uint8_t *const scratch = realloc (self->scratch, size);
        if (!scratch) {
            return HWS_ENO_MEMORY;
        }
        self->scratch = scratch;
        self->scratch_size = size;
    }
    self->is_reserved = true;
    self->reserved_size = size;
    *room = self->is_scratch_used ? self->scratch : self->ring + offset + HWS_RECORD_HEADER_SIZE;
    return 0;
}

int hws_tx_commit (hws_tx_t *self, size_t size)
{
    if (!self->is_reserved || size > self->reserved_size) {
        return HWS_EINVALID;
    }
    if (self->is_scratch_used) {
        return hws_tx_append (self, self->scratch, size);
    }
    self->is_reserved = false;
    const int rc = refusal (self);
    if (rc) {
        return rc;
    }
    hws_record_put (self->ring + ((size_t) self->ring_tail & (self->ring_size - 1)),
                    (uint32_t) size);
    return take_record (self, size);
}

int hws_tx_append_error (hws_tx_t *self, const char *text, size_t size)
{
    self->is_reserved = false;
    int rc = refusal (self);
    if (!rc && size > HWS_TEXT_SIZE_MAX) {
        rc = HWS_ETOO_LARGE;
    }
    if (!rc) {
        rc = admit (self, 1, size);
    }
    if (rc) {
        return rc;
    }
    hws_tx_segment_t *const segment = segment_new (self, HWS_RUN_ERROR, size);
    if (!segment) {
        return HWS_ENO_MEMORY;
    }
    segment->count = 1;
    segment->size = size;
    if (size > 0) {
        memcpy (segment->own, text, size);
    }
    segment_append (self, segment);
    return 0;
}

static int append_ending (hws_tx_t *self, hws_run_type_t type)
{
    if (self->state != HWS_TX_OPEN) {
        return self->state == HWS_TX_ENDING  ? 0
               : self->state == HWS_TX_ENDED ? self->result
                                             : refusal (self);
    }
    self->is_reserved = false;
    self->want_bytes = 0;
    hws_tx_segment_t *const segment = segment_new (self, type, HWS_ENDING_HEADER_SIZE);
    if (!segment) {
        return HWS_ENO_MEMORY;
    }
    segment->count = 1;
    segment->size = HWS_ENDING_HEADER_SIZE;
    hws_ending_put (segment->own, &(hws_ending_t){.cause = HWS_CAUSE_NONE,
                                                  .records = self->records,
                                                  .bytes = self->record_payload});
    segment_append (self, segment);
    self->has_ending = true;
    hws_tx_advance (self, HWS_TX_EVENT_END);
    return 0;
}

int hws_tx_detach (hws_tx_t *self)
{
    return append_ending (self, HWS_RUN_DETACHED);
}

int hws_tx_finalize (hws_tx_t *self)
{
    return append_ending (self, HWS_RUN_FINALIZED);
}

/*  ---- Its end ---- */

void hws_tx_suspend (hws_tx_t *self)
{
    self->is_ready = false;
}

void hws_tx_end (hws_tx_t *self, int result, const char *cause, const char *reason)
{
    if (!hws_tx_advance (self, HWS_TX_EVENT_ENDED)) {
        return;
    }
    self->result = result;
    if (result == 0) { /* then the receiver has consumed all of it */
        cause = "";
        self->acked_records = self->records;
        self->acked_record_payload = self->record_payload;
    }
    snprintf (self->cause, sizeof self->cause, "%s", cause);
    snprintf (self->reason, sizeof self->reason, "%s", reason);
    self->is_ready = false;
    self->want_bytes = 0;
}

bool hws_tx_cancel (hws_tx_t *self)
{
    self->want_bytes = 0;
    return hws_tx_advance (self, HWS_TX_EVENT_CANCEL);
}

int hws_tx_result_of (const char *ending)
{
    switch (hws_ending_from_word (ending)) {
    case HWS_RUN_DETACHED:
    case HWS_RUN_FINALIZED:
        return 0;
    case HWS_RUN_CANCELLED:
        return HWS_ECANCELLED;
    default:
        return HWS_ETRANSPORT;
    }
}

/*  ---- Birth and death ---- */

void hws_tx_set_batch_bytes (hws_tx_t *self, uint64_t batch_bytes)
{
    const uint64_t overhead = HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + HWS_RECORD_HEADER_SIZE;
    self->part_bytes = batch_bytes > overhead ? (size_t) (batch_bytes - overhead) : 1;
}

void hws_tx_init (hws_tx_t *self)
{
    *self = (hws_tx_t){.state = HWS_TX_ATTACHING};
    hws_tx_set_batch_bytes (self, HWS_BATCH_BYTES_DEFAULT);
}

void hws_tx_fini (hws_tx_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->segments)) != NULL) {
        free (hws_tx_segment_of (link));
    }
    free (self->ring);
    free (self->scratch);
    self->ring = NULL;
    self->scratch = NULL;
    self->next = NULL;
}
