#include "tests/support/model_play_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define BEAT_MS 330 /* how often who is beating says PING; three silent intervals are more */

void play_begin (play_t *self)
{
    memset (self, 0, sizeof *self);
    model_world_begin (&self->world);
}

void play_end (play_t *self)
{
    model_world_end (&self->world);
}

/*  ---- What clients know ---- */

/*  Learns what there is that was not there before.  */
static void learn (play_t *self)
{
    const model_t *const model = &self->world.model;
    for (size_t i = 0; i < model->anchor_count; i++) {
        const model_anchor_t *const it = &model->anchors[i];
        if (it->count > self->last_anchor) {
            self->last_anchor = it->count;
            self->anchors[self->anchor_count++ % PLAY_KNOWN] =
                (known_anchor_t){it->owner, it->open_id, it->count};
        }
    }
    for (size_t i = 0; i < model->seat_count; i++) {
        const model_seat_t *const it = &model->seats[i];
        if (it->routing_id > self->last_routing_id) {
            self->last_routing_id = it->routing_id;
            self->streams[self->stream_count++ % PLAY_KNOWN] = (known_stream_t){
                it->client, it->session_id, it->anchor, it->sender_id, it->routing_id};
        }
    }
}

static uint32_t count_of (const play_t *self, int owner, uint64_t open_id)
{
    for (size_t i = self->anchor_count; i > 0 && i + PLAY_KNOWN > self->anchor_count; i--) {
        const known_anchor_t *const it = &self->anchors[(i - 1) % PLAY_KNOWN];
        if (it->owner == owner && it->open_id == open_id) {
            return it->count;
        }
    }
    return 99999;
}

known_stream_t play_stream_of (const play_t *self, int client, uint64_t session_id)
{
    for (size_t i = self->stream_count; i > 0 && i + PLAY_KNOWN > self->stream_count; i--) {
        const known_stream_t *const it = &self->streams[(i - 1) % PLAY_KNOWN];
        if (it->client == client && it->session_id == session_id) {
            return *it;
        }
    }
    return (known_stream_t){client, session_id, 99999, 999, 999};
}

static hws_handle_t handle_of (const play_t *self, uint32_t count, int how)
{
    hws_handle_t handle = model_handle (&self->world.model, count);
    switch (how) {
    case HANDLE_OTHER_BROKER:
        handle.hi++;
        break;
    case HANDLE_OTHER_KIND:
        handle.lo ^= UINT64_C (1) << 63;
        break;
    case HANDLE_NEVER_GIVEN:
        handle.lo += 100000;
        break;
    case HANDLE_OLDER_EPOCH:
        handle.lo -= UINT64_C (1) << 32;
        break;
    default:
        break;
    }
    return handle;
}

static void name_of (int number, char text[MODEL_WORD])
{
    *text = '\0';
    if (number >= 0) {
        snprintf (text, MODEL_WORD, "anchor %d", number);
    }
}

/*  ---- Messages ---- */

/*  A request's own number.  */
static uint64_t id_of (play_t *self, const op_t *op, hws_control_t *message)
{
    message->has_id = op->has_id;
    message->id = op->has_id ? ++self->ids[op->client] : 0;
    return message->id;
}

/*  Begins a turn with a message of the client; false if the broker makes nothing of it.  */
bool play_begin_message (play_t *self, int client)
{
    model_turn (&self->world.model, self->world.now);
    return model_message (&self->world.model, client, self->connections[client]);
}

static void send_control (play_t *self, int client, const hws_control_t *message)
{
    model_world_control (&self->world, client, self->connections[client], message);
}

