/*  What goes wrong around a broker and its programs: descriptors run out, signals rain, the
 *  clock is set, anchors are many or forgotten, peers fall silent together, records are
 *  small and nobody reads them. Those who did nothing wrong notice nothing.
 */
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"
#include "tests/support/wire.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t) 1024 * 1024)

/*  LD_PRELOAD does not go together with a sanitizer's runtime.  */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define IS_SANITIZED 1
#elif defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, NULL);
}

static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "30",
                          NULL);
}

static void finish (process_t *sender, process_t *receiver)
{
    process_close_input (sender);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
}

/*  ---- Descriptors ---- */

/*  Twice as many connections as the broker may have descriptors, and none says a word.  */
static void broker_out_of_descriptors_serves_those_it_has (void **state)
{
    enum { STRANGERS = 200, WATCH_MS = 2000 };
    int strangers[STRANGERS];

    (void) state;
    process_t *receiver = start_receiver ("2");
    process_t *sender = start_sender ("s");
    process_write (sender, "before\n", 7);
    event_wait (receiver, "record", "s", 1);
    for (size_t i = 0; i < STRANGERS; i++) {
        strangers[i] = wire_connect ();
    }
    process_wait_error (fixture_broker (), "event=connection_limit");

    const int64_t cpu_ms = process_cpu_ms (fixture_broker ());
    process_watch (WATCH_MS);
    const int64_t spent_ms = process_cpu_ms (fixture_broker ()) - cpu_ms;
    process_write (sender, "meanwhile\n", 10);
    event_wait (receiver, "record", "s", 2);

    for (size_t i = 0; i < STRANGERS; i++) {
        wire_close (strangers[i], false);
    }
    process_t *late = start_sender ("late");
    process_write (late, "after\n", 6);
    event_wait (receiver, "record", "late", 1);
    process_close_input (late);
    process_expect_exit (late, 0);
    finish (sender, receiver);
    if (process_sizes_matter () && spent_ms > WATCH_MS / 5) {
        process_fail ("the broker used %lld ms of %d", (long long) spent_ms, WATCH_MS);
    }
}

/*  ---- Signals ---- */

static void a_thousand_signals_stop_and_lose_nothing (void **state)
{
    static const int for_brokers[] = {SIGHUP, SIGUSR1, SIGWINCH, SIGCONT};
    static const int for_all[] = {SIGWINCH, SIGCONT};
    const size_t count = process_scaled (1000, 50);
    char line[32];

    (void) state;
    process_t *receiver = start_receiver ("1");
    process_t *sender = start_sender ("s");
    event_wait (receiver, "attached", "s", 1);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < 4; k++) {
            process_signal (fixture_broker (), for_brokers[k]);
        }
        for (size_t k = 0; k < 2; k++) {
            process_signal (sender, for_all[k]);
            process_signal (receiver, for_all[k]);
        }
        process_write (sender, line, (size_t) snprintf (line, sizeof line, "%zu\n", i));
    }
    finish (sender, receiver);

    assert_int_equal (event_count (receiver, "record", "s"), count);
    for (size_t i = 0; i < count; i += count / 10) {
        snprintf (line, sizeof line, "%zu", i);
        assert_string_equal (event_wait (receiver, "record", "s", i + 1).data, line);
    }
}

/*  ---- Clocks ---- */

/*  Sets the date of every program, by an offset that libfaketime reads.  */
static void set_clock (const char *offset)
{
    file_make_text ("clock", offset);
}

/*  From now on programs are started with libfaketime, which leaves their monotonic clock
 *  alone. Returns false if it is not here, or cannot be used.  */
static bool begin_to_fake (void)
{
    char wrap[256];
    glob_t found;

    if (IS_SANITIZED || getenv ("HAWSER_WRAP") ||
        glob ("/usr/lib/*/faketime/libfaketimeMT.so.1", 0, NULL, &found) != 0) {
        return false;
    }
    snprintf (wrap, sizeof wrap, "/usr/bin/env LD_PRELOAD=%s", found.gl_pathv[0]);
    globfree (&found);
    set_clock ("+0");
    setenv ("HAWSER_WRAP", wrap, 1);
    setenv ("FAKETIME_TIMESTAMP_FILE", process_path ("clock"), 1);
    setenv ("FAKETIME_NO_CACHE", "1", 1);
    setenv ("FAKETIME_DONT_FAKE_MONOTONIC", "1", 1);
    return true;
}

/*  The date in the broker's log, now.  */
static const char *broker_date (void)
{
    process_signal (fixture_broker (), SIGUSR2);
    const char *line = process_wait_error (fixture_broker (), "event=faults");
    return scratch_keep (strndup (line, strlen ("ts=2026-01-01")));
}

