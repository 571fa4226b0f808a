/*  The broker that a good engineer writes on raw libzmq in an afternoon: DEALER senders, a
 *  ROUTER in, a DEALER out, for each channel. It drains up to 64 messages per wake, passes
 *  payloads on without a copy, and leaves a channel alone while its receiver is full, so that
 *  its senders wait. Nothing is lost while all live; of windows, endings and restarts it
 *  knows nothing.
 *
 *  router_low is the same with high-water marks of a few messages, which is faster with large
 *  records: what is in flight stays in the cache.
 */
#include "bench/zmq_client.h"

#include <errno.h>
#include <zmq.h>

enum { DRAIN_MAX = 64, LOW_HWM = 8 };

typedef struct {
    void *in;       /* ROUTER */
    void *out;      /* DEALER */
    zmq_msg_t held; /* what the receiver had no room for */
    bool is_full;   /* there is such a message */
} channel_t;

/*  Passes on what there is, up to the bound. The sender's identity is dropped: the receiver
 *  of one channel needs no envelope.  */
static int drain (channel_t *self)
{
    for (int i = 0; i < DRAIN_MAX; i++) {
        if (!self->is_full) {
            zmq_msg_t identity;
            zmq_msg_init (&identity);
            const int rc = zmq_msg_recv (&identity, self->in, ZMQ_DONTWAIT);
            zmq_msg_close (&identity);
            if (rc < 0) {
                return zmq_errno () == EAGAIN ? 0 : -1;
            }
            if (zmq_msg_recv (&self->held, self->in, ZMQ_DONTWAIT) < 0) {
                return -1;
            }
        }
        self->is_full = zmq_msg_send (&self->held, self->out, ZMQ_DONTWAIT) < 0;
        if (self->is_full) {
            return zmq_errno () == EAGAIN ? 0 : -1;
        }
    }
    return 0;
}

static int serve (const place_t *place)
{
    void *const context = zmq_ctx_new ();
    channel_t channels[PLACE_CHANNELS_MAX];
    for (int i = 0; i < PLACE_CHANNELS_MAX; i++) {
        channel_t *const channel = &channels[i];
        const int *const ports = &place->ports[2 * i];
        channel->is_full = false;
        zmq_msg_init (&channel->held);
        channel->out = zmq_client_socket (context, ZMQ_DEALER, place->variant, true, ports[1]);
        channel->in = zmq_client_socket (context, ZMQ_ROUTER, place->variant, true, ports[0]);
        if (channel->out == NULL || channel->in == NULL) {
            return -1;
        }
    }
    for (;;) {
        zmq_pollitem_t items[PLACE_CHANNELS_MAX];
        for (int i = 0; i < PLACE_CHANNELS_MAX; i++) {
            const channel_t *const channel = &channels[i];
            items[i] = channel->is_full
                           ? (zmq_pollitem_t){.socket = channel->out, .events = ZMQ_POLLOUT}
                           : (zmq_pollitem_t){.socket = channel->in, .events = ZMQ_POLLIN};
        }
        if (zmq_poll (items, PLACE_CHANNELS_MAX, -1) < 0) {
            return peer_fail ("router: %s", zmq_strerror (zmq_errno ()));
        }
        for (int i = 0; i < PLACE_CHANNELS_MAX; i++) {
            if (items[i].revents && drain (&channels[i]) < 0) {
                return peer_fail ("router: %s", zmq_strerror (zmq_errno ()));
            }
        }
    }
}

static int open_sender (void **sender, const place_t *place)
{
    return zmq_client_open_sender (sender, place, ZMQ_DEALER, place->variant);
}

static int open_receiver (void **receiver, const place_t *place)
{
    return zmq_client_open_receiver (receiver, place, ZMQ_DEALER, place->variant, false);
}

const peer_t peer_router = {
    .name = "router",
    .variant = ZMQ_CLIENT_HWM,
    .serve = serve,
    .open_sender = open_sender,
    .send = zmq_client_send,
    .open_receiver = open_receiver,
    .receive = zmq_client_receive,
};

const peer_t peer_router_low = {
    .name = "router_low",
    .only = "w3",
    .variant = LOW_HWM,
    .serve = serve,
    .open_sender = open_sender,
    .send = zmq_client_send,
    .open_receiver = open_receiver,
    .receive = zmq_client_receive,
};
