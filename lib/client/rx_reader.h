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

#define HWS_RX_PUBLISH_BYTES (256 * 1024)
#define HWS_RX_RECORDS_FEW   16

/*  The reading side. The event that the application has in hand is a record of the run at hand,
 *  from `hand` on, or what `pending` is about. Records cost nothing but a step of the cursor:
 *  what they moved on in their stream is counted when it is published, or with the run's
 *  last.  */
typedef struct {
    hws_rx_t *rx;
    hws_rx_block_t *block; /* at hand, or null */
    uint32_t entry;        /* of it, the one at hand */

    /* the run of records at hand */
    uint32_t left;            /* records that were not shown */
    hws_rx_stream_t *run;     /* its stream; null: there is none */
    uint64_t seq;             /* number of the next */
    hws_cursor_t cursor;      /* there */
    const uint8_t *hand;      /* where the record in hand begins, or null */
    const uint8_t *counted;   /* what is before is counted in the stream */
    uint64_t counted_seq;     /* likewise */
    hws_rx_stream_t *pending; /* stream of any other event in hand, or null */
    uint64_t pending_seq;     /* consumed then */
    uint64_t pending_bytes;   /* counted then */
    bool is_pending_ending;
    hws_rx_stream_t *touched; /* streams with something consumed and not published */
    uint64_t unpublished;     /* bytes consumed and not published, headers of records included, but
                                 for those of the run at hand */
    uint64_t unpublished_records;
    bool is_urgent;     /* an ending is among them, or a stream is broken */
    bool is_manual;     /* the caller's to set: the application says what it has consumed. Else an
                           ending is consumed when it is shown, for the program acts on it, and
                           anything else when the next event is asked for */
    bool is_closed;     /* the CLOSED event was shown */
    bool is_over;       /* the anchor is closed: clean endings are passed over */
    bool is_discarding; /* only who came, broker-made endings and CLOSED are shown */
    hws_reason_t text;  /* the reason of the event in hand */
} hws_rx_reader_t;

void hws_rx_reader_init (hws_rx_reader_t *self, hws_rx_t *rx);
void hws_rx_reader_fini (hws_rx_reader_t *self);

/*  The event in hand is consumed, whatever follows.  */
void hws_rx_reader_settle (hws_rx_reader_t *self);

/*  The next event of what was taken; the one before is consumed. True with one, false
 *  when more has to be taken. Views live until the next call.  */
bool hws_rx_reader_next (hws_rx_reader_t *self, hws_event_t *event);

/*  The same where it is cheap: in the midst of a run. False when there is more to look at than
 *  the next record, which may be there all the same; nothing has changed then.  */
static inline bool hws_rx_reader_next_in_run (hws_rx_reader_t *self, hws_event_t *event)
{
    hws_cursor_t cursor = self->cursor;
    hws_bytes_t record;
    if (self->left < 2 || hws_run_next_record (&cursor, &record) != 1) {
        return false;
    }
    self->left--;
    self->hand = self->cursor.at;
    self->cursor = cursor;
    *event = (hws_event_t){.kind = HWS_EVENT_RECORD,
                           .sender_id = self->run->sender_id,
                           .seq = self->seq++,
                           .label = self->run->label,
                           .data = record.data,
                           .size = record.size};
    return true;
}

/*  The anchor was cancelled by the application: of what is left only who came, broker-made
 *  endings and CLOSED are shown.  */
static inline void hws_rx_reader_discard (hws_rx_reader_t *self)
{
    self->is_discarding = true;
    self->left = 0;
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

/*  Whether it pays to publish what was consumed; `is_idle`: there is nothing more to read. A
 *  few records, whose sender may wait for the word, are told as soon as the application has no
 *  more. Many are told together with those that follow, for each acknowledgement costs as much
 *  on its way as a batch: they wait for HWS_RX_PUBLISH_BYTES or for who watches the clock.  */
bool hws_rx_reader_is_due (const hws_rx_reader_t *self, bool is_idle);

/*  Under the client's lock: what was consumed is to be acknowledged. True when there
 *  is something to send.  */
bool hws_rx_reader_publish (hws_rx_reader_t *self);

#endif
