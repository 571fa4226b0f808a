/*  Writing control messages: every structure survives encode and decode, and what is
 *  written is what peers expect.
 */
#include "base/error.h"
#include "proto/control.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(array)  (sizeof array / sizeof *array)
#define TWO_63_PLUS_1 (UINT64_C (9223372036854775809))

static hws_control_t s_message; /* of the last decode; large, so not on the stack */
static hws_control_fault_t s_fault;

/*  Decodes from memory of the exact size, so that the sanitizers see every step
 *  beyond it.  */
static int decode_bytes (const char *verb, const void *json, size_t size)
{
    uint8_t *const copy = malloc (size + (size == 0));
    memcpy (copy, json, size);
    const int rc =
        hws_control_decode (hws_bytes_of_text (verb), hws_bytes (copy, size), &s_message, s_fault);
    free (copy);
    return rc;
}

static int decode (const char *verb, const char *json)
{
    return decode_bytes (verb, json, strlen (json));
}

/*  Encodes and decodes; the structures must then be the same to the last byte, so the
 *  caller begins with one that is all zeroes.  */
static void assert_round_trip (const hws_control_t *message)
{
    static uint8_t buffer[HWS_CONTROL_SIZE_MAX];
    size_t used = 0;
    assert_int_equal (hws_control_encode (message, buffer, sizeof buffer, &used), 0);

    const int rc = decode_bytes (hws_verb_word (message->verb), buffer, used);

    if (rc != 0 || memcmp (&s_message, message, sizeof s_message) != 0) {
        fail_msg ("%s %.*s: %d, %s", hws_verb_word (message->verb), (int) used, buffer, rc,
                  s_fault);
    }
}

static void assert_encodes (const hws_control_t *message, const char *expected)
{
    uint8_t buffer[4096];
    size_t used = 0;
    assert_int_equal (hws_control_encode (message, buffer, sizeof buffer - 1, &used), 0);
    buffer[used] = '\0';
    assert_string_equal ((const char *) buffer, expected);
}

/*  ---- Round trips ---- */

static void fill (hws_random_t *random, void *field, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        ((uint8_t *) field)[i] = (uint8_t) hws_random_next (random);
    }
}

/*  A number of any magnitude, the edges often.  */
static uint64_t any_number (hws_random_t *random)
{
    static const uint64_t edges[] = {0, 1, UINT64_C (1) << 53, TWO_63_PLUS_1, UINT64_MAX};
    if (hws_random_below (random, 3) == 0) {
        return edges[hws_random_below (random, COUNT (edges))];
    }
    return hws_random_next (random) >> hws_random_below (random, 64);
}

static uint64_t any_id (hws_random_t *random)
{
    const uint64_t number = any_number (random);
    return number ? number : 1;
}

static uint64_t any_ms (hws_random_t *random)
{
    return any_number (random) >> 11;
}

static hws_handle_t any_handle (hws_random_t *random)
{
    return (hws_handle_t){any_number (random), any_number (random)};
}

static void set_optional (hws_random_t *random, hws_optional_t *optional, uint64_t value)
{
    const uint64_t kind = hws_random_below (random, 3);
    if (kind == 0) {
        optional->state = HWS_NULL;
    } else if (kind == 1) {
        optional->state = HWS_VALUE;
        optional->value = value;
    }
}

/*  Any text that a name may be too; `size` is the room.  */
static void any_text (hws_random_t *random, char *text, size_t size)
{
    static const char *const pieces[] = {"a", "\"", "\\", " ", "\xc3\xbc", "\xf0\x9f\x98\x80", "/"};
    size_t used = 0;
    for (size_t i = hws_random_below (random, 2) ? hws_random_below (random, 2 * size) : 0; i > 0;
         i--) {
        const char *const piece = pieces[hws_random_below (random, COUNT (pieces))];
        if (used + strlen (piece) >= size) {
            break;
        }
        memcpy (text + used, piece, strlen (piece));
        used += strlen (piece);
    }
}

static void any_words (hws_random_t *random, hws_words_t *words)
{
    words->count = (uint32_t) hws_random_below (random, HWS_WORDS_MAX + 1);
    for (uint32_t i = 0; i < words->count; i++) {
        any_text (random, words->word[i], sizeof words->word[i]);
    }
}

