#include "tests/support/session_test.h"

network_t s_network;

void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

void sender_notified (hws_session_sender_t *core)
{
    (void) core;
}

static void see (receiver_t *self, const hws_event_t *event)
{
    if (event->kind == HWS_EVENT_CLOSED) {
        self->closed++;
        snprintf (self->closed_cause, sizeof self->closed_cause, "%s", event->cause);
        return;
    }
    assert_true (event->sender_id < 32);
    assert_false (self->has_ended[event->sender_id]);
    if (event->kind == HWS_EVENT_ATTACHED) {
        self->attached++;
    } else if (event->kind == HWS_EVENT_RECORD) {
        uint64_t count = 0;
        assert_true (event->size >= sizeof count);
        memcpy (&count, event->data, sizeof count);
        assert_int_equal (count, self->next[event->sender_id]);
        self->next[event->sender_id]++;
        self->records++;
        self->bytes += event->size;
    } else if (event->kind == HWS_EVENT_ERROR) {
        self->errors++;
    } else {
        self->endings++;
        self->has_ended[event->sender_id] = true;
        self->clean += event->kind == HWS_EVENT_DETACHED || event->kind == HWS_EVENT_FINALIZED;
        self->last_ending = event->kind;
        snprintf (self->last_cause, sizeof self->last_cause, "%s",
                  event->cause ? event->cause : "");
        snprintf (self->last_reason, sizeof self->last_reason, "%s", event->reason);
    }
}

bool read_event (receiver_t *self)
{
    hws_event_t event;
    if (self->core.rx.state == HWS_RX_CLOSED) {
        hws_rx_reader_end (&self->reader);
    }
    while (!hws_rx_reader_next (&self->reader, &event)) {
        hws_rx_reader_publish (&self->reader);
        if (!hws_rx_has_events (&self->core.rx)) {
            return false;
        }
        hws_rx_reader_take (&self->reader);
    }
    see (self, &event);
    return true;
}

bool read_all (receiver_t *self)
{
    bool has_read = false;
    while (!self->is_paused && read_event (self)) {
        has_read = true;
    }
    return has_read;
}

void settle (receiver_t *receiver)
{
    do {
        network_settle (&s_network);
    } while (read_all (receiver));
}

void pass (receiver_t *receiver, hws_ms_t length_ms)
{
    const hws_ms_t end = s_network.now + length_ms;
    while (s_network.now < end) {
        network_pass (&s_network, hws_time_min (50, end - s_network.now));
        settle (receiver);
    }
}

void open_anchor (receiver_t *self, const char *name)
{
    memset (self, 0, sizeof *self);
    self->core.notify = receiver_notified;
    snprintf (self->core.options.name, sizeof self->core.options.name, "%s", name);
    hws_session_open (&s_network.clients[RECEIVER].session, s_network.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    settle (self);
}

void remove_anchor (receiver_t *self)
{
    hws_rx_reader_fini (&self->reader);
    hws_session_remove_receiver (&self->core);
}

void attach (hws_session_sender_t *self, int client, const char *name)
{
    memset (self, 0, sizeof *self);
    self->notify = sender_notified;
    snprintf (self->anchor, sizeof self->anchor, "%s", name);
    hws_session_attach (&s_network.clients[client].session, s_network.now, self);
}

int send_record (hws_session_sender_t *self, size_t size)
{
    static uint8_t data[1 << 20];
    const uint64_t count = self->tx.records;
    memcpy (data, &count, sizeof count);
    const int rc = hws_tx_append (&self->tx, data, size);
    hws_session_changed (self);
    return rc;
}

void detach (hws_session_sender_t *self)
{
    assert_int_equal (hws_tx_detach (&self->tx), 0);
    hws_session_changed (self);
}

hws_session_t *session (int client)
{
    return &s_network.clients[client].session;
}

int start (void **state)
{
    (void) state;
    network_init (&s_network, 3);
    network_pass (&s_network, 0); /* they connect */
    return 0;
}

int stop (void **state)
{
    (void) state;
    network_fini (&s_network);
    return 0;
}
