/*  The engine: cancel reaches everybody, whenever it comes.
 */
#include "tests/support/engine_test.h"

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_first;
static stream_t s_second;

static int begin_attached (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    s_first = stream_attach (s_sender, 1, s_handle);
    s_second = stream_attach (s_other, 1, s_handle);
    client_forget (s_receiver);
    return 0;
}

static void cancel_anchor_reaches_every_sender (void **state)
{
    (void) state;

    anchor_cancel (s_receiver, s_handle, 0, "enough");

    expect_told (s_sender, 1, "cancelled", "receiver_closed");
    assert_string_equal (client_take (s_other, HWS_VERB_STREAM_CANCEL)->as.stream_cancel.reason,
                         "enough");
    stream_ask (s_other, 2, s_handle);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void receiver_close_cancels_senders (void **state)
{
    (void) state;

    anchor_cancel (s_receiver, s_handle, 0, "");

    expect_told (s_sender, 1, "cancelled", "receiver_closed");
    expect_told (s_other, 1, "cancelled", "receiver_closed");
}

static void receiver_close_cancels_senders_when_it_says_goodbye (void **state)
{
    (void) state;
    hws_control_t bye = {.verb = HWS_VERB_BYE};

    client_ask (s_receiver, &bye);

    expect_told (s_sender, 1, "cancelled", "receiver_closed");
    expect_told (s_other, 1, "cancelled", "receiver_closed");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void receiver_close_cancels_senders_when_it_crashed (void **state)
{
    (void) state;
    s_sender->is_beating = s_other->is_beating = true;

    client_disconnect (s_receiver);

    world_advance (&s_world, WORLD_ORPHAN_MS - 1);
    client_expect_silence (s_sender);
    client_expect_silence (s_other);
    world_advance (&s_world, 1);
    expect_told (s_sender, 1, "cancelled", "abandoned");
    expect_told (s_other, 1, "cancelled", "abandoned");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void cancel_is_answered_then_endings_then_closed (void **state)
{
    (void) state;

    anchor_cancel (s_receiver, s_handle, 0, "");

    const heard_t *heard = client_next (s_receiver);
    assert_int_equal (heard->control.verb, HWS_VERB_CANCEL);
    expect_ending (s_receiver, s_first.routing, HWS_RUN_CANCELLED, "receiver_closed");
    expect_ending (s_receiver, s_second.routing, HWS_RUN_CANCELLED, "receiver_closed");
    heard = client_next (s_receiver);
    assert_int_equal (heard->control.verb, HWS_VERB_ANCHOR_CLOSED);
    assert_string_equal (heard->control.as.anchor_closed.code, "receiver_closed");
    assert_int_equal (heard->control.as.anchor_closed.cancelled, 2);
    client_expect_silence (s_receiver);
}

static void cancel_is_idempotent (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, 0, "");
    client_forget (s_receiver);
    client_forget (s_sender);

    anchor_cancel (s_receiver, s_handle, 0, "");
    anchor_cancel (s_receiver, s_handle, 1, "");
    anchor_cancel (s_sender, s_handle, 0, "");

    client_take_ok (s_receiver, HWS_VERB_CANCEL);
    client_take_ok (s_receiver, HWS_VERB_CANCEL);
    client_take_ok (s_sender, HWS_VERB_CANCEL);
    client_expect_silence (s_receiver);
    client_expect_silence (s_sender);
}

static void cancel_from_a_sender_by_handle (void **state)
{
    (void) state;

    anchor_cancel (s_sender, s_handle, 0, "no more");

    client_take_ok (s_sender, HWS_VERB_CANCEL);
    expect_told (s_other, 1, "cancelled", "requested");
    expect_ending (s_receiver, s_first.routing, HWS_RUN_CANCELLED, "requested");
    expect_ending (s_receiver, s_second.routing, HWS_RUN_CANCELLED, "requested");
    client_expect_silence (s_receiver);
    anchor_ack (s_receiver, s_first.routing, 0, 0, true);
    anchor_ack (s_receiver, s_second.routing, 0, 0, true);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.reason,
                         "no more");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void cancel_of_an_anchor_that_is_closing_is_answered_ok (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, 0, "no more");
    client_forget (s_sender);
    client_forget (s_receiver);

    anchor_cancel (s_sender, s_handle, 0, "no more");
    anchor_cancel (s_other, s_handle, 0, "");

    client_take_ok (s_sender, HWS_VERB_CANCEL);
    client_take_ok (s_other, HWS_VERB_CANCEL);
    client_expect_silence (s_receiver);
}

static void cancel_from_a_stranger_is_denied (void **state)
{
    (void) state;
    client_t *const stranger = client_connect (&s_world);

    anchor_cancel (stranger, s_handle, 0, "");
    anchor_cancel (stranger, s_handle, 1, "");
    anchor_cancel (s_sender, s_handle, s_second.sender_id, "");

    client_take_refusal (stranger, HWS_VERB_CANCEL, HWS_EDENIED);
    client_take_refusal (stranger, HWS_VERB_CANCEL, HWS_EDENIED);
    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EDENIED);
    client_expect_silence (s_receiver);
}

