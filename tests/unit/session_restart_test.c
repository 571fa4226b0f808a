/*  Senders and a receiver whose broker is restarted: sessions and the real engine, from end to
 *  end.
 */
#include "tests/support/session_test.h"
#include "tests/support/test_seed.h"

static receiver_t s_receiver;
static hws_session_sender_t s_sender;

static void begin (void)
{
    open_anchor (&s_receiver, "a");
    attach (&s_sender, SENDER, "a");
    settle (&s_receiver);
}

static void end (void)
{
    hws_session_remove_sender (&s_sender);
    remove_anchor (&s_receiver);
}

static void send_some (int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal (send_record (&s_sender, 64), 0);
    }
}

static void expect_clean (uint64_t records)
{
    assert_int_equal (s_receiver.records, records);
    assert_int_equal (s_receiver.attached, 1);
    assert_int_equal (s_receiver.endings, 1);
    assert_int_equal (s_receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, 0);
    assert_int_equal (s_sender.tx.acked_records, records);
}

/*  ---- What goes on ---- */

static void a_stream_goes_on_at_a_restarted_broker (void **state)
{
    (void) state;
    begin ();
    send_some (10);
    settle (&s_receiver);

    network_restart (&s_network);
    send_some (10);
    pass (&s_receiver, 2000);
    send_some (10);
    detach (&s_sender);
    settle (&s_receiver);

    expect_clean (30);
    end ();
}

static void what_the_receiver_has_not_consumed_comes_once (void **state)
{
    (void) state;
    begin ();
    s_receiver.is_paused = true;
    send_some (100);
    settle (&s_receiver);

    network_restart (&s_network);
    pass (&s_receiver, 2000);
    network_restart (&s_network);
    send_some (50);
    pass (&s_receiver, 2000);
    s_receiver.is_paused = false;
    detach (&s_sender);
    settle (&s_receiver);

    expect_clean (150);
    end ();
}

static void a_sender_that_finished_meanwhile_delivers_its_ending (void **state)
{
    (void) state;
    begin ();
    network_restart (&s_network);
    send_some (10);
    detach (&s_sender);

    pass (&s_receiver, 2000);

    expect_clean (10);
    end ();
}

static void an_ending_that_was_consumed_is_clean_at_both_ends (void **state)
{
    (void) state;
    begin ();
    send_some (3);
    detach (&s_sender);
    s_network.clients[SENDER].is_deaf = true; /* it hears no GRANT */
    settle (&s_receiver);
    s_network.clients[SENDER].is_deaf = false;
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDING);

    network_restart (&s_network);
    pass (&s_receiver, 2000);

    expect_clean (3);
    end ();
}

static void an_early_sender_that_was_not_answered_comes_once (void **state)
{
    (void) state;
    open_anchor (&s_receiver, "a");
    settle (&s_receiver);
    memset (&s_sender, 0, sizeof s_sender);
    s_sender.notify = sender_notified;
    s_sender.is_early = true;
    snprintf (s_sender.anchor, sizeof s_sender.anchor, "a");
    hws_session_attach (session (SENDER), s_network.now, &s_sender);
    send_some (10);
    detach (&s_sender);
    /* all of it reaches the receiver, and the answer nobody */
    s_network.clients[SENDER].is_deaf = true;
    settle (&s_receiver);
    assert_int_equal (s_receiver.records, 10);
    assert_true (hws_tx_is_new (&s_sender.tx));
    s_network.clients[SENDER].is_deaf = false;

    network_restart (&s_network);
    pass (&s_receiver, 2000);

    expect_clean (10);
    end ();
}

/*  ---- What ends ---- */

