/*  The engine: exclusive anchors. One sender at a time, and finalize closes.
 */
#include "tests/support/engine_test.h"

#define INTERVAL WORLD_INTERVAL_MS

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_stream;

static int begin_attached (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    const hws_open_t exclusive = {.kind = HWS_KIND_SPSC};
    s_handle = anchor_open (s_receiver, 1, "results", &exclusive);
    s_stream = stream_attach (s_sender, 1, s_handle);
    client_forget (s_receiver);
    return 0;
}

static void finalize (void)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_ending (&s_stream, HWS_RUN_FINALIZED));
    batch_send (&batch, s_sender);
}

/*  The receiver's connection breaks, and everything is to be said again.  */
static void rewind_all (void)
{
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "results", &(hws_open_t){.kind = HWS_KIND_SPSC});
    client_forget (s_receiver);
    client_forget (s_sender);
    s_stream.next_seq = s_stream.next_bytes = 0;
}

static void ack_all (void)
{
    anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, true);
}

static const char *closed_as (void)
{
    return client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code;
}

static size_t anchors (void)
{
    return hws_engine_counts (s_world.engine).anchors;
}

static const hws_engine_stats_t *stats (void)
{
    return hws_engine_stats (s_world.engine);
}

/*  ---- One sender at a time ---- */

static void open_of_an_exclusive_anchor_gives_an_exclusive_handle (void **state)
{
    (void) state;
    hws_control_t open = {
        .verb = HWS_VERB_OPEN,
        .as.open = {.open_id = 9, .kind = HWS_KIND_SPSC, .max_senders = {HWS_VALUE, 4}}};

    client_ask (s_receiver, &open);

    const hws_open_ok_t *const ok = &client_take_ok (s_receiver, HWS_VERB_OPEN)->as.open_ok;
    assert_int_equal (hws_handle_kind (ok->handle), HWS_KIND_SPSC);
    assert_int_equal (ok->max_senders.state, HWS_VALUE);
    assert_int_equal (ok->max_senders.value, 1); /* whatever was asked */
}

static void exclusive_anchor_refuses_a_second_sender (void **state)
{
    (void) state;

    stream_ask (s_other, 1, s_handle);

    const char *const reason =
        client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EMAX_SENDERS)->reason;
    assert_non_null (strstr (reason, "exclusive anchor 1 results has its sender"));
    stream_send (&s_stream, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
}

static void sender_that_is_away_keeps_its_exclusive_anchor (void **state)
{
    (void) state;
    client_disconnect (s_sender);

    stream_ask (s_other, 1, s_handle);

    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);
    client_reconnect (s_sender);
    stream_attach_again (&s_stream);
}

static void detached_leaves_an_exclusive_anchor_to_the_next_sender (void **state)
{
    (void) state;

    stream_end (&s_stream);

    stream_t next = stream_attach (s_other, 1, s_handle); /* before it is acknowledged */
    assert_int_equal (next.sender_id, 2);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_ATTACHED, next.routing, 0, 0);
    ack_all ();
    stream_send (&next, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, next.routing, 0, 1);
    client_expect_silence (s_receiver);
}

static void dropped_leaves_an_exclusive_anchor_to_the_next_sender (void **state)
{
    (void) state;
    s_receiver->is_beating = s_other->is_beating = true;
    client_disconnect (s_sender);

    world_advance (&s_world, WORLD_GRACE_MS);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    assert_int_equal (stream_attach (s_other, 1, s_handle).sender_id, 2);
}

static void detach_message_leaves_an_exclusive_anchor_open (void **state)
{
    (void) state;
    hws_control_t message = {.verb = HWS_VERB_DETACH,
                             .as.detach = {.handle = s_handle, .sender_id = 1}};

    client_ask (s_sender, &message);

    client_take_ok (s_sender, HWS_VERB_DETACH);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 0, 1);
    assert_int_equal (stream_attach (s_other, 1, s_handle).sender_id, 2);
}

static void attach_spsc_handle_to_mpsc_is_wrong_kind (void **state)
{
    (void) state;
    const hws_handle_t shared = anchor_open (s_receiver, 2, "", NULL);
    hws_handle_t shared_as_exclusive = shared, exclusive_as_shared = s_handle;
    shared_as_exclusive.lo ^= UINT64_C (1) << 63;
    exclusive_as_shared.lo ^= UINT64_C (1) << 63;
    stream_end (&s_stream);

    stream_ask (s_other, 1, shared_as_exclusive);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EWRONG_KIND);
    stream_ask (s_other, 1, exclusive_as_shared);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EWRONG_KIND);

    assert_int_equal (stream_attach (s_other, 1, shared).sender_id, 1); /* both are usable */
    assert_int_equal (stream_attach (s_other, 2, s_handle).sender_id, 2);
}

