#include "client/receiver_io.h"

#include "io/clock_io.h"
#include "io/wake_io.h"

#include <stdlib.h>
#include <unistd.h>

/*  What was consumed is published so soon, whether or not the program reads on.  */
enum { PUBLISH_MS = 2, CLOSE_MS = 1000 };

/*  In PUBLISH_MS the client's thread publishes what is consumed by then, and so on while there
 *  is something; under the lock. Has the thread to be woken for that?  */
static bool set_flush (hws_receiver_t *self)
{
    if (self->manual_ack || self->is_flush_set) {
        return false;
    }
    self->is_flush_set = true;
    hws_session_flush_at (&self->core, hws_clock_ms () + PUBLISH_MS);
    return true;
}

/*  All is published.  */
static void clear_flush (hws_receiver_t *self)
{
    self->is_flush_set = false;
    hws_session_flush_at (&self->core, HWS_NEVER);
}

static void notified (hws_session_receiver_t *core)
{
    hws_receiver_t *const self = hws_container_of (core, hws_receiver_t, core);
    if (core->rx.state == HWS_RX_CLOSED) {
        atomic_store_explicit (&self->is_over, true, memory_order_relaxed);
    }
    if (hws_rx_has_events (&core->rx)) {
        set_flush (self); /* by the client's thread, which need not be woken */
    }
    if (self->waiting > 0) {
        pthread_cond_broadcast (&self->changed);
    }
    const int ready = atomic_load_explicit (&self->ready, memory_order_relaxed);
    if (ready >= 0 && hws_rx_has_events (&core->rx)) {
        hws_wake_set (ready);
    }
}

int hws_receiver_wait (hws_receiver_t *self, const hws_time_limit_t *deadline)
{
    self->waiting++;
    const int rc = hws_client_wait (self->client, &self->changed, deadline);
    self->waiting--;
    return rc;
}

static bool try_enter (hws_receiver_t *self)
{
    return !atomic_exchange_explicit (&self->is_busy, true, memory_order_acquire);
}

/*  A close that uses the reader is no receive, and does so only with the lock held.  */
static __attribute__ ((noinline)) bool enter_locked (hws_receiver_t *self)
{
    hws_client_lock (self->client);
    const bool is_entered = try_enter (self);
    hws_client_unlock (self->client, false);
    return is_entered;
}

/*  Begins to use the reader; false when another thread does.  */
static inline bool enter (hws_receiver_t *self)
{
    return try_enter (self) || enter_locked (self);
}

static void leave (hws_receiver_t *self)
{
    atomic_store_explicit (&self->is_busy, false, memory_order_release);
}

/*  The program may read for a moment and then compute for a minute: what it has consumed by
 *  now is published in its place, on the client's thread and under the lock. Where it stands
 *  still nobody has to look again until it goes on.  */
static void flush_due (hws_session_receiver_t *core)
{
    hws_receiver_t *const self = hws_container_of (core, hws_receiver_t, core);
    self->is_flush_set = false;
    if (self->is_taking) {
        hws_rx_reader_publish (&self->reader);
        return;
    }
    if (!try_enter (self)) {
        set_flush (self);
        return;
    }
    if (hws_rx_reader_publish (&self->reader)) {
        set_flush (self);
    } else {
        atomic_store_explicit (&self->is_stirred, true, memory_order_relaxed);
    }
    leave (self);
}

/*  ---- Birth and death ---- */

int hws_receiver_make (hws_receiver_t **receiver, hws_client_t *client, bool manual_ack)
{
    hws_receiver_t *const self = calloc (1, sizeof *self);
    if (!self) {
        return HWS_ENO_MEMORY;
    }
    self->client = client;
    self->core.notify = notified;
    self->core.flush = flush_due;
    self->manual_ack = manual_ack;
    atomic_init (&self->ready, -1);
    atomic_init (&self->is_closing, false);
    atomic_init (&self->is_over, false);
    atomic_init (&self->is_stirred, false);
    atomic_init (&self->is_busy, false);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    self->reader.is_manual = manual_ack;
    const int rc = hws_cond_init (&self->changed);
    if (rc) {
        free (self);
        return rc;
    }
    *receiver = self;
    return 0;
}

void hws_receiver_free (hws_receiver_t *self)
{
    hws_client_t *const client = self->client;
    if (!hws_client_is_ours (client)) {
        free (self); /* the lock and what it guards are the parent's */
        return;
    }
    hws_client_lock (client);
    hws_rx_reader_fini (&self->reader);
    if (self->core.session) {
        hws_session_remove_receiver (&self->core);
    }
    hws_client_unlock (client, true);
    const int ready = atomic_load (&self->ready);
    if (ready >= 0) {
        close (ready);
    }
    pthread_cond_destroy (&self->changed);
    free (self);
}

