/*  A DEALER socket that is one connection: made once, never remade by libzmq.
 *
 *  Each connection has a socket of its own with a fresh random routing id, so nothing
 *  of an old connection can arrive on a new one. The monitor tells when it ended. No
 *  call waits. The descriptors of libzmq are edge-triggered: who would poll them first asks
 *  hws_dealer_is_quiet, or what is there already wakes nobody. Each question to libzmq is a
 *  system call, so none is asked whose answer is known.
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
    bool is_read;    /* all that came was read, nothing was sent since, and the socket's
                        descriptor was not seen readable */
    bool has_news;   /* the monitor's descriptor was readable, or it was never read */
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

/*  The descriptors to poll for POLLIN: of the socket and of its monitor.  */
int hws_dealer_fd (const hws_dealer_t *self);
int hws_dealer_monitor_fd (const hws_dealer_t *self);

/*  Whether there is nothing to read on either, nor with `is_sending` room to send, that their
 *  descriptors do not tell of.  */
bool hws_dealer_is_quiet (hws_dealer_t *self, bool is_sending);

/*  A descriptor is readable: the socket's, the monitor's.  */
static inline void hws_dealer_note_input (hws_dealer_t *self)
{
    self->is_read = false;
}

static inline void hws_dealer_note_news (hws_dealer_t *self)
{
    self->has_news = true;
}

/*  Reads the monitor to its end, if there is news. Returns true when the connection has ended or
 *  could not be made; `was_connected` tells which.  */
bool hws_dealer_is_lost (hws_dealer_t *self, bool *was_connected);

/*  Sends one frame, or a verb and a frame. The message is taken on success. Returns 0,
 *  HWS_EWOULD_BLOCK (nothing was sent), HWS_ETRANSPORT.  */
int hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message);
int hws_dealer_send_control (hws_dealer_t *self, const char *verb, zmq_msg_t *message);

/*  Takes one message of at most two frames into initialised messages. Returns its number of
 *  frames, 3 for more (they are dropped), 0 when there is none, or none that its descriptor
 *  would not tell of first.  */
int hws_dealer_recv (hws_dealer_t *self, zmq_msg_t frames[2]);

#endif
