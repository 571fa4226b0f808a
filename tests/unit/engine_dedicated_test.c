/*  Dedicated anchors in the engine: an anchor that seats its senders on a front of its own,
 *  which is bound when the first of them asks.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

static client_t *s_receiver;
static client_t *s_sender;

static int begin_clients (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    return 0;
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_clients, end)

static hws_handle_t open_dedicated (uint64_t open_id, const char *name, hws_open_t open)
{
    open.dedicated = true;
    return anchor_open (s_receiver, open_id, name, &open);
}

static hws_anchor_t *anchor_of (hws_handle_t handle)
{
    return hws_anchor_find (s_world.engine, handle);
}

/*  An answer that sends to a front: nobody has a seat.  */
static void expect_sent_to (client_t *client, uint32_t front, hws_handle_t handle)
{
    const hws_attach_ok_t *const ok = &client_take_ok (client, HWS_VERB_ATTACH)->as.attach_ok;
    assert_string_equal (ok->streaming_transport_key, "router-dedicated-v1");
    assert_string_equal (ok->endpoint, world_endpoint (front, client->listener));
    assert_true (hws_handle_equal (ok->handle, handle));
    assert_int_equal (ok->heartbeat_interval_ms, WORLD_INTERVAL_MS);
    assert_int_equal (ok->sender_id, 0);
    assert_int_equal (ok->initial_credit, 0);
    assert_false (ok->early_kept);
    assert_false (ok->has_ended);
}

static void expect_no_seat (hws_handle_t handle)
{
    const hws_anchor_t *const anchor = anchor_of (handle);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
    assert_true (anchor == NULL || anchor->next_sender_id == 1);
}

static void ask_by_name (client_t *client, uint64_t session_id, const char *name, uint64_t wait_ms)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.session_id = session_id, .wait_ms = wait_ms}};
    strcpy (message.as.attach.anchor, name);
    client_ask (client, &message);
}

/*  ---- Where to ---- */

static void transport_selection (void **state)
{
    (void) state;
    const hws_words_t offers[] = {
        {.count = 1, .word = {"router-mux-v1"}},
        {.count = 0},
        {.count = 2, .word = {"tcp-stream", "pigeon"}},
    };
    const hws_handle_t shared = anchor_open (s_receiver, 1, "", NULL);
    const hws_handle_t handle = open_dedicated (2, "", (hws_open_t){0});

    for (uint64_t i = 0; i < 3; i++) {
        hws_control_t message = {.verb = HWS_VERB_ATTACH,
                                 .as.attach = {.has_handle = true,
                                               .handle = shared,
                                               .session_id = 1 + i,
                                               .supported_transport_keys = offers[i]}};
        client_ask (s_sender, &message);
        const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
        assert_string_equal (ok->streaming_transport_key, "router-mux-v1");
        assert_string_equal (ok->endpoint, "");
        assert_int_equal (ok->sender_id, 1 + i);
        assert_true (ok->initial_credit > 0);

        message.as.attach.handle = handle;
        message.as.attach.session_id = 11 + i;
        client_ask (s_sender, &message);
        expect_sent_to (s_sender, 1, handle);
    }

    assert_int_equal (hws_engine_counts (s_world.engine).seats, 3);
    assert_int_equal (anchor_of (handle)->next_sender_id, 1);
}

static void attach_on_the_anchors_own_front_is_seated (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    expect_sent_to (s_sender, 1, handle);
    client_t *const there = client_connect_at (&s_world, 1);

    stream_t stream = stream_attach (there, 1, handle);
    stream_send (&stream, 2, 8);

    assert_int_equal (stream.sender_id, 1);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 2);
}

static void front_of_another_anchor_is_the_wrong_one (void **state)
{
    (void) state;
    const hws_handle_t first = open_dedicated (1, "", (hws_open_t){0});
    const hws_handle_t second = open_dedicated (2, "", (hws_open_t){0});
    stream_ask (s_sender, 1, first);
    expect_sent_to (s_sender, 1, first);
    client_t *const there = client_connect_at (&s_world, 1);

    stream_ask (there, 1, second);

    expect_sent_to (there, 2, second);
    expect_no_seat (second);
}

static void endpoint_is_that_of_the_listener_the_peer_came_by (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    s_sender->listener = 1;
    client_reconnect (s_sender);

    stream_ask (s_sender, 1, handle);
    expect_sent_to (s_sender, 1, handle);
    s_sender->listener = 0;
    client_reconnect (s_sender);
    stream_ask (s_sender, 1, handle);
    expect_sent_to (s_sender, 1, handle);
}

