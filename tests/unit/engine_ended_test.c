/*  The engine: endings that the broker makes, and what it remembers of those that were.
 */
#include "tests/support/engine_test.h"

static client_t *s_receiver;
static client_t *s_sender;
static hws_handle_t s_handle;
static stream_t s_stream;

static int begin_attached (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    s_stream = stream_attach (s_sender, 1, s_handle);
    client_forget (s_receiver);
    return 0;
}

static void ask_detach (client_t *client, uint64_t sender_id, uint64_t seq)
{
    hws_control_t message = {.verb = HWS_VERB_DETACH,
                             .as.detach = {.handle = s_handle, .sender_id = sender_id, .seq = seq}};
    client_ask (client, &message);
}

static void ack_all (void)
{
    anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, true);
}

static size_t seats (void)
{
    return hws_engine_counts (s_world.engine).seats;
}

/*  ---- Endings that the broker makes ---- */

/*  What may come together.  */
enum { CRASH, FAREWELL, SILENCE, GRACE_OVER, DETACH, WAYS_TO_END };

static void happen (int what)
{
    hws_control_t bye = {.verb = HWS_VERB_BYE};
    switch (what) {
    case CRASH:
        client_disconnect (s_sender);
        break;
    case FAREWELL:
        client_ask (s_sender, &bye);
        break;
    case SILENCE:
        world_advance (&s_world, 3 * WORLD_INTERVAL_MS);
        break;
    case GRACE_OVER:
        world_advance (&s_world, WORLD_GRACE_MS);
        break;
    default:
        stream_end (&s_stream);
        break;
    }
}

static void drop_is_exactly_once (void **state)
{
    for (int order = 0; order < 120; order++) {
        end (state);
        begin_attached (state);
        s_receiver->is_beating = true;
        int left[WAYS_TO_END] = {CRASH, FAREWELL, SILENCE, GRACE_OVER, DETACH};

        int rest = order;
        for (int count = WAYS_TO_END; count > 0; count--) {
            const int i = rest % count;
            rest /= count;
            const int what = left[i];
            left[i] = left[count - 1];
            happen (what);
        }

        const hws_run_t *const run = client_find_run (s_receiver);
        assert_non_null (run);
        assert_true (run->stream == s_stream.routing);
        assert_true (run->type == HWS_RUN_DROPPED || run->type == HWS_RUN_DETACHED);
        const bool is_dropped = run->type == HWS_RUN_DROPPED;
        client_expect_silence (s_receiver);
        const hws_engine_stats_t *const stats = hws_engine_stats (s_world.engine);
        assert_int_equal (stats->dropped, is_dropped);
        assert_int_equal (stats->detached, !is_dropped);
    }
}

static void transport_error_is_one_drop (void **state)
{
    (void) state;
    s_receiver->is_beating = true;

    client_disconnect (s_sender);
    client_disconnect (s_sender); /* noticed by a send as well */
    world_advance (&s_world, WORLD_GRACE_MS - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    const hws_run_t *const run = expect_run (s_receiver, HWS_RUN_DROPPED, s_stream.routing, 0, 0);
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    assert_int_equal (ending.cause, HWS_CAUSE_TRANSPORT);
    assert_true (hws_bytes_equal (
        ending.text, hws_bytes_of_text ("its connection ended and it did not come back")));
    client_disconnect (s_sender);
    world_advance (&s_world, 10 * WORLD_GRACE_MS);
    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 1);
}

static void one_drop_does_not_end_the_anchor (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t second = stream_attach (other, 1, s_handle);
    hws_control_t bye = {.verb = HWS_VERB_BYE};

    client_ask (s_sender, &bye);
    stream_send (&second, 1, 8);
    const stream_t third = stream_attach (other, 2, s_handle);

    expect_run (s_receiver, HWS_RUN_ATTACHED, second.routing, 0, 0);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    expect_run (s_receiver, HWS_RUN_RECORDS, second.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_ATTACHED, third.routing, 0, 0);
}

static void broker_made_ending_moves_no_position (void **state)
{
    (void) state;
    stream_send (&s_stream, 48, 8);
    anchor_ack (s_receiver, s_stream.routing, 40, 480, false);
    client_forget (s_sender);

    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
    anchor_ack (s_receiver, s_stream.routing, 48, 576, true);

    assert_int_equal (client_take (s_sender, HWS_VERB_STREAM_CANCEL)->as.stream_cancel.next_seq,
                      48);
    stream_ask (s_sender, 1, s_handle);
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_int_equal (ok->acked_seq, 48);
}

