#include "tests/support/sim_network.h"

#include "tests/support/blocks.h"
#include "tests/support/engine_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    hws_link_t link;
    hws_ms_t at;      /* when it arrives */
    const char *verb; /* static; null for a batch */
    size_t size;
    uint8_t bytes[];
} packet_t;

/*  A batch that a client received: who holds it.  */
typedef struct {
    hws_payload_t base;
    unsigned holders;
    packet_t *packet;
} received_t;

static void hold (hws_payload_t *payload)
{
    ((received_t *) (void *) payload)->holders++;
}

static void release (hws_payload_t *payload)
{
    received_t *const self = (received_t *) (void *) payload;
    if (--self->holders == 0) {
        free (self->packet);
        free (self);
    }
}

/*  ---- Lanes ---- */

static void put (sim_network_t *self, sim_lane_t *lane, const char *verb, const uint8_t *data,
                 size_t size)
{
    packet_t *const packet = malloc (sizeof *packet + size);
    assert_non_null (packet);
    const hws_ms_t soonest = self->now + 1 + (hws_ms_t) sim_below (self, 15);
    packet->at = soonest > lane->last_at ? soonest : lane->last_at;
    packet->verb = verb;
    packet->size = size;
    memcpy (packet->bytes, data, size);
    packet->link = (hws_link_t){0};
    hws_list_append (&lane->packets, &packet->link);
    lane->last_at = packet->at;
}

static packet_t *take (const sim_network_t *self, sim_lane_t *lane)
{
    hws_link_t *const link = lane->packets.head;
    packet_t *const packet = link ? hws_container_of (link, packet_t, link) : NULL;
    if (packet == NULL || packet->at > self->now) {
        return NULL;
    }
    hws_list_remove (link);
    return packet;
}

/*  Loses what is under way, from somewhere on.  */
static void lose_tail (sim_network_t *self, sim_lane_t *lane)
{
    const uint64_t kept = sim_below (self, lane->packets.count + 1);
    while (lane->packets.count > kept) {
        hws_link_t *const link = lane->packets.tail;
        hws_list_remove (link);
        free (hws_container_of (link, packet_t, link));
    }
}

static void empty (sim_lane_t *lane)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&lane->packets))) {
        free (hws_container_of (link, packet_t, link));
    }
}

/*  ---- Connections ---- */

static hws_address_t address_of (const sim_connection_t *connection)
{
    hws_address_t address = {.size = 8};
    hws_put_u64 (address.id, connection->number);
    return address;
}

static sim_connection_t *connection_at (const sim_network_t *self, const hws_address_t *address)
{
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        sim_connection_t *const connection = hws_container_of (link, sim_connection_t, link);
        if (connection->number == hws_get_u64 (address->id)) {
            return connection;
        }
    }
    return NULL;
}

static void begin_connection (sim_network_t *self, int client)
{
    sim_connection_t *const connection = calloc (1, sizeof *connection);
    assert_non_null (connection);
    connection->number = ++self->connections_made;
    connection->client = client;
    connection->broker_learns_at = connection->client_learns_at = HWS_NEVER;
    hws_list_append (&self->connections, &connection->link);
    self->clients[client].connection = connection;
}

static void break_it (sim_network_t *self, sim_connection_t *connection, bool is_silent)
{
    if (connection->is_broken) {
        return;
    }
    connection->is_broken = true;
    lose_tail (self, &connection->up);
    lose_tail (self, &connection->down);
    if (!is_silent || sim_below (self, 3) == 0) {
        connection->broker_learns_at = self->now + (hws_ms_t) sim_below (self, 60);
    }
    if (!is_silent || sim_below (self, 3) == 0) {
        connection->client_learns_at = self->now + (hws_ms_t) sim_below (self, 60);
    }
}

void sim_break (sim_network_t *self, int client, bool is_silent)
{
    if (self->clients[client].connection) {
        break_it (self, self->clients[client].connection, is_silent);
    }
}

void sim_kill (sim_network_t *self, int client)
{
    sim_break (self, client, sim_below (self, 2) == 0);
    self->clients[client].is_dead = true;
}

static void drop (sim_network_t *self, sim_connection_t *connection)
{
    if (self->clients[connection->client].connection == connection) {
        self->clients[connection->client].connection = NULL;
    }
    hws_list_remove (&connection->link);
    empty (&connection->up);
    empty (&connection->down);
    free (connection);
}

/*  ---- The broker ---- */

