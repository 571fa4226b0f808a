#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SILENT_INTERVALS 3
#define GRACE_INTERVALS  4
#define REWIND_AGAIN_MS  200
#define UNKNOWN_MS       1000

/*  ---- Seats ---- */

model_seat_t *model_seat (model_t *self, int client, uint64_t session_id)
{
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].client == client && self->seats[i].session_id == session_id) {
            return &self->seats[i];
        }
    }
    return NULL;
}

model_seat_t *model_seat_of_sender (model_t *self, uint32_t anchor, uint64_t sender_id)
{
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].anchor == anchor && self->seats[i].sender_id == sender_id) {
            return &self->seats[i];
        }
    }
    return NULL;
}

size_t model_seats_of (const model_t *self, uint32_t anchor, bool only_live)
{
    size_t count = 0;
    for (size_t i = 0; i < self->seat_count; i++) {
        const model_seat_t *const seat = &self->seats[i];
        count += seat->anchor == anchor && !(only_live && seat->has_ended);
    }
    return count;
}

static void say_run (model_t *self, const model_seat_t *seat, const hws_run_t *run,
                     const char *body)
{
    model_say (self, model_anchor (self, seat->anchor)->owner,
               "run %" PRIx64 " type=%u first=%" PRIu64 " count=%u flags=%x %s", seat->routing_id,
               run->type, run->first_seq, run->count, run->flags, body);
}

void model_announce (model_t *self, const model_seat_t *seat)
{
    char body[MODEL_TEXT];
    snprintf (body, sizeof body, "anchor=%u sender=%" PRIu64 " session=%" PRIu64 " label='%s'",
              seat->anchor, seat->sender_id, seat->session_id, seat->label);
    say_run (self, seat, &(hws_run_t){.type = HWS_RUN_ATTACHED, .first_seq = seat->next_seq}, body);
}

void model_rewind (model_t *self, model_seat_t *seat)
{
    seat->has_gap = true;
    seat->rewound_at = self->now;
    seat->is_rewound = true;
    model_grant (seat);
}

model_tombstone_t model_tombstone_for (const model_seat_t *seat)
{
    model_tombstone_t it = {.client = seat->client,
                            .number = seat->session_id,
                            .anchor = seat->anchor,
                            .sender_id = seat->sender_id,
                            .acked_seq = seat->acked_seq,
                            .acked_bytes = seat->acked_bytes,
                            .ending = seat->ending,
                            .cause = seat->cause};
    memcpy (it.reason, seat->reason, sizeof it.reason);
    return it;
}

void model_seat_remove (model_t *self, model_seat_t *seat)
{
    const size_t place = (size_t) (seat - self->seats);
    self->seat_count--;
    memmove (&self->seats[place], &self->seats[place + 1],
             (self->seat_count - place) * sizeof *self->seats);
}

static void seat_gone (model_t *self, model_seat_t *seat)
{
    const uint32_t anchor = seat->anchor;
    if (seat->own_ending == HWS_RUN_FINALIZED && seat->ending != HWS_RUN_FINALIZED) {
        model_anchor_reopen (model_anchor (self, anchor));
    }
    model_remember (self, model_tombstone_for (seat));
    model_seat_remove (self, seat);
    model_anchor_left (self, anchor);
}

/*  ---- Endings ---- */

static void forward_ending (model_t *self, const model_seat_t *seat)
{
    if (model_anchor (self, seat->anchor)->is_present) {
        char body[MODEL_TEXT];
        snprintf (body, sizeof body, "%s records=%" PRIu64 " bytes=%" PRIu64 " reason '%s'",
                  hws_cause_word ((uint16_t) seat->cause), seat->records, seat->bytes,
                  seat->reason);
        say_run (self, seat, &(hws_run_t){.type = seat->ending, .first_seq = seat->next_seq}, body);
    }
}

static uint64_t *ended_of (uint64_t counts[4], uint8_t type)
{
    return &counts[type - HWS_RUN_DETACHED];
}

static void count_ending (model_t *self, const model_seat_t *seat, uint64_t by)
{
    *ended_of (self->ended, seat->ending) += by;
    *ended_of (model_anchor (self, seat->anchor)->ended, seat->ending) += by;
}

void model_end (model_t *self, model_seat_t *seat, uint8_t type, hws_cause_t cause,
                const char *reason, bool is_override)
{
    if (seat->is_ending_ours || (seat->has_ended && !is_override)) {
        return;
    }
    if (seat->has_ended) {
        count_ending (self, seat, (uint64_t) -1);
    }
    seat->has_ended = seat->is_ending_ours = true;
    seat->ending = type;
    seat->cause = cause;
    snprintf (seat->reason, sizeof seat->reason, "%s", reason);
    count_ending (self, seat, 1);
    seat->want_bytes = seat->use_number = 0;
    seat->is_granted = seat->is_said = seat->is_asked = false;
    forward_ending (self, seat);
    model_say (self, seat->client,
               "STREAM_CANCEL session=%" PRIu64 " handle=%" PRIx64 " %s(%s) next=%" PRIu64
               " reason '%s'",
               seat->session_id, seat->session_id, hws_ending_word (type),
               hws_cause_word ((uint16_t) cause), seat->next_seq, seat->reason);
}

