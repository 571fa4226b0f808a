/*  Cancel tokens at a session, and a sender's cancel of its anchor; the broker is the test.
 */
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOKEN = 77 };

static const hws_handle_t s_handle = {.hi = 99, .lo = 1};

static scripted_t s_broker;
static hws_session_sender_t s_sender;
static hws_session_receiver_t s_receiver;
static unsigned s_told; /* notifications of tokens, senders and receivers */

static void token_told (hws_session_t *session)
{
    (void) session;
    s_told++;
}

static void sender_told (hws_session_sender_t *sender)
{
    (void) sender;
    s_told++;
}

static void receiver_told (hws_session_receiver_t *receiver)
{
    (void) receiver;
    s_told++;
}

static hws_session_t *session (void)
{
    return &s_broker.session;
}

/*  A session that is connected, with nothing.  */
static int set_up (void **state)
{
    (void) state;
    scripted_begin (&s_broker);
    s_broker.session.options.notify = token_told;
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
    s_sender = (hws_session_sender_t){.notify = sender_told};
    s_receiver = (hws_session_receiver_t){.notify = receiver_told};
    s_told = 0;
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    if (s_sender.session) {
        hws_session_remove_sender (&s_sender);
    }
    if (s_receiver.session) {
        hws_session_remove_receiver (&s_receiver);
    }
    scripted_end (&s_broker);
    return 0;
}

static void attach (uint64_t token)
{
    s_sender.has_handle = true;
    s_sender.handle = s_handle;
    s_sender.cancel_token = token;
    hws_session_attach (session (), s_broker.now, &s_sender);
    scripted_pump (&s_broker);
}

static void open_anchor (uint64_t token)
{
    s_receiver.options.cancel_token = token;
    hws_session_open (session (), s_broker.now, &s_receiver);
    scripted_pump (&s_broker);
}

static void answer_attach (void)
{
    scripted_answer (&s_broker,
                     (hws_control_t){.verb = HWS_VERB_ATTACH,
                                     .as.attach_ok = {.handle = s_handle,
                                                      .streaming_transport_key = HWS_TRANSPORT_MUX,
                                                      .heartbeat_interval_ms = 5000,
                                                      .sender_id = 5,
                                                      .initial_credit = 100}});
}

static void cancel (uint64_t token, const char *reason)
{
    assert_int_equal (hws_session_cancel_token (session (), s_broker.now, token, reason), 0);
    scripted_pump (&s_broker);
}

static void answer_cancel (void)
{
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL_TOKEN});
}

static int result (uint64_t token)
{
    return hws_session_token_result (session (), token);
}

static const hws_control_t *asked (hws_verb_t verb)
{
    return &s_broker.asked[verb];
}

static unsigned times_asked (hws_verb_t verb)
{
    return s_broker.asked_count[verb];
}

/*  Lets the time pass at a broker that lives.  */
static void pass (hws_ms_t length_ms)
{
    const hws_ms_t end = s_broker.now + length_ms;
    while (s_broker.now < end) {
        scripted_pass (&s_broker, hws_time_min (1000, end - s_broker.now));
        scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_PONG});
    }
}

/*  ---- Attaches and opens ---- */

static void attach_and_open_carry_their_token_each_time (void **state)
{
    (void) state;

    attach (TOKEN);
    open_anchor (TOKEN + 1);
    assert_int_equal (asked (HWS_VERB_ATTACH)->as.attach.cancel_token, TOKEN);
    assert_int_equal (asked (HWS_VERB_OPEN)->as.open.cancel_token, TOKEN + 1);
    s_broker.asked[HWS_VERB_ATTACH] = s_broker.asked[HWS_VERB_OPEN] = (hws_control_t){.id = 0};
    scripted_lose (&s_broker);
    scripted_return (&s_broker);

    assert_int_equal (asked (HWS_VERB_ATTACH)->as.attach.cancel_token, TOKEN);
    assert_int_equal (asked (HWS_VERB_OPEN)->as.open.cancel_token, TOKEN + 1);
}

