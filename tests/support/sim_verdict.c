#include "tests/support/sim_verdict.h"

#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*  The receivers of an anchor, one after another: the next behind `last`, or -1; begin
 *  with -1.  */
static int next_receiver (int anchor, int last)
{
    for (int i = last + 1; i < sim_world.receiver_count; i++) {
        if (sim_world.receivers[i].anchor == anchor) {
            return i;
        }
    }
    return -1;
}

void sim_describe (const sim_sender_t *sender)
{
    const sim_network_t *const net = &sim_world.net;
    print_error ("sender %d, id %" PRIu64 " (client %d%s%s%s%s, anchor %d%s%s): %s %s (%s), "
                 "state %d, %" PRIu64 " of %" PRIu64 " records\n",
                 sender->number, sender->sender_id, sender->client,
                 sim_client_lives (sender->client) ? "" : " dead",
                 net->clients[sender->client].was_away ? " was away" : "",
                 net->clients[sender->client].was_forgotten ? " for long" : "",
                 sender->is_ended_here ? " ended here" : "", sender->anchor,
                 sender->may_be_cancelled ? ", cancelled" : "",
                 sim_world.anchors[sender->anchor].may_be_cancelled ? " with it" : "",
                 sender->is_over ? hws_error_word (sender->result) : "lives", sender->cause,
                 sender->reason, sender->is_added ? (int) sender->core.tx.state : -1,
                 sender->is_added ? sender->core.tx.records : sender->records, sender->wanted);
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const sim_receiver_t *const receiver = &sim_world.receivers[i];
        const sim_shown_t *const shown = &receiver->shown[sender->number];
        print_error ("    receiver %d (client %d%s, state %d%s): shown %d as %" PRIu64
                     ", records %" PRIu64 " to %" PRIu64 ", consumed to %" PRIu64
                     ", ended %d as %d %s\n",
                     i, receiver->client, sim_client_lives (receiver->client) ? "" : " dead",
                     (int) receiver->core.rx.state, receiver->is_closed ? " closed" : "",
                     (int) shown->is_known, shown->sender_id, shown->first, shown->next,
                     shown->consumed, (int) shown->has_ended, (int) shown->ending, shown->cause);
    }
}

/*  ---- What is known of a stream ---- */

/*  Somebody was away for so long that the broker's memory of the stream may be gone; or two
 *  receivers were there that each took the anchor for its own; or the broker did not
 *  hear a receiver in time, for want of memory or because that was never told that it has one.  */
static bool is_forgotten (const sim_sender_t *sender)
{
    const sim_network_t *const net = &sim_world.net;
    const sim_anchor_t *const anchor = &sim_world.anchors[sender->anchor];
    const sim_client_t *const its = &net->clients[sender->client];
    const bool is_unheard =
        strcmp (sender->cause, "abandoned") == 0 && (sim_memory.failures > 0 || !anchor->has_token);
    const bool is_late = strcmp (sender->cause, "unknown") == 0 && its->was_away;
    if (its->was_forgotten || anchor->was_abandoned || anchor->is_contested || is_unheard ||
        is_late) {
        return true;
    }
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const int client = sim_world.receivers[i].client;
        if (sim_client_lives (client) && net->clients[client].was_forgotten) {
            return true;
        }
    }
    return false;
}

/*  Only of an exclusive anchor is a finalize more than a detach.  */
static hws_event_kind_t clean_ending_of (const sim_sender_t *sender)
{
    return sender->is_finalizing && sim_world.anchors[sender->anchor].is_exclusive
               ? HWS_EVENT_FINALIZED
               : HWS_EVENT_DETACHED;
}

/*  Records that all its receivers together were shown.  */
static uint64_t shown_of (const sim_sender_t *sender)
{
    uint64_t next = 0;
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const sim_shown_t *const shown = &sim_world.receivers[i].shown[sender->number];
        next = shown->next > next ? shown->next : next;
    }
    return next;
}

/*  The last of its receivers that was shown its ending, by the broker's word or the sender's,
 *  or null.  */
static const sim_receiver_t *who_saw_its_end (const sim_sender_t *sender)
{
    const sim_receiver_t *last = NULL;
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const sim_receiver_t *const receiver = &sim_world.receivers[i];
        const sim_shown_t *const shown = &receiver->shown[sender->number];
        const bool is_own = strcmp (shown->cause, "superseded") == 0; /* of the process alone */
        if (shown->has_ended && !is_own) {
            last = receiver;
        }
    }
    return last;
}

