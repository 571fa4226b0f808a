/*  Connections that are slow, stall, break in the midst of a message, go half-open or are
 *  refused, under streams that flow: every record comes once and in order, and who is away for
 *  too long is dropped once, at both ends.
 *
 *  SOAK=1: ten times the records.
 */
#include "tests/support/crew.h"
#include "tests/support/fixture.h"
#include "tests/support/relay.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define HEARTBEAT_MS 600 /* of the broker here */
#define ASK_EVERY_MS 5

static relay_t *s_relay;

static size_t scaled (size_t records)
{
    return getenv ("SOAK") ? 10 * records : records;
}

/*  All of the crew is behind the relay.  */
static void start_crew (crew_t *crew, size_t senders, size_t records)
{
    const crew_options_t options = {.senders = senders,
                                    .records = records,
                                    .sender_broker = relay_endpoint (s_relay),
                                    .receiver_broker = relay_endpoint (s_relay)};
    crew_start (crew, &options);
}

static void wait_for_links (size_t taken)
{
    const int64_t until = process_now () + 60000;

    while (relay_taken (s_relay) < taken) {
        if (process_now () > until) {
            process_fail ("%zu connections came, not %zu", relay_taken (s_relay), taken);
        }
        process_watch (ASK_EVERY_MS);
    }
}

/*  ---- Breaks ---- */

/*  Each connection carries no more than that: the receiver's breaks many times.  */
static void break_every (uint64_t bytes, relay_end_t how)
{
    crew_t crew;

    relay_cut_after (s_relay, bytes, how);
    start_crew (&crew, 4, scaled (3000));

    crew_expect_whole (&crew);
    assert_true (relay_taken (s_relay) >= 5 + 8);
}

static void resets_in_the_midst_of_messages_lose_and_double_nothing (void **state)
{
    (void) state;
    break_every (scaled (30000), RELAY_RESET);
}

static void closes_in_the_midst_of_messages_lose_and_double_nothing (void **state)
{
    (void) state;
    break_every (scaled (30011), RELAY_FIN);
}

/*  A round trip of a tenth of a second, and a break every few of them.  */
static void a_slow_link_that_breaks_loses_and_doubles_nothing (void **state)
{
    enum { CUTS = 4 };
    crew_t crew;

    (void) state;
    relay_delay (s_relay, RELAY_BOTH, 50);
    start_crew (&crew, 3, scaled (500));
    for (size_t i = 1; i <= CUTS; i++) {
        crew_wait_records (&crew, i * 3 * scaled (500) / (CUTS + 2));
        relay_cut (s_relay, RELAY_BOTH, i % 2 ? RELAY_FIN : RELAY_RESET);
    }

    crew_expect_whole (&crew);
}

/*  ---- Half-open ---- */

/*  `cut` is the end that hears of it; the other believes to be connected.  */
static void go_half_open (unsigned cut)
{
    crew_t crew;

    start_crew (&crew, 3, scaled (2000));
    crew_wait_records (&crew, scaled (2000));
    const size_t taken = relay_taken (s_relay);
    relay_cut (s_relay, cut, RELAY_RESET);
    wait_for_links (taken + 4);

    crew_expect_whole (&crew);
}

static void a_connection_that_only_the_broker_lost_is_replaced (void **state)
{
    (void) state;
    go_half_open (RELAY_UP);
}

static void a_connection_that_only_the_clients_lost_is_replaced (void **state)
{
    (void) state;
    go_half_open (RELAY_DOWN);
}

/*  ---- Stalls ---- */

/*  Longer than the silence that a client allows, shorter than a broker does.  */
static void stall (unsigned directions)
{
    crew_t crew;

    start_crew (&crew, 3, scaled (2000));
    crew_wait_records (&crew, scaled (2000));
    relay_hold (s_relay, directions, true);
    process_watch (HEARTBEAT_MS * 9 / 4);
    relay_hold (s_relay, directions, false);

    crew_expect_whole (&crew);
}

static void a_stall_on_the_way_to_the_broker_loses_nothing (void **state)
{
    (void) state;
    stall (RELAY_UP);
}

static void a_stall_on_the_way_to_the_clients_loses_nothing (void **state)
{
    (void) state;
    stall (RELAY_DOWN);
}

static void a_stall_of_both_ways_loses_nothing (void **state)
{
    (void) state;
    stall (RELAY_BOTH);
}

/*  ---- Too long ---- */

/*  Senders behind the relay, the receiver not. They never end by themselves.  */
static void start_senders (process_t **receiver, process_t *senders[2])
{
    static const char *const labels[] = {"s0", "s1"};

    *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json",
                               "--senders", "2", NULL);
    for (size_t i = 0; i < 2; i++) {
        senders[i] = process_start (NULL, "hawser-send", "--broker", relay_endpoint (s_relay),
                                    "--anchor", "port", "--label", labels[i], "--wait", "30", NULL);
        process_write (senders[i], ledger_line (labels[i], 0), 5);
        event_wait (*receiver, "record", labels[i], 1);
    }
}

