/*  The engine: OPEN with resume of an anchor that is there, by its receiver or another, and what
 *  receivers say in it that is not true.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

enum { RECORD = 12 }; /* bytes that a record of 8 takes in the stream */

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_stream; /* of four records that were forwarded; one is acknowledged */

static int begin_stream (void **state)
{
    begin (state);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_receiver->is_beating = s_sender->is_beating = s_other->is_beating = true;
    s_handle = anchor_open (s_receiver, 1, "results", NULL);
    s_stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&s_stream, 4, 8);
    anchor_ack (s_receiver, s_stream.routing, 1, RECORD, false);
    client_forget (s_receiver);
    client_forget (s_sender);
    return 0;
}

static hws_position_t position (void)
{
    return stream_position (&s_stream, 3, 3 * RECORD, 2, 2 * RECORD);
}

static void take_over (void)
{
    anchor_resume (s_other, 5, s_handle, 0, NULL, 0);
    client_take_ok (s_other, HWS_VERB_OPEN);
}

static void take_attached (client_t *receiver, uint64_t first_seq, uint64_t next_bytes)
{
    const hws_run_t *const run =
        expect_run (receiver, HWS_RUN_ATTACHED, s_stream.routing, first_seq, 0);
    hws_attached_t attached;
    assert_int_equal (hws_attached_decode (run->body, &attached), 0);
    assert_int_equal (attached.next_bytes, next_bytes);
}

static void expect_rewind (uint64_t next_seq, uint64_t acked_seq)
{
    const hws_grant_t *const grant = client_take_grant (s_sender);
    assert_true (grant->flags & HWS_GRANT_REWIND);
    assert_int_equal (grant->next_seq, next_seq);
    assert_int_equal (grant->acked_seq, acked_seq);
}

static size_t protocol_errors (void)
{
    return hws_engine_stats (s_world.engine)->protocol_errors;
}

/*  ---- By another receiver ---- */

static void another_receiver_goes_on_at_what_is_acknowledged (void **state)
{
    (void) state;

    take_over ();

    take_attached (s_other, 1, RECORD);
    expect_rewind (1, 1);
    s_stream.next_seq = 1;
    s_stream.next_bytes = RECORD;
    stream_send (&s_stream, 1, 8);
    expect_run (s_other, HWS_RUN_RECORDS, s_stream.routing, 1, 1);
    assert_null (client_find_run (s_receiver));
    anchor_ack (s_receiver, s_stream.routing, 4, 4 * RECORD, false); /* counts no more */
    client_expect_silence (s_sender);
    anchor_ack (s_other, s_stream.routing, 2, 2 * RECORD, false);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 2);
}

static void receiver_that_is_there_is_told_that_it_was_superseded (void **state)
{
    (void) state;

    take_over ();

    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "superseded");
    client_expect_silence (s_receiver);
    hws_control_t again = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
    client_ask (s_receiver, &again);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "superseded");
    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED);
}

static void receiver_that_is_away_is_told_when_it_comes_back (void **state)
{
    (void) state;
    client_disconnect (s_receiver);
    take_over ();

    client_reconnect (s_receiver);
    anchor_resume (s_receiver, 1, s_handle, 1, NULL, 0);

    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "superseded");
    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED);
    take_attached (s_other, 1, RECORD);
    client_expect_silence (s_other);
}

static void one_client_takes_its_own_anchor_over_by_another_number (void **state)
{
    (void) state;

    anchor_resume (s_receiver, 2, s_handle, 1, NULL, 0);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 1, RECORD);
    client_expect_silence (s_receiver);
    hws_control_t again = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
    client_ask (s_receiver, &again);
    client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED);
    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
}

static void receiver_that_was_superseded_and_leaves_takes_nothing_with_it (void **state)
{
    (void) state;
    take_over ();
    client_forget (s_receiver);
    hws_control_t bye = {.verb = HWS_VERB_BYE};

    client_ask (s_receiver, &bye);

    client_take_ok (s_receiver, HWS_VERB_BYE);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
}

