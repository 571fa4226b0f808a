/*  The state tables of exclusive anchors and of dedicated fronts at the broker in
 *  docs/protocol.md, driven through the engine.
 */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

enum { SESSION = 1, NEW_SESSION = 9 };

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other; /* another client, without a seat */
static hws_handle_t s_handle;
static stream_t s_stream;

static client_t *connect_beating (void)
{
    client_t *const client = client_connect (&s_world);
    client->is_beating = true;
    return client;
}

static void begin_clients (void)
{
    begin (NULL);
    s_receiver = connect_beating ();
    s_other = connect_beating ();
    s_sender = connect_beating ();
}

static void end_world (void)
{
    end (NULL);
}

static const hws_anchor_t *anchor (void)
{
    return hws_anchor_find (s_world.engine, s_handle);
}

/*  The grants that the sender gets stand in the table of its seat.  */
static void hear_all (words_t *said)
{
    engine_words (said, s_receiver, 0, 0);
    engine_words (said, s_other, 0, 0);
    while (client_find_grant (s_sender)) {
    }
    engine_words (said, s_sender, 0, 0);
}

static void reach_gone (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static void cancel_by_receiver (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static void attach_other (void)
{
    stream_ask (s_other, NEW_SESSION, s_handle);
}

/*  ---- Exclusive anchors: states ---- */

static const hws_open_t s_exclusive = {.kind = HWS_KIND_SPSC};

static void begin_exclusive (void)
{
    begin_clients ();
    s_handle = anchor_open (s_receiver, 1, "", &s_exclusive);
    s_stream = stream_attach (s_sender, SESSION, s_handle);
}

static const char *exclusive_state (void)
{
    const hws_anchor_t *const it = anchor ();
    if (it == NULL) {
        return "gone";
    }
    switch (it->state) {
    case HWS_ANCHOR_OPEN:
        return "open";
    case HWS_ANCHOR_ABANDONED:
        return "abandoned";
    case HWS_ANCHOR_CLOSING:
        break;
    }
    return it->cause == HWS_CAUSE_FINALIZED ? "finalized" : "closing";
}

static void reach_open (void)
{
}

static void reach_abandoned (void)
{
    client_reconnect (s_receiver);
}

static void end_stream (hws_run_type_t type)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_ending (&s_stream, type));
    batch_send (&batch, s_sender);
    s_stream.next_seq = s_stream.next_bytes = 0;
}

static void finalize (void)
{
    end_stream (HWS_RUN_FINALIZED);
}

static void reach_closing (void)
{
    anchor_cancel (s_sender, s_handle, 0, "");
}

static const step_t exclusive_states[] = {
    {"open", reach_open, NULL},    {"abandoned", reach_abandoned, NULL},
    {"finalized", finalize, NULL}, {"closing", reach_closing, NULL},
    {"gone", reach_gone, NULL},    {NULL, NULL, NULL},
};

/*  ---- Exclusive anchors: events ---- */

static void ack_own_ending (void)
{
    anchor_ack (s_receiver, s_stream.routing, 1, HWS_ENDING_HEADER_SIZE, true);
}

static void ack_broker_ending (void)
{
    anchor_ack (s_receiver, s_stream.routing, 0, 0, true);
}

static void detach_and_next (void)
{
    end_stream (HWS_RUN_DETACHED);
    ack_own_ending ();
    attach_other ();
}

static void cancel_sender (void)
{
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
    ack_broker_ending ();
}

static void lose_sender (void)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN, .as.open = s_exclusive};
    message.as.open.open_id = 1;
    client_ask (s_receiver, &message);
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS);
    ack_broker_ending ();
}

static const step_t exclusive_events[] = {
    {"ATTACH of another sender", attach_other, NULL},
    {"FINALIZED at its number", finalize, NULL},
    {"ACK of that", ack_own_ending, NULL},
    {"DETACHED, ACK of that, ATTACH of another sender", detach_and_next, "finalized, gone"},
    {"CANCEL of the sender by the receiver, ACK of that", cancel_sender, NULL},
    {"OPEN again, sender lost, ACK of its ending", lose_sender, NULL},
    {"CANCEL by the sender", reach_closing, NULL},
    {"CANCEL by the receiver", cancel_by_receiver, NULL},
    {NULL, NULL, NULL},
};

