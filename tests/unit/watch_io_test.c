/*  The watching thread: a signal stops what is guarded, once.  */
#include "io/watch_io.h"

#include "io/clock_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/*  What the stop function saw, told through a pipe so that a test can wait for it.  */
typedef struct {
    hws_watch_t watch;
    int told[2];
} fixture_t;

static fixture_t s_fixture;

static void tell (void *context, int signal)
{
    fixture_t *self = context;
    const char byte = (char) signal;

    if (write (self->told[1], &byte, 1) != 1) {
        _exit (99);
    }
}

static void tell_tick (void *context)
{
    tell (context, 0);
}

static bool tell_stop (void *context, int signal)
{
    tell (context, signal);
    return true;
}

static int set_up (void **state)
{
    (void) state;
    return pipe (s_fixture.told) == 0 && hws_watch_start (&s_fixture.watch) == 0 ? 0 : -1;
}

static int tear_down (void **state)
{
    (void) state;
    hws_watch_end (&s_fixture.watch);
    close (s_fixture.told[0]);
    close (s_fixture.told[1]);
    return 0;
}

/*  Waits for the stop function; returns the signal it got.  */
static int wait_told (void)
{
    char byte = -1;

    assert_int_equal (read (s_fixture.told[0], &byte, 1), 1);
    return byte;
}

static bool is_told (void)
{
    return poll (&(struct pollfd){.fd = s_fixture.told[0], .events = POLLIN}, 1, 0) > 0;
}

static void a_signal_stops_what_is_guarded_and_is_remembered (void **state)
{
    (void) state;
    hws_watch_guard (&s_fixture.watch, tell_stop, &s_fixture);
    assert_int_equal (hws_watch_signal (&s_fixture.watch), 0);
    kill (getpid (), SIGTERM);

    assert_int_equal (wait_told (), SIGTERM);
    assert_int_equal (hws_watch_signal (&s_fixture.watch), SIGTERM);
    assert_int_equal (hws_watch_release (&s_fixture.watch), SIGTERM);
}

static void a_signal_before_the_guard_stops_at_the_guard (void **state)
{
    (void) state;
    kill (getpid (), SIGINT);
    while (hws_watch_signal (&s_fixture.watch) == 0) {
        poll (NULL, 0, 1);
    }
    assert_false (is_told ());
    hws_watch_guard (&s_fixture.watch, tell_stop, &s_fixture);

    assert_true (is_told ());
    assert_int_equal (wait_told (), SIGINT);
}

static void what_was_released_is_not_stopped (void **state)
{
    (void) state;
    hws_watch_guard (&s_fixture.watch, tell_stop, &s_fixture);
    assert_int_equal (hws_watch_release (&s_fixture.watch), 0);
    kill (getpid (), SIGINT);
    while (hws_watch_signal (&s_fixture.watch) == 0) {
        poll (NULL, 0, 1);
    }

    assert_false (is_told ());
}

static void ticks_come_until_they_are_taken_back (void **state)
{
    (void) state;
    hws_watch_tick (&s_fixture.watch, tell_tick, &s_fixture, 1);
    assert_int_equal (wait_told (), 0);
    assert_int_equal (wait_told (), 0);
    hws_watch_tick (&s_fixture.watch, NULL, NULL, 0);
    while (is_told ()) {
        wait_told ();
    }

    assert_int_equal (poll (&(struct pollfd){.fd = s_fixture.told[0], .events = POLLIN}, 1, 20), 0);
}

/*  What a process ends with whose main thread does `what` and never comes back.  */
static int status_of (void (*what) (hws_watch_t *watch))
{
    int status = 0;
    const pid_t child = fork ();

    assert_true (child >= 0);
    if (child == 0) {
        hws_watch_t watch;
        if (hws_watch_start (&watch) == 0) {
            what (&watch);
        }
        for (;;) {
            pause ();
        }
    }
    assert_int_equal (waitpid (child, &status, 0), child);
    return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static void signal_unguarded (hws_watch_t *watch)
{
    (void) watch;
    kill (getpid (), SIGINT);
}

static bool signal_again (void *context, int signal)
{
    (void) signal;
    *(bool *) context = true;
    kill (getpid (), SIGINT);
    return true;
}

static bool fail_to_stop (void *context, int signal)
{
    (void) context;
    (void) signal;
    return false;
}

static void signal_unstoppable (hws_watch_t *watch)
{
    hws_watch_guard (watch, fail_to_stop, NULL);
    kill (getpid (), SIGTERM);
}

static void signal_twice (hws_watch_t *watch)
{
    static bool is_stopped;

    hws_watch_guard (watch, signal_again, &is_stopped);
    kill (getpid (), SIGTERM);
}

static void a_signal_ends_a_process_that_has_nothing_to_stop (void **state)
{
    (void) state;
    assert_int_equal (status_of (signal_unguarded), 128 + SIGINT);
}

static void a_signal_ends_a_process_that_cannot_be_stopped (void **state)
{
    (void) state;
    const hws_ms_t begun_at = hws_clock_ms ();
    assert_int_equal (status_of (signal_unstoppable), 128 + SIGTERM);

    /*  One that could be stopped gets 2500 ms to end.  */
    assert_true (hws_clock_ms () - begun_at < 2400);
}

static void a_second_signal_ends_the_process_with_the_first_ones_status (void **state)
{
    (void) state;
    assert_int_equal (status_of (signal_twice), 128 + SIGTERM);
}

#define TEST(test) cmocka_unit_test_setup_teardown (test, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_signal_stops_what_is_guarded_and_is_remembered),
        TEST (a_signal_before_the_guard_stops_at_the_guard),
        TEST (what_was_released_is_not_stopped),
        TEST (ticks_come_until_they_are_taken_back),
        cmocka_unit_test (a_signal_ends_a_process_that_has_nothing_to_stop),
        cmocka_unit_test (a_signal_ends_a_process_that_cannot_be_stopped),
        cmocka_unit_test (a_second_signal_ends_the_process_with_the_first_ones_status),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
