/*  Both ends of a libzmq peer: one socket per channel at the sender, one at the receiver,
 *  a record a message of one frame.
 */
#ifndef BENCH_ZMQ_CLIENT_H
#define BENCH_ZMQ_CLIENT_H

#include "bench/peer.h"

#include <stdbool.h>

/*  libzmq's own default.  */
#define ZMQ_CLIENT_HWM 1000

/*  A new socket of a type with both high-water marks set, bound or connected to a port of
 *  loopback; null after having said why.  */
void *zmq_client_socket (void *context, int type, int hwm, bool binds, int port);

/*  A sender that connects to port 2c of each of its channels c.  */
int zmq_client_open_sender (void **sender, const place_t *place, int type, int hwm);
int zmq_client_send (void *sender, unsigned stream, const void *data, size_t size);

/*  A receiver that binds port 2c of its channel c, or connects to port 2c + 1 of it.  */
int zmq_client_open_receiver (void **receiver, const place_t *place, int type, int hwm, bool binds);
int zmq_client_receive (void *receiver, const void **data, size_t *size);

#endif
