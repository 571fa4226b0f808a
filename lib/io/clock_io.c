#include "io/clock_io.h"

#include "base/assert.h"

#include <time.h>

/*  clock_gettime fails only for a clock that does not exist.  */
static struct timespec read_clock (clockid_t clock)
{
    struct timespec now;
    const int rc = clock_gettime (clock, &now);
    hws_assert (rc == 0);
    return now;
}

hws_ms_t hws_clock_ms (void)
{
    const struct timespec now = read_clock (CLOCK_MONOTONIC);
    return (hws_ms_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int64_t hws_clock_unix_us (void)
{
    const struct timespec now = read_clock (CLOCK_REALTIME);
    return (int64_t) now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
