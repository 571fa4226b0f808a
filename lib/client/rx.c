#include "client/rx.h"

#include "base/text.h"
#include "client/rx_part.h"
#include "client/rx_past.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REFUSED = -1 };

/*  docs/protocol.md, "State tables".  */
static const int8_t states[][HWS_RX_CLOSED + 1] = {
    [HWS_RX_EVENT_OPENED] = {HWS_RX_OPEN, HWS_RX_OPEN, HWS_RX_CLOSING, REFUSED},
    [HWS_RX_EVENT_CANCEL] = {HWS_RX_CLOSING, HWS_RX_CLOSING, HWS_RX_CLOSING, REFUSED},
    [HWS_RX_EVENT_CLOSED] = {HWS_RX_CLOSED, HWS_RX_CLOSED, HWS_RX_CLOSED, REFUSED},
};

static bool advance (hws_rx_t *self, hws_rx_event_t event)
{
    const int8_t state = states[event][self->state];
    if (state == REFUSED) {
        return false;
    }
    self->state = (hws_rx_state_t) state;
    return true;
}

/*  ---- Blocks ---- */

static void queue_block (hws_rx_t *self, hws_rx_block_t *block)
{
    if (self->tail) {
        self->tail->next = block;
    } else {
        self->head = block;
    }
    self->tail = block;
}

/*  The place for one more entry of the batch at hand, or null without memory. A
 *  second payload begins a second block.  */
static hws_rx_entry_t *entry_add (hws_rx_t *self, hws_payload_t *payload, uint32_t runs_left)
{
    hws_rx_block_t *block = self->current;
    const bool is_other = block && payload && block->payload && block->payload != payload;
    if (block && (block->count == block->room || is_other)) {
        hws_rx_flush (self);
        block = NULL;
    }
    if (!block) {
        block = hws_rx_block_new (runs_left + 1);
        if (!block) {
            return NULL;
        }
        self->current = block;
    }
    if (payload && !block->payload) {
        payload->hold (payload);
        block->payload = payload;
    }
    hws_rx_entry_t *const entry = &block->entries[block->count++];
    *entry = (hws_rx_entry_t){.joined = NULL};
    return entry;
}

bool hws_rx_flush (hws_rx_t *self)
{
    if (!self->current) {
        return false;
    }
    queue_block (self, self->current);
    self->current = NULL;
    return true;
}

/*  ---- Accepting ---- */

/*  ATTACHED of a sender that came before: nothing new, but the broker may have another number for
 *  it, and does not know what was acknowledged. False for one that is not known.  */
static bool attached_again (hws_rx_t *self, const hws_run_t *run, const hws_attached_t *attached)
{
    hws_rx_stream_t *const stream = hws_rx_find_sender (self, attached->sender_id);
    if (stream) {
        hws_rx_bind (stream, run->stream);
        stream->seat_key = attached->seat_key;
        hws_rx_ask_ack (stream);
        return true;
    }
    hws_rx_past_t *const past = hws_rx_find_past (self, attached->sender_id);
    if (past) {
        past->id = run->stream;
        hws_rx_past_ask_ack (self, past);
    }
    return past != NULL;
}

/*  Its position is forgotten, its ending was consumed: says so again.  */
static int attached_forgotten (hws_rx_t *self, const hws_run_t *run, const hws_attached_t *attached)
{
    hws_rx_past_t *const past = hws_rx_past_new (self, attached->sender_id);
    if (!past) {
        return HWS_ENO_MEMORY;
    }
    past->id = run->stream;
    past->seat_key = attached->seat_key;
    past->acked_seq = run->first_seq;
    past->acked_bytes = attached->next_bytes;
    past->ending = HWS_RUN_DROPPED;
    past->cause = HWS_CAUSE_UNKNOWN;
    hws_rx_past_ask_ack (self, past);
    return 0;
}

