/*  The engine: anchors and streams of the broker's life before come back.
 */
#include "tests/support/engine_test.h"

enum { RECORD = 12 }; /* bytes that a record of 8 takes in the stream */

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_stream; /* of four records, of which the receiver has three and consumed one */

static void reconnect_all (void)
{
    client_reconnect (s_receiver);
    client_reconnect (s_sender);
    client_reconnect (s_other);
    s_receiver->is_beating = s_sender->is_beating = s_other->is_beating = true;
}

static void begin_stream (const hws_engine_options_t *options, const hws_open_t *open)
{
    begin_with (options);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "results", open);
    s_stream = stream_attach (s_sender, 1, s_handle);
    stream_send (&s_stream, 4, 8);
    anchor_ack (s_receiver, s_stream.routing, 1, RECORD, false);
    client_forget (s_receiver);
    client_forget (s_sender);
}

static int begin_restarted (void **state)
{
    begin (state);
    const hws_engine_options_t options = world_options ();
    begin_stream (&options, NULL);
    world_restart (&s_world);
    reconnect_all ();
    return 0;
}

static hws_position_t position (void)
{
    return stream_position (&s_stream, 3, 3 * RECORD, 1, RECORD);
}

static hws_position_t ended (hws_run_type_t type, hws_cause_t cause, bool is_consumed)
{
    hws_position_t it = position ();
    it.flags = HWS_POSITION_ENDED | (is_consumed ? HWS_POSITION_CONSUMED : 0);
    it.type = (uint8_t) type;
    it.cause = (uint16_t) cause;
    return it;
}

static void resume (const hws_position_t *positions, size_t count)
{
    anchor_resume (s_receiver, 1, s_handle, s_stream.sender_id, positions, count);
}

static void resume_with (hws_position_t it)
{
    resume (&it, 1);
    client_take_ok (s_receiver, HWS_VERB_OPEN);
}

/*  Takes ATTACHED; the stream goes by its routing session id from then on.  */
static void take_attached (uint64_t first_seq, uint64_t next_bytes)
{
    const hws_run_t *const run = client_take_run (s_receiver, HWS_RUN_ATTACHED);
    hws_attached_t attached;
    assert_int_equal (hws_attached_decode (run->body, &attached), 0);
    assert_int_equal (attached.sender_id, s_stream.sender_id);
    assert_int_equal (attached.next_bytes, next_bytes);
    assert_int_equal (run->first_seq, first_seq);
    s_stream.routing = run->stream;
}

static hws_engine_counts_t counts (void)
{
    return hws_engine_counts (s_world.engine);
}

/*  ---- The anchor ---- */

static void anchor_and_seat_are_made_anew_where_the_receiver_stands (void **state)
{
    (void) state;

    const hws_position_t it = position ();
    resume (&it, 1);

    const hws_open_ok_t *const open = &client_take_ok (s_receiver, HWS_VERB_OPEN)->as.open_ok;
    assert_true (hws_handle_equal (open->handle, s_handle));
    take_attached (3, 3 * RECORD);
    assert_int_equal (s_stream.routing >> 32, s_world.options.epoch);
    stream_resume (&s_stream, 0, 0);
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_int_equal (ok->sender_id, s_stream.sender_id);
    assert_int_equal (ok->next_seq, 3);
    assert_int_equal (ok->next_bytes, 3 * RECORD);
    assert_int_equal (ok->acked_seq, 1);
    assert_int_equal (ok->slot_byte_budget, WORLD_WINDOW - 2 * RECORD);
    assert_false (ok->has_ended);
    s_stream.next_seq = 3;
    s_stream.next_bytes = 3 * RECORD;
    stream_send (&s_stream, 1, 8);
    stream_end (&s_stream);
    expect_run (s_receiver, HWS_RUN_RECORDS, s_stream.routing, 3, 1);
    expect_run (s_receiver, HWS_RUN_DETACHED, s_stream.routing, 4, 1);
    anchor_ack (s_receiver, s_stream.routing, 5, s_stream.next_bytes, true);
    assert_int_equal (counts ().seats, 0);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

static void sender_that_comes_first_waits_for_its_receiver (void **state)
{
    (void) state;
    stream_resume (&s_stream, 0, 0);
    client_expect_silence (s_sender);
    world_advance (&s_world, WORLD_ORPHAN_MS / 2);
    client_expect_silence (s_sender);
    assert_int_equal (counts ().waiting, 1);

    resume_with (position ());

    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.next_seq, 3);
    take_attached (3, 3 * RECORD);
    client_expect_silence (s_receiver);
    assert_int_equal (counts ().waiting, 0);
}

