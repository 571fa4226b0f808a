#include "client/session_part.h"

#include <stdio.h>
#include <string.h>

/*  ---- Attaching ---- */

/*  How long the broker may be silent by itself: one that has just begun waits until the receiver of
 *  an earlier epoch's anchor is back.  */
static hws_ms_t silence_ms (const hws_session_t *self, const hws_session_sender_t *sender)
{
    return sender->has_handle && hws_handle_epoch (sender->handle) < self->epoch ? HWS_ORPHAN_MS
                                                                                 : 0;
}

/*  When a first answer is not waited for any more, although there is a connection.  */
static hws_ms_t give_up_at (const hws_session_t *self, const hws_session_sender_t *sender)
{
    const int64_t connect_ms = self->options.connect_ms;
    if (!hws_tx_is_new (&sender->tx) || connect_ms < 0) {
        return HWS_NEVER;
    }
    const hws_ms_t silent_until = hws_time_after (sender->asked_at, silence_ms (self, sender));
    const bool is_patient = sender->wait_until > silent_until;
    return hws_time_after (is_patient ? sender->wait_until : silent_until, connect_ms);
}

/*  How long the broker is asked to wait, with a first ATTACH.  */
static uint64_t wait_ms_of (const hws_session_sender_t *sender, hws_ms_t now)
{
    return hws_tx_is_new (&sender->tx)
               ? (uint64_t) hws_time_min (hws_time_until (now, sender->wait_until),
                                          HWS_ATTACH_WAIT_MAX_MS)
               : 0;
}

void hws_session_await_answer (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    const hws_ms_t retry_ms =
        hws_time_after (HWS_REQUEST_RETRY_MS, (hws_ms_t) wait_ms_of (sender, now));
    hws_heap_set (&self->timers, &sender->attach.timer,
                  hws_time_min (hws_time_after (now, retry_ms), give_up_at (self, sender)));
}

/*  What a broker of another epoch has to know of a stream.  */
static void add_resume (const hws_session_sender_t *sender, hws_attach_t *attach)
{
    const hws_tx_t *const tx = &sender->tx;
    attach->has_resume = true;
    attach->resume.sender_id = tx->sender_id;
    attach->resume.resume_token = sender->resume_token;
    attach->resume.acked_seq = tx->acked_seq;
    attach->resume.acked_bytes = tx->acked_bytes;
    attach->resume.next_seq = tx->sent_seq;
    if (tx->state == HWS_TX_CANCELLING) {
        snprintf (attach->resume.ending, sizeof attach->resume.ending, "%s",
                  hws_ending_word (HWS_RUN_CANCELLED));
        snprintf (attach->resume.code, sizeof attach->resume.code, "%s",
                  hws_cause_word (HWS_CAUSE_INTERRUPTED));
    }
}

/*  Whether it has to wait for the next broker: the present one is leaving, and has not seated it.
 */
static bool is_held (const hws_session_t *self, const hws_session_sender_t *sender)
{
    return self->is_broker_leaving && sender->epoch != self->epoch;
}

void hws_session_ask_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (is_held (self, sender)) {
        hws_session_hold_attach (self, now, sender);
        return;
    }
    hws_control_t control = {.verb = HWS_VERB_ATTACH};
    hws_attach_t *const attach = &control.as.attach;
    attach->has_handle = sender->has_handle;
    attach->handle = sender->handle;
    if (!sender->has_handle) {
        snprintf (attach->anchor, sizeof attach->anchor, "%s", sender->anchor);
    }
    snprintf (attach->label, sizeof attach->label, "%s", sender->label);
    attach->session_id = sender->session_id;
    attach->cancel_token = sender->cancel_token;
    attach->supported_transport_keys =
        (hws_words_t){.count = 2, .word = {HWS_TRANSPORT_MUX, HWS_TRANSPORT_DEDICATED}};
    attach->wait_ms = wait_ms_of (sender, now);
    if (hws_session_is_resuming (sender)) {
        add_resume (sender, attach);
    }
    hws_session_ask (self, now, &sender->attach, &control, HWS_REQUEST_RETRY_MS);
    hws_session_await_answer (self, now, sender);
    hws_tx_attach_said (&sender->tx);
    hws_session_file_ready (sender);
}

static hws_ms_t broker_awaited_until (const hws_session_t *self, const hws_session_sender_t *sender)
{
    const int64_t connect_ms = self->options.connect_ms;
    const hws_ms_t at = connect_ms < 0 ? HWS_NEVER : hws_time_after (sender->asked_at, connect_ms);
    return at < sender->wait_until ? sender->wait_until : at;
}

void hws_session_await_broker (hws_session_t *self, hws_session_sender_t *sender)
{
    hws_heap_set (&self->timers, &sender->attach.timer, broker_awaited_until (self, sender));
}