static void a_cancel_that_the_receiver_missed_is_told_to_the_next_epoch (void **state)
{
    (void) state;
    begin ();
    send_some (1);
    settle (&s_receiver);
    s_network.clients[RECEIVER].is_silent = true;
    hws_session_cancel (session (SENDER), s_network.now, &s_sender, "enough");
    settle (&s_receiver);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    s_network.clients[RECEIVER].is_silent = false;

    network_restart (&s_network);
    pass (&s_receiver, 2000);

    assert_int_equal (s_receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (s_receiver.last_cause, "interrupted");
    end ();
}

static void a_sender_whose_receiver_does_not_come_back_is_abandoned (void **state)
{
    (void) state;
    begin ();
    send_some (1);
    settle (&s_receiver);
    s_network.clients[RECEIVER].is_refused = true;

    network_restart (&s_network);
    pass (&s_receiver, 29000);
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    pass (&s_receiver, 3000);

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.cause, "abandoned");
    s_network.clients[RECEIVER].is_refused = false;
    pass (&s_receiver, 10000);
    assert_int_equal (s_receiver.closed, 1);
    assert_string_equal (s_receiver.closed_cause, "abandoned");
    assert_string_equal (s_receiver.last_cause, "abandoned");
    end ();
}

static void a_sender_that_does_not_come_back_is_dropped (void **state)
{
    (void) state;
    begin ();
    send_some (1);
    settle (&s_receiver);
    s_network.clients[SENDER].is_refused = true;

    network_restart (&s_network);
    pass (&s_receiver, 30000);

    assert_int_equal (s_receiver.last_ending, HWS_EVENT_DROPPED);
    assert_string_equal (s_receiver.last_cause, "transport");
    s_network.clients[SENDER].is_refused = false;
    pass (&s_receiver, 10000);
    assert_int_equal (s_sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (s_sender.tx.cause, "transport");
    end ();
}

/*  ---- From a seed ---- */

enum { SENDERS = 4, STEPS = 400 };

static void restarts_lose_and_double_nothing (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    hws_session_sender_t senders[SENDERS];
    uint64_t sent = 0;
    open_anchor (&s_receiver, "a");
    for (int i = 0; i < SENDERS; i++) {
        attach (&senders[i], i % 2 ? SENDER : OTHER, "a");
    }
    settle (&s_receiver);

    for (int step = 0; step < STEPS; step++) {
        hws_session_sender_t *const sender = &senders[hws_random_below (&random, SENDERS)];
        for (uint64_t n = hws_random_below (&random, 200); n > 0; n--) {
            const size_t size = (size_t) hws_random_below (&random, 4) == 0 ? 9000 : 40;
            sent += send_record (sender, size) == 0;
        }
        s_receiver.is_paused = hws_random_below (&random, 3) == 0;
        if (hws_random_below (&random, 4) == 0) {
            network_restart (&s_network);
        } else if (hws_random_below (&random, 8) == 0) {
            network_cut (&s_network, (int) hws_random_below (&random, 3));
        }
        pass (&s_receiver, (hws_ms_t) hws_random_below (&random, 300));
    }
    s_receiver.is_paused = false;
    for (int i = 0; i < SENDERS; i++) {
        detach (&senders[i]);
    }
    pass (&s_receiver, 20000);

    assert_int_equal (s_receiver.records, sent);
    assert_int_equal (s_receiver.clean, SENDERS);
    assert_true (sent > 1000);
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal (senders[i].tx.result, 0);
        assert_int_equal (senders[i].tx.state, HWS_TX_ENDED);
        hws_session_remove_sender (&senders[i]);
    }
    remove_anchor (&s_receiver);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_stream_goes_on_at_a_restarted_broker),
        TEST (what_the_receiver_has_not_consumed_comes_once),
        TEST (a_sender_that_finished_meanwhile_delivers_its_ending),
        TEST (an_ending_that_was_consumed_is_clean_at_both_ends),
        TEST (an_early_sender_that_was_not_answered_comes_once),
        TEST (a_cancel_that_the_receiver_missed_is_told_to_the_next_epoch),
        TEST (a_sender_whose_receiver_does_not_come_back_is_abandoned),
        TEST (a_sender_that_does_not_come_back_is_dropped),
        TEST (restarts_lose_and_double_nothing),
    };
    return cmocka_run_group_tests_name ("restarts of the broker", tests, NULL, NULL);
}
