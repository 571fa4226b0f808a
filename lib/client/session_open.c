/*  How an anchor is opened: asked for, asked for again, and, at a broker of another epoch or by
 *  another process than before, taken up where its receiver stands (docs/protocol.md, "OPEN").
 */
#include "client/rx_position.h"
#include "client/session_part.h"

#include <stdio.h>
#include <stdlib.h>

/*  Whether the present broker does not know the anchor as this client's, though it was opened
 *  before.  */
static bool is_resuming (const hws_session_receiver_t *receiver)
{
    return receiver->epoch != receiver->session->epoch &&
           (receiver->epoch != 0 || receiver->options.has_resume);
}

/*  Whether it has to wait for the next broker: the present one is leaving, and has not opened
 *  it.  */
static bool is_held (const hws_session_receiver_t *receiver)
{
    return receiver->session->is_broker_leaving && receiver->epoch != receiver->session->epoch;
}

/*  When the first answer is not waited for any more, connection or not.  */
static hws_ms_t give_up_at (const hws_session_t *self, const hws_session_receiver_t *receiver)
{
    return receiver->rx.state != HWS_RX_OPENING || self->options.connect_ms < 0
               ? HWS_NEVER
               : hws_time_after (receiver->asked_at, self->options.connect_ms);
}

void hws_session_await_open (hws_session_t *self, hws_session_receiver_t *receiver)
{
    hws_heap_set (&self->timers, &receiver->open.timer, give_up_at (self, receiver));
}

/*  ---- Asking ---- */

/*  Every sender that is known, in batches behind the OPEN; with none a mark that is the last.
 *  Without memory the last is not said, and all of it is asked for again.  */
static void say_positions (hws_session_t *self, const hws_rx_t *rx)
{
    hws_rx_walk_t walk = hws_rx_walk (rx);
    const size_t most =
        (hws_session_batch_bytes (self) - HWS_BATCH_HEADER_SIZE) / HWS_POSITION_SIZE;
    size_t left = hws_rx_position_count (rx);
    left = left > 0 ? left : 1;
    while (left > 0) {
        size_t count = left < most ? left : most;
        count = count < HWS_BATCH_ITEMS_MAX ? count : HWS_BATCH_ITEMS_MAX;
        const size_t size = HWS_BATCH_HEADER_SIZE + count * HWS_POSITION_SIZE;
        uint8_t *const batch = malloc (size);
        if (!batch) {
            return;
        }
        hws_batch_put (batch, HWS_BATCH_POSITION, (uint16_t) count);
        for (size_t i = 0; i < count; i++, left--) {
            hws_position_t position = {.sender_id = 0};
            hws_rx_walk_next (&walk, &position);
            position.flags |= left == 1 ? HWS_POSITION_LAST : 0;
            hws_position_put (batch + HWS_BATCH_HEADER_SIZE + i * HWS_POSITION_SIZE, &position);
        }
        if (!hws_session_say_batch (self, batch, size)) {
            return;
        }
    }
}

static hws_optional_t value (uint64_t number)
{
    return (hws_optional_t){.state = HWS_VALUE, .value = number};
}

/*  What was asked for may have been left to the broker, or limited by it: another one shall have
 *  the anchor as it is.  */
static void take_values_in_force (const hws_session_receiver_t *receiver, hws_open_t *open)
{
    const hws_open_ok_t *const told = &receiver->in_force;
    const bool is_change_due = receiver->changes_answered < receiver->changes_asked;
    open->heartbeat_interval_ms = value (told->heartbeat_interval_ms);
    open->reconnect_grace_ms = value (told->reconnect_grace_ms);
    open->orphan_ttl_ms = value (told->orphan_ttl_ms);
    open->max_senders = told->max_senders;
    open->buffer_bytes = value (told->buffer_bytes);
    if (!is_change_due) {
        open->unattached_timeout_ms = told->unattached_timeout_ms;
    }
}

static void ask_resume (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    hws_control_t control = {.verb = HWS_VERB_OPEN};
    hws_open_t *const open = &control.as.open;
    const hws_rx_t *const rx = &receiver->rx;
    *open = receiver->options;
    if (receiver->epoch != 0) {
        take_values_in_force (receiver, open);
    }
    open->has_resume = true;
    open->resume.handle = rx->handle;
    open->resume.owner_token = receiver->in_force.owner_token;
    open->resume.highest_sender_id = hws_seen_highest (&rx->seen);
    open->resume.unseen_count = hws_seen_holes (&rx->seen, open->resume.unseen);
    if (hws_session_ask (self, now, &receiver->open, &control, HWS_REQUEST_RETRY_MS)) {
        say_positions (self, rx);
    }
    hws_rx_reconnected (&receiver->rx);
}

