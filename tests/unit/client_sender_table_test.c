/*  The state tables of a client's connection and of a sender's stream at its client, in
 *  docs/protocol.md, driven through the session.
 */
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { SENDER_ID = 5, TOKEN = 77 };

static const hws_handle_t s_handle = {.hi = 99, .lo = 1};

static scripted_t s_broker;
static hws_session_sender_t s_sender;
static bool s_was_ended; /* when the words were taken last */

static void ignore (hws_session_sender_t *sender)
{
    (void) sender;
}

static hws_session_t *session (void)
{
    return &s_broker.session;
}

static void forget (void)
{
    s_broker.of_connection.count = s_broker.of_streams.count = 0;
    s_was_ended = s_sender.tx.state == HWS_TX_ENDED;
}

static void add_all (words_t *said, const words_t *words)
{
    for (size_t i = 0; i < words->count; i++) {
        words_add (said, "%s", words->word[i]);
    }
}

/*  A session that has said HELLO, with one sender.  */
static void begin (void)
{
    scripted_begin (&s_broker);
    s_sender = (hws_session_sender_t){.notify = ignore, .anchor = "a", .cancel_token = TOKEN};
    hws_session_attach (session (), s_broker.now, &s_sender);
}

static void end (void)
{
    hws_session_remove_sender (&s_sender);
    scripted_end (&s_broker);
}

static void connect_now (void)
{
    scripted_pass (&s_broker, 0);
}

/*  ---- The connection: states ---- */

static const char *connection_state (void)
{
    static const char *const names[] = {[HWS_SESSION_DOWN] = "no connection",
                                        [HWS_SESSION_GREETING] = "greeting",
                                        [HWS_SESSION_UP] = "up",
                                        [HWS_SESSION_LEAVING] = "leaving",
                                        [HWS_SESSION_GONE] = "gone"};
    return names[session ()->state];
}

static void hear_connection (words_t *said)
{
    scripted_pump (&s_broker);
    add_all (said, &s_broker.of_connection);
    add_all (said, &s_broker.of_streams);
    forget ();
}

static void reach_up (void)
{
    connect_now ();
    scripted_welcome (&s_broker);
}

static void reach_no_connection (void)
{
    reach_up ();
    scripted_lose (&s_broker);
}

static void leave (void)
{
    hws_session_leave (session (), s_broker.now);
    scripted_pump (&s_broker);
}

static void reach_leaving (void)
{
    reach_up ();
    leave ();
}

static void reach_gone (void)
{
    reach_leaving ();
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_BYE});
}

static const step_t connection_states[] = {
    {"no connection", reach_no_connection, NULL},
    {"greeting", connect_now, NULL},
    {"up", reach_up, NULL},
    {"leaving", reach_leaving, NULL},
    {"gone", reach_gone, NULL},
    {NULL, NULL, NULL},
};

/*  ---- The connection: events ---- */

static void wait_backoff (void)
{
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
}

static void answer_hello (void)
{
    scripted_welcome (&s_broker);
}

static void refuse_hello (void)
{
    scripted_refuse (&s_broker, HWS_VERB_HELLO, HWS_ELIMIT);
}

static void answer_no_hello (void)
{
    scripted_pass (&s_broker, HWS_HELLO_WAIT_MS);
}

static void resync (void)
{
    scripted_resync (&s_broker);
}

static void lose (void)
{
    scripted_lose (&s_broker);
}

static void be_quiet (void)
{
    scripted_pass (&s_broker, HWS_INTERVAL_DEFAULT / 2);
}

static void be_silent (void)
{
    scripted_pass (&s_broker, 2 * HWS_INTERVAL_DEFAULT - 1);
    forget ();
    scripted_pass (&s_broker, 1);
}

static void ping (void)
{
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_PING});
}

static void goaway (void)
{
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_GOAWAY, .as.reason = "drained"});
}

static void answer_bye (void)
{
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_BYE});
}

static const step_t connection_events[] = {
    {"back-off is over", wait_backoff, NULL},
    {"HELLO answered Ok", answer_hello, NULL},
    {"HELLO refused", refuse_hello, NULL},
    {"HELLO not answered for 5 s", answer_no_hello, "no connection, up, leaving, gone"},
    {"RESYNC", resync, NULL},
    {"connection closed", lose, NULL},
    {"half an interval", be_quiet, "no connection"},
    {"two silent intervals", be_silent, "no connection, greeting"},
    {"PING", ping, "no connection, gone"},
    {"GOAWAY", goaway, "no connection, gone"},
    {"program leaves", leave, NULL},
    {"BYE answered", answer_bye, NULL},
    {NULL, NULL, NULL},
};

