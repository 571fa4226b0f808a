/*  Which sender ids of an anchor were seen: a set of numbers, in ranges.
 *
 *  Ids come nearly in order, so there is nearly always one range. With too many holes the
 *  lowest is closed: its ids count as seen.
 */
#ifndef HWS_SEEN_H
#define HWS_SEEN_H

#include "proto/control.h"

#define HWS_SEEN_RANGES_MAX 64

/*  Empty when all is zero.  */
typedef struct {
    hws_range_t ranges[HWS_SEEN_RANGES_MAX]; /* in order, with holes between them */
    uint32_t count;                          /* of them */
} hws_seen_t;

bool hws_seen_has (const hws_seen_t *self, uint64_t id);

/*  Whether the id was seen before; it is now.  */
bool hws_seen_mark (hws_seen_t *self, uint64_t id);

/*  The highest id that was seen; 0 for none.  */
uint64_t hws_seen_highest (const hws_seen_t *self);

/*  Writes the ranges below that, from 1 on, that were not seen, in order; there are at most
 *  HWS_SEEN_RANGES_MAX. Returns how many.  */
uint32_t hws_seen_holes (const hws_seen_t *self, hws_range_t *holes);

#endif
