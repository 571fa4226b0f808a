#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"
#include "tests/support/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { LOOK_MS = 1000 }; /* who waits looks so often, whatever it is told */

/*  The anchor may be open, and then another process can continue it; or there is something to
 *  read.  */
static void notified (hws_session_receiver_t *core)
{
    sim_receiver_t *const self = hws_container_of (core, sim_receiver_t, core);
    sim_anchor_t *const anchor = &sim_world.anchors[self->anchor];
    if (core->rx.state == HWS_RX_OPEN && !anchor->has_token) {
        anchor->has_token = true;
        anchor->handle = core->rx.handle;
        anchor->owner_token = core->in_force.owner_token;
    }
    if (self->waits) {
        self->waits = false;
        self->acts_at = sim_world.net.now;
    }
}

static uint64_t below (sim_receiver_t *self, uint64_t bound)
{
    return hws_random_below (&self->random, bound);
}

static int number_of (const sim_receiver_t *self)
{
    return (int) (self - sim_world.receivers);
}

/*  ---- What it is shown ---- */

static sim_anchor_t *anchor_of (const sim_receiver_t *self)
{
    return &sim_world.anchors[self->anchor];
}

/*  The application asks for more: what it had in hand is consumed.  */
static void consume (sim_receiver_t *self)
{
    if (self->hand >= 0 && !self->is_manual) {
        sim_shown_t *const shown = &self->shown[self->hand];
        shown->consumed = shown->next;
    }
    self->hand = -1;
    self->has_event = false;
}

static void acknowledge (sim_receiver_t *self)
{
    for (int i = 0; i < sim_world.sender_count; i++) {
        self->shown[i].consumed = self->shown[i].next;
    }
    hws_rx_reader_settle (&self->reader);
    hws_rx_reader_publish (&self->reader);
    sim_counted (SIM_MANUAL, 1);
}

/*  A finalize that was shown is how the anchor ended, and only such a one is.  */
static void see_closed (sim_receiver_t *self, const char *cause)
{
    const sim_network_t *const net = &sim_world.net;
    self->is_closed = true;
    snprintf (self->closed_cause, sizeof self->closed_cause, "%s", cause);
    sim_say (net, "receiver %d is shown closed(%s)", number_of (self), cause);
    if (self->is_cancelled || net->is_forgetful || net->clients[self->client].was_forgotten ||
        strcmp (cause, "transport") == 0) {
        return; /* by itself, or with a broker that was lost or given up */
    }
    if (strcmp (cause, "superseded") == 0) {
        anchor_of (self)->told++;
        assert_true (anchor_of (self)->is_contested || anchor_of (self)->last != number_of (self));
        return;
    }
    if (!anchor_of (self)->had_heirs) {
        assert_int_equal (strcmp (cause, "finalized") == 0, self->is_finalized);
    }
}

static void see_attached (sim_receiver_t *self, sim_shown_t *shown, const hws_event_t *event)
{
    assert_false (shown->is_known);
    /* A broker without memory may tell of it when it comes again only. */
    assert_true (!self->is_finalized || sim_memory.failures > 0);
    shown->is_known = true;
    shown->sender_id = event->sender_id;
    self->live++;
    if (anchor_of (self)->is_exclusive && sim_world.weather == SIM_CALM) {
        assert_int_equal (self->live, 1); /* else endings may be rewound */
    }
}

/*  In order, none missing, none twice: from the first on, which is where the process before is
 *  known to have come.  */
static void see_record (sim_receiver_t *self, sim_shown_t *shown, const hws_event_t *event)
{
    uint64_t count;
    assert_true (event->size >= sizeof count);
    memcpy (&count, event->data, sizeof count);
    if (!shown->has_records && self->is_successor) {
        shown->first = shown->next = shown->consumed = count;
    }
    shown->has_records = true;
    assert_true (count == shown->next);
    for (size_t i = sizeof count; i < event->size; i += 97) {
        assert_int_equal (((const uint8_t *) event->data)[i], (uint8_t) (count + i));
    }
    shown->next++;
    sim_counted (SIM_RECORDS, 1);
}

