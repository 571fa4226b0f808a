#include "tests/support/sim_run.h"

#include "tests/support/blocks.h"
#include "tests/support/sim_broker.h"
#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"
#include "tests/support/sim_verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { LAST_MS = 300000, SETTLE_MS = 60000, LEAVE_MS = 60000, FORGET_MS = 150000 };

sim_world_t sim_world;

/*  ---- The script ---- */

void sim_script_init (sim_script_t *self, uint64_t seed)
{
    static const sim_weather_t weathers[16] = {SIM_CALM,    SIM_GENTLE,  SIM_GENTLE,  SIM_GENTLE,
                                               SIM_GENTLE,  SIM_GENTLE,  SIM_GENTLE,  SIM_CANCELS,
                                               SIM_CANCELS, SIM_CANCELS, SIM_CANCELS, SIM_CANCELS,
                                               SIM_ROUGH,   SIM_ROUGH,   SIM_ROUGH,   SIM_ROUGH};
    hws_random_t random;
    hws_random_init (&random, seed * 2862933555777941757 + 3037000493);
    *self = (sim_script_t){.seed = seed};
    self->weather = weathers[hws_random_below (&random, 16)];
    self->is_forgetful = hws_random_below (&random, 8) == 0;
    self->client_count = 2 + (int) hws_random_below (&random, 5);
    self->anchor_count = 1 + (int) hws_random_below (&random, SIM_ANCHORS_MAX);
    self->sender_count = 1 + (int) hws_random_below (&random, SIM_SENDERS_MAX);
    sim_plan_init (&self->plan, seed, self->weather);
}

void sim_script_print (const sim_script_t *self, sim_off_t off)
{
    static const char *const words[] = {"calm", "gentle", "cancels", "rough"};
    printf ("seed %" PRIu64 ": %s%s, %d clients, %d anchors\n", self->seed, words[self->weather],
            self->is_forgetful ? ", broker without state" : "", self->client_count,
            self->anchor_count);
    for (int i = 0; i < self->plan.count; i++) {
        char line[160];
        sim_fault_print (&self->plan.faults[i], line, sizeof line);
        if (!(off >> i & 1)) {
            printf ("  fault %d %s\n", i, line);
        }
    }
    printf ("  senders");
    for (int i = 0; i < self->sender_count; i++) {
        if (!(off >> (SIM_OFF_SENDERS + i) & 1)) {
            printf (" %d", i);
        }
    }
    printf ("\n");
}

static void set_up (const sim_script_t *script, sim_off_t off, bool is_traced)
{
    sim_world_t *const self = &sim_world;
    memset (self, 0, sizeof *self);
    sim_memory = (sim_memory_t){0};
    self->weather = script->weather;
    sim_init (&self->net, script->seed, script->client_count);
    self->net.is_traced = is_traced;
    self->net.is_forgetful = script->is_forgetful;
    self->begun_at = self->net.now;
    self->client_count = script->client_count;
    self->anchor_count = script->anchor_count;
    self->sender_count = script->sender_count;
    hws_random_t random;
    hws_random_init (&random, script->seed * 31 + 7);
    for (int i = 0; i < self->anchor_count; i++) {
        sim_anchor_t *const anchor = &self->anchors[i];
        anchor->returns_at = HWS_NEVER;
        anchor->is_exclusive = hws_random_below (&random, 4) == 0;
        anchor->is_manual = hws_random_below (&random, 4) == 0;
        sim_receiver_begin (i, (int) hws_random_below (&random, (uint64_t) self->client_count));
    }
    for (int i = 0; i < self->sender_count; i++) {
        sim_sender_init (&self->senders[i], i);
        self->senders[i].is_off = off >> (SIM_OFF_SENDERS + i) & 1;
        if (self->senders[i].is_off) {
            self->senders[i].acts_at = HWS_NEVER;
        }
    }
}

/*  ---- The course of time ---- */

