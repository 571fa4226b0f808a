/*  The engine: windows, grants, the budget of an anchor.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

enum { FLOOR = 1024, BUFFER = 262144 };

static client_t *s_receiver;
static client_t *s_sender;
static hws_handle_t s_handle;

static int begin_open (void **state)
{
    begin (state);
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = BUFFER;
    options.anchors.window_bytes_min = FLOOR;
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    return 0;
}

/*  What the seats of the anchor may send, together.  */
static uint64_t reserved (hws_handle_t handle)
{
    const hws_anchor_t *const anchor = hws_anchor_find (s_world.engine, handle);
    assert_non_null (anchor);
    assert_true (anchor->reserved_bytes <= anchor->buffer_bytes);
    return anchor->reserved_bytes;
}

static void want (const stream_t *stream, uint64_t bytes)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = stream->session_id, .want_bytes = bytes});
    batch_send (&batch, stream->client);
}

/*  RETURN comes, and the sender needs all that it has.  */
static void keep (stream_t *stream)
{
    const hws_grant_t grant = *client_take_grant (s_sender);
    assert_int_equal (grant.flags, HWS_GRANT_RETURN);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = grant.stream,
                                             .limit_seq = grant.limit_seq,
                                             .limit_bytes = stream->limit_bytes});
    batch_send (&batch, s_sender);
    assert_true (client_take_grant (s_sender)->limit_bytes == stream->limit_bytes);
}

/*  Sends `size` bytes of wire in messages of records.  */
static void fill (stream_t *stream, uint64_t size)
{
    while (size > 0) {
        const uint64_t part = size > 8000 ? 8000 : size;
        stream_send (stream, 1, part - HWS_RECORD_HEADER_SIZE);
        size -= part;
    }
}

static bool is_equal (const hws_grant_t *a, const hws_grant_t *b)
{
    return a->stream == b->stream && a->acked_seq == b->acked_seq && a->next_seq == b->next_seq &&
           a->limit_seq == b->limit_seq && a->limit_bytes == b->limit_bytes && a->flags == b->flags;
}

static void new_sender_gets_its_floor (void **state)
{
    (void) state;

    const stream_t stream = stream_attach (s_sender, 1, s_handle);

    assert_int_equal (stream.limit_bytes, FLOOR);
    assert_int_equal (stream.limit_seq, WORLD_RECORDS);
}

static void window_moves_on_with_what_is_acknowledged (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 10, 46);

    anchor_ack (s_receiver, stream.routing, 4, 200, false);

    const hws_grant_t *const grant = client_take_grant (s_sender);
    assert_int_equal (grant->stream, 1);
    assert_int_equal (grant->acked_seq, 4);
    assert_int_equal (grant->next_seq, 10);
    assert_int_equal (grant->limit_seq, 4 + WORLD_RECORDS);
    assert_int_equal (grant->limit_bytes, 200 + FLOOR);
    assert_int_equal (grant->flags, 0);
}

static void grants_are_absolute (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 10, 46);

    anchor_ack (s_receiver, stream.routing, 6, 300, false);
    const hws_grant_t first = *client_take_grant (s_sender);
    anchor_ack (s_receiver, stream.routing, 6, 300, false); /* repeated */
    const hws_grant_t second = *client_take_grant (s_sender);
    anchor_ack (s_receiver, stream.routing, 4, 200, false); /* older */
    const hws_grant_t third = *client_take_grant (s_sender);

    assert_true (is_equal (&first, &second));
    assert_true (is_equal (&first, &third));
}

static void many_acknowledgements_of_a_wake_are_one_grant (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 10, 46);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_ACK);
    for (uint64_t i = 1; i <= 10; i++) {
        batch_add_ack (
            &batch, (hws_ack_t){.stream = stream.routing, .acked_seq = i, .acked_bytes = 50 * i});
    }

    batch_send (&batch, s_receiver);

    assert_int_equal (client_take_grant (s_sender)->acked_seq, 10);
    client_expect_silence (s_sender);
}

static void window_can_be_used_to_the_last_byte (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);

    fill (&stream, FLOOR);
    fill (&stream, WORLD_WINDOW - FLOOR); /* lent to it since */

    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
    assert_int_equal (reserved (s_handle), WORLD_WINDOW);
}

static void window_violation_drops_that_stream (void **state)
{
    (void) state;
    for (int by_records = 0; by_records <= 1; by_records++) {
        stream_t stream = stream_attach (s_sender, 1 + (uint64_t) by_records, s_handle);
        stream_t other = stream_attach (s_sender, 3 + (uint64_t) by_records, s_handle);
        if (by_records) {
            stream_send (&stream, WORLD_RECORDS, 0);
        } else {
            fill (&stream, FLOOR);
            fill (&stream, WORLD_WINDOW - FLOOR);
        }
        client_forget (s_receiver);

        stream_send (&stream, 1, 0);
        stream_send (&other, 1, 8);

        expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "protocol");
        expect_told (s_sender, stream.session_id, "dropped", "protocol");
        expect_run (s_receiver, HWS_RUN_RECORDS, other.routing, 0, 1);
        client_forget (s_sender);
    }
    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 2);
}