static void see_ending (sim_receiver_t *self, sim_shown_t *shown, const hws_event_t *event)
{
    self->live--;
    shown->has_ended = true;
    shown->ended_at = sim_world.net.now;
    shown->ending = event->kind;
    snprintf (shown->cause, sizeof shown->cause, "%s", event->cause ? event->cause : "none");
    if (event->kind == HWS_EVENT_FINALIZED) {
        assert_true (anchor_of (self)->is_exclusive);
        self->is_finalized = anchor_of (self)->is_finalized = true;
    }
}

/*  A sender whose ATTACH was not answered, and who has not come back.  */
static void see_stranger (sim_receiver_t *self, const hws_event_t *event)
{
    assert_int_not_equal (event->kind, HWS_EVENT_RECORD);
    self->live += event->kind == HWS_EVENT_ATTACHED ? 1 : -1;
}

/*  Whose event it is. An heir may be shown a stream before its sender has come back to a new
 *  broker, which does not know its label yet; -1: nor does the sender know that it is one.  */
static int sender_of (const sim_receiver_t *self, const hws_event_t *event)
{
    if (event->label[0] != '\0') {
        return atoi (event->label);
    }
    assert_true (self->is_successor && sim_world.net.options.epoch > 1);
    for (int i = 0; i < sim_world.sender_count; i++) {
        const sim_sender_t *const sender = &sim_world.senders[i];
        const uint64_t id = sender->is_added ? sender->core.tx.sender_id : sender->sender_id;
        if (sender->anchor == self->anchor && id == event->sender_id) {
            return i;
        }
        for (int k = 0; k < sim_world.receiver_count; k++) {
            const sim_receiver_t *const other = &sim_world.receivers[k];
            if (other->anchor == self->anchor && other->shown[i].sender_id == event->sender_id) {
                return i;
            }
        }
    }
    return -1;
}

/*  The broker remembers the ending no more.  */
static bool is_forgotten (const sim_shown_t *shown)
{
    return shown->has_ended && sim_world.net.now >= shown->ended_at + SIM_ORPHAN_MS;
}

static void see (sim_receiver_t *self, const hws_event_t *event)
{
    assert_false (self->is_closed);
    self->has_event = true;
    if (event->kind == HWS_EVENT_CLOSED) {
        see_closed (self, event->cause);
        return;
    }
    const int label = sender_of (self, event);
    if (label < 0) {
        see_stranger (self, event);
        return;
    }
    assert_true (label < sim_world.sender_count);
    sim_shown_t *const shown = &self->shown[label];
    const sim_sender_t *const sender = &sim_world.senders[label];
    if (event->kind != HWS_EVENT_RECORD) {
        sim_say (&sim_world.net, "receiver %d is shown %d of sender %d (%" PRIu64 ") %s",
                 number_of (self), (int) event->kind, label, event->sender_id,
                 event->cause ? event->cause : "");
    }
    if (event->kind == HWS_EVENT_ATTACHED && event->sender_id != shown->sender_id &&
        (sim_world.net.clients[sender->client].was_forgotten || sim_world.net.is_forgetful ||
         is_forgotten (shown))) {
        /* Nobody remembers an attach that was answered, or ended, so long ago: it is made
           anew, as another sender. */
        self->live -= shown->is_known && !shown->has_ended;
        *shown = (sim_shown_t){0};
    }
    assert_false (shown->has_ended);
    if (event->kind == HWS_EVENT_ATTACHED) {
        see_attached (self, shown, event);
        return;
    }
    if (!shown->is_known && event->label[0] == '\0') {
        self->live--; /* it was a stranger */
        see_attached (self, shown, event);
    }
    assert_true (shown->is_known);
    assert_true (shown->sender_id == event->sender_id);
    if (event->kind == HWS_EVENT_RECORD) {
        self->hand = label;
        see_record (self, shown, event);
    } else if (event->kind != HWS_EVENT_ERROR) {
        see_ending (self, shown, event);
    }
}

