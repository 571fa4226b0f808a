/*  Dedicated anchors from end to end: fronts that are bound, used, left and closed again in a
 *  real broker, over tcp and ipc.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <zmq.h>

#define SENDERS   4
#define WAIT_MS   30000
#define LINGER_MS 2000 /* of a front that is given up, at the most */

static process_t *start_receiver (const char *anchor, const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", anchor, "--dedicated", "--format",
                          "json", "--senders", senders, NULL);
}

static process_t *start_sender (const char *anchor, const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", anchor, "--label", label, "--wait", "30",
                          NULL);
}

/*  `count` senders that have each sent a record which has arrived.  */
static void start_senders (process_t *receiver, process_t *senders[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = start_sender ("port", label);
        process_write (senders[i], "hello\n", 6);
    }
    event_wait (receiver, "record", NULL, count);
}

static hws_receiver_t *open_dedicated (hws_client_t *client, const char *name)
{
    hws_receiver_t *receiver = NULL;
    hws_receiver_options_t options;

    hws_receiver_options_init (&options);
    options.dedicated = true;
    assert_int_equal (hws_receiver_open (&receiver, client, name, &options), 0);
    return receiver;
}

/*  ---- A client of few words, for what the library does not show ---- */

typedef struct {
    void *context;
    void *socket;
    char text[4096]; /* the JSON that came last */
} raw_t;

static void raw_open (raw_t *self, const char *endpoint)
{
    const int linger_ms = 0;
    const int patience_ms = WAIT_MS;

    self->context = zmq_ctx_new ();
    assert_non_null (self->context);
    self->socket = zmq_socket (self->context, ZMQ_DEALER);
    assert_non_null (self->socket);
    zmq_setsockopt (self->socket, ZMQ_LINGER, &linger_ms, sizeof linger_ms);
    zmq_setsockopt (self->socket, ZMQ_RCVTIMEO, &patience_ms, sizeof patience_ms);
    zmq_setsockopt (self->socket, ZMQ_SNDTIMEO, &patience_ms, sizeof patience_ms);
    assert_int_equal (zmq_connect (self->socket, endpoint), 0);
}

static void raw_close (raw_t *self)
{
    zmq_close (self->socket);
    zmq_ctx_term (self->context);
}

static void raw_send (const raw_t *self, const char *verb, const char *text)
{
    assert_true (zmq_send (self->socket, verb, strlen (verb), ZMQ_SNDMORE) >= 0);
    assert_true (zmq_send (self->socket, text, strlen (text), 0) >= 0);
}

/*  Waits for a message of that verb.  */
static void raw_expect (raw_t *self, const char *verb)
{
    char word[64];
    int size;

    do {
        size = zmq_recv (self->socket, word, sizeof word, 0);
        if (size < 0) {
            process_fail ("no %s came", verb);
        }
        const int text_size = zmq_recv (self->socket, self->text, sizeof self->text - 1, 0);
        assert_true (text_size >= 0 && text_size < (int) sizeof self->text);
        self->text[text_size] = '\0';
    } while ((size_t) size != strlen (verb) || memcmp (word, verb, (size_t) size) != 0);
}

/*  Says HELLO, asks to attach to "port", and waits for the answer.  */
static void raw_ask (raw_t *self, const char *client_digit)
{
    char hello[160];

    snprintf (hello, sizeof hello, "{\"client_id\":\"%s%031d\",\"protocol\":1}", client_digit, 7);
    raw_send (self, "HELLO", hello);
    raw_send (self, "ATTACH", "{\"id\":\"2\",\"anchor\":\"port\",\"session_id\":\"1\"}");
    raw_expect (self, "ATTACH");
}

/*  The endpoint of the answer to ATTACH; lives until the next call.  */
static const char *raw_endpoint (const raw_t *self)
{
    static char endpoint[256];
    const char *const key = "\"endpoint\":\"";
    const char *found = strstr (self->text, key);

    if (!found) {
        process_fail ("the answer has no endpoint: %s", self->text);
    }
    found += strlen (key);
    snprintf (endpoint, sizeof endpoint, "%.*s", (int) strcspn (found, "\""), found);
    return endpoint;
}

/*  ---- Streams ---- */

