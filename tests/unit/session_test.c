/*  The session against the real engine, over a virtual network and a virtual clock.  */
#include "client/rx_reader.h"
#include "client/session_part.h"
#include "tests/support/network.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RECEIVER, SENDER, OTHER };

static network_t s_network;

/*  One receiver with its reader, and what it was shown.  */
typedef struct {
    hws_session_receiver_t core;
    hws_rx_reader_t reader;
    bool is_paused; /* the application reads nothing */
    uint64_t records, bytes, attached, endings, errors, closed;
    uint64_t next[32];            /* by sender id: the count that its next record has to hold */
    bool has_ended[32];           /* by sender id */
    hws_event_kind_t last_ending; /* and its cause */
    char last_cause[32];
    char last_reason[64];
    char closed_cause[32];
} receiver_t;

static void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

static void sender_notified (hws_session_sender_t *core)
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
        self->last_ending = event->kind;
        snprintf (self->last_cause, sizeof self->last_cause, "%s",
                  event->cause ? event->cause : "");
        snprintf (self->last_reason, sizeof self->last_reason, "%s", event->reason);
    }
}

/*  The application reads all there is; true when there was something.  */
static bool read_all (receiver_t *self)
{
    bool has_read = false;
    hws_event_t event;
    while (!self->is_paused) {
        if (hws_rx_reader_next (&self->reader, &event)) {
            has_read = true;
            see (self, &event);
            continue;
        }
        has_read |= hws_rx_reader_publish (&self->reader);
        if (!hws_rx_has_events (&self->core.rx)) {
            break;
        }
        hws_rx_reader_take (&self->reader);
    }
    return has_read;
}

static void settle (receiver_t *receiver)
{
    do {
        network_settle (&s_network);
    } while (read_all (receiver));
}

static void pass (receiver_t *receiver, hws_ms_t length_ms)
{
    const hws_ms_t end = s_network.now + length_ms;
    while (s_network.now < end) {
        network_pass (&s_network, hws_time_min (50, end - s_network.now));
        settle (receiver);
    }
}

static void open_anchor (receiver_t *self, const char *name)
{
    memset (self, 0, sizeof *self);
    self->core.notify = receiver_notified;
    snprintf (self->core.options.name, sizeof self->core.options.name, "%s", name);
    hws_session_open (&s_network.clients[RECEIVER].session, s_network.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    settle (self);
}

static void remove_anchor (receiver_t *self)
{
    hws_rx_reader_fini (&self->reader);
    hws_session_remove_receiver (&self->core);
}

static void attach (hws_session_sender_t *self, int client, const char *name)
{
    memset (self, 0, sizeof *self);
    self->notify = sender_notified;
    snprintf (self->anchor, sizeof self->anchor, "%s", name);
    hws_session_attach (&s_network.clients[client].session, s_network.now, self);
}

/*  Sends a record that holds the count of those before it.  */
static int send_record (hws_session_sender_t *self, size_t size)
{
    static uint8_t data[1 << 20];
    const uint64_t count = self->tx.records;
    memcpy (data, &count, sizeof count);
    const int rc = hws_tx_append (&self->tx, data, size);
    hws_session_changed (self);
    return rc;
}

static void detach (hws_session_sender_t *self)
{
    assert_int_equal (hws_tx_detach (&self->tx), 0);
    hws_session_changed (self);
}

static hws_session_t *session (int client)
{
    return &s_network.clients[client].session;
}

static int start (void **state)
{
    (void) state;
    network_init (&s_network, 3);
    network_pass (&s_network, 0); /* they connect */
    return 0;
}

static int stop (void **state)
{
    (void) state;
    network_fini (&s_network);
    return 0;
}

/*  ---- A stream from end to end ---- */

static void stream_is_attached_read_and_ended (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);

    for (int i = 0; i < 100; i++) {
        assert_int_equal (send_record (&sender, 64), 0);
    }
    detach (&sender);
    settle (&receiver);

    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.records, 100);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    assert_int_equal (sender.tx.acked_records, 100);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void two_anchors_on_one_client_are_kept_apart (void **state)
{
    (void) state;
    receiver_t a, b;
    hws_session_sender_t to_a, to_b;
    open_anchor (&a, "a");
    open_anchor (&b, "b");
    attach (&to_a, SENDER, "a");
    attach (&to_b, SENDER, "b");
    settle (&a);

    send_record (&to_b, 64);
    settle (&a);
    settle (&b);

    assert_int_equal (a.attached, 1);
    assert_int_equal (a.records, 0);
    assert_int_equal (b.attached, 1);
    assert_int_equal (b.records, 1);
    hws_session_remove_sender (&to_a);
    hws_session_remove_sender (&to_b);
    remove_anchor (&a);
    remove_anchor (&b);
}

