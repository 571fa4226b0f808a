/*  The engine: senders take their seats.
 */
#include "tests/support/engine_test.h"

static client_t *s_receiver;
static client_t *s_sender;
static hws_handle_t s_handle;

static int begin_open (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "results", NULL);
    return 0;
}

/*  ---- Seats ---- */

static void sender_ids_start_at_one (void **state)
{
    (void) state;

    stream_t first = stream_attach (s_sender, 10, s_handle);
    stream_t second = stream_attach (s_sender, 11, s_handle);
    for (int i = 0; i < 5; i++) {
        stream_send (&second, 1, 4);
        stream_send (&first, 1, 4);
    }

    assert_int_equal (first.sender_id, 1);
    assert_int_equal (second.sender_id, 2);
    assert_true (first.routing != second.routing);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    for (uint64_t i = 0; i < 5; i++) {
        expect_run (s_receiver, HWS_RUN_RECORDS, second.routing, i, 1);
        expect_run (s_receiver, HWS_RUN_RECORDS, first.routing, i, 1);
    }
    client_expect_silence (s_receiver);
}

static void ids_are_never_reused (void **state)
{
    (void) state;
    s_receiver->is_beating = true;
    const stream_t dropped = stream_attach (s_sender, 1, s_handle);
    world_advance (&s_world, 3 * WORLD_INTERVAL_MS);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_ending (s_receiver, dropped.routing, HWS_RUN_DROPPED, "heartbeat");
    anchor_ack (s_receiver, dropped.routing, 0, 0, true);

    const stream_t second = stream_attach (s_sender, 2, s_handle);
    anchor_cancel (s_receiver, s_handle, second.sender_id, "");
    anchor_ack (s_receiver, second.routing, 0, 0, true);
    const stream_t third = stream_attach (s_sender, 3, s_handle);

    assert_int_equal (second.sender_id, 2);
    assert_int_equal (third.sender_id, 3);
    assert_true (dropped.routing != second.routing && second.routing != third.routing);
}

static void refused_attach_uses_no_id (void **state)
{
    (void) state;
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true, .handle = s_handle, .session_id = 1, .label = "\x7f"}};
    client_ask (s_sender, &message);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBAD_REQUEST);

    assert_int_equal (stream_attach (s_sender, 2, s_handle).sender_id, 1);
}

static void reattach_after_detach_gets_new_id (void **state)
{
    (void) state;

    for (uint64_t id = 1; id <= 2; id++) {
        stream_t stream = stream_attach (s_sender, 100 + id, s_handle);
        stream_send (&stream, 1, 8);
        stream_end (&stream);

        assert_int_equal (stream.sender_id, id);
        expect_run (s_receiver, HWS_RUN_ATTACHED, stream.routing, 0, 0);
        expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
        expect_run (s_receiver, HWS_RUN_DETACHED, stream.routing, 1, 1);
    }
    client_expect_silence (s_receiver);
}

static void two_clients_same_session_id (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t first = stream_attach (s_sender, 1, s_handle);
    stream_t second = stream_attach (other, 1, s_handle);
    client_forget (s_receiver);

    for (uint64_t i = 0; i < 50; i++) {
        stream_send (&first, 1, 4);
        stream_send (&second, 1, 4);
        expect_run (s_receiver, HWS_RUN_RECORDS, first.routing, i, 1);
        expect_run (s_receiver, HWS_RUN_RECORDS, second.routing, i, 1);
    }

    client_expect_silence (s_receiver);
}

static void same_numbers_in_two_anchors (void **state)
{
    (void) state;
    const hws_handle_t other = anchor_open (s_receiver, 2, "", NULL);
    stream_t first = stream_attach (s_sender, 1, s_handle);
    stream_t second = stream_attach (s_sender, 2, other);
    assert_int_equal (first.sender_id, second.sender_id);
    client_forget (s_receiver);

    anchor_cancel (s_receiver, other, 1, "");

    expect_ending (s_receiver, second.routing, HWS_RUN_CANCELLED, "requested");
    stream_send (&first, 1, 4);
    expect_run (s_receiver, HWS_RUN_RECORDS, first.routing, 0, 1);
}

