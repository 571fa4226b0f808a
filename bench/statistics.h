/*  Medians, and a histogram of times that is exact to a sixty-fourth.  */
#ifndef BENCH_STATISTICS_H
#define BENCH_STATISTICS_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_STEPS = 64, HISTOGRAM_BUCKETS = 48 * HISTOGRAM_STEPS };

typedef struct {
    uint64_t count;
    uint64_t buckets[HISTOGRAM_BUCKETS]; /* 64 to every power of two */
} histogram_t;

/*  Counts one value; those over 2^50 as the greatest.  */
void histogram_add (histogram_t *self, uint64_t value);

void histogram_merge (histogram_t *self, const histogram_t *other);

/*  The value that so many thousandths are not over; 0 of nothing.  */
uint64_t histogram_at (const histogram_t *self, unsigned thousandths);

/*  Of at least one value, which it sorts; of an even number the mean of the middle two.  */
double median_of (double *values, size_t count);

#endif