static void anchor_without_senders_comes_back_with_the_mark_alone (void **state)
{
    (void) state;

    resume (NULL, 0);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    client_expect_silence (s_receiver);
    assert_int_equal (counts ().anchors, 1);
    assert_int_equal (counts ().seats, 0);
}

static void name_that_somebody_took_is_not_taken_from_him (void **state)
{
    (void) state;
    const hws_handle_t other = anchor_open (s_other, 1, "results", NULL);
    const hws_open_t open = {.name = "results"};
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});

    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = {.anchor = "results", .session_id = 5}};
    client_ask (s_sender, &attach);
    assert_true (
        hws_handle_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.handle, other));
}

static void values_in_force_and_the_name_stay (void **state)
{
    (void) state;
    const hws_open_t open = {.name = "results",
                             .heartbeat_interval_ms = {HWS_VALUE, 700},
                             .reconnect_grace_ms = {HWS_VALUE, 900},
                             .orphan_ttl_ms = {HWS_VALUE, 1100},
                             .max_senders = {HWS_VALUE, 3},
                             .buffer_bytes = {HWS_VALUE, 99000}};
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});

    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_send (&batch, s_receiver);

    const hws_open_ok_t *const ok = &client_take_ok (s_receiver, HWS_VERB_OPEN)->as.open_ok;
    assert_int_equal (ok->heartbeat_interval_ms, 700);
    assert_int_equal (ok->reconnect_grace_ms, 900);
    assert_int_equal (ok->orphan_ttl_ms, 1100);
    assert_int_equal (ok->max_senders.value, 3);
    assert_int_equal (ok->buffer_bytes, 99000);
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = {.anchor = "results", .session_id = 5}};
    client_ask (s_sender, &attach);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void new_sender_ids_begin_above_those_of_the_epochs_before (void **state)
{
    (void) state;
    resume_with (position ());

    const stream_t next = stream_attach (s_other, 1, s_handle);

    assert_true (next.sender_id == (UINT64_C (1) << 32) + 1);
    world_restart (&s_world);
    reconnect_all ();
    const hws_position_t both[] = {position (), stream_position (&next, 0, 0, 0, 0)};
    anchor_resume (s_receiver, 1, s_handle, next.sender_id, both, 2);
    assert_true (stream_attach (s_other, 2, s_handle).sender_id == (UINT64_C (2) << 32) + 1);
}

static void new_sender_ids_are_above_all_that_the_receiver_names (void **state)
{
    (void) state;
    const uint64_t high = UINT64_C (1) << 40;
    hws_position_t it = position ();
    it.sender_id = high;

    anchor_resume (s_receiver, 1, s_handle, high - 1, &it, 1);

    assert_true (stream_attach (s_other, 1, s_handle).sender_id == high + 1);
}

static void wrong_owner_token_is_denied (void **state)
{
    (void) state;
    hws_control_t message = {
        .verb = HWS_VERB_OPEN,
        .as.open = {.open_id = 1, .has_resume = true, .resume.handle = s_handle}};
    client_ask (s_receiver, &message);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, position ());
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});

    batch_send (&batch, s_receiver);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EDENIED);
    client_expect_silence (s_receiver);
    assert_int_equal (counts ().anchors, 0);
}

static void token_of_another_key_is_denied (void **state)
{
    (void) state;
    s_world.options.key[7]++; /* that of the true one */

    resume (NULL, 0);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EDENIED);
}

static void resume_at_another_broker_is_told_so (void **state)
{
    (void) state;
    s_handle.hi++;

    resume (NULL, 0);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EWRONG_BROKER);
}

static void open_id_of_another_anchor_is_a_bad_request (void **state)
{
    (void) state;
    anchor_open (s_receiver, 1, "other", NULL);

    resume (NULL, 0);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EBAD_REQUEST);
    assert_int_equal (counts ().anchors, 1);
}

