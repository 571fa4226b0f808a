#include "client/session_part.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

/*  A token that this client has cancelled. It is asked until the broker answers, again when
 *  the broker is another, and remembered for a time: what comes with it is over at once.  */
typedef struct {
    hws_link_t link;       /* in `tokens`, the last cancelled last */
    hws_request_t request; /* CANCEL_TOKEN; once it is answered the time of forgetting */
    uint64_t token;
    hws_reason_t reason;
    hws_ms_t cancelled_at; /* the last time */
    hws_ms_t asked_at;     /* likewise; or when the connection was lost since */
    bool is_answered;      /* by the present broker */
    int result;            /* HWS_EWOULD_BLOCK until the program may know more */
} token_t;

static token_t *token_of (hws_link_t *link)
{
    return link ? hws_container_of (link, token_t, link) : NULL;
}

static token_t *find (const hws_session_t *self, uint64_t token)
{
    token_t *item = token_of (self->tokens.head);
    while (item && item->token != token) {
        item = token_of (item->link.next);
    }
    return item;
}

static void forget (hws_session_t *self, token_t *item)
{
    hws_session_settle (self, &item->request);
    hws_list_remove (&item->link);
    free (item);
}

static hws_ms_t remembered_until (const token_t *item)
{
    return hws_time_after (item->cancelled_at, HWS_TOKEN_TTL_MS);
}

/*  What became of the cancel, for whoever waits for that.  */
static void tell (hws_session_t *self, token_t *item, int result)
{
    item->result = result;
    if (self->options.notify) {
        self->options.notify (self);
    }
}

/*  ---- Asking ---- */

/*  When the program does not wait for the answer any more; it is asked for all the same.  */
static hws_ms_t give_up_at (const hws_session_t *self, const token_t *item)
{
    return item->result != HWS_EWOULD_BLOCK || self->options.connect_ms < 0
               ? HWS_NEVER
               : hws_time_after (item->asked_at, self->options.connect_ms);
}

static void ask (hws_session_t *self, hws_ms_t now, token_t *item)
{
    hws_control_t control = {.verb = HWS_VERB_CANCEL_TOKEN};
    control.as.token.token = item->token;
    snprintf (control.as.token.reason, sizeof control.as.token.reason, "%s", item->reason);
    hws_session_ask (self, now, &item->request, &control, HWS_REQUEST_RETRY_MS);
    hws_heap_set (
        &self->timers, &item->request.timer,
        hws_time_min (hws_time_after (now, HWS_REQUEST_RETRY_MS), give_up_at (self, item)));
}

static void await_broker (hws_session_t *self, token_t *item)
{
    hws_heap_set (&self->timers, &item->request.timer, give_up_at (self, item));
}

void hws_session_token_answered (hws_session_t *self, hws_request_t *request,
                                 const hws_control_t *control)
{
    token_t *const item = request->owner;
    hws_session_settle (self, request);
    hws_heap_set (&self->timers, &request->timer, remembered_until (item));
    item->is_answered = true;
    tell (self, item, control->form == HWS_FORM_OK ? 0 : control->as.refusal.code);
}

void hws_session_token_due (hws_session_t *self, hws_ms_t now, hws_request_t *request)
{
    token_t *const item = request->owner;
    if (item->is_answered) {
        forget (self, item);
        return;
    }
    const bool is_up = self->state == HWS_SESSION_UP;
    if (now >= give_up_at (self, item)) {
        if (is_up) {
            snprintf (self->error, sizeof self->error, "the broker does not answer CANCEL_TOKEN");
        }
        tell (self, item, HWS_EUNREACHABLE);
    }
    if (is_up) {
        ask (self, now, item);
    }
}

/*  ---- Connections come and go ---- */

