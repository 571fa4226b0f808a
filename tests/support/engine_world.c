#include "tests/support/engine_world.h"

#include "tests/support/engine_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

/*  What owns the bytes of a received message.  */
typedef struct {
    world_t *world;
    uint8_t data[];
} token_t;

hws_engine_options_t world_options (void)
{
    return (hws_engine_options_t){
        .broker_id = 0xb0b0,
        .epoch = 7,
        .secret = {1, 2},
        .key = {3, 4},
        .anchors = {.heartbeat_interval_ms = WORLD_INTERVAL_MS,
                    .reconnect_grace_ms = WORLD_GRACE_MS,
                    .unattached_timeout_ms = {.state = HWS_NULL},
                    .orphan_ttl_ms = WORLD_ORPHAN_MS,
                    .max_senders = {.state = HWS_NULL},
                    .buffer_bytes = WORLD_BUFFER,
                    .window_bytes_min = WORLD_WINDOW,
                    .window_bytes_max = WORLD_WINDOW,
                    .window_records = WORLD_RECORDS},
        .limits = {.heartbeat_min_ms = 100,
                   .peers = 10,
                   .anchors = 8,
                   .anchors_per_peer = 6,
                   .senders_per_anchor = 20,
                   .seats_per_peer = 18,
                   .exiting_seats = 16,
                   .fronts = 3,
                   .waiting_attaches = 3,
                   .wait_ms = 30000,
                   .tombstones = 64,
                   .record_bytes = 100000,
                   .batch_bytes = 16384,
                   .buffer_bytes = {.state = HWS_NULL},
                   .cancel_orphans = 6,
                   .cancel_orphans_per_peer = 4,
                   .cancel_orphan_ttl_ms = WORLD_CANCEL_MS,
                   .cancel_sweep_ms = 1000},
    };
}

void world_begin (world_t *self, const hws_engine_options_t *options)
{
    *self = (world_t){.options = *options, .now = 1000000};
    assert_int_equal (hws_engine_new (&self->engine, &self->options), 0);
}

static void free_heard (heard_t *heard)
{
    if (heard) {
        free (heard->bytes);
        free (heard);
    }
}

static void end_engine (world_t *self)
{
    hws_engine_abandon (self->engine);
    world_pump (self);
    hws_engine_destroy (&self->engine);
    assert_null (self->engine);
    assert_int_equal (self->tokens_made, self->tokens_back);
}

void world_restart (world_t *self)
{
    end_engine (self);
    self->options.epoch++;
    self->front_count = self->last_front = 0;
    assert_int_equal (hws_engine_new (&self->engine, &self->options), 0);
    for (size_t i = 0; i < self->client_count; i++) {
        client_forget (&self->clients[i]);
    }
}

void world_end (world_t *self)
{
    end_engine (self);
    for (size_t i = 0; i < self->client_count; i++) {
        client_forget (&self->clients[i]);
    }
}

/*  ---- What the engine says ---- */

static void release (world_t *self, void *payload)
{
    token_t *const token = payload;
    if (token == NULL) {
        return;
    }
    assert_ptr_equal (token->world, self);
    self->tokens_back++;
    free (token); /* a second release is a use after free, which ASan sees */
}

static heard_t *hear (client_t *client, heard_kind_t kind)
{
    heard_t *const heard = calloc (1, sizeof *heard);
    assert_non_null (heard);
    heard->kind = kind;
    hws_list_append (&client->inbox, &heard->link);
    return heard;
}

static void hear_control (client_t *client, const char *verb, hws_bytes_t json)
{
    static hws_control_t message;
    hws_control_fault_t fault;
    const int rc = hws_control_decode (hws_bytes_of_text (verb), json, &message, fault);
    if (rc != 0) {
        print_error ("%s %.*s: %s\n", verb, (int) json.size, (const char *) json.data, fault);
    }
    assert_int_equal (rc, 0);
    if (!client->is_deaf && !(client->is_beating && message.verb == HWS_VERB_PONG)) {
        hear (client, HEARD_CONTROL)->control = message;
    }
}