static void transfer_through_a_dedicated_anchor (void **state)
{
    const size_t size = process_scaled (4 << 20, 200000);
    process_t *senders[SENDERS];
    const char *inputs[SENDERS];
    char label[32];

    (void) state;
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--dedicated", "--senders", "4",
                       "--output-dir", process_path ("out"), NULL);
    for (size_t i = 0; i < SENDERS; i++) {
        snprintf (label, sizeof label, "s%zu", i);
        inputs[i] = file_make_stream (label, "line", i + 1, size);
        senders[i] = process_start (NULL, "hawser-send", "--anchor", "port", "--label", label,
                                    "--wait", "30", inputs[i], NULL);
    }

    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);

    for (size_t i = 0; i < SENDERS; i++) {
        file_expect_same (process_path ("out/s%zu", i), inputs[i]);
    }
    assert_int_equal (fixture_statistic ("binds"), 1);
    fixture_wait_statistic ("fronts", 0);
}

static void every_sender_learns_its_ending_when_the_anchor_ends (void **state)
{
    process_t *senders[SENDERS];
    process_t *receiver = start_receiver ("port", "100");

    (void) state;
    start_senders (receiver, senders, SENDERS);

    process_signal (receiver, SIGINT);
    process_expect_exit (receiver, 130);

    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 3);
        assert_int_equal (process_count_errors (senders[i], "cancelled(receiver_closed)"), 1);
    }
    fixture_wait_statistic ("fronts", 0);
}

static void every_sender_learns_its_ending_when_the_receiver_is_killed (void **state)
{
    process_t *senders[SENDERS];

    (void) state;
    fixture_start_broker (NULL, "{\"anchors\": {\"heartbeat_interval_ms\": 200, "
                                "\"reconnect_grace_ms\": 300, \"orphan_ttl_ms\": 500}}");
    process_t *receiver = start_receiver ("port", "100");
    start_senders (receiver, senders, SENDERS);

    process_signal (receiver, SIGKILL);
    process_expect_exit (receiver, 128 + SIGKILL);

    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 3);
        assert_int_equal (process_count_errors (senders[i], "cancelled(abandoned)"), 1);
    }
    fixture_wait_statistic ("fronts", 0);
}

static void a_killed_sender_of_a_dedicated_front_is_dropped_and_the_others_go_on (void **state)
{
    process_t *senders[SENDERS];
    process_t *receiver = start_receiver ("port", "4");

    (void) state;
    start_senders (receiver, senders, SENDERS);

    process_signal (senders[1], SIGKILL);
    const event_t dropped = event_wait (receiver, "dropped", "s1", 1);

    assert_string_equal (dropped.cause, "transport");
    process_expect_exit (senders[1], 128 + SIGKILL);
    for (size_t i = 0; i < SENDERS; i++) {
        if (i != 1) {
            process_write (senders[i], "more\n", 5);
            process_close_input (senders[i]);
            process_expect_exit (senders[i], 0);
        }
    }
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "detached", NULL), SENDERS - 1);
}

/*  Each of them has its part of a turn: what one sends does not wait for all of another.  */
static void a_busy_dedicated_front_leaves_the_others_their_turn (void **state)
{
    const char *input = file_make_stream ("much", "line", 1, process_scaled (24 << 20, 1 << 20));

    (void) state;
    process_t *sink = process_start (NULL, "hawser-recv", "--anchor", "busy", "--dedicated",
                                     "--senders", "1", "--output-dir", process_path ("out"), NULL);
    process_t *receiver = start_receiver ("quiet", "1");
    process_t *quiet = start_sender ("quiet", "q");
    process_write (quiet, "first\n", 6);
    event_wait (receiver, "record", "q", 1);
    process_t *busy = process_start (NULL, "hawser-send", "--anchor", "busy", "--label", "b",
                                     "--wait", "30", input, NULL);

    for (size_t i = 2; i < 50; i++) {
        process_write (quiet, "next\n", 5);
        event_wait (receiver, "record", "q", i);
    }

    process_close_input (quiet);
    process_expect_exit (quiet, 0);
    process_expect_exit (receiver, 0);
    process_expect_exit (busy, 0);
    process_expect_exit (sink, 0);
    file_expect_same (process_path ("out/b"), input);
}

/*  More than a turn takes, nothing of it answered, and all of it there at once: nothing but
 *  the broker itself tells it to go on.  */
