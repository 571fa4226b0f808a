/*  The engine: senders that end their streams, and receivers that acknowledge it.
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

/*  ---- Clean endings ---- */

static void detach_is_exactly_once (void **state)
{
    (void) state;
    stream_send (&s_stream, 3, 8);

    stream_end (&s_stream);
    s_stream.next_seq = 3;
    stream_end (&s_stream);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 3);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 3, 1);
    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

static void sender_learns_that_its_ending_was_consumed (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_expect_silence (s_sender);

    ack_all ();

    assert_int_equal (client_take_grant (s_sender)->acked_seq, 1);
    assert_int_equal (seats (), 0);
}

static void ending_can_be_rewound_until_it_is_acknowledged (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    stream_end (&s_stream);
    client_reconnect (s_receiver);
    client_forget (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    assert_int_equal (client_take_grant (s_sender)->flags, HWS_GRANT_REWIND);

    s_stream.next_seq = s_stream.next_bytes = 0;
    stream_send (&s_stream, 2, 8);
    stream_end (&s_stream);

    expect_run (s_receiver, HWS_RUN_ATTACHED, s_stream.routing, 0, 0);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 2, 1);
    ack_all ();
    assert_int_equal (seats (), 0);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

static void finalized_on_mpsc_is_detached (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_ending (&s_stream, HWS_RUN_FINALIZED));

    batch_send (&batch, s_sender);

    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 0, 1);
    assert_int_equal (stream_attach (s_sender, 2, s_handle).sender_id, 2);
}

static void finalized_in_a_forwarded_message_is_detached_too (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 1, 9000));
    batch_add_run (&batch, stream_ending (&s_stream, HWS_RUN_FINALIZED));

    batch_send (&batch, s_sender);

    assert_int_equal (hws_engine_stats (s_world.engine)->batches_forwarded, 1);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 1, 1);
}

static void ending_passes_a_full_window (void **state)
{
    (void) state;
    s_receiver->is_full = true; /* and takes nothing of it */
    stream_send (&s_stream, WORLD_RECORDS / 2, WORLD_WINDOW / WORLD_RECORDS - 4);
    stream_send (&s_stream, WORLD_RECORDS / 2, WORLD_WINDOW / WORLD_RECORDS - 4);

    stream_end (&s_stream);
    s_receiver->is_full = false;
    world_advance (&s_world, 20);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, WORLD_RECORDS / 2);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, WORLD_RECORDS / 2,
                WORLD_RECORDS / 2);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, WORLD_RECORDS, 1);
    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
}

static void send_error (stream_t *stream)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, (hws_run_t){.stream = stream->session_id,
                                       .first_seq = stream->next_seq++,
                                       .count = 1,
                                       .type = HWS_RUN_ERROR,
                                       .body = hws_bytes_of_text ("too late")});
    batch_send (&batch, stream->client);
}

static void nothing_after_the_ending (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_take_run (s_receiver, HWS_RUN_DETACHED);

    stream_send (&s_stream, 1, 8);
    send_error (&s_stream);
    stream_end (&s_stream);

    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 0);
}

static void nothing_after_an_ending_that_the_broker_made (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
    client_take_run (s_receiver, HWS_RUN_CANCELLED);
    client_forget (s_receiver);

    stream_send (&s_stream, 1, 8);
    stream_send (&s_stream, 1, 9000);
    send_error (&s_stream);
    stream_end (&s_stream);

    client_expect_silence (s_receiver);
}

static void rewound_stream_may_not_end_elsewhere (void **state)
{
    (void) state;
    static const struct {
        int type;
        uint64_t seq;
    } lies[] = {{HWS_RUN_DETACHED, 1}, {HWS_RUN_RECORDS, 2}};

    for (uint64_t i = 0; i < 2; i++) {
        stream_t stream = stream_attach (s_sender, 10 + i, s_handle);
        stream_send (&stream, 2, 8);
        stream_end (&stream);
        client_reconnect (s_receiver);
        anchor_open (s_receiver, 1, "", NULL);
        stream.next_seq = stream.next_bytes = 0;
        stream_send (&stream, (uint32_t) lies[i].seq, 8);
        client_forget (s_receiver);

        if (lies[i].type == HWS_RUN_DETACHED) {
            stream_end (&stream);
        } else {
            stream_send (&stream, 1, 8);
        }

        expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "protocol");
        client_expect_silence (s_receiver);
        anchor_ack (s_receiver, stream.routing, 0, 0, true);
        client_forget (s_receiver);
    }
}

