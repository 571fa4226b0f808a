#include "client/session_part.h"

#include <stdio.h>
#include <stdlib.h>

/*  ---- In ---- */

/*  The receiver that a new sender came to. A broker that does not name the anchor can only
 *  mean the one there is.  */
static hws_session_receiver_t *receiver_for (const hws_session_t *self, hws_handle_t handle)
{
    const bool is_told = handle.hi != 0 || handle.lo != 0;
    if (!is_told && self->receivers.count != 1) {
        return NULL;
    }
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, link);
        const hws_rx_state_t state = receiver->rx.state;
        if ((state == HWS_RX_OPEN || state == HWS_RX_CLOSING) &&
            (!is_told || hws_handle_equal (receiver->rx.handle, handle))) {
            return receiver;
        }
    }
    return NULL;
}

static hws_session_receiver_t *receiver_of_rx (hws_rx_t *rx)
{
    return hws_container_of (rx, hws_session_receiver_t, rx);
}

static int take_attached (hws_session_t *self, const hws_run_t *run, hws_payload_t *payload,
                          uint32_t runs_left, hws_session_receiver_t **receiver)
{
    hws_attached_t attached;
    const int rc = hws_attached_decode (run->body, &attached);
    if (rc) {
        return rc;
    }
    *receiver = receiver_for (self, attached.handle);
    return *receiver ? hws_rx_attached (&(*receiver)->rx, run, &attached, payload, runs_left) : 0;
}

/*  One run of a DATA batch. A stream that is not known is an ended one's, or of an anchor
 *  that was closed here: it is passed over.  */
static void take_run (hws_session_t *self, hws_ms_t now, const hws_run_t *run,
                      hws_payload_t *payload, uint32_t runs_left)
{
    hws_session_receiver_t *receiver = NULL;
    int rc = 0;
    if (run->type == HWS_RUN_ATTACHED) {
        rc = take_attached (self, run, payload, runs_left, &receiver);
    } else if (run->type != HWS_RUN_VOID) {
        hws_rx_stream_t *const stream = hws_rx_find (&self->streams, run->stream);
        if (stream) {
            receiver = receiver_of_rx (stream->rx);
            rc = hws_rx_run (stream->rx, stream, run, payload, runs_left);
        }
    }
    if (rc) {
        self->stats.protocol_errors += rc != HWS_ENO_MEMORY;
    }
    if (!receiver) {
        return;
    }
    if (rc == HWS_ENO_MEMORY) {
        receiver->rx.has_gap = true;
    }
    if (receiver->rx.has_gap) {
        hws_session_reopen (self, now, receiver);
    }
    if (!hws_link_is_in_list (&receiver->batch_link)) {
        hws_list_append (&self->touched, &receiver->batch_link);
    }
}

static void take_data (hws_session_t *self, hws_ms_t now, hws_batch_t *batch,
                       hws_payload_t *payload, int *rc)
{
    hws_run_t run;
    while ((*rc = hws_batch_next_run (batch, &run)) == 1) {
        take_run (self, now, &run, payload, batch->count);
    }
    hws_link_t *link;
    while ((link = hws_list_pop (&self->touched)) != NULL) {
        hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, batch_link);
        if (hws_rx_flush (&receiver->rx)) {
            receiver->notify (receiver);
        }
    }
}

void hws_session_batch (hws_session_t *self, hws_ms_t now, hws_bytes_t message,
                        hws_payload_t *payload)
{
    hws_batch_t batch;
    int rc = hws_batch_open (&batch, message);
    if (rc == 0) {
        self->heard_at = now;
    }
    if (rc == 0 && batch.kind == HWS_BATCH_DATA) {
        take_data (self, now, &batch, payload, &rc);
    } else if (rc == 0 && batch.kind == HWS_BATCH_GRANT) {
        hws_grant_t grant;
        while ((rc = hws_batch_next_grant (&batch, &grant)) == 1) {
            hws_session_granted (self, &grant);
        }
    }
    if (rc < 0) {
        self->stats.protocol_errors++;
        snprintf (self->error, sizeof self->error, "the broker sent a batch that is not valid");
    }
}

/*  ---- Out ---- */

static uint32_t items_that_fit (size_t room, size_t item_size)
{
    const size_t count =
        room < HWS_BATCH_HEADER_SIZE ? 0 : (room - HWS_BATCH_HEADER_SIZE) / item_size;
    return count < HWS_BATCH_ITEMS_MAX ? (uint32_t) count : HWS_BATCH_ITEMS_MAX;
}

/*  An acknowledgement whose receiver is gone.  */
typedef struct {
    hws_link_t link;
    hws_ack_t ack;
} left_ack_t;

/*  Without memory the rest is lost, as with a connection.  */
void hws_session_keep_acks (hws_session_t *self, hws_rx_t *rx)
{
    hws_ack_t ack;
    while (hws_rx_next_ack (rx, &ack)) {
        left_ack_t *const left = calloc (1, sizeof *left);
        if (!left) {
            return;
        }
        left->ack = ack;
        hws_list_append (&self->left, &left->link);
    }
}

