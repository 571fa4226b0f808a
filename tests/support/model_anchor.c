#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

model_anchor_t *model_anchor (model_t *self, uint32_t count)
{
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (self->anchors[i].count == count) {
            return &self->anchors[i];
        }
    }
    return NULL;
}

model_anchor_t *model_anchor_of (model_t *self, int owner, uint64_t open_id)
{
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (self->anchors[i].owner == owner && self->anchors[i].open_id == open_id) {
            return &self->anchors[i];
        }
    }
    return NULL;
}

model_anchor_t *model_anchor_named (model_t *self, const char *name)
{
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (*name && strcmp (self->anchors[i].name, name) == 0) {
            return &self->anchors[i];
        }
    }
    return NULL;
}

static void say_last_word (model_t *self, int client, uint32_t count, hws_cause_t cause,
                           const uint64_t ended[4], const char *reason)
{
    model_say (self, client,
               "ANCHOR_CLOSED anchor=%u code=%s %" PRIu64 " detached %" PRIu64 " finalized %" PRIu64
               " dropped %" PRIu64 " cancelled, reason '%s'",
               count, hws_cause_word ((uint16_t) cause), ended[0], ended[1], ended[2], ended[3],
               reason);
}

/*  ---- OPEN ---- */

uint64_t model_value_or (hws_optional_t asked, uint64_t otherwise)
{
    return asked.state == HWS_VALUE ? asked.value : otherwise;
}

static const char *open_refusal (model_t *self, int client, const hws_open_t *request)
{
    const hws_limits_t *const limits = &self->options.limits;
    const uint64_t floor = self->options.anchors.window_bytes_min;
    const uint64_t buffer =
        model_value_or (request->buffer_bytes, self->options.anchors.buffer_bytes);
    if (model_value_or (request->heartbeat_interval_ms, limits->heartbeat_min_ms) <
            limits->heartbeat_min_ms ||
        model_value_or (request->max_senders, 1) == 0 || buffer < 2 * floor) {
        return "bad_request";
    }
    if (model_token_reason (self, request->cancel_token)) {
        return "cancelled";
    }
    if (self->is_draining) {
        return "closed";
    }
    if (model_anchor_named (self, request->name)) {
        return "name_in_use";
    }
    uint64_t own = 0, buffers = 0;
    for (size_t i = 0; i < self->anchor_count; i++) {
        own += self->anchors[i].owner == client;
        buffers += self->anchors[i].buffer_bytes;
    }
    if (request->dedicated && model_counts (self).dedicated >= limits->fronts) {
        return "limit";
    }
    if (self->anchor_count >= limits->anchors || own >= limits->anchors_per_peer ||
        buffers + buffer > model_value_or (limits->buffer_bytes, UINT64_MAX)) {
        return "limit";
    }
    return NULL;
}

static model_anchor_t *make_anchor (model_t *self, int client, const hws_open_t *request)
{
    const hws_anchor_defaults_t *const usual = &self->options.anchors;
    model_anchor_t *const anchor = &self->anchors[self->anchor_count++];
    *anchor = (model_anchor_t){
        .count = ++self->opened,
        .owner = client,
        .open_id = request->open_id,
        .heartbeat_interval_ms =
            model_value_or (request->heartbeat_interval_ms, usual->heartbeat_interval_ms),
        .reconnect_grace_ms =
            model_value_or (request->reconnect_grace_ms, usual->reconnect_grace_ms),
        .orphan_ttl_ms = model_value_or (request->orphan_ttl_ms, usual->orphan_ttl_ms),
        .buffer_bytes = model_value_or (request->buffer_bytes, usual->buffer_bytes),
        .unattached_timeout_ms = request->unattached_timeout_ms.state == HWS_ABSENT
                                     ? usual->unattached_timeout_ms
                                     : request->unattached_timeout_ms,
        .is_exclusive = request->kind == HWS_KIND_SPSC,
        .is_dedicated = request->dedicated,
        .token = request->cancel_token,
        .token_order = model_token_register (self),
        .away_at = self->now,
        .empty_at = self->now,
        .next_sender_id = 1};
    anchor->max_senders = anchor->is_exclusive ? (hws_optional_t){HWS_VALUE, 1}
                          : request->max_senders.state == HWS_ABSENT ? usual->max_senders
                                                                     : request->max_senders;
    assert_true (anchor->count < MODEL_OPENED);
    self->is_exclusive[anchor->count] = anchor->is_exclusive;
    memcpy (anchor->name, request->name, sizeof anchor->name - 1);
    return anchor;
}

/*  A record has to fit the half of the budget that the windows leave, with its parts'
 *  headers.  */
uint64_t model_record_bytes (const model_t *self, const model_anchor_t *anchor)
{
    const uint64_t half = anchor->buffer_bytes / 2;
    const uint64_t most = half - half / 128;
    return most < self->options.limits.record_bytes ? most : self->options.limits.record_bytes;
}

static void print_optional (hws_optional_t number, char text[MODEL_WORD])
{
    if (number.state == HWS_VALUE) {
        snprintf (text, MODEL_WORD, "%" PRIu64, number.value);
    } else {
        strcpy (text, "null");
    }
}

/*  The last word on it is said again; the refusal could not tell the cause.  */
static void say_closed_again (model_t *self, int client, const model_tombstone_t *ended)
{
    const uint64_t none[4] = {0};
    say_last_word (self, client, ended->anchor, ended->cause, none, ended->reason);
}

