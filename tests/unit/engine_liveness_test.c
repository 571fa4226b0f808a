/*  The engine: who is silent, and who is away.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"
#include "tests/support/heap_count.h"

#define INTERVAL WORLD_INTERVAL_MS

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
    s_receiver->is_beating = true;
    client_forget (s_receiver);
    return 0;
}

static uint64_t dropped (void)
{
    return hws_engine_stats (s_world.engine)->dropped;
}

/*  ---- Silence ---- */

static void three_silent_intervals_drop (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t lively = stream_attach (other, 1, s_handle);
    other->is_beating = true;
    client_forget (s_receiver);

    world_advance (&s_world, 3 * INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
    stream_send (&lively, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, lively.routing, 0, 1);
    assert_int_equal (dropped (), 1);
}

static void any_message_resets_the_count (void **state)
{
    (void) state;

    for (int i = 0; i < 10; i++) {
        world_advance (&s_world, 3 * INTERVAL - 1);
        switch (i % 5) {
        case 0:
            client_ping (s_sender);
            break;
        case 1:
            stream_send (&s_stream, 1, 8);
            break;
        case 2:
            client_send_frames (s_sender, hws_bytes_of_text ("FROB"), "{}");
            break;
        case 3:
            client_send_frames (s_sender, hws_bytes ("?", 1), NULL);
            break;
        default:
            client_send_frames (s_sender, hws_bytes ("\x01\x05\0\0\0\0\0\0", 8), NULL);
            break;
        }
    }

    assert_int_equal (dropped (), 0);
}

static void deadline_counts_from_attach (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    world_advance (&s_world, 2 * INTERVAL);
    const stream_t fresh = stream_attach (other, 1, s_handle);
    client_forget (s_receiver);

    world_advance (&s_world, INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
    world_advance (&s_world, 2 * INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, fresh.routing, HWS_RUN_DROPPED, "heartbeat");
    client_expect_silence (s_receiver);
}

static void all_silent_peers_expire (void **state)
{
    (void) state;
    s_world.options.limits.peers = 11;
    hws_engine_configure (s_world.engine, &s_world.options.anchors, &s_world.options.limits);
    s_sender->is_beating = true;
    for (int i = 0; i < 9; i++) {
        stream_attach (client_connect (&s_world), 1, s_handle);
    }
    client_forget (s_receiver);

    world_advance (&s_world, 4 * INTERVAL);

    for (int i = 0; i < 9; i++) {
        assert_true (client_take_run (s_receiver, HWS_RUN_DROPPED)->stream != s_stream.routing);
    }
    client_expect_silence (s_receiver);
    assert_int_equal (dropped (), 9);
}

static void waiting_is_not_silence (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    stream_send (&s_stream, WORLD_RECORDS, 8); /* the window is full, nobody acknowledges */

    world_advance (&s_world, 10 * INTERVAL);

    assert_int_equal (dropped (), 0);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
}

static void sender_that_waits_and_dies_is_dropped_like_any_other (void **state)
{
    (void) state;
    stream_send (&s_stream, WORLD_RECORDS, 8);
    client_take_run (s_receiver, HWS_RUN_RECORDS);

    world_advance (&s_world, 3 * INTERVAL);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
}

static void interval_is_per_anchor (void **state)
{
    (void) state;
    const hws_open_t open = {.heartbeat_interval_ms = {HWS_VALUE, 100}};
    const hws_handle_t hasty = anchor_open (s_receiver, 2, "", &open);
    const stream_t second = stream_attach (s_sender, 2, hasty);
    client_forget (s_receiver);

    world_advance (&s_world, 299);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);
    expect_ending (s_receiver, second.routing, HWS_RUN_DROPPED, "heartbeat");
    world_advance (&s_world, 3 * INTERVAL - 300 - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
}

static void judged_sender_is_told (void **state)
{
    (void) state;
    world_advance (&s_world, 3 * INTERVAL);
    expect_told (s_sender, 1, "dropped", "heartbeat"); /* waits in its connection */

    stream_ask (s_sender, 1, s_handle);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->code, "heartbeat");
}

static void ping_is_answered (void **state)
{
    (void) state;

    client_ping (s_sender);

    client_take (s_sender, HWS_VERB_PONG);
}

static void one_timer_per_object (void **state)
{
    (void) state;
    const size_t timers = heap_count (&s_world.engine->deadlines);
    const hws_ms_t wake_at = hws_engine_wake_at (s_world.engine);
    assert_in_range (timers, 1, 4); /* two clients, an anchor, a seat */

    for (int i = 0; i < 1000; i++) {
        stream_send (&s_stream, 1, 8);
        anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, false);
    }

    assert_int_equal (heap_count (&s_world.engine->deadlines), timers);
    assert_true (hws_engine_wake_at (s_world.engine) == wake_at);
    assert_int_equal (s_stream.next_seq, 1000);
}

static void broker_without_clients_has_nothing_to_wake_for (void **state)
{
    (void) state;
    const hws_engine_options_t options = world_options ();
    begin_with (&options);

    assert_true (hws_engine_wake_at (s_world.engine) == HWS_NEVER);
    client_connect (&s_world);
    assert_true (hws_engine_wake_at (s_world.engine) <= s_world.now + INTERVAL / 2);
    world_advance (&s_world, 4 * INTERVAL);

    assert_true (hws_engine_wake_at (s_world.engine) == HWS_NEVER);
}

/*  ---- Away ---- */

