#include "broker/anchor.h"

#include "base/assert.h"
#include "base/text.h"
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/window.h"
#include "broker/young.h"

#include <stdlib.h>

#define SILENT_INTERVALS 3 /* then a receiver counts as away */

static uint64_t value_or (hws_optional_t asked, uint64_t otherwise)
{
    return asked.state == HWS_VALUE ? asked.value : otherwise;
}

static hws_optional_t optional_or (hws_optional_t asked, hws_optional_t otherwise)
{
    return asked.state == HWS_ABSENT ? otherwise : asked;
}

static void take_settings (const hws_engine_t *engine, hws_anchor_t *self,
                           const hws_open_t *request)
{
    const hws_anchor_defaults_t *const by_default = &engine->options.anchors;
    self->heartbeat_interval_ms =
        value_or (request->heartbeat_interval_ms, by_default->heartbeat_interval_ms);
    self->reconnect_grace_ms =
        value_or (request->reconnect_grace_ms, by_default->reconnect_grace_ms);
    self->unattached_timeout_ms =
        optional_or (request->unattached_timeout_ms, by_default->unattached_timeout_ms);
    self->orphan_ttl_ms = value_or (request->orphan_ttl_ms, by_default->orphan_ttl_ms);
    self->max_senders = request->kind == HWS_KIND_SPSC
                            ? (hws_optional_t){HWS_VALUE, 1}
                            : optional_or (request->max_senders, by_default->max_senders);
    self->buffer_bytes = value_or (request->buffer_bytes, by_default->buffer_bytes);
    self->window_bytes_min = by_default->window_bytes_min;
    self->window_bytes_max = by_default->window_bytes_max;
    self->window_records = by_default->window_records;
    /* A record has to fit the half that the windows leave, with the four bytes that
       each of its parts adds. */
    const uint64_t half = self->buffer_bytes / 2;
    const uint64_t most = half - half / 128;
    self->record_bytes = engine->options.limits.record_bytes;
    if (self->record_bytes > most) {
        self->record_bytes = most;
    }
}

/*  The epoch makes the ids of each life of the broker higher than those of the lives before.
 *  Returns 0 or HWS_ENO_MEMORY.  */
static int take_identity (hws_engine_t *engine, hws_anchor_t *self, const hws_open_t *request)
{
    if (!request->has_resume) {
        self->handle = hws_handle_make (engine->options.broker_id, request->kind,
                                        engine->options.epoch, engine->anchor_count + 1);
        self->next_sender_id = 1;
        return 0;
    }
    self->handle = request->resume.handle;
    self->next_sender_id = hws_young_first_id (engine, self->handle);
    if (hws_unseen_init (&self->unseen, request, self->next_sender_id) != 0) {
        return HWS_ENO_MEMORY;
    }
    if (self->next_sender_id <= request->resume.highest_sender_id) {
        self->next_sender_id = request->resume.highest_sender_id + 1;
    }
    return 0;
}

hws_anchor_t *hws_anchor_new (hws_engine_t *engine, hws_peer_t *owner, const hws_open_t *request)
{
    hws_anchor_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->tombstone = hws_tombstone_new ();
    if (self->tombstone == NULL || take_identity (engine, self, request) != 0 ||
        hws_token_register (engine, &self->target, request->cancel_token) != 0) {
        hws_unseen_fini (&self->unseen);
        free (self->tombstone);
        free (self);
        return NULL;
    }
    self->target.kind = HWS_TARGET_ANCHOR;
    take_settings (engine, self, request);
    engine->anchor_count += !request->has_resume;
    memcpy (self->name, request->name, sizeof self->name);
    self->open_id = request->open_id;
    self->owner = owner;
    self->deadline.kind = HWS_DEADLINE_ANCHOR;
    self->away_at = self->empty_at = engine->now;
    hws_map_insert (&engine->anchors_by_handle, &self->by_handle,
                    hws_bytes (&self->handle, sizeof self->handle));
    if (*self->name) {
        hws_map_insert (&engine->anchors_by_name, &self->by_name, hws_bytes_of_text (self->name));
    }
    hws_map_insert (&engine->anchors_by_open, &self->by_open,
                    hws_bytes (self->open_key, sizeof self->open_key));
    hws_heap_set (&engine->intervals, &self->in_intervals, (hws_ms_t) self->heartbeat_interval_ms);
    hws_list_append (&owner->anchors, &self->in_owner);
    hws_list_append (&engine->anchors, &self->in_engine);
    engine->buffer_bytes += self->buffer_bytes;
    owner->buffer_bytes += self->buffer_bytes;
    if (request->dedicated) {
        hws_dedicated_begin (engine, self);
    }
    engine->stats.opened++;
    hws_engine_measure (engine);
    return self;
}

