/*  Seats whose receiver or sender comes again (docs/protocol.md, "OPEN", "ATTACH").
 *
 *  A receiver that opens again hears of every seat anew. With positions the seats go on where it
 *  stands; in another life of the broker they are made of them, and belong to nobody until their
 *  clients attach.
 */
#include "broker/seat_part.h"

#include "base/assert.h"
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/window.h"

/*  ---- Said again ---- */

/*  A seat of nobody goes by its key: whose it was is not known here.  */
int hws_seat_announce (hws_engine_t *engine, hws_seat_t *self)
{
    const bool is_nobodys = self->peer == &engine->nobody;
    hws_attached_t attached = {
        .handle = self->anchor->handle,
        .sender_id = self->sender_id,
        .session_id = is_nobodys ? 0 : self->session_id,
        .seat_key = is_nobodys ? self->session_id
                               : hws_credential_seat_key (engine->options.key,
                                                          &self->peer->client_id, self->session_id),
        .next_bytes = self->next_bytes};
    if (self->extra) {
        memcpy (attached.label, self->extra->label, sizeof attached.label);
    }
    memcpy (attached.address, self->peer->network_address, sizeof attached.address);
    size_t size = 0;
    const int rc = hws_attached_encode (&attached, engine->scratch, HWS_CONTROL_SIZE_MAX, &size);
    if (rc != 0 || hws_out_reserve_run (engine, self->anchor->owner, size) != 0) {
        return HWS_ENO_MEMORY;
    }
    const hws_run_t run = {.stream = self->routing_session_id,
                           .first_seq = self->next_seq,
                           .type = HWS_RUN_ATTACHED,
                           .body = {engine->scratch, size}};
    hws_out_add_run (self->anchor->owner, &run);
    return 0;
}

void hws_seat_rewind (hws_engine_t *engine, hws_seat_t *self)
{
    self->has_gap = true;
    self->rewound_at = engine->now;
    self->grant_flags |= HWS_GRANT_REWIND;
    hws_out_grant (engine, self);
}

void hws_seat_fall_back (hws_seat_t *self)
{
    self->next_seq = self->acked_seq;
    self->next_bytes = self->acked_bytes;
    self->is_listed = false;
}

void hws_seat_replay (hws_engine_t *engine, hws_seat_t *self)
{
    if (hws_seat_announce (engine, self) != 0) {
        self->anchor->owner->owes_resync = true;
        hws_anchor_leave (engine, self->anchor);
        return;
    }
    if (self->is_ending_ours) {
        hws_seat_forward_ending (engine, self);
        return;
    }
    self->replayed_at = engine->now;
    self->is_dead = false; /* judged anew, when the receiver had time to acknowledge */
    hws_seat_arm (engine, self);
    hws_seat_rewind (engine, self);
}

/*  ---- Positions ---- */

static bool is_over (const hws_position_t *position)
{
    return (position->flags & HWS_POSITION_CONSUMED) != 0;
}

static bool is_own_type (uint8_t type)
{
    return type == HWS_RUN_DETACHED || type == HWS_RUN_FINALIZED;
}

/*  Whether it can be true of this seat.  */
static bool is_true_of (const hws_seat_t *self, const hws_position_t *position)
{
    return !self->is_listed && position->next_seq <= self->high_seq &&
           position->next_bytes <= self->high_bytes &&
           (position->acked_seq < self->acked_seq || position->acked_bytes >= self->acked_bytes);
}

/*  The receiver has consumed its ending. Returns 0, and the seat is gone; or HWS_EPROTOCOL when
 *  that cannot be.  */
static int place_over (hws_engine_t *engine, hws_seat_t *self, const hws_position_t *position)
{
    const bool is_own_due = self->own_ending != 0 && position->acked_seq > self->end_seq;
    if (self->state != HWS_SEAT_EXITING && is_own_type (position->type)) {
        return HWS_EPROTOCOL; /* it was not forwarded */
    }
    if (self->state == HWS_SEAT_EXITING && !self->is_ending_ours && !is_own_due) {
        return HWS_EPROTOCOL;
    }
    if (self->state != HWS_SEAT_EXITING) {
        hws_seat_end (engine, self, position->type, position->cause, NULL, false);
    }
    if (self->is_ending_ours) {
        hws_seat_conclude (engine, self, position->acked_seq, position->acked_bytes);
        hws_seat_bury (engine, self);
    } else if (hws_seat_consume (engine, self, position->acked_seq, position->acked_bytes)) {
        hws_seat_bury (engine, self);
    }
    return 0;
}