static void exclusive_anchors_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Exclusive anchor, at the broker",
                               .states = exclusive_states,
                               .events = exclusive_events,
                               .begin = begin_exclusive,
                               .end = end_world,
                               .state = exclusive_state,
                               .hear = hear_all};

    machine_drive (&machine);
}

/*  ---- Dedicated fronts: states ---- */

static struct {
    uint32_t last_front;
    size_t unbind_count;
} s_seen; /* of the world's */

static void begin_dedicated (void)
{
    begin_clients ();
    s_world.is_slow_to_bind = true;
    s_seen.last_front = 0;
    s_seen.unbind_count = 0;
    s_handle = anchor_open (s_receiver, 1, "", &(hws_open_t){.dedicated = true});
}

static const char *front_state (void)
{
    const hws_anchor_t *const it = anchor ();
    if (it == NULL) {
        return "gone";
    }
    switch (it->dedicated.state) {
    case HWS_DEDICATED_UNBOUND:
        return "unbound";
    case HWS_DEDICATED_BINDING:
        return "binding";
    case HWS_DEDICATED_BOUND:
        break;
    }
    return "bound";
}

static void hear_front (words_t *said)
{
    hear_all (said);
    if (s_world.last_front != s_seen.last_front) {
        words_add (said, "bind");
    }
    if (s_world.unbind_count != s_seen.unbind_count) {
        words_add (said, "unbind");
    }
    s_seen.last_front = s_world.last_front;
    s_seen.unbind_count = s_world.unbind_count;
}

static void attach (void)
{
    stream_ask (s_sender, SESSION, s_handle);
}

static void bound (void)
{
    world_bound (&s_world, s_world.last_front);
}

static void reach_bound (void)
{
    attach ();
    bound ();
}

static const step_t front_states[] = {
    {"unbound", reach_open, NULL}, {"binding", attach, NULL}, {"bound", reach_bound, NULL},
    {"gone", reach_gone, NULL},    {NULL, NULL, NULL},
};

/*  ---- Dedicated fronts: events ---- */

static void bind_fails (void)
{
    world_bind_failed (&s_world, s_world.last_front, "the port is taken");
}

static void attach_there (void)
{
    client_t *const there = client_connect_at (&s_world, s_world.last_front);
    words_t said = {0};
    const stream_t stream = stream_attach (there, SESSION, s_handle);
    engine_words (&said, there, 0, 0);
    assert_int_equal (stream.sender_id, 1);
}

static void sender_leaves (void)
{
    client_disconnect (s_sender);
    if (s_world.last_front > 0) {
        bound ();
    }
}

static void receiver_leaves (void)
{
    client_disconnect (s_receiver);
}

static const step_t front_events[] = {
    {"ATTACH elsewhere", attach_other, NULL},
    {"ATTACH at this front", attach_there, "unbound, binding, gone"},
    {"front bound", bound, "unbound, gone"},
    {"front cannot be bound", bind_fails, "unbound, bound, gone"},
    {"connection of who waits closed, front bound", sender_leaves, "unbound, gone"},
    {"connection of the receiver closed", receiver_leaves, NULL},
    {"anchor ends", cancel_by_receiver, NULL},
    {NULL, NULL, NULL},
};

static void fronts_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Front of a dedicated anchor, at the broker",
                               .states = front_states,
                               .events = front_events,
                               .begin = begin_dedicated,
                               .end = end_world,
                               .state = front_state,
                               .hear = hear_front};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST (exclusive_anchors_follow_their_table),
        TABLE_TEST (fronts_follow_their_table),
    };
    return cmocka_run_group_tests_name ("exclusive table", tests, NULL, NULL);
}
