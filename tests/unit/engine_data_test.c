/*  The engine: runs on their way from senders to receivers.
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

static hws_run_t error_run (stream_t *stream, const char *text)
{
    const hws_run_t run = {.stream = stream->session_id,
                           .first_seq = stream->next_seq,
                           .count = 1,
                           .type = HWS_RUN_ERROR,
                           .body = hws_bytes_of_text (text)};
    stream->next_seq += 1;
    stream->next_bytes += run.body.size;
    return run;
}

static void send_run (hws_run_t run)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, run);
    batch_send (&batch, s_sender);
}

static const hws_engine_stats_t *stats (void)
{
    return hws_engine_stats (s_world.engine);
}

/*  ---- Order and bytes ---- */

static void zero_length_and_binary_records (void **state)
{
    (void) state;
    static const uint8_t body[] = {0, 0, 0, 0, 0, 0, 0, 3, 0, 0xff, 0x01};
    hws_run_t run = stream_records (&s_stream, 2, 0);
    run.body = hws_bytes (body, sizeof body);

    send_run (run);

    const hws_run_t *const got = expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    assert_int_equal (got->body.size, sizeof body);
    assert_memory_equal (got->body.data, body, sizeof body);
}

static void soft_error_keeps_the_sender (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 1, 8));
    batch_add_run (&batch, error_run (&s_stream, "disk is slow"));
    batch_add_run (&batch, stream_records (&s_stream, 1, 8));

    batch_send (&batch, s_sender);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    const hws_run_t *const error = expect_run (s_receiver, HWS_RUN_ERROR, s_stream.routing, 1, 1);
    assert_memory_equal (error->body.data, "disk is slow", 12);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 2, 1);
}

static void small_messages_of_many_streams_become_one_batch (void **state)
{
    (void) state;
    stream_t others[8];
    for (uint64_t i = 0; i < 8; i++) {
        others[i] = stream_attach (s_sender, 100 + i, s_handle);
    }
    client_forget (s_receiver);
    const size_t before = s_receiver->message_count;

    for (size_t i = 0; i < 8; i++) {
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        batch_add_run (&batch, stream_records (&others[i], 1, 8));
        hws_batch_put (batch.bytes, HWS_BATCH_DATA, batch.count);
        client_send_bytes (s_sender, batch.bytes, batch.size);
    }
    world_pump (&s_world);

    assert_int_equal (s_receiver->message_count, before + 1);
    for (size_t i = 0; i < 8; i++) {
        expect_run (s_receiver, HWS_RUN_RECORDS, others[i].routing, 0, 1);
    }
}

static void large_message_is_forwarded_as_it_is (void **state)
{
    (void) state;

    stream_send (&s_stream, 3, 3000);

    assert_int_equal (stats ()->batches_forwarded, 1);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 3);
    client_expect_silence (s_receiver);
}

static void forwarded_message_comes_after_what_was_copied_before_it (void **state)
{
    (void) state;
    batch_t small, large;
    batch_begin (&small, HWS_BATCH_DATA);
    batch_add_run (&small, stream_records (&s_stream, 1, 8));
    hws_batch_put (small.bytes, HWS_BATCH_DATA, small.count);
    batch_begin (&large, HWS_BATCH_DATA);
    batch_add_run (&large, stream_records (&s_stream, 1, 9000));

    client_send_bytes (s_sender, small.bytes, small.size);
    batch_send (&large, s_sender);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 1, 1);
}

static void large_message_for_two_receivers_is_split (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t second = stream_attach (s_sender, 2, anchor_open (other, 1, "", NULL));
    client_forget (other);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 2, 2000));
    batch_add_run (&batch, stream_records (&second, 1, 4000));
    batch_add_run (&batch, stream_records (&s_stream, 1, 2000));

    batch_send (&batch, s_sender);

    assert_int_equal (stats ()->batches_forwarded, 0);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 2);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 2, 1);
    expect_run (other, HWS_RUN_RECORDS, second.routing, 0, 1);
    client_expect_silence (s_receiver);
    client_expect_silence (other);
}

static void run_without_a_body_survives_the_split (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t second = stream_attach (s_sender, 2, anchor_open (other, 1, "", NULL));
    client_forget (other);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 1, 9000));
    batch_add_run (&batch, error_run (&s_stream, ""));
    batch_add_run (&batch, stream_records (&second, 1, 8));

    batch_send (&batch, s_sender);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_ERROR, s_stream.routing, 1, 1);
    expect_run (other, HWS_RUN_RECORDS, second.routing, 0, 1);
}