void hws_anchor_free (hws_engine_t *engine, hws_anchor_t *self)
{
    hws_link_t *link;
    while ((link = self->seats.head)) {
        hws_seat_free (engine, hws_container_of (link, hws_seat_t, in_anchor));
    }
    hws_assert (self->reserved_bytes == 0);

    hws_dedicated_end (engine, self);
    hws_heap_clear (&engine->deadlines, &self->deadline.timer);
    hws_cancels_release (&engine->cancels, &self->target.node);
    hws_map_remove (&engine->anchors_by_handle, &self->by_handle);
    hws_map_remove (&engine->anchors_by_name, &self->by_name);
    hws_map_remove (&engine->anchors_by_open, &self->by_open);
    hws_heap_clear (&engine->intervals, &self->in_intervals);
    hws_list_remove (&self->in_owner);
    hws_list_remove (&self->in_engine);
    engine->buffer_bytes -= self->buffer_bytes;
    self->owner->buffer_bytes -= self->buffer_bytes;
    hws_engine_measure (engine);
    hws_unseen_fini (&self->unseen);
    free (self->tombstone);
    free (self->reason);
    free (self);
}

hws_anchor_t *hws_anchor_find (const hws_engine_t *engine, hws_handle_t handle)
{
    hws_map_node_t *const node =
        hws_map_find (&engine->anchors_by_handle, hws_bytes (&handle, sizeof handle));
    return node ? hws_container_of (node, hws_anchor_t, by_handle) : NULL;
}

hws_anchor_t *hws_anchor_find_other (const hws_engine_t *engine, hws_handle_t handle)
{
    handle.lo ^= HWS_HANDLE_MPSC_BIT;
    return hws_anchor_find (engine, handle);
}

bool hws_anchor_is_exclusive (const hws_anchor_t *self)
{
    return hws_handle_kind (self->handle) == HWS_KIND_SPSC;
}

hws_anchor_t *hws_anchor_of_open (const hws_engine_t *engine, const hws_peer_t *owner,
                                  uint64_t open_id)
{
    const struct {
        const hws_peer_t *owner;
        uint64_t open_id;
    } key = {owner, open_id};
    hws_map_node_t *const node =
        hws_map_find (&engine->anchors_by_open, hws_bytes (&key, sizeof key));
    return node ? hws_container_of (node, hws_anchor_t, by_open) : NULL;
}

hws_anchor_t *hws_anchor_named (const hws_engine_t *engine, const char *name)
{
    if (*name == '\0') {
        return NULL;
    }
    hws_map_node_t *const node = hws_map_find (&engine->anchors_by_name, hws_bytes_of_text (name));
    return node ? hws_container_of (node, hws_anchor_t, by_name) : NULL;
}

/*  ---- The receiver ---- */

static bool is_expiring (const hws_anchor_t *self)
{
    return self->seats.count == 0 && self->unattached_timeout_ms.state == HWS_VALUE;
}

void hws_anchor_arm (hws_engine_t *engine, hws_anchor_t *self)
{
    hws_ms_t at = HWS_NEVER;
    if (is_expiring (self)) {
        at = hws_time_min (
            at, hws_time_after (self->empty_at, (hws_ms_t) self->unattached_timeout_ms.value));
    }
    if (self->is_receiver_present) {
        at = hws_time_min (at, self->owner->heard_at +
                                   SILENT_INTERVALS * (hws_ms_t) self->heartbeat_interval_ms);
    } else {
        at = hws_time_min (at, hws_time_after (self->away_at, (hws_ms_t) self->orphan_ttl_ms));
    }
    hws_heap_set (&engine->deadlines, &self->deadline.timer, at);
}

