/*  The state tables of anchors and of clients at the broker in docs/protocol.md, driven
 *  through the engine.
 */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

#define INTERVAL      WORLD_INTERVAL_MS
#define UNATTACHED_MS 1500
#define TOKEN         77

enum { SESSION = 1, NEW_SESSION = 9 };

static client_t *s_receiver;
static client_t *s_sender; /* has a seat at the anchor */
static client_t *s_stranger;
static hws_handle_t s_handle;
static stream_t s_stream;

static client_t *connect_beating (void)
{
    client_t *const client = client_connect (&s_world);
    client->is_beating = true;
    return client;
}

static const hws_open_t s_options = {
    .unattached_timeout_ms = {.state = HWS_VALUE, .value = UNATTACHED_MS}, .cancel_token = TOKEN};

static void open_again (void)
{
    s_handle = anchor_open (s_receiver, 1, "a", &s_options);
}

static void begin_anchor (void)
{
    begin (NULL);
    s_receiver = connect_beating ();
    s_stranger = connect_beating ();
    s_sender = connect_beating ();
    open_again ();
    s_stream = stream_attach (s_sender, SESSION, s_handle);
}

static void end_world (void)
{
    end (NULL);
}

/*  The grants that the sender gets stand in the table of its seat.  */
static void hear_all (words_t *said)
{
    engine_words (said, s_receiver, 0, 0);
    engine_words (said, s_stranger, 0, 0);
    while (client_find_grant (s_sender)) {
    }
    engine_words (said, s_sender, 0, 0);
}

static void ignore_all (void)
{
    words_t said = {0};
    hear_all (&said);
}

static hws_anchor_t *anchor (void)
{
    return hws_anchor_find (s_world.engine, s_handle);
}

/*  ---- Anchors: states ---- */

static const char *anchor_state (void)
{
    const hws_anchor_t *const it = anchor ();
    if (it == NULL) {
        return hws_tombstone_of_handle (s_world.engine, s_handle) ? "gone" : "forgotten";
    }
    switch (it->state) {
    case HWS_ANCHOR_OPEN:
        return "open";
    case HWS_ANCHOR_ABANDONED:
        return "abandoned";
    case HWS_ANCHOR_CLOSING:
        break;
    }
    return "closing";
}

static void reach_open (void)
{
}

static void reach_abandoned (void)
{
    client_reconnect (s_receiver);
}

static void reach_closing (void)
{
    anchor_cancel (s_sender, s_handle, 0, "");
}

static void reach_gone (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static const step_t anchor_states[] = {
    {"open", reach_open, NULL},
    {"abandoned", reach_abandoned, NULL},
    {"closing", reach_closing, NULL},
    {"gone", reach_gone, NULL},
    {NULL, NULL, NULL},
};

/*  ---- Anchors: the receiver ---- */

static void ask_open (client_t *client, uint64_t open_id)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN, .as.open = s_options};
    message.as.open.open_id = open_id;
    strcpy (message.as.open.name, "a");
    client_ask (client, &message);
}

static void ask_open_again (void)
{
    ask_open (s_receiver, 1);
}

static void open_by_another (void)
{
    ask_open (s_stranger, 1);
}

static void resume_by_another (void)
{
    anchor_resume (s_stranger, 5, s_handle, 0, NULL, 0);
}

static void resume_by_another_and_open_again (void)
{
    resume_by_another ();
    ask_open_again ();
}

static void lose_receiver (void)
{
    client_disconnect (s_receiver);
}

static void silence_receiver (void)
{
    s_receiver->is_beating = false;
    world_advance (&s_world, 3 * INTERVAL);
}

static void orphan (void)
{
    s_receiver->is_beating = false;
    client_disconnect (s_receiver);
    world_advance (&s_world, WORLD_ORPHAN_MS);
}

static void cancel_by_receiver (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static void bye_of_receiver (void)
{
    hws_control_t message = {.verb = HWS_VERB_BYE};
    client_ask (s_receiver, &message);
}

/*  ---- Anchors: senders ---- */

static void attach_new (void)
{
    stream_ask (s_stranger, NEW_SESSION, s_handle);
}

static void attach_by_name (void)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.anchor = "a", .session_id = NEW_SESSION}};
    client_ask (s_stranger, &message);
}

static void cancel_by_sender (void)
{
    anchor_cancel (s_sender, s_handle, 0, "");
}

static void cancel_by_stranger (void)
{
    anchor_cancel (s_stranger, s_handle, 0, "");
}

static void cancel_token (void)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = TOKEN};
    client_ask (s_stranger, &message);
}

/*  Brings the only seat to where its ending is not acknowledged.  */
static void end_seat (void)
{
    const hws_anchor_t *const it = anchor ();
    if (it && it->state == HWS_ANCHOR_ABANDONED) {
        open_again (); /* an ending is taken while the receiver is there */
        stream_end (&s_stream);
        reach_abandoned ();
    } else if (it && it->state == HWS_ANCHOR_OPEN) {
        stream_end (&s_stream);
    }
    ignore_all ();
}

static void ack_last_ending (void)
{
    end_seat ();
    anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, true);
}

static void stay_unattached (void)
{
    ack_last_ending ();
    ignore_all ();
    world_advance (&s_world, UNATTACHED_MS);
}

