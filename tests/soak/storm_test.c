/*  A storm: rounds of records from real programs, and in each a fault from a seed: connections
 *  are cut, go half-open, stall or are refused, programs stand still, the broker is killed or
 *  leaves and is started again. Nobody is away for longer than is allowed, so every record comes
 *  once and in order, and every sender ends well. In a second storm the receiver is killed or
 *  leaves too, and another goes on: then records may come again, in order.
 *
 *  STORM_ROUNDS says how many rounds (default 60); the seed is printed and can be given as SEED.
 */
#include "tests/support/fixture.h"
#include "tests/support/ledger.h"
#include "tests/support/relay.h"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEADY       6   /* senders that are there all the time */
#define BURST        300 /* records that each is given in a round */
#define ROUNDS_MAX   80  /* each takes a broker, a receiver and a sender, in the worst case */
#define PAUSE_MAX_MS 700 /* less than an interval */

static struct {
    hws_random_t random;
    relay_t *relay;
    process_t *receivers[ROUNDS_MAX + 1]; /* one after the other */
    size_t receiver_count;
    bool is_hard; /* receivers go too */
    process_t *steady[STEADY];
    process_t *brief[ROUNDS_MAX]; /* come in one round, and send one burst */
    size_t rounds;
} s_storm;

static size_t dice (size_t sides)
{
    return (size_t) hws_random_below (&s_storm.random, sides);
}

static void pause_a_while (void)
{
    process_watch ((int64_t) dice (PAUSE_MAX_MS));
}

/*  ---- Programs ---- */

static process_t *receiver (void)
{
    return s_storm.receivers[s_storm.receiver_count - 1];
}

/*  In a hard storm it is stopped at the end: it need not have seen every sender itself.  */
static void start_receiver (void)
{
    char senders[32];

    snprintf (senders, sizeof senders, "%zu", STEADY + s_storm.rounds);
    s_storm.receivers[s_storm.receiver_count++] =
        process_start (NULL, "hawser-recv", "--broker", relay_endpoint (s_storm.relay), "--anchor",
                       "port", "--format", "json", "--wait", "60", "--give-up", "none",
                       s_storm.is_hard ? "--resume" : "--senders",
                       s_storm.is_hard ? process_path ("resume") : senders, NULL);
}

static const char *label_of (const char *kind, size_t number)
{
    static char label[32];

    snprintf (label, sizeof label, "%s%zu", kind, number);
    return label;
}

static process_t *start_sender (const char *label, const process_files_t *files)
{
    return process_start (files, "hawser-send", "--broker", relay_endpoint (s_storm.relay),
                          "--anchor", "port", "--label", label, "--wait", "60", "--give-up", "none",
                          NULL);
}

static void start_brief (size_t round)
{
    const char *const label = label_of ("brief", round);
    const process_files_t files = {.input = ledger_input (label, BURST)};

    s_storm.brief[round] = start_sender (label, &files);
}

static void write_bursts (size_t round)
{
    for (size_t i = 0; i < STEADY; i++) {
        for (size_t k = 0; k < BURST; k++) {
            const char *const line = ledger_line (label_of ("steady", i), round * BURST + k);
            process_write (s_storm.steady[i], line, strlen (line));
        }
    }
}

/*  ---- Faults ---- */

static void restart_broker (int signal)
{
    if (signal == SIGKILL) {
        fixture_kill (fixture_broker ());
    } else {
        fixture_stop (fixture_broker ());
    }
    if (dice (2) == 0) {
        pause_a_while ();
    }
    fixture_restart (fixture_broker ());
}

static void stand_still (process_t *process)
{
    process_signal (process, SIGSTOP);
    pause_a_while ();
    process_signal (process, SIGCONT);
}

static void hold_links (void)
{
    const unsigned directions = 1 + (unsigned) dice (3);

    relay_hold (s_storm.relay, directions, true);
    pause_a_while ();
    relay_hold (s_storm.relay, directions, false);
}

static void refuse_links (void)
{
    relay_refuse (s_storm.relay, true);
    relay_cut (s_storm.relay, RELAY_BOTH, dice (2) ? RELAY_FIN : RELAY_RESET);
    pause_a_while ();
    relay_refuse (s_storm.relay, false);
}

static void cut_links (void)
{
    relay_cut (s_storm.relay, 1 + (unsigned) dice (3), dice (2) ? RELAY_FIN : RELAY_RESET);
}

/*  It dies or leaves, now and then together with the broker.  */
static void replace_receiver (void)
{
    const int signal = dice (2) ? SIGKILL : SIGTERM;

    process_signal (receiver (), signal);
    process_expect_exit (receiver (), 128 + signal);
    if (dice (3) == 0) {
        restart_broker (SIGKILL);
    }
    start_receiver ();
}

