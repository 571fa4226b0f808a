#include "tests/support/model_world.h"

#include "tests/support/model_hear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TURNS_MAX     100   /* at one point in time */
#define EXPLAIN_STEPS 20000 /* orders of what is due in one turn that are tried */

/*  Small limits, so that all of them are reached. The parity of the times is such that a
 *  seat's grace never ends in the millisecond in which its anchor's orphan TTL does: if
 *  nobody is there to hear it, nobody could say which came first (see model_play.c).  */
static hws_engine_options_t options (void)
{
    return (hws_engine_options_t){
        .broker_id = 0xb0b0,
        .epoch = 7,
        .secret = {1, 2},
        .key = {3, 4},
        .anchors = {.heartbeat_interval_ms = 1000,
                    .reconnect_grace_ms = 5001,
                    .unattached_timeout_ms = {.state = HWS_NULL},
                    .orphan_ttl_ms = 8000,
                    .max_senders = {.state = HWS_NULL},
                    .buffer_bytes = 65536,
                    .window_bytes_min = 1024,
                    .window_bytes_max = 16384,
                    .window_records = 24},
        .limits = {.heartbeat_min_ms = 100,
                   .peers = 5,
                   .anchors = 6,
                   .anchors_per_peer = 3,
                   .senders_per_anchor = 4,
                   .seats_per_peer = 5,
                   .exiting_seats = 5,
                   .waiting_attaches = 3,
                   .wait_ms = 10000,
                   .tombstones = 24,
                   .fronts = 2,
                   .cancel_orphans = 5,
                   .cancel_orphans_per_peer = 3,
                   .cancel_orphan_ttl_ms = 7000,
                   .cancel_sweep_ms = 1000,
                   .record_bytes = 20000,
                   .batch_bytes = 16384,
                   .buffer_bytes = {.state = HWS_VALUE, .value = 262144}},
    };
}

void model_world_begin (model_world_t *self)
{
    memset (self, 0, sizeof *self);
    const hws_engine_options_t it = options ();
    model_init (&self->model, &it);
    assert_int_equal (hws_engine_new (&self->engine, &it), 0);
    self->now = 1000000;
}

static void hear_all (model_world_t *self);

void model_world_end (model_world_t *self)
{
    hws_engine_abandon (self->engine);
    self->heard_count = self->granted_count = 0;
    hear_all (self);
    hws_engine_destroy (&self->engine);
    if (!self->has_failed) {
        assert_int_equal (self->payloads_held, 0);
    }
}

hws_address_t model_address (int client, uint32_t connection)
{
    hws_address_t address = {
        .front = model_front_of (connection), .size = 8, .id = {1, 2, 3, (uint8_t) client}};
    hws_put_u32 (address.id + 4, connection);
    return address;
}

/*  ---- What the engine says ---- */

static void hear_all (model_world_t *self)
{
    hws_engine_flush (self->engine);
    hws_effect_t effect;
    while (hws_engine_pop (self->engine, &effect)) {
        if (effect.kind == HWS_EFFECT_SEND) {
            const int client = effect.to.id[3];
            const uint32_t connection = hws_get_u32 (effect.to.id + 4);
            const hws_bytes_t bytes =
                hws_bytes (effect.data ? effect.data : effect.payload, effect.size);
            if (effect.verb) {
                model_hear_control (self, client, connection, effect.verb, bytes);
            } else {
                model_hear_batch (self, client, connection, bytes);
            }
            self->is_astray = self->is_astray || effect.to.front != model_front_of (connection);
        } else if (effect.kind == HWS_EFFECT_BIND || effect.kind == HWS_EFFECT_UNBIND) {
            model_hear_shell (self, effect.kind == HWS_EFFECT_BIND, effect.to.front);
        }
        self->payloads_held -= effect.payload != NULL;
        free (effect.data);
        free (effect.payload);
    }
}

/*  ---- Comparing ---- */

static bool may_be_forgotten (const model_t *model, int client)
{
    return client != MODEL_SHELL && model->clients[client].is_known &&
           model->clients[client].looked_at <= model->now;
}

/*  Whether what the model has said so far is what was heard first, by each client but those
 *  that may still be forgotten in this turn.  */
