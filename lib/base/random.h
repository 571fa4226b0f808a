/*  Random numbers from a seed, for pure code and for tests that replay.
 *
 *  xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64. Never for
 *  secrets: those come from the operating system, in the shell.
 */
#ifndef HWS_RANDOM_H
#define HWS_RANDOM_H

#include <stdint.h>

typedef struct {
    uint64_t state[4];
} hws_random_t;

void hws_random_init (hws_random_t *self, uint64_t seed);

/*  64 random bits.  */
uint64_t hws_random_next (hws_random_t *self);

/*  A number from 0 to `bound` - 1, for a bound above 0; the bias is below
 *  `bound` / 2^64.  */
uint64_t hws_random_below (hws_random_t *self, uint64_t bound);

#endif