static void ended_sender_may_not_cancel_the_anchor (void **state)
{
    (void) state;
    stream_end (&s_first);

    anchor_cancel (s_sender, s_handle, 0, "");

    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EDENIED);
}

static void cancel_one_sender (void **state)
{
    (void) state;
    stream_send (&s_first, 2, 8);

    anchor_cancel (s_receiver, s_handle, s_first.sender_id, "too slow");

    expect_run (s_receiver, HWS_RUN_RECORDS, s_first.routing, 0, 2);
    expect_ending (s_receiver, s_first.routing, HWS_RUN_CANCELLED, "requested");
    expect_told (s_sender, 1, "cancelled", "requested");
    stream_send (&s_second, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_second.routing, 0, 1);
}

static void sender_cancels_itself_as_interrupted (void **state)
{
    (void) state;
    hws_control_t message = {.verb = HWS_VERB_CANCEL,
                             .as.cancel = {.handle = s_handle,
                                           .sender_id = s_first.sender_id,
                                           .reason = "SIGINT",
                                           .code = "interrupted"}};

    client_ask (s_sender, &message);

    client_take_ok (s_sender, HWS_VERB_CANCEL);
    expect_ending (s_receiver, s_first.routing, HWS_RUN_CANCELLED, "interrupted");
    expect_told (s_sender, 1, "cancelled", "interrupted");
}

static void receiver_may_not_call_its_cancel_an_interruption (void **state)
{
    (void) state;
    hws_control_t message = {
        .verb = HWS_VERB_CANCEL,
        .as.cancel = {.handle = s_handle, .sender_id = s_first.sender_id, .code = "interrupted"}};

    client_ask (s_receiver, &message);

    expect_ending (s_receiver, s_first.routing, HWS_RUN_CANCELLED, "requested");
}

static void cancel_of_its_own (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_CANCEL,
        .as.cancel = {.handle = s_handle, .sender_id = s_first.sender_id, .code = "interrupted"}};
    client_ask (s_sender, &message);
    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EENDED);
}

/*  The receiver missed the clean ending of a stream that its client has given up since: nobody
 *  answers REWIND.  */
static void ending_that_its_client_gave_up_is_replaced_if_it_gets_lost (void **state)
{
    (void) state;
    stream_end (&s_first);
    s_sender->is_beating = s_other->is_beating = s_receiver->is_beating = true;
    client_reconnect (s_receiver);
    cancel_of_its_own ();
    anchor_open (s_receiver, 1, "", NULL);
    client_forget (s_receiver);

    world_advance (&s_world, 2 * WORLD_GRACE_MS);

    expect_ending (s_receiver, s_first.routing, HWS_RUN_DROPPED, "transport");
}

