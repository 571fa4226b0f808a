#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*  ---- ATTACH ---- */

static const char *find_by_handle (model_t *self, hws_handle_t handle, model_anchor_t **found)
{
    const uint32_t count = hws_handle_count (handle);
    const bool is_this_epoch = hws_handle_epoch (handle) == self->options.epoch;
    if (handle.hi != self->options.broker_id) {
        return "wrong_broker";
    }
    *found = is_this_epoch ? model_anchor (self, count) : NULL;
    if (*found) {
        return hws_handle_equal (handle, model_handle (self, count)) ? NULL : "wrong_kind";
    }
    const bool was_given = is_this_epoch && count >= 1 && count <= self->opened;
    return was_given || hws_handle_epoch (handle) < self->options.epoch ? "closed" : "not_found";
}

static const char *check_room (model_t *self, int client, const model_anchor_t *anchor)
{
    const hws_limits_t *const limits = &self->options.limits;
    const size_t live = model_seats_of (self, anchor->count, true);
    size_t own = 0;
    for (size_t i = 0; i < self->seat_count; i++) {
        own += self->seats[i].client == client;
    }
    if (anchor->is_closing) {
        return "closed";
    }
    if (live >= model_value_or (anchor->max_senders, UINT64_MAX)) {
        return "max_senders";
    }
    if (live >= limits->senders_per_anchor || own >= limits->seats_per_peer) {
        return "limit";
    }
    if (model_seats_of (self, anchor->count, false) - live >= limits->exiting_seats) {
        return "busy";
    }
    return model_has_room (self, anchor) ? NULL : "buffer_full";
}

static void take_seat (model_t *self, int client, const model_attach_t *request,
                       model_anchor_t *anchor)
{
    model_seat_t *const seat = &self->seats[self->seat_count++];
    *seat = (model_seat_t){.anchor = anchor->count,
                           .client = client,
                           .session_id = request->session_id,
                           .sender_id = anchor->next_sender_id++,
                           .token = request->token,
                           .token_order = model_token_register (self),
                           .is_away = self->clients[client].is_away,
                           .away_at = self->now,
                           .attached_at = self->now,
                           .replayed_at = self->now};
    seat->routing_id = ((uint64_t) self->options.epoch << 32) + ++self->attached;
    memcpy (seat->label, request->label, sizeof seat->label);
    model_window_begin (self, seat);
    if (anchor->is_present) {
        model_announce (self, seat);
    }
}

/*  Answers with how the stream has ended.  */
static void say_ended (model_t *self, int client, uint64_t id, const model_tombstone_t *ended)
{
    if (id) {
        model_say (self, client,
                   "ATTACH %" PRIu64 " Ok anchor=%u sender=%" PRIu64 " ended %s(%s) acked=%" PRIu64
                   "/%" PRIu64 " reason '%s'",
                   id, ended->anchor, ended->sender_id, hws_ending_word (ended->ending),
                   hws_cause_word ((uint16_t) ended->cause), ended->acked_seq, ended->acked_bytes,
                   ended->reason);
    }
}

/*  Answers with the seat that there is.  */
static void say_seat (model_t *self, const model_seat_t *seat, uint64_t id, const char *early)
{
    const uint64_t credit = seat->limit_seq > seat->next_seq ? seat->limit_seq - seat->next_seq : 0;
    const uint64_t budget =
        seat->limit_bytes > seat->next_bytes ? seat->limit_bytes - seat->next_bytes : 1;
    const model_anchor_t *const anchor = model_anchor (self, seat->anchor);
    if (seat->is_ending_ours) {
        const model_tombstone_t ended = model_tombstone_for (seat);
        say_ended (self, seat->client, id, &ended);
        return;
    }
    if (id == 0) {
        return;
    }
    model_say (self, seat->client,
               "ATTACH %" PRIu64 " Ok anchor=%u sender=%" PRIu64 " routing=%" PRIu64
               " heartbeat=%" PRIu64 " next=%" PRIu64 "/%" PRIu64 " acked=%" PRIu64 "/%" PRIu64
               " credit=%" PRIu64 "/%" PRIu64 " record=%" PRIu64 " early=%s",
               id, seat->anchor, seat->sender_id, seat->routing_id, anchor->heartbeat_interval_ms,
               seat->next_seq, seat->next_bytes, seat->acked_seq, seat->acked_bytes, credit, budget,
               model_record_bytes (self, anchor), early);
}

