/*  The engine: cancel tokens. What carries a cancelled token ends, or does not begin,
 *  whichever comes first.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

#define TOKEN UINT64_C (0x8000000000000007)

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static client_t *s_stranger; /* owns nothing, and cancels */
static hws_handle_t s_handle;

static int begin_open (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_stranger = client_connect (&s_world);
    s_receiver->is_beating = s_sender->is_beating = true;
    s_other->is_beating = s_stranger->is_beating = true;
    s_handle = anchor_open (s_receiver, 1, "results", NULL);
    return 0;
}

static void ask_cancel (client_t *client, uint64_t token, const char *reason)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = token};
    strcpy (message.as.token.reason, reason);
    client_ask (client, &message);
}

static void cancel (uint64_t token, const char *reason)
{
    ask_cancel (s_stranger, token, reason);
    client_take_ok (s_stranger, HWS_VERB_CANCEL_TOKEN);
}

static void attach_with (client_t *client, uint64_t session_id, uint64_t token)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = session_id,
                                           .cancel_token = token}};
    client_ask (client, &message);
}

static stream_t attached_with (client_t *client, uint64_t session_id, uint64_t token)
{
    attach_with (client, session_id, token);
    client_take_ok (client, HWS_VERB_ATTACH);
    return stream_attach (client, session_id, s_handle); /* again: its own seat */
}

static void wait_for (client_t *client, uint64_t session_id, const char *name, uint64_t token)
{
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.session_id = session_id, .cancel_token = token, .wait_ms = 30000}};
    strcpy (message.as.attach.anchor, name);
    client_ask (client, &message);
}

static hws_handle_t open_with (uint64_t open_id, uint64_t token, hws_kind_t kind)
{
    const hws_open_t open = {.cancel_token = token, .kind = kind};
    return anchor_open (s_receiver, open_id, "", &open);
}

/*  The attach is refused as cancelled, with the reason.  */
static void expect_refused (client_t *client, const char *reason)
{
    assert_string_equal (client_take_refusal (client, HWS_VERB_ATTACH, HWS_ECANCELLED)->reason,
                         reason);
}

static size_t known_tokens (void)
{
    return hws_cancels_count (&s_world.engine->cancels);
}

static hws_engine_counts_t counts (void)
{
    return hws_engine_counts (s_world.engine);
}

/*  ---- Before ---- */

static void token_cancels_before_attach (void **state)
{
    (void) state;
    cancel (TOKEN, "not wanted");

    attach_with (s_sender, 1, TOKEN);

    expect_refused (s_sender, "not wanted");
    assert_int_equal (counts ().seats, 0);
    client_expect_silence (s_receiver);
    assert_int_equal (stream_attach (s_sender, 2, s_handle).sender_id, 1); /* no id was used */
}

static void token_cancels_before_open (void **state)
{
    (void) state;
    cancel (TOKEN, "");
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 2, .cancel_token = TOKEN}};

    client_ask (s_receiver, &open);

    assert_string_equal (client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECANCELLED)->reason,
                         "its token was cancelled");
    assert_int_equal (counts ().anchors, 1);
}

