#include "tests/support/network.h"

#include "tests/support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/*  A received batch: the bytes and who holds them.  */
typedef struct {
    hws_payload_t base;
    unsigned holders;
    uint8_t bytes[];
} received_t;

static void hold (hws_payload_t *payload)
{
    ((received_t *) (void *) payload)->holders++;
}

static void release (hws_payload_t *payload)
{
    received_t *const received = (received_t *) (void *) payload;
    if (--received->holders == 0) {
        free (received);
    }
}

static hws_address_t address_of (const network_client_t *client)
{
    hws_address_t address = {.front = client->front, .size = 8};
    hws_put_u64 (address.id, client->connection);
    return address;
}

static network_client_t *client_at (network_t *self, const hws_address_t *address)
{
    for (int i = 0; i < self->count; i++) {
        network_client_t *const client = &self->clients[i];
        if (client->connection != 0 && client->connection == hws_get_u64 (address->id)) {
            return client;
        }
    }
    return NULL;
}

static void start_engine (network_t *self)
{
    const hws_engine_options_t options = {
        .broker_id = self->broker_id,
        .epoch = ++self->epoch,
        .secret = {1, 2},
        .key = {3, 4},
        .anchors = {.heartbeat_interval_ms = 5000,
                    .reconnect_grace_ms = 10000,
                    .orphan_ttl_ms = 30000,
                    .buffer_bytes = 4 << 20,
                    .window_bytes_min = 1 << 14,
                    .window_bytes_max = 1 << 16,
                    .window_records = 1000},
        .limits = {.heartbeat_min_ms = 10,
                   .cancel_orphans = 100,
                   .cancel_orphans_per_peer = 50,
                   .cancel_orphan_ttl_ms = 120000,
                   .cancel_sweep_ms = 1000,
                   .peers = 100,
                   .anchors = 100,
                   .anchors_per_peer = 100,
                   .senders_per_anchor = 100,
                   .seats_per_peer = 100,
                   .exiting_seats = 100,
                   .fronts = 10,
                   .waiting_attaches = 100,
                   .wait_ms = 60000,
                   .tombstones = 100,
                   .record_bytes = 1 << 20,
                   .batch_bytes = NETWORK_BATCH_BYTES},
    };
    assert_int_equal (hws_engine_new (&self->engine, &options), 0);
}

static void stop_engine (network_t *self)
{
    hws_engine_abandon (self->engine);
    hws_effect_t effect;
    while (hws_engine_pop (self->engine, &effect)) {
        free (effect.data);
    }
    hws_engine_destroy (&self->engine);
}

/*  ---- Messages ---- */

/*  Whether a GRANT or WINDOW is one of those that get lost.  */
static bool is_lost (network_client_t *client, uint8_t kind)
{
    const bool is_counted = kind == HWS_BATCH_GRANT || kind == HWS_BATCH_WINDOW;
    if (client->lost_nth == 0 || !is_counted || ++client->counted % client->lost_nth != 0) {
        return false;
    }
    client->lost++;
    return true;
}

static void to_engine (network_t *self, network_client_t *client, const hws_action_t *out)
{
    client->said++;
    client->pings += out->verb && strcmp (out->verb, "PING") == 0;
    client->data += !out->verb && self->buffer[1] == HWS_BATCH_DATA;
    if (client->is_silent || client->connection == 0 ||
        (!out->verb && is_lost (client, self->buffer[1]))) {
        return;
    }
    hws_message_t message = {.frame_count = 1, .address = "virtual"};
    if (out->verb) {
        message.frame_count = 2;
        message.frame[0] = hws_bytes_of_text (out->verb);
        message.frame[1] = hws_bytes (out->data, out->size);
    } else {
        message.data = self->buffer;
        message.frame[0] = hws_bytes (self->buffer, out->size);
    }
    const hws_address_t address = address_of (client);
    assert_int_equal (hws_engine_recv (self->engine, self->now, &address, &message), 0);
}

static void to_client (network_t *self, const hws_effect_t *effect)
{
    network_client_t *const client = client_at (self, &effect->to);
    if (!client || client->is_silent || client->is_deaf) {
        return;
    }
    const hws_bytes_t bytes = hws_bytes (effect->data, effect->size);
    if (effect->verb) {
        hws_session_control (&client->session, self->now, hws_bytes_of_text (effect->verb), bytes);
        return;
    }
    if (client->to_lose > 0 && bytes.data[1] == HWS_BATCH_DATA) {
        client->to_lose--;
        return;
    }
    if (is_lost (client, bytes.data[1])) {
        return;
    }
    received_t *const received = malloc (sizeof *received + bytes.size);
    assert_non_null (received);
    received->base = (hws_payload_t){.hold = hold, .release = release};
    received->holders = 1;
    memcpy (received->bytes, bytes.data, bytes.size);
    hws_session_batch (&client->session, self->now, hws_bytes (received->bytes, bytes.size),
                       &received->base);
    release (&received->base);
}

