#include "tests/support/engine_check.h"

#include "broker/engine_state.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static void check_seat (const hws_engine_t *engine, const hws_anchor_t *anchor,
                        const hws_seat_t *seat)
{
    assert_ptr_equal (seat->anchor, anchor);
    assert_true (seat->acked_seq <= seat->next_seq);
    assert_true (seat->next_seq <= seat->high_seq);
    assert_true (seat->acked_bytes <= seat->high_bytes);
    assert_true (seat->state == HWS_SEAT_EXITING || seat->high_bytes <= seat->limit_bytes);
    assert_true (seat->state == HWS_SEAT_EXITING || seat->acked_bytes <= seat->limit_bytes);
    assert_ptr_equal (hws_seat_of_routing (engine, seat->routing_session_id), seat);
    assert_ptr_equal (hws_seat_of_sender (engine, anchor, seat->sender_id), seat);
    /* Nobody's are named by what receivers say, who may say the same of two. */
    assert_true (seat->peer == &engine->nobody ||
                 hws_seat_of_session (engine, seat->peer, seat->session_id) == seat);
    /* Whoever can die has a deadline: nobody is kept for ever. */
    const bool is_judged = !seat->is_dead && !seat->is_ending_ours;
    assert_true (hws_timer_is_armed (&seat->deadline.timer) == is_judged);
    assert_true (seat->extra == NULL || seat->extra->target.node.entry == NULL ||
                 seat->state != HWS_SEAT_EXITING);
    assert_true (seat->peer->state == HWS_PEER_CONNECTED || seat->state != HWS_SEAT_ATTACHED);
    /* Who may be asked has something to give. */
    const bool may_be_asked = hws_link_is_in_list (&seat->in_lent);
    assert_true (!may_be_asked || seat->state == HWS_SEAT_ATTACHED);
    assert_true (!may_be_asked || !seat->is_asked);
    assert_true (!may_be_asked || seat->reserved_bytes > anchor->window_bytes_min);
}

static void check_anchor (const hws_engine_t *engine, const hws_anchor_t *anchor)
{
    uint64_t reserved = 0, live = 0, lent = 0, lent_count = 0;
    for (hws_link_t *link = anchor->seats.head; link; link = link->next) {
        const hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_anchor);
        check_seat (engine, anchor, seat);
        reserved += seat->reserved_bytes;
        if (seat->state != HWS_SEAT_EXITING) {
            live++;
            lent += seat->reserved_bytes - anchor->window_bytes_min;
            lent_count += seat->reserved_bytes > anchor->window_bytes_min;
        }
    }
    assert_true (anchor->reserved_bytes == reserved);
    assert_true (anchor->reserved_bytes <= anchor->buffer_bytes);
    assert_true (anchor->live_count == live);
    assert_true (anchor->lent_bytes == lent);
    assert_true (anchor->lent_count == lent_count);
    assert_true (hws_timer_is_armed (&anchor->deadline.timer));
    assert_true (anchor->state != HWS_ANCHOR_ABANDONED || !anchor->is_receiver_present);
    assert_true (anchor->state != HWS_ANCHOR_OPEN || anchor->is_receiver_present);
    assert_true (anchor->state != HWS_ANCHOR_CLOSING || anchor->seats.count > 0);
    const bool is_earlier = hws_handle_epoch (anchor->handle) < engine->options.epoch;
    assert_true (!hws_anchor_is_exclusive (anchor) || live <= 1 || is_earlier);
    assert_true (!anchor->is_receiver_present || anchor->owner->state == HWS_PEER_CONNECTED);
    const uint64_t given = anchor->next_sender_id - 1; /* in this epoch, or in those before too */
    assert_true (is_earlier || given == live + anchor->detached + anchor->finalized +
                                            anchor->dropped + anchor->cancelled);
}

static void check_front (const hws_engine_t *engine, const hws_dedicated_t *front)
{
    assert_true (front->front <= engine->front_count);
    assert_true ((front->front != 0) == (front->state != HWS_DEDICATED_UNBOUND));
    assert_true ((front->unbind != NULL) == (front->state != HWS_DEDICATED_UNBOUND));
    assert_true ((front->endpoint_count > 0) == (front->state == HWS_DEDICATED_BOUND));
    assert_true (front->is_told == (front->state == HWS_DEDICATED_BOUND));
}

