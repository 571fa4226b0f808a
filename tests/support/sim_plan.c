#include "tests/support/sim_plan.h"

#include "tests/support/sim_broker.h"
#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"

#include <inttypes.h>
#include <stdio.h>

/*  Which kinds there are in which weather, and how often.  */
typedef struct {
    const char *name;
    sim_weather_t from;
    uint64_t odds;
    hws_ms_t shortest_ms, longest_ms;
} kind_t;

static const kind_t s_kinds[SIM_FAULTS] = {
    [SIM_FAULT_BREAK] = {"break", SIM_GENTLE, 30, 0, 0},
    [SIM_FAULT_KILL] = {"kill broker", SIM_GENTLE, 12, 0, 2000},
    [SIM_FAULT_DRAIN] = {"drain broker", SIM_GENTLE, 6, 0, 2000},
    [SIM_FAULT_STALL] = {"stall client", SIM_GENTLE, 8, 10, 2500},
    [SIM_FAULT_AWAY] = {"client away", SIM_GENTLE, 6, 10, SIM_GRACE_MS - 100},
    [SIM_FAULT_STALL_BROKER] = {"stall broker", SIM_GENTLE, 6, 10, 2500},
    [SIM_FAULT_STALL_CLOCK] = {"stall everybody", SIM_GENTLE, 3, 10, 20000},
    [SIM_FAULT_SLOW] = {"slow receiver", SIM_GENTLE, 6, 100, 4000},
    [SIM_FAULT_FULL] = {"full connection", SIM_GENTLE, 8, 10, 1000},
    [SIM_FAULT_LOSE_GRANTS] = {"lose grants", SIM_GENTLE, 8, 0, 0},
    [SIM_FAULT_REPEAT_GRANTS] = {"repeat grants", SIM_GENTLE, 4, 0, 0},
    [SIM_FAULT_MEMORY] = {"no memory", SIM_GENTLE, 5, 0, 0},
    [SIM_FAULT_CRASH_RECEIVER] = {"crash receiver", SIM_GENTLE, 5, 0, 3000},
    [SIM_FAULT_TAKE_OVER] = {"take over", SIM_GENTLE, 4, 0, 0},
    [SIM_FAULT_CANCEL] = {"cancel", SIM_CANCELS, 8, 0, 0},
    [SIM_FAULT_CANCEL_ONE] = {"cancel one sender", SIM_CANCELS, 8, 0, 0},
    [SIM_FAULT_CANCEL_ANCHOR] = {"cancel anchor", SIM_CANCELS, 2, 0, 0},
    [SIM_FAULT_CANCEL_TOKEN] = {"cancel token", SIM_CANCELS, 8, 0, 0},
    [SIM_FAULT_CLOSE] = {"close", SIM_CANCELS, 3, 0, 0},
    [SIM_FAULT_DESTROY] = {"destroy sender", SIM_CANCELS, 4, 0, 0},
    [SIM_FAULT_TIMEOUT] = {"set timeout", SIM_CANCELS, 4, 500, 5000},
    [SIM_FAULT_CRASH_SENDER] = {"crash sender", SIM_ROUGH, 6, 0, 0},
    [SIM_FAULT_KILL_RECEIVER] = {"kill receiver", SIM_ROUGH, 2, 0, 0},
};

/*  ---- Planning ---- */

static sim_fault_kind_t any_kind (hws_random_t *random, sim_weather_t weather)
{
    uint64_t all = 0;
    for (int kind = 0; kind < SIM_FAULTS; kind++) {
        all += s_kinds[kind].from <= weather ? s_kinds[kind].odds : 0;
    }
    uint64_t left = hws_random_below (random, all);
    for (int kind = 0; kind < SIM_FAULTS; kind++) {
        const uint64_t odds = s_kinds[kind].from <= weather ? s_kinds[kind].odds : 0;
        if (left < odds) {
            return (sim_fault_kind_t) kind;
        }
        left -= odds;
    }
    return SIM_FAULT_BREAK;
}

