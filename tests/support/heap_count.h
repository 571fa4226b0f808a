/*  How many timers are armed: tests show that work arms none of its own.
 */
#ifndef TEST_HEAP_COUNT_H
#define TEST_HEAP_COUNT_H

#include "base/heap.h"

#include <stddef.h>

static inline size_t timers_below (const hws_timer_t *timer)
{
    size_t count = 0;
    for (; timer; timer = timer->sibling) {
        count += 1 + timers_below (timer->child);
    }
    return count;
}

static inline size_t heap_count (const hws_heap_t *heap)
{
    return timers_below (heap->root);
}

#endif