static void connections_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Connection, at the client",
                               .states = connection_states,
                               .events = connection_events,
                               .begin = begin,
                               .end = end,
                               .state = connection_state,
                               .hear = hear_connection};

    machine_drive (&machine);
}

/*  ---- The sender: states ---- */

static const char *sender_state (void)
{
    static const char *const names[] = {[HWS_TX_ATTACHING] = "attaching",
                                        [HWS_TX_OPEN] = "open",
                                        [HWS_TX_ENDING] = "ending",
                                        [HWS_TX_CANCELLING] = "cancelling",
                                        [HWS_TX_ENDED] = "ended"};
    const hws_tx_t *const tx = &s_sender.tx;
    if (s_sender.is_early && hws_tx_is_new (tx)) {
        return tx->has_ending ? "early ending" : "early";
    }
    return s_sender.is_cancel_owed ? "owing" : names[s_sender.tx.state];
}

/*  How the program is told that its stream ended.  */
static void add_result (words_t *said)
{
    const hws_tx_t *const tx = &s_sender.tx;
    if (tx->result == 0) {
        words_add (said, "detached");
    } else if (strcmp (tx->cause, "cancelled") == 0) {
        words_add (said, "refused(cancelled)"); /* a code, and no cause */
    } else {
        words_add (said, "%s(%s)",
                   tx->result == HWS_ECANCELLED   ? "cancelled"
                   : tx->result == HWS_ETRANSPORT ? "dropped"
                                                  : "refused",
                   tx->cause);
    }
}

static void hear_sender (words_t *said)
{
    scripted_pump (&s_broker);
    add_all (said, &s_broker.of_streams);
    if (s_sender.tx.state == HWS_TX_ENDED && !s_was_ended) {
        add_result (said);
    }
    forget ();
}

static hws_control_t attach_ok (void)
{
    return (hws_control_t){.verb = HWS_VERB_ATTACH,
                           .as.attach_ok = {.handle = s_handle,
                                            .streaming_transport_key = HWS_TRANSPORT_MUX,
                                            .heartbeat_interval_ms = HWS_INTERVAL_DEFAULT,
                                            .sender_id = SENDER_ID,
                                            .initial_credit = 1000,
                                            .slot_byte_budget = 1 << 16}};
}

static void changed (void)
{
    hws_session_changed (&s_sender);
    scripted_pump (&s_broker);
}

static void send_record (void)
{
    hws_tx_append (&s_sender.tx, "x", 1);
    changed ();
}

static void end_it (void)
{
    hws_tx_detach (&s_sender.tx);
    changed ();
}

static void finalize_it (void)
{
    hws_tx_finalize (&s_sender.tx);
    changed ();
}

static void cancel_it (void)
{
    hws_session_cancel (session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);
}

/*  Acknowledges up to `acked`, of two records and the ending.  */
static void grant (uint64_t acked, uint32_t flags)
{
    const hws_grant_t it = {.stream = s_sender.session_id,
                            .acked_seq = acked,
                            .next_seq = acked,
                            .limit_seq = 1000,
                            .limit_bytes = 1 << 16,
                            .flags = flags};
    scripted_grant (&s_broker, &it);
}

static void reach_open (void)
{
    reach_up ();
    scripted_answer (&s_broker, attach_ok ());
    send_record ();
    send_record ();
}

static void reach_early (void)
{
    hws_session_remove_sender (&s_sender);
    s_sender.is_early = true;
    hws_session_attach (session (), s_broker.now, &s_sender);
    reach_up ();
    send_record ();
    send_record ();
}

static void reach_early_ending (void)
{
    reach_early ();
    end_it ();
}

static void reach_ending (void)
{
    reach_open ();
    end_it ();
}

static void reach_cancelling (void)
{
    reach_ending ();
    cancel_it ();
}

static void reach_owing (void)
{
    reach_cancelling ();
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
}

static void reach_ended (void)
{
    reach_ending ();
    grant (3, 0);
}

