/*  libzmq with no broker at all: senders PUSH, the receiver PULLs. Nobody knows who sent what
 *  or that somebody is gone; it is here as what a broker costs.
 */
#include "bench/zmq_client.h"

#include <zmq.h>

static int open_sender (void **sender, const place_t *place)
{
    return zmq_client_open_sender (sender, place, ZMQ_PUSH, ZMQ_CLIENT_HWM);
}

static int open_receiver (void **receiver, const place_t *place)
{
    return zmq_client_open_receiver (receiver, place, ZMQ_PULL, ZMQ_CLIENT_HWM, true);
}

const peer_t peer_push_pull = {
    .name = "push_pull",
    .open_sender = open_sender,
    .send = zmq_client_send,
    .open_receiver = open_receiver,
    .receive = zmq_client_receive,
};
