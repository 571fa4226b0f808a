/*  hws_receiver_set_unattached_timeout against a real broker.  */
#include "tests/support/fixture.h"

#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>

enum { LONG_MS = 20000 };

static void open_anchor (hws_client_t **client, hws_receiver_t **receiver, int64_t connect_ms)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fixture_endpoint ();
    options.connect_ms = connect_ms;
    assert_int_equal (hws_client_new (client, &options), 0);
    assert_int_equal (hws_receiver_open (receiver, *client, "a", NULL), 0);
}

static void close_anchor (hws_client_t **client, hws_receiver_t **receiver)
{
    hws_receiver_destroy (receiver);
    hws_client_destroy (client);
}

static void timeout_can_be_changed (void **state)
{
    (void) state;
    hws_client_t *client;
    hws_receiver_t *receiver;
    hws_sender_t *sender;
    hws_event_t event;
    open_anchor (&client, &receiver, LONG_MS);
    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, HWS_DEFAULT), HWS_EINVALID);

    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, 3600000), 0);
    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, HWS_FOREVER), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "a", NULL), 0);
    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, 1), 0);
    assert_int_equal (hws_sender_send (sender, "x", 1, LONG_MS), 0);
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);

    /*  It had no effect while somebody was attached.  */
    for (int i = 0; i < 3; i++) {
        static const hws_event_kind_t kinds[] = {HWS_EVENT_ATTACHED, HWS_EVENT_RECORD,
                                                 HWS_EVENT_DETACHED};
        assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
        assert_int_equal (event.kind, kinds[i]);
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
    assert_int_equal (event.kind, HWS_EVENT_CLOSED);
    assert_string_equal (event.cause, "expired");
    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, 1), HWS_ECLOSED);
    hws_sender_destroy (&sender);
    close_anchor (&client, &receiver);
}

static void change_without_a_broker_ends_after_connect_ms (void **state)
{
    (void) state;
    hws_client_t *client;
    hws_receiver_t *receiver;
    open_anchor (&client, &receiver, 3000); /* enough for the open on a busy machine */
    process_signal (fixture_broker (), SIGSTOP);

    assert_int_equal (hws_receiver_set_unattached_timeout (receiver, 1000), HWS_EUNREACHABLE);

    process_signal (fixture_broker (), SIGCONT);
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
    assert_string_equal (event.cause, "expired");
    close_anchor (&client, &receiver);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (timeout_can_be_changed),
        OVER_IPC (timeout_can_be_changed),
        OVER_TCP (change_without_a_broker_ends_after_connect_ms),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