static bool pop_left_ack (hws_session_t *self, hws_ack_t *ack)
{
    hws_link_t *const link = hws_list_pop (&self->left);
    if (!link) {
        return false;
    }
    left_ack_t *const left = hws_container_of (link, left_ack_t, link);
    *ack = left->ack;
    free (left);
    return true;
}

void hws_session_drop_acks (hws_session_t *self)
{
    hws_ack_t ack;
    while (pop_left_ack (self, &ack)) {
    }
}

size_t hws_session_pop_acks (hws_session_t *self, uint8_t *buffer, size_t room)
{
    const uint32_t most = items_that_fit (room, HWS_ACK_SIZE);
    uint32_t count = 0;
    uint8_t *at = buffer + HWS_BATCH_HEADER_SIZE;
    hws_ack_t left;
    while (count < most && pop_left_ack (self, &left)) {
        hws_ack_put (at, &left);
        at += HWS_ACK_SIZE;
        count++;
    }
    for (hws_link_t *link = self->busy.head; link; link = link->next) {
        hws_rx_t *const rx = hws_container_of (link, hws_rx_t, busy_link);
        hws_ack_t ack;
        while (count < most && hws_rx_next_ack (rx, &ack)) {
            hws_ack_put (at, &ack);
            at += HWS_ACK_SIZE;
            count++;
        }
    }
    if (count == 0) {
        return 0;
    }
    hws_batch_put (buffer, HWS_BATCH_ACK, (uint16_t) count);
    return (size_t) (at - buffer);
}

size_t hws_session_pop_wants (hws_session_t *self, hws_ms_t now, uint8_t *buffer, size_t room)
{
    const uint32_t most = items_that_fit (room, HWS_WINDOW_SIZE);
    uint32_t count = 0;
    uint8_t *at = buffer + HWS_BATCH_HEADER_SIZE;
    hws_link_t *link;
    while (count < most && (link = hws_list_pop (&self->wants)) != NULL) {
        hws_session_sender_t *const sender =
            hws_container_of (link, hws_session_sender_t, want_link);
        hws_window_t window;
        if (!hws_tx_next_window (&sender->tx, &window)) {
            continue;
        }
        window.stream = sender->session_id;
        hws_window_put (at, &window);
        at += HWS_WINDOW_SIZE;
        count++;
        sender->want_said = window.want_bytes;
        if (window.want_bytes > 0) {
            hws_heap_set (&self->timers, &sender->want.timer,
                          hws_time_after (now, HWS_WANT_RETRY_MS));
        }
    }
    if (count == 0) {
        return 0;
    }
    hws_batch_put (buffer, HWS_BATCH_WINDOW, (uint16_t) count);
    return (size_t) (at - buffer);
}

/*  The sender has had its turn: one that has more goes to the end of the line.  */
static void end_turn (hws_session_t *self, hws_session_sender_t *sender)
{
    hws_list_remove (&sender->ready_link);
    if (hws_tx_has_runs (&sender->tx)) {
        hws_list_append (&self->ready, &sender->ready_link);
    }
}

/*  Senders take turns. What one can lend leaves alone, after what was written before.  */
size_t hws_session_pop_data (hws_session_t *self, uint8_t *buffer, size_t room, hws_action_t *out)
{
    uint8_t *at = buffer + HWS_BATCH_HEADER_SIZE;
    size_t left = room - HWS_BATCH_HEADER_SIZE;
    uint32_t count = 0;
    for (size_t turns = self->ready.count; turns > 0 && count < HWS_BATCH_ITEMS_MAX; turns--) {
        hws_session_sender_t *const sender =
            hws_container_of (self->ready.head, hws_session_sender_t, ready_link);
        if (hws_tx_can_lend (&sender->tx)) {
            if (count > 0) {
                break;
            }
            out->block = hws_tx_lend (&sender->tx, sender->session_id, &out->data, &out->size);
            end_turn (self, sender);
            return out->size;
        }
        uint32_t runs;
        const size_t used = hws_tx_take (&sender->tx, sender->session_id, at, left,
                                         HWS_BATCH_ITEMS_MAX - count, &runs);
        at += used;
        left -= used;
        count += runs;
        if (used == 0 && hws_tx_has_runs (&sender->tx)) {
            break; /* it is next, with a whole batch before it */
        }
        end_turn (self, sender);
    }
    if (count == 0) {
        return 0;
    }
    hws_batch_put (buffer, HWS_BATCH_DATA, (uint16_t) count);
    return (size_t) (at - buffer);
}

static bool say_cancel (hws_session_t *self, const hws_rx_t *rx, const hws_rx_stream_t *stream)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL, .form = HWS_FORM_REQUEST};
    control.as.cancel.handle = rx->handle;
    control.as.cancel.sender_id = stream->sender_id;
    snprintf (control.as.cancel.reason, sizeof control.as.cancel.reason, "%s",
              stream->cancel_reason);
    return hws_session_say (self, &control);
}

void hws_session_say_cancels (hws_session_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->busy)) != NULL) {
        hws_rx_t *const rx = hws_container_of (link, hws_rx_t, busy_link);
        hws_rx_stream_t *stream;
        while ((stream = hws_rx_next_cancel (rx)) != NULL) {
            if (!say_cancel (self, rx, stream)) {
                hws_rx_again_cancel (stream);
                return; /* next time */
            }
        }
    }
}