static void make_hello (hws_random_t *random, hws_control_t *message)
{
    message->verb = HWS_VERB_HELLO;
    if (message->form == HWS_FORM_REQUEST) {
        hws_hello_t *const hello = &message->as.hello;
        fill (random, hello->client_id.bytes, HWS_ID_SIZE);
        hello->protocol = (uint32_t) hws_random_next (random);
        any_text (random, hello->client_name, sizeof hello->client_name);
        any_text (random, hello->client_version, sizeof hello->client_version);
        return;
    }
    hws_hello_ok_t *const ok = &message->as.hello_ok;
    ok->broker_id = any_number (random);
    ok->epoch = any_number (random);
    ok->protocol = 1;
    ok->record_bytes = any_number (random);
    ok->batch_bytes = any_number (random);
    ok->heartbeat_min_ms = any_ms (random);
    any_words (random, &ok->transports);
    any_words (random, &ok->features);
    ok->early_records = (uint32_t) hws_random_next (random);
    ok->early_bytes = any_number (random);
}

static void make_open (hws_random_t *random, hws_control_t *message)
{
    message->verb = HWS_VERB_OPEN;
    if (message->form == HWS_FORM_OK) {
        hws_open_ok_t *const ok = &message->as.open_ok;
        ok->handle = any_handle (random);
        fill (random, ok->owner_token.bytes, HWS_ID_SIZE);
        ok->heartbeat_interval_ms = any_ms (random);
        ok->reconnect_grace_ms = any_ms (random);
        set_optional (random, &ok->unattached_timeout_ms, any_ms (random));
        ok->orphan_ttl_ms = any_ms (random);
        set_optional (random, &ok->max_senders, any_number (random));
        ok->buffer_bytes = any_number (random);
        ok->record_bytes = any_number (random);
        return;
    }
    hws_open_t *const open = &message->as.open;
    open->open_id = any_number (random);
    any_text (random, open->name, sizeof open->name);
    open->kind = hws_random_below (random, 2) ? HWS_KIND_SPSC : HWS_KIND_MPSC;
    set_optional (random, &open->heartbeat_interval_ms, any_ms (random));
    set_optional (random, &open->reconnect_grace_ms, any_ms (random));
    set_optional (random, &open->unattached_timeout_ms, any_ms (random));
    set_optional (random, &open->orphan_ttl_ms, any_ms (random));
    set_optional (random, &open->max_senders, any_number (random));
    set_optional (random, &open->buffer_bytes, any_number (random));
    open->dedicated = hws_random_below (random, 2);
    open->cancel_token = any_number (random);
    open->has_resume = hws_random_below (random, 2);
    if (open->has_resume) {
        open->resume.handle = any_handle (random);
        fill (random, open->resume.owner_token.bytes, HWS_ID_SIZE);
        open->resume.highest_sender_id = any_number (random);
        open->resume.unseen_count = (uint32_t) hws_random_below (random, HWS_RANGES_MAX + 1);
        for (uint32_t i = 0; i < open->resume.unseen_count; i++) {
            const uint64_t first = hws_random_next (random) >> 1;
            open->resume.unseen[i] = (hws_range_t){first, first + any_id (random) / 2 + 1};
        }
    }
}

static void make_attach (hws_random_t *random, hws_control_t *message)
{
    message->verb = HWS_VERB_ATTACH;
    hws_attach_t *const attach = &message->as.attach;
    attach->has_handle = hws_random_below (random, 2);
    if (attach->has_handle) {
        attach->handle = any_handle (random);
    } else {
        attach->anchor[0] = 'n';
        any_text (random, attach->anchor + 1, sizeof attach->anchor - 1);
    }
    attach->session_id = any_number (random);
    attach->stream_cancel_handle = any_handle (random);
    any_words (random, &attach->supported_transport_keys);
    any_text (random, attach->label, sizeof attach->label);
    attach->cancel_token = any_number (random);
    attach->wait_ms = any_ms (random);
    attach->has_resume = hws_random_below (random, 2);
    if (attach->has_resume) {
        attach->resume.sender_id = any_id (random);
        fill (random, attach->resume.resume_token.bytes, HWS_ID_SIZE);
        attach->resume.acked_seq = any_number (random);
        attach->resume.acked_bytes = any_number (random);
        attach->resume.next_seq = any_number (random);
        any_text (random, attach->resume.ending, sizeof attach->resume.ending);
        any_text (random, attach->resume.code, sizeof attach->resume.code);
    }
}