static void hear_batch (client_t *client, hws_bytes_t bytes)
{
    hws_batch_t batch;
    assert_int_equal (hws_batch_open (&batch, bytes), 0);
    assert_true (bytes.size <= client->world->options.limits.batch_bytes);
    assert_true (batch.count > 0);
    int rc;
    if (batch.kind == HWS_BATCH_GRANT) {
        hws_grant_t grant;
        while ((rc = hws_batch_next_grant (&batch, &grant)) == 1) {
            if (!client->is_deaf) {
                hear (client, HEARD_GRANT)->grant = grant;
            }
        }
    } else {
        assert_int_equal (batch.kind, HWS_BATCH_DATA);
        hws_run_t run;
        while ((rc = hws_batch_next_run (&batch, &run)) == 1) {
            if (client->on_run) {
                client->on_run (client, &run);
            }
            if (run.type == HWS_RUN_VOID || client->is_deaf) {
                continue;
            }
            heard_t *const heard = hear (client, HEARD_RUN);
            heard->bytes = malloc (run.body.size + 1);
            assert_non_null (heard->bytes);
            memcpy (heard->bytes, run.body.data, run.body.size);
            run.body.data = heard->bytes;
            heard->run = run;
        }
    }
    assert_int_equal (rc, 0);
}

static client_t *client_at (world_t *self, const hws_address_t *address)
{
    for (size_t i = 0; i < self->client_count; i++) {
        const hws_address_t *const its = &self->clients[i].address;
        if (its->size == address->size && memcmp (its->id, address->id, its->size) == 0) {
            return &self->clients[i];
        }
    }
    return NULL;
}

static void deliver (world_t *self, hws_effect_t *effect)
{
    client_t *const client = client_at (self, &effect->to);
    if (client && client->is_full) {
        self->refused_count++;
        hws_engine_refused (self->engine, self->now, effect);
    } else if (client) {
        const token_t *const token = effect->payload;
        const hws_bytes_t bytes =
            hws_bytes (effect->data ? effect->data : token->data, effect->size);
        client->message_count++;
        if (effect->verb) {
            hear_control (client, effect->verb, bytes);
        } else {
            hear_batch (client, bytes);
        }
    }
}

/*  ---- Fronts ---- */

const char *world_endpoint (uint32_t front, uint32_t listener)
{
    static hws_endpoint_t text;
    snprintf (text, sizeof text, listener ? "ipc:///run/hawser.%u" : "tcp://127.0.0.1:%u",
              listener ? front : 40000 + front);
    return text;
}

static void tell_bound (world_t *self, uint32_t front)
{
    hws_endpoint_t endpoints[2];
    for (uint32_t i = 0; i < 2; i++) {
        snprintf (endpoints[i], sizeof endpoints[i], "%s", world_endpoint (front, i));
    }
    hws_engine_bound (self->engine, self->now, front, 0, endpoints, 2, "");
}

void world_bound (world_t *self, uint32_t front)
{
    tell_bound (self, front);
    world_pump (self);
}

void world_bind_failed (world_t *self, uint32_t front, const char *fault)
{
    self->front_count--;
    hws_engine_bound (self->engine, self->now, front, HWS_ESYSTEM, NULL, 0, fault);
    world_pump (self);
}

static void bind_front (world_t *self, uint32_t front)
{
    assert_true (front > self->last_front);
    self->last_front = front;
    self->front_count++;
    if (!self->is_slow_to_bind) {
        tell_bound (self, front);
    }
}

static void unbind_front (world_t *self, uint32_t front)
{
    assert_true (front > 0 && front <= self->last_front);
    assert_true (self->front_count > 0);
    self->front_count--;
    self->unbind_count++;
}

void world_check (const world_t *self)
{
    engine_check (self->engine, self->tokens_made - self->tokens_back);
}

void world_pump (world_t *self)
{
    world_check (self);
    hws_engine_flush (self->engine);
    hws_effect_t effect;
    while (hws_engine_pop (self->engine, &effect)) {
        if (effect.kind == HWS_EFFECT_SEND) {
            deliver (self, &effect);
        }
        self->logged_count += effect.kind == HWS_EFFECT_LOG;
        if (effect.kind == HWS_EFFECT_BIND) {
            bind_front (self, effect.to.front);
        } else if (effect.kind == HWS_EFFECT_UNBIND) {
            unbind_front (self, effect.to.front);
        }
        free (effect.data);
        release (self, effect.payload);
    }
    world_check (self);
    size_t binding_count;
    assert_int_equal (engine_front_count (self->engine, &binding_count), self->front_count);
    assert_true (self->is_slow_to_bind || binding_count == 0);
}