void hws_session_hold_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (is_held (self, sender) && hws_tx_is_new (&sender->tx)) {
        hws_tx_suspend (&sender->tx);
        sender->asked_at = now;
        hws_session_await_broker (self, sender);
    }
}

/*  Files the sender and asks for its seat.  */
static void begin (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    sender->session = self;
    sender->session_id = ++self->last_session_id;
    sender->epoch = 0;
    sender->is_heard_maybe = false;
    sender->asked_at = now;
    sender->again_at = now;
    sender->is_cancel_owed = sender->is_ended_here = sender->is_anchor_cancel_owed = false;
    sender->anchor_result = 0;
    sender->endpoint[0] = '\0';
    sender->interval_ms = 0;
    sender->want_said = 0;
    sender->held_bytes = 0;
    sender->link = sender->ready_link = sender->want_link = sender->held_link = sender->moved_link =
        (hws_link_t){.next = NULL};
    sender->node = (hws_map_node_t){.next = NULL};
    hws_request_init (&sender->attach, HWS_ABOUT_ATTACH, sender);
    hws_request_init (&sender->cancel, HWS_ABOUT_CANCEL, sender);
    hws_request_init (&sender->cancel_anchor, HWS_ABOUT_CANCEL_ANCHOR, sender);
    hws_request_init (&sender->want, HWS_ABOUT_WANT, sender);
    hws_put_u64 (sender->key, sender->session_id);
    hws_map_insert (&self->sessions, &sender->node, hws_bytes (sender->key, sizeof sender->key));
    hws_list_append (&self->senders, &sender->link);
    const char *const cancelled = hws_session_token_reason (self, now, sender->cancel_token);
    if (cancelled) {
        hws_session_refuse_sender (sender, HWS_ECANCELLED, cancelled);
    } else if (self->state == HWS_SESSION_UP) {
        hws_session_ask_attach (self, now, sender);
    } else {
        hws_session_await_broker (self, sender);
        hws_session_attach_behind_hello (self, now, sender);
    }
}

void hws_session_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_tx_init (&sender->tx, self->options.blocks);
    sender->tx.is_gathered = self->options.linger_ms != 0;
    if (sender->is_early) {
        hws_tx_set_early (&sender->tx, self->early_records, self->early_bytes);
        hws_tx_set_batch_bytes (&sender->tx, HWS_BATCH_BYTES_MIN);
    }
    sender->wait_until =
        sender->wait_ms < HWS_NEVER ? hws_time_after (now, (hws_ms_t) sender->wait_ms) : HWS_NEVER;
    begin (self, now, sender);
}

/*  docs/protocol.md, "Connections", rule 4.  */
void hws_session_attach_behind_hello (hws_session_t *self, hws_ms_t now,
                                      hws_session_sender_t *sender)
{
    if (self->state == HWS_SESSION_GREETING && !self->was_up && sender->is_early &&
        hws_tx_is_new (&sender->tx)) {
        hws_session_ask_attach (self, now, sender);
        hws_session_await_broker (self, sender);
    }
}

void hws_session_attach_again (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (now < sender->again_at) {
        hws_heap_set (&self->timers, &sender->attach.timer, sender->again_at);
        return;
    }
    sender->again_at = hws_time_after (now, HWS_AGAIN_MS);
    hws_session_ask_attach (self, now, sender);
}

void hws_session_attach_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    const bool is_up = self->state == HWS_SESSION_UP && !is_held (self, sender);
    if (is_up && hws_map_node_is_in (&sender->attach.node) && now >= give_up_at (self, sender)) {
        snprintf (self->error, sizeof self->error, "the broker does not answer ATTACH");
        hws_session_tell_end (sender, HWS_EUNREACHABLE, hws_error_word (HWS_ETRANSPORT),
                              self->error);
    } else if (is_up &&
               (hws_map_node_is_in (&sender->attach.node) || hws_tx_is_new (&sender->tx))) {
        hws_session_ask_attach (self, now, sender);
    } else if (is_up) {
        hws_session_attach_again (self, now, sender);
    } else if (hws_tx_is_new (&sender->tx) && now >= broker_awaited_until (self, sender)) {
        hws_session_tell_end (sender, HWS_EUNREACHABLE, hws_error_word (HWS_ETRANSPORT),
                              self->error);
    } else if (hws_tx_is_new (&sender->tx)) {
        hws_session_await_broker (self, sender);
    }
}

/*  ---- The answer ---- */

/*  Whether the program would rather wait: the broker did so only as long as it was asked to,
 *  or as it does. Who may have been heard does not fail for want of a place to wait.  */
