/*  What the files of rx share with each other; nobody else includes this.
 */
#ifndef HWS_RX_PART_H
#define HWS_RX_PART_H

#include "client/rx_block.h"

/*  The stream of a link in `live` or `remembered`, or null.  */
static inline hws_rx_stream_t *hws_rx_stream_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_rx_stream_t, link) : NULL;
}

/*  A stream that ATTACHED has announced, in `live`; null without memory.  */
hws_rx_stream_t *hws_rx_stream_new (hws_rx_t *self, const hws_run_t *run,
                                    const hws_attached_t *attached);
void hws_rx_stream_free (hws_rx_stream_t *stream);

/*  The broker of this epoch has the number `id` for the stream; 0: not told.  */
void hws_rx_bind (hws_rx_stream_t *stream, uint64_t id);

/*  What came of a record in parts is discarded.  */
void hws_rx_drop_parts (hws_rx_stream_t *stream);

/*  There is something to say for the anchor.  */
void hws_rx_note_busy (hws_rx_t *self);

/*  What the stream has consumed is to be acknowledged.  */
void hws_rx_ask_ack (hws_rx_stream_t *stream);

/*  Nothing more is taken of a stream whose run was malformed; its sender is cancelled.  */
void hws_rx_refuse_stream (hws_rx_stream_t *stream);

/*  The stream's ending is consumed: only its position is remembered, for a broker that
 *  missed the acknowledgement.  */
void hws_rx_finish_stream (hws_rx_stream_t *stream);

/*  Whether the application will not see the ending that is queued: the sender's own, behind a
 *  malformed run or in an anchor that the application has cancelled or that is closed.  */
bool hws_rx_is_ending_void (const hws_rx_stream_t *stream);

/*  The reader takes what is queued, and has nothing left: of finished streams that neither it
 *  nor the queue can have anything of, only what is in rx_past.h is kept.  */
void hws_rx_begin_take (hws_rx_t *self);

/*  Queues what hws_rx_closed promised. Returns 0 or HWS_ENO_MEMORY.  */
int hws_rx_queue_closed (hws_rx_t *self);

#endif
