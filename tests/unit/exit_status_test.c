/*  How programs end that were refused what they asked for.  */
#include "conf/exit_status.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void a_wait_that_was_in_vain_is_a_time_limit (void **state)
{
    (void) state;

    assert_int_equal (hws_exit_of_refusal (HWS_ENOT_FOUND, true), HWS_EXIT_TIMEOUT);
    assert_int_equal (hws_exit_of_refusal (HWS_EUNREACHABLE, true), HWS_EXIT_TIMEOUT);
    assert_int_equal (hws_exit_of_refusal (HWS_ENOT_FOUND, false), HWS_EXIT_FAILED);
    assert_int_equal (hws_exit_of_refusal (HWS_EUNREACHABLE, false), HWS_EXIT_UNREACHABLE);
}

static void a_front_that_cannot_be_bound_is_no_time_limit (void **state)
{
    (void) state;

    assert_int_equal (hws_exit_of_refusal (HWS_ETRANSPORT, true), HWS_EXIT_UNREACHABLE);
    assert_int_equal (hws_exit_of_refusal (HWS_ETRANSPORT, false), HWS_EXIT_UNREACHABLE);
}

static void what_is_refused_is_told_from_what_is_cancelled (void **state)
{
    (void) state;

    assert_int_equal (hws_exit_of_refusal (HWS_ELIMIT, true), HWS_EXIT_REFUSED);
    assert_int_equal (hws_exit_of_refusal (HWS_EMAX_SENDERS, true), HWS_EXIT_REFUSED);
    assert_int_equal (hws_exit_of_refusal (HWS_ECANCELLED, true), HWS_EXIT_BAD_END);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_wait_that_was_in_vain_is_a_time_limit),
        cmocka_unit_test (a_front_that_cannot_be_bound_is_no_time_limit),
        cmocka_unit_test (what_is_refused_is_told_from_what_is_cancelled),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