static bool has_patience (const hws_session_sender_t *sender, hws_ms_t now, int code)
{
    const bool is_awaited = code == HWS_ENOT_FOUND || code == HWS_EREMOVED_DURING_BIND ||
                            code == HWS_EBUFFER_FULL ||
                            (sender->is_heard_maybe && hws_session_is_not_now (code));
    return is_awaited && now < sender->wait_until;
}

/*  The first ATTACH was refused: for good, or until it is asked again.  */
static void first_refused (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                           const hws_refusal_t *refusal)
{
    if (!has_patience (sender, now, refusal->code)) {
        hws_session_tell_end (sender, refusal->code, hws_error_word (refusal->code),
                              refusal->reason);
        return;
    }
    hws_tx_suspend (&sender->tx);
    hws_heap_set (&self->timers, &sender->attach.timer,
                  hws_time_min (hws_time_after (now, HWS_ATTACH_AGAIN_MS), sender->wait_until));
}

/*  A stream that an earlier epoch had seated was refused. `closed` says that its receiver did not
 *  come back.  */
static void resume_refused (hws_session_sender_t *sender, const hws_refusal_t *refusal)
{
    sender->epoch = sender->session->epoch;
    if (refusal->code == HWS_ECLOSED) {
        hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_ABANDONED),
                              refusal->reason);
    } else {
        hws_session_tell_end (sender, HWS_ETRANSPORT, hws_cause_word (HWS_CAUSE_UNKNOWN),
                              refusal->reason);
    }
}

static void attach_refused (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                            const hws_refusal_t *refusal)
{
    const bool is_resuming = hws_session_is_resuming (sender);
    if (refusal->code == HWS_ECLOSED && is_held (self, sender)) {
        hws_session_hold_attach (self, now, sender);
    } else if (hws_tx_is_new (&sender->tx)) {
        first_refused (self, now, sender, refusal);
    } else if (is_resuming &&
               (hws_session_is_not_now (refusal->code) || refusal->code == HWS_EMAX_SENDERS)) {
        hws_heap_set (&self->timers, &sender->attach.timer,
                      hws_time_after (now, HWS_ATTACH_AGAIN_MS));
    } else if (is_resuming && sender->tx.state != HWS_TX_CANCELLING) {
        resume_refused (sender, refusal);
    } else if (sender->tx.state == HWS_TX_CANCELLING) {
        hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED),
                              sender->cancel_reason);
    } else {
        hws_session_tell_end (sender, HWS_ETRANSPORT, hws_cause_word (HWS_CAUSE_UNKNOWN),
                              refusal->reason);
    }
}

/*  Whether the answer can be meant. No position of a new stream can be beyond what was sent
 *  early, and its window has to hold that.  */
static int check_answer (const hws_session_sender_t *sender, const hws_attach_ok_t *answer,
                         hws_control_fault_t fault)
{
    const hws_tx_t *const tx = &sender->tx;
    const bool is_new = hws_tx_is_new (tx);
    const bool is_beyond = answer->next_seq > tx->sent_seq || answer->acked_seq > tx->sent_seq ||
                           (tx->sent_seq == 0 && (answer->next_bytes || answer->acked_bytes));
    if (is_new && is_beyond) {
        snprintf (fault, sizeof (hws_control_fault_t), "next_seq of a new stream is not 0");
        return HWS_EPROTOCOL;
    }
    if (is_new && answer->next_seq + answer->initial_credit < tx->records) {
        snprintf (fault, sizeof (hws_control_fault_t), "the window is less than the early one");
        return HWS_EPROTOCOL;
    }
    /* A seat that took early data, whose answer got lost, may have no room left. */
    return hws_attach_ok_check (answer, is_new && answer->next_seq == 0, fault);
}

/*  Whether nobody is seated: the anchor has a front of its own.  */
static bool is_elsewhere (const hws_attach_ok_t *answer)
{
    return answer->endpoint[0] != '\0' &&
           strcmp (answer->streaming_transport_key, HWS_TRANSPORT_DEDICATED) == 0;
}

/*  A stream that has begun has its seat or its tombstone on every front: for it this is no
 *  answer but that of a broker which has forgotten it.  */
static void attach_elsewhere (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                              const hws_attach_ok_t *answer)
{
    if (hws_tx_is_new (&sender->tx)) {
        sender->has_handle = true;
        sender->handle = answer->handle;
        memcpy (sender->endpoint, answer->endpoint, sizeof sender->endpoint);
    }
    if (hws_tx_is_new (&sender->tx) && sender->is_early) {
        hws_tx_suspend (&sender->tx);
        if (!hws_link_is_in_list (&sender->moved_link)) {
            hws_list_append (&self->moved, &sender->moved_link);
        }
        return;
    }
    attach_refused (
        self, now, sender,
        &(hws_refusal_t){.code = HWS_EMOVED, .reason = "the anchor has a front of its own"});
}