static const step_t sender_states[] = {
    {"attaching", reach_up, NULL},
    {"early", reach_early, NULL},
    {"early ending", reach_early_ending, NULL},
    {"open", reach_open, NULL},
    {"ending", reach_ending, NULL},
    {"cancelling", reach_cancelling, NULL},
    {"owing", reach_owing, NULL},
    {"ended", reach_ended, NULL},
    {NULL, NULL, NULL},
};

/*  ---- The sender: events ---- */

/*  A stream that is attached asks again after a RESYNC.  */
static void ask_again (void)
{
    words_t said = {0};
    if (!hws_tx_is_new (&s_sender.tx) && s_sender.tx.state != HWS_TX_ENDED) {
        resync ();
        answer_hello ();
        hear_sender (&said);
    }
}

static void answer_attach (void)
{
    ask_again ();
    scripted_answer (&s_broker, attach_ok ());
}

static void answer_attach_kept (void)
{
    ask_again ();
    hws_control_t message = attach_ok ();
    message.as.attach_ok.early_kept = true;
    scripted_answer (&s_broker, message);
}

static void answer_attach_ended (void)
{
    ask_again ();
    hws_control_t message = attach_ok ();
    message.as.attach_ok.has_ended = true;
    strcpy (message.as.attach_ok.ending, "dropped");
    strcpy (message.as.attach_ok.code, "heartbeat");
    scripted_answer (&s_broker, message);
}

/*  The broker has forgotten the stream and made a seat as for a new one.  */
static void answer_attach_anew (void)
{
    ask_again ();
    hws_control_t message = attach_ok ();
    message.as.attach_ok.sender_id++;
    scripted_answer (&s_broker, message);
}

/*  The anchor has a front of its own: nobody is seated here.  */
static void say_elsewhere (void)
{
    hws_control_t message = attach_ok ();
    message.as.attach_ok.sender_id = 0;
    message.as.attach_ok.initial_credit = 0;
    strcpy (message.as.attach_ok.streaming_transport_key, HWS_TRANSPORT_DEDICATED);
    strcpy (message.as.attach_ok.endpoint, "tcp://127.0.0.1:40001");
    scripted_answer (&s_broker, message);
}

static void answer_attach_elsewhere (void)
{
    ask_again ();
    say_elsewhere ();
}

static void cancel_before_elsewhere (void)
{
    cancel_it ();
    say_elsewhere ();
}

static void refuse_attach (void)
{
    ask_again ();
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);
}

static void cancel_before_answer (void)
{
    cancel_it ();
    scripted_answer (&s_broker, attach_ok ());
}

static void cancel_token (void)
{
    hws_session_cancel_token (session (), s_broker.now, TOKEN, "enough");
    scripted_pump (&s_broker);
}

static void cancel_anchor (void)
{
    hws_session_cancel_anchor (session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);
}

static void answer_nothing (void)
{
    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);
}

static void grant_some (void)
{
    grant (1, 0);
}

static void rewind_it (void)
{
    grant (1, HWS_GRANT_REWIND);
}

static void ask_back (void)
{
    grant (1, HWS_GRANT_RETURN);
}

static void grant_end (void)
{
    grant (3, 0);
}

static void tell_ending (void)
{
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_STREAM_CANCEL,
                                             .as.stream_cancel = {.session_id = s_sender.session_id,
                                                                  .ending = "dropped",
                                                                  .code = "protocol"}});
}

static void tell_unknown (void)
{
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_STREAM_CANCEL,
                                             .as.stream_cancel = {.session_id = s_sender.session_id,
                                                                  .code = "unknown_stream"}});
}

static void answer_cancel (void)
{
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});
}

static void refuse_cancel (void)
{
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EENDED);
}

static void greet_again (void)
{
    resync ();
    answer_hello ();
}

static void cancel_unconnected (void)
{
    words_t said = {0};
    lose ();
    hear_sender (&said);
    cancel_it ();
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

/*  The broker of a new epoch has been asked.  */
static void resume (void)
{
    words_t said = {0};
    come_back_to_an_epoch ();
    hear_sender (&said);
}

static void answer_resume (void)
{
    resume ();
    scripted_answer (&s_broker, attach_ok ());
}

static void answer_resume_ended (void)
{
    resume ();
    hws_control_t message = attach_ok ();
    message.as.attach_ok.has_ended = true;
    strcpy (message.as.attach_ok.ending, "detached");
    scripted_answer (&s_broker, message);
}

static void refuse_resume_closed (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
}

static void refuse_resume_denied (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_EDENIED);
}

