#include "client/rx.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*  What one batch brought for this anchor.  */
struct hws_rx_block {
    hws_rx_block_t *next;
    hws_payload_t *payload; /* what the bodies view into, or null */
    char *text;             /* owned: what synthetic entries view into, or null */
    uint32_t count;
    uint32_t room;
    hws_rx_entry_t entries[];
};

enum { REFUSED = -1 };

/*  The table at the top of rx.h.  */
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

static hws_rx_stream_t *stream_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_rx_stream_t, link) : NULL;
}

/*  ---- Blocks ------------------------------------------------------------------------ */

static hws_rx_block_t *block_new (uint32_t room)
{
    hws_rx_block_t *const block = malloc (sizeof *block + room * sizeof block->entries[0]);
    if (block) {
        *block = (hws_rx_block_t){.room = room};
    }
    return block;
}

static void block_free (hws_rx_block_t *block)
{
    for (uint32_t i = 0; i < block->count; i++) {
        free (block->entries[i].joined);
    }
    if (block->payload) {
        block->payload->release (block->payload);
    }
    free (block->text);
    free (block);
}

static void queue_block (hws_rx_t *self, hws_rx_block_t *block)
{
    if (self->tail) {
        self->tail->next = block;
    } else {
        self->head = block;
    }
    self->tail = block;
}

