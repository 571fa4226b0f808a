/*  The broker's protocol: a value that eats messages and yields effects.
 *
 *  The engine does no I/O and reads no clock. The shell (broker_io) tells it what
 *  arrived, which connections ended and what time it is, and then takes effects
 *  until there are none: messages to send, payloads to release, lines to log.
 *  Everything that peers can make grow has a limit in the options. The shell never
 *  calls back into the engine from within a call.
 *
 *  Time. `now_ms` is the shell's monotonic clock. The engine keeps a clock of its
 *  own behind it: when a turn comes late, the own clock is set back by the lateness
 *  and one interval, which moves every deadline on at once, so that a broker that
 *  slept judges nobody by the time it slept (docs/protocol.md, "Liveness").
 *
 *  Payloads. The bytes of a batch belong to a token that only the shell
 *  understands (a zmq_msg_t there, a counter in tests). A token that
 *  hws_engine_recv took comes out once, with a SEND or a RELEASE effect.
 */
#ifndef HWS_ENGINE_H
#define HWS_ENGINE_H

#include "base/bytes.h"
#include "base/error.h"
#include "base/log.h"
#include "base/map.h"
#include "base/time.h"
#include "broker/credential.h"
#include "proto/control.h"

#define HWS_ROUTING_ID_SIZE_MAX 255

/*  Where a connection is: the front it came in on and its routing id there.  */
typedef struct {
    uint32_t front;
    uint8_t size;
    uint8_t id[HWS_ROUTING_ID_SIZE_MAX];
} hws_address_t;

/*  What an anchor gets when its OPEN does not say; all lengths in milliseconds.  */
typedef struct {
    uint64_t heartbeat_interval_ms;
    uint64_t reconnect_grace_ms;
    hws_optional_t unattached_timeout_ms; /* null: never */
    uint64_t orphan_ttl_ms;
    hws_optional_t max_senders; /* null: unlimited */
    uint64_t buffer_bytes;      /* budget of unacknowledged bytes */
    uint64_t window_bytes_min;  /* floor of a sender's window */
    uint64_t window_bytes_max;
    uint64_t window_records;
} hws_anchor_defaults_t;

typedef struct {
    uint64_t heartbeat_min_ms;
    uint64_t peers;
    uint64_t anchors;
    uint64_t anchors_per_peer;
    uint64_t senders_per_anchor;
    uint64_t seats_per_peer;
    uint64_t exiting_seats; /* of one anchor; beyond, attaches are busy */
    uint64_t fronts;        /* dedicated anchors, each with a front of its own */
    uint64_t waiting_attaches;
    uint64_t wait_ms; /* the longest that an attach may wait */
    uint64_t tombstones;
    uint64_t record_bytes;
    uint64_t batch_bytes;
    hws_optional_t buffer_bytes;      /* of all anchors together; null: unlimited */
    uint64_t cancel_orphans;          /* cancels of tokens that are remembered */
    uint64_t cancel_orphans_per_peer; /* of one client */
    uint64_t cancel_orphan_ttl_ms;    /* for how long */
    uint64_t cancel_sweep_ms;         /* between two searches for those that are over */
} hws_limits_t;

typedef struct {
    uint64_t broker_id;
    uint32_t epoch;
    uint64_t secret[2];                   /* random, of this process: key of the maps' hashes */
    uint8_t key[HWS_CREDENTIAL_KEY_SIZE]; /* of credentials: what it has made it knows again */
    hws_anchor_defaults_t anchors;
    hws_limits_t limits;
} hws_engine_options_t;

typedef struct hws_engine hws_engine_t;

/*  One received message. A control message has two frames, a batch one.  */
typedef struct {
    size_t frame_count; /* without the routing id */
    hws_bytes_t frame[2];
    uint8_t *data;       /* frame[0] again, writable: runs are rewritten in place */
    void *payload;       /* owns the bytes; null if the engine has to copy what it keeps */
    const char *address; /* the peer's network address, or "" */
    uint32_t listener;   /* by which of its front's endpoints the peer came */
} hws_message_t;

typedef enum {
    HWS_EFFECT_SEND,    /* send to `to`; then data and payload are the shell's */
    HWS_EFFECT_RELEASE, /* the payload is the shell's again */
    HWS_EFFECT_LOG,     /* data is a line of `size` bytes, without a newline */
    HWS_EFFECT_BIND,    /* make the front `to.front`, then call hws_engine_bound */
    HWS_EFFECT_UNBIND   /* close the front `to.front` when its last words are sent; follows
                           each BIND once, unless the bind was told to have failed */
} hws_effect_kind_t;

/*  An effect is the shell's once popped: it frees `data` with free () and disposes of
 *  `payload` itself, unless it gives the effect back with hws_engine_refused.  */
