/*  Seeds of random tests: printed, so that a failure can be replayed with
 *  SEED=… in the environment.
 */
#ifndef HWS_TEST_SEED_H
#define HWS_TEST_SEED_H

#include "base/random.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/*  Starts `random` from the seed in the environment, else from the time.  */
static inline void test_seed (hws_random_t *random)
{
    const char *const given = getenv ("SEED");
    const uint64_t seed = given ? strtoull (given, NULL, 10) : (uint64_t) time (NULL);
    printf ("SEED=%" PRIu64 "\n", seed);
    hws_random_init (random, seed);
}

/*  `count` divided by SCALE of the environment; at least 1.  */
static inline size_t test_scaled (size_t count)
{
    const char *const given = getenv ("SCALE");
    const size_t scale = given ? strtoull (given, NULL, 10) : 1;
    return scale < 2 ? count : count / scale > 0 ? count / scale : 1;
}

#endif
