/*  The engine: senders take their seats, or wait, or are refused.
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

static void ask_named (client_t *client, uint64_t session_id, const char *name, uint64_t wait_ms)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.session_id = session_id, .wait_ms = wait_ms}};
    strcpy (message.as.attach.anchor, name);
    client_ask (client, &message);
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

/*  ---- Refusals ---- */

static void attach_to_unknown_anchor_is_not_found (void **state)
{
    (void) state;
    const hws_handle_t unknown = hws_handle_make (0xb0b0, HWS_KIND_MPSC, 7, 99);
    char text[HWS_HANDLE_TEXT_SIZE];
    hws_handle_print (unknown, text);

    stream_ask (s_sender, 1, unknown);
    assert_non_null (
        strstr (client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ENOT_FOUND)->reason, text));
    ask_named (s_sender, 1, "nothing", 0);
    assert_non_null (strstr (
        client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ENOT_FOUND)->reason, "nothing"));
}

/*  Asks for the other broker's live sender, its ended sender and its anchor in every way
 *  there is.  */
static void ask_for_what_is_elsewhere (client_t *client, hws_handle_t foreign)
{
    for (uint64_t sender_id = 1; sender_id <= 2; sender_id++) {
        hws_control_t detach = {.verb = HWS_VERB_DETACH,
                                .as.detach = {.handle = foreign, .sender_id = sender_id}};
        client_ask (client, &detach);
        client_take_refusal (client, HWS_VERB_DETACH, HWS_EWRONG_BROKER);
        anchor_cancel (client, foreign, sender_id, "");
        client_take_refusal (client, HWS_VERB_CANCEL, HWS_EWRONG_BROKER);
    }
    anchor_cancel (client, foreign, 0, "");
    client_take_refusal (client, HWS_VERB_CANCEL, HWS_EWRONG_BROKER);
    stream_ask (client, 9, foreign);
    client_take_refusal (client, HWS_VERB_ATTACH, HWS_EWRONG_BROKER);
}

/*  Two brokers of one epoch, where the same clients did the same: every number is equal
 *  but the brokers' own.  */
static void same_numbers_on_two_brokers (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.broker_id++;
    world_t elsewhere;
    world_begin (&elsewhere, &options);
    client_t *const receiver = client_connect (&elsewhere);
    client_t *const sender = client_connect (&elsewhere);
    const hws_handle_t foreign = anchor_open (receiver, 1, "results", NULL);
    stream_t here[2], there[2];
    for (uint64_t i = 0; i < 2; i++) {
        here[i] = stream_attach (s_sender, 1 + i, s_handle);
        there[i] = stream_attach (sender, 1 + i, foreign);
        assert_true (here[i].routing == there[i].routing);
        assert_true (here[i].sender_id == there[i].sender_id);
    }
    assert_true (foreign.lo == s_handle.lo && foreign.hi != s_handle.hi);
    stream_end (&here[1]);
    anchor_ack (s_receiver, here[1].routing, 1, HWS_ENDING_HEADER_SIZE, true);
    client_forget (s_receiver);
    client_forget (s_sender);

    ask_for_what_is_elsewhere (s_sender, foreign);
    ask_for_what_is_elsewhere (s_receiver, foreign);

    client_expect_silence (s_receiver);
    client_expect_silence (s_sender);
    stream_send (&here[0], 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, here[0].routing, 0, 1);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
    assert_int_equal (hws_engine_counts (elsewhere.engine).seats, 2);
    world_end (&elsewhere);
}

static void handle_of_an_earlier_epoch_is_closed (void **state)
{
    (void) state;

    stream_ask (s_sender, 1, hws_handle_make (0xb0b0, HWS_KIND_MPSC, 6, 1));

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
}

static void closed_anchor_stays_closed_also_when_forgotten (void **state)
{
    (void) state;
    anchor_cancel (s_receiver, s_handle, 0, "enough");
    s_sender->is_beating = true;
    stream_ask (s_sender, 1, s_handle);
    assert_non_null (
        strstr (client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED)->reason, "enough"));

    world_advance (&s_world, WORLD_ORPHAN_MS + 1);
    stream_ask (s_sender, 1, s_handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, 0);
}

