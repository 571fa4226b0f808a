#include "broker/front_io.h"

#include "broker/ipc_lock_io.h"
#include "broker/local_endpoint_io.h"
#include "broker/monitor_io.h"
#include "conf/endpoint.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

#define RECEIVE_BYTES       4194304         /* messages that wait for us from one connection */
#define SOCKET_BUFFER_BYTES 262144          /* in the kernel, each way: latency under load */
#define HANDSHAKE_MS        10000           /* then a connection that says nothing is closed */
#define BACKLOG             1024            /* connections not yet accepted */
#define KEEPALIVE_IDLE_S    15              /* a silent connection is probed after this, */
#define KEEPALIVE_EVERY_S   5               /* again after this, */
#define KEEPALIVE_COUNT     3               /* so often; then it is closed */
#define UNACKNOWLEDGED_MS   30000           /* sent bytes that TCP gets no answer for: closed */
#define PAYLOAD_BYTES_MIN   ((size_t) 8192) /* smaller messages are copied by who keeps them */
#define COPY_BYTES_MAX      2048            /* what is sent by copy rather than by reference */

typedef struct {
    hws_endpoint_t text; /* with the real port */
    hws_ipc_lock_t lock; /* empty for TCP */
} bound_t;

struct hws_front {
    void *socket; /* the ROUTER, or null */
    hws_front_options_t options;
    hws_monitor_t monitor;
    bound_t *bound;
    size_t bound_count;

    zmq_msg_t id;       /* routing id of the message being read */
    zmq_msg_t *body;    /* its first frame, on the heap since the engine may keep it */
    zmq_msg_t second;   /* its second frame */
    zmq_msg_t further;  /* a frame that nobody wants */
    size_t frame_count; /* frames read of it, without the routing id */
    bool is_reading;    /* in the middle of a message */
};

/*  libzmq counts messages, so how large they may be decides how many may wait.  */
static int receive_mark (size_t message_bytes)
{
    const size_t count = RECEIVE_BYTES / message_bytes;
    return count > 1 ? (int) count : 1;
}

static int set_options (void *socket, const hws_front_options_t *options)
{
    const struct {
        int name;
        int value;
    } settings[] = {
        {ZMQ_ROUTER_MANDATORY, 1},
        {ZMQ_ROUTER_HANDOVER, 0},
        {ZMQ_SNDHWM, options->send_queue < INT_MAX ? (int) options->send_queue : INT_MAX},
        {ZMQ_RCVHWM, receive_mark (options->message_bytes)},
        {ZMQ_SNDBUF, SOCKET_BUFFER_BYTES},
        {ZMQ_RCVBUF, SOCKET_BUFFER_BYTES},
        {ZMQ_LINGER, 0},
        {ZMQ_HANDSHAKE_IVL, HANDSHAKE_MS},
        {ZMQ_BACKLOG, BACKLOG},
        {ZMQ_TCP_KEEPALIVE, 1},
        {ZMQ_TCP_KEEPALIVE_IDLE, KEEPALIVE_IDLE_S},
        {ZMQ_TCP_KEEPALIVE_INTVL, KEEPALIVE_EVERY_S},
        {ZMQ_TCP_KEEPALIVE_CNT, KEEPALIVE_COUNT},
        {ZMQ_TCP_MAXRT, UNACKNOWLEDGED_MS},
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (zmq_setsockopt (socket, settings[i].name, &settings[i].value, sizeof (int)) != 0) {
            return HWS_ESYSTEM;
        }
    }
    const int64_t message_bytes = (int64_t) options->message_bytes;
    return zmq_setsockopt (socket, ZMQ_MAXMSGSIZE, &message_bytes, sizeof message_bytes) == 0
               ? 0
               : HWS_ESYSTEM;
}

int hws_front_new (hws_front_t **self, void *context, const hws_front_options_t *options)
{
    hws_front_t *made = calloc (1, sizeof *made);
    if (!made) {
        return HWS_ENO_MEMORY;
    }
    made->options = *options;
    zmq_msg_init (&made->id);
    zmq_msg_init (&made->second);
    zmq_msg_init (&made->further);

    made->socket = zmq_socket (context, ZMQ_ROUTER);
    if (!made->socket || set_options (made->socket, options) != 0 ||
        hws_monitor_init (&made->monitor, context, made->socket, options->number,
                          options->connections) != 0) {
        hws_front_destroy (&made, 0);
        return HWS_ESYSTEM;
    }
    *self = made;
    return 0;
}

