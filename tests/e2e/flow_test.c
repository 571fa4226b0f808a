/*  Windows between real processes: a slow receiver makes its senders wait, keeps the
 *  memory of everybody within what is configured, loses nothing and hurts nobody
 *  else. Where the programs cannot be slow on purpose the test is the receiver
 *  itself, through the library.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB         ((size_t) 1024 * 1024)
#define RECORD_SIZE ((size_t) 64 * 1024)
#define SENDERS     4
#define INTERVAL_MS 500

/*  4 MiB may be unacknowledged. A process also has its code, its libraries, read
 *  buffers and what its allocator keeps: the slack.  */
#define BUDGET ((uint64_t) 4 * MIB)
#define SLACK  ((uint64_t) 24 * MIB)

static const char *const s_small_windows = "{\"anchors\": {\"buffer_bytes\": 4194304},"
                                           " \"limits\": {\"record_bytes\": 1048576}}";

static void expect_bounded (const process_t *process, const char *who)
{
    const uint64_t peak = process_peak_bytes (process);

    if (process_sizes_matter () && peak > BUDGET + SLACK) {
        process_fail ("%s had %llu bytes of memory", who, (unsigned long long) peak);
    }
}

/*  Numbered lines of RECORD_SIZE bytes, newline included.  */
static const char *make_lines (const char *name, size_t count)
{
    const char *path = process_path ("%s", name);
    char *line = malloc (RECORD_SIZE + 1);
    FILE *file = fopen (path, "we");

    assert_non_null (line);
    assert_non_null (file);
    for (size_t i = 0; i < count; i++) {
        memset (line, '.', RECORD_SIZE);
        const int size = snprintf (line, RECORD_SIZE, "%zu", i);
        line[size] = ' ';
        line[RECORD_SIZE - 1] = '\n';
        assert_int_equal (fwrite (line, 1, RECORD_SIZE, file), RECORD_SIZE);
    }
    assert_int_equal (fclose (file), 0);
    free (line);
    return path;
}

static process_t *start_sender (const char *anchor, const char *input, const char *label)
{
    const process_files_t files = {.input = input};
    return process_start (&files, "hawser-send", "--anchor", anchor, "--label", label, "--wait",
                          "30", NULL);
}

static void ten_records_a_second_bound_everybodys_memory_and_lose_nothing (void **state)
{
    const size_t records = process_scaled (400, 25);
    const char *input = make_lines ("in", records);
    process_t *senders[SENDERS];
    size_t seen[SENDERS + 1] = {0};
    size_t endings = 0;
    size_t taken = 0;
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    hws_event_t event;

    (void) state;
    process_t *broker = fixture_broker ();
    client = fixture_client ();
    assert_int_equal (hws_receiver_open (&receiver, client, "slow", NULL), 0);
    for (size_t i = 0; i < SENDERS; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = start_sender ("slow", input, label);
    }

    while (endings < SENDERS) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 60000), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            assert_true (event.sender_id <= SENDERS);
            assert_int_equal (event.size, RECORD_SIZE - 1);
            assert_int_equal (strtoul (event.data, NULL, 10), seen[event.sender_id]);
            seen[event.sender_id]++;
            if (++taken <= 20) {
                process_watch (100);
            }
            if (taken == 20) {
                expect_bounded (broker, "the broker");
                for (size_t i = 0; i < SENDERS; i++) {
                    expect_bounded (senders[i], "a sender");
                }
            }
        } else if (event.kind != HWS_EVENT_ATTACHED) {
            assert_int_equal (event.kind, HWS_EVENT_DETACHED);
            assert_int_equal (event.records, records);
            endings++;
        }
    }

    /*  Asking for more is what says that the last ending is consumed.  */
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);

    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 0);
        assert_int_equal (seen[i + 1], records);
    }
    expect_bounded (broker, "the broker");
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void a_receiver_whose_stdout_stands_still_is_bounded_and_loses_nothing (void **state)
{
    const size_t records = process_scaled (400, 25);
    const char *input = make_lines ("in", records);
    process_t *senders[SENDERS];

    (void) state;
    process_t *broker = fixture_broker ();
    process_t *receiver =
        process_start (NULL, "hawser-recv", "--anchor", "slow", "--senders", "4", NULL);
    process_hold_output (receiver, true);
    for (size_t i = 0; i < SENDERS; i++) {
        char label[32];
        snprintf (label, sizeof label, "s%zu", i);
        senders[i] = start_sender ("slow", input, label);
    }
    process_watch (1000);
    expect_bounded (broker, "the broker");
    expect_bounded (receiver, "the receiver");
    for (size_t i = 0; i < SENDERS; i++) {
        expect_bounded (senders[i], "a sender");
    }
    process_hold_output (receiver, false);

    for (size_t i = 0; i < SENDERS; i++) {
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);
    assert_int_equal (process_count_output (receiver, ""), SENDERS * records);
}

static void slow_receiver_hurts_nobody_else (void **state)
{
    const char *input = make_lines ("in", process_scaled (400, 25));
    const process_files_t files = {.output = process_path ("out")};

    (void) state;
    process_t *stalled =
        process_start (NULL, "hawser-recv", "--anchor", "stalled", "--senders", "1", NULL);
    process_hold_output (stalled, true);
    process_t *waiting = start_sender ("stalled", input, "waiting");
    process_t *receiver =
        process_start (&files, "hawser-recv", "--anchor", "fast", "--senders", "1", NULL);
    process_t *sender = start_sender ("fast", input, "fast");

    process_expect_exit (sender, 0);
    process_expect_exit (receiver, 0);
    file_expect_same (files.output, input);
    process_hold_output (stalled, false);
    process_expect_exit (waiting, 0);
    process_expect_exit (stalled, 0);
}

