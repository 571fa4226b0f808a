/*  A world for tests of the engine: one engine with small limits, a clock that the
 *  test moves, and clients by address.
 *
 *  Clients speak through the codecs and collect what the engine sends them, decoded,
 *  in order. Every payload that the engine takes is a token of the world; the world
 *  sees that each comes out once, and at its end that nothing is held.
 */
#ifndef TEST_ENGINE_WORLD_H
#define TEST_ENGINE_WORLD_H

#include "base/list.h"
#include "broker/engine.h"
#include "proto/batch.h"

#define WORLD_CLIENTS_MAX 16
#define WORLD_INTERVAL_MS 1000 /* heartbeat interval by default */
#define WORLD_GRACE_MS    5000
#define WORLD_ORPHAN_MS   8000
#define WORLD_CANCEL_MS   20000 /* how long a cancelled token is remembered */
#define WORLD_BUFFER      655360
#define WORLD_WINDOW      16384 /* bytes of every sender's window: nothing is lent */
#define WORLD_RECORDS     64    /* the same in records */

typedef struct world world_t;
typedef struct client client_t;

typedef enum { HEARD_CONTROL, HEARD_RUN, HEARD_GRANT } heard_kind_t;

/*  One thing that the engine said.  */
typedef struct {
    hws_link_t link;
    heard_kind_t kind;
    hws_control_t control;
    hws_run_t run; /* its body lies in `bytes` */
    hws_grant_t grant;
    uint8_t *bytes;
} heard_t;

struct client {
    world_t *world;
    hws_id_t id;
    hws_address_t address;
    uint32_t front;       /* of its connections from the next on */
    uint32_t listener;    /* the same */
    hws_list_t inbox;     /* of heard_t */
    heard_t *last;        /* what was taken last; freed with the next */
    bool is_full;         /* its connection takes nothing */
    bool is_beating;      /* world_advance lets it PING, and PONG is not collected */
    bool is_deaf;         /* what it is sent is not collected, only counted */
    size_t message_count; /* messages that came */
    void (*on_run) (client_t *self, const hws_run_t *run); /* null, or hears every run */
    uint64_t next_id;                                      /* of requests */
};

struct world {
    hws_engine_options_t options;
    hws_engine_t *engine;
    hws_ms_t now;
    client_t clients[WORLD_CLIENTS_MAX];
    size_t client_count;
    uint32_t address_count;
    size_t tokens_made;
    size_t tokens_back;
    size_t refused_count; /* effects given back to the engine */
    size_t logged_count;  /* lines for the log */
    size_t front_count;   /* dedicated fronts that are bound, or being bound */
    size_t unbind_count;  /* since the beginning */
    uint32_t last_front;  /* the highest number that was bound */
    bool is_slow_to_bind; /* the test answers BIND, with world_bound */
    bool is_poor;         /* the engine may be out of memory */
};

/*  Options with small limits, for a test to change before world_begin.  */
hws_engine_options_t world_options (void);
void world_begin (world_t *self, const hws_engine_options_t *options);

/*  Abandons and destroys the engine; every token is back.  */
void world_end (world_t *self);

/*  The broker's next life, with its id and its key; clients have yet to connect again.  */
void world_restart (world_t *self);

/*  Whether everything is true that must be; world_pump does it too.  */
void world_check (const world_t *self);

/*  Sends what the engine has to send.  */
void world_pump (world_t *self);

/*  Answers BIND of a front: with two endpoints, see world_endpoint, or with `fault`.  */
void world_bound (world_t *self, uint32_t front);
void world_bind_failed (world_t *self, uint32_t front, const char *fault);

/*  Where a bound front listens, by the number of the listener.  */
const char *world_endpoint (uint32_t front, uint32_t listener);

/*  Lets the time pass turn by turn, as a shell does that is never late.  */
void world_advance (world_t *self, hws_ms_t length_ms);

/*  Lets the time pass without a turn, and then has one.  */
void world_oversleep (world_t *self, hws_ms_t length_ms);

/*  A client that has said HELLO and was answered.  */
client_t *client_connect (world_t *world);

/*  The same at a dedicated front.  */
client_t *client_connect_at (world_t *world, uint32_t front);

/*  The same client from a new connection: HELLO, answered. `client_hello` is without
 *  looking at the answer.  */
void client_reconnect (client_t *self);
void client_hello (client_t *self);

/*  Its connection ends.  */
void client_disconnect (client_t *self);

/*  Sends a control message; with an id if `self->next_id` grows. Returns the id.  */
uint64_t client_ask (client_t *self, hws_control_t *message);
void client_say (client_t *self, hws_control_t *message);

/*  Sends raw frames. `json` null: one frame only.  */
void client_send_frames (client_t *self, hws_bytes_t first, const char *json);

/*  Sends a batch; large ones own a payload as in the shell.  */
int client_send_bytes (client_t *self, const uint8_t *data, size_t size);

/*  Takes the first control message of the verb, run or grant out of the inbox; null if
 *  there is none. What it returns lives until the next take.  */
const hws_control_t *client_find_control (client_t *self, hws_verb_t verb);
const hws_run_t *client_find_run (client_t *self);
const hws_grant_t *client_find_grant (client_t *self);
const heard_t *client_next (client_t *self);

/*  The same, and the test fails if there is none, or if the form or type differs.  */
const hws_control_t *client_take_ok (client_t *self, hws_verb_t verb);
const hws_refusal_t *client_take_refusal (client_t *self, hws_verb_t verb, int code);
const hws_control_t *client_take (client_t *self, hws_verb_t verb);
const hws_run_t *client_take_run (client_t *self, hws_run_type_t type);
const hws_grant_t *client_take_grant (client_t *self);

/*  The inbox is empty; or made so.  */
void client_expect_silence (client_t *self);
void client_forget (client_t *self);

void client_ping (client_t *self);

#endif
