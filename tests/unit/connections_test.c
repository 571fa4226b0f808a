#include "broker/connections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define TIE_LIMIT        3
#define CONNECTION_LIMIT 5
#define SHARED           0 /* a front */

static hws_address_t address_of (const char *id)
{
    hws_address_t address = {.front = 0, .size = (uint8_t) strlen (id)};
    memcpy (address.id, id, address.size);
    return address;
}

static int tie (hws_connections_t *table, int descriptor, const char *id)
{
    const hws_address_t address = address_of (id);
    return hws_connections_tie (table, descriptor, &address);
}

static void assert_gone (hws_connections_t *table, const char *id)
{
    hws_address_t address;
    assert_true (hws_connections_pop_gone (table, &address));
    assert_int_equal (address.size, strlen (id));
    assert_memory_equal (address.id, id, address.size);
}

static void assert_nobody_gone (hws_connections_t *table)
{
    hws_address_t address;
    assert_false (hws_connections_pop_gone (table, &address));
}

static int make_table (void **state)
{
    const hws_hash_key_t key = {{1, 2}};
    const int rc = hws_connections_new ((hws_connections_t **) state, TIE_LIMIT, key);
    if (rc == 0) {
        hws_connections_limit (*state, CONNECTION_LIMIT);
    }
    return rc;
}

static int free_table (void **state)
{
    hws_connections_destroy ((hws_connections_t **) state);
    return 0;
}

static void a_closed_descriptor_reports_the_peer_that_said_hello_on_it (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);
    hws_connections_accepted (table, SHARED, 10, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 10, "b"), 0);

    hws_connections_closed (table, SHARED, 9);

    assert_gone (table, "a");
    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 1);
}

static void a_closed_descriptor_without_a_hello_reports_nobody (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);

    hws_connections_closed (table, SHARED, 9);

    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 0);
}

static void a_hello_read_after_its_connection_closed_is_gone_at_once (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);
    hws_connections_closed (table, SHARED, 9);

    assert_int_equal (tie (table, 9, "a"), 0);

    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void a_late_hello_does_not_take_a_reused_descriptor_from_its_new_peer (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0); /* a's */
    hws_connections_closed (table, SHARED, 9);
    hws_connections_accepted (table, SHARED, 9, 0); /* b's */
    assert_int_equal (tie (table, 9, "b"), 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_nobody_gone (table);

    hws_connections_closed (table, SHARED, 9);

    assert_gone (table, "b");
    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void an_accepted_descriptor_ends_what_was_tied_to_it (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_accepted (table, SHARED, 9, 0);

    assert_gone (table, "a");
    assert_int_equal (hws_connections_count (table), 1);
}

static void a_peer_that_says_hello_twice_is_reported_once (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_closed (table, SHARED, 9);

    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void a_forgotten_peer_is_not_reported (void **state)
{
    hws_connections_t *const table = *state;
    const hws_address_t a = address_of ("a");
    hws_connections_accepted (table, SHARED, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_forget (table, &a);
    hws_connections_forget (table, &a);
    hws_connections_closed (table, SHARED, 9);

    assert_nobody_gone (table);
}

static void the_same_routing_id_on_another_front_is_another_peer (void **state)
{
    hws_connections_t *const table = *state;
    hws_address_t other = address_of ("a");
    other.front = 1;
    hws_connections_accepted (table, SHARED, 9, 0);
    hws_connections_accepted (table, 1, 10, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (hws_connections_tie (table, 10, &other), 0);

    hws_connections_closed (table, SHARED, 9);

    hws_address_t gone;
    assert_true (hws_connections_pop_gone (table, &gone));
    assert_int_equal (gone.front, 0);
    assert_nobody_gone (table);
}

static void ties_beyond_the_limit_are_refused_until_one_ends (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 9, "b"), 0);
    assert_int_equal (tie (table, 9, "c"), 0);

    assert_int_equal (tie (table, 9, "d"), HWS_ELIMIT);

    const hws_address_t a = address_of ("a");
    hws_connections_forget (table, &a);
    assert_int_equal (tie (table, 9, "d"), 0);
}

static void a_descriptor_that_cannot_be_has_no_tie (void **state)
{
    hws_connections_t *const table = *state;

    hws_connections_closed (table, SHARED, -1);

    assert_int_equal (tie (table, -1, "a"), HWS_EINVALID);
    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 0);
}

/*  ---- Several fronts ---- */

static int tie_at (hws_connections_t *table, uint32_t front, int descriptor, const char *id)
{
    hws_address_t address = address_of (id);
    address.front = front;
    return hws_connections_tie (table, descriptor, &address);
}

static void a_descriptor_is_handed_from_front_to_front_in_whatever_order_it_is_told (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 1, 9, 0);
    assert_int_equal (tie_at (table, 1, 9, "a"), 0);

    hws_connections_accepted (table, 2, 9, 0); /* the end of a's is told later */
    assert_int_equal (tie_at (table, 2, 9, "b"), 0);
    hws_connections_closed (table, 1, 9);

    assert_gone (table, "a");
    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 1);
    hws_connections_closed (table, 2, 9);
    assert_gone (table, "b");
}