static void message_with_little_to_forward_is_copied (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, (hws_run_t){.type = HWS_RUN_VOID, .body = {NULL, 12000}});
    batch_add_run (&batch, stream_records (&s_stream, 1, 0));
    s_receiver->is_full = true;

    batch_send (&batch, s_sender);

    /* Else a window of a few bytes would hold a message of many.  */
    assert_int_equal (s_world.tokens_made, s_world.tokens_back);
    s_receiver->is_full = false;
    world_advance (&s_world, 20);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
}

static void parts_pass_and_are_counted_as_one_record (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    for (int i = 0; i < 3; i++) {
        hws_run_t part = stream_records (&s_stream, 1, 100);
        part.flags = i < 2 ? HWS_RUN_MORE : 0;
        batch_add_run (&batch, part);
    }
    batch_send (&batch, s_sender);
    for (uint64_t i = 0; i < 3; i++) {
        const hws_run_t *const part =
            expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, i, 1);
        assert_int_equal (part->flags, i < 2 ? HWS_RUN_MORE : 0);
    }

    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");

    hws_ending_t ending;
    const hws_run_t *const run = client_take_run (s_receiver, HWS_RUN_CANCELLED);
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    assert_int_equal (ending.records, 1);
    assert_int_equal (ending.bytes, 300);
}

static void counts_do_not_depend_on_how_a_rewound_stream_is_cut (void **state)
{
    (void) state;
    stream_send (&s_stream, 5, 10);
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    s_stream.next_seq = s_stream.next_bytes = 0;
    stream_send (&s_stream, 3, 10);
    stream_send (&s_stream, 4, 10); /* across what was seen before */
    client_forget (s_receiver);

    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");

    hws_ending_t ending;
    const hws_run_t *const run = client_take_run (s_receiver, HWS_RUN_CANCELLED);
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    assert_int_equal (ending.records, 7);
    assert_int_equal (ending.bytes, 70);
}

static void run_type_from_the_upper_half_is_forwarded_untouched (void **state)
{
    (void) state;
    hws_run_t run = stream_records (&s_stream, 1, 8);
    run.type = 200;
    run.flags = 0x80;

    send_run (run);

    const hws_run_t *const got = client_find_run (s_receiver);
    assert_non_null (got);
    assert_int_equal (got->type, 200);
    assert_int_equal (got->flags, 0x80);
    assert_true (got->stream == s_stream.routing);
}

/*  ---- Positions ---- */

static void run_that_was_seen_is_skipped (void **state)
{
    (void) state;
    stream_send (&s_stream, 4, 8);
    client_forget (s_receiver);
    s_stream.next_seq = 1;

    stream_send (&s_stream, 3, 8);

    client_expect_silence (s_receiver);
    client_expect_silence (s_sender);
}

static void run_ahead_is_dropped_and_rewound (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    client_forget (s_receiver);
    s_stream.next_seq = 5;

    stream_send (&s_stream, 1, 8);

    client_expect_silence (s_receiver);
    const hws_grant_t *const grant = client_take_grant (s_sender);
    assert_int_equal (grant->flags, HWS_GRANT_REWIND);
    assert_int_equal (grant->next_seq, 2);
    assert_int_equal (stats ()->gaps, 1);
}

static void run_across_the_expected_number_is_rewound (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    client_forget (s_receiver);
    s_stream.next_seq = 1;

    stream_send (&s_stream, 3, 8);

    client_expect_silence (s_receiver);
    assert_int_equal (client_take_grant (s_sender)->next_seq, 2);
}

static void rewind_is_repeated_every_200_ms_while_runs_ahead_come (void **state)
{
    (void) state;
    s_stream.next_seq = 5;
    stream_send (&s_stream, 1, 8);
    client_take_grant (s_sender);

    for (int i = 0; i < 199; i++) {
        world_advance (&s_world, 1);
        stream_send (&s_stream, 1, 8);
    }
    client_expect_silence (s_sender);
    world_advance (&s_world, 1);
    stream_send (&s_stream, 1, 8);

    assert_int_equal (client_take_grant (s_sender)->flags, HWS_GRANT_REWIND);
    client_expect_silence (s_sender);
}

static void rewind_is_repeated_with_each_pong_until_the_gap_is_closed (void **state)
{
    (void) state;
    s_stream.next_seq = 5;
    stream_send (&s_stream, 1, 8);
    client_take_grant (s_sender);

    client_ping (s_sender);
    client_take (s_sender, HWS_VERB_PONG);
    assert_int_equal (client_take_grant (s_sender)->flags, HWS_GRANT_REWIND);
    s_stream.next_seq = 0;
    stream_send (&s_stream, 1, 8);
    client_ping (s_sender);
    client_take (s_sender, HWS_VERB_PONG);
    assert_int_equal (client_take_grant (s_sender)->flags, 0); /* the last one, once more */
    client_ping (s_sender);

    client_take (s_sender, HWS_VERB_PONG);
    client_expect_silence (s_sender);
}

