#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*  ---- CANCEL, DETACH ---- */

static bool is_attached_to (const model_t *self, int client, uint32_t anchor)
{
    for (size_t i = 0; i < self->seat_count; i++) {
        const model_seat_t *const seat = &self->seats[i];
        if (seat->client == client && seat->anchor == anchor && !seat->has_ended) {
            return true;
        }
    }
    return false;
}

/*  The request is about an anchor that is not there.  */
static void answer_gone (model_t *self, int client, const char *verb, uint64_t id,
                         hws_handle_t handle)
{
    if (hws_handle_equal (handle, model_handle (self, hws_handle_count (handle))) &&
        model_anchor_has_ended (self, hws_handle_count (handle))) {
        model_ok (self, client, verb, id);
    } else if (model_young_awaits (self, handle)) {
        model_refuse (self, client, verb, id, "busy");
    } else if (handle.hi != self->options.broker_id) {
        model_refuse (self, client, verb, id, "wrong_broker");
    } else {
        const bool is_other_kind = hws_handle_epoch (handle) == self->options.epoch &&
                                   model_anchor (self, hws_handle_count (handle));
        model_refuse (self, client, verb, id, is_other_kind ? "wrong_kind" : "closed");
    }
}

/*  The anchor of a handle, by its every bit.  */
static model_anchor_t *exactly (model_t *self, hws_handle_t handle)
{
    const uint32_t count = hws_handle_count (handle);
    return hws_handle_equal (handle, model_handle (self, count)) ? model_anchor (self, count)
                                                                 : NULL;
}

static hws_cause_t own_cause (const hws_cancel_t *request)
{
    return strcmp (request->code, "interrupted") == 0 ? HWS_CAUSE_INTERRUPTED : HWS_CAUSE_REQUESTED;
}

/*  A sender's own client is told Ok only for the ending that it asks for.  */
static void answer_ended (model_t *self, int client, uint64_t id, const hws_cancel_t *request,
                          uint8_t ending, hws_cause_t cause)
{
    if (ending == HWS_RUN_CANCELLED && cause == own_cause (request)) {
        model_ok (self, client, "CANCEL", id);
    } else {
        model_refuse (self, client, "CANCEL", id, "ended");
    }
}

static void cancel_anchor (model_t *self, int client, uint64_t id, const hws_cancel_t *request,
                           model_anchor_t *anchor)
{
    if (client == anchor->owner) {
        model_ok (self, client, "CANCEL", id);
        model_anchor_close (self, anchor->count, HWS_CAUSE_RECEIVER_CLOSED, request->reason);
    } else if (anchor->is_closing && anchor->cause != HWS_CAUSE_FINALIZED) {
        model_ok (self, client, "CANCEL", id);
    } else if (is_attached_to (self, client, anchor->count)) {
        model_anchor_cancel (self, anchor->count, HWS_CAUSE_REQUESTED, request->reason);
        model_ok (self, client, "CANCEL", id);
    } else {
        model_refuse (self, client, "CANCEL", id, "denied");
    }
}

static void cancel_sender (model_t *self, int client, uint64_t id, const hws_cancel_t *request,
                           const model_anchor_t *anchor, bool is_owner)
{
    model_seat_t *const seat = model_seat_of_sender (self, anchor->count, request->sender_id);
    if (seat == NULL && request->sender_id < anchor->next_sender_id) {
        model_ok (self, client, "CANCEL", id); /* it has ended */
    } else if (seat == NULL) {
        model_refuse (self, client, "CANCEL", id, "not_found");
    } else if (client != anchor->owner && client != seat->client) {
        model_refuse (self, client, "CANCEL", id, "denied");
    } else if (seat->has_ended && !is_owner) {
        if (!seat->is_unclaimed) {
            seat->is_unclaimed = true;
            seat->away_at = self->now;
        }
        answer_ended (self, client, id, request, seat->ending, seat->cause);
    } else {
        model_end (self, seat, HWS_RUN_CANCELLED,
                   client == seat->client ? own_cause (request) : HWS_CAUSE_REQUESTED,
                   request->reason, is_owner);
        model_ok (self, client, "CANCEL", id);
    }
}

void model_cancel (model_t *self, int client, uint64_t id, const hws_cancel_t *request)
{
    model_anchor_t *const anchor = exactly (self, request->handle);
    const model_tombstone_t *const ended =
        model_tombstone_of_sender (self, request->handle, request->sender_id);
    const bool is_owner =
        anchor && anchor->owner == client && own_cause (request) != HWS_CAUSE_INTERRUPTED;
    if (ended && ended->client == client && !is_owner) {
        answer_ended (self, client, id, request, ended->ending, ended->cause);
    } else if (anchor == NULL) {
        answer_gone (self, client, "CANCEL", id, request->handle);
    } else if (request->sender_id == 0) {
        cancel_anchor (self, client, id, request, anchor);
    } else {
        cancel_sender (self, client, id, request, anchor, is_owner);
    }
}

static void detach_gone (model_t *self, int client, uint64_t id, const hws_detach_t *request,
                         const model_anchor_t *anchor)
{
    const model_tombstone_t *const ended =
        model_tombstone_of_sender (self, request->handle, request->sender_id);
    if (ended && ended->client == client && ended->ending == HWS_RUN_DETACHED) {
        model_ok (self, client, "DETACH", id);
    } else if (ended) {
        model_refuse (self, client, "DETACH", id, "ended");
    } else if (anchor) {
        model_refuse (self, client, "DETACH", id, "not_found");
    } else {
        answer_gone (self, client, "DETACH", id, request->handle);
    }
}

void model_detach (model_t *self, int client, uint64_t id, const hws_detach_t *request)
{
    const model_anchor_t *const anchor = exactly (self, request->handle);
    model_seat_t *const seat =
        anchor ? model_seat_of_sender (self, anchor->count, request->sender_id) : NULL;
    if (seat == NULL) {
        detach_gone (self, client, id, request, anchor);
        return;
    }
    if (seat->client != client || seat->is_ending_ours || seat->own_ending == HWS_RUN_FINALIZED) {
        model_refuse (self, client, "DETACH", id, seat->client != client ? "denied" : "ended");
        return;
    }
    if (request->seq == seat->next_seq && anchor->is_present &&
        (!seat->has_ended || request->seq == seat->end_seq)) {
        char body[MODEL_TEXT];
        snprintf (body, sizeof body, "none records=%" PRIu64 " bytes=%" PRIu64 " reason ''",
                  seat->records, seat->bytes);
        const hws_run_t run = {.stream = seat->session_id,
                               .first_seq = request->seq,
                               .count = 1,
                               .type = HWS_RUN_DETACHED,
                               .body = {NULL, HWS_ENDING_HEADER_SIZE}};
        model_run (self, client, &run, true, body);
    }
    if (request->seq < seat->next_seq && seat->has_ended) {
        model_ok (self, client, "DETACH", id);
        return;
    }
    if (anchor->is_present) {
        model_rewind (self, seat);
    }
    model_refuse (self, client, "DETACH", id, "busy");
}