static void a_burst_on_a_dedicated_front_is_read_to_its_end (void **state)
{
    static const char ignored[] = "\x01\x80\0\0\0\0\0\0"; /* a batch of an unknown kind */
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");
    raw_t asking, bursting;

    (void) state;
    raw_open (&asking, fixture_endpoint ());
    raw_ask (&asking, "a");
    raw_open (&bursting, raw_endpoint (&asking));
    raw_ask (&bursting, "b");

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 500; i++) {
            assert_int_equal (zmq_send (bursting.socket, ignored, 8, 0), 8);
        }
        raw_send (&bursting, "PING", "{}");
        raw_expect (&bursting, "PONG");
    }

    raw_close (&bursting);
    raw_close (&asking);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  More frames than a turn takes, in one message that nobody wants: the broker goes on with it
 *  in the turns that follow, and everybody else has those too.  */
static void a_message_of_too_many_frames_on_a_dedicated_front_holds_nobody_up (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");
    raw_t asking, flooding;

    (void) state;
    raw_open (&asking, fixture_endpoint ());
    raw_ask (&asking, "a");
    raw_open (&flooding, raw_endpoint (&asking));
    raw_ask (&flooding, "b");

    for (int i = 0; i < 20000; i++) {
        assert_int_equal (zmq_send (flooding.socket, "x", 1, ZMQ_SNDMORE), 1);
    }
    assert_int_equal (zmq_send (flooding.socket, "x", 1, 0), 1);
    raw_expect (&flooding, "ERROR");
    raw_send (&asking, "PING", "{}");
    raw_expect (&asking, "PONG");

    raw_close (&flooding);
    raw_close (&asking);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  ---- Fronts that come and go ---- */

#define CROWD 300

static const char *const s_crowd_config =
    "{\"anchors\": {\"heartbeat_interval_ms\": 5000}, \"limits\": {\"fronts\": 300}}";

/*  Every front has a sender that has sent: as many sockets, listeners and connections.  */
static void crowd_round (hws_client_t *owner, hws_client_t *guest, size_t count)
{
    static hws_receiver_t *receivers[CROWD];
    static hws_sender_t *senders[CROWD];
    hws_event_t event;
    char name[32];

    for (size_t i = 0; i < count; i++) {
        snprintf (name, sizeof name, "anchor %zu", i);
        receivers[i] = open_dedicated (owner, name);
        assert_int_equal (hws_sender_attach (&senders[i], guest, name, NULL), 0);
        assert_int_equal (hws_sender_send (senders[i], name, strlen (name), WAIT_MS), 0);
    }
    assert_int_equal (fixture_statistic ("fronts"), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal (hws_sender_detach (senders[i], 0), HWS_EWOULD_BLOCK);
        do {
            assert_int_equal (hws_receiver_recv (receivers[i], &event, WAIT_MS), 0);
        } while (event.kind != HWS_EVENT_DETACHED);
        assert_int_equal (event.records, 1);
        while (hws_receiver_recv (receivers[i], &event, 0) == 0) {
        }
        assert_int_equal (hws_sender_detach (senders[i], WAIT_MS), 0);
        hws_sender_destroy (&senders[i]);
        assert_int_equal (hws_receiver_close (receivers[i], NULL, WAIT_MS), 0);
        hws_receiver_destroy (&receivers[i]);
    }
}

static void three_hundred_dedicated_anchors_leave_no_descriptor (void **state)
{
    const size_t count = process_scaled (CROWD, 30);
    hws_client_t *owner = fixture_client ();
    hws_client_t *guest = fixture_client ();
    hws_receiver_t *shared = NULL;
    hws_sender_t *sender = NULL;
    uint64_t resident = 0;

    (void) state;
    assert_int_equal (hws_receiver_open (&shared, owner, "shared", NULL), 0);
    assert_int_equal (hws_sender_attach (&sender, guest, "shared", NULL), 0);
    const size_t before = process_descriptors (fixture_broker ());

    /*  The first rounds fill the heaps of two threads; a front that is kept is 28 KiB.  */
    for (size_t round = 0; round < 4; round++) {
        crowd_round (owner, guest, count);
        fixture_wait_statistic ("fronts", 0);
        fixture_wait_descriptors (before);
        if (round == 2) {
            resident = process_resident_bytes (fixture_broker ());
        }
    }

    assert_int_equal (process_descriptors (fixture_broker ()), before);
    if (process_sizes_matter ()) {
        assert_true (process_resident_bytes (fixture_broker ()) < resident + (6u << 20));
    }
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&shared);
    hws_client_destroy (&guest);
    hws_client_destroy (&owner);
}

