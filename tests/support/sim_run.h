/*  One simulated run, from its seed to its verdict (docs/guarantees.md).
 *
 *  A run that breaks a promise fails as a cmocka test does; outside of one that ends the process.
 */
#ifndef TEST_SIM_RUN_H
#define TEST_SIM_RUN_H

#include "tests/support/sim_plan.h"

/*  What is left out of a run: bit n is fault n, bit SIM_OFF_SENDERS + n is sender n.  */
typedef uint64_t sim_off_t;
enum { SIM_OFF_SENDERS = 32 };

/*  Everything that follows from the seed before the first step.  */
typedef struct {
    uint64_t seed;
    sim_weather_t weather;
    bool is_forgetful; /* the broker has no state directory */
    int client_count, anchor_count, sender_count;
    sim_plan_t plan;
} sim_script_t;

void sim_script_init (sim_script_t *self, uint64_t seed);

/*  What is in the script, for people.  */
void sim_script_print (const sim_script_t *self, sim_off_t off);

/*  Runs it. `is_traced`: every message and event is printed.  */
void sim_run (const sim_script_t *script, sim_off_t off, bool is_traced);

/*  Of a run that failed: what each end had learned.  */
void sim_run_describe (void);

#endif
