#include "tests/support/sim_count.h"

static uint64_t s_own[SIM_COUNTS];

uint64_t *sim_counts = s_own;

const char *sim_count_words (sim_count_t count)
{
    static const char *const words[] = {
#define SIM_COUNT_WORDS(name, words) words,
        SIM_COUNT_LIST (SIM_COUNT_WORDS)
#undef SIM_COUNT_WORDS
    };
    return words[count];
}