static bool is_beginning (const model_world_t *self, const model_t *model)
{
    size_t place[MODEL_CLIENTS + 1] = {0};
    for (size_t i = 0; i < model->line_count; i++) {
        const model_line_t *const line = &model->lines[i];
        size_t *const at = &place[line->client];
        if (may_be_forgotten (model, line->client)) {
            continue;
        }
        while (*at < self->heard_count && self->heard[*at].client != line->client) {
            (*at)++;
        }
        if (*at == self->heard_count || self->heard[*at].connection != line->connection ||
            strcmp (self->heard[*at].text, line->text) != 0) {
            return false;
        }
        (*at)++;
    }
    return true;
}

/*  The GRANTs that the model wants to see, of seats that are there and that are gone.  */
static size_t list_grants (const model_t *model, model_grant_t list[MODEL_SEATS + MODEL_GRANTS])
{
    size_t count = model->grant_count;
    memcpy (list, model->grants, count * sizeof *list);
    for (size_t i = 0; i < model->seat_count; i++) {
        const model_seat_t *const seat = &model->seats[i];
        const model_client_t *const client = &model->clients[seat->client];
        if (seat->is_granted && !client->is_away) {
            list[count++] = (model_grant_t){
                .client = seat->client,
                .connection = client->connection,
                .session_id = seat->session_id,
                .acked_seq = seat->acked_seq,
                .next_seq = seat->next_seq,
                .limit_seq = seat->limit_seq,
                .limit_bytes = seat->is_asked && !seat->is_asked_anew ? 0 : seat->limit_bytes,
                .is_rewind = seat->is_rewound,
                .is_return = seat->is_asked};
        }
    }
    return count;
}

static bool is_same_grant (const model_grant_t *a, const model_grant_t *b)
{
    return a->client == b->client && a->connection == b->connection &&
           a->session_id == b->session_id && a->acked_seq == b->acked_seq &&
           a->next_seq == b->next_seq && a->limit_seq == b->limit_seq &&
           a->limit_bytes == b->limit_bytes && a->is_rewind == b->is_rewind &&
           a->is_return == b->is_return;
}

static bool are_grants_same (const model_world_t *self, const model_t *model)
{
    model_grant_t wanted[MODEL_SEATS + MODEL_GRANTS];
    const size_t count = list_grants (model, wanted);
    if (count != self->granted_count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        size_t j = 0;
        while (j < count && !is_same_grant (&wanted[i], &self->granted[j])) {
            j++;
        }
        if (j == count) {
            return false;
        }
    }
    return true;
}

static bool are_counts_same (const model_world_t *self, const model_t *model)
{
    const hws_engine_counts_t a = model_counts (model);
    const hws_engine_counts_t b = hws_engine_counts (self->engine);
    const hws_engine_stats_t *const stats = hws_engine_stats (self->engine);
    return a.peers == b.peers && a.anchors == b.anchors && a.seats == b.seats &&
           a.waiting == b.waiting && a.dedicated == b.dedicated &&
           a.cancel_orphans == b.cancel_orphans && a.tombstones == b.tombstones &&
           stats->opened == model->opened && stats->closed == model->closed &&
           stats->attached == model->attached && stats->detached == model->ended[0] &&
           stats->finalized == model->ended[1] && stats->dropped == model->ended[2] &&
           stats->cancelled == model->ended[3] && stats->late_turns == model->late_turns;
}

static bool is_as_heard (const model_world_t *self, const model_t *model)
{
    return !self->is_astray && model->line_count == self->heard_count &&
           is_beginning (self, model) && are_grants_same (self, model) &&
           are_counts_same (self, model);
}

/*  ---- Saying what differs ---- */

__attribute__ ((format (printf, 2, 3))) static void report (model_world_t *self, const char *format,
                                                            ...)
{
    const size_t used = strlen (self->report);
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (self->report + used, sizeof self->report - used, format, arguments);
    va_end (arguments);
}

static void report_grants (model_world_t *self, const char *who, const model_grant_t *list,
                           size_t count)
{
    for (size_t i = 0; i < count; i++) {
        report (self,
                "  %s to client %d.%u: GRANT session=%" PRIu64 " acked=%" PRIu64 " next=%" PRIu64
                " limits=%" PRIu64 "/%" PRIu64 "%s%s\n",
                who, list[i].client, list[i].connection, list[i].session_id, list[i].acked_seq,
                list[i].next_seq, list[i].limit_seq, list[i].limit_bytes,
                list[i].is_rewind ? " REWIND" : "", list[i].is_return ? " RETURN" : "");
    }
}