static void clock_that_is_set_is_noticed_by_nobody (void **state)
{
    static const char *const offsets[] = {"+1d", "-1d"};
    char line[32];

    (void) state;
    if (!begin_to_fake ()) {
        print_message ("needs libfaketime, no sanitizer and no HAWSER_WRAP\n");
        skip ();
    }
    fixture_start_broker (NULL,
                          "{\"anchors\": {\"heartbeat_interval_ms\": 200,"
                          " \"reconnect_grace_ms\": 300, \"unattached_timeout_ms\": 3600000}}");
    process_t *receiver = start_receiver ("1");
    process_t *sender = start_sender ("s");
    process_write (sender, "before\n", 7);
    event_wait (receiver, "record", "s", 1);
    const char *date = broker_date ();

    for (size_t i = 0; i < 2; i++) {
        set_clock (offsets[i]);
        assert_string_not_equal (broker_date (), date);
        process_watch (1000); /* five intervals */
        process_write (sender, line, (size_t) snprintf (line, sizeof line, "%s\n", offsets[i]));
        event_wait (receiver, "record", "s", i + 2);
    }
    finish (sender, receiver);

    assert_int_equal (event_count (receiver, "detached", "s"), 1);
    assert_int_equal (process_count_errors (sender, ""), 0);
    assert_int_equal (fixture_statistic ("dropped"), 0);
}

/*  Its epoch comes from its state, and nobody asks how late it is.  */
static void clock_that_is_set_between_two_brokers_stops_no_stream (void **state)
{
    static const char *const offsets[] = {"-1d", "+1d"};
    char line[32];

    (void) state;
    if (!begin_to_fake ()) {
        print_message ("needs libfaketime, no sanitizer and no HAWSER_WRAP\n");
        skip ();
    }
    fixture_start_broker (NULL, "{}");
    process_t *receiver = start_receiver ("1");
    process_t *sender = start_sender ("s");
    process_write (sender, "before\n", 7);
    event_wait (receiver, "record", "s", 1);

    for (size_t i = 0; i < 2; i++) {
        fixture_kill (fixture_broker ());
        set_clock (offsets[i]);
        fixture_restart (fixture_broker ());
        process_write (sender, line, (size_t) snprintf (line, sizeof line, "%s\n", offsets[i]));
        event_wait (receiver, "record", "s", i + 2);
    }
    finish (sender, receiver);

    assert_int_equal (event_count (receiver, "record", "s"), 3);
    assert_int_equal (event_count (receiver, "detached", "s"), 1);
}

/*  ---- Anchors ---- */

static void anchors_beyond_the_limit_are_refused_and_the_rest_work (void **state)
{
    enum { ANCHORS = 1500, LIMIT = 1024 };
    hws_client_t *clients[2] = {fixture_client (), fixture_client ()};
    hws_receiver_t *receivers[ANCHORS] = {NULL};
    hws_receiver_t *refused = NULL;
    hws_sender_t *sender = NULL;
    hws_event_t event;
    char text[256];

    (void) state;
    for (size_t i = 0; i < LIMIT; i++) {
        assert_int_equal (hws_receiver_open (&receivers[i], clients[0], NULL, NULL), 0);
    }
    assert_int_equal (hws_receiver_open (&refused, clients[0], NULL, NULL), HWS_ELIMIT);
    hws_client_error (clients[0], text, sizeof text);
    assert_non_null (strstr (text, "1024"));
    for (size_t i = LIMIT; i < ANCHORS; i++) {
        assert_int_equal (hws_receiver_open (&receivers[i], clients[1], NULL, NULL), 0);
    }

    assert_int_equal (fixture_statistic ("anchors"), ANCHORS);
    for (size_t i = 0; i < ANCHORS; i += ANCHORS - 1) {
        const char *handle = hws_receiver_handle (receivers[i]);
        assert_int_equal (hws_sender_attach (&sender, clients[1], handle, NULL), 0);
        assert_int_equal (hws_receiver_recv (receivers[i], &event, 30000), 0);
        assert_int_equal (event.kind, HWS_EVENT_ATTACHED);
        hws_sender_destroy (&sender);
    }
    for (size_t i = 0; i < ANCHORS; i++) {
        hws_receiver_destroy (&receivers[i]);
    }
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
}

static void anchor_that_nobody_attaches_to_expires (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;
    hws_receiver_options_t options;
    hws_event_t event;

    (void) state;
    hws_receiver_options_init (&options);
    options.unattached_timeout_ms = 300;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", &options), 0);

    assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);

    assert_int_equal (event.kind, HWS_EVENT_CLOSED);
    assert_string_equal (event.cause, "expired");
    assert_int_equal (fixture_statistic ("anchors"), 0);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  ---- Silence ---- */

