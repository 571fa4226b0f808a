/*  Early senders: their programs do not wait for the answer to ATTACH. When it is that the anchor
 *  has a front of its own, the client's thread takes the sender there, with all that was
 *  appended.
 */
#include "client/sender_io.h"

#include "io/clock_io.h"

#include <stdio.h>

/*  To the private client `next`, under the locks of both. Who waits for the sender looks again
 * where it is. A token may have been cancelled at the root only.  */
static void move (hws_client_t *self, hws_client_t *next, hws_sender_t *sender)
{
    hws_session_sender_t *const core = &sender->core;
    const hws_ms_t now = hws_clock_ms ();
    hws_session_move_sender (&next->session, now, core);
    atomic_store (&sender->client, next);
    const char *const cancelled =
        hws_session_token_reason (&self->session, now, core->cancel_token);
    if (cancelled) {
        hws_session_refuse_sender (core, HWS_ECANCELLED, cancelled);
    }
    pthread_cond_broadcast (&sender->changed);
}

/*  One that is sent on from there, too, has gone far enough.  */
static void guide (hws_client_t *self, hws_sender_t *sender)
{
    hws_client_t *next = NULL;
    const int rc =
        self->parent ? HWS_EPROTOCOL : hws_client_follow (self, sender->core.endpoint, self, &next);
    if (rc) {
        hws_reason_t reason;
        snprintf (reason, sizeof reason, "nobody can connect to the anchor at %s",
                  sender->core.endpoint);
        hws_session_refuse_sender (&sender->core, rc, reason);
        return;
    }
    hws_client_lock (next);
    move (self, next, sender);
    hws_client_unlock (next, true);
}

void hws_client_guide (hws_client_t *self)
{
    hws_client_lock (self);
    while (self->session.moved.head) {
        hws_session_sender_t *const core =
            hws_container_of (self->session.moved.head, hws_session_sender_t, moved_link);
        guide (self, hws_container_of (core, hws_sender_t, core));
    }
    hws_client_unlock (self, false);
}