void hws_receiver_destroy (hws_receiver_t **receiver)
{
    hws_receiver_t *const self = *receiver;
    if (!self) {
        return;
    }
    *receiver = NULL;
    hws_receiver_close (self, "the receiver was destroyed", CLOSE_MS);
    hws_receiver_free (self);
}

/*  ---- Receiving ---- */

static void publish (hws_receiver_t *self)
{
    hws_client_lock (self->client);
    const bool has_news = hws_rx_reader_publish (&self->reader);
    hws_client_unlock (self->client, has_news);
}

/*  The program goes on.  */
static void watch_progress (hws_receiver_t *self)
{
    hws_client_lock (self->client);
    const bool is_set = set_flush (self);
    hws_client_unlock (self->client, is_set);
}

/*  Publishes what is consumed if that is due before events are taken or waited for, and has the
 *  rest published in time. Has the client's thread to be woken for that?  */
static bool publish_before (hws_receiver_t *self, bool is_idle)
{
    if (self->manual_ack) {
        return false;
    }
    if (!hws_rx_reader_is_due (&self->reader, is_idle)) {
        return set_flush (self);
    }
    const bool has_news = hws_rx_reader_publish (&self->reader);
    if (is_idle) {
        clear_flush (self);
    }
    return has_news;
}

/*  Waits for events and takes them all. Returns 0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK,
 *  HWS_ECLOSED, HWS_ENO_MEMORY.  */
static int take (hws_receiver_t *self, const hws_time_limit_t *deadline)
{
    hws_client_t *const client = self->client;
    hws_client_lock (client);
    const hws_rx_t *const rx = &self->core.rx;
    bool has_news = publish_before (self, !hws_rx_has_events (rx));
    const int ready = atomic_load_explicit (&self->ready, memory_order_relaxed);
    int rc = 0;
    while (!rc && !hws_rx_has_events (rx)) {
        if (self->reader.is_closed) {
            rc = HWS_ECLOSED;
        } else {
            if (ready >= 0) {
                hws_wake_clear (ready);
            }
            if (has_news) {
                hws_client_unlock (client, true);
                hws_client_lock (client);
                has_news = false;
                continue;
            }
            self->is_taking = true;
            rc = hws_receiver_wait (self, deadline);
            self->is_taking = false;
        }
    }
    if (hws_rx_has_events (rx)) {
        rc = hws_rx_reader_take (&self->reader);
        has_news |= set_flush (self);
    }
    hws_client_unlock (client, has_news);
    return rc;
}

/*  The descriptor is readable while there are events: it is cleared as soon as the last one
 *  is handed out.  */
static void settle_ready (hws_receiver_t *self)
{
    const int ready = atomic_load_explicit (&self->ready, memory_order_relaxed);
    if (ready < 0 || hws_rx_reader_has_more (&self->reader)) {
        return;
    }
    hws_client_lock (self->client);
    if (!hws_rx_has_events (&self->core.rx) && !self->reader.is_closed) {
        hws_wake_clear (ready);
    } else {
        hws_wake_set (ready);
    }
    hws_client_unlock (self->client, false);
}

/*  Receives, whatever has to be done for it. Apart, so that what most records take saves no
 *  registers for it.  */
static __attribute__ ((noinline)) int receive (hws_receiver_t *self, hws_event_t *event,
                                               int64_t timeout_ms)
{
    hws_rx_reader_t *const reader = &self->reader;
    bool is_stirred = atomic_exchange_explicit (&self->is_stirred, false, memory_order_acquire);
    int rc = 0;
    bool has_deadline = false;
    hws_time_limit_t deadline = {.is_now = false};
    for (;;) {
        if (atomic_load_explicit (&self->is_closing, memory_order_relaxed)) {
            hws_rx_reader_discard (reader);
        }
        if (atomic_load_explicit (&self->is_over, memory_order_relaxed)) {
            hws_rx_reader_end (reader);
        }
        if (hws_rx_reader_next (reader, event)) {
            if (is_stirred) {
                watch_progress (self);
            }
            if (!self->manual_ack && hws_rx_reader_is_due (reader, false)) {
                publish (self);
            }
            break;
        }
        if (!has_deadline) {
            deadline = hws_time_limit_after (timeout_ms);
            has_deadline = true;
        }
        rc = take (self, &deadline);
        is_stirred = false;
        if (rc) {
            break;
        }
    }
    settle_ready (self);
    return rc;
}

/*  Most of all records lie in a run behind another one that is shown: of these there is no
 *  clock, no lock and no list to look at.  */
int hws_receiver_recv (hws_receiver_t *receiver, hws_event_t *event, int64_t timeout_ms)
{
    if (!hws_client_is_ours (receiver->client)) {
        return HWS_EWRONG_PROCESS;
    }
    if (!enter (receiver)) {
        return HWS_EBUSY;
    }
    const bool is_quick = !atomic_load_explicit (&receiver->is_stirred, memory_order_relaxed) &&
                          hws_rx_reader_next_in_run (&receiver->reader, event);
    const int rc = is_quick ? 0 : receive (receiver, event, timeout_ms);
    leave (receiver);
    return rc;
}

