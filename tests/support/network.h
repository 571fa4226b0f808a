/*  Sessions and an engine over a virtual network, in one thread, on a clock of the test's.
 *
 *  Messages arrive at once and in order. A connection may be cut (both ends are told) or
 *  go silent (nobody is told, nothing arrives). The engine may be replaced by one of a
 *  later epoch. The front of a dedicated anchor is bound at once; which front a client
 *  connects to is the test's to say.
 */
#ifndef TEST_NETWORK_H
#define TEST_NETWORK_H

#include "broker/engine.h"
#include "client/session.h"

enum { NETWORK_CLIENTS = 8, NETWORK_BATCH_BYTES = 65536 };

typedef struct {
    hws_session_t session;
    uint64_t connection; /* number of the present one; 0: none */
    uint32_t front;      /* that it connects to: 0, the shared one */
    bool is_silent;      /* nothing passes, either way */
    bool is_deaf;        /* nothing passes to it */
    bool is_refused;     /* connections cannot be made */
    unsigned to_lose;    /* so many DATA batches to it get lost */
    unsigned lost_nth;   /* every such GRANT to it and WINDOW of it gets lost; 0: none */
    unsigned counted;    /* of these */
    unsigned lost;       /* likewise */
    uint64_t said;       /* messages that it sent */
    uint64_t pings;      /*   PINGs among them */
    uint64_t data;       /*   DATA batches among them */
} network_client_t;

typedef struct {
    hws_ms_t now;
    hws_engine_t *engine;
    uint64_t broker_id;
    uint32_t epoch;
    uint64_t connections; /* made so far */
    uint32_t last_front;  /* the number of the last that was bound; told as "ipc:///N" */
    int fronts;           /* that are bound */
    int count;
    network_client_t clients[NETWORK_CLIENTS];
    uint8_t buffer[NETWORK_BATCH_BYTES];
} network_t;

/*  A network with `count` clients; give-up after 60 s, connect after 5 s.  */
void network_init (network_t *self, int count);
void network_fini (network_t *self);

/*  Passes messages until nobody has any.  */
void network_settle (network_t *self);

/*  Lets time pass, deadline by deadline, and settles after each.  */
void network_pass (network_t *self, hws_ms_t length_ms);

/*  The connection ends; the engine and the client are told.  */
void network_cut (network_t *self, int client);

/*  The broker dies and comes back with nothing and the next epoch; or another comes, with another
 *  id.  */
void network_restart (network_t *self);
void network_replace (network_t *self);

#endif
