/*  Senders at a broker that was restarted: what they ask a new epoch, and what becomes of its
 *  answer.
 */
#include "tests/support/scripted_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void ask_early (void)
{
    scripted_ask ((hws_session_sender_t){.anchor = "a", .is_early = true});
}

/*  ---- What a new epoch is asked ---- */

static void a_new_epoch_is_told_where_the_stream_is (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (10);
    scripted_consume (4);

    scripted_restart ();

    EXPECT_SAID ("ATTACH"); /* and no record before the answer */
    const hws_attach_t *const asked = scripted_attach_asked ();
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
    scripted_attach ();
    scripted_come_back ();
    assert_false (scripted_attach_asked ()->has_resume);

    scripted_restart ();
    assert_true (scripted_attach_asked ()->has_resume);
    scripted_come_back (); /* it has not answered */
    assert_true (scripted_attach_asked ()->has_resume);
    scripted_answer (&s_broker, scripted_seat_at (0, 0));
    scripted_come_back ();

    assert_false (scripted_attach_asked ()->has_resume);
}

static void the_stream_goes_on_where_the_answer_says (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (10);
    scripted_restart ();

    scripted_answer (&s_broker, scripted_seat_at (3, 7));

    EXPECT_SAID ("ATTACH", "RECORDS");
    assert_int_equal (s_sender.tx.acked_seq, 3);
    assert_int_equal (s_sender.tx.acked_records, 3);
    assert_int_equal (s_sender.tx.next_seq, 10);
    scripted_consume (10);
    assert_int_equal (s_sender.tx.acked_records, 10);
}

static void what_was_appended_stays_through_a_long_outage (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (10);
    scripted_lose (&s_broker);
    scripted_send (10);
    s_broker.is_refused = true;
    scripted_pass (&s_broker, SCRIPTED_GIVE_UP_MS - 10000);
    hws_tx_detach (&s_sender.tx);
    scripted_changed ();
    s_broker.is_refused = false;
    s_broker.of_streams.count = 0;
    s_broker.epoch++;
    while (scripted_session ()->state != HWS_SESSION_GREETING) {
        scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    }

    scripted_welcome (&s_broker);
    scripted_answer (&s_broker, scripted_seat_at (0, 0));
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDING);
    EXPECT_SAID ("ATTACH", "RECORDS", "DETACHED");
    scripted_consume (20);
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDING);
    scripted_consume (21);

    scripted_expect_end (0, "");
    assert_int_equal (s_sender.tx.acked_records, 20);
}

static void limits_of_the_epoch_before_are_void (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (100);
    scripted_restart ();
    hws_control_t answer = scripted_seat_at (0, 0);
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
    scripted_attach ();
    assert_int_equal (hws_tx_append (&s_sender.tx, record, sizeof record), 0);
    scripted_changed ();
    scripted_restart ();
    hws_control_t answer = scripted_seat_at (0, 0);
    answer.as.attach_ok.slot_byte_budget = 500;

    scripted_answer (&s_broker, answer);
    EXPECT_SAID ("ATTACH", "WINDOW");
    s_broker.of_streams.count = 0;
    scripted_live (HWS_WANT_RETRY_MS);

    EXPECT_SAID ("WINDOW");
}

static void a_broker_of_shorter_messages_cannot_go_on (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (1);
    scripted_lose (&s_broker);
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_HELLO,
                                                .as.hello_ok = {.broker_id = s_broker.broker_id,
                                                                .epoch = s_broker.epoch + 1,
                                                                .protocol = HWS_PROTOCOL_VERSION,
                                                                .batch_bytes = 8192}});

    scripted_answer (&s_broker, scripted_seat_at (0, 0));

    scripted_expect_end (HWS_ECANCELLED, "interrupted");
    assert_string_equal (s_broker.of_streams.word[s_broker.of_streams.count - 1], "CANCEL");
}

/*  A new process of the receiver's has asked for less room.  */
static void resume_with_a_large_record (uint64_t record_bytes)
{
    enum { LARGE = 50000 };
    static const uint8_t record[LARGE];
    scripted_attach ();
    assert_int_equal (hws_tx_append (&s_sender.tx, record, LARGE), 0);
    assert_int_equal (hws_tx_append (&s_sender.tx, record, 10), 0);
    scripted_changed ();
    scripted_restart ();
    hws_control_t seat = scripted_seat_at (0, 0);
    seat.as.attach_ok.record_bytes = record_bytes;
    scripted_answer (&s_broker, seat);
}

