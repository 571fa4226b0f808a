/*  Endpoints: what is taken apart and how, and what is refused with which sentence.  */
#include "conf/endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

static int parse (const char *text, hws_endpoint_use_t use, hws_endpoint_parts_t *parts, char *why,
                  size_t size)
{
    /*  A copy of the exact size, so that the sanitizers see a read beyond it.  */
    const size_t length = strlen (text);
    uint8_t *const copy = malloc (length + (length == 0));
    memcpy (copy, text, length);
    const int rc = hws_endpoint_parse (hws_bytes (copy, length), use, parts, why, size);
    free (copy);
    return rc;
}

static void assert_tcp (const char *text, hws_endpoint_use_t use, const char *host, uint16_t port,
                        bool is_ipv6, bool is_local)
{
    hws_endpoint_parts_t parts;
    char why[256] = "";
    if (parse (text, use, &parts, why, sizeof why) != 0) {
        fail_msg ("%s: %s", text, why);
    }
    assert_int_equal (parts.kind, HWS_ENDPOINT_TCP);
    assert_string_equal (parts.host, host);
    assert_int_equal (parts.port, port);
    assert_int_equal (parts.is_ipv6, is_ipv6);
    assert_int_equal (parts.is_local, is_local);
}

static void assert_refused (const char *text, hws_endpoint_use_t use, const char *expected)
{
    hws_endpoint_parts_t parts;
    char why[512] = "";
    const int rc = parse (text, use, &parts, why, sizeof why);
    if (rc != HWS_EINVALID || strcmp (why, expected) != 0) {
        fail_msg ("%s: %d, \"%s\" instead of \"%s\"", text, rc, why, expected);
    }
}

static void tcp_addresses_are_taken_apart (void **state)
{
    (void) state;
    assert_tcp ("tcp://127.0.0.1:7733", HWS_ENDPOINT_CONNECT, "127.0.0.1", 7733, false, true);
    assert_tcp ("tcp://127.255.0.9:1", HWS_ENDPOINT_CONNECT, "127.255.0.9", 1, false, true);
    assert_tcp ("tcp://10.0.0.1:65535", HWS_ENDPOINT_CONNECT, "10.0.0.1", 65535, false, false);
    assert_tcp ("tcp://0.0.0.0:1", HWS_ENDPOINT_LISTEN, "0.0.0.0", 1, false, false);
    assert_tcp ("tcp://broker.example-1.org:80", HWS_ENDPOINT_CONNECT, "broker.example-1.org", 80,
                false, false);
    assert_tcp ("tcp://localhost:80", HWS_ENDPOINT_CONNECT, "localhost", 80, false, true);
    assert_tcp ("tcp://127.example.org:80", HWS_ENDPOINT_CONNECT, "127.example.org", 80, false,
                false);
    assert_tcp ("tcp://eth0:80", HWS_ENDPOINT_LISTEN, "eth0", 80, false, false);
}

static void ipv6_addresses_stand_in_brackets_and_may_have_a_zone (void **state)
{
    (void) state;
    assert_tcp ("tcp://[::1]:7733", HWS_ENDPOINT_CONNECT, "::1", 7733, true, true);
    assert_tcp ("tcp://[::]:7733", HWS_ENDPOINT_LISTEN, "::", 7733, true, false);
    assert_tcp ("tcp://[fe80::1%eth0]:7733", HWS_ENDPOINT_CONNECT, "fe80::1%eth0", 7733, true,
                false);
    assert_tcp ("tcp://[2001:db8:0:1:2:3:4:5]:1", HWS_ENDPOINT_CONNECT, "2001:db8:0:1:2:3:4:5", 1,
                true, false);
    assert_tcp ("tcp://[::ffff:10.0.0.1]:1", HWS_ENDPOINT_CONNECT, "::ffff:10.0.0.1", 1, true,
                false);
    assert_tcp ("tcp://[1::]:1", HWS_ENDPOINT_CONNECT, "1::", 1, true, false);
    assert_tcp ("tcp://[1:2:3:4:5:6:7::]:1", HWS_ENDPOINT_CONNECT, "1:2:3:4:5:6:7::", 1, true,
                false);
}