static void free_blocks (hws_rx_block_t *block)
{
    while (block) {
        hws_rx_block_t *const next = block->next;
        block_free (block);
        block = next;
    }
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
        block = block_new (runs_left + 1);
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

/*  ---- Streams ------------------------------------------------------------------------ */

hws_rx_stream_t *hws_rx_find (const hws_map_t *streams, uint64_t id)
{
    uint8_t key[8];
    hws_put_u64 (key, id);
    hws_map_node_t *const node = hws_map_find (streams, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, hws_rx_stream_t, node) : NULL;
}

static void stream_free (hws_rx_stream_t *stream)
{
    hws_map_remove (stream->rx->streams, &stream->node);
    hws_list_remove (&stream->link);
    hws_list_remove (&stream->ack_link);
    free (stream->label);
    free (stream->cancel_reason);
    free (stream->join);
    free (stream);
}

static hws_rx_stream_t *stream_new (hws_rx_t *self, const hws_run_t *run,
                                    const hws_attached_t *attached)
{
    hws_rx_stream_t *const stream = calloc (1, sizeof *stream);
    char *const label = strdup (attached->label);
    if (!stream || !label) {
        free (stream);
        free (label);
        return NULL;
    }
    stream->rx = self;
    stream->id = run->stream;
    stream->sender_id = attached->sender_id;
    stream->label = label;
    stream->next_seq = run->first_seq;
    stream->consumed_seq = stream->acked_seq = run->first_seq;
    hws_put_u64 (stream->key, stream->id);
    hws_map_insert (self->streams, &stream->node, hws_bytes (stream->key, sizeof stream->key));
    hws_list_append (&self->live, &stream->link);
    return stream;
}

static void ask_ack (hws_rx_stream_t *stream)
{
    if (!hws_link_is_in_list (&stream->ack_link)) {
        hws_list_append (&stream->rx->acks, &stream->ack_link);
    }
}

static void drop_parts (hws_rx_stream_t *stream)
{
    free (stream->join);
    stream->join = NULL;
    stream->join_size = stream->join_room = 0;
    stream->join_wire = 0;
}

static int ask_cancel (hws_rx_stream_t *stream, const char *reason)
{
    if (stream->is_cancel_due) {
        return 0;
    }
    stream->cancel_reason = strndup (reason ? reason : "", HWS_TEXT_SIZE_MAX);
    if (!stream->cancel_reason) {
        return HWS_ENO_MEMORY;
    }
    stream->is_cancel_due = true;
    stream->rx->has_cancels = true;
    return 0;
}

/*  Whether the application will not see the ending that is queued: the sender's own,
 *  behind a malformed run or in an anchor that the application has cancelled.  */
static bool is_ending_void (const hws_rx_stream_t *stream)
{
    return stream->state == HWS_RX_STREAM_ENDED && stream->is_own_ending &&
           (stream->is_refused || stream->rx->state == HWS_RX_CLOSING);
}

/*  Whether the sender id was seen; it is now. Ids come nearly in order, so there is
 *  nearly always one range; with too many holes the lowest is forgotten.  */
static bool mark_seen (hws_rx_t *self, uint64_t sender_id)
{
    uint32_t i = self->seen_count;
    while (i > 0 && self->seen[i - 1].first > sender_id) {
        i--;
    }
    hws_range_t *const before = i > 0 ? &self->seen[i - 1] : NULL;
    if (before && sender_id < before->end) {
        return true;
    }
    hws_range_t *const after = i < self->seen_count ? &self->seen[i] : NULL;
    const bool joins_after = after && after->first == sender_id + 1;
    if (before && before->end == sender_id) {
        before->end++;
        if (joins_after) {
            before->end = after->end;
            self->seen_count--;
            memmove (after, after + 1, (self->seen_count - i) * sizeof *after);
        }
        return false;
    }
    if (joins_after) {
        after->first--;
        return false;
    }
    if (self->seen_count == HWS_RX_RANGES_MAX) {
        self->seen[1].first = self->seen[0].first;
        memmove (&self->seen[0], &self->seen[1], --self->seen_count * sizeof self->seen[0]);
        i = i > 0 ? i - 1 : 0;
        if (i == 0) {
            return false;
        }
    }
    memmove (&self->seen[i + 1], &self->seen[i], (self->seen_count - i) * sizeof self->seen[0]);
    self->seen[i] = (hws_range_t){.first = sender_id, .end = sender_id + 1};
    self->seen_count++;
    return false;
}

/*  The stream's ending is consumed: only its position is remembered, for a broker that
 *  missed the acknowledgement.  */
static void finish (hws_rx_stream_t *stream)
{
    hws_rx_t *const self = stream->rx;
    stream->state = HWS_RX_STREAM_FINISHED;
    hws_list_remove (&stream->link);
    hws_list_append (&self->remembered, &stream->link);
}

/*  Forgets the oldest finished streams. Only when the application has no event in hand,
 *  which may view into one.  */
static void forget (hws_rx_t *self)
{
    while (self->remembered.count > HWS_RX_REMEMBERED_MAX) {
        hws_rx_stream_t *const oldest = stream_of (self->remembered.head);
        if (hws_link_is_in_list (&oldest->ack_link)) {
            break;
        }
        stream_free (oldest);
    }
}

/*  ---- Accepting ------------------------------------------------------------------------ */

int hws_rx_attached (hws_rx_t *self, const hws_run_t *run, const hws_attached_t *attached,
                     hws_payload_t *payload, uint32_t runs_left)
{
    hws_rx_stream_t *const known = hws_rx_find (self->streams, run->stream);
    if (known) {
        ask_ack (known);
        return known->rx == self ? 0 : HWS_EPROTOCOL;
    }
    if (attached->sender_id == 0) {
        return HWS_EPROTOCOL;
    }
    hws_rx_stream_t *const stream = stream_new (self, run, attached);
    hws_rx_entry_t *const entry = stream ? entry_add (self, payload, runs_left) : NULL;
    if (!entry) {
        if (stream) {
            stream_free (stream);
        }
        return HWS_ENO_MEMORY;
    }
    entry->stream = stream;
    entry->type = HWS_RUN_ATTACHED;
    if (mark_seen (self, attached->sender_id)) {
        /* Its position is forgotten, its ending was consumed: say so again. */
        self->current->count--;
        stream->is_ended_acked = true;
        ask_ack (stream);
        finish (stream);
    }
    return 0;
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
    if (part.size > HWS_RECORD_SIZE_MAX - stream->join_size) {
        return HWS_EMALFORMED;
    }
    if (part.size > stream->join_room - stream->join_size || !stream->join) {
        size_t room = stream->join_room ? 2 * stream->join_room : 4 * HWS_BATCH_BYTES_DEFAULT;
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
    stream->next_seq++;
    if (is_last) {
        entry->stream = stream;
        entry->type = HWS_RUN_RECORDS;
        entry->first_seq = stream->join_seq;
        entry->count = (uint32_t) (stream->next_seq - stream->join_seq);
        entry->joined = stream->join;
        entry->join_wire = stream->join_wire;
        entry->body = hws_bytes (stream->join, stream->join_size);
        stream->join = NULL;
        stream->join_size = stream->join_room = 0;
        stream->join_wire = 0;
    }
    return 0;
}

/*  Nothing more is taken of a stream whose run was malformed; its sender is cancelled.  */
static int refuse_stream (hws_rx_stream_t *stream)
{
    drop_parts (stream);
    stream->is_refused = true;
    return ask_cancel (stream, "protocol: a malformed run");
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
    entry->first_seq = run->first_seq;
    entry->body = run->body;
    stream->state = HWS_RX_STREAM_ENDED;
    stream->ending_type = run->type;
    stream->is_own_ending = run->count > 0;
    stream->next_seq += run->count;
    drop_parts (stream);
    return 0;
}

/*  A broker-made ending is taken at any number, and also instead of one that the
 *  application will not see.  */
static int accept_broker_ending (hws_rx_t *self, hws_rx_stream_t *stream, const hws_run_t *run,
                                 hws_payload_t *payload, uint32_t runs_left)
{
    if (stream->state != HWS_RX_STREAM_LIVE && !is_ending_void (stream)) {
        ask_ack (stream);
        return 0;
    }
    return accept_ending (self, stream, run, payload, runs_left);
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
        ask_ack (stream);
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
        stream->next_seq = end_seq;
        return 0;
    }
    if (stream->join_wire > 0 || (run->type == HWS_RUN_RECORDS && (run->flags & HWS_RUN_MORE))) {
        const int rc = accept_part (self, stream, run, runs_left);
        return rc == HWS_EMALFORMED ? refuse_stream (stream) : rc;
    }
    hws_rx_entry_t *const entry = entry_add (self, payload, runs_left);
    if (!entry) {
        return HWS_ENO_MEMORY;
    }
    entry->stream = stream;
    entry->type = run->type;
    entry->count = run->count;
    entry->skip = (uint32_t) (stream->next_seq - run->first_seq);
    entry->first_seq = run->first_seq;
    entry->body = run->body;
    stream->next_seq = end_seq;
    return 0;
}

/*  ---- What the broker and the application say about the anchor ---------------------------- */

void hws_rx_opened (hws_rx_t *self, hws_handle_t handle)
{
    if (advance (self, HWS_RX_EVENT_OPENED)) {
        self->handle = handle;
    }
}

bool hws_rx_cancel (hws_rx_t *self)
{
    return advance (self, HWS_RX_EVENT_CANCEL);
}

/*  A block with one ending for every stream that has none for the application, and room
 *  for `extra` entries.  */
static int drop_block (hws_rx_t *self, uint16_t cause, const char *reason, uint32_t extra,
                       hws_rx_block_t **result)
{
    const size_t text_size = strnlen (reason, HWS_TEXT_SIZE_MAX);
    hws_rx_block_t *const block = block_new ((uint32_t) self->live.count + extra);
    char *const text = malloc (HWS_ENDING_HEADER_SIZE + text_size + 1);
    if (!block || !text) {
        free (block);
        free (text);
        return HWS_ENO_MEMORY;
    }
    block->text = text;
    memcpy (text + HWS_ENDING_HEADER_SIZE, reason, text_size);
    text[HWS_ENDING_HEADER_SIZE + text_size] = '\0';
    hws_ending_put ((uint8_t *) text,
                    &(hws_ending_t){.cause = cause,
                                    .text = hws_bytes (text + HWS_ENDING_HEADER_SIZE, text_size)});
    const uint8_t type = self->state == HWS_RX_CLOSING ? HWS_RUN_CANCELLED : HWS_RUN_DROPPED;
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_stream_t *const stream = stream_of (link);
        if (stream->state != HWS_RX_STREAM_LIVE && !is_ending_void (stream)) {
            continue;
        }
        stream->state = HWS_RX_STREAM_ENDED;
        stream->ending_type = type;
        stream->is_own_ending = false;
        block->entries[block->count++] =
            (hws_rx_entry_t){.stream = stream,
                             .type = type,
                             .is_broker_made = true,
                             .body = hws_bytes (text, HWS_ENDING_HEADER_SIZE + text_size)};
    }
    *result = block;
    return 0;
}

