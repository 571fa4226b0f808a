/*  CANCEL and DETACH: a stream or an anchor is ended by a control message
 *  (docs/protocol.md, "CANCEL", "DETACH").
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/young.h"

#include "base/text.h"

static bool is_attached_to (const hws_peer_t *peer, const hws_anchor_t *anchor)
{
    for (hws_link_t *link = peer->seats.head; link; link = link->next) {
        const hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_peer);
        if (seat->anchor == anchor && seat->state != HWS_SEAT_EXITING) {
            return true;
        }
    }
    return false;
}

static void answer_ok (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    hws_control_t answer = {.verb = message->verb};
    hws_engine_answer (engine, peer, message, &answer);
}

/*  The request is about an anchor that is not there.  */
static void answer_gone (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                         hws_handle_t handle)
{
    if (hws_tombstone_of_handle (engine, handle)) {
        answer_ok (engine, peer, message);
        return;
    }
    char text[HWS_HANDLE_TEXT_SIZE];
    hws_handle_print (handle, text);
    const bool is_ours = handle.hi == engine->options.broker_id;
    if (hws_young_awaits (engine, handle)) {
        hws_engine_refuse (engine, peer, message, HWS_EBUSY,
                           "the receiver of anchor %s has not come back yet", text);
        return;
    }
    if (is_ours && hws_anchor_find_other (engine, handle)) {
        hws_engine_refuse (engine, peer, message, HWS_EWRONG_KIND, "handle %s is of the other kind",
                           text);
        return;
    }
    hws_engine_refuse (engine, peer, message, is_ours ? HWS_ECLOSED : HWS_EWRONG_BROKER,
                       is_ours ? "anchor %s is closed" : "handle %s belongs to another broker",
                       text);
}

static void cancel_anchor (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                           hws_anchor_t *anchor)
{
    const char *const reason = message->as.cancel.reason;
    if (peer == anchor->owner) {
        answer_ok (engine, peer, message);
        hws_anchor_close (engine, anchor, HWS_CAUSE_RECEIVER_CLOSED, reason);
    } else if (anchor->state == HWS_ANCHOR_CLOSING && anchor->cause != HWS_CAUSE_FINALIZED) {
        answer_ok (engine, peer, message); /* asked again, or somebody was faster */
    } else if (is_attached_to (peer, anchor)) {
        hws_anchor_cancel (engine, anchor, HWS_CAUSE_REQUESTED, reason);
        answer_ok (engine, peer, message);
    } else {
        hws_engine_refuse (engine, peer, message, HWS_EDENIED,
                           "only the receiver and attached senders cancel an anchor");
    }
}

/*  What a sender's cancel of its own stream makes of it.  */
static uint16_t own_cause (const hws_cancel_t *request)
{
    return strcmp (request->code, "interrupted") == 0 ? HWS_CAUSE_INTERRUPTED : HWS_CAUSE_REQUESTED;
}

/*  A sender cancels its own stream that has an ending: Ok only if that ending is what it
 *  asks for, maybe asked for before. Else it has to wait for the true one.  */
static void answer_ended (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                          uint8_t ending, uint16_t cause)
{
    if (ending == HWS_RUN_CANCELLED && cause == own_cause (&message->as.cancel)) {
        answer_ok (engine, peer, message);
    } else {
        hws_engine_refuse (engine, peer, message, HWS_EENDED, "the stream ended %s(%s)",
                           hws_ending_word (ending), hws_cause_word (cause));
    }
}

