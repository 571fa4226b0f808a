#include "tests/support/scripted_sender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

const hws_handle_t s_handle = {.hi = 99, .lo = UINT64_C (7) << 32 | 1};
scripted_t s_broker;
hws_session_sender_t s_sender;
static bool s_has_sender;

static void ignore (hws_session_sender_t *sender)
{
    (void) sender;
}

hws_session_t *scripted_session (void)
{
    return &s_broker.session;
}

int scripted_set_up (void **state)
{
    (void) state;
    scripted_begin (&s_broker);
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
    s_has_sender = false;
    return 0;
}

void scripted_remove (void)
{
    hws_session_remove_sender (&s_sender);
    s_has_sender = false;
    scripted_pump (&s_broker);
}

int scripted_tear_down (void **state)
{
    (void) state;
    if (s_has_sender) {
        hws_session_remove_sender (&s_sender);
    }
    scripted_end (&s_broker);
    return 0;
}

/*  ---- The sender ---- */

void scripted_ask (hws_session_sender_t sender)
{
    s_sender = sender;
    s_sender.notify = ignore;
    hws_session_attach (scripted_session (), s_broker.now, &s_sender);
    scripted_pump (&s_broker);
    s_has_sender = true;
}

hws_control_t scripted_seat_at (uint64_t acked, uint64_t next)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach_ok = {.handle = s_handle,
                                              .streaming_transport_key = HWS_TRANSPORT_MUX,
                                              .heartbeat_interval_ms = HWS_INTERVAL_DEFAULT,
                                              .sender_id = SENDER_ID,
                                              .acked_seq = acked,
                                              .acked_bytes = acked * WIRE,
                                              .next_seq = next,
                                              .next_bytes = next * WIRE,
                                              .initial_credit = 1000,
                                              .slot_byte_budget = 1 << 16}};
    message.as.attach_ok.resume_token.bytes[0] = TOKEN_BYTE;
    return message;
}

void scripted_attach (void)
{
    scripted_ask ((hws_session_sender_t){.anchor = "a", .label = "me"});
    scripted_answer (&s_broker, scripted_seat_at (0, 0));
}

void scripted_changed (void)
{
    hws_session_changed (&s_sender);
    scripted_pump (&s_broker);
}

void scripted_send (int count)
{
    for (int i = 0; i < count; i++) {
        assert_int_equal (hws_tx_append (&s_sender.tx, "x", 1), 0);
    }
    scripted_changed ();
}

void scripted_consume (uint64_t acked)
{
    const hws_grant_t it = {
        .stream = s_sender.session_id, .acked_seq = acked, .next_seq = acked, .limit_seq = 1000};
    scripted_grant (&s_broker, &it);
}

void scripted_expect_end (int result, const char *cause)
{
    assert_int_equal (s_sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (s_sender.tx.result, result);
    assert_string_equal (s_sender.tx.cause, cause);
}

/*  ---- The broker ---- */

unsigned scripted_attaches (void)
{
    return s_broker.asked_count[HWS_VERB_ATTACH];
}

const hws_attach_t *scripted_attach_asked (void)
{
    return &s_broker.asked[HWS_VERB_ATTACH].as.attach;
}

void scripted_come_back (void)
{
    scripted_lose (&s_broker);
    s_broker.of_streams.count = 0;
    scripted_return (&s_broker);
}

void scripted_restart (void)
{
    s_broker.epoch++;
    scripted_come_back ();
}

void scripted_goaway (void)
{
    scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_GOAWAY, .as.reason = "drained"});
}

void scripted_live (hws_ms_t length_ms)
{
    const hws_ms_t end = s_broker.now + length_ms;
    while (s_broker.now < end) {
        scripted_pass (&s_broker, hws_time_min (1000, end - s_broker.now));
        scripted_say (&s_broker, (hws_control_t){.verb = HWS_VERB_PONG});
    }
}

void scripted_expect_said (const char *const *words, size_t count)
{
    assert_int_equal (s_broker.of_streams.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal (s_broker.of_streams.word[i], words[i]);
    }
}