static void strike (void)
{
    switch (dice (s_storm.is_hard ? 11 : 9)) {
    case 0:
    case 1:
        cut_links ();
        break;
    case 2:
        hold_links ();
        break;
    case 3:
        refuse_links ();
        break;
    case 4:
        stand_still (fixture_broker ());
        break;
    case 5:
        stand_still (receiver ());
        break;
    case 6:
        stand_still (s_storm.steady[dice (STEADY)]);
        break;
    case 7:
        restart_broker (SIGTERM);
        break;
    case 8:
        restart_broker (SIGKILL);
        break;
    default:
        replace_receiver ();
        break;
    }
}

/*  ---- The tests ---- */

/*  An ending comes again when its receiver died before it had acknowledged it.  */
static void expect_sender (const ledger_t *ledger, const char *label, size_t records)
{
    const ledger_sender_t *const sender = ledger_find (ledger, label);

    if (!s_storm.is_hard) {
        ledger_expect (ledger, label, records, "detached", "");
    } else if (!sender || sender->records != records || strcmp (sender->ending, "detached") != 0) {
        process_fail ("%s has %zu records, not %zu, and ends %s", label,
                      sender ? sender->records : 0, records, sender ? sender->ending : "never");
    }
}

static void expect_whole (void)
{
    ledger_t *ledger = malloc (sizeof *ledger);

    assert_non_null (ledger);
    ledger_init (ledger);
    ledger->may_begin_anew = s_storm.is_hard;
    for (size_t i = 0; i < s_storm.receiver_count; i++) {
        ledger_read (ledger, s_storm.receivers[i]);
    }
    for (size_t i = 0; i < STEADY; i++) {
        expect_sender (ledger, label_of ("steady", i), s_storm.rounds * BURST);
    }
    for (size_t i = 0; i < s_storm.rounds; i++) {
        expect_sender (ledger, label_of ("brief", i), BURST);
    }
    free (ledger);
}

static void end_all (void)
{
    for (size_t i = 0; i < STEADY; i++) {
        process_close_input (s_storm.steady[i]);
        process_expect_exit (s_storm.steady[i], 0);
    }
    for (size_t i = 0; i < s_storm.rounds; i++) {
        process_expect_exit (s_storm.brief[i], 0);
    }
    if (s_storm.is_hard) {
        process_signal (receiver (), SIGTERM);
    }
    process_expect_exit (receiver (), s_storm.is_hard ? 128 + SIGTERM : 0);
}

static void storm (bool is_hard)
{
    const char *rounds = getenv ("STORM_ROUNDS");
    const char *seed_text = getenv ("SEED");
    const uint64_t seed = seed_text ? strtoull (seed_text, NULL, 10) : (uint64_t) process_now ();

    print_message ("SEED=%llu\n", (unsigned long long) seed);
    hws_random_init (&s_storm.random, seed);
    s_storm.is_hard = is_hard;
    s_storm.rounds = rounds ? strtoul (rounds, NULL, 10) : 60;
    assert_in_range (s_storm.rounds, 1, ROUNDS_MAX);
    s_storm.receiver_count = 0;
    start_receiver ();
    process_wait_output (receiver (), "opened"); /* else none could go on with its anchor */
    for (size_t i = 0; i < STEADY; i++) {
        s_storm.steady[i] = start_sender (label_of ("steady", i), NULL);
    }

    for (size_t round = 0; round < s_storm.rounds; round++) {
        start_brief (round);
        write_bursts (round);
        process_watch ((int64_t) dice (30));
        strike ();
    }

    end_all ();
    expect_whole ();
}

static void what_strikes_while_records_flow_loses_and_doubles_nothing (void **state)
{
    (void) state;
    storm (false);
}

static void what_strikes_receivers_too_loses_nothing (void **state)
{
    (void) state;
    storm (true);
}

static int setup (void **state)
{
    const int rc = fixture_setup_tcp_with (
        "{\"anchors\": {\"heartbeat_interval_ms\": 1000, \"reconnect_grace_ms\": 60000,"
        " \"window_records\": 200}}");

    (void) state;
    if (rc == 0) {
        s_storm.relay = relay_start (fixture_endpoint ());
    }
    return rc;
}

static int teardown (void **state)
{
    relay_stop (&s_storm.relay);
    return fixture_teardown (state);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (what_strikes_while_records_flow_loses_and_doubles_nothing,
                                         setup, teardown),
        cmocka_unit_test_setup_teardown (what_strikes_receivers_too_loses_nothing, setup, teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