int hws_seat_place (hws_engine_t *engine, hws_seat_t *self, const hws_position_t *position)
{
    if (!is_true_of (self, position)) {
        return HWS_EPROTOCOL;
    }
    if (is_over (position)) {
        return place_over (engine, self, position);
    }
    self->is_listed = true;
    if (position->next_seq > self->next_seq) {
        self->next_seq = position->next_seq;
        self->next_bytes = position->next_bytes;
    }
    if (self->next_bytes < self->acked_bytes) {
        self->next_bytes = self->acked_bytes; /* a liar's */
    }
    /* A receiver that throws a stream away has passed its ending without keeping it. */
    const bool has_ending = (position->flags & HWS_POSITION_ENDED) != 0;
    if (self->own_ending != 0 && !has_ending && self->next_seq > self->end_seq &&
        position->acked_seq <= self->end_seq) {
        self->next_seq = self->end_seq;
    }
    if (hws_seat_consume (engine, self, position->acked_seq, position->acked_bytes)) {
        hws_seat_bury (engine, self);
    }
    return 0;
}

/*  ---- Another life ---- */

/*  The bytes that may be on their way to the receiver or in it; its own ending is in no budget.  */
static uint64_t held_bytes (const hws_position_t *position)
{
    const uint64_t bytes = position->next_bytes - position->acked_bytes;
    const bool has_own = (position->flags & HWS_POSITION_ENDED) && is_own_type (position->type);
    const uint64_t ending = has_own ? HWS_ENDING_HEADER_SIZE : 0;
    return bytes > ending ? bytes - ending : 0;
}

/*  Gives it the ending that it has at its receiver. One that cannot live, for it takes more than
 *  its anchor has, is ended here; but not for max_senders: it had its seat, and another had one
 *  beside it that had ended, of which the receiver was not told yet.  */
static void restore_ending (hws_engine_t *engine, hws_seat_t *self, const hws_position_t *position,
                            uint64_t bytes)
{
    const bool has_ended = (position->flags & HWS_POSITION_ENDED) != 0;
    self->state = HWS_SEAT_EXITING;
    self->ending = has_ended ? position->type : HWS_RUN_DROPPED;
    self->cause = has_ended ? position->cause : HWS_CAUSE_PROTOCOL;
    if (self->ending == HWS_RUN_FINALIZED && !hws_anchor_is_exclusive (self->anchor)) {
        self->ending = HWS_RUN_DETACHED;
    }
    if (is_own_type (self->ending)) {
        self->own_ending = self->ending;
        self->cause = HWS_CAUSE_NONE;
        self->end_seq = self->next_seq - 1;
    } else {
        self->is_ending_ours = true;
    }
    self->limit_seq = self->next_seq; /* it may be rewound */
    self->limit_bytes = self->acked_bytes;
    if (hws_window_fits (self->anchor, bytes, false)) {
        self->limit_bytes += bytes;
    }
    hws_window_settle (self);
    hws_seat_count_ending (engine, self, self->ending, 1);
    if (self->ending == HWS_RUN_FINALIZED && self->anchor->state != HWS_ANCHOR_CLOSING) {
        hws_anchor_finalize (self->anchor);
    }
}

void hws_seat_restore (hws_engine_t *engine, hws_anchor_t *anchor, hws_seat_t *self,
                       const hws_position_t *position)
{
    const uint64_t bytes = held_bytes (position);
    *self = (hws_seat_t){.anchor = anchor,
                         .peer = &engine->nobody,
                         .sender_id = position->sender_id,
                         .session_id = position->seat_key,
                         .deadline.kind = HWS_DEADLINE_SEAT,
                         .since_at = engine->now,
                         .replayed_at = engine->now,
                         .rewound_at = engine->now - HWS_REWIND_AGAIN_MS,
                         .state = HWS_SEAT_AWAY,
                         .next_seq = position->next_seq,
                         .next_bytes = position->next_bytes,
                         .high_seq = position->next_seq,
                         .high_bytes = position->next_bytes,
                         .acked_seq = position->acked_seq,
                         .acked_bytes = position->acked_bytes};
    self->routing_session_id = hws_seat_next_routing (engine);
    engine->seat_count++;
    engine->stats.attached++;
    hws_seat_link_up (engine, self);
    if ((position->flags & HWS_POSITION_ENDED) || !hws_window_fits (anchor, bytes, true)) {
        restore_ending (engine, self, position, bytes);
    } else {
        anchor->live_count++;
        hws_window_restore (self);
    }
    hws_seat_arm (engine, self);
}

int hws_seat_take (hws_engine_t *engine, hws_seat_t *self, hws_peer_t *peer,
                   const hws_attach_t *request)
{
    hws_assert (self->peer == &engine->nobody);

    if (hws_seat_take_extra (engine, self, request) != 0) {
        hws_seat_free_extra (engine, self);
        return HWS_ENO_MEMORY;
    }
    hws_list_remove (&self->in_peer);
    hws_map_remove (&engine->seats_by_session, &self->by_session);
    self->peer = peer;
    self->session_id = request->session_id;
    hws_list_append (&peer->seats, &self->in_peer);
    hws_map_insert (&engine->seats_by_session, &self->by_session,
                    hws_bytes (self->session_key, sizeof self->session_key));
    if (self->state == HWS_SEAT_EXITING) {
        hws_seat_release_token (engine, self);
    }
    return 0;
}
