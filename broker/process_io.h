/*  What the broker asks of its process: quiet signals and enough descriptors.  */
#ifndef HWS_PROCESS_IO_H
#define HWS_PROCESS_IO_H

#include <stddef.h>

/*  Opens /dev/null for each of stdin, stdout and stderr that is closed, so that no
 *  socket becomes the place where lines are written. Returns 0 or HWS_ESYSTEM.  */
int hws_process_open_standard (void);

/*  Blocks signals for this thread and all that come after it, and gives a descriptor
 *  on which SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 are read instead. Call it
 *  before anything of libzmq or libczmq: any signal that is caught ends zloop and
 *  czmq's actors, whatever their options say. SIGPIPE is ignored. What reports a crash
 *  and what stops a job at a terminal is not blocked; nothing catches those. Returns
 *  the descriptor or HWS_ESYSTEM.  */
int hws_process_open_signals (void);

/*  The next signal that has come, or 0.  */
int hws_process_next_signal (int descriptor);

/*  Raises the limit of open descriptors to `wanted` as far as it may be, and returns
 *  the limit in force, which may be higher.  */
size_t hws_process_raise_descriptors (size_t wanted);

#endif
