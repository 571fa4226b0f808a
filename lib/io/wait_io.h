/*  Waiting on a condition, up to a limit on the clock that nobody sets.  */
#ifndef HWS_WAIT_IO_H
#define HWS_WAIT_IO_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/*  The end of a wait.  */
typedef struct {
    bool is_forever;
    bool is_now;
    struct timespec at;
} hws_time_limit_t;

/*  Of a wait of `timeout_ms` that begins now; negative: for ever.  */
hws_time_limit_t hws_time_limit_after (int64_t timeout_ms);

/*  A condition on the monotonic clock. Returns 0 or HWS_ENO_MEMORY.  */
int hws_cond_init (pthread_cond_t *cond);

/*  Waits, under the lock. Returns 0 (look again), HWS_ETIMEOUT, HWS_EWOULD_BLOCK.  */
int hws_cond_wait (pthread_cond_t *cond, pthread_mutex_t *lock, const hws_time_limit_t *limit);

#endif