static void broker_made_ending_comes_again_to_a_receiver_that_missed_it (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, s_stream.sender_id, "stop");
    client_reconnect (s_receiver);
    client_forget (s_receiver);

    anchor_open (s_receiver, 1, "", NULL);

    expect_run (s_receiver, HWS_RUN_ATTACHED, s_stream.routing, 0, 0);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
    client_expect_silence (s_receiver);
}

static void ending_made_while_the_receiver_is_away_waits_for_it (void **state)
{
    (void) state;
    client_disconnect (s_receiver);
    anchor_cancel (s_sender, s_handle, s_stream.sender_id, "");
    client_reconnect (s_receiver);

    anchor_open (s_receiver, 1, "", NULL);

    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
}

static void clean_ending_that_cannot_be_repeated_becomes_dropped (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    stream_end (&s_stream);
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL); /* rewound */
    client_forget (s_receiver);
    s_receiver->is_beating = true;
    client_disconnect (s_sender);

    world_advance (&s_world, WORLD_GRACE_MS);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 0);
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 1);
}

static void clean_ending_of_a_dead_client_becomes_dropped_when_the_receiver_missed_it (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_disconnect (s_sender);
    s_receiver->is_beating = true;
    world_advance (&s_world, WORLD_GRACE_MS);
    client_take_run (s_receiver, HWS_RUN_DETACHED);
    client_expect_silence (s_receiver); /* it was forwarded: it stands */
    client_reconnect (s_receiver);

    anchor_open (s_receiver, 1, "", NULL);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    world_advance (&s_world, 3 * WORLD_INTERVAL_MS);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
}

static void clean_ending_of_a_dead_client_stands_when_the_receiver_had_it (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_take_run (s_receiver, HWS_RUN_DETACHED);
    client_disconnect (s_receiver); /* with its acknowledgement */
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS);
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    world_advance (&s_world, WORLD_INTERVAL_MS);

    anchor_ack (s_receiver, s_stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);

    client_expect_silence (s_receiver);
    client_reconnect (s_sender);
    stream_ask (s_sender, 1, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "detached");
}

static void endings_cross_a_cancel_of_the_owner (void **state)
{
    (void) state;
    stream_send (&s_stream, 1, 8);
    stream_end (&s_stream);

    anchor_cancel (s_receiver, s_handle, 0, "enough");

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 1, 1);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "receiver_closed");
    expect_told (s_sender, 1, "cancelled", "receiver_closed");
    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_int_equal (closed->detached, 0);
    assert_int_equal (closed->cancelled, 1);
}

static void ending_acknowledged_before_the_cancel_stands (void **state)
{
    (void) state;
    stream_end (&s_stream);
    ack_all ();
    client_forget (s_sender);

    anchor_cancel (s_receiver, s_handle, 0, "enough");

    client_expect_silence (s_sender);
    stream_ask (s_sender, 1, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "detached");
}

static void endings_cross_a_cancel_of_somebody_else (void **state)
{
    (void) state;
    stream_t second = stream_attach (s_sender, 2, s_handle);
    client_forget (s_receiver);
    stream_end (&s_stream);

    anchor_cancel (s_sender, s_handle, 0, "enough");

    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 0, 1);
    expect_ending (s_receiver, second.routing, HWS_RUN_CANCELLED, "requested");
    expect_told (s_sender, 2, "cancelled", "requested");
    client_expect_silence (s_receiver);
    ack_all ();
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 1); /* it detached */
    client_expect_silence (s_receiver);
    anchor_ack (s_receiver, second.routing, 0, 0, true);
    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_int_equal (closed->detached, 1);
    assert_int_equal (closed->cancelled, 1);
    assert_string_equal (closed->code, "requested");
    assert_string_equal (closed->reason, "enough");
}

/*  ---- Remembered ---- */

static void ask_attach (bool has_resume)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = s_stream.session_id,
                                           .has_resume = has_resume,
                                           .resume = {.sender_id = s_stream.sender_id}}};
    client_ask (s_sender, &message);
}

static void expect_refusal_of_ended (hws_verb_t verb, const char *ending)
{
    assert_non_null (strstr (client_take_refusal (s_sender, verb, HWS_EENDED)->reason, ending));
}

