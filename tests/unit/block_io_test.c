/*  The client's blocks: counted, kept for the next, bounded, and for any thread.  */
#include "client/block_io.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <malloc.h>
#include <cmocka.h>

enum { BATCH = 256 * 1024 };

static void block_is_as_large_as_asked_for (void **state)
{
    (void) state;
    hws_blocks_t *blocks = hws_blocks_new ();
    static const size_t sizes[] = {1, 4096, 4224, 4225, BATCH, BATCH + 1, 5 * 1024 * 1024};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        hws_block_t *const block = blocks->take (blocks, sizes[i]);
        assert_true (block->size >= sizes[i]);
        memset (block->bytes, 0x55, block->size);
        block->release (block);
    }

    hws_blocks_destroy (&blocks);
    assert_null (blocks);
}

static void last_holder_gives_the_block_to_the_next (void **state)
{
    (void) state;
    hws_blocks_t *blocks = hws_blocks_new ();
    hws_block_t *const first = blocks->take (blocks, BATCH);
    first->hold (first);

    first->release (first);
    hws_block_t *const second = blocks->take (blocks, BATCH);
    assert_ptr_not_equal (second, first);
    first->release (first);

    assert_ptr_equal (blocks->take (blocks, BATCH - 100), first);
    first->release (first);
    second->release (second);
    hws_blocks_destroy (&blocks);
}

static void what_is_kept_is_bounded (void **state)
{
    (void) state;
    enum { COUNT = 64 };
    hws_blocks_t *blocks = hws_blocks_new ();
    hws_block_t *taken[COUNT];
    const size_t before = mallinfo2 ().uordblks + mallinfo2 ().hblkhd;
    for (int i = 0; i < COUNT; i++) {
        taken[i] = blocks->take (blocks, BATCH);
    }

    for (int i = 0; i < COUNT; i++) {
        taken[i]->release (taken[i]);
    }

    assert_true (mallinfo2 ().uordblks + mallinfo2 ().hblkhd - before <= 4 * 1024 * 1024 + 4096);
    hws_blocks_destroy (&blocks);
}

/*  Lets blocks go that the test's thread took.  */
static void *let_go (void *argument)
{
    hws_block_t **const taken = argument;
    for (int i = 0; taken[i]; i++) {
        taken[i]->release (taken[i]);
    }
    return NULL;
}

static void blocks_are_let_go_by_another_thread (void **state)
{
    (void) state;
    enum { COUNT = 8 };
    hws_blocks_t *blocks = hws_blocks_new ();
    for (int round = 0; round < 100; round++) {
        hws_block_t *taken[COUNT + 1] = {NULL};
        for (int i = 0; i < COUNT; i++) {
            taken[i] = blocks->take (blocks, 4096);
            taken[i]->hold (taken[i]);
        }
        pthread_t thread;
        assert_int_equal (pthread_create (&thread, NULL, let_go, taken), 0);
        for (int i = 0; i < COUNT; i++) {
            memset (taken[i]->bytes, i, 4096);
            taken[i]->release (taken[i]);
        }
        assert_int_equal (pthread_join (thread, NULL), 0);
    }
    hws_blocks_destroy (&blocks);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (block_is_as_large_as_asked_for),
        cmocka_unit_test (last_holder_gives_the_block_to_the_next),
        cmocka_unit_test (what_is_kept_is_bounded),
        cmocka_unit_test (blocks_are_let_go_by_another_thread),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
