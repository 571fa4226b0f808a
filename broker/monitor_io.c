#include "broker/monitor_io.h"

#include <stdio.h>
#include <sys/socket.h>
#include <zmq.h>

/*  Events that may wait for us. The I/O thread waits when there are more, which only a
 *  flood during a long stall can bring about.  */
#define EVENTS_MAX 65536

#define EVENT_SIZE 6 /* of the first frame: u16 event, u32 value, in our byte order */

int hws_monitor_init (hws_monitor_t *self, void *context, void *front, uint32_t front_number,
                      hws_connections_t *connections)
{
    *self =
        (hws_monitor_t){.front = front, .front_number = front_number, .connections = connections};
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "inproc://hawser-monitor-%u", front_number);
    const int linger = 0;
    const int mark = EVENTS_MAX;
    self->socket = zmq_socket (context, ZMQ_PAIR);
    if (!self->socket || zmq_setsockopt (self->socket, ZMQ_LINGER, &linger, sizeof linger) != 0 ||
        zmq_setsockopt (self->socket, ZMQ_RCVHWM, &mark, sizeof mark) != 0 ||
        zmq_socket_monitor (front, endpoint, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) != 0 ||
        zmq_connect (self->socket, endpoint) != 0) {
        hws_monitor_fini (self);
        return HWS_ESYSTEM;
    }
    return 0;
}

/*  The monitor is switched off while its reader is still there: the I/O thread must
 *  not be waiting for room when the front takes the monitor's lock.  */
void hws_monitor_fini (hws_monitor_t *self)
{
    if (self->socket) {
        hws_monitor_read (self, 0);
        zmq_socket_monitor (self->front, NULL, 0);
        zmq_close (self->socket);
        self->socket = NULL;
    }
}

/*  The descriptor may be a front's listener by now, which would end the broker: libzmq aborts
 *  when it cannot accept any more. Only this thread binds, so what is none now stays none.  */
static void end_connection (int descriptor)
{
    int is_listener = 0;
    socklen_t size = sizeof is_listener;
    if (getsockopt (descriptor, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &size) == 0 &&
        !is_listener) {
        shutdown (descriptor, SHUT_RDWR);
    }
}

/*  What is shut down for the limit may by now be another connection, which is then refused in
 *  its stead and tries again: over the limit it does not matter which.  */
static void take_event (hws_monitor_t *self, const uint8_t *frame, hws_ms_t now)
{
    uint16_t event;
    int32_t descriptor;
    memcpy (&event, frame, sizeof event);
    memcpy (&descriptor, frame + sizeof event, sizeof descriptor);
    if (event == ZMQ_EVENT_DISCONNECTED) {
        self->open_count -= self->open_count > 0;
        hws_connections_closed (self->connections, self->front_number, descriptor);
    } else if (event == ZMQ_EVENT_ACCEPTED) {
        self->open_count++;
        if (hws_connections_accepted (self->connections, self->front_number, descriptor, now) !=
            0) {
            end_connection (descriptor);
        }
    }
}

void hws_monitor_read (hws_monitor_t *self, hws_ms_t now)
{
    zmq_msg_t frame;
    zmq_msg_init (&frame);
    bool is_first = true;
    while (zmq_msg_recv (&frame, self->socket, ZMQ_DONTWAIT) >= 0) {
        if (is_first && zmq_msg_size (&frame) == EVENT_SIZE) {
            take_event (self, zmq_msg_data (&frame), now);
        }
        is_first = !zmq_msg_more (&frame);
    }
    zmq_msg_close (&frame);
}

void hws_monitor_end_silent (hws_connections_t *connections, hws_ms_t now)
{
    int descriptor;
    while ((descriptor = hws_connections_pop_silent (connections, now)) >= 0) {
        end_connection (descriptor);
    }
}
