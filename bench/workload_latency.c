/*  How long a record takes, from before its send to behind its receive, on one clock.  */
#include "bench/workload.h"

static void take_times (sample_t *sample, const histogram_t *times_ns)
{
    static const unsigned thousandths[] = {500, 990, 999};
    for (size_t i = 0; i < sizeof thousandths / sizeof *thousandths; i++) {
        sample->extras[i] = workload_time_us (times_ns, thousandths[i]);
    }
}

static int run_calm (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                     sample_t *sample)
{
    outcome_t outcome;
    const int rc = run_plan (bench, &workload->plan, peer, &outcome);
    *sample = workload_sample (&outcome);
    take_times (sample, &outcome.times_ns);
    return rc;
}

/*  First finds the peer's peak, at this very time: the machine may be another one a minute
 *  later.  */
static int run_loaded (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                       sample_t *sample)
{
    const bench_t brief = {
        .programs = bench->programs, .logs = bench->logs, .seconds = bench->seconds / 2};
    outcome_t peak;
    if (run_plan (&brief, &workload_w1.plan, peer, &peak) < 0) {
        return -1;
    }
    plan_t plan = workload->plan;
    plan.rate = peak.rate / 2;
    outcome_t outcome;
    const int rc = run_plan (bench, &plan, peer, &outcome);
    *sample = workload_sample (&outcome);
    take_times (sample, &outcome.times_ns);
    sample->extras[3] = 100 * outcome.rate / plan.rate;
    return rc;
}

#define TIMES                                                                                      \
    {"p50_us", "p50 us"}, {"p99_us", "p99 us"},                                                    \
    {                                                                                              \
        "p999_us", "p99.9 us"                                                                      \
    }

const workload_t workload_latency = {
    .name = "latency",
    .title = "time of a 64-byte record, 1 sender at 1,000 records a second",
    .is_rate_given = true,
    .plan = {.record_bytes = 64,
             .processes = 1,
             .streams = 1,
             .receivers = 1,
             .is_timed = true,
             .rate = 1000,
             .burst = 1},
    .extras = {TIMES},
    .run = run_calm,
};

const workload_t workload_latency_load = {
    .name = "latency_load",
    .title = "time of a 64-byte record, 4 senders at half of the peer's peak",
    .is_rate_given = true,
    .plan = {.record_bytes = 64,
             .processes = 4,
             .streams = 1,
             .receivers = 1,
             .is_timed = true,
             .burst = 1},
    .extras = {TIMES, {"percent_of_rate", "% of rate"}},
    .run = run_loaded,
};
