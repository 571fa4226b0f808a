/*  hawser.h: a client that lingers, or that is flushed by hand, against a real broker and one
 *  that counts.
 *
 *  Threads of a test report through variables; only the test's own thread asserts.
 */
#include "tests/support/fake_broker.h"
#include "tests/support/pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>

enum { LONG_MS = 20000, SHORT_MS = 100, STREAMS = 8, PASSES = 20 };

static hws_client_t *lingering (const char *endpoint, int64_t linger_ms)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = endpoint;
    options.linger_ms = linger_ms;
    hws_client_t *client = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

/*  As pair_open, with a sender whose client lingers so.  */
static void pair_open_lingering (pair_t *self, const hws_receiver_options_t *options,
                                 int64_t linger_ms)
{
    hws_event_t event;
    *self = (pair_t){.clients = {fixture_client (), lingering (fixture_endpoint (), linger_ms)}};
    assert_int_equal (hws_receiver_open (&self->receiver, self->clients[0], "a", options), 0);
    assert_int_equal (hws_sender_attach (&self->sender, self->clients[1], "a", NULL), 0);
    expect_event (self->receiver, HWS_EVENT_ATTACHED, &event);
}

static void expect_nothing (hws_receiver_t *receiver)
{
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (receiver, &event, SHORT_MS), HWS_ETIMEOUT);
}

/*  ---- At a broker that counts ---- */

static void give_a_seat (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    fake_answer_seat (answer);
    answer->as.attach_ok.sender_id = (uint64_t) number;
    answer->as.attach_ok.initial_credit = 1000;
}

static void manual_flush_makes_one_message (void **state)
{
    (void) state;
    fake_broker_t *broker = fake_broker_start (give_a_seat);
    hws_client_t *client = lingering (fake_broker_endpoint (broker), HWS_FOREVER);
    hws_sender_t *senders[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], client, "a", NULL), 0);
    }

    for (int pass = 1; pass <= PASSES; pass++) {
        for (int i = 0; i < STREAMS; i++) {
            assert_int_equal (hws_sender_send (senders[i], "token", 5, 0), 0);
        }
        assert_int_equal (hws_client_flush (client), 0);
        assert_int_equal (fake_broker_batches (broker, pass), pass);
    }

    for (int i = 0; i < STREAMS; i++) {
        hws_sender_destroy (&senders[i]);
    }
    hws_client_destroy (&client);
    assert_int_equal (fake_broker_batches (broker, PASSES), PASSES);
    fake_broker_stop (&broker);
}

/*  ---- At a real one ---- */

static void records_wait_for_the_flush (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open_lingering (&pair, NULL, HWS_FOREVER);

    assert_int_equal (hws_sender_send (pair.sender, "x", 1, 0), 0);
    expect_nothing (pair.receiver);
    assert_int_equal (hws_client_flush (pair.clients[1]), 0);

    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

static void linger_ends_by_itself (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open_lingering (&pair, NULL, 10);

    assert_int_equal (hws_sender_send (pair.sender, "x", 1, 0), 0);

    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

static void a_waiting_send_flushes (void **state)
{
    (void) state;
    static const uint8_t data[10000];
    pair_t pair;
    hws_event_t event;
    pair_open_lingering (&pair, NULL, HWS_FOREVER);

    int rc;
    do {
        rc = hws_sender_send (pair.sender, data, sizeof data, 0);
    } while (rc == 0);

    assert_int_equal (rc, HWS_EWOULD_BLOCK);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

static void what_waits_for_the_receiver_flushes (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    pair_open_lingering (&pair, NULL, HWS_FOREVER);

    assert_int_equal (hws_sender_send (pair.sender, "x", 1, 0), 0);
    assert_int_equal (hws_sender_flush (pair.sender, 0), HWS_EWOULD_BLOCK);
    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    assert_int_equal (hws_sender_send (pair.sender, "x", 1, 0), 0);
    assert_int_equal (hws_sender_detach (pair.sender, 0), HWS_EWOULD_BLOCK);

    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    expect_event (pair.receiver, HWS_EVENT_DETACHED, &event);
    pair_close (&pair);
}

static void flush_reaches_dedicated_anchors (void **state)
{
    (void) state;
    pair_t pair;
    hws_event_t event;
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.dedicated = true;
    pair_open_lingering (&pair, &options, HWS_FOREVER);

    assert_int_equal (hws_sender_send (pair.sender, "x", 1, 0), 0);
    expect_nothing (pair.receiver);
    assert_int_equal (hws_client_flush (pair.clients[1]), 0);

    expect_event (pair.receiver, HWS_EVENT_RECORD, &event);
    pair_close (&pair);
}

typedef struct {
    hws_client_t *client;
    hws_sender_t *sender;
    int rc;
    pthread_t thread;
} worker_t;

static void *send_many (void *argument)
{
    worker_t *const self = argument;
    for (uint64_t i = 0; i < 5000 && self->rc == 0; i++) {
        self->rc = hws_sender_send (self->sender, &i, sizeof i, LONG_MS);
    }
    return NULL;
}

static void *flush_until_told (void *argument)
{
    atomic_bool *const is_done = ((void **) argument)[0];
    hws_client_t *const client = ((void **) argument)[1];
    while (!atomic_load (is_done)) {
        hws_client_flush (client);
    }
    return NULL;
}

static void flushes_of_one_thread_and_sends_of_others_mix (void **state)
{
    (void) state;
    enum { WORKERS = 3 };
    pair_t pair;
    hws_event_t event;
    uint64_t next[WORKERS + 2] = {0};
    worker_t workers[WORKERS];
    pair_open_lingering (&pair, NULL, HWS_FOREVER);
    atomic_bool is_done = false;
    void *flusher[] = {&is_done, pair.clients[1]};
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, flush_until_told, flusher), 0);

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (worker_t){.client = pair.clients[1]};
        assert_int_equal (hws_sender_attach (&workers[i].sender, pair.clients[1], "a", NULL), 0);
        assert_int_equal (pthread_create (&workers[i].thread, NULL, send_many, &workers[i]), 0);
    }
    for (int records = 0; records < WORKERS * 5000;) {
        assert_int_equal (hws_receiver_recv (pair.receiver, &event, LONG_MS), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            assert_memory_equal (event.data, &next[event.sender_id], sizeof (uint64_t));
            next[event.sender_id]++;
            records++;
        }
    }

    atomic_store (&is_done, true);
    pthread_join (thread, NULL);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join (workers[i].thread, NULL);
        assert_int_equal (workers[i].rc, 0);
        hws_sender_destroy (&workers[i].sender);
    }
    pair_close (&pair);
}

static void linger_below_forever_is_invalid (void **state)
{
    (void) state;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.linger_ms = -2;
    hws_client_t *client;

    assert_int_equal (hws_client_new (&client, &options), HWS_EINVALID);
}

#define TCP(name)  cmocka_unit_test_setup_teardown (name, pair_setup_tcp, fixture_teardown)
#define IPC(name)  cmocka_unit_test_setup_teardown (name, pair_setup_ipc, fixture_teardown)
#define BARE(name) cmocka_unit_test_setup_teardown (name, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BARE (manual_flush_makes_one_message),
        TCP (records_wait_for_the_flush),
        TCP (linger_ends_by_itself),
        TCP (a_waiting_send_flushes),
        TCP (what_waits_for_the_receiver_flushes),
        TCP (flush_reaches_dedicated_anchors),
        IPC (flush_reaches_dedicated_anchors),
        TCP (flushes_of_one_thread_and_sends_of_others_mix),
        BARE (linger_below_forever_is_invalid),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