/*  Whether the broker knew nothing of the stream, took it for a new one and made another seat: its
 *  tombstone was forgotten, or had no room.  */
static bool is_another (const hws_session_sender_t *sender, const hws_attach_ok_t *answer)
{
    return sender->tx.sender_id != 0 && answer->sender_id != sender->tx.sender_id;
}

/*  The answer has a seat that this client will not use.  */
static void give_back (hws_session_t *self, hws_session_sender_t *sender,
                       const hws_attach_ok_t *answer, int code, uint16_t cause, const char *reason)
{
    hws_session_disown (self, answer, reason);
    hws_session_tell_end (sender, code, hws_cause_word (cause), reason);
}

/*  The seat is the stream's. What an earlier epoch has allowed is void.  */
static void take_seat (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                       const hws_attach_ok_t *answer, bool is_resumed)
{
    sender->handle = answer->handle;
    sender->has_handle = true;
    sender->resume_token = answer->resume_token;
    sender->interval_ms = answer->heartbeat_interval_ms;
    hws_session_add_interval (self, sender->interval_ms);
    if (is_resumed) {
        hws_tx_forget_limits (&sender->tx);
    } else {
        hws_tx_set_batch_bytes (&sender->tx, self->batch_bytes);
    }
    hws_tx_attached (&sender->tx, answer);
    sender->want_said = 0;
    if (sender->tx.state == HWS_TX_ENDED) {
        hws_session_finish_sender (sender);
        return;
    }
    if (sender->tx.state == HWS_TX_CANCELLING) {
        hws_session_say_own_cancel (self, now, sender);
    }
    hws_session_cancel_anchor_owed (self, now, sender);
    hws_session_changed (sender);
    sender->notify (sender);
}

static void attach_accepted (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                             const hws_attach_ok_t *answer)
{
    const bool is_resumed = hws_session_is_resuming (sender);
    sender->epoch = self->epoch;
    hws_control_fault_t fault;
    if (answer->has_ended) {
        hws_session_tell_end (sender, hws_tx_result_of (answer->ending),
                              hws_session_known_cause (answer->code), answer->reason);
    } else if (is_elsewhere (answer)) {
        attach_elsewhere (self, now, sender, answer);
    } else if (is_another (sender, answer)) {
        static const hws_refusal_t forgotten = {.code = HWS_EENDED,
                                                .reason = "the broker has forgotten the stream"};
        hws_session_disown (self, answer, forgotten.reason);
        attach_refused (self, now, sender, &forgotten);
    } else if (is_resumed && !hws_tx_is_cut_for (&sender->tx, self->batch_bytes)) {
        give_back (self, sender, answer, HWS_ECANCELLED, HWS_CAUSE_INTERRUPTED,
                   "the broker takes only shorter messages than before");
    } else if (is_resumed && answer->record_bytes > 0 &&
               hws_tx_keeps_larger (&sender->tx, answer->record_bytes)) {
        give_back (self, sender, answer, HWS_ECANCELLED, HWS_CAUSE_INTERRUPTED,
                   "the anchor takes only shorter records than before");
    } else if (check_answer (sender, answer, fault)) {
        snprintf (self->error, sizeof self->error, "the broker's answer to ATTACH: %s", fault);
        give_back (self, sender, answer, HWS_EPROTOCOL, HWS_CAUSE_PROTOCOL, fault);
    } else {
        take_seat (self, now, sender, answer, is_resumed);
    }
}

void hws_session_attach_answered (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                  const hws_control_t *control)
{
    hws_session_settle (self, &sender->attach);
    if (control->form == HWS_FORM_OK) {
        attach_accepted (self, now, sender, &control->as.attach_ok);
    } else {
        attach_refused (self, now, sender, &control->as.refusal);
    }
}

/*  Whether it is this sender's seat: by what the sender knows of it, or because the sender, told
 *  to say everything again before the answer came, is about to ask for it once more.  */
static bool is_seat_of (const hws_session_sender_t *sender, uint64_t request,
                        const hws_attach_ok_t *answer)
{
    if (hws_tx_is_new (&sender->tx)) {
        return sender->attach.id == request;
    }
    return sender->tx.sender_id == answer->sender_id &&
           hws_handle_equal (sender->handle, answer->handle);
}

void hws_session_stray_seat (hws_session_t *self, uint64_t request, const hws_attach_ok_t *answer)
{
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        if (is_seat_of (hws_container_of (link, hws_session_sender_t, link), request, answer)) {
            return;
        }
    }
    if (!answer->has_ended) {
        hws_session_disown (self, answer, "the attach was given up");
    }
}

/*  ---- Elsewhere ---- */

void hws_session_move_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_session_take_out (sender);
    begin (self, now, sender);
    hws_session_changed (sender);
}
