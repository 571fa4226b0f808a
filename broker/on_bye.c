/*  BYE and PING: a client leaves, or shows that it lives (docs/protocol.md,
 *  "Connections", "Liveness").
 */
#include "broker/answer.h"
#include "broker/engine_state.h"

void hws_on_bye (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    for (hws_link_t *link = peer->seats.head, *next; link; link = next) {
        next = link->next;
        hws_seat_end (engine, hws_container_of (link, hws_seat_t, in_peer), HWS_RUN_DROPPED,
                      HWS_CAUSE_TRANSPORT, "its client left without ending it", false);
    }
    hws_link_t *link;
    while ((link = peer->anchors.head)) {
        hws_anchor_close (engine, hws_container_of (link, hws_anchor_t, in_owner),
                          HWS_CAUSE_RECEIVER_CLOSED, "the receiver left");
    }
    while ((link = peer->waiting.head)) {
        hws_waiting_free (engine, hws_container_of (link, hws_waiting_t, in_peer));
    }
    hws_control_t answer = {.verb = HWS_VERB_BYE};
    hws_engine_answer (engine, peer, message, &answer);
}

void hws_on_ping (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    (void) message;
    const hws_control_t pong = {.verb = HWS_VERB_PONG};
    hws_out_control (engine, peer, &pong);
    hws_out_grants_again (engine, peer);
}
