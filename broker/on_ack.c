/*  ACK and WINDOW: the receiver has consumed, a sender has a large record
 *  (docs/protocol.md, "Acknowledgements", "Windows").
 */
#include "broker/engine_state.h"

static void handle_ack (hws_engine_t *engine, hws_peer_t *peer, const hws_ack_t *ack)
{
    hws_seat_t *const seat = hws_seat_of_routing (engine, ack->stream);
    if (seat == NULL || seat->anchor->owner != peer) {
        return; /* of a seat that is gone, or not this receiver's */
    }
    const bool is_sane =
        ack->acked_seq <= seat->high_seq && ack->acked_bytes <= seat->high_bytes &&
        (ack->acked_seq < seat->acked_seq || ack->acked_bytes >= seat->acked_bytes);
    if (!is_sane) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL,
                          "sender %llu: acknowledged %llu, forwarded %llu",
                          (unsigned long long) seat->sender_key.sender_id,
                          (unsigned long long) ack->acked_seq, (unsigned long long) seat->high_seq);
        return;
    }
    if ((ack->flags & HWS_ACK_ENDED) && seat->state != HWS_SEAT_EXITING) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "sender %llu has not ended",
                          (unsigned long long) seat->sender_key.sender_id);
        return;
    }
    const bool ends_ours = (ack->flags & HWS_ACK_ENDED) && seat->is_ending_ours;
    if (!ends_ours) {
        hws_seat_acked (engine, seat, ack->acked_seq, ack->acked_bytes);
        return;
    }
    if (ack->acked_seq > seat->acked_seq) {
        seat->acked_seq = ack->acked_seq;
        seat->acked_bytes = ack->acked_bytes;
    }
    hws_seat_gone (engine, seat);
}

void hws_on_ack (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch)
{
    hws_ack_t ack;
    int rc;
    while ((rc = hws_batch_next_ack (batch, &ack)) == 1) {
        handle_ack (engine, peer, &ack);
    }
    if (rc < 0) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "an ACK batch is malformed");
    }
}

static void handle_window (hws_engine_t *engine, hws_peer_t *peer, const hws_window_t *window)
{
    hws_seat_t *const seat = hws_seat_of_session (engine, peer, window->stream);
    if (seat == NULL || seat->state == HWS_SEAT_EXITING || window->want_bytes == 0) {
        return;
    }
    if (window->want_bytes > seat->anchor->buffer_bytes / 2) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL,
                          "sender %llu wants %llu bytes at once, above half of the buffer",
                          (unsigned long long) seat->sender_key.sender_id,
                          (unsigned long long) window->want_bytes);
        return;
    }
    if (seat->limit_bytes - seat->acked_bytes >= window->want_bytes &&
        !hws_link_is_in_list (&seat->in_wants)) {
        seat->want_bytes = window->want_bytes; /* it fits, or the answer was lost */
        hws_seat_allow (engine, seat);
        return;
    }
    seat->want_bytes = window->want_bytes;
    if (!hws_link_is_in_list (&seat->in_wants)) {
        hws_list_append (&seat->anchor->wants, &seat->in_wants);
    }
    hws_anchor_serve (engine, seat->anchor);
}

void hws_on_window (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch)
{
    hws_window_t window;
    int rc;
    while ((rc = hws_batch_next_window (batch, &window)) == 1) {
        handle_window (engine, peer, &window);
    }
    if (rc < 0) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "a WINDOW batch is malformed");
    }
}