static void max_senders_refuses_the_next (void **state)
{
    (void) state;
    const hws_open_t open = {.max_senders = {HWS_VALUE, 2}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_attach (s_sender, 1, handle);
    stream_attach (s_sender, 2, handle);

    stream_ask (s_sender, 3, handle);

    const char *const reason =
        client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EMAX_SENDERS)->reason;
    assert_non_null (strstr (reason, "max_senders limit 2"));
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

static void senders_of_an_anchor_and_of_a_client_are_limited (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.senders_per_anchor = 2;
    options.limits.seats_per_peer = 3;
    begin_with (&options);
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t first = anchor_open (receiver, 1, "", NULL);
    const hws_handle_t second = anchor_open (receiver, 2, "", NULL);
    stream_attach (sender, 1, first);
    stream_attach (sender, 2, first);
    stream_attach (sender, 3, second);

    stream_ask (sender, 4, first);
    stream_ask (sender, 5, second);

    client_take_refusal (sender, HWS_VERB_ATTACH, HWS_ELIMIT);
    client_take_refusal (sender, HWS_VERB_ATTACH, HWS_ELIMIT);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 3);
}

static void unread_endings_make_an_anchor_busy (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.exiting_seats = 1;
    begin_with (&options);
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    stream_end (&stream);

    stream_ask (sender, 2, handle);
    client_take_refusal (sender, HWS_VERB_ATTACH, HWS_EBUSY);
    anchor_ack (receiver, stream.routing, stream.next_seq, stream.next_bytes, true);

    assert_int_equal (stream_attach (sender, 2, handle).sender_id, 2);
}

static void attach_during_the_closing_of_an_anchor_is_closed (void **state)
{
    (void) state;
    stream_attach (s_sender, 1, s_handle);
    anchor_cancel (s_sender, s_handle, 0, "");
    client_take_ok (s_sender, HWS_VERB_CANCEL);

    stream_ask (s_sender, 2, s_handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
}

static void resume_of_a_stream_that_nobody_knows_is_dropped_unknown (void **state)
{
    (void) state;
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = 77,
                                           .has_resume = true,
                                           .resume = {.sender_id = 5}}};

    client_ask (s_sender, &message);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended);
    assert_string_equal (ok->ending, "dropped");
    assert_string_equal (ok->code, "unknown");
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void resume_with_an_ending_ends_the_seat_so (void **state)
{
    (void) state;
    const stream_t stream = stream_attach (s_sender, 1, s_handle);
    client_forget (s_receiver);
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true,
                      .handle = s_handle,
                      .session_id = 1,
                      .has_resume = true,
                      .resume = {.sender_id = 1, .ending = "cancelled", .code = "interrupted"}}};

    client_ask (s_sender, &message);

    expect_ending (s_receiver, stream.routing, HWS_RUN_CANCELLED, "interrupted");
    assert_true (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.has_ended);
}

/*  ---- Waiting ---- */

static void attach_waits_for_the_anchor (void **state)
{
    (void) state;
    ask_named (s_sender, 1, "later", 1000);
    client_expect_silence (s_sender);

    world_advance (&s_world, 500);
    const hws_handle_t later = anchor_open (s_receiver, 2, "later", NULL);

    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (hws_handle_equal (ok->handle, later));
    assert_false (ok->early_kept);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
}

static void waiting_attach_is_refused_at_its_deadline (void **state)
{
    (void) state;
    ask_named (s_sender, 1, "later", 1000);

    world_advance (&s_world, 999);
    client_expect_silence (s_sender);
    world_advance (&s_world, 1);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
}

static void waiting_attach_is_forgotten_with_its_connection (void **state)
{
    (void) state;
    ask_named (s_sender, 1, "later", 1000);

    client_disconnect (s_sender);

    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
    anchor_open (s_receiver, 2, "later", NULL);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
}

static void retried_waiting_attach_keeps_its_deadline_and_is_answered_once (void **state)
{
    (void) state;
    ask_named (s_sender, 1, "later", 1000);
    world_advance (&s_world, 600);

    ask_named (s_sender, 1, "later", 1000);
    world_advance (&s_world, 400);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    client_expect_silence (s_sender);
}