void sim_plan_init (sim_plan_t *self, uint64_t seed, sim_weather_t weather)
{
    hws_random_t random;
    hws_random_init (&random, seed * 6364136223846793005 + 1);
    *self = (sim_plan_t){0};
    if (weather == SIM_CALM) {
        return;
    }
    self->count = 1 + (int) hws_random_below (&random, SIM_FAULTS_MAX);
    hws_ms_t at = (hws_ms_t) hws_random_below (&random, 3000);
    /* Some come alone, some in one breath. */
    const uint64_t apart_ms = 2 * SIM_RUN_MS / (uint64_t) self->count;
    for (int i = 0; i < self->count; i++) {
        sim_fault_t *const fault = &self->faults[i];
        fault->kind = any_kind (&random, weather);
        const kind_t *const kind = &s_kinds[fault->kind];
        /* In the worst weather everything may take too long. */
        const hws_ms_t longest_ms =
            kind->longest_ms * (weather == SIM_ROUGH && hws_random_below (&random, 3) == 0 ? 6 : 1);
        fault->at = at;
        fault->who = hws_random_next (&random) >> 8;
        fault->how = hws_random_next (&random) >> 8;
        fault->length_ms =
            kind->shortest_ms +
            (hws_ms_t) hws_random_below (&random, (uint64_t) (longest_ms - kind->shortest_ms) + 1);
        const bool is_close = hws_random_below (&random, 3) == 0;
        at += (hws_ms_t) hws_random_below (&random, is_close ? 40 : apart_ms + 1);
    }
}

hws_ms_t sim_plan_next_at (const sim_plan_t *self)
{
    for (int i = 0; i < self->count; i++) {
        if (!self->faults[i].is_off && !self->faults[i].is_done) {
            return self->faults[i].at;
        }
    }
    return HWS_NEVER;
}

void sim_fault_print (const sim_fault_t *self, char *at, size_t size)
{
    snprintf (at, size, "at %" PRId64 " ms: %s, who %" PRIu64 ", how %" PRIu64 ", %" PRId64 " ms",
              self->at, s_kinds[self->kind].name, self->who % 840, self->how % 840,
              self->length_ms);
}

/*  ---- Whom it hits ---- */

/*  One of those that were there from the beginning, or where a receiver is now.  */
static int any_client (const sim_fault_t *fault)
{
    const int all = sim_world.client_count + sim_world.anchor_count;
    const int i = (int) (fault->who % (uint64_t) all);
    return i < sim_world.client_count
               ? i
               : sim_world.receivers[sim_world.anchors[i - sim_world.client_count].last].client;
}

static sim_sender_t *any_sender (const sim_fault_t *fault)
{
    return &sim_world.senders[fault->who % (uint64_t) sim_world.sender_count];
}

static int any_anchor (const sim_fault_t *fault)
{
    return (int) (fault->who % (uint64_t) sim_world.anchor_count);
}

static sim_receiver_t *receiver_of (int anchor)
{
    return &sim_world.receivers[sim_world.anchors[anchor].last];
}

static bool has_receiver (int client)
{
    for (int i = 0; i < sim_world.anchor_count; i++) {
        if (receiver_of (i)->client == client) {
            return true;
        }
    }
    return false;
}

static bool is_live (const sim_sender_t *sender)
{
    return sender->is_added && !sender->is_over && sim_client_acts (sender->client) &&
           sender->core.tx.state != HWS_TX_ENDED;
}

static bool is_usable (const sim_receiver_t *receiver)
{
    return receiver->core.rx.state == HWS_RX_OPEN && sim_client_acts (receiver->client);
}

/*  ---- The world ---- */

static void do_break (const sim_fault_t *fault)
{
    static const sim_told_t told[] = {SIM_TO_BOTH,   SIM_TO_BOTH,   SIM_TO_BOTH,   SIM_TO_BROKER,
                                      SIM_TO_BROKER, SIM_TO_CLIENT, SIM_TO_CLIENT, SIM_TO_NOBODY};
    static const sim_count_t counts[] = {[SIM_TO_BOTH] = SIM_BROKEN_BOTH,
                                         [SIM_TO_BROKER] = SIM_BROKEN_BROKER,
                                         [SIM_TO_CLIENT] = SIM_BROKEN_CLIENT,
                                         [SIM_TO_NOBODY] = SIM_HALF_OPEN};
    const sim_told_t is_told = told[fault->how % (sizeof told / sizeof *told)];
    sim_counted (counts[is_told], sim_break_told (&sim_world.net, any_client (fault), is_told));
}

