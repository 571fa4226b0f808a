/*  The set of dedicated fronts, with real sockets and no broker around it.
 */
#include "broker/fronts_io.h"
#include "broker/monitor_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define WAIT_MS    20000
#define FRONTS_MAX 3

static struct {
    void *context;
    hws_connections_t *connections;
    hws_front_t *shared;
    hws_fronts_t *fronts;
    hws_log_t log;
    void *peers[FRONTS_MAX]; /* closed at the end */
    size_t peer_count;
} s_set;

static int begin (void **state)
{
    const hws_hash_key_t key = {{1, 2}};
    hws_fronts_options_t options = {
        .front = {.message_bytes = 65536, .send_queue = 1000000},
        .room = {.descriptors = 100, .connections = 90, .fronts = FRONTS_MAX},
        .hash_key = key,
        .log = &s_set.log,
    };
    hws_front_fault_t fault;

    (void) state;
    s_set.peer_count = 0;
    s_set.log = (hws_log_t){.descriptor = 2, .level = HWS_LOG_ERROR};
    options.context = s_set.context = zmq_ctx_new ();
    assert_int_equal (hws_connections_new (&s_set.connections, 100, key), 0);
    options.front.connections = s_set.connections;
    assert_int_equal (hws_front_new (&s_set.shared, s_set.context, &options.front), 0);
    assert_int_equal (hws_front_bind (s_set.shared, "tcp://127.0.0.1:0", fault), 0);
    options.shared = s_set.shared;
    assert_int_equal (hws_fronts_new (&s_set.fronts, &options), 0);
    return 0;
}

static int end (void **state)
{
    (void) state;
    while (s_set.peer_count > 0) {
        zmq_close (s_set.peers[--s_set.peer_count]);
    }
    hws_fronts_destroy (&s_set.fronts, 0);
    hws_front_destroy (&s_set.shared, 0);
    hws_connections_destroy (&s_set.connections);
    return zmq_ctx_term (s_set.context);
}

static hws_front_t *bind_front (uint32_t number)
{
    hws_front_fault_t fault;
    if (hws_fronts_bind (s_set.fronts, number, fault) != 0) {
        fail_msg ("%s", fault);
    }
    return hws_fronts_find (s_set.fronts, number);
}

/*  ---- A peer ---- */

