/*  Senders of dedicated anchors: told where to attach, seated there, and back at the shared
 *  front when theirs is gone. The client OTHER is the private one.
 */
#include "tests/support/session_test.h"

static void open_dedicated (receiver_t *self)
{
    memset (self, 0, sizeof *self);
    self->core.notify = receiver_notified;
    self->core.options.dedicated = true;
    snprintf (self->core.options.name, sizeof self->core.options.name, "a");
    hws_session_open (session (RECEIVER), s_network.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    settle (self);
}

/*  The private client connects to that front from now on.  */
static void go_to (receiver_t *receiver, uint32_t front)
{
    network_cut (&s_network, OTHER);
    s_network.clients[OTHER].front = front;
    pass (receiver, 6000);
}

/*  Attaches where the answer to the first ATTACH says.  */
static void attach_there (hws_session_sender_t *self, receiver_t *receiver)
{
    attach (self, SENDER, "a");
    settle (receiver);
    assert_int_equal (self->tx.result, HWS_EMOVED);
    hws_session_remove_sender (self);
    go_to (receiver, s_network.last_front);
    hws_session_attach (session (OTHER), s_network.now, self);
    settle (receiver);
    assert_int_equal (self->tx.state, HWS_TX_OPEN);
}

/*  The broker is killed, and its fronts with it: the private client comes to the shared one.  */
static void restart (receiver_t *receiver)
{
    s_network.clients[OTHER].front = 0;
    s_network.fronts = 0;
    network_restart (&s_network);
    pass (receiver, 2000);
}

/*  Answers an ATTACH with the place of a dedicated anchor, whatever there is.  */
static void answer_elsewhere (int client, uint64_t request, hws_handle_t handle)
{
    const hws_control_t answer = {
        .verb = HWS_VERB_ATTACH,
        .form = HWS_FORM_OK,
        .has_id = true,
        .id = request,
        .as.attach_ok = {.handle = handle,
                         .streaming_transport_key = HWS_TRANSPORT_DEDICATED,
                         .heartbeat_interval_ms = 5000,
                         .endpoint = "ipc:///7"}};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);
    hws_session_control (session (client), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes (json, size));
}

static void sender_of_a_dedicated_anchor_is_told_where_it_is (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);

    attach (&sender, SENDER, "a");
    settle (&receiver);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_EMOVED);
    assert_string_equal (sender.endpoint, "ipc:///1");
    assert_true (sender.has_handle);
    assert_true (hws_handle_equal (sender.handle, receiver.core.rx.handle));
    assert_int_equal (receiver.attached, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void sender_is_seated_on_the_anchors_own_front (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);

    attach_there (&sender, &receiver);

    assert_string_equal (sender.endpoint, "");
    assert_int_equal (sender.tx.sender_id, 1);
    assert_int_equal (send_record (&sender, 100), 0);
    detach (&sender);
    settle (&receiver);
    assert_int_equal (receiver.records, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void stream_goes_on_at_the_shared_front_when_its_own_cannot_be_reached (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);
    attach_there (&sender, &receiver);
    assert_int_equal (send_record (&sender, 100), 0);
    settle (&receiver);

    go_to (&receiver, 0);

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_true (sender.tx.is_ready);
    assert_int_equal (send_record (&sender, 100), 0);
    detach (&sender);
    settle (&receiver);
    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.records, 2);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void stream_goes_on_at_the_shared_front_of_a_restarted_broker (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender, later;
    open_dedicated (&receiver);
    attach_there (&sender, &receiver);
    receiver.is_paused = true;
    assert_int_equal (send_record (&sender, 100), 0);
    settle (&receiver);

    restart (&receiver);
    assert_int_equal (send_record (&sender, 100), 0);
    receiver.is_paused = false;
    detach (&sender);
    settle (&receiver);

    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.records, 2);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.result, 0);
    attach (&later, SENDER, "a"); /* the anchor has a front again, for who comes now */
    settle (&receiver);
    assert_int_equal (later.tx.result, HWS_EMOVED);
    assert_int_equal (s_network.fronts, 1);
    hws_session_remove_sender (&later);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  The front was bound for it, and the receiver has all of it, when the broker dies.  */