static void who_took_over_owns_the_anchor (void **state)
{
    (void) state;
    take_over ();
    client_forget (s_other);

    anchor_cancel (s_receiver, s_handle, 0, "");
    client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED);
    client_take_refusal (s_receiver, HWS_VERB_CANCEL, HWS_EDENIED);
    anchor_cancel (s_other, s_handle, 0, "");

    client_take_ok (s_other, HWS_VERB_CANCEL);
    expect_ending (s_other, s_stream.routing, HWS_RUN_CANCELLED, "receiver_closed");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void anchors_of_a_client_are_limited_also_when_it_takes_over (void **state)
{
    (void) state;
    for (uint64_t i = 0; i < s_world.options.limits.anchors_per_peer; i++) {
        anchor_open (s_other, 100 + i, "", NULL);
    }

    anchor_resume (s_other, 5, s_handle, 0, NULL, 0);

    client_take_refusal (s_other, HWS_VERB_OPEN, HWS_ELIMIT);
    client_expect_silence (s_receiver);
}

static void endings_that_were_not_acknowledged_come_again (void **state)
{
    (void) state;
    const stream_t second = stream_attach (s_sender, 2, s_handle);
    stream_end (&s_stream);
    anchor_cancel (s_receiver, s_handle, second.sender_id, "");
    client_forget (s_receiver);
    client_forget (s_sender);

    take_over ();

    take_attached (s_other, 1, RECORD);
    expect_run (s_other, HWS_RUN_ATTACHED, second.routing, 0, 0);
    expect_ending (s_other, second.routing, HWS_RUN_CANCELLED, "requested");
    expect_rewind (1, 1);
    s_stream.next_seq = 4;
    s_stream.next_bytes = 4 * RECORD;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, (hws_run_t){.stream = 1,
                                       .first_seq = 1,
                                       .count = 3,
                                       .type = HWS_RUN_RECORDS,
                                       .body = {NULL, 3 * RECORD}});
    batch_add_run (&batch, stream_ending (&s_stream, HWS_RUN_DETACHED));
    batch_send (&batch, s_sender);
    expect_run (s_other, HWS_RUN_RECORDS, s_stream.routing, 1, 3);
    expect_run (s_other, HWS_RUN_DETACHED, s_stream.routing, 4, 1);
}

/*  ---- By its token ---- */

static void resume_with_token (client_t *receiver, uint64_t open_id, uint64_t token)
{
    const hws_open_t open = {.cancel_token = token};
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    anchor_resuming (receiver, open_id, s_handle, &open);
    batch_send (&batch, receiver);
    client_take_ok (receiver, HWS_VERB_OPEN);
    take_attached (receiver, 1, RECORD);
}

static void cancel_token (uint64_t token)
{
    hws_control_t cancel = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = token};
    client_ask (s_sender, &cancel);
    client_take_ok (s_sender, HWS_VERB_CANCEL_TOKEN);
}

static void token_of_who_took_over_cancels_the_anchor (void **state)
{
    (void) state;
    resume_with_token (s_other, 5, 77);

    cancel_token (77);

    expect_ending (s_other, s_stream.routing, HWS_RUN_CANCELLED, "requested");
}

static void token_of_who_was_superseded_cancels_nothing (void **state)
{
    (void) state;
    resume_with_token (s_other, 5, 77);
    resume_with_token (s_receiver, 6, 78);
    client_forget (s_receiver);

    cancel_token (77);

    client_expect_silence (s_receiver);
    cancel_token (78);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
}

/*  ---- By its own receiver ---- */

static void receiver_goes_on_where_it_stands (void **state)
{
    (void) state;
    client_reconnect (s_receiver);
    const hws_position_t it = position ();

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 3, 3 * RECORD);
    expect_rewind (3, 2);
    stream_send (&s_stream, 1, 8); /* number 4 is ahead now */
    assert_null (client_find_run (s_receiver));
}

static void receiver_is_away_until_its_last_position (void **state)
{
    (void) state;
    client_reconnect (s_receiver);
    anchor_resuming (s_receiver, 1, s_handle, NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, position ());
    batch_send (&batch, s_receiver);

    stream_send (&s_stream, 1, 8);
    client_expect_silence (s_receiver);
    stream_ask (s_other, 1, s_handle);
    client_take_ok (s_other, HWS_VERB_ATTACH);
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 3, 3 * RECORD);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_expect_silence (s_receiver);
}

static void position_behind_the_ending_acknowledges_it (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_forget (s_receiver);
    hws_position_t it = stream_position (&s_stream, 5, s_stream.next_bytes, 5, s_stream.next_bytes);
    it.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED;
    it.type = HWS_RUN_DETACHED;
    client_reconnect (s_receiver);

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    client_expect_silence (s_receiver);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 5);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

