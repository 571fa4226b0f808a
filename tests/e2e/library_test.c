/*  hawser.h against a real broker: threads, waits, descriptors, forks, endpoints.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG_MS = 20000 };

/*  An anchor with one sender, each on a client of its own.  */
typedef struct {
    hws_client_t *clients[2];
    hws_receiver_t *receiver;
    hws_sender_t *sender;
} pair_t;

static void pair_open (pair_t *self, const hws_receiver_options_t *options)
{
    *self = (pair_t){.clients = {fixture_client (), fixture_client ()}};
    assert_int_equal (hws_receiver_open (&self->receiver, self->clients[0], "a", options), 0);
    assert_int_equal (hws_sender_attach (&self->sender, self->clients[1], "a", NULL), 0);
}

static void pair_close (pair_t *self)
{
    hws_sender_destroy (&self->sender);
    hws_receiver_destroy (&self->receiver);
    hws_client_destroy (&self->clients[0]);
    hws_client_destroy (&self->clients[1]);
}

static void expect (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event)
{
    assert_int_equal (hws_receiver_recv (receiver, event, LONG_MS), 0);
    assert_int_equal (event->kind, kind);
}

/*  ---- Streams ---- */

static void records_and_errors_arrive_in_order (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);

    assert_int_equal (hws_sender_send (pair.sender, "one", 3, LONG_MS), 0);
    assert_int_equal (hws_sender_error (pair.sender, "oops", LONG_MS), 0);
    void *room;
    assert_int_equal (hws_sender_reserve (pair.sender, &room, 100, LONG_MS), 0);
    memcpy (room, "two", 3);
    assert_int_equal (hws_sender_commit (pair.sender, 3), 0);

    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_int_equal (event.sender_id, hws_sender_id (pair.sender));
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_memory_equal (event.data, "one", 3);
    expect (pair.receiver, HWS_EVENT_ERROR, &event);
    assert_memory_equal (event.data, "oops", 4);
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (event.size, 3);
    assert_memory_equal (event.data, "two", 3);
    pair_close (&pair);
}

static void *detach_in_thread (void *sender)
{
    return (void *) (intptr_t) hws_sender_detach (sender, LONG_MS);
}

static void detach_waits_until_the_ending_is_consumed (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    hws_sender_send (pair.sender, "x", 1, LONG_MS);
    assert_int_equal (hws_sender_detach (pair.sender, 0), HWS_EWOULD_BLOCK);
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, detach_in_thread, pair.sender), 0);

    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    expect (pair.receiver, HWS_EVENT_DETACHED, &event);
    assert_int_equal (event.records, 1);
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_EWOULD_BLOCK);

    void *rc;
    pthread_join (thread, &rc);
    assert_int_equal ((intptr_t) rc, 0);
    assert_int_equal (hws_sender_reason (pair.sender, NULL, NULL), 0);
    assert_int_equal (hws_sender_send (pair.sender, "y", 1, 0), HWS_EENDED);
    uint64_t records, bytes;
    hws_sender_progress (pair.sender, &records, &bytes);
    assert_int_equal (records, 1);
    assert_int_equal (bytes, 1);
    pair_close (&pair);
}

static void clean_ending_has_no_cause (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    const char *cause = NULL;
    pair_open (&pair, NULL);
    assert_int_equal (hws_sender_detach (pair.sender, 0), HWS_EWOULD_BLOCK);

    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_DETACHED, &event);
    assert_null (event.cause);
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_detach (pair.sender, LONG_MS), 0);

    assert_int_equal (hws_sender_reason (pair.sender, &cause, NULL), 0);
    assert_string_equal (cause, "");
    pair_close (&pair);
}

static void record_of_the_largest_size_moves_and_one_more_byte_is_refused (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    const size_t size = (size_t) hws_sender_record_bytes (pair.sender);
    uint8_t *const data = malloc (size + 1);
    assert_non_null (data);
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t) (i * 7 >> 3);
    }

    assert_int_equal (hws_sender_send (pair.sender, data, size + 1, LONG_MS), HWS_ETOO_LARGE);
    assert_int_equal (hws_sender_send (pair.sender, data, size, LONG_MS), 0);

    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (event.size, size);
    assert_memory_equal (event.data, data, size);
    free (data);
    pair_close (&pair);
}

