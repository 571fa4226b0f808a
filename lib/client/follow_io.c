/*  Private clients: a client's connections to the fronts of dedicated anchors.
 */
#include "client/client_io.h"
#include "client/follow.h"
#include "io/wake_io.h"

#include <stdlib.h>
#include <string.h>

static hws_client_t *private_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_client_t, link) : NULL;
}

static hws_client_t *next_of (const hws_client_t *private)
{
    return private_of (private->link.next);
}

/*  ---- Following ---- */

/*  Whether a sender that was told to go to the endpoint gets there by it. One that is aside has
 *  lost a front of before, whose endpoint may be another's by now.  */
static bool leads_to (const hws_client_t *private, const char *endpoint,
                      const hws_client_t *present)
{
    return strcmp (private->endpoint, endpoint) == 0 &&
           (private == present || !atomic_load (&private->is_aside));
}

int hws_client_follow (hws_client_t *root, const char *told, const hws_client_t *present,
                       hws_client_t **client)
{
    hws_endpoint_t endpoint;
    hws_endpoint_parts_t parts;
    *client = NULL;
    int rc = hws_follow (told, &root->parts, &parts, endpoint);
    if (rc) {
        return rc;
    }
    hws_client_t *found = private_of (root->privates.head);
    while (found && !leads_to (found, endpoint, present)) {
        found = next_of (found);
    }
    if (!found) {
        const hws_session_options_t *const as = &root->session.options;
        const hws_client_options_t options = {.endpoint = endpoint,
                                              .name = as->name,
                                              .connect_ms = as->connect_ms,
                                              .give_up_ms = as->give_up_ms,
                                              .linger_ms = as->linger_ms};
        rc = hws_client_make (&found, &options, &parts, root);
        if (!rc) {
            hws_list_append (&root->privates, &found->link);
        }
    }
    if (!rc) {
        found->users++;
        *client = found;
    }
    return rc;
}

void hws_client_unfollow (hws_client_t **client)
{
    hws_client_t *self = *client;
    *client = NULL;
    hws_client_t *const root = self->parent;
    if (!root) {
        return;
    }
    const bool is_ours = hws_client_is_ours (self);
    if (is_ours) {
        hws_client_lock (root);
    }
    const bool is_last = --self->users == 0;
    if (is_last) {
        hws_list_remove (&self->link);
    }
    if (is_ours) {
        hws_client_unlock (root, false);
        hws_wake_set (root->wake); /* it may be that no connection is lost now */
    }
    if (is_last) {
        hws_client_destroy (&self);
    }
}

/*  ---- Asking ---- */

hws_client_t *hws_client_away (const hws_client_t *self)
{
    hws_client_t *private = private_of (self->privates.head);
    while (private && !atomic_load (&private->is_away)) {
        private = next_of (private);
    }
    return private;
}

hws_client_t *hws_client_moving (const hws_client_t *self)
{
    hws_client_t *private = private_of (self->privates.head);
    while (private && !atomic_load (&private->is_moving)) {
        private = next_of (private);
    }
    return private;
}

void hws_client_last_word (hws_client_t *self, hws_reason_t text)
{
    hws_client_lock (self);
    memcpy (text, self->session.error, sizeof (hws_reason_t));
    for (hws_client_t *private = private_of (self->privates.head); private && text[0] == '\0';
         private = next_of (private)) {
        hws_client_last_word (private, text);
    }
    hws_client_unlock (self, false);
}
