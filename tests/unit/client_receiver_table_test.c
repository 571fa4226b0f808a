/*  The state tables of an anchor at its receiver and of one sender's stream there, in
 *  docs/protocol.md, driven through the session and its reader.
 */
#include "client/rx_reader.h"
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { STREAM = 11, STREAM_ANEW = 12, SENDER_ID = 5, TOKEN = 77 };

static const hws_handle_t s_handle = {.hi = 99, .lo = 1};
static const hws_handle_t s_other_handle = {.hi = 99, .lo = 2};

static scripted_t s_broker;
static hws_session_receiver_t s_receiver;
static hws_rx_reader_t s_reader;
static words_t s_of_stream; /* what the program was told of the stream */
static words_t s_of_anchor; /*   and of the anchor */

static void ignore (hws_session_receiver_t *receiver)
{
    (void) receiver;
}

static hws_session_t *session (void)
{
    return &s_broker.session;
}

static hws_rx_t *rx (void)
{
    return &s_receiver.rx;
}

/*  ---- The program ---- */

static void see (const hws_event_t *event)
{
    static const char *const words[] = {
        [HWS_EVENT_ATTACHED] = "attached",   [HWS_EVENT_RECORD] = "record",
        [HWS_EVENT_ERROR] = "error",         [HWS_EVENT_DETACHED] = "detached",
        [HWS_EVENT_FINALIZED] = "finalized", [HWS_EVENT_DROPPED] = "dropped",
        [HWS_EVENT_CANCELLED] = "cancelled"};
    if (event->kind == HWS_EVENT_CLOSED && rx ()->result != 0) {
        words_add (&s_of_anchor, "refused(%s)", hws_error_word (rx ()->result));
    } else if (event->kind == HWS_EVENT_CLOSED) {
        words_add (&s_of_anchor, "closed(%s)", event->cause);
    } else if (event->cause) {
        words_add (&s_of_stream, "%s(%s)", words[event->kind], event->cause);
    } else {
        words_add (&s_of_stream, "%s", words[event->kind]);
    }
}

/*  It asks for the next event, and consumes so the one that it has in hand.  */
static void ask_next (void)
{
    hws_event_t event;
    while (!hws_rx_reader_next (&s_reader, &event)) {
        hws_rx_reader_publish (&s_reader);
        if (!hws_rx_has_events (rx ())) {
            return;
        }
        hws_rx_reader_take (&s_reader);
    }
    see (&event);
}

static bool has_events (void)
{
    return hws_rx_reader_has_more (&s_reader) || hws_rx_has_events (rx ());
}

/*  It sees what there is of the stream, and keeps the last event in hand.  */
static void read_stream (void)
{
    while (has_events () && !(s_reader.pending && s_reader.is_pending_ending)) {
        ask_next ();
    }
    scripted_pump (&s_broker);
}

static void add_all (words_t *said, const words_t *words)
{
    for (size_t i = 0; i < words->count; i++) {
        words_add (said, "%s", words->word[i]);
    }
}

static void forget (void)
{
    s_broker.of_connection.count = s_broker.of_streams.count = 0;
    s_of_stream.count = s_of_anchor.count = 0;
}

static void hear_anchor (words_t *said)
{
    while (has_events ()) {
        ask_next ();
    }
    scripted_pump (&s_broker);
    add_all (said, &s_broker.of_streams);
    add_all (said, &s_of_anchor);
    forget ();
}

static void hear_stream (words_t *said)
{
    read_stream ();
    add_all (said, &s_broker.of_streams);
    add_all (said, &s_of_stream);
    forget ();
}

/*  ---- The broker ---- */

static void give_run (hws_run_t run)
{
    run.stream = run.stream ? run.stream : STREAM;
    scripted_run (&s_broker, &run);
    read_stream ();
}

static void give_attached_as (uint64_t id)
{
    uint8_t body[512];
    size_t size = 0;
    const hws_attached_t attached = {.handle = s_handle, .sender_id = SENDER_ID};
    assert_int_equal (hws_attached_encode (&attached, body, sizeof body, &size), 0);
    give_run ((hws_run_t){.stream = id, .type = HWS_RUN_ATTACHED, .body = hws_bytes (body, size)});
}

static void give_attached (void)
{
    give_attached_as (STREAM);
}

static void give_record (uint64_t seq)
{
    const uint8_t body[] = {0, 0, 0, 1, 'x'};
    give_run ((hws_run_t){.first_seq = seq, .count = 1, .body = hws_bytes (body, sizeof body)});
}

