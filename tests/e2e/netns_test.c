/*  Machines that vanish: senders and their broker in network namespaces of their own, and
 *  the link between them is pulled, so that nobody hears of anything. Needs root and
 *  iproute2; skipped without.
 *
 *      near: the test, the broker             far: the senders
 *      10.99.0.1 ------------- the link ------------- 10.99.0.2
 *
 *  SOAK=1 also waits until the broker's kernel has given the connections up, and has a link down
 *  for a minute.
 */
#include "tests/support/crew.h"
#include "tests/support/crowd.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CROWD        100
#define HEARTBEAT_MS 300

static const char s_ip[] = "/sbin/ip";

static bool s_is_alone;   /* this program has a network namespace of its own */
static process_t *s_hold; /* lives in the far one, and with it that */
static char s_far[32];    /* its pid */

/*  ---- The network ---- */

/*  Runs the words, up to the first null, in the near namespace or the far one.  */
static void run (bool is_far, const char *const words[])
{
    const char *list[24] = {NULL};
    size_t count = 0;

    if (is_far) {
        list[count++] = "/usr/bin/nsenter";
        list[count++] = "-n";
        list[count++] = "-t";
        list[count++] = s_far;
    }
    for (size_t i = 0; words[i]; i++) {
        list[count++] = words[i];
    }
    process_expect_exit (process_start_list (NULL, list), 0);
}

#define RUN(is_far, ...) run (is_far, (const char *const[]){s_ip, __VA_ARGS__, NULL})

/*  The namespace is there once its first program speaks.  */
static void make_network (void)
{
    s_hold = process_start (NULL, "/usr/bin/unshare", "-n", "/bin/cat", NULL);
    process_write (s_hold, "hold\n", 5);
    process_wait_output (s_hold, "hold");
    snprintf (s_far, sizeof s_far, "%d", (int) process_pid (s_hold));
    RUN (false, "link", "set", "lo", "up");
    RUN (false, "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", s_far);
    RUN (false, "address", "add", "10.99.0.1/24", "dev", "near");
    RUN (false, "link", "set", "near", "up");
    RUN (true, "address", "add", "10.99.0.2/24", "dev", "far");
    RUN (true, "link", "set", "far", "up");
}

/*  At the far end: the near one loses its carrier, and keeps its address for those who are
 *  there.  */
static void pull_link (void)
{
    RUN (true, "link", "set", "far", "down");
}

static void plug_link (void)
{
    RUN (true, "link", "set", "far", "up");
}

static process_t *start_far_sender (const char *label)
{
    return process_start (NULL, "/usr/bin/nsenter", "-n", "-t", s_far,
                          process_program ("hawser-send"), "--anchor", "port", "--label", label,
                          "--wait", "none", NULL);
}

/*  ---- Tests ---- */

static void skip_unless_alone (void)
{
    if (!s_is_alone) {
        print_message ("needs root, iproute2 and network namespaces, and no HAWSER_WRAP\n");
        skip ();
    }
}

static void senders_that_lost_their_link_are_dropped_and_their_connections_closed (void **state)
{
    const size_t count = process_scaled (CROWD, 10);
    hws_client_t *client = NULL;
    hws_receiver_t *receiver = NULL;
    hws_event_t event;
    size_t dropped = 0;

    (void) state;
    skip_unless_alone ();
    const crowd_options_t options = {"port", count, 1, process_pid (s_hold)};
    client = fixture_client ();
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    const size_t descriptors = process_descriptors (fixture_broker ());
    process_t *crowd = crowd_start (&options);
    process_wait_output (crowd, "ready");
    assert_int_equal (fixture_statistic ("seats"), count);

    const int64_t pulled_at = process_now ();
    pull_link ();
    while (dropped < count) {
        assert_int_equal (hws_receiver_recv (receiver, &event, 60000), 0);
        if (event.kind != HWS_EVENT_ATTACHED && event.kind != HWS_EVENT_RECORD) {
            assert_int_equal (event.kind, HWS_EVENT_DROPPED);
            assert_string_equal (event.cause, "heartbeat");
            dropped++;
        }
    }

    /*  What they said last may be half an interval old.  */
    assert_true (process_now () - pulled_at >= 2 * HEARTBEAT_MS);
    assert_int_equal (hws_receiver_recv (receiver, &event, 0), HWS_EWOULD_BLOCK);
    fixture_wait_statistic ("seats", 0);
    assert_int_equal (fixture_statistic ("dropped"), count);
    if (getenv ("SOAK")) {
        fixture_wait_descriptors (descriptors);
    }
    process_signal (crowd, SIGKILL);
    process_expect_exit (crowd, 128 + SIGKILL);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

/*  Silence is judged by the intervals, not by the grace, so its stream is over by then.  */
static void sender_reports_a_broker_it_lost_and_finds_it_again (void **state)
{
    (void) state;
    skip_unless_alone ();
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--senders", "1", NULL);
    process_t *sender = start_far_sender ("s");
    process_write (sender, "before\n", 7);
    event_wait (receiver, "record", "s", 1);

    pull_link ();
    process_wait_error (sender, "went away");
    event_wait (receiver, "dropped", "s", 1);
    plug_link ();
    process_wait_error (sender, "is back");

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 3);
    assert_int_equal (process_count_errors (sender, "dropped(heartbeat)"), 1);
    assert_int_equal (event_count (receiver, "dropped", "s"), 1);
}

