#include "tests/support/sim_count.h"
#include "tests/support/sim_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { LOOK_MS = 1000 }; /* who waits looks so often, whatever it is told */

/*  Something changed that it may wait for.  */
static void notified (hws_session_sender_t *core)
{
    sim_sender_t *const self = hws_container_of (core, sim_sender_t, core);
    if (self->waits) {
        self->waits = false;
        self->acts_at = sim_world.net.now;
    }
}

static uint64_t below (sim_sender_t *self, uint64_t bound)
{
    return hws_random_below (&self->random, bound);
}

static hws_session_t *session_of (const sim_sender_t *self)
{
    return &sim_world.net.clients[self->client].session;
}

/*  ---- The end ---- */

/*  What it has learned; the object may go now.  */
static void learn (sim_sender_t *self)
{
    const hws_tx_t *const tx = &self->core.tx;
    self->is_over = true;
    self->result = tx->result;
    snprintf (self->cause, sizeof self->cause, "%s", tx->cause);
    snprintf (self->reason, sizeof self->reason, "%.60s", tx->reason);
    self->records = tx->records;
    self->sender_id = tx->sender_id;
    self->handle = self->core.handle;
    self->is_ended_here = self->core.is_ended_here;
    sim_say (&sim_world.net, "sender %d learns %s %s (%s), %" PRIu64 " records", self->number,
             hws_error_word (self->result), self->cause, self->reason, self->records);
}

void sim_sender_fini (sim_sender_t *self)
{
    if (self->is_added) {
        hws_session_remove_sender (&self->core);
        self->is_added = false;
    }
}

void sim_sender_destroy (sim_sender_t *self)
{
    if (!self->is_added || self->is_over) {
        return;
    }
    learn (self);
    self->result = HWS_ECANCELLED;
    self->is_ended_here = self->may_be_cancelled = true;
    sim_sender_fini (self);
    sim_counted (SIM_DESTROYED, 1);
}

/*  ---- The stream ---- */

static size_t any_size (sim_sender_t *self)
{
    const uint64_t kind = below (self, 100);
    return 8 + below (self, kind < 90 ? 60 : kind < 98 ? 2000 : SIM_RECORD_MAX - 8);
}

/*  False when it can do nothing more until something changes.  */
static bool produce (sim_sender_t *self)
{
    bool has_room = true;
    static uint8_t data[SIM_RECORD_MAX];
    hws_tx_t *const tx = &self->core.tx;
    for (uint64_t i = below (self, 8); i > 0 && has_room && tx->records < self->wanted; i--) {
        const size_t size = any_size (self);
        for (size_t k = 8; k < size; k++) {
            data[k] = (uint8_t) (tx->records + k);
        }
        memcpy (data, &tx->records, 8);
        const bool is_large = hws_tx_is_large (tx, size);
        has_room = hws_tx_append (tx, data, size) == 0;
        sim_counted (SIM_RECORDS_IN_PARTS, has_room && is_large);
    }
    if (tx->records >= self->wanted) {
        const int rc = self->is_finalizing ? hws_tx_finalize (tx) : hws_tx_detach (tx);
        assert_int_equal (rc, 0);
    }
    hws_session_changed (&self->core);
    if (below (self, 8) == 0) {
        hws_session_flush (self->core.session);
    }
    return has_room && tx->records < self->wanted;
}

/*  The exclusive anchor had its sender; it will not have it for ever.  */
static void try_again_later (sim_sender_t *self)
{
    sim_sender_fini (self);
    self->starts_at = sim_world.net.now + 100 + (hws_ms_t) below (self, 1000);
}

static bool may_produce (const sim_sender_t *self)
{
    const hws_tx_t *const tx = &self->core.tx;
    return tx->state == HWS_TX_OPEN || (tx->state == HWS_TX_ATTACHING && self->core.is_early);
}

void sim_sender_run (sim_sender_t *self)
{
    const hws_ms_t now = sim_world.net.now;
    if (self->is_over || self->acts_at > now || !sim_client_acts (self->client)) {
        return;
    }
    if (self->starts_at <= now) {
        self->starts_at = HWS_NEVER;
        self->is_added = true;
        hws_session_attach (session_of (self), now, &self->core);
    }
    if (self->is_added && self->core.tx.result == HWS_EMAX_SENDERS) {
        try_again_later (self);
    }
    if (self->is_added && self->core.tx.state == HWS_TX_ENDED) {
        learn (self);
        if (self->leaves_early) {
            sim_sender_fini (self);
        }
        return;
    }
    if (!self->is_added) {
        self->acts_at = self->starts_at;
        return;
    }
    self->waits = !may_produce (self) || !produce (self);
    self->acts_at =
        now + (self->waits ? LOOK_MS : 1 + (hws_ms_t) below (self, (uint64_t) self->pace_ms));
}

/*  ---- Beginning ---- */

void sim_sender_init (sim_sender_t *self, int number)
{
    sim_world_t *const world = &sim_world;
    memset (self, 0, sizeof *self);
    hws_random_init (&self->random, world->net.seed * 104729 + (uint64_t) number);
    self->number = number;
    self->client = (int) below (self, (uint64_t) world->net.count);
    self->anchor = (int) below (self, (uint64_t) world->anchor_count);
    self->wanted = below (self, 4) ? below (self, 400) : 0;
    self->is_finalizing = below (self, 4) == 0;
    self->leaves_early = below (self, 2) == 0;
    self->pace_ms = below (self, 3) ? 6 : 80;
    self->starts_at = self->acts_at = world->net.now + (hws_ms_t) below (self, 8000);
    self->core.notify = notified;
    self->core.is_early = world->net.has_early && below (self, 2) == 0;
    /* Who comes after a finalize waits in vain. */
    self->core.wait_ms = world->anchors[self->anchor].is_exclusive ? 20000 : 60000;
    self->core.cancel_token = below (self, 2) ? 1 + (uint64_t) number : 0;
    snprintf (self->core.label, sizeof self->core.label, "%d", number);
    snprintf (self->core.anchor, sizeof self->core.anchor, "anchor %d", self->anchor);
}