/*  The new time runs from the OPEN that brings it, in full.  */
static void change_unattached_timeout (void)
{
    ack_last_ending ();
    ignore_all ();
    world_advance (&s_world, UNATTACHED_MS / 2);
    hws_control_t message = {
        .verb = HWS_VERB_OPEN,
        .as.open = {.open_id = 1,
                    .name = "a",
                    .unattached_timeout_ms = {.state = HWS_VALUE, .value = 2 * UNATTACHED_MS}}};
    client_ask (s_receiver, &message);
    world_advance (&s_world, 2 * UNATTACHED_MS - 1);
    assert_non_null (anchor ());
    world_advance (&s_world, 1);
}

static const step_t anchor_events[] = {
    {"OPEN again", ask_open_again, NULL},
    {"OPEN with resume by another client", resume_by_another, NULL},
    {"that, then OPEN again", resume_by_another_and_open_again, NULL},
    {"OPEN of its name by another client", open_by_another, NULL},
    {"HELLO of its receiver", reach_abandoned, NULL},
    {"connection of its receiver closed", lose_receiver, NULL},
    {"receiver silent for three intervals", silence_receiver, NULL},
    {"receiver away for orphan_ttl_ms", orphan, "gone"},
    {"ATTACH", attach_new, NULL},
    {"ATTACH by name", attach_by_name, NULL},
    {"CANCEL by the receiver", cancel_by_receiver, NULL},
    {"BYE of the receiver", bye_of_receiver, NULL},
    {"CANCEL by a client with a sender attached", cancel_by_sender, NULL},
    {"CANCEL by anybody else", cancel_by_stranger, NULL},
    {"CANCEL_TOKEN of its token", cancel_token, NULL},
    {"ACK of the last ending", ack_last_ending, NULL},
    {"no seat for unattached_timeout_ms", stay_unattached, "closing"},
    {"no seat, OPEN with another unattached_timeout_ms, that time", change_unattached_timeout,
     "closing, gone"},
    {NULL, NULL, NULL},
};

static void anchors_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Anchor, at the broker",
                               .states = anchor_states,
                               .events = anchor_events,
                               .begin = begin_anchor,
                               .end = end_world,
                               .state = anchor_state,
                               .hear = hear_all};

    machine_drive (&machine);
}

/*  ---- Clients ---- */

static client_t *s_client;

static void begin_client (void)
{
    begin (NULL);
    s_client = client_connect (&s_world);
}

static void hear_client (words_t *said)
{
    engine_words (said, s_client, 0, 0);
}

static const char *client_state (void)
{
    const hws_peer_t *const it = hws_peer_of_client (s_world.engine, &s_client->id);
    return it == NULL ? "unknown" : it->state == HWS_PEER_CONNECTED ? "connected" : "away";
}

static void reach_unknown (void)
{
    world_advance (&s_world, 3 * INTERVAL);
}

static void reach_connected (void)
{
}

static void reach_away (void)
{
    client_disconnect (s_client);
}

static const step_t client_states[] = {
    {"unknown", reach_unknown, NULL},
    {"connected", reach_connected, NULL},
    {"away", reach_away, NULL},
    {NULL, NULL, NULL},
};

/*  The address of the connection before the present one.  */
static hws_address_t s_former;

static void say_hello (void)
{
    client_hello (s_client);
}

static void say_hello_elsewhere (void)
{
    s_former = s_client->address;
    s_client->address.id[0]++;
    client_hello (s_client);
}

static void ping_from_former_connection (void)
{
    say_hello_elsewhere ();
    client_take_ok (s_client, HWS_VERB_HELLO);
    s_client->address = s_former;
    client_ping (s_client);
}

static void say_hello_for_another (void)
{
    s_client->id.bytes[15] ^= 1;
    client_hello (s_client);
    s_client->id.bytes[15] ^= 1;
}

static void ping (void)
{
    client_ping (s_client);
}

static void speak_rubbish (void)
{
    client_send_frames (s_client, hws_bytes ("?", 1), NULL);
}

static void lose_client (void)
{
    client_disconnect (s_client);
}

static void wait_a_second (void)
{
    world_advance (&s_world, 1000);
}

static void be_silent (void)
{
    world_advance (&s_world, 3 * INTERVAL);
}

static void read_nothing (void)
{
    s_client->is_full = true;
    client_ping (s_client);
    for (int i = 0; i < 3; i++) {
        world_advance (&s_world, INTERVAL);
        client_ping (s_client);
    }
    s_client->is_full = false;
    ping ();
}

static void say_bye (void)
{
    hws_control_t message = {.verb = HWS_VERB_BYE};
    client_ask (s_client, &message);
}

static const step_t client_events[] = {
    {"HELLO on its connection", say_hello, NULL},
    {"HELLO on a new connection", say_hello_elsewhere, NULL},
    {"PING on the connection before, after that", ping_from_former_connection, NULL},
    {"PING", ping, NULL},
    {"neither control message nor batch", speak_rubbish, NULL},
    {"HELLO of another client on its connection", say_hello_for_another, "unknown"},
    {"connection closed", lose_client, NULL},
    {"owns nothing, a second passes", wait_a_second, NULL},
    {"owns nothing, three silent intervals", be_silent, NULL},
    {"takes nothing for three intervals, then PING", read_nothing, "unknown, away"},
    {"BYE", say_bye, NULL},
    {NULL, NULL, NULL},
};

static void clients_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Client, at the broker",
                               .states = client_states,
                               .events = client_events,
                               .begin = begin_client,
                               .end = end_world,
                               .state = client_state,
                               .hear = hear_client};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST (anchors_follow_their_table),
        TABLE_TEST (clients_follow_their_table),
    };
    return cmocka_run_group_tests_name ("anchor table", tests, NULL, NULL);
}
