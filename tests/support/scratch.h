/*  The scratch directory of one test, the texts that live as long as the test, and what
 *  /proc says; used by process.c, whose header has the public side.
 */
#ifndef TESTS_SCRATCH_H
#define TESTS_SCRATCH_H

#include <stddef.h>

/*  Makes an empty directory. Returns 0 or -1.  */
int scratch_make (void);

/*  Removes it with all that is in it, and frees the texts.  */
void scratch_remove (void);

/*  Keeps a text from malloc until then; returns it.  */
const char *scratch_keep (char *text);

/*  Entries of a directory, "." and ".." too; 0 if it is not there.  */
size_t count_entries (const char *directory);

#endif
