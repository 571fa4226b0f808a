#include "client/sender_io.h"

#include "base/utf8.h"
#include "io/clock_io.h"
#include "io/wake_io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/*  ---- Lock and waits ---- */

void hws_sender_lock (hws_sender_t *self)
{
    hws_client_t *client = atomic_load (&self->client);
    hws_client_lock (client);
    while (client != atomic_load (&self->client)) {
        hws_client_unlock (client, false);
        client = atomic_load (&self->client);
        hws_client_lock (client);
    }
}

void hws_sender_unlock (hws_sender_t *self, bool has_work)
{
    hws_client_unlock (atomic_load (&self->client), has_work);
}

/*  A broker of another epoch may have another limit for records.  */
static void note_answer (hws_sender_t *self)
{
    const hws_tx_t *const tx = &self->core.tx;
    const uint64_t record_bytes = tx->record_bytes ? tx->record_bytes : HWS_RECORD_SIZE_MAX;
    if (atomic_load (&self->record_bytes) != record_bytes) {
        atomic_store (&self->record_bytes, record_bytes);
    }
    if (atomic_load (&self->id) == 0) {
        atomic_store (&self->part_bytes, tx->part_bytes);
        atomic_store (&self->id, tx->sender_id);
    }
}

void hws_sender_notified (hws_session_sender_t *core)
{
    hws_sender_t *const self = hws_container_of (core, hws_sender_t, core);
    const hws_tx_t *const tx = &core->tx;
    if (tx->sender_id != 0) {
        note_answer (self);
    }
    if (self->waiting > 0) {
        pthread_cond_broadcast (&self->changed);
    }
    if (self->ended >= 0 && tx->state == HWS_TX_ENDED) {
        hws_wake_set (self->ended);
    }
}

int hws_sender_wait (hws_sender_t *self, const hws_time_limit_t *deadline)
{
    hws_client_t *const client = atomic_load (&self->client);
    self->waiting++;
    const int rc = hws_client_wait (client, &self->changed, deadline);
    if (client != atomic_load (&self->client)) {
        hws_client_unlock (client, false);
        hws_sender_lock (self);
    }
    self->waiting--;
    return rc;
}

/*  Waits, under the lock, until the attach is answered. Returns 0, also when it was refused, or
 *  why not.  */
static int await_answer (hws_sender_t *self, const hws_time_limit_t *deadline)
{
    int rc = 0;
    while (!rc && hws_tx_is_new (&self->core.tx)) {
        rc = hws_sender_wait (self, deadline);
    }
    return hws_tx_is_new (&self->core.tx) ? rc : 0;
}

/*  ---- What is known of it ---- */

uint64_t hws_sender_id (const hws_sender_t *sender)
{
    return atomic_load (&sender->id);
}

uint64_t hws_sender_record_bytes (const hws_sender_t *sender)
{
    return atomic_load (&sender->record_bytes);
}

/*  ---- Sending ---- */

/*  The ways to append, and what each needs.  */
typedef enum { SEND, SEND_LARGE, PROBE, ERROR_TEXT, RESERVE } append_t;

typedef struct {
    append_t what;
    const void *data; /* SEND, ERROR_TEXT */
    size_t size;
    hws_tx_parts_t *parts; /* SEND_LARGE */
    void **room;           /* RESERVE */
} append_args_t;

static int try_append (hws_sender_t *self, append_args_t *args)
{
    hws_tx_t *const tx = &self->core.tx;
    switch (args->what) {
    case SEND:
        return hws_tx_append (tx, args->data, args->size);
    case SEND_LARGE:
        return hws_tx_adopt (tx, args->parts);
    case PROBE:
        return hws_tx_probe (tx, args->size);
    case ERROR_TEXT:
        return hws_tx_append_error (tx, args->data, args->size);
    case RESERVE:
        break;
    }
    return hws_tx_reserve (tx, args->room, args->size);
}

/*  Under the lock, which it lets go.  */
static int append_locked (hws_sender_t *self, append_args_t *args, int64_t timeout_ms)
{
    if (self->is_busy) {
        hws_sender_unlock (self, false);
        return HWS_EBUSY;
    }
    int rc = try_append (self, args);
    bool has_work = hws_session_changed (&self->core);
    if (rc == HWS_EWOULD_BLOCK && timeout_ms != 0) {
        const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
        self->is_busy = true;
        while (rc == HWS_EWOULD_BLOCK) {
            hws_sender_unlock (self, has_work);
            hws_sender_lock (self);
            rc = try_append (self, args);
            has_work = hws_session_changed (&self->core);
            if (rc == HWS_EWOULD_BLOCK && !has_work) {
                const int waited = hws_sender_wait (self, &deadline);
                if (waited) {
                    hws_tx_want_nothing (&self->core.tx);
                    rc = waited;
                }
            }
        }
        self->is_busy = false;
    }
    hws_sender_unlock (self, has_work);
    return rc;
}

