/*  Minutes of mixed load on one broker: senders of several clients come, send, report
 *  errors, detach and cancel at random, one receiver reads it all. Every record
 *  arrives in order, every sender has its one ending, and memory and descriptors of
 *  the broker are flat. SOAK_SECONDS says how long (default 120); the seed is printed
 *  and can be given as SEED.
 */
#include "tests/support/fixture.h"

#include "base/random.h"
#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLIENTS     8
#define SEATS       200
#define RECORD_SIZE 3000

typedef enum { SEAT_EMPTY, SEAT_SENDING, SEAT_DETACHING, SEAT_CANCELLED } seat_state_t;

typedef struct {
    seat_state_t state;
    hws_sender_t *sender;
    uint64_t id;
    uint64_t sent; /* records that were accepted */
    uint64_t seen; /* records that arrived */
} seat_t;

static struct {
    hws_random_t random;
    hws_client_t *clients[CLIENTS];
    hws_client_t *home; /* the receiver's */
    hws_receiver_t *receiver;
    seat_t seats[SEATS];
    uint64_t records;
    uint64_t endings;
} s_load;

static uint64_t dice (uint64_t sides)
{
    return hws_random_below (&s_load.random, sides);
}

static hws_client_t *make_client (void)
{
    hws_client_t *client = NULL;
    hws_client_options_t options;

    hws_client_options_init (&options);
    options.endpoint = fixture_endpoint ();
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

/*  Every record says whose it is and which: sender id, number, filling.  */
static void send_one (seat_t *seat)
{
    uint64_t record[RECORD_SIZE / 8] = {seat->id, seat->sent};
    const size_t size = 16 + (size_t) dice (RECORD_SIZE - 16);
    const int rc = hws_sender_send (seat->sender, record, size, 0);

    if (rc == 0) {
        seat->sent++;
    } else {
        assert_int_equal (rc, HWS_EWOULD_BLOCK);
    }
}

static void act_on (seat_t *seat)
{
    if (seat->state == SEAT_EMPTY) {
        memset (seat, 0, sizeof *seat);
        assert_int_equal (
            hws_sender_attach (&seat->sender, s_load.clients[dice (CLIENTS)], "load", NULL), 0);
        seat->id = hws_sender_id (seat->sender);
        seat->state = SEAT_SENDING;
    } else if (seat->state == SEAT_SENDING) {
        const uint64_t what = dice (200);
        if (what == 0) {
            const int rc = hws_sender_detach (seat->sender, 0);
            assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
            seat->state = SEAT_DETACHING;
        } else if (what == 1) {
            const int rc = hws_sender_cancel (seat->sender, "by the dice", 0);
            assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
            seat->state = SEAT_CANCELLED;
        } else {
            send_one (seat);
        }
    }
}

static seat_t *find_seat (uint64_t id)
{
    for (size_t i = 0; i < SEATS; i++) {
        if (s_load.seats[i].state != SEAT_EMPTY && s_load.seats[i].id == id) {
            return &s_load.seats[i];
        }
    }
    process_fail ("an event of sender %llu, which has ended", (unsigned long long) id);
}

static void take_ending (seat_t *seat, const hws_event_t *event)
{
    if (event->kind == HWS_EVENT_DETACHED) {
        assert_int_equal (seat->state, SEAT_DETACHING);
        assert_int_equal (seat->seen, seat->sent);
        assert_int_equal (event->records, seat->sent);
    } else {
        assert_int_equal (event->kind, HWS_EVENT_CANCELLED);
        assert_int_equal (seat->state, SEAT_CANCELLED);
        assert_string_equal (event->cause, "interrupted");
    }
    hws_sender_destroy (&seat->sender);
    seat->state = SEAT_EMPTY;
    s_load.endings++;
}

/*  Takes what is there; with `timeout_ms` waits for one event first.  */
static void receive (int64_t timeout_ms, size_t at_most)
{
    hws_event_t event;

    for (size_t i = 0; i < at_most; i++) {
        const int rc = hws_receiver_recv (s_load.receiver, &event, i == 0 ? timeout_ms : 0);
        if (rc == HWS_EWOULD_BLOCK) {
            return;
        }
        assert_int_equal (rc, 0);
        if (event.kind == HWS_EVENT_RECORD) {
            uint64_t record[2];
            seat_t *seat = find_seat (event.sender_id);
            assert_true (event.size >= sizeof record);
            memcpy (record, event.data, sizeof record);
            assert_int_equal (record[0], seat->id);
            assert_int_equal (record[1], seat->seen);
            seat->seen++;
            s_load.records++;
        } else if (event.kind != HWS_EVENT_ATTACHED) {
            take_ending (find_seat (event.sender_id), &event);
        }
    }
}

static void settle (void)
{
    for (size_t i = 0; i < SEATS; i++) {
        seat_t *seat = &s_load.seats[i];
        if (seat->state == SEAT_SENDING) {
            hws_sender_detach (seat->sender, 0);
            seat->state = SEAT_DETACHING;
        }
    }
    for (size_t i = 0; i < SEATS; i++) {
        while (s_load.seats[i].state != SEAT_EMPTY) {
            receive (60000, 1);
        }
    }
}

static void mixed_load_for_minutes_leaves_everything_flat (void **state)
{
    const char *seconds = getenv ("SOAK_SECONDS");
    const char *seed_text = getenv ("SEED");
    const uint64_t seed = seed_text ? strtoull (seed_text, NULL, 10) : (uint64_t) process_now ();
    const int64_t began_at = process_now ();
    const int64_t until = began_at + (seconds ? atol (seconds) : 120) * 1000;
    uint64_t resident = 0;
    size_t descriptors;

    (void) state;
    print_message ("SEED=%llu\n", (unsigned long long) seed);
    memset (&s_load, 0, sizeof s_load);
    hws_random_init (&s_load.random, seed);
    s_load.home = make_client ();
    assert_int_equal (hws_receiver_open (&s_load.receiver, s_load.home, "load", NULL), 0);
    for (size_t i = 0; i < CLIENTS; i++) {
        s_load.clients[i] = make_client ();
    }
    for (size_t i = 0; i < SEATS; i++) {
        act_on (&s_load.seats[i]);
    }
    descriptors = process_descriptors (fixture_broker ());

    while (process_now () < until) {
        for (size_t i = 0; i < 500; i++) {
            act_on (&s_load.seats[dice (SEATS)]);
        }
        receive (0, dice (2000));
        if (resident == 0 && process_now () > began_at + (until - began_at) / 4) {
            resident = process_resident_bytes (fixture_broker ());
        }
    }
    settle ();

    print_message ("%llu records, %llu endings\n", (unsigned long long) s_load.records,
                   (unsigned long long) s_load.endings);
    assert_int_equal (process_descriptors (fixture_broker ()), descriptors);
    assert_true (process_resident_bytes (fixture_broker ()) < resident + (16u << 20));
    for (size_t i = 0; i < CLIENTS; i++) {
        hws_client_destroy (&s_load.clients[i]);
    }
    hws_receiver_destroy (&s_load.receiver);
    hws_client_destroy (&s_load.home);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (mixed_load_for_minutes_leaves_everything_flat,
                                         fixture_setup_tcp, fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