static void give_ending (hws_run_type_t type, uint64_t seq, uint16_t cause)
{
    uint8_t body[HWS_ENDING_HEADER_SIZE];
    hws_ending_put (body, &(hws_ending_t){.cause = cause});
    give_run ((hws_run_t){.first_seq = seq,
                          .count = type == HWS_RUN_DETACHED,
                          .type = (uint8_t) type,
                          .body = hws_bytes (body, sizeof body)});
}

static hws_control_t open_ok (hws_handle_t handle)
{
    return (hws_control_t){.verb = HWS_VERB_OPEN,
                           .as.open_ok = {.handle = handle,
                                          .heartbeat_interval_ms = HWS_INTERVAL_DEFAULT,
                                          .reconnect_grace_ms = 10000,
                                          .orphan_ttl_ms = 30000,
                                          .buffer_bytes = 1 << 20,
                                          .record_bytes = 1 << 16}};
}

/*  ---- The anchor: states ---- */

static void begin (void)
{
    scripted_begin (&s_broker);
    s_receiver =
        (hws_session_receiver_t){.notify = ignore, .flush = ignore, .options.cancel_token = TOKEN};
    forget ();
    hws_session_open (session (), s_broker.now, &s_receiver);
    hws_rx_reader_init (&s_reader, rx ());
    s_reader.is_manual = true;
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
}

static void end (void)
{
    hws_rx_reader_fini (&s_reader);
    hws_session_remove_receiver (&s_receiver);
    scripted_end (&s_broker);
}

static const char *anchor_state (void)
{
    static const char *const names[] = {[HWS_RX_OPENING] = "opening",
                                        [HWS_RX_OPEN] = "open",
                                        [HWS_RX_CLOSING] = "closing",
                                        [HWS_RX_CLOSED] = "closed"};
    const bool is_owing = rx ()->state == HWS_RX_CLOSED && s_receiver.is_close_owed;
    return is_owing ? "owing" : names[rx ()->state];
}

static void reach_opening (void)
{
}

static void reach_open (void)
{
    scripted_answer (&s_broker, open_ok (s_handle));
    give_attached ();
}

static void cancel_it (void)
{
    hws_rx_reader_discard (&s_reader);
    hws_session_close (session (), s_broker.now, &s_receiver, "enough");
    scripted_pump (&s_broker);
}

static void reach_closing (void)
{
    reach_open ();
    cancel_it ();
}

static void reach_owing (void)
{
    reach_closing ();
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
}

static void close_as (const char *code)
{
    hws_control_t message = {.verb = HWS_VERB_ANCHOR_CLOSED, .as.anchor_closed.handle = s_handle};
    snprintf (message.as.anchor_closed.code, sizeof message.as.anchor_closed.code, "%s", code);
    scripted_say (&s_broker, message);
}

static void close_it (void)
{
    close_as ("expired");
}

static void supersede (void)
{
    close_as ("superseded");
}

static void reach_closed (void)
{
    reach_open ();
    close_it ();
}

static const step_t anchor_states[] = {
    {"opening", reach_opening, NULL}, {"open", reach_open, NULL},
    {"closing", reach_closing, NULL}, {"owing", reach_owing, NULL},
    {"closed", reach_closed, NULL},   {NULL, NULL, NULL},
};

/*  ---- The anchor: events ---- */

static void greet_again (void)
{
    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);
}

/*  An anchor that is open is asked for again after a RESYNC.  */
static void ask_again (void)
{
    if (rx ()->state == HWS_RX_OPEN || rx ()->state == HWS_RX_CLOSING) {
        greet_again ();
        forget ();
    }
}

static void answer_open (void)
{
    ask_again ();
    scripted_answer (&s_broker, open_ok (s_handle));
}

static void answer_open_otherwise (void)
{
    ask_again ();
    scripted_answer (&s_broker, open_ok (s_other_handle));
}

static void refuse_open (void)
{
    ask_again ();
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_ENAME_IN_USE);
}

static void cancel_before_answer (void)
{
    cancel_it ();
    scripted_answer (&s_broker, open_ok (s_handle));
}

static void cancel_token (void)
{
    hws_session_cancel_token (session (), s_broker.now, TOKEN, "enough");
    scripted_pump (&s_broker);
}

static void lose (void)
{
    scripted_lose (&s_broker);
}

static void cancel_unconnected (void)
{
    lose ();
    forget ();
    cancel_it ();
}