static void ending_that_its_client_gave_up_counts_if_it_arrives (void **state)
{
    (void) state;
    stream_end (&s_first);
    s_sender->is_beating = s_other->is_beating = s_receiver->is_beating = true;
    cancel_of_its_own ();

    world_advance (&s_world, 2 * WORLD_GRACE_MS);
    anchor_ack (s_receiver, s_first.routing, 1, HWS_ENDING_HEADER_SIZE, true);

    expect_run (s_receiver, HWS_RUN_DETACHED, s_first.routing, 0, 1);
    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

/*  It said HELLO again, and nothing of its stream.  */
static void ending_that_is_not_claimed_again_is_replaced_if_it_gets_lost (void **state)
{
    (void) state;
    stream_end (&s_first);
    s_sender->is_beating = s_other->is_beating = s_receiver->is_beating = true;
    client_reconnect (s_receiver);
    client_reconnect (s_sender);
    anchor_open (s_receiver, 1, "", NULL);
    client_forget (s_receiver);

    world_advance (&s_world, 2 * WORLD_GRACE_MS);

    expect_ending (s_receiver, s_first.routing, HWS_RUN_DROPPED, "transport");
}

static void cancel_of_an_unknown_sender_is_not_found (void **state)
{
    (void) state;

    anchor_cancel (s_receiver, s_handle, 3, "");
    anchor_cancel (s_receiver, hws_handle_make (0xb0b0, HWS_KIND_MPSC, 7, 99), 0, "");

    client_take_refusal (s_receiver, HWS_VERB_CANCEL, HWS_ENOT_FOUND);
    client_take_refusal (s_receiver, HWS_VERB_CANCEL, HWS_ECLOSED);
}

static void cancel_and_detach_cross (void **state)
{
    (void) state;
    for (int detach_first = 0; detach_first <= 1; detach_first++) {
        stream_t stream = stream_attach (s_sender, 10 + (uint64_t) detach_first, s_handle);
        client_forget (s_receiver);
        if (detach_first) {
            stream_end (&stream);
        }

        anchor_cancel (s_receiver, s_handle, stream.sender_id, "");
        if (!detach_first) {
            stream_end (&stream);
        }

        if (detach_first) { /* its owner cancelled: the clean ending does not count */
            expect_run (s_receiver, HWS_RUN_DETACHED, stream.routing, 0, 1);
        }
        expect_ending (s_receiver, stream.routing, HWS_RUN_CANCELLED, "requested");
        expect_told (s_sender, stream.session_id, "cancelled", "requested");
        client_take_ok (s_receiver, HWS_VERB_CANCEL);
        client_expect_silence (s_receiver);
        assert_int_equal (hws_engine_stats (s_world.engine)->detached, 0);
    }
}

static void sender_cannot_cancel_what_it_has_ended (void **state)
{
    (void) state;
    stream_end (&s_first);
    client_take_run (s_receiver, HWS_RUN_DETACHED);

    /* An Ok would tell the one that it was cancelled, the other that it was not. */
    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");
    anchor_ack (s_receiver, s_first.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");

    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EENDED);
    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EENDED);
    client_expect_silence (s_receiver);
    assert_null (client_find_control (s_sender, HWS_VERB_STREAM_CANCEL));
}

static void client_with_both_ends_cancels_as_the_one_it_says (void **state)
{
    (void) state;
    stream_t own = stream_attach (s_receiver, 7, s_handle);
    stream_end (&own);
    client_forget (s_receiver);
    hws_control_t message = {
        .verb = HWS_VERB_CANCEL,
        .as.cancel = {.handle = s_handle, .sender_id = own.sender_id, .code = "interrupted"}};

    client_ask (s_receiver, &message);
    client_take_refusal (s_receiver, HWS_VERB_CANCEL, HWS_EENDED);
    client_expect_silence (s_receiver);
    anchor_cancel (s_receiver, s_handle, own.sender_id, "");

    expect_ending (s_receiver, own.routing, HWS_RUN_CANCELLED, "requested");
}

