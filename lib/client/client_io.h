/*  The client behind hawser.h: a session, its lock, and the thread that runs it.
 *
 *  One lock guards the session with all its streams. The thread reads and writes the
 *  socket outside of it and takes it for each message; a program's thread takes it to append
 *  a record, or to fetch all queued events at once. While the thread is at work nobody has
 *  to wake it: it takes whatever is queued before it sleeps, so batches form under load
 *  and a lone record leaves at once. While it sleeps the program's thread writes such a record
 *  itself, once a millisecond: a second lock goes with the socket.
 *
 *  A client may have private ones: connections to the fronts of dedicated anchors, each with a
 *  client id, a session, a lock and a thread of its own, shared by the client's senders there and
 *  gone with the last of them (follow_io.c). Of two locks the client's is taken before that of a
 *  private one; the thread of a private one takes only its own.
 *
 *  Shared by client_io.c, client_thread_io.c, follow_io.c, token_io.c, sender_io.c,
 *  sender_attach_io.c, sender_early_io.c, flush_io.c, receiver_io.c and receiver_open_io.c; nobody
 * else includes this.
 */
#ifndef HWS_CLIENT_IO_H
#define HWS_CLIENT_IO_H

#include "client/resolve_io.h"
#include "client/session.h"
#include "hawser.h"
#include "io/dealer_io.h"
#include "io/wait_io.h"

#include <pthread.h>
#include <stdatomic.h>

extern atomic_uint hws_client_forks; /* of this process and its ancestors, since the first client */

struct hws_client {
    pthread_mutex_t lock;      /* of session, is_asleep, is_stopping, privates, the conditions */
    pthread_cond_t gone;       /* the session is GONE */
    pthread_cond_t token_told; /* more is known of a token's cancel */
    hws_session_t session;
    hws_blocks_t *blocks; /* of its streams and its batches */
    bool is_asleep;       /* the thread waits, or is about to: it has to be woken */
    bool is_stopping;     /* the thread is to end */
    int wake;             /* descriptor that wakes it */
    unsigned forks;       /* of the process, when the client was made */
    hws_endpoint_t endpoint;
    hws_endpoint_parts_t parts;                                             /* of it */
    void (*on_connection) (void *arg, bool is_connected, const char *text); /* or null */
    void *on_connection_arg;

    hws_list_t privates; /* the private ones */

    /* a private client's own */
    hws_client_t *parent;  /* whose private it is, which is no private; else null */
    hws_link_t link;       /* in `privates` of the parent */
    unsigned users;        /* senders that are attached through it; under the parent's lock */
    atomic_bool is_away;   /* its connection is lost, and a stream waits for the next */
    atomic_bool is_aside;  /* it is connected to the parent's endpoint, not to its own */
    atomic_bool is_moving; /* it has early senders that its parent's thread takes elsewhere */

    /* who has `socket_lock` uses the socket: the thread while it does not sleep, else a program's
       thread, to send at once */
    pthread_t thread;
    pthread_mutex_t socket_lock; /* of all that follows; taken before `lock`, or only tried */
    hws_ms_t sleeps_until;       /* the thread; it has to be woken for what is due earlier */
    hws_ms_t helped_at;          /* a program's thread has sent; 0: none yet */
    void *context;               /* of libzmq */
    hws_dealer_t dealer;
    hws_addresses_t addresses; /* behind the endpoint, as last looked up */
    uint32_t next_address;     /* to try */
    uint32_t own_addresses;    /* so many are its own endpoint's, the rest the parent's */
    bool is_welcome;           /* something has been read on this connection */
    bool is_loss_told;         /* on_connection was told that it is lost, and not yet more */
    hws_block_t *buffer;       /* a batch is made here, or null */
    const char *unsent_verb;   /* of the message that the socket did not take yet, or null */
    bool has_unsent;
    zmq_msg_t unsent;
};

/*  As hws_client_new, of an endpoint that is checked, for a client `parent` or null.  */
int hws_client_make (hws_client_t **client, const hws_client_options_t *options,
                     const hws_endpoint_parts_t *parts, hws_client_t *parent);

/*  Takes the private client of `root` for the front that an answer to ATTACH `told`, making it
 *  if there is none; one that is aside serves only whom it serves already, the sender of
 *  `present`. Under the lock of `root`. Returns 0, HWS_EPROTOCOL (nobody can connect there),
 * HWS_ENO_MEMORY, HWS_ESYSTEM.  */
int hws_client_follow (hws_client_t *root, const char *told, const hws_client_t *present,
                       hws_client_t **client);

/*  Gives a client back that a sender used, which may then be the last one of a private
 *  client; sets `*client` to null. A client that is no private stays.  */
void hws_client_unfollow (hws_client_t **client);

/*  Ends what is being attached at a private client with a token that its parent's program has
 *  cancelled: it may have done so while the sender was on its way from the one to the other.  */
void hws_client_heed_token (hws_client_t *self, uint64_t token);

/*  Takes the early senders, whose programs do not wait, to where the broker sends them, on the
 *  client's own thread; those of a private client its parent's thread takes.  */
void hws_client_guide (hws_client_t *self);

/*  The first of the private clients that is away, or is_moving; or null. Under the lock.  */
hws_client_t *hws_client_away (const hws_client_t *self);
hws_client_t *hws_client_moving (const hws_client_t *self);

/*  Copies the session's last word on what went wrong. Of a client with private ones that has
 *  none, theirs.  */
void hws_client_last_word (hws_client_t *self, hws_reason_t text);

/*  Whether the process is the one that made the client.  */
static inline bool hws_client_is_ours (const hws_client_t *self)
{
    return self->forks == atomic_load_explicit (&hws_client_forks, memory_order_relaxed);
}

/*  Lock; and unlock, waking the thread if there is work for it.  */
void hws_client_lock (hws_client_t *self);
void hws_client_unlock (hws_client_t *self, bool has_work);

/*  Waits, under the lock. Returns 0 (look again), HWS_ETIMEOUT, HWS_EWOULD_BLOCK.  */
int hws_client_wait (hws_client_t *self, pthread_cond_t *cond, const hws_time_limit_t *deadline);

/*  Sends what there is in place of the thread, which sleeps: that saves a lone record the way
 *  through another thread. True when nothing is left to do for it. Only once a millisecond, for
 *  records that come faster make better batches on the way.  */
bool hws_client_send_now (hws_client_t *self);

/*  The thread; `argument` is the client. It ends some time after is_stopping is set.  */
void *hws_client_run (void *argument);

#endif
