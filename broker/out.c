#include "broker/out.h"

#include "base/assert.h"
#include "broker/engine_state.h"

#include <stdlib.h>

#define RETRY_MS           10 /* a full pipe is noticed late: try again after a poll */
#define FULL_INTERVALS     3  /* who stays full for so many is gone */
#define GRANTS_PER_MESSAGE 256
#define AGAIN              0x80000000u /* in a seat's grant_flags: nothing new, and not on the wire */
#define BATCH_ROOM_FIRST   2048        /* bytes of an open batch that has just begun, at least */

/*  What may wait for a full connection: twice the buffers of its anchors (headers, and
 *  the other runs of messages that are kept whole), what is said of each seat, and some
 *  more for anchors that have just ended.  */
#define QUEUED_PER_SEAT 4096
#define QUEUED_BEYOND   UINT64_C (1048576)

void hws_out_init (hws_out_t *self)
{
    *self = (hws_out_t){.retry.kind = HWS_DEADLINE_FULL};
}

/*  Disposes of a message that is not sent; its payload goes back to the shell.  */
static void outgoing_free (hws_engine_t *engine, hws_outgoing_t *outgoing)
{
    free (outgoing->effect.data);
    outgoing->effect.data = NULL;
    if (outgoing->effect.payload) {
        outgoing->effect.kind = HWS_EFFECT_RELEASE;
        hws_list_append (&engine->loose, &outgoing->link);
    } else {
        free (outgoing);
    }
}

static uint64_t weight (const hws_outgoing_t *outgoing)
{
    return sizeof *outgoing + outgoing->effect.size;
}

/*  Takes the first message out of the queue, or null.  */
static hws_outgoing_t *take_first (hws_out_t *self)
{
    hws_link_t *const link = hws_list_pop (&self->queue);
    if (link == NULL) {
        return NULL;
    }
    hws_outgoing_t *const outgoing = hws_container_of (link, hws_outgoing_t, link);
    self->queued_bytes -= weight (outgoing);
    return outgoing;
}

void hws_out_clear (hws_engine_t *engine, hws_out_t *self)
{
    hws_outgoing_t *outgoing;
    while ((outgoing = take_first (self))) {
        outgoing_free (engine, outgoing);
    }
    while (hws_list_pop (&self->grants) || hws_list_pop (&self->said)) {
    }
    free (self->batch);
    self->batch = NULL;
    self->batch_size = self->batch_room = 0;
    self->run_count = 0;
    self->is_full = self->is_probing = self->is_probe_sent = self->missed_control = false;
    hws_list_remove (&self->ready);
    hws_list_remove (&self->opened);
    hws_heap_clear (&engine->deadlines, &self->retry.timer);
}

/*  Lets the engine pop this client, unless its connection is full.  */
static void make_ready (hws_engine_t *engine, hws_out_t *self)
{
    if (!self->is_full && !hws_link_is_in_list (&self->ready)) {
        hws_list_append (&engine->ready, &self->ready);
    }
}

static void push (hws_engine_t *engine, hws_out_t *self, hws_outgoing_t *outgoing)
{
    hws_list_append (&self->queue, &outgoing->link);
    self->queued_bytes += weight (outgoing);
    make_ready (engine, self);
}

static void miss (hws_engine_t *engine, hws_out_t *self)
{
    self->missed_control = true;
    engine->stats.missed_controls++;
}

static void queue_control (hws_engine_t *engine, hws_out_t *self, const hws_control_t *message)
{
    size_t size = 0;
    hws_outgoing_t *const outgoing = calloc (1, sizeof *outgoing);
    if (outgoing == NULL ||
        hws_control_encode (message, engine->scratch, HWS_CONTROL_SIZE_MAX, &size) != 0) {
        free (outgoing);
        miss (engine, self);
        return;
    }
    outgoing->effect.verb = hws_verb_word (message->verb);
    outgoing->effect.size = size;
    outgoing->effect.data = malloc (size);
    if (outgoing->effect.data == NULL) {
        free (outgoing);
        miss (engine, self);
        return;
    }
    memcpy (outgoing->effect.data, engine->scratch, size);
    push (engine, self, outgoing);
}

