/*  Cancel tokens of hawser.h: made from randomness, cancelled by way of the client.
 */
#include "client/client_io.h"

#include "io/clock_io.h"
#include "io/random_io.h"

int hws_token_new (uint64_t *token)
{
    do {
        const int rc = hws_random_fill (token, sizeof *token);
        if (rc) {
            *token = 0;
            return rc;
        }
    } while (*token == 0);
    return 0;
}

/*  The private clients have sessions of their own, whose attaches may wait.  */
static void cancel_waiting (hws_client_t *self, uint64_t token, const char *reason)
{
    for (hws_link_t *link = self->privates.head; link; link = link->next) {
        hws_client_t *const private = hws_container_of (link, hws_client_t, link);
        hws_client_lock (private);
        hws_session_cancel_waiting (&private->session, token, reason);
        hws_client_unlock (private, true);
    }
}

void hws_client_heed_token (hws_client_t *self, uint64_t token)
{
    hws_client_t *const root = self->parent;
    if (!root) {
        return;
    }
    hws_client_lock (root);
    const char *const reason = hws_session_token_reason (&root->session, hws_clock_ms (), token);
    if (reason) {
        hws_client_lock (self);
        hws_session_cancel_waiting (&self->session, token, reason);
        hws_client_unlock (self, true);
    }
    hws_client_unlock (root, false);
}

int hws_client_cancel_token (hws_client_t *client, uint64_t token, const char *reason,
                             int64_t timeout_ms)
{
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    hws_client_lock (client);
    int rc = hws_session_cancel_token (&client->session, hws_clock_ms (), token, reason);
    if (token != 0) {
        cancel_waiting (client, token, reason);
    }
    hws_client_unlock (client, true);
    if (rc) {
        return rc;
    }
    int waited = 0;
    hws_client_lock (client);
    rc = hws_session_token_result (&client->session, token);
    while (rc == HWS_EWOULD_BLOCK && !waited) {
        waited = hws_client_wait (client, &client->token_told, &deadline);
        rc = hws_session_token_result (&client->session, token);
    }
    hws_client_unlock (client, false);
    return rc == HWS_EWOULD_BLOCK ? waited : rc;
}
