/*  What a client holds back so that it leaves together: a linger, and flushes by hand.  */
#include "tests/support/session_test.h"

enum { STREAMS = 10, LINGER_MS = 20, SMALL_BATCH = 8192 };

static hws_session_sender_t s_senders[STREAMS];
static receiver_t s_receiver;
static uint64_t s_written; /* messages with records, before */

/*  Ten streams of one client, which lingers so.  */
static void begin (int64_t linger_ms)
{
    session (SENDER)->options.linger_ms = linger_ms;
    open_anchor (&s_receiver, "a");
    for (int i = 0; i < STREAMS; i++) {
        attach (&s_senders[i], SENDER, "a");
    }
    settle (&s_receiver);
    s_written = s_network.clients[SENDER].data;
}

static void end (void)
{
    for (int i = 0; i < STREAMS; i++) {
        hws_session_remove_sender (&s_senders[i]);
    }
    assert_int_equal (session (SENDER)->held_bytes, 0);
    remove_anchor (&s_receiver);
}

/*  One record of each stream.  */
static void write_pass (void)
{
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal (send_record (&s_senders[i], 40), 0);
    }
}

static uint64_t written (void)
{
    return s_network.clients[SENDER].data - s_written;
}

/*  ---- By hand ---- */

static void manual_flush_makes_one_message (void **state)
{
    (void) state;
    begin (HWS_FOREVER);

    for (uint64_t pass_number = 1; pass_number <= 5; pass_number++) {
        write_pass ();
        settle (&s_receiver);
        assert_int_equal (written (), pass_number - 1);
        assert_true (hws_session_flush (session (SENDER)));
        settle (&s_receiver);

        assert_int_equal (written (), pass_number);
        assert_int_equal (s_receiver.records, pass_number * STREAMS);
    }
    end ();
}

static void flush_of_nothing_writes_nothing (void **state)
{
    (void) state;
    begin (HWS_FOREVER);

    assert_false (hws_session_flush (session (SENDER)));
    settle (&s_receiver);

    assert_int_equal (written (), 0);
    end ();
}

static void records_behind_a_flush_are_of_the_next_message (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    write_pass ();
    hws_session_flush (session (SENDER));
    for (int i = 0; i < 3; i++) { /* another thread, before the message is made */
        send_record (&s_senders[i], 2000);
    }

    settle (&s_receiver);
    assert_int_equal (written (), 1);
    assert_int_equal (s_receiver.records, STREAMS);
    hws_session_flush (session (SENDER));
    settle (&s_receiver);

    assert_int_equal (written (), 2);
    assert_int_equal (s_receiver.records, STREAMS + 3);
    end ();
}

static void flush_without_a_connection_is_kept (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    s_network.clients[SENDER].is_refused = true;
    network_cut (&s_network, SENDER);
    write_pass ();
    assert_false (hws_session_flush (session (SENDER)));

    s_network.clients[SENDER].is_refused = false;
    pass (&s_receiver, HWS_BACKOFF_MAX_MS);

    assert_int_equal (s_receiver.records, STREAMS);
    end ();
}

static void what_is_sent_again_waits_for_no_flush (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    s_network.clients[SENDER].is_silent = true;
    write_pass ();
    hws_session_flush (session (SENDER));
    settle (&s_receiver);
    assert_int_equal (s_receiver.records, 0);

    s_network.clients[SENDER].is_silent = false;
    network_cut (&s_network, SENDER);
    pass (&s_receiver, HWS_BACKOFF_MAX_MS);

    assert_int_equal (s_receiver.records, STREAMS);
    end ();
}

/*  ---- By the time ---- */

static void linger_batches (void **state)
{
    (void) state;
    begin (LINGER_MS);
    send_record (&s_senders[0], 40);
    settle (&s_receiver);
    pass (&s_receiver, LINGER_MS - 1);
    for (int i = 1; i < STREAMS; i++) {
        send_record (&s_senders[i], 40);
    }
    settle (&s_receiver);
    assert_int_equal (written (), 0);

    pass (&s_receiver, 1);

    assert_int_equal (written (), 1);
    assert_int_equal (s_receiver.records, STREAMS);
    end ();
}

static void linger_begins_with_the_first_record (void **state)
{
    (void) state;
    begin (LINGER_MS);
    write_pass ();
    settle (&s_receiver);
    hws_session_flush (session (SENDER));
    settle (&s_receiver);
    pass (&s_receiver, LINGER_MS - 1);

    write_pass ();
    settle (&s_receiver);
    pass (&s_receiver, LINGER_MS - 1);
    assert_int_equal (written (), 1);
    pass (&s_receiver, 1);

    assert_int_equal (written (), 2);
    end ();
}

static void the_thread_is_told_of_the_first_record_only (void **state)
{
    (void) state;
    begin (LINGER_MS);

    assert_int_equal (hws_tx_append (&s_senders[0].tx, "x", 1), 0);
    assert_true (hws_session_changed (&s_senders[0]));
    assert_int_equal (hws_tx_append (&s_senders[1].tx, "x", 1), 0);
    assert_false (hws_session_changed (&s_senders[1]));

    end ();
}

/*  A full batch goes without a connection too, as far as it can; what comes behind it lingers
 *  anew.  */
