/*  A broker that ends and comes again at the same endpoint.  */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>

static void expect_served (const char *anchor)
{
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", anchor, "--senders", "1",
                                         "--format", "json", NULL);
    process_t *sender =
        process_start (NULL, "hawser-send", "--anchor", anchor, "--wait", "60", NULL);

    process_write (sender, "x\n", 2);
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
}

static void a_broker_comes_again_at_its_endpoint (void **state)
{
    char endpoint[256];
    (void) state;
    snprintf (endpoint, sizeof endpoint, "%s", fixture_endpoint ());
    expect_served ("before");

    for (int i = 0; i < 3; i++) {
        fixture_kill (fixture_broker ());
        fixture_restart (fixture_broker ());
        expect_served ("killed");
        fixture_stop (fixture_broker ());
        fixture_restart (fixture_broker ());
        expect_served ("stopped");
    }

    assert_string_equal (fixture_endpoint (), endpoint);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (a_broker_comes_again_at_its_endpoint, fixture_setup_tcp,
                                         fixture_teardown),
        cmocka_unit_test_setup_teardown (a_broker_comes_again_at_its_endpoint, fixture_setup_ipc,
                                         fixture_teardown),
    };
    return cmocka_run_group_tests_name ("restart", tests, NULL, NULL);
}
