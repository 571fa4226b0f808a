/*  Receivers that take the place of others, and closes that a restarted broker has to learn:
 *  sessions and the real engine, from end to end.
 */
#include "tests/support/session_test.h"

static receiver_t s_old, s_receiver;
static hws_session_sender_t s_sender;

/*  An anchor of the client RECEIVER with one sender.  */
static void begin (void)
{
    open_anchor (&s_old, "a");
    attach (&s_sender, SENDER, "a");
    settle (&s_old);
}

/*  The client goes on with it.  */
static void take_over_by (int client)
{
    memset (&s_receiver, 0, sizeof s_receiver);
    s_receiver.core.notify = receiver_notified;
    s_receiver.core.options.has_resume = true;
    s_receiver.core.options.resume.handle = s_old.core.rx.handle;
    s_receiver.core.options.resume.owner_token = s_old.core.in_force.owner_token;
    snprintf (s_receiver.core.options.name, sizeof s_receiver.core.options.name, "a");
    hws_session_open (session (client), s_network.now, &s_receiver.core);
    hws_rx_reader_init (&s_receiver.reader, &s_receiver.core.rx);
}

static void take_over (void)
{
    take_over_by (OTHER);
}

static void send_some (int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal (send_record (&s_sender, 64), 0);
    }
}

/*  The records that come now begin behind those that were acknowledged.  */
static void expect_behind (uint64_t records)
{
    s_receiver.next[s_sender.tx.sender_id] = records;
}

static void finish (void)
{
    remove_anchor (&s_receiver);
    hws_session_remove_sender (&s_sender);
}

/*  ---- Taken over ---- */

static void receiver_that_is_there_is_superseded (void **state)
{
    (void) state;
    begin ();
    send_some (3);
    settle (&s_old);

    take_over ();
    expect_behind (3);
    settle (&s_receiver);
    send_some (2);
    settle (&s_receiver);
    read_all (&s_old);

    assert_int_equal (s_old.records, 3);
    assert_string_equal (s_old.last_cause, "superseded");
    assert_string_equal (s_old.closed_cause, "superseded");
    assert_int_equal (s_receiver.records, 2);
    remove_anchor (&s_old);
    detach (&s_sender);
    settle (&s_receiver);
    assert_int_equal (s_receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (s_sender.tx.result, 0);
    finish ();
}

/*  The program has not removed the first one when it opens the second.  */
static void receiver_of_the_same_client_is_superseded (void **state)
{
    (void) state;
    begin ();
    send_some (3);
    settle (&s_old);

    take_over_by (RECEIVER);
    expect_behind (3);
    settle (&s_receiver);
    send_some (2);
    settle (&s_receiver);
    read_all (&s_old);

    assert_int_equal (s_old.records, 3);
    assert_string_equal (s_old.last_cause, "superseded");
    assert_string_equal (s_old.closed_cause, "superseded");
    assert_int_equal (s_receiver.records, 2);
    network_restart (&s_network);
    pass (&s_receiver, 2000);
    send_some (1);
    settle (&s_receiver);
    hws_session_cancel (session (SENDER), s_network.now, &s_sender, "enough");
    settle (&s_receiver);
    assert_int_equal (s_receiver.records, 3);
    assert_string_equal (s_receiver.last_cause, "interrupted");
    remove_anchor (&s_old);
    finish ();
}

/*  It does not come back by itself: neither within the epoch, where it learns it from the broker,
 *  nor when it has learnt it.  */
static void receiver_that_was_away_learns_that_it_was_superseded (void **state)
{
    (void) state;
    for (int is_restarted = 0; is_restarted <= 1; is_restarted++) {
        begin ();
        s_network.clients[RECEIVER].is_refused = true;
        network_cut (&s_network, RECEIVER);
        take_over ();
        settle (&s_receiver);

        s_network.clients[RECEIVER].is_refused = false;
        pass (&s_receiver, 6000);
        read_all (&s_old);
        assert_string_equal (s_old.last_cause, "superseded");
        assert_string_equal (s_old.closed_cause, "superseded");
        if (is_restarted) {
            network_restart (&s_network);
            pass (&s_receiver, 6000);
        }

        send_some (2);
        detach (&s_sender);
        pass (&s_receiver, 1000);
        assert_int_equal (s_receiver.records, 2);
        assert_int_equal (s_receiver.last_ending, HWS_EVENT_DETACHED);
        assert_int_equal (s_receiver.closed, 0);
        assert_int_equal (s_old.endings, 1);
        remove_anchor (&s_old);
        finish ();
        network_fini (&s_network);
        network_init (&s_network, 3);
        network_pass (&s_network, 0);
    }
}

static void receiver_and_broker_come_again (void **state)
{
    (void) state;
    begin ();
    send_some (3);
    settle (&s_old);
    s_old.is_paused = true;
    send_some (4);
    settle (&s_old);
    s_network.clients[RECEIVER].is_refused = true; /* the process is dead */
    network_cut (&s_network, RECEIVER);
    network_restart (&s_network);

    take_over ();
    expect_behind (3);
    send_some (2);
    pass (&s_receiver, 2000);
    detach (&s_sender);
    pass (&s_receiver, 1000);

    assert_int_equal (s_receiver.attached, 1);
    assert_int_equal (s_receiver.records, 4 + 2);
    assert_int_equal (s_receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (s_sender.tx.result, 0);
    finish ();
    remove_anchor (&s_old);
}

/*  ---- Closed meanwhile ---- */

static void close_while_the_broker_was_down_is_told_to_the_next_epoch (void **state)
{
    (void) state;
    begin ();
    send_some (3);
    settle (&s_old);
    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = true;
    }
    network_restart (&s_network);
    network_pass (&s_network, 200);

    hws_session_close (session (RECEIVER), s_network.now, &s_old.core, "enough");
    hws_rx_reader_discard (&s_old.reader);
    read_all (&s_old);
    assert_int_equal (s_old.core.close_result, HWS_EUNREACHABLE);
    assert_string_equal (s_old.last_cause, "receiver_closed");
    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = false;
    }
    pass (&s_old, 6000);

    assert_int_equal (s_old.endings, 1);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.cause, "receiver_closed");
    assert_false (s_old.core.is_close_owed);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    hws_session_remove_sender (&s_sender);
    remove_anchor (&s_old);
}

