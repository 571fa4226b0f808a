/*  Early senders: their programs do not wait for the answer to ATTACH. When it is that the anchor
 *  has a front of its own, the client's thread takes the sender there, with all that was
 *  appended; also from a private client, whose front has gone with a broker that was killed.
 */
#include "client/sender_io.h"

#include "io/clock_io.h"
#include "io/wake_io.h"

#include <stdio.h>

/*  To the private client `next`, under the locks of all. Who waits for the sender looks again
 *  where it is. A token may have been cancelled at the root only.  */
static void move (hws_client_t *root, hws_client_t *next, hws_sender_t *sender)
{
    hws_session_sender_t *const core = &sender->core;
    const hws_ms_t now = hws_clock_ms ();
    hws_session_move_sender (&next->session, now, core);
    atomic_store (&sender->client, next);
    const char *const cancelled =
        hws_session_token_reason (&root->session, now, core->cancel_token);
    if (cancelled) {
        hws_session_refuse_sender (core, HWS_ECANCELLED, cancelled);
    }
    pthread_cond_broadcast (&sender->changed);
}

/*  The private client that leads from `from` to where the sender was sent. Who is sent on from the
 *  front of an anchor has gone far enough.  */
static int find_way (hws_client_t *root, hws_client_t *from, const hws_sender_t *sender,
                     hws_client_t **next)
{
    if (from != root && !atomic_load (&from->is_aside)) {
        return HWS_EPROTOCOL;
    }
    const int rc = hws_client_follow (root, sender->core.endpoint, from, next);
    if (!rc && *next == from) {
        from->users--; /* the sender is one already, and does not get there */
        return HWS_EUNREACHABLE;
    }
    return rc;
}

/*  Under the locks of the root and of `from`. True when the sender has left that one.  */
static bool guide (hws_client_t *root, hws_client_t *from, hws_sender_t *sender)
{
    hws_client_t *next = NULL;
    const int rc = find_way (root, from, sender, &next);
    if (rc) {
        hws_reason_t reason;
        snprintf (reason, sizeof reason, "nobody can connect to the anchor at %s",
                  sender->core.endpoint);
        hws_session_refuse_sender (&sender->core, rc, reason);
        return false;
    }
    hws_client_lock (next);
    move (root, next, sender);
    hws_client_unlock (next, true);
    return true;
}

/*  All that wait at `from`, under its lock and the root's. Returns how many have left it.  */
static unsigned guide_all (hws_client_t *root, hws_client_t *from)
{
    unsigned left = 0;
    while (from->session.moved.head) {
        hws_session_sender_t *const core =
            hws_container_of (from->session.moved.head, hws_session_sender_t, moved_link);
        left += guide (root, from, hws_container_of (core, hws_sender_t, core));
    }
    return left;
}

/*  A private client that nobody uses any more ends with the last that leaves it.  */
static void leave (hws_client_t *private, unsigned users)
{
    for (; users > 0; users--) {
        hws_client_t *left = private;
        hws_client_unfollow (&left);
    }
}

void hws_client_guide (hws_client_t *self)
{
    if (self->parent) { /* whose lock is not for this thread */
        atomic_store (&self->is_moving, true);
        hws_wake_set (self->parent->wake);
        return;
    }
    hws_client_t *private;
    hws_client_lock (self);
    guide_all (self, self);
    while ((private = hws_client_moving (self)) != NULL) {
        hws_client_lock (private);
        atomic_store (&private->is_moving, false);
        const unsigned left = guide_all (self, private);
        hws_client_unlock (private, false);
        hws_client_unlock (self, false);
        leave (private, left);
        hws_client_lock (self);
    }
    hws_client_unlock (self, false);
}
