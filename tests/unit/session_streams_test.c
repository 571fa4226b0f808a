/*  Streams and anchors of a session, from end to end: data, windows, cancels, gaps.  */
#include "tests/support/blocks.h"
#include "tests/support/session_test.h"
#include "tests/support/test_seed.h"

/*  ---- A stream from end to end ---- */

static void stream_is_attached_read_and_ended (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);

    for (int i = 0; i < 100; i++) {
        assert_int_equal (send_record (&sender, 64), 0);
    }
    detach (&sender);
    settle (&receiver);

    assert_int_equal (receiver.attached, 1);
    assert_int_equal (receiver.records, 100);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    assert_int_equal (sender.tx.acked_records, 100);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void two_anchors_on_one_client_are_kept_apart (void **state)
{
    (void) state;
    receiver_t a, b;
    hws_session_sender_t to_a, to_b;
    open_anchor (&a, "a");
    open_anchor (&b, "b");
    attach (&to_a, SENDER, "a");
    attach (&to_b, SENDER, "b");
    settle (&a);

    send_record (&to_b, 64);
    settle (&a);
    settle (&b);

    assert_int_equal (a.attached, 1);
    assert_int_equal (a.records, 0);
    assert_int_equal (b.attached, 1);
    assert_int_equal (b.records, 1);
    hws_session_remove_sender (&to_a);
    hws_session_remove_sender (&to_b);
    remove_anchor (&a);
    remove_anchor (&b);
}

static void records_of_many_streams_share_a_batch (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t senders[10];
    open_anchor (&receiver, "a");
    for (int i = 0; i < 10; i++) {
        attach (&senders[i], SENDER, "a");
    }
    settle (&receiver);
    const uint64_t before = s_network.clients[SENDER].data;

    for (int i = 0; i < 10; i++) {
        send_record (&senders[i], 64);
    }
    settle (&receiver);

    assert_int_equal (s_network.clients[SENDER].data - before, 1);
    assert_int_equal (receiver.records, 10);
    for (int i = 0; i < 10; i++) {
        hws_session_remove_sender (&senders[i]);
    }
    remove_anchor (&receiver);
}

