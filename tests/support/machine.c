#include "tests/support/machine.h"

#include "tests/support/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define DOCUMENT "docs/protocol.md"

/*  The cell at hand, for messages; null between two cells.  */
static struct {
    const char *heading;
    const char *row;
    const char *column;
} s_cell;

static size_t s_difference_count;

__attribute__ ((format (printf, 1, 2))) static void differ (const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    print_error ("table \"%s\", row \"%s\", column \"%s\": %s\n", s_cell.heading, s_cell.row,
                 s_cell.column, text);
    s_difference_count++;
}

/*  ---- Words ---- */

static bool words_have (const words_t *self, const char *word)
{
    for (size_t i = 0; i < self->count; i++) {
        if (strcmp (self->word[i], word) == 0) {
            return true;
        }
    }
    return false;
}

void words_add (words_t *self, const char *format, ...)
{
    char word[WORD_SIZE];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (word, sizeof word, format, arguments);
    va_end (arguments);
    if (words_have (self, word)) {
        return;
    }
    assert_true (self->count < WORDS_MAX);
    memcpy (self->word[self->count++], word, sizeof word);
}

/*  Adds what a cell names. What is said to both is said to each.  */
static void add_named (words_t *self, const char *word, int size)
{
    const char *const both = " to both";
    const int both_size = (int) strlen (both);
    if (size < both_size || strncmp (word + size - both_size, both, strlen (both)) != 0) {
        words_add (self, "%.*s", size, word);
        return;
    }
    words_add (self, "%.*s to the receiver", size - both_size, word);
    words_add (self, "%.*s to the sender", size - both_size, word);
}

/*  What a cell names behind its colon, separated by commas.  */
static void words_read (words_t *self, const char *text)
{
    while (*text != '\0') {
        const size_t size = strcspn (text, ",");
        add_named (self, text, (int) size);
        text += size;
        text += strspn (text, ", ");
    }
}

/*  ---- Cells ---- */

static void compare_words (const words_t *said, const words_t *named)
{
    for (size_t i = 0; i < named->count; i++) {
        if (!words_have (said, named->word[i])) {
            differ ("%s was not said", named->word[i]);
        }
    }
    for (size_t i = 0; i < said->count; i++) {
        if (!words_have (named, said->word[i])) {
            differ ("%s was said", said->word[i]);
        }
    }
}

static void compare (const machine_t *self, const char *cell)
{
    const char *const colon = strchr (cell, ':');
    const size_t size = colon ? (size_t) (colon - cell) : strlen (cell);
    char state[WORD_SIZE];
    snprintf (state, sizeof state, "%.*s", (int) size, cell);
    if (*cell == '\0') {
        snprintf (state, sizeof state, "%s", s_cell.column);
    }
    words_t said = {0}, named = {0};
    self->hear (&said);
    if (strcmp (self->state (), state) != 0) {
        differ ("the next state is \"%s\"", self->state ());
    }
    words_read (&named, colon ? colon + 1 + strspn (colon + 1, " ") : "");
    compare_words (&said, &named);
}

static void drive_cell (const machine_t *self, const step_t *event, const step_t *state,
                        const char *cell)
{
    words_t never = {0};
    words_read (&never, event->never ? event->never : "");
    const bool is_never = words_have (&never, state->name);
    if (is_never || strcmp (cell, "-") == 0) {
        if (!is_never || strcmp (cell, "-") != 0) {
            differ ("document and driver are not of one mind whether it can come");
        }
        return;
    }
    words_t before = {0};
    self->begin ();
    state->act ();
    if (strcmp (self->state (), state->name) != 0) {
        differ ("the state to begin with is \"%s\"", self->state ());
    }
    self->hear (&before);
    event->act ();
    compare (self, cell);
    self->end ();
}

/*  ---- Tables ---- */

static const step_t *find_step (const step_t *steps, const char *name)
{
    for (; steps->name; steps++) {
        if (strcmp (steps->name, name) == 0) {
            return steps;
        }
    }
    return NULL;
}

static void expect_names (const table_text_t *names, size_t count, const step_t *steps)
{
    size_t step_count = 0;
    for (; steps[step_count].name; step_count++) {
        bool is_named = false;
        for (size_t i = 0; i < count; i++) {
            is_named = is_named || strcmp (names[i], steps[step_count].name) == 0;
        }
        if (!is_named) {
            differ ("the document does not have \"%s\"", steps[step_count].name);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (find_step (steps, names[i]) == NULL) {
            differ ("nothing drives \"%s\"", names[i]);
        }
    }
    if (step_count != count) {
        differ ("%zu are in the document, %zu are driven", count, step_count);
    }
}

size_t machine_differences (const machine_t *self, const char *path)
{
    static table_t table;
    s_difference_count = 0;
    s_cell.heading = self->heading;
    s_cell.row = "";
    s_cell.column = "";
    table_read (&table, path, self->heading);
    s_cell.column = "all";
    expect_names (table.rows, table.row_count, self->events);
    s_cell.row = "all";
    expect_names (table.columns, table.column_count, self->states);

    for (size_t row = 0; row < table.row_count; row++) {
        for (size_t column = 0; column < table.column_count; column++) {
            const step_t *const event = find_step (self->events, table.rows[row]);
            const step_t *const state = find_step (self->states, table.columns[column]);
            s_cell.row = table.rows[row];
            s_cell.column = table.columns[column];
            if (event && state) {
                drive_cell (self, event, state, table.cells[row][column]);
            }
        }
    }
    s_cell.heading = NULL;
    return s_difference_count;
}

void machine_drive (const machine_t *self)
{
    const size_t count = machine_differences (self, DOCUMENT);
    if (count > 0) {
        fail_msg ("table \"%s\": %zu differences", self->heading, count);
    }
}

int machine_end (void **state)
{
    (void) state;
    if (s_cell.heading) {
        differ ("the fixture failed");
        s_cell.heading = NULL;
    }
    return 0;
}
