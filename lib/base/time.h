/*  Points in time and lengths of time, in milliseconds.
 *
 *  Pure code is told the time and never asks. A point in time is a count on
 *  some monotonic clock; only differences mean anything. HWS_NEVER is later
 *  than every deadline, and adding to it leaves it where it is.
 */
#ifndef HWS_TIME_H
#define HWS_TIME_H

#include <stdint.h>

typedef int64_t hws_ms_t;

#define HWS_NEVER INT64_MAX

/*  The point `length_ms` after `at`; HWS_NEVER when either is, or on overflow.
 *  `length_ms` is not negative.  */
static inline hws_ms_t hws_time_after (hws_ms_t at, hws_ms_t length_ms)
{
    return at > HWS_NEVER - length_ms ? HWS_NEVER : at + length_ms;
}

/*  The earlier of two points.  */
static inline hws_ms_t hws_time_min (hws_ms_t a, hws_ms_t b)
{
    return a < b ? a : b;
}

/*  How long from `now` to `at`, for a poll: 0 when it is past.  */
static inline hws_ms_t hws_time_until (hws_ms_t now, hws_ms_t at)
{
    return at <= now ? 0 : at - now;
}

#endif