static void limits_of_anchors_hold_for_those_that_come_back (void **state)
{
    (void) state;
    for (uint64_t i = 0; i < s_world.options.limits.anchors_per_peer; i++) {
        anchor_open (s_receiver, 100 + i, "", NULL);
    }

    resume (NULL, 0);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ELIMIT);
}

static void dedicated_anchor_comes_back_with_a_front_of_its_own (void **state)
{
    (void) state;
    const hws_open_t open = {.dedicated = true};
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    hws_position_t it = position ();
    it.flags = HWS_POSITION_LAST;
    batch_add_position (&batch, it);

    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    assert_int_equal (counts ().dedicated, 1);
    stream_resume (&s_stream, 0, 0); /* its front is gone: it comes where it asked first */
    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.next_seq, 3);
    stream_ask (s_other, 1, s_handle);
    assert_string_equal (client_take_ok (s_other, HWS_VERB_ATTACH)->as.attach_ok.endpoint,
                         world_endpoint (1, 0));
}

/*  ---- Endings ---- */

static void ending_that_was_consumed_is_remembered (void **state)
{
    (void) state;
    resume_with (ended (HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT, true));
    client_expect_silence (s_receiver);

    stream_resume (&s_stream, 0, 0);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_string_equal (ok->ending, "dropped");
    assert_string_equal (ok->code, "heartbeat");
    assert_int_equal (ok->acked_seq, 1);
    assert_int_equal (counts ().seats, 0);
    assert_int_equal (counts ().tombstones, 1);
}

static void ending_that_was_consumed_answers_a_first_attach_too (void **state)
{
    (void) state;
    resume_with (ended (HWS_RUN_CANCELLED, HWS_CAUSE_REQUESTED, true));

    stream_ask (s_sender, 1, s_handle);

    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "cancelled");
}

static void ending_of_the_broker_that_was_not_consumed_comes_again (void **state)
{
    (void) state;

    resume_with (ended (HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT, false));

    take_attached (3, 3 * RECORD);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
    stream_resume (&s_stream, 0, 0);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.code,
                         "heartbeat");
    anchor_ack (s_receiver, s_stream.routing, 1, RECORD, true);
    assert_int_equal (counts ().seats, 0);
}

static void clean_ending_that_was_not_consumed_makes_an_exiting_seat (void **state)
{
    (void) state;
    resume_with (ended (HWS_RUN_DETACHED, HWS_CAUSE_NONE, false)); /* its number is 2 */
    take_attached (3, 3 * RECORD);
    client_expect_silence (s_receiver);
    s_stream.next_seq = 3;

    stream_resume (&s_stream, 0, 0);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_false (ok->has_ended);
    assert_int_equal (ok->next_seq, 3);
    anchor_ack (s_receiver, s_stream.routing, 3, 3 * RECORD, true);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 3);
    assert_int_equal (counts ().seats, 0);
    assert_int_equal (hws_engine_stats (s_world.engine)->detached, 1);
}

/*  The receiver opens again within the epoch and has lost what it had not consumed.  */
static void exiting_seat_that_came_back_may_be_rewound (void **state)
{
    (void) state;
    hws_position_t it = ended (HWS_RUN_DETACHED, HWS_CAUSE_NONE, false);
    it.next_seq = 4;
    it.next_bytes = 3 * RECORD + HWS_ENDING_HEADER_SIZE;
    resume_with (it);
    stream_resume (&s_stream, 1, RECORD);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
    anchor_open (s_receiver, 1, "results", NULL);
    client_forget (s_receiver);

    s_stream.next_seq = 1;
    s_stream.next_bytes = RECORD;
    stream_send (&s_stream, 2, 8);
    stream_end (&s_stream);

    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
    assert_int_equal (client_take_run (s_receiver, HWS_RUN_RECORDS)->count, 2);
    client_take_run (s_receiver, HWS_RUN_DETACHED);
}

