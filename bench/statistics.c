#include "bench/statistics.h"

#include <stdlib.h>

static unsigned bucket_of (uint64_t value)
{
    if (value < HISTOGRAM_STEPS) {
        return (unsigned) value;
    }
    const unsigned shift = 63 - 6 - (unsigned) __builtin_clzll (value);
    const unsigned bucket = shift * HISTOGRAM_STEPS + (unsigned) (value >> shift);
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/*  The least value that falls into it.  */
static uint64_t value_of (unsigned bucket)
{
    if (bucket < 2 * HISTOGRAM_STEPS) {
        return bucket;
    }
    const unsigned shift = bucket / HISTOGRAM_STEPS - 1;
    return (uint64_t) (bucket - shift * HISTOGRAM_STEPS) << shift;
}

void histogram_add (histogram_t *self, uint64_t value)
{
    self->count++;
    self->buckets[bucket_of (value)]++;
}

void histogram_merge (histogram_t *self, const histogram_t *other)
{
    self->count += other->count;
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        self->buckets[i] += other->buckets[i];
    }
}

uint64_t histogram_at (const histogram_t *self, unsigned thousandths)
{
    const uint64_t wanted = (self->count * thousandths + 999) / 1000;
    uint64_t seen = 0;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS && wanted > 0; i++) {
        seen += self->buckets[i];
        if (seen >= wanted) {
            return value_of (i);
        }
    }
    return 0;
}

static int compare (const void *left, const void *right)
{
    const double a = *(const double *) left;
    const double b = *(const double *) right;
    return (a > b) - (a < b);
}

double median_of (double *values, size_t count)
{
    qsort (values, count, sizeof *values, compare);
    return (values[(count - 1) / 2] + values[count / 2]) / 2;
}
