/*  hawser.h against a real broker: calls that wait, what ends the wait, and calls at the same
 *  time.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { LONG_MS = 20000 };

/*  A call that waits on a thread of its own, and what it returned.  */
typedef struct {
    pair_t *pair;
    int rc;
    hws_event_kind_t kind;
    pthread_t thread;
} waiting_t;

static void *wait_send (void *argument)
{
    waiting_t *const self = argument;
    static const uint8_t data[10000];
    do {
        self->rc = hws_sender_send (self->pair->sender, data, sizeof data, LONG_MS);
    } while (self->rc == 0);
    return NULL;
}

static void *wait_recv (void *argument)
{
    waiting_t *const self = argument;
    hws_event_t event;
    do {
        self->rc = hws_receiver_recv (self->pair->receiver, &event, LONG_MS);
        self->kind = event.kind;
    } while (self->rc == HWS_EBUSY || (self->rc == 0 && event.kind != HWS_EVENT_CLOSED));
    return NULL;
}

static void start (waiting_t *self, pair_t *pair, void *(*run) (void *) )
{
    *self = (waiting_t){.pair = pair};
    assert_int_equal (pthread_create (&self->thread, NULL, run, self), 0);
}

static void cancel_wakes_a_blocked_send (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    waiting_t waiting;
    start (&waiting, &pair, wait_send);

    assert_int_equal (hws_receiver_close (pair.receiver, "enough", LONG_MS), 0);

    pthread_join (waiting.thread, NULL);
    assert_int_equal (waiting.rc, HWS_ECANCELLED);
    const char *cause, *reason;
    assert_int_equal (hws_sender_reason (pair.sender, &cause, &reason), HWS_ECANCELLED);
    assert_string_equal (cause, "receiver_closed");
    assert_non_null (strstr (reason, "enough"));
    pair_close (&pair);
}

/*  Three clients, each with a send that waits.  */
static void cancel_anchor_reaches_every_sender (void **state)
{
    (void) state;
    enum { SENDERS = 3 };
    hws_client_t *home = fixture_client ();
    hws_receiver_t *receiver = NULL;
    hws_sender_t *late = NULL;
    pair_t pairs[SENDERS] = {{.receiver = NULL}};
    waiting_t waiting[SENDERS];
    char handle[33];
    assert_int_equal (hws_receiver_open (&receiver, home, "a", NULL), 0);
    snprintf (handle, sizeof handle, "%s", hws_receiver_handle (receiver));
    for (int i = 0; i < SENDERS; i++) {
        pairs[i].clients[1] = fixture_client ();
        assert_int_equal (hws_sender_attach (&pairs[i].sender, pairs[i].clients[1], "a", NULL), 0);
        start (&waiting[i], &pairs[i], wait_send);
    }

    assert_int_equal (hws_receiver_close (receiver, "enough", LONG_MS), 0);

    for (int i = 0; i < SENDERS; i++) {
        const char *cause, *reason;
        pthread_join (waiting[i].thread, NULL);
        assert_int_equal (waiting[i].rc, HWS_ECANCELLED);
        assert_int_equal (hws_sender_reason (pairs[i].sender, &cause, &reason), HWS_ECANCELLED);
        assert_string_equal (cause, "receiver_closed");
        assert_string_equal (reason, "enough");
    }
    assert_int_equal (hws_sender_attach (&late, home, "a", NULL), HWS_ENOT_FOUND);
    assert_int_equal (hws_sender_attach (&late, home, handle, NULL), HWS_ECLOSED);
    for (int i = 0; i < SENDERS; i++) {
        hws_sender_destroy (&pairs[i].sender);
        hws_client_destroy (&pairs[i].clients[1]);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&home);
}

static void cancel_wakes_a_waiting_receive (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    waiting_t waiting;
    start (&waiting, &pair, wait_recv);

    assert_int_equal (hws_receiver_close (pair.receiver, NULL, LONG_MS), 0);

    pthread_join (waiting.thread, NULL);
    assert_int_equal (waiting.rc, 0);
    assert_int_equal (waiting.kind, HWS_EVENT_CLOSED);
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, LONG_MS), HWS_ECLOSED);
    pair_close (&pair);
}

