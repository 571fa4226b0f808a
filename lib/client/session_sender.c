#include "client/session_part.h"

#include <stdio.h>
#include <string.h>

void hws_session_finish_sender (hws_session_sender_t *sender)
{
    hws_session_settle (sender->session, &sender->attach);
    hws_session_settle (sender->session, &sender->cancel);
    hws_session_settle (sender->session, &sender->want);
    hws_session_cancel_anchor_soon (sender);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    hws_list_remove (&sender->moved_link);
    hws_session_unhold (sender);
    hws_session_remember_ended (sender->session, sender);
    sender->notify (sender);
}

void hws_session_tell_end (hws_session_sender_t *sender, int result, const char *cause,
                           const char *reason)
{
    if (sender->tx.state != HWS_TX_ENDED) {
        hws_tx_end (&sender->tx, result, cause, reason);
        hws_session_finish_sender (sender);
    }
}

const char *hws_session_known_cause (const char *word)
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

/*  ---- Its cancel ---- */

void hws_session_say_own_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL};
    hws_cancel_t *const cancel = &control.as.cancel;
    cancel->handle = sender->handle;
    cancel->sender_id = sender->tx.sender_id;
    snprintf (cancel->reason, sizeof cancel->reason, "%s", sender->cancel_reason);
    snprintf (cancel->code, sizeof cancel->code, "%s", hws_cause_word (HWS_CAUSE_INTERRUPTED));
    hws_session_ask (self, now, &sender->cancel, &control, HWS_REQUEST_RETRY_MS);
}

void hws_session_disown (hws_session_t *self, const hws_attach_ok_t *answer, const char *reason)
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
    hws_session_say_once (self, &control);
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
        hws_session_finish_sender (sender);
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
    hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED),
                          sender->cancel_reason);
}

void hws_session_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                         const char *reason)
{
    const hws_tx_state_t state = sender->tx.state;
    const bool is_new = hws_tx_is_new (&sender->tx);
    if (state == HWS_TX_CANCELLING || !hws_tx_cancel (&sender->tx)) {
        return;
    }
    snprintf (sender->cancel_reason, sizeof sender->cancel_reason, "%s", reason ? reason : "");
    if (is_new) {
        hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED),
                              sender->cancel_reason);
    } else if (hws_session_is_away (self)) {
        end_here (sender);
    } else if (self->state == HWS_SESSION_UP && hws_session_is_resuming (sender)) {
        hws_session_ask_attach (self, now, sender);
    } else if (self->state == HWS_SESSION_UP) {
        hws_session_say_own_cancel (self, now, sender);
    }
    sender->notify (sender);
}

void hws_session_cancel_answered (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                  const hws_control_t *control)
{
    hws_session_settle (self, &sender->cancel);
    if (control->form == HWS_FORM_ERR && control->as.refusal.code == HWS_EBUSY) {
        hws_heap_set (&self->timers, &sender->cancel.timer,
                      hws_time_after (now, HWS_ATTACH_AGAIN_MS));
        return;
    }
    sender->is_cancel_owed = false;
    const bool is_unsure = control->form == HWS_FORM_ERR && control->as.refusal.code == HWS_EENDED;
    if (is_unsure) { /* its ending is under way: STREAM_CANCEL, or the grant of a clean end */
        sender->tx.is_cancel_late = sender->tx.has_ending;
        hws_session_changed (sender);
        return;
    }
    hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED),
                          sender->cancel_reason);
}

void hws_session_cancel_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (self->state == HWS_SESSION_UP) {
        hws_session_say_own_cancel (self, now, sender);
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
        hws_session_tell_end (sender, hws_tx_result_of (message->ending),
                              hws_session_known_cause (message->code), message->reason);
        return;
    }
    /* unknown_stream is no ending: ask what became of it, if that is not asked yet. */
    if (sender->tx.state != HWS_TX_ENDED && self->state == HWS_SESSION_UP &&
        !hws_tx_is_new (&sender->tx) && !hws_map_node_is_in (&sender->attach.node)) {
        hws_tx_suspend (&sender->tx);
        hws_session_attach_again (self, now, sender);
    }
}