static void listener_that_the_front_does_not_have_means_the_first (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    s_sender->listener = 7;
    client_reconnect (s_sender);

    stream_ask (s_sender, 1, handle);

    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.endpoint,
                         world_endpoint (1, 0));
}

static void bound_front_is_told_without_another_bind (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    expect_sent_to (s_sender, 1, handle);

    stream_ask (s_sender, 2, handle);

    expect_sent_to (s_sender, 1, handle);
    assert_int_equal (s_world.last_front, 1);
    assert_int_equal (s_world.front_count, 1);
}

static void attach_on_the_wrong_front_finds_its_seat (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    client_t *const there = client_connect_at (&s_world, 1);
    stream_t stream = stream_attach (there, 5, handle);

    there->front = 0;
    client_reconnect (there);
    stream_attach_again (&stream);

    assert_int_equal (stream.sender_id, 1);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
}

static void attach_on_the_wrong_front_finds_its_ending (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    client_t *const there = client_connect_at (&s_world, 1);
    stream_attach (there, 5, handle);
    anchor_cancel (s_receiver, handle, 0, "enough");
    client_forget (there);

    there->front = 0;
    client_reconnect (there);
    stream_ask (there, 5, handle);

    const hws_attach_ok_t *const ok = &client_take_ok (there, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "cancelled");
    assert_string_equal (ok->code, "receiver_closed");
}

static void records_behind_an_attach_that_is_sent_elsewhere_are_dropped (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    s_world.is_slow_to_bind = true;
    stream_ask (s_sender, 1, handle);
    stream_t early = {.client = s_sender, .session_id = 1};

    stream_send (&early, 3, 8);
    client_expect_silence (s_sender);
    world_bound (&s_world, 1);

    expect_sent_to (s_sender, 1, handle);
    client_forget (s_receiver);
    client_expect_silence (s_receiver);
}

/*  ---- While the front is bound ---- */

static void anchor_removed_during_bind (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "results", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    ask_by_name (s_sender, 2, "results", 1000);
    client_expect_silence (s_sender);

    anchor_cancel (s_receiver, handle, 0, "enough");

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EREMOVED_DURING_BIND);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EREMOVED_DURING_BIND);
    assert_int_equal (s_world.front_count, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
    expect_no_seat (handle);
    world_bound (&s_world, 1); /* comes too late for anything */
    client_expect_silence (s_sender);
    assert_int_equal (s_world.unbind_count, 1);
}

/*  No message takes the room of an unbound dedicated anchor today; a seat that is made anew
 *  for a stream which is resumed would.  */
static void anchor_full_during_bind (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle =
        open_dedicated (1, "results", (hws_open_t){.max_senders = {HWS_VALUE, 1}});
    stream_ask (s_sender, 1, handle);
    client_t *const other = client_connect (&s_world);
    const hws_attach_t faster = {.has_handle = true, .handle = handle, .session_id = 1};
    assert_non_null (hws_seat_new (s_world.engine, anchor_of (handle),
                                   hws_peer_of_client (s_world.engine, &other->id), &faster));

    world_bound (&s_world, 1);

    const hws_refusal_t *const refusal =
        client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);
    assert_string_equal (refusal->reason, "mpsc anchor 1 results reached max_senders limit 1");
    assert_int_equal (s_world.front_count, 0);
    assert_int_equal (s_world.unbind_count, 1);
    assert_int_equal (anchor_of (handle)->next_sender_id, 2);
}

static void front_given_up_is_bound_again_under_another_number (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    client_disconnect (s_sender);
    world_bound (&s_world, 1);
    assert_int_equal (s_world.front_count, 0);

    client_reconnect (s_sender);
    stream_ask (s_sender, 1, handle);
    world_bound (&s_world, 2);

    expect_sent_to (s_sender, 2, handle);
    assert_int_equal (s_world.front_count, 1);
}

static void bind_failure_is_transport_error (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);

    world_bind_failed (&s_world, 1, "cannot listen on tcp://127.0.0.1:0: no descriptors");

    const hws_refusal_t *const refusal =
        client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ETRANSPORT);
    assert_string_equal (refusal->reason, "anchor 1: its front cannot be bound: cannot listen on "
                                          "tcp://127.0.0.1:0: no descriptors");
    assert_int_equal (s_world.unbind_count, 0);
    expect_no_seat (handle);
    stream_ask (s_sender, 2, handle);
    world_bound (&s_world, 2);
    expect_sent_to (s_sender, 2, handle);
    assert_int_equal (hws_engine_stats (s_world.engine)->bind_failures, 1);
}