static void a_listener_may_take_any_host_and_any_port (void **state)
{
    (void) state;
    assert_tcp ("tcp://*:7733", HWS_ENDPOINT_LISTEN, "*", 7733, false, false);
    assert_tcp ("tcp://127.0.0.1:*", HWS_ENDPOINT_LISTEN, "127.0.0.1", 0, false, true);
    assert_tcp ("tcp://127.0.0.1:0", HWS_ENDPOINT_LISTEN, "127.0.0.1", 0, false, true);
    assert_refused ("tcp://*:7733", HWS_ENDPOINT_CONNECT, "\"*\" is no host to connect to");
    assert_refused ("tcp://127.0.0.1:*", HWS_ENDPOINT_CONNECT, "the port must be from 1 to 65535");
    assert_refused ("tcp://127.0.0.1:0", HWS_ENDPOINT_CONNECT, "the port must be from 1 to 65535");
}

static void ports_are_held_to_their_range (void **state)
{
    (void) state;
    static const char *const bad[] = {
        "tcp://127.0.0.1:65536", "tcp://127.0.0.1:99999",  "tcp://127.0.0.1:-5",
        "tcp://127.0.0.1:7000x", "tcp://127.0.0.1:",       "tcp://127.0.0.1: 1",
        "tcp://127.0.0.1:+1",    "tcp://127.0.0.1:000001", "tcp://127.0.0.1:1/",
    };
    for (size_t i = 0; i < COUNT (bad); i++) {
        assert_refused (bad[i], HWS_ENDPOINT_LISTEN, "the port must be from 0 to 65535, or *");
    }
}

static void what_is_no_host_is_refused (void **state)
{
    (void) state;
    const hws_endpoint_use_t use = HWS_ENDPOINT_CONNECT;
    assert_refused ("tcp://", use, "the port is missing: tcp://HOST:PORT");
    assert_refused ("tcp://host", use, "the port is missing: tcp://HOST:PORT");
    assert_refused ("tcp://[::1]", use, "the port is missing: tcp://HOST:PORT");
    assert_refused ("tcp://:1", use, "the host is missing: tcp://HOST:PORT");
    assert_refused ("tcp://1.2.3:1", use, "\"1.2.3\" is not a host");
    assert_refused ("tcp://1.2.3.256:1", use, "\"1.2.3.256\" is not a host");
    assert_refused ("tcp://1.2.3.04:1", use, "\"1.2.3.04\" is not a host");
    assert_refused ("tcp://1.2.3.4.:1", use, "\"1.2.3.4.\" is not a host");
    assert_refused ("tcp://a b:1", use, "\"a b\" is not a host");
    assert_refused ("tcp://%s%n:1", use, "\"%s%n\" is not a host");
    assert_refused ("tcp://a;b:1", use, "\"a;b\" is not a host");
    assert_refused ("tcp://-a:1", use, "\"-a\" is not a host");
    assert_refused ("tcp://::1:1", use, "an IPv6 address must stand in brackets");
    assert_refused ("tcp://[::1:1", use, "the bracket of the IPv6 address is not closed");
    assert_refused ("tcp://[:1", use, "the bracket of the IPv6 address is not closed");
    assert_refused ("tcp://[]:1", use, "\"\" is not an IPv6 address");
    assert_refused ("tcp://[fe80::1%]:1", use, "the zone of the IPv6 address is not an interface");
    assert_refused ("tcp://[fe80::1%a%b]:1", use,
                    "the zone of the IPv6 address is not an interface");
}

static void what_is_no_ipv6_address_is_refused (void **state)
{
    (void) state;
    static const char *const bad[] = {
        ":",           "1",           "1:2:3:4:5:6:7",    "1:2:3:4:5:6:7:8:9",
        "::1::",       ":::",         "12345::",          "g::",
        ":1",          "1:",          "1:2:3:4::5:6:7:8", "1.2.3.4",
        "::1.2.3",     "::1.2.3.4:5", "1.2.3.4::",        "127.0.0.1::1",
        "::1.2.3.4.5",
    };
    for (size_t i = 0; i < COUNT (bad); i++) {
        char text[64], why[96];
        snprintf (text, sizeof text, "tcp://[%s]:1", bad[i]);
        snprintf (why, sizeof why, "\"%s\" is not an IPv6 address", bad[i]);
        assert_refused (text, HWS_ENDPOINT_CONNECT, why);
    }
}