static void cancel_with_a_handle_of_the_other_kind_is_wrong_kind (void **state)
{
    (void) state;
    hws_handle_t shared = s_handle;
    shared.lo ^= UINT64_C (1) << 63;

    anchor_cancel (s_sender, shared, 0, "");

    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EWRONG_KIND);
    assert_int_equal (anchors (), 1);
}

/*  ---- Finalize ---- */

static void finalize_closes_spsc (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);

    finalize ();

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    expect_run (s_receiver, HWS_RUN_FINALIZED, s_stream.routing, 2, 1);
    client_expect_silence (s_receiver);
    stream_ask (s_other, 1, s_handle); /* closing */
    const char *const reason = client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED)->reason;
    assert_non_null (strstr (reason, "exclusive anchor 1 is closing"));
    ack_all ();
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 3);
    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_string_equal (closed->code, "finalized");
    assert_int_equal (closed->finalized, 1);
    client_expect_silence (s_receiver);
    stream_ask (s_other, 1, s_handle); /* gone */
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (anchors (), 0);
    assert_int_equal (stats ()->finalized, 1);
}

static void finalize_waits_for_the_endings_of_earlier_senders (void **state)
{
    (void) state;
    const stream_t first = s_stream;
    stream_end (&s_stream);
    s_stream = stream_attach (s_sender, 2, s_handle);
    finalize ();
    client_forget (s_receiver);

    ack_all ();
    client_expect_silence (s_receiver);
    anchor_ack (s_receiver, first.routing, 1, HWS_ENDING_HEADER_SIZE, true);

    assert_string_equal (closed_as (), "finalized");
}

static void finalized_can_be_rewound_until_it_is_acknowledged (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    finalize ();
    rewind_all ();

    stream_send (&s_stream, 2, 8);
    finalize ();

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    expect_run (s_receiver, HWS_RUN_FINALIZED, s_stream.routing, 2, 1);
    ack_all ();
    assert_string_equal (closed_as (), "finalized");
    assert_int_equal (stats ()->finalized, 1);
}

static void finalized_that_comes_back_as_detached_is_a_violation (void **state)
{
    (void) state;
    finalize ();
    rewind_all ();

    stream_end (&s_stream);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "protocol");
    expect_told (s_sender, 1, "dropped", "protocol");
    assert_int_equal (stats ()->finalized, 0);
}

static void detach_message_does_not_repeat_what_was_finalized (void **state)
{
    (void) state;
    finalize ();
    hws_control_t message = {.verb = HWS_VERB_DETACH,
                             .as.detach = {.handle = s_handle, .sender_id = 1}};
    client_ask (s_sender, &message);
    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EENDED);
    rewind_all ();

    client_ask (s_sender, &message);

    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EENDED);
    client_expect_silence (s_receiver);
}

/*  A finalize that was rewound and whose sender is dead: as long as the receiver has not said
 *  what it consumed, nobody knows whether it took place, and nobody else may attach.  */
static void lose_the_finalizer (void)
{
    finalize ();
    rewind_all ();
    s_receiver->is_beating = s_other->is_beating = true;
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    stream_ask (s_other, 1, s_handle);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
}

static void finalize_that_was_lost_with_its_sender_leaves_the_anchor_open (void **state)
{
    (void) state;
    lose_the_finalizer ();

    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);

    client_expect_silence (s_receiver);
    assert_int_equal (stream_attach (s_other, 1, s_handle).sender_id, 2);
    assert_int_equal (stats ()->finalized, 0);
    assert_int_equal (stats ()->dropped, 1);
    client_reconnect (s_sender); /* what the receiver heard is what the sender hears */
    stream_ask (s_sender, 1, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "dropped");
}

static void finalize_that_was_consumed_counts_whatever_came_after (void **state)
{
    (void) state;
    lose_the_finalizer ();

    anchor_ack (s_receiver, s_stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);

    assert_string_equal (closed_as (), "finalized");
    assert_int_equal (stats ()->finalized, 1);
    assert_int_equal (stats ()->dropped, 0);
    client_reconnect (s_sender);
    stream_ask (s_sender, 1, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "finalized");
}

static void receiver_that_cancels_the_finalizer_has_the_anchor_open (void **state)
{
    (void) state;
    finalize ();
    client_forget (s_receiver);

    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "not so fast");

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
    expect_told (s_sender, 1, "cancelled", "requested");
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);
    assert_int_equal (stream_attach (s_other, 1, s_handle).sender_id, 2);
}

