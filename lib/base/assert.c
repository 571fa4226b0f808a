#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void hws_assert_failed (const char *condition, const char *file, int line)
{
    fprintf (stderr, "hawser: bug: %s:%d: %s\n", file, line, condition);
    abort ();
}
