/*  Peers that break the protocol, through raw ZeroMQ and raw TCP. The broker answers
 *  or ignores them, lives, and nobody else notices: in every test a well-behaved
 *  sender and receiver go on beside the attack.
 */
#include "tests/support/fixture.h"

#include "base/random.h"
#include "proto/batch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

/*  ---- The good ones ---- */

static struct {
    process_t *receiver;
    process_t *sender;
} s_good;

static void start_good_ones (void)
{
    s_good.receiver = process_start (NULL, "hawser-recv", "--anchor", "good", "--format", "json",
                                     "--senders", "1", NULL);
    s_good.sender = process_start (NULL, "hawser-send", "--anchor", "good", "--label", "good",
                                   "--wait", "30", NULL);
    process_write (s_good.sender, "before\n", 7);
    event_wait (s_good.receiver, "record", "good", 1);
}

/*  They still work, and nobody joined them.  */
static void expect_good_ones_unharmed (void)
{
    process_write (s_good.sender, "after\n", 6);
    event_wait (s_good.receiver, "record", "good", 2);
    process_close_input (s_good.sender);
    process_expect_exit (s_good.sender, 0);
    process_expect_exit (s_good.receiver, 0);
    assert_int_equal (event_count (s_good.receiver, "record", NULL), 2);
    assert_int_equal (event_count (s_good.receiver, "attached", NULL), 1);
    assert_true (process_is_running (fixture_broker ()));
}

/*  ---- The bad ones ---- */

typedef struct {
    void *context;
    void *socket;
} raw_t;