static void a_cancelled_token_ends_what_is_being_attached_or_opened (void **state)
{
    (void) state;
    attach (TOKEN);
    open_anchor (TOKEN);

    cancel (TOKEN, "enough");

    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.reason, "enough");
    assert_int_equal (s_receiver.rx.state, HWS_RX_CLOSED);
    assert_int_equal (s_receiver.rx.result, HWS_ECANCELLED);
    assert_string_equal (session ()->error, "enough");
    assert_int_equal (asked (HWS_VERB_CANCEL_TOKEN)->as.token.token, TOKEN);
    assert_string_equal (asked (HWS_VERB_CANCEL_TOKEN)->as.token.reason, "enough");
}

static void other_tokens_and_none_are_left_alone (void **state)
{
    (void) state;
    attach (TOKEN);
    open_anchor (0);

    cancel (TOKEN + 1, NULL);
    assert_int_equal (hws_session_cancel_token (session (), s_broker.now, 0, NULL), 0);
    scripted_pump (&s_broker);

    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    assert_int_equal (s_receiver.rx.state, HWS_RX_OPENING);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 1);
    assert_int_equal (result (0), 0);
}

static void a_seat_that_comes_after_its_token_was_cancelled_is_given_back (void **state)
{
    (void) state;
    attach (TOKEN);
    cancel (TOKEN, "enough");
    s_broker.of_streams.count = 0;

    answer_attach ();

    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_broker.of_streams.count, 1);
    assert_string_equal (s_broker.of_streams.word[0], "CANCEL");
}

static void what_comes_with_a_cancelled_token_is_refused_here (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);

    attach (TOKEN);
    open_anchor (TOKEN);

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_int_equal (s_receiver.rx.result, HWS_ECANCELLED);
    assert_string_equal (session ()->error, "its token was cancelled");
    assert_int_equal (times_asked (HWS_VERB_ATTACH), 0);
    assert_int_equal (times_asked (HWS_VERB_OPEN), 0);
}

static void a_broker_that_refuses_a_cancelled_attach_tells_the_reason (void **state)
{
    (void) state;
    attach (TOKEN);

    scripted_answer (
        &s_broker, (hws_control_t){.verb = HWS_VERB_ATTACH,
                                   .form = HWS_FORM_ERR,
                                   .as.refusal = {.code = HWS_ECANCELLED, .reason = "not today"}});

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.reason, "not today");
    assert_string_equal (session ()->error, "not today");
}

static void a_stream_that_lives_ends_by_the_broker_s_word (void **state)
{
    (void) state;
    attach (TOKEN);
    answer_attach ();

    cancel (TOKEN, "enough");
    answer_cancel ();
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_STREAM_CANCEL,
                                             .as.stream_cancel = {.session_id = s_sender.session_id,
                                                                  .ending = "cancelled",
                                                                  .code = "requested",
                                                                  .reason = "enough"}});

    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.cause, "requested");
    assert_string_equal (s_sender.tx.reason, "enough");
}

/*  ---- Asking ---- */

static void a_cancelled_token_is_asked_until_it_is_answered (void **state)
{
    (void) state;
    cancel (TOKEN, "enough");
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);

    pass (HWS_REQUEST_RETRY_MS - 1);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 1);
    pass (1);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 2);
    assert_int_equal (s_told, 0);
    answer_cancel ();

    assert_int_equal (result (TOKEN), 0);
    assert_int_equal (s_told, 1);
    pass (10 * HWS_REQUEST_RETRY_MS);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 2);
}

static void a_broker_that_does_not_answer_is_waited_for_no_longer_but_asked (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);

    pass (SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);
    pass (1);
    assert_int_equal (result (TOKEN), HWS_EUNREACHABLE);
    assert_string_equal (session ()->error, "the broker does not answer CANCEL_TOKEN");
    assert_int_equal (s_told, 1);
    const unsigned before = times_asked (HWS_VERB_CANCEL_TOKEN);
    pass (2 * HWS_TOKEN_TTL_MS);

    assert_true (times_asked (HWS_VERB_CANCEL_TOKEN) > before + 10);
    answer_cancel ();
    assert_int_equal (result (TOKEN), 0);
}