static void sender_stops_at_the_window_and_goes_on (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    static uint8_t data[10000];
    size_t sent = 0;

    int rc;
    while ((rc = hws_sender_send (pair.sender, data, sizeof data, 0)) == 0) {
        sent++;
    }
    assert_int_equal (rc, HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_send (pair.sender, data, sizeof data, 20), HWS_ETIMEOUT);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    for (size_t i = 0; i < sent; i++) {
        expect (pair.receiver, HWS_EVENT_RECORD, &event);
    }
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_EWOULD_BLOCK);

    assert_int_equal (hws_sender_flush (pair.sender, LONG_MS), 0);
    assert_int_equal (hws_sender_send (pair.sender, data, sizeof data, 0), 0);
    pair_close (&pair);
}

static void records_are_consumed_by_acknowledgement_only_if_asked (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.manual_ack = true;
    pair_open (&pair, &options);
    hws_sender_send (pair.sender, "x", 1, LONG_MS);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_flush (pair.sender, 50), HWS_ETIMEOUT);

    assert_int_equal (hws_receiver_ack (pair.receiver), 0);

    assert_int_equal (hws_sender_flush (pair.sender, LONG_MS), 0);
    pair_close (&pair);
}

/*  A sender with a thread of its own.  */
typedef struct {
    hws_sender_t *sender;
    size_t records;
    int rc;
    pthread_t thread;
} worker_t;

/*  Sends so many records, each with its count, and detaches.  */
static void *work (void *argument)
{
    worker_t *const self = argument;
    for (size_t i = 0; i < self->records && self->rc == 0; i++) {
        self->rc = hws_sender_send (self->sender, &i, sizeof i, LONG_MS);
    }
    self->rc = self->rc ? self->rc : hws_sender_detach (self->sender, LONG_MS);
    return NULL;
}

static void many_senders_of_one_client_in_many_threads (void **state)
{
    (void) state;
    enum { WORKERS = 8 };
    const size_t records = process_scaled (20000, 500);
    hws_client_t *from = fixture_client ();
    hws_client_t *to = fixture_client ();
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_open (&receiver, to, "a", NULL), 0);
    worker_t workers[WORKERS];
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker_t){.records = records};
        assert_int_equal (hws_sender_attach (&workers[i].sender, from, "a", NULL), 0);
        assert_int_equal (pthread_create (&workers[i].thread, NULL, work, &workers[i]), 0);
    }

    size_t next[WORKERS + 1] = {0};
    hws_event_t event;
    for (int endings = 0; endings < WORKERS;) {
        assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            size_t count;
            memcpy (&count, event.data, sizeof count);
            assert_int_equal (count, next[event.sender_id]);
            next[event.sender_id]++;
        } else if (event.kind != HWS_EVENT_ATTACHED) {
            assert_int_equal (event.kind, HWS_EVENT_DETACHED);
            assert_int_equal (event.records, records);
            endings++;
        }
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);

    for (int i = 0; i < WORKERS; i++) {
        pthread_join (workers[i].thread, NULL);
        assert_int_equal (workers[i].rc, 0);
        hws_sender_destroy (&workers[i].sender);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&to);
    hws_client_destroy (&from);
}

/*  ---- Waits ---- */

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
        expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
        waiting_t calls[3];

        start (&calls[0], &pair, wait_close);
        start (&calls[1], &pair, wait_close);
        start (&calls[2], &pair, wait_cancel);
        for (int k = 0; k < 3; k++) {
            pthread_join (calls[k].thread, NULL);
            assert_int_equal (calls[k].rc, 0);
        }

        expect (pair.receiver, HWS_EVENT_CANCELLED, &event);
        const char *cause;
        assert_int_equal (hws_sender_reason (pair.sender, &cause, NULL), HWS_ECANCELLED);
        assert_string_equal (event.cause, cause);
        expect (pair.receiver, HWS_EVENT_CLOSED, &event);
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
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.cause, "interrupted");
    assert_string_equal (event.reason, "SIGINT");
    pair_close (&pair);
}

/*  ---- Descriptors ---- */

