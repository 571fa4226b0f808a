/*  A broker that is leaving: nothing ends by that. It gets nothing new, and what it has goes on
 * until it closes the connection.
 */
#include "tests/support/scripted_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static void ask_by_name (void)
{
    scripted_ask ((hws_session_sender_t){.anchor = "a"});
}

static void a_stream_goes_on_at_a_broker_that_is_leaving (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_goaway ();
    s_broker.of_streams.count = 0;

    scripted_send (10);
    EXPECT_SAID ("RECORDS");
    scripted_consume (10);
    hws_tx_detach (&s_sender.tx);
    scripted_changed ();
    scripted_consume (11);

    scripted_expect_end (0, "");
}

static void a_broker_that_is_leaving_is_asked_for_no_seat (void **state)
{
    (void) state;
    scripted_goaway ();

    ask_by_name ();
    scripted_pass (&s_broker, HWS_ATTACH_AGAIN_MS);
    assert_int_equal (scripted_attaches (), 0);
    scripted_restart ();

    assert_int_equal (scripted_attaches (), 1);
    scripted_answer (&s_broker, scripted_seat_at (0, 0));
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

static void a_refusal_of_a_broker_that_is_leaving_is_not_final (void **state)
{
    (void) state;
    ask_by_name ();
    scripted_goaway ();

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    scripted_restart ();

    assert_int_equal (scripted_attaches (), 2);
}

static void a_resume_that_a_leaving_broker_refuses_is_not_final (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_restart ();
    scripted_goaway ();

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ECLOSED);
    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    scripted_restart ();

    assert_true (scripted_attach_asked ()->has_resume);
    assert_int_equal (scripted_attaches (), 3);
}

static void a_name_that_a_leaving_broker_does_not_find_is_waited_for (void **state)
{
    (void) state;
    scripted_ask ((hws_session_sender_t){.anchor = "a", .wait_ms = 20000});
    scripted_goaway ();

    scripted_refuse (&s_broker, HWS_VERB_ATTACH, HWS_ENOT_FOUND);
    scripted_live (20000 - 1);
    assert_int_equal (scripted_attaches (), 1);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    scripted_live (1);

    assert_int_equal (s_sender.tx.result, HWS_EUNREACHABLE);
}

static void an_answer_of_a_broker_that_is_leaving_counts (void **state)
{
    (void) state;
    ask_by_name ();
    scripted_goaway ();

    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);
    assert_int_equal (scripted_attaches (), 1); /* it is not asked again */
    scripted_answer (&s_broker, scripted_seat_at (0, 0));

    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
}

static void a_seat_is_asked_for_again_on_the_connection_of_a_leaving_broker (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_goaway ();

    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);

    assert_int_equal (scripted_attaches (), 2);
}

static void a_broker_that_never_leaves_is_not_waited_for_too_long (void **state)
{
    (void) state;
    scripted_goaway ();
    ask_by_name ();

    scripted_live (SCRIPTED_CONNECT_MS - 1);
    assert_int_equal (s_sender.tx.state, HWS_TX_ATTACHING);
    scripted_live (1);

    assert_int_equal (s_sender.tx.result, HWS_EUNREACHABLE);
    assert_string_equal (s_sender.tx.reason, "the broker is leaving: drained");
}

static void a_broker_that_comes_back_in_its_epoch_is_asked (void **state)
{
    (void) state;
    scripted_goaway ();
    ask_by_name ();

    scripted_come_back ();

    assert_int_equal (scripted_attaches (), 1);
}

/*  The end of the connection was not seen.  */
static void the_next_epoch_on_its_connection_is_asked (void **state)
{
    (void) state;
    scripted_attach ();
    scripted_goaway ();
    s_broker.epoch++;

    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);

    assert_int_equal (scripted_attaches (), 2);
    assert_true (scripted_attach_asked ()->has_resume);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED_TEST (a_stream_goes_on_at_a_broker_that_is_leaving),
        SCRIPTED_TEST (a_broker_that_is_leaving_is_asked_for_no_seat),
        SCRIPTED_TEST (a_refusal_of_a_broker_that_is_leaving_is_not_final),
        SCRIPTED_TEST (a_resume_that_a_leaving_broker_refuses_is_not_final),
        SCRIPTED_TEST (a_name_that_a_leaving_broker_does_not_find_is_waited_for),
        SCRIPTED_TEST (an_answer_of_a_broker_that_is_leaving_counts),
        SCRIPTED_TEST (a_seat_is_asked_for_again_on_the_connection_of_a_leaving_broker),
        SCRIPTED_TEST (a_broker_that_never_leaves_is_not_waited_for_too_long),
        SCRIPTED_TEST (a_broker_that_comes_back_in_its_epoch_is_asked),
        SCRIPTED_TEST (the_next_epoch_on_its_connection_is_asked),
    };
    return cmocka_run_group_tests_name ("a broker that is leaving", tests, NULL, NULL);
}
