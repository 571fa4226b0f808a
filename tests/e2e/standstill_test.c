/*  Programs that stand still under load (SIGSTOP) and go on: for less than anybody's deadline
 *  nobody notices, for longer the stream goes on or ends once, alike at both ends.
 *
 *  SOAK=1: ten times the records.
 */
#include "tests/support/crew.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#define HEARTBEAT_MS 200 /* of the brokers here */
#define RECORDS      (getenv ("SOAK") ? 20000 : 2000)
#define SENDERS      3

static void start_crew (crew_t *crew)
{
    const crew_options_t options = {.senders = SENDERS, .records = (size_t) RECORDS};

    crew_start (crew, &options);
}

static void stand_still (process_t *process, int64_t ms)
{
    process_signal (process, SIGSTOP);
    process_watch (ms);
    process_signal (process, SIGCONT);
}

/*  Waits until so many parts in ten of all records have come.  */
static void wait_for_tenths (crew_t *crew, size_t tenths)
{
    crew_wait_records (crew, SENDERS * (size_t) RECORDS * tenths / 10);
}

static void short_standstills_of_each_in_turn_lose_nothing (void **state)
{
    crew_t crew;

    (void) state;
    start_crew (&crew);
    process_t *const parties[] = {fixture_broker (), crew.senders[0], crew.receiver};
    for (size_t i = 0; i < 6; i++) {
        wait_for_tenths (&crew, i + 1);
        stand_still (parties[i % 3], HEARTBEAT_MS);
    }

    crew_expect_whole (&crew);
}

static void broker_that_stood_still_drops_nobody (void **state)
{
    crew_t crew;

    (void) state;
    start_crew (&crew);
    wait_for_tenths (&crew, 3);
    stand_still (fixture_broker (), 5 * HEARTBEAT_MS);

    crew_expect_whole (&crew);
}

static void receiver_that_stood_still_finds_everything (void **state)
{
    crew_t crew;

    (void) state;
    start_crew (&crew);
    wait_for_tenths (&crew, 3);
    stand_still (crew.receiver, 5 * HEARTBEAT_MS);

    crew_expect_whole (&crew);
}

/*  The others hear nothing of it, and neither gap nor repeat is in what came before.  */
static void sender_that_stood_still_for_too_long_is_dropped_alone (void **state)
{
    char label[32];
    crew_t crew;
    ledger_t ledger;

    (void) state;
    start_crew (&crew);
    wait_for_tenths (&crew, 1);
    process_signal (crew.senders[0], SIGSTOP);
    process_wait_output (crew.receiver, "\"dropped\"");
    process_signal (crew.senders[0], SIGCONT);

    process_expect_exit (crew.senders[0], 3);
    process_expect_exit (crew.receiver, 3);
    assert_int_equal (process_count_errors (crew.senders[0], "dropped(heartbeat)"), 1);
    ledger_init (&ledger);
    ledger_read (&ledger, crew.receiver);
    ledger_expect (&ledger, "s0", ledger_find (&ledger, "s0")->records, "dropped", "heartbeat");
    for (size_t i = 1; i < SENDERS; i++) {
        snprintf (label, sizeof label, "s%zu", i);
        process_expect_exit (crew.senders[i], 0);
        ledger_expect (&ledger, label, (size_t) RECORDS, "detached", "");
    }
}

static void receiver_that_stood_still_for_too_long_is_abandoned_at_both_ends (void **state)
{
    char label[32];
    crew_t crew;
    ledger_t ledger;

    (void) state;
    start_crew (&crew);
    wait_for_tenths (&crew, 1);
    process_signal (crew.receiver, SIGSTOP);
    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (crew.senders[i], 3);
        assert_int_equal (process_count_errors (crew.senders[i], "cancelled(abandoned)"), 1);
    }
    process_signal (crew.receiver, SIGCONT);

    process_expect_exit (crew.receiver, 3);
    ledger_init (&ledger);
    ledger_read (&ledger, crew.receiver);
    assert_string_equal (ledger.closed, "abandoned");
    for (size_t i = 0; i < SENDERS; i++) {
        snprintf (label, sizeof label, "s%zu", i);
        ledger_expect (&ledger, label, ledger_find (&ledger, label)->records, "cancelled",
                       "abandoned");
    }
}

/*  ---- Setup ---- */

/*  Small windows, so that most of a file is still to be sent when something happens.  */
static int setup (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"heartbeat_interval_ms\": 200,"
                                   " \"reconnect_grace_ms\": 20000, \"window_records\": 100}}");
}

static int setup_impatient (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"heartbeat_interval_ms\": 200,"
                                   " \"orphan_ttl_ms\": 500, \"window_records\": 100}}");
}

#define PATIENT(test)   cmocka_unit_test_setup_teardown (test, setup, fixture_teardown)
#define IMPATIENT(test) cmocka_unit_test_setup_teardown (test, setup_impatient, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        PATIENT (short_standstills_of_each_in_turn_lose_nothing),
        PATIENT (broker_that_stood_still_drops_nobody),
        PATIENT (receiver_that_stood_still_finds_everything),
        PATIENT (sender_that_stood_still_for_too_long_is_dropped_alone),
        IMPATIENT (receiver_that_stood_still_for_too_long_is_abandoned_at_both_ends),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