static void free_message (zmq_msg_t *message)
{
    if (message) {
        zmq_msg_close (message);
        free (message);
    }
}

void hws_front_destroy (hws_front_t **self, int linger_ms)
{
    hws_front_t *const front = *self;
    if (!front) {
        return;
    }
    hws_monitor_fini (&front->monitor);
    if (front->socket) {
        zmq_setsockopt (front->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
        zmq_close (front->socket);
    }
    hws_connections_drop (front->options.connections, front->options.number);
    for (size_t i = 0; i < front->bound_count; i++) {
        hws_ipc_lock_release (&front->bound[i].lock);
    }
    free (front->bound);
    zmq_msg_close (&front->id);
    zmq_msg_close (&front->second);
    zmq_msg_close (&front->further);
    free_message (front->body);
    free (front);
    *self = NULL;
}

/*  The endpoint as libzmq wants it, made anew from checked parts.  */
static void print_endpoint (const hws_endpoint_parts_t *parts, char *text, size_t size)
{
    if (parts->kind == HWS_ENDPOINT_IPC) {
        snprintf (text, size, "ipc://%s", parts->path);
    } else if (parts->is_ipv6) {
        snprintf (text, size, "tcp://[%s]:%u", parts->host, parts->port);
    } else {
        snprintf (text, size, "tcp://%s:%u", parts->host, parts->port);
    }
}

/*  IPv6 is switched on for what needs it only: with it libzmq takes IPv4 addresses
 *  for mapped ones. `*` is every interface of both.  */
static int bind_socket (hws_front_t *self, const hws_endpoint_parts_t *parts, const char *endpoint,
                        hws_front_fault_t fault)
{
    char exact[HWS_ENDPOINT_HOST_SIZE_MAX + 32];
    print_endpoint (parts, exact, sizeof exact);
    const int use_ipv6 = parts->is_ipv6 || strcmp (parts->host, "*") == 0;
    if (zmq_setsockopt (self->socket, ZMQ_IPV6, &use_ipv6, sizeof use_ipv6) == 0 &&
        zmq_bind (self->socket, exact) == 0) {
        return 0;
    }
    if (errno == EADDRINUSE) {
        snprintf (fault, sizeof (hws_front_fault_t), "%s is taken: another program listens there",
                  endpoint);
        return HWS_EADDRESS_IN_USE;
    }
    snprintf (fault, sizeof (hws_front_fault_t), "cannot listen on %s: %s", endpoint,
              errno == ENODEV || errno == EADDRNOTAVAIL ? "this machine has no such address"
                                                        : zmq_strerror (errno));
    return HWS_ESYSTEM;
}

int hws_front_bind (hws_front_t *self, const char *endpoint, hws_front_fault_t fault)
{
    hws_endpoint_parts_t parts;
    char why[256];
    int rc = hws_endpoint_parse (hws_bytes_of_text (endpoint), HWS_ENDPOINT_LISTEN, &parts, why,
                                 sizeof why);
    if (rc == 0 && !parts.is_local && !self->options.allow_insecure) {
        snprintf (why, sizeof why, "plain TCP beyond loopback needs \"allow_insecure\": true");
        rc = HWS_EINVALID;
    }
    if (rc == 0 && self->bound_count == HWS_FRONT_ENDPOINTS_MAX) {
        snprintf (why, sizeof why, "more than %d endpoints", HWS_FRONT_ENDPOINTS_MAX);
        rc = HWS_EINVALID;
    }
    if (rc != 0) {
        snprintf (fault, sizeof (hws_front_fault_t), "cannot listen on %s: %s", endpoint, why);
        return rc;
    }

    bound_t *const more = realloc (self->bound, (self->bound_count + 1) * sizeof *more);
    if (!more) {
        snprintf (fault, sizeof (hws_front_fault_t), "cannot listen on %s: out of memory",
                  endpoint);
        return HWS_ENO_MEMORY;
    }
    self->bound = more;
    bound_t *const bound = &self->bound[self->bound_count];
    bound->lock = (hws_ipc_lock_t){.descriptor = -1};
    if (parts.kind == HWS_ENDPOINT_IPC) {
        rc = hws_ipc_lock_claim (&bound->lock, parts.path, why, sizeof why);
        if (rc != 0) {
            snprintf (fault, sizeof (hws_front_fault_t), "cannot listen on %s: %s", endpoint, why);
            return rc;
        }
    }
    rc = bind_socket (self, &parts, endpoint, fault);
    if (rc != 0) {
        hws_ipc_lock_release (&bound->lock);
        return rc;
    }
    size_t size = sizeof bound->text;
    if (zmq_getsockopt (self->socket, ZMQ_LAST_ENDPOINT, bound->text, &size) != 0) {
        snprintf (bound->text, sizeof bound->text, "%s", endpoint);
    }
    self->bound_count++;
    return 0;
}

const char *hws_front_endpoint (const hws_front_t *self, size_t i)
{
    return i < self->bound_count ? self->bound[i].text : NULL;
}

static int descriptor_of (void *socket)
{
    int descriptor;
    size_t size = sizeof descriptor;
    return zmq_getsockopt (socket, ZMQ_FD, &descriptor, &size) == 0 ? descriptor : -1;
}

int hws_front_descriptor (const hws_front_t *self)
{
    return descriptor_of (self->socket);
}

int hws_front_monitor_descriptor (const hws_front_t *self)
{
    return descriptor_of (self->monitor.socket);
}

uint32_t hws_front_number (const hws_front_t *self)
{
    return self->options.number;
}

void hws_front_read_monitor (hws_front_t *self, hws_ms_t now)
{
    hws_monitor_read (&self->monitor, now);
}

size_t hws_front_connections (const hws_front_t *self)
{
    return self->monitor.open_count;
}

bool hws_front_is_readable (hws_front_t *self)
{
    int events = 0;
    size_t size = sizeof events;
    return zmq_getsockopt (self->socket, ZMQ_EVENTS, &events, &size) != 0 ||
           (events & ZMQ_POLLIN) != 0;
}

/*  ---- Receive ---- */

/*  By which endpoint a connection came in: by the very address, else by the port, since a
 *  listener on every address does not say which.  */
static uint32_t find_listener (const hws_front_t *self, int descriptor)
{
    hws_endpoint_t local;
    if (self->bound_count == 1 || hws_local_endpoint (descriptor, local) != 0) {
        return 0;
    }
    for (size_t i = 0; i < self->bound_count; i++) {
        if (strcmp (self->bound[i].text, local) == 0) {
            return (uint32_t) i;
        }
    }
    const char *const port = strrchr (local, ':');
    for (size_t i = 0; i < self->bound_count; i++) {
        if (strcmp (strrchr (self->bound[i].text, ':'), port) == 0) {
            return (uint32_t) i;
        }
    }
    return 0;
}

/*  Where the next frame of the message at hand goes.  */
static zmq_msg_t *next_frame (hws_front_t *self)
{
    return self->frame_count == 0   ? self->body
           : self->frame_count == 1 ? &self->second
                                    : &self->further;
}

/*  Makes the message of the frames read. The bytes are writable: libzmq hands out
 *  received frames so, and over tcp and ipc nobody else has them.  */
static void fill_message (hws_front_t *self, hws_message_t *message, hws_address_t *from)
{
    from->front = self->options.number;
    from->size = (uint8_t) zmq_msg_size (&self->id);
    memcpy (from->id, zmq_msg_data (&self->id), from->size);

    uint8_t *const data = zmq_msg_data (self->body);
    const size_t size = zmq_msg_size (self->body);
    *message = (hws_message_t){
        .frame_count = self->frame_count,
        .frame = {hws_bytes (data, size)},
        .data = data,
        .payload = self->frame_count == 1 && size >= PAYLOAD_BYTES_MIN ? self->body : NULL,
        .address = "",
    };
    if (self->frame_count > 1) {
        message->frame[1] = hws_bytes (zmq_msg_data (&self->second), zmq_msg_size (&self->second));
        /*  The routing id's frame loses its metadata when the socket is polled.  */
        const char *const address = zmq_msg_gets (&self->second, "Peer-Address");
        message->address = address ? address : "";
    }
    if (hws_front_is_hello (message)) {
        message->listener = find_listener (self, zmq_msg_get (&self->second, ZMQ_SRCFD));
    }
}

int hws_front_recv (hws_front_t *self, size_t *frame_budget, hws_message_t *message,
                    hws_address_t *from)
{
    if (!self->body) {
        self->body = malloc (sizeof *self->body);
        if (!self->body) {
            return HWS_ENO_MEMORY;
        }
        zmq_msg_init (self->body);
    }
    if (!self->is_reading) {
        if (zmq_msg_recv (&self->id, self->socket, ZMQ_DONTWAIT) < 0) {
            return 0;
        }
        self->is_reading = true;
        self->frame_count = 0;
    }
    for (bool is_last = !zmq_msg_more (&self->id); !is_last;) {
        if (*frame_budget == 0) {
            return HWS_EWOULD_BLOCK;
        }
        zmq_msg_t *const frame = next_frame (self);
        if (zmq_msg_recv (frame, self->socket, ZMQ_DONTWAIT) < 0) {
            return 0;
        }
        --*frame_budget;
        self->frame_count++;
        is_last = !zmq_msg_more (frame);
    }
    self->is_reading = false;
    fill_message (self, message, from);
    return 1;
}

void hws_front_release (hws_front_t *self, const hws_message_t *message)
{
    const bool is_taken = self->frame_count == 1 && !message->payload &&
                          zmq_msg_size (self->body) >= PAYLOAD_BYTES_MIN;
    if (is_taken) {
        self->body = NULL;
    }
}

bool hws_front_is_hello (const hws_message_t *message)
{
    return message->frame_count == 2 &&
           hws_bytes_equal (message->frame[0], hws_bytes_of_text ("HELLO"));
}

/*  Without a tie the peer's end is known later, by its silence.  */
void hws_front_tie (hws_front_t *self, const hws_address_t *from)
{
    (void) hws_connections_tie (self->options.connections, zmq_msg_get (&self->second, ZMQ_SRCFD),
                                from);
}

/*  ---- Send ---- */

static void free_bytes (void *data, void *hint)
{
    (void) hint;
    free (data);
}

/*  Sends a frame of bytes from malloc, which are its own from here on. Once the
 *  routing id is taken libzmq takes the rest of a message, or drops it with the
 *  connection; so a frame that cannot be made is replaced by an empty one.  */
static void send_bytes (void *socket, uint8_t *data, size_t size)
{
    zmq_msg_t frame;
    if (size > COPY_BYTES_MAX && zmq_msg_init_data (&frame, data, size, free_bytes, NULL) == 0) {
        data = NULL;
    } else if (zmq_msg_init_size (&frame, size) == 0) {
        if (size > 0) {
            memcpy (zmq_msg_data (&frame), data, size);
        }
    } else {
        zmq_msg_init (&frame);
    }
    free (data);
    if (zmq_msg_send (&frame, socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close (&frame);
    }
}

int hws_front_send (hws_front_t *self, hws_effect_t *effect)
{
    const int sent =
        zmq_send (self->socket, effect->to.id, effect->to.size, ZMQ_SNDMORE | ZMQ_DONTWAIT);
    if (sent < 0) {
        if (errno == EAGAIN) {
            return HWS_EWOULD_BLOCK;
        }
        hws_connections_forget (self->options.connections, &effect->to);
        hws_front_dispose (effect);
        return HWS_EUNREACHABLE;
    }
    if (effect->verb) {
        zmq_send_const (self->socket, effect->verb, strlen (effect->verb),
                        ZMQ_SNDMORE | ZMQ_DONTWAIT);
    }
    if (effect->payload) {
        zmq_msg_send (effect->payload, self->socket, ZMQ_DONTWAIT);
        hws_front_dispose (effect);
    } else {
        send_bytes (self->socket, effect->data, effect->size);
        effect->data = NULL;
    }
    return 0;
}

void hws_front_dispose (hws_effect_t *effect)
{
    free (effect->data);
    free_message (effect->payload);
    effect->data = NULL;
    effect->payload = NULL;
}
