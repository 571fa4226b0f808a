/*  The support for process tests, tried on /bin/sh: it hears, it waits, and it fails a
 *  test that leaves something behind.
 */
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static process_t *start_shell (const char *script)
{
    return process_start (NULL, "/bin/sh", "-c", script, NULL);
}

static void lines_are_heard_in_order_on_both_outputs (void **state)
{
    assert_int_equal (process_setup (), 0);
    process_t *shell = start_shell ("echo one; echo two >&2; echo one more; exit 7");

    (void) state;
    assert_string_equal (process_wait_output (shell, "one"), "one");
    assert_string_equal (process_wait_output (shell, "one"), "one more");
    assert_string_equal (process_wait_error (shell, "two"), "two");
    assert_int_equal (process_wait_exit (shell), 7);
    assert_int_equal (process_count_output (shell, "one"), 2);
    assert_int_equal (process_teardown (), 0);
}

static void input_goes_through_however_large (void **state)
{
    static char text[1 << 20];
    size_t size;

    (void) state;
    memset (text, 'x', sizeof text);
    assert_int_equal (process_setup (), 0);
    process_t *cat = process_start (NULL, "/bin/cat", NULL);
    process_write (cat, text, sizeof text);
    process_close_input (cat);

    process_expect_exit (cat, 0);
    process_output (cat, &size);
    assert_int_equal (size, sizeof text);
    assert_int_equal (process_teardown (), 0);
}

static void a_signal_is_128_and_its_number (void **state)
{
    assert_int_equal (process_setup (), 0);
    process_t *shell = start_shell ("echo up; read line");

    (void) state;
    process_wait_output (shell, "up");
    process_signal (shell, SIGTERM);
    assert_int_equal (process_wait_exit (shell), 128 + SIGTERM);
    assert_int_equal (process_teardown (), 0);
}

static void a_program_left_running_fails_the_teardown (void **state)
{
    (void) state;
    assert_int_equal (process_setup (), 0);
    start_shell ("read line");
    assert_int_equal (process_teardown (), -1);
}

static void a_descriptor_left_open_fails_the_teardown (void **state)
{
    (void) state;
    assert_int_equal (process_setup (), 0);
    const int fd = open ("/dev/null", O_RDONLY | O_CLOEXEC);
    const int rc = process_teardown ();
    close (fd);
    assert_int_equal (rc, -1);
}

static void a_report_on_stderr_fails_the_teardown (void **state)
{
    (void) state;
    assert_int_equal (process_setup (), 0);
    process_t *shell = start_shell ("echo '==1==ERROR: AddressSanitizer: heap-use' >&2");
    process_expect_exit (shell, 0);
    assert_int_equal (process_teardown (), -1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (lines_are_heard_in_order_on_both_outputs),
        cmocka_unit_test (input_goes_through_however_large),
        cmocka_unit_test (a_signal_is_128_and_its_number),
        cmocka_unit_test (a_program_left_running_fails_the_teardown),
        cmocka_unit_test (a_descriptor_left_open_fails_the_teardown),
        cmocka_unit_test (a_report_on_stderr_fails_the_teardown),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