static void sender_that_asks_again_for_its_cancel_is_answered_ok (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");
    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");
    anchor_ack (s_receiver, s_first.routing, 0, 0, true);
    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");

    for (int i = 0; i < 3; i++) {
        client_take_ok (s_sender, HWS_VERB_CANCEL);
    }
    client_take_run (s_receiver, HWS_RUN_CANCELLED);
    client_expect_silence (s_receiver);
}

static void sender_that_cancels_what_was_dropped_learns_that (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, 0, "enough");
    client_forget (s_sender);

    anchor_cancel (s_sender, s_handle, s_first.sender_id, "");

    assert_non_null (strstr (client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EENDED)->reason,
                             "receiver_closed"));
}

static void cancel_of_a_sender_that_is_away_is_told_when_it_comes (void **state)
{
    (void) state;
    client_disconnect (s_sender);
    anchor_cancel (s_receiver, s_handle, s_first.sender_id, "too slow");
    anchor_ack (s_receiver, s_first.routing, 0, 0, true);
    client_forget (s_sender);

    client_reconnect (s_sender);
    stream_ask (s_sender, 1, s_handle);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "cancelled");
    assert_string_equal (ok->reason, "too slow");
}

static void owner_cancels_an_anchor_that_is_closing (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, 0, "");
    client_forget (s_receiver);

    anchor_cancel (s_receiver, s_handle, 0, "");

    client_take_ok (s_receiver, HWS_VERB_CANCEL);
    client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED);
    client_expect_silence (s_receiver); /* each ending was said once */
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void empty_anchor_cannot_be_cancelled_by_one_who_left (void **state)
{
    (void) state;
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", NULL);

    anchor_cancel (s_sender, handle, 0, "");

    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EDENIED);
}

static void closing_anchor_of_an_absent_receiver_ends_with_its_orphan_ttl (void **state)
{
    (void) state;
    s_sender->is_beating = s_other->is_beating = true;
    client_disconnect (s_receiver);
    anchor_cancel (s_sender, s_handle, 0, "");

    world_advance (&s_world, WORLD_ORPHAN_MS);

    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (cancel_anchor_reaches_every_sender),
        TEST (receiver_close_cancels_senders),
        TEST (receiver_close_cancels_senders_when_it_says_goodbye),
        TEST (receiver_close_cancels_senders_when_it_crashed),
        TEST (cancel_is_answered_then_endings_then_closed),
        TEST (cancel_is_idempotent),
        TEST (cancel_from_a_sender_by_handle),
        TEST (cancel_of_an_anchor_that_is_closing_is_answered_ok),
        TEST (cancel_from_a_stranger_is_denied),
        TEST (ended_sender_may_not_cancel_the_anchor),
        TEST (cancel_one_sender),
        TEST (sender_cancels_itself_as_interrupted),
        TEST (receiver_may_not_call_its_cancel_an_interruption),
        TEST (ending_that_its_client_gave_up_is_replaced_if_it_gets_lost),
        TEST (ending_that_its_client_gave_up_counts_if_it_arrives),
        TEST (ending_that_is_not_claimed_again_is_replaced_if_it_gets_lost),
        TEST (cancel_of_an_unknown_sender_is_not_found),
        TEST (cancel_and_detach_cross),
        TEST (sender_cannot_cancel_what_it_has_ended),
        TEST (client_with_both_ends_cancels_as_the_one_it_says),
        TEST (sender_that_asks_again_for_its_cancel_is_answered_ok),
        TEST (sender_that_cancels_what_was_dropped_learns_that),
        TEST (cancel_of_a_sender_that_is_away_is_told_when_it_comes),
        TEST (owner_cancels_an_anchor_that_is_closing),
        TEST (empty_anchor_cannot_be_cancelled_by_one_who_left),
        TEST (closing_anchor_of_an_absent_receiver_ends_with_its_orphan_ttl),
    };
    return cmocka_run_group_tests_name ("engine cancel", tests, NULL, NULL);
}