static void oversized_record_moves (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    const size_t large = (size_t) sender.tx.record_bytes;
    assert_true (large > sender.tx.limit_bytes);

    assert_int_equal (send_record (&sender, large + 1), HWS_ETOO_LARGE);
    assert_int_equal (send_record (&sender, 64), 0);
    for (int i = 0; i < 3; i++) {
        while (send_record (&sender, large) == HWS_EWOULD_BLOCK) {
            settle (&receiver);
        }
        settle (&receiver);
    }

    assert_int_equal (receiver.records, 4);
    assert_int_equal (receiver.bytes, 64 + 3 * large);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  Takes what the client would send next, without delivering it: the verb of a control
 *  message, or null for a batch, with the streams of its runs.  */
static const char *take_message (int client, uint64_t *streams, size_t *count)
{
    static uint8_t buffer[NETWORK_BATCH_BYTES];
    hws_action_t action;
    assert_true (hws_session_pop (session (client), s_network.now, buffer, sizeof buffer, &action));
    *count = 0;
    if (action.verb) {
        free (action.data);
        return action.verb;
    }
    hws_batch_t batch;
    hws_run_t run;
    test_gather (&action, buffer, sizeof buffer);
    assert_int_equal (hws_batch_open (&batch, hws_bytes (buffer, action.size)), 0);
    while (hws_batch_next_run (&batch, &run) == 1) {
        streams[(*count)++] = run.stream;
    }
    return NULL;
}

static void large_record_travels_in_parts (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t large, small;
    open_anchor (&receiver, "a");
    attach (&large, SENDER, "a");
    attach (&small, SENDER, "a");
    settle (&receiver);
    const size_t size = (size_t) large.tx.record_bytes;
    assert_int_equal (send_record (&large, size), HWS_EWOULD_BLOCK);
    settle (&receiver); /* it is granted the room */
    assert_int_equal (send_record (&large, size), 0);
    uint64_t streams[HWS_BATCH_ITEMS_MAX];
    size_t count;

    assert_null (take_message (SENDER, streams, &count));
    assert_int_equal (count, 1);
    assert_int_equal (streams[0], large.session_id);
    send_record (&small, 64);
    s_network.now += 2500; /* half an interval */
    hws_session_expire (session (SENDER), s_network.now);

    assert_string_equal (take_message (SENDER, streams, &count), "PING");
    assert_null (take_message (SENDER, streams, &count)); /* the part whose turn it is */
    assert_int_equal (streams[0], large.session_id);
    assert_null (take_message (SENDER, streams, &count));
    assert_int_equal (streams[0], small.session_id);
    assert_true (hws_tx_has_runs (&large.tx)); /* not a third of it is sent */
    assert_true (large.tx.next_seq * 3 < large.tx.end_seq);
    hws_session_remove_sender (&large);
    hws_session_remove_sender (&small);
    remove_anchor (&receiver);
}

enum { TRICKLES = 9, READS_A_MS = 20 };

/*  One sender floods, nine say something now and then, some on its own connection; the
 *  receiver reads less than there is. What a trickled record waits for is what fits into
 *  the window of the flood, and no more.  */
static void fast_sender_does_not_starve_others (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t flood, trickles[TRICKLES];
    hws_ms_t sent_at[TRICKLES] = {0};
    open_anchor (&receiver, "a");
    attach (&flood, SENDER, "a");
    settle (&receiver);
    for (int i = 0; i < TRICKLES; i++) {
        attach (&trickles[i], i % 2 ? SENDER : OTHER, "a");
        settle (&receiver);
    }
    const hws_ms_t longest = (1000 + TRICKLES) / READS_A_MS + 2;
    uint64_t trickled = 0;

    for (int ms = 0; ms < 2000; ms++) {
        for (int i = 0; i < TRICKLES; i++) {
            if (ms < 1900 && ms % 100 == 7 * i) {
                assert_int_equal (send_record (&trickles[i], 8), 0);
                sent_at[i] = s_network.now;
            }
        }
        while (send_record (&flood, 8) == 0) {
        }
        network_settle (&s_network);
        for (int reads = 0; reads < READS_A_MS && read_event (&receiver); reads++) {
        }
        hws_rx_reader_publish (&receiver.reader); /* as the client's thread does */
        for (int i = 0; i < TRICKLES; i++) {
            const uint64_t read = receiver.next[trickles[i].tx.sender_id];
            const bool is_waiting = read < trickles[i].tx.records;
            assert_true (!is_waiting || s_network.now - sent_at[i] <= longest);
        }
        network_pass (&s_network, 1);
    }

    for (int i = 0; i < TRICKLES; i++) {
        trickled += receiver.next[trickles[i].tx.sender_id];
        hws_session_remove_sender (&trickles[i]);
    }
    assert_int_equal (trickled, TRICKLES * 19);
    assert_true (receiver.records > 2000 * READS_A_MS * 9 / 10);
    hws_session_remove_sender (&flood);
    remove_anchor (&receiver);
}

static void sender_waits_for_a_receiver_that_does_not_read (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    uint64_t sent = 0;

    for (int i = 0; i < 20; i++) {
        while (send_record (&sender, 1000) == 0) {
            sent++;
        }
        pass (&receiver, 5000);
    }
    assert_true (sent * 1004 <= 1 << 16);
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.records, sent);
    assert_int_equal (send_record (&sender, 1000), 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- Cancel ---- */

static void cancel_one_sender (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t one, two;
    open_anchor (&receiver, "a");
    attach (&one, SENDER, "a");
    attach (&two, OTHER, "a");
    settle (&receiver);

    assert_int_equal (hws_rx_cancel_sender (&receiver.core.rx, one.tx.sender_id, "enough"), 0);
    settle (&receiver);
    send_record (&two, 64);
    settle (&receiver);

    assert_int_equal (one.tx.result, HWS_ECANCELLED);
    assert_string_equal (one.tx.cause, "requested");
    assert_string_equal (one.tx.reason, "enough");
    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_reason, "enough");
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&one);
    hws_session_remove_sender (&two);
    remove_anchor (&receiver);
}