int hws_rx_attached (hws_rx_t *self, const hws_run_t *run, const hws_attached_t *attached,
                     hws_payload_t *payload, uint32_t runs_left)
{
    const hws_rx_stream_t *const known = hws_rx_find (self->streams, run->stream);
    const bool is_anothers =
        known && (known->rx != self || known->sender_id != attached->sender_id);
    if (is_anothers || attached->sender_id == 0 || run->stream == 0) {
        return HWS_EPROTOCOL;
    }
    if (attached_again (self, run, attached)) {
        return 0;
    }
    if (hws_seen_has (&self->seen, attached->sender_id)) {
        return attached_forgotten (self, run, attached);
    }
    hws_rx_stream_t *const stream = hws_rx_stream_new (self, run, attached);
    hws_rx_entry_t *const entry = stream ? entry_add (self, payload, runs_left) : NULL;
    if (!entry) {
        if (stream) {
            hws_rx_stream_free (stream);
        }
        return HWS_ENO_MEMORY;
    }
    entry->stream = stream;
    entry->type = HWS_RUN_ATTACHED;
    hws_seen_mark (&self->seen, attached->sender_id);
    return 0;
}

/*  How many bytes the run moves its stream by, of which `seen` numbers have come before. Of a run
 *  of a later type nobody knows how its bytes belong to its numbers; of one that is malformed
 *  there the reader will deliver nothing.  */
static uint64_t bytes_behind (const hws_run_t *run, uint64_t seen)
{
    if (seen == 0) {
        return run->body.size;
    }
    if (run->type != HWS_RUN_RECORDS) {
        return 0;
    }
    hws_cursor_t cursor = hws_cursor (run->body);
    hws_bytes_t record;
    while (seen > 0 && hws_run_next_record (&cursor, &record) == 1) {
        seen--;
    }
    return seen == 0 ? cursor.left : 0;
}

/*  The run is taken, or would be: what follows it is expected.  */
static void move_on (hws_rx_stream_t *stream, const hws_run_t *run)
{
    stream->next_bytes += bytes_behind (run, stream->next_seq - run->first_seq);
    stream->next_seq = run->first_seq + run->count;
}

/*  A part of a record: one record in a run of one, and nothing else until the last part. The
 *  joined record is queued with that, so half a record is never seen.  */
static int accept_part (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                        uint32_t runs_left)
{
    hws_cursor_t cursor = hws_cursor (run->body);
    hws_bytes_t part;
    if (run->type != HWS_RUN_RECORDS || run->count != 1 ||
        hws_run_next_record (&cursor, &part) != 1 || cursor.left > 0) {
        return HWS_EMALFORMED;
    }
    const uint64_t limit = self->record_bytes > 0 && self->record_bytes < HWS_RECORD_SIZE_MAX
                               ? self->record_bytes
                               : HWS_RECORD_SIZE_MAX;
    if (stream->join_size > limit || part.size > limit - stream->join_size) {
        return HWS_EMALFORMED;
    }
    if (part.size > stream->join_room - stream->join_size || !stream->join) {
        size_t room = stream->join_room ? 2 * stream->join_room : HWS_BATCH_BYTES_DEFAULT;
        if (room - stream->join_size < part.size) {
            room = stream->join_size + part.size;
        }
        uint8_t *const join = realloc (stream->join, room);
        if (!join) {
            return HWS_ENO_MEMORY;
        }
        stream->join = join;
        stream->join_room = room;
    }
    const bool is_last = !(run->flags & HWS_RUN_MORE);
    hws_rx_entry_t *const entry = is_last ? entry_add (self, NULL, runs_left) : NULL;
    if (is_last && !entry) {
        return HWS_ENO_MEMORY;
    }
    if (stream->join_size == 0 && stream->join_wire == 0) {
        stream->join_seq = run->first_seq;
    }
    if (part.size > 0) {
        memcpy (stream->join + stream->join_size, part.data, part.size);
    }
    stream->join_size += part.size;
    stream->join_wire += run->body.size;
    move_on (stream, run);
    if (is_last) {
        entry->stream = stream;
        entry->type = HWS_RUN_RECORDS;
        entry->first_seq = stream->join_seq;
        entry->count = (uint32_t) (stream->next_seq - stream->join_seq);
        entry->joined = stream->join;
        entry->wire = stream->join_wire;
        entry->body = hws_bytes (stream->join, stream->join_size);
        stream->join = NULL;
        stream->join_size = stream->join_room = 0;
        stream->join_wire = 0;
    }
    return 0;
}

