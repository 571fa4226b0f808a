#include "tests/support/sim_broker.h"

#include "broker/engine_state.h"
#include "tests/support/engine_check.h"
#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"
#include "tests/support/sim_network_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static hws_address_t address_of (const sim_connection_t *connection)
{
    hws_address_t address = {.size = 8};
    hws_put_u64 (address.id, connection->number);
    return address;
}

static sim_connection_t *connection_of (hws_link_t *link)
{
    return link ? hws_container_of (link, sim_connection_t, link) : NULL;
}

static sim_connection_t *connection_at (const sim_network_t *self, const hws_address_t *address)
{
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        if (connection_of (link)->number == hws_get_u64 (address->id)) {
            return connection_of (link);
        }
    }
    return NULL;
}

static void let_go (sim_network_t *self, void *payload)
{
    self->tokens -= payload != NULL;
    free (payload);
}

/*  ---- Who is away ---- */

/*  What the client's seats and anchors are judged by begins anew: `is_there`, it was heard; else
 *  it is known to be away.  */
static void postpone (const sim_network_t *self, sim_client_t *client, bool is_there)
{
    const hws_ms_t silent_ms = is_there ? 3 * SIM_INTERVAL_MS : 0;
    const bool is_silent = client->dropped_at <= self->now; /* away by that alone */
    if (is_there || (!client->is_away && !is_silent)) {
        client->dropped_at = self->now + (is_there ? silent_ms : SIM_GRACE_MS);
        client->abandoned_at = self->now + silent_ms + SIM_ORPHAN_MS;
    }
    client->is_away = !is_there;
}

static void judge (sim_network_t *self)
{
    for (int i = 0; i < self->count; i++) {
        sim_client_t *const client = &self->clients[i];
        client->was_away |= client->dropped_at <= self->now;
        client->was_forgotten |= client->abandoned_at <= self->now;
    }
}

/*  A broker whose turn comes late moves every deadline on by the lateness and an interval.  */
static void forgive (sim_network_t *self, hws_ms_t lateness)
{
    for (int i = 0; i < self->count && lateness > SIM_INTERVAL_MS / 2; i++) {
        sim_client_t *const client = &self->clients[i];
        const hws_ms_t more_ms = lateness + SIM_INTERVAL_MS;
        client->dropped_at = hws_time_after (client->dropped_at, more_ms);
        client->abandoned_at = hws_time_after (client->abandoned_at, more_ms);
    }
}

/*  ---- What arrives ---- */

static void note_arrival (sim_network_t *self, sim_connection_t *connection,
                          const sim_packet_t *packet)
{
    sim_client_t *const client = &self->clients[connection->client];
    if (client->connection && client->connection != connection && client->connection->is_heard) {
        sim_counted (SIM_REORDERED, 1);
    }
    connection->is_heard = true;
    /* What was said since the last PONG comes once more with the next: not both are lost. */
    if (packet->verb && strcmp (packet->verb, "PING") == 0) {
        connection->grants_to_lose = 0;
    }
}

/*  The broker has taken a message.  */
static void note_heard (sim_network_t *self, const sim_connection_t *connection,
                        const sim_packet_t *packet)
{
    sim_client_t *const client = &self->clients[connection->client];
    if (packet->verb && strcmp (packet->verb, "HELLO") == 0) {
        client->heard_on = connection->number;
        postpone (self, client, false);
        /* An ending that waits for its sender does so no longer than the client is silent. */
        client->dropped_at = hws_time_min (client->dropped_at, self->now + 3 * SIM_INTERVAL_MS);
    } else if (client->heard_on == connection->number) {
        postpone (self, client, true);
    }
}

static void to_engine (sim_network_t *self, sim_connection_t *connection, sim_packet_t *packet)
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
    const uint64_t failures = sim_memory.failures;
    sim_memory.is_in_engine = true;
    const int rc = hws_engine_recv (self->engine, self->now, &address, &message);
    sim_memory.is_in_engine = false;
    if (sim_memory.failures > failures) {
        sim_say (self, "no memory for %s of #%" PRIu64, packet->verb ? packet->verb : "a batch",
                 connection->number);
        /* It may take so long until the client says it again that it was away. */
        self->clients[connection->client].was_away = true;
    }
    assert_true (rc == 0 || (rc == HWS_ENO_MEMORY && sim_memory.failures > failures));
    if (sim_memory.failures == failures) {
        note_heard (self, connection, packet);
    }
    if (packet->verb || message.payload) {
        let_go (self, token);
    }
    free (packet);
}

