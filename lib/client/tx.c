#include "client/tx.h"

#include "client/tx_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EVENTS = HWS_TX_EVENT_ENDED + 1, REFUSED = -1 };

/*  docs/protocol.md, "State tables".  */
static const int8_t states[EVENTS][HWS_TX_ENDED + 1] = {
    [HWS_TX_EVENT_ATTACHED] = {HWS_TX_OPEN, HWS_TX_OPEN, HWS_TX_ENDING, HWS_TX_CANCELLING, REFUSED},
    [HWS_TX_EVENT_END] = {HWS_TX_ENDING, HWS_TX_ENDING, HWS_TX_ENDING, REFUSED, REFUSED},
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

/*  ---- Appending ---- */

static int refusal (const hws_tx_t *self)
{
    switch (self->state) {
    case HWS_TX_OPEN:
        return 0;
    case HWS_TX_ATTACHING:
        return self->is_early ? 0 : HWS_EWOULD_BLOCK;
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
    hws_tx_flush (self);
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
    /* How long parts may be is not known before the answer. */
    return self->state == HWS_TX_ATTACHING && hws_tx_is_large (self, size) ? HWS_EWOULD_BLOCK : 0;
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

int hws_tx_parts_init (hws_tx_parts_t *parts, hws_blocks_t *blocks, size_t part_bytes,
                       const void *data, size_t size)
{
    *parts = (hws_tx_parts_t){.count = part_count (part_bytes, size),
                              .size = parts_wire (part_bytes, size),
                              .payload = size};
    const uint8_t *from = data;
    for (size_t left = size; left > 0;) {
        const size_t taken = left < part_bytes ? left : part_bytes;
        hws_tx_slice_t *const slice = hws_tx_part_new (blocks, HWS_RECORD_HEADER_SIZE + taken);
        if (!slice) {
            hws_tx_parts_fini (parts);
            return HWS_ENO_MEMORY;
        }
        hws_list_append (&parts->slices, &slice->link);
        hws_record_put (hws_tx_slice_body (slice), (uint32_t) taken);
        memcpy (hws_tx_slice_body (slice) + HWS_RECORD_HEADER_SIZE, from, taken);
        from += taken;
        left -= taken;
        slice->flags = left > 0 ? HWS_RUN_MORE : 0;
        slice->payload = left > 0 ? 0 : (uint32_t) size;
    }
    return 0;
}

void hws_tx_parts_fini (hws_tx_parts_t *parts)
{
    while (parts->slices.head) {
        hws_tx_slice_free (hws_tx_slice_of (parts->slices.head));
    }
}

/*  Counts what a slice at the end of the stream has brought.  */
static void count_appended (hws_tx_t *self, hws_tx_slice_t *slice, uint64_t count, uint64_t size)
{
    self->end_seq += count;
    self->end_bytes += size;
    if (!self->next) {
        self->next = slice;
    }
}

static void count_record (hws_tx_t *self, size_t size)
{
    self->records++;
    self->record_payload += size;
}

/*  Appends the record that is in parts, and takes them.  */
static void put_parts (hws_tx_t *self, hws_tx_parts_t *parts)
{
    hws_tx_slice_close (self);
    hws_link_t *link;
    while ((link = hws_list_pop (&parts->slices)) != NULL) {
        hws_tx_slice_t *const slice = hws_tx_slice_of (link);
        slice->first_seq = self->end_seq;
        slice->first_bytes = self->end_bytes;
        hws_list_append (&self->slices, link);
        count_appended (self, slice, slice->count, slice->size);
    }
    count_record (self, parts->payload);
}

int hws_tx_adopt (hws_tx_t *self, hws_tx_parts_t *parts)
{
    self->is_reserved = false;
    int rc = check_record (self, parts->payload);
    rc = rc ? rc : admit (self, parts->count, parts->size);
    if (!rc) {
        put_parts (self, parts);
    }
    return rc;
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

/*  Cuts a large record, which was admitted, and appends it.  */
static int put_large (hws_tx_t *self, const void *data, size_t size)
{
    hws_tx_parts_t parts;
    const int rc = hws_tx_parts_init (&parts, self->blocks, self->part_bytes, data, size);
    if (!rc) {
        put_parts (self, &parts);
    }
    return rc;
}

/*  Counts a record that lies at the end of the open slice.  */
static inline void take_record (hws_tx_t *self, size_t size)
{
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    hws_tx_slice_grow (self, wire);
    count_appended (self, self->open, 1, wire);
    count_record (self, size);
}

/*  Appends a record that the open slice has room for.  */
static inline void put_record (hws_tx_t *self, const void *data, size_t size)
{
    hws_record_put (self->at, (uint32_t) size);
    if (size > 0) {
        memcpy (self->at + HWS_RECORD_HEADER_SIZE, data, size);
    }
    take_record (self, size);
}

/*  Whether the open slice, the window and the state have nothing against the record.  */
static inline bool is_plain (const hws_tx_t *self, size_t size)
{
    return self->room >= HWS_RECORD_HEADER_SIZE && size <= self->room - HWS_RECORD_HEADER_SIZE &&
           self->state == HWS_TX_OPEN && self->end_seq < self->limit_seq &&
           self->end_bytes + HWS_RECORD_HEADER_SIZE + size <= self->limit_bytes &&
           (size <= self->record_bytes || self->record_bytes == 0);
}

/*  Appends a record that was admitted.  */
static int put_anyhow (hws_tx_t *self, const void *data, size_t size)
{
    if (hws_tx_is_large (self, size)) {
        return put_large (self, data, size);
    }
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    if (wire > self->room && !hws_tx_slice_new (self, HWS_RUN_RECORDS, wire)) {
        return HWS_ENO_MEMORY;
    }
    put_record (self, data, size);
    return 0;
}

static int append_anyhow (hws_tx_t *self, const void *data, size_t size)
{
    const int rc = hws_tx_probe (self, size);
    return rc ? rc : put_anyhow (self, data, size);
}

int hws_tx_append (hws_tx_t *self, const void *data, size_t size)
{
    self->is_reserved = false;
    if (!is_plain (self, size)) {
        return append_anyhow (self, data, size);
    }
    self->want_bytes = 0;
    put_record (self, data, size);
    return 0;
}

static int reserve_scratch (hws_tx_t *self, size_t size)
{
    if (size > self->scratch_size) {
        uint8_t *const scratch = realloc (self->scratch, size);
        if (!scratch) {
            return HWS_ENO_MEMORY;
        }
        self->scratch = scratch;
        self->scratch_size = size;
    }
    return 0;
}

static int reserve_in_slice (hws_tx_t *self, size_t size)
{
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    return wire <= self->room || hws_tx_slice_new (self, HWS_RUN_RECORDS, wire) ? 0
                                                                                : HWS_ENO_MEMORY;
}

int hws_tx_reserve (hws_tx_t *self, void **room, size_t size)
{
    self->is_reserved = false;
    const bool is_parts = hws_tx_is_large (self, size);
    int rc = hws_tx_probe (self, size);
    if (!rc) {
        rc = is_parts ? reserve_scratch (self, size) : reserve_in_slice (self, size);
    }
    if (rc) {
        return rc;
    }
    self->is_scratch_used = is_parts;
    self->is_reserved = true;
    self->reserved_size = size;
    *room = is_parts ? self->scratch : self->at + HWS_RECORD_HEADER_SIZE;
    return 0;
}

/*  The room was promised, though a broker of another epoch may not know of that. It may not take
 *  so large a record either.  */
int hws_tx_commit (hws_tx_t *self, size_t size)
{
    if (!self->is_reserved || size > self->reserved_size) {
        return HWS_EINVALID;
    }
    self->is_reserved = false;
    int rc = refusal (self);
    if (!rc && self->record_bytes > 0 && size > self->record_bytes) {
        rc = HWS_ETOO_LARGE;
    }
    if (rc) {
        return rc;
    }
    if (self->is_scratch_used) {
        rc = put_anyhow (self, self->scratch, size);
    } else {
        hws_record_put (self->at, (uint32_t) size);
        take_record (self, size);
    }
    if (self->end_seq > self->limit_seq || self->end_bytes > self->limit_bytes) {
        hws_tx_fit (self);
    }
    return rc;
}

/*  Appends one number of another type, with a body of `size` bytes for the caller to write at
 *  `*body`.  */
static int append_single (hws_tx_t *self, hws_run_type_t type, size_t size, uint8_t **body)
{
    hws_tx_slice_t *const slice = hws_tx_slice_new (self, type, size);
    if (!slice) {
        return HWS_ENO_MEMORY;
    }
    slice->count = 1;
    slice->size = (uint32_t) size;
    count_appended (self, slice, 1, size);
    *body = hws_tx_slice_body (slice);
    return 0;
}

int hws_tx_append_error (hws_tx_t *self, const char *text, size_t size)
{
    self->is_reserved = false;
    int rc = refusal (self);
    if (!rc && size > HWS_TEXT_SIZE_MAX) {
        rc = HWS_ETOO_LARGE;
    }
    uint8_t *body;
    rc = rc ? rc : admit (self, 1, size);
    rc = rc ? rc : append_single (self, HWS_RUN_ERROR, size, &body);
    if (!rc && size > 0) {
        memcpy (body, text, size);
    }
    return rc;
}

static int append_ending (hws_tx_t *self, hws_run_type_t type)
{
    if (self->state != HWS_TX_OPEN && !(self->state == HWS_TX_ATTACHING && self->is_early)) {
        return self->state == HWS_TX_ENDING  ? 0
               : self->state == HWS_TX_ENDED ? self->result
                                             : refusal (self);
    }
    self->is_reserved = false;
    hws_tx_want_nothing (self);
    uint8_t *body;
    const int rc = append_single (self, type, HWS_ENDING_HEADER_SIZE, &body);
    if (rc) {
        return rc;
    }
    hws_ending_put (body, &(hws_ending_t){.cause = HWS_CAUSE_NONE,
                                          .records = self->records,
                                          .bytes = self->record_payload});
    self->has_ending = true;
    hws_tx_flush (self);
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
    self->is_ready = self->is_cancel_late = false;
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

static size_t part_bytes_of (uint64_t batch_bytes)
{
    const uint64_t overhead = HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + HWS_RECORD_HEADER_SIZE;
    return batch_bytes > overhead ? (size_t) (batch_bytes - overhead) : 1;
}

void hws_tx_set_batch_bytes (hws_tx_t *self, uint64_t batch_bytes)
{
    self->part_bytes = part_bytes_of (batch_bytes);
}

bool hws_tx_is_cut_for (const hws_tx_t *self, uint64_t batch_bytes)
{
    return self->part_bytes <= part_bytes_of (batch_bytes);
}

void hws_tx_init (hws_tx_t *self, hws_blocks_t *blocks)
{
    *self = (hws_tx_t){.state = HWS_TX_ATTACHING, .blocks = blocks};
    hws_tx_set_batch_bytes (self, HWS_BATCH_BYTES_DEFAULT);
}

void hws_tx_fini (hws_tx_t *self)
{
    while (self->slices.head) {
        hws_tx_slice_free (hws_tx_slice_of (self->slices.head));
    }
    if (self->block) {
        self->block->release (self->block);
    }
    free (self->scratch);
    self->block = NULL;
    self->scratch = NULL;
    self->next = self->open = NULL;
    self->room = 0;
}