int hws_rx_drop_all (hws_rx_t *self, uint16_t cause, const char *reason)
{
    hws_rx_block_t *block;
    const int rc = drop_block (self, cause, reason, 0, &block);
    if (rc) {
        return rc;
    }
    hws_rx_flush (self);
    queue_block (self, block);
    return 0;
}

int hws_rx_closed (hws_rx_t *self, uint16_t cause, const char *reason)
{
    if (self->state == HWS_RX_CLOSED) {
        return 0;
    }
    hws_rx_block_t *block;
    const int rc = drop_block (self, cause, reason, 1, &block);
    if (rc) {
        return rc;
    }
    const char *const text = block->text + HWS_ENDING_HEADER_SIZE;
    block->entries[block->count++] = (hws_rx_entry_t){.type = HWS_RUN_VOID,
                                                      .is_broker_made = true,
                                                      .cause = cause,
                                                      .body = hws_bytes_of_text (text)};
    hws_rx_flush (self);
    queue_block (self, block);
    advance (self, HWS_RX_EVENT_CLOSED);
    return 0;
}

int hws_rx_cancel_sender (hws_rx_t *self, uint64_t sender_id, const char *reason)
{
    hws_rx_stream_t *stream = stream_of (self->live.head);
    while (stream && stream->sender_id != sender_id) {
        stream = stream_of (stream->link.next);
    }
    if (!stream || stream->state != HWS_RX_STREAM_LIVE || self->state == HWS_RX_CLOSED) {
        return HWS_ENOT_FOUND;
    }
    return ask_cancel (stream, reason);
}