static void let_go (sim_network_t *self, void *payload)
{
    self->tokens -= payload != NULL;
    free (payload);
}

static void to_engine (sim_network_t *self, sim_connection_t *connection, packet_t *packet)
{
    uint8_t *const token = malloc (packet->size + 1);
    assert_non_null (token);
    memcpy (token, packet->bytes, packet->size);
    hws_message_t message = {.frame_count = 1, .address = "virtual"};
    if (packet->verb) {
        message.frame_count = 2;
        message.frame[0] = hws_bytes_of_text (packet->verb);
        message.frame[1] = hws_bytes (token, packet->size);
    } else {
        message.frame[0] = hws_bytes (token, packet->size);
        message.data = token;
        message.payload = token;
    }
    self->tokens++;
    const hws_address_t address = address_of (connection);
    assert_int_equal (hws_engine_recv (self->engine, self->now, &address, &message), 0);
    if (packet->verb || message.payload) {
        let_go (self, token);
    }
    free (packet);
}

static void from_engine (sim_network_t *self, hws_effect_t *effect)
{
    sim_connection_t *const to = connection_at (self, &effect->to);
    if (to == NULL || to->is_broken) {
        return; /* lost, or on its way when the connection broke */
    }
    if (to->down.packets.count >= SIM_LANE_MAX) {
        self->refused++;
        hws_engine_refused (self->engine, self->now, effect);
        return;
    }
    put (self, &to->down, effect->verb, effect->data ? effect->data : effect->payload,
         effect->size);
}

static void run_broker (sim_network_t *self)
{
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        sim_connection_t *const connection = hws_container_of (link, sim_connection_t, link);
        if (connection->broker_learns_at <= self->now) {
            connection->broker_learns_at = HWS_NEVER;
            const hws_address_t address = address_of (connection);
            hws_engine_peer_gone (self->engine, self->now, &address);
        }
        packet_t *packet;
        while ((packet = take (self, &connection->up))) {
            to_engine (self, connection, packet);
        }
    }
    if (hws_engine_wake_at (self->engine) <= self->now) {
        hws_engine_expire (self->engine, self->now);
    }
    hws_engine_flush (self->engine);
    hws_effect_t effect;
    while (hws_engine_pop (self->engine, &effect)) {
        if (effect.kind == HWS_EFFECT_SEND) {
            from_engine (self, &effect);
        }
        free (effect.data);
        let_go (self, effect.payload);
    }
    engine_check (self->engine, self->tokens);
}

/*  ---- Clients ---- */

static void to_client (sim_network_t *self, sim_client_t *client, packet_t *packet)
{
    const hws_bytes_t bytes = hws_bytes (packet->bytes, packet->size);
    if (packet->verb) {
        hws_session_control (&client->session, self->now, hws_bytes_of_text (packet->verb), bytes);
        free (packet);
        return;
    }
    received_t *const received = malloc (sizeof *received);
    assert_non_null (received);
    *received =
        (received_t){.base = {.hold = hold, .release = release}, .holders = 1, .packet = packet};
    hws_session_batch (&client->session, self->now, bytes, &received->base);
    release (&received->base);
}

static void from_client (sim_network_t *self, int i)
{
    sim_client_t *const client = &self->clients[i];
    hws_action_t out;
    while ((client->connection == NULL || client->connection->up.packets.count < SIM_LANE_MAX) &&
           hws_session_pop (&client->session, self->now, self->buffer, sizeof self->buffer, &out)) {
        if (out.kind == HWS_ACTION_CONNECT) {
            begin_connection (self, i);
        } else if (out.kind == HWS_ACTION_DISCONNECT && client->connection) {
            sim_connection_t *const connection = client->connection;
            break_it (self, connection, sim_below (self, 4) == 0);
            connection->client_learns_at = HWS_NEVER;
            client->connection = NULL;
        } else if (client->connection && !client->connection->is_broken && out.size > 0) {
            put (self, &client->connection->up, out.verb, out.data, out.size);
        }
        if (out.kind == HWS_ACTION_CONTROL) {
            free (out.data);
        }
        if (out.block) {
            out.block->release (out.block);
        }
    }
}

static void run_client (sim_network_t *self, int i)
{
    sim_client_t *const client = &self->clients[i];
    packet_t *packet;
    while (client->connection && (packet = take (self, &client->connection->down))) {
        to_client (self, client, packet);
    }
    if (client->connection && client->connection->client_learns_at <= self->now) {
        client->connection->client_learns_at = HWS_NEVER;
        client->connection = NULL;
        hws_session_lost (&client->session, self->now, "broken", false);
    }
    if (hws_session_wake_at (&client->session) <= self->now) {
        hws_session_expire (&client->session, self->now);
    }
    from_client (self, i);
}

