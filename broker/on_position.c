/*  POSITION: where a receiver stands that opens with resume (docs/protocol.md, "POSITION").
 */
#include "broker/opening.h"

#include "broker/answer.h"
#include "broker/engine_state.h"

#include <stdio.h>
#include <stdlib.h>

#define POSITION_MAX    (UINT64_C (1) << 62) /* sums with windows never overflow */
#define ITEM_ROOM_FIRST 64

/*  ---- The OPEN ---- */

static void fail (hws_opening_t *self, int code, const char *reason)
{
    if (self->code == 0) {
        self->code = code;
        snprintf (self->reason, sizeof self->reason, "%s", reason);
    }
}

/*  Only who has the token may have anything kept for it.  */
static void check_token (const hws_engine_t *engine, hws_opening_t *self)
{
    const hws_open_t *const request = &self->message.as.open;
    if (request->resume.handle.hi != engine->options.broker_id) {
        fail (self, HWS_EWRONG_BROKER, "the handle belongs to another broker");
        return;
    }
    const hws_id_t right =
        hws_credential_make (engine->options.key, HWS_CREDENTIAL_OWNER, request->resume.handle, 0);
    if (!hws_credential_equal (&right, &request->resume.owner_token)) {
        fail (self, HWS_EDENIED, "the owner token is not that of the anchor");
    } else if (request->resume.highest_sender_id > POSITION_MAX) {
        fail (self, HWS_EBAD_REQUEST, "resume.highest_sender_id: no sender has such an id");
    }
}

int hws_opening_begin (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    hws_opening_forget (peer);
    hws_opening_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->message = *message;
    check_token (engine, self);
    peer->opening = self;
    return 0;
}

void hws_opening_forget (hws_peer_t *peer)
{
    hws_opening_t *const self = peer->opening;
    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->item_count; i++) {
        free (self->items[i].memory);
    }
    free (self->items);
    free (self);
    peer->opening = NULL;
}

/*  ---- Its positions ---- */

/*  Returns 0 or HWS_ENO_MEMORY.  */
static int make_room (hws_opening_t *self)
{
    if (self->item_count < self->item_room) {
        return 0;
    }
    const size_t room = self->item_room > 0 ? 2 * self->item_room : ITEM_ROOM_FIRST;
    hws_opening_item_t *const items = realloc (self->items, room * sizeof *items);
    if (items == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->items = items;
    self->item_room = room;
    return 0;
}

/*  Keeps what is said of a sender. Endings beyond what is remembered of them are as good as
 *  forgotten; seats beyond what any anchor has are not taken.  */
static void collect (const hws_engine_t *engine, hws_opening_t *self,
                     const hws_position_t *position)
{
    const hws_limits_t *const limits = &engine->options.limits;
    const bool is_over = (position->flags & HWS_POSITION_CONSUMED) != 0;
    if (self->code != 0 || (is_over && self->item_count - self->seat_count >= limits->tombstones)) {
        return;
    }
    if (!is_over && self->seat_count >= limits->senders_per_anchor + limits->exiting_seats) {
        fail (self, HWS_ELIMIT, "the broker takes fewer senders at one anchor");
    } else if (make_room (self) != 0) {
        fail (self, HWS_ELIMIT, "the broker is out of memory");
    } else {
        self->items[self->item_count++] = (hws_opening_item_t){.position = *position};
        self->seat_count += !is_over;
    }
}

/*  Whether it can be true of any stream.  */
static bool is_sane (const hws_position_t *position)
{
    const bool has_ended = (position->flags & HWS_POSITION_ENDED) != 0;
    const bool is_own =
        has_ended && (position->type == HWS_RUN_DETACHED || position->type == HWS_RUN_FINALIZED);
    return position->sender_id <= POSITION_MAX && position->acked_seq <= position->next_seq &&
           position->acked_bytes <= position->next_bytes && position->next_seq <= POSITION_MAX &&
           position->next_bytes <= POSITION_MAX &&
           (has_ended ? hws_run_is_ending (position->type)
                      : (position->flags & HWS_POSITION_CONSUMED) == 0) &&
           (!is_own || position->next_seq > 0);
}

void hws_on_position (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch)
{
    hws_position_t position;
    int rc;
    const char *const stray = "a position without an OPEN that resumes";
    const char *fault = peer->opening ? NULL : stray;
    while ((rc = hws_batch_next_position (batch, &position)) == 1) {
        if (peer->opening == NULL) {
            fault = stray;
        } else if (!is_sane (&position)) {
            fault = "a position that cannot be true";
        } else if (position.sender_id > 0) {
            collect (engine, peer->opening, &position);
        }
        if (peer->opening && (position.flags & HWS_POSITION_LAST)) {
            hws_opening_complete (engine, peer);
        }
    }
    if (rc < 0) {
        fault = "a POSITION batch is malformed";
    }
    if (fault) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL, "%s", fault);
    }
}
