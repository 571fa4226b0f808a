/*  A receiver behind hawser.h: what receiver_io.c and receiver_open_io.c share; nobody else
 * includes this.
 */
#ifndef HWS_RECEIVER_IO_H
#define HWS_RECEIVER_IO_H

#include "client/client_io.h"
#include "client/rx_reader.h"

struct hws_receiver {
    hws_session_receiver_t core; /* first: the session's callbacks get its address */
    hws_client_t *client;
    char handle[HWS_HANDLE_TEXT_SIZE];
    char owner_token[2 * HWS_ID_SIZE + 1];
    bool manual_ack;
    pthread_cond_t changed; /* an event came, or the anchor's state changed */
    unsigned waiting;       /* threads that wait for that */
    atomic_int ready;       /* descriptor, readable while there are events; -1: nobody asked */
    atomic_bool is_closing; /* the program has cancelled the anchor */
    atomic_bool is_over;    /* the anchor is closed, by whomever */
    bool is_taking;         /* the thread that receives waits, and does not use the reader */
    bool is_flush_set;      /* the client's thread will publish what the program leaves */
    atomic_bool is_stirred; /* the next receive looks at more than the next record */

    /* of the thread that receives */
    atomic_bool is_busy; /* there is one */
    hws_rx_reader_t reader;
};

/*  An empty one at the client, with nothing asked. Returns 0, HWS_ENO_MEMORY, HWS_ESYSTEM.  */
int hws_receiver_make (hws_receiver_t **receiver, hws_client_t *client, bool manual_ack);

/*  Frees it; it is in its session, or was never put there.  */
void hws_receiver_free (hws_receiver_t *self);

/*  Waits, under the lock, until something came or changed. Returns as hws_client_wait.  */
int hws_receiver_wait (hws_receiver_t *self, const hws_time_limit_t *deadline);

#endif
