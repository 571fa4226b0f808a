/*  Liveness of a session: when it sends PING, when it leaves a broker, when it does not.  */
#include "tests/support/heap_count.h"
#include "tests/support/session_test.h"

#define INTERVAL 5000

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

static uint64_t pings (int client)
{
    return s_network.clients[client].pings;
}

static void open_with_interval (receiver_t *self, uint64_t interval_ms)
{
    memset (self, 0, sizeof *self);
    self->core.options.heartbeat_interval_ms =
        (hws_optional_t){.state = HWS_VALUE, .value = interval_ms};
    self->core.notify = receiver_notified;
    hws_session_open (session (RECEIVER), s_network.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    settle (self);
}

static void pings_keep_to_the_interval_of_the_streams (void **state)
{
    (void) state;
    receiver_t receiver;
    open_with_interval (&receiver, 20000);
    const uint64_t before = pings (RECEIVER);

    network_pass (&s_network, 100000);

    assert_in_range (pings (RECEIVER) - before, 9, 11);
    remove_anchor (&receiver);
}

static void interval_is_per_anchor (void **state)
{
    (void) state;
    receiver_t calm, hasty;
    open_with_interval (&calm, 1000);
    open_with_interval (&hasty, 100);
    network_pass (&s_network, 500); /* the earlier interval has run out */
    uint64_t before = pings (RECEIVER);

    network_pass (&s_network, 1000);
    assert_int_equal (pings (RECEIVER) - before, 20); /* as the hasty one asks */
    hws_session_close (session (RECEIVER), s_network.now, &hasty.core, "");
    network_settle (&s_network);
    network_pass (&s_network, 500);
    before = pings (RECEIVER);
    network_pass (&s_network, 10000);

    assert_int_equal (pings (RECEIVER) - before, 20); /* as the calm one does */
    remove_anchor (&hasty);
    remove_anchor (&calm);
}

static void any_message_resets_the_count (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    const uint64_t before = pings (SENDER) + pings (RECEIVER);

    for (int i = 0; i < 40; i++) { /* for ten intervals there is traffic both ways */
        send_record (&sender, 64);
        settle (&receiver);
        pass (&receiver, INTERVAL / 4);
    }

    assert_int_equal (receiver.records, 40);
    assert_int_equal (pings (SENDER) + pings (RECEIVER), before);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void any_message_resets_the_count_when_it_is_heard (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true; /* it acknowledges nothing: the sender hears nothing */
    const uint64_t sent = pings (SENDER), received = pings (RECEIVER);

    for (int i = 0; i < 20; i++) {
        for (int quarter = 0; quarter < 2; quarter++) {
            send_record (&sender, 64);
            pass (&receiver, INTERVAL / 4 - quarter);
        }
        assert_int_equal (pings (SENDER) - sent, i);
        assert_int_equal (pings (RECEIVER) - received, i);
        pass (&receiver, 1); /* half an interval after it last heard, or spoke */
        assert_int_equal (pings (SENDER) - sent, i + 1);
        assert_int_equal (pings (RECEIVER) - received, i + 1);
    }

    assert_int_equal (receiver.endings, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void one_timer_per_object (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    const size_t sending = heap_count (&session (SENDER)->timers);
    const size_t receiving = heap_count (&session (RECEIVER)->timers);

    receiver.is_paused = true;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal (send_record (&sender, 8), 0);
        network_settle (&s_network);
    }

    assert_int_equal (heap_count (&session (SENDER)->timers), sending);
    assert_int_equal (heap_count (&session (RECEIVER)->timers), receiving);
    receiver.is_paused = false;
    settle (&receiver);
    assert_int_equal (receiver.records, 1000);
    assert_int_equal (heap_count (&session (SENDER)->timers), sending);
    assert_int_equal (heap_count (&session (RECEIVER)->timers), receiving);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void judged_sender_is_told (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[SENDER].is_silent = true; /* it sleeps: nothing reaches it */
    pass (&receiver, 3 * INTERVAL - 1);
    assert_int_equal (receiver.endings, 0);
    pass (&receiver, 1);
    assert_int_equal (receiver.endings, 1);
    assert_string_equal (receiver.last_cause, "heartbeat");
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);

    s_network.clients[SENDER].is_silent = false;
    pass (&receiver, HWS_BACKOFF_MAX_MS);

    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "heartbeat");
    assert_int_equal (receiver.endings, 1);
    hws_session_remove_sender (&sender);
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

static void dead_broker_is_noticed (void **state)
{
    (void) state;
    s_network.clients[OTHER].is_silent = true;
    const hws_ms_t heard_at = session (OTHER)->heard_at;

    network_pass (&s_network, heard_at + 2 * INTERVAL - 1 - s_network.now);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_UP);
    network_pass (&s_network, 1);
    assert_int_equal (session (OTHER)->state, HWS_SESSION_DOWN);
    assert_string_equal (session (OTHER)->error, "the broker was silent for two intervals");

    const uint64_t connects = session (OTHER)->stats.connects;
    network_pass (&s_network, 60000);
    assert_true (session (OTHER)->stats.connects >= connects + 4); /* it goes on trying */
    s_network.clients[OTHER].is_silent = false;
    network_pass (&s_network, HWS_HELLO_WAIT_MS + HWS_BACKOFF_MAX_MS);
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
        TEST (interval_is_per_anchor),
        TEST (any_message_resets_the_count),
        TEST (any_message_resets_the_count_when_it_is_heard),
        TEST (one_timer_per_object),
        TEST (judged_sender_is_told),
        TEST (waiting_is_not_silence),
        TEST (dead_broker_is_noticed),
        TEST (broker_that_cannot_be_understood_is_left_too),
        TEST (late_client_does_not_judge),
        TEST (goodbye_is_answered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
