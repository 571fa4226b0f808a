/*  Connections of a session: cuts, restarts, back-off, storms, cancels without one.  */
#include "tests/support/session_test.h"

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

static void another_broker_knows_no_stream (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    network_replace (&s_network);
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

static void receiver_that_comes_back_too_late_learns_that_it_was_abandoned (void **state)
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

    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_cause, "abandoned");
    assert_string_equal (receiver.last_cause, sender.tx.cause);
    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.closed, 1);
    assert_string_equal (receiver.closed_cause, "abandoned");
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

/*  The receiver has reported the clean ending: then the sender has to learn the same.  */
static void ending_that_was_consumed_stands_though_its_receiver_is_gone (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    detach (&sender);
    network_settle (&s_network);
    read_all (&receiver);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_session_close_here (&receiver.core, HWS_ETIMEOUT);
    hws_rx_reader_discard (&receiver.reader);
    read_all (&receiver);
    remove_anchor (&receiver);
    network_settle (&s_network);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
}

/*  The acknowledgement and the CANCEL are lost with the connection, both are said again, in
 *  this order, whether the close was waited for or not.  */
static void ending_that_was_consumed_stands_though_the_word_was_lost (void **state)
{
    (void) state;
    for (int is_waited_for = 0; is_waited_for <= 1; is_waited_for++) {
        receiver_t receiver;
        hws_session_sender_t sender;
        open_anchor (&receiver, is_waited_for ? "a" : "b");
        attach (&sender, SENDER, is_waited_for ? "a" : "b");
        settle (&receiver);
        detach (&sender);
        network_settle (&s_network);
        s_network.clients[RECEIVER].is_silent = true;
        settle (&receiver);
        assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);

        if (is_waited_for) {
            hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
        }
        settle (&receiver);
        s_network.clients[RECEIVER].is_silent = false;
        s_network.clients[RECEIVER].is_refused = true;
        network_cut (&s_network, RECEIVER);
        if (!is_waited_for) {
            hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
        }
        hws_rx_reader_discard (&receiver.reader);
        s_network.clients[RECEIVER].is_refused = false;
        pass (&receiver, 2000);

        assert_int_equal (receiver.closed, 1);
        assert_int_equal (receiver.endings, 1);
        assert_int_equal (sender.tx.state, HWS_TX_ENDED);
        assert_int_equal (sender.tx.result, 0);
        hws_session_remove_sender (&sender);
        remove_anchor (&receiver);
    }
}

/*  Nobody waits for the broker any more, and all that is said then is lost too.  */
static void ending_that_was_consumed_stands_though_no_word_was_heard (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    detach (&sender);
    network_settle (&s_network);
    s_network.clients[RECEIVER].is_silent = true;
    settle (&receiver);
    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_session_close_here (&receiver.core, HWS_ETIMEOUT);
    hws_rx_reader_discard (&receiver.reader);
    settle (&receiver);
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);

    s_network.clients[RECEIVER].is_silent = false;
    network_cut (&s_network, RECEIVER);
    pass (&receiver, 2000);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (stream_goes_on_after_a_cut),
        TEST (another_broker_knows_no_stream),
        TEST (broker_away_too_long_ends_the_streams),
        TEST (receiver_that_comes_back_too_late_learns_that_it_was_abandoned),
        TEST (anchor_that_is_answered_by_another_is_lost),
        TEST (back_off_grows_to_five_seconds),
        TEST (broker_that_comes_late_is_found_soon),
        TEST (resync_is_answered_with_everything_again),
        TEST (close_without_a_connection_ends_at_once),
        TEST (connection_lost_during_a_close_ends_it),
        TEST (close_that_waits_no_longer_ends_once),
        TEST (ending_that_was_consumed_stands_though_its_receiver_is_gone),
        TEST (ending_that_was_consumed_stands_though_the_word_was_lost),
        TEST (ending_that_was_consumed_stands_though_no_word_was_heard),
        TEST (cancel_without_a_connection_ends_at_once),
        TEST (resync_again_and_again_is_no_storm),
        TEST (unknown_stream_again_and_again_is_no_storm),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