/*  A sender had ended, and made room for the next, before its receiver was told.  */
static void senders_that_come_back_count_for_no_limit_of_new_ones (void **state)
{
    const hws_open_t opens[] = {{.max_senders = {HWS_VALUE, 1}}, {.kind = HWS_KIND_SPSC}};
    for (size_t i = 0; i < 2; i++) {
        end (state);
        begin (state);
        const hws_engine_options_t options = world_options ();
        begin_stream (&options, &opens[i]);
        stream_end (&s_stream);
        stream_t second = stream_attach (s_sender, 2, s_handle);
        world_restart (&s_world);
        reconnect_all ();

        hws_open_t open = opens[i];
        open.resume.highest_sender_id = second.sender_id;
        anchor_resuming (s_receiver, 1, s_handle, &open);
        hws_position_t last = stream_position (&second, 0, 0, 0, 0);
        last.flags = HWS_POSITION_LAST;
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_POSITION);
        batch_add_position (&batch, position ());
        batch_add_position (&batch, last);
        batch_send (&batch, s_receiver);
        client_take_ok (s_receiver, HWS_VERB_OPEN);

        stream_resume (&second, 0, 0);
        assert_false (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.has_ended);
        stream_resume (&s_stream, 1, RECORD);
        assert_false (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.has_ended);
        stream_ask (s_sender, 3, s_handle);
        client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);
    }
}

/*  A large record had moved the limit beyond the window, or the window was larger.  */
static void records_beyond_the_window_that_came_back_may_be_rewound (void **state)
{
    (void) state;
    s_world.options.anchors.window_records = 1;
    world_restart (&s_world);
    reconnect_all ();
    resume_with (position ());
    stream_resume (&s_stream, 1, RECORD);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
    anchor_open (s_receiver, 1, "results", NULL);
    client_forget (s_receiver);

    s_stream.next_seq = 1;
    s_stream.next_bytes = RECORD;
    stream_send (&s_stream, 2, 8);

    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
    assert_int_equal (client_take_run (s_receiver, HWS_RUN_RECORDS)->count, 2);
}

static void finalized_anchor_closes_when_its_ending_is_consumed (void **state)
{
    for (int is_consumed = 0; is_consumed <= 1; is_consumed++) {
        end (state);
        begin (state);
        const hws_engine_options_t options = world_options ();
        const hws_open_t open = {.kind = HWS_KIND_SPSC};
        begin_stream (&options, &open);
        world_restart (&s_world);
        reconnect_all ();

        resume_with (ended (HWS_RUN_FINALIZED, HWS_CAUSE_NONE, is_consumed));

        if (!is_consumed) {
            take_attached (3, 3 * RECORD);
            stream_ask (s_other, 1, s_handle);
            client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
            anchor_ack (s_receiver, s_stream.routing, 3, 3 * RECORD, true);
        }
        assert_string_equal (
            client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code, "finalized");
        assert_int_equal (counts ().anchors, 0);
        stream_resume (&s_stream, 0, 0);
        assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                             "finalized");
    }
}

/*  No true receiver of an exclusive anchor has two senders at a time.  */
static void anchor_whose_receiver_names_two_is_finalized_once (void **state)
{
    end (state);
    begin (state);
    const hws_engine_options_t options = world_options ();
    const hws_open_t open = {.kind = HWS_KIND_SPSC};
    begin_stream (&options, &open);
    world_restart (&s_world);
    reconnect_all ();
    hws_position_t both[2] = {position (), ended (HWS_RUN_FINALIZED, HWS_CAUSE_NONE, false)};
    both[1].sender_id++;
    anchor_resume (s_receiver, 1, s_handle, both[1].sender_id, both, 2);
    client_take_ok (s_receiver, HWS_VERB_OPEN);
    stream_resume (&s_stream, 0, 0);
    s_stream.next_seq = client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.next_seq;

    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_ending (&s_stream, HWS_RUN_FINALIZED));
    batch_send (&batch, s_sender);

    assert_int_equal (hws_engine_stats (s_world.engine)->protocol_errors, 0);
    assert_int_equal (counts ().anchors, 1);
}

static void seat_that_nobody_resumes_is_dropped_after_the_grace (void **state)
{
    (void) state;
    resume_with (position ());
    take_attached (3, 3 * RECORD);
    world_advance (&s_world, WORLD_GRACE_MS - 1);
    client_expect_silence (s_receiver);

    world_advance (&s_world, 1);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "transport");
    stream_resume (&s_stream, 0, 0);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.code,
                         "transport");
}

