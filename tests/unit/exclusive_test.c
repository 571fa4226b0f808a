/*  Exclusive anchors at their two ends: one sender at a time, and one that finalizes closes
 *  the anchor.
 */
#include "tests/support/blocks.h"
#include "tests/support/session_test.h"

/*  Whoever asks for the anchor `a` asks for an exclusive one.  */
static void open_exclusive (receiver_t *self)
{
    memset (self, 0, sizeof *self);
    self->core.notify = receiver_notified;
    self->core.options.kind = HWS_KIND_SPSC;
    snprintf (self->core.options.name, sizeof self->core.options.name, "a");
    hws_session_open (session (RECEIVER), s_network.now, &self->core);
    hws_rx_reader_init (&self->reader, &self->core.rx);
    settle (self);
}

static void finalize (hws_session_sender_t *self)
{
    assert_int_equal (hws_tx_finalize (&self->tx), 0);
    hws_session_changed (self);
}

/*  The type and the counts of the only run that the stream has to send.  */
static uint8_t take_ending (hws_tx_t *tx, hws_ending_t *ending)
{
    static uint8_t bytes[256];
    uint32_t count;
    const size_t size = hws_tx_take (tx, 1, bytes + HWS_BATCH_HEADER_SIZE,
                                     sizeof bytes - HWS_BATCH_HEADER_SIZE, 8, &count);
    hws_batch_put (bytes, HWS_BATCH_DATA, (uint16_t) count);
    hws_batch_t batch;
    hws_run_t run;
    assert_int_equal (count, 1);
    assert_int_equal (hws_batch_open (&batch, hws_bytes (bytes, HWS_BATCH_HEADER_SIZE + size)), 0);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    assert_int_equal (hws_ending_decode (run.body, ending), 0);
    return run.type;
}

static void begin_stream (hws_tx_t *tx)
{
    hws_tx_init (tx, &s_test_blocks);
    hws_tx_attached (tx, &(hws_attach_ok_t){.sender_id = 1, .initial_credit = 1});
}

/*  ---- The stream's own side ---- */

static void finalized_passes_a_full_window (void **state)
{
    (void) state;
    hws_tx_t tx;
    hws_ending_t ending;
    begin_stream (&tx);
    assert_int_equal (hws_tx_append (&tx, "abc", 3), 0);
    uint8_t room[64];
    uint32_t runs;
    hws_tx_take (&tx, 1, room, sizeof room, 8, &runs);
    assert_int_equal (hws_tx_append (&tx, "d", 1), HWS_EWOULD_BLOCK);

    assert_int_equal (hws_tx_finalize (&tx), 0);

    assert_int_equal (take_ending (&tx, &ending), HWS_RUN_FINALIZED);
    assert_int_equal (ending.cause, HWS_CAUSE_NONE);
    assert_int_equal (ending.records, 1);
    assert_int_equal (ending.bytes, 3);
    assert_int_equal (hws_tx_append (&tx, "d", 1), HWS_EENDED);
    hws_tx_fini (&tx);
}

static void first_of_two_clean_endings_counts (void **state)
{
    (void) state;
    hws_tx_t tx;
    hws_ending_t ending;
    begin_stream (&tx);
    assert_int_equal (hws_tx_detach (&tx), 0);

    assert_int_equal (hws_tx_finalize (&tx), 0);

    assert_int_equal (take_ending (&tx, &ending), HWS_RUN_DETACHED);
    assert_false (hws_tx_has_runs (&tx));
    hws_tx_fini (&tx);
}

/*  ---- Both ends ---- */