static void ended_is_remembered (void **state)
{
    static const struct {
        const char *ending, *cause;
    } rows[] = {{"detached", "none"}, {"dropped", "heartbeat"}, {"cancelled", "requested"}};
    for (int row = 0; row < 3; row++) {
        end (state);
        begin_attached (state);
        s_receiver->is_beating = true;
        stream_send (&s_stream, 1, 8);
        if (row == 0) {
            stream_end (&s_stream);
        } else if (row == 1) {
            world_advance (&s_world, 3 * WORLD_INTERVAL_MS);
        } else {
            anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
        }
        ack_all ();
        assert_int_equal (seats (), 0);
        client_forget (s_sender);
        client_forget (s_receiver);

        for (int has_resume = 0; has_resume <= 1; has_resume++) {
            ask_attach (has_resume);
            const hws_attach_ok_t *const ok =
                &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
            assert_true (ok->has_ended);
            assert_string_equal (ok->ending, rows[row].ending);
            assert_string_equal (ok->code, rows[row].cause);
            assert_int_equal (ok->sender_id, s_stream.sender_id);
            assert_int_equal (ok->acked_seq, s_stream.next_seq);
        }
        ask_detach (s_sender, s_stream.sender_id, 1);
        if (row == 0) {
            client_take_ok (s_sender, HWS_VERB_DETACH);
        } else {
            expect_refusal_of_ended (HWS_VERB_DETACH, rows[row].ending);
        }
        hws_control_t cancel = {.verb = HWS_VERB_CANCEL,
                                .as.cancel = {.handle = s_handle,
                                              .sender_id = s_stream.sender_id,
                                              .code = "interrupted"}};
        client_ask (s_sender, &cancel);
        expect_refusal_of_ended (HWS_VERB_CANCEL, rows[row].ending);
        anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
        client_take_ok (s_receiver, HWS_VERB_CANCEL);
        client_expect_silence (s_receiver);
        client_expect_silence (s_sender);
        assert_int_equal (seats (), 0);
    }
}

static void ended_is_forgotten_after_the_orphan_ttl (void **state)
{
    (void) state;
    stream_end (&s_stream);
    ack_all ();
    s_sender->is_beating = s_receiver->is_beating = true;

    world_advance (&s_world, WORLD_ORPHAN_MS - 1);
    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, 1);
    world_advance (&s_world, 1);

    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, 0);
    assert_int_equal (stream_attach (s_sender, 1, s_handle).sender_id, 2);
}

static void tombstones_are_bounded (void **state)
{
    (void) state;
    static const uint64_t limits[] = {0, 1, 64};
    for (size_t i = 0; i < 3; i++) {
        hws_engine_options_t options = world_options ();
        options.limits.tombstones = limits[i];
        begin_with (&options);
        client_t *const receiver = client_connect (&s_world);
        client_t *const sender = client_connect (&s_world);
        const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);

        for (uint64_t session_id = 1; session_id <= 100; session_id++) {
            stream_t stream = stream_attach (sender, session_id, handle);
            stream_end (&stream);
            anchor_ack (receiver, stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
        }

        assert_int_equal (hws_engine_counts (s_world.engine).tombstones, limits[i]);
        client_forget (sender);
        stream_ask (sender, 100, handle); /* the latest are the ones that are kept */
        assert_int_equal (client_take_ok (sender, HWS_VERB_ATTACH)->as.attach_ok.has_ended,
                          limits[i] > 0);
    }
}

static void stale_cancel_hits_nobody (void **state)
{
    (void) state;
    stream_end (&s_stream);
    ack_all ();
    stream_t later = stream_attach (s_sender, 2, s_handle);
    client_forget (s_receiver);

    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");

    client_take_ok (s_receiver, HWS_VERB_CANCEL);
    stream_send (&later, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, later.routing, 0, 1);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (drop_is_exactly_once),
        TEST (transport_error_is_one_drop),
        TEST (one_drop_does_not_end_the_anchor),
        TEST (broker_made_ending_moves_no_position),
        TEST (broker_made_ending_comes_again_to_a_receiver_that_missed_it),
        TEST (ending_made_while_the_receiver_is_away_waits_for_it),
        TEST (clean_ending_that_cannot_be_repeated_becomes_dropped),
        TEST (clean_ending_of_a_dead_client_becomes_dropped_when_the_receiver_missed_it),
        TEST (clean_ending_of_a_dead_client_stands_when_the_receiver_had_it),
        TEST (endings_cross_a_cancel_of_the_owner),
        TEST (ending_acknowledged_before_the_cancel_stands),
        TEST (endings_cross_a_cancel_of_somebody_else),
        TEST (ended_is_remembered),
        TEST (ended_is_forgotten_after_the_orphan_ttl),
        TEST (tombstones_are_bounded),
        TEST (stale_cancel_hits_nobody),
    };
    return cmocka_run_group_tests_name ("engine ended", tests, NULL, NULL);
}