void sim_step (sim_network_t *self)
{
    self->now += SIM_STEP_MS;
    if (self->broker_stalled_until <= self->now) {
        run_broker (self);
    }
    for (int i = 0; i < self->count; i++) {
        if (!sim_is_stalled (self, i)) {
            run_client (self, i);
        }
    }
    for (hws_link_t *link = self->connections.head, *next; link; link = next) {
        next = link->next;
        sim_connection_t *const connection = hws_container_of (link, sim_connection_t, link);
        if (connection->is_broken && self->clients[connection->client].connection != connection &&
            connection->up.packets.count == 0 && connection->broker_learns_at == HWS_NEVER) {
            drop (self, connection);
        }
    }
}

/*  ---- Birth and death ---- */

/*  Of a client: it does not, it flushes by hand, or it lingers.  */
static int64_t any_linger (sim_network_t *self)
{
    const uint64_t kind = sim_below (self, 4);
    return kind < 2 ? 0 : kind == 2 ? -1 : 1 + (int64_t) sim_below (self, 100);
}

void sim_init (sim_network_t *self, uint64_t seed, int count)
{
    memset (self, 0, sizeof *self);
    hws_random_init (&self->random, seed);
    self->now = 1000000;
    self->count = count;
    self->has_early = sim_below (self, 2) == 0;
    const hws_engine_options_t options = {
        .broker_id = 99,
        .epoch = 1,
        .secret = {seed, 2},
        .key = {3, 4},
        .anchors = {.heartbeat_interval_ms = SIM_INTERVAL_MS,
                    .reconnect_grace_ms = SIM_GRACE_MS,
                    .unattached_timeout_ms = {.state = HWS_NULL},
                    .orphan_ttl_ms = SIM_ORPHAN_MS,
                    .max_senders = {.state = HWS_NULL},
                    .buffer_bytes = self->has_early ? SIM_BUFFER_EARLY : SIM_BUFFER,
                    .window_bytes_min = self->has_early ? HWS_EARLY_BYTES : 1024,
                    .window_bytes_max = self->has_early ? HWS_EARLY_BYTES : 8192,
                    .window_records = self->has_early ? HWS_EARLY_RECORDS : 32},
        .limits = {.heartbeat_min_ms = 10,
                   .cancel_orphans = 100,
                   .cancel_orphans_per_peer = 50,
                   .cancel_orphan_ttl_ms = 120000,
                   .cancel_sweep_ms = 1000,
                   .peers = 20,
                   .anchors = 20,
                   .anchors_per_peer = 20,
                   .senders_per_anchor = 50,
                   .seats_per_peer = 50,
                   .exiting_seats = 50,
                   .waiting_attaches = 50,
                   .wait_ms = 60000,
                   .tombstones = 200,
                   .record_bytes = 20000,
                   .batch_bytes = seed % 2 ? SIM_BATCH_BYTES_LEAST : SIM_BATCH_BYTES_MOST,
                   .buffer_bytes = {.state = HWS_NULL}},
    };
    assert_int_equal (hws_engine_new (&self->engine, &options), 0);
    for (int i = 0; i < count; i++) {
        hws_session_options_t client = {.seed = seed * 16 + (uint64_t) i,
                                        .name = "sim",
                                        .hash_key = {{seed, (uint64_t) i}},
                                        .blocks = &s_test_blocks,
                                        .connect_ms = -1,
                                        .give_up_ms = 60000,
                                        .linger_ms = any_linger (self)};
        client.client_id.bytes[0] = (uint8_t) (i + 1);
        assert_int_equal (hws_session_init (&self->clients[i].session, &client, self->now), 0);
    }
}

void sim_fini (sim_network_t *self)
{
    hws_link_t *link;
    while ((link = self->connections.head)) {
        drop (self, hws_container_of (link, sim_connection_t, link));
    }
    for (int i = 0; i < self->count; i++) {
        hws_session_fini (&self->clients[i].session);
    }
    hws_engine_abandon (self->engine);
    hws_effect_t effect;
    while (hws_engine_pop (self->engine, &effect)) {
        free (effect.data);
        let_go (self, effect.payload);
    }
    assert_int_equal (self->tokens, 0);
    hws_engine_destroy (&self->engine);
}
