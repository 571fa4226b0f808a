/*  The same broker as czmq's examples have it: zloop with zmsg. `czmq` takes one message per
 *  wake, `czmq_drain` up to 64. A full receiver stops the loop.
 */
#include "bench/zmq_client.h"

#include <czmq.h>

static int s_drain_max; /* of this process, which serves nothing else */

static int forward (zloop_t *loop, zsock_t *in, void *out)
{
    (void) loop;
    for (int i = 0; i < s_drain_max; i++) {
        zmsg_t *message = i == 0 ? zmsg_recv (in) : zmsg_recv_nowait (in);
        if (message == NULL) {
            return i == 0 ? -1 : 0;
        }
        zframe_t *identity = zmsg_pop (message);
        zframe_destroy (&identity);
        if (zmsg_send (&message, out) < 0) {
            zmsg_destroy (&message);
            return -1;
        }
    }
    return 0;
}

static int serve (const place_t *place)
{
    s_drain_max = place->variant;
    zloop_t *const loop = zloop_new ();
    for (int i = 0; i < PLACE_CHANNELS_MAX; i++) {
        zsock_t *const out = zsock_new (ZMQ_DEALER);
        zsock_t *const in = zsock_new (ZMQ_ROUTER);
        if (zsock_bind (out, "%s", peer_endpoint (place->ports[2 * i + 1])) < 0 ||
            zsock_bind (in, "%s", peer_endpoint (place->ports[2 * i])) < 0) {
            return peer_fail ("czmq: cannot bind");
        }
        zloop_reader (loop, in, forward, out);
    }
    zloop_start (loop);
    return peer_fail ("czmq: the loop ended");
}

static int open_sender (void **sender, const place_t *place)
{
    return zmq_client_open_sender (sender, place, ZMQ_DEALER, ZMQ_CLIENT_HWM);
}

static int open_receiver (void **receiver, const place_t *place)
{
    return zmq_client_open_receiver (receiver, place, ZMQ_DEALER, ZMQ_CLIENT_HWM, false);
}

const peer_t peer_czmq = {
    .name = "czmq",
    .variant = 1,
    .serve = serve,
    .open_sender = open_sender,
    .send = zmq_client_send,
    .open_receiver = open_receiver,
    .receive = zmq_client_receive,
};

const peer_t peer_czmq_drain = {
    .name = "czmq_drain",
    .variant = 64,
    .serve = serve,
    .open_sender = open_sender,
    .send = zmq_client_send,
    .open_receiver = open_receiver,
    .receive = zmq_client_receive,
};
