/*  What is to go wrong in a run: a list of faults that follows from the seed, each with a time and
 *  numbers of its own, so that one can be left out without any other becoming another.
 */
#ifndef TEST_SIM_PLAN_H
#define TEST_SIM_PLAN_H

#include "tests/support/sim_world.h"

enum { SIM_FAULTS_MAX = 24, SIM_RUN_MS = 16000 };

typedef enum {
    SIM_FAULT_BREAK,
    SIM_FAULT_KILL,
    SIM_FAULT_DRAIN,
    SIM_FAULT_STALL,
    SIM_FAULT_AWAY,
    SIM_FAULT_STALL_BROKER,
    SIM_FAULT_STALL_CLOCK,
    SIM_FAULT_SLOW,
    SIM_FAULT_FULL,
    SIM_FAULT_LOSE_GRANTS,
    SIM_FAULT_REPEAT_GRANTS,
    SIM_FAULT_MEMORY,
    SIM_FAULT_CRASH_RECEIVER,
    SIM_FAULT_TAKE_OVER,
    SIM_FAULT_CANCEL,
    SIM_FAULT_CANCEL_ONE,
    SIM_FAULT_CANCEL_ANCHOR,
    SIM_FAULT_CANCEL_TOKEN,
    SIM_FAULT_CLOSE,
    SIM_FAULT_DESTROY,
    SIM_FAULT_TIMEOUT,
    SIM_FAULT_CRASH_SENDER,
    SIM_FAULT_KILL_RECEIVER,
    SIM_FAULTS
} sim_fault_kind_t;

typedef struct {
    sim_fault_kind_t kind;
    hws_ms_t at; /* after the run began */
    uint64_t who;
    uint64_t how;
    hws_ms_t length_ms;
    bool is_off;
    bool is_done;
} sim_fault_t;

typedef struct {
    int count;
    sim_fault_t faults[SIM_FAULTS_MAX];
} sim_plan_t;

/*  The plan of a seed, for a run in that weather.  */
void sim_plan_init (sim_plan_t *self, uint64_t seed, sim_weather_t weather);

/*  When the next one is due, in the time of the run; HWS_NEVER: all are done.  */
hws_ms_t sim_plan_next_at (const sim_plan_t *self);

/*  What is due happens.  */
void sim_plan_run (sim_plan_t *self, hws_ms_t elapsed_ms);

/*  A fault in words.  */
void sim_fault_print (const sim_fault_t *self, char *at, size_t size);

#endif
