/*  Senders at a broker that was restarted: what they ask a new epoch, what becomes of its answer,
 *  and what is left to tell it of streams that have ended.
 */
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

enum { SENDER_ID = 5, TOKEN_BYTE = 0xab, WIRE = 5 /* of a record of one byte */ };

static const hws_handle_t s_handle = {.hi = 99, .lo = UINT64_C (7) << 32 | 1};

static scripted_t s_broker;
static hws_session_sender_t s_sender;
static bool s_is_removed;

static void ignore (hws_session_sender_t *sender)
{
    (void) sender;
}

static hws_session_t *session (void)
{
    return &s_broker.session;
}

static int set_up (void **state)
{
    (void) state;
    scripted_begin (&s_broker);
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
    s_is_removed = true;
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    if (!s_is_removed) {
        hws_session_remove_sender (&s_sender);
    }
    scripted_end (&s_broker);
    return 0;
}

/*  ---- The sender ---- */

static void ask (bool is_early)
{
    s_sender = (hws_session_sender_t){
        .notify = ignore, .anchor = "a", .label = "me", .is_early = is_early};
    hws_session_attach (session (), s_broker.now, &s_sender);
    scripted_pump (&s_broker);
    s_is_removed = false;
}

static hws_control_t seat (void)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach_ok = {.handle = s_handle,
                                              .streaming_transport_key = HWS_TRANSPORT_MUX,
                                              .heartbeat_interval_ms = HWS_INTERVAL_DEFAULT,
                                              .sender_id = SENDER_ID,
                                              .initial_credit = 1000,
                                              .slot_byte_budget = 1 << 16}};
    message.as.attach_ok.resume_token.bytes[0] = TOKEN_BYTE;
    return message;
}

/*  A seat of which `acked` records are consumed and `next` is what the receiver expects.  */
static hws_control_t seat_at (uint64_t acked, uint64_t next)
{
    hws_control_t message = seat ();
    message.as.attach_ok.acked_seq = acked;
    message.as.attach_ok.acked_bytes = acked * WIRE;
    message.as.attach_ok.next_seq = next;
    message.as.attach_ok.next_bytes = next * WIRE;
    return message;
}

static void attach (void)
{
    ask (false);
    scripted_answer (&s_broker, seat ());
}

static void changed (void)
{
    hws_session_changed (&s_sender);
    scripted_pump (&s_broker);
}

static void send_records (int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal (hws_tx_append (&s_sender.tx, "x", 1), 0);
    }
    changed ();
}

static void grant (uint64_t acked)
{
    const hws_grant_t it = {
        .stream = s_sender.session_id, .acked_seq = acked, .next_seq = acked, .limit_seq = 1000};
    scripted_grant (&s_broker, &it);
}

static void expect_end (int result, const char *cause)
{
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, result);
    assert_string_equal (s_sender.tx.cause, cause);
}

/*  ---- The broker ---- */

static unsigned attaches (void)
{
    return s_broker.asked_count[HWS_VERB_ATTACH];
}

static const hws_attach_t *attach_asked (void)
{
    return &s_broker.asked[HWS_VERB_ATTACH].as.attach;
}

static void come_back (void)
{
    scripted_lose (&s_broker);
    s_broker.of_streams.count = 0;
    scripted_return (&s_broker);
}

