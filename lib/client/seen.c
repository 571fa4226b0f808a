#include "client/seen.h"

#include <string.h>

/*  Closes the lowest hole, which is between the first two ranges.  */
static void close_lowest_hole (hws_seen_t *self)
{
    self->ranges[1].first = self->ranges[0].first;
    self->count--;
    memmove (&self->ranges[0], &self->ranges[1], self->count * sizeof self->ranges[0]);
}

bool hws_seen_has (const hws_seen_t *self, uint64_t id)
{
    uint32_t i = self->count;
    while (i > 0 && self->ranges[i - 1].first > id) {
        i--;
    }
    return i > 0 && id < self->ranges[i - 1].end;
}

bool hws_seen_mark (hws_seen_t *self, uint64_t id)
{
    uint32_t i = self->count;
    while (i > 0 && self->ranges[i - 1].first > id) {
        i--;
    }
    hws_range_t *const before = i > 0 ? &self->ranges[i - 1] : NULL;
    if (before && id < before->end) {
        return true;
    }
    hws_range_t *const after = i < self->count ? &self->ranges[i] : NULL;
    const bool joins_after = after && after->first == id + 1;
    if (before && before->end == id) {
        before->end++;
        if (joins_after) {
            before->end = after->end;
            self->count--;
            memmove (after, after + 1, (self->count - i) * sizeof *after);
        }
        return false;
    }
    if (joins_after) {
        after->first--;
        return false;
    }
    if (self->count == HWS_SEEN_RANGES_MAX) {
        close_lowest_hole (self);
        if (i < 2) {
            return false; /* it was in that hole, or is below all that is remembered */
        }
        i--;
    }
    memmove (&self->ranges[i + 1], &self->ranges[i], (self->count - i) * sizeof self->ranges[0]);
    self->ranges[i] = (hws_range_t){.first = id, .end = id + 1};
    self->count++;
    return false;
}

uint64_t hws_seen_highest (const hws_seen_t *self)
{
    return self->count > 0 ? self->ranges[self->count - 1].end - 1 : 0;
}

uint32_t hws_seen_holes (const hws_seen_t *self, hws_range_t *holes)
{
    uint32_t count = 0;
    uint64_t end = 1;
    for (uint32_t i = 0; i < self->count; i++) {
        if (self->ranges[i].first > end) {
            holes[count++] = (hws_range_t){.first = end, .end = self->ranges[i].first};
        }
        end = self->ranges[i].end;
    }
    return count;
}
