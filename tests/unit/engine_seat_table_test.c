/*  The state table of seats in docs/protocol.md, driven through the engine.  */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

#define INTERVAL WORLD_INTERVAL_MS

enum { SESSION = 1, OTHER_SESSION = 2, TOKEN = 77 };

static client_t *s_receiver; /* of the anchor */
static client_t *s_sender;   /* has the seat; silent unless a driver speaks for it */
static client_t *s_other;    /* has another seat at the anchor */
static client_t *s_stranger;
static hws_handle_t s_handle;
static stream_t s_stream;

static client_t *connect_beating (void)
{
    client_t *const client = client_connect (&s_world);
    client->is_beating = true;
    return client;
}

static void attach_with_token (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {
            .has_handle = true, .handle = s_handle, .session_id = SESSION, .cancel_token = TOKEN}};
    client_ask (s_sender, &message);
    client_take_ok (s_sender, HWS_VERB_ATTACH);
}

static void begin_world (void)
{
    begin (NULL);
    s_receiver = connect_beating ();
    s_other = connect_beating ();
    s_stranger = connect_beating ();
    s_sender = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "a", NULL);
    stream_attach (s_other, OTHER_SESSION, s_handle);
    attach_with_token ();
    s_stream = stream_attach (s_sender, SESSION, s_handle); /* again: its own seat */
    stream_send (&s_stream, 1, 8);
}

static void end_world (void)
{
    end (NULL);
}

static hws_seat_t *seat (void)
{
    return hws_seat_of_routing (s_world.engine, s_stream.routing);
}

static void open_again (void)
{
    anchor_open (s_receiver, 1, "a", NULL);
}

static void ack_ending (void)
{
    const hws_seat_t *const it = seat ();
    const bool is_own = it && it->ending == HWS_RUN_DETACHED;
    anchor_ack (s_receiver, s_stream.routing, is_own ? s_stream.next_seq : 1,
                is_own ? s_stream.next_bytes : 12, true);
}

/*  The stream as it goes on at the broker's next number.  */
static stream_t stream_at_next (void)
{
    stream_t stream = s_stream;
    const hws_seat_t *const it = seat ();
    if (it) {
        stream.next_seq = it->next_seq;
        stream.next_bytes = it->next_bytes;
    }
    return stream;
}

static void hear (words_t *said)
{
    words_t elsewhere = {0}; /* what is said of the anchor stands in its own table */
    client_find_control (s_receiver, HWS_VERB_ANCHOR_CLOSED);
    engine_words (said, s_receiver, s_stream.routing, SESSION);
    engine_words (said, s_sender, s_stream.routing, SESSION);
    engine_words (said, s_stranger, s_stream.routing, SESSION);
    engine_words (&elsewhere, s_other, s_stream.routing, OTHER_SESSION);
}

/*  ---- States ---- */

static const char *state_now (void)
{
    const hws_seat_t *const it = seat ();
    if (it == NULL) {
        const bool is_known =
            hws_tombstone_of_sender (s_world.engine, s_handle, s_stream.sender_id) != NULL;
        return is_known ? "gone" : "forgotten";
    }
    switch (it->state) {
    case HWS_SEAT_ATTACHED:
        return "attached";
    case HWS_SEAT_AWAY:
        return "away";
    case HWS_SEAT_EXITING:
        break;
    }
    return it->is_ending_ours ? "ended" : it->next_seq <= it->end_seq ? "rewound" : "exiting";
}

static void reach_attached (void)
{
}

static void reach_away (void)
{
    client_reconnect (s_sender);
}

static void reach_exiting (void)
{
    stream_end (&s_stream);
}

static void reach_rewound (void)
{
    stream_end (&s_stream);
    open_again ();
}

static void reach_ended (void)
{
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
}

static void reach_gone (void)
{
    stream_end (&s_stream);
    ack_ending ();
}

static const step_t states[] = {
    {"attached", reach_attached, NULL},
    {"away", reach_away, NULL},
    {"exiting", reach_exiting, NULL},
    {"rewound", reach_rewound, NULL},
    {"ended", reach_ended, NULL},
    {"gone", reach_gone, NULL},
    {NULL, NULL, NULL},
};

/*  ---- What its client does ---- */

static void attach_again (void)
{
    stream_ask (s_sender, SESSION, s_handle);
}

static void attach_with_ending (void)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = SESSION,
                                           .has_resume = true,
                                           .resume = {.sender_id = s_stream.sender_id,
                                                      .ending = "cancelled",
                                                      .code = "interrupted"}}};
    client_ask (s_sender, &message);
}

static void send_run (hws_run_t run)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, run);
    batch_send (&batch, s_sender);
}

static void send_next (void)
{
    stream_t stream = stream_at_next ();
    send_run (stream_records (&stream, 1, 8));
}

static void send_seen (void)
{
    stream_t stream = s_stream;
    stream.next_seq = 0;
    anchor_ack (s_receiver, s_stream.routing, 1, 12, false); /* or it would be next again */
    words_t nothing = {0};
    hear (&nothing);
    send_run (stream_records (&stream, 1, 8));
}

static void send_ahead (void)
{
    world_advance (&s_world, 200); /* a REWIND is repeated then */
    stream_t stream = stream_at_next ();
    stream.next_seq += 5;
    send_run (stream_records (&stream, 1, 8));
}

static void send_ahead_and_ping (void)
{
    words_t before = {0};
    send_ahead ();
    hear (&before);
    client_ping (s_sender);
}