static void restart (void)
{
    s_broker.epoch++;
    come_back ();
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

/*  What was said of streams since the connection was lost, in order, each word once.  */
static void expect_said (const char *const *words, size_t count)
{
    assert_int_equal (s_broker.of_streams.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal (s_broker.of_streams.word[i], words[i]);
    }
}

#define EXPECT_SAID(...)                                                                           \
    do {                                                                                           \
        static const char *const said[] = {__VA_ARGS__};                                           \
        expect_said (said, sizeof said / sizeof *said);                                            \
    } while (0)

/*  ---- What a new epoch is asked ---- */

static void a_new_epoch_is_told_where_the_stream_is (void **state)
{
    (void) state;
    attach ();
    send_records (10);
    grant (4);

    restart ();

    EXPECT_SAID ("ATTACH"); /* and no record before the answer */
    const hws_attach_t *const asked = attach_asked ();
    assert_int_equal (asked->session_id, s_sender.session_id);
    assert_true (asked->has_handle);
    assert_true (hws_handle_equal (asked->handle, s_handle));
    assert_string_equal (asked->label, "me");
    assert_true (asked->has_resume);
    assert_int_equal (asked->resume.sender_id, SENDER_ID);
    assert_int_equal (asked->resume.resume_token.bytes[0], TOKEN_BYTE);
    assert_int_equal (asked->resume.acked_seq, 4);
    assert_int_equal (asked->resume.acked_bytes, 4 * WIRE);
    assert_int_equal (asked->resume.next_seq, 10);
    assert_string_equal (asked->resume.ending, "");
}

static void an_epoch_that_has_answered_is_asked_as_ever (void **state)
{
    (void) state;
    attach ();
    come_back ();
    assert_false (attach_asked ()->has_resume);

    restart ();
    assert_true (attach_asked ()->has_resume);
    come_back (); /* it has not answered */
    assert_true (attach_asked ()->has_resume);
    scripted_answer (&s_broker, seat ());
    come_back ();

    assert_false (attach_asked ()->has_resume);
}

static void the_stream_goes_on_where_the_answer_says (void **state)
{
    (void) state;
    attach ();
    send_records (10);
    restart ();

    scripted_answer (&s_broker, seat_at (3, 7));

    EXPECT_SAID ("ATTACH", "RECORDS");
    assert_int_equal (s_sender.tx.acked_seq, 3);
    assert_int_equal (s_sender.tx.acked_records, 3);
    assert_int_equal (s_sender.tx.next_seq, 10);
    grant (10);
    assert_int_equal (s_sender.tx.acked_records, 10);
}

static void what_was_appended_stays_through_a_long_outage (void **state)
{
    (void) state;
    attach ();
    send_records (10);
    scripted_lose (&s_broker);
    send_records (10);
    s_broker.is_refused = true;
    scripted_pass (&s_broker, SCRIPTED_GIVE_UP_MS - 10000);
    hws_tx_detach (&s_sender.tx);
    changed ();
    s_broker.is_refused = false;
    s_broker.of_streams.count = 0;
    s_broker.epoch++;
    while (session ()->state != HWS_SESSION_GREETING) {
        scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    }

    scripted_welcome (&s_broker);
    scripted_answer (&s_broker, seat_at (0, 0));
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDING);
    EXPECT_SAID ("ATTACH", "RECORDS", "DETACHED");
    grant (20);
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDING);
    grant (21);

    expect_end (0, "");
    assert_int_equal (s_sender.tx.acked_records, 20);
}

static void limits_of_the_epoch_before_are_void (void **state)
{
    (void) state;
    attach ();
    send_records (100);
    restart ();
    hws_control_t answer = seat_at (0, 0);
    answer.as.attach_ok.slot_byte_budget = 70 * WIRE;

    scripted_answer (&s_broker, answer);

    assert_int_equal (s_sender.tx.next_seq, 70);
    assert_int_equal (hws_tx_append (&s_sender.tx, "x", 1), HWS_EWOULD_BLOCK);
    assert_int_equal (s_sender.tx.end_seq, 100);
}

static void a_record_larger_than_the_new_window_is_asked_for (void **state)
{
    (void) state;
    static const uint8_t record[1000];
    attach ();
    assert_int_equal (hws_tx_append (&s_sender.tx, record, sizeof record), 0);
    changed ();
    restart ();
    hws_control_t answer = seat_at (0, 0);
    answer.as.attach_ok.slot_byte_budget = 500;

    scripted_answer (&s_broker, answer);
    EXPECT_SAID ("ATTACH", "WINDOW");
    s_broker.of_streams.count = 0;
    pass (HWS_WANT_RETRY_MS);

    EXPECT_SAID ("WINDOW");
}

static void a_broker_of_shorter_messages_cannot_go_on (void **state)
{
    (void) state;
    attach ();
    send_records (1);
    scripted_lose (&s_broker);
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_HELLO,
                                                .as.hello_ok = {.broker_id = s_broker.broker_id,
                                                                .epoch = s_broker.epoch + 1,
                                                                .protocol = HWS_PROTOCOL_VERSION,
                                                                .batch_bytes = 8192}});

    scripted_answer (&s_broker, seat_at (0, 0));

    expect_end (HWS_ECANCELLED, "interrupted");
    assert_string_equal (s_broker.of_streams.word[s_broker.of_streams.count - 1], "CANCEL");
}