static void retried_attach_is_the_same_seat (void **state)
{
    (void) state;
    const stream_t stream = stream_attach (s_sender, 1, s_handle);

    const stream_t again = stream_attach (s_sender, 1, s_handle);

    assert_true (again.sender_id == stream.sender_id);
    assert_true (again.routing == stream.routing);
    assert_true (again.limit_bytes == stream.limit_bytes);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_expect_silence (s_receiver);
}

static void attach_answer_lost (void **state)
{
    (void) state;
    s_sender->is_full = true; /* the answer is not delivered */
    stream_ask (s_sender, 1, s_handle);
    client_disconnect (s_sender);
    s_sender->is_full = false;

    client_reconnect (s_sender);
    const stream_t stream = stream_attach (s_sender, 1, s_handle);

    assert_int_equal (stream.sender_id, 1);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
}

static void attach_with_a_full_window_gives_room_for_nothing (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 1, WORLD_WINDOW / 2 - HWS_RECORD_HEADER_SIZE);
    stream_send (&stream, 1, WORLD_WINDOW / 2 - HWS_RECORD_HEADER_SIZE);
    client_reconnect (s_sender);
    stream_ask (s_sender, 1, s_handle);

    /* A budget of 0 would mean "the default" to the client.  */
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;

    assert_int_equal (ok->next_bytes, WORLD_WINDOW);
    assert_in_range (ok->slot_byte_budget, 1, HWS_RECORD_HEADER_SIZE - 1);
}

static void stream_cancel_handle_is_echoed (void **state)
{
    (void) state;
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = 1,
                                           .stream_cancel_handle = {UINT64_MAX, 3}}};
    client_ask (s_sender, &message);
    client_take_ok (s_sender, HWS_VERB_ATTACH);

    anchor_cancel (s_receiver, s_handle, 1, "stop");

    const hws_stream_cancel_t *const told =
        &client_take (s_sender, HWS_VERB_STREAM_CANCEL)->as.stream_cancel;
    assert_true (told->stream_cancel_handle.hi == UINT64_MAX && told->stream_cancel_handle.lo == 3);
    assert_string_equal (told->reason, "stop");
}

static void attach_without_an_id_is_seated_without_an_answer (void **state)
{
    (void) state;
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true, .handle = s_handle, .session_id = 1}};

    client_say (s_sender, &message);

    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_expect_silence (s_sender);
}

static void transport_selection (void **state)
{
    (void) state;
    static const hws_words_t keys[] = {
        {.count = 0},
        {.count = 1, .word = {HWS_TRANSPORT_MUX}},
        {.count = 2, .word = {"carrier-pigeon", "tcp-stream"}},
        {.count = 2, .word = {"tcp-stream", HWS_TRANSPORT_MUX}},
    };
    for (uint64_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const hws_handle_t handle = anchor_open (s_receiver, 2 + i, "", NULL);
        hws_control_t message = {.verb = HWS_VERB_ATTACH,
                                 .as.attach = {.has_handle = true,
                                               .handle = handle,
                                               .session_id = 1 + i,
                                               .supported_transport_keys = keys[i]}};

        client_ask (s_sender, &message);

        const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
        assert_string_equal (ok->streaming_transport_key, HWS_TRANSPORT_MUX);
        assert_int_equal (ok->sender_id, 1);
        assert_int_equal (ok->initial_credit, WORLD_RECORDS);
        assert_int_equal (ok->slot_byte_budget, WORLD_WINDOW);
        assert_string_equal (ok->endpoint, "");
    }
}

static void cancel_during_attach (void **state)
{
    (void) state;
    s_sender->is_full = true; /* the answer is on its way, so to say */
    stream_ask (s_sender, 1, s_handle);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);

    anchor_cancel (s_receiver, s_handle, 1, "changed my mind");
    s_sender->is_full = false;
    world_advance (&s_world, 20);

    client_take (s_sender, HWS_VERB_RESYNC);
    client_hello (s_sender);
    client_take_ok (s_sender, HWS_VERB_HELLO);
    stream_ask (s_sender, 1, s_handle);
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "cancelled");
    assert_string_equal (ok->reason, "changed my mind");
    const hws_run_t *const run = client_take_run (s_receiver, HWS_RUN_CANCELLED);
    anchor_ack (s_receiver, run->stream, 0, 0, true);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void seat_is_free_at_once_after_detach (void **state)
{
    (void) state;
    const hws_open_t open = {.max_senders = {HWS_VALUE, 1}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_t stream = stream_attach (s_sender, 1, handle);
    stream_end (&stream);

    const stream_t next = stream_attach (s_sender, 2, handle);

    world_advance (&s_world, 200);

    assert_int_equal (next.sender_id, 2);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_DETACHED, stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_ATTACHED, next.routing, 0, 0);
    client_expect_silence (s_receiver);
}