static void wait_no_longer (void)
{
    hws_session_close_here (&s_receiver, HWS_ETIMEOUT);
    scripted_pump (&s_broker);
}

static void answer_nothing (void)
{
    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);
}

static void give_run_ahead (void)
{
    give_record (9);
}

static void answer_cancel (void)
{
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});
}

static void refuse_cancel (void)
{
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_ECLOSED);
}

static void come_back (void)
{
    lose ();
    scripted_return (&s_broker);
}

static void come_back_to_an_epoch (void)
{
    lose ();
    s_broker.epoch++;
    scripted_return (&s_broker);
}

static void come_back_to_another (void)
{
    s_broker.broker_id++;
    come_back_to_an_epoch ();
}

/*  The broker of a new epoch was asked, and what was said to it is not heard here.  */
static void resume (void)
{
    come_back_to_an_epoch ();
    while (has_events ()) {
        ask_next ();
    }
    scripted_pump (&s_broker);
    forget ();
}

static void answer_resume (void)
{
    resume ();
    scripted_answer (&s_broker, open_ok (s_handle));
}

static void refuse_resume_closed (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_ECLOSED);
}

static void refuse_resume_superseded (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_ESUPERSEDED);
}

static void refuse_resume_for_now (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_EBUSY);
    scripted_pass (&s_broker, HWS_OPEN_AGAIN_MS);
}

static void refuse_cancel_for_now (void)
{
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EBUSY);
    scripted_pass (&s_broker, HWS_OPEN_AGAIN_MS);
}

static void goaway (void)
{
    scripted_say (&s_broker,
                  (hws_control_t){.verb = HWS_VERB_GOAWAY, .as.reason = "a new version"});
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_ECLOSED);
}

static void leave_and_come_back (void)
{
    goaway ();
    come_back_to_an_epoch ();
}

static void be_refused (void)
{
    lose ();
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    scripted_refuse (&s_broker, HWS_VERB_HELLO, HWS_ELIMIT);
}

static void give_up (void)
{
    s_broker.is_refused = true;
    lose ();
    scripted_pass (&s_broker, SCRIPTED_GIVE_UP_MS);
}

static const step_t anchor_events[] = {
    {"program cancels it", cancel_it, NULL},
    {"program cancels it, without a connection", cancel_unconnected, "closing"},
    {"program cancels it, then OPEN is answered Ok", cancel_before_answer,
     "open, closing, owing, closed"},
    {"program cancels its token", cancel_token, NULL},
    {"program waits no longer", wait_no_longer, NULL},
    {"OPEN answered Ok", answer_open, NULL},
    {"OPEN answered Ok, with another handle", answer_open_otherwise, NULL},
    {"OPEN refused", refuse_open, NULL},
    {"3 s without an answer", answer_nothing, NULL},
    {"run ahead", give_run_ahead, NULL},
    {"CANCEL answered Ok", answer_cancel, NULL},
    {"CANCEL refused", refuse_cancel, NULL},
    {"CANCEL refused with busy, 500 ms", refuse_cancel_for_now, NULL},
    {"ANCHOR_CLOSED(expired)", close_it, NULL},
    {"ANCHOR_CLOSED(superseded)", supersede, NULL},
    {"RESYNC, HELLO answered Ok", greet_again, NULL},
    {"connection lost", lose, NULL},
    {"new connection, HELLO refused", be_refused, NULL},
    {"new connection", come_back, NULL},
    {"new connection, new epoch", come_back_to_an_epoch, NULL},
    {"new epoch, OPEN answered Ok", answer_resume, NULL},
    {"new epoch, OPEN refused with closed", refuse_resume_closed, NULL},
    {"new epoch, OPEN refused with superseded", refuse_resume_superseded, NULL},
    {"new epoch, OPEN refused with busy, 500 ms", refuse_resume_for_now, NULL},
    {"new connection, another broker", come_back_to_another, NULL},
    {"GOAWAY, OPEN refused with closed", goaway, NULL},
    {"GOAWAY, OPEN refused with closed, new epoch", leave_and_come_back, NULL},
    {"no connection for give_up_ms", give_up, NULL},
    {NULL, NULL, NULL},
};

static void anchors_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Anchor, at its receiver",
                               .states = anchor_states,
                               .events = anchor_events,
                               .begin = begin,
                               .end = end,
                               .state = anchor_state,
                               .hear = hear_anchor};

    machine_drive (&machine);
}

/*  ---- The stream: states ---- */

static const hws_rx_stream_t *the_stream (void)
{
    return hws_rx_find_sender (&s_receiver.rx, SENDER_ID);
}

