/*  Exclusive anchors between real programs: one sender at a time, ids that rise, and an end
 *  that the sender decides.
 */
#include "tests/support/fixture.h"

#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

enum { LONG_MS = 20000 };

static process_t *start_receiver (void)
{
    process_t *const receiver = process_start (NULL, "hawser-recv", "--anchor", "line", "--format",
                                               "json", "--exclusive", NULL);
    event_wait (receiver, "opened", NULL, 1);
    return receiver;
}

/*  A sender whose stdin is a pipe that stays open, and that has sent one record.  */
static process_t *start_sender (process_t *receiver, const char *label, const char *option)
{
    process_t *const sender =
        process_start (NULL, "hawser-send", "--anchor", "line", "--label", label, option, NULL);
    process_write (sender, "hello\n", 6);
    event_wait (receiver, "record", label, 1);
    return sender;
}

static void finalize_closes_spsc (void **state)
{
    process_t *const receiver = start_receiver ();
    process_t *const sender = start_sender (receiver, "first", "--finalize");

    (void) state;
    process_t *const refused = process_start (NULL, "hawser-send", "--anchor", "line", NULL);
    process_expect_exit (refused, 6);
    assert_non_null (strstr (process_errors (refused), "has its sender"));
    process_close_input (sender);
    process_expect_exit (sender, 0);
    const event_t closed = event_wait (receiver, "closed", NULL, 1);
    process_expect_exit (receiver, 0);

    assert_string_equal (closed.cause, "finalized");
    assert_int_equal (event_count (receiver, "attached", NULL), 1);
    assert_int_equal (event_count (receiver, "finalized", "first"), 1);
    assert_int_equal (event_count (receiver, "detached", NULL), 0);
    process_t *const late = process_start (NULL, "hawser-send", "--anchor", "line", NULL);
    process_expect_exit (late, 1);
}

static void next_sender_after_a_detach_has_a_new_id (void **state)
{
    process_t *const receiver = start_receiver ();
    process_t *const first = start_sender (receiver, "first", "--quiet");

    (void) state;
    process_close_input (first);
    process_expect_exit (first, 0);
    process_t *const second = start_sender (receiver, "second", "--finalize");
    process_close_input (second);
    process_expect_exit (second, 0);
    process_expect_exit (receiver, 0);

    assert_int_equal (event_wait (receiver, "detached", "first", 1).sender, 1);
    assert_int_equal (event_wait (receiver, "finalized", "second", 1).sender, 2);
}

/*  Who is gone without a word holds the anchor for its grace, and no longer.  */
static void killed_sender_leaves_room_for_the_next (void **state)
{
    process_t *const receiver = start_receiver ();
    process_t *const first = start_sender (receiver, "first", "--finalize");

    (void) state;
    process_signal (first, SIGKILL);
    process_expect_exit (first, 128 + SIGKILL);
    event_wait (receiver, "dropped", "first", 1);
    process_t *const second = start_sender (receiver, "second", "--finalize");
    process_close_input (second);
    process_expect_exit (second, 0);

    /*  Not all ended well, although the last did.  */
    process_expect_exit (receiver, 3);
    assert_string_equal (event_wait (receiver, "closed", NULL, 1).cause, "finalized");
}

static void finalize_leaves_other_anchors_open (void **state)
{
    process_t *const receiver = process_start (NULL, "hawser-recv", "--anchor", "line", "--format",
                                               "json", "--senders", "2", NULL);

    (void) state;
    event_wait (receiver, "opened", NULL, 1);
    for (int i = 0; i < 2; i++) {
        process_t *const sender = start_sender (receiver, i == 0 ? "a" : "b", "--finalize");
        process_close_input (sender);
        process_expect_exit (sender, 0);
    }
    process_expect_exit (receiver, 0);

    assert_int_equal (event_count (receiver, "detached", NULL), 2);
    assert_int_equal (event_count (receiver, "finalized", NULL), 0);
}

static hws_client_t *connect_client (void)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fixture_endpoint ();
    hws_client_t *client = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

static void expect (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

static void library_finalizes_what_it_opened_as_exclusive (void **state)
{
    (void) state;
    hws_client_t *client = connect_client ();
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL, *second = NULL;
    hws_receiver_options_t options;
    hws_event_t event;
    hws_receiver_options_init (&options);
    options.exclusive = true;
    assert_int_equal (hws_receiver_open (&receiver, client, "line", &options), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "line", NULL), 0);
    assert_int_equal (hws_sender_attach (&second, client, hws_receiver_handle (receiver), NULL),
                      HWS_EMAX_SENDERS);

    assert_int_equal (hws_sender_finalize (sender, 0), HWS_EWOULD_BLOCK);

    assert_int_equal (hws_sender_send (sender, "x", 1, 0), HWS_EENDED);
    expect (receiver, HWS_EVENT_ATTACHED, &event);
    expect (receiver, HWS_EVENT_FINALIZED, &event);
    assert_null (event.cause);
    expect (receiver, HWS_EVENT_CLOSED, &event);
    assert_string_equal (event.cause, "finalized");
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), HWS_ECLOSED);
    assert_int_equal (hws_sender_finalize (sender, LONG_MS), 0);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), 0);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (finalize_closes_spsc),
        OVER_IPC (finalize_closes_spsc),
        OVER_TCP (next_sender_after_a_detach_has_a_new_id),
        OVER_IPC (next_sender_after_a_detach_has_a_new_id),
        OVER_TCP (killed_sender_leaves_room_for_the_next),
        OVER_TCP (finalize_leaves_other_anchors_open),
        OVER_TCP (library_finalizes_what_it_opened_as_exclusive),
        OVER_IPC (library_finalizes_what_it_opened_as_exclusive),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