static void broker_made_ending_moves_no_position (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    for (int i = 0; i < 48; i++) {
        send_record (&sender, 64);
    }
    network_settle (&s_network);
    for (int i = 0; i < 40; i++) {
        assert_true (read_event (&receiver));
    }
    hws_rx_reader_publish (&receiver.reader);
    network_settle (&s_network);

    hws_rx_cancel_sender (&receiver.core.rx, sender.tx.sender_id, "enough");
    send_record (&sender, 64); /* too late */
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_int_equal (sender.tx.acked_records, 40 - 1); /* what is read is not yet consumed */
    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.records, 48);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void cancel_anchor_reaches_every_sender (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t one, two;
    open_anchor (&receiver, "a");
    attach (&one, SENDER, "a");
    attach (&two, OTHER, "a");
    settle (&receiver);
    receiver.is_paused = true;
    send_record (&one, 64);
    settle (&receiver);
    receiver.is_paused = false;

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "done");
    hws_rx_reader_discard (&receiver.reader);
    settle (&receiver);

    assert_int_equal (one.tx.result, HWS_ECANCELLED);
    assert_string_equal (one.tx.cause, "receiver_closed");
    assert_int_equal (two.tx.result, HWS_ECANCELLED);
    assert_int_equal (receiver.records, 0);
    assert_int_equal (receiver.endings, 2);
    assert_int_equal (receiver.closed, 1);
    assert_int_equal (hws_engine_counts (s_network.engine).anchors, 0);
    hws_session_remove_sender (&one);
    hws_session_remove_sender (&two);
    remove_anchor (&receiver);
}

