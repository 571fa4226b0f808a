#include "base/random.h"

static uint64_t rotate (uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

void hws_random_init (hws_random_t *self, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15;
        uint64_t mixed = seed;
        mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
        mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
        self->state[i] = mixed ^ mixed >> 31;
    }
}

uint64_t hws_random_next (hws_random_t *self)
{
    uint64_t *const s = self->state;
    const uint64_t result = rotate (s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate (s[3], 45);
    return result;
}

uint64_t hws_random_below (hws_random_t *self, uint64_t bound)
{
    return hws_random_next (self) % bound;
}
