/*  What hawser-send does once its settings are known: attaches, sends the records of
 *  its inputs one after the other, and ends when the receiver has consumed them all.
 *
 *  A stream that could not be sent whole never ends cleanly: a signal, an input
 *  that cannot be read or is cut off, a record over the limit cancel it. While the
 *  input is silent the end of the stream is noticed at once.
 */
#ifndef HWS_SEND_IO_H
#define HWS_SEND_IO_H

#include "sender/settings.h"

/*  Runs; returns the exit status.  */
int hws_send (const hws_send_settings_t *settings);

#endif
