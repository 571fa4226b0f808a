/*  One run: a server, receivers and senders as processes of their own, for some seconds.
 *
 *  The rate is what arrives at the receivers in a window of time behind a warm-up, counted
 *  there and read here. Then the senders stop, the receivers take what is still on its way,
 *  and what does not come is lost. The server's processor time is that of the whole run
 *  divided by all records that arrived.
 */
#ifndef BENCH_RUN_IO_H
#define BENCH_RUN_IO_H

#include "bench/peer.h"
#include "bench/server_io.h"
#include "bench/statistics.h"

#include <stdbool.h>

typedef struct {
    const char *programs; /* the directory of hawser-broker */
    const char *logs;     /* where the servers' outputs go */
    double seconds;       /* the window */
} bench_t;

typedef struct {
    size_t record_bytes;
    unsigned processes; /* of senders */
    unsigned streams;   /* of each */
    unsigned receivers; /* processes, a channel each */
    bool is_spread;     /* a process's streams go to all channels in turn; else process p sends
                           to channel p % receivers */
    bool has_stalled;   /* the receiver of channel 0 reads nothing; only the others count */
    bool is_timed;      /* records carry the time, and how long they took is kept */
    double rate;        /* records a second of all senders; 0: as fast as they can */
    unsigned burst;     /* with a rate: so many records of a process at a time */

    /* With a server that has nothing to do yet; processes it starts in the crew live as long
       as the run. May be null. Returns 0 or -1. */
    int (*prepare) (void *arg, crew_t *crew, const server_t *server, const place_t *place);
    void *prepare_arg;
} plan_t;

typedef struct {
    double rate;                  /* records a second */
    uint64_t lost;                /* records that were sent and did not arrive, or not whole */
    uint64_t wrong;               /* records that arrived twice, out of order or damaged */
    bool has_server;              /* else the next three are 0 */
    double cpu_us;                /* of the server, per record */
    uint64_t peak_bytes;          /* the server's memory */
    uint64_t sent, messages_sent; /* records of the whole run; 0 messages: nobody knows */
    uint64_t received, messages_received;
    histogram_t times_ns;  /* of a timed run, from before the send to behind the receive */
    histogram_t firsts_ns; /* of the first record of every stream, which come before the window */
} outcome_t;

/*  Returns 0, or -1 after the reason was said.  */
int run_plan (const bench_t *bench, const plan_t *plan, const peer_t *peer, outcome_t *outcome);

#endif
