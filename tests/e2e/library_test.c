/*  hawser.h against a real broker: streams, and descriptors to poll.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_MS = 20000 };

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

    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_int_equal (event.sender_id, hws_sender_id (pair.sender));
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_memory_equal (event.data, "one", 3);
    expect_event (pair.receiver, HWS_EVENT_ERROR, &event);
    assert_memory_equal (event.data, "oops", 4);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
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

    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    expect_event (pair.receiver, HWS_EVENT_DETACHED, &event);
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

    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_DETACHED, &event);
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

    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
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

    while (hws_sender_send (pair.sender, data, sizeof data, 200) == 0) {
        sent++;
    }
    assert_int_equal (hws_sender_send (pair.sender, data, sizeof data, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_send (pair.sender, data, sizeof data, 20), HWS_ETIMEOUT);
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    for (size_t i = 0; i < sent; i++) {
        expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
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
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
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
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_false (is_readable (descriptor, 0));

    hws_sender_send (pair.sender, "x", 1, LONG_MS);
    hws_sender_send (pair.sender, "y", 1, LONG_MS);

    assert_true (is_readable (descriptor, LONG_MS));
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_true (is_readable (descriptor, LONG_MS));
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
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

/*  Waits until the sender knows that so many are consumed, or for long enough.  */
static uint64_t progress_of (hws_sender_t *sender, uint64_t expected)
{
    uint64_t records = 0;
    const int64_t begun_at = process_now ();
    while (records < expected && process_now () < begun_at + LONG_MS / 4) {
        hws_sender_progress (sender, &records, NULL);
    }
    return records;
}

/*  All records are there when the first is read, so no receive waits. The program stands still
 *  for long enough that nobody looks any more whether it goes on.  */
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

    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    for (uint64_t half = 1; half <= 2; half++) {
        for (int i = 0; i < RECORDS / 2; i++) {
            expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
        }
        const uint64_t consumed = half * RECORDS / 2 - 1; /* the last is still in hand */
        assert_int_equal (progress_of (pair.sender, consumed), consumed);
        assert_int_equal (hws_sender_flush (pair.sender, 50), HWS_ETIMEOUT);
    }

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
    expect_event (pair.receiver, HWS_EVENT_ATTACHED, &event);
    assert_false (is_readable (descriptor, 0));

    hws_receiver_cancel_sender (pair.receiver, event.sender_id, "go away");

    assert_true (is_readable (descriptor, LONG_MS));
    const char *reason;
    assert_int_equal (hws_sender_reason (pair.sender, NULL, &reason), HWS_ECANCELLED);
    assert_string_equal (reason, "go away");
    pair_close (&pair);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, pair_setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, pair_setup_ipc, fixture_teardown)
#define BOTH(name) TCP (name), IPC (name)

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
        TCP (descriptor_is_readable_while_there_are_events),
        TCP (new_descriptor_tells_what_is_true),
        TCP (consumed_records_are_said_though_no_receive_follows),
        BOTH (sender_learns_its_end_through_a_descriptor),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