static void the_thread_is_told_of_the_first_record_behind_a_full_batch (void **state)
{
    (void) state;
    session (SENDER)->batch_bytes = SMALL_BATCH;
    begin (LINGER_MS);
    s_network.clients[SENDER].is_refused = true;
    network_cut (&s_network, SENDER);
    static const char record[1000];
    const size_t fit = (SMALL_BATCH - HWS_BATCH_HEADER_SIZE - HWS_RUN_HEADER_SIZE) /
                       (HWS_RECORD_HEADER_SIZE + sizeof record);
    unsigned told = 0;

    for (size_t i = 0; i < 2 * fit + 1; i++) {
        assert_int_equal (hws_tx_append (&s_senders[i / fit].tx, record, sizeof record), 0);
        told += hws_session_changed (&s_senders[i / fit]);
    }

    assert_int_equal (told, 3);
    end ();
}

/*  ---- What does not wait ---- */

static void a_full_batch_leaves_at_once (void **state)
{
    (void) state;
    session (SENDER)->batch_bytes = SMALL_BATCH;
    begin (HWS_FOREVER);
    const size_t size = 500;
    const size_t room = SMALL_BATCH - HWS_BATCH_HEADER_SIZE - STREAMS * HWS_RUN_HEADER_SIZE;
    const uint64_t fit = room / (HWS_RECORD_HEADER_SIZE + size);

    for (uint64_t i = 0; i < 2 * fit; i++) {
        send_record (&s_senders[i % STREAMS], size);
        settle (&s_receiver);
        assert_int_equal (s_receiver.records, i >= fit ? fit : 0);
    }
    send_record (&s_senders[0], size);
    settle (&s_receiver);

    assert_int_equal (written (), 2);
    assert_int_equal (s_receiver.records, 2 * fit);
    end ();
}

static void a_waiting_send_flushes (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    send_record (&s_senders[1], 40);
    uint64_t sent = 0;
    s_receiver.is_paused = true;

    while (send_record (&s_senders[0], 40) == 0) {
        sent++;
    }
    settle (&s_receiver);
    s_receiver.is_paused = false;
    settle (&s_receiver);

    assert_int_equal (s_receiver.next[s_senders[0].tx.sender_id], sent);
    assert_int_equal (s_receiver.next[s_senders[1].tx.sender_id], 0);
    assert_int_equal (send_record (&s_senders[0], 40), 0);
    end ();
}

static void an_ending_leaves_with_the_records_before_it (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    write_pass ();

    detach (&s_senders[0]);
    settle (&s_receiver);

    assert_int_equal (written (), 1);
    assert_int_equal (s_receiver.records, 1);
    assert_int_equal (s_senders[0].tx.state, HWS_TX_ENDED);
    hws_session_flush (session (SENDER));
    settle (&s_receiver);
    assert_int_equal (written (), 2);
    assert_int_equal (s_receiver.records, STREAMS);
    end ();
}

static void an_error_waits_like_a_record (void **state)
{
    (void) state;
    begin (HWS_FOREVER);

    hws_tx_append_error (&s_senders[0].tx, "oops", 4);
    hws_session_changed (&s_senders[0]);
    settle (&s_receiver);
    assert_int_equal (s_receiver.errors, 0);
    hws_session_flush (session (SENDER));
    settle (&s_receiver);

    assert_int_equal (s_receiver.errors, 1);
    end ();
}

static void what_waits_is_gone_with_its_stream (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    write_pass ();

    hws_session_cancel (session (SENDER), s_network.now, &s_senders[0], "enough");
    settle (&s_receiver);
    hws_session_flush (session (SENDER));
    settle (&s_receiver);

    assert_int_equal (s_senders[0].tx.state, HWS_TX_ENDED);
    assert_int_equal (s_receiver.records, STREAMS - 1);
    assert_int_equal (written (), 1);
    end ();
}

static void a_long_stretch_leaves_with_the_others (void **state)
{
    (void) state;
    begin (HWS_FOREVER);
    while (send_record (&s_senders[0], HWS_TX_LENT_MIN) == HWS_EWOULD_BLOCK) {
        settle (&s_receiver); /* it asks for a larger window */
    }
    for (int i = 1; i < STREAMS; i++) {
        send_record (&s_senders[i], 40);
    }

    hws_session_flush (session (SENDER));
    settle (&s_receiver);

    assert_int_equal (written (), 1); /* alone the first would have left without a copy */
    assert_int_equal (s_receiver.records, STREAMS);
    end ();
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (manual_flush_makes_one_message),
        TEST (flush_of_nothing_writes_nothing),
        TEST (records_behind_a_flush_are_of_the_next_message),
        TEST (flush_without_a_connection_is_kept),
        TEST (what_is_sent_again_waits_for_no_flush),
        TEST (linger_batches),
        TEST (linger_begins_with_the_first_record),
        TEST (the_thread_is_told_of_the_first_record_only),
        TEST (the_thread_is_told_of_the_first_record_behind_a_full_batch),
        TEST (a_full_batch_leaves_at_once),
        TEST (a_waiting_send_flushes),
        TEST (an_ending_leaves_with_the_records_before_it),
        TEST (an_error_waits_like_a_record),
        TEST (what_waits_is_gone_with_its_stream),
        TEST (a_long_stretch_leaves_with_the_others),
    };
    return cmocka_run_group_tests_name ("session flush", tests, NULL, NULL);
}