typedef struct {
    hws_effect_kind_t kind;
    hws_address_t to;
    const char *verb; /* SEND: static; null for a batch */
    uint8_t *data;    /* from malloc; null when `payload` has the bytes */
    size_t size;
    void *payload;
    hws_log_level_t level;
} hws_effect_t;

/*  What happened since the start; for logs, tests and metrics.  */
typedef struct {
    uint64_t messages_in;
    uint64_t bytes_in;
    uint64_t runs_in;
    uint64_t records_in;        /* as counted by run headers */
    uint64_t batches_forwarded; /* the very message */
    uint64_t batches_copied;
    uint64_t opened, closed;
    uint64_t attached, detached, finalized, dropped, cancelled;
    uint64_t refused;         /* requests answered Err */
    uint64_t refused_cancels; /* of these, cancels of tokens that are not remembered */
    uint64_t protocol_errors;
    uint64_t credit_violations;
    uint64_t gaps;
    uint64_t returns;         /* seats that were asked to give back what is lent to them */
    uint64_t unknown_stream;  /* runs of a stream that is not the peer's */
    uint64_t missed_controls; /* not sent to a full connection */
    uint64_t binds;           /* of dedicated fronts that were asked for */
    uint64_t bind_failures;   /* of these */
    uint64_t late_turns;
    uint64_t log_lines_lost;
} hws_engine_stats_t;

/*  Makes an engine. The options are copied. Returns 0 or HWS_ENO_MEMORY.  */
int hws_engine_new (hws_engine_t **self, const hws_engine_options_t *options);

/*  Frees everything. Payloads that are still held come out first: the shell pops
 *  until there is nothing, after hws_engine_abandon. Accepts null.  */
void hws_engine_destroy (hws_engine_t **self);

/*  Turns every held payload into a RELEASE effect, for a shutdown.  */
void hws_engine_abandon (hws_engine_t *self);

/*  A message arrived. Returns 0, or HWS_ENO_MEMORY when it was not handled. The engine
 *  has taken the payload if message->payload is null afterwards; else it is still the
 *  caller's. A peer's faults are no errors here: they are answered.  */
int hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                     hws_message_t *message);

/*  The transport says that the connection is closed, unreachable or reads
 *  nothing.  */
void hws_engine_peer_gone (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *address);

/*  A SEND effect could not be sent because the connection is full. The engine takes
 *  it back: batches wait, grants stay as state, anything else is not sent and the
 *  connection is told to resynchronise later. What the engine took is null in the effect
 *  afterwards; the rest is still the caller's to free.  */
void hws_engine_refused (hws_engine_t *self, hws_ms_t now_ms, hws_effect_t *effect);

/*  The answer to a BIND effect: with `rc` 0 the front listens on `endpoints`, one for each
 *  endpoint of the shared front and in that order, which are copied; else `text` says in a
 *  sentence why there is none, and there is nothing to unbind.  */
void hws_engine_bound (hws_engine_t *self, hws_ms_t now_ms, uint32_t front, int rc,
                       const hws_endpoint_t *endpoints, size_t endpoint_count, const char *text);

/*  Time has passed: whatever is due acts, oldest first.  */
void hws_engine_expire (hws_engine_t *self, hws_ms_t now_ms);

/*  The point at which hws_engine_expire has something to do, on the shell's clock;
 *  HWS_NEVER if nothing is pending.  */
hws_ms_t hws_engine_wake_at (const hws_engine_t *self);

/*  The wake's work is drained: open batches and grants become messages. Call before
 *  popping.  */
void hws_engine_flush (hws_engine_t *self);

/*  Takes the next effect, in order. Returns true with one, false when there is
 *  none.  */
bool hws_engine_pop (hws_engine_t *self, hws_effect_t *effect);

/*  The broker is leaving: new opens and attaches are refused as closed, every client
 *  gets GOAWAY with the reason, who says HELLO later behind the answer.  */
void hws_engine_drain (hws_engine_t *self, hws_ms_t now_ms, const char *reason);

/*  Whether nothing waits to be sent to a full connection.  */
bool hws_engine_is_drained (const hws_engine_t *self);

/*  New defaults and limits, for objects made from now on.  */
void hws_engine_configure (hws_engine_t *self, const hws_anchor_defaults_t *anchors,
                           const hws_limits_t *limits);

const hws_engine_stats_t *hws_engine_stats (const hws_engine_t *self);

/*  How many there are now.  */
typedef struct {
    size_t peers, anchors, dedicated, seats, waiting, tombstones;
    size_t cancel_orphans; /* cancels of tokens that are remembered */
} hws_engine_counts_t;
hws_engine_counts_t hws_engine_counts (const hws_engine_t *self);

#endif
