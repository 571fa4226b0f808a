#include "client/session_part.h"

#include "base/text.h"

static void say (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL};
    control.as.cancel.handle = sender->handle;
    hws_text_copy (control.as.cancel.reason, sizeof control.as.cancel.reason,
                   sender->anchor_reason);
    hws_session_ask (self, now, &sender->cancel_anchor, &control, HWS_REQUEST_RETRY_MS);
}

void hws_session_tell_anchor_result (hws_session_sender_t *sender, int result)
{
    if (sender->anchor_result == HWS_EWOULD_BLOCK) {
        sender->anchor_result = result;
        sender->notify (sender);
    }
}

void hws_session_cancel_anchor (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                const char *reason)
{
    if (!sender->has_handle) {
        return;
    }
    const bool is_asked = sender->is_anchor_cancel_owed;
    sender->is_anchor_cancel_owed = true;
    sender->anchor_result = HWS_EWOULD_BLOCK;
    if (!is_asked) {
        hws_text_copy (sender->anchor_reason, sizeof sender->anchor_reason, reason);
    }
    if (hws_session_is_away (self)) {
        hws_session_tell_anchor_result (sender, HWS_EUNREACHABLE);
    } else if (self->state == HWS_SESSION_UP && !is_asked) {
        hws_session_cancel_anchor_owed (self, now, sender);
    }
}

void hws_session_cancel_anchor_owed (hws_session_t *self, hws_ms_t now,
                                     hws_session_sender_t *sender)
{
    const bool is_too_early = hws_session_is_resuming (sender) && sender->tx.state != HWS_TX_ENDED;
    if (sender->is_anchor_cancel_owed && !is_too_early &&
        !hws_map_node_is_in (&sender->cancel_anchor.node)) {
        say (self, now, sender);
    }
}

void hws_session_cancel_anchor_soon (hws_session_sender_t *sender)
{
    if (sender->is_anchor_cancel_owed && !hws_map_node_is_in (&sender->cancel_anchor.node)) {
        hws_heap_set (&sender->session->timers, &sender->cancel_anchor.timer, 0);
    }
}

void hws_session_cancel_anchor_answered (hws_session_t *self, hws_ms_t now,
                                         hws_session_sender_t *sender, const hws_control_t *control)
{
    hws_session_settle (self, &sender->cancel_anchor);
    if (control->form == HWS_FORM_ERR && control->as.refusal.code == HWS_EBUSY) {
        hws_heap_set (&self->timers, &sender->cancel_anchor.timer,
                      hws_time_after (now, HWS_ATTACH_AGAIN_MS));
        return;
    }
    sender->is_anchor_cancel_owed = false;
    hws_session_tell_anchor_result (sender,
                                    control->form == HWS_FORM_OK ? 0 : control->as.refusal.code);
}

void hws_session_cancel_anchor_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender)
{
    if (self->state == HWS_SESSION_UP) {
        say (self, now, sender);
    }
}
