/*  The engine: connections that take no more.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

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

static size_t queued (const client_t *client)
{
    const hws_peer_t *const peer = hws_peer_of_client (s_world.engine, &client->id);
    assert_non_null (peer);
    return peer->out.queue.count;
}

static void batches_wait_and_come_in_order (void **state)
{
    (void) state;
    s_receiver->is_full = true;
    stream_send (&s_stream, 1, 8);
    stream_send (&s_stream, 1, 9000);
    stream_send (&s_stream, 1, 8);
    client_expect_silence (s_receiver);

    s_receiver->is_full = false;
    world_advance (&s_world, 10);

    for (uint64_t i = 0; i < 3; i++) {
        expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, i, 1);
    }
    client_expect_silence (s_receiver);
}

static void full_connection_is_tried_again_not_at_once (void **state)
{
    (void) state;
    s_receiver->is_full = true;
    stream_send (&s_stream, 1, 8);
    const size_t before = s_world.refused_count;

    stream_send (&s_stream, 1, 8);
    world_advance (&s_world, 9);
    assert_int_equal (s_world.refused_count, before);
    world_advance (&s_world, 100);

    assert_in_range (s_world.refused_count, before + 1, before + 11);
}

static void full_receiver_hurts_nobody_else (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t second = stream_attach (s_sender, 2, anchor_open (other, 1, "", NULL));
    client_forget (other);
    s_receiver->is_full = true;

    stream_send (&s_stream, 1, 8);
    stream_send (&second, 1, 8);

    expect_run (other, HWS_RUN_RECORDS, second.routing, 0, 1);
}

static void grants_stay_state_and_the_latest_is_sent (void **state)
{
    (void) state;
    stream_send (&s_stream, 10, 96);
    s_sender->is_full = true;
    anchor_ack (s_receiver, s_stream.routing, 3, 300, false);
    anchor_ack (s_receiver, s_stream.routing, 7, 700, false);

    s_sender->is_full = false;
    world_advance (&s_world, 20);

    uint64_t acked = 0;
    const hws_grant_t *grant;
    while ((grant = client_find_grant (s_sender))) {
        assert_true (grant->acked_seq >= acked);
        acked = grant->acked_seq;
    }
    assert_int_equal (acked, 7);
    client_expect_silence (s_sender); /* nothing was missed */
}

static void missed_control_is_said_again (void **state)
{
    (void) state;
    s_sender->is_full = true;
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "too slow");
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);

    s_sender->is_full = false;
    world_advance (&s_world, 20);

    client_take (s_sender, HWS_VERB_RESYNC);
    client_expect_silence (s_sender);
    client_hello (s_sender);
    client_take_ok (s_sender, HWS_VERB_HELLO);
    stream_ask (s_sender, 1, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.reason,
                         "too slow");
}

static void welcome_is_not_missed (void **state)
{
    (void) state;
    s_sender->is_full = true;
    client_hello (s_sender);
    stream_ask (s_sender, 1, s_handle);

    s_sender->is_full = false;
    world_advance (&s_world, 20);

    const heard_t *heard = client_next (s_sender);
    assert_non_null (heard);
    assert_int_equal (heard->control.verb, HWS_VERB_HELLO);
    client_take (s_sender, HWS_VERB_RESYNC); /* the other answer was missed */
    client_expect_silence (s_sender);
}

static void missed_close_is_said_again (void **state)
{
    (void) state;
    s_receiver->is_full = true;
    anchor_cancel (s_receiver, s_handle, 0, "enough");

    s_receiver->is_full = false;
    world_advance (&s_world, 20);
    client_take (s_receiver, HWS_VERB_RESYNC);
    client_hello (s_receiver);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
    client_ask (s_receiver, &open);

    assert_string_equal (client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED)->reason,
                         "enough");
}

static void missed_resync_is_said_again (void **state)
{
    (void) state;
    s_sender->is_full = true;
    client_ping (s_sender); /* the PONG is missed */
    world_advance (&s_world, 100);
    assert_true (s_world.refused_count > 3); /* so were RESYNCs */

    s_sender->is_full = false;
    world_advance (&s_world, 20);

    client_take (s_sender, HWS_VERB_RESYNC);
    client_expect_silence (s_sender);
}