static void seat_is_free_at_once_after_drop (void **state)
{
    (void) state;
    const hws_open_t open = {.max_senders = {HWS_VALUE, 1}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    const stream_t stream = stream_attach (s_sender, 1, handle);
    hws_control_t bye = {.verb = HWS_VERB_BYE};
    client_ask (s_sender, &bye);
    client_t *const other = client_connect (&s_world);

    const stream_t next = stream_attach (other, 1, handle);

    world_advance (&s_world, 200);

    assert_int_equal (next.sender_id, 2);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "transport");
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_expect_silence (s_receiver);
}

/*  ---- Early data ---- */

static void data_behind_an_attach_is_kept_when_it_seats_at_once (void **state)
{
    (void) state;
    stream_t early = {.client = s_sender, .session_id = 1};

    stream_ask (s_sender, 1, s_handle);
    stream_send (&early, 3, 8);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->early_kept);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, ok->routing_session_id, 0, 3);
}

/*  A client that had no answer asks again and says all of it again.  */
static void data_and_ending_behind_an_attach_that_is_repeated_come_once (void **state)
{
    (void) state;
    stream_t early = {.client = s_sender, .session_id = 1};
    stream_ask (s_sender, 1, s_handle);
    stream_send (&early, 3, 8);
    stream_end (&early);
    const uint64_t id = client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.routing_session_id;
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, id, 0, 3);
    expect_run (s_receiver, HWS_RUN_DETACHED, id, 3, 1);

    early = (stream_t){.client = s_sender, .session_id = 1};
    stream_ask (s_sender, 1, s_handle);
    stream_send (&early, 3, 8);
    stream_end (&early);

    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.next_seq, 4);
    client_expect_silence (s_receiver);
    client_expect_silence (s_sender);
}

static void unknown_stream_kills_nothing (void **state)
{
    (void) state;
    stream_t unknown = {.client = s_sender, .session_id = 1};

    stream_send (&unknown, 1, 8);
    stream_send (&unknown, 1, 8); /* said once a second */

    const hws_stream_cancel_t *const told =
        &client_take (s_sender, HWS_VERB_STREAM_CANCEL)->as.stream_cancel;
    assert_string_equal (told->code, "unknown_stream");
    assert_string_equal (told->ending, "");
    client_expect_silence (s_sender);
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 1, 8);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
}

static void stale_attach_of_a_lost_connection_waits_the_grace (void **state)
{
    (void) state;
    s_receiver->is_beating = true;
    client_disconnect (s_sender);
    stream_ask (s_sender, 1, s_handle); /* was read after the end of its connection */
    client_forget (s_sender);

    world_advance (&s_world, WORLD_GRACE_MS - 1);
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 0);
    client_reconnect (s_sender);

    assert_int_equal (stream_attach (s_sender, 1, s_handle).sender_id, 1);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (sender_ids_start_at_one),
        TEST (ids_are_never_reused),
        TEST (refused_attach_uses_no_id),
        TEST (reattach_after_detach_gets_new_id),
        TEST (seat_is_free_at_once_after_drop),
        TEST (seat_is_free_at_once_after_detach),
        TEST (two_clients_same_session_id),
        TEST (same_numbers_in_two_anchors),
        TEST (retried_attach_is_the_same_seat),
        TEST (attach_answer_lost),
        TEST (attach_with_a_full_window_gives_room_for_nothing),
        TEST (transport_selection),
        TEST (cancel_during_attach),
        TEST (stream_cancel_handle_is_echoed),
        TEST (attach_without_an_id_is_seated_without_an_answer),
        TEST (data_behind_an_attach_is_kept_when_it_seats_at_once),
        TEST (data_and_ending_behind_an_attach_that_is_repeated_come_once),
        TEST (unknown_stream_kills_nothing),
        TEST (stale_attach_of_a_lost_connection_waits_the_grace),
    };
    return cmocka_run_group_tests_name ("engine attach", tests, NULL, NULL);
}
