/*  The streams of an anchor: how each begins, is bound to a number of the broker's, is finished and
 *  at last only remembered; and what is to be said of them, acknowledgements and cancels.
 */
#include "client/rx_part.h"
#include "client/rx_past.h"

#include <stdlib.h>
#include <string.h>

/*  ---- Birth and death ---- */

void hws_rx_stream_free (hws_rx_stream_t *stream)
{
    hws_map_remove (&stream->rx->streams->by_id, &stream->node);
    hws_map_remove (&stream->rx->streams->by_sender, &stream->sender_node);
    hws_list_remove (&stream->link);
    hws_list_remove (&stream->ack_link);
    hws_list_remove (&stream->cancel_link);
    free (stream->label);
    free (stream->cancel_text);
    free (stream->join);
    free (stream);
}

void hws_rx_bind (hws_rx_stream_t *stream, uint64_t id)
{
    hws_rx_streams_t *const streams = stream->rx->streams;
    hws_map_remove (&streams->by_id, &stream->node);
    hws_list_remove (&stream->ack_link);
    stream->id = id;
    if (id != 0) {
        hws_put_u64 (stream->key, id);
        hws_map_insert (&streams->by_id, &stream->node,
                        hws_bytes (stream->key, sizeof stream->key));
    }
}

hws_rx_stream_t *hws_rx_stream_new (hws_rx_t *self, const hws_run_t *run,
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
    stream->sender_id = attached->sender_id;
    stream->seat_key = attached->seat_key;
    stream->label = label;
    stream->next_seq = stream->consumed_seq = stream->acked_seq = run->first_seq;
    stream->next_bytes = stream->consumed_bytes = stream->acked_bytes = attached->next_bytes;
    hws_rx_key_put (stream->sender_key, self, stream->sender_id);
    hws_map_insert (&self->streams->by_sender, &stream->sender_node,
                    hws_bytes (stream->sender_key, sizeof stream->sender_key));
    hws_rx_bind (stream, run->stream);
    hws_list_append (&self->live, &stream->link);
    return stream;
}

void hws_rx_drop_parts (hws_rx_stream_t *stream)
{
    free (stream->join);
    stream->join = NULL;
    stream->join_size = stream->join_room = 0;
    stream->join_wire = 0;
}

bool hws_rx_is_ending_void (const hws_rx_stream_t *stream)
{
    return stream->state == HWS_RX_STREAM_ENDED && stream->is_own_ending &&
           (stream->is_refused || stream->rx->is_cancelled || stream->rx->state == HWS_RX_CLOSED);
}

void hws_rx_finish_stream (hws_rx_stream_t *stream)
{
    hws_rx_t *const self = stream->rx;
    stream->state = HWS_RX_STREAM_FINISHED;
    stream->finished_take = self->takes;
    hws_list_remove (&stream->link);
    hws_list_append (&self->remembered, &stream->link);
}

/*  Keeps what is needed of a finished stream. Without memory it is forgotten; that it was seen is
 *  not.  */
static void retire (hws_rx_stream_t *stream)
{
    hws_rx_t *const self = stream->rx;
    hws_rx_past_t *const past = hws_rx_past_new (self, stream->sender_id);
    if (past) {
        past->id = stream->id;
        past->seat_key = stream->seat_key;
        past->acked_seq = stream->acked_seq;
        past->acked_bytes = stream->acked_bytes;
        past->ending = stream->ending;
        past->cause = stream->cause;
        if (hws_link_is_in_list (&stream->ack_link)) {
            hws_rx_past_ask_ack (self, past);
        }
    }
    hws_rx_stream_free (stream);
}

/*  Nothing is queued for a stream once it is finished. So what was queued for it before is taken
 *  at the latest with the take after that, and read before the next.  */
void hws_rx_begin_take (hws_rx_t *self)
{
    self->takes++;
    hws_rx_stream_t *oldest;
    while ((oldest = hws_rx_stream_of (self->remembered.head)) != NULL &&
           oldest->finished_take + 2 <= self->takes) {
        retire (oldest);
    }
}

void hws_rx_unbind (hws_rx_t *self)
{
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_bind (hws_rx_stream_of (link), 0);
    }
    for (hws_link_t *link = self->remembered.head; link; link = link->next) {
        hws_rx_bind (hws_rx_stream_of (link), 0);
    }
    for (hws_link_t *link = self->past.head; link; link = link->next) {
        hws_rx_past_t *const past = hws_container_of (link, hws_rx_past_t, link);
        hws_list_remove (&past->ack_link);
        past->id = 0;
    }
}

/*  ---- Acknowledgements ---- */

