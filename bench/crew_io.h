/*  Processes of the bench's own, that end with it whatever becomes of it: each is killed by
 *  the kernel when the bench dies.
 */
#ifndef BENCH_CREW_IO_H
#define BENCH_CREW_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { CREW_MAX = 32 };

typedef struct {
    pid_t pids[CREW_MAX];
    size_t count;
} crew_t;

/*  Starts a process that calls `work` and exits with 1 if that is negative, else with 0;
 *  `log`, a path, gets its stdout and stderr, null leaves them. Returns its pid or -1.  */
pid_t crew_start (crew_t *self, int (*work) (void *arg), void *arg, const char *log);

/*  True when one of them has ended badly.  */
bool crew_has_failed (crew_t *self);

/*  Kills all that are left, and waits for their ends.  */
void crew_end (crew_t *self);

/*  The monotonic clock, in nanoseconds.  */
int64_t clock_ns (void);

/*  Sleeps until then, or for so long.  */
void sleep_until_ns (int64_t at);
void sleep_ms (int64_t length_ms);

#endif
