/*  mosquitto through libmosquitto, QoS 0 and QoS 1: a channel is a topic. The queues of the
 *  broker are unlimited, so that it loses nothing where it need not; senders keep at most
 *  IN_FLIGHT_MAX records that libmosquitto has not written (QoS 0) or the broker has not
 *  acknowledged (QoS 1).
 */
#include "bench/peer.h"

#if __has_include(<mosquitto.h>)

#include <mosquitto.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/*  A receiver reads so many messages between two polls.  */
enum { IN_FLIGHT_MAX = 500, READS_MAX = 64 };

typedef struct {
    struct mosquitto *mosquitto;
    const place_t *place;
    bool is_subscribed;
    int in_flight; /* a sender's */

    /* A receiver's: records that were read and not yet shown, each behind its size. */
    char *records;
    size_t filled, taken;
} client_t;

static int serve (const place_t *place)
{
    char config[256], path[32];
    const int size =
        snprintf (config, sizeof config,
                  "%slistener %d 127.0.0.1\nallow_anonymous true\npersistence false\n"
                  "log_type error\nset_tcp_nodelay true\n"
                  "max_queued_messages 0\nmax_inflight_messages %d\n",
                  geteuid () == 0 ? "user root\n" : "", place->ports[0], IN_FLIGHT_MAX);
    const int file = memfd_create ("mosquitto.conf", 0);
    if (file < 0 || write (file, config, (size_t) size) != size) {
        return peer_fail ("cannot write mosquitto's configuration");
    }
    snprintf (path, sizeof path, "/proc/self/fd/%d", file);
    execlp ("mosquitto", "mosquitto", "-c", path, (char *) NULL);
    return peer_fail ("cannot execute mosquitto");
}

static int check (int rc, const char *what)
{
    return rc == MOSQ_ERR_SUCCESS ? 0 : peer_fail ("%s: %s", what, mosquitto_strerror (rc));
}

static int poll_once (client_t *self, int timeout_ms)
{
    return check (mosquitto_loop (self->mosquitto, timeout_ms, 1), "mosquitto_loop");
}

static int open_client (client_t **client, const place_t *place)
{
    client_t *const self = calloc (1, sizeof *self);
    *client = self;
    if (self == NULL || mosquitto_lib_init () != MOSQ_ERR_SUCCESS) {
        return -1;
    }
    self->place = place;
    self->mosquitto = mosquitto_new (NULL, true, self);
    if (self->mosquitto == NULL) {
        return -1;
    }
    mosquitto_int_option (self->mosquitto, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_max_inflight_messages_set (self->mosquitto, IN_FLIGHT_MAX);
    return check (mosquitto_connect (self->mosquitto, "127.0.0.1", place->ports[0], 60),
                  "mosquitto_connect");
}

static const char *topic (unsigned channel)
{
    static char text[16];
    snprintf (text, sizeof text, "bench/%u", channel);
    return text;
}

/*  ---- Senders ---- */

static void on_publish (struct mosquitto *mosquitto, void *client, int id)
{
    (void) mosquitto;
    (void) id;
    client_t *const self = client;
    self->in_flight--;
}

static int open_sender (void **sender, const place_t *place)
{
    client_t *self;
    const int rc = open_client (&self, place);
    *sender = self;
    if (rc == 0) {
        mosquitto_publish_callback_set (self->mosquitto, on_publish);
    }
    return rc;
}

static int send_record (void *sender, unsigned stream, const void *data, size_t size)
{
    client_t *const self = sender;
    const char *const name = topic (self->place->channel + stream % self->place->channels);
    self->in_flight++;
    if (check (mosquitto_publish (self->mosquitto, NULL, name, (int) size, data,
                                  self->place->variant, false),
               "mosquitto_publish") < 0) {
        return -1;
    }
    while (self->in_flight >= IN_FLIGHT_MAX || mosquitto_want_write (self->mosquitto)) {
        if (poll_once (self, RECEIVE_TICK_MS) < 0) {
            return -1;
        }
    }
    return 0;
}

/*  Reads the acknowledgements that have come.  */
static int push (void *sender)
{
    client_t *const self = sender;
    return self->place->variant > 0 ? poll_once (self, 0) : 0;
}

static int settle (void *sender)
{
    client_t *const self = sender;
    while (self->in_flight > 0) {
        if (poll_once (self, RECEIVE_TICK_MS) < 0) {
            return -1;
        }
    }
    return 0;
}

/*  ---- Receivers ---- */

static void on_subscribe (struct mosquitto *mosquitto, void *client, int id, int count,
                          const int *granted)
{
    (void) mosquitto;
    (void) id;
    (void) count;
    (void) granted;
    client_t *const self = client;
    self->is_subscribed = true;
}

static void on_message (struct mosquitto *mosquitto, void *client,
                        const struct mosquitto_message *message)
{
    (void) mosquitto;
    client_t *const self = client;
    const size_t size = (size_t) message->payloadlen;
    if (size == self->place->record_bytes) {
        memcpy (self->records + self->filled, message->payload, size);
        self->filled += size;
    }
}

static int open_receiver (void **receiver, const place_t *place)
{
    client_t *self;
    int rc = open_client (&self, place);
    *receiver = self;
    if (rc == 0) {
        /*  mosquitto_loop itself may read some more than one.  */
        self->records = malloc (2 * READS_MAX * place->record_bytes);
        mosquitto_subscribe_callback_set (self->mosquitto, on_subscribe);
        mosquitto_message_callback_set (self->mosquitto, on_message);
        rc = check (
            mosquitto_subscribe (self->mosquitto, NULL, topic (place->channel), place->variant),
            "mosquitto_subscribe");
    }
    while (rc == 0 && !self->is_subscribed) {
        rc = poll_once (self, RECEIVE_TICK_MS);
    }
    return rc;
}

/*  After a poll, reads on as long as there is something, without polling for each.  */
static int refill (client_t *self)
{
    self->filled = self->taken = 0;
    int rc = poll_once (self, RECEIVE_TICK_MS);
    size_t before = 0;
    for (int i = 0; i < READS_MAX && rc == 0 && self->filled > before; i++) {
        before = self->filled;
        rc = check (mosquitto_loop_read (self->mosquitto, 1), "mosquitto_loop_read");
    }
    return rc;
}

static int receive (void *receiver, const void **data, size_t *size)
{
    client_t *const self = receiver;
    if (self->taken == self->filled && refill (self) < 0) {
        return -1;
    }
    if (self->taken == self->filled) {
        return RECEIVED_NOTHING;
    }
    *data = self->records + self->taken;
    *size = self->place->record_bytes;
    self->taken += *size;
    return RECEIVED_RECORD;
}

#define PEER(label, qos)                                                                           \
    {                                                                                              \
        .name = label, .program = "mosquitto", .variant = qos, .serve = serve,                     \
        .open_sender = open_sender, .send = send_record, .push = push, .settle = settle,           \
        .open_receiver = open_receiver, .receive = receive,                                        \
    }

#else
#define PEER(label, qos)                                                                           \
    {                                                                                              \
        .name = label, .lacks = "libmosquitto-dev"                                                 \
    }
#endif

const peer_t peer_mosquitto_qos0 = PEER ("mosquitto_qos0", 0);
const peer_t peer_mosquitto_qos1 = PEER ("mosquitto_qos1", 1);
