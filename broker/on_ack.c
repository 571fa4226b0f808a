/*  ACK and WINDOW: the receiver has consumed, a sender gives back or has a large record
 *  (docs/protocol.md, "Acknowledgements", "Windows").
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/window.h"

/*  Returns false for what cannot be true.  */
static bool handle_ack (hws_engine_t *engine, const hws_peer_t *peer, const hws_ack_t *ack)
{
    hws_seat_t *const seat = hws_seat_of_routing (engine, ack->stream);
    if (seat == NULL || seat->anchor->owner != peer) {
        return true; /* of a seat that is gone, or not this receiver's */
    }
    const bool is_sane =
        ack->acked_seq <= seat->high_seq && ack->acked_bytes <= seat->high_bytes &&
        (ack->acked_seq < seat->acked_seq || ack->acked_bytes >= seat->acked_bytes);
    const bool has_ended = (ack->flags & HWS_ACK_ENDED) != 0;
    if (!is_sane || (has_ended && seat->state != HWS_SEAT_EXITING)) {
        return false;
    }
    if (has_ended && seat->is_ending_ours) {
        hws_seat_ended (engine, seat, ack->acked_seq, ack->acked_bytes);
    } else {
        hws_seat_acked (engine, seat, ack->acked_seq, ack->acked_bytes);
    }
    return true;
}

void hws_on_ack (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch)
{
    hws_ack_t ack;
    int rc;
    const char *fault = NULL;
    while ((rc = hws_batch_next_ack (batch, &ack)) == 1) {
        if (!handle_ack (engine, peer, &ack)) {
            fault = "acknowledged what was not forwarded";
        }
    }
    if (rc < 0) {
        fault = "an ACK batch is malformed";
    }
    if (fault) { /* once for the batch: an answer may not be larger than what it answers */
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "%s", fault);
    }
}

/*  Returns false for a wish that can never be granted.  */
static bool handle_window (hws_engine_t *engine, const hws_peer_t *peer, const hws_window_t *window)
{
    hws_seat_t *const seat = hws_seat_of_session (engine, peer, window->stream);
    return seat == NULL || seat->state == HWS_SEAT_EXITING ||
           hws_window_said (engine, seat, window) == 0;
}

void hws_on_window (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch)
{
    hws_window_t window;
    int rc;
    const char *fault = NULL;
    while ((rc = hws_batch_next_window (batch, &window)) == 1) {
        if (!handle_window (engine, peer, &window)) {
            fault = "more bytes are wanted at once than half of the buffer";
        }
    }
    if (rc < 0) {
        fault = "a WINDOW batch is malformed";
    }
    if (fault) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "%s", fault);
    }
}
