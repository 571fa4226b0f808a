/*  A sender behind hawser.h: what sender_io.c and sender_attach_io.c share; nobody else includes
 *  this.
 */
#ifndef HWS_SENDER_IO_H
#define HWS_SENDER_IO_H

#include "client/client_io.h"

struct hws_sender {
    hws_session_sender_t core;    /* first: the session's callbacks get its address */
    hws_client_t *_Atomic client; /* the program's, or a private one of it; an early sender
                                     comes from there to here under both locks */
    pthread_cond_t changed;       /* something may have become possible */
    unsigned waiting;             /* threads that wait for that */
    atomic_uint_least64_t id;     /* what the attach was answered, for those who do not lock; 0:
                                     nothing yet */
    atomic_uint_least64_t record_bytes; /*   the largest record */
    atomic_size_t part_bytes;           /*   a longer record travels in parts */
    bool is_busy;                       /* a thread is inside a send, reserve or error that waits */
    int ended; /* descriptor, readable when it has ended; -1: nobody asked yet */
};

/*  Tells whoever waits; the session's callback.  */
void hws_sender_notified (hws_session_sender_t *core);

/*  The lock of the client that the sender is at; and unlock, as hws_client_unlock.  */
void hws_sender_lock (hws_sender_t *self);
void hws_sender_unlock (hws_sender_t *self, bool has_work);

/*  Waits, under that lock, until something may have become possible; the sender may be at another
 *  client then, and its lock be held. Returns as hws_client_wait.  */
int hws_sender_wait (hws_sender_t *self, const hws_time_limit_t *deadline);

#endif