static void take_what_arrived (sim_network_t *self)
{
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        sim_connection_t *const connection = connection_of (link);
        if (connection->broker_learns_at <= self->now) {
            sim_say (self, "the broker learns that #%" PRIu64 " of %d is broken",
                     connection->number, connection->client);
            connection->broker_learns_at = HWS_NEVER;
            const hws_address_t address = address_of (connection);
            sim_client_t *const client = &self->clients[connection->client];
            if (client->heard_on == connection->number) {
                client->heard_on = 0; /* what is still read of it makes nobody present */
                postpone (self, client, false);
            }
            sim_memory.is_in_engine = true;
            hws_engine_peer_gone (self->engine, self->now, &address);
            sim_memory.is_in_engine = false;
        }
        sim_packet_t *packet;
        while ((packet = sim_lane_take (&connection->up, self->now)) != NULL) {
            note_arrival (self, connection, packet);
            to_engine (self, connection, packet);
        }
    }
}

/*  ---- What it says ---- */

/*  Whether there still is a seat that could say the grant again.  */
static bool has_seat (const sim_network_t *self, const hws_address_t *to, uint64_t session_id)
{
    for (hws_link_t *a = self->engine->anchors.head; a; a = a->next) {
        const hws_anchor_t *const anchor = hws_container_of (a, hws_anchor_t, in_engine);
        for (hws_link_t *s = anchor->seats.head; s; s = s->next) {
            const hws_seat_t *const seat = hws_container_of (s, hws_seat_t, in_anchor);
            if (seat->session_id == session_id && seat->peer->address.size == to->size &&
                memcmp (seat->peer->address.id, to->id, to->size) == 0) {
                return true;
            }
        }
    }
    return false;
}

/*  Whether the message consists of grants; those that come but once are not to be lost.  */
static bool is_grant (const sim_network_t *self, const hws_effect_t *effect)
{
    hws_batch_t batch;
    hws_grant_t grant;
    const uint8_t *const data = effect->data ? effect->data : effect->payload;
    if (effect->verb || hws_batch_open (&batch, hws_bytes (data, effect->size)) != 0 ||
        batch.kind != HWS_BATCH_GRANT) {
        return false;
    }
    while (hws_batch_next_grant (&batch, &grant) == 1) {
        if (!has_seat (self, &effect->to, grant.stream)) {
            return false;
        }
    }
    return true;
}

static void from_engine (sim_network_t *self, hws_effect_t *effect)
{
    sim_connection_t *const to = connection_at (self, &effect->to);
    if (to == NULL || to->is_broken) {
        return; /* lost, or on its way when the connection broke */
    }
    if (to->down.packets.count >= SIM_LANE_MAX || to->full_until > self->now) {
        sim_say (self, "| %d#%" PRIu64 " takes no %s", to->client, to->number,
                 effect->verb ? effect->verb : "batch");
        self->refused++;
        sim_counted (SIM_REFUSED_SENDS, 1);
        sim_memory.is_in_engine = true;
        hws_engine_refused (self->engine, self->now, effect);
        sim_memory.is_in_engine = false;
        return;
    }
    if (to->grants_to_lose > 0 && is_grant (self, effect)) {
        to->grants_to_lose--;
        sim_counted (SIM_GRANTS_LOST, 1);
        sim_say (self, "a grant to %d is lost", to->client);
        return;
    }
    sim_send_down (self, to, effect);
    if (to->grants_to_repeat > 0 && is_grant (self, effect)) {
        to->grants_to_repeat--;
        sim_counted (SIM_GRANTS_TWICE, 1);
        sim_send_down (self, to, effect);
    }
}

static bool pop (sim_network_t *self, hws_effect_t *effect)
{
    sim_memory.is_in_engine = true;
    const bool has_more = hws_engine_pop (self->engine, effect);
    sim_memory.is_in_engine = false;
    return has_more;
}

static void pop_all (sim_network_t *self, bool is_heard)
{
    hws_effect_t effect;
    while (pop (self, &effect)) {
        if (effect.kind == HWS_EFFECT_SEND && is_heard) {
            from_engine (self, &effect);
        } else if (effect.kind == HWS_EFFECT_LOG) {
            sim_say (self, "broker: %.*s", (int) effect.size, (const char *) effect.data);
        }
        free (effect.data);
        let_go (self, effect.payload);
    }
}

/*  ---- Its life ---- */

void sim_broker_begin (sim_network_t *self)
{
    assert_int_equal (hws_engine_new (&self->engine, &self->options), 0);
    self->begun_at = self->now;
    self->broker_back_at = self->drained_at = HWS_NEVER;
    for (int i = 0; i < self->count; i++) {
        sim_client_t *const client = &self->clients[i];
        client->is_away = false;
        client->dropped_at = HWS_NEVER;
        postpone (self, client, false);
    }
    sim_say (self, "the broker begins, epoch %u", self->options.epoch);
}

/*  Whatever is said again: honest clients break no rule, whatever happens on the way. But what
 *  follows a message that was lost for want of memory may look odd.  */