static bool is_over (void)
{
    for (int i = 0; i < sim_world.sender_count; i++) {
        const sim_sender_t *const sender = &sim_world.senders[i];
        if (!sender->is_off && !sender->is_over && sim_client_lives (sender->client)) {
            return false;
        }
    }
    for (int i = 0; i < sim_world.receiver_count; i++) {
        const sim_receiver_t *const receiver = &sim_world.receivers[i];
        if (receiver->live > 0 && sim_client_lives (receiver->client)) {
            return false;
        }
    }
    return true;
}

/*  When an actor has a turn.  */
static hws_ms_t turn_at (hws_ms_t acts_at, int client)
{
    const hws_ms_t stalled_until = sim_world.net.clients[client].stalled_until;
    return !sim_client_lives (client) ? HWS_NEVER
           : acts_at > stalled_until  ? acts_at
                                      : stalled_until;
}

static hws_ms_t next_at (const sim_plan_t *plan)
{
    hws_ms_t at = sim_next_at (&sim_world.net);
    at = hws_time_min (at, hws_time_after (sim_world.begun_at, sim_plan_next_at (plan)));
    for (int i = 0; i < sim_world.sender_count; i++) {
        const sim_sender_t *const sender = &sim_world.senders[i];
        if (!sender->is_over) {
            at = hws_time_min (at, turn_at (sender->acts_at, sender->client));
        }
    }
    for (int i = 0; i < sim_world.receiver_count; i++) {
        const sim_receiver_t *const receiver = &sim_world.receivers[i];
        at = hws_time_min (at, turn_at (receiver->acts_at, receiver->client));
    }
    for (int i = 0; i < sim_world.anchor_count; i++) {
        at = hws_time_min (at, sim_world.anchors[i].returns_at);
    }
    return at;
}

/*  To the next point at which something happens, in steps of the network's.  */
static void move_on (hws_ms_t at, hws_ms_t latest)
{
    sim_network_t *const net = &sim_world.net;
    at = hws_time_min (at, latest);
    at = at > net->now ? at : net->now + 1;
    net->now = at + (SIM_STEP_MS - at % SIM_STEP_MS) % SIM_STEP_MS;
}

/*  An anchor that no receiver was at for so long may be ended; the new broker waits as long
 *  again.  */
static void watch_anchors (void)
{
    const sim_network_t *const net = &sim_world.net;
    for (int i = 0; i < sim_world.anchor_count && net->engine; i++) {
        sim_anchor_t *const anchor = &sim_world.anchors[i];
        hws_ms_t until = 0;
        for (int k = 0; k < sim_world.receiver_count; k++) {
            const sim_receiver_t *const receiver = &sim_world.receivers[k];
            const hws_ms_t at = net->clients[receiver->client].abandoned_at;
            const bool is_out =
                receiver->core.rx.state == HWS_RX_OPENING || /* the broker may not have heard it */
                (receiver->core.rx.state == HWS_RX_CLOSED && sim_client_lives (receiver->client));
            if (receiver->anchor == i && !is_out &&
                (at != HWS_NEVER || sim_world.receiver_count == 1)) {
                until = at > until ? at : until;
            }
        }
        anchor->is_contested |=
            anchor->epoch != net->options.epoch && anchor->takeovers > anchor->told;
        anchor->epoch = net->options.epoch;
        sim_world.net.is_contested |= anchor->is_contested;
        anchor->was_abandoned |= anchor->has_token && until <= net->now;
        if (anchor->returns_at <= net->now) {
            anchor->returns_at = HWS_NEVER;
            sim_receiver_begin (i, sim_add_client (&sim_world.net));
        }
    }
}

static void step (sim_plan_t *plan)
{
    sim_plan_run (plan, sim_world.net.now - sim_world.begun_at);
    watch_anchors ();
    for (int i = 0; i < sim_world.sender_count; i++) {
        sim_sender_run (&sim_world.senders[i]);
    }
    for (int i = 0; i < sim_world.receiver_count; i++) {
        sim_receiver_run (&sim_world.receivers[i]);
    }
    sim_turn (&sim_world.net);
    sim_world.was_lost |= sim_world.net.is_forgetful && sim_world.net.options.broker_id != 99;
}

