#include "broker/seat.h"

#include "base/text.h"
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/seat_part.h"
#include "broker/window.h"

#include <stdlib.h>

#define SILENT_INTERVALS 3 /* then a seat is dropped(heartbeat) */
#define GRACE_INTERVALS  4 /* an away seat has at least so many to come back */

/*  ---- Life ---- */

void hws_seat_link_up (hws_engine_t *engine, hws_seat_t *self)
{
    hws_list_append (&self->anchor->seats, &self->in_anchor);
    self->anchor->owner->sender_count++;
    hws_list_append (&self->peer->seats, &self->in_peer);
    if (self->peer != &engine->nobody ||
        !hws_seat_of_session (engine, self->peer, self->session_id)) {
        hws_map_insert (&engine->seats_by_session, &self->by_session,
                        hws_bytes (self->session_key, sizeof self->session_key));
    }
    hws_map_insert (&engine->seats_by_sender, &self->by_sender,
                    hws_bytes (self->sender_key, sizeof self->sender_key));
    hws_map_insert (&engine->seats_by_routing, &self->by_routing,
                    hws_bytes (&self->routing_session_id, sizeof self->routing_session_id));
}

static hws_ms_t silence_ms (const hws_seat_t *self)
{
    return SILENT_INTERVALS * (hws_ms_t) self->anchor->heartbeat_interval_ms;
}

/*  How long an away seat may stay away.  */
static hws_ms_t grace_ms (const hws_seat_t *self)
{
    const hws_ms_t grace = (hws_ms_t) self->anchor->reconnect_grace_ms;
    const hws_ms_t least = GRACE_INTERVALS * (hws_ms_t) self->anchor->heartbeat_interval_ms;
    return grace > least ? grace : least;
}

static hws_ms_t later (hws_ms_t a, hws_ms_t b)
{
    return a > b ? a : b;
}

/*  The deadline counts from what was heard last, of the whole client. An ending that its client
 *  does not claim is kept no longer than an away seat. A receiver that has opened again may have
 *  consumed the clean ending before; it is given the time to say so.  */
static hws_ms_t due_at (const hws_seat_t *self)
{
    const bool is_away = self->state == HWS_SEAT_AWAY || self->peer->state == HWS_PEER_AWAY;
    const hws_ms_t away_until = self->since_at + grace_ms (self);
    const hws_ms_t heard_until = later (self->peer->heard_at, self->since_at) + silence_ms (self);
    const hws_ms_t at = is_away              ? away_until
                        : self->is_unclaimed ? hws_time_min (away_until, heard_until)
                                             : heard_until;
    return self->state == HWS_SEAT_EXITING ? later (at, self->replayed_at + silence_ms (self)) : at;
}

void hws_seat_arm (hws_engine_t *engine, hws_seat_t *self)
{
    const bool is_judged = !self->is_dead && !self->is_ending_ours;
    hws_heap_set (&engine->deadlines, &self->deadline.timer, is_judged ? due_at (self) : HWS_NEVER);
}

void hws_seat_release_token (hws_engine_t *engine, hws_seat_t *self)
{
    if (self->extra) {
        hws_cancels_release (&engine->cancels, &self->extra->target.node);
    }
}

void hws_seat_free_extra (hws_engine_t *engine, hws_seat_t *self)
{
    hws_seat_release_token (engine, self);
    free (self->extra);
    self->extra = NULL;
}

