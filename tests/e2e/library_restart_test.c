/*  Senders of the library whose broker is killed and comes again: what their calls return, and
 *  what the receiver is shown.
 */
#include "tests/support/fixture.h"

#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

enum { LONG_MS = 20000, MANY = 500 };

static hws_client_t *s_home, *s_client;
static hws_receiver_t *s_receiver;
static hws_sender_t *s_sender;
static uint64_t s_sent, s_received;

static void open_a (bool is_dedicated)
{
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.dedicated = is_dedicated;
    s_home = fixture_client ();
    s_client = fixture_client ();
    s_sent = s_received = 0;
    assert_int_equal (hws_receiver_open (&s_receiver, s_home, "a", &options), 0);
}

static void attach_a (bool is_early)
{
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.early = is_early;
    assert_int_equal (hws_sender_attach (&s_sender, s_client, "a", &options), 0);
}

static void close_all (void)
{
    hws_sender_destroy (&s_sender);
    hws_receiver_destroy (&s_receiver);
    hws_client_destroy (&s_client);
    hws_client_destroy (&s_home);
}

static void send_numbers (int count)
{
    for (int i = 0; i < count; i++, s_sent++) {
        assert_int_equal (hws_sender_send (s_sender, &s_sent, sizeof s_sent, LONG_MS), 0);
    }
}

static void expect (hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (s_receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

/*  All that was sent comes, each once and in order.  */
static void expect_numbers (void)
{
    hws_event_t event;
    for (; s_received < s_sent; s_received++) {
        expect (HWS_EVENT_RECORD, &event);
        assert_memory_equal (event.data, &s_received, sizeof s_received);
    }
}

static void kill_broker (void)
{
    fixture_kill (fixture_broker ());
}

static void restart_broker (void)
{
    fixture_restart (fixture_broker ());
}

/*  ---- A stream goes on ---- */

static void go_on (bool is_dedicated, bool is_early, void (*end_broker) (process_t *broker))
{
    hws_event_t event;
    open_a (is_dedicated);
    attach_a (is_early);
    send_numbers (MANY);
    expect (HWS_EVENT_ATTACHED, &event);
    expect_numbers ();

    for (int i = 0; i < 3; i++) {
        send_numbers (10);
        end_broker (fixture_broker ());
        send_numbers (10);
        restart_broker ();
        send_numbers (MANY);
        expect_numbers ();
    }
    assert_int_equal (hws_sender_detach (s_sender, 0), HWS_EWOULD_BLOCK);
    expect (HWS_EVENT_DETACHED, &event);

    assert_int_equal (hws_sender_detach (s_sender, LONG_MS), 0);
    close_all ();
}

static void a_stream_goes_on_at_a_broker_that_was_killed (void **state)
{
    (void) state;
    go_on (false, false, fixture_kill);
}

static void a_stream_goes_on_at_a_broker_that_was_stopped (void **state)
{
    (void) state;
    go_on (false, false, fixture_stop);
}

static void an_early_stream_goes_on_too (void **state)
{
    (void) state;
    go_on (false, true, fixture_kill);
}

static void a_stream_of_a_dedicated_anchor_goes_on (void **state)
{
    (void) state;
    go_on (true, false, fixture_kill);
}

static void an_early_stream_of_a_dedicated_anchor_goes_on (void **state)
{
    (void) state;
    go_on (true, true, fixture_stop);
}

/*  ---- What the calls return ---- */

static void flush_and_detach_wait_until_the_receiver_has_everything (void **state)
{
    hws_event_t event;
    (void) state;
    open_a (false);
    attach_a (false);
    expect (HWS_EVENT_ATTACHED, &event);

    kill_broker ();
    send_numbers (MANY);
    assert_int_equal (hws_sender_flush (s_sender, 0), HWS_EWOULD_BLOCK);
    restart_broker ();
    assert_int_equal (hws_sender_flush (s_sender, 100), HWS_ETIMEOUT); /* nobody has read it */
    expect_numbers ();
    assert_int_equal (hws_receiver_recv (s_receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_flush (s_sender, LONG_MS), 0);

    kill_broker ();
    assert_int_equal (hws_sender_detach (s_sender, 0), HWS_EWOULD_BLOCK);
    restart_broker ();
    expect (HWS_EVENT_DETACHED, &event);
    assert_int_equal (hws_sender_detach (s_sender, LONG_MS), 0);
    close_all ();
}

static void expect_interrupted (void)
{
    hws_event_t event;
    expect (HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.cause, "interrupted");
}

static void a_cancel_during_the_outage_reaches_the_receiver (void **state)
{
    hws_event_t event;
    (void) state;
    open_a (false);
    attach_a (false);
    expect (HWS_EVENT_ATTACHED, &event);
    kill_broker ();

    const int rc = hws_sender_cancel (s_sender, "enough", LONG_MS);
    assert_true (rc == HWS_EUNREACHABLE || rc == 0);
    restart_broker ();

    expect_interrupted ();
    close_all ();
}

static void a_sender_that_is_destroyed_during_the_outage_is_interrupted (void **state)
{
    hws_event_t event;
    (void) state;
    open_a (false);
    attach_a (false);
    expect (HWS_EVENT_ATTACHED, &event);
    kill_broker ();

    hws_sender_destroy (&s_sender);
    restart_broker ();

    expect_interrupted ();
    close_all ();
}

static void an_attach_during_the_outage_finds_the_anchor (void **state)
{
    hws_event_t event;
    (void) state;
    open_a (false);
    attach_a (false);
    expect (HWS_EVENT_ATTACHED, &event);
    kill_broker ();

    hws_sender_t *by_name;
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.early = true;
    assert_int_equal (hws_sender_attach (&by_name, s_client, "a", &options), 0);
    restart_broker ();

    assert_int_equal (hws_sender_detach (by_name, 0), HWS_EWOULD_BLOCK);
    expect (HWS_EVENT_ATTACHED, &event);
    assert_true (event.sender_id > 1);
    expect (HWS_EVENT_DETACHED, &event);
    hws_sender_destroy (&by_name);
    close_all ();
}

static void a_dedicated_anchor_has_a_front_for_who_comes_later (void **state)
{
    hws_event_t event;
    (void) state;
    open_a (true);
    attach_a (false);
    expect (HWS_EVENT_ATTACHED, &event);
    kill_broker ();
    restart_broker ();
    send_numbers (1);
    expect_numbers ();

    hws_sender_t *later;
    assert_int_equal (hws_sender_attach (&later, s_client, hws_receiver_handle (s_receiver), NULL),
                      0);

    expect (HWS_EVENT_ATTACHED, &event);
    assert_int_equal (fixture_statistic ("fronts"), 1);
    hws_sender_destroy (&later);
    close_all ();
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, fixture_setup_calm_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, fixture_setup_calm_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH (a_stream_goes_on_at_a_broker_that_was_killed),
        BOTH (a_stream_goes_on_at_a_broker_that_was_stopped),
        TCP (an_early_stream_goes_on_too),
        BOTH (a_stream_of_a_dedicated_anchor_goes_on),
        TCP (an_early_stream_of_a_dedicated_anchor_goes_on),
        TCP (flush_and_detach_wait_until_the_receiver_has_everything),
        TCP (a_cancel_during_the_outage_reaches_the_receiver),
        TCP (a_sender_that_is_destroyed_during_the_outage_is_interrupted),
        TCP (an_attach_during_the_outage_finds_the_anchor),
        TCP (a_dedicated_anchor_has_a_front_for_who_comes_later),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