static void report_counts (model_world_t *self, const char *who, hws_engine_counts_t counts,
                           const uint64_t ended[4], uint64_t late_turns)
{
    report (
        self,
        "  %s: %zu clients, %zu anchors (%zu dedicated), %zu seats, %zu waiting, %zu tombstones,"
        " %zu cancels; %" PRIu64 " detached, %" PRIu64 " finalized, %" PRIu64 " dropped, %" PRIu64
        " cancelled; %" PRIu64 " late turns\n",
        who, counts.peers, counts.anchors, counts.dedicated, counts.seats, counts.waiting,
        counts.tombstones, counts.cancel_orphans, ended[0], ended[1], ended[2], ended[3],
        late_turns);
}

static void report_all (model_world_t *self)
{
    self->has_failed = true;
    for (size_t i = 0; i < self->model.line_count; i++) {
        const model_line_t *const line = &self->model.lines[i];
        report (self, "  model  to client %d.%u: %s\n", line->client, line->connection, line->text);
    }
    for (size_t i = 0; i < self->heard_count; i++) {
        const model_line_t *const line = &self->heard[i];
        report (self, "  engine to client %d.%u: %s\n", line->client, line->connection, line->text);
    }
    model_grant_t wanted[MODEL_SEATS + MODEL_GRANTS];
    report_grants (self, "model ", wanted, list_grants (&self->model, wanted));
    report_grants (self, "engine", self->granted, self->granted_count);
    const hws_engine_stats_t *const stats = hws_engine_stats (self->engine);
    report_counts (self, "model ", model_counts (&self->model), self->model.ended,
                   self->model.late_turns);
    report_counts (
        self, "engine", hws_engine_counts (self->engine),
        (const uint64_t[]){stats->detached, stats->finalized, stats->dropped, stats->cancelled},
        stats->late_turns);
}

/*  The GRANTs are written; those to nobody are not owed any more.  */
static void forget_grants (model_world_t *self)
{
    for (size_t i = 0; i < self->model.seat_count; i++) {
        model_seat_t *const seat = &self->model.seats[i];
        if (seat->is_granted && !self->model.clients[seat->client].is_away) {
            seat->is_said = !seat->is_again || seat->is_asked;
        }
        seat->is_granted = seat->is_again = seat->is_rewound = seat->is_asked_anew = false;
    }
}

static void check_wake (model_world_t *self)
{
    const hws_ms_t wanted = model_wake_at (&self->model);
    const hws_ms_t got = hws_engine_wake_at (self->engine);
    if (got > wanted) {
        report (self, "  the engine sleeps %" PRId64 " ms too long\n",
                wanted == HWS_NEVER || got == HWS_NEVER ? -1 : got - wanted);
        report_all (self);
    }
}

static void begin_hearing (model_world_t *self)
{
    self->heard_count = self->granted_count = 0;
}

static void compare (model_world_t *self)
{
    hear_all (self);
    if (!is_as_heard (self, &self->model)) {
        report_all (self);
        return;
    }
    forget_grants (self);
    check_wake (self);
}

/*  ---- What happens ---- */

void model_world_control (model_world_t *self, int client, uint32_t connection,
                          const hws_control_t *message)
{
    uint8_t json[4096];
    size_t size = 0;
    assert_int_equal (hws_control_encode (message, json, sizeof json, &size), 0);
    hws_message_t envelope = {
        .frame_count = 2,
        .frame = {hws_bytes_of_text (hws_verb_word (message->verb)), hws_bytes (json, size)},
        .address = "",
        .listener = (uint32_t) client % 2};
    const hws_address_t from = model_address (client, connection);
    begin_hearing (self);
    assert_int_equal (hws_engine_recv (self->engine, self->now, &from, &envelope), 0);
    compare (self);
}