void hws_out_control (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    hws_out_t *const self = &peer->out;
    if (peer->state == HWS_PEER_AWAY) {
        return; /* it says everything again when it is back, and is told then */
    }
    hws_out_close_batch (engine, peer); /* order: what was queued before goes first */
    if (self->is_full || self->is_probing) {
        miss (engine, self);
        return;
    }
    queue_control (engine, self, message);
}

/*  Tells the client to say everything again, if it missed something.  */
static void queue_resync (hws_engine_t *engine, hws_out_t *self)
{
    if (self->missed_control) {
        self->missed_control = false;
        const hws_control_t resync = {.verb = HWS_VERB_RESYNC, .as.epoch = engine->options.epoch};
        queue_control (engine, self, &resync);
    }
}

int hws_out_reserve_run (hws_engine_t *engine, hws_peer_t *peer, size_t size)
{
    hws_out_t *const self = &peer->out;
    const size_t limit = engine->options.limits.batch_bytes;
    const size_t needed = HWS_RUN_HEADER_SIZE + size;
    if (self->batch &&
        (needed > limit - self->batch_size || self->run_count == HWS_BATCH_ITEMS_MAX)) {
        hws_out_close_batch (engine, peer);
    }
    const size_t used = self->batch ? self->batch_size : HWS_BATCH_HEADER_SIZE;
    const size_t expected = self->batch ? self->batch_room : self->batch_before;
    size_t room = BATCH_ROOM_FIRST;
    while (room < expected || needed > room - used) {
        room *= 2;
    }
    if (self->batch == NULL || room > self->batch_room) {
        uint8_t *const larger = realloc (self->batch, room);
        if (larger == NULL) {
            return HWS_ENO_MEMORY;
        }
        self->batch = larger;
        self->batch_room = room;
        self->batch_size = used;
    }
    if (!hws_link_is_in_list (&self->opened)) {
        hws_list_append (&engine->opened, &self->opened);
    }
    return 0;
}

void hws_out_add_run (hws_peer_t *peer, const hws_run_t *run)
{
    hws_out_t *const self = &peer->out;
    const size_t needed = HWS_RUN_HEADER_SIZE + run->body.size;
    hws_assert (self->batch && needed <= self->batch_room - self->batch_size);

    hws_run_put (self->batch + self->batch_size, run);
    if (run->body.size > 0) {
        memcpy (self->batch + self->batch_size + HWS_RUN_HEADER_SIZE, run->body.data,
                run->body.size);
    }
    self->batch_size += needed;
    self->run_count++;
}

/*  The open batch as a message of its own, without room that it does not need: a copy, or the
 *  very bytes if that is most of them.  */
static uint8_t *take_batch (hws_out_t *self)
{
    uint8_t *data = self->batch_size <= self->batch_room / 2 ? malloc (self->batch_size) : NULL;
    if (data) {
        memcpy (data, self->batch, self->batch_size);
        free (self->batch);
    } else {
        data = self->batch;
    }
    self->batch_before = self->batch_size;
    self->batch = NULL;
    self->batch_size = self->batch_room = 0;
    self->run_count = 0;
    return data;
}

void hws_out_close_batch (hws_engine_t *engine, hws_peer_t *peer)
{
    hws_out_t *const self = &peer->out;
    hws_list_remove (&self->opened);
    if (self->run_count == 0) {
        return;
    }
    hws_outgoing_t *const outgoing = calloc (1, sizeof *outgoing);
    if (outgoing == NULL) {
        /* The runs are lost with the memory: what the receiver does not get it will
           miss, and a new OPEN makes their senders rewind. */
        self->run_count = 0;
        self->batch_size = HWS_BATCH_HEADER_SIZE;
        miss (engine, self);
        return;
    }
    hws_batch_put (self->batch, HWS_BATCH_DATA, self->run_count);
    outgoing->effect.size = self->batch_size;
    outgoing->effect.data = take_batch (self);
    engine->stats.batches_copied++;
    push (engine, self, outgoing);
}