static void play_hello (play_t *self, const op_t *op)
{
    model_t *const model = &self->world.model;
    hws_control_t message = {.verb = HWS_VERB_HELLO, .as.hello = {.protocol = 1}};
    message.as.hello.client_id.bytes[3] = (uint8_t) (op->client + 1);
    if (op->how == HELLO_WRONG_PROTOCOL) {
        message.as.hello.protocol = 2;
    }
    if (op->how == HELLO_OTHER_CLIENT &&
        model_hears (model, op->client, self->connections[op->client])) {
        message.as.hello.client_id.bytes[3] = 0xff;
        model_turn (model, self->world.now);
        model_fault (model, op->client);
        send_control (self, op->client, &message);
        return;
    }
    if (op->how == HELLO_NEW || self->connections[op->client] == 0) {
        const model_anchor_t *const anchor = model_anchor_of (model, op->owner, op->open_id);
        const bool is_bound = anchor && anchor->front_state == MODEL_BOUND;
        self->connections[op->client] =
            (is_bound ? anchor->front : 0) * MODEL_FRONT + ++self->connection_count;
    }
    message.has_id = true;
    message.id = ++self->ids[op->client];
    model_turn (model, self->world.now);
    model_hello (model, op->client, self->connections[op->client], message.id,
                 message.as.hello.protocol);
    send_control (self, op->client, &message);
}

static void play_gone (play_t *self, const op_t *op)
{
    model_turn (&self->world.model, self->world.now);
    model_gone (&self->world.model, op->client, self->connections[op->client]);
    model_world_gone (&self->world, op->client, self->connections[op->client]);
}

static hws_optional_t given (uint64_t value)
{
    return value ? (hws_optional_t){HWS_VALUE, value} : (hws_optional_t){HWS_ABSENT, 0};
}

static void play_open (play_t *self, const op_t *op)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = op->open_id}};
    hws_open_t *const open = &message.as.open;
    name_of (op->name, open->name);
    open->kind = op->is_exclusive ? HWS_KIND_SPSC : HWS_KIND_MPSC;
    open->dedicated = op->is_dedicated;
    open->cancel_token = op->token;
    open->heartbeat_interval_ms = given (op->interval_ms);
    open->reconnect_grace_ms = given (op->grace_ms);
    open->orphan_ttl_ms = given (op->orphan_ms);
    open->unattached_timeout_ms = given (op->unattached_ms);
    open->max_senders = given (op->senders);
    open->buffer_bytes = given (op->buffer_bytes);
    if (op->how > 0) { /* times of 0, or a value that is refused */
        open->orphan_ttl_ms = (hws_optional_t){HWS_VALUE, 0};
        open->max_senders = op->how > 1 ? (hws_optional_t){HWS_VALUE, 0} : open->max_senders;
    }
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client)) {
        model_open (&self->world.model, op->client, id, open);
    }
    send_control (self, op->client, &message);
}

static void play_attach (play_t *self, const op_t *op)
{
    model_attach_t request = {.session_id = op->session_id,
                              .has_handle = op->how != HANDLE_NAME,
                              .wait_ms = op->wait_ms,
                              .token = op->token,
                              .is_resume = op->count > 0,
                              .is_cancelled = op->count > 1};
    hws_control_t message = {.verb = HWS_VERB_ATTACH};
    hws_attach_t *const attach = &message.as.attach;
    attach->session_id = op->session_id;
    attach->stream_cancel_handle.lo = op->session_id;
    attach->wait_ms = op->wait_ms;
    attach->cancel_token = op->token;
    attach->has_resume = request.is_resume;
    attach->resume.sender_id = 1;
    attach->resume.resume_token.bytes[0] = 1;
    if (request.is_cancelled) {
        strcpy (attach->resume.ending, "cancelled");
        strcpy (attach->resume.code, "interrupted");
    }
    if (request.has_handle) {
        request.handle = handle_of (self, count_of (self, op->owner, op->open_id), op->how);
        attach->has_handle = true;
        attach->handle = request.handle;
    } else {
        name_of (op->name < 0 ? 0 : op->name, request.name);
        memcpy (attach->anchor, request.name, sizeof request.name);
    }
    if (op->session_id % 2) {
        snprintf (request.label, sizeof request.label, "worker %d", op->client);
        memcpy (attach->label, request.label, sizeof request.label);
    }
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client)) {
        model_attach (&self->world.model, op->client, id, &request);
    }
    send_control (self, op->client, &message);
}

