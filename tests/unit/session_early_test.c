/*  Senders that do not wait for the answer to their ATTACH: what follows it, what becomes of that,
 *  and who is told. The client OTHER is the private one of a dedicated anchor.
 */
#include "tests/support/scripted.h"
#include "tests/support/session_test.h"

static receiver_t s_receiver;
static hws_session_sender_t s_sender;

static void attach_early (uint64_t wait_ms, uint64_t token)
{
    memset (&s_sender, 0, sizeof s_sender);
    s_sender.notify = sender_notified;
    s_sender.is_early = true;
    s_sender.wait_ms = wait_ms;
    s_sender.cancel_token = token;
    snprintf (s_sender.anchor, sizeof s_sender.anchor, "a");
    hws_session_attach (session (SENDER), s_network.now, &s_sender);
}

static void send_some (int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal (send_record (&s_sender, 64), 0);
    }
}

static void expect_ended_clean (uint64_t records)
{
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, 0);
    assert_int_equal (s_receiver.records, records);
    assert_int_equal (s_receiver.attached, 1);
    assert_int_equal (s_receiver.last_ending, HWS_EVENT_DETACHED);
}

static void remove_both (void)
{
    hws_session_remove_sender (&s_sender);
    remove_anchor (&s_receiver);
}

/*  ---- Kept ---- */

static void early_records_follow_attach (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    attach_early (0, 0);
    const uint64_t said = s_network.clients[SENDER].said;

    send_some (3);
    detach (&s_sender);
    settle (&s_receiver);

    assert_int_equal (s_network.clients[SENDER].said - said, 2); /* ATTACH and one batch */
    expect_ended_clean (3);
    remove_both ();
}