static void return_to_seat (model_t *self, model_seat_t *seat)
{
    seat->is_away = self->clients[seat->client].is_away;
    seat->is_dead = seat->is_unclaimed = seat->has_gap = seat->is_rewound = false;
    seat->attached_at = self->now;
    model_window_resume (self, seat);
}

/*  Seats the sender or finds what there is of it, and answers. Returns the word of a
 *  refusal, not yet said, or null.  */
static const char *try_attach (model_t *self, int client, uint64_t id,
                               const model_attach_t *request, const char *early)
{
    model_seat_t *const seat = model_seat (self, client, request->session_id);
    if (seat) {
        if (request->is_cancelled) {
            model_end (self, seat, HWS_RUN_CANCELLED, HWS_CAUSE_INTERRUPTED, "", false);
        }
        return_to_seat (self, seat);
        say_seat (self, seat, id, early);
        return NULL;
    }
    const model_tombstone_t *const ended =
        model_tombstone (self, false, client, request->session_id);
    if (ended) {
        say_ended (self, client, id, ended);
        return NULL;
    }
    if (request->is_resume) { /* by a token that is never the true one */
        return !request->has_handle                            ? "bad_request"
               : request->handle.hi != self->options.broker_id ? "wrong_broker"
                                                               : "denied";
    }
    if (model_young_holds (self, request)) {
        return "not_found";
    }
    if (model_token_reason (self, request->token)) {
        return "cancelled";
    }
    if (self->is_draining) {
        return "closed";
    }
    model_anchor_t *anchor = NULL;
    const char *refusal = NULL;
    if (request->has_handle) {
        refusal = find_by_handle (self, request->handle, &anchor);
    } else {
        anchor = model_anchor_named (self, request->name);
        refusal = anchor ? NULL : "not_found";
    }
    refusal = refusal ? refusal : check_room (self, client, anchor);
    if (refusal == NULL && !model_front_seats (self, anchor, client)) {
        return model_front_direct (self, anchor, client, id);
    }
    if (refusal == NULL) {
        take_seat (self, client, request, anchor);
        say_seat (self, &self->seats[self->seat_count - 1], id, early);
    }
    return refusal;
}

/*  ---- Attaches that wait ---- */

static bool is_worth_waiting (const char *refusal)
{
    return strcmp (refusal, "not_found") == 0 || strcmp (refusal, "buffer_full") == 0;
}

bool model_is_waiting (const model_t *self, int client, uint64_t session_id)
{
    for (size_t i = 0; i < self->waiting_count; i++) {
        if (self->waiting[i].client == client &&
            self->waiting[i].request.session_id == session_id) {
            return true;
        }
    }
    return false;
}

static void take_waiting (model_t *self, size_t place)
{
    self->waiting_count--;
    memmove (&self->waiting[place], &self->waiting[place + 1],
             (self->waiting_count - place) * sizeof *self->waiting);
}

/*  Asked again and answered at once, it waits no longer.  */
static void forget_waiting (model_t *self, int client, uint64_t session_id)
{
    for (size_t i = 0; i < self->waiting_count; i++) {
        const model_waiting_t *const it = &self->waiting[i];
        if (it->client == client && it->request.session_id == session_id) {
            take_waiting (self, i);
            return;
        }
    }
}

/*  Its token may have been cancelled before, when it waits for an earlier epoch's anchor.  */
static void note_token (model_t *self, model_waiting_t *it)
{
    it->is_token_hit = false;
    it->token_order = model_token_register (self);
    const char *const reason = model_token_reason (self, it->request.token);
    if (reason) {
        memcpy (it->token_reason, reason, sizeof it->token_reason);
        it->is_token_hit = true;
    }
}

static void note_young (model_t *self, const model_waiting_t *it)
{
    self->is_young_due = self->is_young_due || model_young_holds (self, &it->request);
}