static void who_stays_full_for_three_intervals_is_gone (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    s_receiver->is_full = true;
    stream_send (&s_stream, 1, 9000);
    s_receiver->is_beating = true; /* it speaks, but does not read */

    world_advance (&s_world, 3 * WORLD_INTERVAL_MS + 20);

    assert_int_equal (s_world.tokens_back, s_world.tokens_made);
    stream_send (&s_stream, 1, 9000);
    assert_int_equal (s_world.tokens_back, s_world.tokens_made);
}

static void hasty_anchor_of_a_stranger_shortens_nobodys_patience (void **state)
{
    (void) state;
    client_t *const stranger = client_connect (&s_world);
    const hws_open_t hasty = {.heartbeat_interval_ms = {HWS_VALUE, 100}};
    anchor_open (stranger, 1, "", &hasty);
    s_sender->is_beating = s_receiver->is_beating = stranger->is_beating = true;
    s_receiver->is_full = true;
    stream_send (&s_stream, 1, 9000);

    world_advance (&s_world, 2 * WORLD_INTERVAL_MS);

    assert_int_equal (s_world.tokens_back, s_world.tokens_made - 1);
}

static void gone_for_being_full_is_told_to_resynchronise_when_it_speaks (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    s_receiver->is_full = true;
    stream_send (&s_stream, 1, 8);
    for (int i = 0; i < 4; i++) {
        client_ping (s_receiver);
        world_advance (&s_world, WORLD_INTERVAL_MS);
    }
    s_receiver->is_full = false;

    client_ping (s_receiver);

    client_take (s_receiver, HWS_VERB_RESYNC);
    client_hello (s_receiver);
    client_take_ok (s_receiver, HWS_VERB_HELLO);
    anchor_open (s_receiver, 1, "", NULL);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
}

static void patience_begins_anew_after_success (void **state)
{
    (void) state;
    s_sender->is_beating = s_receiver->is_beating = true;
    for (int i = 0; i < 4; i++) {
        s_receiver->is_full = true;
        stream_send (&s_stream, 1, 8);
        world_advance (&s_world, 2 * WORLD_INTERVAL_MS);
        s_receiver->is_full = false;
        world_advance (&s_world, 50);
        client_forget (s_receiver);
        client_hello (s_receiver);
        client_take_ok (s_receiver, HWS_VERB_HELLO);
        anchor_open (s_receiver, 1, "", NULL);
        s_stream.next_seq = 0;
    }

    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
}

static void flood_of_requests_from_one_who_does_not_read_is_not_kept (void **state)
{
    (void) state;
    s_sender->is_full = true;

    for (int i = 0; i < 2000; i++) {
        client_ping (s_sender);
        if (i % 10 == 0) {
            world_advance (&s_world, 1); /* retries come in between */
        }
        if (i % 100 == 0) { /* and a turn that reads first what came meanwhile */
            s_world.now += 10;
            hws_engine_expire (s_world.engine, s_world.now);
            for (int k = 0; k < 20; k++) {
                hws_engine_recv (s_world.engine, s_world.now, &s_sender->address,
                                 &(hws_message_t){.frame_count = 2,
                                                  .frame = {hws_bytes_of_text ("PING"),
                                                            hws_bytes_of_text ("{}")},
                                                  .address = ""});
            }
            world_pump (&s_world);
        }
    }

    assert_true (queued (s_sender) <= 2);
}

static void flood_of_refused_welcomes_is_not_kept (void **state)
{
    (void) state;
    s_sender->is_full = true;

    for (int i = 0; i < 200; i++) {
        hws_control_t hello = {.verb = HWS_VERB_HELLO,
                               .as.hello = {.client_id = s_sender->id, .protocol = 2}};
        client_ask (s_sender, &hello);
    }

    assert_true (queued (s_sender) <= 2);
}