static bool is_readable (int descriptor, int timeout_ms)
{
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll (&polled, 1, timeout_ms) == 1;
}

static void descriptor_is_readable_while_there_are_events (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    const int descriptor = hws_receiver_fd (pair.receiver);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_false (is_readable (descriptor, 0));

    hws_sender_send (pair.sender, "x", 1, LONG_MS);
    hws_sender_send (pair.sender, "y", 1, LONG_MS);

    assert_true (is_readable (descriptor, LONG_MS));
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_true (is_readable (descriptor, LONG_MS));
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_false (is_readable (descriptor, 0));
    pair_close (&pair);
}

static void new_descriptor_tells_what_is_true (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *quiet = NULL, *closed = NULL;
    assert_int_equal (hws_receiver_open (&quiet, client, NULL, NULL), 0);
    assert_int_equal (hws_receiver_open (&closed, client, NULL, NULL), 0);
    assert_int_equal (hws_receiver_close (closed, NULL, LONG_MS), 0);

    assert_false (is_readable (hws_receiver_fd (quiet), 0));
    assert_true (is_readable (hws_receiver_fd (closed), 0));

    hws_receiver_destroy (&quiet);
    hws_receiver_destroy (&closed);
    hws_client_destroy (&client);
}

/*  All records are there when the first is read, so no receive waits.  */
static void consumed_records_are_said_though_no_receive_follows (void **state)
{
    (void) state;
    enum { RECORDS = 40 };
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    for (int i = 0; i < RECORDS; i++) {
        assert_int_equal (hws_sender_send (pair.sender, "x", 1, LONG_MS), 0);
    }
    assert_int_equal (hws_sender_flush (pair.sender, 50), HWS_ETIMEOUT);

    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    for (int i = 0; i < RECORDS; i++) {
        expect (pair.receiver, HWS_EVENT_RECORD, &event);
    }

    uint64_t records = 0;
    const int64_t read_at = process_now ();
    while (records < RECORDS - 1 && process_now () < read_at + LONG_MS / 4) {
        hws_sender_progress (pair.sender, &records, NULL);
    }
    assert_int_equal (records, RECORDS - 1); /* the last is still in hand */
    assert_int_equal (hws_receiver_recv (pair.receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_flush (pair.sender, LONG_MS), 0);
    pair_close (&pair);
}

static void sender_learns_its_end_through_a_descriptor (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    const int descriptor = hws_sender_fd (pair.sender);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_false (is_readable (descriptor, 0));

    hws_receiver_cancel_sender (pair.receiver, event.sender_id, "go away");

    assert_true (is_readable (descriptor, LONG_MS));
    const char *reason;
    assert_int_equal (hws_sender_reason (pair.sender, NULL, &reason), HWS_ECANCELLED);
    assert_string_equal (reason, "go away");
    pair_close (&pair);
}

/*  ---- Refusals ---- */

static void refusals_have_their_code_and_a_sentence (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL, *second = NULL;
    hws_sender_t *sender = NULL;
    char text[256];
    assert_int_equal (hws_receiver_open (&receiver, client, "a", NULL), 0);

    assert_int_equal (hws_receiver_open (&second, client, "a", NULL), HWS_ENAME_IN_USE);
    assert_int_equal (hws_receiver_open (&second, client, "a\n", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "nowhere", NULL), HWS_ENOT_FOUND);

    hws_client_error (client, text, sizeof text);
    assert_non_null (strstr (text, "nowhere"));
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void absent_broker_is_unreachable (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "tcp://127.0.0.1:1";
    options.connect_ms = 100;
    hws_client_t *client;
    hws_sender_t *sender;
    char text[256];
    assert_int_equal (hws_client_new (&client, &options), 0);

    assert_int_equal (hws_sender_attach (&sender, client, "a", NULL), HWS_EUNREACHABLE);

    hws_client_error (client, text, sizeof text);
    assert_string_equal (text, "no broker at tcp://127.0.0.1:1");
    hws_client_destroy (&client);
}

static void broker_that_comes_late_is_found_at_once (void **state)
{
    (void) state;
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGTERM);
    process_expect_exit (fixture_broker (), 0);
    hws_client_t *client = fixture_client ();
    char text[256] = "";
    const int64_t asked_at = process_now ();
    while (strstr (text, "no broker") == NULL && process_now () < asked_at + LONG_MS) {
        hws_client_error (client, text, sizeof text);
    }
    assert_true (process_now () < asked_at + 2000);

    fixture_start_broker (endpoint, NULL);
    const int64_t started_at = process_now ();
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    assert_true (process_now () < started_at + 2000);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  What the program is told of the connection, through a pipe.  */
typedef struct {
    int pipe[2];
} told_t;

static void tell (void *arg, bool is_connected, const char *text)
{
    const told_t *const self = arg;
    char line[256];
    const int size = snprintf (line, sizeof line, "%s %s", is_connected ? "back" : "away", text);
    const ssize_t written = write (self->pipe[1], line, (size_t) size);
    (void) written; /* what is missing is missed by the reader */
}

static void expect_told (const told_t *self, const char *expected)
{
    char line[256] = "";
    struct pollfd polled = {.fd = self->pipe[0], .events = POLLIN};
    assert_int_equal (poll (&polled, 1, LONG_MS), 1);
    assert_true (read (self->pipe[0], line, sizeof line - 1) > 0);
    assert_string_equal (line, expected);
}

/*  Waits until something that begins so has been told.  */
static void expect_told_of (const told_t *self, const char *begin)
{
    char line[1024];
    struct pollfd polled = {.fd = self->pipe[0], .events = POLLIN};
    do {
        assert_int_equal (poll (&polled, 1, LONG_MS), 1);
        memset (line, 0, sizeof line);
        assert_true (read (self->pipe[0], line, sizeof line - 1) > 0);
    } while (strstr (line, begin) == NULL);
}

static void program_is_told_that_the_broker_went_and_came_back (void **state)
{
    (void) state;
    told_t told;
    assert_int_equal (pipe (told.pipe), 0);
    hws_client_options_t options;
    hws_client_options_init (&options);
    char endpoint[64], away[128];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    snprintf (away, sizeof away, "away lost the connection to %s", endpoint);
    options.endpoint = endpoint;
    options.on_connection = tell;
    options.on_connection_arg = &told;
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    expect_told (&told, away);
    fixture_start_broker (endpoint, NULL);
    expect_told (&told, "back ");

    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    close (told.pipe[0]);
    close (told.pipe[1]);
}

/*  It says nothing and closes nothing, as when its machine loses power: after the silence
 *  that its client allows it is lost, and found again when it speaks.  */
static void dead_broker_is_noticed (void **state)
{
    (void) state;
    told_t told;
    assert_int_equal (pipe (told.pipe), 0);
    hws_client_options_t options;
    hws_receiver_options_t receiver_options;
    hws_event_t event;
    hws_client_options_init (&options);
    hws_receiver_options_init (&receiver_options);
    options.endpoint = fixture_endpoint ();
    options.on_connection = tell;
    options.on_connection_arg = &told;
    receiver_options.heartbeat_interval_ms = 100;
    receiver_options.reconnect_grace_ms = LONG_MS;
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    assert_int_equal (hws_receiver_open (&receiver, client, "a", &receiver_options), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "a", NULL), 0);

    process_signal (fixture_broker (), SIGSTOP);
    expect_told_of (&told, "away ");
    assert_int_equal (hws_sender_send (sender, "meanwhile", 9, LONG_MS), 0);
    process_signal (fixture_broker (), SIGCONT);
    expect_told_of (&told, "back ");

    expect (receiver, HWS_EVENT_ATTACHED, &event);
    expect (receiver, HWS_EVENT_RECORD, &event);
    assert_memory_equal (event.data, "meanwhile", 9);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
    close (told.pipe[0]);
    close (told.pipe[1]);
}

static void endpoint_that_breaks_the_rules_is_invalid (void **state)
{
    (void) state;
    static const char *const endpoints[] = {
        "",           "tcp://",           "tcp://host",    "tcp://host:0", "tcp://host:65536",
        "tcp://:1",   "tcp://host:7733x", "tcp://*:7733",  "tcp://::1:1",  "udp://host:1",
        "inproc://x", "ipc://",           "tcp://host:-1", "host:7733"};
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        hws_client_options_t options;
        hws_client_options_init (&options);
        options.endpoint = endpoints[i];
        hws_client_t *client = NULL;
        assert_int_equal (hws_client_new (&client, &options), HWS_EINVALID);
        assert_null (client);
    }
}

