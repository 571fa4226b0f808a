/*  Whole runs in a virtual network: many senders, receivers and one broker, with broken
 *  connections, standstills, full connections and cancels, each run from its seed.
 *  After it the promises are checked: every stream in order, nothing lost or doubled
 *  while both ends live, exactly one ending on which both ends agree, bounded memory,
 *  everything freed.
 *
 *      SIM_SEED=N     one run
 *      SIM_SEEDS=N    so many runs of each kind (default 300)
 */
#include "client/rx_reader.h"
#include "tests/support/sim_network.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SENDERS_MAX = 12, RECEIVERS_MAX = 2, RECORD_SIZE_MAX = 12000 };
enum { RUN_MS = 20000, LAST_MS = 300000 };

/*  What happens in a run beyond latency.  */
typedef enum {
    CALM,    /* nothing */
    GENTLE,  /* faults that nobody dies of */
    CANCELS, /* the same, and streams and anchors are cancelled */
    ROUGH    /* everything, deaths included */
} weather_t;

typedef struct {
    hws_session_sender_t core;
    int client;
    int receiver;
    uint64_t wanted;    /* records until it detaches */
    hws_ms_t starts_at; /* HWS_NEVER: has begun */
    hws_ms_t cancels_at;
    bool is_added;
} sender_t;

/*  What a receiver was shown of one sender.  */
typedef struct {
    bool is_known;
    bool has_ended;
    hws_event_kind_t ending;
    char cause[32];
    uint64_t records;
} shown_t;

typedef struct {
    hws_session_receiver_t core;
    hws_rx_reader_t reader;
    int client;
    hws_ms_t pauses_until;
    hws_ms_t cancels_at;
    shown_t shown[SENDERS_MAX]; /* by label */
    bool is_closed;
} receiver_t;

static sim_network_t s_net;
static sender_t s_senders[SENDERS_MAX];
static receiver_t s_receivers[RECEIVERS_MAX];
static int s_sender_count, s_receiver_count;
static uint64_t s_seed; /* of the run at hand */
static weather_t s_weather;
static hws_ms_t s_calm_until;

static void sender_notified (hws_session_sender_t *core)
{
    (void) core;
}

static void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

/*  ---- Receivers ---- */

static shown_t *shown_of (receiver_t *self, const hws_event_t *event)
{
    const int label = atoi (event->label);
    assert_true (label >= 0 && label < s_sender_count);
    return &self->shown[label];
}

static void see (receiver_t *self, const hws_event_t *event)
{
    assert_false (self->is_closed);
    if (event->kind == HWS_EVENT_CLOSED) {
        self->is_closed = true;
        return;
    }
    shown_t *const shown = shown_of (self, event);
    if (s_weather == ROUGH && event->kind == HWS_EVENT_ATTACHED && shown->records == 0) {
        /* Nobody remembers an attach whose answer was lost so long ago: it is made anew,
           as another sender. */
        *shown = (shown_t){0};
    }
    assert_false (shown->has_ended);
    if (event->kind == HWS_EVENT_ATTACHED) {
        assert_false (shown->is_known);
        shown->is_known = true;
        return;
    }
    assert_true (shown->is_known || self->reader.is_discarding);
    if (event->kind == HWS_EVENT_RECORD) {
        uint64_t count;
        assert_true (event->size >= sizeof count);
        memcpy (&count, event->data, sizeof count);
        assert_true (count == shown->records); /* in order, none missing, none twice */
        for (size_t i = sizeof count; i < event->size; i += 97) {
            assert_int_equal (((const uint8_t *) event->data)[i], (uint8_t) (count + i));
        }
        shown->records++;
    } else if (event->kind != HWS_EVENT_ERROR) {
        shown->is_known = shown->has_ended = true;
        shown->ending = event->kind;
        snprintf (shown->cause, sizeof shown->cause, "%s", event->cause ? event->cause : "none");
    }
}

static void read_some (receiver_t *self)
{
    if (self->pauses_until > s_net.now || sim_is_stalled (&s_net, self->client)) {
        return;
    }
    hws_event_t event;
    for (uint64_t i = 1 + sim_below (&s_net, 30); i > 0;) {
        if (hws_rx_reader_next (&self->reader, &event)) {
            see (self, &event);
            i--;
            continue;
        }
        hws_rx_reader_publish (&self->reader);
        if (!hws_rx_has_events (&self->core.rx)) {
            return;
        }
        hws_rx_reader_take (&self->reader);
    }
    hws_rx_reader_publish (&self->reader);
}