int hws_seat_take_extra (hws_engine_t *engine, hws_seat_t *self, const hws_attach_t *request)
{
    const hws_handle_t handle = request->stream_cancel_handle;
    if (request->cancel_token == 0 && *request->label == '\0' && handle.hi == 0 && handle.lo == 0) {
        return 0;
    }
    self->extra = calloc (1, sizeof *self->extra);
    if (self->extra == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->extra->seat = self;
    self->extra->target.kind = HWS_TARGET_SEAT;
    self->extra->stream_cancel_handle = handle;
    memcpy (self->extra->label, request->label, sizeof self->extra->label);
    return hws_token_register (engine, &self->extra->target, request->cancel_token);
}

hws_seat_t *hws_seat_new (hws_engine_t *engine, hws_anchor_t *anchor, hws_peer_t *peer,
                          const hws_attach_t *request)
{
    hws_seat_t *const self = calloc (1, sizeof *self);
    if (self == NULL || hws_seat_take_extra (engine, self, request) != 0) {
        goto failed;
    }
    self->anchor = anchor;
    self->peer = peer;
    self->sender_id = request->has_resume ? request->resume.sender_id : anchor->next_sender_id;
    if (request->has_resume) {
        self->next_seq = self->high_seq = self->acked_seq = request->resume.acked_seq;
        self->next_bytes = self->high_bytes = self->acked_bytes = request->resume.acked_bytes;
    }
    self->session_id = request->session_id;
    self->routing_session_id = hws_seat_next_routing (engine);
    self->deadline.kind = HWS_DEADLINE_SEAT;
    self->since_at = self->replayed_at = engine->now;
    if (peer->state == HWS_PEER_AWAY) {
        self->state = HWS_SEAT_AWAY; /* the request was read after the end of its connection */
    }
    self->rewound_at = engine->now - HWS_REWIND_AGAIN_MS;
    if (anchor->is_receiver_present && hws_seat_announce (engine, self) != 0) {
        goto failed;
    }
    anchor->next_sender_id += !request->has_resume;
    anchor->live_count++;
    engine->seat_count++;
    engine->stats.attached++;
    hws_seat_link_up (engine, self);
    hws_window_begin (self);
    hws_seat_arm (engine, self);
    hws_engine_log (engine, HWS_LOG_DEBUG, "event=attached anchor=%016llx sender=%llu address=%s",
                    (unsigned long long) anchor->handle.lo, (unsigned long long) self->sender_id,
                    peer->network_address);
    return self;

failed:
    if (self) {
        hws_seat_free_extra (engine, self);
    }
    free (self);
    return NULL;
}

void hws_seat_take_out (hws_engine_t *engine, hws_seat_t *self)
{
    hws_window_end (self);
    if (self->peer->last_seat == self) {
        self->peer->last_seat = NULL;
    }
    hws_heap_clear (&engine->deadlines, &self->deadline.timer);
    hws_seat_free_extra (engine, self);
    hws_list_remove (&self->in_anchor);
    self->anchor->owner->sender_count--;
    hws_list_remove (&self->in_peer);
    hws_list_remove (&self->in_grants);
    hws_map_remove (&engine->seats_by_session, &self->by_session);
    hws_map_remove (&engine->seats_by_sender, &self->by_sender);
    hws_map_remove (&engine->seats_by_routing, &self->by_routing);
    free (self->reason);
}

void hws_seat_free (hws_engine_t *engine, hws_seat_t *self)
{
    hws_seat_take_out (engine, self);
    free (self);
}

void hws_seat_return (hws_engine_t *engine, hws_seat_t *self)
{
    if (self->peer->state == HWS_PEER_CONNECTED) {
        self->since_at = engine->now;
        if (self->state == HWS_SEAT_AWAY) {
            self->state = HWS_SEAT_ATTACHED;
        }
    }
    self->is_dead = self->is_unclaimed = false;
    self->has_gap = false;
    self->grant_flags = 0; /* the answer is a REWIND */
    hws_window_resume (self);
    hws_seat_arm (engine, self);
}

void hws_seat_leave (hws_engine_t *engine, hws_seat_t *self)
{
    self->since_at = engine->now;
    self->is_unclaimed = true;
    if (self->state == HWS_SEAT_ATTACHED) {
        self->state = HWS_SEAT_AWAY;
    }
    hws_window_suspend (self);
    hws_seat_arm (engine, self);
}

/*  Counts what of the run was never forwarded before. Positions in bytes do not depend
 *  on how the sender cuts its runs, so the difference is the new records' share.  */
static void count_records (hws_seat_t *self, const hws_run_t *run)
{
    const uint64_t count = self->next_seq - self->high_seq;
    const uint64_t headers = HWS_RECORD_HEADER_SIZE * count;
    const uint64_t bytes =
        self->next_bytes > self->high_bytes ? self->next_bytes - self->high_bytes : 0;
    self->part_bytes += bytes > headers ? bytes - headers : 0;
    if ((run->flags & HWS_RUN_MORE) == 0) {
        self->records += count;
        self->bytes += self->part_bytes;
        self->part_bytes = 0;
    }
}

void hws_seat_advance (hws_seat_t *self, const hws_run_t *run)
{
    self->has_gap = false;
    self->next_seq = run->first_seq + run->count;
    self->next_bytes += run->body.size;
    if (self->next_seq <= self->high_seq) {
        return;
    }
    if (run->type == HWS_RUN_RECORDS) {
        count_records (self, run);
    }
    self->high_seq = self->next_seq;
    if (self->next_bytes > self->high_bytes) { /* a liar may have cut its records anew */
        self->high_bytes = self->next_bytes;
    }
}

/*  ---- Endings ---- */

/*  Labels stay out of the log: they are the peers' own words.  */
static void log_ending (hws_engine_t *engine, const hws_seat_t *self)
{
    hws_engine_log (engine, HWS_LOG_DEBUG,
                    "event=ended anchor=%016llx sender=%llu ending=%s cause=%s records=%llu",
                    (unsigned long long) self->anchor->handle.lo,
                    (unsigned long long) self->sender_id, hws_ending_word (self->ending),
                    hws_cause_word (self->cause), (unsigned long long) self->records);
}

void hws_seat_count_ending (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint64_t by)
{
    uint64_t *const of_anchor[] = {&self->anchor->detached, &self->anchor->finalized,
                                   &self->anchor->dropped, &self->anchor->cancelled};
    uint64_t *const of_engine[] = {&engine->stats.detached, &engine->stats.finalized,
                                   &engine->stats.dropped, &engine->stats.cancelled};
    *of_anchor[type - HWS_RUN_DETACHED] += by;
    *of_engine[type - HWS_RUN_DETACHED] += by;
}

/*  The seat is no longer live: its floor and window are free for others, and its token is
 *  not its any more.  */
static void leave_room (hws_engine_t *engine, hws_seat_t *self)
{
    hws_seat_release_token (engine, self);
    if (self->state != HWS_SEAT_EXITING) {
        hws_window_exit (self);
        self->anchor->live_count--;
        self->state = HWS_SEAT_EXITING;
    }
    hws_window_settle (self);
}

/*  Endings take no memory beyond the run; when there is none even for that, the
 *  receiver is made to open again and gets it then.  */
void hws_seat_forward_ending (hws_engine_t *engine, hws_seat_t *self)
{
    if (!self->anchor->is_receiver_present) {
        return;
    }
    uint8_t body[HWS_ENDING_HEADER_SIZE + HWS_TEXT_SIZE_MAX];
    const hws_ending_t ending = {.cause = self->cause,
                                 .records = self->records,
                                 .bytes = self->bytes,
                                 .text = hws_bytes_of_text (self->reason ? self->reason : "")};
    hws_ending_put (body, &ending);
    const hws_run_t run = {.stream = self->routing_session_id,
                           .first_seq = self->next_seq,
                           .type = self->ending,
                           .body = {body, HWS_ENDING_HEADER_SIZE + ending.text.size}};
    hws_peer_t *const owner = self->anchor->owner;
    if (hws_out_reserve_run (engine, owner, run.body.size) == 0) {
        hws_out_add_run (owner, &run);
    } else {
        owner->owes_resync = true;
    }
}

static void tell_sender (hws_engine_t *engine, hws_seat_t *self)
{
    hws_control_t message = {.verb = HWS_VERB_STREAM_CANCEL};
    hws_stream_cancel_t *const it = &message.as.stream_cancel;
    it->session_id = self->session_id;
    if (self->extra) {
        it->stream_cancel_handle = self->extra->stream_cancel_handle;
    }
    it->next_seq = self->next_seq;
    hws_text_copy (it->ending, sizeof it->ending, hws_ending_word (self->ending));
    hws_text_copy (it->code, sizeof it->code, hws_cause_word (self->cause));
    hws_text_copy (it->reason, sizeof it->reason, self->reason);
    hws_out_control (engine, self->peer, &message);
}

void hws_seat_end (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint16_t cause,
                   const char *reason, bool override)
{
    if (self->state == HWS_SEAT_EXITING) {
        if (self->is_ending_ours || !override) {
            return;
        }
        hws_seat_count_ending (engine, self, self->ending, (uint64_t) -1);
    }
    self->ending = type;
    self->cause = cause;
    self->is_ending_ours = true;
    free (self->reason);
    self->reason = reason && *reason ? strndup (reason, HWS_TEXT_SIZE_MAX) : NULL;
    hws_seat_count_ending (engine, self, type, 1);
    leave_room (engine, self);
    hws_list_remove (&self->in_grants);
    hws_seat_arm (engine, self);
    hws_seat_forward_ending (engine, self);
    tell_sender (engine, self);
    log_ending (engine, self);
}

void hws_seat_exit (hws_engine_t *engine, hws_seat_t *self, uint8_t type, uint64_t seq)
{
    if (self->state == HWS_SEAT_EXITING) {
        return; /* the same ending again, after a rewind */
    }
    self->ending = self->own_ending = type;
    self->end_seq = seq;
    self->is_unclaimed = false;
    hws_seat_count_ending (engine, self, type, 1);
    leave_room (engine, self);
    hws_seat_arm (engine, self); /* one that was away is judged by its silence now */
    log_ending (engine, self);
    if (type == HWS_RUN_FINALIZED && self->anchor->state != HWS_ANCHOR_CLOSING) {
        hws_anchor_finalize (self->anchor); /* a receiver may name several that do so */
    }
}

void hws_seat_bury (hws_engine_t *engine, hws_seat_t *self)
{
    if (self->own_ending == HWS_RUN_FINALIZED && self->ending != HWS_RUN_FINALIZED) {
        hws_anchor_reopen (self->anchor);
    }
    hws_tombstone_of_seat (engine, self);
}

void hws_seat_gone (hws_engine_t *engine, hws_seat_t *self)
{
    hws_anchor_t *const anchor = self->anchor;
    hws_seat_bury (engine, self);
    hws_anchor_seat_gone (engine, anchor);
}

bool hws_seat_consume (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes)
{
    const uint64_t unacked_bytes =
        self->next_bytes > self->acked_bytes ? self->next_bytes - self->acked_bytes : 0;
    const bool is_more = seq > self->acked_seq;
    if (is_more) {
        self->acked_seq = seq;
        self->acked_bytes = bytes;
    }
    if (seq > self->next_seq) {
        self->next_seq = seq; /* it had been rewound, and the receiver had more */
        self->next_bytes = bytes;
    }
    if (self->state == HWS_SEAT_EXITING) {
        hws_window_settle (self);
        if (self->is_ending_ours) {
            return false;
        }
        if (self->acked_seq > self->end_seq) {
            hws_out_grant_last (engine, self);
            return true;
        }
    } else if (is_more) {
        hws_window_acked (engine, self, unacked_bytes);
    }
    hws_out_grant (engine, self);
    return false;
}

void hws_seat_acked (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes)
{
    hws_anchor_t *const anchor = self->anchor;
    const bool had_room = hws_window_has_room (anchor);
    if (hws_seat_consume (engine, self, seq, bytes)) {
        hws_seat_gone (engine, self);
        return;
    }
    hws_window_serve (engine, anchor);
    if (!had_room && hws_window_has_room (anchor)) {
        hws_waiting_retry (engine, anchor);
    }
}

void hws_seat_conclude (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes)
{
    if (seq > self->acked_seq) {
        self->acked_seq = seq;
        self->acked_bytes = bytes;
    }
    if (self->own_ending != 0 && seq > self->end_seq) {
        hws_seat_count_ending (engine, self, self->ending, (uint64_t) -1);
        hws_seat_count_ending (engine, self, self->own_ending, 1);
        self->ending = self->own_ending;
        self->cause = HWS_CAUSE_NONE;
        free (self->reason);
        self->reason = NULL;
    }
}

void hws_seat_ended (hws_engine_t *engine, hws_seat_t *self, uint64_t seq, uint64_t bytes)
{
    hws_seat_conclude (engine, self, seq, bytes);
    hws_seat_gone (engine, self);
}

/*  ---- Deadlines ---- */

/*  Our own ending replaces a clean one that the receiver cannot get any more.  */
static void replace_ending (hws_engine_t *engine, hws_seat_t *self)
{
    hws_seat_end (engine, self, HWS_RUN_DROPPED, HWS_CAUSE_TRANSPORT,
                  "gone before its ending was delivered", true);
}

void hws_seat_expire (hws_engine_t *engine, hws_seat_t *self)
{
    if (engine->now < due_at (self)) {
        hws_seat_arm (engine, self);
        return;
    }
    if (self->state == HWS_SEAT_EXITING) {
        self->is_dead = true;
        if (self->next_seq <= self->end_seq && self->anchor->is_receiver_present) {
            replace_ending (engine, self);
        }
        return;
    }
    if (self->state == HWS_SEAT_AWAY) {
        hws_seat_end (engine, self, HWS_RUN_DROPPED, HWS_CAUSE_TRANSPORT,
                      "its connection ended and it did not come back", false);
    } else {
        hws_seat_end (engine, self, HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT,
                      "silent for three heartbeat intervals", false);
    }
}
