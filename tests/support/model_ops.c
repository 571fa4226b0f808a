#include "tests/support/model_ops.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LIFE_MS 6000 /* numbers of streams and anchors are others after so long */

static uint64_t below (op_maker_t *self, uint64_t bound)
{
    return hws_random_below (&self->random, bound);
}

static bool one_in (op_maker_t *self, uint64_t bound)
{
    return below (self, bound) == 0;
}

/*  ---- Whom it concerns ---- */

static bool is_mute (const op_maker_t *self, int client, hws_ms_t now)
{
    return self->mute_until[client] > now;
}

static int any_client (op_maker_t *self)
{
    return (int) below (self, MODEL_CLIENTS);
}

static model_seat_t *any_seat (op_maker_t *self, model_t *model)
{
    return model->seat_count ? &model->seats[below (self, model->seat_count)] : NULL;
}

static model_anchor_t *any_anchor (op_maker_t *self, model_t *model)
{
    return model->anchor_count ? &model->anchors[below (self, model->anchor_count)] : NULL;
}

/*  A number that a client never used for something else: what ended is begun anew under
 *  another, mostly.  */
static uint64_t any_number (op_maker_t *self, uint64_t kinds, hws_ms_t now)
{
    const uint64_t life = (uint64_t) ((now - self->began_at) / LIFE_MS);
    return 1 + below (self, kinds) + 20 * (one_in (self, 6) ? below (self, life + 1) : life);
}

/*  ---- The operations ---- */

static void make_open (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    static const uint64_t intervals[] = {0, 0, 400, 2000, 200};
    static const uint64_t graces[] = {0, 1, 3001, 9001};
    const model_anchor_t *const before = any_anchor (self, model);
    op->kind = OP_OPEN;
    op->open_id = any_number (self, 2, now);
    if (before && one_in (self, 3)) { /* its receiver has missed something */
        op->client = before->owner;
        op->open_id = before->open_id;
        op->name = -1;
        return;
    }
    op->name = one_in (self, 3) ? -1 : (int) below (self, 4);
    op->interval_ms = intervals[below (self, 5)];
    op->grace_ms = graces[below (self, 4)];
    op->unattached_ms = one_in (self, 3) ? 2 + 2 * below (self, 3000) : 0;
    op->senders = one_in (self, 3) ? 1 + below (self, 3) : 0;
    op->is_exclusive = one_in (self, 3);
    op->is_dedicated = one_in (self, 5);
    op->token = one_in (self, 3) ? any_number (self, 4, now) : 0;
    op->buffer_bytes = one_in (self, 2) ? 0 : UINT64_C (4096) << below (self, 5);
    if (one_in (self, 200)) {
        op->interval_ms = 98; /* too short */
    }
    /* The parity that model_world.c tells of: where the grace is odd, the orphan TTL is
       even, and the other way round. */
    const uint64_t interval =
        op->interval_ms ? op->interval_ms : model->options.anchors.heartbeat_interval_ms;
    const uint64_t grace = op->grace_ms ? op->grace_ms : model->options.anchors.reconnect_grace_ms;
    const bool is_odd = grace >= 4 * interval;
    op->orphan_ms = 2 * (1 + below (self, 5000)) + !is_odd;
    op->how = is_odd && one_in (self, 8) ? 1 + one_in (self, 20) : 0;
}

static void make_attach (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    const model_anchor_t *const anchor = any_anchor (self, model);
    op->kind = OP_ATTACH;
    op->session_id = any_number (self, 9, now);
    op->owner = anchor ? anchor->owner : any_client (self);
    op->open_id = anchor && !one_in (self, 20) ? anchor->open_id : any_number (self, 2, now);
    op->how = one_in (self, 3)    ? HANDLE_NAME
              : one_in (self, 25) ? (int) below (self, 6)
                                  : HANDLE_RIGHT;
    op->name = (int) below (self, 4);
    op->wait_ms = one_in (self, 2) ? 2 * below (self, 6000) : 0;
    op->token = one_in (self, 2) ? any_number (self, 4, now) : 0;
    if (one_in (self, 40)) {
        op->count = 1 + (uint32_t) below (self, 2); /* a resume, or one of a cancelled stream */
    }
}