hws_rx_stream_t *hws_rx_next_cancel (hws_rx_t *self)
{
    if (!self->has_cancels) {
        return NULL;
    }
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_stream_t *const stream = stream_of (link);
        if (stream->is_cancel_due && !stream->is_cancel_said &&
            (stream->state == HWS_RX_STREAM_LIVE || is_ending_void (stream))) {
            stream->is_cancel_said = true;
            return stream;
        }
    }
    self->has_cancels = false;
    return NULL;
}

void hws_rx_reconnected (hws_rx_t *self)
{
    self->has_gap = false;
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_stream_t *const stream = stream_of (link);
        stream->is_cancel_said = false;
        self->has_cancels |= stream->is_cancel_due;
    }
}

bool hws_rx_next_ack (hws_rx_t *self, hws_ack_t *ack)
{
    hws_link_t *const link = hws_list_pop (&self->acks);
    if (!link) {
        return false;
    }
    const hws_rx_stream_t *const stream = hws_container_of (link, hws_rx_stream_t, ack_link);
    *ack = (hws_ack_t){.stream = stream->id,
                       .acked_seq = stream->acked_seq,
                       .acked_bytes = stream->acked_bytes,
                       .flags = stream->is_ended_acked ? HWS_ACK_ENDED : 0};
    return true;
}

void hws_rx_init (hws_rx_t *self, hws_map_t *streams)
{
    memset (self, 0, sizeof *self);
    self->state = HWS_RX_OPENING;
    self->streams = streams;
}

void hws_rx_fini (hws_rx_t *self)
{
    hws_rx_flush (self);
    free_blocks (self->head);
    self->head = self->tail = NULL;
    while (self->live.head) {
        stream_free (stream_of (self->live.head));
    }
    while (self->remembered.head) {
        stream_free (stream_of (self->remembered.head));
    }
}

/*  ---- Reading ------------------------------------------------------------------------------- */

void hws_rx_reader_init (hws_rx_reader_t *self, hws_rx_t *rx)
{
    memset (self, 0, sizeof *self);
    self->rx = rx;
}

void hws_rx_reader_fini (hws_rx_reader_t *self)
{
    free_blocks (self->block);
    self->block = NULL;
}

static void touch (hws_rx_reader_t *self, hws_rx_stream_t *stream)
{
    if (!stream->is_touched) {
        stream->is_touched = true;
        stream->touched_next = self->touched;
        self->touched = stream;
    }
}

void hws_rx_reader_settle (hws_rx_reader_t *self)
{
    hws_rx_stream_t *const stream = self->pending;
    if (!stream) {
        return;
    }
    self->pending = NULL;
    stream->consumed_seq = self->pending_seq;
    stream->consumed_bytes += self->pending_bytes;
    stream->is_ending_consumed |= self->is_pending_ending;
    self->unpublished += self->pending_bytes + self->is_pending_ending;
    touch (self, stream);
}

/*  The application gets this event; settling it moves the stream on.  */
static void hand_out (hws_rx_reader_t *self, hws_rx_stream_t *stream, uint64_t seq, uint64_t bytes)
{
    self->pending = stream;
    self->pending_seq = seq;
    self->pending_bytes = bytes;
    self->is_pending_ending = false;
}

