/*  What hawser-recv does once its settings are known: opens the anchor, writes what
 *  comes, says how every sender ended, and ends itself when it should.
 *
 *  Events are acknowledged only after their bytes were written, so that a sender
 *  that is told "done" can rely on it (as far as write does: nothing is synced to
 *  the disk). Output is written whenever there is nothing more to read, so that
 *  nothing that came waits for what did not.
 *
 *  With --resume a signal or a failure leaves the anchor open, for the receiver that goes on
 *  with the same file; without it they close the anchor.
 */
#ifndef HWS_RECEIVE_IO_H
#define HWS_RECEIVE_IO_H

#include "receiver/settings.h"

/*  Runs; returns the exit status.  */
int hws_receive (const hws_recv_settings_t *settings);

#endif
