/*  The owner of received bytes, shared by everything that views into them.
 *
 *  The shell makes one per message (a copy of a small one, the zmq_msg_t itself of a
 *  large one); tests make their own. Threads may hold and release it at the same
 *  time.
 */
#ifndef HWS_PAYLOAD_H
#define HWS_PAYLOAD_H

#include <stdatomic.h>

typedef struct hws_payload hws_payload_t;

struct hws_payload {
    atomic_uint holders;                     /* 1 when it is made */
    void (*dispose) (hws_payload_t *self); /* frees it, bytes and all */
};

static inline hws_payload_t *hws_payload_hold (hws_payload_t *self)
{
    atomic_fetch_add_explicit (&self->holders, 1, memory_order_relaxed);
    return self;
}

/*  Lets go; the last one disposes. Accepts null.  */
static inline void hws_payload_release (hws_payload_t *self)
{
    if (self && atomic_fetch_sub_explicit (&self->holders, 1, memory_order_acq_rel) == 1) {
        self->dispose (self);
    }
}

#endif
