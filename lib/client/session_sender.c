#include "client/session_part.h"

#include <stdio.h>
#include <string.h>

/*  Takes the sender out of everything that would still act for it, and tells.  */
static void finish (hws_session_sender_t *sender)
{
    hws_session_settle (sender->session, &sender->attach);
    hws_session_settle (sender->session, &sender->cancel);
    hws_session_settle (sender->session, &sender->want);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    hws_session_unhold (sender);
    sender->notify (sender);
}

static void end (hws_session_sender_t *sender, int result, const char *cause, const char *reason)
{
    if (sender->tx.state != HWS_TX_ENDED) {
        hws_tx_end (&sender->tx, result, cause, reason);
        finish (sender);
    }
}

/*  The broker's word for a cause, or that of one which this version does not know.  */
static const char *known_cause (const char *word)
{
    return hws_cause_word (hws_cause_from_word (word));
}

static hws_session_sender_t *find_sender (const hws_session_t *self, uint64_t session_id)
{
    uint8_t key[8];
    hws_put_u64 (key, session_id);
    hws_map_node_t *const node = hws_map_find (&self->sessions, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, hws_session_sender_t, node) : NULL;
}

/*  ---- Attaching ---- */

/*  When a first answer is not waited for any more, although there is a connection.  */
static hws_ms_t give_up_at (const hws_session_t *self, const hws_session_sender_t *sender)
{
    const int64_t connect_ms = self->options.connect_ms;
    if (sender->tx.state != HWS_TX_ATTACHING || connect_ms < 0) {
        return HWS_NEVER;
    }
    const bool is_patient = sender->wait_until > sender->asked_at;
    return hws_time_after (is_patient ? sender->wait_until : sender->asked_at, connect_ms);
}

static void ask_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
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
    if (sender->tx.state == HWS_TX_ATTACHING) {
        attach->wait_ms = (uint64_t) hws_time_min (hws_time_until (now, sender->wait_until),
                                                   HWS_ATTACH_WAIT_MAX_MS);
    }
    const hws_ms_t retry_ms = hws_time_after (HWS_REQUEST_RETRY_MS, (hws_ms_t) attach->wait_ms);
    hws_session_ask (self, now, &sender->attach, &control, retry_ms);
    hws_heap_set (&self->timers, &sender->attach.timer,
                  hws_time_min (hws_time_after (now, retry_ms), give_up_at (self, sender)));
}

/*  When a sender that waits for its first answer gives the broker up.  */
static void await_broker (hws_session_t *self, hws_session_sender_t *sender)
{
    const int64_t connect_ms = self->options.connect_ms;
    const hws_ms_t at = connect_ms < 0 ? HWS_NEVER : hws_time_after (sender->asked_at, connect_ms);
    hws_heap_set (&self->timers, &sender->attach.timer,
                  at < sender->wait_until ? sender->wait_until : at);
}

void hws_session_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_tx_init (&sender->tx, self->options.blocks);
    sender->session = self;
    sender->session_id = ++self->last_session_id;
    sender->asked_at = now;
    sender->wait_until =
        sender->wait_ms < HWS_NEVER ? hws_time_after (now, (hws_ms_t) sender->wait_ms) : HWS_NEVER;
    sender->again_at = now;
    sender->is_cancel_owed = sender->is_ended_here = sender->is_anchor_cancel_owed = false;
    sender->anchor_result = 0;
    sender->endpoint[0] = '\0';
    sender->interval_ms = 0;
    sender->want_said = 0;
    sender->held_bytes = 0;
    sender->tx.is_gathered = self->options.linger_ms != 0;
    sender->link = sender->ready_link = sender->want_link = sender->held_link =
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
        ask_attach (self, now, sender);
    } else {
        await_broker (self, sender);
    }
}

/*  The broker does not know the stream. One that says so after each attach does not get the
 *  next at full speed.  */
static void attach_again (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (now < sender->again_at) {
        hws_heap_set (&self->timers, &sender->attach.timer, sender->again_at);
        return;
    }
    sender->again_at = hws_time_after (now, HWS_AGAIN_MS);
    ask_attach (self, now, sender);
}