static void cancel_of_a_sender_while_the_broker_was_down_is_told_to_the_next_epoch (void **state)
{
    (void) state;
    begin ();
    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = true;
    }
    network_restart (&s_network);
    network_pass (&s_network, 200);

    assert_int_equal (hws_rx_cancel_sender (&s_old.core.rx, s_sender.tx.sender_id, "no"), 0);
    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = false;
    }
    pass (&s_old, 6000);

    assert_int_equal (s_old.endings, 1);
    assert_int_equal (s_old.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (s_old.last_cause, "requested");
    assert_string_equal (s_sender.tx.cause, "requested");
    hws_session_remove_sender (&s_sender);
    remove_anchor (&s_old);
}

/*  The program saw the clean ending, closes, and the broker is killed before it has heard of
 *  either.  */
static void ending_that_was_shown_stands_though_the_anchor_was_closed_meanwhile (void **state)
{
    (void) state;
    begin ();
    detach (&s_sender);
    network_settle (&s_network);
    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = true;
    }
    network_restart (&s_network);
    read_all (&s_old);
    assert_int_equal (s_old.last_ending, HWS_EVENT_DETACHED);
    hws_session_close (session (RECEIVER), s_network.now, &s_old.core, "enough");
    hws_rx_reader_discard (&s_old.reader);
    read_all (&s_old);

    for (int i = 0; i < 3; i++) {
        s_network.clients[i].is_refused = false;
    }
    pass (&s_old, 6000);

    assert_int_equal (s_old.endings, 1);
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, 0);
    hws_session_remove_sender (&s_sender);
    remove_anchor (&s_old);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (receiver_that_is_there_is_superseded),
        TEST (receiver_of_the_same_client_is_superseded),
        TEST (receiver_that_was_away_learns_that_it_was_superseded),
        TEST (receiver_and_broker_come_again),
        TEST (close_while_the_broker_was_down_is_told_to_the_next_epoch),
        TEST (cancel_of_a_sender_while_the_broker_was_down_is_told_to_the_next_epoch),
        TEST (ending_that_was_shown_stands_though_the_anchor_was_closed_meanwhile),
    };
    return cmocka_run_group_tests_name ("session_takeover", tests, NULL, NULL);
}