static void send_ending (void)
{
    stream_t stream = stream_at_next ();
    if (stream.next_seq == 0) {
        words_t before = {0};
        send_run (stream_records (&stream, 1, 8));
        hear (&before);
    }
    stream.next_seq = 1;
    send_run (stream_ending (&stream, HWS_RUN_DETACHED));
}

static void send_finalized (void)
{
    stream_t stream = stream_at_next ();
    if (stream.next_seq == 0) {
        words_t before = {0};
        send_run (stream_records (&stream, 1, 8));
        hear (&before);
    }
    stream.next_seq = 1;
    send_run (stream_ending (&stream, HWS_RUN_FINALIZED));
}

static void send_while_receiver_is_away (void)
{
    client_disconnect (s_receiver);
    send_next ();
}

static void send_violation (void)
{
    stream_t stream = stream_at_next ();
    send_run (stream_ending (&stream, HWS_RUN_DROPPED));
}

static void ask_detach (uint64_t seq)
{
    hws_control_t message = {
        .verb = HWS_VERB_DETACH,
        .as.detach = {.handle = s_handle, .sender_id = s_stream.sender_id, .seq = seq}};
    client_ask (s_sender, &message);
}

static void detach_at_end (void)
{
    ask_detach (1);
}

static void detach_ahead (void)
{
    ask_detach (9);
}

static void detach_below (void)
{
    ask_detach (0);
}

static void want_more (void)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = SESSION, .want_bytes = 4 * WORLD_WINDOW});
    batch_send (&batch, s_sender);
}

/*  The other sender has a record that takes all that there is beside the floors.  */
static void want_more_and_another_too (void)
{
    want_more ();
    client_find_grant (s_sender);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch,
                      (hws_window_t){.stream = OTHER_SESSION, .want_bytes = WORLD_BUFFER / 2});
    batch_send (&batch, s_other);
}

static void give_back (void)
{
    want_more_and_another_too ();
    client_find_grant (s_sender);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = SESSION, .limit_seq = UINT64_MAX});
    batch_send (&batch, s_sender);
}

static void cancel_own (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_CANCEL,
        .as.cancel = {.handle = s_handle, .sender_id = s_stream.sender_id, .code = "interrupted"}};
    client_ask (s_sender, &message);
}

static void say_bye (void)
{
    hws_control_t message = {.verb = HWS_VERB_BYE};
    client_ask (s_sender, &message);
}

static void say_hello (void)
{
    client_reconnect (s_sender);
}

static void lose_connection (void)
{
    client_disconnect (s_sender);
}

/*  ---- Time ---- */

static void be_silent (void)
{
    world_advance (&s_world, 3 * INTERVAL);
}

static void stay_away (void)
{
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS);
}

/*  ---- What others do ---- */

static void cancel_by_receiver (void)
{
    anchor_cancel (s_receiver, s_handle, s_stream.sender_id, "");
}

static void cancel_by_stranger (void)
{
    anchor_cancel (s_stranger, s_handle, s_stream.sender_id, "");
}

static void cancel_anchor_by_receiver (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static void cancel_anchor_by_other (void)
{
    anchor_cancel (s_other, s_handle, 0, "");
}

static void cancel_token (void)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = TOKEN};
    client_ask (s_stranger, &message);
}

static void ack_record (void)
{
    anchor_ack (s_receiver, s_stream.routing, 1, 12, false);
}

static const step_t events[] = {
    {"ATTACH again", attach_again, NULL},
    {"ATTACH with resume.ending cancelled(interrupted)", attach_with_ending, NULL},
    {"HELLO of its client", say_hello, NULL},
    {"connection closed", lose_connection, NULL},
    {"run that is next", send_next, NULL},
    {"run that is next, while the receiver is away", send_while_receiver_is_away, NULL},
    {"run that was seen", send_seen, NULL},
    {"run ahead", send_ahead, NULL},
    {"PING after that", send_ahead_and_ping, NULL},
    {"run against the rules", send_violation, NULL},
    {"DETACHED at its number", send_ending, NULL},
    {"FINALIZED at its number, mpsc", send_finalized, NULL},
    {"DETACH at its number", detach_at_end, NULL},
    {"DETACH ahead", detach_ahead, NULL},
    {"DETACH below its number", detach_below, NULL},
    {"WINDOW with want_bytes", want_more, NULL},
    {"WINDOW with want_bytes, then another sender's", want_more_and_another_too, NULL},
    {"WINDOW that gives back, after that", give_back, NULL},
    {"three silent intervals", be_silent, NULL},
    {"connection closed, grace over", stay_away, NULL},
    {"CANCEL by the receiver", cancel_by_receiver, NULL},
    {"CANCEL by its own client", cancel_own, NULL},
    {"CANCEL by anybody else", cancel_by_stranger, NULL},
    {"BYE of its client", say_bye, NULL},
    {"CANCEL of the anchor by the receiver", cancel_anchor_by_receiver, NULL},
    {"CANCEL of the anchor by another sender", cancel_anchor_by_other, NULL},
    {"CANCEL_TOKEN of its token", cancel_token, NULL},
    {"ACK of records", ack_record, NULL},
    {"ACK of the ending", ack_ending, NULL},
    {"OPEN again", open_again, NULL},
    {NULL, NULL, NULL},
};

static void seats_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Seat, at the broker",
                               .states = states,
                               .events = events,
                               .begin = begin_world,
                               .end = end_world,
                               .state = state_now,
                               .hear = hear};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TABLE_TEST (seats_follow_their_table)};
    return cmocka_run_group_tests_name ("seat table", tests, NULL, NULL);
}