void hws_rx_note_busy (hws_rx_t *self)
{
    if (self->busy && !hws_link_is_in_list (&self->busy_link)) {
        hws_list_append (self->busy, &self->busy_link);
    }
}

/*  Of an anchor that is cut only endings that came from the broker.  */
void hws_rx_ask_ack (hws_rx_stream_t *stream)
{
    const bool is_told_end = stream->state == HWS_RX_STREAM_FINISHED && stream->ending != 0;
    if ((is_told_end || !stream->rx->is_cut) && stream->id != 0 &&
        !hws_link_is_in_list (&stream->ack_link)) {
        hws_list_append (&stream->rx->acks, &stream->ack_link);
        hws_rx_note_busy (stream->rx);
    }
}

void hws_rx_acknowledge_endings (hws_rx_t *self)
{
    for (hws_link_t *link = self->remembered.head; link; link = link->next) {
        hws_rx_ask_ack (hws_rx_stream_of (link));
    }
    for (hws_link_t *link = self->past.head; link; link = link->next) {
        hws_rx_past_ask_ack (self, hws_container_of (link, hws_rx_past_t, link));
    }
}

static bool next_past_ack (hws_rx_t *self, hws_ack_t *ack)
{
    hws_link_t *const link = hws_list_pop (&self->past_acks);
    if (!link) {
        return false;
    }
    const hws_rx_past_t *const past = hws_container_of (link, hws_rx_past_t, ack_link);
    *ack = (hws_ack_t){.stream = past->id,
                       .acked_seq = past->acked_seq,
                       .acked_bytes = past->acked_bytes,
                       .flags = HWS_ACK_ENDED};
    return true;
}

bool hws_rx_next_ack (hws_rx_t *self, hws_ack_t *ack)
{
    hws_link_t *const link = hws_list_pop (&self->acks);
    if (!link) {
        return next_past_ack (self, ack);
    }
    const hws_rx_stream_t *const stream = hws_container_of (link, hws_rx_stream_t, ack_link);
    *ack = (hws_ack_t){.stream = stream->id,
                       .acked_seq = stream->acked_seq,
                       .acked_bytes = stream->acked_bytes,
                       .flags = stream->is_ended_acked ? HWS_ACK_ENDED : 0};
    return true;
}

/*  ---- Cancels ---- */

void hws_rx_again_cancel (hws_rx_stream_t *stream)
{
    if (!hws_link_is_in_list (&stream->cancel_link)) {
        hws_list_append (&stream->rx->cancels, &stream->cancel_link);
        hws_rx_note_busy (stream->rx);
    }
}

static void ask_cancel (hws_rx_stream_t *stream, const char *reason)
{
    if (!stream->is_cancel_due) {
        stream->is_cancel_due = true;
        stream->cancel_reason = reason;
        hws_rx_again_cancel (stream);
    }
}

void hws_rx_refuse_stream (hws_rx_stream_t *stream)
{
    hws_rx_drop_parts (stream);
    stream->is_refused = true;
    ask_cancel (stream, "protocol: a malformed run");
}

int hws_rx_cancel_sender (hws_rx_t *self, uint64_t sender_id, const char *reason)
{
    hws_rx_stream_t *const stream = hws_rx_find_sender (self, sender_id);
    if (!stream || stream->state != HWS_RX_STREAM_LIVE || self->state == HWS_RX_CLOSED) {
        return HWS_ENOT_FOUND;
    }
    if (!stream->is_cancel_due) {
        stream->cancel_text = strndup (reason ? reason : "", HWS_TEXT_SIZE_MAX);
        if (!stream->cancel_text) {
            return HWS_ENO_MEMORY;
        }
        ask_cancel (stream, stream->cancel_text);
    }
    return 0;
}

hws_rx_stream_t *hws_rx_next_cancel (hws_rx_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->cancels)) != NULL) {
        hws_rx_stream_t *const stream = hws_container_of (link, hws_rx_stream_t, cancel_link);
        if (self->state != HWS_RX_CLOSED &&
            (stream->state == HWS_RX_STREAM_LIVE || hws_rx_is_ending_void (stream))) {
            return stream;
        }
    }
    return NULL;
}

void hws_rx_reconnected (hws_rx_t *self)
{
    self->has_gap = false;
    if (self->state == HWS_RX_CLOSING) {
        hws_rx_acknowledge_endings (self);
    }
    for (hws_link_t *link = self->live.head; link; link = link->next) {
        hws_rx_stream_t *const stream = hws_rx_stream_of (link);
        if (stream->is_cancel_due) {
            hws_rx_again_cancel (stream);
        }
    }
}
