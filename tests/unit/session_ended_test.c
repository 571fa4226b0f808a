/*  Streams that have ended otherwise than clean: for a while a new epoch of the broker is told.
 *  Linked so that memory can be missing.
 */
#include "tests/support/scripted_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static bool s_is_missing; /* there is no memory for what is asked next */

void *__real_malloc (size_t size);
void *__wrap_malloc (size_t size);

void *__wrap_malloc (size_t size)
{
    const bool is_missing = s_is_missing;
    s_is_missing = false;
    return is_missing ? NULL : __real_malloc (size);
}

/*  The broker ends the stream.  */
static void end_it (const char *ending, const char *code)
{
    hws_control_t message = {.verb = HWS_VERB_STREAM_CANCEL};
    message.as.stream_cancel.session_id = s_sender.session_id;
    snprintf (message.as.stream_cancel.ending, sizeof (hws_word_t), "%s", ending);
    snprintf (message.as.stream_cancel.code, sizeof (hws_word_t), "%s", code);
    scripted_say (&s_broker, message);
}

static hws_control_t ended (void)
{
    hws_control_t message = scripted_seat_at (0, 0);
    message.as.attach_ok.has_ended = true;
    strcpy (message.as.attach_ok.ending, "cancelled");
    return message;
}

/*  Whether the epoch that comes next is told of a stream.  */
static bool is_told (void)
{
    const unsigned before = scripted_attaches ();
    scripted_restart ();
    return scripted_attaches () > before;
}

static void expect_told (const char *ending, const char *code)
{
    const hws_attach_t *const told = scripted_attach_asked ();
    assert_true (told->has_resume);
    assert_true (hws_handle_equal (told->handle, s_handle));
    assert_int_equal (told->session_id, s_sender.session_id);
    assert_int_equal (told->resume.sender_id, SENDER_ID);
    assert_int_equal (told->resume.resume_token.bytes[0], TOKEN_BYTE);
    assert_string_equal (told->resume.ending, ending);
    assert_string_equal (told->resume.code, code);
}

/*  ---- What is told ---- */

static void an_ending_by_the_broker_is_told_to_the_next_epoch (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_send (10);
    scripted_consume (4);
    end_it ("dropped", "heartbeat");

    assert_true (is_told ());

    expect_told ("dropped", "heartbeat");
    assert_int_equal (scripted_attach_asked ()->resume.acked_seq, 4);
    assert_int_equal (scripted_attach_asked ()->resume.acked_bytes, 4 * WIRE);
    assert_int_equal (scripted_attach_asked ()->resume.next_seq, 10);
    scripted_answer (&s_broker, ended ());
    assert_int_equal (scripted_session ()->requests.count, 0);
}

static void an_ending_is_told_after_its_sender_was_destroyed (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("cancelled", "requested");
    scripted_remove ();

    assert_true (is_told ());

    expect_told ("cancelled", "requested");
}

static void a_sender_that_is_destroyed_is_told_as_cancelled (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_remove ();
    assert_string_equal (s_broker.of_streams.word[s_broker.of_streams.count - 1], "CANCEL");

    assert_true (is_told ());

    expect_told ("cancelled", "interrupted");
}

static void a_sender_that_is_destroyed_without_a_connection_is_told_too (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_lose (&s_broker);
    scripted_remove ();
    s_broker.epoch++;

    scripted_return (&s_broker);

    expect_told ("cancelled", "interrupted");
}

static void a_sender_that_is_destroyed_before_the_epoch_answers_is_told_at_once (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();

    scripted_remove ();
    scripted_pass (&s_broker, 0);

    EXPECT_SAID ("ATTACH");
    assert_int_equal (scripted_attaches (), 3);
    expect_told ("cancelled", "interrupted");
}

/*  Else the broker would take it for alive as long as its client is.  */
static void a_cancel_that_finds_no_memory_takes_the_connection_along (void **state)
{
    (void) state;
    scripted_attach ();
    s_broker.of_streams.count = 0;
    s_is_missing = true;

    scripted_remove ();
    scripted_pass (&s_broker, 0);
    assert_int_equal (s_broker.of_streams.count, 0);
    assert_int_equal (scripted_session ()->state, HWS_SESSION_DOWN);
    scripted_return (&s_broker);

    EXPECT_SAID ("CANCEL");
}

static void the_broker_of_before_hears_of_a_sender_destroyed_meanwhile (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_lose (&s_broker);
    scripted_remove ();
    s_broker.of_streams.count = 0;

    scripted_return (&s_broker);

    EXPECT_SAID ("CANCEL");
    s_broker.of_streams.count = 0;
    scripted_come_back ();
    assert_int_equal (s_broker.of_streams.count, 0);
}

static void a_program_that_leaves_tells_before_it_says_bye (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();
    scripted_remove ();

    hws_session_leave (scripted_session (), s_broker.now);
    scripted_pump (&s_broker);

    expect_told ("cancelled", "interrupted");
    assert_true (s_broker.asked_id[HWS_VERB_BYE] > s_broker.asked_id[HWS_VERB_ATTACH]);
}