void model_attach (model_t *self, int client, uint64_t id, const model_attach_t *request)
{
    const char *refusal = try_attach (self, client, id, request, "kept");
    if (refusal == NULL) {
        forget_waiting (self, client, request->session_id);
        return;
    }
    const bool is_binding = strcmp (refusal, "would_block") == 0;
    const bool may_wait = is_worth_waiting (refusal) && !self->clients[client].is_away &&
                          (request->wait_ms > 0 || model_young_holds (self, request));
    if (!may_wait && !is_binding) {
        forget_waiting (self, client, request->session_id);
        model_refuse (self, client, "ATTACH", id, refusal);
        return;
    }
    for (size_t i = 0; i < self->waiting_count; i++) {
        model_waiting_t *const other = &self->waiting[i];
        if (other->client == client && other->request.session_id == request->session_id) {
            other->id = id; /* asked again: the time goes on */
            other->request = *request;
            other->is_binding = is_binding;
            note_token (self, other);
            note_young (self, other);
            return;
        }
    }
    if (self->waiting_count >= self->options.limits.waiting_attaches) {
        model_refuse (self, client, "ATTACH", id, "limit");
        return;
    }
    const uint64_t most = self->options.limits.wait_ms;
    const uint64_t wait_ms = request->wait_ms < most ? request->wait_ms : most;
    model_waiting_t *const it = &self->waiting[self->waiting_count++];
    *it = (model_waiting_t){.client = client,
                            .id = id,
                            .is_binding = is_binding,
                            .until_at = self->now + (hws_ms_t) wait_ms,
                            .request = *request};
    note_token (self, it);
    note_young (self, it);
}

static bool is_meant (const model_t *self, const model_waiting_t *waiting, uint32_t count,
                      const char *name)
{
    return waiting->request.has_handle
               ? hws_handle_equal (waiting->request.handle, model_handle (self, count))
               : strcmp (waiting->request.name, name) == 0;
}

/*  The anchor was there when its front began to be bound, and is not any more.  */
static bool is_removed (const model_t *self, const char *refusal)
{
    return !self->is_draining &&
           (strcmp (refusal, "not_found") == 0 || strcmp (refusal, "closed") == 0);
}

/*  Who waits for room waits on behind one that there is no room for.  */
void model_retry (model_t *self, uint32_t count, const char *name)
{
    bool is_full = false;
    for (size_t i = 0; i < self->waiting_count;) {
        const model_waiting_t it = self->waiting[i];
        if (!is_meant (self, &it, count, name) || (is_full && !it.is_binding)) {
            i++;
            continue;
        }
        const char *refusal = try_attach (self, it.client, it.id, &it.request, "dropped");
        if (refusal && it.is_binding && is_removed (self, refusal)) {
            refusal = "removed_during_bind";
        }
        const bool is_binding = refusal && strcmp (refusal, "would_block") == 0;
        is_full = is_full || (refusal && strcmp (refusal, "buffer_full") == 0);
        if (is_binding || (refusal && is_worth_waiting (refusal) && self->now < it.until_at)) {
            self->waiting[i++].is_binding = is_binding;
            continue;
        }
        take_waiting (self, i);
        if (refusal) {
            model_refuse (self, it.client, "ATTACH", it.id, refusal);
        }
    }
}

void model_wait_over (model_t *self, size_t place)
{
    const model_waiting_t it = self->waiting[place];
    const char *const refusal = try_attach (self, it.client, it.id, &it.request, "dropped");
    const bool is_binding = refusal && strcmp (refusal, "would_block") == 0;
    if (is_binding || (refusal && model_young_holds (self, &it.request))) {
        self->waiting[place].is_binding = is_binding;
        self->waiting[place].is_over = true;
        return;
    }
    take_waiting (self, place);
    if (refusal) {
        model_refuse (self, it.client, "ATTACH", it.id, refusal);
    }
}

void model_wait_cancel (model_t *self, const model_waiting_t *waiting)
{
    const model_waiting_t it = *waiting;
    take_waiting (self, (size_t) (waiting - self->waiting));
    model_refuse (self, it.client, "ATTACH", it.id, "cancelled");
}

void model_wait_fail (model_t *self, uint32_t count, const char *name)
{
    for (size_t i = 0; i < self->waiting_count;) {
        const model_waiting_t it = self->waiting[i];
        if (!it.is_binding || !is_meant (self, &it, count, name)) {
            i++;
            continue;
        }
        take_waiting (self, i);
        model_refuse (self, it.client, "ATTACH", it.id, "transport");
    }
}
