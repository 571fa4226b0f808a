/*  What programs say: one line, and nothing that drives a terminal.  */
#include "io/console_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

/*  Stderr is a pipe while a test speaks.  */
static int s_saved;
static int s_pipe[2];

static void begin_listening (void)
{
    assert_int_equal (pipe (s_pipe), 0);
    s_saved = dup (STDERR_FILENO);
    dup2 (s_pipe[1], STDERR_FILENO);
    close (s_pipe[1]);
}

static void expect_heard (const char *expected)
{
    char heard[1024] = "";

    dup2 (s_saved, STDERR_FILENO);
    close (s_saved);
    const ssize_t size = read (s_pipe[0], heard, sizeof heard - 1);
    close (s_pipe[0]);
    assert_true (size >= 0);
    assert_string_equal (heard, expected);
}

static void a_line_begins_with_the_program (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "hawser-x", HWS_LOG_INFO, false);
    hws_console_say (&console, HWS_LOG_INFO, "open %s %d", "a", 7);
    hws_console_fini (&console);

    expect_heard ("hawser-x: open a 7\n");
}

static void less_important_lines_are_left_out (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "x", HWS_LOG_WARN, false);
    hws_console_say (&console, HWS_LOG_INFO, "quiet");
    hws_console_say (&console, HWS_LOG_WARN, "loud");
    hws_console_fini (&console);

    expect_heard ("x: loud\n");
}

static void what_peers_made_cannot_drive_a_terminal (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "x", HWS_LOG_INFO, false);
    hws_console_say (&console, HWS_LOG_INFO, "%s",
                     "a\nb\x1b[2J \xc2\x9b"
                     "1m \xff \xc3\xa4");
    hws_console_fini (&console);

    expect_heard ("x: a\\x0ab\\x1b[2J \\xc2\\x9b1m \\xff \xc3\xa4\n");
}

static void a_name_cannot_look_like_another (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "x", HWS_LOG_INFO, false);
    hws_console_say (&console, HWS_LOG_INFO,
                     "a\xe2\x80\xae"
                     "b \xe2\x80\x8b \xe2\x81\xa6 \xef\xbb\xbf");
    hws_console_fini (&console);

    expect_heard ("x: a\\xe2\\x80\\xaeb \\xe2\\x80\\x8b \\xe2\\x81\\xa6 \\xef\\xbb\\xbf\n");
}

static void progress_is_drawn_on_terminals_only (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "x", HWS_LOG_INFO, true);
    hws_console_draw (&console, "50 %");
    hws_console_say (&console, HWS_LOG_INFO, "end");
    hws_console_fini (&console);

    expect_heard ("x: end\n");
}

static void progress_makes_way_for_lines (void **state)
{
    hws_console_t console;

    (void) state;
    begin_listening ();
    hws_console_init (&console, "x", HWS_LOG_INFO, false);
    console.draws_progress = true;
    hws_console_draw (&console, "50 %");
    hws_console_say (&console, HWS_LOG_INFO, "news");
    hws_console_draw (&console, "60 %");
    hws_console_fini (&console);

    expect_heard ("\r\033[K50 %\r\033[Kx: news\n\r\033[K60 %\n");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_line_begins_with_the_program),
        cmocka_unit_test (less_important_lines_are_left_out),
        cmocka_unit_test (what_peers_made_cannot_drive_a_terminal),
        cmocka_unit_test (a_name_cannot_look_like_another),
        cmocka_unit_test (progress_is_drawn_on_terminals_only),
        cmocka_unit_test (progress_makes_way_for_lines),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
