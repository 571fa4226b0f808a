/*  Requests of a session: attach and open, their answers, and answers that never come.  */
#include "tests/support/session_test.h"

/*  ---- Attaching ---- */

static void attach_to_unknown_anchor_is_not_found (void **state)
{
    (void) state;
    hws_session_sender_t sender;

    attach (&sender, SENDER, "nowhere");
    network_settle (&s_network);

    assert_int_equal (sender.tx.state, HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ENOT_FOUND);
    assert_non_null (strstr (sender.tx.reason, "nowhere"));
    hws_session_remove_sender (&sender);
}

static void attach_answer_lost (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    s_network.clients[SENDER].is_silent = true;
    settle (&receiver);
    s_network.clients[SENDER].is_silent = false;

    pass (&receiver, HWS_REQUEST_RETRY_MS);

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    assert_int_equal (sender.tx.sender_id, 1);
    assert_int_equal (hws_engine_counts (s_network.engine).seats, 1);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void attach_waits_for_the_anchor (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    sender.wait_ms = 20000;
    snprintf (sender.anchor, sizeof sender.anchor, "late");
    hws_session_attach (session (SENDER), s_network.now, &sender);
    network_pass (&s_network, 7000);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);

    open_anchor (&receiver, "late");

    assert_int_equal (sender.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void mux_answer_without_window_is_refused (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    attach (&sender, SENDER, "a");
    const hws_control_t answer = {
        .verb = HWS_VERB_ATTACH,
        .form = HWS_FORM_OK,
        .has_id = true,
        .id = sender.attach.id,
        .as.attach_ok = {.sender_id = 2, .streaming_transport_key = HWS_TRANSPORT_MUX}};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes (json, size));

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_non_null (strstr (sender.tx.reason, "initial_credit"));
    hws_session_remove_sender (&sender);
}

static void absent_broker_is_unreachable_after_connect_ms (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_refused = true;
    network_cut (&s_network, SENDER);
    attach (&sender, SENDER, "a");

    network_pass (&s_network, 4999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    network_pass (&s_network, 1);

    assert_int_equal (sender.tx.result, HWS_EUNREACHABLE);
    hws_session_remove_sender (&sender);
}

static void cancel_during_attach (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");

    hws_session_cancel (session (SENDER), s_network.now, &sender, "changed my mind");

    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (sender.tx.cause, "interrupted");
    settle (&receiver); /* the request arrives, its answer comes back */
    assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    assert_int_equal (receiver.endings, receiver.attached);
    assert_int_equal (receiver.records, 0);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void attach_that_was_given_up_leaves_no_seat (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");

    hws_session_remove_sender (&sender);
    settle (&receiver);

    assert_int_equal (hws_engine_counts (s_network.engine).seats, 0);
    assert_int_equal (receiver.endings, receiver.attached);
    remove_anchor (&receiver);
}

static void cause_that_is_not_known_is_unknown (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender;
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);
    static const char json[] =
        "{\"session_id\":\"1\",\"ending\":\"dropped\",\"code\":\"solar_flare\"}";

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("STREAM_CANCEL"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.result, HWS_ETRANSPORT);
    assert_string_equal (sender.tx.cause, "unknown");
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

static void answer_under_another_verb_is_none (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_silent = true;
    attach (&sender, SENDER, "a");
    network_settle (&s_network);
    char json[256];
    snprintf (json, sizeof json,
              "{\"id\":\"%u\",\"Ok\":{\"handle\":\"%032x\",\"heartbeat_interval_ms\":5000}}",
              (unsigned) session (SENDER)->last_request_id, 7u);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("OPEN"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    hws_session_remove_sender (&sender);
}

static void transport_that_is_not_known_is_refused (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    s_network.clients[SENDER].is_silent = true;
    attach (&sender, SENDER, "a");
    network_settle (&s_network);
    char json[256];
    snprintf (json, sizeof json,
              "{\"id\":\"%u\",\"Ok\":{\"streaming_transport_key\":\"pigeon-v1\","
              "\"heartbeat_interval_ms\":5000,\"sender_id\":\"1\",\"initial_credit\":\"9\"}}",
              (unsigned) session (SENDER)->last_request_id);

    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes_of_text (json));

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_non_null (strstr (sender.tx.reason, "pigeon-v1"));
    hws_session_remove_sender (&sender);
}

/*  Answers the sender's ATTACH with what the broker would not say.  */
static void answer_attach (const hws_session_sender_t *sender, const hws_attach_ok_t *ok)
{
    const hws_control_t answer = {.verb = HWS_VERB_ATTACH,
                                  .form = HWS_FORM_OK,
                                  .has_id = true,
                                  .id = sender->attach.id,
                                  .as.attach_ok = *ok};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&answer, json, sizeof json, &size), 0);
    hws_session_control (session (SENDER), s_network.now, hws_bytes_of_text ("ATTACH"),
                         hws_bytes (json, size));
}

static void new_stream_has_no_position (void **state)
{
    (void) state;
    hws_session_sender_t sender;
    attach (&sender, SENDER, "a");

    answer_attach (&sender, &(hws_attach_ok_t){.sender_id = 2,
                                               .streaming_transport_key = HWS_TRANSPORT_MUX,
                                               .initial_credit = 9,
                                               .next_seq = 7,
                                               .acked_seq = 7});

    assert_int_equal (sender.tx.result, HWS_EPROTOCOL);
    assert_string_equal (session (SENDER)->error,
                         "the broker's answer to ATTACH: next_seq of a new stream is not 0");
    hws_session_remove_sender (&sender);
}

/*  A broker that lives, but answers nothing more.  */
static void answer_pings_for (int client, hws_ms_t length_ms)
{
    s_network.clients[client].is_silent = true;
    for (hws_ms_t i = 0; i < length_ms; i++) {
        hws_session_control (session (client), s_network.now, hws_bytes_of_text ("PONG"),
                             hws_bytes_of_text ("{}"));
        network_pass (&s_network, 1);
    }
}

static void attach_that_is_not_answered_ends (void **state)
{
    (void) state;
    hws_session_sender_t sender, patient;
    attach (&sender, SENDER, "a");
    memset (&patient, 0, sizeof patient);
    patient.notify = sender_notified;
    patient.wait_ms = 2000;
    snprintf (patient.anchor, sizeof patient.anchor, "a");
    hws_session_attach (session (SENDER), s_network.now, &patient);

    answer_pings_for (SENDER, 4999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    answer_pings_for (SENDER, 1);
    assert_int_equal (sender.tx.result, HWS_EUNREACHABLE);
    assert_string_equal (session (SENDER)->error, "the broker does not answer ATTACH");
    answer_pings_for (SENDER, 1999);
    assert_int_equal (patient.tx.state, HWS_TX_ATTACHING);
    answer_pings_for (SENDER, 1);
    assert_int_equal (patient.tx.result, HWS_EUNREACHABLE);

    assert_int_equal (session (SENDER)->state, HWS_SESSION_UP);
    hws_session_remove_sender (&sender);
    hws_session_remove_sender (&patient);
}

static void open_that_is_not_answered_ends (void **state)
{
    (void) state;
    receiver_t receiver;
    s_network.clients[RECEIVER].is_silent = true;
    open_anchor (&receiver, "a");

    answer_pings_for (RECEIVER, 4999);
    assert_int_equal (receiver.core.rx.state, HWS_RX_OPENING);
    answer_pings_for (RECEIVER, 1);

    assert_int_equal (receiver.core.rx.result, HWS_EUNREACHABLE);
    assert_string_equal (session (RECEIVER)->error, "the broker does not answer OPEN");
    remove_anchor (&receiver);
}

static void attach_waits_longer_than_the_broker (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender, patient;
    memset (&sender, 0, sizeof sender);
    sender.notify = sender_notified;
    snprintf (sender.anchor, sizeof sender.anchor, "a");
    patient = sender;
    sender.wait_ms = 150000; /* the broker waits for a minute */
    patient.wait_ms = INT64_MAX;
    hws_session_attach (session (SENDER), s_network.now, &sender);
    hws_session_attach (session (OTHER), s_network.now, &patient);

    network_pass (&s_network, 149999);
    assert_int_equal (sender.tx.state, HWS_TX_ATTACHING);
    network_pass (&s_network, 1);
    assert_int_equal (sender.tx.result, HWS_ENOT_FOUND);
    assert_int_equal (patient.tx.state, HWS_TX_ATTACHING);
    open_anchor (&receiver, "a");
    settle (&receiver);

    assert_int_equal (patient.tx.state, HWS_TX_OPEN);
    hws_session_remove_sender (&sender);
    hws_session_remove_sender (&patient);
    remove_anchor (&receiver);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (attach_to_unknown_anchor_is_not_found),
        TEST (attach_answer_lost),
        TEST (attach_waits_for_the_anchor),
        TEST (mux_answer_without_window_is_refused),
        TEST (absent_broker_is_unreachable_after_connect_ms),
        TEST (cancel_during_attach),
        TEST (attach_that_was_given_up_leaves_no_seat),
        TEST (cause_that_is_not_known_is_unknown),
        TEST (answer_under_another_verb_is_none),
        TEST (transport_that_is_not_known_is_refused),
        TEST (new_stream_has_no_position),
        TEST (attach_that_is_not_answered_ends),
        TEST (open_that_is_not_answered_ends),
        TEST (attach_waits_longer_than_the_broker),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
