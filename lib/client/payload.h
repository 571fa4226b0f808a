/*  The owner of received bytes, shared by everything that views into them.
 *
 *  The shell makes one for each message (payload_io.h); tests make their own. Pure code
 *  only holds it and lets go; the reading side does so on a thread of its own, so both
 *  have to be safe from any thread.
 */
#ifndef HWS_PAYLOAD_H
#define HWS_PAYLOAD_H

typedef struct hws_payload hws_payload_t;

struct hws_payload {
    void (*hold) (hws_payload_t *self);    /* one more holder */
    void (*release) (hws_payload_t *self); /* one less; the last one frees it, bytes and all */
};

#endif