void hws_on_cancel (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    const hws_cancel_t *const request = &message->as.cancel;
    hws_anchor_t *const anchor = hws_anchor_find (engine, request->handle);
    const hws_tombstone_t *const ended =
        hws_tombstone_of_sender (engine, request->handle, request->sender_id);
    /* A client that has both the anchor and the sender speaks for the sender only when it
       says so: the receiver may throw a clean ending away, the sender may not. */
    const bool is_owner =
        anchor && anchor->owner == peer && own_cause (request) != HWS_CAUSE_INTERRUPTED;
    if (ended && !is_owner &&
        memcmp (ended->owner_key.client_id, peer->client_id.bytes, HWS_ID_SIZE) == 0) {
        answer_ended (engine, peer, message, ended->ending, ended->cause);
        return;
    }
    if (anchor == NULL) {
        answer_gone (engine, peer, message, request->handle);
        return;
    }
    if (request->sender_id == 0) {
        cancel_anchor (engine, peer, message, anchor);
        return;
    }
    hws_seat_t *const seat = hws_seat_of_sender (engine, anchor, request->sender_id);
    if (seat == NULL) {
        if (request->sender_id < anchor->next_sender_id) {
            answer_ok (engine, peer, message); /* it has ended already */
        } else {
            hws_engine_refuse (
                engine, peer, message, HWS_ENOT_FOUND, "anchor %u has had no sender %llu",
                hws_handle_count (anchor->handle), (unsigned long long) request->sender_id);
        }
        return;
    }
    if (peer != anchor->owner && peer != seat->peer) {
        hws_engine_refuse (engine, peer, message, HWS_EDENIED,
                           "only the receiver and the sender itself cancel a sender");
        return;
    }
    if (seat->state == HWS_SEAT_EXITING && !is_owner) {
        if (!seat->is_unclaimed) {
            hws_seat_leave (engine, seat); /* perhaps nobody is there to begin again */
        }
        answer_ended (engine, peer, message, seat->ending, seat->cause);
        return;
    }
    hws_seat_end (engine, seat, HWS_RUN_CANCELLED,
                  peer == seat->peer ? own_cause (request) : HWS_CAUSE_REQUESTED, request->reason,
                  is_owner);
    answer_ok (engine, peer, message);
}

/*  Takes the ending at the expected number, as if it had come as a run.  */
static void take_detach (hws_engine_t *engine, hws_seat_t *seat)
{
    uint8_t body[HWS_ENDING_HEADER_SIZE];
    const hws_ending_t ending = {.records = seat->records, .bytes = seat->bytes};
    hws_ending_put (body, &ending);
    const hws_run_t run = {.stream = seat->routing_session_id,
                           .first_seq = seat->next_seq,
                           .count = 1,
                           .type = HWS_RUN_DETACHED,
                           .body = {body, sizeof body}};
    hws_peer_t *const owner = seat->anchor->owner;
    if (hws_out_reserve_run (engine, owner, sizeof body) != 0) {
        hws_seat_rewind (engine, seat);
        return;
    }
    hws_out_add_run (owner, &run);
    hws_seat_advance (seat, &run);
    hws_seat_exit (engine, seat, HWS_RUN_DETACHED, run.first_seq);
}

void hws_on_detach (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    const hws_detach_t *const request = &message->as.detach;
    hws_anchor_t *const anchor = hws_anchor_find (engine, request->handle);
    hws_seat_t *const seat =
        anchor ? hws_seat_of_sender (engine, anchor, request->sender_id) : NULL;
    if (seat == NULL) {
        const hws_tombstone_t *const ended =
            hws_tombstone_of_sender (engine, request->handle, request->sender_id);
        if (ended && memcmp (ended->owner_key.client_id, peer->client_id.bytes, HWS_ID_SIZE) == 0 &&
            ended->ending == HWS_RUN_DETACHED) {
            answer_ok (engine, peer, message);
        } else if (ended) {
            hws_engine_refuse (engine, peer, message, HWS_EENDED, "the stream ended %s(%s)",
                               hws_ending_word (ended->ending), hws_cause_word (ended->cause));
        } else if (anchor) {
            hws_engine_refuse (engine, peer, message, HWS_ENOT_FOUND,
                               "anchor %u has no sender %llu", hws_handle_count (anchor->handle),
                               (unsigned long long) request->sender_id);
        } else {
            answer_gone (engine, peer, message, request->handle);
        }
        return;
    }
    if (seat->peer != peer) {
        hws_engine_refuse (engine, peer, message, HWS_EDENIED,
                           "only the sender's own client detaches it");
        return;
    }
    if (seat->is_ending_ours || seat->own_ending == HWS_RUN_FINALIZED) {
        hws_engine_refuse (engine, peer, message, HWS_EENDED, "the stream ended %s(%s)",
                           hws_ending_word (seat->ending), hws_cause_word (seat->cause));
        return;
    }
    const bool is_due = seat->state != HWS_SEAT_EXITING || request->seq == seat->end_seq;
    if (request->seq == seat->next_seq && is_due && anchor->is_receiver_present) {
        take_detach (engine, seat);
    }
    if (request->seq < seat->next_seq && seat->state == HWS_SEAT_EXITING) {
        answer_ok (engine, peer, message);
        return;
    }
    if (anchor->is_receiver_present) {
        hws_seat_rewind (engine, seat);
    }
    hws_engine_refuse (engine, peer, message, HWS_EBUSY, "the broker expects number %llu",
                       (unsigned long long) seat->next_seq);
}