static void make_data (op_maker_t *self, const model_seat_t *seat, op_t *op)
{
    const uint64_t kind = below (self, 200);
    op->kind = OP_DATA;
    op->client = seat->client;
    op->session_id = seat->session_id;
    op->count = 1 + (uint32_t) below (self, one_in (self, 4) ? 40 : 4);
    op->is_more = one_in (self, 2);
    op->how = kind < 170   ? DATA_NEXT
              : kind < 180 ? DATA_ENDING
              : kind < 185 ? DATA_FINAL
              : kind < 189 ? DATA_SEEN
              : kind < 191 ? DATA_ACROSS
              : kind < 196 ? DATA_AHEAD
              : kind < 197 ? DATA_BEYOND
              : kind < 198 ? DATA_VOID
              : kind < 199 ? DATA_CUT
                           : DATA_FAULTY;
}

static void make_ack (op_maker_t *self, model_t *model, const model_seat_t *seat, op_t *op)
{
    const uint64_t kind = below (self, 100);
    op->kind = OP_ACK;
    op->client = one_in (self, 100) ? any_client (self) : model_anchor (model, seat->anchor)->owner;
    op->sender = seat->client;
    op->session_id = seat->session_id;
    op->count = (uint32_t) below (self, 100);
    op->is_more = one_in (self, 3);
    op->how = kind < 55   ? ACK_ALL
              : kind < 80 ? ACK_SOME
              : kind < 88 ? ACK_SAME
              : kind < 89 ? ACK_BEYOND
              : kind < 90 ? ACK_BACK
              : kind < 92 ? ACK_ENDED
                          : ACK_ALL;
    if (seat->has_ended && one_in (self, 2)) {
        op->how = ACK_ENDED;
    }
}

/*  Of something that is there, often, or of what may come or may have been.  */
static void make_cancel_token (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    const model_seat_t *const seat = any_seat (self, model);
    const model_anchor_t *const anchor = any_anchor (self, model);
    op->kind = OP_CANCEL_TOKEN;
    op->count = (uint32_t) below (self, 4);
    op->token = one_in (self, 30) ? 0 : any_number (self, 4, now);
    if (seat && one_in (self, 2)) {
        op->token = seat->token;
    } else if (anchor && one_in (self, 4)) {
        op->token = anchor->token;
    } else if (model->waiting_count > 0 && one_in (self, 2)) {
        op->token = model->waiting[below (self, model->waiting_count)].request.token;
    }
}

static void make_want (op_maker_t *self, const model_seat_t *seat, op_t *op)
{
    op->kind = OP_WANT;
    op->client = seat->client;
    op->session_id = seat->session_id;
    op->how = one_in (self, 3) ? WANT_NEXT : one_in (self, 3) ? WANT_SOME : WANT_MOST;
    if (seat->is_asked ? !one_in (self, 4) : one_in (self, 20)) {
        op->how = one_in (self, 10) ? WANT_LESS_LATE : WANT_LESS;
    }
    op->count = 2000 + (uint32_t) below (self, 9000);
    op->is_more = one_in (self, 2);
}

static void make_cancel (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    const model_seat_t *const seat = any_seat (self, model);
    const model_anchor_t *const anchor =
        seat && one_in (self, 2) ? model_anchor (model, seat->anchor) : any_anchor (self, model);
    op->kind = OP_CANCEL;
    op->count = (uint32_t) below (self, 4);
    op->owner = anchor ? anchor->owner : any_client (self);
    op->open_id = anchor ? anchor->open_id : 1;
    op->sender = seat ? seat->client : any_client (self);
    op->session_id = seat && !one_in (self, 5) ? seat->session_id : any_number (self, 9, now);
    op->how = one_in (self, 3)    ? CANCEL_ANCHOR
              : one_in (self, 3)  ? CANCEL_INTERRUPTED
              : one_in (self, 10) ? CANCEL_NO_SENDER
                                  : CANCEL_SENDER;
    if (seat && seat->has_ended && one_in (self, 2)) {
        op->how = CANCEL_SENDER; /* its receiver may throw the ending away */
        op->client = model_anchor (model, seat->anchor)->owner;
        return;
    }
    /* By the receiver, by a sender, or by anybody. */
    if (seat && !one_in (self, 8)) {
        op->client = one_in (self, 2) ? seat->client : model_anchor (model, seat->anchor)->owner;
    }
    if (op->how == CANCEL_ANCHOR && !one_in (self, 2) && seat) {
        op->client = seat->client;
    }
}

