/*  The engine: a stream's record, its clean ending and a cancel of it that arrive in every
 *  order, each of them twice, and what begins in the turn in which something ended.
 */
#include "tests/support/engine_test.h"

#define INTERVAL     WORLD_INTERVAL_MS
#define RECORD_BYTES (HWS_RECORD_HEADER_SIZE + 8)

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_lively; /* of another client, which nobody else's faults concern */

static int begin_beside_another (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    s_lively = stream_attach (s_other, 1, s_handle);
    s_receiver->is_beating = true;
    s_other->is_beating = true;
    return 0;
}

/*  ---- In every order ---- */

typedef enum { RECORD, ENDING, CANCEL } part_t;

static const part_t s_orders[][3] = {
    {RECORD, ENDING, CANCEL}, {RECORD, CANCEL, ENDING}, {ENDING, RECORD, CANCEL},
    {ENDING, CANCEL, RECORD}, {CANCEL, RECORD, ENDING}, {CANCEL, ENDING, RECORD},
};

/*  The parts of a stream with their true numbers, whenever they arrive.  */
static void arrive (part_t part, stream_t stream, client_t *canceller)
{
    batch_t batch;

    if (part == CANCEL) {
        anchor_cancel (canceller, s_handle, stream.sender_id, "");
        return;
    }
    batch_begin (&batch, HWS_BATCH_DATA);
    const hws_run_t record = stream_records (&stream, 1, 8);
    batch_add_run (&batch, part == RECORD ? record : stream_ending (&stream, HWS_RUN_DETACHED));
    batch_send (&batch, stream.client);
}

/*  The receiver got its record at most once, nothing behind its ending, and one ending; a
 *  clean one may be replaced by that of its own cancel (docs/protocol.md, "CANCEL"). It
 *  acknowledges them.  */
static void take_one_ending_of (uint64_t routing)
{
    size_t records = 0;
    size_t clean = 0;
    size_t cancelled = 0;
    const heard_t *heard;

    while ((heard = client_next (s_receiver))) {
        if (heard->kind != HEARD_RUN || heard->run.stream != routing) {
            continue;
        }
        assert_int_equal (cancelled, 0);
        if (heard->run.type == HWS_RUN_RECORDS) {
            assert_int_equal (clean, 0);
            records++;
        } else if (heard->run.type == HWS_RUN_DETACHED) {
            clean++;
        } else {
            assert_int_equal (heard->run.type, HWS_RUN_CANCELLED);
            cancelled++;
        }
    }
    assert_true (records <= 1);
    assert_true (clean <= 1);
    assert_true (clean + cancelled > 0);
    if (cancelled > 0) {
        anchor_ack (s_receiver, routing, records, records * RECORD_BYTES, true);
    } else {
        anchor_ack (s_receiver, routing, 2, RECORD_BYTES + HWS_ENDING_HEADER_SIZE, true);
    }
}

static void arrive_in_order (const part_t order[3], bool is_each_twice, uint64_t session_id,
                             client_t *canceller)
{
    const stream_t stream = stream_attach (s_sender, session_id, s_handle);

    client_forget (s_receiver);
    for (int i = 0; i < 6; i++) {
        arrive (order[is_each_twice ? i / 2 : i % 3], stream, canceller);
    }
    take_one_ending_of (stream.routing);
    client_forget (s_sender);

    /*  The other stream is as it was.  */
    const uint64_t seq = s_lively.next_seq;
    stream_send (&s_lively, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_lively.routing, seq, 1);
    anchor_ack (s_receiver, s_lively.routing, s_lively.next_seq, s_lively.next_bytes, false);
}

static void cancel_everywhere (client_t *canceller)
{
    uint64_t session_id = 10;

    for (size_t i = 0; i < 6; i++) {
        arrive_in_order (s_orders[i], true, session_id++, canceller);
        arrive_in_order (s_orders[i], false, session_id++, canceller);
    }

    const hws_engine_stats_t *const stats = hws_engine_stats (s_world.engine);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
    assert_int_equal (stats->protocol_errors, 0);
    assert_int_equal (stats->dropped, 0);
    assert_int_equal (stats->attached, stats->detached + stats->cancelled + 1);
}

static void record_ending_and_cancel_of_the_sender_in_every_order_twice (void **state)
{
    (void) state;
    cancel_everywhere (s_sender);
}

static void record_ending_and_cancel_of_the_receiver_in_every_order_twice (void **state)
{
    (void) state;
    cancel_everywhere (s_receiver);
}

/*  ---- In one turn ---- */

static void attach_in_the_turn_of_a_drop_has_a_deadline_of_its_own (void **state)
{
    (void) state;
    const stream_t first = stream_attach (s_sender, 10, s_handle);
    client_forget (s_receiver);
    world_advance (&s_world, 3 * INTERVAL);
    expect_ending (s_receiver, first.routing, HWS_RUN_DROPPED, "heartbeat");

    client_reconnect (s_sender);
    const stream_t second = stream_attach (s_sender, 11, s_handle);
    client_forget (s_receiver);
    world_advance (&s_world, 3 * INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, second.routing, HWS_RUN_DROPPED, "heartbeat");
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 2);
}

#define BESIDE(name) cmocka_unit_test_setup_teardown (name, begin_beside_another, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BESIDE (record_ending_and_cancel_of_the_sender_in_every_order_twice),
        BESIDE (record_ending_and_cancel_of_the_receiver_in_every_order_twice),
        BESIDE (attach_in_the_turn_of_a_drop_has_a_deadline_of_its_own),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
