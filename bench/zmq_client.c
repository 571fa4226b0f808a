#include "bench/zmq_client.h"

#include <errno.h>
#include <stdlib.h>
#include <zmq.h>

typedef struct {
    void *sockets[PLACE_CHANNELS_MAX];
    unsigned channels;
} sender_t;

typedef struct {
    void *socket;
    zmq_msg_t message; /* the last record */
} receiver_t;

void *zmq_client_socket (void *context, int type, int hwm, bool binds, int port)
{
    void *const socket = context ? zmq_socket (context, type) : NULL;
    if (socket == NULL || zmq_setsockopt (socket, ZMQ_SNDHWM, &hwm, sizeof hwm) < 0 ||
        zmq_setsockopt (socket, ZMQ_RCVHWM, &hwm, sizeof hwm) < 0 ||
        (binds ? zmq_bind : zmq_connect) (socket, peer_endpoint (port)) < 0) {
        peer_fail ("libzmq, port %d: %s", port, zmq_strerror (zmq_errno ()));
        return NULL;
    }
    return socket;
}

int zmq_client_open_sender (void **sender, const place_t *place, int type, int hwm)
{
    sender_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return -1;
    }
    *sender = self;
    self->channels = place->channels;
    void *const context = zmq_ctx_new ();
    for (unsigned i = 0; i < place->channels; i++) {
        const int port = place->ports[2 * (place->channel + i)];
        self->sockets[i] = zmq_client_socket (context, type, hwm, false, port);
        if (self->sockets[i] == NULL) {
            return -1;
        }
    }
    return 0;
}

int zmq_client_send (void *sender, unsigned stream, const void *data, size_t size)
{
    sender_t *const self = sender;
    if (zmq_send (self->sockets[stream % self->channels], data, size, 0) < 0) {
        return peer_fail ("zmq_send: %s", zmq_strerror (zmq_errno ()));
    }
    return 0;
}

int zmq_client_open_receiver (void **receiver, const place_t *place, int type, int hwm, bool binds)
{
    receiver_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return -1;
    }
    *receiver = self;
    const int port = place->ports[2 * place->channel + (binds ? 0 : 1)];
    self->socket = zmq_client_socket (zmq_ctx_new (), type, hwm, binds, port);
    const int tick_ms = RECEIVE_TICK_MS;
    if (self->socket == NULL ||
        zmq_setsockopt (self->socket, ZMQ_RCVTIMEO, &tick_ms, sizeof tick_ms) < 0) {
        return -1;
    }
    return zmq_msg_init (&self->message);
}

int zmq_client_receive (void *receiver, const void **data, size_t *size)
{
    receiver_t *const self = receiver;
    if (zmq_msg_recv (&self->message, self->socket, 0) < 0) {
        return zmq_errno () == EAGAIN ? RECEIVED_NOTHING : peer_fail ("zmq_msg_recv");
    }
    *data = zmq_msg_data (&self->message);
    *size = zmq_msg_size (&self->message);
    return RECEIVED_RECORD;
}