static void the_sockets_of_an_ipc_front_go_with_it (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_sender_t *sender = NULL;
    const char *const path = fixture_endpoint () + strlen ("ipc://");
    char own[300];

    (void) state;
    hws_receiver_t *receiver = open_dedicated (client, "port");
    assert_int_equal (hws_sender_attach (&sender, client, "port", NULL), 0);
    snprintf (own, sizeof own, "%s.1", path);
    assert_int_equal (access (own, F_OK), 0);

    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);

    fixture_wait_statistic ("fronts", 0);
    assert_int_equal (access (own, F_OK), -1);
    snprintf (own, sizeof own, "%s.1.lock", path);
    assert_int_equal (access (own, F_OK), -1);
    assert_int_equal (access (path, F_OK), 0);
    hws_client_destroy (&client);
}

/*  The receiver closes; the senders' last words are still to come.  */
static void last_words_pass_before_a_front_is_closed (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");
    raw_t asking, attached;

    (void) state;
    raw_open (&asking, fixture_endpoint ());
    raw_ask (&asking, "a");
    raw_open (&attached, raw_endpoint (&asking));
    raw_ask (&attached, "b");
    assert_non_null (strstr (attached.text, "\"sender_id\":\"1\""));

    assert_int_equal (hws_receiver_close (receiver, "enough", WAIT_MS), 0);

    raw_expect (&attached, "STREAM_CANCEL");
    assert_non_null (strstr (attached.text, "receiver_closed"));
    raw_send (&attached, "BYE", "{\"id\":\"3\"}");
    raw_expect (&attached, "BYE");
    assert_int_equal (fixture_statistic ("fronts"), 1);
    raw_close (&attached);
    fixture_wait_statistic ("fronts", 0);
    raw_close (&asking);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void a_front_that_somebody_does_not_leave_is_closed_all_the_same (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");
    raw_t asking, staying;

    (void) state;
    raw_open (&asking, fixture_endpoint ());
    raw_ask (&asking, "a");
    raw_open (&staying, raw_endpoint (&asking));
    raw_ask (&staying, "b");

    const int64_t closed_at = process_now ();
    assert_int_equal (hws_receiver_close (receiver, NULL, WAIT_MS), 0);
    fixture_wait_statistic ("fronts", 0);

    assert_true (process_now () - closed_at >= LINGER_MS - 1);
    fixture_wait_statistic ("connections", 2);
    raw_close (&staying);
    raw_close (&asking);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void a_broker_that_stops_closes_its_fronts (void **state)
{
    process_t *senders[SENDERS];
    process_t *receiver = start_receiver ("port", "100");
    char own[300];

    (void) state;
    start_senders (receiver, senders, SENDERS);
    snprintf (own, sizeof own, "%s.1", fixture_endpoint () + strlen ("ipc://"));
    assert_int_equal (access (own, F_OK), 0);

    process_signal (fixture_broker (), SIGTERM);
    process_expect_exit (fixture_broker (), 0);

    assert_int_equal (access (own, F_OK), -1);
    for (size_t i = 0; i < SENDERS; i++) {
        process_signal (senders[i], SIGKILL);
        process_expect_exit (senders[i], 128 + SIGKILL);
    }
    process_signal (receiver, SIGKILL);
    process_expect_exit (receiver, 128 + SIGKILL);
}

/*  ---- Endpoints ---- */

static void each_listener_has_its_own_endpoint_of_a_front (void **state)
{
    char ipc[256], tcp[64], asked[300];
    raw_t raw;

    (void) state;
    snprintf (ipc, sizeof ipc, "ipc://%s/second", process_directory ());
    process_t *broker = process_start (NULL, "hawser-broker", "--listen", "tcp://127.0.0.1:*",
                                       "--listen", ipc, NULL);
    const char *ready = strstr (process_wait_output (broker, "ready "), "tcp://");
    snprintf (tcp, sizeof tcp, "%.*s", (int) strcspn (ready, " "), ready);
    setenv ("HAWSER_BROKER", tcp, 1);
    process_t *receiver = start_receiver ("port", "1");
    process_wait_output (receiver, "opened");

    raw_open (&raw, ipc);
    raw_ask (&raw, "a");
    snprintf (asked, sizeof asked, "%s.1", ipc);
    assert_string_equal (raw_endpoint (&raw), asked);
    raw_close (&raw);
    raw_open (&raw, tcp);
    raw_ask (&raw, "b");
    assert_int_equal (strncmp (raw_endpoint (&raw), "tcp://127.0.0.1:", 16), 0);
    assert_string_not_equal (raw_endpoint (&raw), tcp);
    raw_close (&raw);

    process_signal (receiver, SIGKILL);
    process_expect_exit (receiver, 128 + SIGKILL);
    process_signal (broker, SIGTERM);
    process_expect_exit (broker, 0);
}

static void a_broker_on_every_address_has_dedicated_fronts_too (void **state)
{
    char endpoint[64];

    (void) state;
    fixture_start_broker ("tcp://*:*", "{\"allow_insecure\": true}");
    snprintf (endpoint, sizeof endpoint, "tcp://127.0.0.1%s", strrchr (fixture_endpoint (), ':'));
    setenv ("HAWSER_BROKER", endpoint, 1);

    process_t *receiver = start_receiver ("port", "1");
    process_t *sender = start_sender ("port", "s");
    process_write (sender, "hello\n", 6);
    process_close_input (sender);

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "record", "s"), 1);
}