void hws_session_take_out (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    hws_session_settle (self, &sender->attach);
    hws_session_settle (self, &sender->cancel);
    hws_session_settle (self, &sender->cancel_anchor);
    hws_session_settle (self, &sender->want);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    hws_list_remove (&sender->moved_link);
    hws_session_unhold (sender);
    hws_list_remove (&sender->link);
    hws_map_remove (&self->sessions, &sender->node);
}

void hws_session_remove_sender (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    hws_tx_t *const tx = &sender->tx;
    const char *const reason =
        sender->cancel_reason[0] ? sender->cancel_reason : "the sender was destroyed";
    if (tx->state != HWS_TX_ENDED && tx->sender_id != 0) {
        if (self->state == HWS_SESSION_UP && !hws_session_is_resuming (sender)) {
            hws_session_disown (
                self, &(hws_attach_ok_t){.handle = sender->handle, .sender_id = tx->sender_id},
                reason);
        }
        hws_tx_end (tx, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED), reason);
        hws_session_remember_ended (self, sender);
    }
    hws_session_take_out (sender);
    hws_tx_fini (&sender->tx);
}

/*  ---- Connections come and go ---- */

void hws_session_suspend_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    const bool is_new = hws_tx_is_new (&sender->tx);
    if (is_new && !self->was_up && hws_map_node_is_in (&sender->attach.node)) {
        sender->is_heard_maybe = true; /* whose broker has told no epoch */
    }
    hws_tx_suspend (&sender->tx);
    hws_session_settle (self, &sender->attach);
    hws_session_settle (self, &sender->cancel);
    hws_session_settle (self, &sender->cancel_anchor);
    hws_session_settle (self, &sender->want);
    hws_list_remove (&sender->ready_link);
    hws_list_remove (&sender->want_link);
    if (is_new) {
        sender->asked_at = now < sender->asked_at ? sender->asked_at : now;
        hws_session_await_broker (self, sender);
    }
}

void hws_session_resume_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                bool is_new_epoch)
{
    const bool is_new = hws_tx_is_new (&sender->tx);
    if (is_new) {
        sender->asked_at = now;
    }
    sender->is_heard_maybe |= is_new && is_new_epoch;
    if (is_new && sender->is_heard_maybe) { /* its receiver comes back, too */
        const hws_ms_t until = hws_time_after (now, HWS_RECEIVER_BACK_MS);
        sender->wait_until = sender->wait_until < until ? until : sender->wait_until;
    }
    if (is_new && sender->is_early) {
        hws_tx_set_early (&sender->tx, self->early_records, self->early_bytes);
    }
    if (hws_map_node_is_in (&sender->attach.node)) {
        hws_session_await_answer (self, now, sender); /* it was said behind HELLO */
    } else if (sender->tx.state != HWS_TX_ENDED) {
        hws_session_ask_attach (self, now, sender);
    } else if (hws_session_is_resuming (sender)) {
        sender->is_cancel_owed = false; /* this epoch is told by what is remembered */
    } else if (sender->is_cancel_owed) {
        hws_session_say_own_cancel (self, now, sender);
    }
    hws_session_cancel_anchor_owed (self, now, sender);
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
        hws_session_tell_end (sender, HWS_ECANCELLED, hws_cause_word (HWS_CAUSE_INTERRUPTED),
                              sender->cancel_reason);
    } else if (!hws_tx_is_new (&sender->tx)) {
        hws_session_tell_end (sender, HWS_ETRANSPORT, hws_cause_word (cause), reason);
    }
}

void hws_session_refuse_sender (hws_session_sender_t *sender, int code, const char *reason)
{
    if (hws_tx_is_new (&sender->tx)) {
        hws_session_set_error (sender->session, code, reason);
        hws_session_tell_end (sender, code, hws_error_word (code), reason);
    }
}
