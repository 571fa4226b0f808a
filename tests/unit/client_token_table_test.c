/*  The state table of a token that a client has cancelled, in docs/protocol.md, driven through
 *  the session.
 */
#include "client/session_part.h"
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { TOKEN = 77 };

static scripted_t s_broker;
static hws_session_sender_t s_sender; /* attaches with the token, when an event says so */
static bool s_has_sender;
static words_t s_told; /* what the program was told */

static hws_session_t *session (void)
{
    return &s_broker.session;
}

static int result (void)
{
    return hws_session_token_result (session (), TOKEN);
}

static bool is_remembered (void)
{
    return hws_session_token_reason (session (), s_broker.now, TOKEN) != NULL;
}

/*  More is known of the cancel.  */
static void notify (hws_session_t *self)
{
    (void) self;
    if (result () == 0) {
        words_add (&s_told, "done");
    } else {
        words_add (&s_told, "refused(%s)", hws_error_word (result ()));
    }
}

static void ignore (hws_session_sender_t *sender)
{
    (void) sender;
}

static void begin (void)
{
    scripted_begin (&s_broker);
    session ()->options.notify = notify;
    s_has_sender = false;
    s_told.count = 0;
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
}

static void end (void)
{
    if (s_has_sender) {
        hws_session_remove_sender (&s_sender);
    }
    scripted_end (&s_broker);
}

static void hear (words_t *said)
{
    scripted_pump (&s_broker);
    for (size_t i = 0; i < s_broker.of_streams.count; i++) {
        words_add (said, "%s", s_broker.of_streams.word[i]);
    }
    for (size_t i = 0; i < s_told.count; i++) {
        words_add (said, "%s", s_told.word[i]);
    }
    if (s_has_sender && s_sender.tx.state == HWS_TX_ENDED) {
        words_add (said, "refused(%s)", hws_error_word (s_sender.tx.result));
    }
    s_broker.of_streams.count = s_broker.of_connection.count = s_told.count = 0;
}

/*  ---- States ---- */

static const char *state_now (void)
{
    const hws_control_t answer = {.verb = HWS_VERB_CANCEL_TOKEN,
                                  .has_id = true,
                                  .id = s_broker.asked_id[HWS_VERB_CANCEL_TOKEN]};
    if (hws_session_find_request (session (), &answer)) {
        return "asking";
    }
    if (!is_remembered ()) {
        return "unknown";
    }
    const bool is_open = result () == HWS_EWOULD_BLOCK || result () == HWS_EUNREACHABLE;
    return is_open ? "asking" : "answered"; /* asked when there is a connection again */
}

static void leave_unknown (void)
{
}

static void cancel (void)
{
    hws_session_cancel_token (session (), s_broker.now, TOKEN, "enough");
    scripted_pump (&s_broker);
}

static void answer_ok (void)
{
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL_TOKEN});
}

static void reach_answered (void)
{
    cancel ();
    answer_ok ();
}

static const step_t states[] = {
    {"unknown", leave_unknown, NULL},
    {"asking", cancel, NULL},
    {"answered", reach_answered, NULL},
    {NULL, NULL, NULL},
};

/*  ---- Events ---- */

static void lose (void)
{
    scripted_lose (&s_broker);
}

static void cancel_unconnected (void)
{
    lose ();
    cancel ();
}

static void attach (void)
{
    s_sender = (hws_session_sender_t){.notify = ignore, .anchor = "a", .cancel_token = TOKEN};
    s_has_sender = true;
    hws_session_attach (session (), s_broker.now, &s_sender);
}

static void refuse (void)
{
    scripted_refuse (&s_broker, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT);
}

/*  The broker is there and answers nothing.  */
static void let_pass (hws_ms_t length_ms)
{
    for (hws_ms_t past = 0; past < length_ms; past += HWS_REQUEST_RETRY_MS) {
        scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);
        scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_PONG});
    }
}

static void answer_nothing (void)
{
    let_pass (HWS_REQUEST_RETRY_MS);
}

static void answer_nothing_for_long (void)
{
    let_pass (HWS_TOKEN_TTL_MS);
}

static void greet_again (void)
{
    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);
}

static void stay_unconnected (void)
{
    s_broker.is_refused = true;
    lose ();
    scripted_pass (&s_broker, SCRIPTED_CONNECT_MS);
}

static void come_back (void)
{
    lose ();
    scripted_return (&s_broker);
}

static void come_back_to_another (void)
{
    lose ();
    s_broker.epoch++;
    scripted_return (&s_broker);
}

static const step_t events[] = {
    {"program cancels it", cancel, NULL},
    {"program cancels it, without a connection", cancel_unconnected, NULL},
    {"program attaches with it", attach, NULL},
    {"CANCEL_TOKEN answered Ok", answer_ok, NULL},
    {"CANCEL_TOKEN refused", refuse, NULL},
    {"3 s without an answer", answer_nothing, NULL},
    {"120 s, without an answer", answer_nothing_for_long, NULL},
    {"RESYNC, HELLO answered Ok", greet_again, NULL},
    {"no connection for 5 s", stay_unconnected, NULL},
    {"new connection", come_back, NULL},
    {"new connection, new epoch", come_back_to_another, NULL},
    {NULL, NULL, NULL},
};

static void cancelled_tokens_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Cancelled token, at the client",
                               .states = states,
                               .events = events,
                               .begin = begin,
                               .end = end,
                               .state = state_now,
                               .hear = hear};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TABLE_TEST (cancelled_tokens_follow_their_table)};
    return cmocka_run_group_tests_name ("token table of clients", tests, NULL, NULL);
}
