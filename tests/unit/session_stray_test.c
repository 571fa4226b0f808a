/*  Answers that come when nobody waits for them: of who is gone, what they gave is given back;
 *  of who was told to say everything again and is about to, it is kept.
 */
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static scripted_t s_broker;
static hws_session_sender_t s_sender;
static hws_session_receiver_t s_receiver;

static const hws_handle_t s_handle = {.hi = 99, .lo = 1};

static void sender_notified (hws_session_sender_t *core)
{
    (void) core;
}

static void receiver_notified (hws_session_receiver_t *core)
{
    (void) core;
}

/*  The ATTACH was answered: a new seat, with that credit from `next_seq` on.  */
static hws_control_t seated (uint64_t next_seq, uint64_t credit)
{
    return (hws_control_t){.verb = HWS_VERB_ATTACH,
                           .as.attach_ok = {.handle = s_handle,
                                            .streaming_transport_key = HWS_TRANSPORT_MUX,
                                            .heartbeat_interval_ms = 5000,
                                            .sender_id = 1,
                                            .routing_session_id = 7,
                                            .next_seq = next_seq,
                                            .next_bytes = 5 * next_seq,
                                            .initial_credit = credit,
                                            .slot_byte_budget = 16384}};
}

/*  How often CANCEL was said.  */
static unsigned cancels (void)
{
    unsigned count = 0;
    for (size_t i = 0; i < s_broker.of_streams.count; i++) {
        count += strcmp (s_broker.of_streams.word[i], "CANCEL") == 0;
    }
    return count;
}

static void attach (bool is_early)
{
    s_sender =
        (hws_session_sender_t){.notify = sender_notified, .anchor = "a", .is_early = is_early};
    hws_session_attach (&s_broker.session, s_broker.now, &s_sender);
    scripted_pump (&s_broker);
}

static void answer_behind_a_resync_cancels_no_seat (void **state)
{
    (void) state;
    attach (false);

    scripted_resync (&s_broker);
    scripted_answer (&s_broker, seated (0, 10));
    scripted_pump (&s_broker);
    assert_int_equal (cancels (), 0);
    scripted_welcome (&s_broker);
    scripted_answer (&s_broker, seated (0, 10));

    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&s_sender);
}

static void answer_of_who_is_gone_cancels_its_seat (void **state)
{
    (void) state;
    attach (false);

    scripted_resync (&s_broker);
    hws_session_remove_sender (&s_sender);
    scripted_answer (&s_broker, seated (0, 10));
    scripted_welcome (&s_broker);

    assert_int_equal (cancels (), 1);
}

static void answer_behind_a_resync_cancels_no_anchor (void **state)
{
    (void) state;
    const hws_control_t opened = {
        .verb = HWS_VERB_OPEN,
        .as.open_ok = {.handle = s_handle, .heartbeat_interval_ms = 5000, .record_bytes = 1000}};
    s_receiver = (hws_session_receiver_t){.notify = receiver_notified};
    hws_session_open (&s_broker.session, s_broker.now, &s_receiver);
    scripted_pump (&s_broker);

    scripted_resync (&s_broker);
    scripted_answer (&s_broker, opened);
    scripted_pump (&s_broker);
    assert_int_equal (cancels (), 0);
    scripted_welcome (&s_broker);
    scripted_answer (&s_broker, opened);

    assert_int_equal (s_receiver.rx.state, HWS_RX_OPEN);
    hws_session_remove_receiver (&s_receiver);
}

/*  The first answer got lost behind early data that filled the window.  */
static void repeated_attach_may_find_no_credit (void **state)
{
    (void) state;
    attach (true);
    assert_int_equal (hws_tx_append (&s_sender.tx, "x", 1), 0);
    assert_int_equal (hws_tx_append (&s_sender.tx, "y", 1), 0);
    hws_session_changed (&s_sender);
    scripted_pump (&s_broker);

    scripted_resync (&s_broker);
    scripted_welcome (&s_broker);
    scripted_answer (&s_broker, seated (2, 0));

    assert_int_equal (s_sender.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&s_sender);
}

static void new_seat_without_credit_is_refused (void **state)
{
    (void) state;
    attach (false);

    scripted_answer (&s_broker, seated (0, 0));

    assert_int_equal (s_sender.tx.result, HWS_EPROTOCOL);
    hws_session_remove_sender (&s_sender);
}

static int begin (void **state)
{
    (void) state;
    scripted_begin (&s_broker);
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
    return 0;
}

static int end (void **state)
{
    (void) state;
    scripted_end (&s_broker);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, begin, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (answer_behind_a_resync_cancels_no_seat),
        TEST (answer_of_who_is_gone_cancels_its_seat),
        TEST (answer_behind_a_resync_cancels_no_anchor),
        TEST (repeated_attach_may_find_no_credit),
        TEST (new_seat_without_credit_is_refused),
    };
    return cmocka_run_group_tests_name ("session_stray", tests, NULL, NULL);
}