static void finalize_closes_spsc (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender, late;
    open_exclusive (&receiver);
    attach (&sender, SENDER, "a");
    settle (&receiver);
    assert_int_equal (send_record (&sender, 8), 0);

    finalize (&sender);
    settle (&receiver);

    assert_int_equal (receiver.records, 1);
    assert_int_equal (receiver.endings, 1);
    assert_int_equal (receiver.last_ending, HWS_EVENT_FINALIZED);
    assert_string_equal (receiver.last_cause, "");
    assert_int_equal (receiver.closed, 1);
    assert_string_equal (receiver.closed_cause, "finalized");
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    attach (&late, OTHER, "a");
    settle (&receiver);
    assert_int_equal (late.tx.result, HWS_ENOT_FOUND);
    hws_session_remove_sender (&late);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void second_sender_of_an_exclusive_anchor_is_refused (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t first, second;
    open_exclusive (&receiver);
    attach (&first, SENDER, "a");
    settle (&receiver);

    attach (&second, OTHER, "a");
    settle (&receiver);

    assert_int_equal (second.tx.state, HWS_TX_ENDED);
    assert_int_equal (second.tx.result, HWS_EMAX_SENDERS);
    assert_int_equal (first.tx.state, HWS_TX_OPEN);
    assert_int_equal (receiver.attached, 1);
    hws_session_remove_sender (&second);
    detach (&first);
    settle (&receiver);
    hws_session_remove_sender (&first);
    remove_anchor (&receiver);
}

static void next_sender_of_an_exclusive_anchor_gets_a_new_id (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t first, second;
    open_exclusive (&receiver);
    attach (&first, SENDER, "a");
    settle (&receiver);
    detach (&first);
    settle (&receiver);
    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (receiver.closed, 0);

    attach (&second, OTHER, "a");
    settle (&receiver);

    assert_int_equal (second.tx.state, HWS_TX_OPEN);
    assert_int_equal (second.tx.sender_id, 2);
    finalize (&second);
    settle (&receiver);
    assert_string_equal (receiver.closed_cause, "finalized");
    hws_session_remove_sender (&first);
    hws_session_remove_sender (&second);
    remove_anchor (&receiver);
}

static void finalized_on_mpsc_is_detached (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    finalize (&sender);
    settle (&receiver);

    assert_int_equal (receiver.last_ending, HWS_EVENT_DETACHED);
    assert_int_equal (receiver.closed, 0);
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

/*  ---- What crosses it ---- */

/*  A FINALIZED that has reached the receiver and was not read.  */
static void finalize_unread (receiver_t *receiver, hws_session_sender_t *sender)
{
    open_exclusive (receiver);
    attach (sender, SENDER, "a");
    settle (receiver);
    receiver->is_paused = true;
    finalize (sender);
    settle (receiver);
    assert_int_equal (sender->tx.state, HWS_TX_ENDING);
}

static void finalized_is_said_again_on_a_new_connection (void **state)
{
    (void) state;
    static const int ends[] = {SENDER, RECEIVER};
    for (size_t i = 0; i < 2; i++) {
        receiver_t receiver;
        hws_session_sender_t sender;
        finalize_unread (&receiver, &sender);

        network_cut (&s_network, ends[i]);
        receiver.is_paused = false;
        pass (&receiver, 6000);

        assert_int_equal (receiver.attached, 1);
        assert_int_equal (receiver.endings, 1);
        assert_int_equal (receiver.last_ending, HWS_EVENT_FINALIZED);
        assert_string_equal (receiver.closed_cause, "finalized");
        assert_int_equal (sender.tx.state, HWS_TX_ENDED);
        assert_int_equal (sender.tx.result, 0);
        hws_session_remove_sender (&sender);
        remove_anchor (&receiver);
    }
}

static void close_of_the_receiver_replaces_an_unread_finalized (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    finalize_unread (&receiver, &sender);

    hws_session_close (session (RECEIVER), s_network.now, &receiver.core, "enough");
    hws_rx_reader_discard (&receiver.reader);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.last_ending, HWS_EVENT_CANCELLED);
    assert_string_equal (receiver.last_cause, "receiver_closed");
    assert_string_equal (receiver.closed_cause, "receiver_closed");
    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (sender.tx.cause, "receiver_closed");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void cancel_of_the_sender_does_not_replace_its_finalized (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    finalize_unread (&receiver, &sender);

    hws_session_cancel (session (SENDER), s_network.now, &sender, "too late");
    settle (&receiver);
    receiver.is_paused = false;
    settle (&receiver);

    assert_int_equal (receiver.last_ending, HWS_EVENT_FINALIZED);
    assert_string_equal (receiver.closed_cause, "finalized");
    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (finalized_passes_a_full_window),
        cmocka_unit_test (first_of_two_clean_endings_counts),
        TEST (finalize_closes_spsc),
        TEST (second_sender_of_an_exclusive_anchor_is_refused),
        TEST (next_sender_of_an_exclusive_anchor_gets_a_new_id),
        TEST (finalized_on_mpsc_is_detached),
        TEST (finalized_is_said_again_on_a_new_connection),
        TEST (close_of_the_receiver_replaces_an_unread_finalized),
        TEST (cancel_of_the_sender_does_not_replace_its_finalized),
    };
    return cmocka_run_group_tests_name ("exclusive", tests, NULL, NULL);
}
