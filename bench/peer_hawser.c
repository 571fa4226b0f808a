/*  Hawser as a program uses it: hawser.h, and a real hawser-broker with its defaults. A
 *  channel is an anchor, a stream a sender with its own window and ending.
 */
#include "bench/hawser_messages.h"
#include "bench/peer.h"

#include "hawser.h"

#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PATIENCE_MS 30000

typedef struct {
    hws_client_t *client;
    hws_sender_t **senders; /* by stream */
    unsigned count;
} sender_t;

/*  What a broker has to be told; the second, one of ten thousands of anchors. None outlives its
 * run, so none keeps a state.  */
static const char *const s_configs[] = {
    "{\"state_dir\": null}\n",
    "{\"state_dir\": null, \"limits\": {\"anchors\": 16384, \"anchors_per_peer\": 8192}}\n"};

static int serve (const place_t *place)
{
    char program[4096], config[32];
    snprintf (program, sizeof program, "%s/hawser-broker", place->programs);
    const char *const endpoint = peer_endpoint (place->ports[0]);
    const char *const text = s_configs[place->variant == 0 ? 0 : 1];
    const int file = memfd_create ("hawser-broker.json", 0);
    if (file < 0 || write (file, text, strlen (text)) < 0) {
        return peer_fail ("cannot write a configuration");
    }
    snprintf (config, sizeof config, "/proc/self/fd/%d", file);
    execl (program, program, "--listen", endpoint, "-c", config, (char *) NULL);
    return peer_fail ("cannot execute %s", program);
}

static int fail (hws_client_t *client, const char *what, int rc)
{
    char text[512] = "";
    if (client) {
        hws_client_error (client, text, sizeof text);
    }
    return peer_fail ("%s: %s (%s)", what, hws_strerror (rc), text);
}

static int connect_client (hws_client_t **client, const place_t *place, int64_t linger_ms)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = peer_endpoint (place->ports[0]);
    options.name = "bench";
    options.linger_ms = linger_ms;
    const int rc = hws_client_new (client, &options);
    return rc == 0 ? 0 : fail (NULL, "client", rc);
}

/*  Records that belong together are told to leave by `push`, all others leave by themselves.  */
static int64_t linger_of (const place_t *place)
{
    return place->burst > 1 ? HWS_FOREVER : 0;
}

static const char *anchor_name (unsigned channel)
{
    static char name[16];
    snprintf (name, sizeof name, "bench-%u", channel);
    return name;
}

static int open_sender (void **sender, const place_t *place)
{
    sender_t *const self = calloc (1, sizeof *self);
    hws_sender_t **const senders = calloc (place->streams, sizeof *senders);
    if (self == NULL || senders == NULL ||
        connect_client (&self->client, place, linger_of (place)) < 0) {
        return -1;
    }
    *sender = self;
    self->senders = senders;
    self->count = place->streams;
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.wait_ms = PATIENCE_MS;
    for (unsigned stream = 0; stream < self->count; stream++) {
        const char *const name = anchor_name (place->channel + stream % place->channels);
        const int rc = hws_sender_attach (&senders[stream], self->client, name, &options);
        if (rc < 0) {
            return fail (self->client, "attach", rc);
        }
    }
    return 0;
}

static int send_record (void *sender, unsigned stream, const void *data, size_t size)
{
    sender_t *const self = sender;
    const int rc = hws_sender_send (self->senders[stream], data, size, HWS_FOREVER);
    return rc == 0 ? 0 : fail (self->client, "send", rc);
}

static int push (void *sender)
{
    sender_t *const self = sender;
    const int rc = hws_client_flush (self->client);
    return rc == 0 ? 0 : fail (self->client, "flush", rc);
}

static int settle (void *sender)
{
    sender_t *const self = sender;
    for (unsigned stream = 0; stream < self->count; stream++) {
        const int rc = hws_sender_flush (self->senders[stream], PATIENCE_MS);
        if (rc < 0) {
            return fail (self->client, "flush", rc);
        }
    }
    return 0;
}

static int open_receiver (void **receiver, const place_t *place)
{
    hws_client_t *client;
    if (connect_client (&client, place, 0) < 0) {
        return -1;
    }
    hws_receiver_t *self;
    const int rc = hws_receiver_open (&self, client, anchor_name (place->channel), NULL);
    *receiver = self;
    return rc == 0 ? 0 : fail (client, "open", rc);
}

static int receive (void *receiver, const void **data, size_t *size)
{
    hws_event_t event;
    for (;;) {
        const int rc = hws_receiver_recv (receiver, &event, RECEIVE_TICK_MS);
        if (rc == HWS_ETIMEOUT) {
            return RECEIVED_NOTHING;
        }
        if (rc < 0) {
            return fail (NULL, "receive", rc);
        }
        if (event.kind == HWS_EVENT_RECORD) {
            *data = event.data;
            *size = event.size;
            return RECEIVED_RECORD;
        }
        if (event.kind != HWS_EVENT_ATTACHED) {
            return peer_fail ("a stream ended: %s, %s", event.cause ? event.cause : "",
                              event.reason ? event.reason : "");
        }
    }
}

const peer_t peer_hawser = {
    .name = "hawser",
    .serve = serve,
    .open_sender = open_sender,
    .send = send_record,
    .push = push,
    .settle = settle,
    .open_receiver = open_receiver,
    .receive = receive,
    .messages = hawser_messages,
};

const peer_t peer_hawser_wide = {
    .name = "hawser",
    .variant = 1,
    .serve = serve,
    .open_sender = open_sender,
    .send = send_record,
    .push = push,
    .settle = settle,
    .open_receiver = open_receiver,
    .receive = receive,
    .messages = hawser_messages,
};
