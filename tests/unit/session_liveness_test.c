/*  Liveness of a session: when it sends PING, when it leaves a broker, when it does not.  */
#include "tests/support/session_test.h"

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

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (idle_client_pings_every_half_interval),
        TEST (pings_keep_to_the_interval_of_the_streams),
        TEST (waiting_is_not_silence),
        TEST (silent_broker_is_left_after_two_intervals),
        TEST (broker_that_cannot_be_understood_is_left_too),
        TEST (late_client_does_not_judge),
        TEST (goodbye_is_answered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