/*  ---- DETACH, the control message ---- */

static void detach_message_gives_an_ending (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);

    ask_detach (s_sender, s_stream.sender_id, 2);

    client_take_ok (s_sender, HWS_VERB_DETACH);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    const hws_run_t *const run = expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 2, 1);
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    assert_int_equal (ending.records, 2);
    assert_int_equal (ending.bytes, 16);
}

static void detach_message_overtakes_nothing (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    client_forget (s_receiver);

    ask_detach (s_sender, s_stream.sender_id, 5);

    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EBUSY);
    const hws_grant_t *const grant = client_take_grant (s_sender);
    assert_int_equal (grant->flags, HWS_GRANT_REWIND);
    assert_int_equal (grant->next_seq, 2);
    client_expect_silence (s_receiver);
}

static void detach_message_is_idempotent (void **state)
{
    (void) state;
    ask_detach (s_sender, s_stream.sender_id, 0);
    ask_detach (s_sender, s_stream.sender_id, 0);
    anchor_ack (s_receiver, s_stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    ask_detach (s_sender, s_stream.sender_id, 0);

    for (int i = 0; i < 3; i++) {
        client_take_ok (s_sender, HWS_VERB_DETACH);
    }
    client_take_run (s_receiver, HWS_RUN_DETACHED);
    client_expect_silence (s_receiver);
}

static void detach_message_from_anybody_else_is_denied (void **state)
{
    (void) state;

    ask_detach (s_receiver, s_stream.sender_id, 0);
    ask_detach (s_sender, 99, 0);

    client_take_refusal (s_receiver, HWS_VERB_DETACH, HWS_EDENIED);
    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_ENOT_FOUND);
    client_expect_silence (s_receiver);
}

static void detach_message_to_what_ended_otherwise_tells_how (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");

    ask_detach (s_sender, s_stream.sender_id, 0);
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);
    ask_detach (s_sender, s_stream.sender_id, 0);

    for (int i = 0; i < 2; i++) {
        assert_non_null (strstr (
            client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EENDED)->reason, "cancelled"));
    }
}

static void detach_message_while_the_receiver_is_away_is_busy (void **state)
{
    (void) state;
    client_disconnect (s_receiver);

    ask_detach (s_sender, s_stream.sender_id, 0);

    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EBUSY);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 0);
}

/*  ---- Acknowledgements ---- */

static void acknowledging_the_unsent_is_a_violation (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    client_forget (s_receiver);

    anchor_ack (s_receiver, s_stream.routing, 3, 24, false);
    anchor_ack (s_receiver, s_stream.routing, 2, 25, false);
    anchor_ack (s_receiver, s_stream.routing, 2, 24, true); /* it has not ended */

    for (int i = 0; i < 3; i++) {
        client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL);
    }
    client_expect_silence (s_sender);
}

static void acknowledgement_of_another_receivers_stream_is_ignored (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_send (&s_stream, 2, 8);

    anchor_ack (other, s_stream.routing, 2, 24, false);
    anchor_ack (other, 12345, 2, 24, true);

    client_expect_silence (s_sender);
    client_expect_silence (other);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (detach_is_exactly_once),
        TEST (sender_learns_that_its_ending_was_consumed),
        TEST (ending_can_be_rewound_until_it_is_acknowledged),
        TEST (finalized_on_mpsc_is_detached),
        TEST (finalized_in_a_forwarded_message_is_detached_too),
        TEST (ending_passes_a_full_window),
        TEST (nothing_after_the_ending),
        TEST (nothing_after_an_ending_that_the_broker_made),
        TEST (rewound_stream_may_not_end_elsewhere),
        TEST (detach_message_gives_an_ending),
        TEST (detach_message_overtakes_nothing),
        TEST (detach_message_is_idempotent),
        TEST (detach_message_from_anybody_else_is_denied),
        TEST (detach_message_to_what_ended_otherwise_tells_how),
        TEST (detach_message_while_the_receiver_is_away_is_busy),
        TEST (acknowledging_the_unsent_is_a_violation),
        TEST (acknowledgement_of_another_receivers_stream_is_ignored),
    };
    return cmocka_run_group_tests_name ("engine endings", tests, NULL, NULL);
}
