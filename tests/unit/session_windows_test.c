/*  Windows from end to end: sessions and an engine that lends, asks back, and is not heard.  */
#include "tests/support/session_test.h"

enum { SENDERS = 3, RECORDS = 2000, RECORD = 200, BUFFER = 131072, TURN = 150 };

static receiver_t s_receiver;
static hws_session_sender_t s_senders[SENDERS];

/*  An anchor with room for four floors, and as much to lend.  */
static void begin_streams (const char *name)
{
    memset (&s_receiver, 0, sizeof s_receiver);
    s_receiver.core.notify = receiver_notified;
    s_receiver.core.options.buffer_bytes = (hws_optional_t){HWS_VALUE, BUFFER};
    snprintf (s_receiver.core.options.name, sizeof s_receiver.core.options.name, "%s", name);
    hws_session_open (session (RECEIVER), s_network.now, &s_receiver.core);
    hws_rx_reader_init (&s_receiver.reader, &s_receiver.core.rx);
    for (int i = 0; i < SENDERS; i++) {
        attach (&s_senders[i], i % 2 ? OTHER : SENDER, name);
    }
    settle (&s_receiver);
}

static void end_streams (void)
{
    for (int i = 0; i < SENDERS; i++) {
        hws_session_remove_sender (&s_senders[i]);
    }
    remove_anchor (&s_receiver);
}

/*  The senders write by turns, each as much as it may, and are idle in between.  */
static void no_lost_grant_or_window_stops_a_stream (void **state)
{
    (void) state;
    static const unsigned every[] = {10, 7, 3};
    static const char *const names[] = {"a", "b", "c"};
    for (size_t i = 0; i < sizeof every / sizeof *every; i++) {
        begin_streams (names[i]);
        s_network.clients[SENDER].lost_nth = s_network.clients[OTHER].lost_nth = every[i];
        const uint64_t returns_before = hws_engine_stats (s_network.engine)->returns;
        const hws_ms_t began_at = s_network.now;

        uint64_t left = SENDERS * RECORDS;
        for (int turn = 0; left > 0; turn++) {
            hws_session_sender_t *const sender = &s_senders[turn / TURN % SENDERS];
            while (sender->tx.records < RECORDS && send_record (sender, RECORD) == 0) {
                left--;
            }
            pass (&s_receiver, 50);
            assert_true (s_network.now - began_at < 600000);
        }
        pass (&s_receiver, 60000);

        assert_int_equal (s_receiver.records, SENDERS * RECORDS);
        assert_true (hws_engine_stats (s_network.engine)->returns > returns_before);
        assert_int_equal (hws_engine_stats (s_network.engine)->credit_violations, 0);
        assert_true (s_network.clients[SENDER].lost > 0 && s_network.clients[OTHER].lost > 0);
        s_network.clients[SENDER].lost_nth = s_network.clients[OTHER].lost_nth = 0;
        end_streams ();
    }
}

static void window_that_was_full_for_a_minute_opens_at_once (void **state)
{
    (void) state;
    begin_streams ("a");
    s_receiver.is_paused = true;
    for (int seconds = 0; seconds < 60; seconds++) {
        for (int i = 0; i < SENDERS; i++) {
            while (send_record (&s_senders[i], RECORD) == 0) {
            }
        }
        pass (&s_receiver, 1000);
    }
    const uint64_t before = s_senders[0].tx.records;
    const hws_ms_t opens_at = s_network.now;
    s_receiver.is_paused = false;

    settle (&s_receiver);
    for (int i = 0; i < SENDERS; i++) {
        for (uint64_t sent = 0; sent < RECORDS; sent++) {
            if (send_record (&s_senders[i], RECORD) != 0) {
                settle (&s_receiver); /* messages pass, and no time */
                assert_int_equal (send_record (&s_senders[i], RECORD), 0);
            }
        }
    }

    assert_true (before > 0);
    assert_true (s_network.now == opens_at);
    end_streams ();
}

static void large_record_gets_its_room_from_idle_windows (void **state)
{
    (void) state;
    begin_streams ("a");
    for (int i = 0; i < 2; i++) {
        for (int sent = 0; sent < 500; sent++) {
            while (send_record (&s_senders[i], RECORD) != 0) {
                settle (&s_receiver);
            }
        }
        settle (&s_receiver);
    }

    const size_t size = BUFFER / 2 - 1000;
    assert_int_equal (send_record (&s_senders[2], size), HWS_EWOULD_BLOCK);
    hws_session_changed (&s_senders[2]);
    settle (&s_receiver);

    assert_int_equal (send_record (&s_senders[2], size), 0);
    settle (&s_receiver);
    assert_int_equal (s_receiver.records, 1001);
    end_streams ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (no_lost_grant_or_window_stops_a_stream),
        TEST (window_that_was_full_for_a_minute_opens_at_once),
        TEST (large_record_gets_its_room_from_idle_windows),
    };
    return cmocka_run_group_tests_name ("windows of sessions", tests, NULL, NULL);
}
