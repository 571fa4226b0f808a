/*  What a sender tells of its anchor without its client's lock.  */
#include "client/sender_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/*  The session has taken a seat.  */
static void seat (hws_sender_t *sender, uint64_t record_bytes)
{
    sender->core.tx.sender_id = 5;
    sender->core.tx.record_bytes = record_bytes;
    hws_sender_notified (&sender->core);
}

static void the_largest_record_is_unknown_before_the_seat (void **state)
{
    (void) state;
    hws_sender_t sender = {.ended = -1};

    hws_sender_notified (&sender.core);

    assert_int_equal (hws_sender_record_bytes (&sender), 0);
}

/*  The broker was restarted, and its limit is another.  */
static void the_largest_record_is_that_of_the_last_answer (void **state)
{
    (void) state;
    hws_sender_t sender = {.ended = -1};

    seat (&sender, 1000);
    assert_int_equal (hws_sender_record_bytes (&sender), 1000);
    seat (&sender, 2000);
    assert_int_equal (hws_sender_record_bytes (&sender), 2000);
    seat (&sender, 500);
    assert_int_equal (hws_sender_record_bytes (&sender), 500);
    assert_int_equal (hws_sender_id (&sender), 5);
}

static void a_broker_that_does_not_tell_takes_the_largest_there_is (void **state)
{
    (void) state;
    hws_sender_t sender = {.ended = -1};

    seat (&sender, 0);

    assert_int_equal (hws_sender_record_bytes (&sender), HWS_RECORD_SIZE_MAX);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (the_largest_record_is_unknown_before_the_seat),
        cmocka_unit_test (the_largest_record_is_that_of_the_last_answer),
        cmocka_unit_test (a_broker_that_does_not_tell_takes_the_largest_there_is),
    };
    return cmocka_run_group_tests_name ("sender_io", tests, NULL, NULL);
}
