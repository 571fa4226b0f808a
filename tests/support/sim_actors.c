#include "tests/support/sim_actors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

sim_network_t s_net;
sender_t s_senders[SENDERS_MAX];
receiver_t s_receivers[RECEIVERS_MAX];
int s_sender_count, s_receiver_count;
weather_t s_weather;

static void sender_notified (hws_session_sender_t *core)
{
    (void) core;
}

static void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

/*  ---- Receivers ---- */

static shown_t *shown_of (receiver_t *self, const hws_event_t *event)
{
    const int label = atoi (event->label);
    assert_true (label >= 0 && label < s_sender_count);
    return &self->shown[label];
}

/*  A finalize that was shown is how the anchor ended, and only such a one is.  */
static void see_closed (receiver_t *self, const char *cause)
{
    self->is_closed = true;
    snprintf (self->closed_cause, sizeof self->closed_cause, "%s", cause);
    if (self->core.is_cancelled || s_weather == ROUGH) {
        return; /* by itself, or with a broker that was lost */
    }
    assert_int_equal (strcmp (cause, "finalized") == 0, self->is_finalized);
}

static void see_attached (receiver_t *self, shown_t *shown, uint64_t sender_id)
{
    assert_false (shown->is_known);
    assert_false (self->is_finalized);
    shown->is_known = true;
    shown->sender_id = sender_id;
    self->live++;
    if (self->is_exclusive && s_weather == CALM) { /* else endings may be rewound */
        assert_int_equal (self->live, 1);
    }
}

static void see (receiver_t *self, const hws_event_t *event)
{
    assert_false (self->is_closed);
    if (event->kind == HWS_EVENT_CLOSED) {
        see_closed (self, event->cause);
        return;
    }
    shown_t *const shown = shown_of (self, event);
    if (s_weather == ROUGH && event->kind == HWS_EVENT_ATTACHED &&
        event->sender_id != shown->sender_id) {
        /* Nobody remembers an attach that was answered, or ended, so long ago: it is made
           anew, as another sender. */
        *shown = (shown_t){0};
    }
    assert_false (shown->has_ended);
    if (event->kind == HWS_EVENT_ATTACHED) {
        see_attached (self, shown, event->sender_id);
        return;
    }
    assert_true (shown->is_known || self->reader.is_discarding);
    if (event->kind == HWS_EVENT_RECORD) {
        uint64_t count;
        assert_true (event->size >= sizeof count);
        memcpy (&count, event->data, sizeof count);
        assert_true (count == shown->records); /* in order, none missing, none twice */
        for (size_t i = sizeof count; i < event->size; i += 97) {
            assert_int_equal (((const uint8_t *) event->data)[i], (uint8_t) (count + i));
        }
        shown->records++;
    } else if (event->kind != HWS_EVENT_ERROR) {
        self->live--;
        shown->is_known = shown->has_ended = true;
        shown->ending = event->kind;
        if (event->kind == HWS_EVENT_FINALIZED) {
            assert_true (self->is_exclusive);
            self->is_finalized = true;
        }
        snprintf (shown->cause, sizeof shown->cause, "%s", event->cause ? event->cause : "none");
    }
}

static void read_some (receiver_t *self)
{
    if (self->pauses_until > s_net.now || sim_is_stalled (&s_net, self->client)) {
        return;
    }
    if (self->core.rx.state == HWS_RX_CLOSED) {
        hws_rx_reader_end (&self->reader);
    }
    hws_event_t event;
    for (uint64_t i = 1 + sim_below (&s_net, 30); i > 0;) {
        if (hws_rx_reader_next (&self->reader, &event)) {
            see (self, &event);
            i--;
            continue;
        }
        hws_rx_reader_publish (&self->reader);
        if (!hws_rx_has_events (&self->core.rx)) {
            return;
        }
        hws_rx_reader_take (&self->reader);
    }
    hws_rx_reader_publish (&self->reader);
}

static void change_timeout (receiver_t *self)
{
    const bool is_never = sim_below (&s_net, 2) == 0;
    const hws_optional_t timeout_ms = {.state = is_never ? HWS_NULL : HWS_VALUE,
                                       .value = is_never ? 0 : 500 + sim_below (&s_net, 5000)};
    hws_session_set_unattached (&s_net.clients[self->client].session, s_net.now, &self->core,
                                timeout_ms);
}