/*  A process that is gone was shown its ending; perhaps nobody else knew.  */
static bool has_died_with_its_end (const sim_sender_t *sender)
{
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const sim_receiver_t *const receiver = &sim_world.receivers[i];
        if (receiver->shown[sender->number].has_ended && !sim_client_lives (receiver->client)) {
            return true;
        }
    }
    return false;
}

/*  A broker that was restarted knows nothing of an anchor that ended before, nor of a stream whose
 *  ending only a dead process had been shown; nor who was the sender of an exclusive anchor, if
 *  its receiver does not know it either: then another may come, and finalize, before.  */
static bool is_lost_with_broker (const sim_sender_t *sender)
{
    const sim_receiver_t *const receiver =
        &sim_world.receivers[sim_world.anchors[sender->anchor].last];
    const sim_anchor_t *const anchor = &sim_world.anchors[sender->anchor];
    if (sim_world.net.options.epoch == 1) {
        return false;
    }
    if (strcmp (sender->cause, "finalized") == 0) {
        return anchor->is_exclusive;
    }
    if (sender->result != 0 && has_died_with_its_end (sender)) {
        return true;
    }
    return strcmp (sender->cause, "abandoned") == 0 && receiver->core.rx.state == HWS_RX_CLOSED &&
           strcmp (receiver->closed_cause, "abandoned") != 0;
}

/*  The sender was away for so long that the broker gave its stream up, though one of the ends knew
 *  another ending: the receiver had not acknowledged the sender's own, or the broker that had told
 *  the sender is gone.  */
static bool is_given_up (const sim_sender_t *sender, const sim_shown_t *shown)
{
    return sim_world.net.clients[sender->client].was_away && sender->result != 0 &&
           (strcmp (sender->cause, "transport") == 0 ||
            (sim_world.net.options.epoch > 1 && strcmp (shown->cause, "transport") == 0));
}

static bool is_wish (const char *cause)
{
    return strcmp (cause, "interrupted") == 0 || strcmp (cause, "requested") == 0 ||
           strcmp (cause, "receiver_closed") == 0;
}

/*  A broker told the sender that it is cancelled, and was gone before it told the receiver: that
 *  had the clean ending in hand, or cancelled it too.  */
static bool is_cancel_lost (const sim_sender_t *sender, const sim_shown_t *shown)
{
    const bool is_cancelled = shown->ending == HWS_EVENT_CANCELLED && is_wish (shown->cause);
    return sim_world.net.options.epoch > 1 && sender->result == HWS_ECANCELLED &&
           is_wish (sender->cause) && (is_cancelled || shown->ending == clean_ending_of (sender));
}

/*  It had a seat at an anchor of which no receiver knows: the broker went before it answered OPEN,
 *  and the receiver opened another.  */
static bool is_at_another_anchor (const sim_sender_t *sender)
{
    return sim_world.net.options.epoch > 1 && sender->sender_id != 0 &&
           strcmp (sender->cause, "abandoned") == 0 &&
           !hws_handle_equal (sender->handle, sim_world.anchors[sender->anchor].handle);
}

/*  A finalize of an exclusive anchor was on its way to the receiver, whether it got there or
 *  not.  */
static bool is_finalize_begun (const sim_sender_t *sender)
{
    for (int i = 0; i < sim_world.sender_count; i++) {
        const sim_sender_t *const other = &sim_world.senders[i];
        const bool has_begun = other->starts_at == HWS_NEVER;
        if (other != sender && other->anchor == sender->anchor && other->is_finalizing &&
            has_begun) {
            return sim_world.anchors[sender->anchor].is_exclusive;
        }
    }
    return false;
}

/*  ---- Promises ---- */

/*  A process begins where the one before it had come, or earlier: no record is between.  */
static void check_handing_over (const sim_sender_t *sender)
{
    uint64_t consumed = 0;
    for (int i = next_receiver (sender->anchor, -1); i >= 0;
         i = next_receiver (sender->anchor, i)) {
        const sim_shown_t *const shown = &sim_world.receivers[i].shown[sender->number];
        if (shown->has_records) {
            assert_true (shown->first <= consumed);
            consumed = shown->consumed > consumed ? shown->consumed : consumed;
        }
    }
}

/*  Whatever else happened: a clean ending means that all is there.  */
static void check_truth (const sim_sender_t *sender)
{
    const sim_receiver_t *const last = who_saw_its_end (sender);
    const bool is_sure = sender->is_over && sender->result == 0;
    if (is_sure) {
        assert_non_null (last);
        assert_int_equal (last->shown[sender->number].ending, clean_ending_of (sender));
    }
    const bool is_clean = last && last->shown[sender->number].ending == clean_ending_of (sender);
    if (is_clean && sender->is_over) {
        assert_true (shown_of (sender) == sender->records);
    } else {
        assert_true (!sender->is_over || shown_of (sender) <= sender->records);
    }
}