/*  ---- Time ---- */

void world_advance (world_t *self, hws_ms_t length_ms)
{
    const hws_ms_t end = self->now + length_ms;
    hws_ms_t beat_at = self->now;
    for (;;) {
        world_pump (self);
        hws_ms_t next = hws_time_min (hws_engine_wake_at (self->engine), beat_at);
        self->now = next > end ? end : next > self->now ? next : self->now;
        if (self->now >= beat_at) {
            for (size_t i = 0; i < self->client_count; i++) {
                if (self->clients[i].is_beating) {
                    client_ping (&self->clients[i]);
                }
            }
            beat_at += WORLD_INTERVAL_MS / 4;
        }
        hws_engine_expire (self->engine, self->now);
        if (self->now >= end) {
            break;
        }
    }
    world_pump (self);
}

void world_oversleep (world_t *self, hws_ms_t length_ms)
{
    world_pump (self);
    self->now += length_ms;
    hws_engine_expire (self->engine, self->now);
    world_pump (self);
}

/*  ---- What clients say ---- */

static void take_new_address (client_t *self)
{
    const uint32_t count = ++self->world->address_count;
    self->address = (hws_address_t){.front = self->front, .size = 8, .id = {1, 2, 3, 4}};
    hws_put_u32 (self->address.id + 4, count);
}

void client_hello (client_t *self)
{
    hws_control_t hello = {.verb = HWS_VERB_HELLO,
                           .as.hello = {.client_id = self->id, .protocol = HWS_PROTOCOL_VERSION}};
    client_ask (self, &hello);
}

client_t *client_connect (world_t *world)
{
    return client_connect_at (world, 0);
}

client_t *client_connect_at (world_t *world, uint32_t front)
{
    assert_true (world->client_count < WORLD_CLIENTS_MAX);
    client_t *const self = &world->clients[world->client_count++];
    *self = (client_t){.world = world, .front = front};
    self->id.bytes[0] = 0xc1;
    self->id.bytes[15] = (uint8_t) world->client_count;
    client_reconnect (self);
    return self;
}

void client_reconnect (client_t *self)
{
    take_new_address (self);
    client_hello (self);
    client_take_ok (self, HWS_VERB_HELLO);
}

void client_disconnect (client_t *self)
{
    hws_engine_peer_gone (self->world->engine, self->world->now, &self->address);
    world_pump (self->world);
}

static void send_control (client_t *self, const hws_control_t *message)
{
    static uint8_t json[HWS_CONTROL_SIZE_MAX];
    size_t size = 0;
    assert_int_equal (hws_control_encode (message, json, sizeof json, &size), 0);
    hws_message_t envelope = {
        .frame_count = 2,
        .frame = {hws_bytes_of_text (hws_verb_word (message->verb)), hws_bytes (json, size)},
        .address = "192.0.2.1:4711",
        .listener = self->listener};
    world_t *const world = self->world;
    const int rc = hws_engine_recv (world->engine, world->now, &self->address, &envelope);
    assert_true (rc == 0 || world->is_poor);
    world_pump (world);
}

uint64_t client_ask (client_t *self, hws_control_t *message)
{
    message->has_id = true;
    message->id = ++self->next_id;
    send_control (self, message);
    return message->id;
}

void client_say (client_t *self, hws_control_t *message)
{
    message->has_id = false;
    send_control (self, message);
}

void client_send_frames (client_t *self, hws_bytes_t first, const char *json)
{
    uint8_t *const copy = malloc (first.size + 1);
    assert_non_null (copy);
    memcpy (copy, first.data, first.size);
    hws_message_t envelope = {.frame_count = json ? 2 : 1,
                              .frame = {hws_bytes (copy, first.size)},
                              .data = copy,
                              .address = ""};
    if (json) {
        envelope.frame[1] = hws_bytes_of_text (json);
    }
    hws_engine_recv (self->world->engine, self->world->now, &self->address, &envelope);
    free (copy);
    world_pump (self->world);
}

