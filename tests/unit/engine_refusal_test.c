/*  The engine: attaches that are refused, and why.
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
    s_sender->is_beating = true;
    world_advance (&s_world, WORLD_ORPHAN_MS); /* its receiver might have come back */

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
    message.as.attach.resume.resume_token =
        hws_credential_make (s_world.options.key, HWS_CREDENTIAL_SENDER, s_handle, 5);

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

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (attach_to_unknown_anchor_is_not_found),
        TEST (same_numbers_on_two_brokers),
        TEST (handle_of_an_earlier_epoch_is_closed),
        TEST (closed_anchor_stays_closed_also_when_forgotten),
        TEST (max_senders_refuses_the_next),
        TEST (senders_of_an_anchor_and_of_a_client_are_limited),
        TEST (unread_endings_make_an_anchor_busy),
        TEST (attach_during_the_closing_of_an_anchor_is_closed),
        TEST (resume_of_a_stream_that_nobody_knows_is_dropped_unknown),
        TEST (resume_with_an_ending_ends_the_seat_so),
    };
    return cmocka_run_group_tests_name ("engine refusals", tests, NULL, NULL);
}