static void an_ending_is_told_to_the_epoch_that_an_answer_was_lost_of (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("dropped", "heartbeat");
    assert_true (is_told ());

    scripted_come_back ();
    assert_int_equal (scripted_attaches (), 3);
    scripted_answer (&s_broker, ended ());
    scripted_come_back ();

    assert_int_equal (scripted_attaches (), 3);
}

static void who_cannot_be_told_now_is_told_twice_a_second (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("dropped", "heartbeat");
    assert_true (is_told ());
    const unsigned before = scripted_attaches ();

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ELIMIT);
    scripted_live (HWS_ATTACH_AGAIN_MS);
    assert_int_equal (scripted_attaches (), before + 1);
    scripted_live (HWS_REQUEST_RETRY_MS); /* it does not answer */
    assert_int_equal (scripted_attaches (), before + 2);
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    scripted_live (HWS_ORPHAN_MS);

    assert_int_equal (scripted_attaches (), before + 2);
}

static void a_seat_that_did_not_take_the_ending_is_cancelled (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("dropped", "heartbeat");
    assert_true (is_told ());

    scripted_answer (&s_broker, scripted_seat_at (0, 0));

    EXPECT_SAID ("ATTACH", "CANCEL");
}

/*  ---- What is not ---- */

static void a_clean_ending_is_not_told (void **state)
{
    (void) state;
    scripted_attach ();
    hws_tx_detach (&s_sender.tx);
    scripted_changed ();
    scripted_consume (1);
    scripted_expect_end (0, "");

    assert_false (is_told ());
}

static void a_stream_that_never_began_is_not_told (void **state)
{
    (void) state;
    scripted_ask ((hws_session_sender_t){.anchor = "a"});
    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_EMAX_SENDERS);

    assert_false (is_told ());
}

static void an_ending_is_remembered_for_thirty_seconds (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("dropped", "heartbeat");
    scripted_live (1);
    scripted_live (HWS_ORPHAN_MS - 2);
    assert_int_equal (scripted_session ()->ended.count, 1);

    scripted_live (1);

    assert_int_equal (scripted_session ()->ended.count, 0);
    assert_false (is_told ());
}

static void the_time_stands_still_without_a_connection (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_live (1000);
    end_it ("dropped", "heartbeat");
    scripted_live (HWS_ORPHAN_MS - 1000);
    s_broker.is_refused = true;
    scripted_lose (&s_broker);
    scripted_pass (&s_broker, SCRIPTED_GIVE_UP_MS - 10000);
    s_broker.is_refused = false;
    s_broker.epoch++;
    while (scripted_session ()->state != HWS_SESSION_GREETING) {
        scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    }

    scripted_welcome (&s_broker);

    expect_told ("dropped", "heartbeat");
}

static void another_broker_is_not_told (void **state)
{
    (void) state;
    scripted_attach ();
    end_it ("dropped", "heartbeat");
    s_broker.broker_id++;

    assert_false (is_told ());

    assert_int_equal (scripted_session ()->ended.count, 0);
}

static void the_oldest_endings_are_forgotten_first (void **state)
{
    (void) state;
    for (int i = 0; i < HWS_ENDED_MAX + 10; i++) {
        scripted_attach ();
        end_it ("dropped", "heartbeat");
        scripted_remove ();
    }
    const unsigned before = scripted_attaches ();

    scripted_restart ();

    assert_int_equal (scripted_attaches (), before + HWS_ENDED_MAX);
    assert_int_equal (scripted_session ()->ended.count, HWS_ENDED_MAX);
    expect_told ("dropped", "heartbeat"); /* the last one */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_TEST (an_ending_by_the_broker_is_told_to_the_next_epoch),
        SCRIPTED_TEST (an_ending_is_told_after_its_sender_was_destroyed),
        SCRIPTED_TEST (a_sender_that_is_destroyed_is_told_as_cancelled),
        SCRIPTED_TEST (a_sender_that_is_destroyed_without_a_connection_is_told_too),
        SCRIPTED_TEST (a_sender_that_is_destroyed_before_the_epoch_answers_is_told_at_once),
        SCRIPTED_TEST (a_cancel_that_finds_no_memory_takes_the_connection_along),
        SCRIPTED_TEST (the_broker_of_before_hears_of_a_sender_destroyed_meanwhile),
        SCRIPTED_TEST (a_program_that_leaves_tells_before_it_says_bye),
        SCRIPTED_TEST (an_ending_is_told_to_the_epoch_that_an_answer_was_lost_of),
        SCRIPTED_TEST (who_cannot_be_told_now_is_told_twice_a_second),
        SCRIPTED_TEST (a_seat_that_did_not_take_the_ending_is_cancelled),
        SCRIPTED_TEST (a_clean_ending_is_not_told),
        SCRIPTED_TEST (a_stream_that_never_began_is_not_told),
        SCRIPTED_TEST (an_ending_is_remembered_for_thirty_seconds),
        SCRIPTED_TEST (the_time_stands_still_without_a_connection),
        SCRIPTED_TEST (another_broker_is_not_told),
        SCRIPTED_TEST (the_oldest_endings_are_forgotten_first),
    };
    return cmocka_run_group_tests_name ("streams that have ended", tests, NULL, NULL);
}