static int append (hws_sender_t *self, append_args_t *args, int64_t timeout_ms)
{
    hws_sender_lock (self);
    return append_locked (self, args, timeout_ms);
}

/*  Copies before it takes the lock: the client's thread has to beat meanwhile. Who would not
 *  wait may ask often, so that nothing is copied for him in vain.  */
static int send_large (hws_sender_t *self, const void *data, size_t size, int64_t timeout_ms)
{
    if (size > self->record_bytes) {
        return HWS_ETOO_LARGE;
    }
    if (timeout_ms == 0) {
        const int rc = append (self, &(append_args_t){.what = PROBE, .size = size}, 0);
        if (rc) {
            return rc;
        }
    }
    hws_tx_parts_t parts;
    int rc = hws_tx_parts_init (&parts, self->client->blocks, self->part_bytes, data, size);
    if (!rc) {
        rc = append (self, &(append_args_t){.what = SEND_LARGE, .parts = &parts}, timeout_ms);
        hws_tx_parts_fini (&parts);
    }
    return rc;
}

/*  A record that may have to travel in parts waits for the answer, which tells how long those may
 *  be. Takes what that took off the time.  */
static int learn_parts (hws_sender_t *self, int64_t *timeout_ms)
{
    const hws_ms_t begin = hws_clock_ms ();
    const hws_time_limit_t deadline = hws_time_limit_after (*timeout_ms);
    hws_sender_lock (self);
    const int rc = await_answer (self, &deadline);
    hws_sender_unlock (self, false);
    if (*timeout_ms > 0) {
        const hws_ms_t left = begin + *timeout_ms - hws_clock_ms ();
        *timeout_ms = left > 0 ? left : 0;
    }
    return rc;
}

int hws_sender_send (hws_sender_t *sender, const void *data, size_t size, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    if (size > sender->part_bytes && hws_sender_id (sender) == 0) {
        const int rc = learn_parts (sender, &timeout_ms);
        if (rc) {
            return rc;
        }
    }
    if (size > sender->part_bytes && hws_sender_id (sender) != 0) {
        return send_large (sender, data, size, timeout_ms);
    }
    hws_sender_lock (sender);
    if (!sender->is_busy && hws_tx_append (&sender->core.tx, data, size) == 0) {
        const bool has_work =
            !hws_session_is_filed (&sender->core) && hws_session_changed (&sender->core);
        hws_sender_unlock (sender, has_work);
        return 0;
    }
    append_args_t args = {.what = SEND, .data = data, .size = size};
    return append_locked (sender, &args, timeout_ms);
}

int hws_sender_reserve (hws_sender_t *sender, void **room, size_t size, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    return append (sender, &(append_args_t){.what = RESERVE, .room = room, .size = size},
                   timeout_ms);
}

int hws_sender_commit (hws_sender_t *sender, size_t size)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_lock (sender);
    const int rc = sender->is_busy ? HWS_EBUSY : hws_tx_commit (&sender->core.tx, size);
    hws_sender_unlock (sender, hws_session_changed (&sender->core));
    return rc;
}

int hws_sender_error (hws_sender_t *sender, const char *text, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    const hws_bytes_t bytes = hws_bytes_of_text (text);
    if (!hws_utf8_is_valid (bytes)) {
        return HWS_EINVALID;
    }
    return append (sender, &(append_args_t){.what = ERROR_TEXT, .data = text, .size = bytes.size},
                   timeout_ms);
}

/*  ---- Waiting for the receiver ---- */

int hws_sender_flush (hws_sender_t *sender, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    const hws_tx_t *const tx = &sender->core.tx;
    int rc = 0;
    hws_sender_lock (sender);
    hws_tx_flush (&sender->core.tx);
    hws_sender_unlock (sender, hws_session_changed (&sender->core));
    hws_sender_lock (sender);
    const uint64_t target = tx->end_seq;
    rc = await_answer (sender, &deadline);
    while (!rc && tx->acked_seq < target && tx->state != HWS_TX_ENDED) {
        rc = hws_sender_wait (sender, &deadline);
    }
    if (tx->acked_seq >= target && tx->sender_id != 0) {
        rc = 0;
    } else if (tx->state == HWS_TX_ENDED) {
        rc = tx->result;
    }
    hws_sender_unlock (sender, false);
    return rc;
}

