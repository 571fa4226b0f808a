/*  State tables as docs/protocol.md has them: a column is a state, a row an event, a cell
 *  what the event does in that state.
 *
 *  The document is the only place where they stand; tests read it from the root of the
 *  tree. A table that is missing, ragged or too large fails the test.
 */
#ifndef TEST_TABLE_H
#define TEST_TABLE_H

#include <stddef.h>

enum { TABLE_COLUMNS_MAX = 8, TABLE_ROWS_MAX = 48, TABLE_TEXT_SIZE = 160 };

typedef char table_text_t[TABLE_TEXT_SIZE];

typedef struct {
    size_t column_count;
    size_t row_count;
    table_text_t columns[TABLE_COLUMNS_MAX];
    table_text_t rows[TABLE_ROWS_MAX];
    table_text_t cells[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX];
} table_t;

/*  Reads the first table under a heading. Texts are without the blanks around them and
 *  without backquotes.  */
void table_read (table_t *self, const char *path, const char *heading);

#endif
