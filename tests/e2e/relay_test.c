/*  The relay that process tests spoil connections with, tried on plain sockets: what it is told
 *  to do happens, and nothing else.
 */
#include "tests/support/relay.h"

#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LONG_MS = 20000, QUIET_MS = 100 };

/*  A listener behind a relay, and the two ends of a connection through it.  */
static struct {
    int listener;
    relay_t *relay;
    int near;
    int far;
} s_line;

static int connect_to (const char *endpoint)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    unsigned port;

    assert_int_equal (sscanf (endpoint, "tcp://127.0.0.1:%u", &port), 1);
    address.sin_port = htons ((uint16_t) port);
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true (fd >= 0);
    if (connect (fd, (const struct sockaddr *) &address, sizeof address) != 0) {
        assert_int_equal (errno, ECONNREFUSED);
        close (fd);
        return -1;
    }
    return fd;
}

static void close_ends (void)
{
    close (s_line.near);
    close (s_line.far);
}

static void open_ends (void)
{
    s_line.near = connect_to (relay_endpoint (s_line.relay));
    s_line.far = accept4 (s_line.listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true (s_line.near >= 0 && s_line.far >= 0);
}

static int setup (void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    char endpoint[64];

    (void) state;
    assert_int_equal (process_setup (), 0);
    s_line.listener = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal (bind (s_line.listener, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal (listen (s_line.listener, 8), 0);
    assert_int_equal (getsockname (s_line.listener, (struct sockaddr *) &address, &size), 0);
    snprintf (endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", (unsigned) ntohs (address.sin_port));
    s_line.relay = relay_start (endpoint);
    open_ends ();
    return 0;
}

static int teardown (void **state)
{
    (void) state;
    close_ends ();
    relay_stop (&s_line.relay);
    close (s_line.listener);
    return process_teardown ();
}

static void say (int fd, const char *text)
{
    assert_int_equal (send (fd, text, strlen (text), MSG_NOSIGNAL), strlen (text));
}

static void expect (int fd, const char *text)
{
    char got[64] = "";
    struct pollfd polled = {fd, POLLIN, 0};

    assert_int_equal (poll (&polled, 1, LONG_MS), 1);
    assert_int_equal (recv (fd, got, strlen (text), MSG_WAITALL), strlen (text));
    assert_string_equal (got, text);
}

/*  Reads to the end; returns what ended it: 0 or an errno.  */
static int read_end (int fd)
{
    char bytes[4096];
    ssize_t size;
    struct pollfd polled = {fd, POLLIN, 0};

    do {
        assert_int_equal (poll (&polled, 1, LONG_MS), 1);
        size = recv (fd, bytes, sizeof bytes, 0);
    } while (size > 0);
    return size == 0 ? 0 : errno;
}

static void expect_silence (int fd)
{
    struct pollfd polled = {fd, POLLIN, 0};

    assert_int_equal (poll (&polled, 1, QUIET_MS), 0);
}

/*  ---- Tests ---- */

static void bytes_pass_both_ways_and_are_counted (void **state)
{
    (void) state;
    say (s_line.near, "there");
    expect (s_line.far, "there");
    say (s_line.far, "back again");
    expect (s_line.near, "back again");

    assert_int_equal (relay_carried (s_line.relay, RELAY_UP), 5);
    assert_int_equal (relay_carried (s_line.relay, RELAY_DOWN), 10);
    assert_int_equal (relay_taken (s_line.relay), 1);
}

static void an_end_is_passed_on_behind_what_was_said (void **state)
{
    (void) state;
    relay_delay (s_line.relay, RELAY_UP, 50);
    say (s_line.near, "last");
    shutdown (s_line.near, SHUT_WR);

    expect (s_line.far, "last");
    assert_int_equal (read_end (s_line.far), 0);
    say (s_line.far, "still");
    expect (s_line.near, "still");
}

static void delayed_bytes_come_later_and_in_order (void **state)
{
    (void) state;
    relay_delay (s_line.relay, RELAY_UP, 200);
    const int64_t said_at = process_now ();
    say (s_line.near, "one");
    say (s_line.far, "at once");
    expect (s_line.near, "at once");
    say (s_line.near, "two");

    expect (s_line.far, "onetwo");

    assert_true (process_now () - said_at >= 200);
}

static void a_held_direction_stands_still_until_it_is_released (void **state)
{
    (void) state;
    relay_hold (s_line.relay, RELAY_DOWN, true);
    say (s_line.far, "held");
    say (s_line.near, "free");
    expect (s_line.far, "free");
    expect_silence (s_line.near);

    relay_hold (s_line.relay, RELAY_DOWN, false);

    expect (s_line.near, "held");
}

/*  The relay's own room, and the buffers of four sockets, which the kernel doubles.  */
static void a_held_direction_keeps_a_bounded_amount (void **state)
{
    static char bytes[65536];
    const int size = 256 * 1024;
    uint64_t taken = 0;
    ssize_t sent;

    (void) state;
    setsockopt (s_line.near, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
    relay_hold (s_line.relay, RELAY_UP, true);
    struct pollfd polled = {s_line.near, POLLOUT, 0};
    while (poll (&polled, 1, QUIET_MS) == 1 &&
           (sent = send (s_line.near, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0) {
        taken += (uint64_t) sent;
    }

    assert_true (taken < 4u << 20);
    relay_hold (s_line.relay, RELAY_UP, false);
    for (ssize_t got; taken > 0; taken -= (uint64_t) got) {
        got = recv (s_line.far, bytes, sizeof bytes, 0);
        assert_true (got > 0);
    }
}

static void swallowed_bytes_are_taken_and_never_come (void **state)
{
    (void) state;
    relay_swallow (s_line.relay, RELAY_UP, true);
    say (s_line.near, "lost");
    expect_silence (s_line.far);
    relay_swallow (s_line.relay, RELAY_UP, false);

    say (s_line.near, "kept");

    expect (s_line.far, "kept");
}

static void a_cut_ends_both_ends_as_it_was_told (void **state)
{
    (void) state;
    relay_cut (s_line.relay, RELAY_BOTH, RELAY_FIN);
    assert_int_equal (read_end (s_line.near), 0);
    assert_int_equal (read_end (s_line.far), 0);
    close_ends ();
    open_ends ();
    say (s_line.near, "x");
    expect (s_line.far, "x");

    relay_cut (s_line.relay, RELAY_BOTH, RELAY_RESET);

    assert_int_equal (read_end (s_line.near), ECONNRESET);
    assert_int_equal (read_end (s_line.far), ECONNRESET);
    assert_int_equal (relay_present (s_line.relay), 0);
}

static void a_half_open_link_takes_everything_and_says_nothing (void **state)
{
    (void) state;
    say (s_line.near, "x");
    expect (s_line.far, "x");

    relay_cut (s_line.relay, RELAY_UP, RELAY_RESET);

    assert_int_equal (read_end (s_line.far), ECONNRESET);
    say (s_line.near, "into the void");
    expect_silence (s_line.near);
    assert_int_equal (relay_present (s_line.relay), 1);
}

static void a_link_is_cut_after_so_many_bytes (void **state)
{
    char bytes[4096] = "";
    size_t got = 0;
    ssize_t size;

    (void) state;
    relay_cut_after (s_line.relay, 1000, RELAY_FIN);
    assert_int_equal (send (s_line.near, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    while ((size = recv (s_line.far, bytes, sizeof bytes, 0)) > 0) {
        got += (size_t) size;
    }

    assert_int_equal (got, 1000);
    assert_int_equal (relay_carried (s_line.relay, RELAY_UP), 1000);
}

static void a_refused_connection_is_taken_later_at_the_same_port (void **state)
{
    (void) state;
    relay_refuse (s_line.relay, true);
    assert_int_equal (connect_to (relay_endpoint (s_line.relay)), -1);
    say (s_line.near, "here already");
    expect (s_line.far, "here already");

    relay_refuse (s_line.relay, false);

    close_ends ();
    open_ends ();
    say (s_line.near, "here again");
    expect (s_line.far, "here again");
}

static void a_target_that_refuses_resets_who_connects (void **state)
{
    (void) state;
    close (s_line.listener);
    const int fd = connect_to (relay_endpoint (s_line.relay));

    assert_int_equal (read_end (fd), ECONNRESET);

    close (fd);
    s_line.listener = dup (0);
}

#define LINED(test) cmocka_unit_test_setup_teardown (test, setup, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        LINED (bytes_pass_both_ways_and_are_counted),
        LINED (an_end_is_passed_on_behind_what_was_said),
        LINED (delayed_bytes_come_later_and_in_order),
        LINED (a_held_direction_stands_still_until_it_is_released),
        LINED (a_held_direction_keeps_a_bounded_amount),
        LINED (swallowed_bytes_are_taken_and_never_come),
        LINED (a_cut_ends_both_ends_as_it_was_told),
        LINED (a_half_open_link_takes_everything_and_says_nothing),
        LINED (a_link_is_cut_after_so_many_bytes),
        LINED (a_refused_connection_is_taken_later_at_the_same_port),
        LINED (a_target_that_refuses_resets_who_connects),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