/*  ---- How it is refused ---- */

static void a_receiver_that_did_not_come_back_has_abandoned_the_stream (void **state)
{
    (void) state;
    attach ();
    restart ();

    pass (HWS_ORPHAN_MS + 1000); /* so long the broker waits for it */
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);

    expect_end (HWS_ECANCELLED, "abandoned");
}

static void a_broker_that_cannot_now_is_asked_twice_a_second (void **state)
{
    (void) state;
    static const int codes[] = {HWS_ELIMIT, HWS_EBUSY, HWS_EBUFFER_FULL};
    attach ();
    restart ();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const unsigned before = attaches ();

        scripted_refuse (&s_broker, HWS_VERB_ATTACH, codes[i]);
        pass (HWS_ATTACH_AGAIN_MS - 1);
        assert_int_equal (attaches (), before);
        pass (1);

        assert_int_equal (attaches (), before + 1);
        assert_true (attach_asked ()->has_resume);
    }
    scripted_answer (&s_broker, seat ());
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

static void an_ending_that_the_receiver_has_consumed_is_clean (void **state)
{
    (void) state;
    attach ();
    send_records (3);
    hws_tx_detach (&s_sender.tx);
    changed ();
    restart ();
    hws_control_t answer = seat ();
    answer.as.attach_ok.has_ended = true;
    strcpy (answer.as.attach_ok.ending, "detached");

    scripted_answer (&s_broker, answer);

    expect_end (0, "");
    assert_int_equal (s_sender.tx.acked_records, 3);
}

/*  ---- Cancels ---- */

static void a_cancel_before_the_answer_is_the_ending_that_the_epoch_is_told (void **state)
{
    (void) state;
    attach ();
    restart ();

    hws_session_cancel (session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);

    EXPECT_SAID ("ATTACH"); /* CANCEL would be a stranger's */
    assert_int_equal (attaches (), 3);
    assert_string_equal (attach_asked ()->resume.ending, "cancelled");
    assert_string_equal (attach_asked ()->resume.code, "interrupted");
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    expect_end (HWS_ECANCELLED, "interrupted");
}

static void a_cancel_without_a_connection_is_the_ending_that_a_new_epoch_is_told (void **state)
{
    (void) state;
    attach ();
    scripted_lose (&s_broker);
    hws_session_cancel (session (), s_broker.now, &s_sender, "enough");
    expect_end (HWS_ECANCELLED, "interrupted");
    s_broker.epoch++;
    s_broker.of_streams.count = 0;

    scripted_return (&s_broker);

    EXPECT_SAID ("ATTACH");
    assert_string_equal (attach_asked ()->resume.ending, "cancelled");
    assert_string_equal (attach_asked ()->resume.code, "interrupted");
    assert_int_equal (attach_asked ()->resume.sender_id, SENDER_ID);
}

static void cancel_anchor (void)
{
    hws_session_cancel_anchor (session (), s_broker.now, &s_sender, "all of it");
    scripted_pump (&s_broker);
}

static void a_cancel_of_the_anchor_waits_for_the_seat_in_a_new_epoch (void **state)
{
    (void) state;
    attach ();
    scripted_lose (&s_broker);
    cancel_anchor ();
    s_broker.epoch++;
    s_broker.of_streams.count = 0;

    scripted_return (&s_broker);
    EXPECT_SAID ("ATTACH");
    scripted_answer (&s_broker, seat ());

    EXPECT_SAID ("ATTACH", "CANCEL");
}

static void a_cancel_of_the_anchor_that_is_said_while_it_is_resumed_waits_likewise (void **state)
{
    (void) state;
    attach ();
    restart ();

    cancel_anchor ();
    EXPECT_SAID ("ATTACH");
    scripted_answer (&s_broker, seat ());

    EXPECT_SAID ("ATTACH", "CANCEL");
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
}

static void a_cancel_that_comes_too_early_is_said_twice_a_second (void **state)
{
    (void) state;
    attach ();
    cancel_anchor ();

    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EBUSY);
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
    pass (HWS_ATTACH_AGAIN_MS);
    assert_int_equal (s_broker.asked_count[HWS_VERB_CANCEL], 2);
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});
    assert_int_equal (s_sender.anchor_result, 0);

    hws_session_cancel (session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EBUSY);
    assert_int_equal (s_sender.tx.state, HWS_TX_CANCELLING);
    pass (HWS_ATTACH_AGAIN_MS);
    assert_int_equal (s_broker.asked_count[HWS_VERB_CANCEL], 4);
}