static void make_attach_ok (hws_random_t *random, hws_control_t *message)
{
    message->verb = HWS_VERB_ATTACH;
    hws_attach_ok_t *const ok = &message->as.attach_ok;
    ok->handle = any_handle (random);
    any_text (random, ok->streaming_transport_key, sizeof ok->streaming_transport_key);
    ok->heartbeat_interval_ms = any_ms (random);
    ok->sender_id = any_number (random);
    ok->routing_session_id = any_number (random);
    ok->initial_credit = any_number (random);
    ok->slot_byte_budget = any_number (random);
    ok->next_seq = any_number (random);
    ok->next_bytes = any_number (random);
    ok->acked_seq = any_number (random);
    ok->acked_bytes = any_number (random);
    ok->record_bytes = any_number (random);
    ok->early_kept = hws_random_below (random, 2);
    fill (random, ok->resume_token.bytes, HWS_ID_SIZE);
    any_text (random, ok->endpoint, sizeof ok->endpoint);
    ok->has_ended = hws_random_below (random, 2);
    if (ok->has_ended) {
        any_text (random, ok->ending, sizeof ok->ending);
        any_text (random, ok->code, sizeof ok->code);
        any_text (random, ok->reason, sizeof ok->reason);
    }
}

static void make_short_request (hws_random_t *random, hws_control_t *message)
{
    static const hws_verb_t verbs[] = {
        HWS_VERB_DETACH, HWS_VERB_CANCEL, HWS_VERB_CANCEL_TOKEN, HWS_VERB_RESERVE_TOKEN,
        HWS_VERB_PING,   HWS_VERB_PONG,   HWS_VERB_BYE};
    message->verb = verbs[hws_random_below (random, COUNT (verbs))];
    if (message->verb == HWS_VERB_DETACH) {
        message->as.detach =
            (hws_detach_t){any_handle (random), any_id (random), any_number (random)};
    } else if (message->verb == HWS_VERB_CANCEL) {
        hws_cancel_t *const cancel = &message->as.cancel;
        cancel->handle = any_handle (random);
        cancel->sender_id = any_number (random);
        any_text (random, cancel->reason, sizeof cancel->reason);
        cancel->wait_ms = any_ms (random);
        any_text (random, cancel->code, sizeof cancel->code);
    } else if (message->verb == HWS_VERB_CANCEL_TOKEN) {
        message->as.token.token = any_number (random);
        any_text (random, message->as.token.reason, sizeof message->as.token.reason);
    }
}

static void make_broker_message (hws_random_t *random, hws_control_t *message)
{
    static const hws_verb_t verbs[] = {HWS_VERB_STREAM_CANCEL, HWS_VERB_ANCHOR_CLOSED,
                                       HWS_VERB_RESYNC, HWS_VERB_GOAWAY};
    message->verb = verbs[hws_random_below (random, COUNT (verbs))];
    if (message->verb == HWS_VERB_STREAM_CANCEL) {
        hws_stream_cancel_t *const cancel = &message->as.stream_cancel;
        cancel->session_id = any_number (random);
        cancel->stream_cancel_handle = any_handle (random);
        any_text (random, cancel->ending, sizeof cancel->ending);
        any_text (random, cancel->code, sizeof cancel->code);
        any_text (random, cancel->reason, sizeof cancel->reason);
        cancel->next_seq = any_number (random);
    } else if (message->verb == HWS_VERB_ANCHOR_CLOSED) {
        hws_anchor_closed_t *const closed = &message->as.anchor_closed;
        closed->handle = any_handle (random);
        any_text (random, closed->code, sizeof closed->code);
        any_text (random, closed->reason, sizeof closed->reason);
        closed->detached = any_number (random);
        closed->finalized = any_number (random);
        closed->dropped = any_number (random);
        closed->cancelled = any_number (random);
    } else if (message->verb == HWS_VERB_RESYNC) {
        message->as.epoch = any_number (random);
    } else {
        any_text (random, message->as.reason, sizeof message->as.reason);
    }
}

