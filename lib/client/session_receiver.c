#include "client/session_part.h"

#include <stdio.h>

static hws_session_receiver_t *receiver_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_session_receiver_t, link) : NULL;
}

/*  The anchor is gone.  */
static void finish (hws_session_receiver_t *receiver, uint16_t cause, const char *reason)
{
    hws_session_t *const self = receiver->session;
    hws_session_settle (self, &receiver->open);
    hws_session_settle (self, &receiver->close);
    receiver->is_close_owed = false;
    hws_rx_closed (&receiver->rx, cause, reason);
    receiver->notify (receiver);
}

/*  ---- Opening ---- */

/*  When the first answer is not waited for any more, connection or not.  */
static hws_ms_t give_up_at (const hws_session_t *self, const hws_session_receiver_t *receiver)
{
    return receiver->rx.state != HWS_RX_OPENING || self->options.connect_ms < 0
               ? HWS_NEVER
               : hws_time_after (receiver->asked_at, self->options.connect_ms);
}

static void ask_open (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    hws_control_t control = {.verb = HWS_VERB_OPEN};
    control.as.open = receiver->options;
    hws_session_ask (self, now, &receiver->open, &control, HWS_REQUEST_RETRY_MS);
    hws_heap_set (
        &self->timers, &receiver->open.timer,
        hws_time_min (hws_time_after (now, HWS_REQUEST_RETRY_MS), give_up_at (self, receiver)));
}

static void await_broker (hws_session_t *self, hws_session_receiver_t *receiver)
{
    hws_heap_set (&self->timers, &receiver->open.timer, give_up_at (self, receiver));
}

void hws_session_open (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    hws_rx_init (&receiver->rx, &self->streams);
    receiver->rx.busy = &self->busy;
    receiver->session = self;
    receiver->options.open_id = ++self->last_open_id;
    receiver->asked_at = now;
    receiver->again_at = now;
    receiver->interval_ms = 0;
    receiver->is_cancelled = receiver->is_close_owed = false;
    receiver->close_result = receiver->change_result = 0;
    receiver->changes_asked = receiver->changes_answered = 0;
    receiver->link = receiver->batch_link = (hws_link_t){.next = NULL};
    hws_request_init (&receiver->open, HWS_ABOUT_OPEN, receiver);
    hws_request_init (&receiver->close, HWS_ABOUT_CLOSE, receiver);
    hws_request_init (&receiver->flush_timer, HWS_ABOUT_FLUSH, receiver);
    hws_list_append (&self->receivers, &receiver->link);
    const char *const cancelled =
        hws_session_token_reason (self, now, receiver->options.cancel_token);
    if (cancelled) {
        hws_session_refuse_receiver (receiver, HWS_ECANCELLED, cancelled);
    } else if (self->state == HWS_SESSION_UP) {
        ask_open (self, now, receiver);
    } else {
        await_broker (self, receiver);
    }
}

void hws_session_open_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    const bool is_up = self->state == HWS_SESSION_UP;
    if (is_up && !hws_map_node_is_in (&receiver->open.node)) {
        hws_session_reopen (self, now, receiver);
    } else if (is_up && now < give_up_at (self, receiver)) {
        ask_open (self, now, receiver);
    } else if (receiver->rx.state == HWS_RX_OPENING) {
        if (is_up) {
            snprintf (self->error, sizeof self->error, "the broker does not answer OPEN");
        }
        receiver->rx.result = HWS_EUNREACHABLE;
        finish (receiver, HWS_CAUSE_TRANSPORT, self->error);
    }
}

/*  An OPEN that is not answered yet has the old value: its answer is forgotten, this one's
 *  has another id.  */
uint64_t hws_session_set_unattached (hws_session_t *self, hws_ms_t now,
                                     hws_session_receiver_t *receiver, hws_optional_t timeout_ms)
{
    receiver->options.unattached_timeout_ms = timeout_ms;
    receiver->changes_asked++;
    if (self->state == HWS_SESSION_UP) {
        hws_session_settle (self, &receiver->open);
        ask_open (self, now, receiver);
    }
    return receiver->changes_asked;
}

static bool is_change_due (const hws_session_receiver_t *receiver)
{
    return receiver->changes_answered < receiver->changes_asked;
}

/*  A value that the broker does not take is not asked for again.  */
static void change_answered (hws_session_receiver_t *receiver, int result)
{
    receiver->changes_answered = receiver->changes_asked;
    receiver->change_result = result;
    if (result) {
        receiver->options.unattached_timeout_ms = (hws_optional_t){.state = HWS_ABSENT};
    }
}

/*  Whether the value in force is the one that was asked for: not at a broker which cannot
 *  change it.  */
static bool is_changed (const hws_session_receiver_t *receiver, const hws_open_ok_t *answer)
{
    const hws_optional_t asked = receiver->options.unattached_timeout_ms;
    const hws_optional_t told = answer->unattached_timeout_ms;
    return (asked.state == HWS_VALUE) == (told.state == HWS_VALUE) && asked.value == told.value;
}

/*  Cancels an anchor that is no receiver's here.  */
static void disown (hws_session_t *self, hws_handle_t handle)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL, .form = HWS_FORM_REQUEST};
    control.as.cancel.handle = handle;
    snprintf (control.as.cancel.reason, sizeof control.as.cancel.reason, "%s",
              "the open was given up");
    hws_session_say (self, &control);
}

