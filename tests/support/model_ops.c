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
    op->token = one_in (self, 3) ? any_number (self, 4, now) : 0;
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
    op->how = one_in (self, 30) ? HELLO_WRONG_PROTOCOL : (int) below (self, 2);
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
        op->kind = OP_WANT;
        op->client = seat->client;
        op->session_id = seat->session_id;
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
    } else if (kind < 790 && seat) {
        op->kind = OP_WANT;
        op->client = seat->client;
        op->session_id = seat->session_id;
        op->how = one_in (self, 2) ? WANT_NEXT : one_in (self, 2) ? WANT_SOME : WANT_MOST;
        op->count = 2000 + (uint32_t) below (self, 9000);
        op->is_more = one_in (self, 3);
    } else if (kind < 810) {
        make_detach (self, model, op, now);
    } else if (kind < 830) {
        make_cancel (self, model, op, now);
    } else if (kind < 842) {
        op->kind = OP_CANCEL_TOKEN;
        op->token = one_in (self, 30) ? 0 : any_number (self, 4, now);
        op->count = (uint32_t) below (self, 4);
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

/*  ---- For people ---- */

static const char *const s_hello_words[] = {"from a new connection", "again",
                                            "with another protocol"};
static const char *const s_handle_words[] = {"by handle",          "by name",
                                             "of another broker",  "of the other kind",
                                             "that was not given", "of an older epoch"};
static const char *const s_data_words[] = {"next",        "beyond the window",
                                           "seen before", "across what was seen",
                                           "ahead",       "DETACHED",
                                           "FINALIZED",   "faulty",
                                           "VOID",        "cut off"};
static const char *const s_ack_words[] = {"all",      "some",       "nothing new",
                                          "too much", "the ending", "with too few bytes"};
static const char *const s_want_words[] = {"what comes next", "some", "the most"};
static const char *const s_cancel_words[] = {"the sender", "the anchor", "the sender, interrupted",
                                             "a sender that never was"};

static int print_values (const op_t *op, char *text, size_t size)
{
    const struct {
        const char *word;
        uint64_t value;
    } values[] = {{"heartbeat", op->interval_ms}, {"grace", op->grace_ms},
                  {"orphan", op->orphan_ms},      {"unattached", op->unattached_ms},
                  {"senders", op->senders},       {"buffer", op->buffer_bytes}};
    int used = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        if (values[i].value) {
            used += snprintf (text + used, size - (size_t) used, " %s=%" PRIu64, values[i].word,
                              values[i].value);
        }
    }
    return used;
}

static void print_body (const op_t *op, char *text, size_t size)
{
    char values[200] = "";
    switch (op->kind) {
    case OP_HELLO:
        snprintf (text, size, "HELLO %s, at the front of anchor %" PRIu64 " of client %d",
                  s_hello_words[op->how], op->open_id, op->owner);
        return;
    case OP_GONE:
        snprintf (text, size, "loses its connection");
        return;
    case OP_OPEN:
        print_values (op, values, sizeof values);
        snprintf (text, size, "OPEN %s%s%" PRIu64 " name %d token %" PRIu64 "%s%s",
                  op->is_dedicated ? "dedicated " : "", op->is_exclusive ? "exclusive " : "",
                  op->open_id, op->name, op->token, values,
                  op->how == 0   ? ""
                  : op->how == 1 ? ", orphan TTL 0"
                                 : ", max_senders 0");
        return;
    case OP_ATTACH:
        snprintf (text, size,
                  "ATTACH session %" PRIu64 " to anchor %" PRIu64
                  " of client %d %s (name %d), waits %" PRIu64 " ms, token %" PRIu64 "%s",
                  op->session_id, op->open_id, op->owner, s_handle_words[op->how], op->name,
                  op->wait_ms, op->token,
                  op->count == 0   ? ""
                  : op->count == 1 ? ", resume"
                                   : ", resume of a cancelled stream");
        return;
    case OP_DATA:
        snprintf (text, size, "DATA session %" PRIu64 ": %u %s%s", op->session_id, op->count,
                  s_data_words[op->how], op->is_more ? ", and" : "");
        return;
    case OP_ACK:
        snprintf (text, size, "ACK session %" PRIu64 " of client %d: %s (%u)%s", op->session_id,
                  op->sender, s_ack_words[op->how], op->count, op->is_more ? ", and" : "");
        return;
    case OP_WANT:
        snprintf (text, size, "WINDOW session %" PRIu64 " wants %s (%u)%s", op->session_id,
                  s_want_words[op->how], op->count, op->is_more ? ", and" : "");
        return;
    case OP_DETACH:
        snprintf (text, size, "DETACH session %" PRIu64 " of client %d, %u too high, %s",
                  op->session_id, op->sender, op->count, s_handle_words[op->how]);
        return;
    case OP_CANCEL:
        snprintf (text, size,
                  "CANCEL %s: anchor %" PRIu64 " of client %d, session %" PRIu64
                  " of client %d, reason %u",
                  s_cancel_words[op->how], op->open_id, op->owner, op->session_id, op->sender,
                  op->count);
        return;
    case OP_CANCEL_TOKEN:
        snprintf (text, size, "CANCEL_TOKEN %" PRIu64 ", reason %u", op->token, op->count);
        return;
    case OP_RESERVE_TOKEN:
        snprintf (text, size, "RESERVE_TOKEN");
        return;
    case OP_BOUND:
        snprintf (text, size, "the shell %s the front of anchor %" PRIu64 " of client %d",
                  op->how == 0 ? "has bound" : "cannot bind", op->open_id, op->owner);
        return;
    case OP_DRAIN:
        snprintf (text, size, "the broker is to leave");
        return;
    case OP_RUBBISH:
        snprintf (text, size, "rubbish (%u)", op->count);
        return;
    case OP_BYE:
        snprintf (text, size, "BYE");
        return;
    case OP_PING:
        snprintf (text, size, "PING");
        return;
    case OP_STALE:
        snprintf (text, size, "PING on a connection of before");
        return;
    case OP_ADVANCE:
        snprintf (text, size, "%" PRId64 " ms pass, beating %x", op->ms, op->beating);
        return;
    case OP_DEADLINE:
        snprintf (text, size, "to %d ms of the next deadline, beating %x", (int) op->count - 2,
                  op->beating);
        return;
    case OP_SLEEP:
        snprintf (text, size, "the broker sleeps %" PRId64 " ms", op->ms);
        return;
    }
}

void op_print (const op_t *op, char *text, size_t size)
{
    char body[400] = "";
    print_body (op, body, sizeof body);
    if (op->kind >= OP_ADVANCE) {
        snprintf (text, size, "%s", body);
    } else {
        snprintf (text, size, "+%" PRId64 " ms: client %d %s%s", op->ms, op->client, body,
                  op->has_id || op->kind == OP_DATA || op->kind == OP_ACK || op->kind == OP_WANT
                      ? ""
                      : " (no id)");
    }
}