static void wait_for_error (hws_client_t *client, const char *part)
{
    char text[256] = "";
    const int64_t asked_at = process_now ();
    while (!strstr (text, part) && process_now () < asked_at + LONG_MS) {
        hws_client_error (client, text, sizeof text);
    }
    assert_non_null (strstr (text, part));
}

static void expect_closed_here (hws_receiver_t *receiver)
{
    hws_event_t event;
    expect (receiver, HWS_EVENT_CANCELLED, &event);
    assert_string_equal (event.cause, "receiver_closed");
    expect (receiver, HWS_EVENT_CLOSED, &event);
    assert_string_equal (event.cause, "receiver_closed");
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), HWS_ECLOSED);
}

static void cancel_and_close_end_at_once_without_a_broker (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    const char *cause;
    pair_open (&pair, NULL);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    wait_for_error (pair.clients[0], "lost the connection");
    wait_for_error (pair.clients[1], "lost the connection");
    const int64_t asked_at = process_now ();

    assert_int_equal (hws_sender_cancel (pair.sender, "SIGINT", LONG_MS), HWS_EUNREACHABLE);
    assert_int_equal (hws_receiver_close (pair.receiver, "done", LONG_MS), HWS_EUNREACHABLE);

    assert_int_equal (hws_sender_reason (pair.sender, &cause, NULL), HWS_ECANCELLED);
    assert_string_equal (cause, "interrupted");
    expect_closed_here (pair.receiver);
    assert_true (process_now () < asked_at + 2000);
    pair_close (&pair);
}

