/*  The engine: anchors that nobody is attached to end after a time.
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
    s_receiver->is_beating = true;
    client_forget (s_receiver);
    return 0;
}

static hws_handle_t open_unattached (uint64_t timeout_ms)
{
    const hws_open_t open = {.unattached_timeout_ms = {HWS_VALUE, timeout_ms}};
    return anchor_open (s_receiver, 2, "", &open);
}

static void unattached_timeout (void **state)
{
    (void) state;
    s_sender->is_beating = true;
    const hws_handle_t handle = open_unattached (700);
    world_advance (&s_world, 699);
    stream_t stream = stream_attach (s_sender, 2, handle);
    world_advance (&s_world, 5000); /* somebody is attached */
    stream_end (&stream);
    world_advance (&s_world, 5000); /* its ending is not acknowledged */
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 2);
    client_forget (s_receiver);

    anchor_ack (s_receiver, stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    world_advance (&s_world, 699);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_string_equal (closed->code, "expired");
    assert_int_equal (closed->detached, 1);
}

static void timeout_never_takes_a_fresh_sender (void **state)
{
    (void) state;
    const hws_handle_t handle = open_unattached (700);
    world_advance (&s_world, 699);
    s_world.now += 1;

    stream_t stream = stream_attach (s_sender, 2, handle); /* in the same millisecond, first */
    hws_engine_expire (s_world.engine, s_world.now);
    world_pump (&s_world);

    stream_send (&stream, 1, 8);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
}

static void timeout_before_the_attach_refuses_it (void **state)
{
    (void) state;
    const hws_handle_t handle = open_unattached (700);

    world_advance (&s_world, 700);
    stream_ask (s_sender, 2, handle);

    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 1);
}

static void default_of_the_timeout_can_be_overruled_with_null (void **state)
{
    (void) state;
    hws_anchor_defaults_t defaults = s_world.options.anchors;
    defaults.unattached_timeout_ms = (hws_optional_t){HWS_VALUE, 700};
    hws_engine_configure (s_world.engine, &defaults, &s_world.options.limits);
    s_sender->is_beating = true;
    const hws_open_t never = {.unattached_timeout_ms = {HWS_NULL, 0}};
    const hws_handle_t lasting = anchor_open (s_receiver, 2, "", &never);
    const hws_handle_t passing = anchor_open (s_receiver, 3, "", NULL);

    world_advance (&s_world, 10000);

    stream_attach (s_sender, 2, lasting);
    stream_ask (s_sender, 3, passing);
    client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECLOSED);
}

/*  The receiver's OPEN again, with another timeout.  */
static void change_timeout (hws_optional_t timeout_ms)
{
    hws_control_t open = {.verb = HWS_VERB_OPEN,
                          .as.open = {.open_id = 2, .unattached_timeout_ms = timeout_ms}};
    client_ask (s_receiver, &open);
}

static void expect_timeout (hws_optional_t timeout_ms)
{
    const hws_open_ok_t *const ok = &client_take_ok (s_receiver, HWS_VERB_OPEN)->as.open_ok;
    assert_int_equal (ok->unattached_timeout_ms.state, timeout_ms.state);
    assert_int_equal (ok->unattached_timeout_ms.value, timeout_ms.value);
}

static void timeout_can_be_changed (void **state)
{
    (void) state;
    const hws_optional_t never = {HWS_NULL, 0}, half = {HWS_VALUE, 500}, later = {HWS_VALUE, 900};
    s_receiver->is_beating = s_sender->is_beating = true;
    const hws_handle_t handle = open_unattached (700);
    client_forget (s_receiver);

    world_advance (&s_world, 699);
    change_timeout (never); /* cleared */
    expect_timeout (never);
    world_advance (&s_world, 5000);
    change_timeout (half); /* set: in full from now */
    expect_timeout (half);
    world_advance (&s_world, 499);
    change_timeout (later); /* replaced: the same */
    expect_timeout (later);
    world_advance (&s_world, 899);
    stream_t stream = stream_attach (s_sender, 2, handle);
    change_timeout (half); /* somebody is attached */
    client_forget (s_receiver);
    world_advance (&s_world, 5000);
    stream_end (&stream);
    client_forget (s_receiver);
    anchor_ack (s_receiver, stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
    world_advance (&s_world, 499);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);

    assert_string_equal (client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed.code,
                         "expired");
}

static void open_that_is_only_repeated_puts_no_timeout_off (void **state)
{
    (void) state;
    s_receiver->is_beating = s_sender->is_beating = true;
    open_unattached (700);
    client_forget (s_receiver);

    for (int i = 0; i < 7; i++) {
        change_timeout (i % 2 ? (hws_optional_t){HWS_VALUE, 700} : (hws_optional_t){HWS_ABSENT, 0});
        expect_timeout ((hws_optional_t){HWS_VALUE, 700});
        world_advance (&s_world, 100);
    }

    client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED);
}

static void timeout_that_is_no_time_is_refused_and_changes_nothing (void **state)
{
    (void) state;
    s_receiver->is_beating = s_sender->is_beating = true;
    open_unattached (700);
    client_forget (s_receiver);

    change_timeout ((hws_optional_t){HWS_VALUE, UINT64_C (1) << 41});

    client_take_refusal (s_receiver, HWS_VERB_OPEN, HWS_EBAD_REQUEST);
    world_advance (&s_world, 699);
    client_expect_silence (s_receiver);
    world_advance (&s_world, 1);
    client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED);
}

static void changed_timeout_never_takes_a_fresh_sender (void **state)
{
    (void) state;
    s_receiver->is_beating = s_sender->is_beating = true;
    const hws_handle_t handle = open_unattached (5000);
    world_advance (&s_world, 4000);

    change_timeout ((hws_optional_t){HWS_VALUE, 0}); /* due in this very millisecond */
    stream_t stream = stream_attach (s_sender, 2, handle);
    hws_engine_expire (s_world.engine, s_world.now);
    world_pump (&s_world);
    client_forget (s_receiver);

    stream_send (&stream, 1, 8);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_attached, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (unattached_timeout),
        TEST (timeout_never_takes_a_fresh_sender),
        TEST (timeout_before_the_attach_refuses_it),
        TEST (default_of_the_timeout_can_be_overruled_with_null),
        TEST (timeout_can_be_changed),
        TEST (open_that_is_only_repeated_puts_no_timeout_off),
        TEST (timeout_that_is_no_time_is_refused_and_changes_nothing),
        TEST (changed_timeout_never_takes_a_fresh_sender),
    };
    return cmocka_run_group_tests_name ("engine unattached", tests, NULL, NULL);
}
