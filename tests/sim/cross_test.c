/*  A sender that detaches and a receiver that cancels it, at nearly the same moment, over a
 *  virtual network with latency: whichever word is first, both ends see the same one ending.
 */
#include "client/rx_reader.h"
#include "tests/support/sim_network.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RECEIVER, CLIENTS = 4, STREAMS = 12, ROUNDS = 10000, APART_MS = 40 };

/*  One round: a stream of a few records and what its receiver was shown.  */
typedef struct {
    hws_session_sender_t core;
    bool is_used;
    uint64_t records;     /* that it sends */
    hws_ms_t detaches_at; /* HWS_NEVER: it has */
    hws_ms_t cancels_at;  /* likewise, of the receiver */
    uint64_t shown_records;
    unsigned endings;
    hws_event_kind_t ending;
} round_t;

static sim_network_t s_net;
static hws_session_receiver_t s_receiver;
static hws_rx_reader_t s_reader;
static round_t s_rounds[STREAMS];
static uint64_t s_detached, s_cancelled;

static void sender_notified (hws_session_sender_t *core)
{
    (void) core;
}

static void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

/*  ---- The receiver ---- */

static void see (const hws_event_t *event)
{
    round_t *const round = &s_rounds[atoi (event->label)];
    assert_true (round->is_used);
    assert_int_equal (round->endings, 0);
    if (event->kind == HWS_EVENT_RECORD) {
        round->shown_records++;
    } else if (event->kind != HWS_EVENT_ATTACHED) {
        round->endings++;
        round->ending = event->kind;
    }
}

static void read_some (void)
{
    hws_event_t event;
    for (uint64_t i = sim_below (&s_net, 20); i > 0;) {
        if (hws_rx_reader_next (&s_reader, &event)) {
            see (&event);
            i--;
            continue;
        }
        hws_rx_reader_publish (&s_reader);
        if (!hws_rx_has_events (&s_receiver.rx)) {
            return;
        }
        hws_rx_reader_take (&s_reader);
    }
    hws_rx_reader_publish (&s_reader);
}

/*  ---- Rounds ---- */

static void begin (int i)
{
    round_t *const round = &s_rounds[i];
    memset (round, 0, sizeof *round);
    round->is_used = true;
    round->records = sim_below (&s_net, 4);
    round->detaches_at = s_net.now + APART_MS + (hws_ms_t) sim_below (&s_net, APART_MS);
    /* The receiver's cancel also beats an ending that it has not consumed: a little later. */
    round->cancels_at = s_net.now + APART_MS + 12 + (hws_ms_t) sim_below (&s_net, APART_MS);
    round->core.notify = sender_notified;
    snprintf (round->core.label, sizeof round->core.label, "%d", i);
    snprintf (round->core.anchor, sizeof round->core.anchor, "a");
    const uint64_t client = 1 + sim_below (&s_net, CLIENTS - 1);
    hws_session_attach (&s_net.clients[client].session, s_net.now, &round->core);
}

static void go_on (round_t *round)
{
    hws_tx_t *const tx = &round->core.tx;
    if (tx->state == HWS_TX_OPEN && tx->records < round->records) {
        hws_tx_append (tx, "record", 6);
    }
    if (round->detaches_at <= s_net.now && tx->state == HWS_TX_OPEN) {
        round->detaches_at = HWS_NEVER;
        hws_tx_detach (tx);
    }
    if (round->cancels_at <= s_net.now && tx->sender_id != 0) {
        const int rc = hws_rx_cancel_sender (&s_receiver.rx, tx->sender_id, "enough");
        if (rc != HWS_ENOT_FOUND) { /* else it has not heard of it yet */
            round->cancels_at = HWS_NEVER;
        }
    }
    hws_session_changed (&round->core);
}

static bool is_over (const round_t *round)
{
    return round->core.tx.state == HWS_TX_ENDED && round->endings > 0;
}

static void check (const round_t *round)
{
    const hws_tx_t *const tx = &round->core.tx;
    assert_int_equal (round->endings, 1);
    if (tx->result == 0) {
        assert_int_equal (round->ending, HWS_EVENT_DETACHED);
        assert_int_equal (round->shown_records, tx->records);
        s_detached++;
    } else {
        assert_int_equal (tx->result, HWS_ECANCELLED);
        assert_string_equal (tx->cause, "requested");
        assert_string_equal (tx->reason, "enough");
        assert_int_equal (round->ending, HWS_EVENT_CANCELLED);
        assert_true (round->shown_records <= tx->records);
        s_cancelled++;
    }
}

static void cancel_and_detach_cross (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    sim_init (&s_net, hws_random_next (&random), CLIENTS);
    s_receiver.notify = receiver_notified;
    snprintf (s_receiver.options.name, sizeof s_receiver.options.name, "a");
    hws_session_open (&s_net.clients[RECEIVER].session, s_net.now, &s_receiver);
    hws_rx_reader_init (&s_reader, &s_receiver.rx);
    while (s_receiver.rx.state != HWS_RX_OPEN) {
        sim_step (&s_net);
    }
    const size_t rounds = test_scaled (ROUNDS);
    const hws_ms_t latest_at = s_net.now + ROUNDS * 10 * APART_MS;

    for (size_t begun = 0, ended = 0; ended < rounds;) {
        for (int i = 0; i < STREAMS; i++) {
            round_t *const round = &s_rounds[i];
            if (!round->is_used && begun < rounds) {
                begin (i);
                begun++;
            } else if (round->is_used && !is_over (round)) {
                go_on (round);
            } else if (round->is_used) {
                check (round);
                hws_session_remove_sender (&round->core);
                round->is_used = false;
                ended++;
            }
        }
        read_some ();
        sim_step (&s_net);
        assert_true (s_net.now < latest_at);
    }

    print_message ("detached %llu, cancelled %llu\n", (unsigned long long) s_detached,
                   (unsigned long long) s_cancelled);
    assert_true (rounds < 1000 || (s_detached > rounds / 20 && s_cancelled > rounds / 20));
    const hws_engine_stats_t *const stats = hws_engine_stats (s_net.engine);
    assert_int_equal (stats->detached, s_detached);
    assert_int_equal (stats->cancelled, s_cancelled);
    hws_rx_reader_fini (&s_reader);
    hws_session_remove_receiver (&s_receiver);
    sim_fini (&s_net);
}

int main (void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test (cancel_and_detach_cross)};
    return cmocka_run_group_tests_name ("cross", tests, NULL, NULL);
}