static void attaches_during_one_bind_are_all_answered (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "results", (hws_open_t){0});
    client_t *const other = client_connect (&s_world);
    other->listener = 1;
    client_reconnect (other);

    stream_ask (s_sender, 1, handle);
    ask_by_name (other, 1, "results", 0);
    assert_int_equal (s_world.last_front, 1);
    world_bound (&s_world, 1);

    expect_sent_to (s_sender, 1, handle);
    expect_sent_to (other, 1, handle);
}

static void attach_repeated_during_the_bind_is_answered_once (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);

    stream_ask (s_sender, 1, handle);
    world_bound (&s_world, 1);

    const hws_control_t *const answer = client_take_ok (s_sender, HWS_VERB_ATTACH);
    assert_int_equal (answer->id, s_sender->next_id);
    client_expect_silence (s_sender);
    assert_int_equal (s_world.last_front, 1);
}

static void peer_gone_during_bind_leaves_nothing_bound (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);

    client_disconnect (s_sender);
    world_bound (&s_world, 1);

    assert_int_equal (s_world.front_count, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
    expect_no_seat (handle);
    client_expect_silence (s_sender);
}

static void attach_read_after_the_end_of_its_connection_binds_nothing (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    client_disconnect (s_sender);

    stream_ask (s_sender, 1, handle);

    assert_int_equal (s_world.last_front, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
}

static void bind_has_no_time_limit_of_its_attach (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    s_receiver->is_beating = s_sender->is_beating = true;
    const hws_handle_t handle = open_dedicated (1, "results", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    ask_by_name (s_sender, 2, "results", 500);

    world_advance (&s_world, 2000);
    client_expect_silence (s_sender);
    world_bound (&s_world, 1);

    expect_sent_to (s_sender, 1, handle);
    expect_sent_to (s_sender, 1, handle);
}

static void attach_waits_for_a_dedicated_anchor_and_then_for_its_front (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    ask_by_name (s_sender, 1, "later", 1000);
    client_expect_silence (s_sender);

    const hws_handle_t handle = open_dedicated (1, "later", (hws_open_t){0});
    client_expect_silence (s_sender);
    world_bound (&s_world, 1);

    expect_sent_to (s_sender, 1, handle);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
}

static void drain_during_bind_refuses_as_closed (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    hws_engine_drain (s_world.engine, s_world.now, "leaving");

    world_bound (&s_world, 1);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (s_world.front_count, 0);
}

/*  ---- The end of a front ---- */

static void owner_cancels (hws_handle_t handle)
{
    anchor_cancel (s_receiver, handle, 0, "");
}

static void owner_says_bye (hws_handle_t handle)
{
    (void) handle;
    hws_control_t bye = {.verb = HWS_VERB_BYE};
    client_ask (s_receiver, &bye);
}

static void owner_does_not_come_back (hws_handle_t handle)
{
    (void) handle;
    client_disconnect (s_receiver);
    world_advance (&s_world, WORLD_ORPHAN_MS);
}

static void nobody_attaches_in_time (hws_handle_t handle)
{
    (void) handle;
    s_receiver->is_beating = true;
    world_advance (&s_world, 20000);
}

static void sender_cancels (hws_handle_t handle)
{
    client_t *const there = client_connect_at (&s_world, 1);
    stream_t stream = stream_attach (there, 1, handle);
    anchor_cancel (there, handle, 0, "no more");
    assert_int_equal (s_world.front_count, 1); /* closing: it may still rewind */
    anchor_ack (s_receiver, stream.routing, 0, 0, true);
}

static void front_ends_with_its_anchor_however_that_ends (void **state)
{
    (void) state;
    void (*const ways[]) (hws_handle_t) = {owner_cancels, owner_says_bye, owner_does_not_come_back,
                                           nobody_attaches_in_time, sender_cancels};

    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const hws_engine_options_t options = world_options ();
        begin_with (&options);
        s_receiver = client_connect (&s_world);
        s_sender = client_connect (&s_world);
        const hws_handle_t handle =
            open_dedicated (1, "", (hws_open_t){.unattached_timeout_ms = {HWS_VALUE, 15000}});
        stream_ask (s_sender, 1, handle);
        assert_int_equal (s_world.front_count, 1);

        ways[i](handle);

        assert_null (anchor_of (handle));
        assert_int_equal (s_world.front_count, 0);
        assert_int_equal (s_world.unbind_count, 1);
    }
}

static void front_stays_while_senders_come_and_go (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    stream_ask (s_sender, 1, handle);
    client_t *const there = client_connect_at (&s_world, 1);

    for (uint64_t i = 1; i <= 3; i++) {
        stream_t stream = stream_attach (there, i, handle);
        stream_end (&stream);
        anchor_ack (s_receiver, stream.routing, stream.next_seq, stream.next_bytes, true);
    }

    assert_int_equal (s_world.front_count, 1);
    assert_int_equal (s_world.unbind_count, 0);
}

/*  ---- Limits ---- */

static void full_dedicated_anchor_refuses_before_any_bind (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){.max_senders = {HWS_VALUE, 1}});
    stream_ask (s_sender, 1, handle);
    client_forget (s_sender);
    client_t *const there = client_connect_at (&s_world, 1);
    stream_attach (there, 1, handle);

    stream_ask (s_sender, 2, handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);
}