static void make_refusal (hws_random_t *random, hws_control_t *message)
{
    message->verb = (hws_verb_t) hws_random_below (random, HWS_VERB_COUNT);
    message->form = HWS_FORM_ERR;
    message->as.refusal.code = HWS_EBAD_REQUEST - (int) hws_random_below (random, 19);
    any_text (random, message->as.refusal.reason, sizeof message->as.refusal.reason);
    any_text (random, message->as.refusal.endpoint, sizeof message->as.refusal.endpoint);
}

static void exchange_round_trips (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    static hws_control_t message;
    for (size_t i = 0; i < test_scaled (50000); i++) {
        memset (&message, 0, sizeof message);
        message.has_id = hws_random_below (&random, 2);
        message.id = message.has_id ? any_number (&random) : 0;
        message.form = hws_random_below (&random, 2) ? HWS_FORM_OK : HWS_FORM_REQUEST;
        switch (hws_random_below (&random, 7)) {
        case 0:
            make_hello (&random, &message);
            break;
        case 1:
            make_open (&random, &message);
            break;
        case 2:
            message.form = HWS_FORM_REQUEST;
            make_attach (&random, &message);
            break;
        case 3:
            message.form = HWS_FORM_OK;
            make_attach_ok (&random, &message);
            break;
        case 4:
            message.form = HWS_FORM_REQUEST;
            make_short_request (&random, &message);
            break;
        case 5:
            message.form = HWS_FORM_REQUEST;
            make_broker_message (&random, &message);
            break;
        default:
            make_refusal (&random, &message);
            break;
        }
        assert_round_trip (&message);
    }
}

static void exchange_of_the_old_numbers_round_trips (void **state)
{
    (void) state;
    static hws_control_t message;
    memset (&message, 0, sizeof message);
    message.verb = HWS_VERB_ATTACH;
    message.form = HWS_FORM_OK;
    strcpy (message.as.attach_ok.streaming_transport_key, "messenger-mux-v1");
    message.as.attach_ok.heartbeat_interval_ms = 5000;
    message.as.attach_ok.sender_id = 7;
    message.as.attach_ok.routing_session_id = 8;
    message.as.attach_ok.initial_credit = 256;
    message.as.attach_ok.slot_byte_budget = 1024;

    assert_round_trip (&message);

    assert_encodes (
        &message, "{\"Ok\":{\"handle\":\"00000000000000000000000000000000\","
                  "\"streaming_transport_key\":\"messenger-mux-v1\",\"heartbeat_interval_ms\":5000,"
                  "\"sender_id\":\"7\",\"routing_session_id\":\"8\",\"initial_credit\":\"256\","
                  "\"slot_byte_budget\":\"1024\",\"next_seq\":\"0\",\"next_bytes\":\"0\","
                  "\"acked_seq\":\"0\",\"acked_bytes\":\"0\",\"record_bytes\":\"0\","
                  "\"early\":\"dropped\",\"resume_token\":\"00000000000000000000000000000000\"}}");
}

static void attached_body_round_trips (void **state)
{
    (void) state;
    static hws_attached_t attached;
    static hws_attached_t back;
    memset (&attached, 0, sizeof attached);
    attached.handle = (hws_handle_t){1, UINT64_MAX};
    attached.sender_id = TWO_63_PLUS_1;
    attached.session_id = UINT64_MAX;
    attached.seat_key = 1;
    attached.next_bytes = UINT64_MAX - 1;
    strcpy (attached.label, "worker \"1\"");
    strcpy (attached.address, "tcp://127.0.0.1:1");
    uint8_t buffer[512];
    size_t used = 0;

    assert_int_equal (hws_attached_encode (&attached, buffer, sizeof buffer, &used), 0);
    assert_int_equal (hws_attached_decode (hws_bytes (buffer, used), &back), 0);

    assert_memory_equal (&attached, &back, sizeof back);
    assert_int_equal (hws_attached_encode (&attached, buffer, used - 1, &used), HWS_ETOO_LARGE);
    assert_int_equal (hws_attached_decode (hws_bytes_of_text ("[]"), &back), HWS_EMALFORMED);
    assert_int_equal (hws_attached_decode (hws_bytes_of_text ("{}"), &back), HWS_EBAD_REQUEST);
}

