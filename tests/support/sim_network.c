#include "tests/support/sim_network.h"

#include "tests/support/blocks.h"
#include "tests/support/sim_broker.h"
#include "tests/support/sim_count.h"
#include "tests/support/sim_network_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOLD_MS = 60, LATENCY_MS = 15, LATE_MS = 500, LINE_MAX = 160 };

/*  A batch that a client received: who holds it.  */
typedef struct {
    hws_payload_t base;
    unsigned holders;
    sim_packet_t *packet;
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

void sim_say (const sim_network_t *self, const char *format, ...)
{
    if (!self->is_traced) {
        return;
    }
    va_list args;
    va_start (args, format);
    printf ("%7" PRId64 "  ", self->now - 1000000);
    vprintf (format, args);
    printf ("\n");
    va_end (args);
}

static void say_message (const sim_network_t *self, const char *arrow, int client, uint64_t number,
                         const char *verb, const uint8_t *data, size_t size)
{
    static const char *const kinds[] = {"?", "DATA", "GRANT", "ACK", "POSITION", "WINDOW"};
    if (!self->is_traced) {
        return;
    }
    if (verb) {
        sim_say (self, "%s %d#%" PRIu64 " %s %.*s", arrow, client, number, verb,
                 size < LINE_MAX ? (int) size : LINE_MAX, (const char *) data);
        return;
    }
    hws_batch_t batch;
    if (hws_batch_open (&batch, hws_bytes (data, size)) != 0) {
        sim_say (self, "%s %d#%" PRIu64 " unreadable", arrow, client, number);
        return;
    }
    char line[4 * LINE_MAX] = "";
    size_t used = 0;
    hws_run_t run;
    hws_grant_t grant;
    hws_ack_t ack;
    hws_position_t position;
    hws_window_t window;
    while (used < sizeof line - LINE_MAX) {
        char *const at = line + used;
        const size_t room = sizeof line - used;
        int length;
        if (batch.kind == HWS_BATCH_DATA && hws_batch_next_run (&batch, &run) == 1) {
            length = snprintf (at, room, " [%" PRIx64 ": type %d, %" PRIu64 " + %u]", run.stream,
                               (int) run.type, run.first_seq, run.count);
        } else if (batch.kind == HWS_BATCH_GRANT && hws_batch_next_grant (&batch, &grant) == 1) {
            length = snprintf (at, room,
                               " [%" PRIx64 ": acked %" PRIu64 " next %" PRIu64 " limit %" PRIu64
                               "/%" PRIu64 " flags %x]",
                               grant.stream, grant.acked_seq, grant.next_seq, grant.limit_seq,
                               grant.limit_bytes, grant.flags);
        } else if (batch.kind == HWS_BATCH_ACK && hws_batch_next_ack (&batch, &ack) == 1) {
            length = snprintf (at, room, " [%" PRIx64 ": %" PRIu64 "/%" PRIu64 " flags %x]",
                               ack.stream, ack.acked_seq, ack.acked_bytes, ack.flags);
        } else if (batch.kind == HWS_BATCH_POSITION &&
                   hws_batch_next_position (&batch, &position) == 1) {
            length = snprintf (
                at, room, " [sender %" PRIu64 ": next %" PRIu64 " acked %" PRIu64 " flags %x]",
                position.sender_id, position.next_seq, position.acked_seq, position.flags);
        } else if (batch.kind == HWS_BATCH_WINDOW && hws_batch_next_window (&batch, &window) == 1) {
            length = snprintf (
                at, room, " [%" PRIx64 ": limit %" PRIu64 "/%" PRIu64 " want %" PRIu64 "]",
                window.stream, window.limit_seq, window.limit_bytes, window.want_bytes);
        } else {
            break;
        }
        used += (size_t) length;
    }
    sim_say (self, "%s %d#%" PRIu64 " %s%s", arrow, client, number,
             batch.kind < sizeof kinds / sizeof *kinds ? kinds[batch.kind] : "?", line);
}

/*  ---- Connections ---- */

static hws_ms_t arrival (const sim_network_t *self, sim_connection_t *connection)
{
    return self->now + 1 + (hws_ms_t) hws_random_below (&connection->random, LATENCY_MS);
}

void sim_send_down (sim_network_t *self, sim_connection_t *connection, const hws_effect_t *effect)
{
    const uint8_t *const data = effect->data ? effect->data : effect->payload;
    say_message (self, "<", connection->client, connection->number, effect->verb, data,
                 effect->size);
    sim_lane_put (&connection->down, arrival (self, connection), effect->verb, data, effect->size);
}

static hws_ms_t soon (sim_network_t *self, sim_connection_t *connection)
{
    return self->now + (hws_ms_t) hws_random_below (&connection->random, TOLD_MS);
}

static void lose_tail (sim_connection_t *connection, sim_lane_t *lane)
{
    sim_lane_cut (lane, (size_t) hws_random_below (&connection->random, lane->packets.count + 1));
}

void sim_break_it (sim_network_t *self, sim_connection_t *connection, sim_told_t told)
{
    if (connection->is_broken) {
        return;
    }
    connection->is_broken = true;
    lose_tail (connection, &connection->up);
    lose_tail (connection, &connection->down);
    if (hws_random_below (&connection->random, 3) == 0) { /* it is still to be read */
        sim_lane_delay (&connection->up,
                        (hws_ms_t) hws_random_below (&connection->random, LATE_MS));
    }
    if (told == SIM_TO_BOTH || told == SIM_TO_BROKER) {
        connection->broker_learns_at = soon (self, connection);
    }
    if (told == SIM_TO_BOTH || told == SIM_TO_CLIENT) {
        connection->client_learns_at = soon (self, connection);
    }
}

static sim_told_t anybody (sim_connection_t *connection)
{
    static const sim_told_t told[] = {SIM_TO_NOBODY, SIM_TO_NOBODY, SIM_TO_NOBODY,
                                      SIM_TO_NOBODY, SIM_TO_BROKER, SIM_TO_BROKER,
                                      SIM_TO_CLIENT, SIM_TO_CLIENT, SIM_TO_BOTH};
    return told[hws_random_below (&connection->random, sizeof told / sizeof *told)];
}

static void begin_connection (sim_network_t *self, int client)
{
    sim_connection_t *const connection = calloc (1, sizeof *connection);
    assert_non_null (connection);
    connection->number = ++self->connections_made;
    connection->client = client;
    hws_random_init (&connection->random, self->seed * 1000003 + (uint64_t) client * 1009 +
                                              self->clients[client].session.stats.connects);
    connection->broker_learns_at = connection->client_learns_at = HWS_NEVER;
    hws_list_append (&self->connections, &connection->link);
    self->clients[client].connection = connection;
    sim_say (self, "client %d connects as #%" PRIu64 "%s", client, connection->number,
             self->engine ? "" : ", in vain");
    if (self->engine == NULL) { /* refused, or nobody answers at all */
        sim_break_it (self, connection,
                      hws_random_below (&connection->random, 10) ? SIM_TO_CLIENT : SIM_TO_NOBODY);
    } else {
        sim_counted (SIM_RESUMED, connection->number > (uint64_t) self->count);
    }
}

bool sim_break_told (sim_network_t *self, int client, sim_told_t told)
{
    sim_connection_t *const connection = self->clients[client].connection;
    if (connection == NULL || connection->is_broken) {
        return false;
    }
    sim_break_it (self, connection, told);
    return true;
}

void sim_break (sim_network_t *self, int client, bool is_silent)
{
    sim_connection_t *const connection = self->clients[client].connection;
    if (connection) {
        sim_break_it (self, connection, is_silent ? anybody (connection) : SIM_TO_BOTH);
    }
}

void sim_kill (sim_network_t *self, int client)
{
    sim_connection_t *const connection = self->clients[client].connection;
    if (connection) {
        const bool is_told = hws_random_below (&connection->random, 2) == 0;
        sim_break_it (self, connection, is_told ? SIM_TO_BROKER : SIM_TO_NOBODY);
    }
    self->clients[client].is_dead = true;
}

static void drop (sim_network_t *self, sim_connection_t *connection)
{
    if (self->clients[connection->client].connection == connection) {
        self->clients[connection->client].connection = NULL;
    }
    hws_list_remove (&connection->link);
    sim_lane_cut (&connection->up, 0);
    sim_lane_cut (&connection->down, 0);
    free (connection);
}

static void drop_the_dead (sim_network_t *self)
{
    for (hws_link_t *link = self->connections.head, *next; link; link = next) {
        next = link->next;
        sim_connection_t *const connection = hws_container_of (link, sim_connection_t, link);
        const bool is_left = self->clients[connection->client].connection != connection ||
                             self->clients[connection->client].is_dead;
        if (connection->is_broken && is_left && connection->up.packets.count == 0 &&
            connection->broker_learns_at == HWS_NEVER) {
            drop (self, connection);
        }
    }
}

/*  ---- Clients ---- */

static void to_client (sim_network_t *self, int i, sim_packet_t *packet)
{
    sim_client_t *const client = &self->clients[i];
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

static void send_up (sim_network_t *self, int i, const hws_action_t *out)
{
    sim_connection_t *const connection = self->clients[i].connection;
    if (connection && !connection->is_broken && out->size > 0) {
        say_message (self, ">", i, connection->number, out->verb, out->data, out->size);
        sim_lane_put (&connection->up, arrival (self, connection), out->verb, out->data, out->size);
    }
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
            sim_say (self, "client %d leaves #%" PRIu64, i, connection->number);
            sim_break_it (self, connection,
                          hws_random_below (&connection->random, 4) ? SIM_TO_BROKER
                                                                    : SIM_TO_NOBODY);
            connection->client_learns_at = HWS_NEVER;
            client->connection = NULL;
        } else {
            send_up (self, i, &out);
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
    sim_packet_t *packet;
    while (client->connection &&
           (packet = sim_lane_take (&client->connection->down, self->now)) != NULL) {
        to_client (self, i, packet);
    }
    if (client->connection && client->connection->client_learns_at <= self->now) {
        sim_say (self, "client %d learns that #%" PRIu64 " is broken", i,
                 client->connection->number);
        client->connection->client_learns_at = HWS_NEVER;
        client->connection = NULL;
        hws_session_lost (&client->session, self->now, "broken", false);
    }
    if (hws_session_wake_at (&client->session) <= self->now) {
        hws_session_expire (&client->session, self->now);
    }
    from_client (self, i);
}

/*  ---- The clock ---- */

void sim_turn (sim_network_t *self)
{
    sim_broker_turn (self);
    for (int i = 0; i < self->count; i++) {
        if (!sim_is_stalled (self, i)) {
            run_client (self, i);
        }
    }
    drop_the_dead (self);
}

void sim_step (sim_network_t *self)
{
    self->now += SIM_STEP_MS;
    sim_turn (self);
}

static hws_ms_t client_next_at (const sim_client_t *client)
{
    if (client->is_dead) {
        return HWS_NEVER;
    }
    hws_ms_t at = hws_session_wake_at (&client->session);
    if (client->connection) {
        at = hws_time_min (at, sim_lane_next_at (&client->connection->down));
        at = hws_time_min (at, client->connection->client_learns_at);
    }
    return at > client->stalled_until ? at : client->stalled_until;
}

hws_ms_t sim_next_at (const sim_network_t *self)
{
    hws_ms_t at = sim_broker_next_at (self);
    for (int i = 0; i < self->count; i++) {
        at = hws_time_min (at, client_next_at (&self->clients[i]));
    }
    return at;
}

/*  ---- Birth and death ---- */

/*  Of a client: it does not, it flushes by hand, or it lingers.  */
static int64_t any_linger (hws_random_t *random)
{
    const uint64_t kind = hws_random_below (random, 4);
    return kind < 2 ? 0 : kind == 2 ? -1 : 1 + (int64_t) hws_random_below (random, 100);
}

int sim_add_client (sim_network_t *self)
{
    const int i = self->count;
    if (i == SIM_CLIENTS_MAX) {
        return -1;
    }
    hws_random_t random;
    hws_random_init (&random, self->seed * 131 + (uint64_t) i);
    hws_session_options_t options = {.seed = self->seed * 16 + (uint64_t) i,
                                     .name = "sim",
                                     .hash_key = {{self->seed, (uint64_t) i}},
                                     .blocks = &s_test_blocks,
                                     .connect_ms = -1,
                                     .give_up_ms = 60000,
                                     .linger_ms = any_linger (&random)};
    options.client_id.bytes[0] = (uint8_t) (i + 1);
    self->clients[i] = (sim_client_t){.dropped_at = HWS_NEVER, .abandoned_at = HWS_NEVER};
    assert_int_equal (hws_session_init (&self->clients[i].session, &options, self->now), 0);
    self->count++;
    return i;
}

void sim_init (sim_network_t *self, uint64_t seed, int count)
{
    memset (self, 0, sizeof *self);
    hws_random_init (&self->random, seed);
    self->seed = seed;
    self->now = 1000000;
    self->drained_at = self->broker_back_at = HWS_NEVER;
    self->has_early = sim_below (self, 2) == 0;
    self->options = (hws_engine_options_t){
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
    sim_broker_begin (self);
    for (int i = 0; i < count; i++) {
        sim_add_client (self);
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
    sim_broker_end (self);
}
