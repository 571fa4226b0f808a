#include "tests/support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

typedef struct {
    hws_block_t base;
    unsigned holders;
} counted_t;

static size_t s_bytes;

static void hold (hws_block_t *block)
{
    hws_container_of (block, counted_t, base)->holders++;
}

static void release (hws_block_t *block)
{
    counted_t *const self = hws_container_of (block, counted_t, base);
    assert_true (self->holders > 0);
    if (--self->holders == 0) {
        s_bytes -= block->size;
        free (block->bytes);
        free (self);
    }
}

static hws_block_t *take (hws_blocks_t *self, size_t size)
{
    (void) self;
    counted_t *const block = malloc (sizeof *block);
    uint8_t *const bytes = malloc (size);
    assert_true (block && bytes);
    *block = (counted_t){.base = {.hold = hold, .release = release, .bytes = bytes, .size = size},
                         .holders = 1};
    s_bytes += size;
    return &block->base;
}

hws_blocks_t s_test_blocks = {.take = take};

size_t test_block_bytes (void)
{
    return s_bytes;
}

void test_gather (hws_action_t *action, uint8_t *buffer, size_t size)
{
    if (!action->block) {
        return;
    }
    assert_true (action->size <= size);
    memcpy (buffer, action->data, action->size);
    action->data = buffer;
    action->block->release (action->block);
    action->block = NULL;
}