static void floors_take_half_of_the_buffer_at_most (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 8192}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    for (uint64_t i = 1; i <= 4; i++) {
        const stream_t stream = stream_attach (s_sender, i, handle);
        assert_int_equal (stream.limit_bytes, FLOOR);
    }

    stream_ask (s_sender, 5, handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBUFFER_FULL);
}

static void smallest_buffer_takes_one_sender (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 2 * FLOOR}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);

    const stream_t stream = stream_attach (s_sender, 1, handle);
    stream_ask (s_sender, 2, handle);

    assert_int_equal (stream.limit_bytes, FLOOR);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBUFFER_FULL);
}

/*  ---- Large records ---- */

static void oversized_record_moves (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 1, 96);
    anchor_ack (s_receiver, stream.routing, 1, 100, false);
    client_forget (s_sender);
    client_forget (s_receiver);

    want (&stream, 100028); /* 100,000 bytes in 7 parts, wire */

    const hws_grant_t *const grant = client_take_grant (s_sender);
    assert_true (grant->limit_bytes >= 100 + 100028);
    assert_true (grant->limit_seq >= 1 + 7);
    for (int i = 0; i < 7; i++) {
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        hws_run_t part = stream_records (&stream, 1, i < 6 ? 16340 : 100000 - 6 * 16340);
        part.flags = i < 6 ? HWS_RUN_MORE : 0;
        batch_add_run (&batch, part);
        batch_send (&batch, s_sender);
        expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 1 + (uint64_t) i, 1);
    }
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 0);
    anchor_ack (s_receiver, stream.routing, 8, stream.next_bytes, false);
    assert_int_equal (reserved (s_handle), WORLD_WINDOW);
}

static void repeated_want_is_answered_again (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    want (&stream, 100024);
    const hws_grant_t first = *client_take_grant (s_sender);

    want (&stream, 100024);

    assert_true (is_equal (&first, client_take_grant (s_sender)));
    assert_int_equal (reserved (s_handle), 100024);
}

static void wants_are_served_in_order_of_asking (void **state)
{
    (void) state;
    stream_t streams[3];
    for (uint64_t i = 0; i < 3; i++) {
        streams[i] = stream_attach (s_sender, 1 + i, s_handle);
    }
    want (&streams[0], 70000);
    const hws_grant_t *const first = client_take_grant (s_sender);
    assert_int_equal (first->stream, 1);
    streams[0].limit_bytes = first->limit_bytes;
    want (&streams[1], 80000); /* does not fit beside the first */
    keep (&streams[0]);
    want (&streams[2], 20000); /* would, but has asked later */
    want (&streams[1], 80000);
    client_expect_silence (s_sender);
    reserved (s_handle);

    for (int i = 0; i < 4; i++) {
        stream_send (&streams[0], 1, 16000);
    }
    anchor_ack (s_receiver, streams[0].routing, 4, streams[0].next_bytes, false);

    uint64_t order[8] = {0};
    size_t count = 0;
    const hws_grant_t *grant;
    while ((grant = client_find_grant (s_sender))) {
        if (grant->stream != 1) {
            order[count++] = grant->stream;
        }
    }
    assert_int_equal (count, 2);
    assert_int_equal (order[0], 2);
    assert_int_equal (order[1], 3);
    reserved (s_handle);
}

static void want_of_more_than_half_the_buffer_is_a_fault (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);

    want (&stream, BUFFER / 2 + 1);
    want (&stream, UINT64_MAX);

    client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
    client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
    assert_int_equal (reserved (s_handle), FLOOR);
}

static void want_of_an_unknown_or_ended_stream_is_ignored (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    const stream_t unknown = {.client = s_sender, .session_id = 77};
    anchor_cancel (s_receiver, s_handle, 1, "");
    client_forget (s_sender);

    want (&unknown, 1000);
    want (&stream, 50000);

    client_expect_silence (s_sender);
    assert_int_equal (reserved (s_handle), 0);
}

/*  Who was not asked cannot give back: GRANTs may be on their way to it.  */
static void window_that_answers_no_return_lowers_nothing (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = 1, .limit_seq = 1, .limit_bytes = 100});

    batch_send (&batch, s_sender);
    client_expect_silence (s_sender);
    assert_int_equal (reserved (s_handle), FLOOR);
    fill (&stream, FLOOR);

    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
}

static void want_that_waits_goes_with_its_sender (void **state)
{
    (void) state;
    stream_t first = stream_attach (s_sender, 1, s_handle);
    stream_t second = stream_attach (s_sender, 2, s_handle);
    stream_t third = stream_attach (s_sender, 3, s_handle);
    want (&first, 60000);
    want (&second, 90000);
    want (&third, 60000);
    client_forget (s_sender);

    anchor_cancel (s_receiver, s_handle, second.sender_id, "");
    anchor_ack (s_receiver, second.routing, 0, 0, true);

    assert_int_equal (client_take_grant (s_sender)->stream, 3);
    reserved (s_handle);
}

/*  ---- The budget ---- */