/*  Another unattached timeout than the one in force replaces it, and runs in full.  */
static void set_timeout (const model_t *self, model_anchor_t *anchor, hws_optional_t asked)
{
    const hws_optional_t before = anchor->unattached_timeout_ms;
    if (asked.state != HWS_ABSENT && (asked.state != before.state || asked.value != before.value)) {
        anchor->unattached_timeout_ms = asked;
        anchor->empty_at = self->now;
    }
}

void model_open (model_t *self, int client, uint64_t id, const hws_open_t *request)
{
    model_anchor_t *anchor = model_anchor_of (self, client, request->open_id);
    if (anchor) {
        set_timeout (self, anchor, request->unattached_timeout_ms);
    } else {
        const model_tombstone_t *const ended =
            model_tombstone (self, true, client, request->open_id);
        const char *const refusal = ended ? "closed" : open_refusal (self, client, request);
        if (ended) {
            say_closed_again (self, client, ended);
        }
        if (refusal) {
            model_refuse (self, client, "OPEN", id, refusal);
            return;
        }
        anchor = make_anchor (self, client, request);
    }
    char unattached[MODEL_WORD], senders[MODEL_WORD];
    print_optional (anchor->unattached_timeout_ms, unattached);
    print_optional (anchor->max_senders, senders);
    if (id) {
        model_say (self, client,
                   "OPEN %" PRIu64 " Ok anchor=%u heartbeat=%" PRIu64 " grace=%" PRIu64
                   " unattached=%s orphan=%" PRIu64 " senders=%s buffer=%" PRIu64
                   " record=%" PRIu64,
                   id, anchor->count, anchor->heartbeat_interval_ms, anchor->reconnect_grace_ms,
                   unattached, anchor->orphan_ttl_ms, senders, anchor->buffer_bytes,
                   model_record_bytes (self, anchor));
    }
    anchor->is_present = true;
    if (self->clients[client].is_away) { /* read after the end of its connection */
        model_anchor_leave (self, anchor);
    }
    for (size_t i = 0; anchor->is_present && i < self->seat_count; i++) {
        if (self->seats[i].anchor == anchor->count) {
            model_replay (self, &self->seats[i]);
        }
    }
    model_retry (self, anchor->count, anchor->name);
}

/*  ---- The end ---- */

void model_anchor_leave (model_t *self, model_anchor_t *anchor)
{
    if (anchor->is_present) {
        anchor->is_present = false;
        anchor->away_at = self->now;
    }
}

static void end_seats (model_t *self, const model_anchor_t *anchor, bool is_override)
{
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].anchor == anchor->count) {
            model_end (self, &self->seats[i], HWS_RUN_CANCELLED, anchor->cause, anchor->reason,
                       is_override);
        }
    }
}

static void begin_end (model_t *self, model_anchor_t *anchor, hws_cause_t cause, const char *reason,
                       bool is_override)
{
    anchor->is_closing = true;
    anchor->cause = cause;
    snprintf (anchor->reason, sizeof anchor->reason, "%s", reason);
    end_seats (self, anchor, is_override);
}

void model_anchor_finish (model_t *self, uint32_t count)
{
    model_front_end (self, model_anchor (self, count));
    const model_anchor_t anchor = *model_anchor (self, count);
    if (anchor.is_present) {
        say_last_word (self, anchor.owner, count, anchor.cause, anchor.ended, anchor.reason);
    }
    for (size_t i = 0; i < self->seat_count;) {
        if (self->seats[i].anchor == count) {
            model_remember (self, model_tombstone_for (&self->seats[i]));
            model_seat_remove (self, &self->seats[i]);
        } else {
            i++;
        }
    }
    model_tombstone_t it = {.is_anchor = true,
                            .client = anchor.owner,
                            .number = anchor.open_id,
                            .anchor = count,
                            .ending = HWS_RUN_CANCELLED,
                            .cause = anchor.cause};
    memcpy (it.reason, anchor.reason, sizeof it.reason);
    model_remember (self, it);
    const size_t place = (size_t) (model_anchor (self, count) - self->anchors);
    self->anchor_count--;
    memmove (&self->anchors[place], &self->anchors[place + 1],
             (self->anchor_count - place) * sizeof *self->anchors);
    self->closed++;
    model_retry (self, count, anchor.name);
}

void model_anchor_close (model_t *self, uint32_t count, hws_cause_t cause, const char *reason)
{
    begin_end (self, model_anchor (self, count), cause, reason, true);
    model_anchor_finish (self, count);
}

void model_anchor_cancel (model_t *self, uint32_t count, hws_cause_t cause, const char *reason)
{
    begin_end (self, model_anchor (self, count), cause, reason, false);
    if (model_seats_of (self, count, false) == 0) {
        model_anchor_finish (self, count);
    }
}

void model_anchor_finalize (model_anchor_t *anchor)
{
    anchor->is_closing = true;
    anchor->cause = HWS_CAUSE_FINALIZED;
}

void model_anchor_reopen (model_anchor_t *anchor)
{
    if (anchor->is_closing && anchor->cause == HWS_CAUSE_FINALIZED) {
        anchor->is_closing = false;
        anchor->cause = HWS_CAUSE_NONE;
    }
}

void model_anchor_left (model_t *self, uint32_t count)
{
    model_anchor_t *const anchor = model_anchor (self, count);
    if (model_seats_of (self, count, false) == 0) {
        anchor->empty_at = self->now;
        if (anchor->is_closing) {
            model_anchor_finish (self, count);
            return;
        }
    }
    model_serve (self, anchor);
    if (model_has_room (self, anchor)) {
        model_retry (self, count, anchor->name);
    }
}