/*  The client stands still; perhaps it is disconnected too, which the broker sees.  */
static void do_stall (const sim_fault_t *fault)
{
    const int client = any_client (fault);
    if (fault->kind == SIM_FAULT_AWAY) {
        sim_counted (SIM_BROKEN_BROKER, sim_break_told (&sim_world.net, client, SIM_TO_BROKER));
    }
    if (sim_client_lives (client)) {
        sim_world.net.clients[client].stalled_until = sim_world.net.now + fault->length_ms;
        sim_counted (has_receiver (client) ? SIM_STALLS_RECEIVER : SIM_STALLS_SENDER, 1);
    }
}

/*  Nobody's time goes on.  */
static void do_stall_clock (const sim_fault_t *fault)
{
    for (int i = 0; i < sim_world.net.count; i++) {
        sim_client_t *const client = &sim_world.net.clients[i];
        const hws_ms_t until = sim_world.net.now + fault->length_ms + (hws_ms_t) (fault->how % 3);
        client->stalled_until = until > client->stalled_until ? until : client->stalled_until;
    }
    sim_broker_stall (&sim_world.net, fault->length_ms);
    if (fault->length_ms > sim_world.longest_stall_ms) {
        sim_world.longest_stall_ms = fault->length_ms;
    }
    sim_counted (SIM_STALLS_CLOCK, 1);
}

/*  Whether a receiver does not know yet that another has taken its place.  */
static bool is_contested (void)
{
    for (int i = 0; i < sim_world.anchor_count; i++) {
        if (sim_world.anchors[i].takeovers > sim_world.anchors[i].told) {
            return true;
        }
    }
    return false;
}

static void do_stop (const sim_fault_t *fault)
{
    if (is_contested ()) {
        return;
    }
    if (fault->kind == SIM_FAULT_KILL) {
        sim_broker_kill (&sim_world.net, fault->length_ms);
    } else {
        sim_broker_drain (&sim_world.net, fault->length_ms);
    }
}

static void do_stall_broker (const sim_fault_t *fault)
{
    if (sim_world.net.engine) {
        sim_broker_stall (&sim_world.net, fault->length_ms);
        sim_counted (SIM_STALLS_BROKER, 1);
    }
}

static void do_slow (const sim_fault_t *fault)
{
    sim_receiver_t *const receiver = receiver_of (any_anchor (fault));
    receiver->waits = false;
    receiver->acts_at = sim_world.net.now + fault->length_ms;
    sim_counted (SIM_SLOW, 1);
}

static void do_lane (const sim_fault_t *fault)
{
    sim_connection_t *const connection = sim_world.net.clients[any_client (fault)].connection;
    if (connection == NULL || connection->is_broken) {
        return;
    }
    if (fault->kind == SIM_FAULT_FULL) {
        connection->full_until = sim_world.net.now + fault->length_ms;
        /* Who does not read for so long is away. */
        sim_world.net.clients[connection->client].was_away |=
            fault->length_ms > 3 * SIM_INTERVAL_MS;
        sim_counted (SIM_FULL, 1);
    } else if (fault->kind == SIM_FAULT_LOSE_GRANTS) {
        connection->grants_to_lose = 1 + (int) (fault->how % 4);
    } else {
        connection->grants_to_repeat = 1 + (int) (fault->how % 4);
    }
}

static void do_memory (const sim_fault_t *fault)
{
    sim_memory.countdown = 1 + fault->how % 60;
    sim_memory.more = fault->who % 3 == 0 ? fault->who % 20 : 0;
}

/*  ---- Deaths ---- */

