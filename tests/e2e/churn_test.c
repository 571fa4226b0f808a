/*  Peers that come and go by the thousand, most of them rudely: nothing of them is left in
 *  the broker, neither seats nor memory nor descriptors. SOAK=1 has the full counts.
 */
#include "tests/support/fixture.h"
#include "tests/support/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t) 1024 * 1024)

/*  How many rounds: all of them in a soak.  */
static size_t rounds_of (size_t full, size_t usual)
{
    return getenv ("SOAK") ? full : process_scaled (usual, 50);
}

/*  What the broker holds, measured once it has seen some of what is to come.  */
typedef struct {
    size_t descriptors;
    uint64_t resident_bytes;
} held_t;

static held_t measure (void)
{
    fixture_wait_statistic ("seats", 0);
    fixture_wait_statistic ("peers", 1); /* the receiver's */
    fixture_wait_statistic ("connections", 1);
    return (held_t){process_descriptors (fixture_broker ()),
                    process_resident_bytes (fixture_broker ())};
}

static void expect_as_before (const held_t *before, uint64_t growth_max)
{
    const held_t after = measure ();

    fixture_wait_descriptors (before->descriptors);
    if (process_sizes_matter () && after.resident_bytes > before->resident_bytes + growth_max) {
        process_fail ("the broker grew from %llu to %llu bytes",
                      (unsigned long long) before->resident_bytes,
                      (unsigned long long) after.resident_bytes);
    }
}

/*  ---- Attach and crash ---- */

typedef struct {
    hws_receiver_t *receiver;
    size_t attached;
    size_t dropped;
} crowd_seen_t;

static bool see (crowd_seen_t *self, int64_t timeout_ms)
{
    hws_event_t event;
    const int rc = hws_receiver_recv (self->receiver, &event, timeout_ms);

    if (rc == HWS_EWOULD_BLOCK) {
        return false;
    }
    assert_int_equal (rc, 0);
    if (event.kind == HWS_EVENT_ATTACHED) {
        self->attached++;
    } else {
        assert_int_equal (event.kind, HWS_EVENT_DROPPED);
        assert_string_equal (event.cause, "transport");
        self->dropped++;
    }
    return true;
}

/*  `count` clients, one after the other: each attaches, and is gone as soon as it has.  */
static void attach_and_crash (crowd_seen_t *seen, uint64_t first, size_t count)
{
    wire_words_t words;

    for (size_t i = 0; i < count; i++) {
        const size_t attached = seen->attached;
        wire_write_words (&words, first + i, "port");
        const int fd = wire_connect ();
        wire_say (fd, &words, words.size);
        while (seen->attached == attached) {
            see (seen, 30000);
        }
        wire_close (fd, i % 2 == 0);
    }
    while (seen->dropped < seen->attached) {
        see (seen, 30000);
    }
    assert_false (see (seen, 0));
}

static void senders_that_attach_and_crash_leave_nothing (void **state)
{
    const size_t count = rounds_of (5000, 2000);
    hws_client_t *client = fixture_client ();
    crowd_seen_t seen = {.receiver = NULL};

    (void) state;
    assert_int_equal (hws_receiver_open (&seen.receiver, client, "port", NULL), 0);
    attach_and_crash (&seen, 1, count / 2);
    const held_t before = measure ();

    attach_and_crash (&seen, count, count / 2);

    expect_as_before (&before, 2 * MIB);
    assert_int_equal (fixture_statistic ("attached"), seen.attached);
    assert_int_equal (fixture_statistic ("dropped"), seen.attached);
    hws_receiver_destroy (&seen.receiver);
    hws_client_destroy (&client);
}

/*  ---- At each step of the way to an attach ---- */

/*  So many may be there at a time: the most that the broker ever held is no growth.  */
#define BURST 100

/*  Hangs up after each number of bytes in turn, and reads of the few that got in before they
 *  did, if the broker was quick enough.  */
static void hang_up_anywhere (crowd_seen_t *seen, uint64_t first, size_t count)
{
    wire_words_t words;
    const size_t descriptors = process_descriptors (fixture_broker ());

    for (size_t i = 0; i < count; i++) {
        wire_write_words (&words, first + i, "port");
        const int fd = wire_connect ();
        wire_say (fd, &words, i % (words.size + 1));
        wire_close (fd, i % 2 == 0);
        if (i % BURST == BURST - 1) {
            fixture_wait_descriptors (descriptors);
        }
    }
    fixture_wait_statistic ("connections", 1);
    const uint64_t attached = fixture_statistic ("attached");
    while (seen->dropped < attached) {
        see (seen, 30000);
    }
    see (seen, 0);
}

static void senders_that_hang_up_on_the_way_leave_nothing (void **state)
{
    const size_t count = rounds_of (10000, 3000);
    hws_client_t *client = fixture_client ();
    crowd_seen_t seen = {.receiver = NULL};

    (void) state;
    assert_int_equal (hws_receiver_open (&seen.receiver, client, "port", NULL), 0);
    hang_up_anywhere (&seen, 1, count / 2);
    const held_t before = measure ();

    hang_up_anywhere (&seen, count, count / 2);

    expect_as_before (&before, 2 * MIB);
    assert_int_equal (seen.dropped, seen.attached);
    assert_int_equal (fixture_statistic ("waiting"), 0);
    hws_receiver_destroy (&seen.receiver);
    hws_client_destroy (&client);
}

/*  ---- Connect and close ---- */

static void connect_and_close (uint64_t first, size_t count)
{
    wire_words_t words;
    const size_t descriptors = process_descriptors (fixture_broker ());

    for (size_t i = 0; i < count; i++) {
        wire_write_words (&words, first + i, "port");
        const int fd = wire_connect ();
        wire_say (fd, &words, i % 3 == 0 ? 0 : words.ready_end);
        wire_close (fd, i % 2 == 0);
        if (i % BURST == BURST - 1) {
            fixture_wait_descriptors (descriptors);
        }
    }
}

/*  The anchor is idle meanwhile; nothing that it does makes the broker look at its sockets.  */
static void connections_that_say_nothing_leave_nothing (void **state)
{
    const size_t count = rounds_of (100000, 5000);
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;

    (void) state;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    connect_and_close (1, count / 5);
    const held_t before = measure ();

    connect_and_close (count, count);

    expect_as_before (&before, 5 * MIB);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Who ended is forgotten soon, and many may be away at a time.  */
static const char *const s_forgetful =
    "{\"anchors\": {\"heartbeat_interval_ms\": 200, \"reconnect_grace_ms\": 300,"
    " \"orphan_ttl_ms\": 1000, \"buffer_bytes\": 268435456}}";

static int setup_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_forgetful);
}

static int setup_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_forgetful);
}

#define OVER_TCP(test)  cmocka_unit_test_setup_teardown (test, setup_tcp, fixture_teardown)
#define OVER_IPC(test)  cmocka_unit_test_setup_teardown (test, setup_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH (senders_that_attach_and_crash_leave_nothing),
        OVER_BOTH (senders_that_hang_up_on_the_way_leave_nothing),
        OVER_BOTH (connections_that_say_nothing_leave_nothing),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
