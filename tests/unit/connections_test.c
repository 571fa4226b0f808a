#include "broker/connections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#define TIE_LIMIT 3

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
    return hws_connections_new ((hws_connections_t **) state, 16, TIE_LIMIT, key);
}

static int free_table (void **state)
{
    hws_connections_destroy ((hws_connections_t **) state);
    return 0;
}

static void a_closed_descriptor_reports_the_peer_that_said_hello_on_it (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);
    hws_connections_accepted (table, 10, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 10, "b"), 0);

    hws_connections_closed (table, 9);

    assert_gone (table, "a");
    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 1);
}

static void a_closed_descriptor_without_a_hello_reports_nobody (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);

    hws_connections_closed (table, 9);

    assert_nobody_gone (table);
    assert_int_equal (hws_connections_count (table), 0);
}

static void a_hello_read_after_its_connection_closed_is_gone_at_once (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);
    hws_connections_closed (table, 9);

    assert_int_equal (tie (table, 9, "a"), 0);

    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void a_late_hello_does_not_take_a_reused_descriptor_from_its_new_peer (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0); /* a's */
    hws_connections_closed (table, 9);
    hws_connections_accepted (table, 9, 0); /* b's */
    assert_int_equal (tie (table, 9, "b"), 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_nobody_gone (table);

    hws_connections_closed (table, 9);

    assert_gone (table, "b");
    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void an_accepted_descriptor_ends_what_was_tied_to_it (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_accepted (table, 9, 0);

    assert_gone (table, "a");
    assert_int_equal (hws_connections_count (table), 1);
}

static void a_peer_that_says_hello_twice_is_reported_once (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_closed (table, 9);

    assert_gone (table, "a");
    assert_nobody_gone (table);
}

static void a_forgotten_peer_is_not_reported (void **state)
{
    hws_connections_t *const table = *state;
    const hws_address_t a = address_of ("a");
    hws_connections_accepted (table, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);

    hws_connections_forget (table, &a);
    hws_connections_forget (table, &a);
    hws_connections_closed (table, 9);

    assert_nobody_gone (table);
}

static void the_same_routing_id_on_another_front_is_another_peer (void **state)
{
    hws_connections_t *const table = *state;
    hws_address_t other = address_of ("a");
    other.front = 1;
    hws_connections_accepted (table, 9, 0);
    hws_connections_accepted (table, 10, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (hws_connections_tie (table, 10, &other), 0);

    hws_connections_closed (table, 9);

    hws_address_t gone;
    assert_true (hws_connections_pop_gone (table, &gone));
    assert_int_equal (gone.front, 0);
    assert_nobody_gone (table);
}

static void ties_beyond_the_limit_are_refused_until_one_ends (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 0);
    assert_int_equal (tie (table, 9, "a"), 0);
    assert_int_equal (tie (table, 9, "b"), 0);
    assert_int_equal (tie (table, 9, "c"), 0);

    assert_int_equal (tie (table, 9, "d"), HWS_ELIMIT);

    const hws_address_t a = address_of ("a");
    hws_connections_forget (table, &a);
    assert_int_equal (tie (table, 9, "d"), 0);
}

static void descriptors_that_cannot_be_are_refused (void **state)
{
    hws_connections_t *const table = *state;

    hws_connections_accepted (table, -1, 0);
    hws_connections_accepted (table, 16, 0);
    hws_connections_closed (table, 1 << 30);

    assert_int_equal (tie (table, -1, "a"), HWS_EINVALID);
    assert_int_equal (tie (table, 16, "a"), HWS_EINVALID);
    assert_int_equal (hws_connections_count (table), 0);
}

static void a_connection_without_a_hello_is_named_once_when_its_time_is_over (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 1000);
    hws_connections_accepted (table, 10, 1001);
    assert_int_equal (tie (table, 10, "a"), 0);
    assert_int_equal (hws_connections_silent_at (table), 1000 + HWS_HELLO_MS);

    assert_int_equal (hws_connections_pop_silent (table, 999 + HWS_HELLO_MS), -1);
    assert_int_equal (hws_connections_pop_silent (table, 1000 + HWS_HELLO_MS), 9);

    assert_int_equal (hws_connections_pop_silent (table, HWS_NEVER - 1), -1);
    assert_int_equal (hws_connections_silent_at (table), HWS_NEVER);
}

static void a_reused_descriptor_has_the_whole_time_for_its_hello (void **state)
{
    hws_connections_t *const table = *state;
    hws_connections_accepted (table, 9, 1000);
    hws_connections_closed (table, 9);
    assert_int_equal (hws_connections_silent_at (table), HWS_NEVER);

    hws_connections_accepted (table, 9, 2000);

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
        TEST (descriptors_that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