static void waiting_attaches_are_limited_in_number_and_time (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.wait_ms = 500;
    begin_with (&options);
    client_t *const sender = client_connect (&s_world);
    for (uint64_t i = 1; i <= 3; i++) {
        ask_named (sender, i, "later", 3600000);
    }

    ask_named (sender, 4, "later", 3600000);
    client_take_refusal (sender, HWS_VERB_ATTACH, HWS_ELIMIT);
    world_advance (&s_world, 500);

    for (int i = 0; i < 3; i++) {
        client_take_refusal (sender, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    }
}

static void data_of_a_waiting_attach_is_dropped_silently (void **state)
{
    (void) state;
    ask_named (s_sender, 1, "later", 1000);
    stream_t early = {.client = s_sender, .session_id = 1};

    stream_send (&early, 3, 8);

    client_expect_silence (s_sender);
    client_expect_silence (s_receiver);
}

static void attach_waits_for_room_in_the_buffer (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 8192}}; /* two floors */
    const hws_handle_t handle = anchor_open (s_receiver, 2, "small", &open);
    stream_t first = stream_attach (s_sender, 1, handle);
    stream_attach (s_sender, 2, handle);
    stream_ask (s_sender, 3, handle);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_EBUFFER_FULL);

    ask_named (s_sender, 3, "small", 1000);
    client_expect_silence (s_sender);
    stream_end (&first);
    anchor_ack (s_receiver, first.routing, first.next_seq, first.next_bytes, true);

    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.sender_id, 3);
}

static void waiting_attach_learns_that_its_anchor_is_closed (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 4096}};
    const hws_handle_t handle = anchor_open (s_receiver, 2, "", &open);
    stream_attach (s_sender, 1, handle);
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true, .handle = handle, .session_id = 2, .wait_ms = 1000}};
    client_ask (s_sender, &message);

    anchor_cancel (s_receiver, handle, 0, "");

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
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
        TEST (two_clients_same_session_id),
        TEST (same_numbers_in_two_anchors),
        TEST (retried_attach_is_the_same_seat),
        TEST (attach_answer_lost),
        TEST (attach_with_a_full_window_gives_room_for_nothing),
        TEST (transport_selection),
        TEST (cancel_during_attach),
        TEST (stream_cancel_handle_is_echoed),
        TEST (attach_without_an_id_is_seated_without_an_answer),
        TEST (attach_to_unknown_anchor_is_not_found),
        TEST (same_numbers_on_two_brokers),
        TEST (handle_of_an_earlier_epoch_is_closed),
        TEST (closed_anchor_stays_closed_also_when_forgotten),
        TEST (max_senders_refuses_the_next),
        TEST (seat_is_free_at_once_after_detach),
        TEST (seat_is_free_at_once_after_drop),
        TEST (senders_of_an_anchor_and_of_a_client_are_limited),
        TEST (unread_endings_make_an_anchor_busy),
        TEST (attach_during_the_closing_of_an_anchor_is_closed),
        TEST (resume_of_a_stream_that_nobody_knows_is_dropped_unknown),
        TEST (resume_with_an_ending_ends_the_seat_so),
        TEST (attach_waits_for_the_anchor),
        TEST (waiting_attach_is_refused_at_its_deadline),
        TEST (waiting_attach_is_forgotten_with_its_connection),
        TEST (retried_waiting_attach_keeps_its_deadline_and_is_answered_once),
        TEST (waiting_attaches_are_limited_in_number_and_time),
        TEST (data_of_a_waiting_attach_is_dropped_silently),
        TEST (attach_waits_for_room_in_the_buffer),
        TEST (waiting_attach_learns_that_its_anchor_is_closed),
        TEST (data_behind_an_attach_is_kept_when_it_seats_at_once),
        TEST (unknown_stream_kills_nothing),
        TEST (stale_attach_of_a_lost_connection_waits_the_grace),
    };
    return cmocka_run_group_tests_name ("engine attach", tests, NULL, NULL);
}