/*  ---- ATTACH ---- */

static void wrong_resume_token_is_denied (void **state)
{
    (void) state;
    resume_with (position ());
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&s_stream, 0, 0)};
    message.as.attach.resume.resume_token.bytes[3]++;

    client_ask (s_sender, &message);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EDENIED);
}

/*  Another receiver had taken the anchor over, and acknowledged it; this one was never told.  */
static void receiver_that_has_less_than_was_acknowledged_loses_the_stream (void **state)
{
    (void) state;
    resume_with (position ());
    take_attached (3, 3 * RECORD);

    stream_resume (&s_stream, 4, 4 * RECORD);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_string_equal (ok->ending, "dropped");
    assert_string_equal (ok->code, "unknown");
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "unknown");
    anchor_ack (s_receiver, s_stream.routing, 3, 3 * RECORD, true);
    assert_int_equal (counts ().seats, 0);
}

static void first_attach_that_was_seated_finds_its_seat (void **state)
{
    (void) state;
    resume_with (position ());

    stream_ask (s_sender, 1, s_handle);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_int_equal (ok->sender_id, s_stream.sender_id);
    assert_int_equal (ok->next_seq, 3);
    assert_int_equal (counts ().seats, 1);
    stream_ask (s_sender, 2, s_handle);
    assert_true (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.sender_id >
                 s_stream.sender_id);
}

/*  A session is of one anchor: what another remembers under its key is not meant.  */
static void seat_key_finds_nothing_at_another_anchor (void **state)
{
    for (int has_ended = 0; has_ended <= 1; has_ended++) {
        end (state);
        begin (state);
        const hws_engine_options_t options = world_options ();
        begin_stream (&options, NULL);
        const hws_handle_t another = anchor_open (s_receiver, 2, "", NULL);
        world_restart (&s_world);
        reconnect_all ();
        resume_with (has_ended ? ended (HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT, true) : position ());
        anchor_resume (s_receiver, 2, another, 0, NULL, 0);

        stream_ask (s_sender, 1, another);

        const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
        assert_true (hws_handle_equal (ok->handle, another));
        assert_false (ok->has_ended);
        assert_int_equal (ok->next_seq, 0);
    }
}

static void senders_of_a_client_are_limited_also_when_they_resume (void **state)
{
    (void) state;
    stream_t second = s_stream;
    second.sender_id = second.session_id = 2;
    const hws_position_t both[] = {position (), stream_position (&second, 0, 0, 0, 0)};
    hws_limits_t limits = s_world.options.limits;
    limits.seats_per_peer = 1;
    hws_engine_configure (s_world.engine, &s_world.options.anchors, &limits);
    resume (both, 2);
    stream_resume (&s_stream, 0, 0);
    client_take_ok (s_sender, HWS_VERB_ATTACH);

    stream_resume (&second, 0, 0);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ELIMIT);
}

static void first_attach_waits_for_its_anchor_without_asking_to (void **state)
{
    (void) state;
    stream_ask (s_other, 1, s_handle);
    client_expect_silence (s_other);
    world_advance (&s_world, 10);
    client_expect_silence (s_other);

    resume_with (position ());

    assert_true (client_take_ok (s_other, HWS_VERB_ATTACH)->as.attach_ok.sender_id > UINT64_C (1)
                                                                                         << 32);
}

static void waiting_attaches_are_limited (void **state)
{
    (void) state;
    for (uint64_t i = 0; i < s_world.options.limits.waiting_attaches; i++) {
        stream_ask (s_other, 1 + i, s_handle);
    }

    stream_resume (&s_stream, 0, 0);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ELIMIT);
}

static void seat_of_another_client_is_denied (void **state)
{
    (void) state;
    resume_with (position ());
    stream_resume (&s_stream, 0, 0);
    stream_t stolen = s_stream;
    stolen.client = s_other;

    stream_resume (&stolen, 0, 0);

    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EDENIED);
}