static void request_without_options_is_short (void **state)
{
    (void) state;
    static hws_control_t message;
    memset (&message, 0, sizeof message);
    message.verb = HWS_VERB_CANCEL;
    message.has_id = true;
    message.id = 0;
    message.as.cancel.handle = (hws_handle_t){1, 2};

    assert_encodes (&message, "{\"id\":\"0\",\"handle\":\"00000000000000010000000000000002\"}");
}

static void every_verb_leads_back_to_itself (void **state)
{
    (void) state;
    for (hws_verb_t verb = HWS_VERB_HELLO; verb < HWS_VERB_COUNT; verb++) {
        decode (hws_verb_word (verb), "{\"Err\":{\"code\":\"busy\"}}");

        assert_int_equal (s_message.verb, verb);
        assert_int_equal (s_message.form, HWS_FORM_ERR);
        assert_int_equal (s_message.as.refusal.code, HWS_EBUSY);
    }
}

static void encoding_into_too_small_a_buffer_writes_no_further (void **state)
{
    (void) state;
    static hws_control_t message;
    memset (&message, 0, sizeof message);
    message.verb = HWS_VERB_GOAWAY;
    strcpy (message.as.reason, "leaving");
    uint8_t buffer[64];
    size_t used = 0;
    assert_int_equal (hws_control_encode (&message, buffer, sizeof buffer, &used), 0);
    const size_t whole = used;

    for (size_t size = 0; size < whole; size++) {
        memset (buffer, '#', sizeof buffer);
        assert_int_equal (hws_control_encode (&message, buffer, size, &used), HWS_ETOO_LARGE);
        assert_int_equal (buffer[size], '#');
    }
}

static void errors_that_never_leave_a_process_are_not_written (void **state)
{
    (void) state;
    static hws_control_t message;
    memset (&message, 0, sizeof message);
    message.verb = HWS_VERB_ERROR;
    message.form = HWS_FORM_ERR;

    message.as.refusal.code = HWS_ENO_MEMORY;
    assert_encodes (&message, "{\"Err\":{\"code\":\"limit\"}}");
    message.as.refusal.code = HWS_EMALFORMED;
    assert_encodes (&message, "{\"Err\":{\"code\":\"protocol\"}}");

    assert_int_equal (decode ("ERROR", "{\"Err\":{\"code\":\"timeout\"}}"), 0);
    assert_int_equal (s_message.as.refusal.code, HWS_EPROTOCOL);
    assert_int_equal (decode ("ERROR", "{\"Err\":{\"code\":\"invented_later\"}}"), 0);
    assert_int_equal (s_message.as.refusal.code, HWS_EPROTOCOL);
}

static void text_that_is_not_utf8_is_still_readable_when_written (void **state)
{
    (void) state;
    static hws_control_t message;
    memset (&message, 0, sizeof message);
    message.verb = HWS_VERB_GOAWAY;
    strcpy (message.as.reason, "cut \xc3");

    assert_encodes (&message, "{\"reason\":\"cut ?\"}");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (exchange_round_trips),
        cmocka_unit_test (exchange_of_the_old_numbers_round_trips),
        cmocka_unit_test (attached_body_round_trips),
        cmocka_unit_test (request_without_options_is_short),
        cmocka_unit_test (every_verb_leads_back_to_itself),
        cmocka_unit_test (encoding_into_too_small_a_buffer_writes_no_further),
        cmocka_unit_test (errors_that_never_leave_a_process_are_not_written),
        cmocka_unit_test (text_that_is_not_utf8_is_still_readable_when_written),
    };
    return cmocka_run_group_tests_name ("control write", tests, NULL, NULL);
}
