#include "io/dealer_io.h"

#include "base/error.h"
#include "io/random_io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    ROUTING_ID_SIZE = 16,
    SEND_MARK = 2, /* what waits in the stream instead leaves as fewer, longer messages */
    RECEIVE_MARK = 64,
    SOCKET_BUFFER = 256 * 1024,
    CONNECT_TIMEOUT_MS = 3000,
    EVENTS = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED |
             ZMQ_EVENT_CLOSE_FAILED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
             ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH
};

static int set_options (void *socket)
{
    static const struct {
        int name, value;
    } options[] = {
        {ZMQ_LINGER, 0},
        {ZMQ_RECONNECT_IVL, -1},
        {ZMQ_SNDHWM, SEND_MARK},
        {ZMQ_RCVHWM, RECEIVE_MARK},
        {ZMQ_SNDBUF, SOCKET_BUFFER},
        {ZMQ_RCVBUF, SOCKET_BUFFER},
        {ZMQ_IPV6, 1},
        {ZMQ_CONNECT_TIMEOUT, CONNECT_TIMEOUT_MS},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, 30},
        {ZMQ_TCP_KEEPALIVE_INTVL, 10},
        {ZMQ_TCP_KEEPALIVE_CNT, 3},
    };
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (zmq_setsockopt (socket, options[i].name, &options[i].value, sizeof options[i].value)) {
            return HWS_ESYSTEM;
        }
    }
    const int64_t largest = HWS_DEALER_MESSAGE_MAX;
    uint8_t id[ROUTING_ID_SIZE];
    do {
        if (hws_random_fill (id, sizeof id)) {
            return HWS_ESYSTEM;
        }
    } while (id[0] == 0); /* those are libzmq's own */
    if (zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest) ||
        zmq_setsockopt (socket, ZMQ_ROUTING_ID, id, sizeof id)) {
        return HWS_ESYSTEM;
    }
    return 0;
}

static int watch (hws_dealer_t *self, void *context)
{
    char name[64];
    snprintf (name, sizeof name, "inproc://hawser-monitor-%u", ++self->serial);
    const int linger = 0;
    if (zmq_socket_monitor (self->socket, name, EVENTS)) {
        return HWS_ESYSTEM;
    }
    self->monitor = zmq_socket (context, ZMQ_PAIR);
    if (!self->monitor || zmq_setsockopt (self->monitor, ZMQ_LINGER, &linger, sizeof linger) ||
        zmq_connect (self->monitor, name)) {
        return HWS_ESYSTEM;
    }
    self->has_news = true;
    self->is_read = false;
    return 0;
}

int hws_dealer_connect (hws_dealer_t *self, void *context, const char *endpoint)
{
    self->socket = zmq_socket (context, ZMQ_DEALER);
    if (!self->socket) {
        return HWS_ESYSTEM;
    }
    int rc = set_options (self->socket);
    rc = rc ? rc : watch (self, context);
    if (rc || zmq_connect (self->socket, endpoint)) {
        hws_dealer_close (self);
        return HWS_ESYSTEM;
    }
    return 0;
}

void hws_dealer_close (hws_dealer_t *self)
{
    if (!self->socket) {
        return;
    }
    zmq_socket_monitor (self->socket, NULL, 0);
    if (self->monitor) {
        zmq_close (self->monitor);
    }
    zmq_close (self->socket);
    self->socket = NULL;
    self->monitor = NULL;
}

/*  A send may have swallowed the signal that something came; the last failed read has not, for
 *  it looked behind it. Who has never failed to read gets no signal. On a program's thread the
 *  question may be interrupted, and is asked again.  */
bool hws_dealer_is_quiet (hws_dealer_t *self, bool is_sending)
{
    if (self->has_news) {
        return false;
    }
    if (self->is_read) {
        return true;
    }
    int events = 0;
    size_t size = sizeof events;
    while (zmq_getsockopt (self->socket, ZMQ_EVENTS, &events, &size)) {
        if (zmq_errno () != EINTR) {
            return true;
        }
    }
    self->is_read = !(events & ZMQ_POLLIN);
    return !(events & (is_sending ? ZMQ_POLLIN | ZMQ_POLLOUT : ZMQ_POLLIN));
}

static int descriptor (void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;
    return zmq_getsockopt (socket, ZMQ_FD, &fd, &size) ? -1 : fd;
}

int hws_dealer_fd (const hws_dealer_t *self)
{
    return descriptor (self->socket);
}

int hws_dealer_monitor_fd (const hws_dealer_t *self)
{
    return descriptor (self->monitor);
}

/*  Takes one event of the monitor: two frames, a number and an address.  */
static bool next_event (void *monitor, int *event)
{
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    if (zmq_msg_recv (&frame, monitor, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close (&frame);
        return false;
    }
    uint16_t number = 0;
    if (zmq_msg_size (&frame) >= sizeof number) {
        memcpy (&number, zmq_msg_data (&frame), sizeof number);
    }
    *event = number;
    while (zmq_msg_more (&frame) && zmq_msg_recv (&frame, monitor, ZMQ_DONTWAIT) >= 0) {
    }
    zmq_msg_close (&frame);
    return true;
}

bool hws_dealer_is_lost (hws_dealer_t *self, bool *was_connected)
{
    if (!self->has_news) {
        return false;
    }
    self->has_news = false;
    int event;
    while (next_event (self->monitor, &event)) {
        if (event != ZMQ_EVENT_CONNECTED) {
            *was_connected = event == ZMQ_EVENT_DISCONNECTED;
            self->is_read = false;
            return true;
        }
    }
    return false;
}

static int send_frame (hws_dealer_t *self, zmq_msg_t *message, int flags)
{
    self->is_read = false;
    while (zmq_msg_send (message, self->socket, flags | ZMQ_DONTWAIT) < 0) {
        if (zmq_errno () != EINTR) {
            return zmq_errno () == EAGAIN ? HWS_EWOULD_BLOCK : HWS_ETRANSPORT;
        }
    }
    return 0;
}

int hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message)
{
    return send_frame (self, message, 0);
}

int hws_dealer_send_control (hws_dealer_t *self, const char *verb, zmq_msg_t *message)
{
    zmq_msg_t frame;
    const size_t size = strlen (verb);
    if (zmq_msg_init_size (&frame, size)) {
        return HWS_ETRANSPORT;
    }
    memcpy (zmq_msg_data (&frame), verb, size);
    const int rc = send_frame (self, &frame, ZMQ_SNDMORE);
    if (rc) {
        zmq_msg_close (&frame);
        return rc;
    }
    /* The pipe took the first frame, so it takes the rest: the mark counts messages. */
    return send_frame (self, message, 0) ? HWS_ETRANSPORT : 0;
}

int hws_dealer_recv (hws_dealer_t *self, zmq_msg_t frames[2])
{
    if (self->is_read) {
        return 0;
    }
    int count = 0;
    bool has_more = true;
    while (has_more) {
        zmq_msg_t extra;
        zmq_msg_t *const frame = count < 2 ? &frames[count] : &extra;
        if (count >= 2) {
            zmq_msg_init (&extra);
        }
        const int rc = zmq_msg_recv (frame, self->socket, ZMQ_DONTWAIT);
        has_more = rc >= 0 && zmq_msg_more (frame);
        if (count >= 2) {
            zmq_msg_close (&extra);
        }
        if (rc < 0 && zmq_errno () == EINTR) {
            return hws_dealer_recv (self, frames);
        }
        if (rc < 0) {
            self->is_read = zmq_errno () == EAGAIN;
            return 0;
        }
        count = count < 3 ? count + 1 : 3;
    }
    return count;
}
