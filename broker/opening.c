/*  An OPEN with resume whose positions are complete: the anchor is its again, or made anew.
 *
 *  What needs memory comes first. Then the anchor, its seats and its endings change in one step,
 *  and the receiver hears: Ok, every seat, and what waited for the anchor.
 */
#include "broker/opening.h"

#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/window.h"
#include "broker/young.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    hws_engine_t *engine;
    hws_peer_t *peer;
    hws_opening_t *opening;
    const hws_open_t *request;
    hws_anchor_t *anchor;
    bool has_buried;   /* a seat went: the anchor is to be told */
    const char *fault; /* of its positions, said once; or null */
} pass_t;

static int refuse (pass_t *pass, int code, const char *reason)
{
    snprintf (pass->opening->reason, sizeof pass->opening->reason, "%s", reason);
    return code;
}

static bool is_consumed (const hws_position_t *position)
{
    return (position->flags & HWS_POSITION_CONSUMED) != 0;
}

/*  ---- An anchor that is there ---- */

/*  Seats that it does not name go on at what is acknowledged, for a receiver that is a new
 *  process.  */
static void place (pass_t *pass)
{
    hws_anchor_fall_back (pass->anchor);
    const size_t before = pass->anchor->seats.count;
    for (size_t i = 0; i < pass->opening->item_count; i++) {
        const hws_position_t *const position = &pass->opening->items[i].position;
        hws_seat_t *const seat =
            hws_seat_of_sender (pass->engine, pass->anchor, position->sender_id);
        if (seat && hws_seat_place (pass->engine, seat, position) != 0) {
            pass->fault = "a position that cannot be true";
        }
    }
    pass->has_buried = pass->anchor->seats.count < before;
}

/*  The anchor goes by this OPEN's token from now on, not by that of the one before. Returns 0 or
 *  HWS_ENO_MEMORY, and it goes by that as before.  */
static int take_token (pass_t *pass)
{
    hws_engine_t *const engine = pass->engine;
    hws_target_t *const target = &pass->anchor->target;
    hws_target_t first = {.kind = HWS_TARGET_ANCHOR}; /* takes what memory it needs */
    if (hws_token_register (engine, &first, pass->request->cancel_token) != 0) {
        return HWS_ENO_MEMORY;
    }
    hws_cancels_release (&engine->cancels, &target->node);
    const int rc = hws_token_register (engine, target, pass->request->cancel_token);
    hws_cancels_release (&engine->cancels, &first.node);
    return rc;
}

/*  Moves the anchor to the peer. Returns 0, or the code of a refusal.  */
static int take_over (pass_t *pass)
{
    hws_engine_t *const engine = pass->engine;
    hws_anchor_t *const anchor = pass->anchor;
    const bool is_owners = anchor->owner == pass->peer;
    if (!is_owners && engine->is_draining) {
        return refuse (pass, HWS_EBUSY, "the broker is leaving");
    }
    if (!is_owners && pass->peer->anchors.count >= engine->options.limits.anchors_per_peer) {
        return refuse (pass, HWS_ELIMIT, "the client has all the anchors that it may have");
    }
    hws_tombstone_t *const tombstone = hws_tombstone_new ();
    if (tombstone == NULL || take_token (pass) != 0) {
        free (tombstone);
        return refuse (pass, HWS_ELIMIT, "the broker is out of memory");
    }
    hws_anchor_move (engine, anchor, pass->peer, pass->request->open_id, tombstone);
    hws_anchor_set_timeout (engine, anchor, pass->request->unattached_timeout_ms);
    place (pass);
    return 0;
}

/*  ---- An anchor that is made anew ---- */

static int prepare (hws_opening_t *self)
{
    for (size_t i = 0; i < self->item_count; i++) {
        hws_opening_item_t *const item = &self->items[i];
        item->memory = is_consumed (&item->position) ? (void *) hws_tombstone_new ()
                                                     : calloc (1, sizeof (hws_seat_t));
        if (item->memory == NULL) {
            return HWS_ENO_MEMORY;
        }
    }
    return 0;
}

/*  An exclusive anchor is at its end when its receiver has consumed the ending that says so.  */
static void restore_over (pass_t *pass, hws_opening_item_t *item)
{
    hws_anchor_t *const anchor = pass->anchor;
    if (item->position.type == HWS_RUN_FINALIZED && hws_anchor_is_exclusive (anchor) &&
        anchor->state != HWS_ANCHOR_CLOSING) {
        hws_anchor_finalize (anchor);
        pass->has_buried = true;
    }
    hws_tombstone_of_position (pass->engine, anchor->handle, &item->position, item->memory);
    item->memory = NULL;
}