static const char *stream_state (void)
{
    const hws_rx_stream_t *const stream = the_stream ();
    switch (stream->state) {
    case HWS_RX_STREAM_LIVE:
        return stream->is_refused ? "refused" : stream->is_cancel_due ? "cancelling" : "live";
    case HWS_RX_STREAM_ENDED:
        return "ended";
    case HWS_RX_STREAM_FINISHED:
        break;
    }
    return "finished";
}

static void cancel_sender (void)
{
    hws_rx_cancel_sender (rx (), SENDER_ID, "too slow");
    scripted_pump (&s_broker);
}

static void reach_cancelling (void)
{
    reach_open ();
    cancel_sender ();
}

/*  A run of one record that holds none.  */
static void give_malformed (void)
{
    give_run ((hws_run_t){.first_seq = 0, .count = 1});
}

static void reach_refused (void)
{
    reach_open ();
    give_malformed ();
}

static void give_own_ending (void)
{
    const hws_rx_stream_t *const stream = the_stream ();
    give_ending (HWS_RUN_DETACHED, stream->next_seq, HWS_CAUSE_NONE);
}

static void reach_ended (void)
{
    reach_open ();
    give_ending (HWS_RUN_DETACHED, 0, HWS_CAUSE_NONE);
}

static void reach_finished (void)
{
    reach_ended ();
    ask_next ();
    scripted_pump (&s_broker);
}

static const step_t stream_states[] = {
    {"live", reach_open, NULL},         {"cancelling", reach_cancelling, NULL},
    {"refused", reach_refused, NULL},   {"ended", reach_ended, NULL},
    {"finished", reach_finished, NULL}, {NULL, NULL, NULL},
};

/*  ---- The stream: events ---- */

static void give_next (void)
{
    const hws_rx_stream_t *const stream = the_stream ();
    give_record (stream->next_seq);
}

static void give_error (void)
{
    const hws_rx_stream_t *const stream = the_stream ();
    give_run ((hws_run_t){.first_seq = stream->next_seq,
                          .count = 1,
                          .type = HWS_RUN_ERROR,
                          .body = hws_bytes_of_text ("oh")});
}

static void give_seen (void)
{
    give_next ();
    forget ();
    give_record (0);
}

static void give_broker_ending (void)
{
    give_ending (HWS_RUN_DROPPED, 0, HWS_CAUSE_HEARTBEAT);
}

static void consume (void)
{
    ask_next ();
    scripted_pump (&s_broker);
}

static void consume_record (void)
{
    give_next ();
    forget ();
    consume ();
}

static void attach_anew (void)
{
    resume ();
    scripted_answer (&s_broker, open_ok (s_handle));
    forget ();
    give_attached_as (STREAM_ANEW);
}

static const step_t stream_events[] = {
    {"RECORDS at its number", give_next, NULL},
    {"RECORDS that were seen", give_seen, NULL},
    {"RECORDS ahead", give_run_ahead, NULL},
    {"RECORDS, malformed", give_malformed, NULL},
    {"ERROR at its number", give_error, NULL},
    {"DETACHED at its number", give_own_ending, NULL},
    {"broker's ending, dropped(heartbeat)", give_broker_ending, NULL},
    {"ATTACHED again", give_attached, NULL},
    {"program has consumed a record", consume_record, "ended, finished"},
    {"program has consumed all", consume, NULL},
    {"program cancels the sender", cancel_sender, NULL},
    {"RESYNC, HELLO answered Ok", greet_again, NULL},
    {"program cancels the anchor, without a connection", cancel_unconnected, NULL},
    {"ANCHOR_CLOSED(expired)", close_it, NULL},
    {"ANCHOR_CLOSED(superseded)", supersede, NULL},
    {"new connection, new epoch", come_back_to_an_epoch, NULL},
    {"new epoch, ATTACHED under another routing session id", attach_anew, NULL},
    {"new epoch, OPEN refused with closed", refuse_resume_closed, NULL},
    {"new connection, another broker", come_back_to_another, NULL},
    {NULL, NULL, NULL},
};

static void streams_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Sender's stream, at the receiver",
                               .states = stream_states,
                               .events = stream_events,
                               .begin = begin,
                               .end = end,
                               .state = stream_state,
                               .hear = hear_stream};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST (anchors_follow_their_table),
        TABLE_TEST (streams_follow_their_table),
    };
    return cmocka_run_group_tests_name ("receiver table", tests, NULL, NULL);
}