static void make_detach (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    const model_seat_t *const seat = any_seat (self, model);
    op->kind = OP_DETACH;
    op->sender = seat ? seat->client : op->client;
    op->session_id = seat && !one_in (self, 6) ? seat->session_id : any_number (self, 9, now);
    op->client = one_in (self, 10) ? op->client : op->sender;
    op->count = one_in (self, 6);
    op->how = one_in (self, 20) ? (int) below (self, 6) : HANDLE_RIGHT;
}

static unsigned talkative (const op_maker_t *self, hws_ms_t now)
{
    unsigned clients = 0;
    for (int i = 0; i < MODEL_CLIENTS; i++) {
        clients |= is_mute (self, i, now) ? 0 : 1u << i;
    }
    return clients;
}

static void make_time (op_maker_t *self, op_t *op, hws_ms_t now)
{
    const uint64_t kind = below (self, 100);
    op->beating = one_in (self, 8) ? 0 : talkative (self, now);
    if (kind < 70) {
        op->kind = OP_ADVANCE;
        op->ms = 2 * (hws_ms_t) below (self, 40);
    } else if (kind < 78) {
        op->kind = OP_ADVANCE;
        op->ms = 2 * (hws_ms_t) below (self, one_in (self, 8) ? 5000 : 500);
    } else if (kind < 97) {
        op->kind = OP_DEADLINE;
        op->count = 2 * (uint32_t) below (self, 3);
    } else {
        op->kind = OP_SLEEP;
        op->ms = 2 * (hws_ms_t) below (self, one_in (self, 2) ? 10000 : 600);
    }
}

/*  From the shared front, or from an anchor's own.  */
static void make_hello (op_maker_t *self, model_t *model, op_t *op)
{
    const model_anchor_t *const anchor = any_anchor (self, model);
    op->kind = OP_HELLO;
    op->how =
        one_in (self, 20) ? HELLO_WRONG_PROTOCOL + (int) below (self, 2) : (int) below (self, 2);
    if (anchor && one_in (self, 2)) {
        op->owner = anchor->owner;
        op->open_id = anchor->open_id;
    }
}

/*  What a client does that is not as it should be: says HELLO, opens and attaches again.
 *  Returns false when nothing is amiss.  */
static bool make_repair (op_maker_t *self, model_t *model, op_t *op)
{
    for (size_t i = 0; i < model->anchor_count; i++) {
        const model_anchor_t *const anchor = &model->anchors[i];
        if (anchor->front_state == MODEL_BINDING && one_in (self, 4)) {
            op->kind = OP_BOUND;
            op->owner = anchor->owner;
            op->open_id = anchor->open_id;
            op->how = one_in (self, 4);
            return true;
        }
    }
    const int client = op->client;
    if (!model->clients[client].is_known || model->clients[client].is_away) {
        make_hello (self, model, op);
        op->how = HELLO_NEW;
        return true;
    }
    for (size_t i = 0; i < model->anchor_count; i++) {
        const model_anchor_t *const anchor = &model->anchors[i];
        if (anchor->owner == client && !anchor->is_present) {
            op->kind = OP_OPEN;
            op->open_id = anchor->open_id;
            op->name = -1;
            op->unattached_ms = one_in (self, 4) ? 2 + 2 * below (self, 3000) : 0;
            return true;
        }
    }
    for (size_t i = 0; i < model->seat_count; i++) {
        const model_seat_t *const seat = &model->seats[i];
        if (seat->client == client && seat->is_away && !seat->has_ended) {
            const model_anchor_t *const anchor = model_anchor (model, seat->anchor);
            op->kind = OP_ATTACH;
            op->session_id = seat->session_id;
            op->owner = anchor->owner;
            op->open_id = anchor->open_id;
            return true;
        }
    }
    return false;
}