static void runs_for_an_absent_receiver_are_dropped_and_come_again (void **state)
{
    (void) state;
    stream_send (&s_stream, 2, 8);
    anchor_ack (s_receiver, s_stream.routing, 1, 12, false);
    client_disconnect (s_receiver);
    stream_send (&s_stream, 2, 8);
    client_forget (s_receiver);
    client_forget (s_sender);

    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);

    assert_int_equal (client_take_grant (s_sender)->next_seq, 1);
    s_stream.next_seq = 1;
    stream_send (&s_stream, 3, 8);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 1, 3);
}

static void acknowledgement_beyond_a_rewound_position_moves_it_on (void **state)
{
    (void) state;
    stream_send (&s_stream, 4, 8);
    client_reconnect (s_receiver);
    anchor_open (s_receiver, 1, "", NULL); /* rewound to 0 */
    client_forget (s_receiver);
    client_forget (s_sender);

    anchor_ack (s_receiver, s_stream.routing, 3, 36, false);
    s_stream.next_seq = 3;
    stream_send (&s_stream, 2, 8);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 3, 2);
}

/*  ---- Faults ---- */

static void malformed_batch (void **state)
{
    (void) state;
    stream_t second = stream_attach (s_sender, 2, s_handle);
    batch_t whole;
    batch_begin (&whole, HWS_BATCH_DATA);
    batch_add_run (&whole, stream_records (&s_stream, 1, 8));
    batch_add_run (&whole, stream_records (&second, 1, 8));
    hws_batch_put (whole.bytes, HWS_BATCH_DATA, whole.count);
    const size_t first_end = HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + 12;
    client_forget (s_receiver);

    /* Truncated at every byte: what came before the fault is good.  */
    for (size_t size = 1; size < whole.size; size++) {
        hws_put_u64 (whole.bytes + HWS_BATCH_HEADER_SIZE + 8, s_stream.next_seq - 1);
        client_send_bytes (s_sender, whole.bytes, size);
        world_pump (&s_world);
        client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
        if (size >= first_end) {
            expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, s_stream.next_seq - 1, 1);
            s_stream.next_seq++;
        }
        client_expect_silence (s_receiver);
        client_expect_silence (s_sender);
    }

    assert_int_equal (stats ()->dropped, 0);
    assert_int_equal (stats ()->protocol_errors, whole.size - 1);
}

static void fault_inside_a_large_message_lets_the_earlier_runs_arrive (void **state)
{
    (void) state;
    for (int has_error = 0; has_error <= 1; has_error++) {
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        batch_add_run (&batch, stream_records (&s_stream, 1, 9000));
        if (has_error) {
            batch_add_run (&batch, error_run (&s_stream, ""));
        } else {
            batch_add_run (&batch, stream_records (&s_stream, 1, 1000));
        }
        batch.count++; /* and announces one more that is not there */
        batch.size += has_error ? 0 : 5;
        const uint64_t first_seq = s_stream.next_seq - 2;

        batch_send (&batch, s_sender);

        client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
        expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, first_seq, 1);
        expect_run (s_receiver, has_error ? HWS_RUN_ERROR : HWS_RUN_RECORDS, s_stream.routing,
                    first_seq + 1, 1);
        client_expect_silence (s_receiver);
        anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, false);
        client_forget (s_sender);
    }
}

static void absurd_length_touches_nothing_outside (void **state)
{
    (void) state;
    static const uint32_t lengths[] = {13, 0x7fffffff, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        batch_add_run (&batch, stream_records (&s_stream, 1, 8));
        hws_put_u32 (batch.bytes + HWS_BATCH_HEADER_SIZE + 20, lengths[i]);
        batch_send (&batch, s_sender);
        client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
    }
    client_expect_silence (s_receiver);
}

static void batch_above_the_limit_is_a_fault (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 1, 16384 - 8 - 32 - 4 + 1));

    batch_send (&batch, s_sender);

    client_take_refusal (s_sender, HWS_VERB_ERROR, HWS_EPROTOCOL);
    client_expect_silence (s_receiver);
}

static void largest_batch_passes (void **state)
{
    (void) state;

    stream_send (&s_stream, 1, 16384 - 8 - 32 - 4);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
}