void model_world_batch (model_world_t *self, int client, uint32_t connection, const uint8_t *data,
                        size_t size)
{
    uint8_t *const payload = malloc (size);
    assert_non_null (payload);
    memcpy (payload, data, size);
    hws_message_t envelope = {.frame_count = 1,
                              .frame = {hws_bytes (payload, size)},
                              .data = payload,
                              .payload = payload,
                              .address = ""};
    const hws_address_t from = model_address (client, connection);
    begin_hearing (self);
    assert_int_equal (hws_engine_recv (self->engine, self->now, &from, &envelope), 0);
    self->payloads_held += envelope.payload == NULL;
    free (envelope.payload);
    compare (self);
}

void model_world_gone (model_world_t *self, int client, uint32_t connection)
{
    const hws_address_t address = model_address (client, connection);
    begin_hearing (self);
    hws_engine_peer_gone (self->engine, self->now, &address);
    compare (self);
}

void model_world_frames (model_world_t *self, int client, uint32_t connection, const char *first,
                         const char *json)
{
    uint8_t copy[32];
    hws_message_t envelope = {.frame_count = json ? 2 : 1,
                              .frame = {hws_bytes (copy, strlen (first))},
                              .data = copy,
                              .address = ""};
    memcpy (copy, first, strlen (first));
    if (json) {
        envelope.frame[1] = hws_bytes_of_text (json);
    }
    const hws_address_t from = model_address (client, connection);
    begin_hearing (self);
    assert_int_equal (hws_engine_recv (self->engine, self->now, &from, &envelope), 0);
    compare (self);
}

void model_world_drain (model_world_t *self)
{
    begin_hearing (self);
    hws_engine_drain (self->engine, self->now, "because it does");
    compare (self);
}

void model_world_bound (model_world_t *self, uint32_t front, bool is_bound)
{
    hws_endpoint_t endpoints[2];
    snprintf (endpoints[0], sizeof endpoints[0], "%u/0", front);
    snprintf (endpoints[1], sizeof endpoints[1], "%u/1", front);
    begin_hearing (self);
    hws_engine_bound (self->engine, self->now, front, is_bound ? 0 : HWS_ESYSTEM, endpoints, 2,
                      is_bound ? NULL : "no");
    compare (self);
}

/*  Finds an order of what is due in this turn that explains what was heard, and makes it
 *  the model's; `from` has acted up to here.  */
static bool explain (model_world_t *self, const model_t *from, size_t *steps)
{
    model_due_t due[MODEL_DUE];
    const size_t count = model_due (from, due);
    if (count == 0) {
        const bool is_it = is_as_heard (self, from);
        if (is_it) {
            self->model = *from;
        }
        return is_it;
    }
    model_t *const next = malloc (sizeof *next);
    assert_non_null (next);
    bool is_found = false;
    for (size_t i = 0; i < count && !is_found && *steps > 0; i++) {
        (*steps)--;
        *next = *from;
        model_act (next, &due[i]);
        is_found = is_beginning (self, next) && explain (self, next, steps);
    }
    free (next);
    return is_found;
}

void model_world_turn (model_world_t *self)
{
    model_due_t due[MODEL_DUE];
    model_turn (&self->model, self->now);
    begin_hearing (self);
    hws_engine_expire (self->engine, self->now);
    hear_all (self);
    if (model_due (&self->model, due) > 1) {
        model_t *const before = malloc (sizeof *before);
        assert_non_null (before);
        *before = self->model;
        size_t steps = EXPLAIN_STEPS;
        if (explain (self, before, &steps)) {
            forget_grants (self);
            check_wake (self);
            free (before);
            return;
        }
        free (before);
    }
    while (model_due (&self->model, due) > 0) {
        model_act (&self->model, &due[0]);
    }
    if (!is_as_heard (self, &self->model)) {
        report_all (self);
        return;
    }
    forget_grants (self);
    check_wake (self);
}

hws_ms_t model_world_wake_at (const model_world_t *self)
{
    return hws_time_min (model_wake_at (&self->model), hws_engine_wake_at (self->engine));
}

void model_world_settle (model_world_t *self)
{
    for (int turns = 0; !self->has_failed && model_world_wake_at (self) <= self->now; turns++) {
        model_world_turn (self);
        if (!self->has_failed && turns > TURNS_MAX) {
            report (self, "  the engine wakes again and again\n");
            report_all (self);
        }
    }
}
