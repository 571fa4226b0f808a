/*  What crosses an ending on the wire: whatever it is, both ends learn the same one.  */
#include "tests/support/session_test.h"

enum { FIRST, SECOND };

/*  Two senders at the anchor `a`; the first has detached, which reached the receiver's side and
 *  was not read.  */
static void detach_unread (receiver_t *receiver, hws_session_sender_t senders[2])
{
    open_anchor (receiver, "a");
    attach (&senders[FIRST], SENDER, "a");
    attach (&senders[SECOND], OTHER, "a");
    settle (receiver);
    receiver->is_paused = true;
    assert_int_equal (send_record (&senders[FIRST], 8), 0);
    detach (&senders[FIRST]);
    settle (receiver);
    assert_int_equal (senders[FIRST].tx.state, HWS_TX_ENDING);
}

static void finish (receiver_t *receiver, hws_session_sender_t senders[2])
{
    hws_session_remove_sender (&senders[FIRST]);
    hws_session_remove_sender (&senders[SECOND]);
    remove_anchor (receiver);
}

static void close_by_its_owner (receiver_t *receiver)
{
    hws_session_close (session (RECEIVER), s_network.now, &receiver->core, "enough");
    hws_rx_reader_discard (&receiver->reader);
}

static void expect_cancelled (const hws_session_sender_t *sender, const char *cause)
{
    assert_int_equal (sender->tx.state, HWS_TX_ENDED);
    assert_int_equal (sender->tx.result, HWS_ECANCELLED);
    assert_string_equal (sender->tx.cause, cause);
}

static void close_replaces_a_clean_ending_that_was_not_read (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[2];
    detach_unread (&receiver, senders);

    close_by_its_owner (&receiver);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.endings, 2);
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    expect_cancelled (&senders[FIRST], "receiver_closed");
    expect_cancelled (&senders[SECOND], "receiver_closed");
    finish (&receiver, senders);
}

static void close_leaves_a_clean_ending_that_was_read (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[2];
    detach_unread (&receiver, senders);
    receiver.is_paused = false;
    read_all (&receiver);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);

    close_by_its_owner (&receiver);
    settle (&receiver);

    assert_int_equal (senders[FIRST].tx.result, 0);
    expect_cancelled (&senders[SECOND], "receiver_closed");
    assert_int_equal (receiver.endings, 2);
    finish (&receiver, senders);
}

/*  Somebody else's cancel closes the anchor behind what has ended; also when the receiver's
 *  connection breaks meanwhile.  */
static void cancel_of_another_leaves_a_clean_ending (void **state)
{
    (void) state;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        receiver_t receiver;
        hws_session_sender_t senders[2];
        detach_unread (&receiver, senders);

        hws_session_cancel_anchor (session (OTHER), s_network.now, &senders[SECOND], "pointless");
        settle (&receiver);
        if (is_cut) {
            network_cut (&s_network, RECEIVER);
        }
        receiver.is_paused = false;
        pass (&receiver, 6000);

        assert_int_equal (receiver.records, 1);
        assert_int_equal (receiver.endings, 2);
        assert_int_equal (senders[FIRST].tx.state, HWS_TX_ENDED);
        assert_int_equal (senders[FIRST].tx.result, 0);
        expect_cancelled (&senders[SECOND], "requested");
        assert_string_equal (receiver.closed_cause, "requested");
        finish (&receiver, senders);
    }
}

static void cancel_of_a_sender_replaces_its_clean_ending (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[2];
    open_anchor (&receiver, "a");
    attach (&senders[FIRST], SENDER, "a");
    attach (&senders[SECOND], OTHER, "a");
    settle (&receiver);

    /* The DETACHED comes while the CANCEL is under way, which is lost with the connection.  */
    assert_int_equal (hws_rx_cancel_sender (&receiver.core.rx, senders[FIRST].tx.sender_id, "no"),
                      0);
    hws_action_t out;
    assert_true (hws_session_pop (session (RECEIVER), s_network.now, s_network.buffer,
                                  sizeof s_network.buffer, &out));
    assert_string_equal (out.verb, "CANCEL");
    free (out.data);
    detach (&senders[FIRST]);
    settle (&receiver);
    assert_int_equal (receiver.endings, 0);
    network_cut (&s_network, RECEIVER);
    pass (&receiver, 6000);

    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_cause, "requested");
    expect_cancelled (&senders[FIRST], "requested");
    assert_int_equal (senders[SECOND].tx.state, HWS_TX_OPEN);
    finish (&receiver, senders);
}

static void cancel_of_its_own_leaves_a_clean_ending (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[2];
    detach_unread (&receiver, senders);

    hws_session_cancel (session (SENDER), s_network.now, &senders[FIRST], "too late");
    settle (&receiver);
    assert_int_equal (senders[FIRST].tx.state, HWS_TX_CANCELLING);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (senders[FIRST].tx.state, HWS_TX_ENDED);
    assert_int_equal (senders[FIRST].tx.result, 0);
    finish (&receiver, senders);
}

/*  The clean ending was forwarded and got lost; the cancel came too late, so the stream ends as
 *  its sender ended it first.  */
static void clean_ending_is_sent_again_although_a_cancel_came_behind_it (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].to_lose = 1;
    assert_int_equal (send_record (&sender, 8), 0);
    detach (&sender);
    settle (&receiver);
    hws_session_cancel (session (SENDER), s_network.now, &sender, "too late");
    settle (&receiver);
    assert_int_equal (sender.tx.state, HWS_TX_CANCELLING);

    network_cut (&s_network, RECEIVER);
    pass (&receiver, 1000);

    assert_int_equal (receiver.records, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  The receiver has the clean ending and does not read on, and its connection is away until
 *  the broker gives it up.  */
static void abandoned_replaces_a_clean_ending_that_was_not_read (void **state)
{
    (void) state;
    for (int is_fetched = 0; is_fetched < 2; is_fetched++) {
        receiver_t receiver;
        hws_session_sender_t senders[2];
        detach_unread (&receiver, senders);
        if (is_fetched) {
            assert_true (read_event (&receiver)); /* and all that is queued is in its hands */
        }

        s_network.clients[RECEIVER].is_refused = true;
        network_cut (&s_network, RECEIVER);
        pass (&receiver, 40000);
        s_network.clients[RECEIVER].is_refused = false;
        pass (&receiver, 6000);
        receiver.is_paused = false;
        read_all (&receiver);

        assert_int_equal (receiver.records, 1);
        assert_int_equal (receiver.endings, 2);
        assert_int_equal (receiver.clean, 0);
        assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
        assert_string_equal (receiver.closed_cause, "abandoned");
        expect_cancelled (&senders[FIRST], "abandoned");
        expect_cancelled (&senders[SECOND], "abandoned");
        finish (&receiver, senders);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (close_replaces_a_clean_ending_that_was_not_read),
        TEST (close_leaves_a_clean_ending_that_was_read),
        TEST (cancel_of_another_leaves_a_clean_ending),
        TEST (cancel_of_a_sender_replaces_its_clean_ending),
        TEST (cancel_of_its_own_leaves_a_clean_ending),
        TEST (clean_ending_is_sent_again_although_a_cancel_came_behind_it),
        TEST (abandoned_replaces_a_clean_ending_that_was_not_read),
    };
    return cmocka_run_group_tests_name ("session_endings", tests, NULL, NULL);
}
