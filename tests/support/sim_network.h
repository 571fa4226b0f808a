/*  A virtual network with latency and faults: sessions and one engine, in one thread, on
 *  a clock of the test's.
 *
 *  Each connection is a pair of lanes in which messages arrive in order, each after a
 *  random time. A connection may break; then each end is told, or not, on its own, and
 *  what was under way arrives in part. Clients and the broker may stand still. A lane
 *  towards a client has an end: then the broker is told that the connection is full.
 *  Everything follows from the seed.
 */
#ifndef TEST_SIM_NETWORK_H
#define TEST_SIM_NETWORK_H

#include "base/random.h"
#include "broker/engine.h"
#include "client/session.h"

enum { SIM_CLIENTS_MAX = 6, SIM_STEP_MS = 2, SIM_LANE_MAX = 24 };

/*  By the seed: large records travel in parts, or in messages that are forwarded whole.  */
enum { SIM_BATCH_BYTES_LEAST = 4096, SIM_BATCH_BYTES_MOST = 16384 };

#define SIM_INTERVAL_MS  1000
#define SIM_GRACE_MS     5000
#define SIM_ORPHAN_MS    8000
#define SIM_BUFFER       26624                  /* small: windows are asked back */
#define SIM_BUFFER_EARLY (26 * HWS_EARLY_BYTES) /* room for all senders at once */

typedef struct {
    hws_list_t packets;
    hws_ms_t last_at; /* when the last of them arrives */
} sim_lane_t;

typedef struct {
    hws_link_t link;
    uint64_t number; /* the routing id */
    int client;
    bool is_broken;
    sim_lane_t up, down;
    hws_ms_t broker_learns_at; /* of its end; HWS_NEVER: it does not */
    hws_ms_t client_learns_at;
} sim_connection_t;

typedef struct {
    hws_session_t session;
    sim_connection_t *connection; /* the present one, or null */
    hws_ms_t stalled_until;
    bool is_dead; /* the process is gone */
} sim_client_t;

typedef struct {
    hws_random_t random;
    hws_ms_t now;
    bool has_early; /* its windows are large enough for early senders */
    hws_engine_t *engine;
    int count;
    sim_client_t clients[SIM_CLIENTS_MAX];
    hws_list_t connections;
    uint64_t connections_made;
    hws_ms_t broker_stalled_until;
    size_t tokens; /* payloads that the engine holds */
    size_t refused;
    uint8_t buffer[HWS_BATCH_BYTES_DEFAULT];
} sim_network_t;

void sim_init (sim_network_t *self, uint64_t seed, int count);

/*  Everybody's objects have been removed.  */
void sim_fini (sim_network_t *self);

/*  One step of the clock: what is due arrives, what is said leaves.  */
void sim_step (sim_network_t *self);

/*  The client's present connection breaks; each end is told at random, soon, or, if
 *  `is_silent`, not at all.  */
void sim_break (sim_network_t *self, int client, bool is_silent);

/*  The process is gone, its connection with it.  */
void sim_kill (sim_network_t *self, int client);

static inline bool sim_is_stalled (const sim_network_t *self, int client)
{
    return self->clients[client].is_dead || self->clients[client].stalled_until > self->now;
}

static inline uint64_t sim_below (sim_network_t *self, uint64_t bound)
{
    return hws_random_below (&self->random, bound);
}

#endif
