/*  The engine: deadlines that were armed in one state and come in another, and what was due
 *  to a client that has gone meanwhile. The model test (tests/sim) has found each of these.
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
    client_forget (s_receiver);
    return 0;
}

static void open_again (void)
{
    assert_true (hws_handle_equal (anchor_open (s_receiver, 1, "", NULL), s_handle));
    client_forget (s_receiver);
}

static void rewind_that_an_away_sender_missed_is_not_said_after_its_attach (void **state)
{
    (void) state;
    stream_send (&s_stream, 1, 8);
    client_disconnect (s_sender);
    open_again ();
    client_reconnect (s_sender);
    stream_attach_again (&s_stream);

    stream_send (&s_stream, 1, 8);
    anchor_ack (s_receiver, s_stream.routing, 1, 12, false);

    assert_int_equal (client_take_grant (s_sender)->flags, 0);
}

static void client_that_is_back_is_judged_by_its_silence_also_for_an_ending (void **state)
{
    (void) state;
    s_receiver->is_beating = true;
    stream_end (&s_stream);
    open_again ();
    client_disconnect (s_sender);
    client_reconnect (s_sender);

    world_advance (&s_world, 3 * INTERVAL - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
}

static void client_without_a_connection_is_judged_by_the_grace_also_for_an_ending (void **state)
{
    (void) state;
    const hws_open_t hasty = {.heartbeat_interval_ms = {HWS_VALUE, 200},
                              .reconnect_grace_ms = {HWS_VALUE, 0}};
    s_receiver->is_beating = true;
    world_oversleep (&s_world, 100 * INTERVAL); /* what was heard is half an interval ahead */
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &hasty);
    stream_t stream = stream_attach (s_sender, 2, handle);
    stream_end (&stream);
    anchor_open (s_receiver, 2, "", NULL);
    client_disconnect (s_sender);
    client_forget (s_receiver);

    world_advance (&s_world, 4 * 200 - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "transport");
}

static void what_was_heard_before_a_late_turn_still_counts (void **state)
{
    (void) state;
    s_receiver->is_beating = true;
    client_ping (s_sender);
    world_oversleep (&s_world, 100 * INTERVAL); /* sets the clock half an interval back */
    stream_attach_again (&s_stream);
    client_forget (s_receiver);

    world_advance (&s_world, 3 * INTERVAL + INTERVAL / 2 - 1);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
}

static void end_stream (stream_t stream)
{
    stream_end (&stream);
    anchor_ack (s_receiver, stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
}

static size_t tombstones (void)
{
    return hws_engine_counts (s_world.engine).tombstones;
}

static void tombstone_of_after_a_late_turn_is_forgotten_in_its_time (void **state)
{
    (void) state;
    s_world.options.limits.tombstones = 2;
    hws_engine_configure (s_world.engine, &s_world.options.anchors, &s_world.options.limits);
    s_receiver->is_beating = s_sender->is_beating = true;
    end_stream (s_stream);
    world_oversleep (&s_world, 100 * INTERVAL); /* sets the clock half an interval back */
    end_stream (stream_attach (s_sender, 2, s_handle));
    world_advance (&s_world, 10);
    end_stream (stream_attach (s_sender, 3, s_handle)); /* the first is forgotten for it */
    assert_int_equal (tombstones (), 2);

    world_advance (&s_world, WORLD_ORPHAN_MS - 10);

    assert_int_equal (tombstones (), 1);
}

#define ATTACHED(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        ATTACHED (rewind_that_an_away_sender_missed_is_not_said_after_its_attach),
        ATTACHED (client_that_is_back_is_judged_by_its_silence_also_for_an_ending),
        ATTACHED (client_without_a_connection_is_judged_by_the_grace_also_for_an_ending),
        ATTACHED (what_was_heard_before_a_late_turn_still_counts),
        ATTACHED (tombstone_of_after_a_late_turn_is_forgotten_in_its_time),
    };
    return cmocka_run_group_tests_name ("engine, deadlines", tests, NULL, NULL);
}