static void *connect_peer (const hws_front_t *front)
{
    const int linger_ms = 0;
    void *const socket = zmq_socket (s_set.context, ZMQ_DEALER);
    assert_non_null (socket);
    zmq_setsockopt (socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    s_set.peers[s_set.peer_count++] = socket;
    assert_int_equal (zmq_connect (socket, hws_front_endpoint (front, 0)), 0);
    return socket;
}

static void leave (void *peer)
{
    for (size_t i = 0; i < s_set.peer_count; i++) {
        if (s_set.peers[i] == peer) {
            s_set.peers[i] = s_set.peers[--s_set.peer_count];
        }
    }
    zmq_close (peer);
}

static void say (void *peer)
{
    assert_int_equal (zmq_send (peer, "PING", 4, ZMQ_SNDMORE), 4);
    assert_int_equal (zmq_send (peer, "{}", 2, 0), 2);
}

/*  Waits until something happened at one of the front's sockets, without telling the set.  */
static void wait_for (int descriptor)
{
    struct pollfd item = {.fd = descriptor, .events = POLLIN};
    assert_int_equal (poll (&item, 1, WAIT_MS), 1);
}

static bool is_signalled (hws_front_t *front)
{
    struct pollfd item = {.fd = hws_front_descriptor (front), .events = POLLIN};
    return poll (&item, 1, 0) == 1;
}

/*  Reads to the end; returns how many messages came, and from whom the last.  */
static size_t read_all (hws_front_t *front, hws_address_t *from)
{
    size_t count = 0, frames = 1000;
    hws_message_t message;
    hws_front_read_monitor (front, 0);
    while (hws_front_recv (front, &frames, &message, from) == 1) {
        count++;
        hws_front_release (front, &message);
    }
    return count;
}

/*  Turns of a shell until `count` messages of that front came.  */
static void take (hws_front_t *front, size_t count, hws_address_t *from)
{
    struct pollfd item = {.fd = hws_fronts_descriptor (s_set.fronts), .events = POLLIN};
    for (size_t taken = 0; taken < count;) {
        hws_front_t *next;
        hws_fronts_wake (s_set.fronts);
        while ((next = hws_fronts_next (s_set.fronts)) != NULL) {
            const size_t read = read_all (next, from);
            taken += next == front ? read : 0;
        }
        if (taken < count) {
            assert_int_equal (poll (&item, 1, WAIT_MS), 1);
        }
    }
}

static void send_to (hws_front_t *front, const hws_address_t *to)
{
    hws_effect_t effect = {.kind = HWS_EFFECT_SEND, .to = *to, .verb = "PONG", .size = 2};
    effect.data = (uint8_t *) strdup ("{}");
    assert_int_equal (hws_front_send (front, &effect), 0);
}

/*  Reads so many answers. libzmq aborts when a connection ends in the middle of a message while
 *  its socket is being closed without linger, so a test that sends much lets it be read.  */
static void hear (void *peer, size_t count)
{
    const int wait_ms = WAIT_MS;
    char bytes[8];
    zmq_setsockopt (peer, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal (zmq_recv (peer, bytes, sizeof bytes, 0), 4);
        assert_int_equal (zmq_recv (peer, bytes, sizeof bytes, 0), 2);
    }
}

/*  ---- Tests ---- */

static void what_comes_is_told_once_until_it_is_read (void **state)
{
    (void) state;
    hws_front_t *const front = bind_front (1);
    hws_address_t from;
    void *const peer = connect_peer (front);

    say (peer);
    take (front, 1, &from);

    assert_int_equal (from.front, 1);
    hws_fronts_wake (s_set.fronts);
    hws_front_t *const again = hws_fronts_next (s_set.fronts);
    assert_true (again == NULL || read_all (again, &from) == 0);
}

static void a_send_that_swallows_the_wake_leaves_the_front_to_be_read (void **state)
{
    (void) state;
    hws_address_t from;
    bind_front (1);
    hws_fronts_settle (s_set.fronts);
    hws_front_t *const front = hws_fronts_find (s_set.fronts, 1);
    void *const peer = connect_peer (front);
    say (peer);
    take (front, 1, &from);
    while (hws_fronts_next (s_set.fronts)) {
    }

    /* libzmq looks for commands once in a millisecond of sends. */
    say (peer);
    wait_for (hws_front_descriptor (front));
    size_t sent = 0;
    while (is_signalled (front)) {
        send_to (hws_fronts_find (s_set.fronts, 1), &from);
        sent++;
    }
    hws_fronts_wake (s_set.fronts);
    hws_fronts_settle (s_set.fronts);

    assert_int_equal (hws_fronts_wake_at (s_set.fronts, 5), 5);
    assert_ptr_equal (hws_fronts_next (s_set.fronts), front);
    assert_int_equal (read_all (front, &from), 1);
    hear (peer, sent);
}

static void fronts_that_are_kept_take_turns (void **state)
{
    (void) state;
    hws_front_t *const first = bind_front (1);
    hws_front_t *const second = bind_front (2);

    for (int i = 0; i < 3; i++) {
        assert_ptr_equal (hws_fronts_next (s_set.fronts), first);
        hws_fronts_keep (s_set.fronts, first);
        assert_ptr_equal (hws_fronts_next (s_set.fronts), second);
        hws_fronts_keep (s_set.fronts, second);
    }
    assert_int_equal (hws_fronts_wake_at (s_set.fronts, 7), 7);
}

static void a_front_that_nobody_is_connected_to_is_closed_at_once (void **state)
{
    (void) state;
    bind_front (1);
    bind_front (2);

    hws_fronts_unbind (s_set.fronts, 1, 0);
    hws_fronts_unbind (s_set.fronts, 77, 0);

    assert_null (hws_fronts_find (s_set.fronts, 1));
    assert_non_null (hws_fronts_find (s_set.fronts, 2));
    assert_int_equal (hws_fronts_count (s_set.fronts), 1);
}

static void a_front_that_is_left_is_closed_then_and_at_its_time_at_the_latest (void **state)
{
    (void) state;
    hws_address_t from;
    hws_front_t *const left = bind_front (1);
    hws_front_t *const crowded = bind_front (2);
    void *const leaves = connect_peer (left);
    void *const stays = connect_peer (crowded);
    say (leaves);
    take (left, 1, &from);
    say (stays);
    take (crowded, 1, &from);
    hws_fronts_unbind (s_set.fronts, 1, 1000);
    hws_fronts_unbind (s_set.fronts, 2, 1000);
    hws_fronts_reap (s_set.fronts, 1000 + HWS_FRONT_LINGER_MS - 1);
    assert_int_equal (hws_fronts_count (s_set.fronts), 2);

    leave (leaves);
    while (hws_front_connections (left) > 0) {
        wait_for (hws_front_monitor_descriptor (left));
        hws_front_read_monitor (left, 0);
    }
    hws_fronts_keep (s_set.fronts, left); /* there may be more to read */
    hws_fronts_reap (s_set.fronts, 1001);
    assert_non_null (hws_fronts_find (s_set.fronts, 1));
    while (hws_fronts_next (s_set.fronts)) {
    }
    hws_fronts_reap (s_set.fronts, 1001);
    assert_null (hws_fronts_find (s_set.fronts, 1));
    assert_int_equal (hws_fronts_wake_at (s_set.fronts, 1001), 1000 + HWS_FRONT_LINGER_MS);
    hws_fronts_reap (s_set.fronts, 1000 + HWS_FRONT_LINGER_MS);

    assert_int_equal (hws_fronts_count (s_set.fronts), 0);
    assert_int_equal (hws_connections_count (s_set.connections), 0);
}

static void at_the_limit_the_front_that_was_given_up_first_makes_room (void **state)
{
    (void) state;
    hws_address_t from;
    hws_front_fault_t fault;
    for (uint32_t i = 0; i < FRONTS_MAX; i++) {
        hws_front_t *const front = bind_front (i + 1);
        say (connect_peer (front));
        take (front, 1, &from);
    }

    assert_int_equal (hws_fronts_bind (s_set.fronts, 10, fault), HWS_ELIMIT);
    assert_string_equal (fault, "the broker has 3 fronts, which is its limit");
    hws_fronts_unbind (s_set.fronts, 2, 0);
    hws_fronts_unbind (s_set.fronts, 1, 1);
    assert_int_equal (hws_fronts_bind (s_set.fronts, 11, fault), 0);

    assert_null (hws_fronts_find (s_set.fronts, 2));
    assert_non_null (hws_fronts_find (s_set.fronts, 1));
}

/*  100 descriptors in all, of which a front with one endpoint takes five.  */
static void what_fronts_take_is_taken_from_the_connections (void **state)
{
    (void) state;
    int accepted = 0;
    bind_front (1);
    bind_front (2);
    bind_front (3);

    while (hws_connections_accepted (s_set.connections, 9, 1000 + accepted, 0) == 0) {
        accepted++;
    }
    assert_int_equal (accepted, 85);
    hws_fronts_unbind (s_set.fronts, 2, 0);
    hws_fronts_unbind (s_set.fronts, 3, 0);
    hws_front_fault_t fault;
    assert_int_equal (hws_fronts_bind (s_set.fronts, 4, fault), 0);
    assert_int_equal (hws_connections_accepted (s_set.connections, 9, 2000, 0), 0);
    assert_int_equal (hws_fronts_bind (s_set.fronts, 5, fault), HWS_ELIMIT);

    assert_string_equal (fault, "the broker has no descriptors left (RLIMIT_NOFILE)");
}

/*  A descriptor that was told of as a connection may be a listener when it is to be ended.  */
static void a_listener_is_not_taken_for_a_connection_that_had_its_number (void **state)
{
    (void) state;
    const int listener = socket (AF_INET, SOCK_STREAM, 0);
    assert_int_equal (listen (listener, 1), 0);
    assert_int_equal (hws_connections_accepted (s_set.connections, 1, listener, 0), 0);

    hws_monitor_end_silent (s_set.connections, HWS_HELLO_MS);

    struct pollfd item = {.fd = listener, .events = POLLIN};
    assert_int_equal (poll (&item, 1, 0), 0); /* no hang-up */
    close (listener);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, begin, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (what_comes_is_told_once_until_it_is_read),
        TEST (a_send_that_swallows_the_wake_leaves_the_front_to_be_read),
        TEST (fronts_that_are_kept_take_turns),
        TEST (a_front_that_nobody_is_connected_to_is_closed_at_once),
        TEST (a_front_that_is_left_is_closed_then_and_at_its_time_at_the_latest),
        TEST (at_the_limit_the_front_that_was_given_up_first_makes_room),
        TEST (what_fronts_take_is_taken_from_the_connections),
        TEST (a_listener_is_not_taken_for_a_connection_that_had_its_number),
    };
    return cmocka_run_group_tests_name ("dedicated fronts", tests, NULL, NULL);
}
