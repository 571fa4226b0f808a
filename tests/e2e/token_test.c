/*  Cancel tokens and the cancel of an anchor by a sender, between clients of a real broker.  */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { LONG_MS = 20000 };

/*  A receiver, two senders' clients and one that holds the token.  */
typedef struct {
    hws_client_t *home, *there, *elsewhere, *holder;
    hws_receiver_t *receiver;
    uint64_t token;
} world_t;

static void world_open (world_t *self)
{
    *self = (world_t){.home = fixture_client (),
                      .there = fixture_client (),
                      .elsewhere = fixture_client (),
                      .holder = fixture_client ()};
    assert_int_equal (hws_receiver_open (&self->receiver, self->home, "port", NULL), 0);
    assert_int_equal (hws_token_new (&self->token), 0);
}

static void world_close (world_t *self)
{
    hws_receiver_destroy (&self->receiver);
    hws_client_destroy (&self->home);
    hws_client_destroy (&self->there);
    hws_client_destroy (&self->elsewhere);
    hws_client_destroy (&self->holder);
}

static int attach_with (hws_sender_t **sender, hws_client_t *client, uint64_t token)
{
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.cancel_token = token;
    return hws_sender_attach (sender, client, "port", &options);
}

static void expect (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

static bool is_readable (int descriptor, int timeout_ms)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll (&polled, 1, timeout_ms) == 1;
}

