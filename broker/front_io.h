/*  A front: a ROUTER socket of the broker, with all our options, its endpoints and
 *  its monitor.
 *
 *  It reads whole messages without ever waiting, frame by frame, and sends effects
 *  without ever waiting. A message of too many frames is read over several turns,
 *  keeping two of them. Payloads are zmq_msg_t on the heap: what arrived in one
 *  goes out as the very same.
 */
#ifndef HWS_FRONT_IO_H
#define HWS_FRONT_IO_H

#include "broker/connections.h"

typedef struct hws_front hws_front_t;

typedef struct {
    uint32_t number;                /* of the front, in addresses */
    size_t message_bytes;           /* largest frame; a larger one closes its connection */
    uint64_t send_queue;            /* messages that wait for one connection */
    bool allow_insecure;            /* plain TCP beyond loopback */
    hws_connections_t *connections; /* of all fronts; not owned */
} hws_front_options_t;

typedef char hws_front_fault_t[512];

#define HWS_FRONT_ENDPOINTS_MAX 64

/*  Makes an unbound front. Returns 0, HWS_ESYSTEM or HWS_ENO_MEMORY.  */
int hws_front_new (hws_front_t **self, void *context, const hws_front_options_t *options);

/*  Closes everything, its connections too; what is not sent by then is given `linger_ms`, which
 *  the end of the context waits for. Accepts null.  */
void hws_front_destroy (hws_front_t **self, int linger_ms);

/*  Listens on one more endpoint. Returns 0; HWS_EINVALID for one that is not valid or
 *  not allowed; HWS_EADDRESS_IN_USE; HWS_ESYSTEM; HWS_ENO_MEMORY. After an error
 *  `fault` is one line that names the endpoint.  */
int hws_front_bind (hws_front_t *self, const char *endpoint, hws_front_fault_t fault);

/*  The endpoint bound as number `i`, with its real port; null beyond the last.  */
const char *hws_front_endpoint (const hws_front_t *self, size_t i);

/*  The descriptors to poll for reading, or -1. They tell once that something came; then it is
 *  to be read to its end.  */
int hws_front_descriptor (const hws_front_t *self);
int hws_front_monitor_descriptor (const hws_front_t *self);

uint32_t hws_front_number (const hws_front_t *self);

/*  Reads the monitor to its end: the table of connections then knows who is gone, and the
 *  front how many are connected.  */
void hws_front_read_monitor (hws_front_t *self, hws_ms_t now);
size_t hws_front_connections (const hws_front_t *self);

/*  Whether a message can be read. After a send only this tells: what came with it does not
 *  make the socket's descriptor readable again.  */
bool hws_front_is_readable (hws_front_t *self);

/*  The next message. Returns 1 with it, valid until hws_front_release; 0 when there
 *  is none; HWS_EWOULD_BLOCK when `*frame_budget`, which is counted down, is used up, or
 *  HWS_ENO_MEMORY: then there may be one.
 *  A large batch has a payload: if the engine has taken it (null by then), it comes
 *  back with an effect.  */
int hws_front_recv (hws_front_t *self, size_t *frame_budget, hws_message_t *message,
                    hws_address_t *from);
void hws_front_release (hws_front_t *self, const hws_message_t *message);

/*  Whether the message at hand is a HELLO, and then: ties its connection to its
 *  address. Read the monitor and tell who is gone before the HELLO is handled, tie
 *  after that.  */
bool hws_front_is_hello (const hws_message_t *message);
void hws_front_tie (hws_front_t *self, const hws_address_t *from);

/*  Sends. Returns 0 when it is on its way; HWS_EWOULD_BLOCK when the connection is
 *  full, and the effect is untouched; HWS_EUNREACHABLE when there is no such
 *  connection. Except when it would block, the effect's bytes are disposed of.  */
int hws_front_send (hws_front_t *self, hws_effect_t *effect);

/*  Disposes of what an effect holds.  */
void hws_front_dispose (hws_effect_t *effect);

#endif