static void ending_of_the_broker_that_was_consumed_is_acknowledged (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
    client_forget (s_receiver);
    hws_position_t it = position ();
    it.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED;
    it.type = HWS_RUN_CANCELLED;
    client_reconnect (s_receiver);

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    client_expect_silence (s_receiver);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void last_acknowledged_ending_of_a_closing_anchor_closes_it (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, 0, "enough");
    client_forget (s_receiver);
    hws_position_t it = position ();
    it.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED;
    it.type = HWS_RUN_CANCELLED;
    client_reconnect (s_receiver);

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "requested");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

/*  Its token, which the OPEN names again, was what closed it.  */
static void anchor_that_its_token_has_closed_is_not_cancelled_anew (void **state)
{
    (void) state;
    hws_control_t cancel = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 78};
    const hws_open_t open = {.cancel_token = 78};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    const stream_t stream = stream_attach (s_sender, 2, handle);
    client_ask (s_sender, &cancel);
    client_forget (s_receiver);
    hws_position_t it = stream_position (&stream, 0, 0, 0, 0);
    it.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED | HWS_POSITION_LAST;
    it.type = HWS_RUN_CANCELLED;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, it);
    client_reconnect (s_receiver);

    anchor_resuming (s_receiver, 2, handle, &open);
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "requested");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
}

/*  A receiver that has cancelled a sender drops its ending, but has passed its number.  */
static void ending_that_the_receiver_passed_without_keeping_comes_again (void **state)
{
    (void) state;
    stream_end (&s_stream);
    client_forget (s_receiver);
    client_reconnect (s_receiver);
    const hws_position_t it = stream_position (&s_stream, 5, s_stream.next_bytes, 2, 2 * RECORD);

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    expect_rewind (4, 2);
}

static void room_that_positions_free_is_given_to_who_waits (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 2 * WORLD_WINDOW}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "small", &open);
    stream_t first = stream_attach (s_sender, 2, handle);
    stream_send (&first, 4, 4000);
    stream_end (&first);
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = {.anchor = "small", .session_id = 9, .wait_ms = 9000}};
    stream_t second = stream_attach (s_sender, 3, handle);
    client_ask (s_other, &attach);
    client_expect_silence (s_other);
    stream_end (&second);
    client_expect_silence (s_other); /* the first is not read yet */
    client_reconnect (s_receiver);
    hws_position_t it = stream_position (&first, 5, first.next_bytes, 5, first.next_bytes);
    it.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED;
    it.type = HWS_RUN_DETACHED;

    anchor_resume (s_receiver, 2, handle, 2, &it, 1);

    client_take_ok (s_other, HWS_VERB_ATTACH);
}

static void room_that_positions_free_is_given_to_a_large_record (void **state)
{
    (void) state;
    enum { LARGE = 300000, PART = 15000 };
    stream_t first = stream_attach (s_sender, 2, s_handle);
    batch_t batch;
    for (uint64_t session = 2; session >= 1; session--) {
        batch_begin (&batch, HWS_BATCH_WINDOW);
        batch_add_window (&batch, (hws_window_t){.stream = session, .want_bytes = LARGE});
        batch_send (&batch, s_sender);
        for (int i = 0; session == 2 && i < LARGE / PART; i++) {
            stream_send (&first, 1, PART - HWS_RECORD_HEADER_SIZE);
        }
    }
    client_forget (s_sender);
    const hws_position_t all[] = {position (),
                                  stream_position (&first, first.next_seq, first.next_bytes,
                                                   first.next_seq, first.next_bytes)};

    anchor_resume (s_receiver, 1, s_handle, 2, all, 2);

    const hws_grant_t *grant;
    uint64_t limit_bytes = 0;
    while ((grant = client_find_grant (s_sender))) {
        limit_bytes = grant->stream == 1 ? grant->limit_bytes : limit_bytes;
    }
    assert_true (limit_bytes >= LARGE);
}

/*  ---- Positions ---- */

static void position_without_such_an_open_is_a_violation (void **state)
{
    (void) state;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, position ());

    batch_send (&batch, s_receiver);

    assert_int_equal (client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL)->code,
                      HWS_EPROTOCOL);
    anchor_ack (s_receiver, s_stream.routing, 2, 2 * RECORD, false);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 2);
}

static void position_behind_the_last_one_is_a_violation (void **state)
{
    (void) state;
    anchor_resuming (s_receiver, 1, s_handle, NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    batch_add_position (&batch, position ());

    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 1, RECORD);
    client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL);
}

