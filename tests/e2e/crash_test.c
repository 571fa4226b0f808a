/*  Crowds of senders that die at once: every one of them is dropped, once, and nothing of
 *  them is left in the broker.
 */
#include "tests/support/crowd.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define CROWDS     30
#define CROWD_SIZE 100

/*  Counts the endings of each sender of an anchor.  */
typedef struct {
    hws_receiver_t *receiver;
    unsigned char *ended; /* by sender id */
    size_t count;         /* of senders */
    size_t records;
    size_t dropped, detached, cancelled;
} census_t;

static void census_open (census_t *self, hws_client_t *client, size_t senders)
{
    *self = (census_t){.count = senders, .ended = calloc (senders + 1, 1)};
    assert_non_null (self->ended);
    assert_int_equal (hws_receiver_open (&self->receiver, client, "port", NULL), 0);
}

static void census_take (census_t *self, const hws_event_t *event)
{
    assert_in_range (event->sender_id, 1, self->count);
    assert_int_equal (self->ended[event->sender_id], 0);
    self->records += event->kind == HWS_EVENT_RECORD ? 1 : 0;
    self->dropped += event->kind == HWS_EVENT_DROPPED ? 1 : 0;
    self->detached += event->kind == HWS_EVENT_DETACHED ? 1 : 0;
    self->cancelled += event->kind == HWS_EVENT_CANCELLED ? 1 : 0;
    self->ended[event->sender_id] =
        event->kind != HWS_EVENT_RECORD && event->kind != HWS_EVENT_ATTACHED;
}

static void census_wait (census_t *self, const size_t *what, size_t count)
{
    hws_event_t event;

    while (*what < count) {
        assert_int_equal (hws_receiver_recv (self->receiver, &event, 60000), 0);
        census_take (self, &event);
    }
    while (hws_receiver_recv (self->receiver, &event, 0) == 0) {
        census_take (self, &event);
    }
}

static void census_close (census_t *self)
{
    hws_receiver_destroy (&self->receiver);
    free (self->ended);
}

/*  Beside those that die, one sender detaches and one is cancelled.  */
static void three_thousand_senders_killed_at_once_are_dropped_once_each (void **state)
{
    const size_t crowd_count = process_scaled (CROWDS, 3);
    const size_t doomed = crowd_count * CROWD_SIZE;
    const crowd_options_t options = {"port", 1, CROWD_SIZE, 0};
    process_t *crowds[CROWDS];
    hws_sender_t *detached = NULL;
    hws_sender_t *cancelled = NULL;
    hws_client_t *client = fixture_client ();
    census_t census;

    (void) state;
    census_open (&census, client, doomed + 2);
    assert_int_equal (hws_sender_attach (&detached, client, "port", NULL), 0);
    assert_int_equal (hws_sender_attach (&cancelled, client, "port", NULL), 0);
    const size_t descriptors = process_descriptors (fixture_broker ());
    for (size_t i = 0; i < crowd_count; i++) {
        crowds[i] = crowd_start (&options);
    }
    census_wait (&census, &census.records, doomed);
    for (size_t i = 0; i < crowd_count; i++) {
        process_wait_output (crowds[i], "ready");
    }
    assert_int_equal (fixture_statistic ("seats"), doomed + 2);

    for (size_t i = 0; i < crowd_count; i++) {
        process_signal (crowds[i], SIGKILL);
    }
    assert_int_equal (hws_sender_detach (detached, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_cancel (cancelled, NULL, 30000), 0);
    census_wait (&census, &census.dropped, doomed);
    census_wait (&census, &census.detached, 1);

    assert_int_equal (census.dropped, doomed);
    assert_int_equal (census.cancelled, 1);
    fixture_wait_statistic ("seats", 0);
    assert_int_equal (fixture_statistic ("attached"), doomed + 2);
    assert_int_equal (fixture_statistic ("dropped"), doomed);
    assert_int_equal (fixture_statistic ("detached"), 1);
    assert_int_equal (fixture_statistic ("cancelled"), 1);
    fixture_wait_descriptors (descriptors);
    for (size_t i = 0; i < crowd_count; i++) {
        process_expect_exit (crowds[i], 128 + SIGKILL);
    }
    hws_sender_destroy (&detached);
    hws_sender_destroy (&cancelled);
    census_close (&census);
    hws_client_destroy (&client);
}

/*  The floors of the senders' windows are a quarter of the buffer.  */
static const char *const s_roomy =
    "{\"anchors\": {\"heartbeat_interval_ms\": 1000, \"reconnect_grace_ms\": 300,"
    " \"buffer_bytes\": 268435456}}";

static int setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_roomy);
}

static int setup_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_roomy);
}

#define OVER_TCP(test)  cmocka_unit_test_setup_teardown (test, setup_tcp, fixture_teardown)
#define OVER_IPC(test)  cmocka_unit_test_setup_teardown (test, setup_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (int argc, char **argv)
{
    crowd_main (argc, argv);
    const struct CMUnitTest tests[] = {
        OVER_BOTH (three_thousand_senders_killed_at_once_are_dropped_once_each),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