static void other_tokens_and_none_are_not_cancelled (void **state)
{
    (void) state;
    cancel (TOKEN, "");

    attach_with (s_sender, 1, TOKEN + 1);
    attach_with (s_sender, 2, 0);

    client_take_ok (s_sender, HWS_VERB_ATTACH);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void token_zero_is_answered_ok_and_is_nothing (void **state)
{
    (void) state;
    stream_attach (s_sender, 1, s_handle);
    client_forget (s_receiver);

    cancel (0, "everybody");

    client_expect_silence (s_sender);
    client_expect_silence (s_receiver);
    assert_int_equal (counts ().cancel_orphans, 0);
    attach_with (s_sender, 2, 0);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

/*  ---- Afterwards ---- */

static void token_ends_its_stream (void **state)
{
    (void) state;
    stream_t stream = attached_with (s_sender, 1, TOKEN);
    stream_send (&stream, 2, 8);
    client_forget (s_receiver);

    cancel (TOKEN, "no more");

    expect_ending (s_receiver, stream.routing, HWS_RUN_CANCELLED, "requested");
    const hws_stream_cancel_t *const told =
        &client_take (s_sender, HWS_VERB_STREAM_CANCEL)->as.stream_cancel;
    assert_string_equal (told->ending, "cancelled");
    assert_string_equal (told->code, "requested");
    assert_string_equal (told->reason, "no more");
}

static void token_ends_all_its_streams_and_no_other (void **state)
{
    (void) state;
    stream_t first = attached_with (s_sender, 1, TOKEN);
    stream_t second = attached_with (s_other, 1, TOKEN);
    stream_t third = attached_with (s_other, 2, TOKEN + 1);
    client_forget (s_receiver);

    cancel (TOKEN, "");

    expect_ending (s_receiver, first.routing, HWS_RUN_CANCELLED, "requested");
    expect_ending (s_receiver, second.routing, HWS_RUN_CANCELLED, "requested");
    stream_send (&third, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, third.routing, 0, 1);
    client_expect_silence (s_receiver);
}

static void token_cancelled_twice_is_one_ending (void **state)
{
    (void) state;
    stream_t stream = attached_with (s_sender, 1, TOKEN);
    client_forget (s_receiver);
    cancel (TOKEN, "first");
    expect_ending (s_receiver, stream.routing, HWS_RUN_CANCELLED, "requested");

    cancel (TOKEN, "second");

    client_expect_silence (s_receiver);
    attach_with (s_sender, 2, TOKEN);
    expect_refused (s_sender, "first");
}

static void token_leaves_a_clean_ending_that_was_forwarded (void **state)
{
    (void) state;
    stream_t stream = attached_with (s_sender, 1, TOKEN);
    stream_end (&stream);
    client_forget (s_receiver);

    cancel (TOKEN, "too late");

    client_expect_silence (s_receiver);
    client_expect_silence (s_sender);
    anchor_ack (s_receiver, stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 1);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

static void token_of_a_stream_that_is_away_is_told_when_it_comes (void **state)
{
    (void) state;
    attached_with (s_sender, 1, TOKEN);
    client_disconnect (s_sender);

    cancel (TOKEN, "no more");

    client_reconnect (s_sender);
    attach_with (s_sender, 1, TOKEN);
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "cancelled");
    assert_string_equal (ok->reason, "no more");
}

static void retried_attach_finds_its_ending_before_its_token (void **state)
{
    (void) state;
    stream_t clean = attached_with (s_sender, 1, TOKEN);
    stream_end (&clean);
    anchor_ack (s_receiver, clean.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    client_forget (s_sender);
    cancel (TOKEN, "");

    attach_with (s_sender, 1, TOKEN);

    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "detached");
}

/*  ---- Attaches that wait ---- */

static void token_refuses_an_attach_that_waits_for_its_anchor (void **state)
{
    (void) state;
    wait_for (s_sender, 1, "later", TOKEN);
    wait_for (s_sender, 2, "later", TOKEN + 1);

    cancel (TOKEN, "not any more");

    expect_refused (s_sender, "not any more");
    client_expect_silence (s_sender);
    assert_int_equal (counts ().waiting, 1);
    anchor_open (s_receiver, 2, "later", NULL);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
    assert_int_equal (counts ().seats, 1);
}

static void token_refuses_an_attach_that_waits_for_room (void **state)
{
    (void) state;
    const hws_open_t small = {.buffer_bytes = {HWS_VALUE, 2 * WORLD_WINDOW}};
    s_handle = anchor_open (s_receiver, 2, "small", &small);
    stream_attach (s_sender, 1, s_handle);
    wait_for (s_other, 1, "small", TOKEN);
    client_expect_silence (s_other);

    cancel (TOKEN, "");

    expect_refused (s_other, "its token was cancelled");
}

static void token_refuses_an_attach_that_waits_for_a_bind (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    s_handle = anchor_open (s_receiver, 2, "", &(hws_open_t){.dedicated = true});
    attach_with (s_sender, 1, TOKEN);
    client_expect_silence (s_sender);

    cancel (TOKEN, "not any more");
    expect_refused (s_sender, "not any more");
    world_bound (&s_world, 1);

    client_expect_silence (s_sender);
    assert_int_equal (s_world.unbind_count, 1); /* nobody was sent there */
}

static void waiting_attach_that_is_seated_takes_its_token_along (void **state)
{
    (void) state;
    wait_for (s_sender, 1, "later", TOKEN);
    anchor_open (s_receiver, 2, "later", NULL);
    client_take_ok (s_sender, HWS_VERB_ATTACH);

    cancel (TOKEN, "");

    expect_told (s_sender, 1, "cancelled", "requested");
}

static void waiting_attach_that_is_retried_has_the_token_of_the_last (void **state)
{
    (void) state;
    wait_for (s_sender, 1, "later", TOKEN);
    wait_for (s_sender, 1, "later", TOKEN + 1);

    cancel (TOKEN, "");
    client_expect_silence (s_sender);
    cancel (TOKEN + 1, "");

    expect_refused (s_sender, "its token was cancelled");
}

/*  ---- Anchors ---- */

static void token_ends_its_anchor_as_a_cancel_by_somebody_else (void **state)
{
    (void) state;
    s_handle = open_with (2, TOKEN, HWS_KIND_MPSC);
    stream_t clean = stream_attach (s_sender, 1, s_handle);
    stream_t live = stream_attach (s_other, 1, s_handle);
    stream_end (&clean);
    client_forget (s_receiver);

    cancel (TOKEN, "enough");

    expect_ending (s_receiver, live.routing, HWS_RUN_CANCELLED, "requested");
    expect_told (s_other, 1, "cancelled", "requested");
    client_expect_silence (s_receiver);
    attach_with (s_sender, 2, 0);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    anchor_ack (s_receiver, live.routing, 0, 0, true);
    anchor_ack (s_receiver, clean.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_string_equal (closed->code, "requested");
    assert_string_equal (closed->reason, "enough");
    assert_int_equal (closed->detached, 1);
}

static void token_closes_an_empty_anchor_at_once (void **state)
{
    (void) state;
    open_with (2, TOKEN, HWS_KIND_MPSC);
    client_forget (s_receiver);

    cancel (TOKEN, "enough");

    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.reason,
                         "enough");
    assert_int_equal (counts ().anchors, 1);
}

static void token_of_anchor_stream_and_waiting_attach_hits_all_three (void **state)
{
    (void) state;
    const hws_open_t small = {.buffer_bytes = {HWS_VALUE, 2 * WORLD_WINDOW}, .cancel_token = TOKEN};
    s_handle = anchor_open (s_receiver, 2, "small", &small);
    attached_with (s_sender, 1, TOKEN);
    wait_for (s_other, 1, "small", TOKEN);
    client_forget (s_receiver);

    cancel (TOKEN, "all");

    expect_told (s_sender, 1, "cancelled", "requested");
    expect_refused (s_other, "all");
    assert_int_equal (counts ().waiting, 0);
    client_take_run (s_receiver, HWS_RUN_CANCELLED);
    client_expect_silence (s_receiver);
}

static void token_overtakes_a_finalize (void **state)
{
    (void) state;
    for (int is_consumed = 0; is_consumed <= 1; is_consumed++) {
        const uint64_t number = 2 + (uint64_t) is_consumed;
        s_handle = open_with (number, TOKEN + number, HWS_KIND_SPSC);
        stream_t stream = stream_attach (s_sender, number, s_handle);
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        batch_add_run (&batch, stream_ending (&stream, HWS_RUN_FINALIZED));
        batch_send (&batch, s_sender);

        cancel (TOKEN + number, "enough");

        /* The finalize may fail, the cancel may not: nobody finds the anchor open again. */
        anchor_cancel (s_receiver, s_handle, is_consumed ? 2 : 1, "");
        client_forget (s_receiver);
        anchor_ack (s_receiver, stream.routing, is_consumed ? 1 : 0,
                    is_consumed ? HWS_ENDING_HEADER_SIZE : 0, true);
        const hws_anchor_closed_t *const closed =
            &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
        assert_string_equal (closed->code, "requested");
        assert_int_equal (closed->finalized, is_consumed);
        assert_int_equal (closed->cancelled, !is_consumed);
    }
}

/*  ---- How long ---- */

static void orphan_expires_after_ttl (void **state)
{
    (void) state;
    cancel (TOKEN, "");

    world_advance (&s_world, WORLD_CANCEL_MS - 1);
    attach_with (s_sender, 1, TOKEN);
    expect_refused (s_sender, "its token was cancelled");
    assert_int_equal (counts ().cancel_orphans, 1);
    world_advance (&s_world, 1);

    assert_int_equal (counts ().cancel_orphans, 0);
    attach_with (s_sender, 1, TOKEN);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void token_stays_cancelled_for_its_ttl_after_it_hit (void **state)
{
    (void) state;
    stream_t stream = attached_with (s_sender, 1, TOKEN);
    cancel (TOKEN, "enough");
    anchor_ack (s_receiver, stream.routing, 0, 0, true); /* nothing carries it any more */
    client_forget (s_sender);

    world_advance (&s_world, WORLD_CANCEL_MS - 1);
    attach_with (s_sender, 2, TOKEN);
    expect_refused (s_sender, "enough");
    world_advance (&s_world, 1);

    attach_with (s_sender, 3, TOKEN);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void cancels_are_swept_once_in_an_interval (void **state)
{
    (void) state;
    cancel (TOKEN, "");
    world_advance (&s_world, 400);
    cancel (TOKEN + 1, "");
    const uint64_t before = s_world.engine->cancels.sweeps;

    world_advance (&s_world, WORLD_CANCEL_MS - 400);
    assert_int_equal (counts ().cancel_orphans, 1);
    world_advance (&s_world, 999); /* the second is over its time, and waits for the sweep */
    assert_int_equal (counts ().cancel_orphans, 1);
    world_advance (&s_world, 1);

    assert_int_equal (counts ().cancel_orphans, 0);
    assert_int_equal (s_world.engine->cancels.sweeps - before, 2);
}

static void late_broker_forgets_no_cancel_early (void **state)
{
    (void) state;
    cancel (TOKEN, "");
    world_advance (&s_world, 1000);

    world_oversleep (&s_world, 10 * WORLD_CANCEL_MS);
    attach_with (s_sender, 1, TOKEN);

    expect_refused (s_sender, "its token was cancelled");
    world_advance (&s_world, WORLD_CANCEL_MS + 2 * WORLD_INTERVAL_MS);
    assert_int_equal (counts ().cancel_orphans, 0);
}

static void time_that_was_shortened_holds_for_what_is_remembered (void **state)
{
    (void) state;
    cancel (TOKEN, "");
    world_advance (&s_world, 5000);
    hws_limits_t shorter = s_world.options.limits;
    shorter.cancel_orphan_ttl_ms = 6000;
    shorter.cancel_sweep_ms = 10;

    hws_engine_configure (s_world.engine, &s_world.options.anchors, &shorter);
    world_advance (&s_world, 999);
    assert_int_equal (counts ().cancel_orphans, 1);
    world_advance (&s_world, 1);

    assert_int_equal (counts ().cancel_orphans, 0);
}

static void token_is_forgotten_with_what_carried_it (void **state)
{
    (void) state;
    open_with (2, TOKEN, HWS_KIND_MPSC);
    attached_with (s_sender, 1, TOKEN + 1);
    wait_for (s_other, 1, "later", TOKEN + 2);
    assert_int_equal (known_tokens (), 3);

    hws_control_t bye = {.verb = HWS_VERB_BYE};
    client_ask (s_receiver, &bye);
    client_ask (s_other, &bye);

    assert_int_equal (known_tokens (), 0);
}

static void stream_that_ended_has_no_token_any_more (void **state)
{
    (void) state;
    stream_t stream = attached_with (s_sender, 1, TOKEN);

    stream_end (&stream);

    assert_int_equal (known_tokens (), 0);
}

/*  ---- How many ---- */

static void orphan_count_is_bounded (void **state)
{
    (void) state;
    for (uint64_t i = 0; i < 4; i++) {
        cancel (TOKEN + i, "");
    }

    ask_cancel (s_stranger, TOKEN + 4, ""); /* of one client */
    client_take_refusal (s_stranger, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT);
    for (uint64_t i = 4; i < 7; i++) {
        ask_cancel (s_other, TOKEN + i, "");
    }
    client_take_ok (s_other, HWS_VERB_CANCEL_TOKEN);
    client_take_ok (s_other, HWS_VERB_CANCEL_TOKEN);
    client_take_refusal (s_other, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT); /* in all */

    assert_int_equal (counts ().cancel_orphans, 6);
    assert_int_equal (hws_engine_stats (s_world.engine)->refused_cancels, 2);
    attach_with (s_sender, 1, TOKEN + 6);
    client_take_ok (s_sender, HWS_VERB_ATTACH); /* refused is refused */
    world_advance (&s_world, WORLD_CANCEL_MS + 1000);
    cancel (TOKEN + 6, "");
    expect_told (s_sender, 1, "cancelled", "requested");
}

static void cancel_beyond_the_limit_hits_and_says_that_it_is_not_remembered (void **state)
{
    (void) state;
    attached_with (s_sender, 1, TOKEN + 9);
    for (uint64_t i = 0; i < 4; i++) {
        cancel (TOKEN + i, "");
    }

    ask_cancel (s_stranger, TOKEN + 9, "enough");

    client_take_refusal (s_stranger, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT);
    expect_told (s_sender, 1, "cancelled", "requested");
    attach_with (s_sender, 2, TOKEN + 9);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void cancels_outlive_the_client_that_asked_for_them (void **state)
{
    (void) state;
    cancel (TOKEN, "");
    s_stranger->is_beating = false;
    client_disconnect (s_stranger);

    world_advance (&s_world, WORLD_CANCEL_MS - 1);
    assert_int_equal (counts ().peers, 3);
    attach_with (s_sender, 1, TOKEN);
    expect_refused (s_sender, "its token was cancelled");
    world_advance (&s_world, 1);

    assert_int_equal (counts ().cancel_orphans, 0);
}

static void limit_of_a_client_can_be_changed (void **state)
{
    (void) state;
    hws_limits_t limits = s_world.options.limits;
    limits.cancel_orphans_per_peer = 1;
    hws_engine_configure (s_world.engine, &s_world.options.anchors, &limits);
    cancel (TOKEN, "");

    ask_cancel (s_stranger, TOKEN + 1, "");

    client_take_refusal (s_stranger, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT);
}

/*  ---- RESERVE_TOKEN ---- */

static void reserved_tokens_differ_and_cannot_be_counted_on (void **state)
{
    (void) state;
    uint64_t tokens[50];
    hws_control_t message = {.verb = HWS_VERB_RESERVE_TOKEN};

    for (size_t i = 0; i < 50; i++) {
        client_ask (s_stranger, &message);
        tokens[i] = client_take_ok (s_stranger, HWS_VERB_RESERVE_TOKEN)->as.token.token;
    }

    for (size_t i = 1; i < 50; i++) {
        assert_true (tokens[i] > UINT32_MAX && tokens[i] != tokens[i - 1] + 1);
        for (size_t j = 0; j < i; j++) {
            assert_true (tokens[i] != tokens[j]);
        }
    }
    attach_with (s_sender, 1, tokens[0]);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void brokers_with_other_keys_reserve_other_tokens (void **state)
{
    (void) state;
    hws_control_t message = {.verb = HWS_VERB_RESERVE_TOKEN};
    client_ask (s_stranger, &message);
    const uint64_t token = client_take_ok (s_stranger, HWS_VERB_RESERVE_TOKEN)->as.token.token;
    hws_engine_options_t options = world_options ();
    options.key[0]++;
    begin_with (&options);
    client_t *const client = client_connect (&s_world);

    client_ask (client, &message);

    assert_true (client_take_ok (client, HWS_VERB_RESERVE_TOKEN)->as.token.token != token);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (token_cancels_before_attach),
        TEST (token_cancels_before_open),
        TEST (other_tokens_and_none_are_not_cancelled),
        TEST (token_zero_is_answered_ok_and_is_nothing),
        TEST (token_ends_its_stream),
        TEST (token_ends_all_its_streams_and_no_other),
        TEST (token_cancelled_twice_is_one_ending),
        TEST (token_leaves_a_clean_ending_that_was_forwarded),
        TEST (token_of_a_stream_that_is_away_is_told_when_it_comes),
        TEST (retried_attach_finds_its_ending_before_its_token),
        TEST (token_refuses_an_attach_that_waits_for_its_anchor),
        TEST (token_refuses_an_attach_that_waits_for_room),
        TEST (token_refuses_an_attach_that_waits_for_a_bind),
        TEST (waiting_attach_that_is_seated_takes_its_token_along),
        TEST (waiting_attach_that_is_retried_has_the_token_of_the_last),
        TEST (token_ends_its_anchor_as_a_cancel_by_somebody_else),
        TEST (token_closes_an_empty_anchor_at_once),
        TEST (token_of_anchor_stream_and_waiting_attach_hits_all_three),
        TEST (token_overtakes_a_finalize),
        TEST (orphan_expires_after_ttl),
        TEST (token_stays_cancelled_for_its_ttl_after_it_hit),
        TEST (cancels_are_swept_once_in_an_interval),
        TEST (late_broker_forgets_no_cancel_early),
        TEST (time_that_was_shortened_holds_for_what_is_remembered),
        TEST (token_is_forgotten_with_what_carried_it),
        TEST (stream_that_ended_has_no_token_any_more),
        TEST (orphan_count_is_bounded),
        TEST (cancel_beyond_the_limit_hits_and_says_that_it_is_not_remembered),
        TEST (cancels_outlive_the_client_that_asked_for_them),
        TEST (limit_of_a_client_can_be_changed),
        TEST (reserved_tokens_differ_and_cannot_be_counted_on),
        TEST (brokers_with_other_keys_reserve_other_tokens),
    };
    return cmocka_run_group_tests_name ("engine tokens", tests, NULL, NULL);
}