static void away_sender_is_judged_by_the_grace_alone (void **state)
{
    (void) state;
    client_disconnect (s_sender);

    world_advance (&s_world, WORLD_GRACE_MS - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
}

static void grace_is_at_least_four_intervals (void **state)
{
    (void) state;
    const hws_open_t open = {.reconnect_grace_ms = {HWS_VALUE, 0}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    const stream_t stream = stream_attach (s_sender, 2, handle);
    client_forget (s_receiver);
    client_disconnect (s_sender);

    world_advance (&s_world, 4 * INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "transport");
}

static void sender_back_in_time_goes_on (void **state)
{
    (void) state;
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS - 1);

    client_reconnect (s_sender);
    stream_attach_again (&s_stream);
    s_sender->is_beating = true;
    world_advance (&s_world, 4 * WORLD_GRACE_MS);

    stream_send (&s_stream, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    client_expect_silence (s_receiver);
}

static void hello_without_attach_is_not_back (void **state)
{
    (void) state;
    client_disconnect (s_sender);
    client_reconnect (s_sender);
    s_sender->is_beating = true;

    world_advance (&s_world, WORLD_GRACE_MS);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    expect_told (s_sender, 1, "dropped", "transport");
}

static void silent_receiver_is_away_and_told_to_resynchronise (void **state)
{
    (void) state;
    s_receiver->is_beating = false;
    s_sender->is_beating = true;
    world_advance (&s_world, 3 * INTERVAL);
    stream_send (&s_stream, 1, 8);
    client_expect_silence (s_receiver);

    client_ping (s_receiver);

    assert_int_equal (client_take (s_receiver, HWS_VERB_RESYNC)->as.epoch, 7);
    client_take (s_receiver, HWS_VERB_PONG);
    client_ping (s_receiver); /* once */
    client_take (s_receiver, HWS_VERB_PONG);
    client_expect_silence (s_receiver);
}

static void silent_receiver_is_told_also_when_its_anchor_has_ended_meanwhile (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    anchor_open (other, 1, "", NULL); /* keeps the peer */
    anchor_open (s_receiver, 2, "", NULL);
    other->is_beating = s_sender->is_beating = true;
    s_receiver->is_beating = false;
    world_advance (&s_world, 3 * INTERVAL);
    anchor_cancel (s_sender, s_handle, 0, "");
    client_forget (s_receiver);

    client_ping (s_receiver);

    client_take (s_receiver, HWS_VERB_RESYNC);
}

static void abandoned_anchor_expires (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    client_disconnect (s_receiver);
    s_receiver->is_beating = false;

    world_advance (&s_world, WORLD_ORPHAN_MS - 1);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
    world_advance (&s_world, 1);

    expect_told (s_sender, 1, "cancelled", "abandoned");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void abandoned_anchor_takes_attaches_and_goes_on (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    client_disconnect (s_receiver);
    s_receiver->is_beating = false;
    stream_t second = stream_attach (s_sender, 2, s_handle);
    world_advance (&s_world, WORLD_ORPHAN_MS - 1);

    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    s_receiver->is_beating = true;
    world_advance (&s_world, 2 * WORLD_ORPHAN_MS);
    stream_send (&second, 1, 8);

    expect_run (s_receiver, HWS_RUN_ATTACHED, s_stream.routing, 0, 0);
    expect_run (s_receiver, HWS_RUN_ATTACHED, second.routing, 0, 0);
    expect_run (s_receiver, HWS_RUN_RECORDS, second.routing, 0, 1);
}

static void receiver_with_an_orphan_ttl_of_0_cancels_at_once (void **state)
{
    (void) state;
    const hws_open_t open = {.orphan_ttl_ms = {HWS_VALUE, 0}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_attach (s_sender, 2, handle);
    client_disconnect (s_receiver);

    world_advance (&s_world, 0);

    expect_told (s_sender, 2, "cancelled", "abandoned");
}

static void stale_open_of_a_lost_connection_leaves_an_abandoned_anchor (void **state)
{
    (void) state;
    client_disconnect (s_receiver);
    s_receiver->is_beating = false;
    s_sender->is_beating = true;
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 9}};
    client_ask (s_receiver, &open);
    const size_t before = s_receiver->message_count;

    world_advance (&s_world, WORLD_ORPHAN_MS);

    assert_int_equal (s_receiver->message_count, before);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (three_silent_intervals_drop),
        TEST (any_message_resets_the_count),
        TEST (deadline_counts_from_attach),
        TEST (all_silent_peers_expire),
        TEST (waiting_is_not_silence),
        TEST (sender_that_waits_and_dies_is_dropped_like_any_other),
        TEST (interval_is_per_anchor),
        TEST (judged_sender_is_told),
        TEST (ping_is_answered),
        TEST (one_timer_per_object),
        TEST (broker_without_clients_has_nothing_to_wake_for),
        TEST (away_sender_is_judged_by_the_grace_alone),
        TEST (grace_is_at_least_four_intervals),
        TEST (sender_back_in_time_goes_on),
        TEST (hello_without_attach_is_not_back),
        TEST (silent_receiver_is_away_and_told_to_resynchronise),
        TEST (silent_receiver_is_told_also_when_its_anchor_has_ended_meanwhile),
        TEST (abandoned_anchor_expires),
        TEST (abandoned_anchor_takes_attaches_and_goes_on),
        TEST (receiver_with_an_orphan_ttl_of_0_cancels_at_once),
        TEST (stale_open_of_a_lost_connection_leaves_an_abandoned_anchor),
    };
    return cmocka_run_group_tests_name ("engine liveness", tests, NULL, NULL);
}