static void sender_that_the_receiver_never_saw_goes_on_at_its_own_positions (void **state)
{
    (void) state;
    anchor_resume (s_receiver, 1, s_handle, 0, NULL, 0);
    client_take_ok (s_receiver, HWS_VERB_OPEN);

    stream_resume (&s_stream, 2, 2 * RECORD);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_int_equal (ok->sender_id, s_stream.sender_id);
    assert_int_equal (ok->next_seq, 2);
    assert_int_equal (ok->next_bytes, 2 * RECORD);
    assert_int_equal (ok->acked_seq, 2);
    take_attached (2, 2 * RECORD);
}

static void sender_in_a_range_that_was_not_seen_is_seated (void **state)
{
    (void) state;
    const hws_open_t open = {
        .resume = {.highest_sender_id = 9, .unseen_count = 2, .unseen = {{2, 3}, {5, 8}}}};
    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    batch_send (&batch, s_receiver);
    client_take_ok (s_receiver, HWS_VERB_OPEN);

    for (uint64_t id = 1; id <= 10; id++) {
        stream_t stream = s_stream;
        stream.sender_id = stream.session_id = id;
        stream_resume (&stream, 0, 0);

        const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
        const bool was_unseen = id == 2 || (id >= 5 && id < 8) || id > 9;
        assert_true (ok->has_ended == !was_unseen);
        assert_string_equal (ok->code, was_unseen ? "" : "unknown");
    }
}

static void sender_that_was_never_seen_is_seated_once (void **state)
{
    (void) state;
    anchor_resume (s_receiver, 1, s_handle, 0, NULL, 0);
    client_take_ok (s_receiver, HWS_VERB_OPEN);
    stream_resume (&s_stream, 4, 4 * RECORD);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
    take_attached (4, 4 * RECORD);
    stream_end (&s_stream);
    anchor_ack (s_receiver, s_stream.routing, 5, 4 * RECORD + HWS_ENDING_HEADER_SIZE, true);
    client_forget (s_sender);
    world_advance (&s_world, WORLD_ORPHAN_MS); /* its ending is forgotten */
    assert_int_equal (counts ().tombstones, 0);

    stream_resume (&s_stream, 4, 4 * RECORD);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "dropped");
    assert_string_equal (ok->code, "unknown");
    assert_int_equal (counts ().seats, 0);
}

static void id_of_this_epoch_is_never_a_resumed_one (void **state)
{
    (void) state;
    resume (NULL, 0);
    stream_t stream = s_stream;
    stream.sender_id = (UINT64_C (1) << 32) + 1;

    stream_resume (&stream, 0, 0);

    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.code, "unknown");
}

static void stream_that_ended_meanwhile_ends_its_seat (void **state)
{
    (void) state;
    resume_with (position ());
    take_attached (3, 3 * RECORD);
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&s_stream, 0, 0)};
    strcpy (message.as.attach.resume.ending, "dropped");
    strcpy (message.as.attach.resume.code, "heartbeat");

    client_ask (s_sender, &message);

    expect_ending (s_receiver, s_stream.routing, HWS_RUN_DROPPED, "heartbeat");
    expect_told (s_sender, s_stream.session_id, "dropped", "heartbeat");
    assert_true (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.has_ended);
}

static void stream_that_ended_and_was_never_seen_gets_no_seat (void **state)
{
    (void) state;
    anchor_resume (s_receiver, 1, s_handle, 0, NULL, 0);
    client_take_ok (s_receiver, HWS_VERB_OPEN);
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&s_stream, 0, 0)};
    strcpy (message.as.attach.resume.ending, "cancelled");
    strcpy (message.as.attach.resume.code, "requested");

    client_ask (s_sender, &message);

    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "cancelled");
    client_expect_silence (s_receiver);
    assert_int_equal (counts ().seats, 0);
}

static void token_that_was_cancelled_ends_the_seat_of_a_repeated_attach (void **state)
{
    for (int has_resume = 0; has_resume <= 1; has_resume++) {
        for (int is_late = 0; is_late <= 1; is_late++) {
            end (state);
            begin_restarted (state);
            hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                                    .as.attach = stream_request (&s_stream, 0, 0)};
            hws_control_t cancel = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 77};
            attach.as.attach.has_resume = has_resume;
            attach.as.attach.cancel_token = 77;
            client_ask (s_sender, is_late ? &attach : &cancel);
            client_ask (s_sender, is_late ? &cancel : &attach);

            resume_with (position ());

            take_attached (3, 3 * RECORD);
            expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
            client_take_ok (s_sender, HWS_VERB_CANCEL_TOKEN);
            expect_told (s_sender, 1, "cancelled", "requested");
            assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                                 "cancelled");
        }
    }
}