/*  Waits, under the lock, until the stream has ended.  */
static int wait_ended (hws_sender_t *self, int64_t timeout_ms)
{
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    int rc = 0;
    while (!rc && self->core.tx.state != HWS_TX_ENDED) {
        rc = hws_sender_wait (self, &deadline);
    }
    return self->core.tx.state == HWS_TX_ENDED ? 0 : rc;
}

/*  Ends the stream with the ending that `append_ending` appends.  */
static int end_cleanly (hws_sender_t *sender, int (*append_ending) (hws_tx_t *tx),
                        int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_lock (sender);
    int rc = sender->is_busy ? HWS_EBUSY : append_ending (&sender->core.tx);
    hws_sender_unlock (sender, hws_session_changed (&sender->core));
    if (rc) {
        return rc;
    }
    hws_sender_lock (sender);
    rc = wait_ended (sender, timeout_ms);
    rc = rc ? rc : sender->core.tx.result;
    hws_sender_unlock (sender, false);
    return rc;
}

int hws_sender_detach (hws_sender_t *sender, int64_t timeout_ms)
{
    return end_cleanly (sender, hws_tx_detach, timeout_ms);
}

int hws_sender_finalize (hws_sender_t *sender, int64_t timeout_ms)
{
    return end_cleanly (sender, hws_tx_finalize, timeout_ms);
}

int hws_sender_cancel (hws_sender_t *sender, const char *reason, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_lock (sender);
    hws_session_cancel (sender->core.session, hws_clock_ms (), &sender->core, reason);
    hws_sender_unlock (sender, true);
    hws_sender_lock (sender);
    const int rc = wait_ended (sender, timeout_ms);
    const bool is_ended_here = sender->core.is_ended_here;
    hws_sender_unlock (sender, false);
    return is_ended_here ? HWS_EUNREACHABLE : rc;
}

int hws_sender_cancel_anchor (hws_sender_t *sender, const char *reason, int64_t timeout_ms)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    hws_sender_lock (sender);
    int rc = await_answer (sender, &deadline);
    rc = rc || sender->core.tx.sender_id != 0 ? rc : sender->core.tx.result;
    if (rc) {
        hws_sender_unlock (sender, false);
        return rc;
    }
    hws_session_cancel_anchor (sender->core.session, hws_clock_ms (), &sender->core, reason);
    hws_sender_unlock (sender, true);
    int waited = 0;
    hws_sender_lock (sender);
    while (sender->core.anchor_result == HWS_EWOULD_BLOCK && !waited) {
        waited = hws_sender_wait (sender, &deadline);
    }
    rc = sender->core.anchor_result;
    hws_sender_unlock (sender, false);
    return rc == HWS_EWOULD_BLOCK ? waited : rc;
}

/*  ---- Asking ---- */

int hws_sender_reason (hws_sender_t *sender, const char **cause, const char **reason)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_lock (sender);
    const hws_tx_t *const tx = &sender->core.tx;
    const bool has_ended = tx->state == HWS_TX_ENDED;
    const int rc = has_ended ? tx->result : 0;
    if (cause) {
        *cause = has_ended ? tx->cause : "";
    }
    if (reason) {
        *reason = has_ended ? tx->reason : "";
    }
    hws_sender_unlock (sender, false);
    return rc;
}

int hws_sender_fd (hws_sender_t *sender)
{
    if (!hws_client_is_ours (sender->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_sender_lock (sender);
    if (sender->ended < 0) {
        sender->ended = hws_wake_new ();
        hws_sender_notified (&sender->core);
    }
    const int descriptor = sender->ended;
    hws_sender_unlock (sender, false);
    return descriptor;
}

void hws_sender_progress (hws_sender_t *sender, uint64_t *records, uint64_t *bytes)
{
    const bool is_ours = hws_client_is_ours (sender->client);
    if (is_ours) {
        hws_sender_lock (sender);
    }
    if (records) {
        *records = sender->core.tx.acked_records;
    }
    if (bytes) {
        *bytes = sender->core.tx.acked_record_payload;
    }
    if (is_ours) {
        hws_sender_unlock (sender, false);
    }
}

void hws_sender_destroy (hws_sender_t **sender)
{
    hws_sender_t *const self = *sender;
    if (!self) {
        return;
    }
    *sender = NULL;
    hws_client_t *client = self->client;
    if (!hws_client_is_ours (client)) {
        hws_client_unfollow (&client);
        free (self); /* the lock and what it guards are the parent's */
        return;
    }
    hws_sender_lock (self);
    hws_session_remove_sender (&self->core);
    client = self->client;
    hws_client_unlock (client, true);
    hws_client_unfollow (&client);
    if (self->ended >= 0) {
        close (self->ended);
    }
    pthread_cond_destroy (&self->changed);
    free (self);
}