static void what_another_front_tells_late_of_a_descriptor_ends_nobody (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 1, 9, 0); /* a's first, then b's, then a's second */
    hws_connections_closed (table, 1, 9);
    hws_connections_accepted (table, 1, 9, 0);
    assert_int_equal (tie_at (table, 1, 9, "a"), 0);

    hws_connections_accepted (table, 2, 9, 0); /* b's, told only now */
    hws_connections_closed (table, 2, 9);

    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 1);
}

static void a_hello_on_another_front_than_its_descriptor_is_gone_at_once (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 1, 9, 0);
    hws_connections_closed (table, 1, 9);
    hws_connections_accepted (table, 2, 9, 0);

    assert_int_equal (tie_at (table, 1, 9, "a"), 0);

    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void a_closed_front_takes_all_its_connections_along (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 1, 9, 0);
    hws_connections_accepted (table, 2, 10, 0);
    hws_connections_accepted (table, 1, 11, 0);
    assert_int_equal (tie_at (table, 1, 9, "a"), 0);
    assert_int_equal (tie_at (table, 2, 10, "b"), 0);

    hws_connections_drop (table, 1);

    assert_gone (table, "a");
    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 1);
}

static void all_fronts_share_one_limit_of_connections (void **state)
{
    hws_connections_t *const table = *state;
    for (int i = 0; i < CONNECTION_LIMIT; i++) {
        assert_int_equal (hws_connections_accepted (table, (uint32_t) i, 9 + i, 0), 0);
    }

    assert_int_equal (hws_connections_accepted (table, 7, 20, 0), HWS_ELIMIT);
    assert_int_equal (hws_connections_refused (table), 1);
    hws_connections_closed (table, 7, 20);
    assert_int_equal (hws_connections_accepted (table, SHARED, 20, 0), HWS_ELIMIT);
    hws_connections_closed (table, SHARED, 20);
    hws_connections_closed (table, 0, 9);

    assert_int_equal (hws_connections_accepted (table, 7, 20, 0), 0);
    hws_connections_limit (table, 0);
    assert_int_equal (hws_connections_accepted (table, 7, 21, 0), HWS_ELIMIT);
}

/*  ---- Silence ---- */

static void a_connection_without_a_hello_is_named_once_when_its_time_is_over (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 1000);
    hws_connections_accepted (table, SHARED, 10, 1001);
    assert_int_equal (tie (table, 10, "a"), 0);
    assert_int_equal (hws_connections_silent_at (table), 1000 + HWS_HELLO_MS);

    assert_int_equal (hws_connections_pop_silent (table, 999 + HWS_HELLO_MS), -1);
    assert_int_equal (hws_connections_pop_silent (table, 1000 + HWS_HELLO_MS), 9);

    assert_int_equal (hws_connections_pop_silent (table, HWS_NEVER - 1), -1);
    assert_int_equal (hws_connections_silent (table), 1);
    assert_int_equal (hws_connections_silent_at (table), HWS_NEVER);
}

static void a_reused_descriptor_has_the_whole_time_for_its_hello (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, SHARED, 9, 1000);
    hws_connections_closed (table, SHARED, 9);
    assert_int_equal (hws_connections_silent_at (table), HWS_NEVER);

    hws_connections_accepted (table, SHARED, 9, 2000);

    assert_int_equal (hws_connections_silent_at (table), 2000 + HWS_HELLO_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, make_table, free_table)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_closed_descriptor_reports_the_peer_that_said_hello_on_it),
        TEST (a_closed_descriptor_without_a_hello_reports_nobody),
        TEST (a_hello_read_after_its_connection_closed_is_gone_at_once),
        TEST (a_late_hello_does_not_take_a_reused_descriptor_from_its_new_peer),
        TEST (an_accepted_descriptor_ends_what_was_tied_to_it),
        TEST (a_peer_that_says_hello_twice_is_reported_once),
        TEST (a_forgotten_peer_is_not_reported),
        TEST (the_same_routing_id_on_another_front_is_another_peer),
        TEST (ties_beyond_the_limit_are_refused_until_one_ends),
        TEST (a_connection_without_a_hello_is_named_once_when_its_time_is_over),
        TEST (a_reused_descriptor_has_the_whole_time_for_its_hello),
        TEST (a_descriptor_that_cannot_be_has_no_tie),
        TEST (a_descriptor_is_handed_from_front_to_front_in_whatever_order_it_is_told),
        TEST (what_another_front_tells_late_of_a_descriptor_ends_nobody),
        TEST (a_hello_on_another_front_than_its_descriptor_is_gone_at_once),
        TEST (a_closed_front_takes_all_its_connections_along),
        TEST (all_fronts_share_one_limit_of_connections),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