static void do_crash_receiver (const sim_fault_t *fault, bool is_for_good)
{
    sim_anchor_t *const anchor = &sim_world.anchors[any_anchor (fault)];
    const sim_receiver_t *const receiver = &sim_world.receivers[anchor->last];
    const bool is_last =
        sim_world.net.count == SIM_CLIENTS_MAX || sim_world.receiver_count >= SIM_RECEIVERS_MAX - 1;
    if (!sim_client_lives (receiver->client) || !anchor->has_token || receiver->is_cancelled ||
        (is_last && !is_for_good)) {
        return;
    }
    /* What it asked for may come when its heir is there already. */
    anchor->is_contested |=
        receiver->core.rx.state == HWS_RX_OPENING || hws_map_node_is_in (&receiver->core.open.node);
    /* Whoever lives in that process dies with it. */
    sim_kill (&sim_world.net, receiver->client);
    for (int i = 0; i < sim_world.anchor_count; i++) {
        sim_anchor_t *const other = &sim_world.anchors[i];
        if (sim_world.receivers[other->last].client == receiver->client) {
            other->returns_at = is_for_good ? HWS_NEVER : sim_world.net.now + fault->length_ms;
            other->may_be_cancelled |= is_for_good || !other->has_token;
        }
    }
    sim_counted (is_for_good ? SIM_RECEIVER_DEATHS : SIM_RECEIVER_CRASHES, 1);
}

/*  Whether the broker, as it is now, knows that this is its receiver.  */
static bool is_in_office (const sim_receiver_t *receiver)
{
    const sim_client_t *const client = &sim_world.net.clients[receiver->client];
    return sim_world.net.engine && sim_world.net.drained_at == HWS_NEVER &&
           client->session.state == HWS_SESSION_UP &&
           client->session.epoch == sim_world.net.options.epoch &&
           receiver->core.rx.state == HWS_RX_OPEN &&
           receiver->core.epoch == sim_world.net.options.epoch &&
           !hws_map_node_is_in (&receiver->core.open.node) && client->connection &&
           !client->connection->is_broken;
}

static void do_take_over (const sim_fault_t *fault)
{
    const int number = any_anchor (fault);
    const sim_receiver_t *const receiver = receiver_of (number);
    if (!is_in_office (receiver)) {
        return;
    }
    if (sim_client_lives (receiver->client) && sim_world.anchors[number].has_token &&
        !receiver->is_cancelled && sim_world.receiver_count < SIM_RECEIVERS_MAX - 2 &&
        sim_receiver_begin (number, sim_add_client (&sim_world.net))) {
        sim_world.anchors[number].takeovers++;
        sim_counted (SIM_TAKEOVERS, 1);
    }
}

static void do_crash_sender (const sim_fault_t *fault)
{
    const int client = any_sender (fault)->client;
    if (sim_client_lives (client) && !has_receiver (client)) {
        sim_kill (&sim_world.net, client);
        sim_counted (SIM_SENDER_CRASHES, 1);
    }
}

/*  ---- Cancels ---- */

static void do_cancel (const sim_fault_t *fault)
{
    sim_sender_t *const sender = any_sender (fault);
    if (is_live (sender)) {
        sender->may_be_cancelled = true;
        hws_session_cancel (&sim_world.net.clients[sender->client].session, sim_world.net.now,
                            &sender->core, "stop");
        sim_counted (SIM_CANCELS_SENDER, 1);
    }
}

static void do_cancel_one (const sim_fault_t *fault)
{
    sim_sender_t *const sender = any_sender (fault);
    sim_receiver_t *const receiver = receiver_of (sender->anchor);
    const uint64_t sender_id = receiver->shown[sender->number].sender_id;
    if (is_usable (receiver) && sender_id != 0 &&
        hws_rx_cancel_sender (&receiver->core.rx, sender_id, "one of you") == 0) {
        sender->may_be_cancelled = true;
        sim_counted (SIM_CANCELS_ONE, 1);
    }
}

static void do_cancel_anchor (const sim_fault_t *fault)
{
    sim_sender_t *const sender = any_sender (fault);
    if (is_live (sender) && sender->core.tx.sender_id != 0) {
        sim_world.anchors[sender->anchor].may_be_cancelled = true;
        hws_session_cancel_anchor (&sim_world.net.clients[sender->client].session,
                                   sim_world.net.now, &sender->core, "all of you");
        sim_counted (SIM_CANCELS_ANCHOR, 1);
    }
}

