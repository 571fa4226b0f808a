/*  Many senders to one receiver, as fast as it goes.  */
#include "bench/workload.h"

#include <math.h>

sample_t workload_sample (const outcome_t *outcome)
{
    return (sample_t){
        .rate = outcome->rate,
        .lost = outcome->lost,
        .wrong = outcome->wrong,
        .has_server = outcome->has_server,
        .cpu_us = outcome->cpu_us,
        .peak_bytes = outcome->peak_bytes,
    };
}

double workload_time_us (const histogram_t *times_ns, unsigned thousandths)
{
    return times_ns->count > 0 ? (double) histogram_at (times_ns, thousandths) / 1e3 : NAN;
}

int workload_run_plan (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                       sample_t *sample)
{
    outcome_t outcome;
    const int rc = run_plan (bench, &workload->plan, peer, &outcome);
    *sample = workload_sample (&outcome);
    return rc;
}

const workload_t workload_w1 = {
    .name = "w1",
    .title = "64-byte records, 4 senders to 1 receiver",
    .plan = {.record_bytes = 64, .processes = 4, .streams = 1, .receivers = 1},
    .run = workload_run_plan,
};

const workload_t workload_w2 = {
    .name = "w2",
    .title = "1 KiB records, 4 senders to 1 receiver",
    .plan = {.record_bytes = 1024, .processes = 4, .streams = 1, .receivers = 1},
    .run = workload_run_plan,
};

const workload_t workload_w3 = {
    .name = "w3",
    .title = "64 KiB records, 4 senders to 1 receiver",
    .plan = {.record_bytes = 65536, .processes = 4, .streams = 1, .receivers = 1},
    .run = workload_run_plan,
};

const workload_t workload_fan_in = {
    .name = "fan_in",
    .title = "64-byte records, 1,000 senders in 4 processes, one record of each in turn",
    .plan = {.record_bytes = 64, .processes = 4, .streams = 250, .receivers = 1},
    .run = workload_run_plan,
};