/*  Says OPEN. While the first answer is awaited no longer than the program would wait.  */
static void ask (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (is_held (receiver)) {
        hws_session_await_open (self, receiver);
        return;
    }
    if (is_resuming (receiver)) {
        ask_resume (self, now, receiver);
    } else {
        hws_control_t control = {.verb = HWS_VERB_OPEN};
        control.as.open = receiver->options;
        control.as.open.has_resume = false;
        hws_session_ask (self, now, &receiver->open, &control, HWS_REQUEST_RETRY_MS);
    }
    hws_heap_set (
        &self->timers, &receiver->open.timer,
        hws_time_min (hws_time_after (now, HWS_REQUEST_RETRY_MS), give_up_at (self, receiver)));
}

void hws_session_open (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    hws_rx_init (&receiver->rx, &self->streams);
    receiver->rx.busy = &self->busy;
    receiver->session = self;
    receiver->options.open_id = ++self->last_open_id;
    receiver->epoch = 0;
    receiver->in_force = (hws_open_ok_t){.handle = {.hi = 0}};
    if (receiver->options.has_resume) {
        receiver->rx.handle = receiver->options.resume.handle;
        receiver->in_force.owner_token = receiver->options.resume.owner_token;
    }
    receiver->asked_at = now;
    receiver->again_at = now;
    receiver->interval_ms = 0;
    receiver->is_cancelled = receiver->is_close_owed = false;
    receiver->close_result = receiver->change_result = receiver->refused = 0;
    receiver->changes_asked = receiver->changes_answered = 0;
    receiver->link = receiver->batch_link = (hws_link_t){.next = NULL};
    hws_request_init (&receiver->open, HWS_ABOUT_OPEN, receiver);
    hws_request_init (&receiver->close, HWS_ABOUT_CLOSE, receiver);
    receiver->leave_rounds = 0;
    receiver->is_left = false;
    hws_request_init (&receiver->leave, HWS_ABOUT_LEAVE, receiver);
    hws_request_init (&receiver->flush_timer, HWS_ABOUT_FLUSH, receiver);
    hws_list_append (&self->receivers, &receiver->link);
    const char *const cancelled =
        hws_session_token_reason (self, now, receiver->options.cancel_token);
    if (cancelled) {
        hws_session_refuse_receiver (receiver, HWS_ECANCELLED, cancelled);
    } else if (self->state == HWS_SESSION_UP) {
        ask (self, now, receiver);
    } else {
        hws_session_await_open (self, receiver);
    }
}

void hws_session_open_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (receiver->rx.state == HWS_RX_OPENING) {
        receiver->asked_at = now;
    }
    hws_rx_reconnected (&receiver->rx);
    ask (self, now, receiver);
}

void hws_session_tell_positions (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver)
{
    if (is_resuming (receiver) && hws_map_node_is_in (&receiver->open.node)) {
        hws_session_settle (self, &receiver->open);
        ask (self, now, receiver);
    }
}

void hws_session_open_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    const bool is_up = self->state == HWS_SESSION_UP && !is_held (receiver);
    const bool is_asked = hws_map_node_is_in (&receiver->open.node);
    if (is_up && now < give_up_at (self, receiver)) {
        if (is_asked || is_resuming (receiver)) {
            ask (self, now, receiver);
        } else {
            hws_session_reopen (self, now, receiver);
        }
    } else if (receiver->rx.state == HWS_RX_OPENING) {
        if (is_up && is_asked) {
            snprintf (self->error, sizeof self->error, "the broker does not answer OPEN");
        }
        receiver->rx.result = receiver->refused ? receiver->refused : HWS_EUNREACHABLE;
        hws_session_finish_receiver (receiver, HWS_CAUSE_TRANSPORT, self->error);
    }
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
    ask (self, now, receiver);
}

/*  ---- A change ---- */

/*  An OPEN that is not answered yet has the old value: its answer is forgotten, this one's
 *  has another id.  */
uint64_t hws_session_set_unattached (hws_session_t *self, hws_ms_t now,
                                     hws_session_receiver_t *receiver, hws_optional_t timeout_ms)
{
    receiver->options.unattached_timeout_ms = timeout_ms;
    receiver->changes_asked++;
    if (self->state == HWS_SESSION_UP) {
        hws_session_settle (self, &receiver->open);
        ask (self, now, receiver);
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

/*  ---- The answer ---- */

/*  Cancels an anchor that is no receiver's here.  */
static void disown (hws_session_t *self, hws_handle_t handle)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL, .form = HWS_FORM_REQUEST};
    control.as.cancel.handle = handle;
    snprintf (control.as.cancel.reason, sizeof control.as.cancel.reason, "%s",
              "the open was given up");
    hws_session_say_once (self, &control);
}

