#include "io/wait_io.h"

#include "base/error.h"

#include <errno.h>

hws_time_limit_t hws_time_limit_after (int64_t timeout_ms)
{
    hws_time_limit_t limit = {.is_forever = timeout_ms < 0, .is_now = timeout_ms == 0};
    if (timeout_ms > 0) {
        const int64_t longest = INT64_MAX / 4000;
        const int64_t ms = timeout_ms < longest ? timeout_ms : longest;
        clock_gettime (CLOCK_MONOTONIC, &limit.at);
        limit.at.tv_sec += (time_t) (ms / 1000);
        limit.at.tv_nsec += (long) (ms % 1000) * 1000000;
        if (limit.at.tv_nsec >= 1000000000) {
            limit.at.tv_nsec -= 1000000000;
            limit.at.tv_sec++;
        }
    }
    return limit;
}

int hws_cond_init (pthread_cond_t *cond)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init (&attributes)) {
        return HWS_ENO_MEMORY;
    }
    pthread_condattr_setclock (&attributes, CLOCK_MONOTONIC);
    const int rc = pthread_cond_init (cond, &attributes);
    pthread_condattr_destroy (&attributes);
    return rc ? HWS_ENO_MEMORY : 0;
}

int hws_cond_wait (pthread_cond_t *cond, pthread_mutex_t *lock, const hws_time_limit_t *limit)
{
    if (limit->is_now) {
        return HWS_EWOULD_BLOCK;
    }
    if (limit->is_forever) {
        pthread_cond_wait (cond, lock);
        return 0;
    }
    const int rc = pthread_cond_timedwait (cond, lock, &limit->at);
    return rc == ETIMEDOUT ? HWS_ETIMEOUT : 0;
}
