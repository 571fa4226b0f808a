#include "client/rx_position.h"

#include "client/rx_past.h"
#include "client/rx_part.h"

enum { LIVE, REMEMBERED, PAST, LISTS };

static const hws_list_t *list_of (const hws_rx_t *rx, unsigned list)
{
    switch (list) {
    case LIVE:
        return &rx->live;
    case REMEMBERED:
        return &rx->remembered;
    default:
        return &rx->past;
    }
}

hws_rx_walk_t hws_rx_walk (const hws_rx_t *rx)
{
    return (hws_rx_walk_t){.rx = rx, .list = LIVE, .link = rx->live.head};
}

/*  An ending that was made here, or that the application will not see, is none to the broker: it
 *  makes another, for the anchor is being cancelled.  */
static uint32_t flags_of (const hws_rx_stream_t *stream)
{
    if (stream->ending == 0 || hws_rx_is_ending_void (stream)) {
        return 0;
    }
    return stream->state == HWS_RX_STREAM_FINISHED ? HWS_POSITION_ENDED | HWS_POSITION_CONSUMED
                                                   : HWS_POSITION_ENDED;
}

static hws_position_t position_of_stream (const hws_rx_stream_t *stream)
{
    const uint32_t flags = flags_of (stream);
    return (hws_position_t){.sender_id = stream->sender_id,
                            .next_seq = stream->next_seq,
                            .next_bytes = stream->next_bytes,
                            .acked_seq = stream->acked_seq,
                            .acked_bytes = stream->acked_bytes,
                            .seat_key = stream->seat_key,
                            .flags = flags,
                            .type = flags ? stream->ending : 0,
                            .cause = flags ? stream->cause : 0};
}

static hws_position_t position_of_past (const hws_rx_past_t *past)
{
    return (hws_position_t){.sender_id = past->sender_id,
                            .next_seq = past->acked_seq,
                            .next_bytes = past->acked_bytes,
                            .acked_seq = past->acked_seq,
                            .acked_bytes = past->acked_bytes,
                            .seat_key = past->seat_key,
                            .flags = past->ending ? HWS_POSITION_ENDED | HWS_POSITION_CONSUMED : 0,
                            .type = past->ending,
                            .cause = past->cause};
}

/*  Of what is past the latest comes first: a broker may remember less.  */
bool hws_rx_walk_next (hws_rx_walk_t *self, hws_position_t *position)
{
    while (!self->link && self->list + 1 < LISTS) {
        const hws_list_t *const list = list_of (self->rx, ++self->list);
        self->link = self->list == PAST ? list->tail : list->head;
    }
    if (!self->link) {
        return false;
    }
    if (self->list == PAST) {
        *position = position_of_past (hws_container_of (self->link, hws_rx_past_t, link));
        self->link = self->link->prev;
    } else {
        *position = position_of_stream (hws_container_of (self->link, hws_rx_stream_t, link));
        self->link = self->link->next;
    }
    return true;
}

size_t hws_rx_position_count (const hws_rx_t *rx)
{
    return rx->live.count + rx->remembered.count + rx->past.count;
}