int hws_receiver_ack (hws_receiver_t *receiver)
{
    if (!hws_client_is_ours (receiver->client)) {
        return HWS_EWRONG_PROCESS;
    }
    if (!enter (receiver)) {
        return HWS_EBUSY;
    }
    hws_rx_reader_settle (&receiver->reader);
    publish (receiver);
    leave (receiver);
    return 0;
}

/*  Whether, under the lock, a receive may not have to wait. While another thread receives
 *  nobody knows; it tells with its next one.  */
static bool may_be_ready (hws_receiver_t *self)
{
    if (!try_enter (self)) {
        return true;
    }
    const bool is_ready = hws_rx_has_events (&self->core.rx) || self->reader.is_closed ||
                          hws_rx_reader_has_more (&self->reader);
    leave (self);
    return is_ready;
}

int hws_receiver_fd (hws_receiver_t *receiver)
{
    if (!hws_client_is_ours (receiver->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_client_lock (receiver->client);
    int descriptor = atomic_load (&receiver->ready);
    if (descriptor < 0) {
        descriptor = hws_wake_new ();
        atomic_store (&receiver->ready, descriptor);
        if (descriptor >= 0 && may_be_ready (receiver)) {
            hws_wake_set (descriptor);
        }
    }
    hws_client_unlock (receiver->client, false);
    return descriptor;
}

/*  ---- Cancelling ---- */

int hws_receiver_cancel_sender (hws_receiver_t *receiver, uint64_t sender_id, const char *reason)
{
    if (!hws_client_is_ours (receiver->client)) {
        return HWS_EWRONG_PROCESS;
    }
    hws_client_lock (receiver->client);
    const int rc = hws_rx_cancel_sender (&receiver->core.rx, sender_id, reason);
    hws_client_unlock (receiver->client, true);
    return rc;
}

int hws_receiver_close (hws_receiver_t *receiver, const char *reason, int64_t timeout_ms)
{
    hws_client_t *const client = receiver->client;
    if (!hws_client_is_ours (client)) {
        return HWS_EWRONG_PROCESS;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    hws_client_lock (client);
    const bool is_over = receiver->core.rx.state == HWS_RX_CLOSED;
    if (!receiver->manual_ack && receiver->is_taking) {
        hws_rx_reader_publish (&receiver->reader);
    } else if (!receiver->manual_ack && try_enter (receiver)) {
        hws_rx_reader_settle (&receiver->reader);
        hws_rx_reader_publish (&receiver->reader);
        leave (receiver);
    }
    hws_session_close (&client->session, hws_clock_ms (), &receiver->core, reason);
    atomic_store_explicit (&receiver->is_closing, true, memory_order_relaxed);
    atomic_store_explicit (&receiver->is_stirred, true, memory_order_release);
    hws_client_unlock (client, true);
    int rc = 0;
    hws_client_lock (client);
    while (!rc && (receiver->core.rx.state != HWS_RX_CLOSED ||
                   (is_over && receiver->core.is_close_owed))) {
        rc = hws_receiver_wait (receiver, &deadline);
    }
    if (rc == HWS_ETIMEOUT) {
        hws_session_close_here (&receiver->core, rc);
    }
    rc = rc ? rc : receiver->core.close_result;
    hws_client_unlock (client, false);
    return rc;
}

/*  ---- Leaving ---- */

int hws_receiver_leave (hws_receiver_t **receiver, int64_t timeout_ms)
{
    hws_receiver_t *const self = *receiver;
    if (!self) {
        return 0;
    }
    *receiver = NULL;
    hws_client_t *const client = self->client;
    if (!hws_client_is_ours (client)) {
        hws_receiver_free (self);
        return HWS_EWRONG_PROCESS;
    }
    const hws_time_limit_t deadline = hws_time_limit_after (timeout_ms);
    hws_client_lock (client);
    if (!self->manual_ack) {
        hws_rx_reader_settle (&self->reader);
        hws_rx_reader_publish (&self->reader);
    }
    hws_session_leave_anchor (&client->session, hws_clock_ms (), &self->core);
    hws_client_unlock (client, true);
    int rc = 0;
    hws_client_lock (client);
    while (!rc && !self->core.is_left && self->core.rx.state == HWS_RX_OPEN) {
        rc = hws_receiver_wait (self, &deadline);
    }
    if (self->core.is_left) {
        rc = 0;
    } else if (self->core.rx.state != HWS_RX_OPEN) {
        rc = HWS_ECLOSED;
    }
    hws_client_unlock (client, false);
    hws_receiver_free (self);
    return rc;
}