/*  ---- What cannot be had ---- */

static void the_limit_of_fronts_is_told_with_its_number (void **state)
{
    (void) state;
    fixture_start_broker (NULL, "{\"limits\": {\"fronts\": 1}}");
    process_t *first = start_receiver ("first", "1");
    process_wait_output (first, "opened");

    process_t *second = start_receiver ("second", "1");
    process_expect_exit (second, 6);
    process_wait_error (second, "the broker reached its limit of 1 dedicated anchors");
    process_signal (first, SIGINT);
    process_expect_exit (first, 130);

    process_t *third = start_receiver ("third", "1");
    process_wait_output (third, "opened");
    process_signal (third, SIGINT);
    process_expect_exit (third, 130);
}

static void expect_no_front (hws_client_t *client, const char *name, const char *reason)
{
    hws_sender_t *sender = NULL;
    char text[1200];

    assert_int_equal (hws_sender_attach (&sender, client, name, NULL), HWS_ETRANSPORT);
    hws_client_error (client, text, sizeof text);
    if (!strstr (text, reason)) {
        process_fail ("\"%s\" does not say \"%s\"", text, reason);
    }
}

/*  The process wrapper gives the broker few descriptors from the beginning.  */
static void a_broker_of_few_descriptors_refuses_fronts_and_works_on (void **state)
{
    hws_receiver_t *receivers[8];
    hws_sender_t *senders[8];
    char name[32];
    size_t bound = 0;

    (void) state;
    setenv ("HAWSER_WRAP", "prlimit --nofile=80:80", 1);
    fixture_start_broker (NULL, "{}");
    unsetenv ("HAWSER_WRAP");
    hws_client_t *client = fixture_client ();
    for (size_t i = 0; i < 8; i++) {
        snprintf (name, sizeof name, "anchor %zu", i);
        receivers[i] = open_dedicated (client, name);
    }
    for (bound = 0; bound < 8; bound++) {
        snprintf (name, sizeof name, "anchor %zu", bound);
        if (hws_sender_attach (&senders[bound], client, name, NULL) != 0) {
            break;
        }
    }
    assert_true (bound > 0 && bound < 8);
    expect_no_front (client, name, "which is its limit");
    process_wait_error (fixture_broker (), "event=bind_failed");

    hws_sender_destroy (&senders[0]);
    hws_receiver_destroy (&receivers[0]);
    fixture_wait_statistic ("fronts", bound - 1);
    assert_int_equal (hws_sender_attach (&senders[0], client, name, NULL), 0);

    for (size_t i = 0; i < 8; i++) {
        if (i < bound) {
            hws_sender_destroy (&senders[i]);
        }
        hws_receiver_destroy (&receivers[i]);
    }
    hws_client_destroy (&client);
}