static void close_whose_time_passes_ends_here (void **state)
{
    (void) state;
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    hws_event_t event;
    pair_open (&pair, NULL);
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    process_signal (fixture_broker (), SIGSTOP);

    assert_int_equal (hws_receiver_close (pair.receiver, "done", 20), HWS_ETIMEOUT);

    expect_closed_here (pair.receiver);
    process_signal (fixture_broker (), SIGCONT);
    pair_close (&pair);
}

static void what_could_not_be_made_is_null (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "nowhere";
    hws_client_t *client = fixture_client ();
    hws_client_t *no_client = client;
    hws_receiver_t *receiver = (void *) client;
    hws_sender_t *sender = (void *) client;

    assert_int_equal (hws_client_new (&no_client, &options), HWS_EINVALID);
    assert_int_equal (hws_receiver_open (&receiver, client, "\n", NULL), HWS_EINVALID);
    assert_int_equal (hws_sender_attach (&sender, client, "nowhere", NULL), HWS_ENOT_FOUND);

    assert_null (no_client);
    assert_null (receiver);
    assert_null (sender);
    hws_client_destroy (&client);
}

/*  localhost has an IPv6 address too, where nobody listens.  */
static void every_address_of_a_name_is_tried (void **state)
{
    (void) state;
    const char *const port = strrchr (fixture_endpoint (), ':');
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "tcp://localhost%s", port);
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = endpoint;
    hws_client_t *client;
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);

    assert_int_equal (hws_receiver_open (&receiver, client, NULL, NULL), 0);

    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Many windows fill what lies between the client and a broker that has stopped.  */
static void full_connection_is_given_up_like_any_other (void **state)
{
    (void) state;
    enum { SENDERS = 24 };
    static uint8_t data[10000];
    fixture_start_broker (NULL, "{}");
    pair_t pair;
    pair_open (&pair, NULL);
    hws_sender_t *senders[SENDERS];
    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], pair.clients[1], "a", NULL), 0);
    }
    char endpoint[64];
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    process_signal (fixture_broker (), SIGSTOP);
    for (int i = 0; i < SENDERS; i++) {
        while (hws_sender_send (senders[i], data, sizeof data, 0) == 0) {
        }
    }
    assert_int_equal (hws_sender_flush (senders[0], 200), HWS_ETIMEOUT);

    process_signal (fixture_broker (), SIGKILL);
    process_expect_exit (fixture_broker (), 128 + SIGKILL);
    fixture_start_broker (endpoint, "{}");

    for (int i = 0; i < SENDERS; i++) {
        assert_int_equal (hws_sender_flush (senders[i], LONG_MS), HWS_ETRANSPORT);
        hws_sender_destroy (&senders[i]);
    }
    pair_close (&pair);
}

