/*  Two receivers at one server, two senders each, and one of the receivers reads nothing.  */
#include "bench/workload.h"

/*  First the other one alone, at this very time.  */
static int run (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                sample_t *sample)
{
    plan_t plan = workload->plan;
    plan.has_stalled = false;
    plan.receivers /= 2;
    plan.processes /= 2;
    outcome_t alone, outcome;
    if (run_plan (bench, &plan, peer, &alone) < 0 ||
        run_plan (bench, &workload->plan, peer, &outcome) < 0) {
        return -1;
    }
    *sample = workload_sample (&outcome);
    sample->extras[0] = 100 * outcome.rate / alone.rate;
    return 0;
}

const workload_t workload_stalled = {
    .name = "stalled",
    .title = "64-byte records, 2 senders to a receiver, beside 2 to one that reads nothing",
    .plan = {.record_bytes = 64, .processes = 4, .streams = 1, .receivers = 2, .has_stalled = true},
    .extras = {{"percent_of_alone", "% alone"}},
    .run = run,
};