hws_ms_t model_seat_due (const model_t *self, const model_seat_t *seat)
{
    const model_client_t *const client = &self->clients[seat->client];
    const model_anchor_t *const anchor = model_anchor ((model_t *) (uintptr_t) self, seat->anchor);
    const hws_ms_t interval = (hws_ms_t) anchor->heartbeat_interval_ms;
    const hws_ms_t silence = SILENT_INTERVALS * interval;
    if (seat->is_dead || seat->is_ending_ours) {
        return HWS_NEVER;
    }
    const hws_ms_t grace = (hws_ms_t) anchor->reconnect_grace_ms;
    const hws_ms_t least = GRACE_INTERVALS * interval;
    const hws_ms_t away_until = seat->away_at + (grace > least ? grace : least);
    hws_ms_t at;
    if (client->is_away || (seat->is_away && !seat->has_ended)) {
        at = away_until;
    } else {
        at = seat->attached_at > client->heard_at ? seat->attached_at : client->heard_at;
        at += silence;
        if (seat->is_unclaimed && seat->has_ended && at > away_until) {
            at = away_until;
        }
    }
    if (seat->has_ended && at < seat->replayed_at + silence) {
        at = seat->replayed_at + silence;
    }
    return at;
}

void model_seat_expire (model_t *self, model_seat_t *seat)
{
    if (!seat->has_ended) {
        const bool is_away = seat->is_away || self->clients[seat->client].is_away;
        model_end (self, seat, HWS_RUN_DROPPED, is_away ? HWS_CAUSE_TRANSPORT : HWS_CAUSE_HEARTBEAT,
                   "", false);
        return;
    }
    /* The client is dead. A clean ending that the receiver has to get again is lost.  */
    seat->is_dead = true;
    if (seat->next_seq <= seat->end_seq && model_anchor (self, seat->anchor)->is_present) {
        model_end (self, seat, HWS_RUN_DROPPED, HWS_CAUSE_TRANSPORT, "", true);
    }
}

void model_replay (model_t *self, model_seat_t *seat)
{
    seat->next_seq = seat->acked_seq;
    seat->next_bytes = seat->acked_bytes;
    model_announce (self, seat);
    if (seat->is_ending_ours) {
        forward_ending (self, seat);
        return;
    }
    seat->replayed_at = self->now;
    seat->is_dead = false;
    model_rewind (self, seat);
}

/*  ---- DATA ---- */

/*  Data of a stream that is not the client's: said once a second.  */
static void say_unknown (model_t *self, int number, uint64_t session_id)
{
    model_client_t *const client = &self->clients[number];
    if (self->now - client->unknown_at < UNKNOWN_MS) {
        return;
    }
    client->unknown_at = self->now;
    if (!model_is_waiting (self, number, session_id) && !client->is_away) {
        model_say_to (self, MODEL_SHELL, client->connection,
                      "client %d: STREAM_CANCEL session=%" PRIu64 " unknown_stream", number,
                      session_id);
    }
}

static void violate (model_t *self, model_seat_t *seat)
{
    model_end (self, seat, HWS_RUN_DROPPED, HWS_CAUSE_PROTOCOL, "",
               seat->next_seq <= seat->end_seq);
}

/*  Counts what was never forwarded before: records, and the payload of whole ones.  */
static void count_records (model_seat_t *seat, const hws_run_t *run)
{
    const uint64_t count = seat->next_seq - seat->high_seq;
    seat->part_bytes += seat->next_bytes - seat->high_bytes - HWS_RECORD_HEADER_SIZE * count;
    if ((run->flags & HWS_RUN_MORE) == 0) {
        seat->records += count;
        seat->bytes += seat->part_bytes;
        seat->part_bytes = 0;
    }
}

static void forward (model_t *self, model_seat_t *seat, const hws_run_t *run, const char *body)
{
    say_run (self, seat, run, body);
    seat->has_gap = false;
    seat->next_seq += run->count;
    seat->next_bytes += run->body.size;
    if (seat->next_seq > seat->high_seq) {
        if (run->type == HWS_RUN_RECORDS) {
            count_records (seat, run);
        }
        seat->high_seq = seat->next_seq;
        seat->high_bytes = seat->next_bytes;
    }
    if (!hws_run_is_ending (run->type)) {
        model_window_used (self, seat);
    } else if (!seat->has_ended) {
        seat->has_ended = true;
        seat->ending = seat->own_ending = run->type;
        seat->is_unclaimed = false;
        seat->end_seq = run->first_seq;
        seat->want_bytes = seat->use_number = 0;
        seat->is_asked = false;
        count_ending (self, seat, 1);
        if (run->type == HWS_RUN_FINALIZED) {
            model_anchor_finalize (model_anchor (self, seat->anchor));
        }
    }
}