static void limit_descriptors (rlim_t most)
{
    struct rlimit limit;

    assert_int_equal (prlimit (process_pid (fixture_broker ()), RLIMIT_NOFILE, NULL, &limit), 0);
    limit.rlim_cur = most;
    assert_int_equal (prlimit (process_pid (fixture_broker ()), RLIMIT_NOFILE, &limit, NULL), 0);
}

/*  Without a descriptor libzmq aborts somewhere in a bind.  */
static void a_broker_without_descriptors_refuses_the_attach_and_lives (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");
    hws_sender_t *sender = NULL;

    (void) state;
    const size_t used = process_descriptors (fixture_broker ());
    for (rlim_t left = 0; left <= 12; left++) {
        limit_descriptors (used + left);
        expect_no_front (client, "port", "the broker has no descriptors left");
    }

    limit_descriptors (used + 100);
    assert_int_equal (hws_sender_attach (&sender, client, "port", NULL), 0);
    assert_int_equal (fixture_statistic ("bind_failures"), 13);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  The longest path of the broker leaves no room for the number of a front.  */
static void a_path_too_long_for_a_front_is_a_refusal (void **state)
{
    char endpoint[200];
    const size_t most = 107;

    (void) state;
    const int used = snprintf (endpoint, sizeof endpoint, "ipc://%s/", process_directory ());
    memset (endpoint + used, 'x', sizeof endpoint - (size_t) used);
    endpoint[strlen ("ipc://") + most] = '\0';
    fixture_start_broker (endpoint, NULL);
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = open_dedicated (client, "port");

    expect_no_front (client, "port", "cannot listen on ipc://");

    assert_int_equal (fixture_statistic ("fronts"), 0);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static int setup_crowd_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_crowd_config);
}

static int setup_crowd_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_crowd_config);
}

#define OVER_TCP(test) cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test) cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)
#define ON_ITS_OWN(test)                                                                           \
    cmocka_unit_test_setup_teardown (test, fixture_setup_bare, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_TCP (transfer_through_a_dedicated_anchor),
        OVER_IPC (transfer_through_a_dedicated_anchor),
        OVER_TCP (every_sender_learns_its_ending_when_the_anchor_ends),
        OVER_IPC (every_sender_learns_its_ending_when_the_anchor_ends),
        ON_ITS_OWN (every_sender_learns_its_ending_when_the_receiver_is_killed),
        OVER_TCP (a_killed_sender_of_a_dedicated_front_is_dropped_and_the_others_go_on),
        OVER_IPC (a_killed_sender_of_a_dedicated_front_is_dropped_and_the_others_go_on),
        OVER_TCP (a_busy_dedicated_front_leaves_the_others_their_turn),
        OVER_TCP (a_burst_on_a_dedicated_front_is_read_to_its_end),
        OVER_IPC (a_burst_on_a_dedicated_front_is_read_to_its_end),
        OVER_TCP (a_message_of_too_many_frames_on_a_dedicated_front_holds_nobody_up),
        cmocka_unit_test_setup_teardown (three_hundred_dedicated_anchors_leave_no_descriptor,
                                         setup_crowd_tcp, fixture_teardown),
        cmocka_unit_test_setup_teardown (three_hundred_dedicated_anchors_leave_no_descriptor,
                                         setup_crowd_ipc, fixture_teardown),
        OVER_IPC (the_sockets_of_an_ipc_front_go_with_it),
        OVER_TCP (last_words_pass_before_a_front_is_closed),
        OVER_IPC (last_words_pass_before_a_front_is_closed),
        OVER_TCP (a_front_that_somebody_does_not_leave_is_closed_all_the_same),
        OVER_IPC (a_broker_that_stops_closes_its_fronts),
        ON_ITS_OWN (each_listener_has_its_own_endpoint_of_a_front),
        ON_ITS_OWN (a_broker_on_every_address_has_dedicated_fronts_too),
        ON_ITS_OWN (the_limit_of_fronts_is_told_with_its_number),
        ON_ITS_OWN (a_broker_of_few_descriptors_refuses_fronts_and_works_on),
        OVER_TCP (a_broker_without_descriptors_refuses_the_attach_and_lives),
        OVER_IPC (a_broker_without_descriptors_refuses_the_attach_and_lives),
        ON_ITS_OWN (a_path_too_long_for_a_front_is_a_refusal),
    };
    return cmocka_run_group_tests_name ("dedicated anchors", tests, NULL, NULL);
}
