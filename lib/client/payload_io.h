/*  Payloads of received messages.
 *
 *  A small message is copied and closed at once: libzmq keeps a whole read buffer alive
 *  for each one that is held. A large one is held as it is.
 */
#ifndef HWS_PAYLOAD_IO_H
#define HWS_PAYLOAD_IO_H

#include "base/bytes.h"
#include "client/payload.h"

#include <zmq.h>

/*  Makes a payload with one holder of the message, which is taken and may be initialised
 *  anew, and a view of its bytes. Null without memory: then the message is the caller's
 *  still.  */
hws_payload_t *hws_payload_of (zmq_msg_t *message, hws_bytes_t *bytes);

#endif