static void dedicated_anchors_are_limited (void **state)
{
    (void) state;
    const uint64_t limit = s_world.options.limits.fronts;
    hws_handle_t first = {0};
    for (uint64_t i = 1; i <= limit; i++) {
        const hws_handle_t handle = open_dedicated (i, "", (hws_open_t){0});
        first = i == 1 ? handle : first;
    }

    hws_control_t open = {.verb = HWS_VERB_OPEN,
                          .as.open = {.open_id = limit + 1, .dedicated = true}};
    client_ask (s_receiver, &open);
    const hws_refusal_t *const refusal =
        client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ELIMIT);

    assert_string_equal (refusal->reason, "the broker reached its limit of 3 dedicated anchors");
    anchor_open (s_receiver, limit + 2, "", NULL);
    anchor_cancel (s_receiver, first, 0, "");
    open_dedicated (limit + 3, "", (hws_open_t){0});
    assert_int_equal (hws_engine_counts (s_world.engine).dedicated, limit);
}

static void limit_of_no_fronts_refuses_every_dedicated_anchor (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.fronts = 0;
    begin_with (&options);
    s_receiver = client_connect (&s_world);

    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1, .dedicated = true}};
    client_ask (s_receiver, &open);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ELIMIT);
}

static void attaches_that_wait_for_a_bind_are_limited (void **state)
{
    (void) state;
    s_world.is_slow_to_bind = true;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    for (uint64_t i = 1; i <= 3; i++) {
        stream_ask (s_sender, i, handle);
    }

    stream_ask (s_sender, 4, handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ELIMIT);
    world_bound (&s_world, 1);
    for (uint64_t i = 1; i <= 3; i++) {
        expect_sent_to (s_sender, 1, handle);
    }
}

static void numbers_of_fronts_come_to_an_end (void **state)
{
    (void) state;
    const hws_handle_t handle = open_dedicated (1, "", (hws_open_t){0});
    s_world.engine->front_count = UINT32_MAX;

    stream_ask (s_sender, 1, handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ELIMIT);
    assert_int_equal (s_world.last_front, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (transport_selection),
        TEST (attach_on_the_anchors_own_front_is_seated),
        TEST (front_of_another_anchor_is_the_wrong_one),
        TEST (endpoint_is_that_of_the_listener_the_peer_came_by),
        TEST (listener_that_the_front_does_not_have_means_the_first),
        TEST (bound_front_is_told_without_another_bind),
        TEST (attach_on_the_wrong_front_finds_its_seat),
        TEST (attach_on_the_wrong_front_finds_its_ending),
        TEST (records_behind_an_attach_that_is_sent_elsewhere_are_dropped),
        TEST (anchor_removed_during_bind),
        TEST (anchor_full_during_bind),
        TEST (front_given_up_is_bound_again_under_another_number),
        TEST (bind_failure_is_transport_error),
        TEST (attaches_during_one_bind_are_all_answered),
        TEST (attach_repeated_during_the_bind_is_answered_once),
        TEST (peer_gone_during_bind_leaves_nothing_bound),
        TEST (attach_read_after_the_end_of_its_connection_binds_nothing),
        TEST (bind_has_no_time_limit_of_its_attach),
        TEST (attach_waits_for_a_dedicated_anchor_and_then_for_its_front),
        TEST (drain_during_bind_refuses_as_closed),
        TEST (front_ends_with_its_anchor_however_that_ends),
        TEST (front_stays_while_senders_come_and_go),
        TEST (full_dedicated_anchor_refuses_before_any_bind),
        TEST (dedicated_anchors_are_limited),
        TEST (limit_of_no_fronts_refuses_every_dedicated_anchor),
        TEST (attaches_that_wait_for_a_bind_are_limited),
        TEST (numbers_of_fronts_come_to_an_end),
    };
    return cmocka_run_group_tests_name ("dedicated anchors", tests, NULL, NULL);
}