void hws_session_attach_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    const bool is_up = self->state == HWS_SESSION_UP;
    if (is_up && hws_map_node_is_in (&sender->attach.node) && now >= give_up_at (self, sender)) {
        snprintf (self->error, sizeof self->error, "the broker does not answer ATTACH");
        end (sender, HWS_EUNREACHABLE, hws_error_word (HWS_ETRANSPORT), self->error);
    } else if (is_up && (hws_map_node_is_in (&sender->attach.node) ||
                         sender->tx.state == HWS_TX_ATTACHING)) {
        ask_attach (self, now, sender);
    } else if (is_up) {
        attach_again (self, now, sender);
    } else if (sender->tx.state == HWS_TX_ATTACHING) {
        end (sender, HWS_EUNREACHABLE, hws_error_word (HWS_ETRANSPORT), self->error);
    }
}

static void say_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL};
    hws_cancel_t *const cancel = &control.as.cancel;
    cancel->handle = sender->handle;
    cancel->sender_id = sender->tx.sender_id;
    snprintf (cancel->reason, sizeof cancel->reason, "%s", sender->cancel_reason);
    snprintf (cancel->code, sizeof cancel->code, "%s", hws_cause_word (HWS_CAUSE_INTERRUPTED));
    hws_session_ask (self, now, &sender->cancel, &control, HWS_REQUEST_RETRY_MS);
}

/*  Cancels a seat that nobody here uses. Without a sender id there is none: the CANCEL would be
 *  of the whole anchor.  */
static void disown (hws_session_t *self, const hws_attach_ok_t *answer, const char *reason)
{
    if (answer->sender_id == 0) {
        return;
    }
    hws_control_t control = {.verb = HWS_VERB_CANCEL, .form = HWS_FORM_REQUEST};
    hws_cancel_t *const cancel = &control.as.cancel;
    cancel->handle = answer->handle;
    cancel->sender_id = answer->sender_id;
    snprintf (cancel->reason, sizeof cancel->reason, "%s", reason);
    snprintf (cancel->code, sizeof cancel->code, "%s", hws_cause_word (HWS_CAUSE_INTERRUPTED));
    hws_session_say (self, &control);
}

/*  Whether the program would rather wait: the broker did so only as long as it was asked to,
 *  or as it does.  */
static bool has_patience (const hws_session_sender_t *sender, hws_ms_t now, int code)
{
    return (code == HWS_ENOT_FOUND || code == HWS_EREMOVED_DURING_BIND ||
            code == HWS_EBUFFER_FULL) &&
           now < sender->wait_until;
}

static void attach_refused (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                            const hws_refusal_t *refusal)
{
    switch (sender->tx.state) {
    case HWS_TX_ATTACHING:
        if (has_patience (sender, now, refusal->code)) {
            hws_heap_set (
                &self->timers, &sender->attach.timer,
                hws_time_min (hws_time_after (now, HWS_ATTACH_AGAIN_MS), sender->wait_until));
            break;
        }
        end (sender, refusal->code, hws_error_word (refusal->code), refusal->reason);
        break;
    case HWS_TX_CANCELLING:
        end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), sender->cancel_reason);
        break;
    case HWS_TX_OPEN:
    case HWS_TX_ENDING:
        end (sender, HWS_ETRANSPORT, hws_cause_word (HWS_CAUSE_UNKNOWN), refusal->reason);
        break;
    case HWS_TX_ENDED:
        break;
    }
}

/*  Whether the answer can be meant. A new stream has sent nothing: no position of it can be
 *  beyond the beginning.  */