void run_receiver (receiver_t *self)
{
    read_some (self);
    if (sim_below (&s_net, 2000) == 0) {
        self->pauses_until = s_net.now + (hws_ms_t) sim_below (&s_net, 3000);
    }
    if (self->cancels_at <= s_net.now && !sim_is_stalled (&s_net, self->client)) {
        self->cancels_at = HWS_NEVER;
        hws_session_close (&s_net.clients[self->client].session, s_net.now, &self->core, "enough");
        hws_rx_reader_discard (&self->reader);
    }
    if (s_weather >= CANCELS && self->core.rx.state == HWS_RX_OPEN &&
        sim_below (&s_net, 3000) == 0) {
        change_timeout (self);
    }
    if (s_weather >= CANCELS && sim_below (&s_net, 4000) == 0) {
        hws_rx_cancel_sender (&self->core.rx, 1 + sim_below (&s_net, (uint64_t) s_sender_count),
                              "one of you");
    }
}

/*  ---- Senders ---- */

static size_t any_size (void)
{
    const uint64_t kind = sim_below (&s_net, 100);
    return 8 + sim_below (&s_net, kind < 90 ? 60 : kind < 98 ? 2000 : RECORD_SIZE_MAX - 8);
}

static void produce (sender_t *self)
{
    static uint8_t data[RECORD_SIZE_MAX];
    hws_tx_t *const tx = &self->core.tx;
    for (uint64_t i = sim_below (&s_net, 8); i > 0 && tx->records < self->wanted; i--) {
        const size_t size = any_size ();
        for (size_t k = 8; k < size; k++) {
            data[k] = (uint8_t) (tx->records + k);
        }
        memcpy (data, &tx->records, 8);
        if (hws_tx_append (tx, data, size) != 0) {
            break;
        }
    }
    if (tx->records >= self->wanted) {
        const int rc = self->is_finalizing ? hws_tx_finalize (tx) : hws_tx_detach (tx);
        assert_int_equal (rc, 0);
    }
    hws_session_changed (&self->core);
    if (sim_below (&s_net, 8) == 0) {
        hws_session_flush (self->core.session);
    }
}

/*  Somebody who knows the token cancels it, whether or not the stream is there.  */
static void cancel_token (sender_t *self)
{
    const int client = (int) sim_below (&s_net, (uint64_t) s_net.count);
    if (self->token_at <= s_net.now && !sim_is_stalled (&s_net, client)) {
        self->token_at = HWS_NEVER;
        hws_session_cancel_token (&s_net.clients[client].session, s_net.now,
                                  self->core.cancel_token, "by its token");
    }
}

/*  The exclusive anchor had its sender; it will not have it for ever.  */
static void try_again_later (sender_t *self)
{
    hws_session_remove_sender (&self->core);
    self->is_added = false;
    self->starts_at = s_net.now + 100 + (hws_ms_t) sim_below (&s_net, 1000);
}

void run_sender (sender_t *self)
{
    cancel_token (self);
    if (sim_is_stalled (&s_net, self->client)) {
        return;
    }
    if (self->starts_at <= s_net.now) {
        self->starts_at = HWS_NEVER;
        self->is_added = true;
        hws_session_attach (&s_net.clients[self->client].session, s_net.now, &self->core);
    }
    if (self->is_added && self->core.tx.result == HWS_EMAX_SENDERS) {
        try_again_later (self);
    }
    if (!self->is_added || self->core.tx.state == HWS_TX_ENDED) {
        return;
    }
    if (self->cancels_at <= s_net.now) {
        self->cancels_at = HWS_NEVER;
        hws_session_cancel (&s_net.clients[self->client].session, s_net.now, &self->core, "stop");
    } else if (self->core.tx.state == HWS_TX_OPEN ||
               (self->core.tx.state == HWS_TX_ATTACHING && self->core.is_early)) {
        produce (self);
    }
}

/*  ---- Beginning ---- */

void receiver_begin (receiver_t *self, int number)
{
    self->core.notify = receiver_notified;
    self->core.options.kind = self->is_exclusive ? HWS_KIND_SPSC : HWS_KIND_MPSC;
    snprintf (self->core.options.name, sizeof self->core.options.name, "anchor %d", number);
    hws_session_open (&s_net.clients[self->client].session, s_net.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
}

void sender_begin (sender_t *self, int number)
{
    self->core.notify = sender_notified;
    snprintf (self->core.label, sizeof self->core.label, "%d", number);
    snprintf (self->core.anchor, sizeof self->core.anchor, "anchor %d", self->receiver);
}