void hws_session_suspend_tokens (hws_session_t *self, hws_ms_t now, bool was_up)
{
    for (token_t *item = token_of (self->tokens.head); item; item = token_of (item->link.next)) {
        if (!item->is_answered) {
            hws_session_settle (self, &item->request);
            item->asked_at = was_up ? now : item->asked_at;
            await_broker (self, item);
        }
    }
}

void hws_session_resume_tokens (hws_session_t *self, hws_ms_t now, bool is_same)
{
    for (token_t *item = token_of (self->tokens.head); item; item = token_of (item->link.next)) {
        if (!is_same || !item->is_answered) {
            item->is_answered = false;
            item->asked_at = now;
            ask (self, now, item);
        }
    }
}

void hws_session_refuse_tokens (hws_session_t *self, int code)
{
    for (token_t *item = token_of (self->tokens.head); item; item = token_of (item->link.next)) {
        if (item->result == HWS_EWOULD_BLOCK) {
            tell (self, item, code);
        }
    }
}

void hws_session_forget_tokens (hws_session_t *self)
{
    token_t *item;
    while ((item = token_of (self->tokens.head)) != NULL) {
        forget (self, item);
    }
}

/*  ---- The program ---- */

/*  Room for one more: the oldest that the broker knows of may go.  */
static bool make_room (hws_session_t *self)
{
    if (self->tokens.count < HWS_TOKENS_MAX) {
        return true;
    }
    token_t *item = token_of (self->tokens.head);
    while (item && !item->is_answered) {
        item = token_of (item->link.next);
    }
    if (item) {
        forget (self, item);
    }
    return item != NULL;
}

static int remember (hws_session_t *self, uint64_t token, const char *reason, token_t **result)
{
    token_t *item = find (self, token);
    if (item) {
        hws_list_remove (&item->link);
    } else {
        if (!make_room (self)) {
            return HWS_ELIMIT;
        }
        item = calloc (1, sizeof *item);
        if (!item) {
            return HWS_ENO_MEMORY;
        }
        item->token = token;
        hws_text_copy (item->reason, sizeof item->reason, reason);
        hws_request_init (&item->request, HWS_ABOUT_TOKEN, item);
    }
    hws_list_append (&self->tokens, &item->link);
    *result = item;
    return 0;
}

int hws_session_cancel_token (hws_session_t *self, hws_ms_t now, uint64_t token, const char *reason)
{
    if (token == 0) {
        return 0;
    }
    hws_session_cancel_waiting (self, token, reason);
    token_t *item;
    const int rc = remember (self, token, reason, &item);
    if (rc) {
        return rc;
    }
    item->cancelled_at = item->asked_at = now;
    item->is_answered = false;
    item->result = HWS_EWOULD_BLOCK;
    if (self->state == HWS_SESSION_UP) {
        ask (self, now, item);
    } else {
        await_broker (self, item);
    }
    return 0;
}

int hws_session_token_result (const hws_session_t *self, uint64_t token)
{
    const token_t *const item = find (self, token);
    return item ? item->result : 0;
}

/*  What whoever attaches or opens is told: the words of the broker, when there is no reason.  */
static const char *sentence_of (const char *reason)
{
    return reason && reason[0] ? reason : "its token was cancelled";
}

const char *hws_session_token_reason (const hws_session_t *self, hws_ms_t now, uint64_t token)
{
    const token_t *const item = token == 0 ? NULL : find (self, token);
    return item && now < remembered_until (item) ? sentence_of (item->reason) : NULL;
}

void hws_session_cancel_waiting (hws_session_t *self, uint64_t token, const char *reason)
{
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_sender_t *const sender = hws_container_of (link, hws_session_sender_t, link);
        if (sender->cancel_token == token) {
            hws_session_refuse_sender (sender, HWS_ECANCELLED, sentence_of (reason));
        }
    }
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, link);
        if (receiver->options.cancel_token == token) {
            hws_session_refuse_receiver (receiver, HWS_ECANCELLED, sentence_of (reason));
        }
    }
}