static void a_full_window_would_block_or_time_out_as_asked (void **state)
{
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    hws_event_t event;
    uint64_t sent = 0;
    uint64_t received = 0;
    char record[4096] = "";

    (void) state;
    client = fixture_client ();
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "port", NULL), 0);

    /*  Fill the window, also what is lent to it; nobody receives.  */
    while (hws_sender_send (sender, record, sizeof record, 200) == 0) {
        sent++;
        assert_true (sent < 1000000);
    }
    const int rc = hws_sender_send (sender, record, sizeof record, 0);
    const int64_t began_at = process_now ();
    const int timed = hws_sender_send (sender, record, sizeof record, 100);
    const int64_t took_ms = process_now () - began_at;

    /*  Receive: everything that was accepted, and the sender goes on.  */
    while (received < sent) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        received += event.kind == HWS_EVENT_RECORD ? 1 : 0;
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_send (sender, record, sizeof record, 30000), 0);

    assert_int_equal (rc, HWS_EWOULD_BLOCK);
    assert_int_equal (timed, HWS_ETIMEOUT);
    assert_true (took_ms >= 99);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Sends until the window is full and stays so; nobody receives. Returns how many records.  */
static uint64_t fill_window (hws_sender_t *sender)
{
    static const char record[4096];
    uint64_t sent = 0;
    while (hws_sender_send (sender, record, sizeof record, 300) == 0) {
        sent++;
    }
    return sent;
}

static void receive_records (hws_receiver_t *receiver, uint64_t count)
{
    hws_event_t event;
    while (count > 0) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        count -= event.kind == HWS_EVENT_RECORD ? 1 : 0;
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
}

/*  The first sender had all that there is to lend, and is idle: the second gets as much.  */
static void an_idle_senders_window_is_lent_on (void **state)
{
    hws_client_t *clients[2] = {fixture_client (), fixture_client ()};
    hws_receiver_t *receiver = NULL;
    hws_sender_t *senders[2] = {NULL, NULL};
    hws_receiver_options_t options;

    (void) state;
    hws_receiver_options_init (&options);
    options.buffer_bytes = 262144;
    assert_int_equal (hws_receiver_open (&receiver, clients[0], "port", &options), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], clients[1], "port", NULL), 0);
    }

    const uint64_t first = fill_window (senders[0]);
    receive_records (receiver, first);
    uint64_t second = 0;
    for (int rounds = 0; second < first; rounds++) {
        second = fill_window (senders[1]);
        receive_records (receiver, second);
        assert_true (rounds < 10);
    }

    assert_true (first > 100000 / 4096);
    for (int i = 0; i < 2; i++) {
        hws_sender_destroy (&senders[i]);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
}

/*  For 6 intervals, two more than anybody may be silent, neither side calls the library, the
 *  window is full, and the receiver has unread records. They are long enough for a busy
 *  machine: a thread of the library's has three of them to get its turn.  */
static void heartbeats_need_no_credit_and_no_user_thread (void **state)
{
    hws_client_t *clients[2] = {fixture_client (), fixture_client ()};
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    hws_receiver_options_t options;
    hws_event_t event;
    uint64_t sent = 0;
    char record[4096] = "";
    (void) state;
    hws_receiver_options_init (&options);
    options.heartbeat_interval_ms = INTERVAL_MS;
    assert_int_equal (hws_receiver_open (&receiver, clients[0], "port", &options), 0);
    assert_int_equal (hws_sender_attach (&sender, clients[1], "port", NULL), 0);
    while (hws_sender_send (sender, record, sizeof record, 0) == 0) {
        sent++;
    }

    process_watch (6 * INTERVAL_MS);

    assert_int_equal (hws_sender_reason (sender, NULL, NULL), 0);
    assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
    assert_int_equal (event.kind, HWS_EVENT_ATTACHED);
    for (uint64_t i = 0; i < sent; i++) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
        assert_int_equal (event.kind, HWS_EVENT_RECORD);
        assert_int_equal (event.seq, i);
    }
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_send (sender, "after", 5, 30000), 0);
    assert_int_equal (hws_receiver_recv (receiver, &event, 30000), 0);
    assert_memory_equal (event.data, "after", 5);
    assert_int_equal (fixture_statistic ("dropped"), 0);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
}

static int setup_small_tcp (void **state)
{
    (void) state;
    return fixture_setup_tcp_with (s_small_windows);
}

static int setup_small_ipc (void **state)
{
    (void) state;
    return fixture_setup_ipc_with (s_small_windows);
}

#define OVER_TCP(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define OVER_IPC(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)
#define SMALL(test)                                                                                \
    cmocka_unit_test_setup_teardown (test, setup_small_tcp, fixture_teardown),                     \
        cmocka_unit_test_setup_teardown (test, setup_small_ipc, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        SMALL (ten_records_a_second_bound_everybodys_memory_and_lose_nothing),
        SMALL (a_receiver_whose_stdout_stands_still_is_bounded_and_loses_nothing),
        OVER_BOTH (slow_receiver_hurts_nobody_else),
        OVER_BOTH (a_full_window_would_block_or_time_out_as_asked),
        OVER_BOTH (an_idle_senders_window_is_lent_on),
        OVER_BOTH (heartbeats_need_no_credit_and_no_user_thread),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