static void play_detach (play_t *self, const op_t *op)
{
    model_t *const model = &self->world.model;
    const known_stream_t stream = play_stream_of (self, op->sender, op->session_id);
    const model_seat_t *const seat = model_seat (model, op->sender, op->session_id);
    hws_control_t message = {.verb = HWS_VERB_DETACH,
                             .as.detach = {.handle = handle_of (self, stream.anchor, op->how),
                                           .sender_id = stream.sender_id,
                                           .seq = (seat ? seat->next_seq : 0) + op->count}};
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client)) {
        model_detach (model, op->client, id, &message.as.detach);
    }
    send_control (self, op->client, &message);
}

static void print_reason (uint32_t number, hws_reason_t reason)
{
    if (number > 0) {
        snprintf (reason, sizeof (hws_reason_t), "because %u", number);
    }
}

static void play_cancel (play_t *self, const op_t *op)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL};
    hws_cancel_t *const cancel = &message.as.cancel;
    if (op->how == CANCEL_ANCHOR) {
        cancel->handle = handle_of (self, count_of (self, op->owner, op->open_id), HANDLE_RIGHT);
    } else {
        const known_stream_t stream = play_stream_of (self, op->sender, op->session_id);
        cancel->handle = handle_of (self, stream.anchor, HANDLE_RIGHT);
        cancel->sender_id = stream.sender_id + (op->how == CANCEL_NO_SENDER ? 1000 : 0);
    }
    if (op->how == CANCEL_INTERRUPTED) {
        strcpy (cancel->code, "interrupted");
    }
    print_reason (op->count, cancel->reason);
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client)) {
        model_cancel (&self->world.model, op->client, id, cancel);
    }
    send_control (self, op->client, &message);
}

static void play_token (play_t *self, const op_t *op)
{
    hws_control_t message = {.verb = op->kind == OP_CANCEL_TOKEN ? HWS_VERB_CANCEL_TOKEN
                                                                 : HWS_VERB_RESERVE_TOKEN};
    if (op->kind == OP_CANCEL_TOKEN) {
        message.as.token.token = op->token;
        print_reason (op->count, message.as.token.reason);
    }
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client) && op->kind == OP_CANCEL_TOKEN) {
        model_cancel_token (&self->world.model, op->client, id, &message.as.token);
    } else if (model_hears (&self->world.model, op->client, self->connections[op->client])) {
        model_reserve_token (&self->world.model, op->client, id);
    }
    send_control (self, op->client, &message);
}

/*  The shell's answer about a front.  */
static void play_bound (play_t *self, const op_t *op)
{
    model_t *const model = &self->world.model;
    const model_anchor_t *const anchor = model_anchor_of (model, op->owner, op->open_id);
    const uint32_t front =
        anchor && anchor->front_state == MODEL_BINDING ? anchor->front : model->fronts + 1;
    model_turn (model, self->world.now);
    model_bound (model, front, op->how == 0);
    model_world_bound (&self->world, front, op->how == 0);
}

static void play_drain (play_t *self)
{
    model_turn (&self->world.model, self->world.now);
    model_drain (&self->world.model);
    model_world_drain (&self->world);
}

/*  What is no request at all is answered by one ERROR.  */
static void play_rubbish (play_t *self, const op_t *op)
{
    static const struct {
        const char *first, *json, *code;
    } all[] = {{"PING", "{", "protocol"},
               {"PING", NULL, "protocol"},
               {"DETACH", "{\"sender_id\":0}", "bad_request"},
               {"NONSENSE", "{}", "unknown_verb"},
               {"RESYNC", "{\"epoch\":\"1\"}", "unknown_verb"},
               {"PING", "{\"id\":\"1\",\"Ok\":{}}", "protocol"},
               {"\x01\x02ggdddd", NULL, "protocol"},
               {"\x01\x01", NULL, "protocol"},
               {"ping", "{}", "protocol"}};
    const size_t i = op->count % (sizeof all / sizeof *all);
    if (play_begin_message (self, op->client)) {
        model_fault_of (&self->world.model, op->client, all[i].code);
    }
    model_world_frames (&self->world, op->client, self->connections[op->client], all[i].first,
                        all[i].json);
}

static void play_bye (play_t *self, const op_t *op)
{
    hws_control_t message = {.verb = HWS_VERB_BYE};
    const uint64_t id = id_of (self, op, &message);
    if (play_begin_message (self, op->client)) {
        model_bye (&self->world.model, op->client, id);
    }
    send_control (self, op->client, &message);
}