static void position_that_cannot_be_true_moves_nothing (void **state)
{
    (void) state;
    hws_position_t lies[12];
    const size_t count = sizeof lies / sizeof *lies;
    for (size_t i = 0; i < count; i++) {
        lies[i] = position ();
    }
    lies[0].acked_seq = lies[0].next_seq + 1;
    lies[1].acked_bytes = lies[1].next_bytes + 1;
    lies[2].next_seq = 5; /* never forwarded */
    lies[3].next_bytes = 5 * RECORD;
    lies[4].acked_bytes = RECORD - 1; /* less than before, for more numbers */
    lies[5].flags = HWS_POSITION_CONSUMED;
    lies[6].flags = HWS_POSITION_ENDED; /* of no type */
    lies[7].flags = HWS_POSITION_ENDED;
    lies[7].type = HWS_RUN_VOID;
    lies[8].flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED;
    lies[8].type = HWS_RUN_DETACHED; /* which has not come */
    lies[9].next_seq = UINT64_MAX;
    lies[10].next_bytes = UINT64_MAX;
    lies[11].sender_id = UINT64_MAX;
    for (size_t i = 0; i < count; i++) {
        const size_t before = protocol_errors ();
        client_forget (s_receiver);
        client_forget (s_sender);

        anchor_resume (s_receiver, 1, s_handle, 1, &lies[i], 1);

        client_take_ok (s_receiver, HWS_VERB_OPEN);
        take_attached (s_receiver, 1, RECORD);
        client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL);
        expect_rewind (1, 1);
        assert_int_equal (protocol_errors (), before + 1);
    }
}

static void second_position_of_one_sender_is_a_violation (void **state)
{
    (void) state;
    hws_position_t both[] = {position (), position ()};
    both[1].next_seq = both[1].acked_seq = 4;
    both[1].next_bytes = both[1].acked_bytes = 4 * RECORD;

    anchor_resume (s_receiver, 1, s_handle, 1, both, 2);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 3, 3 * RECORD);
    client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL);
}

static void position_of_a_sender_that_is_not_there_is_ignored (void **state)
{
    (void) state;
    hws_position_t it = position ();
    it.sender_id = 99;

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 1, RECORD);
    client_expect_silence (s_receiver);
    assert_int_equal (protocol_errors (), 0);
}

static void another_open_forgets_the_positions_of_one_without_a_last (void **state)
{
    (void) state;
    anchor_resuming (s_receiver, 1, s_handle, NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, position ());
    batch_send (&batch, s_receiver);
    client_expect_silence (s_receiver);

    anchor_resume (s_receiver, 1, s_handle, 1, NULL, 0);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (s_receiver, 1, RECORD);
    client_expect_silence (s_receiver);
    assert_int_equal (protocol_errors (), 0);
}

static void first_open_forgets_them_too (void **state)
{
    (void) state;
    anchor_resuming (s_receiver, 1, s_handle, NULL);

    anchor_open (s_receiver, 2, "", NULL);

    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    batch_send (&batch, s_receiver);
    client_take_refusal (s_receiver, HWS_VERB_ERROR, HWS_EPROTOCOL);
}

static void hello_forgets_them_too (void **state)
{
    (void) state;
    anchor_resuming (s_receiver, 1, s_handle, NULL);

    client_reconnect (s_receiver);

    assert_null (hws_peer_of_client (s_world.engine, &s_receiver->id)->opening);
}

static void open_whose_connection_ends_is_completed_by_what_is_still_read (void **state)
{
    (void) state;
    client_reconnect (s_receiver);
    anchor_resuming (s_receiver, 1, s_handle, NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    hws_position_t it = position ();
    it.flags = HWS_POSITION_LAST;
    batch_add_position (&batch, it);

    client_disconnect (s_receiver);
    batch_send (&batch, s_receiver);

    client_expect_silence (s_receiver);
    assert_int_equal (protocol_errors (), 0);
    stream_attach_again (&s_stream);
    assert_int_equal (s_stream.next_seq, 3);
}

static void client_that_never_says_the_last_one_is_forgotten_with_it (void **state)
{
    (void) state;
    s_other->is_beating = false;
    anchor_resuming (s_other, 5, s_handle, NULL);
    client_disconnect (s_other);

    world_advance (&s_world, 1000);

    assert_int_equal (hws_engine_counts (s_world.engine).peers, 2);
    client_expect_silence (s_receiver);
}

/*  ---- Liars, in another life ---- */

static void restart (void)
{
    world_restart (&s_world);
    client_reconnect (s_receiver);
    client_reconnect (s_sender);
    client_reconnect (s_other);
}

static void position_of_more_than_the_budget_ends_that_sender (void **state)
{
    (void) state;
    restart ();
    hws_position_t all[] = {position (), position (), position ()};
    all[0].next_bytes = WORLD_BUFFER - WORLD_WINDOW + 2 * RECORD;
    all[1].sender_id = 2;
    all[1].seat_key++;
    all[2].sender_id = 3;
    all[2].seat_key += 2;

    anchor_resume (s_receiver, 1, s_handle, 3, all, 3);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    const uint64_t third = client_take_run (s_receiver, HWS_RUN_ATTACHED)->stream;
    expect_ending (s_receiver, third, HWS_RUN_DROPPED, "protocol");
    const hws_anchor_t *const anchor = hws_anchor_find (s_world.engine, s_handle);
    assert_true (anchor->reserved_bytes == anchor->buffer_bytes);
    anchor_ack (s_receiver, third, 2, 2 * RECORD, true);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 2);
}