static void an_anchor_of_shorter_records_cannot_take_what_is_kept (void **state)
{
    (void) state;

    resume_with_a_large_record (49999);

    scripted_expect_end (HWS_ECANCELLED, "interrupted");
    assert_string_equal (s_broker.of_streams.word[s_broker.of_streams.count - 1], "CANCEL");
}

static void an_anchor_of_records_that_are_just_as_long_can (void **state)
{
    (void) state;

    resume_with_a_large_record (50000);

    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

/*  ---- How it is refused ---- */

static void a_receiver_that_did_not_come_back_has_abandoned_the_stream (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();

    scripted_live (HWS_ORPHAN_MS + 1000); /* so long the broker waits for it */
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);

    scripted_expect_end (HWS_ECANCELLED, "abandoned");
}

static void a_broker_that_cannot_now_is_asked_twice_a_second (void **state)
{
    (void) state;
    static const int codes[] = {HWS_ELIMIT, HWS_EBUSY, HWS_EBUFFER_FULL, HWS_EMAX_SENDERS};
    scripted_attach ();
    scripted_restart ();
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        const unsigned before = scripted_attaches ();

        scripted_refuse (&s_broker, HWS_VERB_ATTACH, codes[i]);
        scripted_live (HWS_ATTACH_AGAIN_MS - 1);
        assert_int_equal (scripted_attaches (), before);
        scripted_live (1);

        assert_int_equal (scripted_attaches (), before + 1);
        assert_true (scripted_attach_asked ()->has_resume);
    }
    scripted_answer (&s_broker, scripted_seat_at (0, 0));
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

static void an_ending_that_the_receiver_has_consumed_is_clean (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (3);
    hws_tx_detach (&s_sender.tx);
    scripted_changed ();
    scripted_restart ();
    hws_control_t answer = scripted_seat_at (0, 0);
    answer.as.attach_ok.has_ended = true;
    strcpy (answer.as.attach_ok.ending, "detached");

    scripted_answer (&s_broker, answer);

    scripted_expect_end (0, "");
    assert_int_equal (s_sender.tx.acked_records, 3);
}

/*  ---- Cancels ---- */

static void a_cancel_before_the_answer_is_the_ending_that_the_epoch_is_told (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();

    hws_session_cancel (scripted_session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);

    EXPECT_SAID ("ATTACH"); /* CANCEL would be a stranger's */
    assert_int_equal (scripted_attaches (), 3);
    assert_string_equal (scripted_attach_asked ()->resume.ending, "cancelled");
    assert_string_equal (scripted_attach_asked ()->resume.code, "interrupted");
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    scripted_expect_end (HWS_ECANCELLED, "interrupted");
}

static void a_cancel_without_a_connection_is_the_ending_that_a_new_epoch_is_told (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_lose (&s_broker);
    hws_session_cancel (scripted_session (), s_broker.now, &s_sender, "enough");
    scripted_expect_end (HWS_ECANCELLED, "interrupted");
    s_broker.epoch++;
    s_broker.of_streams.count = 0;

    scripted_return (&s_broker);

    EXPECT_SAID ("ATTACH");
    assert_string_equal (scripted_attach_asked ()->resume.ending, "cancelled");
    assert_string_equal (scripted_attach_asked ()->resume.code, "interrupted");
    assert_int_equal (scripted_attach_asked ()->resume.sender_id, SENDER_ID);
}

static void cancel_anchor (void)
{
    hws_session_cancel_anchor (scripted_session (), s_broker.now, &s_sender, "all of it");
    scripted_pump (&s_broker);
}

static void a_cancel_of_the_anchor_waits_for_the_seat_in_a_new_epoch (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_lose (&s_broker);
    cancel_anchor ();
    s_broker.epoch++;
    s_broker.of_streams.count = 0;

    scripted_return (&s_broker);
    EXPECT_SAID ("ATTACH");
    scripted_answer (&s_broker, scripted_seat_at (0, 0));

    EXPECT_SAID ("ATTACH", "CANCEL");
}

