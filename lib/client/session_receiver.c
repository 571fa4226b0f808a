#include "client/session_part.h"

#include <stdio.h>

static hws_session_receiver_t *receiver_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_session_receiver_t, link) : NULL;
}

void hws_session_finish_receiver (hws_session_receiver_t *receiver, uint16_t cause,
                                  const char *reason)
{
    hws_session_t *const self = receiver->session;
    if (receiver->options.has_resume && receiver->epoch == 0) {
        self->has_left = true; /* the anchor may be ours by now, and is not to be closed for that */
    }
    hws_session_settle (self, &receiver->open);
    hws_session_settle (self, &receiver->close);
    receiver->is_close_owed = false;
    hws_rx_closed (&receiver->rx, cause, reason);
    receiver->notify (receiver);
}

void hws_session_flush_at (hws_session_receiver_t *receiver, hws_ms_t at)
{
    hws_heap_set (&receiver->session->timers, &receiver->flush_timer.timer, at);
}

/*  ---- Closing ---- */

static void say_close (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL};
    control.as.cancel.handle = receiver->rx.handle;
    snprintf (control.as.cancel.reason, sizeof control.as.cancel.reason, "%s",
              receiver->cancel_reason);
    hws_session_ask (self, now, &receiver->close, &control, HWS_REQUEST_RETRY_MS);
}

void hws_session_close (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver,
                        const char *reason)
{
    const hws_rx_state_t state = receiver->rx.state;
    if (receiver->is_cancelled || !hws_rx_cancel (&receiver->rx)) {
        return;
    }
    receiver->is_cancelled = true;
    snprintf (receiver->cancel_reason, sizeof receiver->cancel_reason, "%s", reason ? reason : "");
    if (state == HWS_RX_OPENING) {
        hws_session_finish_receiver (receiver, HWS_CAUSE_RECEIVER_CLOSED, receiver->cancel_reason);
        return;
    }
    receiver->is_close_owed = true;
    if (hws_session_is_away (self)) {
        hws_session_close_here (receiver, HWS_EUNREACHABLE);
    } else if (self->state == HWS_SESSION_UP) {
        /* An ending that was consumed since could not be acknowledged yet.  */
        hws_session_tell_positions (self, now, receiver);
        say_close (self, now, receiver);
    }
    receiver->notify (receiver);
}

/*  A CANCEL that is said already may still be answered.  */
void hws_session_close_here (hws_session_receiver_t *receiver, int result)
{
    if (receiver->rx.state != HWS_RX_CLOSING) {
        return;
    }
    receiver->close_result = result;
    hws_session_settle (receiver->session, &receiver->open);
    hws_rx_cut (&receiver->rx);
    hws_rx_closed (&receiver->rx, HWS_CAUSE_RECEIVER_CLOSED, receiver->cancel_reason);
    receiver->notify (receiver);
}

/*  `busy`: the anchor of an earlier epoch is not opened again yet.  */
void hws_session_close_answered (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver, const hws_control_t *control)
{
    hws_session_settle (self, &receiver->close);
    if (control->form == HWS_FORM_ERR && control->as.refusal.code == HWS_EBUSY) {
        hws_heap_set (&self->timers, &receiver->close.timer,
                      hws_time_after (now, HWS_OPEN_AGAIN_MS));
        return;
    }
    receiver->is_close_owed = false;
    receiver->close_result = 0;
    if (control->form == HWS_FORM_ERR) {
        hws_session_finish_receiver (receiver, HWS_CAUSE_RECEIVER_CLOSED,
                                     control->as.refusal.reason);
    } else if (receiver->rx.state == HWS_RX_CLOSED) {
        hws_session_settle (self, &receiver->open);
        receiver->notify (receiver);
    }
}

void hws_session_close_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (self->state == HWS_SESSION_UP && receiver->is_close_owed) {
        say_close (self, now, receiver);
    }
}

void hws_session_anchor_closed (hws_session_t *self, const hws_anchor_closed_t *message)
{
    hws_session_receiver_t *receiver = NULL; /* one that is closed only if there is no other */
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_receiver_t *const other = receiver_of (link);
        const bool is_its = other->rx.state != HWS_RX_OPENING &&
                            hws_handle_equal (other->rx.handle, message->handle);
        if (is_its && (!receiver || receiver->rx.state == HWS_RX_CLOSED)) {
            receiver = other;
        }
    }
    if (receiver) {
        receiver->close_result = 0;
        hws_session_finish_receiver (receiver, hws_cause_from_word (message->code),
                                     message->reason);
    }
}

void hws_session_remove_receiver (hws_session_receiver_t *receiver)
{
    hws_session_settle (receiver->session, &receiver->open);
    hws_session_settle (receiver->session, &receiver->close);
    hws_session_settle (receiver->session, &receiver->leave);
    hws_session_settle (receiver->session, &receiver->flush_timer);
    hws_list_remove (&receiver->batch_link);
    hws_list_remove (&receiver->link);
    hws_session_keep_acks (receiver->session, &receiver->rx);
    hws_rx_fini (&receiver->rx);
}

/*  ---- Connections come and go ---- */

void hws_session_suspend_receiver (hws_session_t *self, hws_ms_t now,
                                   hws_session_receiver_t *receiver)
{
    hws_session_settle (self, &receiver->open);
    hws_session_settle (self, &receiver->close);
    hws_session_settle (self, &receiver->leave);
    if (receiver->rx.state == HWS_RX_OPENING) {
        receiver->asked_at = now < receiver->asked_at ? receiver->asked_at : now;
        hws_session_await_open (self, receiver);
    }
}

void hws_session_resume_receiver (hws_session_t *self, hws_ms_t now,
                                  hws_session_receiver_t *receiver, bool is_new_epoch)
{
    if (is_new_epoch) {
        hws_rx_unbind (&receiver->rx);
    }
    const bool is_over = receiver->rx.state == HWS_RX_CLOSED;
    if (!is_over || (is_new_epoch && receiver->is_close_owed)) {
        hws_session_open_again (self, now, receiver);
    } else if (receiver->is_close_owed) {
        hws_rx_acknowledge_endings (&receiver->rx);
    }
}

void hws_session_close_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (receiver->is_close_owed) {
        say_close (self, now, receiver);
    }
}

void hws_session_end_receiver (hws_session_receiver_t *receiver, uint16_t cause, const char *reason)
{
    if (receiver->rx.state != HWS_RX_OPENING && receiver->rx.state != HWS_RX_CLOSED) {
        if (cause != HWS_CAUSE_LOST) { /* else its broker is gone, and hears of nothing */
            hws_rx_cut (&receiver->rx);
        }
        hws_session_finish_receiver (receiver, cause, reason);
    }
    if (receiver->is_close_owed) {
        receiver->is_close_owed = false; /* whom it was owed is gone */
        receiver->notify (receiver);
    }
}

void hws_session_refuse_receiver (hws_session_receiver_t *receiver, int code, const char *reason)
{
    if (receiver->rx.state == HWS_RX_OPENING) {
        hws_session_set_error (receiver->session, code, reason);
        receiver->rx.result = code;
        hws_session_finish_receiver (receiver, HWS_CAUSE_TRANSPORT, reason);
    }
}