static void ending_of_more_than_the_budget_takes_no_room (void **state)
{
    (void) state;
    restart ();
    hws_position_t it = position ();
    it.next_bytes = 2 * WORLD_BUFFER;
    it.flags = HWS_POSITION_ENDED;
    it.type = HWS_RUN_DETACHED;

    anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_int_equal (hws_anchor_find (s_world.engine, s_handle)->reserved_bytes, 0);
}

static void of_two_senders_under_one_seat_key_the_first_is_found (void **state)
{
    (void) state;
    restart ();
    hws_position_t both[] = {position (), position ()};
    both[1].sender_id = 2;

    anchor_resume (s_receiver, 1, s_handle, 2, both, 2);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 2);
    stream_ask (s_sender, 1, s_handle);
    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.sender_id, 1);
}

static void sender_that_is_named_twice_is_seated_once (void **state)
{
    for (int i = 0; i < 4; i++) {
        end (state);
        begin_stream (state);
        restart ();
        hws_position_t both[] = {position (), position ()};
        for (int j = 0; j < 2; j++) {
            both[j].flags = i >> j & 1 ? HWS_POSITION_ENDED | HWS_POSITION_CONSUMED : 0;
            both[j].type = i >> j & 1 ? HWS_RUN_DROPPED : 0;
        }

        anchor_resume (s_receiver, 1, s_handle, 1, both, 2);

        client_take_ok (s_receiver, HWS_VERB_OPEN);
        assert_int_equal (hws_engine_counts (s_world.engine).seats, !(i & 1));
        assert_int_equal (hws_engine_counts (s_world.engine).tombstones, i & 1);
        assert_int_equal (protocol_errors (), 1);
    }
}

static void more_senders_than_any_anchor_has_are_refused (void **state)
{
    (void) state;
    restart ();
    const hws_limits_t *const limits = &s_world.options.limits;
    const size_t most = limits->senders_per_anchor + limits->exiting_seats;
    for (size_t extra = 0; extra <= 1; extra++) {
        anchor_resuming (s_receiver, 1, s_handle, NULL);
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_POSITION);
        for (size_t i = 1; i <= most + 1 - extra; i++) {
            batch_add_position (&batch, (hws_position_t){.sender_id = i, .seat_key = i});
        }
        batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
        batch_send (&batch, s_receiver);

        if (extra == 0) {
            client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ELIMIT);
            assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
        } else {
            client_take_ok (s_receiver, HWS_VERB_OPEN);
            assert_int_equal (hws_engine_counts (s_world.engine).seats, most);
        }
    }
}

static void endings_beyond_the_limit_of_tombstones_are_as_good_as_forgotten (void **state)
{
    (void) state;
    restart ();
    const size_t most = s_world.options.limits.tombstones;
    anchor_resuming (s_receiver, 1, s_handle, NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    for (size_t i = 1; i <= most + 5; i++) {
        batch_add_position (&batch,
                            (hws_position_t){.sender_id = i,
                                             .seat_key = i,
                                             .type = HWS_RUN_DROPPED,
                                             .flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED});
    }
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});

    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, most);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void exclusive_anchor_has_one_ending_that_closes_it (void **state)
{
    (void) state;
    const hws_open_t open = {.kind = HWS_KIND_SPSC};
    s_handle = anchor_open (s_receiver, 2, "", &open);
    restart ();
    hws_position_t all[] = {position (), position (), position ()};
    for (uint64_t i = 0; i < 3; i++) {
        all[i].sender_id = 1 + i;
        all[i].seat_key += i;
        all[i].type = HWS_RUN_FINALIZED;
        all[i].flags = HWS_POSITION_ENDED | (i == 2 ? HWS_POSITION_CONSUMED : 0);
    }

    anchor_resume (s_receiver, 2, s_handle, 3, all, 3);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    const uint64_t one = client_take_run (s_receiver, HWS_RUN_ATTACHED)->stream;
    const uint64_t two = client_take_run (s_receiver, HWS_RUN_ATTACHED)->stream;
    anchor_ack (s_receiver, one, 3, 3 * RECORD, true);
    client_expect_silence (s_receiver);
    anchor_ack (s_receiver, two, 3, 3 * RECORD, true);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "finalized");
}

