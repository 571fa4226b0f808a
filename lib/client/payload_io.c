#include "client/payload_io.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { COPIED_MAX = 8192 };

typedef struct {
    hws_payload_t base;
    atomic_uint holders;
    bool has_message;
    zmq_msg_t message; /* of a large one */
    uint8_t bytes[];   /* of a small one */
} received_t;

static void hold (hws_payload_t *payload)
{
    received_t *const self = (received_t *) (void *) payload;
    atomic_fetch_add_explicit (&self->holders, 1, memory_order_relaxed);
}

static void release (hws_payload_t *payload)
{
    received_t *const self = (received_t *) (void *) payload;
    if (atomic_fetch_sub_explicit (&self->holders, 1, memory_order_acq_rel) == 1) {
        if (self->has_message) {
            zmq_msg_close (&self->message);
        }
        free (self);
    }
}

hws_payload_t *hws_payload_of (zmq_msg_t *message, hws_bytes_t *bytes)
{
    const size_t size = zmq_msg_size (message);
    const bool is_copied = size < COPIED_MAX;
    received_t *const self = malloc (sizeof *self + (is_copied ? size : 0));
    if (!self) {
        return NULL;
    }
    self->base = (hws_payload_t){.hold = hold, .release = release};
    atomic_init (&self->holders, 1);
    self->has_message = !is_copied;
    if (is_copied) {
        memcpy (self->bytes, zmq_msg_data (message), size);
        zmq_msg_close (message);
        *bytes = hws_bytes (self->bytes, size);
    } else {
        zmq_msg_init (&self->message);
        zmq_msg_move (&self->message, message);
        zmq_msg_close (message);
        *bytes = hws_bytes (zmq_msg_data (&self->message), size);
    }
    return &self->base;
}