static void next_entry (hws_rx_reader_t *self)
{
    self->is_in_run = false;
    self->entry++;
}

/*  The rest of the run is unreadable: nothing more of this stream is delivered, and its
 *  sender is cancelled when the reader publishes.  */
static void break_stream (hws_rx_reader_t *self, hws_rx_stream_t *stream)
{
    stream->is_broken = true;
    touch (self, stream);
    next_entry (self);
}

/*  The next record of the run at hand. False at its end.  */
static inline bool next_record (hws_rx_reader_t *self, hws_event_t *event)
{
    hws_rx_entry_t *const entry = &self->block->entries[self->entry];
    hws_rx_stream_t *const stream = entry->stream;
    hws_bytes_t record;
    if (self->left == 0) {
        if (self->cursor.left > 0) {
            break_stream (self, stream);
        } else {
            next_entry (self);
        }
        return false;
    }
    if (hws_run_next_record (&self->cursor, &record) != 1) {
        break_stream (self, stream);
        return false;
    }
    self->left--;
    *event = (hws_event_t){.kind = HWS_EVENT_RECORD,
                           .sender_id = stream->sender_id,
                           .seq = self->seq++,
                           .label = stream->label,
                           .data = record.data,
                           .size = record.size};
    stream->records++;
    stream->bytes += record.size;
    hand_out (self, stream, self->seq, HWS_RECORD_HEADER_SIZE + record.size);
    return true;
}

/*  Begins a run of records: what was seen before is passed over.  */
static void begin_run (hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    self->is_in_run = true;
    self->cursor = hws_cursor (entry->body);
    self->left = entry->count;
    self->seq = entry->first_seq;
    hws_bytes_t record;
    for (uint32_t i = 0; i < entry->skip; i++) {
        if (hws_run_next_record (&self->cursor, &record) != 1) {
            break_stream (self, entry->stream);
            return;
        }
        self->left--;
        self->seq++;
    }
}

static void show_joined (hws_rx_reader_t *self, const hws_rx_entry_t *entry, hws_event_t *event)
{
    hws_rx_stream_t *const stream = entry->stream;
    *event = (hws_event_t){.kind = HWS_EVENT_RECORD,
                           .sender_id = stream->sender_id,
                           .seq = entry->first_seq,
                           .label = stream->label,
                           .data = entry->joined,
                           .size = entry->body.size};
    stream->records++;
    stream->bytes += entry->body.size;
    hand_out (self, stream, entry->first_seq + entry->count, entry->join_wire);
}

static hws_event_kind_t kind_of_ending (uint8_t type)
{
    switch (type) {
    case HWS_RUN_DETACHED:
        return HWS_EVENT_DETACHED;
    case HWS_RUN_FINALIZED:
        return HWS_EVENT_FINALIZED;
    case HWS_RUN_CANCELLED:
        return HWS_EVENT_CANCELLED;
    default:
        return HWS_EVENT_DROPPED;
    }
}

static void copy_text (hws_rx_reader_t *self, hws_bytes_t text)
{
    const size_t size = text.size < HWS_TEXT_SIZE_MAX ? text.size : HWS_TEXT_SIZE_MAX;
    if (size > 0) {
        memcpy (self->text, text.data, size);
    }
    self->text[size] = '\0';
}

static void show_ending (hws_rx_reader_t *self, const hws_rx_entry_t *entry, hws_event_t *event)
{
    hws_rx_stream_t *const stream = entry->stream;
    hws_ending_t ending;
    const int rc = hws_ending_decode (entry->body, &ending);
    hws_assert (rc == 0); /* it was checked when it was accepted */
    copy_text (self, ending.text);
    *event = (hws_event_t){.kind = kind_of_ending (entry->type),
                           .sender_id = stream->sender_id,
                           .label = stream->label,
                           .cause = ending.cause ? hws_cause_word (ending.cause) : NULL,
                           .reason = self->text,
                           .records = stream->records,
                           .bytes = stream->bytes};
    stream->is_ending_shown = true;
    if (entry->is_broker_made) {
        hand_out (self, stream, stream->consumed_seq, 0);
    } else {
        hand_out (self, stream, entry->first_seq + 1, entry->body.size);
    }
    self->is_pending_ending = true;
}

/*  A run of a type that this version does not know: its numbers and bytes count, and that is
 *  all. How its bytes belong to its numbers is not known either, so of one that was seen in
 *  part they are left out.  */
