#include "client/tx.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  A stretch of numbers that is sent as runs of one type.  */
struct hws_tx_segment {
    hws_link_t link;      /* in `segments` */
    uint8_t type;         /* hws_run_type_t */
    bool is_in_ring;      /* its bytes are in the ring, else in `own` */
    bool is_parts;        /* one record, each number one part of it */
    uint64_t first_seq;   /* number of the first */
    uint64_t first_bytes; /* byte position there */
    uint64_t count;       /* numbers */
    uint64_t size;        /* bytes */
    uint64_t ring_at;     /* in the ring: the count of its first byte */
    size_t payload;       /* of the record in parts */
    uint8_t own[];        /* else: the bytes, in the form of runs' bodies */
};

enum { RING_SIZE_MIN = 4096, EVENTS = HWS_TX_EVENT_ENDED + 1, REFUSED = -1 };

/*  The table at the top of tx.h.  */
static const int8_t states[EVENTS][HWS_TX_ENDED + 1] = {
    [HWS_TX_EVENT_ATTACHED] = {HWS_TX_OPEN, HWS_TX_OPEN, HWS_TX_ENDING, HWS_TX_CANCELLING, REFUSED},
    [HWS_TX_EVENT_DETACH] = {REFUSED, HWS_TX_ENDING, HWS_TX_ENDING, REFUSED, REFUSED},
    [HWS_TX_EVENT_CANCEL] = {HWS_TX_CANCELLING, HWS_TX_CANCELLING, HWS_TX_CANCELLING,
                             HWS_TX_CANCELLING, REFUSED},
    [HWS_TX_EVENT_END_ACKED] = {REFUSED, REFUSED, HWS_TX_ENDED, HWS_TX_ENDED, REFUSED},
    [HWS_TX_EVENT_ENDED] = {HWS_TX_ENDED, HWS_TX_ENDED, HWS_TX_ENDED, HWS_TX_ENDED, REFUSED},
};

static bool advance (hws_tx_t *self, hws_tx_event_t event)
{
    const int8_t state = states[event][self->state];
    if (state == REFUSED) {
        return false;
    }
    self->state = (hws_tx_state_t) state;
    return true;
}

static hws_tx_segment_t *segment_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_tx_segment_t, link) : NULL;
}

/*  ---- The ring -------------------------------------------------------------------- */

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

/*  ---- Segments --------------------------------------------------------------------- */

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
    hws_tx_segment_t *const tail = segment_of (self->segments.tail);
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

/*  ---- Appending ----------------------------------------------------------------------- */

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

hws_tx_segment_t *hws_tx_parts_new (size_t part_bytes, const void *data, size_t size)
{
    const uint64_t count = (size + part_bytes - 1) / part_bytes;
    const uint64_t wire = size + count * HWS_RECORD_HEADER_SIZE;
    hws_tx_segment_t *const segment = malloc (sizeof *segment + (size_t) wire);
    if (!segment) {
        return NULL;
    }
    *segment = (hws_tx_segment_t){
        .type = HWS_RUN_RECORDS, .is_parts = true, .count = count, .size = wire, .payload = size};
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

/*  The same for a caller that has no lock to spare: refuses before it copies.  */
static int append_large (hws_tx_t *self, const void *data, size_t size)
{
    const uint64_t count = (size + self->part_bytes - 1) / self->part_bytes;
    const int rc = admit (self, count, size + count * HWS_RECORD_HEADER_SIZE);
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
    int rc = check_record (self, size);
    if (rc) {
        return rc;
    }
    const size_t wire = HWS_RECORD_HEADER_SIZE + size;
    const bool is_parts = hws_tx_is_large (self, size);
    if (is_parts) {
        const uint64_t count = (size + self->part_bytes - 1) / self->part_bytes;
        rc = admit (self, count, size + count * HWS_RECORD_HEADER_SIZE);
    } else {
        rc = admit (self, 1, wire);
        if (!rc && !ring_has_room (self, wire)) {
            rc = ring_grow (self, wire);
        }
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

int hws_tx_detach (hws_tx_t *self)
{
    if (self->state != HWS_TX_OPEN) {
        return self->state == HWS_TX_ENDING  ? 0
               : self->state == HWS_TX_ENDED ? self->result
                                             : refusal (self);
    }
    self->is_reserved = false;
    self->want_bytes = 0;
    hws_tx_segment_t *const segment = segment_new (self, HWS_RUN_DETACHED, HWS_ENDING_HEADER_SIZE);
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
    advance (self, HWS_TX_EVENT_DETACH);
    return 0;
}

/*  ---- What the broker says --------------------------------------------------------------- */

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
        hws_tx_segment_t *const segment = segment_of (self->segments.head);
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
            self->next = segment_of (segment->link.next);
        }
        hws_list_remove (&segment->link);
        free (segment);
    }
    if (self->acked_seq == self->end_seq && self->has_ending &&
        advance (self, HWS_TX_EVENT_END_ACKED)) {
        self->is_ready = false;
    }
}

/*  The stream is to be sent again from `seq`, between acked_seq and sent_seq.  */
static void rewind_to (hws_tx_t *self, uint64_t seq)
{
    hws_tx_segment_t *segment = segment_of (self->segments.head);
    while (segment && seq >= segment->first_seq + segment->count) {
        segment = segment_of (segment->link.next);
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
    if (!advance (self, HWS_TX_EVENT_ATTACHED)) {
        return;
    }
    self->sender_id = answer->sender_id;
    self->record_bytes = answer->record_bytes;
    raise_limits (self, sum (answer->next_seq, answer->initial_credit),
                  sum (answer->next_bytes, hws_attach_ok_window_bytes (answer)));
    self->is_ready = true;
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

void hws_tx_suspend (hws_tx_t *self)
{
    self->is_ready = false;
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
}

void hws_tx_end (hws_tx_t *self, int result, const char *cause, const char *reason)
{
    if (!advance (self, HWS_TX_EVENT_ENDED)) {
        return;
    }
    self->result = result;
    snprintf (self->cause, sizeof self->cause, "%s", cause);
    snprintf (self->reason, sizeof self->reason, "%s", reason);
    self->is_ready = false;
    self->want_bytes = 0;
}

bool hws_tx_cancel (hws_tx_t *self)
{
    self->want_bytes = 0;
    return advance (self, HWS_TX_EVENT_CANCEL);
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

/*  ---- Sending ---------------------------------------------------------------------------- */

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
            self->next = segment_of (segment->link.next);
        }
    }
    if (self->next_seq > self->sent_seq) {
        self->sent_seq = self->next_seq;
    }
    return (size_t) (at - start);
}

/*  ---- Birth and death ----------------------------------------------------------------------- */

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
        free (segment_of (link));
    }
    free (self->ring);
    free (self->scratch);
    self->ring = NULL;
    self->scratch = NULL;
    self->next = NULL;
}
