/*  Streams that have ended otherwise than clean, by the broker's word or by this client's. A broker
 *  of another epoch knows nothing of that, and the receiver may not have heard of it: it would take
 *  the stream for one that lives, and end it in another way. So each is remembered for
 *  HWS_ORPHAN_MS, also when its program has forgotten it, and a new epoch is told by an ATTACH with
 *  `resume` and the ending. Without a connection that time stands still.
 *
 *  Their number is bounded: the oldest is forgotten first, as one is that there is no memory for.
 */
#include "client/session_part.h"

#include "base/text.h"

#include <stdlib.h>

typedef struct {
    hws_link_t link;       /* in `ended`, the last one last */
    hws_request_t request; /* ATTACH; its timer is also for dating and forgetting */
    hws_ms_t until;        /* it is remembered; 0: not dated yet */
    bool is_owed;          /* the broker of this epoch is to be told, or has not answered */
    bool is_cancel_owed;   /* it ended without a connection: the epoch of before is to be told */
    uint64_t session_id;
    hws_handle_t handle;
    uint64_t sender_id;
    hws_id_t resume_token;
    uint64_t acked_seq, acked_bytes, next_seq;
    uint8_t ending; /* hws_run_type_t */
    uint16_t cause; /* hws_cause_t */
} ended_t;

static ended_t *ended_of (hws_link_t *link)
{
    return link ? hws_container_of (link, ended_t, link) : NULL;
}

static void forget (hws_session_t *self, ended_t *item)
{
    hws_session_settle (self, &item->request);
    hws_list_remove (&item->link);
    free (item);
}

/*  It is dated when the session is told the time next.  */
void hws_session_remember_ended (hws_session_t *self, const hws_session_sender_t *sender)
{
    const hws_tx_t *const tx = &sender->tx;
    if (tx->sender_id == 0 || tx->result == 0) {
        return;
    }
    if (self->ended.count == HWS_ENDED_MAX) {
        forget (self, ended_of (self->ended.head));
    }
    ended_t *const item = calloc (1, sizeof *item);
    if (!item) {
        return;
    }
    hws_request_init (&item->request, HWS_ABOUT_ENDED, item);
    item->is_owed = hws_session_is_resuming (sender);
    item->is_cancel_owed = !item->is_owed &&
                           (self->state != HWS_SESSION_UP || self->is_word_lost) &&
                           hws_cause_from_word (tx->cause) == HWS_CAUSE_INTERRUPTED;
    item->session_id = sender->session_id;
    item->handle = sender->handle;
    item->sender_id = tx->sender_id;
    item->resume_token = sender->resume_token;
    item->acked_seq = tx->acked_seq;
    item->acked_bytes = tx->acked_bytes;
    item->next_seq = tx->sent_seq;
    item->ending = tx->result == HWS_ECANCELLED ? HWS_RUN_CANCELLED : HWS_RUN_DROPPED;
    item->cause = hws_cause_from_word (tx->cause);
    hws_list_append (&self->ended, &item->link);
    hws_heap_set (&self->timers, &item->request.timer, 0);
}

/*  ---- Telling ---- */

static void arm (hws_session_t *self, ended_t *item, hws_ms_t at)
{
    hws_heap_set (&self->timers, &item->request.timer, hws_time_min (at, item->until));
}

static void ask (hws_session_t *self, hws_ms_t now, ended_t *item)
{
    hws_control_t control = {.verb = HWS_VERB_ATTACH};
    hws_attach_t *const attach = &control.as.attach;
    attach->has_handle = true;
    attach->handle = item->handle;
    attach->session_id = item->session_id;
    attach->has_resume = true;
    attach->resume.sender_id = item->sender_id;
    attach->resume.resume_token = item->resume_token;
    attach->resume.acked_seq = item->acked_seq;
    attach->resume.acked_bytes = item->acked_bytes;
    attach->resume.next_seq = item->next_seq;
    hws_text_copy (attach->resume.ending, sizeof attach->resume.ending,
                   hws_ending_word (item->ending));
    hws_text_copy (attach->resume.code, sizeof attach->resume.code, hws_cause_word (item->cause));
    hws_session_ask (self, now, &item->request, &control, HWS_REQUEST_RETRY_MS);
    arm (self, item, hws_time_after (now, HWS_REQUEST_RETRY_MS));
}

/*  The broker knows the stream as this client's.  */
static void disown (hws_session_t *self, const ended_t *item)
{
    hws_session_disown (self,
                        &(hws_attach_ok_t){.handle = item->handle, .sender_id = item->sender_id},
                        "the stream has ended");
}

void hws_session_ended_answered (hws_session_t *self, hws_ms_t now, hws_request_t *request,
                                 const hws_control_t *control)
{
    ended_t *const item = request->owner;
    const bool is_refused = control->form == HWS_FORM_ERR;
    hws_session_settle (self, request);
    if (is_refused && hws_session_is_not_now (control->as.refusal.code)) {
        arm (self, item, hws_time_after (now, HWS_ATTACH_AGAIN_MS));
        return;
    }
    item->is_owed = false;
    if (!is_refused && !control->as.attach_ok.has_ended) {
        disown (self, item);
    }
    arm (self, item, item->until);
}

void hws_session_ended_due (hws_session_t *self, hws_ms_t now, hws_request_t *request)
{
    ended_t *const item = request->owner;
    if (self->state != HWS_SESSION_UP) {
        return; /* until there is a connection */
    }
    if (item->until == 0) {
        item->until = hws_time_after (now, HWS_ORPHAN_MS);
    }
    if (now >= item->until) {
        forget (self, item);
    } else if (item->is_owed) {
        ask (self, now, item);
    } else {
        arm (self, item, item->until);
    }
}

void hws_session_tell_ended (hws_session_t *self, hws_ms_t now, bool is_new_epoch)
{
    for (ended_t *item = ended_of (self->ended.head); item; item = ended_of (item->link.next)) {
        if (is_new_epoch) {
            item->is_owed = true;
        } else if (item->is_cancel_owed) {
            disown (self, item);
        }
        item->is_cancel_owed = false;
        item->until = hws_time_after (now, HWS_ORPHAN_MS);
        if (item->is_owed) {
            ask (self, now, item);
        } else {
            arm (self, item, item->until);
        }
    }
}

void hws_session_forget_ended (hws_session_t *self)
{
    while (self->ended.head) {
        forget (self, ended_of (self->ended.head));
    }
}