static int accept_ending (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                          hws_payload_t *payload, uint32_t runs_left)
{
    hws_ending_t ending;
    if (hws_ending_decode (run->body, &ending)) {
        return HWS_EPROTOCOL;
    }
    hws_rx_entry_t *const entry = entry_add (self, payload, runs_left);
    if (!entry) {
        return HWS_ENO_MEMORY;
    }
    entry->stream = stream;
    entry->type = run->type;
    entry->is_broker_made = run->count == 0;
    entry->cause = ending.cause;
    entry->first_seq = run->first_seq;
    entry->wire = run->body.size;
    entry->body = ending.text;
    stream->state = HWS_RX_STREAM_ENDED;
    stream->is_own_ending = run->count > 0;
    stream->ending = run->type;
    stream->cause = ending.cause;
    stream->next_seq += run->count;
    stream->next_bytes += run->count > 0 ? run->body.size : 0;
    hws_rx_drop_parts (stream);
    return 0;
}

/*  A broker-made ending is taken at any number, and also instead of one that the
 *  application will not see.  */
static int accept_broker_ending (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                                 hws_payload_t *payload, uint32_t runs_left)
{
    if (stream->state != HWS_RX_STREAM_LIVE && !hws_rx_is_ending_void (stream)) {
        hws_rx_ask_ack (stream);
        return 0;
    }
    return accept_ending (self, stream, run, payload, runs_left);
}

/*  A run of whole records, an error, or a run of a type that is passed over.  */
static int accept_whole (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                         hws_payload_t *payload, uint32_t runs_left)
{
    hws_rx_entry_t *const entry = entry_add (self, payload, runs_left);
    if (!entry) {
        return HWS_ENO_MEMORY;
    }
    entry->stream = stream;
    entry->type = run->type;
    entry->count = run->count;
    entry->skip = (uint32_t) (stream->next_seq - run->first_seq);
    entry->first_seq = run->first_seq;
    entry->wire = run->body.size;
    entry->body = run->body;
    move_on (stream, run);
    return 0;
}

int hws_rx_run (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                hws_payload_t *payload, uint32_t runs_left)
{
    if (self->state == HWS_RX_CLOSED || run->type == HWS_RUN_VOID) {
        return 0;
    }
    if (hws_run_is_ending (run->type) && run->count == 0) {
        return accept_broker_ending (self, stream, run, payload, runs_left);
    }
    if (stream->state != HWS_RX_STREAM_LIVE) {
        hws_rx_ask_ack (stream);
        return 0;
    }
    if (stream->is_refused && !hws_run_is_ending (run->type)) {
        return 0;
    }
    if (run->count == 0 || run->first_seq > UINT64_MAX - run->count) {
        return HWS_EPROTOCOL;
    }
    const uint64_t end_seq = run->first_seq + run->count;
    if (end_seq <= stream->next_seq) {
        return 0;
    }
    if (run->first_seq > stream->next_seq && !stream->is_refused) {
        self->has_gap = true;
        return 0;
    }
    if (run->type != HWS_RUN_RECORDS && run->type < HWS_RUN_VOID) {
        if (run->count != 1) {
            return HWS_EPROTOCOL;
        }
        if (hws_run_is_ending (run->type)) {
            /* Once a cancel was asked for, the broker's ending counts: the sender is told
               that one. */
            return stream->is_cancel_due ? 0
                                         : accept_ending (self, stream, run, payload, runs_left);
        }
    }
    if (self->state == HWS_RX_CLOSING) {
        move_on (stream, run);
        return 0;
    }
    if (stream->join_wire > 0 || (run->type == HWS_RUN_RECORDS && (run->flags & HWS_RUN_MORE))) {
        const int rc = accept_part (self, stream, run, runs_left);
        if (rc == HWS_EMALFORMED) {
            hws_rx_refuse_stream (stream);
            return 0;
        }
        return rc;
    }
    return accept_whole (self, stream, run, payload, runs_left);
}