static void receiver_that_is_away_has_the_anchor_abandoned_when_a_finalize_fails (void **state)
{
    (void) state;
    s_other->is_beating = true;
    finalize ();
    rewind_all ();
    stream_end (&s_stream); /* a violation: dropped */
    client_disconnect (s_receiver);
    client_reconnect (s_receiver);
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true); /* and its OPEN has not come yet */

    assert_int_equal (stream_attach (s_other, 1, s_handle).sender_id, 2);
    s_receiver->is_beating = true;
    world_advance (&s_world, WORLD_ORPHAN_MS);

    expect_told (s_other, 1, "cancelled", "abandoned");
}

/*  ---- Finalize and cancel cross ---- */

static void receiver_that_cancels_a_finalized_anchor_takes_the_ending_back (void **state)
{
    (void) state;
    finalize ();
    client_forget (s_receiver);

    anchor_cancel (s_receiver, s_handle, 0, "enough");

    client_take_ok (s_receiver, HWS_VERB_CANCEL);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "receiver_closed");
    assert_string_equal (closed_as (), "receiver_closed");
    expect_told (s_sender, 1, "cancelled", "receiver_closed");
    assert_int_equal (stats ()->finalized, 0);
}

static void finalize_behind_a_cancel_changes_nothing (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, 0, "no more");
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");

    finalize ();

    client_expect_silence (s_receiver);
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);
    assert_string_equal (closed_as (), "requested");
}

static void sender_that_has_finalized_may_not_cancel_the_anchor (void **state)
{
    (void) state;
    finalize ();

    anchor_cancel (s_sender, s_handle, 0, "");

    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EDENIED); /* it has ended */
    client_take_run (s_receiver, HWS_RUN_FINALIZED);
    ack_all ();
    assert_string_equal (closed_as (), "finalized");
}

static void finalized_anchor_of_an_absent_receiver_is_abandoned (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    finalize ();
    client_disconnect (s_receiver);

    world_advance (&s_world, WORLD_ORPHAN_MS);

    expect_told (s_sender, 1, "cancelled", "abandoned");
    assert_int_equal (anchors (), 0);
}

static void unattached_timeout_runs_again_when_a_finalize_failed (void **state)
{
    (void) state;
    const hws_open_t open = {.kind = HWS_KIND_SPSC, .unattached_timeout_ms = {HWS_VALUE, 700}};
    s_receiver->is_beating = s_sender->is_beating = true;
    stream_end (&s_stream);
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    s_stream = stream_attach (s_sender, 2, handle);
    finalize ();
    world_advance (&s_world, 2000);
    anchor_cancel (s_receiver, handle, 1, "");
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);
    client_forget (s_receiver);

    world_advance (&s_world, 699);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    assert_string_equal (closed_as (), "expired");
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (open_of_an_exclusive_anchor_gives_an_exclusive_handle),
        TEST (exclusive_anchor_refuses_a_second_sender),
        TEST (sender_that_is_away_keeps_its_exclusive_anchor),
        TEST (detached_leaves_an_exclusive_anchor_to_the_next_sender),
        TEST (dropped_leaves_an_exclusive_anchor_to_the_next_sender),
        TEST (detach_message_leaves_an_exclusive_anchor_open),
        TEST (attach_spsc_handle_to_mpsc_is_wrong_kind),
        TEST (cancel_with_a_handle_of_the_other_kind_is_wrong_kind),
        TEST (finalize_closes_spsc),
        TEST (finalize_waits_for_the_endings_of_earlier_senders),
        TEST (finalized_can_be_rewound_until_it_is_acknowledged),
        TEST (finalized_that_comes_back_as_detached_is_a_violation),
        TEST (detach_message_does_not_repeat_what_was_finalized),
        TEST (finalize_that_was_lost_with_its_sender_leaves_the_anchor_open),
        TEST (finalize_that_was_consumed_counts_whatever_came_after),
        TEST (receiver_that_cancels_the_finalizer_has_the_anchor_open),
        TEST (receiver_that_is_away_has_the_anchor_abandoned_when_a_finalize_fails),
        TEST (receiver_that_cancels_a_finalized_anchor_takes_the_ending_back),
        TEST (finalize_behind_a_cancel_changes_nothing),
        TEST (sender_that_has_finalized_may_not_cancel_the_anchor),
        TEST (finalized_anchor_of_an_absent_receiver_is_abandoned),
        TEST (unattached_timeout_runs_again_when_a_finalize_failed),
    };
    return cmocka_run_group_tests_name ("engine exclusive", tests, NULL, NULL);
}
