/*  What rx.c and rx_reader.c share with each other; nobody else includes this.
 */
#ifndef HWS_RX_PART_H
#define HWS_RX_PART_H

#include "client/rx_block.h"

/*  The stream of a link in `live` or `remembered`, or null.  */
static inline hws_rx_stream_t *hws_rx_stream_of (hws_link_t *link)
{
    return link ? hws_container_of (link, hws_rx_stream_t, link) : NULL;
}

/*  What the stream has consumed is to be acknowledged.  */
void hws_rx_ask_ack (hws_rx_stream_t *stream);

/*  Nothing more is taken of a stream whose run was malformed; its sender is cancelled.  */
void hws_rx_refuse_stream (hws_rx_stream_t *stream);

/*  The stream's ending is consumed: only its position is remembered, for a broker that
 *  missed the acknowledgement.  */
void hws_rx_finish_stream (hws_rx_stream_t *stream);

/*  Forgets the oldest finished streams. Only when the application has no event in hand,
 *  which may view into one.  */
void hws_rx_forget_streams (hws_rx_t *self);

/*  Queues what hws_rx_closed promised. Returns 0 or HWS_ENO_MEMORY.  */
int hws_rx_queue_closed (hws_rx_t *self);

#endif
