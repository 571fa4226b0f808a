/*  What the process keeps of the memory that it frees.  */
#include "io/heap_io.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/*  Whether the system is asked for a block of that size alone, to have it back when it is
 *  freed. Under a sanitizer's malloc nothing is known of that.  */
static bool is_mapped (size_t size)
{
    const size_t before = mallinfo2 ().hblks;
    void *volatile block = malloc (size);
    const bool is_more = mallinfo2 ().hblks > before;
    free (block);
    return is_more;
}

static void blocks_of_a_batch_are_kept (void **state)
{
    (void) state;
    hws_heap_keep ();

    assert_false (is_mapped (1024 * 1024));
}

static void large_blocks_are_given_back (void **state)
{
    (void) state;
    hws_heap_keep ();
    hws_heap_keep ();

    if (mallinfo2 ().arena > 0) {
        assert_true (is_mapped (16 * 1024 * 1024));
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (blocks_of_a_batch_are_kept),
        cmocka_unit_test (large_blocks_are_given_back),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
