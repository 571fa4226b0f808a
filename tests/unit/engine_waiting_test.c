/*  The engine: attaches that wait for their anchor, or for room.
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

/*  An anchor is there, and takes attaches, although its receiver is away from the beginning.  */
static void attach_waits_for_an_anchor_whose_open_is_read_late (void **state)
{
    (void) state;
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 2, .kind = HWS_KIND_MPSC}};
    strcpy (open.as.open.name, "later");
    ask_named (s_sender, 1, "later", 1000);

    client_disconnect (s_receiver);
    client_ask (s_receiver, &open);

    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.sender_id, 1);
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
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 4 * WORLD_WINDOW}}; /* two floors */
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

/*  An ending makes room before it is acknowledged, for who asks then.  */
static void attach_that_is_asked_again_and_seated_waits_no_longer (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 4 * WORLD_WINDOW}}; /* two floors */
    const hws_handle_t handle = anchor_open (s_receiver, 2, "small", &open);
    stream_t first = stream_attach (s_sender, 1, handle);
    stream_attach (s_sender, 2, handle);
    ask_named (s_sender, 3, "small", 1000);
    stream_end (&first);

    ask_named (s_sender, 3, "small", 1000);

    assert_int_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.sender_id, 3);
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
}

static void waiting_attach_learns_that_its_anchor_is_closed (void **state)
{
    (void) state;
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 2 * WORLD_WINDOW}};
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

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (attach_waits_for_the_anchor),
        TEST (attach_waits_for_an_anchor_whose_open_is_read_late),
        TEST (waiting_attach_is_refused_at_its_deadline),
        TEST (waiting_attach_is_forgotten_with_its_connection),
        TEST (retried_waiting_attach_keeps_its_deadline_and_is_answered_once),
        TEST (waiting_attaches_are_limited_in_number_and_time),
        TEST (data_of_a_waiting_attach_is_dropped_silently),
        TEST (attach_waits_for_room_in_the_buffer),
        TEST (attach_that_is_asked_again_and_seated_waits_no_longer),
        TEST (waiting_attach_learns_that_its_anchor_is_closed),
    };
    return cmocka_run_group_tests_name ("engine waiting", tests, NULL, NULL);
}