/*  Somebody who knows the token cancels it, whether or not the stream is there.  */
static void do_cancel_token (const sim_fault_t *fault)
{
    sim_sender_t *const sender = any_sender (fault);
    const int client = (int) (fault->how % (uint64_t) sim_world.client_count);
    if (sender->core.cancel_token != 0 && sim_client_acts (client)) {
        sender->may_be_cancelled = true;
        hws_session_cancel_token (&sim_world.net.clients[client].session, sim_world.net.now,
                                  sender->core.cancel_token, "by its token");
        sim_counted (SIM_CANCELS_TOKEN, 1);
    }
}

static void do_close (const sim_fault_t *fault)
{
    sim_receiver_t *const receiver = receiver_of (any_anchor (fault));
    if (is_usable (receiver) && !receiver->is_cancelled) {
        sim_receiver_close (receiver);
        sim_counted (SIM_CLOSES, 1);
    }
}

static void do_destroy (const sim_fault_t *fault)
{
    if (is_live (any_sender (fault))) {
        sim_sender_destroy (any_sender (fault));
    }
}

static void do_timeout (const sim_fault_t *fault)
{
    sim_receiver_t *const receiver = receiver_of (any_anchor (fault));
    const bool is_never = fault->how % 2 == 0;
    const hws_optional_t timeout_ms = {.state = is_never ? HWS_NULL : HWS_VALUE,
                                       .value = is_never ? 0 : (uint64_t) fault->length_ms};
    if (is_usable (receiver)) {
        sim_world.anchors[receiver->anchor].may_be_cancelled = true; /* it may expire */
        hws_session_set_unattached (&sim_world.net.clients[receiver->client].session,
                                    sim_world.net.now, &receiver->core, timeout_ms);
        sim_counted (SIM_TIMEOUTS, 1);
    }
}

/*  ---- What is due ---- */

static void happen (const sim_fault_t *fault)
{
    switch (fault->kind) {
    case SIM_FAULT_BREAK:
        do_break (fault);
        break;
    case SIM_FAULT_KILL:
    case SIM_FAULT_DRAIN:
        do_stop (fault);
        break;
    case SIM_FAULT_STALL:
    case SIM_FAULT_AWAY:
        do_stall (fault);
        break;
    case SIM_FAULT_STALL_BROKER:
        do_stall_broker (fault);
        break;
    case SIM_FAULT_STALL_CLOCK:
        do_stall_clock (fault);
        break;
    case SIM_FAULT_SLOW:
        do_slow (fault);
        break;
    case SIM_FAULT_FULL:
    case SIM_FAULT_LOSE_GRANTS:
    case SIM_FAULT_REPEAT_GRANTS:
        do_lane (fault);
        break;
    case SIM_FAULT_MEMORY:
        do_memory (fault);
        break;
    case SIM_FAULT_CRASH_RECEIVER:
        do_crash_receiver (fault, false);
        break;
    case SIM_FAULT_KILL_RECEIVER:
        do_crash_receiver (fault, true);
        break;
    case SIM_FAULT_TAKE_OVER:
        do_take_over (fault);
        break;
    case SIM_FAULT_CRASH_SENDER:
        do_crash_sender (fault);
        break;
    case SIM_FAULT_CANCEL:
        do_cancel (fault);
        break;
    case SIM_FAULT_CANCEL_ONE:
        do_cancel_one (fault);
        break;
    case SIM_FAULT_CANCEL_ANCHOR:
        do_cancel_anchor (fault);
        break;
    case SIM_FAULT_CANCEL_TOKEN:
        do_cancel_token (fault);
        break;
    case SIM_FAULT_CLOSE:
        do_close (fault);
        break;
    case SIM_FAULT_DESTROY:
        do_destroy (fault);
        break;
    case SIM_FAULT_TIMEOUT:
        do_timeout (fault);
        break;
    case SIM_FAULTS:
        break;
    }
}

void sim_plan_run (sim_plan_t *self, hws_ms_t elapsed_ms)
{
    for (int i = 0; i < self->count; i++) {
        sim_fault_t *const fault = &self->faults[i];
        if (fault->is_off || fault->is_done || fault->at > elapsed_ms) {
            continue;
        }
        fault->is_done = true;
        char line[160];
        sim_fault_print (fault, line, sizeof line);
        sim_say (&sim_world.net, "fault %d, %s", i, line);
        happen (fault);
    }
}
