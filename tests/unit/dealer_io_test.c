/*  A client's socket, with a real peer and no client around it.
 */
#include "io/dealer_io.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <string.h>
#include <sys/time.h>

enum { WAIT_MS = 20000, QUESTIONS = 20000, SIGNAL_EVERY_US = 20 };

static struct {
    void *context;
    void *peer;
    hws_dealer_t dealer;
} s_pair;

static int begin (void **state)
{
    char endpoint[64];
    size_t size = sizeof endpoint;
    const int timeout_ms = WAIT_MS;

    (void) state;
    s_pair.context = zmq_ctx_new ();
    s_pair.peer = zmq_socket (s_pair.context, ZMQ_ROUTER);
    assert_int_equal (zmq_setsockopt (s_pair.peer, ZMQ_RCVTIMEO, &timeout_ms, sizeof timeout_ms),
                      0);
    assert_int_equal (zmq_bind (s_pair.peer, "tcp://127.0.0.1:*"), 0);
    assert_int_equal (zmq_getsockopt (s_pair.peer, ZMQ_LAST_ENDPOINT, endpoint, &size), 0);
    assert_int_equal (hws_dealer_connect (&s_pair.dealer, s_pair.context, endpoint), 0);
    return 0;
}

static int end (void **state)
{
    (void) state;
    hws_dealer_close (&s_pair.dealer);
    zmq_close (s_pair.peer);
    return zmq_ctx_term (s_pair.context);
}

/*  The peer answers what the dealer says, and the answer lies there unread.  */
static void get_answer (void)
{
    struct pollfd polled = {.fd = hws_dealer_fd (&s_pair.dealer), .events = POLLIN};
    bool was_connected;
    zmq_msg_t message;
    zmq_msg_t id;

    zmq_msg_init_size (&message, 1);
    memset (zmq_msg_data (&message), 'x', 1);
    assert_int_equal (hws_dealer_send (&s_pair.dealer, &message), 0);
    zmq_msg_init (&id);
    assert_int_equal (zmq_msg_recv (&id, s_pair.peer, 0), 16);
    assert_int_equal (zmq_msg_recv (&message, s_pair.peer, 0), 1);
    assert_int_equal (zmq_msg_send (&id, s_pair.peer, ZMQ_SNDMORE), 16);
    assert_int_equal (zmq_msg_send (&message, s_pair.peer, 0), 1);
    hws_dealer_is_lost (&s_pair.dealer, &was_connected);
    while (hws_dealer_is_quiet (&s_pair.dealer, false)) {
        assert_int_equal (poll (&polled, 1, WAIT_MS), 1);
        hws_dealer_note_input (&s_pair.dealer);
    }
}

static void take_signal (int number)
{
    (void) number;
}

static void send_signals (long every_us)
{
    const struct sigaction action = {.sa_handler = take_signal};
    const struct itimerval timer = {.it_interval.tv_usec = every_us, .it_value.tv_usec = every_us};

    assert_int_equal (sigaction (SIGALRM, &action, NULL), 0);
    assert_int_equal (setitimer (ITIMER_REAL, &timer, NULL), 0);
}

/*  A program's thread asks too, and its signals are the program's.  */
static void what_is_there_is_seen_in_spite_of_signals (void **state)
{
    unsigned quiet = 0;

    (void) state;
    get_answer ();

    send_signals (SIGNAL_EVERY_US);
    for (unsigned i = 0; i < QUESTIONS; i++) {
        quiet += hws_dealer_is_quiet (&s_pair.dealer, false);
    }
    send_signals (0);

    assert_int_equal (quiet, 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (what_is_there_is_seen_in_spite_of_signals, begin, end),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