void hws_anchor_set_timeout (const hws_engine_t *engine, hws_anchor_t *self, hws_optional_t asked)
{
    const hws_optional_t before = self->unattached_timeout_ms;
    if (asked.state != HWS_ABSENT && (asked.state != before.state || asked.value != before.value)) {
        self->unattached_timeout_ms = asked;
        self->empty_at = engine->now;
    }
}

void hws_anchor_fall_back (hws_anchor_t *self)
{
    for (hws_link_t *link = self->seats.head; link; link = link->next) {
        hws_seat_fall_back (hws_container_of (link, hws_seat_t, in_anchor));
    }
}

void hws_anchor_present (hws_engine_t *engine, hws_anchor_t *self)
{
    self->is_receiver_present = true;
    if (self->owner->state == HWS_PEER_AWAY) {
        hws_anchor_leave (engine, self); /* the request was read after the end of its connection */
        hws_waiting_retry (engine, self);
        return;
    }
    if (self->state == HWS_ANCHOR_ABANDONED) {
        self->state = HWS_ANCHOR_OPEN;
    }
    for (hws_link_t *link = self->seats.head; link && self->is_receiver_present;
         link = link->next) {
        hws_seat_replay (engine, hws_container_of (link, hws_seat_t, in_anchor));
    }
    hws_anchor_arm (engine, self);
    hws_waiting_retry (engine, self);
}

void hws_anchor_leave (hws_engine_t *engine, hws_anchor_t *self)
{
    if (!self->is_receiver_present) {
        return;
    }
    self->is_receiver_present = false;
    self->away_at = engine->now;
    if (self->state == HWS_ANCHOR_OPEN) {
        self->state = HWS_ANCHOR_ABANDONED;
    }
    hws_anchor_arm (engine, self);
}

/*  ---- The end ---- */

static void tell_closed (hws_engine_t *engine, const hws_anchor_t *self, uint16_t cause,
                         const char *reason)
{
    hws_control_t message = {.verb = HWS_VERB_ANCHOR_CLOSED};
    hws_anchor_closed_t *const it = &message.as.anchor_closed;
    it->handle = self->handle;
    hws_text_copy (it->code, sizeof it->code, hws_cause_word (cause));
    hws_text_copy (it->reason, sizeof it->reason, reason);
    it->detached = self->detached;
    it->finalized = self->finalized;
    it->dropped = self->dropped;
    it->cancelled = self->cancelled;
    hws_out_control (engine, self->owner, &message);
}

void hws_anchor_move (hws_engine_t *engine, hws_anchor_t *self, hws_peer_t *owner, uint64_t open_id,
                      hws_tombstone_t *tombstone)
{
    hws_anchor_leave (engine, self);
    if (self->owner == owner && self->open_id == open_id) {
        free (tombstone);
        return;
    }
    if (self->owner != owner) {
        tell_closed (engine, self, HWS_CAUSE_SUPERSEDED, "another receiver took it over");
    }
    hws_tombstone_of_owner (engine, self, tombstone);
    hws_map_remove (&engine->anchors_by_open, &self->by_open);
    hws_list_remove (&self->in_owner);
    self->owner->buffer_bytes -= self->buffer_bytes;
    self->owner->sender_count -= self->seats.count;
    self->owner = owner;
    self->open_id = open_id;
    owner->buffer_bytes += self->buffer_bytes;
    owner->sender_count += self->seats.count;
    hws_list_append (&owner->anchors, &self->in_owner);
    hws_map_insert (&engine->anchors_by_open, &self->by_open,
                    hws_bytes (self->open_key, sizeof self->open_key));
}

/*  Last word to the receiver, tombstones for late requests, and the anchor is gone.
 *  Attaches that wait for it are answered.  */