/*  Both ends were told the same.  */
static void check_agreement (const sim_sender_t *sender)
{
    const sim_receiver_t *const last = who_saw_its_end (sender);
    if (last == NULL) {
        assert_int_not_equal (sender->result, 0); /* nobody heard of it */
        return;
    }
    sim_counted (SIM_PAIRS_AGREED, 1);
    const sim_shown_t *const shown = &last->shown[sender->number];
    if (is_given_up (sender, shown) || is_cancel_lost (sender, shown)) {
        return;
    }
    if (sender->result == 0) {
        assert_int_equal (shown->ending, clean_ending_of (sender));
        return;
    }
    assert_int_equal (shown->ending,
                      sender->result == HWS_ECANCELLED ? HWS_EVENT_CANCELLED : HWS_EVENT_DROPPED);
    assert_string_equal (shown->cause, sender->cause);
}

/*  Whether an end decided while the broker was away, or gave it up: it did not wait for the
 *  broker's word, which may be another. So does one that closes with an ending in hand that it has
 *  not acknowledged.  */
static bool is_ended_alone (const sim_sender_t *sender)
{
    const sim_receiver_t *const last = who_saw_its_end (sender);
    return sender->is_ended_here || strcmp (sender->reason, "the broker did not answer") == 0 ||
           (last && last->core.close_result != 0) ||
           (last && last->is_manual && strcmp (sender->cause, "receiver_closed") == 0);
}

/*  The receiver that should hear of it is there.  */
static bool has_receiver (const sim_sender_t *sender)
{
    return sim_client_lives (sim_world.receivers[sim_world.anchors[sender->anchor].last].client);
}

/*  Nobody died, nobody cancelled, nobody was away for too long: all has to be there, unless the
 *  anchor was finalized before.  */
static void check_success (const sim_sender_t *sender)
{
    const bool is_refused = sender->result == HWS_ELIMIT || sender->result == HWS_ECLOSED;
    if (is_refused && sender->sender_id == 0 && sim_memory.failures > 0) {
        return; /* a broker without memory may refuse, or does not say that it leaves */
    }
    if (sender->result == HWS_ENOT_FOUND &&
        (uint64_t) sim_world.longest_stall_ms >= sender->core.wait_ms) {
        return; /* it stood still for longer than it would wait for its anchor */
    }
    if (is_finalize_begun (sender) && sender->sender_id == 0 && sender->result != 0) {
        assert_true (sender->result == HWS_ECLOSED || sender->result == HWS_ENOT_FOUND);
        return;
    }
    sim_counted (SIM_PAIRS_OWED, 1);
    assert_int_equal (sender->result, 0);
    assert_true (sender->records == sender->wanted);
}

static void check_sender (const sim_sender_t *sender)
{
    const sim_anchor_t *const anchor = &sim_world.anchors[sender->anchor];
    const bool is_known = !sim_world.was_lost && !is_forgotten (sender) &&
                          !is_lost_with_broker (sender) && !is_at_another_anchor (sender);
    if (is_known) {
        check_handing_over (sender);
        check_truth (sender);
    }
    if (!sim_client_lives (sender->client)) {
        return;
    }
    assert_true (sender->is_over);
    if (is_known && has_receiver (sender) && sender->sender_id != 0 && !is_ended_alone (sender)) {
        check_agreement (sender);
    }
    const bool is_opened = anchor->has_token || sim_memory.failures == 0; /* else maybe refused */
    const bool is_free = !sender->may_be_cancelled && !anchor->may_be_cancelled && is_opened;
    if (is_known && is_free && has_receiver (sender) &&
        !sim_world.net.clients[sender->client].was_away) {
        check_success (sender);
    }
}

static void count (const sim_sender_t *sender)
{
    sim_counted (SIM_SENDERS, 1);
    if (!sender->is_over) {
        return;
    }
    sim_counted (sender->result == 0                ? SIM_CLEAN
                 : sender->sender_id == 0           ? SIM_REFUSED
                 : sender->result == HWS_ECANCELLED ? SIM_CANCELLED
                                                    : SIM_DROPPED,
                 1);
}

void sim_verdict (void)
{
    for (int i = 0; i < sim_world.sender_count; i++) {
        const sim_sender_t *const sender = &sim_world.senders[i];
        if (sender->is_off) {
            continue;
        }
        count (sender);
        sim_world.at_hand = sender;
        check_sender (sender);
        sim_world.at_hand = NULL;
    }
}
