/*  What the bench measures: Hawser and its peers, each behind the same few functions.
 *
 *  A server, a sender and a receiver are processes of their own and end by being killed, so
 *  nothing here closes anything. Functions return 0, or -1 after having said why on stderr.
 */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stddef.h>
#include <stdint.h>

/*  Channels keep receivers apart: an anchor, a subject, a topic, a pair of sockets each.  */
enum { PLACE_CHANNELS_MAX = 3, PLACE_PORTS = 2 * PLACE_CHANNELS_MAX };

/*  How long a receive waits before it says that there is nothing.  */
enum { RECEIVE_TICK_MS = 100 };

/*  Where one process of a run has its part.  */
typedef struct {
    int ports[PLACE_PORTS]; /* of loopback, free when the run began; ports[0] is the server's */
    int variant;            /* the peer's own, see there */
    size_t record_bytes;    /* of every record */
    const char *programs;   /* the directory of hawser-broker */
    unsigned channel;       /* the receiver's, and the first of a sender process */
    unsigned channels;      /* stream `s` of a sender process goes to channel + s % channels */
    unsigned streams;       /* of a sender process */
    unsigned burst;         /* so many of its records belong together, behind which comes `push` */
} place_t;

typedef enum { RECEIVED_NOTHING, RECEIVED_RECORD } received_t;

typedef struct {
    const char *name;    /* on the command line and in the results */
    const char *lacks;   /* the package that was not there when this was built; null: none */
    const char *program; /* of the server, to be found in PATH; null: none is needed */
    const char *only;    /* the one workload that it takes part in unasked; null: all */
    int variant;         /* for place_t */

    /* Is the server, listening on ports[0] of loopback: executes it, or serves itself. Returns
       only if it failed. Null: there is no server. */
    int (*serve) (const place_t *place);

    int (*open_sender) (void **sender, const place_t *place);

    /* Sends one record of one of the process's streams; waits while there is no room. */
    int (*send) (void *sender, unsigned stream, const void *data, size_t size);

    /* What was sent so far goes out, nothing more comes for a while. Null: it goes anyway. */
    int (*push) (void *sender);

    /* Waits until what was sent is where this process can no longer lose it. Null: needless,
       the process lives until the receiver has all. */
    int (*settle) (void *sender);

    int (*open_receiver) (void **receiver, const place_t *place);

    /* The next record, valid until the next call. Returns a received_t or -1. */
    int (*receive) (void *receiver, const void **data, size_t *size);

    /* Messages with records that this process has written or read. Null: one for each record,
       or nobody knows. */
    uint64_t (*messages) (void);
} peer_t;

extern const peer_t peer_hawser;
extern const peer_t peer_hawser_wide; /* the same, named so too, with room for ten thousands */
extern const peer_t peer_push_pull;
extern const peer_t peer_router;
extern const peer_t peer_router_low;
extern const peer_t peer_czmq;
extern const peer_t peer_czmq_drain;
extern const peer_t peer_nats;
extern const peer_t peer_mosquitto_qos0;
extern const peer_t peer_mosquitto_qos1;
extern const peer_t peer_redis;

/*  "tcp://127.0.0.1:PORT" for libzmq; the text lives until the next call.  */
const char *peer_endpoint (int port);

/*  Says what failed, as `printf`, and returns -1.  */
int peer_fail (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

#endif