/*  ---- What the broker and the application say about the anchor ---- */

void hws_rx_opened (hws_rx_t *self, hws_handle_t handle, uint64_t record_bytes)
{
    if (advance (self, HWS_RX_EVENT_OPENED)) {
        self->handle = handle;
        self->record_bytes = record_bytes;
    }
}

bool hws_rx_cancel (hws_rx_t *self)
{
    self->is_cancelled |= advance (self, HWS_RX_EVENT_CANCEL);
    return self->state != HWS_RX_CLOSED;
}

void hws_rx_cut (hws_rx_t *self)
{
    hws_rx_acknowledge_endings (self);
    self->is_cut = true;
}

/*  How streams end that the anchor's end finds living: as the broker has ended them, if it
 *  has.  */
static uint8_t ending_of_closed (const hws_rx_t *self)
{
    const bool has_lost_broker =
        self->closed_cause == HWS_CAUSE_LOST || self->closed_cause == HWS_CAUSE_TRANSPORT;
    return has_lost_broker && !self->is_cancelled ? HWS_RUN_DROPPED : HWS_RUN_CANCELLED;
}

int hws_rx_queue_closed (hws_rx_t *self)
{
    hws_rx_block_t *const block = hws_rx_block_new ((uint32_t) self->live.count + 1);
    if (!block) {
        return HWS_ENO_MEMORY;
    }
    const hws_rx_entry_t end = {.type = ending_of_closed (self),
                                .is_broker_made = true,
                                .cause = self->closed_cause,
                                .body = hws_bytes_of_text (self->closed_reason)};
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_stream_t *const stream = hws_rx_stream_of (link);
        if (stream->state != HWS_RX_STREAM_LIVE && !hws_rx_is_ending_void (stream)) {
            continue;
        }
        stream->state = HWS_RX_STREAM_ENDED;
        stream->is_own_ending = false;
        stream->ending = 0;
        hws_rx_drop_parts (stream);
        block->entries[block->count] = end;
        block->entries[block->count++].stream = stream;
    }
    block->entries[block->count] = end;
    block->entries[block->count++].type = HWS_RUN_VOID;
    hws_rx_flush (self);
    queue_block (self, block);
    self->is_closed_due = false;
    return 0;
}

void hws_rx_closed (hws_rx_t *self, uint16_t cause, const char *reason)
{
    if (advance (self, HWS_RX_EVENT_CLOSED)) {
        self->closed_cause = cause;
        hws_text_copy (self->closed_reason, sizeof self->closed_reason, reason);
        self->is_closed_due = true;
        hws_rx_queue_closed (self); /* without memory the reader will try again */
    }
}

void hws_rx_init (hws_rx_t *self, hws_rx_streams_t *streams)
{
    memset (self, 0, sizeof *self);
    self->state = HWS_RX_OPENING;
    self->streams = streams;
}

void hws_rx_fini (hws_rx_t *self)
{
    hws_list_remove (&self->busy_link);
    hws_rx_flush (self);
    hws_rx_blocks_free (self->head);
    self->head = self->tail = NULL;
    while (self->live.head) {
        hws_rx_stream_free (hws_rx_stream_of (self->live.head));
    }
    while (self->remembered.head) {
        hws_rx_stream_free (hws_rx_stream_of (self->remembered.head));
    }
    while (self->past.head) {
        hws_rx_past_free (self, hws_container_of (self->past.head, hws_rx_past_t, link));
    }
}