static int check_answer (const hws_session_sender_t *sender, const hws_attach_ok_t *answer,
                         hws_control_fault_t fault)
{
    const bool is_new = sender->tx.state == HWS_TX_ATTACHING;
    const bool has_position =
        answer->next_seq || answer->next_bytes || answer->acked_seq || answer->acked_bytes;
    if (is_new && has_position) {
        snprintf (fault, sizeof (hws_control_fault_t), "next_seq of a new stream is not 0");
        return HWS_EPROTOCOL;
    }
    return hws_attach_ok_check (answer, is_new, fault);
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
    if (sender->tx.state == HWS_TX_ATTACHING) {
        sender->has_handle = true;
        sender->handle = answer->handle;
        memcpy (sender->endpoint, answer->endpoint, sizeof sender->endpoint);
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

void hws_session_attach_answered (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                  const hws_control_t *control)
{
    hws_session_settle (self, &sender->attach);
    if (control->form != HWS_FORM_OK) {
        attach_refused (self, now, sender, &control->as.refusal);
        return;
    }
    const hws_attach_ok_t *const answer = &control->as.attach_ok;
    if (answer->has_ended) {
        end (sender, hws_tx_result_of (answer->ending), known_cause (answer->code), answer->reason);
        return;
    }
    if (is_elsewhere (answer)) {
        attach_elsewhere (self, now, sender, answer);
        return;
    }
    if (is_another (sender, answer)) {
        static const hws_refusal_t forgotten = {.code = HWS_EENDED,
                                                .reason = "the broker has forgotten the stream"};
        disown (self, answer, forgotten.reason);
        attach_refused (self, now, sender, &forgotten);
        return;
    }
    hws_control_fault_t fault;
    if (check_answer (sender, answer, fault)) {
        snprintf (self->error, sizeof self->error, "the broker's answer to ATTACH: %s", fault);
        disown (self, answer, fault);
        end (sender, HWS_EPROTOCOL, hws_cause_word (HWS_CAUSE_PROTOCOL), fault);
        return;
    }
    sender->handle = answer->handle;
    sender->has_handle = true;
    sender->interval_ms = answer->heartbeat_interval_ms;
    hws_session_add_interval (self, sender->interval_ms);
    hws_tx_set_batch_bytes (&sender->tx, self->batch_bytes);
    hws_tx_attached (&sender->tx, answer);
    sender->want_said = 0;
    if (sender->tx.state == HWS_TX_ENDED) {
        finish (sender);
        return;
    }
    if (sender->tx.state == HWS_TX_CANCELLING) {
        say_cancel (self, now, sender);
    }
    hws_session_changed (sender);
    sender->notify (sender);
}

void hws_session_stray_seat (hws_session_t *self, const hws_attach_ok_t *answer)
{
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        const hws_session_sender_t *const sender =
            hws_container_of (link, hws_session_sender_t, link);
        if (sender->tx.sender_id == answer->sender_id &&
            hws_handle_equal (sender->handle, answer->handle)) {
            return;
        }
    }
    if (!answer->has_ended) {
        disown (self, answer, "the attach was given up");
    }
}

/*  ---- While it lives ---- */

bool hws_session_file_ready (hws_session_sender_t *sender)
{
    const bool is_new = !hws_link_is_in_list (&sender->ready_link) && hws_tx_has_runs (&sender->tx);
    if (is_new) {
        hws_list_append (&sender->session->ready, &sender->ready_link);
    }
    return is_new;
}

bool hws_session_changed (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    hws_tx_t *const tx = &sender->tx;
    bool has_news = tx->is_gathered && hws_session_hold (sender);
    has_news |= hws_session_file_ready (sender);
    if (tx->want_bytes == 0) {
        sender->want_said = 0;
    }
    if (tx->is_ready && (tx->owes_window || tx->want_bytes != sender->want_said) &&
        !hws_link_is_in_list (&sender->want_link)) {
        hws_list_append (&self->wants, &sender->want_link);
        has_news = true;
    }
    return has_news;
}

void hws_session_granted (hws_session_t *self, const hws_grant_t *grant)
{
    hws_session_sender_t *const sender = find_sender (self, grant->stream);
    if (!sender || sender->tx.state == HWS_TX_ENDED) {
        return;
    }
    hws_tx_grant (&sender->tx, grant);
    if (sender->tx.state == HWS_TX_ENDED) {
        finish (sender);
        return;
    }
    hws_session_changed (sender);
    sender->notify (sender);
}

void hws_session_want_due (hws_session_sender_t *sender)
{
    sender->want_said = 0;
    hws_session_changed (sender);
}

/*  Ends a stream that the application cancelled, without the broker's word.  */
static void end_here (hws_session_sender_t *sender)
{
    sender->is_cancel_owed = sender->is_ended_here = true;
    end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), sender->cancel_reason);
}

void hws_session_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                         const char *reason)
{
    const hws_tx_state_t state = sender->tx.state;
    if (state == HWS_TX_CANCELLING || !hws_tx_cancel (&sender->tx)) {
        return;
    }
    snprintf (sender->cancel_reason, sizeof sender->cancel_reason, "%s", reason ? reason : "");
    if (state == HWS_TX_ATTACHING) {
        end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), sender->cancel_reason);
    } else if (hws_session_is_away (self)) {
        end_here (sender);
    } else if (self->state == HWS_SESSION_UP) {
        say_cancel (self, now, sender);
    }
    sender->notify (sender);
}

