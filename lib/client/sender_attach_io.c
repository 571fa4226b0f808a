/*  hws_sender_attach: at the broker, and where it sends the sender. An anchor with a front of its
 *  own seats who comes there, by way of a private client; when the front is gone on arrival the
 *  broker is asked again, while there is time.
 */
#include "client/sender_io.h"

#include "io/clock_io.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLACES_MAX = 8 }; /* that are asked, one after the other */

/*  ---- What is asked for ---- */

void hws_sender_options_init (hws_sender_options_t *options)
{
    *options = (hws_sender_options_t){.label = NULL, .wait_ms = 0};
}

static int take_options (hws_session_sender_t *core, const char *anchor,
                         const hws_sender_options_t *options)
{
    const hws_bytes_t name = hws_bytes_of_text (anchor);
    if (hws_handle_parse (name, &core->handle) == 0) {
        core->has_handle = true;
    } else if (hws_name_is_valid (name)) {
        snprintf (core->anchor, sizeof core->anchor, "%s", anchor);
    } else {
        return HWS_EINVALID;
    }
    if (options->label && options->label[0] != '\0') {
        if (!hws_name_is_valid (hws_bytes_of_text (options->label))) {
            return HWS_EINVALID;
        }
        snprintf (core->label, sizeof core->label, "%s", options->label);
    }
    if (options->wait_ms < HWS_FOREVER) {
        return HWS_EINVALID;
    }
    core->cancel_token = options->cancel_token;
    core->is_early = options->early;
    core->wait_ms = options->wait_ms == HWS_FOREVER ? INT64_MAX : (uint64_t) options->wait_ms;
    return 0;
}

/*  ---- Places ---- */

/*  Asks the client at hand for a seat. After a refusal the stream is in no session.  */
static int ask_for_seat (hws_sender_t *self)
{
    hws_client_t *const client = self->client;
    const hws_time_limit_t forever = hws_time_limit_after (HWS_FOREVER);
    const hws_tx_t *const tx = &self->core.tx;
    hws_client_lock (client);
    hws_session_attach (&client->session, hws_clock_ms (), &self->core);
    hws_client_unlock (client, true);
    hws_client_heed_token (client, self->core.cancel_token);
    hws_client_lock (client);
    while (tx->state == HWS_TX_ATTACHING) {
        hws_sender_wait (self, &forever);
    }
    const bool is_refused = tx->state == HWS_TX_ENDED && tx->sender_id == 0;
    const int result = tx->result ? tx->result : HWS_EENDED;
    if (is_refused) {
        hws_session_remove_sender (&self->core);
    }
    hws_client_unlock (client, is_refused);
    return is_refused ? result : 0;
}

static void leave_word (hws_client_t *root, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

/*  What hws_client_error tells of an attach that failed.  */
static void leave_word (hws_client_t *root, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    hws_client_lock (root);
    vsnprintf (root->session.error, sizeof root->session.error, format, arguments);
    hws_client_unlock (root, false);
    va_end (arguments);
}

/*  Goes to the front that the broker told. One that cannot be reached from here, while the
 *  broker can, is told again and again.  */
static int follow (hws_sender_t *self, hws_client_t *root)
{
    hws_client_t *next;
    hws_client_lock (root);
    int rc = hws_client_follow (root, self->core.endpoint, self->client, &next);
    hws_client_unlock (root, false);
    if (rc == HWS_EPROTOCOL) {
        leave_word (root, "nobody can connect to the anchor at %s", self->core.endpoint);
    }
    if (rc) {
        return rc;
    }
    if (next == self->client && atomic_load (&next->is_aside)) {
        leave_word (root, "there is no way to the anchor at %s", next->endpoint);
        rc = HWS_EUNREACHABLE;
    }
    hws_client_t *unused = rc ? next : self->client;
    self->client = rc ? self->client : next;
    hws_client_unfollow (&unused);
    return rc;
}

/*  Changes to the client that is to be asked next. Returns the refusal, or another code, when
 *  there is none.  */
static int go_on (hws_sender_t *self, hws_client_t *root, int refusal, bool is_by_name)
{
    const bool is_gone =
        refusal == HWS_ECLOSED || refusal == HWS_ENOT_FOUND || refusal == HWS_EWRONG_BROKER;
    if (refusal == HWS_EMOVED && self->core.endpoint[0] != '\0') {
        return follow (self, root);
    }
    if (self->client == root || !is_gone || !is_by_name) {
        if (self->client != root) {
            hws_reason_t text;
            hws_client_last_word (self->client, text);
            leave_word (root, "%s", text);
        }
        return refusal;
    }
    self->core.has_handle = false; /* there may be another of that name */
    hws_client_t *unused = self->client;
    self->client = root;
    hws_client_unfollow (&unused);
    return 0;
}

/*  Attaches at the broker, and where the broker sends it.  */
static int attach (hws_sender_t *self, hws_client_t *root)
{
    hws_session_sender_t *const core = &self->core;
    const bool is_by_name = !core->has_handle;
    const hws_ms_t wait_until = core->wait_ms < HWS_NEVER
                                    ? hws_time_after (hws_clock_ms (), (hws_ms_t) core->wait_ms)
                                    : HWS_NEVER;
    for (int places = 1;; places++) {
        int rc = ask_for_seat (self);
        if (rc == HWS_EMOVED && places >= PLACES_MAX) {
            leave_word (root, "the broker sends to %s again and again", core->endpoint);
            rc = HWS_EPROTOCOL;
        } else if (rc) {
            rc = go_on (self, root, rc, is_by_name);
        } else {
            return 0;
        }
        if (rc) {
            return rc;
        }
        if (wait_until != HWS_NEVER) {
            core->wait_ms = (uint64_t) hws_time_until (hws_clock_ms (), wait_until);
        }
    }
}

/*  Asks without waiting: what is refused at once is refused here. The rest goes on in
 *  sender_early_io.c.  */
static int ask_early (hws_sender_t *self)
{
    hws_client_t *const client = self->client;
    const hws_tx_t *const tx = &self->core.tx;
    hws_client_lock (client);
    hws_session_attach (&client->session, hws_clock_ms (), &self->core);
    self->part_bytes = tx->part_bytes;
    const int rc = tx->state == HWS_TX_ENDED ? tx->result : 0;
    if (rc) {
        hws_session_remove_sender (&self->core);
    }
    hws_client_unlock (client, true);
    return rc;
}

int hws_sender_attach (hws_sender_t **sender, hws_client_t *client, const char *anchor,
                       const hws_sender_options_t *options)
{
    *sender = NULL;
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_options_t defaults;
    hws_sender_options_init (&defaults);
    hws_sender_t *self = calloc (1, sizeof *self);
    if (!self) {
        return HWS_ENO_MEMORY;
    }
    self->client = client;
    self->core.notify = hws_sender_notified;
    self->ended = -1;
    int rc = take_options (&self->core, anchor, options ? options : &defaults);
    rc = rc ? rc : hws_cond_init (&self->changed);
    if (rc) {
        free (self);
        return rc;
    }
    rc = self->core.is_early ? ask_early (self) : attach (self, client);
    if (rc) {
        hws_client_t *unused = self->client;
        hws_client_unfollow (&unused);
        pthread_cond_destroy (&self->changed);
        free (self);
        return rc;
    }
    *sender = self;
    return 0;
}