/*  ---- Streams that have not begun ---- */

static void a_first_attach_that_was_not_answered_is_the_same_in_a_new_epoch (void **state)
{
    (void) state;
    ask (true);
    send_records (10);

    restart ();

    assert_int_equal (attaches (), 2);
    assert_false (attach_asked ()->has_resume);
    assert_int_equal (attach_asked ()->session_id, s_sender.session_id);
    assert_string_equal (attach_asked ()->anchor, "a");
    EXPECT_SAID ("ATTACH", "RECORDS");
}

static void early_records_that_the_receiver_has_are_not_sent_again (void **state)
{
    (void) state;
    ask (true);
    send_records (10);
    restart ();
    s_broker.of_streams.count = 0;

    scripted_answer (&s_broker, seat_at (4, 10));

    assert_int_equal (s_broker.of_streams.count, 0);
    assert_int_equal (s_sender.tx.acked_records, 4);
    send_records (1);
    EXPECT_SAID ("RECORDS");
    assert_int_equal (s_sender.tx.next_seq, 11);
}

static void a_name_is_waited_for_in_a_new_epoch (void **state)
{
    (void) state;
    ask (false);
    assert_int_equal (attach_asked ()->wait_ms, 0);

    restart ();
    assert_int_equal (attach_asked ()->wait_ms, HWS_RECEIVER_BACK_MS);
    for (int i = 0; i < 19; i++) {
        scripted_refuse (&s_broker, HWS_VERB_ATTACH, i % 2 ? HWS_ENOT_FOUND : HWS_ELIMIT);
        pass (HWS_ATTACH_AGAIN_MS);
        assert_int_equal (attaches (), 3 + i);
    }
    pass (HWS_ATTACH_AGAIN_MS);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ENOT_FOUND);

    assert_int_equal (s_sender.tx.result, HWS_ENOT_FOUND);
}

static void an_anchor_of_an_earlier_epoch_is_waited_for_as_long_as_the_broker_does (void **state)
{
    (void) state;
    s_sender = (hws_session_sender_t){.notify = ignore, .has_handle = true, .handle = s_handle};
    s_broker.epoch++;
    come_back ();
    hws_session_attach (session (), s_broker.now, &s_sender);
    s_is_removed = false;
    scripted_pump (&s_broker);

    pass (HWS_ORPHAN_MS + SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    pass (1);

    assert_int_equal (s_sender.tx.result, HWS_EUNREACHABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_new_epoch_is_told_where_the_stream_is),
        TEST (an_epoch_that_has_answered_is_asked_as_ever),
        TEST (the_stream_goes_on_where_the_answer_says),
        TEST (what_was_appended_stays_through_a_long_outage),
        TEST (limits_of_the_epoch_before_are_void),
        TEST (a_record_larger_than_the_new_window_is_asked_for),
        TEST (a_broker_of_shorter_messages_cannot_go_on),
        TEST (a_receiver_that_did_not_come_back_has_abandoned_the_stream),
        TEST (a_broker_that_cannot_now_is_asked_twice_a_second),
        TEST (an_ending_that_the_receiver_has_consumed_is_clean),
        TEST (a_cancel_before_the_answer_is_the_ending_that_the_epoch_is_told),
        TEST (a_cancel_without_a_connection_is_the_ending_that_a_new_epoch_is_told),
        TEST (a_cancel_of_the_anchor_waits_for_the_seat_in_a_new_epoch),
        TEST (a_cancel_of_the_anchor_that_is_said_while_it_is_resumed_waits_likewise),
        TEST (a_cancel_that_comes_too_early_is_said_twice_a_second),
        TEST (a_first_attach_that_was_not_answered_is_the_same_in_a_new_epoch),
        TEST (early_records_that_the_receiver_has_are_not_sent_again),
        TEST (a_name_is_waited_for_in_a_new_epoch),
        TEST (an_anchor_of_an_earlier_epoch_is_waited_for_as_long_as_the_broker_does),
    };
    return cmocka_run_group_tests_name ("senders in a new epoch", tests, NULL, NULL);
}