void hws_session_cancel_answered (hws_session_sender_t *sender, const hws_control_t *control)
{
    hws_session_settle (sender->session, &sender->cancel);
    sender->is_cancel_owed = false;
    const bool is_unsure = control->form == HWS_FORM_ERR && control->as.refusal.code == HWS_EENDED;
    if (is_unsure) {
        return; /* its ending is under way: STREAM_CANCEL, or the grant of a clean end */
    }
    end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), sender->cancel_reason);
}

void hws_session_cancel_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (self->state == HWS_SESSION_UP) {
        say_cancel (self, now, sender);
    }
}

/*  ---- The broker's word ---- */

void hws_session_stream_cancelled (hws_session_t *self, hws_ms_t now,
                                   const hws_stream_cancel_t *message)
{
    hws_session_sender_t *const sender = find_sender (self, message->session_id);
    if (!sender) {
        return;
    }
    if (message->ending[0] != '\0') {
        end (sender, hws_tx_result_of (message->ending), known_cause (message->code),
             message->reason);
        return;
    }
    /* unknown_stream is no ending: ask what became of it, if that is not asked yet. */
    if (sender->tx.state != HWS_TX_ENDED && self->state == HWS_SESSION_UP &&
        !hws_map_node_is_in (&sender->attach.node)) {
        hws_tx_suspend (&sender->tx);
        attach_again (self, now, sender);
    }
}

void hws_session_remove_sender (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    if (sender->tx.state != HWS_TX_ENDED && sender->tx.sender_id != 0 &&
        self->state == HWS_SESSION_UP) {
        disown (self,
                &(hws_attach_ok_t){.handle = sender->handle, .sender_id = sender->tx.sender_id},
                sender->cancel_reason[0] ? sender->cancel_reason : "the sender was destroyed");
    }
    hws_session_settle (self, &sender->attach);
    hws_session_settle (self, &sender->cancel);
    hws_session_settle (self, &sender->cancel_anchor);
    hws_session_settle (self, &sender->want);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    hws_session_unhold (sender);
    hws_list_remove (&sender->link);
    hws_map_remove (&self->sessions, &sender->node);
    hws_tx_fini (&sender->tx);
}

/*  ---- Connections come and go ---- */

void hws_session_suspend_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_tx_suspend (&sender->tx);
    hws_session_settle (self, &sender->attach);
    hws_session_settle (self, &sender->cancel);
    hws_session_settle (self, &sender->cancel_anchor);
    hws_session_settle (self, &sender->want);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    if (sender->tx.state == HWS_TX_ATTACHING) {
        sender->asked_at = now < sender->asked_at ? sender->asked_at : now;
        await_broker (self, sender);
    }
}

void hws_session_resume_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (sender->tx.state == HWS_TX_ATTACHING) {
        sender->asked_at = now;
    }
    if (sender->tx.state != HWS_TX_ENDED) {
        ask_attach (self, now, sender);
    } else if (sender->is_cancel_owed) {
        say_cancel (self, now, sender);
    }
    if (sender->is_anchor_cancel_owed) {
        hws_session_cancel_anchor_due (self, now, sender);
    }
}

void hws_session_forsake_sender (hws_session_sender_t *sender)
{
    hws_session_tell_anchor_result (sender, HWS_EUNREACHABLE);
    if (sender->tx.state == HWS_TX_CANCELLING) {
        end_here (sender);
    }
}

void hws_session_end_sender (hws_session_sender_t *sender, uint16_t cause, const char *reason)
{
    sender->is_cancel_owed = sender->is_anchor_cancel_owed = false; /* whom it was owed is gone */
    hws_session_tell_anchor_result (sender, HWS_ETRANSPORT);
    if (sender->tx.state == HWS_TX_CANCELLING) {
        end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), sender->cancel_reason);
    } else if (sender->tx.state != HWS_TX_ATTACHING) {
        end (sender, HWS_ETRANSPORT, hws_cause_word (cause), reason);
    }
}

void hws_session_refuse_sender (hws_session_sender_t *sender, int code, const char *reason)
{
    if (sender->tx.state == HWS_TX_ATTACHING) {
        hws_session_set_error (sender->session, code, reason);
        end (sender, code, hws_error_word (code), reason);
    }
}