static void say_ping (play_t *self, int client)
{
    const hws_control_t message = {.verb = HWS_VERB_PING};
    if (play_begin_message (self, client)) {
        model_ping (&self->world.model, client);
    }
    send_control (self, client, &message);
}

/*  What is still read of a connection that the client has left.  */
static void play_stale (play_t *self, const op_t *op)
{
    const hws_control_t message = {.verb = HWS_VERB_PING};
    const uint32_t connection = MODEL_FRONT - 1; /* of none */
    model_turn (&self->world.model, self->world.now);
    model_message (&self->world.model, op->client, connection);
    model_world_control (&self->world, op->client, connection, &message);
}

/*  ---- Time ---- */

/*  Lets the time pass, turn by turn, as a shell does that is never late.  */
static void pass (play_t *self, hws_ms_t until, unsigned beating)
{
    model_world_t *const world = &self->world;
    hws_ms_t beat_at = world->now + BEAT_MS;
    while (!world->has_failed && world->now < until) {
        hws_ms_t next = hws_time_min (model_world_wake_at (world), until);
        next = beating ? hws_time_min (next, beat_at) : next;
        world->now = next > world->now ? next : world->now;
        model_world_settle (world);
        if (world->now < beat_at) {
            continue;
        }
        beat_at += BEAT_MS;
        for (int i = 0; i < MODEL_CLIENTS && !world->has_failed; i++) {
            if (beating >> i & 1) {
                say_ping (self, i);
            }
        }
    }
}

static void play_time (play_t *self, const op_t *op)
{
    model_world_t *const world = &self->world;
    const hws_ms_t deadline = model_deadline (&world->model);
    switch ((int) op->kind) {
    case OP_ADVANCE:
        pass (self, world->now + op->ms, op->beating);
        return;
    case OP_DEADLINE:
        if (deadline < world->now + 20000) {
            /* To just before it, or to it, or behind it; even, as all our times are. */
            pass (self, (deadline + (hws_ms_t) op->count - 2) / 2 * 2, op->beating);
        }
        return;
    default:
        model_world_turn (world); /* the last one in time */
        world->now += op->ms;     /* whatever comes next is late */
        return;
    }
}

/*  ---- One operation ---- */

/*  What is one control message.  */
static void play_control (play_t *self, const op_t *op)
{
    switch ((int) op->kind) {
    case OP_HELLO:
        play_hello (self, op);
        return;
    case OP_OPEN:
        play_open (self, op);
        return;
    case OP_ATTACH:
        play_attach (self, op);
        return;
    case OP_DETACH:
        play_detach (self, op);
        return;
    case OP_CANCEL:
        play_cancel (self, op);
        return;
    case OP_CANCEL_TOKEN:
    case OP_RESERVE_TOKEN:
        play_token (self, op);
        return;
    case OP_BYE:
        play_bye (self, op);
        return;
    case OP_RUBBISH:
        play_rubbish (self, op);
        return;
    case OP_STALE:
        play_stale (self, op);
        return;
    default:
        say_ping (self, op->client);
        return;
    }
}

bool play (play_t *self, const op_t *op, const op_t *next)
{
    model_world_t *const world = &self->world;
    if (op->kind < OP_ADVANCE && self->batch_size == 0) {
        pass (self, world->now + op->ms, 0);
        if (world->has_failed) {
            return false;
        }
    }
    switch ((int) op->kind) {
    case OP_DATA:
    case OP_ACK:
    case OP_WANT:
        play_in_batch (self, op, next);
        break;
    case OP_GONE:
        play_gone (self, op);
        break;
    case OP_BOUND:
        play_bound (self, op);
        break;
    case OP_DRAIN:
        play_drain (self);
        break;
    case OP_ADVANCE:
    case OP_DEADLINE:
    case OP_SLEEP:
        play_time (self, op);
        break;
    default:
        play_control (self, op);
        break;
    }
    learn (self);
    if (op->kind != OP_SLEEP && self->batch_size == 0) {
        model_world_settle (world);
    }
    return !world->has_failed;
}