static void refuse_resume_for_now (void)
{
    resume ();
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_EBUSY);
    scripted_pass (&s_broker, HWS_ATTACH_AGAIN_MS);
}

static void cancel_resume (void)
{
    resume ();
    cancel_it ();
}

static void refuse_before_leaving (void)
{
    ask_again ();
    goaway ();
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    scripted_pass (&s_broker, HWS_ATTACH_AGAIN_MS);
}

static void leave_and_come_back (void)
{
    goaway ();
    come_back_to_an_epoch ();
}

static void be_refused (void)
{
    lose ();
    wait_backoff ();
    refuse_hello ();
}

static void give_up (void)
{
    s_broker.is_refused = true;
    lose ();
    scripted_pass (&s_broker, SCRIPTED_GIVE_UP_MS);
}

static const step_t sender_events[] = {
    {"program sends a record", send_record, NULL},
    {"program ends it", end_it, NULL},
    {"program finalizes it", finalize_it, NULL},
    {"program cancels it", cancel_it, NULL},
    {"program cancels it, without a connection", cancel_unconnected, "cancelling"},
    {"program cancels it, then ATTACH is answered Ok", cancel_before_answer,
     "open, ending, cancelling, owing, ended"},
    {"program cancels its token", cancel_token, NULL},
    {"program cancels the anchor", cancel_anchor, "attaching, early, early ending"},
    {"program cancels it, then ATTACH is answered Ok with endpoint", cancel_before_elsewhere,
     "open, ending, cancelling, owing, ended"},
    {"ATTACH answered Ok", answer_attach, NULL},
    {"ATTACH answered Ok with early kept", answer_attach_kept, NULL},
    {"ATTACH answered Ok with ended dropped(heartbeat)", answer_attach_ended, NULL},
    {"ATTACH answered Ok with another sender_id", answer_attach_anew,
     "attaching, early, early ending"},
    {"ATTACH answered Ok with endpoint", answer_attach_elsewhere, NULL},
    {"ATTACH refused", refuse_attach, NULL},
    {"3 s without an answer", answer_nothing, NULL},
    {"GRANT, records before the ending", grant_some, NULL},
    {"GRANT with REWIND", rewind_it, NULL},
    {"GRANT with RETURN", ask_back, NULL},
    {"GRANT behind the ending", grant_end, NULL},
    {"STREAM_CANCEL with dropped(protocol)", tell_ending, NULL},
    {"STREAM_CANCEL unknown_stream", tell_unknown, NULL},
    {"CANCEL answered Ok", answer_cancel, NULL},
    {"CANCEL answered Err(ended)", refuse_cancel, NULL},
    {"RESYNC, HELLO answered Ok", greet_again, NULL},
    {"connection lost", lose, NULL},
    {"new connection, HELLO refused", be_refused, NULL},
    {"new connection", come_back, NULL},
    {"new connection, new epoch", come_back_to_an_epoch, NULL},
    {"new epoch, ATTACH answered Ok", answer_resume, NULL},
    {"new epoch, ATTACH answered Ok with ended detached", answer_resume_ended, NULL},
    {"new epoch, ATTACH refused with closed", refuse_resume_closed, NULL},
    {"new epoch, ATTACH refused with denied", refuse_resume_denied, NULL},
    {"new epoch, ATTACH refused with busy, 500 ms", refuse_resume_for_now, NULL},
    {"new epoch, program cancels it", cancel_resume, NULL},
    {"new connection, another broker", come_back_to_another, NULL},
    {"GOAWAY, ATTACH refused with closed", refuse_before_leaving, NULL},
    {"GOAWAY, new connection, new epoch", leave_and_come_back, NULL},
    {"no connection for give_up_ms", give_up, NULL},
    {NULL, NULL, NULL},
};

static void senders_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Sender's stream, at its client",
                               .states = sender_states,
                               .events = sender_events,
                               .begin = begin,
                               .end = end,
                               .state = sender_state,
                               .hear = hear_sender};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TABLE_TEST (connections_follow_their_table),
        TABLE_TEST (senders_follow_their_table),
    };
    return cmocka_run_group_tests_name ("sender table", tests, NULL, NULL);
}