size_t engine_front_count (const hws_engine_t *engine, size_t *binding_count)
{
    size_t count = 0;
    *binding_count = 0;
    for (hws_link_t *link = engine->dedicated.head; link; link = link->next) {
        const hws_anchor_t *const anchor =
            hws_container_of (link, hws_anchor_t, dedicated.in_engine);
        check_front (engine, &anchor->dedicated);
        count += anchor->dedicated.state != HWS_DEDICATED_UNBOUND;
        *binding_count += anchor->dedicated.state == HWS_DEDICATED_BINDING;
    }
    assert_true (engine->dedicated.count <= engine->options.limits.fronts);
    return count;
}

static size_t check_peer (const hws_peer_t *peer)
{
    const hws_out_t *const out = &peer->out;
    size_t payloads = 0;
    uint64_t queued_bytes = 0;
    for (hws_link_t *link = out->queue.head; link; link = link->next) {
        const hws_outgoing_t *const outgoing = hws_container_of (link, hws_outgoing_t, link);
        payloads += outgoing->effect.payload != NULL;
        queued_bytes += sizeof *outgoing + outgoing->effect.size;
        assert_true ((outgoing->effect.payload != NULL) != (outgoing->effect.data != NULL));
    }
    assert_true (out->queued_bytes == queued_bytes);
    uint64_t buffers = 0;
    size_t senders = 0;
    for (hws_link_t *link = peer->anchors.head; link; link = link->next) {
        const hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, in_owner);
        assert_ptr_equal (anchor->owner, peer);
        buffers += anchor->buffer_bytes;
        senders += anchor->seats.count;
    }
    assert_true (peer->buffer_bytes == buffers);
    assert_int_equal (peer->sender_count, senders);
    assert_true (!out->is_full || hws_timer_is_armed (&out->retry.timer));
    assert_true (out->run_count == 0 || hws_link_is_in_list (&out->opened));
    assert_true (out->queue.count == 0 || out->is_full || hws_link_is_in_list (&out->ready));
    if (peer->state == HWS_PEER_AWAY) {
        assert_int_equal (
            out->queue.count + out->grants.count + out->said.count + peer->waiting.count, 0);
    }
    return payloads;
}

void engine_check (const hws_engine_t *engine, size_t payloads)
{
    const hws_engine_stats_t *const stats = &engine->stats;
    uint64_t buffers = 0, live = 0;
    for (hws_link_t *link = engine->anchors.head; link; link = link->next) {
        const hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, in_engine);
        check_anchor (engine, anchor);
        buffers += anchor->buffer_bytes;
        live += anchor->live_count;
    }
    assert_true (engine->buffer_bytes == buffers);
    assert_true (stats->attached ==
                 live + stats->detached + stats->finalized + stats->dropped + stats->cancelled);

    size_t held = 0;
    for (size_t i = 0; i < engine->peers_by_client.bucket_count; i++) {
        for (hws_map_node_t *node = engine->peers_by_client.buckets[i]; node; node = node->next) {
            held += check_peer (hws_container_of (node, hws_peer_t, by_client_id));
        }
    }
    for (hws_link_t *link = engine->loose.head; link; link = link->next) {
        held += hws_container_of (link, hws_outgoing_t, link)->effect.payload != NULL;
    }
    assert_int_equal (held, payloads);
    assert_true (engine->tombstones.count <= engine->options.limits.tombstones);
    assert_true (engine->waiting.count <= engine->options.limits.waiting_attaches);
    assert_true (engine->peers_by_client.count <= engine->options.limits.peers);
    assert_true (engine->cancels.orphans.count <= engine->options.limits.cancel_orphans);
    assert_true (engine->cancels.orphans.count == 0 ||
                 hws_timer_is_armed (&engine->cancel_deadline.timer));
    assert_int_equal (engine->cancels.hit.count, 0);
    assert_true (engine->tombstones.count == 0 ||
                 hws_timer_is_armed (&engine->tombstone_deadline.timer));
}