/*  Whether something of this seat can go into the batch of the last operation.  */
static bool is_for_last (const op_maker_t *self, model_t *model, const model_seat_t *seat)
{
    const int client =
        self->last.kind == OP_ACK ? model_anchor (model, seat->anchor)->owner : seat->client;
    return client == self->last.client;
}

/*  What goes into the batch of the last operation.  */
static void make_more (op_maker_t *self, model_t *model, const model_seat_t *seat, op_t *op)
{
    if (seat && self->last.kind == OP_ACK) {
        make_ack (self, model, seat, op);
    } else if (seat && self->last.kind == OP_DATA) {
        make_data (self, seat, op);
    } else if (seat) {
        make_want (self, seat, op);
    }
}

static void make_any (op_maker_t *self, model_t *model, op_t *op, hws_ms_t now)
{
    const model_seat_t *seat = any_seat (self, model);
    const uint64_t kind = below (self, 1000);
    op->kind = OP_PING;
    if (self->last.is_more && !one_in (self, 5)) {
        for (int i = 0; i < 10 && seat && !is_for_last (self, model, seat); i++) {
            seat = any_seat (self, model);
        }
        make_more (self, model, seat, op);
        return;
    }
    if (kind < 400 && seat) {
        make_data (self, seat, op);
    } else if (kind < 660 && seat) {
        make_ack (self, model, seat, op);
    } else if (kind < 720) {
        make_attach (self, model, op, now);
    } else if (kind < 740) {
        make_open (self, model, op, now);
    } else if (kind < 752) {
        make_hello (self, model, op);
    } else if (kind < 760) {
        op->kind = OP_GONE;
        if (one_in (self, 2)) {
            self->mute_until[op->client] = now + (hws_ms_t) below (self, 15000);
        }
    } else if (kind < 790 && seat) {
        make_want (self, seat, op);
    } else if (kind < 810) {
        make_detach (self, model, op, now);
    } else if (kind < 830) {
        make_cancel (self, model, op, now);
    } else if (kind < 842) {
        make_cancel_token (self, model, op, now);
    } else if (kind < 843) {
        op->kind = OP_RESERVE_TOKEN;
    } else if (kind < 846) {
        op->kind = OP_BYE;
    } else if (kind < 848) {
        op->kind = OP_STALE;
    } else if (kind < 849) {
        op->kind = one_in (self, 6) ? OP_DRAIN : OP_RUBBISH;
        op->count = (uint32_t) below (self, 100);
    } else if (kind < 912) {
        make_time (self, op, now);
    } else if (kind < 916) {
        self->mute_until[op->client] = now + (hws_ms_t) below (self, 15000);
    }
}

op_t op_make (op_maker_t *self, model_t *model, hws_ms_t now)
{
    op_t op = {.client = any_client (self), .name = -1, .has_id = !one_in (self, 16)};
    op.ms = 2 * (hws_ms_t) below (self, 3);
    if (is_mute (self, op.client, now) || one_in (self, 4) || !make_repair (self, model, &op)) {
        const hws_ms_t before = op.ms;
        make_any (self, model, &op, now);
        if (op.kind < OP_ADVANCE) {
            op.ms = before;
        }
        if (op.kind < OP_ADVANCE && op.kind != OP_GONE) {
            for (int i = 0; i < MODEL_CLIENTS && is_mute (self, op.client, now); i++) {
                op.kind = OP_PING; /* somebody else speaks */
                op.client = (op.client + 1) % MODEL_CLIENTS;
            }
        }
    }
    self->last = op;
    return op;
}
