/*  The two clocks: a monotonic one for every deadline, the wall clock for logs.  */
#ifndef HWS_CLOCK_IO_H
#define HWS_CLOCK_IO_H

#include "base/time.h"

/*  Now, on a clock that nobody sets and that runs on while threads sleep.  */
hws_ms_t hws_clock_ms (void);

/*  Microseconds since 1970, UTC. Only for people to read.  */
int64_t hws_clock_unix_us (void);

#endif
