/*  Records that come one at a time: the program's own thread writes them.
 *
 *  The library is linked so that what it sends passes through here.
 */
#include "io/dealer_io.h"
#include "tests/support/pair.h"
#include "tests/support/process.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { LONG_MS = 20000 };

static pthread_t s_program;
static atomic_uint s_by_program; /* messages that the test's thread wrote */

int __real_hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message);
int __wrap_hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message);

int __wrap_hws_dealer_send (hws_dealer_t *self, zmq_msg_t *message)
{
    const int rc = __real_hws_dealer_send (self, message);
    if (rc == 0) {
        const bool is_program = pthread_equal (pthread_self (), s_program);
        atomic_fetch_add (&s_by_program, is_program);
    }
    return rc;
}

/*  Receives all there is, in order, until the ending.  */
static void *receive (void *argument)
{
    hws_receiver_t *const receiver = argument;
    static uint64_t records;
    hws_event_t event;
    records = 0;
    while (hws_receiver_recv (receiver, &event, LONG_MS) == 0 && event.kind != HWS_EVENT_DETACHED) {
        uint64_t count = UINT64_MAX;
        if (event.kind == HWS_EVENT_RECORD && event.size == sizeof count) {
            memcpy (&count, event.data, sizeof count); /* lies anywhere */
        }
        records += count == records;
    }
    hws_receiver_recv (receiver, &event, 0);
    return &records;
}

static void begin (pair_t *pair, pthread_t *thread)
{
    pair_open (pair, NULL);
    assert_int_equal (pthread_create (thread, NULL, receive, pair->receiver), 0);
    s_program = pthread_self ();
    atomic_store (&s_by_program, 0);
}

static void end (pair_t *pair, pthread_t thread, uint64_t records)
{
    void *received;
    assert_int_equal (hws_sender_detach (pair->sender, LONG_MS), 0);
    pthread_join (thread, &received);
    assert_int_equal (*(const uint64_t *) received, records);
    pair_close (pair);
}

/*  Whether the client's thread sleeps when a record comes is a matter of luck, but not each
 *  time.  */
static void lone_record_is_written_by_its_program (void **state)
{
    (void) state;
    pair_t pair;
    pthread_t thread;
    begin (&pair, &thread);

    uint64_t records = 0;
    while (atomic_load (&s_by_program) == 0 && records < 2000) {
        assert_int_equal (hws_sender_send (pair.sender, &records, sizeof records, LONG_MS), 0);
        records++;
        assert_int_equal (hws_sender_flush (pair.sender, LONG_MS), 0);
    }

    assert_true (atomic_load (&s_by_program) > 0);
    end (&pair, thread, records);
}

/*  Else each would travel alone.  */
static void records_that_come_fast_are_left_to_the_clients_thread (void **state)
{
    (void) state;
    const uint64_t records = process_scaled (100000, 5000);
    pair_t pair;
    pthread_t thread;
    begin (&pair, &thread);

    const int64_t begun_at = process_now ();
    for (uint64_t i = 0; i < records; i++) {
        assert_int_equal (hws_sender_send (pair.sender, &i, sizeof i, LONG_MS), 0);
    }
    const int64_t ms = process_now () - begun_at + 1;

    assert_true (atomic_load (&s_by_program) <= 2 * (uint64_t) ms + 2);
    end (&pair, thread, records);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (lone_record_is_written_by_its_program, pair_setup_tcp,
                                         fixture_teardown),
        cmocka_unit_test_setup_teardown (records_that_come_fast_are_left_to_the_clients_thread,
                                         pair_setup_ipc, fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