static void an_absent_broker_is_told_when_it_is_there (void **state)
{
    (void) state;
    s_broker.is_refused = true;
    scripted_lose (&s_broker);
    cancel (TOKEN, "enough");
    attach (TOKEN);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);

    scripted_pass (&s_broker, SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);
    scripted_pass (&s_broker, 1);
    assert_int_equal (result (TOKEN), HWS_EUNREACHABLE);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 0);
    s_broker.is_refused = false;
    scripted_pass (&s_broker, HWS_BACKOFF_MAX_MS);
    scripted_welcome (&s_broker);

    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 1);
    assert_string_equal (asked (HWS_VERB_CANCEL_TOKEN)->as.token.reason, "enough");
    answer_cancel ();
    assert_int_equal (result (TOKEN), 0);
}

static void the_wait_for_a_broker_begins_anew_when_the_connection_is_lost (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);
    pass (SCRIPTED_CONNECT_MS - 1);

    s_broker.is_refused = true;
    scripted_lose (&s_broker);
    scripted_pass (&s_broker, SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);
    scripted_pass (&s_broker, 1);

    assert_int_equal (result (TOKEN), HWS_EUNREACHABLE);
}

static void the_wait_is_over_in_time_during_a_greeting_too (void **state)
{
    (void) state;
    session ()->options.connect_ms = 1000;
    scripted_resync (&s_broker);
    cancel (TOKEN, NULL);

    scripted_pass (&s_broker, 999);
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);
    scripted_pass (&s_broker, 1);

    assert_int_equal (result (TOKEN), HWS_EUNREACHABLE);
}

static void only_an_answer_that_was_lost_is_asked_for_on_a_new_connection (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);
    answer_cancel ();
    cancel (TOKEN + 1, NULL);

    scripted_lose (&s_broker);
    scripted_return (&s_broker);

    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 3);
    assert_int_equal (asked (HWS_VERB_CANCEL_TOKEN)->as.token.token, TOKEN + 1);
    answer_cancel ();
    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 3);
}

static void another_epoch_is_told_of_every_cancel_before_the_attaches (void **state)
{
    (void) state;
    cancel (TOKEN, "first");
    answer_cancel ();
    cancel (TOKEN + 1, "second");
    answer_cancel ();
    attach (TOKEN + 2);
    scripted_lose (&s_broker);
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    const uint64_t before = session ()->last_request_id;

    s_broker.epoch++;
    scripted_welcome (&s_broker);

    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 4);
    assert_int_equal (s_broker.asked_id[HWS_VERB_CANCEL_TOKEN], before + 2);
    assert_int_equal (s_broker.asked_id[HWS_VERB_ATTACH], before + 3);
    assert_int_equal (result (TOKEN), 0);
}

static void a_limit_of_the_broker_is_told_and_the_token_stays_cancelled_here (void **state)
{
    (void) state;
    cancel (TOKEN, "enough");

    scripted_refuse (&s_broker, HWS_VERB_CANCEL_TOKEN, HWS_ELIMIT);

    assert_int_equal (result (TOKEN), HWS_ELIMIT);
    attach (TOKEN);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (session ()->error, "enough");
    pass (10 * HWS_REQUEST_RETRY_MS);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 1);
}

static void a_refused_hello_ends_the_wait (void **state)
{
    (void) state;
    scripted_lose (&s_broker);
    cancel (TOKEN, NULL);
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);

    scripted_refuse (&s_broker, HWS_VERB_HELLO, HWS_EDENIED);

    assert_int_equal (result (TOKEN), HWS_EDENIED);
    assert_int_equal (s_told, 1);
}

static void a_second_cancel_is_asked_again_with_the_first_reason (void **state)
{
    (void) state;
    cancel (TOKEN, "first");
    answer_cancel ();
    pass (1000);

    cancel (TOKEN, "second");
    assert_int_equal (result (TOKEN), HWS_EWOULD_BLOCK);
    pass (HWS_REQUEST_RETRY_MS);
    assert_int_equal (times_asked (HWS_VERB_CANCEL_TOKEN), 3);
    answer_cancel ();

    assert_string_equal (asked (HWS_VERB_CANCEL_TOKEN)->as.token.reason, "first");
    assert_int_equal (session ()->tokens.count, 1);
    pass (HWS_TOKEN_TTL_MS - HWS_REQUEST_RETRY_MS - 1);
    assert_int_equal (session ()->tokens.count, 1);
    pass (1);
    assert_int_equal (session ()->tokens.count, 0);
}

