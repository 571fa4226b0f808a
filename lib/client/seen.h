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

/*  Whether the id was seen before; it is now.  */
bool hws_seen_mark (hws_seen_t *self, uint64_t id);

#endif
