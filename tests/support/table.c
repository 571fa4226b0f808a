#include "tests/support/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { LINE_SIZE = 2048 };

static const char *after_blanks (const char *text)
{
    return text + strspn (text, " \t");
}

/*  The text between two bars, into `to`; returns the place behind the second.  */
static const char *take_cell (const char *at, table_text_t to)
{
    size_t size = 0;
    for (at = after_blanks (at); *at != '|'; at++) {
        if (*at == '\0' || size == TABLE_TEXT_SIZE - 1) {
            fail_msg ("a cell is not closed, or too long: %s", at);
        }
        if (*at != '`') {
            to[size++] = *at;
        }
    }
    while (size > 0 && to[size - 1] == ' ') {
        size--;
    }
    to[size] = '\0';
    return at + 1;
}

/*  The cells of a line behind the first, whose text goes to `first`.  */
static size_t take_line (const char *line, table_text_t first, table_text_t *cells)
{
    size_t count = 0;
    for (const char *at = take_cell (line + 1, first); *after_blanks (at) != '\n'; count++) {
        if (count == TABLE_COLUMNS_MAX) {
            fail_msg ("more than %d columns: %s", TABLE_COLUMNS_MAX, line);
        }
        at = take_cell (at, cells[count]);
    }
    return count;
}

static bool is_heading (const char *line, const char *heading)
{
    const char *const text = after_blanks (line + strspn (line, "#"));
    return *line == '#' && strncmp (text, heading, strlen (heading)) == 0 &&
           text[strlen (heading)] == '\n';
}

static void take_row (table_t *self, const char *line)
{
    if (self->row_count == TABLE_ROWS_MAX) {
        fail_msg ("more than %d rows", TABLE_ROWS_MAX);
    }
    const size_t row = self->row_count++;
    if (take_line (line, self->rows[row], self->cells[row]) != self->column_count) {
        fail_msg ("not %zu cells: %s", self->column_count, line);
    }
}

void table_read (table_t *self, const char *path, const char *heading)
{
    memset (self, 0, sizeof *self);
    FILE *const file = fopen (path, "r");
    if (file == NULL) {
        fail_msg ("%s is not here: run tests from the root of the tree", path);
        return;
    }
    char line[LINE_SIZE];
    bool is_found = false;
    size_t line_count = 0; /* of the table */
    while (fgets (line, sizeof line, file) && (line_count == 0 || *line == '|')) {
        if (!is_found || *line != '|') {
            if (is_found && *line == '#') {
                break;
            }
            is_found = is_found || is_heading (line, heading);
            continue;
        }
        table_text_t nothing;
        line_count++;
        if (line_count == 1) {
            self->column_count = take_line (line, nothing, self->columns);
        } else if (line_count > 2) { /* the second is the rule */
            take_row (self, line);
        }
    }
    fclose (file);
    if (self->row_count == 0) {
        fail_msg ("%s has no table under the heading %s", path, heading);
    }
}