/*  A DEALER of that routing id; null: it names nothing.  */
static raw_t raw_open (const void *id, size_t size)
{
    const int linger = 0;
    const int patience_ms = 20000;
    raw_t raw = {zmq_ctx_new (), NULL};

    assert_non_null (raw.context);
    raw.socket = zmq_socket (raw.context, ZMQ_DEALER);
    assert_non_null (raw.socket);
    if (id) {
        assert_int_equal (zmq_setsockopt (raw.socket, ZMQ_ROUTING_ID, id, size), 0);
    }
    zmq_setsockopt (raw.socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt (raw.socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt (raw.socket, ZMQ_SNDTIMEO, &patience_ms, sizeof patience_ms);
    assert_int_equal (zmq_connect (raw.socket, fixture_endpoint ()), 0);
    return raw;
}

static void raw_close (raw_t *raw)
{
    zmq_close (raw->socket);
    zmq_ctx_term (raw->context);
}

static void raw_send (const raw_t *raw, const char *verb, const void *body, size_t size)
{
    assert_true (zmq_send (raw->socket, verb, strlen (verb), ZMQ_SNDMORE) >= 0);
    assert_true (zmq_send (raw->socket, body, size, 0) >= 0);
}

static void raw_send_text (const raw_t *raw, const char *verb, const char *text)
{
    raw_send (raw, verb, text, strlen (text));
}

static void raw_send_batch (const raw_t *raw, const void *data, size_t size)
{
    assert_true (zmq_send (raw->socket, data, size, 0) >= 0);
}

static void raw_hello (const raw_t *raw, const char *client_id)
{
    char text[128];
    snprintf (text, sizeof text, "{\"id\":\"1\",\"client_id\":\"%s\",\"protocol\":1}", client_id);
    raw_send_text (raw, "HELLO", text);
}

/*  Waits for a message with that verb and that word in its body.  */
static void raw_expect (const raw_t *raw, const char *verb, const char *word)
{
    char frame[70000];

    for (;;) {
        const int verb_size = zmq_recv (raw->socket, frame, sizeof frame, 0);
        if (verb_size < 0) {
            process_fail ("no %s with \"%s\"", verb, word);
        }
        const bool fits =
            (size_t) verb_size == strlen (verb) && memcmp (frame, verb, strlen (verb)) == 0;
        int more = 0;
        size_t more_size = sizeof more;
        zmq_getsockopt (raw->socket, ZMQ_RCVMORE, &more, &more_size);
        if (!more) {
            continue;
        }
        const int size = zmq_recv (raw->socket, frame, sizeof frame - 1, 0);
        assert_true (size >= 0);
        frame[size < (int) sizeof frame ? size : (int) sizeof frame - 1] = '\0';
        if (fits && strstr (frame, word)) {
            return;
        }
    }
}

/*  After whatever was sent before: the broker is there and answers.  */
static void raw_expect_alive (const raw_t *raw)
{
    raw_hello (raw, "00112233445566778899aabbccddeeff");
    raw_expect (raw, "HELLO", "\"Ok\"");
}

/*  ---- Tests ---- */

static void random_multiparts_hurt_nobody (void **state)
{
    const size_t count = process_scaled (20000, 1000);
    hws_random_t random;
    unsigned char frame[300];

    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("random", 6);
    hws_random_init (&random, 20240601);
    for (size_t i = 0; i < count; i++) {
        const size_t frames = 1 + (size_t) hws_random_below (&random, 20);
        const bool plausible = hws_random_below (&random, 2) == 0;
        for (size_t k = 0; k < frames; k++) {
            const size_t size = (size_t) hws_random_below (&random, sizeof frame);
            for (size_t at = 0; at < size; at++) {
                frame[at] = (unsigned char) hws_random_next (&random);
            }
            if (plausible && k == 0 && size > 2) {
                frame[0] = hws_random_below (&random, 2) ? HWS_BATCH_MARK : 'A';
                frame[1] = (unsigned char) hws_random_below (&random, 6);
            }
            const int flags = k + 1 < frames ? ZMQ_SNDMORE : 0;
            assert_true (zmq_send (raw.socket, frame, size, flags) >= 0);
        }
    }
    raw_close (&raw);
    raw = raw_open ("after", 5);
    raw_expect_alive (&raw);
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void anything_but_hello_first_is_answered_resync (void **state)
{
    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("early", 5);

    raw_send_text (&raw, "ATTACH", "{\"id\":\"1\",\"anchor\":\"good\",\"session_id\":\"1\"}");

    raw_expect (&raw, "RESYNC", "epoch");
    raw_expect_alive (&raw);
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void raw_attach (const raw_t *raw)
{
    raw_send_text (raw, "ATTACH",
                   "{\"id\":\"2\",\"anchor\":\"port\",\"session_id\":\"7\",\"label\":\"twin\"}");
    raw_expect (raw, "ATTACH", "\"sender_id\":\"1\"");
}

/*  The second takes the seat over, and what the first says from then on counts for nothing.  */
static void two_connections_of_one_client_are_one_sender (void **state)
{
    static const char id[] = "0123456789abcdef0123456789abcdef";

    (void) state;
    start_good_ones ();
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", NULL);
    process_wait_output (receiver, "opened");
    raw_t first = raw_open ("first", 5);
    raw_t second = raw_open ("second", 6);
    raw_hello (&first, id);
    raw_attach (&first);
    raw_hello (&second, id);
    raw_attach (&second);

    raw_send_text (&first, "DETACH", "{\"id\":\"3\",\"sender_id\":\"1\",\"seq\":\"0\"}");
    raw_send_text (&first, "BYE", "{\"id\":\"4\"}");
    raw_expect (&first, "RESYNC", "epoch");
    raw_send_text (&second, "PING", "{}");
    raw_expect (&second, "PONG", "");
    event_wait (receiver, "attached", "twin", 1);
    raw_send_text (&second, "BYE", "{\"id\":\"5\"}");
    event_wait (receiver, "dropped", "twin", 1);

    process_signal (receiver, SIGTERM);
    process_expect_exit (receiver, 143);
    assert_int_equal (process_count_output (receiver, "\"twin\""), 2);
    raw_close (&first);
    raw_close (&second);
    expect_good_ones_unharmed ();
}

static void malformed_control_is_answered_and_survived (void **state)
{
    static const char *const bodies[] = {
        "",
        "{",
        "[]",
        "nullx",
        "{} trailing",
        "{\"id\":1,\"id\":2}",
        "{\"id\":\"2\",\"anchor\":17,\"session_id\":\"1\"}",
        "{\"id\":\"2\",\"anchor\":\"good\",\"session_id\":9007199254740993}",
        "{\"id\":\"2\",\"handle\":\"xyz\",\"session_id\":\"1\"}",
        "{\"id\":\"2\",\"anchor\":\"\\u0000\",\"session_id\":\"1\"}",
        "{\"id\":\"2\",\"anchor\":\"\xff\xfe\",\"session_id\":\"1\"}",
        "{\"id\":\"2\",\"anchor\":\"good\",\"session_id\":\"1\",\"label\":\"a\\nb\"}",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    };
    static const char *const verbs[] = {"HELLO", "OPEN", "ATTACH", "DETACH",  "CANCEL",
                                        "PING",  "BYE!", "X",      "NONSENSE"};
    char *huge = malloc (200000);

    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("control", 7);
    raw_expect_alive (&raw);
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
            raw_send_text (&raw, verbs[i], bodies[k]);
        }
    }
    raw_expect_alive (&raw);

    /*  Over the size of control messages, and far too deep.  */
    assert_non_null (huge);
    memset (huge, '[', 60000);
    raw_send (&raw, "OPEN", huge, 60000);
    raw_expect_alive (&raw);
    memset (huge, ' ', 200000);
    raw_send (&raw, "OPEN", huge, 65537);
    free (huge);
    raw_close (&raw);

    raw = raw_open ("after", 5);
    raw_expect_alive (&raw);
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void an_unknown_verb_is_answered_so (void **state)
{
    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("verb", 4);
    raw_expect_alive (&raw);

    raw_send_text (&raw, "TELEPORT", "{\"id\":\"7\"}");

    raw_expect (&raw, "ERROR", "unknown_verb");
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void malformed_batches_hurt_nobody (void **state)
{
    unsigned char batch[2000];
    unsigned char body[64] = {0};

    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("batches", 7);
    raw_expect_alive (&raw);

    /*  Every kind, absurd counts, every truncation of one good batch.  */
    for (unsigned kind = 0; kind < 256; kind++) {
        memset (batch, 0xff, sizeof batch);
        hws_batch_put (batch, (hws_batch_kind_t) kind, 0xffff);
        raw_send_batch (&raw, batch, sizeof batch);
        hws_batch_put (batch, (hws_batch_kind_t) kind, 0);
        raw_send_batch (&raw, batch, sizeof batch);
        memset (batch + 8, 0, sizeof batch - 8);
        raw_send_batch (&raw, batch, sizeof batch);
    }
    const hws_run_t run = {.stream = 1, .count = 1, .body = {body, 12}};
    hws_batch_put (batch, HWS_BATCH_DATA, 1);
    hws_run_put (batch + HWS_BATCH_HEADER_SIZE, &run);
    hws_record_put (batch + HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE, 8);
    for (size_t size = 0; size <= HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + 12; size++) {
        raw_send_batch (&raw, batch, size);
    }

    /*  Acknowledgements and windows for streams of others.  */
    for (uint64_t stream = 0; stream < 50; stream++) {
        const hws_ack_t ack = {stream, UINT64_MAX, UINT64_MAX, HWS_ACK_ENDED};
        const hws_window_t window = {stream, UINT64_MAX, UINT64_MAX, UINT64_MAX};
        hws_batch_put (batch, HWS_BATCH_ACK, 1);
        hws_ack_put (batch + HWS_BATCH_HEADER_SIZE, &ack);
        raw_send_batch (&raw, batch, HWS_BATCH_HEADER_SIZE + HWS_ACK_SIZE);
        hws_batch_put (batch, HWS_BATCH_WINDOW, 1);
        hws_window_put (batch + HWS_BATCH_HEADER_SIZE, &window);
        raw_send_batch (&raw, batch, HWS_BATCH_HEADER_SIZE + HWS_WINDOW_SIZE);
    }
    raw_expect_alive (&raw);
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void a_seat_that_overruns_its_window_is_dropped_alone (void **state)
{
    unsigned char batch[8192] = {0};
    hws_run_t run = {.stream = 5, .first_seq = (uint64_t) 1 << 40, .count = 1, .body = {batch, 4}};

    /*  Far beyond any limit in sequence, but a gap: it must not be taken.  */
    (void) state;
    start_good_ones ();
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "victim", "--format",
                                         "json", "--senders", "1", NULL);
    raw_t raw = raw_open ("overrun", 7);
    raw_expect_alive (&raw);
    raw_send_text (&raw, "ATTACH",
                   "{\"id\":\"2\",\"anchor\":\"victim\",\"session_id\":\"5\",\"label\":\"bad\","
                   "\"wait_ms\":30000,\"supported_transport_keys\":[\"router-mux-v1\"]}");
    raw_expect (&raw, "ATTACH", "\"Ok\"");
    hws_batch_put (batch, HWS_BATCH_DATA, 1);
    hws_run_put (batch + HWS_BATCH_HEADER_SIZE, &run);
    raw_send_batch (&raw, batch, HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + 4);

    /*  In sequence now, empty records without end, past any window of records.  */
    hws_batch_put (batch, HWS_BATCH_DATA, 1);
    run.count = 2000;
    run.body.size = (size_t) 2000 * HWS_RECORD_HEADER_SIZE;
    process_hold_output (receiver, true);
    for (uint64_t round = 0; round < 1000; round++) {
        run.first_seq = round * 2000;
        hws_run_put (batch + HWS_BATCH_HEADER_SIZE, &run);
        raw_send_batch (&raw, batch, HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE + run.body.size);
    }
    raw_expect (&raw, "STREAM_CANCEL", "protocol");
    process_hold_output (receiver, false);

    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "dropped", "bad"), 1);
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void nobody_cancels_or_detaches_what_is_not_theirs (void **state)
{
    (void) state;
    start_good_ones ();
    raw_t raw = raw_open ("thief", 5);
    raw_expect_alive (&raw);

    raw_send_text (&raw, "CANCEL",
                   "{\"id\":\"3\",\"handle\":\"00000000000000000000000000000001\"}");
    raw_expect (&raw, "CANCEL", "\"Err\"");
    raw_send_text (&raw, "DETACH",
                   "{\"id\":\"4\",\"handle\":\"00000000000000000000000000000001\","
                   "\"sender_id\":\"1\",\"seq\":\"1\"}");
    raw_expect (&raw, "DETACH", "\"Err\"");
    raw_close (&raw);
    expect_good_ones_unharmed ();
}

static void a_routing_id_that_libzmq_would_give_next_aborts_nothing (void **state)
{
    (void) state;
    start_good_ones ();
    raw_t claimed = raw_open ("\0\x6b\x8b\x45\x67", 5);
    raw_expect_alive (&claimed);
    raw_t nameless = raw_open (NULL, 0);
    raw_hello (&nameless, "ffeeddccbbaa99887766554433221100");
    raw_expect (&nameless, "HELLO", "\"Ok\"");

    raw_close (&claimed);
    raw_close (&nameless);
    expect_good_ones_unharmed ();
}

static void a_message_over_the_largest_batch_cuts_only_its_sender (void **state)
{
    const size_t size = (size_t) 64 << 20;
    char *huge = calloc (1, size);

    (void) state;
    assert_non_null (huge);
    start_good_ones ();
    raw_t raw = raw_open ("huge", 4);
    raw_expect_alive (&raw);
    huge[0] = HWS_BATCH_MARK;
    const uint64_t before = process_peak_bytes (fixture_broker ());
    raw_send_batch (&raw, huge, size);
    free (huge);
    raw_t other = raw_open ("other", 5);
    raw_expect_alive (&other);

    const uint64_t after = process_peak_bytes (fixture_broker ());
    raw_close (&raw);
    raw_close (&other);
    expect_good_ones_unharmed ();
    assert_true (!process_sizes_matter () || after < before + ((uint64_t) 16 << 20));
}

static void bytes_that_are_no_zeromq_hurt_nobody (void **state)
{
    const size_t count = process_scaled (200, 20);
    hws_random_t random;
    unsigned char junk[512];
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr (fixture_endpoint (), ':');

    (void) state;
    address.sin_port = htons ((uint16_t) strtoul (colon + 1, NULL, 10));
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    start_good_ones ();
    const size_t descriptors = process_descriptors (fixture_broker ());
    hws_random_init (&random, 7);
    for (size_t i = 0; i < count; i++) {
        const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true (fd >= 0);
        assert_int_equal (connect (fd, (struct sockaddr *) &address, sizeof address), 0);
        for (size_t at = 0; at < sizeof junk; at++) {
            junk[at] = (unsigned char) hws_random_next (&random);
        }
        if (i % 2 == 0) {
            memcpy (junk, "\xff\0\0\0\0\0\0\0\1\x7f\3", 11);
        }
        (void) !send (fd, junk, sizeof junk, MSG_NOSIGNAL);
        close (fd);
    }

    /*  Connections are accepted in order: after this one all of them have been. A broker
     *  that is stopped in the middle of an old-style handshake may be aborted by libzmq
     *  4.3.4 (zmtp_engine.cpp:446), which is not what is tried here.  */
    raw_t raw = raw_open ("after", 5);
    raw_expect_alive (&raw);
    raw_close (&raw);
    expect_good_ones_unharmed ();
    const int64_t until = process_now () + 30000;
    while (process_descriptors (fixture_broker ()) > descriptors && process_now () < until) {
        process_watch (10);
    }
    assert_true (process_descriptors (fixture_broker ()) <= descriptors);
}

/*  libzmq's listener on a Unix socket aborts when its process has no descriptor left.  */
static void more_connections_than_descriptors_hurt_nobody (void **state)
{
    enum { LEFT = 8, COUNT = 100 };
    const char *const path = fixture_endpoint () + strlen ("ipc://");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct rlimit limit;
    int connections[COUNT];

    (void) state;
    assert_true (strlen (path) < sizeof address.sun_path);
    memcpy (address.sun_path, path, strlen (path));
    start_good_ones ();
    const size_t descriptors = process_descriptors (fixture_broker ());
    const pid_t broker = process_pid (fixture_broker ());
    assert_int_equal (prlimit (broker, RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = descriptors + LEFT;
    assert_int_equal (prlimit (broker, RLIMIT_NOFILE, &limit, NULL), 0);

    for (size_t i = 0; i < COUNT; i++) {
        connections[i] = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true (connections[i] >= 0);
        assert_int_equal (connect (connections[i], (struct sockaddr *) &address, sizeof address),
                          0);
    }

    process_watch (300);
    assert_true (process_is_running (fixture_broker ()));
    assert_true (process_descriptors (fixture_broker ()) < descriptors + COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        close (connections[i]);
    }
    expect_good_ones_unharmed ();
}

static void every_signal_that_is_not_for_us_stops_nothing (void **state)
{
    static const int signals[] = {SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT, SIGHUP, SIGPIPE, SIGALRM};

    (void) state;
    start_good_ones ();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        for (size_t k = 0; k < 20; k++) {
            process_signal (fixture_broker (), signals[i]);
        }
    }
    expect_good_ones_unharmed ();
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (random_multiparts_hurt_nobody),
        OVER_IPC (random_multiparts_hurt_nobody),
        OVER_TCP (anything_but_hello_first_is_answered_resync),
        OVER_TCP (two_connections_of_one_client_are_one_sender),
        OVER_TCP (malformed_control_is_answered_and_survived),
        OVER_TCP (an_unknown_verb_is_answered_so),
        OVER_TCP (malformed_batches_hurt_nobody),
        OVER_TCP (a_seat_that_overruns_its_window_is_dropped_alone),
        OVER_TCP (nobody_cancels_or_detaches_what_is_not_theirs),
        OVER_TCP (a_routing_id_that_libzmq_would_give_next_aborts_nothing),
        OVER_TCP (a_message_over_the_largest_batch_cuts_only_its_sender),
        OVER_TCP (bytes_that_are_no_zeromq_hurt_nobody),
        OVER_IPC (more_connections_than_descriptors_hurt_nobody),
        OVER_TCP (every_signal_that_is_not_for_us_stops_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
