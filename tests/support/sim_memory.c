#include "tests/support/sim_memory.h"

#include "tests/support/sim_count.h"

sim_memory_t sim_memory;

bool sim_memory_fails (void)
{
    if (!sim_memory.is_in_engine || sim_memory.countdown == 0) {
        return false;
    }
    if (--sim_memory.countdown > 0) {
        return false;
    }
    if (sim_memory.more > 0) {
        sim_memory.more--;
        sim_memory.countdown = 1;
    }
    sim_memory.failures++;
    sim_counted (SIM_NO_MEMORY, 1);
    return true;
}