static void consumed_endings_for_one_who_does_not_read_are_not_kept (void **state)
{
    (void) state;
    s_sender->is_full = true;

    for (uint64_t i = 1; i <= 200; i++) {
        stream_t stream = {.client = s_sender, .session_id = 100 + i};
        stream_ask (s_sender, stream.session_id, s_handle);
        stream_end (&stream);
        client_take_run (s_receiver, HWS_RUN_ATTACHED);
        const hws_run_t *const run = client_take_run (s_receiver, HWS_RUN_DETACHED);
        anchor_ack (s_receiver, run->stream, 1, HWS_ENDING_HEADER_SIZE, true);
    }
    assert_true (queued (s_sender) <= 2);
    s_sender->is_full = false;
    world_advance (&s_world, 20);

    client_take (s_sender, HWS_VERB_RESYNC);
    client_hello (s_sender);
    client_take_ok (s_sender, HWS_VERB_HELLO);
    stream_ask (s_sender, 300, s_handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "detached");
}

static void window_bounds_what_waits_for_a_full_receiver (void **state)
{
    (void) state;
    s_receiver->is_full = true;

    for (int i = 0; i < 100; i++) {
        stream_send (&s_stream, 1, 8000);
        assert_true ((s_world.tokens_made - s_world.tokens_back) * 8000 <= WORLD_WINDOW);
    }

    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 1);
}

/*  What waits for the receiver, as large messages.  */
static uint64_t waiting_bytes (void)
{
    return 9000 * (s_world.tokens_made - s_world.tokens_back);
}

/*  Both in less time than a connection may be full.  */
enum { GREEDY_ROUNDS = 500, GREEDY_ROUND_MS = 5, GREEDY_BYTES_MAX = 3 * 1048576 };

static void who_acknowledges_without_reading_is_gone (void **state)
{
    (void) state;
    s_receiver->is_full = true;

    for (int i = 0; i < GREEDY_ROUNDS; i++) {
        stream_send (&s_stream, 1, 9000);
        anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, false);
        world_advance (&s_world, GREEDY_ROUND_MS);
        assert_true (waiting_bytes () <= GREEDY_BYTES_MAX);
    }
    s_receiver->is_full = false;

    client_ping (s_receiver);
    client_take (s_receiver, HWS_VERB_RESYNC);
}

static void who_opens_again_and_again_without_reading_is_gone (void **state)
{
    (void) state;
    s_receiver->is_full = true;

    for (int i = 0; i < GREEDY_ROUNDS; i++) {
        hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
        client_ask (s_receiver, &open);
        s_stream.next_seq = 0; /* rewound */
        stream_send (&s_stream, 1, 9000);
        world_advance (&s_world, GREEDY_ROUND_MS);
        assert_true (waiting_bytes () <= GREEDY_BYTES_MAX);
    }
    s_receiver->is_full = false;

    client_ping (s_receiver);
    client_take (s_receiver, HWS_VERB_RESYNC);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (batches_wait_and_come_in_order),
        TEST (full_connection_is_tried_again_not_at_once),
        TEST (full_receiver_hurts_nobody_else),
        TEST (grants_stay_state_and_the_latest_is_sent),
        TEST (missed_control_is_said_again),
        TEST (welcome_is_not_missed),
        TEST (missed_close_is_said_again),
        TEST (missed_resync_is_said_again),
        TEST (who_stays_full_for_three_intervals_is_gone),
        TEST (hasty_anchor_of_a_stranger_shortens_nobodys_patience),
        TEST (gone_for_being_full_is_told_to_resynchronise_when_it_speaks),
        TEST (patience_begins_anew_after_success),
        TEST (flood_of_requests_from_one_who_does_not_read_is_not_kept),
        TEST (flood_of_refused_welcomes_is_not_kept),
        TEST (consumed_endings_for_one_who_does_not_read_are_not_kept),
        TEST (window_bounds_what_waits_for_a_full_receiver),
        TEST (who_acknowledges_without_reading_is_gone),
        TEST (who_opens_again_and_again_without_reading_is_gone),
    };
    return cmocka_run_group_tests_name ("engine full connections", tests, NULL, NULL);
}
