/*  A virtual network with latency and faults: sessions and one engine, in one thread, on
 *  a clock of the test's.
 *
 *  Each connection is a pair of lanes in which messages arrive in order, each after a
 *  random time. A connection may break; then each end is told, or not, on its own, and
 *  what was under way arrives in part, perhaps after the first words of the next connection.
 *  Clients and the broker may stand still. A lane towards a client has an end: then the broker
 *  is told that the connection is full. The broker may be killed, or drained, and come back.
 *  Everything follows from the seed: each connection has random numbers of its own, so that
 *  what happens to one does not change what happens on another.
 *
 *  The network also knows, from what the broker was told and when, who has been away for longer
 *  than the broker has to wait.
 */
#ifndef TEST_SIM_NETWORK_H
#define TEST_SIM_NETWORK_H

#include "base/random.h"
#include "broker/engine.h"
#include "client/session.h"
#include "tests/support/sim_lane.h"

enum { SIM_CLIENTS_MAX = 14, SIM_STEP_MS = 2, SIM_LANE_MAX = 24 };

/*  By the seed: large records travel in parts, or in messages that are forwarded whole.  */
enum { SIM_BATCH_BYTES_LEAST = 4096, SIM_BATCH_BYTES_MOST = 16384 };

#define SIM_INTERVAL_MS  1000
#define SIM_GRACE_MS     5000
#define SIM_ORPHAN_MS    8000
#define SIM_DRAIN_MS     500
#define SIM_BUFFER       26624                  /* small: windows are asked back */
#define SIM_BUFFER_EARLY (26 * HWS_EARLY_BYTES) /* room for all senders at once */

typedef struct {
    hws_link_t link;
    hws_random_t random;
    uint64_t number; /* the routing id */
    int client;
    bool is_broken;
    bool is_heard; /* the broker has got something of it */
    sim_lane_t up, down;
    hws_ms_t full_until; /* the broker can send nothing until then */
    int grants_to_lose;  /* batches of grants that do not arrive */
    int grants_to_repeat;
    hws_ms_t broker_learns_at; /* of its end; HWS_NEVER: it does not */
    hws_ms_t client_learns_at;
} sim_connection_t;

typedef struct {
    hws_session_t session;
    sim_connection_t *connection; /* the present one, or null */
    hws_ms_t stalled_until;
    bool is_dead; /* the process is gone */

    uint64_t heard_on;     /* number of the connection on which the broker heard its last HELLO */
    bool is_away;          /* the broker knows that it is */
    hws_ms_t dropped_at;   /* its seats may be given up from then on */
    hws_ms_t abandoned_at; /* likewise its anchors; and what it did not hear of is forgotten */
    bool was_away;         /* that time has come for its seats */
    bool was_forgotten;    /* and for its anchors */
} sim_client_t;

typedef struct sim_network {
    uint64_t seed;
    hws_random_t random;
    hws_ms_t now;
    bool has_early;    /* its windows are large enough for early senders */
    bool is_forgetful; /* the broker has no state directory: another begins after it */
    bool is_traced;
    bool is_contested; /* two clients take one anchor for their own */
    hws_engine_options_t options;
    hws_engine_t *engine; /* null: the broker is down */
    int count;
    sim_client_t clients[SIM_CLIENTS_MAX];
    hws_list_t connections;
    uint64_t connections_made;
    hws_ms_t broker_stalled_until;
    hws_ms_t drained_at;     /* SIGTERM was sent; HWS_NEVER: it was not */
    hws_ms_t down_ms;        /* and it is to be down for so long */
    hws_ms_t broker_back_at; /* while it is down */
    hws_ms_t begun_at;       /* the broker */
    size_t tokens;           /* payloads that the engine holds */
    size_t refused;
    uint8_t buffer[HWS_BATCH_BYTES_DEFAULT];
} sim_network_t;

void sim_init (sim_network_t *self, uint64_t seed, int count);

/*  Everybody's objects have been removed.  */
void sim_fini (sim_network_t *self);

/*  One step of the clock: what is due arrives, what is said leaves.  */
void sim_step (sim_network_t *self);

/*  The same without moving the clock; and when there is something to do next.  */
void sim_turn (sim_network_t *self);
hws_ms_t sim_next_at (const sim_network_t *self);

/*  Another program comes. Returns its number, or -1 when there are too many.  */
int sim_add_client (sim_network_t *self);

/*  Who is told that the client's present connection broke.  */
typedef enum { SIM_TO_BOTH, SIM_TO_BROKER, SIM_TO_CLIENT, SIM_TO_NOBODY } sim_told_t;

/*  It breaks. False when there is none.  */
bool sim_break_told (sim_network_t *self, int client, sim_told_t told);

/*  The client's present connection breaks; each end is told at random, soon, or, if
 *  `is_silent`, not at all.  */
void sim_break (sim_network_t *self, int client, bool is_silent);

/*  The process is gone, its connection with it.  */
void sim_kill (sim_network_t *self, int client);

/*  Says a line about the run at hand, if that is asked for.  */
void sim_say (const sim_network_t *self, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static inline bool sim_is_stalled (const sim_network_t *self, int client)
{
    return self->clients[client].is_dead || self->clients[client].stalled_until > self->now;
}

static inline uint64_t sim_below (sim_network_t *self, uint64_t bound)
{
    return hws_random_below (&self->random, bound);
}

#endif