int client_send_bytes (client_t *self, const uint8_t *data, size_t size)
{
    world_t *const world = self->world;
    token_t *const token = malloc (sizeof *token + size);
    assert_non_null (token);
    token->world = world;
    memcpy (token->data, data, size);
    world->tokens_made++;
    hws_message_t envelope = {.frame_count = 1,
                              .frame = {hws_bytes (token->data, size)},
                              .data = token->data,
                              .payload = token,
                              .address = ""};
    const int rc = hws_engine_recv (world->engine, world->now, &self->address, &envelope);
    release (world, envelope.payload);
    return rc;
}

void client_ping (client_t *self)
{
    hws_control_t ping = {.verb = HWS_VERB_PING};
    client_say (self, &ping);
}

/*  ---- What clients heard ---- */

static heard_t *take (client_t *self, heard_t *heard)
{
    free_heard (self->last);
    self->last = heard;
    if (heard) {
        hws_list_remove (&heard->link);
    }
    return heard;
}

static heard_t *find (client_t *self, heard_kind_t kind, int verb)
{
    for (hws_link_t *link = self->inbox.head; link; link = link->next) {
        heard_t *const heard = hws_container_of (link, heard_t, link);
        if (heard->kind == kind && (verb < 0 || (int) heard->control.verb == verb)) {
            return take (self, heard);
        }
    }
    return NULL;
}

const hws_control_t *client_find_control (client_t *self, hws_verb_t verb)
{
    heard_t *const heard = find (self, HEARD_CONTROL, (int) verb);
    return heard ? &heard->control : NULL;
}

const hws_run_t *client_find_run (client_t *self)
{
    heard_t *const heard = find (self, HEARD_RUN, -1);
    return heard ? &heard->run : NULL;
}

const hws_grant_t *client_find_grant (client_t *self)
{
    heard_t *const heard = find (self, HEARD_GRANT, -1);
    return heard ? &heard->grant : NULL;
}

const heard_t *client_next (client_t *self)
{
    hws_link_t *const link = self->inbox.head;
    return link ? take (self, hws_container_of (link, heard_t, link)) : NULL;
}

const hws_control_t *client_take (client_t *self, hws_verb_t verb)
{
    const hws_control_t *const message = client_find_control (self, verb);
    if (message == NULL) {
        fail_msg ("no %s came", hws_verb_word (verb));
    }
    return message;
}

const hws_control_t *client_take_ok (client_t *self, hws_verb_t verb)
{
    const hws_control_t *const answer = client_take (self, verb);
    if (answer->form == HWS_FORM_ERR) {
        fail_msg ("%s was refused: %s, %s", hws_verb_word (verb),
                  hws_error_word (answer->as.refusal.code), answer->as.refusal.reason);
    }
    assert_int_equal (answer->form, HWS_FORM_OK);
    return answer;
}

const hws_refusal_t *client_take_refusal (client_t *self, hws_verb_t verb, int code)
{
    const hws_control_t *const answer = client_take (self, verb);
    assert_int_equal (answer->form, HWS_FORM_ERR);
    assert_string_equal (hws_error_word (answer->as.refusal.code), hws_error_word (code));
    return &answer->as.refusal;
}

const hws_run_t *client_take_run (client_t *self, hws_run_type_t type)
{
    const hws_run_t *const run = client_find_run (self);
    assert_non_null (run);
    assert_int_equal (run->type, type);
    return run;
}

const hws_grant_t *client_take_grant (client_t *self)
{
    const hws_grant_t *const grant = client_find_grant (self);
    assert_non_null (grant);
    return grant;
}

void client_expect_silence (client_t *self)
{
    const heard_t *const heard = client_next (self);
    if (heard && heard->kind == HEARD_CONTROL) {
        fail_msg ("%s came", hws_verb_word (heard->control.verb));
    } else if (heard) {
        fail_msg ("a %s came", heard->kind == HEARD_RUN ? "run" : "grant");
    }
}

void client_forget (client_t *self)
{
    while (client_next (self)) {
    }
    take (self, NULL);
}