/*  One beats on before them, so that whoever looks at the first only sees nothing.  */
static void all_silent_peers_expire (void **state)
{
    enum { SENDERS = 10 };
    process_t *senders[SENDERS];
    char label[32];

    (void) state;
    process_t *receiver = start_receiver ("10");
    for (size_t i = 0; i < SENDERS; i++) {
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = start_sender (label);
        event_wait (receiver, "attached", label, 1);
    }
    for (size_t i = 1; i < SENDERS; i++) {
        process_signal (senders[i], SIGSTOP);
    }
    event_wait (receiver, "dropped", NULL, SENDERS - 1);

    process_write (senders[0], "alive\n", 6);
    event_wait (receiver, "record", "s0", 1);
    for (size_t i = 1; i < SENDERS; i++) {
        snprintf (label, sizeof label, "s%zu", i);
        assert_int_equal (event_count (receiver, "dropped", label), 1);
        assert_string_equal (event_wait (receiver, "dropped", label, 1).cause, "heartbeat");
        process_signal (senders[i], SIGCONT);
        process_expect_exit (senders[i], 3);
    }
    process_close_input (senders[0]);
    process_expect_exit (senders[0], 0);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "detached", "s0"), 1);
}

/*  ---- Small records ---- */

/*  All of them wait in the receiver, for its stdout stands still.  */
static void a_million_small_records_cost_about_what_they_weigh (void **state)
{
    const size_t count = process_scaled (1000000, 20000);
    char *text = malloc (count * 21 + 1);

    (void) state;
    assert_non_null (text);
    for (size_t i = 0; i < count; i++) {
        snprintf (text + i * 21, 22, "%020zu\n", i);
    }
    const process_files_t files = {.input = file_make ("in", text, count * 21)};
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "port", "--senders", "1", NULL);
    process_hold_output (receiver, true);
    process_t *sender =
        process_start (&files, "hawser-send", "--anchor", "port", "--wait", "30", NULL);
    fixture_wait_statistic ("detached", 1); /* so all of it has been forwarded */

    const process_t *const all[] = {fixture_broker (), sender, receiver};
    for (size_t i = 0; i < 3 && process_sizes_matter (); i++) {
        if (process_peak_bytes (all[i]) > 100 * MIB) {
            process_fail ("%zu of broker, sender, receiver had %llu bytes", i,
                          (unsigned long long) process_peak_bytes (all[i]));
        }
    }
    process_hold_output (receiver, false);
    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    size_t size;
    const char *output = process_output (receiver, &size);
    assert_int_equal (size, count * 21);
    assert_memory_equal (output, text, size);
    free (text);
}

/*  ---- Setups ---- */

static int setup_few_descriptors (void **state)
{
    if (getenv ("HAWSER_WRAP")) {
        return fixture_setup_tcp (state);
    }
    setenv ("HAWSER_WRAP", "/usr/bin/prlimit --nofile=100", 1);
    const int rc = fixture_setup_tcp_with ("{\"anchors\": {\"heartbeat_interval_ms\": 200,"
                                           " \"reconnect_grace_ms\": 300}}");
    unsetenv ("HAWSER_WRAP");
    return rc;
}

static int setup_large_windows (void **state)
{
    (void) state;
    return fixture_setup_tcp_with ("{\"anchors\": {\"buffer_bytes\": 536870912,"
                                   " \"window_bytes_max\": 134217728,"
                                   " \"window_records\": 2000000}}");
}

static int teardown_clock (void **state)
{
    if (getenv ("FAKETIME_TIMESTAMP_FILE")) {
        unsetenv ("HAWSER_WRAP");
        unsetenv ("FAKETIME_TIMESTAMP_FILE");
        unsetenv ("FAKETIME_NO_CACHE");
        unsetenv ("FAKETIME_DONT_FAKE_MONOTONIC");
    }
    return fixture_teardown (state);
}

#define OVER_TCP(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_tcp, fixture_teardown)
#define OVER_IPC(test)  cmocka_unit_test_setup_teardown (test, fixture_setup_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (broker_out_of_descriptors_serves_those_it_has,
                                         setup_few_descriptors, fixture_teardown),
        OVER_BOTH (a_thousand_signals_stop_and_lose_nothing),
        cmocka_unit_test_setup_teardown (clock_that_is_set_is_noticed_by_nobody, fixture_setup_bare,
                                         teardown_clock),
        cmocka_unit_test_setup_teardown (clock_that_is_set_between_two_brokers_stops_no_stream,
                                         fixture_setup_bare, teardown_clock),
        OVER_BOTH (anchors_beyond_the_limit_are_refused_and_the_rest_work),
        OVER_BOTH (anchor_that_nobody_attaches_to_expires),
        OVER_BOTH (all_silent_peers_expire),
        cmocka_unit_test_setup_teardown (a_million_small_records_cost_about_what_they_weigh,
                                         setup_large_windows, fixture_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
