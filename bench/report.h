/*  What came out: a table for people, and results.json for programs.  */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "bench/workload.h"

#include <stdio.h>

enum { ROUNDS_MAX = 99, PEERS_MAX = 16, WORKLOADS_MAX = 16 };

/*  One peer in one workload.  */
typedef struct {
    const peer_t *peer;
    sample_t samples[ROUNDS_MAX];
    size_t count;    /* of samples */
    unsigned failed; /* rounds without one */
} result_t;

typedef struct {
    const workload_t *workload;
    result_t results[PEERS_MAX];
    size_t count;
} table_t;

/*  Prints one table.  */
void report_table (FILE *stream, const table_t *table);

/*  Writes all of them. Returns 0 or -1.  */
int report_json (const char *path, const table_t *tables, size_t count);

#endif