void hws_session_open_answered (hws_session_receiver_t *receiver, const hws_control_t *control)
{
    hws_session_t *const self = receiver->session;
    hws_session_settle (self, &receiver->open);
    receiver->rx.has_gap = false;
    if (control->form != HWS_FORM_OK) {
        const hws_refusal_t *const refusal = &control->as.refusal;
        if (refusal->code == HWS_EBAD_REQUEST && is_change_due (receiver)) {
            change_answered (receiver, refusal->code);
            receiver->notify (receiver);
            return;
        }
        if (receiver->rx.state == HWS_RX_OPENING) {
            receiver->rx.result = refusal->code;
        }
        finish (receiver, receiver->is_cancelled ? HWS_CAUSE_RECEIVER_CLOSED : HWS_CAUSE_LOST,
                refusal->reason);
        return;
    }
    const hws_open_ok_t *const answer = &control->as.open_ok;
    if (receiver->rx.state != HWS_RX_OPENING &&
        !hws_handle_equal (receiver->rx.handle, answer->handle)) {
        /* The broker knew nothing of ours and made another. */
        disown (self, answer->handle);
        finish (receiver, receiver->is_cancelled ? HWS_CAUSE_RECEIVER_CLOSED : HWS_CAUSE_LOST,
                "the broker has forgotten the anchor");
        return;
    }
    if (is_change_due (receiver)) {
        change_answered (receiver, is_changed (receiver, answer) ? 0 : HWS_EBAD_REQUEST);
    }
    receiver->interval_ms = answer->heartbeat_interval_ms;
    hws_rx_opened (&receiver->rx, answer->handle, answer->record_bytes);
    hws_session_add_interval (self, receiver->interval_ms);
    receiver->notify (receiver);
}

void hws_session_reopen (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (self->state != HWS_SESSION_UP || hws_map_node_is_in (&receiver->open.node) ||
        receiver->rx.state == HWS_RX_CLOSED) {
        return;
    }
    if (now < receiver->again_at) {
        hws_heap_set (&self->timers, &receiver->open.timer, receiver->again_at);
        return;
    }
    receiver->again_at = hws_time_after (now, HWS_AGAIN_MS);
    self->stats.gaps++;
    ask_open (self, now, receiver);
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
        finish (receiver, HWS_CAUSE_RECEIVER_CLOSED, receiver->cancel_reason);
        return;
    }
    receiver->is_close_owed = true;
    if (hws_session_is_away (self)) {
        hws_session_close_here (receiver, HWS_EUNREACHABLE);
    } else if (self->state == HWS_SESSION_UP) {
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

void hws_session_close_answered (hws_session_receiver_t *receiver, const hws_control_t *control)
{
    hws_session_settle (receiver->session, &receiver->close);
    receiver->is_close_owed = false;
    if (control->form == HWS_FORM_ERR) {
        finish (receiver, HWS_CAUSE_RECEIVER_CLOSED, control->as.refusal.reason);
    }
}

void hws_session_close_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (self->state == HWS_SESSION_UP && receiver->rx.state == HWS_RX_CLOSING) {
        say_close (self, now, receiver);
    }
}

void hws_session_anchor_closed (hws_session_t *self, const hws_anchor_closed_t *message)
{
    hws_session_receiver_t *receiver = receiver_of (self->receivers.head);
    while (receiver && (receiver->rx.state == HWS_RX_OPENING ||
                        !hws_handle_equal (receiver->rx.handle, message->handle))) {
        receiver = receiver_of (receiver->link.next);
    }
    if (receiver) {
        finish (receiver, hws_cause_from_word (message->code), message->reason);
    }
}

void hws_session_stray_anchor (hws_session_t *self, hws_handle_t handle)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        if (hws_handle_equal (receiver_of (link)->rx.handle, handle)) {
            return;
        }
    }
    disown (self, handle);
}

void hws_session_remove_receiver (hws_session_receiver_t *receiver)
{
    hws_session_settle (receiver->session, &receiver->open);
    hws_session_settle (receiver->session, &receiver->close);
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
    if (receiver->rx.state == HWS_RX_OPENING) {
        receiver->asked_at = now < receiver->asked_at ? receiver->asked_at : now;
        await_broker (self, receiver);
    }
}

void hws_session_resume_receiver (hws_session_t *self, hws_ms_t now,
                                  hws_session_receiver_t *receiver, bool is_new_epoch)
{
    if (is_new_epoch) {
        hws_session_end_receiver (receiver, HWS_CAUSE_LOST, "the broker was restarted");
    }
    if (receiver->rx.state == HWS_RX_CLOSED) {
        return;
    }
    if (receiver->rx.state == HWS_RX_OPENING) {
        receiver->asked_at = now;
    }
    hws_rx_reconnected (&receiver->rx);
    ask_open (self, now, receiver);
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
        finish (receiver, cause, reason);
    }
    receiver->is_close_owed = false; /* whom it was owed is gone */
}

void hws_session_refuse_receiver (hws_session_receiver_t *receiver, int code, const char *reason)
{
    if (receiver->rx.state == HWS_RX_OPENING) {
        hws_session_set_error (receiver->session, code, reason);
        receiver->rx.result = code;
        finish (receiver, HWS_CAUSE_TRANSPORT, reason);
    }
}
