/*  The time that an anchor may be without a sender, changed while it is open.  */
#include "tests/support/session_test.h"

static uint64_t change (receiver_t *self, hws_optional_t timeout_ms)
{
    return hws_session_set_unattached (session (RECEIVER), s_network.now, &self->core, timeout_ms);
}

static hws_optional_t after (uint64_t ms)
{
    return (hws_optional_t){.state = HWS_VALUE, .value = ms};
}

static const hws_optional_t s_never = {.state = HWS_NULL};

static void change_is_answered_and_in_force (void **state)
{
    (void) state;
    receiver_t receiver;
    open_anchor (&receiver, "a");

    assert_int_equal (change (&receiver, after (1000)), 1);
    assert_int_equal (receiver.core.changes_answered, 0);
    settle (&receiver);

    assert_int_equal (receiver.core.changes_answered, 1);
    assert_int_equal (receiver.core.change_result, 0);
    pass (&receiver, 999);
    assert_int_equal (receiver.closed, 0);
    pass (&receiver, 1);
    assert_string_equal (receiver.closed_cause, "expired");
    remove_anchor (&receiver);
}

static void last_of_several_changes_counts (void **state)
{
    (void) state;
    receiver_t receiver;
    open_anchor (&receiver, "a");

    change (&receiver, after (1000));
    change (&receiver, after (500));
    assert_int_equal (change (&receiver, s_never), 3);
    settle (&receiver);

    assert_int_equal (receiver.core.changes_answered, 3);
    assert_int_equal (receiver.core.change_result, 0);
    pass (&receiver, 2000);
    assert_int_equal (receiver.closed, 0);
    remove_anchor (&receiver);
}

static void change_without_a_connection_is_told_on_the_next (void **state)
{
    (void) state;
    receiver_t receiver;
    open_anchor (&receiver, "a");
    s_network.clients[RECEIVER].is_refused = true;
    network_cut (&s_network, RECEIVER);

    change (&receiver, after (3000));
    pass (&receiver, 5000);
    assert_int_equal (receiver.core.changes_answered, 0);
    s_network.clients[RECEIVER].is_refused = false;
    pass (&receiver, 5000);

    assert_int_equal (receiver.core.changes_answered, 1);
    assert_int_equal (receiver.core.change_result, 0);
    pass (&receiver, 3000);
    assert_string_equal (receiver.closed_cause, "expired");
    remove_anchor (&receiver);
}

static void change_that_the_broker_refuses_leaves_all_as_it_was (void **state)
{
    (void) state;
    receiver_t receiver;
    open_anchor (&receiver, "a");
    change (&receiver, after (30000));
    settle (&receiver);

    change (&receiver, after (UINT64_C (1) << 41));
    settle (&receiver);

    assert_int_equal (receiver.core.changes_answered, 2);
    assert_int_equal (receiver.core.change_result, HWS_EBAD_REQUEST);
    assert_int_equal (receiver.core.rx.state, HWS_RX_OPEN);
    network_cut (&s_network, RECEIVER);
    pass (&receiver, 29000);
    assert_int_equal (receiver.closed, 0);
    pass (&receiver, 1000);
    assert_string_equal (receiver.closed_cause, "expired");
    remove_anchor (&receiver);
}

/*  The answer to the request at hand, as of a broker that keeps what it has.  */
static void broker_that_keeps_its_time_has_not_changed_it (void **state)
{
    (void) state;
    receiver_t receiver;
    open_anchor (&receiver, "a");
    change (&receiver, after (1000));
    uint8_t json[1024];
    size_t size;
    const hws_control_t answer = {.verb = HWS_VERB_OPEN,
                                  .form = HWS_FORM_OK,
                                  .has_id = true,
                                  .id = receiver.core.open.id,
                                  .as.open_ok = {.handle = receiver.core.rx.handle,
                                                 .heartbeat_interval_ms = 5000,
                                                 .unattached_timeout_ms = s_never}};
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);

    hws_session_control (session (RECEIVER), s_network.now, hws_bytes_of_text ("OPEN"),
                         hws_bytes (json, size));

    assert_int_equal (receiver.core.changes_answered, 1);
    assert_int_equal (receiver.core.change_result, HWS_EBAD_REQUEST);
    assert_int_equal (receiver.core.rx.state, HWS_RX_OPEN);
    settle (&receiver);
    remove_anchor (&receiver);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (change_is_answered_and_in_force),
        TEST (last_of_several_changes_counts),
        TEST (change_without_a_connection_is_told_on_the_next),
        TEST (change_that_the_broker_refuses_leaves_all_as_it_was),
        TEST (broker_that_keeps_its_time_has_not_changed_it),
    };
    return cmocka_run_group_tests_name ("session_unattached", tests, NULL, NULL);
}