static void a_cancel_of_the_anchor_that_is_said_while_it_is_resumed_waits_likewise (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();

    cancel_anchor ();
    EXPECT_SAID ("ATTACH");
    scripted_answer (&s_broker, scripted_seat_at (0, 0));

    EXPECT_SAID ("ATTACH", "CANCEL");
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
}

/*  The right to it is the broker's to judge, which knows how the stream has ended.  */
static void a_cancel_of_the_anchor_is_said_when_the_stream_does_not_go_on (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();
    cancel_anchor ();
    hws_control_t ended = scripted_seat_at (0, 0);
    ended.as.attach_ok.has_ended = true;
    strcpy (ended.as.attach_ok.ending, "cancelled");

    scripted_answer (&s_broker, ended);
    scripted_pass (&s_broker, 0);
    EXPECT_SAID ("ATTACH", "CANCEL");
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EDENIED);

    assert_int_equal (s_sender.anchor_result, HWS_EDENIED);
}

static void a_cancel_of_the_anchor_without_a_connection_is_said_likewise (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_lose (&s_broker);
    cancel_anchor ();
    s_broker.epoch++;
    scripted_return (&s_broker);
    s_broker.of_streams.count = 0;

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    scripted_pass (&s_broker, 0);

    scripted_expect_end (HWS_ETRANSPORT, "unknown");
    EXPECT_SAID ("CANCEL");
}

static void a_cancel_of_an_anchor_that_is_gone_is_answered (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();
    cancel_anchor ();

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    scripted_pass (&s_broker, 0);
    scripted_expect_end (HWS_ECANCELLED, "abandoned");
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_ECLOSED);

    assert_int_equal (s_sender.anchor_result, HWS_ECLOSED);
}

static void a_cancel_that_comes_too_early_is_said_twice_a_second (void **state)
{
    (void) state;
    scripted_attach ();
    cancel_anchor ();

    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EBUSY);
    assert_int_equal (s_sender.anchor_result, HWS_EWOULD_BLOCK);
    scripted_live (HWS_ATTACH_AGAIN_MS);
    assert_int_equal (s_broker.asked_count[HWS_VERB_CANCEL], 2);
    scripted_answer (&s_broker, (hws_control_t){.verb = HWS_VERB_CANCEL});
    assert_int_equal (s_sender.anchor_result, 0);

    hws_session_cancel (scripted_session (), s_broker.now, &s_sender, "enough");
    scripted_pump (&s_broker);
    scripted_refuse (&s_broker, HWS_VERB_CANCEL, HWS_EBUSY);
    assert_int_equal (s_sender.tx.state, HWS_TX_CANCELLING);
    scripted_live (HWS_ATTACH_AGAIN_MS);
    assert_int_equal (s_broker.asked_count[HWS_VERB_CANCEL], 4);
}

/*  ---- Streams that have not begun ---- */

static void a_first_attach_that_was_not_answered_is_the_same_in_a_new_epoch (void **state)
{
    (void) state;
    ask_early ();
    scripted_send (10);

    scripted_restart ();

    assert_int_equal (scripted_attaches (), 2);
    assert_false (scripted_attach_asked ()->has_resume);
    assert_int_equal (scripted_attach_asked ()->session_id, s_sender.session_id);
    assert_string_equal (scripted_attach_asked ()->anchor, "a");
    EXPECT_SAID ("ATTACH", "RECORDS");
}

static void early_records_that_the_receiver_has_are_not_sent_again (void **state)
{
    (void) state;
    ask_early ();
    scripted_send (10);
    scripted_restart ();
    s_broker.of_streams.count = 0;

    scripted_answer (&s_broker, scripted_seat_at (4, 10));

    assert_int_equal (s_broker.of_streams.count, 0);
    assert_int_equal (s_sender.tx.acked_records, 4);
    scripted_send (1);
    EXPECT_SAID ("RECORDS");
    assert_int_equal (s_sender.tx.next_seq, 11);
}