static void run_receiver (receiver_t *self)
{
    read_some (self);
    if (sim_below (&s_net, 2000) == 0) {
        self->pauses_until = s_net.now + (hws_ms_t) sim_below (&s_net, 3000);
    }
    if (self->cancels_at <= s_net.now && !sim_is_stalled (&s_net, self->client)) {
        self->cancels_at = HWS_NEVER;
        hws_session_close (&s_net.clients[self->client].session, s_net.now, &self->core, "enough");
        hws_rx_reader_discard (&self->reader);
    }
    if (s_weather >= CANCELS && sim_below (&s_net, 4000) == 0) {
        hws_rx_cancel_sender (&self->core.rx, 1 + sim_below (&s_net, (uint64_t) s_sender_count),
                              "one of you");
    }
}

/*  ---- Senders ---- */

static size_t any_size (void)
{
    const uint64_t kind = sim_below (&s_net, 100);
    return 8 + sim_below (&s_net, kind < 90 ? 60 : kind < 98 ? 2000 : RECORD_SIZE_MAX - 8);
}

static void produce (sender_t *self)
{
    static uint8_t data[RECORD_SIZE_MAX];
    hws_tx_t *const tx = &self->core.tx;
    for (uint64_t i = sim_below (&s_net, 8); i > 0 && tx->records < self->wanted; i--) {
        const size_t size = any_size ();
        for (size_t k = 8; k < size; k++) {
            data[k] = (uint8_t) (tx->records + k);
        }
        memcpy (data, &tx->records, 8);
        if (hws_tx_append (tx, data, size) != 0) {
            break;
        }
    }
    if (tx->records >= self->wanted) {
        hws_tx_detach (tx);
    }
    hws_session_changed (&self->core);
}

static void run_sender (sender_t *self)
{
    if (sim_is_stalled (&s_net, self->client)) {
        return;
    }
    if (self->starts_at <= s_net.now) {
        self->starts_at = HWS_NEVER;
        self->is_added = true;
        hws_session_attach (&s_net.clients[self->client].session, s_net.now, &self->core);
    }
    if (!self->is_added || self->core.tx.state == HWS_TX_ENDED) {
        return;
    }
    if (self->cancels_at <= s_net.now) {
        self->cancels_at = HWS_NEVER;
        hws_session_cancel (&s_net.clients[self->client].session, s_net.now, &self->core, "stop");
    } else if (self->core.tx.state == HWS_TX_OPEN) {
        produce (self);
    }
}

/*  ---- Faults ---- */

/*  Before the answer the client does not know how often it has to be heard: a silent
 *  break is then noticed later than the broker judges.  */
static bool is_attaching (int client)
{
    for (int i = 0; i < s_sender_count; i++) {
        const sender_t *const sender = &s_senders[i];
        if (sender->client == client && sender->is_added && sender->core.tx.sender_id == 0) {
            return true;
        }
    }
    return false;
}

static void do_harm (hws_ms_t elapsed)
{
    if (s_weather == CALM || elapsed > RUN_MS || s_net.now < s_calm_until) {
        return;
    }
    const int client = (int) sim_below (&s_net, (uint64_t) s_net.count);
    const uint64_t kind = sim_below (&s_net, 600);
    if (s_weather != ROUGH && kind < 5) {
        s_calm_until = s_net.now + 4000; /* nobody dies of one fault at a time */
    }
    switch (kind) {
    case 0:
    case 1:
        sim_break (&s_net, client, false);
        break;
    case 2:
        sim_break (&s_net, client, !is_attaching (client));
        break;
    case 3:
        s_net.clients[client].stalled_until =
            s_net.now + (hws_ms_t) sim_below (&s_net, s_weather == ROUGH ? 10000 : 1000);
        /* Whoever is away for longer than the broker remembers what became of its anchor
           is no subject of these runs. */
        s_calm_until = s_net.clients[client].stalled_until + 4000;
        break;
    case 4:
        s_net.broker_stalled_until = s_net.now + (hws_ms_t) sim_below (&s_net, 10) * 100;
        break;
    case 5:
        if (s_weather == ROUGH && sim_below (&s_net, 4) == 0) {
            sim_kill (&s_net, client);
        }
        break;
    default:
        break;
    }
}

/*  ---- One run ---- */