static bool pass_from_client (network_t *self, network_client_t *client)
{
    hws_action_t out;
    if (!hws_session_pop (&client->session, self->now, self->buffer, sizeof self->buffer, &out)) {
        return false;
    }
    switch (out.kind) {
    case HWS_ACTION_CONNECT:
        client->connection = client->is_refused ? 0 : ++self->connections;
        if (client->is_refused) {
            hws_session_lost (&client->session, self->now, "no broker", false);
        }
        break;
    case HWS_ACTION_DISCONNECT:
        client->connection = 0;
        break;
    case HWS_ACTION_CONTROL:
        to_engine (self, client, &out);
        free (out.data);
        break;
    case HWS_ACTION_BATCH:
        test_gather (&out, self->buffer, sizeof self->buffer);
        to_engine (self, client, &out);
        break;
    case HWS_ACTION_NONE:
        break;
    }
    return true;
}

static void bind_front (network_t *self, uint32_t front)
{
    hws_endpoint_t endpoint;
    self->last_front = front;
    self->fronts++;
    snprintf (endpoint, sizeof endpoint, "ipc:///%u", (unsigned) front);
    hws_engine_bound (self->engine, self->now, front, 0, &endpoint, 1, "");
}

void network_settle (network_t *self)
{
    bool is_busy = true;
    while (is_busy) {
        is_busy = false;
        for (int i = 0; i < self->count; i++) {
            while (pass_from_client (self, &self->clients[i])) {
                is_busy = true;
            }
        }
        hws_engine_flush (self->engine);
        hws_effect_t effect;
        while (hws_engine_pop (self->engine, &effect)) {
            is_busy = true;
            if (effect.kind == HWS_EFFECT_SEND) {
                to_client (self, &effect);
            } else if (effect.kind == HWS_EFFECT_BIND) {
                bind_front (self, effect.to.front);
            } else if (effect.kind == HWS_EFFECT_UNBIND) {
                self->fronts--;
            }
            free (effect.data);
        }
    }
}

void network_pass (network_t *self, hws_ms_t length_ms)
{
    const hws_ms_t end = self->now + length_ms;
    network_settle (self);
    for (;;) {
        hws_ms_t at = hws_engine_wake_at (self->engine);
        for (int i = 0; i < self->count; i++) {
            at = hws_time_min (at, hws_session_wake_at (&self->clients[i].session));
        }
        if (at > end) {
            break;
        }
        self->now = at > self->now ? at : self->now;
        for (int i = 0; i < self->count; i++) {
            hws_session_expire (&self->clients[i].session, self->now);
        }
        hws_engine_expire (self->engine, self->now);
        network_settle (self);
    }
    self->now = end;
}

/*  ---- What goes wrong ---- */

void network_cut (network_t *self, int client)
{
    network_client_t *const cut = &self->clients[client];
    const hws_address_t address = address_of (cut);
    cut->connection = 0;
    hws_engine_peer_gone (self->engine, self->now, &address);
    hws_session_lost (&cut->session, self->now, "cut", false);
}

void network_restart (network_t *self)
{
    stop_engine (self);
    start_engine (self);
    for (int i = 0; i < self->count; i++) {
        self->clients[i].connection = 0;
        hws_session_lost (&self->clients[i].session, self->now, "cut", false);
    }
}

void network_replace (network_t *self)
{
    self->broker_id++;
    network_restart (self);
}

/*  ---- Birth and death ---- */

void network_init (network_t *self, int count)
{
    memset (self, 0, sizeof *self);
    self->broker_id = 99;
    self->now = 1000000;
    self->count = count;
    start_engine (self);
    for (int i = 0; i < count; i++) {
        hws_session_options_t options = {.seed = (uint64_t) i,
                                         .name = "test",
                                         .hash_key = {{1, (uint64_t) i}},
                                         .blocks = &s_test_blocks,
                                         .connect_ms = 5000,
                                         .give_up_ms = 60000};
        options.client_id.bytes[0] = (uint8_t) (i + 1);
        assert_int_equal (hws_session_init (&self->clients[i].session, &options, self->now), 0);
    }
}

void network_fini (network_t *self)
{
    for (int i = 0; i < self->count; i++) {
        const hws_session_t *const session = &self->clients[i].session;
        if (session->senders.count > 0 || session->receivers.count > 0) {
            return; /* a test that failed left its objects: they leak, and it is told */
        }
        hws_session_fini (&self->clients[i].session);
    }
    stop_engine (self);
}