static void token_cancels_before_attach (void **state)
{
    (void) state;
    world_t world;
    world_open (&world);
    hws_sender_t *sender = NULL;
    char text[256];

    assert_int_equal (hws_client_cancel_token (world.holder, world.token, "too late", LONG_MS), 0);

    assert_int_equal (attach_with (&sender, world.there, world.token), HWS_ECANCELLED);
    hws_client_error (world.there, text, sizeof text);
    assert_string_equal (text, "too late");
    assert_int_equal (fixture_statistic ("attached"), 0);
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (world.receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (attach_with (&sender, world.there, 0), 0);
    assert_int_equal (hws_sender_id (sender), 1);
    hws_sender_destroy (&sender);
    world_close (&world);
}

static void sender_learns_through_a_token (void **state)
{
    (void) state;
    world_t world;
    world_open (&world);
    hws_sender_t *sender = NULL, *other = NULL;
    hws_event_t event;
    assert_int_equal (attach_with (&sender, world.there, world.token), 0);
    assert_int_equal (attach_with (&other, world.elsewhere, 0), 0);
    const int descriptor = hws_sender_fd (sender);
    assert_false (is_readable (descriptor, 0));

    assert_int_equal (hws_client_cancel_token (world.holder, world.token, "enough", LONG_MS), 0);

    assert_true (is_readable (descriptor, LONG_MS)); /* it sends nothing, and learns it */
    const char *cause, *reason;
    assert_int_equal (hws_sender_reason (sender, &cause, &reason), HWS_ECANCELLED);
    assert_string_equal (cause, "requested");
    assert_string_equal (reason, "enough");
    expect (world.receiver, HWS_EVENT_ATTACHED, &event);
    expect (world.receiver, HWS_EVENT_ATTACHED, &event);
    expect (world.receiver, HWS_EVENT_CANCELLED, &event);
    assert_int_equal (event.sender_id, 1);
    assert_string_equal (event.reason, "enough");
    assert_int_equal (hws_sender_send (other, "on", 2, LONG_MS), 0);
    expect (world.receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (event.sender_id, 2);
    assert_false (is_readable (hws_sender_fd (other), 0));
    hws_sender_destroy (&sender);
    hws_sender_destroy (&other);
    world_close (&world);
}

static void cancel_from_a_sender_by_handle (void **state)
{
    (void) state;
    world_t world;
    world_open (&world);
    hws_sender_t *sender = NULL, *other = NULL;
    hws_event_t event;
    char handle[33];
    snprintf (handle, sizeof handle, "%s", hws_receiver_handle (world.receiver));
    assert_int_equal (hws_sender_attach (&sender, world.there, handle, NULL), 0);
    assert_int_equal (hws_sender_attach (&other, world.elsewhere, handle, NULL), 0);

    assert_int_equal (hws_sender_cancel_anchor (sender, "no more", LONG_MS), 0);

    const char *reason;
    assert_true (is_readable (hws_sender_fd (other), LONG_MS));
    assert_int_equal (hws_sender_reason (other, NULL, &reason), HWS_ECANCELLED);
    assert_string_equal (reason, "no more");
    expect (world.receiver, HWS_EVENT_ATTACHED, &event);
    expect (world.receiver, HWS_EVENT_ATTACHED, &event);
    expect (world.receiver, HWS_EVENT_CANCELLED, &event);
    expect (world.receiver, HWS_EVENT_CANCELLED, &event);
    expect (world.receiver, HWS_EVENT_CLOSED, &event);
    assert_string_equal (event.cause, "requested");
    assert_string_equal (event.reason, "no more");
    hws_sender_destroy (&other);
    assert_int_equal (hws_sender_attach (&other, world.elsewhere, handle, NULL), HWS_ECLOSED);
    hws_sender_destroy (&sender);
    world_close (&world);
}

/*  An attach on a thread of its own, which waits for an anchor that does not come.  */
typedef struct {
    hws_client_t *client;
    uint64_t token;
    int result;
} attaching_t;

static void *attach_and_wait (void *argument)
{
    attaching_t *const self = argument;
    hws_sender_options_t options;
    hws_sender_options_init (&options);
    options.wait_ms = HWS_FOREVER;
    options.cancel_token = self->token;
    hws_sender_t *sender;
    self->result = hws_sender_attach (&sender, self->client, "nowhere", &options);
    hws_sender_destroy (&sender);
    return NULL;
}

static void cancel_during_attach (void **state)
{
    (void) state;
    attaching_t attaching = {.client = fixture_client (), .token = 0};
    pthread_t thread;
    char text[256];
    assert_int_equal (hws_token_new (&attaching.token), 0);
    assert_int_equal (pthread_create (&thread, NULL, attach_and_wait, &attaching), 0);
    fixture_wait_statistic ("waiting", 1);

    const int rc =
        hws_client_cancel_token (attaching.client, attaching.token, "changed my mind", LONG_MS);
    pthread_join (thread, NULL);

    assert_int_equal (rc, 0);
    assert_int_equal (attaching.result, HWS_ECANCELLED);
    hws_client_error (attaching.client, text, sizeof text);
    assert_string_equal (text, "changed my mind");
    assert_int_equal (fixture_statistic ("waiting"), 0);
    assert_int_equal (fixture_statistic ("seats"), 0);
    hws_client_destroy (&attaching.client);
}

static void an_attach_without_a_broker_is_cancelled_at_once (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "ipc:///nonexistent/hawser";
    options.connect_ms = HWS_FOREVER;
    attaching_t attaching = {.token = 7};
    pthread_t thread;
    assert_int_equal (hws_client_new (&attaching.client, &options), 0);
    assert_int_equal (pthread_create (&thread, NULL, attach_and_wait, &attaching), 0);

    const int rc = hws_client_cancel_token (attaching.client, 7, NULL, 0);
    pthread_join (thread, NULL);

    assert_int_equal (rc, HWS_EWOULD_BLOCK);
    assert_int_equal (attaching.result, HWS_ECANCELLED);
    assert_int_equal (hws_client_cancel_token (attaching.client, 7, NULL, 10), HWS_ETIMEOUT);
    assert_int_equal (hws_client_cancel_token (attaching.client, 0, NULL, LONG_MS), 0);
    hws_client_destroy (&attaching.client);
}

#define OVER_TCP(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define OVER_IPC(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH (token_cancels_before_attach),
        OVER_BOTH (sender_learns_through_a_token),
        OVER_BOTH (cancel_from_a_sender_by_handle),
        OVER_BOTH (cancel_during_attach),
        cmocka_unit_test_setup_teardown (an_attach_without_a_broker_is_cancelled_at_once,
                                         fixture_setup_bare, fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