static void set_up (uint64_t seed, weather_t weather)
{
    s_weather = weather;
    s_calm_until = 0;
    sim_init (&s_net, seed, 2 + (int) (seed % (SIM_CLIENTS_MAX - 1)));
    s_receiver_count = 1 + (int) sim_below (&s_net, RECEIVERS_MAX);
    s_sender_count = 1 + (int) sim_below (&s_net, SENDERS_MAX);
    memset (s_senders, 0, sizeof s_senders);
    memset (s_receivers, 0, sizeof s_receivers);
    for (int i = 0; i < s_receiver_count; i++) {
        receiver_t *const receiver = &s_receivers[i];
        receiver->core.notify = receiver_notified;
        receiver->client = (int) sim_below (&s_net, (uint64_t) s_net.count);
        receiver->cancels_at = HWS_NEVER;
        if (weather >= CANCELS && sim_below (&s_net, 3) == 0) {
            receiver->cancels_at = s_net.now + (hws_ms_t) sim_below (&s_net, RUN_MS);
        }
        snprintf (receiver->core.options.name, sizeof receiver->core.options.name, "anchor %d", i);
        hws_session_open (&s_net.clients[receiver->client].session, s_net.now, &receiver->core);
        hws_rx_reader_init (&receiver->reader, &receiver->core.rx);
    }
    for (int i = 0; i < s_sender_count; i++) {
        sender_t *const sender = &s_senders[i];
        sender->core.notify = sender_notified;
        sender->core.wait_ms = 60000;
        sender->client = (int) sim_below (&s_net, (uint64_t) s_net.count);
        sender->receiver = (int) sim_below (&s_net, (uint64_t) s_receiver_count);
        sender->wanted = sim_below (&s_net, 4) ? sim_below (&s_net, 400) : 0;
        sender->starts_at = s_net.now + (hws_ms_t) sim_below (&s_net, RUN_MS / 2);
        sender->cancels_at = HWS_NEVER;
        if (weather >= CANCELS && sim_below (&s_net, 4) == 0) {
            sender->cancels_at = s_net.now + (hws_ms_t) sim_below (&s_net, RUN_MS);
        }
        snprintf (sender->core.label, sizeof sender->core.label, "%d", i);
        snprintf (sender->core.anchor, sizeof sender->core.anchor, "anchor %d", sender->receiver);
    }
}

static bool is_alive (int client)
{
    return !s_net.clients[client].is_dead;
}

static bool is_over (void)
{
    for (int i = 0; i < s_sender_count; i++) {
        const sender_t *const sender = &s_senders[i];
        const receiver_t *const receiver = &s_receivers[sender->receiver];
        const shown_t *const shown = &receiver->shown[i];
        if (is_alive (sender->client) &&
            (!sender->is_added || sender->core.tx.state != HWS_TX_ENDED)) {
            return false;
        }
        if (is_alive (receiver->client) && shown->is_known && !shown->has_ended) {
            return false;
        }
    }
    return true;
}

/*  Says what each end learned, for a run that fails.  */
static void describe (int i)
{
    const sender_t *const sender = &s_senders[i];
    const shown_t *const shown = &s_receivers[sender->receiver].shown[i];
    print_error ("sender %d (client %d, receiver at %d): result %s, %s (%s), state %d, %" PRIu64
                 " records; shown %d, ended %d as %d %s, %" PRIu64 " records\n",
                 i, sender->client, s_receivers[sender->receiver].client,
                 hws_error_word (sender->core.tx.result), sender->core.tx.cause,
                 sender->core.tx.reason, (int) sender->core.tx.state, sender->core.tx.records,
                 shown->is_known, shown->has_ended, (int) shown->ending, shown->cause,
                 shown->records);
}

/*  One end was away for so long that it had to judge alone: it has lost the broker's
 *  memory of the stream.  */
static bool is_judged_by_one_end (const hws_tx_t *tx, const shown_t *shown)
{
    static const char *const causes[] = {"lost", "abandoned", "unknown", "closed",
                                         "receiver_closed"};
    for (size_t i = 0; i < sizeof causes / sizeof *causes; i++) {
        if (strcmp (shown->cause, causes[i]) == 0 || strcmp (tx->cause, causes[i]) == 0) {
            return true;
        }
    }
    return false;
}

/*  Whether an end cancelled while the broker was away: it did not wait for the broker's word,
 *  which may be another.  */
static bool is_ended_alone (const sender_t *sender)
{
    return sender->core.is_ended_here || s_receivers[sender->receiver].core.close_result != 0;
}

/*  Both ends were there: what did each of them learn?  */
static void check_agreement (const sender_t *sender, const shown_t *shown)
{
    const hws_tx_t *const tx = &sender->core.tx;
    assert_true (shown->has_ended);
    assert_true (shown->records <= tx->records);
    if (is_ended_alone (sender) || (s_weather == ROUGH && is_judged_by_one_end (tx, shown))) {
        return;
    }
    if (tx->result == 0) {
        assert_int_equal (shown->ending, HWS_EVENT_DETACHED);
    } else {
        assert_int_equal (shown->ending,
                          tx->result == HWS_ECANCELLED ? HWS_EVENT_CANCELLED : HWS_EVENT_DROPPED);
        assert_string_equal (shown->cause, tx->cause);
    }
    if (shown->ending == HWS_EVENT_DETACHED) {
        assert_true (shown->records == tx->records);
    }
}