static void describe_all (void)
{
    for (int i = 0; i < sim_world.sender_count; i++) {
        if (!sim_world.senders[i].is_off) {
            sim_describe (&sim_world.senders[i]);
        }
    }
}

/*  ---- The end ---- */

static void run_for (hws_ms_t length_ms)
{
    sim_network_t *const net = &sim_world.net;
    for (const hws_ms_t end = net->now + length_ms; net->now < end;) {
        move_on (sim_next_at (net), end);
        sim_turn (net);
    }
}

static void end_stalls (void)
{
    sim_world.net.broker_stalled_until = 0;
    for (int i = 0; i < sim_world.net.count; i++) {
        sim_world.net.clients[i].stalled_until = 0;
    }
}

/*  When both ends of a stream know how it ended, the broker does too: no seat is left, though
 *  everybody is still there.  */
static void settle (void)
{
    sim_plan_t plan = {0}; /* nothing more goes wrong */
    sim_network_t *const net = &sim_world.net;
    const hws_ms_t latest = net->now + SETTLE_MS;
    end_stalls ();
    while (net->engine == NULL || hws_engine_counts (net->engine).seats > 0) {
        if (net->now >= latest) {
            fail_msg ("a seat is left");
        }
        move_on (next_at (&plan), latest);
        step (&plan);
    }
}

/*  Whoever leaves in order is answered; then everybody is gone, and after all deadlines nobody
 *  holds anything.  */
static void tear_down (void)
{
    sim_network_t *const net = &sim_world.net;
    for (int i = 0; i < sim_world.receiver_count; i++) {
        sim_receiver_fini (&sim_world.receivers[i]);
    }
    for (int i = 0; i < sim_world.sender_count; i++) {
        sim_sender_fini (&sim_world.senders[i]);
    }
    for (int i = 0; i < net->count; i++) {
        if (i % 2 == 0 && sim_client_lives (i)) {
            hws_session_leave (&net->clients[i].session, net->now);
        }
    }
    run_for (LEAVE_MS);
    for (int i = 0; i < net->count; i++) {
        if (i % 2 == 0 && sim_client_lives (i)) {
            assert_int_equal (net->clients[i].session.state, HWS_SESSION_GONE);
        }
        sim_kill (net, i);
    }
    run_for (FORGET_MS);
    const hws_engine_counts_t counts = hws_engine_counts (net->engine);
    assert_int_equal (counts.peers + counts.anchors + counts.seats + counts.waiting, 0);
    assert_int_equal (counts.tombstones + counts.cancel_orphans, 0);
    for (int i = 0; i < net->count; i++) {
        assert_int_equal (net->clients[i].session.stats.protocol_errors, 0);
    }
    sim_fini (net);
    assert_int_equal (test_block_bytes (), 0);
}

void sim_run (const sim_script_t *script, sim_off_t off, bool is_traced)
{
    sim_plan_t plan = script->plan;
    for (int i = 0; i < plan.count; i++) {
        plan.faults[i].is_off |= off >> i & 1;
    }
    set_up (script, off, is_traced);
    const hws_ms_t latest = sim_world.begun_at + LAST_MS;
    while (!is_over ()) {
        step (&plan);
        if (sim_world.net.now >= latest) {
            fail_msg ("it does not come to an end");
        }
        move_on (next_at (&plan), latest);
    }
    sim_say (&sim_world.net, "it is over");
    sim_memory.countdown = 0;
    sim_verdict ();
    sim_counted (SIM_RUNS, 1);
    sim_counted (SIM_SECONDS, (uint64_t) (sim_world.net.now - sim_world.begun_at) / 1000);
    settle ();
    tear_down ();
}

void sim_run_describe (void)
{
    if (sim_world.at_hand) {
        sim_describe (sim_world.at_hand);
    } else {
        describe_all ();
    }
}