/*  Of a few records it says so itself before it waits, of many the client's thread does.  */
static void waiting_receive_has_what_it_consumed_acknowledged (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    waiting_t waiting;
    start (&waiting, &pair, wait_recv);

    for (int records = 1; records <= 1000; records *= 10) {
        for (int i = 0; i < records; i++) {
            assert_int_equal (hws_sender_send (pair.sender, "x", 1, LONG_MS), 0);
        }
        assert_int_equal (hws_sender_flush (pair.sender, LONG_MS), 0);
    }

    assert_int_equal (hws_receiver_close (pair.receiver, NULL, LONG_MS), 0);
    pthread_join (waiting.thread, NULL);
    pair_close (&pair);
}

static void *wait_close (void *argument)
{
    waiting_t *const self = argument;
    self->rc = hws_receiver_close (self->pair->receiver, "enough", LONG_MS);
    return NULL;
}

static void *wait_cancel (void *argument)
{
    waiting_t *const self = argument;
    self->rc = hws_sender_cancel (self->pair->sender, "stop", LONG_MS);
    return NULL;
}

/*  Two threads close the receiver, a third cancels the sender: one ending, one closing,
 *  and both ends name the same cause.  */
static void cancel_is_idempotent (void **state)
{
    (void) state;
    for (size_t i = 0; i < process_scaled (20, 5); i++) {
        pair_t pair;
        pair_open (&pair, NULL);
        hws_event_t event;
        expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
        waiting_t calls[3];

        start (&calls[0], &pair, wait_close);
        start (&calls[1], &pair, wait_close);
        start (&calls[2], &pair, wait_cancel);
        for (int k = 0; k < 3; k++) {
            pthread_join (calls[k].thread, NULL);
            assert_int_equal (calls[k].rc, 0);
        }

        expect_event (pair.receiver, HWS_EVENT_CANCELLED, &event);
        const char *cause;
        assert_int_equal (hws_sender_reason (pair.sender, &cause, NULL), HWS_ECANCELLED);
        assert_string_equal (event.cause, cause);
        expect_event (pair.receiver, HWS_EVENT_CLOSED, &event);
        assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_ECLOSED);
        assert_int_equal (hws_receiver_close (pair.receiver, "again", LONG_MS), 0);
        assert_int_equal (hws_sender_cancel (pair.sender, "again", LONG_MS), 0);
        pair_close (&pair);
    }
}

/*  Receives without waiting until the anchor is closed; `rc` is then HWS_ECLOSED.  */
static void *recv_busily (void *argument)
{
    waiting_t *const self = argument;
    hws_event_t event;
    do {
        self->rc = hws_receiver_recv (self->pair->receiver, &event, 0);
    } while (self->rc == 0 || self->rc == HWS_EWOULD_BLOCK);
    return NULL;
}

static void close_is_no_second_receive (void **state)
{
    (void) state;
    for (size_t i = 0; i < process_scaled (30, 5); i++) {
        pair_t pair;
        pair_open (&pair, NULL);
        waiting_t waiting;
        start (&waiting, &pair, recv_busily);

        for (int again = 0; again < 1000; again++) {
            hws_receiver_close (pair.receiver, NULL, 0);
        }

        pthread_join (waiting.thread, NULL);
        assert_int_equal (waiting.rc, HWS_ECLOSED);
        pair_close (&pair);
    }
}

static void second_receive_at_a_time_is_busy (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    waiting_t waiting;
    start (&waiting, &pair, wait_recv);

    hws_event_t event;
    int rc;
    do { /* until the other thread is inside */
        rc = hws_receiver_recv (pair.receiver, &event, 0);
    } while (rc != HWS_EBUSY);

    assert_int_equal (hws_receiver_close (pair.receiver, NULL, LONG_MS), 0);
    pthread_join (waiting.thread, NULL);
    pair_close (&pair);
}

static void senders_own_cancel_tells_both_ends (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);

    assert_int_equal (hws_sender_cancel (pair.sender, "SIGINT", LONG_MS), 0);

    assert_int_equal (hws_sender_send (pair.sender, "x", 1, LONG_MS), HWS_ECANCELLED);
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.cause, "interrupted");
    assert_string_equal (event.reason, "SIGINT");
    pair_close (&pair);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, pair_setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, pair_setup_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH (cancel_wakes_a_blocked_send),
        BOTH (cancel_anchor_reaches_every_sender),
        BOTH (cancel_wakes_a_waiting_receive),
        TCP (cancel_is_idempotent),
        TCP (waiting_receive_has_what_it_consumed_acknowledged),
        TCP (close_is_no_second_receive),
        TCP (second_receive_at_a_time_is_busy),
        BOTH (senders_own_cancel_tells_both_ends),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
