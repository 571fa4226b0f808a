/*  A sender behind hawser.h: what sender_io.c and sender_attach_io.c share; nobody else includes
 *  this.
 */
#ifndef HWS_SENDER_IO_H
#define HWS_SENDER_IO_H

#include "client/client_io.h"

struct hws_sender {
    hws_session_sender_t core; /* first: the session's callbacks get its address */
    hws_client_t *client;      /* the program's, or a private one of it */
    pthread_cond_t changed;    /* something may have become possible */
    unsigned waiting;          /* threads that wait for that */
    uint64_t id;               /* what the attach was answered, for those who do not lock */
    uint64_t record_bytes;     /*   the largest record */
    size_t part_bytes;         /*   a longer record travels in parts */
    bool is_busy;              /* a thread is inside a send, reserve or error that waits */
    int ended;                 /* descriptor, readable when it has ended; -1: nobody asked yet */
};

/*  Tells whoever waits; the session's callback.  */
void hws_sender_notified (hws_session_sender_t *core);

/*  Waits, under the lock of its client, until something may have become possible. Returns as
 *  hws_client_wait.  */
int hws_sender_wait (hws_sender_t *self, const hws_time_limit_t *deadline);

#endif
