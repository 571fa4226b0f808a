#include "base/heap.h"

#include <stddef.h>

static bool is_before (const hws_timer_t *a, const hws_timer_t *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

/*  Joins two trees; either may be null. The later root becomes the first child
 *  of the earlier one.  */
static hws_timer_t *meld (hws_timer_t *a, hws_timer_t *b)
{
    if (a == NULL || b == NULL) {
        return a ? a : b;
    }
    if (is_before (b, a)) {
        hws_timer_t *const swap = a;
        a = b;
        b = swap;
    }
    b->back = a;
    b->sibling = a->child;
    if (a->child) {
        a->child->back = b;
    }
    a->child = b;
    return a;
}

/*  Joins a list of siblings into one tree: pairs from the left, then all of
 *  them from the right. Iterative, because the list may be long.  */
static hws_timer_t *meld_siblings (hws_timer_t *first)
{
    hws_timer_t *pairs = NULL; /* a stack, linked through `sibling` */
    while (first) {
        hws_timer_t *const a = first;
        hws_timer_t *const b = a->sibling;
        first = b ? b->sibling : NULL;
        a->sibling = a->back = NULL;
        if (b) {
            b->sibling = b->back = NULL;
        }
        hws_timer_t *const pair = meld (a, b);
        pair->sibling = pairs;
        pairs = pair;
    }
    hws_timer_t *root = NULL;
    while (pairs) {
        hws_timer_t *const pair = pairs;
        pairs = pair->sibling;
        pair->sibling = NULL;
        root = meld (root, pair);
    }
    return root;
}

void hws_heap_clear (hws_heap_t *self, hws_timer_t *timer)
{
    if (!hws_timer_is_armed (timer)) {
        return;
    }
    hws_timer_t *const children = meld_siblings (timer->child);
    if (timer == self->root) {
        self->root = children;
    } else {
        if (timer->back->child == timer) {
            timer->back->child = timer->sibling;
        } else {
            timer->back->sibling = timer->sibling;
        }
        if (timer->sibling) {
            timer->sibling->back = timer->back;
        }
        self->root = meld (self->root, children);
    }
    *timer = (hws_timer_t){0};
}

void hws_heap_set (hws_heap_t *self, hws_timer_t *timer, hws_ms_t at)
{
    hws_heap_clear (self, timer);
    if (at == HWS_NEVER) {
        return;
    }
    *timer = (hws_timer_t){.at = at, .order = ++self->order};
    self->root = meld (self->root, timer);
}

hws_ms_t hws_heap_first_at (const hws_heap_t *self)
{
    return self->root ? self->root->at : HWS_NEVER;
}

hws_timer_t *hws_heap_pop_due (hws_heap_t *self, hws_ms_t now)
{
    hws_timer_t *const timer = self->root;
    if (timer == NULL || timer->at > now) {
        return NULL;
    }
    hws_heap_clear (self, timer);
    return timer;
}
