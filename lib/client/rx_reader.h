/*  The reading side of an anchor: what was queued, as the application's events.
 *
 *  It belongs to the thread that receives. It takes all queued blocks at once, under the
 *  client's lock, and walks their records without a lock and without an allocation. What the
 *  application consumed is published under the lock again, and leaves as
 *  acknowledgements.
 */
#ifndef HWS_RX_READER_H
#define HWS_RX_READER_H

#include "client/rx.h"

/*  The reading side. `pending` is the event that the application has in hand.  */
typedef struct {
    hws_rx_t *rx;
    hws_rx_block_t *block;    /* at hand, or null */
    uint32_t entry;           /* of it, the one at hand */
    bool is_in_run;           /* records of that entry are left */
    uint32_t left;            /* so many */
    uint64_t seq;             /* number of the next */
    hws_cursor_t cursor;      /* there */
    hws_rx_stream_t *pending; /* stream of the event in hand, or null */
    uint64_t pending_seq;     /* consumed then */
    uint64_t pending_bytes;   /* counted then */
    bool is_pending_ending;
    hws_rx_stream_t *touched; /* streams with something consumed and not published */
    uint64_t unpublished;     /* bytes consumed and not published, headers of records included */
    bool is_closed;           /* the CLOSED event was shown */
    bool is_over;             /* the anchor is closed: clean endings are passed over */
    bool is_discarding;       /* only who came, broker-made endings and CLOSED are shown */
    hws_reason_t text;        /* the reason of the event in hand */
} hws_rx_reader_t;

void hws_rx_reader_init (hws_rx_reader_t *self, hws_rx_t *rx);
void hws_rx_reader_fini (hws_rx_reader_t *self);

/*  The event in hand is consumed, whatever follows.  */
void hws_rx_reader_settle (hws_rx_reader_t *self);

/*  The next event of what was taken; the one before is consumed. True with one, false
 *  when more has to be taken. Views live until the next call.  */
bool hws_rx_reader_next (hws_rx_reader_t *self, hws_event_t *event);

/*  The anchor was cancelled by the application: of what is left only who came, broker-made
 *  endings and CLOSED are shown.  */
static inline void hws_rx_reader_discard (hws_rx_reader_t *self)
{
    self->is_discarding = true;
}

/*  The anchor is closed: clean endings that were taken and not shown are not shown any more,
 *  for others have taken their place.  */
static inline void hws_rx_reader_end (hws_rx_reader_t *self)
{
    self->is_over = true;
}

/*  Whether hws_rx_reader_next may have another without taking.  */
bool hws_rx_reader_has_more (const hws_rx_reader_t *self);

/*  Under the client's lock: takes everything that is queued; only when the reader has
 *  nothing left. Returns 0, or HWS_ENO_MEMORY when all there is cannot be told.  */
int hws_rx_reader_take (hws_rx_reader_t *self);

/*  Under the client's lock: what was consumed is to be acknowledged. True when there
 *  is something to send.  */
bool hws_rx_reader_publish (hws_rx_reader_t *self);

#endif
