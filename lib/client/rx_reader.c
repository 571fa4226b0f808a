#include "client/rx_reader.h"

#include "base/assert.h"
#include "client/rx_part.h"

#include <string.h>

void hws_rx_reader_init (hws_rx_reader_t *self, hws_rx_t *rx)
{
    memset (self, 0, sizeof *self);
    self->rx = rx;
}

void hws_rx_reader_fini (hws_rx_reader_t *self)
{
    hws_rx_blocks_free (self->block);
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

/*  The application has consumed the run at hand up to a number and a place.  */
static void count_run (hws_rx_reader_t *self, uint64_t seq, const uint8_t *at)
{
    hws_rx_stream_t *const stream = self->run;
    const uint64_t records = seq - self->counted_seq;
    if (records == 0) {
        return;
    }
    const uint64_t bytes = (uint64_t) (at - self->counted);
    self->counted_seq = seq;
    self->counted = at;
    stream->records += records;
    stream->bytes += bytes - records * HWS_RECORD_HEADER_SIZE;
    stream->consumed_seq = seq;
    stream->consumed_bytes += bytes;
    self->unpublished += bytes;
    self->unpublished_records += records;
    touch (self, stream);
}

void hws_rx_reader_settle (hws_rx_reader_t *self)
{
    if (self->run) {
        self->hand = NULL;
        count_run (self, self->seq, self->cursor.at);
        return;
    }
    hws_rx_stream_t *const stream = self->pending;
    if (!stream) {
        return;
    }
    self->pending = NULL;
    stream->consumed_seq = self->pending_seq;
    stream->consumed_bytes += self->pending_bytes;
    stream->is_ending_consumed |= self->is_pending_ending;
    self->unpublished += self->pending_bytes;
    self->unpublished_records++;
    self->is_urgent |= self->is_pending_ending;
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

/*  Nothing of the entry is in hand.  */
static void next_entry (hws_rx_reader_t *self)
{
    self->run = NULL;
    self->left = 0;
    self->entry++;
}

/*  The rest of the run is unreadable: nothing more of this stream is delivered, and its
 *  sender is cancelled when the reader publishes.  */
static void break_stream (hws_rx_reader_t *self, hws_rx_stream_t *stream)
{
    stream->is_broken = true;
    self->is_urgent = true;
    touch (self, stream);
    next_entry (self);
}

/*  The next record of the run at hand, when nothing of it is in hand. False at its end.  */
static bool next_record (hws_rx_reader_t *self, hws_event_t *event)
{
    hws_rx_stream_t *const stream = self->run;
    hws_bytes_t record;
    const uint8_t *const at = self->cursor.at;
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
    self->hand = at;
    *event = (hws_event_t){.kind = HWS_EVENT_RECORD,
                           .sender_id = stream->sender_id,
                           .seq = self->seq++,
                           .label = stream->label,
                           .data = record.data,
                           .size = record.size};
    return true;
}

/*  Begins a run of records: what was seen before is passed over.  */
static void begin_run (hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    hws_cursor_t cursor = hws_cursor (entry->body);
    hws_bytes_t record;
    for (uint32_t i = 0; i < entry->skip; i++) {
        if (hws_run_next_record (&cursor, &record) != 1) {
            break_stream (self, entry->stream);
            return;
        }
    }
    self->run = entry->stream;
    self->cursor = cursor;
    self->counted = cursor.at;
    self->left = entry->count - entry->skip;
    self->seq = self->counted_seq = entry->first_seq + entry->skip;
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
    hand_out (self, stream, entry->first_seq + entry->count, entry->wire);
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
    const bool is_clean = entry->type == HWS_RUN_DETACHED || entry->type == HWS_RUN_FINALIZED;
    copy_text (self, entry->body);
    *event = (hws_event_t){.kind = kind_of_ending (entry->type),
                           .sender_id = stream->sender_id,
                           .label = stream->label,
                           .cause = is_clean ? NULL : hws_cause_word (entry->cause),
                           .reason = self->text,
                           .records = stream->records,
                           .bytes = stream->bytes};
    stream->is_ending_shown = true;
    if (entry->is_broker_made) {
        hand_out (self, stream, stream->consumed_seq, 0);
    } else {
        hand_out (self, stream, entry->first_seq + 1, entry->wire);
    }
    self->is_pending_ending = true;
    if (!self->is_manual) {
        hws_rx_reader_settle (self);
    }
}

/*  A run of a type that this version does not know: its numbers and bytes count, and that is
 *  all. How its bytes belong to its numbers is not known either, so of one that was seen in
 *  part they are left out.  */
static void pass_over (hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    hws_rx_stream_t *const stream = entry->stream;
    stream->consumed_seq = entry->first_seq + entry->count;
    stream->consumed_bytes += entry->skip == 0 ? entry->wire : 0;
    self->unpublished += entry->wire;
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
        if (stream->is_ending_shown || (!entry->is_broker_made && self->is_over)) {
            return false; /* another came, or comes, in its place */
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
    hand_out (self, stream, entry->first_seq + 1, entry->wire);
    return true;
}

/*  Whether the application is not to see this entry any more. Who has an ending has come
 *  before.  */
static bool is_discarded (const hws_rx_reader_t *self, const hws_rx_entry_t *entry)
{
    return !entry->is_broker_made && entry->type != HWS_RUN_ATTACHED &&
           (entry->stream->is_broken || self->is_discarding);
}

bool hws_rx_reader_next (hws_rx_reader_t *self, hws_event_t *event)
{
    hws_rx_reader_settle (self);
    while (self->block) {
        if (self->entry == self->block->count) {
            hws_rx_block_t *const done = self->block;
            self->block = done->next;
            self->entry = 0;
            hws_rx_block_free (done);
            continue;
        }
        const hws_rx_entry_t *const entry = &self->block->entries[self->entry];
        if (is_discarded (self, entry)) {
            next_entry (self);
            continue;
        }
        if (self->run) {
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
    const bool is_run_over = self->run && self->left == 0;
    return self->entry + is_run_over < self->block->count || self->block->next;
}

int hws_rx_reader_take (hws_rx_reader_t *self)
{
    hws_assert (self->block == NULL);
    hws_assert (self->pending == NULL);
    hws_rx_t *const rx = self->rx;
    self->is_over = rx->state == HWS_RX_CLOSED;
    hws_rx_begin_take (rx);
    const int rc = rx->is_closed_due ? hws_rx_queue_closed (rx) : 0;
    if (!rx->head) {
        return rc;
    }
    self->block = rx->head;
    self->entry = 0;
    rx->head = rx->tail = NULL;
    return 0;
}

bool hws_rx_reader_is_due (const hws_rx_reader_t *self, bool is_idle)
{
    return self->is_urgent || self->unpublished >= HWS_RX_PUBLISH_BYTES ||
           (is_idle && self->unpublished_records < HWS_RX_RECORDS_FEW);
}

bool hws_rx_reader_publish (hws_rx_reader_t *self)
{
    bool has_news = false;
    if (self->run) {
        count_run (self, self->hand ? self->seq - 1 : self->seq,
                   self->hand ? self->hand : self->cursor.at);
    }
    while (self->touched) {
        hws_rx_stream_t *const stream = self->touched;
        self->touched = stream->touched_next;
        stream->is_touched = false;
        if (stream->is_broken && !stream->is_refused) {
            hws_rx_refuse_stream (stream);
            has_news = true;
        }
        if (stream->consumed_seq == stream->acked_seq &&
            stream->is_ending_consumed == stream->is_ended_acked) {
            continue;
        }
        if (stream->rx->is_cut) { /* what is still to be said stays as it is */
            if (stream->is_ending_consumed && stream->state != HWS_RX_STREAM_FINISHED) {
                hws_rx_finish_stream (stream);
            }
            continue;
        }
        has_news = true;
        stream->acked_seq = stream->consumed_seq;
        stream->acked_bytes = stream->consumed_bytes;
        hws_rx_ask_ack (stream);
        if (stream->is_ending_consumed && !stream->is_ended_acked) {
            stream->is_ended_acked = true;
            hws_rx_finish_stream (stream);
        }
    }
    self->unpublished = self->unpublished_records = 0;
    self->is_urgent = false;
    return has_news;
}
