#include "client/session_part.h"

#include <stdlib.h>
#include <string.h>

void hws_request_init (hws_request_t *self, hws_about_t about, void *owner)
{
    *self = (hws_request_t){.about = about, .owner = owner};
}

/*  One message of the outbox.  */
typedef struct {
    hws_link_t link;
    const char *verb; /* null: a batch */
    uint8_t *data;
    size_t size;
} outgoing_t;

bool hws_session_say (hws_session_t *self, const hws_control_t *control)
{
    size_t size;
    outgoing_t *const message = calloc (1, sizeof *message);
    if (!message) {
        return false;
    }
    const int rc = hws_control_encode (control, self->scratch, HWS_CONTROL_SIZE_MAX, &size);
    message->data = rc ? NULL : malloc (size);
    if (!message->data) {
        free (message);
        return false;
    }
    memcpy (message->data, self->scratch, size);
    message->size = size;
    message->verb = hws_verb_word (control->verb);
    hws_list_append (&self->outbox, &message->link);
    return true;
}

void hws_session_say_once (hws_session_t *self, const hws_control_t *control)
{
    self->is_word_lost |= !hws_session_say (self, control);
}

bool hws_session_say_batch (hws_session_t *self, uint8_t *batch, size_t size)
{
    outgoing_t *const message = calloc (1, sizeof *message);
    if (!message) {
        free (batch);
        return false;
    }
    message->data = batch;
    message->size = size;
    hws_list_append (&self->outbox, &message->link);
    return true;
}

bool hws_session_ask (hws_session_t *self, hws_ms_t now, hws_request_t *request,
                      hws_control_t *control, hws_ms_t retry_ms)
{
    if (!hws_map_node_is_in (&request->node)) {
        request->id = ++self->last_request_id;
        hws_put_u64 (request->key, request->id);
        hws_map_insert (&self->requests, &request->node,
                        hws_bytes (request->key, sizeof request->key));
    }
    control->form = HWS_FORM_REQUEST;
    control->has_id = true;
    control->id = request->id;
    hws_heap_set (&self->timers, &request->timer, hws_time_after (now, retry_ms));
    return hws_session_say (self, control);
}

void hws_session_settle (hws_session_t *self, hws_request_t *request)
{
    hws_map_remove (&self->requests, &request->node);
    hws_heap_clear (&self->timers, &request->timer);
}

/*  The verb of a request, under which it is answered.  */
static hws_verb_t verb_of (hws_about_t about)
{
    static const hws_verb_t verbs[] = {
        [HWS_ABOUT_HELLO] = HWS_VERB_HELLO,           [HWS_ABOUT_BYE] = HWS_VERB_BYE,
        [HWS_ABOUT_PARTING] = HWS_VERB_RESERVE_TOKEN, [HWS_ABOUT_OPEN] = HWS_VERB_OPEN,
        [HWS_ABOUT_CLOSE] = HWS_VERB_CANCEL,          [HWS_ABOUT_LEAVE] = HWS_VERB_RESERVE_TOKEN,
        [HWS_ABOUT_ATTACH] = HWS_VERB_ATTACH,         [HWS_ABOUT_CANCEL] = HWS_VERB_CANCEL,
        [HWS_ABOUT_CANCEL_ANCHOR] = HWS_VERB_CANCEL,  [HWS_ABOUT_ENDED] = HWS_VERB_ATTACH,
        [HWS_ABOUT_TOKEN] = HWS_VERB_CANCEL_TOKEN,
    };
    return verbs[about];
}

hws_request_t *hws_session_find_request (const hws_session_t *self, const hws_control_t *control)
{
    uint8_t key[8];
    hws_put_u64 (key, control->id);
    hws_map_node_t *const node =
        control->has_id ? hws_map_find (&self->requests, hws_bytes (key, sizeof key)) : NULL;
    hws_request_t *const request = node ? hws_container_of (node, hws_request_t, node) : NULL;
    return request && verb_of (request->about) == control->verb ? request : NULL;
}

void hws_session_drop_outbox (hws_session_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->outbox)) != NULL) {
        outgoing_t *const message = hws_container_of (link, outgoing_t, link);
        free (message->data);
        free (message);
    }
}

bool hws_session_pop_outbox (hws_session_t *self, uint8_t *buffer, hws_action_t *out)
{
    hws_link_t *const link = hws_list_pop (&self->outbox);
    if (!link) {
        return false;
    }
    outgoing_t *const message = hws_container_of (link, outgoing_t, link);
    if (!message->verb) {
        memcpy (buffer, message->data, message->size);
        *out = (hws_action_t){.kind = HWS_ACTION_BATCH, .data = buffer, .size = message->size};
        free (message->data);
        free (message);
        return true;
    }
    *out = (hws_action_t){.kind = HWS_ACTION_CONTROL,
                          .verb = message->verb,
                          .data = message->data,
                          .size = message->size};
    free (message);
    return true;
}