/*  The machine is started again before its link is back.  */
static void sender_that_restarts_behind_a_pulled_link_streams_when_it_is_back (void **state)
{
    (void) state;
    skip_unless_alone ();
    process_t *receiver = process_start (NULL, "hawser-recv", "--anchor", "port", "--format",
                                         "json", "--senders", "2", NULL);
    process_t *first = start_far_sender ("first");
    process_write (first, "before\n", 7);
    event_wait (receiver, "record", "first", 1);

    pull_link ();
    process_signal (first, SIGKILL);
    process_expect_exit (first, 128 + SIGKILL);
    process_t *second = start_far_sender ("second");
    process_write (second, "after\n", 6);
    event_wait (receiver, "dropped", "first", 1);
    plug_link ();

    event_wait (receiver, "record", "second", 1);
    process_close_input (second);
    process_expect_exit (second, 0);
    process_expect_exit (receiver, 3);
    assert_int_equal (event_count (receiver, "dropped", NULL), 1);
    assert_int_equal (event_count (receiver, "detached", "second"), 1);
}

/*  A lost link is no cancel: the sender waits for its receiver and ends only when told.  */
static void receiver_that_lost_its_link_cancels_nobody (void **state)
{
    (void) state;
    skip_unless_alone ();
    process_t *receiver =
        process_start (NULL, "/usr/bin/nsenter", "-n", "-t", s_far, process_program ("hawser-recv"),
                       "--anchor", "port", "--format", "json", NULL);
    process_t *sender = process_start (NULL, "hawser-send", "--anchor", "port", "--label", "s",
                                       "--wait", "30", NULL);
    process_write (sender, "before\n", 7);
    event_wait (receiver, "record", "s", 1);

    pull_link ();
    process_wait_error (receiver, "went away");
    process_write (sender, "meanwhile\n", 10);
    plug_link ();
    event_wait (receiver, "record", "s", 2);
    assert_true (process_is_running (sender));
    process_signal (receiver, SIGINT);

    process_expect_exit (sender, 3);
    process_expect_exit (receiver, 130);
    assert_int_equal (event_count (receiver, "cancelled", "s"), 1);
}

/*  Its intervals allow a minute of silence, and neither end hears of the other in it.  */
static void streams_go_on_behind_a_link_that_was_down_for_less_than_they_allow (void **state)
{
    const bool is_full = getenv ("SOAK") != NULL;
    crew_t crew;

    (void) state;
    skip_unless_alone ();
    fixture_start_broker ("tcp://10.99.0.1:*",
                          is_full ? "{\"anchors\": {\"heartbeat_interval_ms\": 25000,"
                                    " \"window_records\": 100}, \"allow_insecure\": true}"
                                  : "{\"anchors\": {\"heartbeat_interval_ms\": 700,"
                                    " \"window_records\": 100}, \"allow_insecure\": true}");
    const crew_options_t options = {.senders = 3,
                                    .records = is_full ? 20000 : 2000,
                                    .sender_space = process_pid (s_hold),
                                    .give_up = "5m"};
    crew_start (&crew, &options);
    crew_wait_records (&crew, options.records);

    pull_link ();
    process_watch (is_full ? 60000 : 1200);
    plug_link ();

    crew_expect_whole (&crew);
}

/*  ---- Setup ---- */

/*  Before any thread: they share the namespace of who makes them.  */
static int leave_the_network (void **state)
{
    (void) state;
    s_is_alone = !getenv ("HAWSER_WRAP") && access (s_ip, X_OK) == 0 &&
                 access ("/usr/bin/nsenter", X_OK) == 0 && unshare (CLONE_NEWNET) == 0;
    return 0;
}

static int setup (void **state)
{
    const int rc = fixture_setup_bare (state);

    if (rc == 0 && s_is_alone) {
        make_network ();
        fixture_start_broker ("tcp://10.99.0.1:*",
                              "{\"anchors\": {\"heartbeat_interval_ms\": 300,"
                              " \"reconnect_grace_ms\": 300}, \"allow_insecure\": true}");
    }
    return rc;
}

static int teardown (void **state)
{
    if (s_is_alone) {
        RUN (false, "link", "delete", "near");
        process_close_input (s_hold);
        process_expect_exit (s_hold, 0);
    }
    return fixture_teardown (state);
}

#define LINKED(test) cmocka_unit_test_setup_teardown (test, setup, teardown)

int main (int argc, char **argv)
{
    crowd_main (argc, argv);
    const struct CMUnitTest tests[] = {
        LINKED (senders_that_lost_their_link_are_dropped_and_their_connections_closed),
        LINKED (sender_reports_a_broker_it_lost_and_finds_it_again),
        LINKED (sender_that_restarts_behind_a_pulled_link_streams_when_it_is_back),
        LINKED (receiver_that_lost_its_link_cancels_nobody),
        LINKED (streams_go_on_behind_a_link_that_was_down_for_less_than_they_allow),
    };
    return cmocka_run_group_tests (tests, leave_the_network, NULL);
}