/*  ---- Its turns ---- */

static void publish (sim_receiver_t *self)
{
    if (!self->is_manual) {
        hws_rx_reader_publish (&self->reader);
    }
}

static void read_some (sim_receiver_t *self)
{
    if (self->core.rx.state == HWS_RX_CLOSED) {
        hws_rx_reader_end (&self->reader);
    }
    hws_event_t event;
    for (uint64_t i = 1 + below (self, 30); i > 0;) {
        consume (self);
        if (hws_rx_reader_next (&self->reader, &event)) {
            see (self, &event);
            i--;
            continue;
        }
        publish (self);
        if (!hws_rx_has_events (&self->core.rx)) {
            if (self->is_manual) {
                acknowledge (self);
            }
            return;
        }
        assert_int_equal (hws_rx_reader_take (&self->reader), 0);
    }
    publish (self);
    if (self->is_manual && below (self, 3) == 0) {
        acknowledge (self);
    }
}

static bool has_news (const sim_receiver_t *self)
{
    return hws_rx_has_events (&self->core.rx) || hws_rx_reader_has_more (&self->reader) ||
           self->has_event;
}

void sim_receiver_run (sim_receiver_t *self)
{
    if (self->acts_at > sim_world.net.now || !sim_client_acts (self->client)) {
        return;
    }
    if (has_news (self)) {
        read_some (self);
    }
    self->waits = !has_news (self);
    self->acts_at = sim_world.net.now +
                    (self->waits ? LOOK_MS : 1 + (hws_ms_t) below (self, (uint64_t) self->pace_ms));
}

void sim_receiver_close (sim_receiver_t *self)
{
    sim_network_t *const net = &sim_world.net;
    self->is_cancelled = anchor_of (self)->may_be_cancelled = true;
    hws_session_close (&net->clients[self->client].session, net->now, &self->core, "enough");
    hws_rx_reader_discard (&self->reader);
}

/*  ---- Beginning and end ---- */

bool sim_receiver_begin (int number, int client)
{
    sim_world_t *const world = &sim_world;
    sim_anchor_t *const anchor = &world->anchors[number];
    if (world->receiver_count == SIM_RECEIVERS_MAX || client < 0) {
        return false;
    }
    sim_receiver_t *const self = &world->receivers[world->receiver_count];
    memset (self, 0, sizeof *self);
    self->client = client;
    self->anchor = number;
    self->hand = -1;
    self->is_manual = anchor->is_manual;
    self->is_successor = anchor->has_token;
    anchor->had_heirs |= anchor->has_token;
    anchor->last = world->receiver_count++;
    hws_random_init (&self->random,
                     world->net.seed * 7919 + 31 * (uint64_t) number + (uint64_t) anchor->last);
    self->pace_ms = below (self, 4) ? 6 : 60;
    hws_session_receiver_t *const core = &self->core;
    core->notify = notified;
    core->options.kind = anchor->is_exclusive ? HWS_KIND_SPSC : HWS_KIND_MPSC;
    snprintf (core->options.name, sizeof core->options.name, "anchor %d", number);
    if (anchor->has_token) {
        core->options.has_resume = true;
        core->options.resume.handle = anchor->handle;
        core->options.resume.owner_token = anchor->owner_token;
    }
    sim_say (&world->net, "receiver %d begins on client %d%s", anchor->last, client,
             anchor->has_token ? " as an heir" : "");
    hws_session_open (&world->net.clients[client].session, world->net.now, core);
    hws_rx_reader_init (&self->reader, &core->rx);
    self->reader.is_manual = self->is_manual;
    return true;
}

void sim_receiver_fini (sim_receiver_t *self)
{
    hws_rx_reader_fini (&self->reader);
    hws_session_remove_receiver (&self->core);
}
