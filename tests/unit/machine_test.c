/*  Whether what goes through the state tables finds what is wrong: a door and its table.  */
#include "tests/support/machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

static bool s_is_open;
static words_t s_said;

static void build (void)
{
    s_is_open = false;
    s_said.count = 0;
}

static void leave_it (void)
{
}

static void push (void)
{
    if (!s_is_open) {
        words_add (&s_said, "creak(loud)");
        words_add (&s_said, "draught to the receiver");
        words_add (&s_said, "draught to the sender");
    }
    s_is_open = true;
}

static const char *state_now (void)
{
    return s_is_open ? "open" : "shut";
}

static void hear (words_t *said)
{
    for (size_t i = 0; i < s_said.count; i++) {
        words_add (said, "%s", s_said.word[i]);
    }
    s_said.count = 0;
}

static const step_t states[] = {{"shut", leave_it, NULL}, {"open", push, NULL}, {NULL, NULL, NULL}};

static const step_t events[] = {
    {"push", push, NULL}, {"knock", leave_it, "open"}, {NULL, NULL, NULL}};

#define TITLE                                                                                      \
    "# Doors\n\n## Gate\n\n| | a |\n| --- | --- |\n| x | |\n\n## Door\n\nIt has no lock.\n\n"
#define HEAD  "| | shut | open |\n| --- | --- | --- |\n"
#define PUSH  "| push | open: creak(loud), draught to both | |\n"
#define KNOCK "| `knock` | | - |\n"

/*  The differences between the door and a document with this table.  */
static size_t differences (const char *table)
{
    const machine_t machine = {.heading = "Door",
                               .states = states,
                               .events = events,
                               .begin = build,
                               .end = leave_it,
                               .state = state_now,
                               .hear = hear};
    char path[] = "/tmp/hawser-table.XXXXXX";
    const int fd = mkstemp (path);
    assert_true (fd >= 0);
    FILE *const file = fdopen (fd, "w");
    assert_non_null (file);
    fprintf (file, "%s%s\n## Window\n\n| | b |\n| --- | --- |\n| y | |\n", TITLE, table);
    fclose (file);
    const size_t count = machine_differences (&machine, path);
    unlink (path);
    return count;
}

static void true_table_has_no_difference (void **state)
{
    (void) state;

    assert_int_equal (differences (HEAD PUSH KNOCK), 0);
}

static void wrong_next_state_is_a_difference (void **state)
{
    (void) state;

    assert_int_equal (differences (HEAD "| push | shut: creak(loud), draught to both | |\n" KNOCK),
                      1);
    assert_int_equal (differences (HEAD PUSH "| knock | open | - |\n"), 1);
    assert_int_equal (differences (HEAD "| push | : creak(loud), draught to both | |\n" KNOCK), 1);
}

static void word_too_many_or_too_few_is_a_difference (void **state)
{
    (void) state;

    assert_int_equal (differences (HEAD "| push | open: draught to both | |\n" KNOCK), 1);
    assert_int_equal (differences (HEAD "| push | open: creak(low), draught to both | |\n" KNOCK),
                      2);
    assert_int_equal (
        differences (HEAD "| push | open: creak(loud), draught to the sender | |\n" KNOCK), 1);
    assert_int_equal (differences (HEAD PUSH "| knock | shut: bell | - |\n"), 1);
}

static void empty_cell_where_something_happens_is_a_difference (void **state)
{
    (void) state;

    assert_int_equal (differences (HEAD "| push | | |\n" KNOCK), 4);
}

static void row_or_column_that_nothing_drives_is_a_difference (void **state)
{
    (void) state;

    assert_true (differences (HEAD PUSH KNOCK "| kick | | |\n") > 0);
    assert_true (differences ("| | shut | open | ajar |\n| --- | --- | --- | --- |\n"
                              "| push | open: creak(loud), draught to both | | |\n"
                              "| knock | | - | |\n") > 0);
}

static void driver_without_row_or_column_is_a_difference (void **state)
{
    (void) state;

    assert_true (differences (HEAD PUSH) > 0);
    assert_true (differences ("| | open |\n| --- | --- |\n| push | |\n| knock | - |\n") > 0);
    assert_true (differences (HEAD PUSH KNOCK KNOCK) > 0);
}

static void dash_is_for_what_the_driver_cannot_do (void **state)
{
    (void) state;

    assert_int_equal (differences (HEAD PUSH "| knock | | |\n"), 1);
    assert_int_equal (differences (HEAD PUSH "| knock | - | - |\n"), 1);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (true_table_has_no_difference),
        cmocka_unit_test (wrong_next_state_is_a_difference),
        cmocka_unit_test (word_too_many_or_too_few_is_a_difference),
        cmocka_unit_test (empty_cell_where_something_happens_is_a_difference),
        cmocka_unit_test (row_or_column_that_nothing_drives_is_a_difference),
        cmocka_unit_test (driver_without_row_or_column_is_a_difference),
        cmocka_unit_test (dash_is_for_what_the_driver_cannot_do),
    };
    return cmocka_run_group_tests_name ("machine", tests, NULL, NULL);
}