/*  ---- Young ---- */

static void who_waits_is_told_in_one_turn_that_nobody_came_back (void **state)
{
    (void) state;
    stream_resume (&s_stream, 0, 0);
    stream_ask (s_other, 1, s_handle);
    world_advance (&s_world, WORLD_ORPHAN_MS - 1);
    client_expect_silence (s_sender);
    client_expect_silence (s_other);

    world_advance (&s_world, 1);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (counts ().waiting, 0);
    stream_resume (&s_stream, 0, 0);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    stream_ask (s_other, 1, s_handle);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
    resume (NULL, 0);
    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED);
    anchor_cancel (s_sender, s_handle, s_stream.sender_id, "");
    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_ECLOSED);
}

static void cancel_before_the_receiver_is_back_is_to_be_asked_again (void **state)
{
    (void) state;
    anchor_cancel (s_sender, s_handle, s_stream.sender_id, "");
    client_take_refusal (s_sender, HWS_VERB_CANCEL, HWS_EBUSY);
    hws_control_t detach = {.verb = HWS_VERB_DETACH,
                            .as.detach = {.handle = s_handle, .sender_id = 1, .seq = 4}};
    client_ask (s_sender, &detach);
    client_take_refusal (s_sender, HWS_VERB_DETACH, HWS_EBUSY);
    resume_with (position ());
    stream_resume (&s_stream, 0, 0);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
    take_attached (3, 3 * RECORD);

    anchor_cancel (s_sender, s_handle, s_stream.sender_id, "");

    client_take_ok (s_sender, HWS_VERB_CANCEL);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
}

static void anchor_that_ended_since_stays_ended (void **state)
{
    (void) state;
    resume_with (position ());
    anchor_cancel (s_receiver, s_handle, 0, "");
    client_forget (s_receiver);

    anchor_resume (s_receiver, 2, s_handle, 1, NULL, 0);

    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "receiver_closed");
    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_ECLOSED);
    stream_t unseen = s_stream;
    unseen.sender_id = 9;
    stream_resume (&s_stream, 0, 0);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.code,
                         "receiver_closed");
    stream_ask (s_other, 1, s_handle);
    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_ECLOSED);
    unseen.session_id = 9;
    stream_resume (&unseen, 0, 0);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.code,
                         "receiver_closed");
}

static void handle_of_the_other_kind_is_told_so_as_ever (void **state)
{
    (void) state;
    resume_with (position ());
    hws_handle_t other = s_handle;
    other.lo ^= HWS_HANDLE_MPSC_BIT;

    stream_ask (s_other, 1, other);
    anchor_cancel (s_other, other, 0, "");

    client_take_refusal (s_other, HWS_VERB_ATTACH, HWS_EWRONG_KIND);
    client_take_refusal (s_other, HWS_VERB_CANCEL, HWS_EWRONG_KIND);
}

/*  ---- Leaving ---- */

static void leaving_broker_ends_nothing_of_what_comes_back (void **state)
{
    (void) state;
    hws_engine_drain (s_world.engine, s_world.now, "restart");
    world_pump (&s_world);
    client_forget (s_receiver);
    client_forget (s_sender);

    resume (NULL, 0);
    stream_resume (&s_stream, 0, 0);

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EBUSY);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBUSY);
}

static void token_of_the_anchor_that_was_cancelled_closes_it (void **state)
{
    (void) state;
    hws_control_t cancel = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 78};
    client_ask (s_receiver, &cancel);
    client_take_ok (s_receiver, HWS_VERB_CANCEL_TOKEN);
    const hws_open_t open = {.cancel_token = 78};
    hws_position_t it = position ();
    it.flags = HWS_POSITION_LAST;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, it);

    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (3, 3 * RECORD);
    expect_ending (s_receiver, s_stream.routing, HWS_RUN_CANCELLED, "requested");
    anchor_ack (s_receiver, s_stream.routing, 1, RECORD, true);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "requested");
}