static void expect_dropped (process_t *receiver, process_t *senders[2], const char *cause,
                            int status)
{
    char text[64];
    ledger_t ledger;

    snprintf (text, sizeof text, "dropped(%s)", cause);
    for (size_t i = 0; i < 2; i++) {
        process_expect_exit (senders[i], status);
        assert_int_equal (process_count_errors (senders[i], text), 1);
    }
    process_expect_exit (receiver, 3);
    ledger_init (&ledger);
    ledger_read (&ledger, receiver);
    ledger_expect (&ledger, "s0", 1, "dropped", cause);
    ledger_expect (&ledger, "s1", 1, "dropped", cause);
}

static void a_stall_of_more_than_three_intervals_drops_at_both_ends (void **state)
{
    process_t *receiver, *senders[2];

    (void) state;
    start_senders (&receiver, senders);
    relay_hold (s_relay, RELAY_BOTH, true);
    event_wait (receiver, "dropped", NULL, 2);
    relay_hold (s_relay, RELAY_BOTH, false);

    expect_dropped (receiver, senders, "heartbeat", 3);
}

static void who_is_refused_beyond_the_grace_is_dropped_at_both_ends (void **state)
{
    process_t *receiver, *senders[2];

    (void) state;
    start_senders (&receiver, senders);
    relay_refuse (s_relay, true);
    relay_cut (s_relay, RELAY_BOTH, RELAY_RESET);
    event_wait (receiver, "dropped", NULL, 2);
    relay_refuse (s_relay, false);

    expect_dropped (receiver, senders, "transport", 5);
}

static void who_is_refused_within_the_grace_goes_on (void **state)
{
    process_t *receiver, *senders[2];

    (void) state;
    start_senders (&receiver, senders);
    relay_refuse (s_relay, true);
    relay_cut (s_relay, RELAY_BOTH, RELAY_RESET);
    process_wait_error (senders[0], "went away");
    process_wait_error (senders[1], "went away");
    process_write (senders[0], ledger_line ("s0", 1), 5);
    process_close_input (senders[1]);
    relay_refuse (s_relay, false);

    event_wait (receiver, "record", "s0", 2);
    process_expect_exit (senders[1], 0);
    process_close_input (senders[0]);
    process_expect_exit (senders[0], 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "detached", NULL), 2);
}

/*  ---- At the end ---- */

/*  What it says is held from before the ending on, so only a later connection tells that it has
 *  everything.  */
static void receiver_with_all_it_wanted_stays_until_that_is_heard (void **state)
{
    (void) state;
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--broker", relay_endpoint (s_relay), "--anchor",
                       "port", "--format", "json", "--senders", "1", NULL);
    process_t *sender =
        process_start (NULL, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    process_write (sender, "x\n", 2);
    event_wait (receiver, "record", NULL, 1);
    relay_hold (s_relay, RELAY_UP, true);
    process_close_input (sender);
    event_wait (receiver, "closed", NULL, 1);
    relay_cut (s_relay, RELAY_BOTH, RELAY_RESET);
    relay_hold (s_relay, RELAY_UP, false);

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    assert_int_equal (event_count (receiver, "detached", NULL), 1);
}

/*  ---- Setup ---- */

static int setup_with (const char *config)
{
    const int rc = fixture_setup_tcp_with (config);

    if (rc == 0) {
        s_relay = relay_start (fixture_endpoint ());
    }
    return rc;
}

/*  Small windows, so that most of a file is still to be sent when something happens.  */
static int setup (void **state)
{
    (void) state;
    return setup_with ("{\"anchors\": {\"heartbeat_interval_ms\": 600,"
                       " \"reconnect_grace_ms\": 20000, \"window_records\": 100}}");
}

static int setup_impatient (void **state)
{
    (void) state;
    return setup_with ("{\"anchors\": {\"heartbeat_interval_ms\": 300,"
                       " \"reconnect_grace_ms\": 1200}}");
}

static int teardown (void **state)
{
    relay_stop (&s_relay);
    return fixture_teardown (state);
}

#define PATIENT(test)   cmocka_unit_test_setup_teardown (test, setup, teardown)
#define IMPATIENT(test) cmocka_unit_test_setup_teardown (test, setup_impatient, teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        PATIENT (resets_in_the_midst_of_messages_lose_and_double_nothing),
        PATIENT (closes_in_the_midst_of_messages_lose_and_double_nothing),
        PATIENT (a_slow_link_that_breaks_loses_and_doubles_nothing),
        PATIENT (a_connection_that_only_the_broker_lost_is_replaced),
        PATIENT (a_connection_that_only_the_clients_lost_is_replaced),
        PATIENT (a_stall_on_the_way_to_the_broker_loses_nothing),
        PATIENT (a_stall_on_the_way_to_the_clients_loses_nothing),
        PATIENT (a_stall_of_both_ways_loses_nothing),
        IMPATIENT (a_stall_of_more_than_three_intervals_drops_at_both_ends),
        IMPATIENT (who_is_refused_beyond_the_grace_is_dropped_at_both_ends),
        PATIENT (who_is_refused_within_the_grace_goes_on),
        PATIENT (receiver_with_all_it_wanted_stays_until_that_is_heard),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
