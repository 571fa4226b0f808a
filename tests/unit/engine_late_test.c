/*  The engine: a broker that was late judges nobody by the time it slept.
 */
#include "tests/support/engine_test.h"

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

static hws_handle_t open_unattached (uint64_t timeout_ms)
{
    const hws_open_t open = {.unattached_timeout_ms = {HWS_VALUE, timeout_ms}};
    return anchor_open (s_receiver, 2, "", &open);
}

static void late_broker_does_not_judge (void **state)
{
    (void) state;
    const hws_handle_t handle = open_unattached (1500);
    client_disconnect (s_sender);
    client_t *const lively = client_connect (&s_world);
    stream_t stream = stream_attach (lively, 1, s_handle);
    client_forget (s_receiver);

    world_oversleep (&s_world, 10 * INTERVAL);

    assert_int_equal (hws_engine_stats (s_world.engine)->late_turns, 1);
    assert_int_equal (dropped (), 0);
    client_expect_silence (s_receiver);
    lively->is_beating = true;
    client_reconnect (s_sender);
    stream_attach_again (&s_stream);
    s_sender->is_beating = true;
    world_advance (&s_world, INTERVAL);
    stream_send (&stream, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
    stream_attach (lively, 2, handle);
    assert_int_equal (dropped (), 0);
}

/*  Lets the time pass until `length_ms` after `from`.  */
static void advance_to (hws_ms_t from, hws_ms_t length_ms)
{
    world_advance (&s_world, from + length_ms - s_world.now);
}

static void late_broker_does_not_judge_by_any_deadline (void **state)
{
    (void) state;
    client_t *const patient = client_connect (&s_world);
    const stream_t ended = stream_attach (patient, 1, s_handle);
    client_t *const absent = client_connect (&s_world);
    const hws_open_t open = {.orphan_ttl_ms = {HWS_VALUE, 7000}};
    anchor_open (absent, 1, "", &open);
    client_connect (&s_world); /* will say nothing more */
    /* Everything from here on is due after a time of its own. */
    const hws_handle_t empty = open_unattached (1500);
    anchor_cancel (s_receiver, s_handle, ended.sender_id, "");
    anchor_ack (s_receiver, ended.routing, 0, 0, true);
    client_disconnect (s_sender);
    client_disconnect (absent);
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = {.anchor = "later", .session_id = 2, .wait_ms = 1000}};
    client_ask (patient, &attach);
    client_forget (s_receiver);
    client_forget (patient);

    world_oversleep (&s_world, 20 * INTERVAL);

    client_expect_silence (s_receiver);
    client_expect_silence (patient);
    hws_engine_counts_t counts = hws_engine_counts (s_world.engine);
    assert_int_equal (counts.anchors, 3);
    assert_int_equal (counts.tombstones, 1);
    assert_int_equal (counts.peers, 5);
    /* Half an interval of each time had passed when the turn was due, and one is given. */
    patient->is_beating = true;
    const hws_ms_t from = s_world.now + INTERVAL - INTERVAL / 2;
    advance_to (from, 999);
    client_expect_silence (patient);
    advance_to (from, 1000);
    client_take_refusal (patient, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    advance_to (from, 1499);
    client_expect_silence (s_receiver);
    advance_to (from, 1500);
    assert_true (hws_handle_equal (
        client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.handle, empty));
    advance_to (from, 3 * INTERVAL - 1);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 5);
    advance_to (from, 3 * INTERVAL);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 4);
    advance_to (from, WORLD_GRACE_MS - 1);
    client_expect_silence (s_receiver);
    advance_to (from, WORLD_GRACE_MS);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    advance_to (from, 6999);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 2);
    advance_to (from, 7000);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
    advance_to (from, WORLD_ORPHAN_MS - 1);
    counts = hws_engine_counts (s_world.engine);
    advance_to (from, WORLD_ORPHAN_MS);
    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, counts.tombstones - 1);
}

static void late_broker_judges_after_the_time_that_was_left_and_one_interval (void **state)
{
    (void) state;
    world_oversleep (&s_world, 10 * INTERVAL);

    /* The turn was due after half an interval; three intervals of silence are complete
       when the rest has passed and the interval that everybody is given. */
    world_advance (&s_world, 3 * INTERVAL - INTERVAL / 2 + INTERVAL - 1);
    assert_int_equal (dropped (), 0);
    world_advance (&s_world, 1);

    assert_int_equal (dropped (), 1);
}

static void broker_that_is_late_again_and_again_still_judges_nobody (void **state)
{
    (void) state;
    for (int i = 0; i < 20; i++) {
        world_oversleep (&s_world, 5 * INTERVAL);
        client_ping (s_sender);
        client_ping (s_receiver);
    }

    assert_int_equal (dropped (), 0);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
}

static void late_message_does_not_judge_either (void **state)
{
    (void) state;
    s_world.now += 10 * INTERVAL;

    client_ping (s_receiver); /* this message is the turn that came late */
    hws_engine_expire (s_world.engine, s_world.now);
    world_pump (&s_world);

    assert_int_equal (dropped (), 0);
    assert_null (client_find_control (s_receiver, HWS_VERB_RESYNC));
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (late_broker_does_not_judge),
        TEST (late_broker_does_not_judge_by_any_deadline),
        TEST (late_broker_judges_after_the_time_that_was_left_and_one_interval),
        TEST (broker_that_is_late_again_and_again_still_judges_nobody),
        TEST (late_message_does_not_judge_either),
    };
    return cmocka_run_group_tests_name ("engine late", tests, NULL, NULL);
}