void model_run (model_t *self, int client, const hws_run_t *sent, bool is_good, const char *body)
{
    hws_run_t it = *sent;
    const hws_run_t *const run = &it;
    if (run->type == HWS_RUN_VOID) {
        return;
    }
    model_seat_t *const seat = model_seat (self, client, run->stream);
    if (seat == NULL) {
        say_unknown (self, client, run->stream);
        return;
    }
    const bool is_shared = !model_anchor (self, seat->anchor)->is_exclusive;
    if (run->type == HWS_RUN_FINALIZED && is_shared) {
        it.type = HWS_RUN_DETACHED;
    }
    const uint64_t end = run->first_seq + run->count;
    const bool is_ending = hws_run_is_ending (run->type);
    if (seat->is_ending_ours || !model_anchor (self, seat->anchor)->is_present) {
        return;
    }
    if (!is_good) {
        violate (self, seat);
    } else if (end <= seat->next_seq) {
        return; /* has been seen */
    } else if (run->first_seq != seat->next_seq) {
        if (!seat->has_gap || self->now - seat->rewound_at >= REWIND_AGAIN_MS) {
            model_rewind (self, seat);
        }
    } else if (seat->has_ended &&
               (is_ending ? run->first_seq != seat->end_seq || run->type != seat->own_ending
                          : end > seat->end_seq)) {
        violate (self, seat);
    } else if (!is_ending &&
               (end > seat->limit_seq || seat->next_bytes + run->body.size > seat->limit_bytes)) {
        violate (self, seat);
    } else {
        forward (self, seat, run, body);
    }
}

/*  ---- ACK ---- */

static void say_last_grant (model_t *self, const model_seat_t *seat)
{
    const model_client_t *const client = &self->clients[seat->client];
    if (client->is_away) {
        return;
    }
    assert_true (self->grant_count < MODEL_GRANTS);
    self->grants[self->grant_count++] = (model_grant_t){.client = seat->client,
                                                        .connection = client->connection,
                                                        .session_id = seat->session_id,
                                                        .acked_seq = seat->acked_seq,
                                                        .next_seq = seat->next_seq,
                                                        .limit_seq = seat->limit_seq,
                                                        .limit_bytes = seat->limit_bytes,
                                                        .is_rewind = seat->is_rewound};
}

static void consume (model_t *self, model_seat_t *seat, uint64_t seq, uint64_t bytes)
{
    const uint32_t count = seat->anchor;
    model_anchor_t *const anchor = model_anchor (self, count);
    const bool had_room = model_has_room (self, anchor);
    const uint64_t unacked_bytes = seat->next_bytes - seat->acked_bytes;
    const bool is_more = seq > seat->acked_seq;
    if (is_more) {
        seat->acked_seq = seq;
        seat->acked_bytes = bytes;
    }
    if (seq > seat->next_seq) { /* it was rewound, and the receiver had more */
        seat->next_seq = seq;
        seat->next_bytes = bytes;
    }
    if (seat->has_ended && !seat->is_ending_ours && seat->acked_seq > seat->end_seq) {
        say_last_grant (self, seat);
        seat_gone (self, seat);
        return;
    }
    if (!seat->has_ended && is_more) {
        model_window_acked (self, seat, unacked_bytes);
    }
    if (!seat->is_ending_ours) {
        model_grant (seat);
    }
    model_serve (self, anchor);
    if (!had_room && model_has_room (self, anchor)) {
        model_retry (self, count, anchor->name);
    }
}

bool model_ack (model_t *self, int client, const hws_ack_t *ack)
{
    model_seat_t *seat = NULL;
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].routing_id == ack->stream) {
            seat = &self->seats[i];
        }
    }
    if (seat == NULL || model_anchor (self, seat->anchor)->owner != client) {
        return true;
    }
    const bool is_end = (ack->flags & HWS_ACK_ENDED) != 0;
    if (ack->acked_seq > seat->high_seq || ack->acked_bytes > seat->high_bytes ||
        (is_end && !seat->has_ended) ||
        (ack->acked_seq >= seat->acked_seq && ack->acked_bytes < seat->acked_bytes)) {
        return false;
    }
    if (!is_end || !seat->is_ending_ours) {
        consume (self, seat, ack->acked_seq, ack->acked_bytes);
        return true;
    }
    if (ack->acked_seq > seat->acked_seq) {
        seat->acked_seq = ack->acked_seq;
        seat->acked_bytes = ack->acked_bytes;
    }
    if (seat->own_ending && ack->acked_seq > seat->end_seq) {
        count_ending (self, seat, (uint64_t) -1); /* it had consumed the sender's own before */
        seat->ending = seat->own_ending;
        seat->cause = HWS_CAUSE_NONE;
        seat->reason[0] = '\0';
        count_ending (self, seat, 1);
    }
    seat_gone (self, seat);
    return true;
}
