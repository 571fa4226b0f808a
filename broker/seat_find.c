/*  Seats: found by the numbers that they go by, and described to their clients.  */
#include "broker/seat.h"

#include "base/text.h"
#include "broker/engine_state.h"

hws_seat_t *hws_seat_of_session (const hws_engine_t *engine, const hws_peer_t *peer,
                                 uint64_t session_id)
{
    const struct {
        const hws_peer_t *peer;
        uint64_t session_id;
    } key = {peer, session_id};
    hws_map_node_t *const node =
        hws_map_find (&engine->seats_by_session, hws_bytes (&key, sizeof key));
    return node ? hws_container_of (node, hws_seat_t, by_session) : NULL;
}

hws_seat_t *hws_seat_of_sender (const hws_engine_t *engine, const hws_anchor_t *anchor,
                                uint64_t sender_id)
{
    const struct {
        const hws_anchor_t *anchor;
        uint64_t sender_id;
    } key = {anchor, sender_id};
    hws_map_node_t *const node =
        hws_map_find (&engine->seats_by_sender, hws_bytes (&key, sizeof key));
    return node ? hws_container_of (node, hws_seat_t, by_sender) : NULL;
}

hws_seat_t *hws_seat_of_routing (const hws_engine_t *engine, uint64_t routing_session_id)
{
    hws_map_node_t *const node = hws_map_find (
        &engine->seats_by_routing, hws_bytes (&routing_session_id, sizeof routing_session_id));
    return node ? hws_container_of (node, hws_seat_t, by_routing) : NULL;
}

void hws_seat_describe (const hws_engine_t *engine, const hws_seat_t *self, hws_attach_ok_t *answer)
{
    const hws_anchor_t *const anchor = self->anchor;
    answer->handle = anchor->handle;
    hws_text_copy (answer->streaming_transport_key, sizeof answer->streaming_transport_key,
                   HWS_TRANSPORT_MUX);
    answer->heartbeat_interval_ms = anchor->heartbeat_interval_ms;
    answer->sender_id = self->sender_id;
    answer->routing_session_id = self->routing_session_id;
    answer->next_seq = self->next_seq;
    answer->next_bytes = self->next_bytes;
    answer->acked_seq = self->acked_seq;
    answer->acked_bytes = self->acked_bytes;
    answer->record_bytes = anchor->record_bytes;
    answer->resume_token = hws_credential_make (engine->options.key, HWS_CREDENTIAL_SENDER,
                                                anchor->handle, answer->sender_id);
    if (self->limit_seq > self->next_seq) {
        answer->initial_credit = self->limit_seq - self->next_seq;
    }
    answer->slot_byte_budget =
        self->limit_bytes > self->next_bytes ? self->limit_bytes - self->next_bytes : 1;
    if (self->is_ending_ours) {
        answer->has_ended = true;
        hws_text_copy (answer->ending, sizeof answer->ending, hws_ending_word (self->ending));
        hws_text_copy (answer->code, sizeof answer->code, hws_cause_word (self->cause));
        hws_text_copy (answer->reason, sizeof answer->reason, self->reason);
    }
}