static void a_listener_needs_an_address_or_an_interface (void **state)
{
    (void) state;
    static const char why[] = "a listener needs an address such as 127.0.0.1, an interface or *";
    assert_refused ("tcp://localhost:1", HWS_ENDPOINT_LISTEN, why);
    assert_refused ("tcp://broker.example.org:1", HWS_ENDPOINT_LISTEN, why);
}

static void ipc_paths_are_taken_up_to_their_limit (void **state)
{
    (void) state;
    char text[HWS_ENDPOINT_PATH_SIZE_MAX + 8] = "ipc://";
    memset (text + 6, 'p', HWS_ENDPOINT_PATH_SIZE_MAX);
    text[6 + HWS_ENDPOINT_PATH_SIZE_MAX] = '\0';
    hws_endpoint_parts_t parts;

    assert_int_equal (parse (text, HWS_ENDPOINT_LISTEN, &parts, NULL, 0), 0);

    assert_int_equal (parts.kind, HWS_ENDPOINT_IPC);
    assert_true (parts.is_local);
    assert_string_equal (parts.path, text + 6);
    strcat (text, "p");
    assert_refused (text, HWS_ENDPOINT_LISTEN, "the path has more than 107 bytes");
}

static void what_is_no_ipc_path_is_refused (void **state)
{
    (void) state;
    const hws_endpoint_use_t use = HWS_ENDPOINT_LISTEN;
    assert_refused ("ipc://", use, "the path is missing: ipc://PATH");
    assert_refused ("ipc://*", use, "the path must be one of the file system");
    assert_refused ("ipc://@name", use, "the path must be one of the file system");
    assert_refused ("ipc:///run/", use, "the path must not end with a slash");
    assert_refused ("ipc://a\nb", use, "the endpoint has control characters or is not UTF-8");
    assert_refused ("ipc://\xff", use, "the endpoint has control characters or is not UTF-8");
}

static void other_transports_are_refused (void **state)
{
    (void) state;
    static const char *const bad[] = {"",
                                      "tcp",
                                      "tcp:/",
                                      "inproc://a",
                                      "udp://1.2.3.4:5",
                                      "127.0.0.1:7733",
                                      "@tcp://127.0.0.1:1",
                                      "TCP://127.0.0.1:1"};
    for (size_t i = 0; i < COUNT (bad); i++) {
        assert_refused (bad[i], HWS_ENDPOINT_CONNECT, "an endpoint begins with tcp:// or ipc://");
    }
}

static void lengths_are_limited (void **state)
{
    (void) state;
    char text[300] = "tcp://";
    memset (text + 6, 'h', 247);
    strcpy (text + 253, ":1");
    hws_endpoint_parts_t parts;

    assert_int_equal (parse (text, HWS_ENDPOINT_CONNECT, &parts, NULL, 0), 0);

    strcpy (text + 253, ":10");
    assert_refused (text, HWS_ENDPOINT_CONNECT, "the endpoint has more than 255 bytes");
}

static void a_short_room_for_the_sentence_is_respected (void **state)
{
    (void) state;
    hws_endpoint_parts_t parts;
    char why[4] = "###";

    assert_int_equal (parse ("x", HWS_ENDPOINT_CONNECT, &parts, why, 3), HWS_EINVALID);

    assert_string_equal (why, "an");
    assert_int_equal (parse ("x", HWS_ENDPOINT_CONNECT, &parts, why, 0), HWS_EINVALID);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (tcp_addresses_are_taken_apart),
        cmocka_unit_test (ipv6_addresses_stand_in_brackets_and_may_have_a_zone),
        cmocka_unit_test (a_listener_may_take_any_host_and_any_port),
        cmocka_unit_test (ports_are_held_to_their_range),
        cmocka_unit_test (what_is_no_host_is_refused),
        cmocka_unit_test (what_is_no_ipv6_address_is_refused),
        cmocka_unit_test (a_listener_needs_an_address_or_an_interface),
        cmocka_unit_test (ipc_paths_are_taken_up_to_their_limit),
        cmocka_unit_test (what_is_no_ipc_path_is_refused),
        cmocka_unit_test (other_transports_are_refused),
        cmocka_unit_test (lengths_are_limited),
        cmocka_unit_test (a_short_room_for_the_sentence_is_respected),
    };
    return cmocka_run_group_tests_name ("endpoint", tests, NULL, NULL);
}
