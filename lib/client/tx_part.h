/*  What tx.c and tx_send.c share with each other; nobody else includes this.
 *
 *  tx.c has what the application does: it appends, reserves, ends. tx_send.c has what the
 *  broker makes of it: what is acknowledged, what is sent, and sent again.
 */
#ifndef HWS_TX_PART_H
#define HWS_TX_PART_H

#include "client/tx.h"

/*  A stretch of numbers that is sent as runs of one type.  */
struct hws_tx_segment {
    hws_link_t link;      /* in `segments` */
    uint8_t type;         /* hws_run_type_t */
    bool is_in_ring;      /* its bytes are in the ring, else in `own` */
    bool is_parts;        /* one record, each number one part of it */
    uint64_t first_seq;   /* number of the first */
    uint64_t first_bytes; /* byte position there */
    uint64_t count;       /* numbers */
    uint64_t size;        /* bytes */
    uint64_t ring_at;     /* in the ring: the count of its first byte */
    size_t payload;       /* of the record in parts */
    uint8_t own[];        /* else: the bytes, in the form of runs' bodies */
};

/*  The segment of a link in `segments`, or null.  */
static inline hws_tx_segment_t *hws_tx_segment_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_tx_segment_t, link) : NULL;
}

/*  RETURN came.  */
void hws_tx_give_back (hws_tx_t *self);

/*  Takes the event; false when the state refuses it.  */
bool hws_tx_advance (hws_tx_t *self, hws_tx_event_t event);

#endif
