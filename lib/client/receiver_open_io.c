/*  How a receiver is opened, behind hawser.h: options, and what the broker answers.  */
#include "client/receiver_io.h"
#include "io/clock_io.h"
#include "io/heap_io.h"

#include <stdio.h>
#include <string.h>

void hws_receiver_options_init (hws_receiver_options_t *options)
{
    *options = (hws_receiver_options_t){.heartbeat_interval_ms = HWS_DEFAULT,
                                        .reconnect_grace_ms = HWS_DEFAULT,
                                        .unattached_timeout_ms = HWS_DEFAULT,
                                        .orphan_ttl_ms = HWS_DEFAULT,
                                        .max_senders = HWS_DEFAULT,
                                        .buffer_bytes = HWS_DEFAULT,
                                        .wait_ms = HWS_FOREVER,
                                        .manual_ack = false};
}

/*  An option as the protocol has it. False for one that has no such value.  */
static bool take_number (int64_t option, bool may_be_null, hws_optional_t *number)
{
    if (option == HWS_DEFAULT) {
        number->state = HWS_ABSENT;
        return true;
    }
    if (option == HWS_FOREVER && may_be_null) {
        number->state = HWS_NULL;
        return true;
    }
    if (option < 0) {
        return false;
    }
    *number = (hws_optional_t){.state = HWS_VALUE, .value = (uint64_t) option};
    return true;
}

/*  An anchor that goes on: its handle and the token of its owner, or neither.  */
static int take_resume (hws_open_t *open, const hws_receiver_options_t *options)
{
    if (!options->handle && !options->owner_token) {
        return 0;
    }
    const char *const handle = options->handle ? options->handle : "";
    const char *const token = options->owner_token ? options->owner_token : "";
    open->has_resume = true;
    return hws_handle_parse (hws_bytes_of_text (handle), &open->resume.handle) ||
                   hws_id_parse (hws_bytes_of_text (token), &open->resume.owner_token)
               ? HWS_EINVALID
               : 0;
}

static int take_options (hws_open_t *open, const char *name, const hws_receiver_options_t *options)
{
    if (name) {
        if (!hws_name_is_valid (hws_bytes_of_text (name))) {
            return HWS_EINVALID;
        }
        snprintf (open->name, sizeof open->name, "%s", name);
    }
    open->cancel_token = options->cancel_token;
    open->kind = options->exclusive ? HWS_KIND_SPSC : HWS_KIND_MPSC;
    open->dedicated = options->dedicated;
    const bool is_valid =
        take_number (options->heartbeat_interval_ms, false, &open->heartbeat_interval_ms) &&
        take_number (options->reconnect_grace_ms, false, &open->reconnect_grace_ms) &&
        take_number (options->unattached_timeout_ms, true, &open->unattached_timeout_ms) &&
        take_number (options->orphan_ttl_ms, false, &open->orphan_ttl_ms) &&
        take_number (options->max_senders, true, &open->max_senders) &&
        take_number (options->buffer_bytes, false, &open->buffer_bytes) &&
        options->wait_ms >= HWS_FOREVER;
    return is_valid ? take_resume (open, options) : HWS_EINVALID;
}

int hws_receiver_open (hws_receiver_t **receiver, hws_client_t *client, const char *name,
                       const hws_receiver_options_t *options)
{
    *receiver = NULL;
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_receiver_options_t defaults;
    hws_receiver_options_init (&defaults);
    options = options ? options : &defaults;
    hws_receiver_t *self;
    int rc = hws_receiver_make (&self, client, options->manual_ack);
    if (rc) {
        return rc;
    }
    rc = take_options (&self->core.options, name, options);
    if (rc) {
        hws_receiver_free (self);
        return rc;
    }
    hws_heap_keep ();
    const hws_time_limit_t deadline = hws_time_limit_after (options->wait_ms);
    const hws_rx_t *const rx = &self->core.rx;
    hws_client_lock (client);
    hws_session_open (&client->session, hws_clock_ms (), &self->core);
    hws_client_unlock (client, true);
    hws_client_lock (client);
    while (!rc && rx->state == HWS_RX_OPENING) {
        rc = hws_receiver_wait (self, &deadline);
    }
    rc = rx->state == HWS_RX_OPENING ? rc : rx->result;
    hws_handle_print (rx->handle, self->handle);
    hws_id_print (&self->core.in_force.owner_token, self->owner_token);
    hws_client_unlock (client, false);
    if (rc) {
        hws_receiver_destroy (&self);
        return rc;
    }
    *receiver = self;
    return 0;
}

const char *hws_receiver_handle (const hws_receiver_t *receiver)
{
    return receiver->handle;
}

const char *hws_receiver_owner_token (const hws_receiver_t *receiver)
{
    return receiver->owner_token;
}

int hws_receiver_set_unattached_timeout (hws_receiver_t *receiver, int64_t timeout_ms)
{
    hws_client_t *const client = receiver->client;
    hws_optional_t number = {.state = HWS_ABSENT};
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    if (!take_number (timeout_ms, true, &number) || number.state == HWS_ABSENT) {
        return HWS_EINVALID;
    }
    hws_session_receiver_t *const core = &receiver->core;
    int rc = 0;
    hws_client_lock (client);
    if (core->rx.state != HWS_RX_OPEN) {
        hws_client_unlock (client, false);
        return HWS_ECLOSED;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (client->session.options.connect_ms);
    const uint64_t change =
        hws_session_set_unattached (&client->session, hws_clock_ms (), core, number);
    hws_client_unlock (client, true);
    hws_client_lock (client);
    while (!rc && core->rx.state == HWS_RX_OPEN && core->changes_answered < change) {
        rc = hws_receiver_wait (receiver, &deadline);
    }
    if (core->changes_answered >= change) {
        rc = core->change_result;
    } else {
        rc = rc ? HWS_EUNREACHABLE : HWS_ECLOSED;
    }
    hws_client_unlock (client, false);
    return rc;
}