static void check (void)
{
    for (int i = 0; i < s_sender_count; i++) {
        const sender_t *const sender = &s_senders[i];
        const receiver_t *const receiver = &s_receivers[sender->receiver];
        const shown_t *const shown = &receiver->shown[i];
        if (getenv ("SIM_SEED")) {
            describe (i);
        }
        const bool has_both = is_alive (sender->client) && is_alive (receiver->client) &&
                              shown->is_known && sender->core.tx.sender_id != 0;
        if (has_both) {
            check_agreement (sender, shown);
        }
        if (s_weather <= GENTLE) { /* nobody died, nobody cancelled */
            assert_int_equal (sender->core.tx.result, 0);
            assert_true (shown->is_known);
            assert_true (shown->records == sender->wanted);
            assert_int_equal (shown->ending, HWS_EVENT_DETACHED);
        }
    }
    assert_int_equal (hws_engine_stats (s_net.engine)->credit_violations, 0);
}

static void tear_down (void)
{
    for (int i = 0; i < s_receiver_count; i++) {
        hws_rx_reader_fini (&s_receivers[i].reader);
        hws_session_remove_receiver (&s_receivers[i].core);
    }
    for (int i = 0; i < s_sender_count; i++) {
        if (s_senders[i].is_added) {
            hws_session_remove_sender (&s_senders[i].core);
        }
    }
    /* Everybody is gone: after all deadlines the broker holds nothing. */
    for (int i = 0; i < s_net.count; i++) {
        sim_kill (&s_net, i);
    }
    for (hws_ms_t end = s_net.now + 120000; s_net.now < end;) {
        s_net.now += 50;
        sim_step (&s_net);
    }
    const hws_engine_counts_t counts = hws_engine_counts (s_net.engine);
    assert_int_equal (counts.peers + counts.anchors + counts.seats + counts.waiting, 0);
    assert_int_equal (counts.tombstones, 0);
    sim_fini (&s_net);
}

static void run (uint64_t seed, weather_t weather)
{
    set_up (seed, weather);
    const hws_ms_t begun_at = s_net.now;
    while (!is_over ()) {
        do_harm (s_net.now - begun_at);
        for (int i = 0; i < s_sender_count; i++) {
            run_sender (&s_senders[i]);
        }
        for (int i = 0; i < s_receiver_count; i++) {
            run_receiver (&s_receivers[i]);
        }
        sim_step (&s_net);
        if (s_net.now - begun_at > LAST_MS) {
            for (int i = 0; i < s_sender_count; i++) {
                describe (i);
            }
            fail_msg ("it does not come to an end");
        }
    }
    check ();
    tear_down ();
}

static void run_many (weather_t weather)
{
    const char *const one = getenv ("SIM_SEED");
    const char *const many = getenv ("SIM_SEEDS");
    if (one) {
        run (strtoull (one, NULL, 10), weather);
        return;
    }
    const uint64_t count = many ? strtoull (many, NULL, 10) : test_scaled (300);
    for (uint64_t seed = 1; seed <= count; seed++) {
        s_seed = seed;
        run (seed, weather);
    }
    s_seed = 0;
}

/*  A failed run names its seed, whichever way it ends.  */
static int tell_seed (void **state)
{
    (void) state;
    if (s_seed != 0) {
        print_error ("SIM_SEED=%" PRIu64 "\n", s_seed);
    }
    s_seed = 0;
    return 0;
}

static void calm_runs_deliver_everything (void **state)
{
    (void) state;
    run_many (CALM);
}

static void gentle_faults_lose_and_double_nothing (void **state)
{
    (void) state;
    run_many (GENTLE);
}

static void cancels_end_each_stream_once_and_both_ends_agree (void **state)
{
    (void) state;
    run_many (CANCELS);
}

static void deaths_end_each_stream_once_and_the_living_agree (void **state)
{
    (void) state;
    run_many (ROUGH);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown (calm_runs_deliver_everything, tell_seed),
        cmocka_unit_test_teardown (gentle_faults_lose_and_double_nothing, tell_seed),
        cmocka_unit_test_teardown (cancels_end_each_stream_once_and_both_ends_agree, tell_seed),
        cmocka_unit_test_teardown (deaths_end_each_stream_once_and_the_living_agree, tell_seed),
    };
    return cmocka_run_group_tests_name ("promises", tests, NULL, NULL);
}