/*  ---- Memory ---- */

static void a_token_is_remembered_for_its_time (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);
    answer_cancel ();

    pass (HWS_TOKEN_TTL_MS - 1);
    attach (TOKEN);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    hws_session_remove_sender (&s_sender);
    pass (1);
    attach (TOKEN);

    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    assert_int_equal (times_asked (HWS_VERB_ATTACH), 1);
    assert_int_equal (session ()->tokens.count, 0);
}

static void a_token_that_nobody_answers_is_forgotten_here_all_the_same (void **state)
{
    (void) state;
    cancel (TOKEN, NULL);

    pass (HWS_TOKEN_TTL_MS);
    attach (TOKEN);

    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    assert_int_equal (session ()->tokens.count, 1);
}

static void the_oldest_that_was_answered_makes_room (void **state)
{
    (void) state;
    cancel (1, NULL);
    for (uint64_t token = 2; token <= HWS_TOKENS_MAX; token++) {
        cancel (token, NULL);
        if (token < 4) {
            answer_cancel ();
        }
    }

    cancel (HWS_TOKENS_MAX + 1, NULL);
    assert_int_equal (session ()->tokens.count, HWS_TOKENS_MAX);
    attach (2);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    hws_session_remove_sender (&s_sender);
    attach (3);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    cancel (HWS_TOKENS_MAX + 2, NULL);

    assert_int_equal (hws_session_cancel_token (session (), s_broker.now, HWS_TOKENS_MAX + 3, NULL),
                      HWS_ELIMIT);
    cancel (1, NULL);
}

static void a_token_that_cannot_be_remembered_ends_what_waits_here (void **state)
{
    (void) state;
    for (uint64_t token = 1; token <= HWS_TOKENS_MAX; token++) {
        cancel (token, NULL);
    }
    attach (HWS_TOKENS_MAX + 1);

    const int rc = hws_session_cancel_token (session (), s_broker.now, HWS_TOKENS_MAX + 1, "full");

    assert_int_equal (rc, HWS_ELIMIT);
    assert_int_equal (s_sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (s_sender.tx.reason, "full");
}

/*  ---- A sender cancels its anchor ---- */

static void cancel_anchor (const char *reason)
{
    hws_session_cancel_anchor (session (), s_broker.now, &s_sender, reason);
    scripted_pump (&s_broker);
}

static void a_sender_cancels_its_anchor_by_handle (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();

    cancel_anchor ("all of it");
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
    const hws_cancel_t *const said = &asked (HWS_VERB_CANCEL)->as.cancel;
    assert_true (hws_handle_equal (said->handle, s_handle));
    assert_int_equal (said->sender_id, 0);
    assert_string_equal (said->code, "");
    assert_string_equal (said->reason, "all of it");
    cancel_anchor ("again");
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 1);
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});

    assert_int_equal (s_sender.anchor_result, 0);
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

static void a_cancel_of_the_anchor_is_asked_until_it_is_answered (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    cancel_anchor (NULL);

    pass (HWS_REQUEST_RETRY_MS);
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 2);
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EDENIED);
    pass (2 * HWS_REQUEST_RETRY_MS);

    assert_int_equal (s_sender.anchor_result, HWS_EDENIED);
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 2);
    assert_int_equal (s_sender.anchor_result, HWS_EDENIED);
}

static void a_cancel_of_the_anchor_without_a_connection_is_said_on_the_next (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    s_broker.is_refused = true;
    scripted_lose (&s_broker);

    cancel_anchor ("all of it");
    assert_int_equal (s_sender.anchor_result, HWS_EUNREACHABLE);
    s_broker.is_refused = false;
    scripted_return (&s_broker);

    assert_string_equal (asked (HWS_VERB_CANCEL)->as.cancel.reason, "all of it");
    assert_true (s_broker.asked_id[HWS_VERB_CANCEL] > s_broker.asked_id[HWS_VERB_ATTACH]);
}

