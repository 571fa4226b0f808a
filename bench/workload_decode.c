/*  What the front end of a model does: many streams, one short record of each per pass, which is
 *  to go out at once and together.
 */
#include "bench/workload.h"

#include <math.h>

/*  NAN where nobody counted the messages.  */
static double per (uint64_t count, uint64_t parts)
{
    return count > 0 && parts > 0 ? (double) count / (double) parts : NAN;
}

static int run (const bench_t *bench, const workload_t *workload, const peer_t *peer,
                sample_t *sample)
{
    outcome_t outcome;
    const int rc = run_plan (bench, &workload->plan, peer, &outcome);
    *sample = workload_sample (&outcome);
    double *const extras = sample->extras;
    extras[0] = workload_time_us (&outcome.times_ns, 500);
    extras[1] = workload_time_us (&outcome.times_ns, 990);
    extras[2] = workload_time_us (&outcome.firsts_ns, 500);
    extras[3] = workload_time_us (&outcome.firsts_ns, 990);
    extras[4] = per (outcome.messages_sent, outcome.sent / workload->plan.burst);
    extras[5] = per (outcome.received, outcome.messages_received);
    return rc;
}

const workload_t workload_decode = {
    .name = "decode",
    .title = "40-byte records, one of each of 96 senders in 2 processes 200 times a second, to 3 "
             "receivers",
    .is_rate_given = true,
    .plan = {.record_bytes = 40,
             .processes = 2,
             .streams = 48,
             .receivers = 3,
             .is_spread = true,
             .is_timed = true,
             .rate = 96 * 200,
             .burst = 48},
    .extras = {{"p50_us", "p50 us"},
               {"p99_us", "p99 us"},
               {"first_p50_us", "1st p50"},
               {"first_p99_us", "1st p99"},
               {"messages_per_pass", "msgs/pass"},
               {"records_per_message", "recs/msg"}},
    .run = run,
};