static void restore (pass_t *pass)
{
    hws_engine_t *const engine = pass->engine;
    hws_anchor_t *const anchor = pass->anchor;
    for (size_t i = 0; i < pass->opening->item_count; i++) {
        hws_opening_item_t *const item = &pass->opening->items[i];
        const uint64_t sender_id = item->position.sender_id;
        if (hws_seat_of_sender (engine, anchor, sender_id) ||
            hws_tombstone_of_sender (engine, anchor->handle, sender_id)) {
            pass->fault = "two positions of one sender";
            continue;
        }
        if (is_consumed (&item->position)) {
            restore_over (pass, item);
        } else {
            hws_seat_restore (engine, anchor, item->memory, &item->position);
            item->memory = NULL;
        }
        if (anchor->next_sender_id <= sender_id) {
            anchor->next_sender_id = sender_id + 1;
        }
    }
}

/*  Makes the anchor again. Returns 0, or the code of a refusal.  */
static int make_anew (pass_t *pass)
{
    hws_engine_t *const engine = pass->engine;
    hws_open_t *const request = &pass->opening->message.as.open;
    if (!hws_young_awaits (engine, request->resume.handle)) {
        return refuse (pass, HWS_ECLOSED, "the anchor is not there any more");
    }
    if (engine->is_draining) {
        return refuse (pass, HWS_EBUSY, "the broker is leaving");
    }
    if (hws_anchor_named (engine, request->name)) {
        *request->name = '\0'; /* somebody was faster: its streams live on by handle */
    }
    request->kind = hws_handle_kind (request->resume.handle);
    if (prepare (pass->opening) != 0) {
        return refuse (pass, HWS_ELIMIT, "the broker is out of memory");
    }
    const int code =
        hws_open_make (engine, pass->peer, request, &pass->anchor, pass->opening->reason);
    if (code == 0) {
        restore (pass);
    }
    return code;
}

/*  ---- Complete ---- */

static int resume (pass_t *pass)
{
    const hws_open_t *const request = pass->request;
    if (pass->opening->code != 0) {
        return pass->opening->code;
    }
    const hws_anchor_t *const other =
        hws_anchor_of_open (pass->engine, pass->peer, request->open_id);
    pass->anchor = hws_anchor_find (pass->engine, request->resume.handle);
    if (other && other != pass->anchor) {
        return refuse (pass, HWS_EBAD_REQUEST, "open_id: it is another anchor's");
    }
    return pass->anchor ? take_over (pass) : make_anew (pass);
}

/*  Everybody hears of the anchor that is there again.  */
static void present (pass_t *pass)
{
    hws_engine_t *const engine = pass->engine;
    hws_anchor_t *const anchor = pass->anchor;
    hws_reason_t reason = "";
    hws_anchor_present (engine, anchor);
    hws_window_serve (engine, anchor);
    const bool is_over = anchor->state == HWS_ANCHOR_CLOSING && anchor->seats.count == 0;
    if (!is_over && hws_token_check (engine, pass->request->cancel_token, reason) != 0) {
        hws_anchor_cancel (engine, anchor, HWS_CAUSE_REQUESTED, reason);
    } else if (pass->has_buried) {
        hws_anchor_seat_gone (engine, anchor);
    }
}

void hws_opening_complete (hws_engine_t *engine, hws_peer_t *peer)
{
    hws_opening_t *const self = peer->opening;
    pass_t pass = {
        .engine = engine, .peer = peer, .opening = self, .request = &self->message.as.open};
    const hws_tombstone_t *ended = NULL;
    if (self->code == 0) {
        ended = hws_tombstone_of_open (engine, peer, pass.request->open_id);
        ended = ended ? ended : hws_tombstone_of_handle (engine, pass.request->resume.handle);
    }
    const int code = ended ? 0 : resume (&pass);
    if (ended) {
        hws_open_answer_ended (engine, peer, &self->message, ended);
    } else if (code != 0) {
        hws_engine_refuse (engine, peer, &self->message, code, "%s", self->reason);
    } else {
        hws_open_answer (engine, peer, &self->message, pass.anchor);
        present (&pass);
    }
    if (pass.fault) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "%s", pass.fault);
    }
    hws_opening_forget (peer);
}
