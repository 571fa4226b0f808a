/*  hws_client_flush: of the client, and of its private ones.  */
#include "client/client_io.h"

static void flush (hws_client_t *self)
{
    hws_client_lock (self);
    for (hws_link_t *link = self->privates.head; link; link = link->next) {
        flush (hws_container_of (link, hws_client_t, link));
    }
    hws_client_unlock (self, hws_session_flush (&self->session));
}

int hws_client_flush (hws_client_t *client)
{
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    flush (client);
    return 0;
}