static void finish (hws_engine_t *engine, hws_anchor_t *self)
{
    if (self->is_receiver_present) {
        tell_closed (engine, self, self->cause, self->reason);
    }
    hws_link_t *link;
    while ((link = self->seats.head)) {
        hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_anchor);
        hws_tombstone_of_seat (engine, seat);
    }
    hws_tombstone_of_anchor (engine, self);
    engine->stats.closed++;
    hws_engine_log (engine, HWS_LOG_DEBUG, "event=closed anchor=%016llx cause=%s",
                    (unsigned long long) self->handle.lo, hws_cause_word (self->cause));
    hws_map_remove (&engine->anchors_by_handle, &self->by_handle);
    hws_map_remove (&engine->anchors_by_name, &self->by_name);
    hws_waiting_retry (engine, self);
    hws_anchor_free (engine, self);
}

static void set_cause (hws_anchor_t *self, uint16_t cause, const char *reason)
{
    self->cause = cause;
    free (self->reason);
    self->reason = reason && *reason ? strndup (reason, HWS_TEXT_SIZE_MAX) : NULL;
}

static void end_seats (hws_engine_t *engine, hws_anchor_t *self, bool override)
{
    for (hws_link_t *link = self->seats.head, *next; link; link = next) {
        next = link->next;
        hws_seat_end (engine, hws_container_of (link, hws_seat_t, in_anchor), HWS_RUN_CANCELLED,
                      self->cause, self->reason, override);
    }
}

void hws_anchor_close (hws_engine_t *engine, hws_anchor_t *self, uint16_t cause, const char *reason)
{
    set_cause (self, cause, reason);
    self->state = HWS_ANCHOR_CLOSING;
    end_seats (engine, self, true);
    finish (engine, self);
}

void hws_anchor_cancel (hws_engine_t *engine, hws_anchor_t *self, uint16_t cause,
                        const char *reason)
{
    if (self->state == HWS_ANCHOR_CLOSING && self->cause != HWS_CAUSE_FINALIZED) {
        return;
    }
    set_cause (self, cause, reason);
    self->state = HWS_ANCHOR_CLOSING;
    end_seats (engine, self, false);
    if (self->seats.count == 0) {
        finish (engine, self);
    }
}

void hws_anchor_finalize (hws_anchor_t *self)
{
    hws_assert (self->state != HWS_ANCHOR_CLOSING);

    self->cause = HWS_CAUSE_FINALIZED;
    self->state = HWS_ANCHOR_CLOSING;
}

void hws_anchor_reopen (hws_anchor_t *self)
{
    if (self->state == HWS_ANCHOR_CLOSING && self->cause == HWS_CAUSE_FINALIZED) {
        self->cause = HWS_CAUSE_NONE;
        self->state = self->is_receiver_present ? HWS_ANCHOR_OPEN : HWS_ANCHOR_ABANDONED;
    }
}

void hws_anchor_expire (hws_engine_t *engine, hws_anchor_t *self)
{
    const hws_ms_t now = engine->now;
    if (is_expiring (self) &&
        now - self->empty_at >= (hws_ms_t) self->unattached_timeout_ms.value) {
        set_cause (self, HWS_CAUSE_EXPIRED, "no sender attached in time");
        finish (engine, self);
        return;
    }
    const hws_ms_t silence = SILENT_INTERVALS * (hws_ms_t) self->heartbeat_interval_ms;
    if (self->is_receiver_present && now - self->owner->heard_at >= silence) {
        self->owner->owes_resync = true;
        hws_anchor_leave (engine, self);
    }
    if (!self->is_receiver_present && now - self->away_at >= (hws_ms_t) self->orphan_ttl_ms) {
        hws_anchor_close (engine, self, HWS_CAUSE_ABANDONED, "the receiver did not come back");
        return;
    }
    hws_anchor_arm (engine, self);
}

void hws_anchor_seat_gone (hws_engine_t *engine, hws_anchor_t *self)
{
    if (self->seats.count == 0) {
        self->empty_at = engine->now;
        if (self->state == HWS_ANCHOR_CLOSING) {
            finish (engine, self);
            return;
        }
    }
    hws_anchor_arm (engine, self);
    hws_window_serve (engine, self);
    if (hws_window_has_room (self)) {
        hws_waiting_retry (engine, self);
    }
}