static void check_stats (const sim_network_t *self)
{
    const hws_engine_stats_t *const stats = hws_engine_stats (self->engine);
    assert_int_equal (stats->credit_violations, 0);
    assert_true (stats->protocol_errors == 0 || sim_memory.failures > 0 || self->is_contested);
    sim_counted (SIM_RETURNS, stats->returns);
}

void sim_broker_end (sim_network_t *self)
{
    if (self->engine == NULL) {
        return;
    }
    check_stats (self);
    hws_engine_abandon (self->engine);
    pop_all (self, false);
    assert_int_equal (self->tokens, 0);
    hws_engine_destroy (&self->engine);
}

/*  Its process is gone, and every connection with it.  */
static void stop (sim_network_t *self, hws_ms_t down_ms, bool is_clean)
{
    sim_counted (SIM_TWICE, self->now - self->begun_at < 1000);
    sim_broker_end (self);
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        sim_connection_t *const connection = connection_of (link);
        const bool is_told = is_clean || hws_random_below (&connection->random, 5) > 0;
        if (!connection->is_broken && is_clean) {
            connection->is_broken = true; /* what it has said arrives */
            connection->client_learns_at = connection->down.last_at + 1;
        }
        sim_break_it (self, connection, is_told ? SIM_TO_CLIENT : SIM_TO_NOBODY);
        sim_lane_cut (&connection->up, 0);
        connection->broker_learns_at = HWS_NEVER;
    }
    for (int i = 0; i < self->count; i++) {
        self->clients[i].dropped_at = self->clients[i].abandoned_at = HWS_NEVER;
    }
    self->broker_back_at = self->now + down_ms;
    self->broker_stalled_until = 0;
    if (self->is_forgetful) {
        self->options.broker_id++;
        self->options.key[0]++;
        sim_counted (SIM_KILLS_FORGETFUL, 1);
    } else {
        self->options.epoch++;
    }
}

bool sim_broker_kill (sim_network_t *self, hws_ms_t down_ms)
{
    if (self->engine == NULL) {
        return false;
    }
    sim_say (self, "the broker is killed");
    sim_counted (SIM_KILLS, !self->is_forgetful);
    stop (self, down_ms, false);
    return true;
}

bool sim_broker_drain (sim_network_t *self, hws_ms_t down_ms)
{
    if (self->engine == NULL || self->drained_at != HWS_NEVER) {
        return false;
    }
    sim_say (self, "the broker is drained");
    sim_counted (SIM_DRAINS, 1);
    self->drained_at = self->now;
    self->down_ms = down_ms;
    sim_memory.is_in_engine = true;
    hws_engine_drain (self->engine, self->now, "going down");
    sim_memory.is_in_engine = false;
    return true;
}

void sim_broker_stall (sim_network_t *self, hws_ms_t length_ms)
{
    const hws_ms_t until = self->now + length_ms;
    if (until > self->broker_stalled_until) {
        self->broker_stalled_until = until;
    }
}

static void go_if_drained (sim_network_t *self)
{
    if (self->drained_at == HWS_NEVER) {
        return;
    }
    if (hws_engine_is_drained (self->engine) || self->now >= self->drained_at + SIM_DRAIN_MS) {
        stop (self, self->down_ms, true);
    }
}

void sim_broker_turn (sim_network_t *self)
{
    if (self->engine == NULL) {
        if (self->broker_back_at > self->now) {
            return;
        }
        sim_broker_begin (self);
    }
    if (self->broker_stalled_until > self->now) {
        return;
    }
    if (self->engine->peers_by_client.count > 0) {
        forgive (self, self->now - self->engine->skew - self->engine->pulse_at);
    }
    judge (self);
    take_what_arrived (self);
    sim_memory.is_in_engine = true;
    if (hws_engine_wake_at (self->engine) <= self->now) {
        hws_engine_expire (self->engine, self->now);
    }
    hws_engine_flush (self->engine);
    sim_memory.is_in_engine = false;
    pop_all (self, true);
    engine_check (self->engine, self->tokens);
    go_if_drained (self);
}

hws_ms_t sim_broker_next_at (const sim_network_t *self)
{
    if (self->engine == NULL) {
        return self->broker_back_at;
    }
    hws_ms_t at = hws_engine_wake_at (self->engine);
    for (hws_link_t *link = self->connections.head; link; link = link->next) {
        const sim_connection_t *const connection = connection_of (link);
        at = hws_time_min (at, sim_lane_next_at (&connection->up));
        at = hws_time_min (at, connection->broker_learns_at);
    }
    if (self->drained_at != HWS_NEVER) {
        at = hws_time_min (at, self->drained_at + SIM_DRAIN_MS);
    }
    return at > self->broker_stalled_until ? at : self->broker_stalled_until;
}