static void early_stream_whose_front_died_is_seated_where_it_comes (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);
    attach (&sender, SENDER, "a");
    settle (&receiver);
    hws_session_remove_sender (&sender);
    go_to (&receiver, s_network.last_front);
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    sender.is_early = sender.has_handle = true;
    sender.handle = receiver.core.rx.handle;
    hws_session_attach (session (OTHER), s_network.now, &sender);
    assert_int_equal (send_record (&sender, 100), 0);
    s_network.clients[OTHER].is_deaf = true;
    settle (&receiver);
    s_network.clients[OTHER].is_deaf = false;
    assert_int_equal (receiver.records, 1);
    assert_true (hws_tx_is_new (&sender.tx));

    restart (&receiver);
    assert_int_equal (send_record (&sender, 100), 0);
    detach (&sender);
    settle (&receiver);

    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.records, 2);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void ending_that_was_missed_is_learned_at_the_shared_front (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);
    attach_there (&sender, &receiver);
    s_network.clients[OTHER].is_silent = true;
    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "enough");
    hws_rx_reader_discard (&receiver.reader);
    settle (&receiver);
    assert_int_equal (s_network.fronts, 0);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);

    s_network.clients[OTHER].is_silent = false;
    go_to (&receiver, 0);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (sender.tx.cause, "receiver_closed");
    assert_string_equal (sender.tx.reason, "enough");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  The answer comes when its sender is not there any more. Its client has the anchor too, so a
 *  CANCEL without a sender id would end it.  */
static void stray_answer_without_a_seat_cancels_nothing (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_dedicated (&receiver);
    attach (&sender, RECEIVER, "a");
    const uint64_t request = sender.attach.id;
    hws_session_remove_sender (&sender);

    answer_elsewhere (RECEIVER, request, receiver.core.rx.handle);
    settle (&receiver);

    assert_int_equal (receiver.closed, 0);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 1);
    remove_anchor (&receiver);
}

static void stream_that_has_begun_is_not_sent_elsewhere (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[SENDER].is_silent = true;
    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text ("{\"session_id\":\"1\",\"code\":\"unknown_stream\"}"));

    answer_elsewhere (SENDER, sender.attach.id, receiver.core.rx.handle);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "unknown");
    assert_string_equal (sender.endpoint, "");
    s_network.clients[SENDER].is_silent = false;
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void anchor_that_went_during_the_bind_is_waited_for (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    sender.wait_ms = 10000;
    snprintf (sender.anchor, sizeof sender.anchor, "a");
    hws_session_attach (session (SENDER), s_network.now, &sender);
    hws_session_drop_outbox (session (SENDER)); /* the broker answers otherwise */

    hws_session_control (
        session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
        hws_bytes_of_text ("{\"id\":\"2\",\"Err\":{\"code\":\"removed_during_bind\"}}"));
    assert_int_equal (sender.attach.id, 2);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    open_anchor (&receiver, "a");
    pass (&receiver, 1000);

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (sender_of_a_dedicated_anchor_is_told_where_it_is),
        TEST (sender_is_seated_on_the_anchors_own_front),
        TEST (stream_goes_on_at_the_shared_front_when_its_own_cannot_be_reached),
        TEST (stream_goes_on_at_the_shared_front_of_a_restarted_broker),
        TEST (early_stream_whose_front_died_is_seated_where_it_comes),
        TEST (ending_that_was_missed_is_learned_at_the_shared_front),
        TEST (stray_answer_without_a_seat_cancels_nothing),
        TEST (stream_that_has_begun_is_not_sent_elsewhere),
        TEST (anchor_that_went_during_the_bind_is_waited_for),
    };
    return cmocka_run_group_tests_name ("session_follow", tests, NULL, NULL);
}