/*  How the anchor is closed that the broker refuses. To one that is to go on `closed` says that
 *  its receiver came back too late.  */
static uint16_t cause_of_refusal (const hws_session_receiver_t *receiver, int code)
{
    if (receiver->is_cancelled) {
        return HWS_CAUSE_RECEIVER_CLOSED;
    }
    if (code == HWS_ESUPERSEDED) {
        return HWS_CAUSE_SUPERSEDED;
    }
    return code == HWS_ECLOSED && is_resuming (receiver) ? HWS_CAUSE_ABANDONED : HWS_CAUSE_LOST;
}

static void refused (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver,
                     const hws_refusal_t *refusal)
{
    if (refusal->code == HWS_ECLOSED && is_held (receiver)) {
        hws_session_await_open (self, receiver);
        return;
    }
    if (is_resuming (receiver) && hws_session_is_not_now (refusal->code)) {
        receiver->refused = refusal->code;
        hws_heap_set (
            &self->timers, &receiver->open.timer,
            hws_time_min (hws_time_after (now, HWS_OPEN_AGAIN_MS), give_up_at (self, receiver)));
        return;
    }
    if (refusal->code == HWS_EBAD_REQUEST && is_change_due (receiver)) {
        change_answered (receiver, refusal->code);
        receiver->notify (receiver);
        return;
    }
    if (receiver->rx.state == HWS_RX_OPENING) {
        receiver->rx.result = refusal->code;
    }
    hws_session_finish_receiver (receiver, cause_of_refusal (receiver, refusal->code),
                                 refusal->reason);
}

/*  Whether the answer is about the anchor that was asked for. Another is one that the broker has
 *  made, because it knew nothing of ours.  */
static bool is_ours (const hws_session_receiver_t *receiver, hws_handle_t handle)
{
    const bool is_new = receiver->rx.state == HWS_RX_OPENING && !receiver->options.has_resume;
    return is_new || hws_handle_equal (receiver->rx.handle, handle);
}

/*  The program has another receiver of the same anchor, which it has not removed: the broker, to
 *  which both are one client, may not have told that one, and its streams are this one's.  */
static void supersede (hws_session_t *self, const hws_session_receiver_t *by)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, link);
        if (receiver != by && hws_handle_equal (receiver->rx.handle, by->rx.handle) &&
            receiver->rx.state != HWS_RX_OPENING) {
            hws_session_finish_receiver (receiver, HWS_CAUSE_SUPERSEDED,
                                         "another receiver took it over");
            hws_rx_unbind (&receiver->rx);
        }
    }
}

void hws_session_open_answered (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver,
                                const hws_control_t *control)
{
    hws_session_settle (self, &receiver->open);
    receiver->rx.has_gap = false;
    if (control->form != HWS_FORM_OK) {
        refused (self, now, receiver, &control->as.refusal);
        return;
    }
    const hws_open_ok_t *const answer = &control->as.open_ok;
    if (!is_ours (receiver, answer->handle)) {
        if (receiver->rx.state == HWS_RX_OPENING) {
            receiver->rx.result = HWS_EPROTOCOL;
        }
        disown (self, answer->handle);
        hws_session_finish_receiver (
            receiver, receiver->is_cancelled ? HWS_CAUSE_RECEIVER_CLOSED : HWS_CAUSE_LOST,
            "the broker has forgotten the anchor");
        return;
    }
    if (is_change_due (receiver)) {
        change_answered (receiver, is_changed (receiver, answer) ? 0 : HWS_EBAD_REQUEST);
    }
    receiver->epoch = self->epoch;
    receiver->in_force = *answer;
    receiver->interval_ms = answer->heartbeat_interval_ms;
    hws_rx_opened (&receiver->rx, answer->handle, answer->record_bytes);
    if (receiver->options.has_resume) {
        supersede (self, receiver);
    }
    hws_session_add_interval (self, receiver->interval_ms);
    hws_session_leave_again (self, now, receiver);
    receiver->notify (receiver);
}

void hws_session_stray_anchor (hws_session_t *self, uint64_t request, hws_handle_t handle)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        const hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, link);
        const bool asks_again =
            receiver->rx.state == HWS_RX_OPENING && receiver->open.id == request;
        if (asks_again || hws_handle_equal (receiver->rx.handle, handle)) {
            return;
        }
    }
    if (!self->has_left) {
        disown (self, handle);
    }
}