static void records_of_many_streams_share_a_batch (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[10];
    open_anchor (&receiver, "a");
    for (int i = 0; i < 10; i++) {
        attach (&senders[i], SENDER, "a");
    }
    settle (&receiver);
    const uint64_t before = s_network.clients[SENDER].data;

    for (int i = 0; i < 10; i++) {
        send_record (&senders[i], 64);
    }
    settle (&receiver);

    assert_int_equal (s_network.clients[SENDER].data - before, 1);
    assert_int_equal (receiver.records, 10);
    for (int i = 0; i < 10; i++) {
        hws_session_remove_sender (&senders[i]);
    }
    remove_anchor (&receiver);
}

static void oversized_record_moves (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    const size_t large = (size_t) sender.tx.record_bytes;
    assert_true (large > sender.tx.limit_bytes);

    assert_int_equal (send_record (&sender, large + 1), HWS_ETOO_LARGE);
    assert_int_equal (send_record (&sender, 64), 0);
    for (int i = 0; i < 3; i++) {
        while (send_record (&sender, large) == HWS_EWOULD_BLOCK) {
            settle (&receiver);
        }
        settle (&receiver);
    }

    assert_int_equal (receiver.records, 4);
    assert_int_equal (receiver.bytes, 64 + 3 * large);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void sender_waits_for_a_receiver_that_does_not_read (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    uint64_t sent = 0;

    for (int i = 0; i < 20; i++) {
        while (send_record (&sender, 1000) == 0) {
            sent++;
        }
        pass (&receiver, 5000);
    }
    assert_true (sent * 1004 <= 1 << 16);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.records, sent);
    assert_int_equal (send_record (&sender, 1000), 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- Attaching ---- */

static void attach_to_unknown_anchor_is_not_found (void **state)
{
    (void) state;
    hws_session_sender_t sender;

    attach (&sender, SENDER, "nowhere");
    network_settle (&s_network);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ENOT_FOUND);
    assert_non_null (strstr (sender.tx.reason, "nowhere"));
    hws_session_remove_sender (&sender);
}

static void attach_answer_lost (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    s_network.clients[SENDER].is_silent = true;
    settle (&receiver);
    s_network.clients[SENDER].is_silent = false;

    pass (&receiver, HWS_REQUEST_RETRY_MS);

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_int_equal (sender.tx.sender_id, 1);
    assert_int_equal (hws_engine_counts (s_network.engine).seats, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void attach_waits_for_the_anchor (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    sender.wait_ms = 20000;
    snprintf (sender.anchor, sizeof sender.anchor, "late");
    hws_session_attach (session (SENDER), s_network.now, &sender);
    network_pass (&s_network, 7000);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);

    open_anchor (&receiver, "late");

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void mux_answer_without_window_is_refused (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    attach (&sender, SENDER, "a");
    const hws_control_t answer = {
        .verb = HWS_VERB_ATTACH,
        .form = HWS_FORM_OK,
        .has_id = true,
        .id = sender.attach.id,
        .as.attach_ok = {.sender_id = 2, .streaming_transport_key = HWS_TRANSPORT_MUX}};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes (json, size));

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_non_null (strstr (sender.tx.reason, "initial_credit"));
    hws_session_remove_sender (&sender);
}

static void absent_broker_is_unreachable_after_connect_ms (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_refused = true;
    network_cut (&s_network, SENDER);
    attach (&sender, SENDER, "a");

    network_pass (&s_network, 4999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    network_pass (&s_network, 1);

    assert_int_equal (sender.tx.result, HWS_EUNREACHABLE);
    hws_session_remove_sender (&sender);
}

static void attach_that_was_given_up_leaves_no_seat (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");

    hws_session_remove_sender (&sender);
    settle (&receiver);

    assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    assert_int_equal (receiver.endings, receiver.attached);
    remove_anchor (&receiver);
}

/*  ---- Cancel ---- */

static void cancel_one_sender (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t one, two;
    open_anchor (&receiver, "a");
    attach (&one, SENDER, "a");
    attach (&two, OTHER, "a");
    settle (&receiver);

    assert_int_equal (hws_rx_cancel_sender (&receiver.core.rx, one.tx.sender_id, "enough"), 0);
    settle (&receiver);
    send_record (&two, 64);
    settle (&receiver);

    assert_int_equal (one.tx.result, HWS_ECANCELLED);
    assert_string_equal (one.tx.cause, "requested");
    assert_string_equal (one.tx.reason, "enough");
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_reason, "enough");
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&one);
    hws_session_remove_sender (&two);
    remove_anchor (&receiver);
}

static void cancel_anchor_reaches_every_sender (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t one, two;
    open_anchor (&receiver, "a");
    attach (&one, SENDER, "a");
    attach (&two, OTHER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    send_record (&one, 64);
    settle (&receiver);
    receiver.is_paused = false;

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_rx_reader_discard (&receiver.reader);
    settle (&receiver);

    assert_int_equal (one.tx.result, HWS_ECANCELLED);
    assert_string_equal (one.tx.cause, "receiver_closed");
    assert_int_equal (two.tx.result, HWS_ECANCELLED);
    assert_int_equal (receiver.records, 0);
    assert_int_equal (receiver.endings, 2);
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    hws_session_remove_sender (&one);
    hws_session_remove_sender (&two);
    remove_anchor (&receiver);
}

static void senders_own_cancel_is_interrupted (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    hws_session_cancel (session (SENDER), s_network.now, &sender, "SIGINT");
    settle (&receiver);

    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (receiver.last_cause, "interrupted");
    assert_string_equal (receiver.last_reason, "SIGINT");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- Connections ---- */

static void stream_goes_on_after_a_cut (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    for (int i = 0; i < 10; i++) {
        send_record (&sender, 64);
    }
    settle (&receiver);

    network_cut (&s_network, SENDER);
    send_record (&sender, 64);
    network_cut (&s_network, RECEIVER);
    receiver.is_paused = false;
    pass (&receiver, 2000);
    detach (&sender);
    settle (&receiver);

    assert_int_equal (receiver.records, 11);
    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void other_epoch_is_another_broker (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    network_restart (&s_network);
    pass (&receiver, 2000);

    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "lost");
    assert_int_equal (receiver.last_ending, HWS_EVENT_DROPPED);
    assert_string_equal (receiver.last_cause, "lost");
    assert_int_equal (receiver.closed, 1);
    assert_string_equal (receiver.closed_cause, "lost");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void broker_away_too_long_ends_the_streams (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[SENDER].is_refused = s_network.clients[RECEIVER].is_refused = true;
    network_cut (&s_network, SENDER);
    network_cut (&s_network, RECEIVER);

    pass (&receiver, 59999);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_int_equal (receiver.closed, 0);
    pass (&receiver, 1);

    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "transport");
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (receiver.endings, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void anchor_that_the_broker_forgot_is_lost (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].is_refused = true;
    network_cut (&s_network, RECEIVER);
    pass (&receiver, 40000); /* its orphan_ttl_ms is 30 s */
    assert_int_equal (receiver.closed, 0);

    s_network.clients[RECEIVER].is_refused = false;
    pass (&receiver, 6000);

    assert_int_equal (receiver.last_ending, HWS_EVENT_DROPPED);
    assert_string_equal (receiver.last_cause, "lost");
    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.closed, 1);
    assert_string_equal (receiver.closed_cause, "lost");
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void anchor_that_is_answered_by_another_is_lost (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    const uint64_t said = s_network.clients[RECEIVER].said;
    hws_session_reopen (session (RECEIVER), s_network.now, &receiver.core);
    char json[256];
    snprintf (json, sizeof json,
              "{\"id\":\"%u\",\"Ok\":{\"handle\":\"%032x\",\"heartbeat_interval_ms\":5000}}",
              (unsigned) receiver.core.open.id, 7u);

    hws_session_control (session (RECEIVER), s_network.now, hws_bytes_of_text ("OPEN"),
                         hws_bytes_of_text (json));
    s_network.clients[RECEIVER].is_silent = true;
    settle (&receiver);

    assert_int_equal (receiver.closed, 1);
    assert_string_equal (receiver.closed_cause, "lost");
    assert_string_equal (receiver.last_cause, "lost");
    assert_true (s_network.clients[RECEIVER].said >= said + 2); /* OPEN, and CANCEL of the other */
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void back_off_grows_to_five_seconds (void **state)
{
    (void) state;
    s_network.clients[SENDER].is_refused = true;
    network_cut (&s_network, SENDER);

    network_pass (&s_network, 60000);

    const uint64_t connects = session (SENDER)->stats.connects;
    assert_true (connects >= 60000 / HWS_BACKOFF_MAX_MS);
    assert_true (connects <= 5 + 2 * 60000 / HWS_BACKOFF_MAX_MS + 4);
}

static void broker_that_comes_late_is_found_soon (void **state)
{
    (void) state;
    network_fini (&s_network);
    network_init (&s_network, 1);
    s_network.clients[0].is_refused = true;
    network_pass (&s_network, 30000);

    s_network.clients[0].is_refused = false;
    network_pass (&s_network, HWS_BACKOFF_NEW_MS);

    assert_int_equal (session (0)->state, HWS_SESSION_UP);
}

static void resync_is_answered_with_everything_again (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    static const char json[] = "{\"epoch\":\"1\"}";

    for (int i = 0; i < 3; i++) {
        hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("RESYNC"),
                             hws_bytes_of_text (json));
    }
    send_record (&sender, 64);
    settle (&receiver);

    assert_int_equal (session (SENDER)->state, HWS_SESSION_UP);
    assert_int_equal (receiver.records, 1);
    assert_int_equal (receiver.endings, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void run_ahead_opens_the_anchor_again (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].to_lose = 1;

    for (int i = 0; i < 3; i++) {
        send_record (&sender, 64);
        settle (&receiver);
    }

    assert_int_equal (receiver.records, 3);
    assert_int_equal (session (RECEIVER)->stats.gaps, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static const hws_rx_stream_t *only_stream (const receiver_t *receiver)
{
    assert_int_equal (receiver->core.rx.live.count, 1);
    return hws_container_of (receiver->core.rx.live.head, hws_rx_stream_t, link);
}

static void run_of_a_newer_type_is_no_gap (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    uint8_t message[HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE];
    hws_batch_put (message, HWS_BATCH_DATA, 1);
    hws_run_put (message + HWS_BATCH_HEADER_SIZE,
                 &(hws_run_t){.stream = only_stream (&receiver)->id, .count = 2, .type = 200});

    hws_session_batch (session (RECEIVER), s_network.now, hws_bytes (message, sizeof message),
                       NULL);

    assert_int_equal (only_stream (&receiver)->next_seq, 2);
    assert_int_equal (session (RECEIVER)->stats.gaps, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void unknown_stream_kills_nothing (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    static const char json[] = "{\"session_id\":\"1\",\"code\":\"unknown_stream\"}";

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text (json));
    settle (&receiver);
    send_record (&sender, 64);
    settle (&receiver);

    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- Cancel while the broker is away ---- */

static void close_without_a_connection_ends_at_once (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t one, two;
    open_anchor (&receiver, "a");
    attach (&one, SENDER, "a");
    attach (&two, OTHER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].is_refused = true;
    network_cut (&s_network, RECEIVER);

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_rx_reader_discard (&receiver.reader);
    read_all (&receiver);

    assert_int_equal (receiver.endings, 2);
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_cause, "receiver_closed");
    assert_string_equal (receiver.last_reason, "done");
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (receiver.core.close_result, HWS_EUNREACHABLE);
    s_network.clients[RECEIVER].is_refused = false;
    pass (&receiver, 6000);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    assert_string_equal (one.tx.cause, "receiver_closed");
    assert_int_equal (receiver.endings, 2);
    hws_session_remove_sender (&one);
    hws_session_remove_sender (&two);
    remove_anchor (&receiver);
}

static void connection_lost_during_a_close_ends_it (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].is_silent = true;
    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_rx_reader_discard (&receiver.reader);
    settle (&receiver);
    assert_int_equal (receiver.endings, 0);

    s_network.clients[RECEIVER].is_silent = false;
    network_cut (&s_network, RECEIVER);
    read_all (&receiver);

    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.closed, 1);
    pass (&receiver, 1000);
    assert_int_equal (receiver.endings, 1);
    assert_string_equal (sender.tx.cause, "receiver_closed");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void close_that_waits_no_longer_ends_once (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_session_close_here (&receiver.core, HWS_ETIMEOUT);
    hws_rx_reader_discard (&receiver.reader);
    read_all (&receiver);
    assert_int_equal (receiver.closed, 1);
    settle (&receiver); /* what the broker says comes later */

    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    assert_string_equal (session (RECEIVER)->error, "");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void cancel_without_a_connection_ends_at_once (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t early, late;
    open_anchor (&receiver, "a");
    attach (&early, SENDER, "a");
    attach (&late, SENDER, "a");
    settle (&receiver);
    s_network.clients[SENDER].is_silent = true;
    hws_session_cancel (session (SENDER), s_network.now, &early, "SIGINT");
    settle (&receiver);
    assert_int_equal (early.tx.state, HWS_TX_CANCELLING);
    s_network.clients[SENDER].is_silent = false;
    s_network.clients[SENDER].is_refused = true;

    network_cut (&s_network, SENDER);
    hws_session_cancel (session (SENDER), s_network.now, &late, "SIGINT");

    assert_int_equal (early.tx.result, HWS_ECANCELLED);
    assert_string_equal (early.tx.cause, "interrupted");
    assert_true (early.is_ended_here);
    assert_int_equal (late.tx.result, HWS_ECANCELLED);
    assert_true (late.is_ended_here);
    s_network.clients[SENDER].is_refused = false;
    pass (&receiver, 1000);
    assert_int_equal (receiver.endings, 2);
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_cause, "interrupted");
    hws_session_remove_sender (&early);
    hws_session_remove_sender (&late);
    remove_anchor (&receiver);
}

/*  ---- A broker that is never content ---- */

static uint64_t said_in_a_second (int client, const char *verb, const char *json)
{
    const uint64_t before = s_network.clients[client].said;
    for (int i = 0; i < 1000; i++) {
        hws_session_control (session (client), s_network.now, hws_bytes_of_text (verb),
                             hws_bytes_of_text (json));
        network_pass (&s_network, 1);
    }
    return s_network.clients[client].said - before;
}

static void resync_again_and_again_is_no_storm (void **state)
{
    (void) state;

    const uint64_t said = said_in_a_second (OTHER, "RESYNC", "{\"epoch\":\"1\"}");

    assert_in_range (said, 5, 6);
    network_pass (&s_network, HWS_AGAIN_MS);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
}

static void unknown_stream_again_and_again_is_no_storm (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    const uint64_t said = said_in_a_second (SENDER, "STREAM_CANCEL",
                                            "{\"session_id\":\"1\",\"code\":\"unknown_stream\"}");

    assert_in_range (said, 5, 6);
    pass (&receiver, HWS_AGAIN_MS);
    send_record (&sender, 64);
    settle (&receiver);
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void gap_again_and_again_is_no_storm (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    uint8_t message[HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE];
    hws_batch_put (message, HWS_BATCH_DATA, 1);
    hws_run_put (
        message + HWS_BATCH_HEADER_SIZE,
        &(hws_run_t){
            .stream = only_stream (&receiver)->id, .first_seq = 100, .count = 2, .type = 200});

    for (int i = 0; i < 1000; i++) {
        hws_session_batch (session (RECEIVER), s_network.now, hws_bytes (message, sizeof message),
                           NULL);
        pass (&receiver, 1);
    }

    assert_in_range (session (RECEIVER)->stats.gaps, 5, 6);
    pass (&receiver, HWS_AGAIN_MS);
    send_record (&sender, 64);
    settle (&receiver);
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void cause_that_is_not_known_is_unknown (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    static const char json[] =
        "{\"session_id\":\"1\",\"ending\":\"dropped\",\"code\":\"solar_flare\"}";

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "unknown");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void answer_under_another_verb_is_none (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_silent = true;
    attach (&sender, SENDER, "a");
    network_settle (&s_network);
    char json[256];
    snprintf (json, sizeof json,
              "{\"id\":\"%u\",\"Ok\":{\"handle\":\"%032x\",\"heartbeat_interval_ms\":5000}}",
              (unsigned) session (SENDER)->last_request_id, 7u);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("OPEN"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    hws_session_remove_sender (&sender);
}

static void transport_that_is_not_known_is_refused (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_silent = true;
    attach (&sender, SENDER, "a");
    network_settle (&s_network);
    char json[256];
    snprintf (json, sizeof json,
              "{\"id\":\"%u\",\"Ok\":{\"streaming_transport_key\":\"pigeon-v1\","
              "\"heartbeat_interval_ms\":5000,\"sender_id\":\"1\",\"initial_credit\":\"9\"}}",
              (unsigned) session (SENDER)->last_request_id);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_non_null (strstr (sender.tx.reason, "pigeon-v1"));
    hws_session_remove_sender (&sender);
}

/*  Answers the sender's ATTACH with what the broker would not say.  */
static void answer_attach (const hws_session_sender_t *sender, const hws_attach_ok_t *ok)
{
    const hws_control_t answer = {.verb = HWS_VERB_ATTACH,
                                  .form = HWS_FORM_OK,
                                  .has_id = true,
                                  .id = sender->attach.id,
                                  .as.attach_ok = *ok};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);
    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes (json, size));
}

static void new_stream_has_no_position (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    attach (&sender, SENDER, "a");

    answer_attach (&sender, &(hws_attach_ok_t){.sender_id = 2,
                                               .streaming_transport_key = HWS_TRANSPORT_MUX,
                                               .initial_credit = 9,
                                               .next_seq = 7,
                                               .acked_seq = 7});

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_string_equal (session (SENDER)->error,
                         "the broker's answer to ATTACH: next_seq of a new stream is not 0");
    hws_session_remove_sender (&sender);
}

/*  A broker that lives, but answers nothing more.  */
static void answer_pings_for (int client, hws_ms_t length_ms)
{
    s_network.clients[client].is_silent = true;
    for (hws_ms_t i = 0; i < length_ms; i++) {
        hws_session_control (session (client), s_network.now, hws_bytes_of_text ("PONG"),
                             hws_bytes_of_text ("{}"));
        network_pass (&s_network, 1);
    }
}

static void attach_that_is_not_answered_ends (void **state)
{
    (void) state;
    hws_session_sender_t sender, patient;
    attach (&sender, SENDER, "a");
    memset (&patient, 0, sizeof patient);
    patient.notify = sender_notified;
    patient.wait_ms = 2000;
    snprintf (patient.anchor, sizeof patient.anchor, "a");
    hws_session_attach (session (SENDER), s_network.now, &patient);

    answer_pings_for (SENDER, 4999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    answer_pings_for (SENDER, 1);
    assert_int_equal (sender.tx.result, HWS_EUNREACHABLE);
    assert_string_equal (session (SENDER)->error, "the broker does not answer ATTACH");
    answer_pings_for (SENDER, 1999);
    assert_int_equal (patient.tx.state, HWS_TX_ATTACHING);
    answer_pings_for (SENDER, 1);
    assert_int_equal (patient.tx.result, HWS_EUNREACHABLE);

    assert_int_equal (session (SENDER)->state, HWS_SESSION_UP);
    hws_session_remove_sender (&sender);
    hws_session_remove_sender (&patient);
}

static void open_that_is_not_answered_ends (void **state)
{
    (void) state;
    receiver_t receiver;
    s_network.clients[RECEIVER].is_silent = true;
    open_anchor (&receiver, "a");

    answer_pings_for (RECEIVER, 4999);
    assert_int_equal (receiver.core.rx.state, HWS_RX_OPENING);
    answer_pings_for (RECEIVER, 1);

    assert_int_equal (receiver.core.rx.result, HWS_EUNREACHABLE);
    assert_string_equal (session (RECEIVER)->error, "the broker does not answer OPEN");
    remove_anchor (&receiver);
}

static void attach_waits_longer_than_the_broker (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender, patient;
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    snprintf (sender.anchor, sizeof sender.anchor, "a");
    patient = sender;
    sender.wait_ms = 150000; /* the broker waits for a minute */
    patient.wait_ms = INT64_MAX;
    hws_session_attach (session (SENDER), s_network.now, &sender);
    hws_session_attach (session (OTHER), s_network.now, &patient);

    network_pass (&s_network, 149999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    network_pass (&s_network, 1);
    assert_int_equal (sender.tx.result, HWS_ENOT_FOUND);
    assert_int_equal (patient.tx.state, HWS_TX_ATTACHING);
    open_anchor (&receiver, "a");
    settle (&receiver);

    assert_int_equal (patient.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&sender);
    hws_session_remove_sender (&patient);
    remove_anchor (&receiver);
}

/*  ---- Liveness ---- */

static void idle_client_pings_every_half_interval (void **state)
{
    (void) state;
    const uint64_t before = s_network.clients[OTHER].pings;

    network_pass (&s_network, 50000);

    assert_in_range (s_network.clients[OTHER].pings - before, 18, 20);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
    assert_int_equal (session (OTHER)->stats.connects, 1);
}

static void pings_keep_to_the_interval_of_the_streams (void **state)
{
    (void) state;
    receiver_t receiver;
    memset (&receiver, 0, sizeof receiver);
    receiver.core.options.heartbeat_interval_ms =
        (hws_optional_t){.state = HWS_VALUE, .value = 20000};
    receiver.core.notify = receiver_notified;
    hws_session_open (session (RECEIVER), s_network.now, &receiver.core);
    hws_rx_reader_init (&receiver.reader, &receiver.core.rx);
    settle (&receiver);
    const uint64_t before = s_network.clients[RECEIVER].pings;

    network_pass (&s_network, 100000);

    assert_in_range (s_network.clients[RECEIVER].pings - before, 9, 11);
    remove_anchor (&receiver);
}

static void waiting_is_not_silence (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    while (send_record (&sender, 1000) == 0) {
    }

    pass (&receiver, 50000);

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_int_equal (session (SENDER)->stats.connects, 1);
    receiver.is_paused = false;
    settle (&receiver);
    assert_int_equal (receiver.endings, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void silent_broker_is_left_after_two_intervals (void **state)
{
    (void) state;
    s_network.clients[OTHER].is_silent = true;
    const hws_ms_t heard_at = session (OTHER)->heard_at;

    network_pass (&s_network, heard_at + 9999 - s_network.now);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
    network_pass (&s_network, 1);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_DOWN);
    s_network.clients[OTHER].is_silent = false;
    network_pass (&s_network, 200);

    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
}

static void broker_that_cannot_be_understood_is_left_too (void **state)
{
    (void) state;
    s_network.clients[OTHER].is_silent = true;
    const hws_ms_t heard_at = session (OTHER)->heard_at;

    while (s_network.now < heard_at + 10000) {
        assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
        hws_session_control (session (OTHER), s_network.now, hws_bytes_of_text ("PONG"),
                             hws_bytes_of_text ("{"));
        network_pass (&s_network, 500);
    }

    assert_int_equal (session (OTHER)->state, HWS_SESSION_DOWN);
}

static void late_client_does_not_judge (void **state)
{
    (void) state;
    network_pass (&s_network, 3000);
    const uint64_t connects = session (OTHER)->stats.connects;

    s_network.now += 60000; /* the process was stopped; nothing has been read yet */
    hws_session_expire (session (OTHER), s_network.now);

    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
    assert_int_equal (session (OTHER)->stats.connects, connects);
}

static void goodbye_is_answered (void **state)
{
    (void) state;

    hws_session_leave (session (OTHER), s_network.now);
    network_settle (&s_network);

    assert_int_equal (session (OTHER)->state, HWS_SESSION_GONE);
}

/*  ---- Random runs ---- */

/*  Senders on two clients, a receiver that reads now and then, connections that end at any
 *  moment: every record arrives once and in order, every sender ends once.  */
static void random_cuts_lose_and_double_nothing (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    for (size_t round = 0; round < test_scaled (30); round++) {
        receiver_t receiver;
        hws_session_sender_t senders[4];
        open_anchor (&receiver, "a");
        for (int i = 0; i < 4; i++) {
            attach (&senders[i], i % 2 ? SENDER : OTHER, "a");
        }
        settle (&receiver);
        for (int step = 0; step < 2000; step++) {
            const uint64_t dice = hws_random_below (&random, 1000);
            if (dice < 600) {
                const size_t most = dice < 10 ? 200000 : dice < 100 ? 5000 : 200;
                send_record (&senders[dice % 4], 8 + (size_t) hws_random_below (&random, most));
            } else if (dice < 900) {
                receiver.is_paused = dice % 2;
                settle (&receiver);
            } else if (dice < 990) {
                pass (&receiver, (hws_ms_t) hws_random_below (&random, 300));
            } else {
                const int cut = (int) (dice % 3);
                if (s_network.clients[cut].connection) {
                    network_cut (&s_network, cut);
                }
            }
        }
        receiver.is_paused = false;
        pass (&receiver, 8000);
        uint64_t sent = 0;
        for (int i = 0; i < 4; i++) {
            sent += senders[i].tx.records;
            detach (&senders[i]);
        }
        pass (&receiver, 1000);
        assert_int_equal (receiver.records, sent);
        assert_int_equal (receiver.endings, 4);
        for (int i = 0; i < 4; i++) {
            assert_int_equal (senders[i].tx.state, HWS_TX_ENDED);
            assert_int_equal (senders[i].tx.result, 0);
            hws_session_remove_sender (&senders[i]);
        }
        hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "");
        settle (&receiver);
        assert_int_equal (receiver.closed, 1);
        remove_anchor (&receiver);
        assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal (session (i)->stats.protocol_errors, 0);
    }
    assert_int_equal (hws_engine_stats (s_network.engine)->protocol_errors, 0);
    assert_int_equal (hws_engine_stats (s_network.engine)->credit_violations, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, start, stop)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (stream_is_attached_read_and_ended),
        TEST (two_anchors_on_one_client_are_kept_apart),
        TEST (records_of_many_streams_share_a_batch),
        TEST (oversized_record_moves),
        TEST (sender_waits_for_a_receiver_that_does_not_read),
        TEST (attach_to_unknown_anchor_is_not_found),
        TEST (attach_answer_lost),
        TEST (attach_waits_for_the_anchor),
        TEST (mux_answer_without_window_is_refused),
        TEST (absent_broker_is_unreachable_after_connect_ms),
        TEST (attach_that_was_given_up_leaves_no_seat),
        TEST (cancel_one_sender),
        TEST (cancel_anchor_reaches_every_sender),
        TEST (senders_own_cancel_is_interrupted),
        TEST (stream_goes_on_after_a_cut),
        TEST (other_epoch_is_another_broker),
        TEST (broker_away_too_long_ends_the_streams),
        TEST (anchor_that_the_broker_forgot_is_lost),
        TEST (anchor_that_is_answered_by_another_is_lost),
        TEST (back_off_grows_to_five_seconds),
        TEST (broker_that_comes_late_is_found_soon),
        TEST (resync_is_answered_with_everything_again),
        TEST (run_ahead_opens_the_anchor_again),
        TEST (run_of_a_newer_type_is_no_gap),
        TEST (unknown_stream_kills_nothing),
        TEST (close_without_a_connection_ends_at_once),
        TEST (connection_lost_during_a_close_ends_it),
        TEST (close_that_waits_no_longer_ends_once),
        TEST (cancel_without_a_connection_ends_at_once),
        TEST (resync_again_and_again_is_no_storm),
        TEST (unknown_stream_again_and_again_is_no_storm),
        TEST (gap_again_and_again_is_no_storm),
        TEST (cause_that_is_not_known_is_unknown),
        TEST (answer_under_another_verb_is_none),
        TEST (transport_that_is_not_known_is_refused),
        TEST (new_stream_has_no_position),
        TEST (attach_that_is_not_answered_ends),
        TEST (open_that_is_not_answered_ends),
        TEST (attach_waits_longer_than_the_broker),
        TEST (idle_client_pings_every_half_interval),
        TEST (pings_keep_to_the_interval_of_the_streams),
        TEST (waiting_is_not_silence),
        TEST (silent_broker_is_left_after_two_intervals),
        TEST (broker_that_cannot_be_understood_is_left_too),
        TEST (late_client_does_not_judge),
        TEST (goodbye_is_answered),
        TEST (random_cuts_lose_and_double_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