static void senders_own_cancel_is_interrupted (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    hws_session_cancel (session (SENDER), s_network.now, &sender, "SIGINT");
    settle (&receiver);

    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (receiver.last_cause, "interrupted");
    assert_string_equal (receiver.last_reason, "SIGINT");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void run_ahead_opens_the_anchor_again (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    s_network.clients[RECEIVER].to_lose = 1;

    for (int i = 0; i < 3; i++) {
        send_record (&sender, 64);
        settle (&receiver);
    }

    assert_int_equal (receiver.records, 3);
    assert_int_equal (session (RECEIVER)->stats.gaps, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static const hws_rx_stream_t *only_stream (const receiver_t *receiver)
{
    assert_int_equal (receiver->core.rx.live.count, 1);
    return hws_container_of (receiver->core.rx.live.head, hws_rx_stream_t, link);
}

static void run_of_a_newer_type_is_no_gap (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    uint8_t message[HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE];
    hws_batch_put (message, HWS_BATCH_DATA, 1);
    hws_run_put (message + HWS_BATCH_HEADER_SIZE,
                 &(hws_run_t){.stream = only_stream (&receiver)->id, .count = 2, .type = 200});

    hws_session_batch (session (RECEIVER), s_network.now, hws_bytes (message, sizeof message),
                       NULL);

    assert_int_equal (only_stream (&receiver)->next_seq, 2);
    assert_int_equal (session (RECEIVER)->stats.gaps, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void unknown_stream_kills_nothing (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    static const char json[] = "{\"session_id\":\"1\",\"code\":\"unknown_stream\"}";

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text (json));
    settle (&receiver);
    send_record (&sender, 64);
    settle (&receiver);

    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void unknown_stream_kills_nothing_when_its_attach_is_under_way (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    static const char json[] = "{\"session_id\":\"1\",\"code\":\"unknown_stream\"}";
    const uint64_t said = s_network.clients[SENDER].said;

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text (json));
    settle (&receiver);

    assert_int_equal (s_network.clients[SENDER].said, said + 1); /* one ATTACH */
    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    send_record (&sender, 64);
    settle (&receiver);
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void gap_again_and_again_is_no_storm (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    uint8_t message[HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE];
    hws_batch_put (message, HWS_BATCH_DATA, 1);
    hws_run_put (
        message + HWS_BATCH_HEADER_SIZE,
        &(hws_run_t){
            .stream = only_stream (&receiver)->id, .first_seq = 100, .count = 2, .type = 200});

    for (int i = 0; i < 1000; i++) {
        hws_session_batch (session (RECEIVER), s_network.now, hws_bytes (message, sizeof message),
                           NULL);
        pass (&receiver, 1);
    }

    assert_in_range (session (RECEIVER)->stats.gaps, 5, 6);
    pass (&receiver, HWS_AGAIN_MS);
    send_record (&sender, 64);
    settle (&receiver);
    assert_int_equal (receiver.records, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- Random runs ---- */

/*  Senders on two clients, a receiver that reads now and then, connections that end at any
 *  moment: every record arrives once and in order, every sender ends once.  */
static void random_cuts_lose_and_double_nothing (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    for (size_t round = 0; round < test_scaled (30); round++) {
        receiver_t receiver;
        hws_session_sender_t senders[4];
        open_anchor (&receiver, "a");
        for (int i = 0; i < 4; i++) {
            attach (&senders[i], i % 2 ? SENDER : OTHER, "a");
        }
        settle (&receiver);
        for (int step = 0; step < 2000; step++) {
            const uint64_t dice = hws_random_below (&random, 1000);
            if (dice < 600) {
                const size_t most = dice < 10 ? 200000 : dice < 100 ? 5000 : 200;
                send_record (&senders[dice % 4], 8 + (size_t) hws_random_below (&random, most));
            } else if (dice < 900) {
                receiver.is_paused = dice % 2;
                settle (&receiver);
            } else if (dice < 990) {
                pass (&receiver, (hws_ms_t) hws_random_below (&random, 300));
            } else {
                const int cut = (int) (dice % 3);
                if (s_network.clients[cut].connection) {
                    network_cut (&s_network, cut);
                }
            }
        }
        receiver.is_paused = false;
        pass (&receiver, 8000);
        uint64_t sent = 0;
        for (int i = 0; i < 4; i++) {
            sent += senders[i].tx.records;
            detach (&senders[i]);
        }
        pass (&receiver, 1000);
        assert_int_equal (receiver.records, sent);
        assert_int_equal (receiver.endings, 4);
        for (int i = 0; i < 4; i++) {
            assert_int_equal (senders[i].tx.state, HWS_TX_ENDED);
            assert_int_equal (senders[i].tx.result, 0);
            hws_session_remove_sender (&senders[i]);
        }
        hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "");
        settle (&receiver);
        assert_int_equal (receiver.closed, 1);
        remove_anchor (&receiver);
        assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal (session (i)->stats.protocol_errors, 0);
    }
    assert_int_equal (hws_engine_stats (s_network.engine)->protocol_errors, 0);
    assert_int_equal (hws_engine_stats (s_network.engine)->credit_violations, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (stream_is_attached_read_and_ended),
        TEST (two_anchors_on_one_client_are_kept_apart),
        TEST (records_of_many_streams_share_a_batch),
        TEST (oversized_record_moves),
        TEST (large_record_travels_in_parts),
        TEST (fast_sender_does_not_starve_others),
        TEST (sender_waits_for_a_receiver_that_does_not_read),
        TEST (cancel_one_sender),
        TEST (broker_made_ending_moves_no_position),
        TEST (cancel_anchor_reaches_every_sender),
        TEST (senders_own_cancel_is_interrupted),
        TEST (run_ahead_opens_the_anchor_again),
        TEST (run_of_a_newer_type_is_no_gap),
        TEST (unknown_stream_kills_nothing),
        TEST (unknown_stream_kills_nothing_when_its_attach_is_under_way),
        TEST (gap_again_and_again_is_no_storm),
        TEST (random_cuts_lose_and_double_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
