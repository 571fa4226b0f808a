#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*  What carries tokens, in the order in which it came to be: streams that have no ending,
 *  attaches that wait, anchors.  */
typedef struct {
    model_seat_t *seat;
    model_waiting_t *waiting;
    model_anchor_t *anchor;
    uint64_t order;
} target_t;

static void consider (target_t *first, target_t other, uint64_t token, uint64_t its_token)
{
    if (its_token == token && (first->order == 0 || other.order < first->order)) {
        *first = other;
    }
}

/*  The first that carries the token and was not hit; `order` is 0 if there is none.  */
static target_t first_target (model_t *self, uint64_t token)
{
    target_t first = {0};
    for (size_t i = 0; i < self->seat_count; i++) {
        model_seat_t *const it = &self->seats[i];
        if (!it->has_ended) {
            consider (&first, (target_t){.seat = it, .order = it->token_order}, token, it->token);
        }
    }
    for (size_t i = 0; i < self->waiting_count; i++) {
        model_waiting_t *const it = &self->waiting[i];
        if (!it->is_token_hit) {
            consider (&first, (target_t){.waiting = it, .order = it->token_order}, token,
                      it->request.token);
        }
    }
    for (size_t i = 0; i < self->anchor_count; i++) {
        model_anchor_t *const it = &self->anchors[i];
        if (!it->is_token_hit) {
            consider (&first, (target_t){.anchor = it, .order = it->token_order}, token, it->token);
        }
    }
    return first;
}

static model_cancel_t *remembered (model_t *self, uint64_t token)
{
    for (size_t i = 0; i < self->cancel_count; i++) {
        if (self->cancels[i].token == token) {
            return &self->cancels[i];
        }
    }
    return NULL;
}

/*  A cancel is known as long as it is remembered, and as long as an anchor is there that it
 *  has hit, or an attach that waits on.  */
const char *model_token_reason (model_t *self, uint64_t token)
{
    if (token && self->hit_token == token) {
        return self->hit_reason;
    }
    for (size_t i = 0; token && i < self->anchor_count; i++) {
        if (self->anchors[i].token == token && self->anchors[i].is_token_hit) {
            return self->anchors[i].token_reason;
        }
    }
    for (size_t i = 0; token && i < self->waiting_count; i++) {
        if (self->waiting[i].request.token == token && self->waiting[i].is_token_hit) {
            return self->waiting[i].token_reason;
        }
    }
    const model_cancel_t *const cancel = token ? remembered (self, token) : NULL;
    return cancel ? cancel->reason : NULL;
}

static void forget_first (model_t *self, size_t place)
{
    self->cancel_count--;
    memmove (&self->cancels[place], &self->cancels[place + 1],
             (self->cancel_count - place) * sizeof *self->cancels);
}

static hws_ms_t expires_at (const model_t *self, const model_cancel_t *cancel)
{
    return cancel->cancelled_at + (hws_ms_t) self->options.limits.cancel_orphan_ttl_ms;
}

void model_token_sweep (model_t *self)
{
    if (self->now < self->sweep_from) {
        return;
    }
    self->sweep_from = self->now + (hws_ms_t) self->options.limits.cancel_sweep_ms;
    while (self->cancel_count > 0 && expires_at (self, &self->cancels[0]) <= self->now) {
        forget_first (self, 0);
    }
}

hws_ms_t model_token_due (const model_t *self)
{
    if (self->cancel_count == 0) {
        return HWS_NEVER;
    }
    const hws_ms_t at = expires_at (self, &self->cancels[0]);
    return at > self->sweep_from ? at : self->sweep_from;
}

uint64_t model_token_register (model_t *self)
{
    model_token_sweep (self);
    return ++self->token_order;
}

/*  The broker remembers the cancel from now on, if the limits allow.  */
static bool remember (model_t *self, int client, uint64_t token, const char *reason)
{
    const hws_limits_t *const limits = &self->options.limits;
    model_cancel_t *const before = remembered (self, token);
    model_cancel_t it = {.token = token, .client = client};
    memcpy (it.reason, reason, strnlen (reason, sizeof it.reason - 1));
    size_t own = 0;
    for (size_t i = 0; i < self->cancel_count; i++) {
        own += self->cancels[i].client == client;
    }
    if (before) {
        it.client = before->client;
        forget_first (self, (size_t) (before - self->cancels));
    } else if (self->cancel_count >= limits->cancel_orphans ||
               own >= limits->cancel_orphans_per_peer) {
        return false;
    }
    it.cancelled_at = self->now;
    self->cancels[self->cancel_count++] = it;
    return true;
}

static void hit (model_t *self, target_t target, const char *reason)
{
    if (target.seat) {
        model_end (self, target.seat, HWS_RUN_CANCELLED, HWS_CAUSE_REQUESTED, reason, false);
    } else if (target.waiting && model_young_holds (self, &target.waiting->request)) {
        target.waiting->is_token_hit = true;
        memcpy (target.waiting->token_reason, reason, sizeof target.waiting->token_reason);
    } else if (target.waiting) {
        model_wait_cancel (self, target.waiting);
    } else {
        model_anchor_t *const anchor = target.anchor;
        anchor->is_token_hit = true;
        memcpy (anchor->token_reason, reason, sizeof anchor->token_reason);
        if (!anchor->is_closing || anchor->cause == HWS_CAUSE_FINALIZED) {
            model_anchor_cancel (self, anchor->count, HWS_CAUSE_REQUESTED, reason);
        }
    }
}

void model_cancel_token (model_t *self, int client, uint64_t id, const hws_token_t *request)
{
    const uint64_t token = request->token;
    char reason[MODEL_WORD] = ""; /* of several, the first counts */
    model_token_sweep (self);
    const char *const before = model_token_reason (self, token);
    memcpy (reason, before ? before : request->reason,
            strnlen (before ? before : request->reason, sizeof reason - 1));
    if (token == 0 || remember (self, client, token, reason)) {
        model_ok (self, client, "CANCEL_TOKEN", id);
    } else {
        model_refuse (self, client, "CANCEL_TOKEN", id, "limit");
    }
    self->hit_token = token;
    self->hit_reason = reason;
    target_t target;
    while (token && (target = first_target (self, token)).order > 0) {
        hit (self, target, reason);
    }
    self->hit_token = 0;
    self->hit_reason = NULL;
}

void model_reserve_token (model_t *self, int client, uint64_t id)
{
    model_ok (self, client, "RESERVE_TOKEN", id);
}
