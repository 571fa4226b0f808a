/*  The sender ids of earlier epochs that nobody has heard of: neither the receiver that brought its
 *  anchor back, nor this broker since (docs/protocol.md, "ATTACH").
 *
 *  Such a sender had a seat in another life of the broker, and the receiver died or was cut off
 *  before it was told. It is seated when it resumes, and then it is known: once it has ended it
 *  is not seated again, however long ago its ending was forgotten.
 */
#ifndef HWS_UNSEEN_H
#define HWS_UNSEEN_H

#include "proto/control.h"

typedef struct {
    hws_range_t *ranges; /* owned; null for none */
    uint32_t count;
} hws_unseen_t;

/*  Begins with the ranges that an OPEN with `resume` told, and all above its highest_sender_id; ids
 *  from `end` on are not of an earlier epoch. The ranges ascend: of one that does not, what is
 * below the one before it is left out. Returns 0, or HWS_ENO_MEMORY: there are none then.  */
int hws_unseen_init (hws_unseen_t *self, const hws_open_t *request, uint64_t end);
void hws_unseen_fini (hws_unseen_t *self);

bool hws_unseen_has (const hws_unseen_t *self, uint64_t sender_id);

/*  Makes room so that the next removal cannot fail. Returns 0 or HWS_ENO_MEMORY.  */
int hws_unseen_reserve (hws_unseen_t *self);

/*  Somebody has heard of it now. Room was reserved since the last removal.  */
void hws_unseen_remove (hws_unseen_t *self, uint64_t sender_id);

#endif