void hws_out_forward (hws_engine_t *engine, hws_peer_t *peer, hws_outgoing_t *outgoing)
{
    hws_out_close_batch (engine, peer);
    engine->stats.batches_forwarded++;
    push (engine, &peer->out, outgoing);
}

void hws_out_grant (hws_engine_t *engine, hws_seat_t *seat)
{
    if (seat->peer->state == HWS_PEER_AWAY) {
        seat->grant_flags = 0; /* the answer to its next ATTACH says all of it */
        return;
    }
    hws_out_t *const self = &seat->peer->out;
    seat->grant_flags &= ~AGAIN;
    if (seat->in_grants.list != &self->grants) {
        hws_list_remove (&seat->in_grants); /* what was said before is not said again */
        hws_list_append (&self->grants, &seat->in_grants);
    }
    make_ready (engine, self);
}

void hws_out_grants_again (hws_engine_t *engine, hws_peer_t *peer)
{
    hws_out_t *const self = &peer->out;
    for (hws_link_t *link = self->said.head, *next; link; link = next) {
        next = link->next;
        hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_grants);
        if (!seat->has_gap) {
            hws_list_remove (link);
            hws_list_append (&self->grants, link);
            seat->grant_flags |= AGAIN;
        } else if (seat->anchor->is_receiver_present) {
            hws_seat_rewind (engine, seat);
        }
    }
    if (self->grants.count > 0) {
        make_ready (engine, self);
    }
}

static void write_grant (hws_out_t *self, hws_seat_t *seat, uint8_t *at)
{
    /* RETURN is said with the limits that are to be lowered, then without until WINDOW. */
    const bool has_limit = !seat->is_asked || (seat->grant_flags & HWS_GRANT_RETURN);
    const hws_grant_t grant = {.stream = seat->session_id,
                               .acked_seq = seat->acked_seq,
                               .next_seq = seat->next_seq,
                               .limit_seq = seat->limit_seq,
                               .limit_bytes = has_limit ? seat->limit_bytes : 0,
                               .flags = (seat->grant_flags & ~AGAIN) |
                                        (seat->is_asked ? HWS_GRANT_RETURN : 0)};
    hws_grant_put (at, &grant);
    if (!(seat->grant_flags & AGAIN) || seat->is_asked) {
        hws_list_append (&self->said, &seat->in_grants);
    }
    seat->grant_flags = 0;
}

/*  Turns the grants that are due into a message. Returns null when there are none or
 *  memory is short: they stay due, and the next acknowledgement tries again.  */
static hws_outgoing_t *write_grants (hws_out_t *self)
{
    size_t count = self->grants.count;
    if (count == 0) {
        return NULL;
    }
    if (count > GRANTS_PER_MESSAGE) {
        count = GRANTS_PER_MESSAGE;
    }
    hws_outgoing_t *const outgoing = calloc (1, sizeof *outgoing);
    uint8_t *const data = malloc (HWS_BATCH_HEADER_SIZE + count * HWS_GRANT_SIZE);
    if (outgoing == NULL || data == NULL) {
        free (outgoing);
        free (data);
        return NULL;
    }
    hws_batch_put (data, HWS_BATCH_GRANT, (uint16_t) count);
    uint8_t *at = data + HWS_BATCH_HEADER_SIZE;
    for (size_t i = 0; i < count; i++, at += HWS_GRANT_SIZE) {
        hws_link_t *const link = hws_list_pop (&self->grants);
        write_grant (self, hws_container_of (link, hws_seat_t, in_grants), at);
    }
    outgoing->effect.data = data;
    outgoing->effect.size = (size_t) (at - data);
    return outgoing;
}

/*  Adds the grant to the message at the end of the queue, if that has grants too: thousands of
 *  streams may end with one acknowledgement.  */
