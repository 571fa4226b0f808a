/*  A state machine and its table: the test goes through every cell of the table, brings a
 *  fresh fixture to the state of its column, lets the event of its row happen, and compares
 *  the state and what was said with what stands in the cell.
 *
 *  Cells have a grammar, which docs/protocol.md explains ("State tables"): empty; "-" for
 *  what cannot come; else the next state and, behind a colon, the words for what was said.
 *  All words are compared, but not how often or in which order they were said.
 */
#ifndef TEST_MACHINE_H
#define TEST_MACHINE_H

#include <stdbool.h>
#include <stddef.h>

enum { WORDS_MAX = 16, WORD_SIZE = 64 };

/*  A set of words.  */
typedef struct {
    size_t count;
    char word[WORDS_MAX][WORD_SIZE];
} words_t;

void words_add (words_t *self, const char *format, ...) __attribute__ ((format (printf, 2, 3)));

/*  A column: how its state is reached. A row: how its event happens.  */
typedef struct {
    const char *name; /* as in the document, without backquotes; null behind the last */
    void (*act) (void);
    const char *never; /* of an event: the states in which it cannot come, or null */
} step_t;

typedef struct {
    const char *heading;
    const step_t *states;
    const step_t *events;
    void (*begin) (void); /* makes the fixture, in no state yet */
    void (*end) (void);
    const char *(*state) (void);  /* where it is now */
    void (*hear) (words_t *said); /* takes what was said since the last time */
} machine_t;

/*  Goes through the table. Every difference is printed with table, row and column; then the
 *  test fails, if there was one, or if document and drivers do not name the same rows and
 *  columns.  */
void machine_drive (const machine_t *self);

/*  The same with another document: returns the number of differences.  */
size_t machine_differences (const machine_t *self, const char *path);

/*  A teardown: names the cell that an assertion of the fixture has left.  */
int machine_end (void **state);

#define TABLE_TEST(name) cmocka_unit_test_teardown (name, machine_end)

#endif