static void finalized_position_closes_no_shared_anchor (void **state)
{
    for (int is_consumed = 0; is_consumed <= 1; is_consumed++) {
        end (state);
        begin_stream (state);
        restart ();
        hws_position_t it = position ();
        it.type = HWS_RUN_FINALIZED;
        it.flags = HWS_POSITION_ENDED | (is_consumed ? HWS_POSITION_CONSUMED : 0);

        anchor_resume (s_receiver, 1, s_handle, 1, &it, 1);

        client_take_ok (s_receiver, HWS_VERB_OPEN);
        stream_ask (s_other, 1, s_handle);
        client_take_ok (s_other, HWS_VERB_ATTACH);
    }
}

static void position_of_a_sender_is_not_above_all_bounds (void **state)
{
    (void) state;
    restart ();
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = stream_request (&s_stream, UINT64_MAX, UINT64_MAX)};
    anchor_resume (s_receiver, 1, s_handle, 0, NULL, 0);
    client_take_ok (s_receiver, HWS_VERB_OPEN);

    client_ask (s_sender, &attach);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBAD_REQUEST);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_stream, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (another_receiver_goes_on_at_what_is_acknowledged),
        TEST (receiver_that_is_there_is_told_that_it_was_superseded),
        TEST (receiver_that_is_away_is_told_when_it_comes_back),
        TEST (one_client_takes_its_own_anchor_over_by_another_number),
        TEST (receiver_that_was_superseded_and_leaves_takes_nothing_with_it),
        TEST (who_took_over_owns_the_anchor),
        TEST (anchors_of_a_client_are_limited_also_when_it_takes_over),
        TEST (endings_that_were_not_acknowledged_come_again),
        TEST (token_of_who_took_over_cancels_the_anchor),
        TEST (token_of_who_was_superseded_cancels_nothing),
        TEST (receiver_goes_on_where_it_stands),
        TEST (receiver_is_away_until_its_last_position),
        TEST (position_behind_the_ending_acknowledges_it),
        TEST (ending_of_the_broker_that_was_consumed_is_acknowledged),
        TEST (last_acknowledged_ending_of_a_closing_anchor_closes_it),
        TEST (anchor_that_its_token_has_closed_is_not_cancelled_anew),
        TEST (ending_that_the_receiver_passed_without_keeping_comes_again),
        TEST (room_that_positions_free_is_given_to_who_waits),
        TEST (room_that_positions_free_is_given_to_a_large_record),
        TEST (position_without_such_an_open_is_a_violation),
        TEST (position_behind_the_last_one_is_a_violation),
        TEST (position_that_cannot_be_true_moves_nothing),
        TEST (second_position_of_one_sender_is_a_violation),
        TEST (position_of_a_sender_that_is_not_there_is_ignored),
        TEST (another_open_forgets_the_positions_of_one_without_a_last),
        TEST (first_open_forgets_them_too),
        TEST (hello_forgets_them_too),
        TEST (open_whose_connection_ends_is_completed_by_what_is_still_read),
        TEST (client_that_never_says_the_last_one_is_forgotten_with_it),
        TEST (position_of_more_than_the_budget_ends_that_sender),
        TEST (ending_of_more_than_the_budget_takes_no_room),
        TEST (of_two_senders_under_one_seat_key_the_first_is_found),
        TEST (sender_that_is_named_twice_is_seated_once),
        TEST (more_senders_than_any_anchor_has_are_refused),
        TEST (endings_beyond_the_limit_of_tombstones_are_as_good_as_forgotten),
        TEST (exclusive_anchor_has_one_ending_that_closes_it),
        TEST (finalized_position_closes_no_shared_anchor),
        TEST (position_of_a_sender_is_not_above_all_bounds),
    };
    return cmocka_run_group_tests_name ("takeover", tests, NULL, NULL);
}