static void child_of_a_fork_may_use_nothing (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);

    const pid_t child = fork ();
    if (child == 0) {
        hws_event_t event;
        hws_client_t *client = pair.clients[0];
        const bool is_refused =
            hws_sender_send (pair.sender, "x", 1, LONG_MS) == HWS_EWRONG_PROCESS &&
            hws_receiver_recv (pair.receiver, &event, LONG_MS) == HWS_EWRONG_PROCESS &&
            hws_sender_detach (pair.sender, LONG_MS) == HWS_EWRONG_PROCESS;
        hws_sender_destroy (&pair.sender);
        hws_receiver_destroy (&pair.receiver);
        hws_client_destroy (&client);
        _exit (is_refused ? 0 : 1);
    }
    int status;
    assert_int_equal (waitpid (child, &status, 0), child);

    assert_int_equal (status, 0);
    assert_int_equal (hws_sender_send (pair.sender, "x", 1, LONG_MS), 0);
    hws_event_t event;
    expect (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

static void client_comes_and_goes_without_a_leak (void **state)
{
    (void) state;
    pair_t pair;
    pair_open (&pair, NULL);
    pair_close (&pair);
    const int before = dup (0);
    close (before);

    for (size_t i = 0; i < process_scaled (50, 5); i++) {
        pair_open (&pair, NULL);
        hws_sender_send (pair.sender, "x", 1, LONG_MS);
        pair_close (&pair);
    }

    const int after = dup (0);
    close (after);
    assert_int_equal (after, before);
}

/*  A broker with the times of its defaults, so that nobody is judged here, and small
 *  windows, which soon are full.  */
static const char *const s_small_windows = "{\"anchors\": {\"buffer_bytes\": 4194304},"
                                           " \"limits\": {\"record_bytes\": 1048576}}";

static int setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_small_windows);
}

static int setup_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_small_windows);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, setup_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)
#define BARE(name) cmocka_unit_test_setup_teardown (name, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TCP (records_and_errors_arrive_in_order),
        TCP (detach_waits_until_the_ending_is_consumed),
        TCP (clean_ending_has_no_cause),
        TCP (record_of_the_largest_size_moves_and_one_more_byte_is_refused),
        BOTH (sender_stops_at_the_window_and_goes_on),
        TCP (records_are_consumed_by_acknowledgement_only_if_asked),
        TCP (many_senders_of_one_client_in_many_threads),
        BOTH (cancel_wakes_a_blocked_send),
        BOTH (cancel_anchor_reaches_every_sender),
        BOTH (cancel_wakes_a_waiting_receive),
        TCP (cancel_is_idempotent),
        TCP (close_is_no_second_receive),
        TCP (second_receive_at_a_time_is_busy),
        BOTH (senders_own_cancel_tells_both_ends),
        TCP (descriptor_is_readable_while_there_are_events),
        TCP (new_descriptor_tells_what_is_true),
        TCP (consumed_records_are_said_though_no_receive_follows),
        BOTH (sender_learns_its_end_through_a_descriptor),
        TCP (refusals_have_their_code_and_a_sentence),
        BARE (absent_broker_is_unreachable),
        TCP (broker_that_comes_late_is_found_at_once),
        TCP (program_is_told_that_the_broker_went_and_came_back),
        BOTH (dead_broker_is_noticed),
        TCP (cancel_and_close_end_at_once_without_a_broker),
        BARE (close_whose_time_passes_ends_here),
        TCP (what_could_not_be_made_is_null),
        BARE (endpoint_that_breaks_the_rules_is_invalid),
        TCP (every_address_of_a_name_is_tried),
        BARE (full_connection_is_given_up_like_any_other),
        TCP (child_of_a_fork_may_use_nothing),
        TCP (client_comes_and_goes_without_a_leak),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
