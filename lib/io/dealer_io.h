/*  A DEALER socket that is one connection: made once, never remade by libzmq.
 *
 *  Each connection has a socket of its own with a fresh random routing id, so nothing
 *  of an old connection can arrive on a new one. The monitor tells when it ended. No
 *  call waits. The descriptors of libzmq are edge-triggered: who would poll them first asks
 *  hws_dealer_events and hws_dealer_has_news, or what is there already wakes nobody.
 */
#ifndef HWS_DEALER_IO_H
#define HWS_DEALER_IO_H

#include "base/bytes.h"

#include <stdbool.h>
#include <zmq.h>

#define HWS_DEALER_MESSAGE_MAX (16 * 1024 * 1024) /* larger frames cut the connection */

typedef struct {
    void *socket;    /* null while closed */
    void *monitor;   /* PAIR that the socket's events come to */
    unsigned serial; /* of monitor endpoints, which are names in the context */
} hws_dealer_t;

/*  Begins a connection to an endpoint whose address is numeric (resolve_io.h). It counts
 *  as open at once. Returns 0 or HWS_ESYSTEM, and then it is closed.  */
int hws_dealer_connect (hws_dealer_t *self, void *context, const char *endpoint);

/*  Closes it and drops what was not sent. Harmless when it is closed.  */
void hws_dealer_close (hws_dealer_t *self);

static inline bool hws_dealer_is_open (const hws_dealer_t *self)
{
    return self->socket != NULL;
}

/*  ZMQ_POLLIN and ZMQ_POLLOUT as they are now.  */
int hws_dealer_events (const hws_dealer_t *self);

/*  The descriptors to poll for POLLIN: of the socket and of its monitor.  */
int hws_dealer_fd (const hws_dealer_t *self);
int hws_dealer_monitor_fd (const hws_dealer_t *self);

/*  Whether hws_dealer_is_lost has something to read.  */
bool hws_dealer_has_news (const hws_dealer_t *self);

/*  Reads the monitor to its end. Returns true when the connection has ended or could not be
 *  made; `was_connected` tells which.  */
bool hws_dealer_is_lost (hws_dealer_t *self, bool *was_connected);

/*  Sends one frame, or a verb and a frame. The message is taken on success. Returns 0,
 *  HWS_EWOULD_BLOCK (nothing was sent), HWS_ETRANSPORT.  */
int hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message);
int hws_dealer_send_control (hws_dealer_t *self, const char *verb, zmq_msg_t *message);

/*  Takes one message of at most two frames into initialised messages. Returns its number of
 *  frames, 3 for more (they are dropped), 0 when there is none.  */
int hws_dealer_recv (hws_dealer_t *self, zmq_msg_t frames[2]);

#endif