static void endings_count_in_no_budget (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 4096}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_t stream = stream_attach (s_sender, 1, handle);
    want (&stream, 2048);
    fill (&stream, 2048);
    fill (&stream, 1024); /* lent to it: there is no more */
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    hws_run_t ending = stream_ending (&stream, HWS_RUN_DETACHED);
    ending.body.size = HWS_ENDING_HEADER_SIZE + HWS_TEXT_SIZE_MAX;
    batch_add_run (&batch, ending);

    batch_send (&batch, s_sender);

    assert_int_equal (reserved (handle), 3072);
}

static void exiting_sender_holds_what_is_not_acknowledged (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 10, 96);
    stream_end (&stream);
    assert_in_range (reserved (s_handle), 1000, 1000 + HWS_ENDING_HEADER_SIZE);

    anchor_ack (s_receiver, stream.routing, 10, 1000, false);
    assert_in_range (reserved (s_handle), 0, HWS_ENDING_HEADER_SIZE);
    anchor_ack (s_receiver, stream.routing, 11, 1000 + HWS_ENDING_HEADER_SIZE, true);

    assert_int_equal (reserved (s_handle), 0);
}

static void unread_endings_leave_no_room_for_new_windows (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 8192}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    uint64_t session_id = 0;
    for (;;) {
        stream_ask (s_sender, ++session_id, handle);
        const hws_control_t *const answer = client_take (s_sender, HWS_VERB_ATTACH);
        if (answer->form == HWS_FORM_ERR) {
            assert_int_equal (answer->as.refusal.code, HWS_EBUFFER_FULL);
            break;
        }
        stream_t stream = {.client = s_sender, .session_id = session_id};
        fill (&stream, answer->as.attach_ok.slot_byte_budget);
        stream_end (&stream);
        reserved (handle);
    }
    assert_in_range (reserved (handle), 8192 - 1024, 8192);
}

static void waiting_attach_is_seated_when_acknowledgements_make_room (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 8192}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_t first = stream_attach (s_sender, 1, handle);
    fill (&first, first.limit_bytes);
    stream_t large = stream_attach (s_sender, 2, handle);
    want (&large, 4096);
    stream_t last = first;
    for (uint64_t i = 3; reserved (handle) <= 8192 - 1024; i++) {
        stream_end (&last);
        last = stream_attach (s_sender, i, handle);
        fill (&last, last.limit_bytes);
    }
    stream_end (&last);
    client_forget (s_sender);
    hws_control_t attach = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true, .handle = handle, .session_id = 99, .wait_ms = 30000}};
    client_ask (s_sender, &attach);
    client_expect_silence (s_sender);

    anchor_ack (s_receiver, first.routing, 1, first.limit_bytes, false);

    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void liar_that_cuts_its_records_anew_hurts_no_receiver (void **state)
{
    (void) state;
    stream_t stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&stream, 2, 100);
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    stream.next_seq = 0;
    stream_send (&stream, 2, 1);
    stream_send (&stream, 1, 1);
    client_forget (s_receiver);

    anchor_ack (s_receiver, stream.routing, 2, 208, false); /* as it came first */

    client_expect_silence (s_receiver);
    reserved (s_handle);
}

static void everything_is_free_at_the_end (void **state)
{
    (void) state;
    for (uint64_t i = 1; i <= 12; i++) {
        stream_t stream = stream_attach (s_sender, i, s_handle);
        fill (&stream, 1000);
        if (i % 3 == 0) {
            stream_end (&stream);
        } else if (i % 3 == 1) {
            anchor_cancel (s_receiver, s_handle, stream.sender_id, "");
        }
        anchor_ack (s_receiver, stream.routing, stream.next_seq, stream.next_bytes, i % 3 != 2);
    }

    anchor_cancel (s_sender, s_handle, 0, "");

    assert_int_equal (reserved (s_handle), 0);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (new_sender_gets_its_floor),
        TEST (window_moves_on_with_what_is_acknowledged),
        TEST (grants_are_absolute),
        TEST (many_acknowledgements_of_a_wake_are_one_grant),
        TEST (window_can_be_used_to_the_last_byte),
        TEST (window_violation_drops_that_stream),
        TEST (floors_take_half_of_the_buffer_at_most),
        TEST (smallest_buffer_takes_one_sender),
        TEST (oversized_record_moves),
        TEST (repeated_want_is_answered_again),
        TEST (wants_are_served_in_order_of_asking),
        TEST (want_of_more_than_half_the_buffer_is_a_fault),
        TEST (want_of_an_unknown_or_ended_stream_is_ignored),
        TEST (window_that_answers_no_return_lowers_nothing),
        TEST (want_that_waits_goes_with_its_sender),
        TEST (endings_count_in_no_budget),
        TEST (exiting_sender_holds_what_is_not_acknowledged),
        TEST (unread_endings_leave_no_room_for_new_windows),
        TEST (waiting_attach_is_seated_when_acknowledgements_make_room),
        TEST (liar_that_cuts_its_records_anew_hurts_no_receiver),
        TEST (everything_is_free_at_the_end),
    };
    return cmocka_run_group_tests_name ("engine windows", tests, NULL, NULL);
}
