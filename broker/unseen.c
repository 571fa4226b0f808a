#include "broker/unseen.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

static void append (hws_unseen_t *self, uint64_t first, uint64_t end)
{
    if (first < end) {
        self->ranges[self->count++] = (hws_range_t){.first = first, .end = end};
    }
}

static uint64_t larger_of (uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

int hws_unseen_init (hws_unseen_t *self, const hws_open_t *request, uint64_t end)
{
    const uint64_t highest = request->resume.highest_sender_id;
    *self = (hws_unseen_t){0};
    self->ranges = malloc ((request->resume.unseen_count + 1) * sizeof *self->ranges);
    if (self->ranges == NULL) {
        return HWS_ENO_MEMORY;
    }
    uint64_t next = 0; /* no range begins below: none overlap */
    for (uint32_t i = 0; i < request->resume.unseen_count; i++) {
        const hws_range_t *const range = &request->resume.unseen[i];
        append (self, larger_of (range->first, next), range->end < end ? range->end : end);
        next = larger_of (range->end, next);
    }
    append (self, larger_of (highest + 1, next), end);
    return 0;
}

void hws_unseen_fini (hws_unseen_t *self)
{
    free (self->ranges);
    *self = (hws_unseen_t){0};
}

static hws_range_t *find (const hws_unseen_t *self, uint64_t sender_id)
{
    for (uint32_t i = 0; i < self->count; i++) {
        hws_range_t *const range = &self->ranges[i];
        if (sender_id >= range->first && sender_id < range->end) {
            return range;
        }
    }
    return NULL;
}

bool hws_unseen_has (const hws_unseen_t *self, uint64_t sender_id)
{
    return sender_id != 0 && find (self, sender_id) != NULL;
}

int hws_unseen_reserve (hws_unseen_t *self)
{
    hws_range_t *const larger = realloc (self->ranges, (self->count + 1) * sizeof *larger);
    if (larger == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->ranges = larger;
    return 0;
}

void hws_unseen_remove (hws_unseen_t *self, uint64_t sender_id)
{
    hws_range_t *const range = find (self, sender_id);
    if (range == NULL) {
        return;
    }
    const uint64_t end = range->end;
    range->end = sender_id;
    if (range->first == range->end) {
        *range = self->ranges[--self->count];
    }
    append (self, sender_id + 1, end);
}