static void early_records_follow_the_first_hello (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender = {.notify = sender_notified, .anchor = "a", .is_early = true};
    scripted_begin (&broker);
    hws_session_attach (&broker.session, broker.now, &sender);
    hws_tx_append (&sender.tx, "x", 1);
    hws_tx_detach (&sender.tx);
    hws_session_changed (&sender);

    scripted_pass (&broker, 0);

    assert_int_equal (broker.of_connection.count, 2);
    assert_string_equal (broker.of_connection.word[1], "HELLO");
    assert_int_equal (broker.of_streams.count, 3);
    assert_string_equal (broker.of_streams.word[0], "ATTACH");
    assert_string_equal (broker.of_streams.word[1], "RECORDS");
    assert_string_equal (broker.of_streams.word[2], "DETACHED");
    scripted_welcome (&broker);
    assert_int_equal (broker.asked_count[HWS_VERB_ATTACH], 1);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

static void early_records_wait_for_a_later_hello (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender = {.notify = sender_notified, .anchor = "a", .is_early = true};
    scripted_begin (&broker);
    scripted_pass (&broker, 0);
    scripted_welcome (&broker);
    scripted_lose (&broker);
    broker.of_streams.count = 0;
    scripted_pass (&broker, HWS_BACKOFF_MIN_MS);
    hws_session_attach (&broker.session, broker.now, &sender);
    hws_tx_append (&sender.tx, "x", 1);
    hws_session_changed (&sender);

    scripted_pump (&broker);
    assert_int_equal (broker.of_streams.count, 0);
    scripted_welcome (&broker);

    assert_int_equal (broker.of_streams.count, 2);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

static void an_early_window_of_nothing_is_kept_to (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender = {.notify = sender_notified, .anchor = "a", .is_early = true};
    scripted_begin (&broker);
    scripted_pass (&broker, 0);
    scripted_answer (&broker, (hws_control_t){.verb = HWS_VERB_HELLO,
                                              .as.hello_ok = {.epoch = 7, .protocol = 1}});

    hws_session_attach (&broker.session, broker.now, &sender);

    assert_int_equal (hws_tx_append (&sender.tx, "x", 1), HWS_EWOULD_BLOCK);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

/*  ---- The early window ---- */

static void a_send_beyond_the_early_window_waits_for_the_answer (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    attach_early (0, 0);

    send_some (HWS_EARLY_RECORDS);
    assert_int_equal (send_record (&s_sender, 64), HWS_EWOULD_BLOCK);
    settle (&s_receiver);
    send_some (HWS_EARLY_RECORDS);
    detach (&s_sender);
    settle (&s_receiver);

    expect_ended_clean (2 * HWS_EARLY_RECORDS);
    remove_both ();
}

static void what_may_have_to_travel_in_parts_waits_for_the_answer (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    attach_early (0, 0);

    assert_int_equal (send_record (&s_sender, 4053), HWS_EWOULD_BLOCK);
    assert_int_equal (send_record (&s_sender, 4052), 0);
    settle (&s_receiver);
    assert_int_equal (send_record (&s_sender, 4053), 0);
    detach (&s_sender);
    settle (&s_receiver);

    expect_ended_clean (2);
    remove_both ();
}

/*  ---- Dropped ---- */

static void dropped_early_records_are_sent_again (void **state)
{
    (void) state;
    attach_early (10000, 0);
    send_some (5);
    detach (&s_sender);
    network_settle (&s_network);
    assert_true (hws_tx_is_new (&s_sender.tx));

    open_anchor (&s_receiver, "a");
    settle (&s_receiver);

    expect_ended_clean (5);
    remove_both ();
}

static void early_records_outlive_a_lost_connection (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    s_network.clients[SENDER].is_silent = true;
    attach_early (0, 0);
    send_some (5);
    detach (&s_sender);
    network_settle (&s_network);

    s_network.clients[SENDER].is_silent = false;
    network_cut (&s_network, SENDER);
    pass (&s_receiver, 1000);

    expect_ended_clean (5);
    remove_both ();
}

/*  The seat was made, and the answer lost with the connection: the broker has all of it.  */
static void early_records_whose_answer_was_lost_count_once (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender = {.notify = sender_notified, .anchor = "a", .is_early = true};
    scripted_begin (&broker);
    hws_session_attach (&broker.session, broker.now, &sender);
    for (int i = 0; i < 5; i++) {
        assert_int_equal (hws_tx_append (&sender.tx, "x", 1), 0);
    }
    hws_session_changed (&sender);
    scripted_pass (&broker, 0);
    scripted_welcome (&broker);
    scripted_lose (&broker);
    scripted_return (&broker);
    broker.of_streams.count = 0;

    scripted_answer (&broker,
                     (hws_control_t){.verb = HWS_VERB_ATTACH,
                                     .as.attach_ok = {.streaming_transport_key = HWS_TRANSPORT_MUX,
                                                      .heartbeat_interval_ms = 5000,
                                                      .sender_id = 1,
                                                      .initial_credit = 100,
                                                      .next_seq = 5,
                                                      .next_bytes = 25,
                                                      .acked_seq = 3,
                                                      .acked_bytes = 15,
                                                      .early_kept = true}});

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_int_equal (sender.tx.acked_records, 3);
    assert_int_equal (broker.of_streams.count, 0);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

/*  ---- Refused ---- */

static void refused_early_attach_is_told (void **state)
{
    (void) state;
    attach_early (0, 0);
    send_some (3);

    network_settle (&s_network);

    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, HWS_ENOT_FOUND);
    assert_string_equal (s_sender.tx.cause, "not_found");
    assert_non_null (strstr (s_sender.tx.reason, "there is no anchor named a"));
    assert_int_equal (send_record (&s_sender, 64), HWS_ENOT_FOUND);
    assert_int_equal (hws_tx_detach (&s_sender.tx), HWS_ENOT_FOUND);
    hws_session_remove_sender (&s_sender);
}

static void refused_early_ending_is_told (void **state)
{
    (void) state;
    attach_early (0, 0);
    send_some (3);
    detach (&s_sender);

    network_settle (&s_network);

    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, HWS_ENOT_FOUND);
    hws_session_remove_sender (&s_sender);
}

static void answer_with_credit (scripted_t *broker, uint64_t credit)
{
    scripted_answer (broker,
                     (hws_control_t){.verb = HWS_VERB_ATTACH,
                                     .as.attach_ok = {.streaming_transport_key = HWS_TRANSPORT_MUX,
                                                      .heartbeat_interval_ms = 5000,
                                                      .sender_id = 1,
                                                      .initial_credit = credit,
                                                      .early_kept = true}});
}

/*  An early sender that has sent three records.  */
static void begin_scripted (scripted_t *broker, hws_session_sender_t *sender)
{
    *sender = (hws_session_sender_t){.notify = sender_notified, .anchor = "a", .is_early = true};
    scripted_begin (broker);
    hws_session_attach (&broker->session, broker->now, sender);
    scripted_pass (broker, 0);
    scripted_welcome (broker);
    for (int i = 0; i < 3; i++) {
        assert_int_equal (hws_tx_append (&sender->tx, "x", 1), 0);
    }
}

static void the_window_of_the_answer_replaces_the_early_one (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender;
    begin_scripted (&broker, &sender);

    answer_with_credit (&broker, 4);

    assert_int_equal (hws_tx_append (&sender.tx, "x", 1), 0);
    assert_int_equal (hws_tx_append (&sender.tx, "x", 1), HWS_EWOULD_BLOCK);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

static void a_window_below_the_early_one_is_a_protocol_error (void **state)
{
    (void) state;
    scripted_t broker;
    hws_session_sender_t sender;
    begin_scripted (&broker, &sender);

    answer_with_credit (&broker, 2);

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    hws_session_remove_sender (&sender);
    scripted_end (&broker);
}

/*  ---- Cancelled ---- */

static void early_attach_that_is_cancelled_leaves_no_seat (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    attach_early (0, 0);
    send_some (3);

    hws_session_cancel (session (SENDER), s_network.now, &s_sender, "enough");
    settle (&s_receiver);

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_int_equal (s_receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    remove_both ();
}

static void early_attach_is_cancelled_by_its_token (void **state)
{
    (void) state;
    attach_early (10000, 77);
    send_some (3);
    network_settle (&s_network);

    hws_session_cancel_token (session (OTHER), s_network.now, 77, "enough");
    network_settle (&s_network);

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.reason, "enough");
    hws_session_remove_sender (&s_sender);
}

/*  ---- Dedicated anchors ---- */

static void early_records_go_to_the_anchors_own_front (void **state)
{
    (void) state;
    memset (&s_receiver, 0, sizeof s_receiver);
    s_receiver.core.notify = receiver_notified;
    s_receiver.core.options.dedicated = true;
    snprintf (s_receiver.core.options.name, sizeof s_receiver.core.options.name, "a");
    hws_session_open (session (RECEIVER), s_network.now, &s_receiver.core);
    hws_rx_reader_init (&s_receiver.reader, &s_receiver.core.rx);
    settle (&s_receiver);
    attach_early (0, 0);
    send_some (3);
    settle (&s_receiver);
    assert_int_equal (session (SENDER)->moved.count, 1);
    assert_true (hws_tx_is_new (&s_sender.tx));
    send_some (2); /* on the way */

    network_cut (&s_network, OTHER);
    s_network.clients[OTHER].front = s_network.last_front;
    hws_session_move_sender (session (OTHER), s_network.now, &s_sender);
    detach (&s_sender);
    pass (&s_receiver, 6000);

    assert_int_equal (session (SENDER)->moved.count, 0);
    assert_int_equal (session (SENDER)->senders.count, 0);
    expect_ended_clean (5);
    remove_both ();
}

static void what_waits_for_a_flush_goes_along (void **state)
{
    (void) state;
    session (SENDER)->options.linger_ms = -1;
    session (OTHER)->options.linger_ms = -1;
    open_anchor (&s_receiver, "a");
    attach_early (0, 0);
    send_some (3);

    hws_session_move_sender (session (OTHER), s_network.now, &s_sender);
    assert_int_equal (session (SENDER)->held_bytes, 0);
    hws_session_flush (session (OTHER));
    settle (&s_receiver);

    assert_int_equal (s_receiver.records, 3);
    remove_both ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (early_records_follow_attach),
        TEST (early_records_follow_the_first_hello),
        TEST (early_records_wait_for_a_later_hello),
        TEST (an_early_window_of_nothing_is_kept_to),
        TEST (a_send_beyond_the_early_window_waits_for_the_answer),
        TEST (what_may_have_to_travel_in_parts_waits_for_the_answer),
        TEST (dropped_early_records_are_sent_again),
        TEST (early_records_outlive_a_lost_connection),
        TEST (early_records_whose_answer_was_lost_count_once),
        TEST (refused_early_attach_is_told),
        TEST (refused_early_ending_is_told),
        TEST (the_window_of_the_answer_replaces_the_early_one),
        TEST (a_window_below_the_early_one_is_a_protocol_error),
        TEST (early_attach_that_is_cancelled_leaves_no_seat),
        TEST (early_attach_is_cancelled_by_its_token),
        TEST (early_records_go_to_the_anchors_own_front),
        TEST (what_waits_for_a_flush_goes_along),
    };
    return cmocka_run_group_tests_name ("session early", tests, NULL, NULL);
}