static void pass_over (hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    hws_rx_stream_t *const stream = entry->stream;
    stream->consumed_seq = entry->first_seq + entry->count;
    stream->consumed_bytes += entry->skip == 0 ? entry->body.size : 0;
    self->unpublished += entry->body.size;
    touch (self, stream);
}

/*  Shows an entry that is not a run of records. False when it is passed over.  */
static bool show_entry (hws_rx_reader_t *self, const hws_rx_entry_t *entry, hws_event_t *event)
{
    hws_rx_stream_t *const stream = entry->stream;
    if (!stream) {
        copy_text (self, entry->body);
        *event = (hws_event_t){
            .kind = HWS_EVENT_CLOSED, .cause = hws_cause_word (entry->cause), .reason = self->text};
        self->is_closed = true;
        return true;
    }
    if (hws_run_is_ending (entry->type)) {
        if (stream->is_ending_shown) {
            return false;
        }
        show_ending (self, entry, event);
        return true;
    }
    if (entry->joined) {
        show_joined (self, entry, event);
        return true;
    }
    if (entry->type == HWS_RUN_ATTACHED) {
        *event = (hws_event_t){
            .kind = HWS_EVENT_ATTACHED, .sender_id = stream->sender_id, .label = stream->label};
        return true;
    }
    if (entry->type != HWS_RUN_ERROR) {
        pass_over (self, entry);
        return false;
    }
    const uint8_t *const data = entry->body.size > 0 ? entry->body.data : (const uint8_t *) "";
    *event = (hws_event_t){.kind = HWS_EVENT_ERROR,
                           .sender_id = stream->sender_id,
                           .seq = entry->first_seq,
                           .label = stream->label,
                           .data = data,
                           .size = entry->body.size};
    hand_out (self, stream, entry->first_seq + 1, entry->body.size);
    return true;
}

/*  Whether the application is not to see this entry any more.  */
static bool is_discarded (const hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    return !entry->is_broker_made && (entry->stream->is_broken || self->is_discarding);
}

bool hws_rx_reader_next (hws_rx_reader_t *self, hws_event_t *event)
{
    hws_rx_reader_settle (self);
    while (self->block) {
        if (self->entry == self->block->count) {
            hws_rx_block_t *const done = self->block;
            self->block = done->next;
            self->entry = 0;
            block_free (done);
            continue;
        }
        const hws_rx_entry_t *const entry = &self->block->entries[self->entry];
        if (is_discarded (self, entry)) {
            next_entry (self);
            continue;
        }
        if (self->is_in_run) {
            if (next_record (self, event)) {
                return true;
            }
            continue;
        }
        if (entry->type == HWS_RUN_RECORDS && !entry->joined) {
            begin_run (self, entry);
            continue;
        }
        const bool is_shown = show_entry (self, entry, event);
        next_entry (self);
        if (is_shown) {
            return true;
        }
    }
    return false;
}

bool hws_rx_reader_has_more (const hws_rx_reader_t *self)
{
    if (!self->block) {
        return false;
    }
    const bool is_run_over = self->is_in_run && self->left == 0;
    return self->entry + is_run_over < self->block->count || self->block->next;
}

void hws_rx_reader_take (hws_rx_reader_t *self)
{
    hws_assert (self->block == NULL);
    hws_assert (self->pending == NULL);
    forget (self->rx);
    self->block = self->rx->head;
    self->entry = 0;
    self->rx->head = self->rx->tail = NULL;
}

bool hws_rx_reader_publish (hws_rx_reader_t *self)
{
    bool has_news = false;
    while (self->touched) {
        hws_rx_stream_t *const stream = self->touched;
        self->touched = stream->touched_next;
        stream->is_touched = false;
        if (stream->is_broken && !stream->is_refused) {
            refuse_stream (stream);
            has_news = true;
        }
        if (stream->consumed_seq == stream->acked_seq &&
            stream->is_ending_consumed == stream->is_ended_acked) {
            continue;
        }
        has_news = true;
        stream->acked_seq = stream->consumed_seq;
        stream->acked_bytes = stream->consumed_bytes;
        ask_ack (stream);
        if (stream->is_ending_consumed && !stream->is_ended_acked) {
            stream->is_ended_acked = true;
            finish (stream);
        }
    }
    self->unpublished = 0;
    return has_news;
}
