/*  Exclusive anchors at their two ends: one sender at a time, and one that finalizes closes
 *  the anchor.
 */
#include "tests/support/session_test.h"

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
    hws_tx_init (tx);
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

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (finalized_passes_a_full_window),
        cmocka_unit_test (first_of_two_clean_endings_counts),
        TEST (finalized_on_mpsc_is_detached),
    };
    return cmocka_run_group_tests_name ("exclusive", tests, NULL, NULL);
}