static bool join_grants (hws_out_t *self, hws_seat_t *seat)
{
    hws_link_t *const last = self->queue.tail;
    hws_effect_t *const effect =
        last ? &hws_container_of (last, hws_outgoing_t, link)->effect : NULL;
    hws_batch_t batch;
    if (!effect || effect->verb || !effect->data ||
        hws_batch_open (&batch, hws_bytes (effect->data, effect->size)) != 0 ||
        batch.kind != HWS_BATCH_GRANT || batch.count >= GRANTS_PER_MESSAGE) {
        return false;
    }
    uint8_t *const data = realloc (effect->data, effect->size + HWS_GRANT_SIZE);
    if (!data) {
        return false;
    }
    hws_batch_put (data, HWS_BATCH_GRANT, (uint16_t) (batch.count + 1));
    hws_list_remove (&seat->in_grants);
    write_grant (self, seat, data + effect->size);
    effect->data = data;
    effect->size += HWS_GRANT_SIZE;
    self->queued_bytes += HWS_GRANT_SIZE;
    return true;
}

void hws_out_grant_last (hws_engine_t *engine, hws_seat_t *seat)
{
    hws_out_t *const self = &seat->peer->out;
    hws_out_grant (engine, seat);
    if (seat->in_grants.list == &self->grants && join_grants (self, seat)) {
        return;
    }
    hws_outgoing_t *outgoing;
    while (!self->is_full && seat->in_grants.list == &self->grants &&
           (outgoing = write_grants (self))) {
        push (engine, self, outgoing);
    }
    if (seat->in_grants.list == &self->grants) {
        miss (engine, self);
    }
}

bool hws_out_pop (hws_engine_t *engine, hws_peer_t *peer, hws_effect_t *effect)
{
    hws_out_t *const self = &peer->out;
    if (self->is_full) {
        return false;
    }
    if (self->is_probe_sent) {
        /* A message went out after a retry and was not refused: the connection reads
           again. */
        self->is_probing = self->is_probe_sent = false;
    }
    if (!self->is_probing) {
        queue_resync (engine, self);
    }
    hws_outgoing_t *const first = take_first (self);
    hws_outgoing_t *const outgoing = first ? first : write_grants (self);
    if (outgoing == NULL) {
        self->is_probing = false; /* nothing is left to probe with */
        return false;
    }
    self->is_probe_sent = self->is_probing;
    *effect = outgoing->effect;
    effect->to = peer->address;
    free (outgoing);
    return true;
}

void hws_out_refused (hws_engine_t *engine, hws_peer_t *peer, hws_effect_t *effect)
{
    hws_out_t *const self = &peer->out;
    if (!self->is_full && !self->is_probing) {
        self->full_at = engine->now;
    }
    self->is_full = true;
    self->is_probing = self->is_probe_sent = false;
    hws_list_remove (&self->ready);
    hws_heap_set (&engine->deadlines, &self->retry.timer, engine->now + RETRY_MS);

    /* A welcome is not missed: the client would wait for it, deaf to RESYNC. There is one
       at most, for each HELLO empties the queue. */
    const bool is_kept =
        effect->verb == NULL || strcmp (effect->verb, hws_verb_word (HWS_VERB_HELLO)) == 0;
    hws_outgoing_t *const outgoing = is_kept ? calloc (1, sizeof *outgoing) : NULL;
    if (outgoing == NULL) {
        miss (engine, self);
        return;
    }
    outgoing->effect = *effect;
    hws_list_prepend (&self->queue, &outgoing->link);
    self->queued_bytes += weight (outgoing);
    effect->data = NULL;
    effect->payload = NULL;
}

static uint64_t most_queued_bytes (const hws_peer_t *peer)
{
    return QUEUED_BEYOND + 2 * peer->buffer_bytes + QUEUED_PER_SEAT * peer->sender_count;
}

bool hws_out_retry (hws_engine_t *engine, hws_peer_t *peer)
{
    hws_out_t *const self = &peer->out;
    const hws_ms_t patience =
        FULL_INTERVALS * (hws_ms_t) engine->options.anchors.heartbeat_interval_ms;
    if (engine->now - self->full_at >= patience || self->queued_bytes > most_queued_bytes (peer)) {
        return false;
    }
    self->is_full = false;
    self->is_probing = true;
    if (self->queue.count == 0 && self->grants.count == 0) {
        queue_resync (engine, self); /* is itself the probe */
    }
    make_ready (engine, self);
    return true;
}