/*  As when the token is cancelled while the anchor finalizes.  */
static void token_that_was_cancelled_overtakes_a_finalize (void **state)
{
    end (state);
    begin (state);
    const hws_engine_options_t options = world_options ();
    const hws_open_t exclusive = {.kind = HWS_KIND_SPSC, .cancel_token = 78};
    begin_stream (&options, &exclusive);
    world_restart (&s_world);
    reconnect_all ();
    hws_control_t cancel = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 78};
    client_ask (s_sender, &cancel);
    hws_position_t it = ended (HWS_RUN_FINALIZED, HWS_CAUSE_NONE, false);
    it.flags |= HWS_POSITION_LAST;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, it);

    anchor_resuming (s_receiver, 1, s_handle, &exclusive);
    batch_send (&batch, s_receiver);

    client_take_ok (s_receiver, HWS_VERB_OPEN);
    take_attached (3, 3 * RECORD);
    anchor_ack (s_receiver, s_stream.routing, 3, 3 * RECORD, true);
    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "requested");
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_restarted, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (anchor_and_seat_are_made_anew_where_the_receiver_stands),
        TEST (sender_that_comes_first_waits_for_its_receiver),
        TEST (anchor_without_senders_comes_back_with_the_mark_alone),
        TEST (name_that_somebody_took_is_not_taken_from_him),
        TEST (values_in_force_and_the_name_stay),
        TEST (new_sender_ids_begin_above_those_of_the_epochs_before),
        TEST (new_sender_ids_are_above_all_that_the_receiver_names),
        TEST (wrong_owner_token_is_denied),
        TEST (token_of_another_key_is_denied),
        TEST (resume_at_another_broker_is_told_so),
        TEST (open_id_of_another_anchor_is_a_bad_request),
        TEST (limits_of_anchors_hold_for_those_that_come_back),
        TEST (dedicated_anchor_comes_back_with_a_front_of_its_own),
        TEST (ending_that_was_consumed_is_remembered),
        TEST (ending_that_was_consumed_answers_a_first_attach_too),
        TEST (ending_of_the_broker_that_was_not_consumed_comes_again),
        TEST (clean_ending_that_was_not_consumed_makes_an_exiting_seat),
        TEST (exiting_seat_that_came_back_may_be_rewound),
        TEST (senders_that_come_back_count_for_no_limit_of_new_ones),
        TEST (records_beyond_the_window_that_came_back_may_be_rewound),
        TEST (finalized_anchor_closes_when_its_ending_is_consumed),
        TEST (anchor_whose_receiver_names_two_is_finalized_once),
        TEST (seat_that_nobody_resumes_is_dropped_after_the_grace),
        TEST (wrong_resume_token_is_denied),
        TEST (receiver_that_has_less_than_was_acknowledged_loses_the_stream),
        TEST (first_attach_that_was_seated_finds_its_seat),
        TEST (seat_key_finds_nothing_at_another_anchor),
        TEST (senders_of_a_client_are_limited_also_when_they_resume),
        TEST (first_attach_waits_for_its_anchor_without_asking_to),
        TEST (waiting_attaches_are_limited),
        TEST (seat_of_another_client_is_denied),
        TEST (sender_that_the_receiver_never_saw_goes_on_at_its_own_positions),
        TEST (sender_in_a_range_that_was_not_seen_is_seated),
        TEST (sender_that_was_never_seen_is_seated_once),
        TEST (id_of_this_epoch_is_never_a_resumed_one),
        TEST (stream_that_ended_meanwhile_ends_its_seat),
        TEST (stream_that_ended_and_was_never_seen_gets_no_seat),
        TEST (token_that_was_cancelled_ends_the_seat_of_a_repeated_attach),
        TEST (who_waits_is_told_in_one_turn_that_nobody_came_back),
        TEST (cancel_before_the_receiver_is_back_is_to_be_asked_again),
        TEST (anchor_that_ended_since_stays_ended),
        TEST (handle_of_the_other_kind_is_told_so_as_ever),
        TEST (leaving_broker_ends_nothing_of_what_comes_back),
        TEST (token_of_the_anchor_that_was_cancelled_closes_it),
        TEST (token_that_was_cancelled_overtakes_a_finalize),
    };
    return cmocka_run_group_tests_name ("resume", tests, NULL, NULL);
}
