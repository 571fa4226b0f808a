#include "broker/waiting.h"

#include "broker/answer.h"
#include "broker/engine_state.h"

#include <stdio.h>
#include <stdlib.h>

void hws_waiting_free (hws_engine_t *engine, hws_waiting_t *self)
{
    hws_heap_clear (&engine->deadlines, &self->deadline.timer);
    hws_cancels_release (&engine->cancels, &self->target.node);
    hws_list_remove (&self->in_engine);
    hws_list_remove (&self->in_peer);
    free (self);
}

static hws_waiting_t *find (const hws_peer_t *peer, uint64_t session_id)
{
    for (hws_link_t *link = peer->waiting.head; link; link = link->next) {
        hws_waiting_t *const self = hws_container_of (link, hws_waiting_t, in_peer);
        if (self->request.session_id == session_id) {
            return self;
        }
    }
    return NULL;
}

bool hws_waiting_has (const hws_peer_t *peer, uint64_t session_id)
{
    return find (peer, session_id) != NULL;
}

void hws_waiting_forget (hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id)
{
    hws_waiting_t *const self = find (peer, session_id);
    if (self) {
        hws_waiting_free (engine, self);
    }
}

int hws_waiting_add (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message, int code)
{
    const hws_attach_t *const request = &message->as.attach;
    hws_waiting_t *self = find (peer, request->session_id);
    if (self == NULL) {
        if (engine->waiting.count >= engine->options.limits.waiting_attaches) {
            return HWS_ELIMIT;
        }
        self = calloc (1, sizeof *self);
        if (self == NULL) {
            return HWS_ENO_MEMORY;
        }
        const uint64_t most = engine->options.limits.wait_ms;
        const uint64_t wait_ms = request->wait_ms < most ? request->wait_ms : most;
        self->peer = peer;
        self->until_at = hws_time_after (engine->now, (hws_ms_t) wait_ms);
        self->deadline.kind = HWS_DEADLINE_WAITING;
        self->target.kind = HWS_TARGET_WAITING;
        hws_list_append (&engine->waiting, &self->in_engine);
        hws_list_append (&peer->waiting, &self->in_peer);
        hws_heap_set (&engine->deadlines, &self->deadline.timer, self->until_at);
    }
    hws_cancels_release (&engine->cancels, &self->target.node);
    if (hws_token_register (engine, &self->target, request->cancel_token) != 0) {
        hws_waiting_free (engine, self);
        return HWS_ENO_MEMORY;
    }
    self->code = code;
    self->has_id = message->has_id;
    self->id = message->id;
    self->request = *request;
    return 0;
}

/*  Answers a waiting attach and frees it: Ok with `answer`, or a refusal.  */
static void answer (hws_engine_t *engine, hws_waiting_t *self, int code, const hws_attach_ok_t *ok,
                    const char *reason)
{
    const hws_control_t request = {.verb = HWS_VERB_ATTACH, .has_id = self->has_id, .id = self->id};
    hws_peer_t *const peer = self->peer;
    hws_waiting_free (engine, self);
    if (code == 0) {
        hws_control_t message = {.as.attach_ok = *ok};
        hws_engine_answer (engine, peer, &request, &message);
    } else {
        hws_engine_refuse (engine, peer, &request, code, "%s", reason);
    }
}

static bool is_meant (const hws_waiting_t *self, const hws_anchor_t *anchor)
{
    return self->request.has_handle ? hws_handle_equal (self->request.handle, anchor->handle)
                                    : strcmp (self->request.anchor, anchor->name) == 0;
}

/*  What an attach may wait for as long as it asked to.  */
static bool is_wait (int code)
{
    return code == HWS_ENOT_FOUND || code == HWS_EBUFFER_FULL;
}

/*  An anchor that was there at the first check is not at the second.  */
static bool is_removed (const hws_engine_t *engine, int code)
{
    return (code == HWS_ENOT_FOUND || code == HWS_ECLOSED) && !engine->is_draining;
}

void hws_waiting_retry (hws_engine_t *engine, const hws_anchor_t *anchor)
{
    for (hws_link_t *link = engine->waiting.head, *next; link; link = next) {
        next = link->next;
        hws_waiting_t *const self = hws_container_of (link, hws_waiting_t, in_engine);
        if (!is_meant (self, anchor)) {
            continue;
        }
        hws_attach_ok_t ok = {0};
        hws_reason_t reason = "";
        int code = hws_attach_try (engine, self->peer, &self->request, &ok, reason);
        if (self->code == HWS_EWOULD_BLOCK && is_removed (engine, code)) {
            code = HWS_EREMOVED_DURING_BIND;
            snprintf (reason, sizeof reason, "anchor %u was removed while its front was bound",
                      hws_handle_count (anchor->handle));
        }
        if (code == HWS_EWOULD_BLOCK || (is_wait (code) && engine->now < self->until_at)) {
            self->code = code;
            continue;
        }
        answer (engine, self, code, &ok, reason);
    }
}

void hws_waiting_fail (hws_engine_t *engine, const hws_anchor_t *anchor, int code,
                       const char *reason)
{
    for (hws_link_t *link = engine->waiting.head, *next; link; link = next) {
        next = link->next;
        hws_waiting_t *const self = hws_container_of (link, hws_waiting_t, in_engine);
        if (self->code == HWS_EWOULD_BLOCK && is_meant (self, anchor)) {
            answer (engine, self, code, NULL, reason);
        }
    }
}

void hws_waiting_refuse (hws_engine_t *engine, hws_waiting_t *self, int code, const char *reason)
{
    answer (engine, self, code, NULL, reason);
}

void hws_waiting_expire (hws_engine_t *engine, hws_waiting_t *self)
{
    hws_attach_ok_t ok = {0};
    hws_reason_t reason = "";
    const int code = hws_attach_try (engine, self->peer, &self->request, &ok, reason);
    if (code == HWS_EWOULD_BLOCK) {
        self->code = code;
        return;
    }
    answer (engine, self, code, &ok, reason);
}