static void bad_run_drops_that_stream_only (void **state)
{
    (void) state;
    const hws_run_t bad[] = {
        {.count = 1, .type = HWS_RUN_DROPPED, .body = {NULL, 20}},
        {.count = 1, .type = HWS_RUN_CANCELLED, .body = {NULL, 20}},
        {.count = 1, .type = HWS_RUN_ATTACHED, .body = {NULL, 2}},
        {.count = 0, .type = HWS_RUN_RECORDS},
        {.count = 1, .type = HWS_RUN_RECORDS, .body = {NULL, 3}},
        {.count = 2, .type = HWS_RUN_RECORDS, .body = {NULL, 8}, .flags = HWS_RUN_MORE},
        {.count = UINT32_MAX, .type = HWS_RUN_RECORDS, .body = {NULL, 8}},
        {.count = 1, .first_seq = UINT64_MAX, .type = HWS_RUN_RECORDS, .body = {NULL, 8}},
        {.count = 2, .type = HWS_RUN_ERROR, .body = {NULL, 8}},
        {.count = 2, .type = HWS_RUN_DETACHED, .body = {NULL, 20}},
        {.count = 1, .type = HWS_RUN_DETACHED, .body = {NULL, 19}},
        {.count = 1, .type = HWS_RUN_ERROR, .body = {NULL, 1025}}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const stream_t victim = stream_attach (s_sender, 100 + i, s_handle);
        client_forget (s_receiver);
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        hws_run_t run = bad[i];
        run.stream = victim.session_id;
        if (run.count > 100 || run.body.size < 4) {
            run.body.data = (const uint8_t *) "\0\0\0\0\0\0\0\0";
        }
        batch_add_run (&batch, run);
        batch_add_run (&batch, stream_records (&s_stream, 1, 8));

        batch_send (&batch, s_sender);

        expect_ending (s_receiver, victim.routing, HWS_RUN_DROPPED, "protocol");
        expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, i, 1);
        expect_told (s_sender, victim.session_id, "dropped", "protocol");
        anchor_ack (s_receiver, victim.routing, 0, 0, true);
        client_expect_silence (s_receiver);
    }
}

static void violation_in_a_large_message_ends_the_stream_behind_its_records (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (&s_stream, 1, 9000));
    batch_add_run (&batch, (hws_run_t){.stream = s_stream.session_id,
                                       .first_seq = s_stream.next_seq,
                                       .count = 0,
                                       .type = HWS_RUN_RECORDS});

    batch_send (&batch, s_sender);

    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 0, 1);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "protocol");
    client_expect_silence (s_receiver);
}

static void one_client_as_sender_and_receiver_of_itself (void **state)
{
    (void) state;
    stream_t own = stream_attach (s_receiver, 5, s_handle);
    client_forget (s_receiver);

    stream_send (&own, 1, 9000);
    stream_send (&own, 1, 8);
    stream_end (&own);

    expect_run (s_receiver, HWS_RUN_RECORDS, own.routing, 0, 1);
    expect_run (s_receiver, HWS_RUN_RECORDS, own.routing, 1, 1);
    expect_run (s_receiver, HWS_RUN_DETACHED, own.routing, 2, 1);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (zero_length_and_binary_records),
        TEST (soft_error_keeps_the_sender),
        TEST (small_messages_of_many_streams_become_one_batch),
        TEST (large_message_is_forwarded_as_it_is),
        TEST (forwarded_message_comes_after_what_was_copied_before_it),
        TEST (large_message_for_two_receivers_is_split),
        TEST (run_without_a_body_survives_the_split),
        TEST (message_with_little_to_forward_is_copied),
        TEST (parts_pass_and_are_counted_as_one_record),
        TEST (counts_do_not_depend_on_how_a_rewound_stream_is_cut),
        TEST (run_type_from_the_upper_half_is_forwarded_untouched),
        TEST (run_that_was_seen_is_skipped),
        TEST (run_ahead_is_dropped_and_rewound),
        TEST (run_across_the_expected_number_is_rewound),
        TEST (rewind_is_repeated_every_200_ms_while_runs_ahead_come),
        TEST (rewind_is_repeated_with_each_pong_until_the_gap_is_closed),
        TEST (runs_for_an_absent_receiver_are_dropped_and_come_again),
        TEST (acknowledgement_beyond_a_rewound_position_moves_it_on),
        TEST (malformed_batch),
        TEST (fault_inside_a_large_message_lets_the_earlier_runs_arrive),
        TEST (absurd_length_touches_nothing_outside),
        TEST (batch_above_the_limit_is_a_fault),
        TEST (largest_batch_passes),
        TEST (bad_run_drops_that_stream_only),
        TEST (violation_in_a_large_message_ends_the_stream_behind_its_records),
        TEST (one_client_as_sender_and_receiver_of_itself),
    };
    return cmocka_run_group_tests_name ("engine data", tests, NULL, NULL);
}