static void a_second_cancel_of_the_anchor_waits_for_the_answer_to_the_first (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    cancel_anchor ("all of it");
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
    assert_int_equal (s_sender.anchor_result, HWS_EUNREACHABLE);

    cancel_anchor ("again");
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 2);
    assert_string_equal (asked (HWS_VERB_CANCEL)->as.cancel.reason, "all of it");
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});

    assert_int_equal (s_sender.anchor_result, 0);
}

static void a_cancel_of_the_anchor_waits_no_longer_when_the_connection_is_lost (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    cancel_anchor (NULL);
    const unsigned told = s_told;

    scripted_lose (&s_broker);
    assert_int_equal (s_sender.anchor_result, HWS_EUNREACHABLE);
    assert_int_equal (s_told, told + 1);
    assert_int_equal (session ()->requests.count, 0);
    scripted_return (&s_broker);

    assert_int_equal (times_asked (HWS_VERB_CANCEL), 2);
}

static void a_cancel_of_the_anchor_is_over_with_the_broker (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    cancel_anchor (NULL);
    scripted_resync (&s_broker);
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);

    s_broker.broker_id++;
    scripted_welcome (&s_broker);

    assert_int_equal (s_sender.anchor_result, HWS_ETRANSPORT);
}

static void a_sender_that_is_removed_leaves_no_request (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    cancel_anchor (NULL);

    hws_session_remove_sender (&s_sender);
    s_sender.session = NULL;

    assert_int_equal (session ()->requests.count, 0);
    pass (2 * HWS_REQUEST_RETRY_MS);
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 1);
}

static void a_cancel_of_the_anchor_is_not_said_to_another_broker (void **state)
{
    (void) state;
    attach (0);
    answer_attach ();
    scripted_lose (&s_broker);
    cancel_anchor (NULL);
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);

    s_broker.broker_id++;
    scripted_welcome (&s_broker);

    assert_int_equal (s_sender.tx.result, HWS_ETRANSPORT);
    assert_int_equal (times_asked (HWS_VERB_CANCEL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (attach_and_open_carry_their_token_each_time),
        TEST (a_cancelled_token_ends_what_is_being_attached_or_opened),
        TEST (other_tokens_and_none_are_left_alone),
        TEST (a_seat_that_comes_after_its_token_was_cancelled_is_given_back),
        TEST (what_comes_with_a_cancelled_token_is_refused_here),
        TEST (a_broker_that_refuses_a_cancelled_attach_tells_the_reason),
        TEST (a_stream_that_lives_ends_by_the_broker_s_word),
        TEST (a_cancelled_token_is_asked_until_it_is_answered),
        TEST (a_broker_that_does_not_answer_is_waited_for_no_longer_but_asked),
        TEST (an_absent_broker_is_told_when_it_is_there),
        TEST (the_wait_for_a_broker_begins_anew_when_the_connection_is_lost),
        TEST (the_wait_is_over_in_time_during_a_greeting_too),
        TEST (only_an_answer_that_was_lost_is_asked_for_on_a_new_connection),
        TEST (another_epoch_is_told_of_every_cancel_before_the_attaches),
        TEST (a_limit_of_the_broker_is_told_and_the_token_stays_cancelled_here),
        TEST (a_refused_hello_ends_the_wait),
        TEST (a_second_cancel_is_asked_again_with_the_first_reason),
        TEST (a_token_is_remembered_for_its_time),
        TEST (a_token_that_nobody_answers_is_forgotten_here_all_the_same),
        TEST (the_oldest_that_was_answered_makes_room),
        TEST (a_token_that_cannot_be_remembered_ends_what_waits_here),
        TEST (a_sender_cancels_its_anchor_by_handle),
        TEST (a_cancel_of_the_anchor_is_asked_until_it_is_answered),
        TEST (a_cancel_of_the_anchor_without_a_connection_is_said_on_the_next),
        TEST (a_second_cancel_of_the_anchor_waits_for_the_answer_to_the_first),
        TEST (a_cancel_of_the_anchor_waits_no_longer_when_the_connection_is_lost),
        TEST (a_cancel_of_the_anchor_is_over_with_the_broker),
        TEST (a_sender_that_is_removed_leaves_no_request),
        TEST (a_cancel_of_the_anchor_is_not_said_to_another_broker),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
