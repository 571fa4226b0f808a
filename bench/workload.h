/*  What is measured: a workload runs one peer once and gives a sample.  */
#ifndef BENCH_WORKLOAD_H
#define BENCH_WORKLOAD_H

#include "bench/run_io.h"

enum { EXTRAS_MAX = 6 };

/*  One figure beside the rate.  */
typedef struct {
    const char *key;     /* in results.json */
    const char *heading; /* in the table */
} extra_t;

typedef struct {
    double rate; /* records a second */
    uint64_t lost, wrong;
    bool has_server;
    double cpu_us;
    uint64_t peak_bytes;
    double extras[EXTRAS_MAX]; /* NAN: not known */
} sample_t;

typedef struct workload workload_t;
struct workload {
    const char *name;   /* on the command line and in the results */
    const char *title;  /* above the table */
    const char *only;   /* the one peer that takes part; null: all */
    bool is_rate_given; /* the rate is no result: no ratios */
    plan_t plan;        /* for `run` */
    int kind;           /* for `run`, its own, as the next */
    unsigned number;
    extra_t extras[EXTRAS_MAX]; /* up to one without a key */

    /* Returns 0 or -1. */
    int (*run) (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                sample_t *sample);
};

extern const workload_t workload_w1;
extern const workload_t workload_w2;
extern const workload_t workload_w3;
extern const workload_t workload_fan_in;
extern const workload_t workload_latency;
extern const workload_t workload_latency_load;
extern const workload_t workload_decode;
extern const workload_t workload_stalled;
extern const workload_t workload_seats_1;
extern const workload_t workload_seats_100;
extern const workload_t workload_seats_10000;
extern const workload_t workload_anchors_1;
extern const workload_t workload_anchors_100;
extern const workload_t workload_anchors_10000;
extern const workload_t workload_connections_500;

/*  What every sample has.  */
sample_t workload_sample (const outcome_t *outcome);

/*  The time in microseconds that so many thousandths of the records did not take longer than;
 *  NAN of nothing.  */
double workload_time_us (const histogram_t *times_ns, unsigned thousandths);

/*  The simplest `run`: the plan once.  */
int workload_run_plan (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                       sample_t *sample);

#endif
