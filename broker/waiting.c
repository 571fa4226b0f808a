#include "broker/waiting.h"

#include "base/text.h"
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/young.h"

#include <stdio.h>
#include <stdlib.h>

struct hws_line {
    hws_map_node_t node;              /* in the engine's lines */
    char name[HWS_NAME_SIZE_MAX + 1]; /* or a handle's digits, which no name is */
    hws_list_t waiting;               /* of hws_waiting_t, through in_line, by order */
};

/*  ---- Lines ---- */

static hws_line_t *find_line (const hws_engine_t *engine, const char *name)
{
    hws_map_node_t *const node =
        *name ? hws_map_find (&engine->lines, hws_bytes_of_text (name)) : NULL;
    return node ? hws_container_of (node, hws_line_t, node) : NULL;
}

static uint64_t order_of (const hws_link_t *link)
{
    return hws_container_of (link, hws_waiting_t, in_line)->order;
}

static void leave_line (hws_engine_t *engine, hws_waiting_t *self)
{
    hws_line_t *const line = self->line;
    hws_list_remove (&self->in_line);
    self->line = NULL;
    if (line && line->waiting.count == 0) {
        hws_map_remove (&engine->lines, &line->node);
        free (line);
    }
}

/*  Moves those that came later behind it.  */
static void put_in_order (hws_line_t *line, const hws_waiting_t *self)
{
    for (hws_link_t *link = line->waiting.head, *next; link != &self->in_line; link = next) {
        next = link->next;
        if (order_of (link) > self->order) {
            hws_list_remove (link);
            hws_list_append (&line->waiting, link);
        }
    }
}

/*  Puts it into the line of what its request names, where its order says; that is the end,
 *  unless it was in another line before. Returns 0 or HWS_ENO_MEMORY.  */
static int join_line (hws_engine_t *engine, hws_waiting_t *self)
{
    char digits[HWS_HANDLE_TEXT_SIZE];
    const char *name = self->request.anchor;
    if (self->request.has_handle) {
        hws_handle_print (self->request.handle, digits);
        name = digits;
    }
    hws_line_t *line = find_line (engine, name);
    if (line && line == self->line) {
        return 0;
    }
    if (line == NULL) {
        line = calloc (1, sizeof *line);
        if (line == NULL) {
            return HWS_ENO_MEMORY;
        }
        hws_text_copy (line->name, sizeof line->name, name);
        hws_map_insert (&engine->lines, &line->node, hws_bytes_of_text (line->name));
    }
    leave_line (engine, self);
    self->line = line;
    const hws_link_t *const last = line->waiting.tail;
    hws_list_append (&line->waiting, &self->in_line);
    if (last && order_of (last) > self->order) {
        put_in_order (line, self);
    }
    return 0;
}

/*  Everybody who waits for an anchor, in order; the one at hand may be freed.  */
typedef struct {
    hws_link_t *by_handle, *by_name; /* the next of each line, or null */
} walk_t;

static walk_t walk (const hws_engine_t *engine, const hws_anchor_t *anchor)
{
    char digits[HWS_HANDLE_TEXT_SIZE];
    hws_handle_print (anchor->handle, digits);
    const hws_line_t *const by_handle = find_line (engine, digits);
    const hws_line_t *const by_name = find_line (engine, anchor->name);
    return (walk_t){by_handle ? by_handle->waiting.head : NULL,
                    by_name ? by_name->waiting.head : NULL};
}

static hws_waiting_t *walk_next (walk_t *self)
{
    const bool is_named = self->by_name && (!self->by_handle ||
                                            order_of (self->by_name) < order_of (self->by_handle));
    hws_link_t **const from = is_named ? &self->by_name : &self->by_handle;
    hws_link_t *const link = *from;
    *from = link ? link->next : NULL;
    return link ? hws_container_of (link, hws_waiting_t, in_line) : NULL;
}

/*  ---- Life ---- */

void hws_waiting_free (hws_engine_t *engine, hws_waiting_t *self)
{
    leave_line (engine, self);
    hws_map_remove (&engine->waiting_by_session, &self->by_session);
    hws_heap_clear (&engine->deadlines, &self->deadline.timer);
    hws_cancels_release (&engine->cancels, &self->target.node);
    hws_list_remove (&self->in_engine);
    hws_list_remove (&self->in_peer);
    free (self);
}

static hws_waiting_t *find (const hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id)
{
    const struct {
        const hws_peer_t *peer;
        uint64_t session_id;
    } key = {peer, session_id};
    hws_map_node_t *const node =
        hws_map_find (&engine->waiting_by_session, hws_bytes (&key, sizeof key));
    return node ? hws_container_of (node, hws_waiting_t, by_session) : NULL;
}

bool hws_waiting_has (const hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id)
{
    return find (engine, peer, session_id) != NULL;
}

void hws_waiting_forget (hws_engine_t *engine, const hws_peer_t *peer, uint64_t session_id)
{
    hws_waiting_t *const self = find (engine, peer, session_id);
    if (self) {
        hws_waiting_free (engine, self);
    }
}

int hws_waiting_add (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message, int code)
{
    const hws_attach_t *const request = &message->as.attach;
    hws_waiting_t *self = find (engine, peer, request->session_id);
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
        self->session_id = request->session_id;
        self->order = ++engine->waiting_count;
        self->until_at = hws_time_after (engine->now, (hws_ms_t) wait_ms);
        self->deadline.kind = HWS_DEADLINE_WAITING;
        self->target.kind = HWS_TARGET_WAITING;
        hws_list_append (&engine->waiting, &self->in_engine);
        hws_list_append (&peer->waiting, &self->in_peer);
        hws_map_insert (&engine->waiting_by_session, &self->by_session,
                        hws_bytes (self->session_key, sizeof self->session_key));
        hws_heap_set (&engine->deadlines, &self->deadline.timer, self->until_at);
    }
    if (hws_young_holds (engine, request)) {
        hws_young_arm (engine);
    }
    self->code = code;
    self->has_id = message->has_id;
    self->id = message->id;
    self->request = *request;
    hws_cancels_release (&engine->cancels, &self->target.node);
    if (join_line (engine, self) != 0 ||
        hws_token_register (engine, &self->target, request->cancel_token) != 0) {
        hws_waiting_free (engine, self);
        return HWS_ENO_MEMORY;
    }
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
    walk_t all = walk (engine, anchor);
    bool is_full = false;
    hws_waiting_t *self;
    while ((self = walk_next (&all))) {
        if (is_full && self->code != HWS_EWOULD_BLOCK) {
            continue; /* there may be thousands */
        }
        hws_attach_ok_t ok = {0};
        hws_reason_t reason = "";
        int code = hws_attach_try (engine, self->peer, &self->request, &ok, reason);
        if (self->code == HWS_EWOULD_BLOCK && is_removed (engine, code)) {
            code = HWS_EREMOVED_DURING_BIND;
            snprintf (reason, sizeof reason, "anchor %u was removed while its front was bound",
                      hws_handle_count (anchor->handle));
        }
        is_full = is_full || code == HWS_EBUFFER_FULL;
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
    walk_t all = walk (engine, anchor);
    hws_waiting_t *self;
    while ((self = walk_next (&all))) {
        if (self->code == HWS_EWOULD_BLOCK) {
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
    if (code == HWS_EWOULD_BLOCK || hws_young_holds (engine, &self->request)) {
        self->code = code;
        return;
    }
    answer (engine, self, code, &ok, reason);
}