static void a_name_is_waited_for_in_a_new_epoch (void **state)
{
    (void) state;
    scripted_ask ((hws_session_sender_t){.anchor = "a"});
    assert_int_equal (scripted_attach_asked ()->wait_ms, 0);

    scripted_restart ();
    assert_int_equal (scripted_attach_asked ()->wait_ms, HWS_RECEIVER_BACK_MS);
    for (int i = 0; i < 19; i++) {
        scripted_refuse (&s_broker, HWS_VERB_ATTACH, i % 2 ? HWS_ENOT_FOUND : HWS_ELIMIT);
        scripted_live (HWS_ATTACH_AGAIN_MS);
        assert_int_equal (scripted_attaches (), 3 + i);
    }
    scripted_live (HWS_ATTACH_AGAIN_MS);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ENOT_FOUND);

    assert_int_equal (s_sender.tx.result, HWS_ENOT_FOUND);
}

/*  It was heard, and seated, by a broker that was killed before it answered even HELLO.  */
static void a_name_that_was_asked_for_behind_an_unanswered_hello_is_waited_for (void **state)
{
    (void) state;
    scripted_tear_down (state);
    scripted_begin (&s_broker);
    ask_early ();
    scripted_pass (&s_broker, 0);
    assert_int_equal (scripted_attaches (), 1);

    scripted_lose (&s_broker);
    scripted_return (&s_broker);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    scripted_live (HWS_ATTACH_AGAIN_MS);

    assert_int_equal (scripted_attach_asked ()->wait_ms,
                      HWS_RECEIVER_BACK_MS - HWS_ATTACH_AGAIN_MS);
}

static void an_anchor_of_an_earlier_epoch_is_waited_for_as_long_as_the_broker_does (void **state)
{
    (void) state;
    scripted_restart ();
    scripted_ask ((hws_session_sender_t){.has_handle = true, .handle = s_handle});

    scripted_live (HWS_ORPHAN_MS + SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    scripted_live (1);

    assert_int_equal (s_sender.tx.result, HWS_EUNREACHABLE);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_TEST (a_new_epoch_is_told_where_the_stream_is),
        SCRIPTED_TEST (an_epoch_that_has_answered_is_asked_as_ever),
        SCRIPTED_TEST (the_stream_goes_on_where_the_answer_says),
        SCRIPTED_TEST (what_was_appended_stays_through_a_long_outage),
        SCRIPTED_TEST (limits_of_the_epoch_before_are_void),
        SCRIPTED_TEST (a_record_larger_than_the_new_window_is_asked_for),
        SCRIPTED_TEST (a_broker_of_shorter_messages_cannot_go_on),
        SCRIPTED_TEST (an_anchor_of_shorter_records_cannot_take_what_is_kept),
        SCRIPTED_TEST (an_anchor_of_records_that_are_just_as_long_can),
        SCRIPTED_TEST (a_receiver_that_did_not_come_back_has_abandoned_the_stream),
        SCRIPTED_TEST (a_broker_that_cannot_now_is_asked_twice_a_second),
        SCRIPTED_TEST (an_ending_that_the_receiver_has_consumed_is_clean),
        SCRIPTED_TEST (a_cancel_before_the_answer_is_the_ending_that_the_epoch_is_told),
        SCRIPTED_TEST (a_cancel_without_a_connection_is_the_ending_that_a_new_epoch_is_told),
        SCRIPTED_TEST (a_cancel_of_the_anchor_waits_for_the_seat_in_a_new_epoch),
        SCRIPTED_TEST (a_cancel_of_the_anchor_that_is_said_while_it_is_resumed_waits_likewise),
        SCRIPTED_TEST (a_cancel_of_the_anchor_is_said_when_the_stream_does_not_go_on),
        SCRIPTED_TEST (a_cancel_of_the_anchor_without_a_connection_is_said_likewise),
        SCRIPTED_TEST (a_cancel_of_an_anchor_that_is_gone_is_answered),
        SCRIPTED_TEST (a_cancel_that_comes_too_early_is_said_twice_a_second),
        SCRIPTED_TEST (a_first_attach_that_was_not_answered_is_the_same_in_a_new_epoch),
        SCRIPTED_TEST (early_records_that_the_receiver_has_are_not_sent_again),
        SCRIPTED_TEST (a_name_is_waited_for_in_a_new_epoch),
        SCRIPTED_TEST (a_name_that_was_asked_for_behind_an_unanswered_hello_is_waited_for),
        SCRIPTED_TEST (an_anchor_of_an_earlier_epoch_is_waited_for_as_long_as_the_broker_does),
    };
    return cmocka_run_group_tests_name ("senders in a new epoch", tests, NULL, NULL);
}
