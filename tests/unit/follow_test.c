/*  From the endpoint that the broker tells to the one that a client connects to.  */
#include "client/follow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void expect (const char *told, const char *reached, const char *expected)
{
    hws_endpoint_parts_t from, parts;
    hws_endpoint_t endpoint;
    assert_int_equal (
        hws_endpoint_parse (hws_bytes_of_text (reached), HWS_ENDPOINT_CONNECT, &from, NULL, 0), 0);
    assert_int_equal (hws_follow (told, &from, &parts, endpoint), 0);
    assert_string_equal (endpoint, expected);

    /* It can be connected to, and means the same.  */
    hws_endpoint_parts_t again;
    assert_int_equal (
        hws_endpoint_parse (hws_bytes_of_text (endpoint), HWS_ENDPOINT_CONNECT, &again, NULL, 0),
        0);
    assert_memory_equal (&parts, &again, sizeof parts);
}

static void endpoint_is_followed_as_it_is_told (void **state)
{
    (void) state;
    expect ("tcp://127.0.0.1:4711", "tcp://localhost:7733", "tcp://127.0.0.1:4711");
    expect ("tcp://[::1]:4711", "tcp://localhost:7733", "tcp://[::1]:4711");
    expect ("tcp://[fe80::1%eth0]:4711", "tcp://a:7733", "tcp://[fe80::1%eth0]:4711");
    expect ("tcp://broker.example:4711", "tcp://a:7733", "tcp://broker.example:4711");
    expect ("ipc:///run/hawser.7", "ipc:///run/hawser", "ipc:///run/hawser.7");
}

static void every_address_is_the_one_by_which_the_broker_was_reached (void **state)
{
    (void) state;
    static const char *const any[] = {"tcp://0.0.0.0:4711", "tcp://*:4711", "tcp://[::]:4711"};
    for (size_t i = 0; i < 3; i++) {
        expect (any[i], "tcp://broker.example:7733", "tcp://broker.example:4711");
        expect (any[i], "tcp://10.0.0.1:7733", "tcp://10.0.0.1:4711");
        expect (any[i], "tcp://[fe80::1%eth0]:7733", "tcp://[fe80::1%eth0]:4711");
        expect (any[i], "ipc:///run/hawser", "tcp://localhost:4711");
    }
}

static void what_nobody_can_connect_to_is_refused (void **state)
{
    (void) state;
    static const char *const told[] = {"",          "tcp://",        "tcp://127.0.0.1:0",
                                       "tcp://*:*", "udp://a:1",     "inproc://a",
                                       "ipc://",    "tcp://a:99999", "tcp://127.0.0.1"};
    hws_endpoint_parts_t from, parts;
    hws_endpoint_t endpoint;
    hws_endpoint_parse (hws_bytes_of_text ("tcp://a:1"), HWS_ENDPOINT_CONNECT, &from, NULL, 0);
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        assert_int_equal (hws_follow (told[i], &from, &parts, endpoint), HWS_EPROTOCOL);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (endpoint_is_followed_as_it_is_told),
        cmocka_unit_test (every_address_is_the_one_by_which_the_broker_was_reached),
        cmocka_unit_test (what_nobody_can_connect_to_is_refused),
    };
    return cmocka_run_group_tests_name ("follow", tests, NULL, NULL);
}
