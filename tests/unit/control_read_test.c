/*  Reading control messages: what old and new peers write is understood, all else is
 *  one error that names the member.
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

static void assert_refused (const char *verb, const char *json, int code, const char *fault)
{
    const int rc = decode (verb, json);
    if (rc != code || strcmp (s_fault, fault) != 0) {
        fail_msg ("%s %s: %d, %s", verb, json, rc, s_fault);
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

/*  ---- Old forms ---- */

static void old_attach_request_decodes (void **state)
{
    (void) state;

    const int rc = decode ("ATTACH", "{\"handle\":{\"hi\":1,\"lo\":2},\"session_id\":3,"
                                     "\"stream_cancel_handle\":{\"hi\":4,\"lo\":5}}");

    assert_int_equal (rc, 0);
    const hws_attach_t *const attach = &s_message.as.attach;
    assert_int_equal (s_message.form, HWS_FORM_REQUEST);
    assert_false (s_message.has_id);
    assert_true (attach->has_handle);
    assert_true (hws_handle_equal (attach->handle, (hws_handle_t){1, 2}));
    assert_true (attach->session_id == 3);
    assert_true (hws_handle_equal (attach->stream_cancel_handle, (hws_handle_t){4, 5}));
    assert_int_equal (attach->supported_transport_keys.count, 0);
    assert_string_equal (attach->label, "");
    assert_false (attach->has_resume);
}

static void old_attach_response_decodes (void **state)
{
    (void) state;

    const int rc = decode ("ATTACH", "{\"Ok\":{\"streaming_transport_key\":\"tcp-stream\","
                                     "\"heartbeat_interval_ms\":5000,\"sender_id\":2}}");

    assert_int_equal (rc, 0);
    const hws_attach_ok_t *const ok = &s_message.as.attach_ok;
    assert_int_equal (s_message.form, HWS_FORM_OK);
    assert_string_equal (ok->streaming_transport_key, "tcp-stream");
    assert_true (ok->heartbeat_interval_ms == 5000);
    assert_true (ok->sender_id == 2);
    assert_true (ok->initial_credit == 0);
    assert_true (ok->slot_byte_budget == 0);
    assert_true (ok->routing_session_id == 0);
    assert_false (ok->early_kept);
    assert_false (ok->has_ended);
}

static void mux_answer_without_window_is_refused (void **state)
{
    (void) state;
    hws_attach_ok_t ok = {.streaming_transport_key = HWS_TRANSPORT_MUX};

    assert_int_equal (hws_attach_ok_check (&ok, true, s_fault), HWS_EPROTOCOL);

    assert_string_equal (s_fault, "initial_credit is 0: the broker does not offer router-mux-v1");
    assert_int_equal (hws_attach_ok_check (&ok, false, s_fault), 0);
    ok.initial_credit = 1;
    assert_int_equal (hws_attach_ok_check (&ok, true, s_fault), 0);
}

static void answer_with_an_unknown_transport_is_refused (void **state)
{
    (void) state;
    const hws_attach_ok_t ok = {.streaming_transport_key = "tcp-stream", .initial_credit = 9};

    assert_int_equal (hws_attach_ok_check (&ok, true, s_fault), HWS_EPROTOCOL);

    assert_string_equal (s_fault, "streaming_transport_key tcp-stream is not known");
}

static void answer_that_tells_of_an_ending_needs_no_window (void **state)
{
    (void) state;
    const hws_attach_ok_t ok = {.has_ended = true, .ending = "detached"};

    assert_int_equal (hws_attach_ok_check (&ok, true, s_fault), 0);
}

static void zero_byte_budget_means_default (void **state)
{
    (void) state;
    hws_attach_ok_t ok = {.slot_byte_budget = 0};
    assert_true (hws_attach_ok_window_bytes (&ok) == 1048576);

    ok.slot_byte_budget = 1024;

    assert_true (hws_attach_ok_window_bytes (&ok) == 1024);
}

static void transport_keys_that_are_unknown_are_kept_or_skipped (void **state)
{
    (void) state;

    const int rc =
        decode ("ATTACH", "{\"anchor\":\"a\",\"session_id\":1,\"supported_transport_keys\":"
                          "[\"carrier-pigeon\",\"a-key-that-is-longer-than-31-bytes-long\","
                          "\"router-mux-v1\"]}");

    assert_int_equal (rc, 0);
    assert_int_equal (s_message.as.attach.supported_transport_keys.count, 2);
    assert_string_equal (s_message.as.attach.supported_transport_keys.word[0], "carrier-pigeon");
    assert_string_equal (s_message.as.attach.supported_transport_keys.word[1], "router-mux-v1");
}

/*  ---- Handles and numbers ---- */

static void handle_is_read_in_both_forms (void **state)
{
    (void) state;
    static const char *const forms[] = {
        "{\"id\":1,\"handle\":\"FFFFFFFFFFFFFFFF7fffffffffffffff\"}",
        "{\"id\":1,\"handle\":{\"lo\":\"9223372036854775807\",\"hi\":\"18446744073709551615\"}}",
    };
    for (size_t i = 0; i < COUNT (forms); i++) {
        assert_int_equal (decode ("CANCEL", forms[i]), 0);

        assert_true (
            hws_handle_equal (s_message.as.cancel.handle, (hws_handle_t){UINT64_MAX, INT64_MAX}));
    }
}

static void handle_that_is_wrong_is_refused (void **state)
{
    (void) state;
    static const char *const bad[] = {
        "\"\"",        "\"0123456789abcdef0123456789abcde\"",
        "\"results\"", "12",
        "[]",          "{}",
        "{\"hi\":1}",  "{\"lo\":1}",
        "true",        "{\"HI\":1,\"LO\":2}",
    };
    for (size_t i = 0; i < COUNT (bad); i++) {
        char json[256];
        snprintf (json, sizeof json, "{\"handle\":%s}", bad[i]);

        assert_refused ("CANCEL", json, HWS_EBAD_REQUEST,
                        "handle must be 32 hexadecimal digits or {\"hi\":…,\"lo\":…}");
    }
    assert_refused ("CANCEL", "{\"handle\":{\"hi\":-1,\"lo\":2}}", HWS_EBAD_REQUEST,
                    "handle must not be negative");
}

static void numbers_beyond_2_53_are_refused (void **state)
{
    (void) state;

    assert_int_equal (decode ("RESYNC", "{\"epoch\":9007199254740991}"), 0);
    assert_true (s_message.as.epoch == 9007199254740991);

    static const char *const bad[] = {"9007199254740992", "9007199254740993",
                                      "18446744073709551615", "1e16", "1e400"};
    for (size_t i = 0; i < COUNT (bad); i++) {
        char json[64];
        snprintf (json, sizeof json, "{\"epoch\":%s}", bad[i]);
        assert_refused (
            "RESYNC", json, HWS_EBAD_REQUEST,
            "epoch is not exact as a number from 2^53 on: write it as a string of decimal "
            "digits");
    }
}

static void numbers_as_strings_are_exact (void **state)
{
    (void) state;
    static const uint64_t numbers[] = {0,
                                       1,
                                       9007199254740993,
                                       8999999999999999,
                                       6000000000000001,
                                       1234567890123460,
                                       TWO_63_PLUS_1,
                                       UINT64_MAX};
    for (size_t i = 0; i < COUNT (numbers); i++) {
        char json[64];
        snprintf (json, sizeof json, "{\"epoch\":\"%" PRIu64 "\"}", numbers[i]);

        assert_int_equal (decode ("RESYNC", json), 0);

        assert_true (s_message.as.epoch == numbers[i]);
        assert_encodes (&s_message, json);
    }
}

static void numbers_of_a_wrong_form_are_refused (void **state)
{
    (void) state;
    static const struct {
        const char *number;
        const char *complaint;
    } rows[] = {
        {"-1", "epoch must not be negative"},
        {"1.5", "epoch must be a whole number"},
        {"true", "epoch must be a number or a string of decimal digits"},
        {"[]", "epoch must be a number or a string of decimal digits"},
        {"{}", "epoch must be a number or a string of decimal digits"},
        {"\"\"", "epoch must be a string of decimal digits"},
        {"\"-1\"", "epoch must be a string of decimal digits"},
        {"\"+1\"", "epoch must be a string of decimal digits"},
        {"\" 1\"", "epoch must be a string of decimal digits"},
        {"\"1 \"", "epoch must be a string of decimal digits"},
        {"\"007\"", "epoch must be a string of decimal digits"},
        {"\"0x10\"", "epoch must be a string of decimal digits"},
        {"\"1e3\"", "epoch must be a string of decimal digits"},
        {"\"18446744073709551616\"", "epoch is above 2^64 - 1"},
        {"\"99999999999999999999999\"", "epoch is above 2^64 - 1"},
    };
    for (size_t i = 0; i < COUNT (rows); i++) {
        char json[96];
        snprintf (json, sizeof json, "{\"epoch\":%s}", rows[i].number);

        assert_refused ("RESYNC", json, HWS_EBAD_REQUEST, rows[i].complaint);
    }
    assert_int_equal (decode ("RESYNC", "{\"epoch\":5e3}"), 0);
    assert_true (s_message.as.epoch == 5000);
}

static void times_are_limited_so_that_sums_do_not_overflow (void **state)
{
    (void) state;

    assert_int_equal (decode ("OPEN", "{\"open_id\":1,\"orphan_ttl_ms\":\"9007199254740991\"}"), 0);

    assert_true (s_message.as.open.orphan_ttl_ms.value == 9007199254740991);
    assert_refused ("OPEN", "{\"open_id\":1,\"orphan_ttl_ms\":\"9007199254740992\"}",
                    HWS_EBAD_REQUEST, "orphan_ttl_ms is too large");
    assert_refused ("CANCEL", "{\"handle\":{\"hi\":1,\"lo\":1},\"wait_ms\":\"9007199254740992\"}",
                    HWS_EBAD_REQUEST, "wait_ms is too large");
    assert_refused ("HELLO",
                    "{\"client_id\":\"00000000000000000000000000000001\",\"protocol\":4294967296}",
                    HWS_EBAD_REQUEST, "protocol is too large");
}

static void null_is_no_limit_where_it_has_that_meaning_and_absence_elsewhere (void **state)
{
    (void) state;

    const int rc =
        decode ("OPEN", "{\"open_id\":1,\"max_senders\":null,\"name\":null,\"resume\":null,"
                        "\"unattached_timeout_ms\":5}");

    assert_int_equal (rc, 0);
    assert_int_equal (s_message.as.open.max_senders.state, HWS_NULL);
    assert_int_equal (s_message.as.open.unattached_timeout_ms.state, HWS_VALUE);
    assert_int_equal (s_message.as.open.buffer_bytes.state, HWS_ABSENT);
    assert_string_equal (s_message.as.open.name, "");
    assert_false (s_message.as.open.has_resume);
    assert_refused ("OPEN", "{\"open_id\":null}", HWS_EBAD_REQUEST, "open_id is missing");
}

/*  ---- Refusals ---- */

static void malformed_control_when_a_member_is_wrong (void **state)
{
    (void) state;
    static const struct {
        const char *verb;
        const char *json;
        const char *fault;
    } rows[] = {
        {"HELLO", "{\"protocol\":1}", "client_id is missing"},
        {"HELLO", "{\"client_id\":\"x\",\"protocol\":1}",
         "client_id must be 32 hexadecimal digits"},
        {"HELLO", "{\"client_id\":\"00000000000000000000000000000001\"}", "protocol is missing"},
        {"HELLO",
         "{\"client_id\":\"00000000000000000000000000000001\",\"protocol\":1,\"client\":\"me\"}",
         "client must be an object"},
        {"HELLO",
         "{\"client_id\":\"00000000000000000000000000000001\",\"protocol\":1,\"client\":{\"name\":"
         "1}}",
         "client.name must be a string"},
        {"HELLO", "{\"Ok\":{\"broker_id\":1,\"epoch\":1,\"protocol\":1,\"transports\":[1]}}",
         "transports must be an array of strings"},
        {"HELLO", "{\"Ok\":{\"broker_id\":1,\"epoch\":1,\"protocol\":1,\"features\":{}}}",
         "features must be an array of strings"},
        {"OPEN", "{}", "open_id is missing"},
        {"OPEN", "{\"open_id\":1,\"kind\":\"many\"}", "kind must be \"mpsc\" or \"spsc\""},
        {"OPEN", "{\"open_id\":1,\"dedicated\":1}", "dedicated must be true or false"},
        {"OPEN", "{\"open_id\":1,\"name\":\"a\\nb\"}",
         "name must have no control characters and not be 32 hexadecimal digits"},
        {"OPEN", "{\"open_id\":1,\"name\":\"0123456789abcdef0123456789ABCDEF\"}",
         "name must have no control characters and not be 32 hexadecimal digits"},
        {"OPEN", "{\"open_id\":1,\"resume\":{}}", "resume.handle is missing"},
        {"OPEN",
         "{\"open_id\":1,\"resume\":{\"handle\":{\"hi\":1,\"lo\":1},\"owner_token\":"
         "\"00000000000000000000000000000001\",\"unseen\":[[2,2]]}}",
         "resume.unseen must be an array of [first, end], each first below its end"},
        {"ATTACH", "{\"session_id\":1}", "handle or anchor is missing"},
        {"ATTACH", "{\"session_id\":1,\"anchor\":\"\"}", "handle or anchor is missing"},
        {"ATTACH", "{\"session_id\":1,\"anchor\":\"a\",\"handle\":{\"hi\":1,\"lo\":1}}",
         "handle and anchor exclude each other"},
        {"ATTACH", "{\"anchor\":\"a\"}", "session_id is missing"},
        {"ATTACH", "{\"anchor\":\"a\",\"session_id\":1,\"label\":\"\\u007f\"}",
         "label must have no control characters and not be 32 hexadecimal digits"},
        {"ATTACH", "{\"Ok\":{}}", "streaming_transport_key is missing"},
        {"ATTACH",
         "{\"Ok\":{\"streaming_transport_key\":\"a\",\"heartbeat_interval_ms\":1,\"sender_id\":1,"
         "\"early\":\"maybe\"}}",
         "early must be \"kept\" or \"dropped\""},
        {"ATTACH",
         "{\"Ok\":{\"streaming_transport_key\":\"a-key-that-is-longer-than-31-bytes-long\"}}",
         "streaming_transport_key is too long"},
        {"DETACH", "{\"handle\":{\"hi\":1,\"lo\":1},\"sender_id\":0,\"seq\":0}",
         "sender_id must be at least 1"},
        {"CANCEL", "{\"handle\":{\"hi\":1,\"lo\":1},\"sender_id\":0}",
         "sender_id must be at least 1"},
        {"CANCEL", "{}", "handle is missing"},
        {"CANCEL_TOKEN", "{}", "token is missing"},
        {"RESERVE_TOKEN", "{\"Ok\":{\"token\":0}}", "token must be at least 1"},
        {"STREAM_CANCEL", "{\"session_id\":1}", "code is missing"},
        {"ANCHOR_CLOSED",
         "{\"handle\":{\"hi\":1,\"lo\":1},\"code\":\"a\",\"counts\":{\"dropped\":\"x\"}}",
         "counts.dropped must be a string of decimal digits"},
        {"ERROR", "{}", "Err is missing"},
        {"ERROR", "{\"Ok\":{}}", "Err is missing"},
        {"ERROR", "{\"Err\":{}}", "code is missing"},
        {"ERROR", "{\"Err\":\"busy\"}", "Ok and Err must be objects"},
        {"PING", "{\"Ok\":1}", "Ok and Err must be objects"},
        {"PING", "{\"Ok\":{},\"Err\":{}}", "Ok and Err exclude each other"},
        {"PING", "{\"id\":[]}", "id must be a number or a string of decimal digits"},
        {"PING", "{\"id\":9007199254740992}",
         "id is not exact as a number from 2^53 on: write it as a string of decimal digits"},
    };
    for (size_t i = 0; i < COUNT (rows); i++) {
        assert_refused (rows[i].verb, rows[i].json, HWS_EBAD_REQUEST, rows[i].fault);
    }
}

static void malformed_control_is_placed (void **state)
{
    (void) state;
    static const struct {
        const char *json;
        const char *fault;
    } rows[] = {
        {"", "JSON, byte 0: the text ends where a value is expected"},
        {"{}{}", "JSON, byte 2: nothing may follow the value"},
        {"{} x", "JSON, byte 3: nothing may follow the value"},
        {"{\"a\":1,\"a\":1}", "JSON, byte 7: a member's name comes twice"},
        {"{\"a\":007}", "JSON, byte 5: a number may not begin with 0"},
        {"{\"a\":\"\\u0000\"}", "JSON, byte 6: a string contains NUL"},
        {"\xef\xbb\xbf{}", "JSON, byte 0: a byte order mark is not allowed"},
        {"[]", "JSON, byte 0: an object is expected"},
        {"null", "JSON, byte 0: an object is expected"},
        {"{\"a\":[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]}",
         "JSON, byte 20: too many arrays and objects within each other"},
    };
    for (size_t i = 0; i < COUNT (rows); i++) {
        assert_refused ("PING", rows[i].json, HWS_EMALFORMED, rows[i].fault);
    }
}

static void control_size_is_limited (void **state)
{
    (void) state;
    static char json[HWS_CONTROL_SIZE_MAX + 1];
    memset (json, ' ', sizeof json);
    memcpy (json, "{}", 2);

    assert_int_equal (decode_bytes ("PING", json, HWS_CONTROL_SIZE_MAX), 0);
    assert_int_equal (decode_bytes ("PING", json, HWS_CONTROL_SIZE_MAX + 1), HWS_EMALFORMED);

    assert_string_equal (s_fault, "JSON, byte 65536: the text is too long");
}

static void texts_are_limited (void **state)
{
    (void) state;
    char json[1200];
    char text[1026] = {0};
    memset (text, 'r', 1024);
    snprintf (json, sizeof json, "{\"reason\":\"%s\"}", text);
    assert_int_equal (decode ("GOAWAY", json), 0);
    assert_int_equal (strlen (s_message.as.reason), 1024);

    text[1024] = 'r';
    snprintf (json, sizeof json, "{\"reason\":\"%s\"}", text);

    assert_refused ("GOAWAY", json, HWS_EBAD_REQUEST, "reason is too long");
}

static void more_than_64_ranges_are_refused (void **state)
{
    (void) state;
    for (int count = 64; count <= 65; count++) {
        char json[1024];
        size_t size =
            (size_t) sprintf (json, "{\"open_id\":1,\"resume\":{\"handle\":{\"hi\":1,\"lo\":1},"
                                    "\"owner_token\":\"00000000000000000000000000000001\","
                                    "\"unseen\":[");
        for (int i = 0; i < count; i++) {
            size += (size_t) sprintf (json + size, "%s[%d,%d]", i ? "," : "", 2 * i, 2 * i + 1);
        }
        strcpy (json + size, "]}}");

        assert_int_equal (decode ("OPEN", json), count == 64 ? 0 : HWS_EBAD_REQUEST);
    }
    assert_string_equal (s_fault, "resume.unseen has more than 64 ranges");
}

static void unknown_members_are_ignored (void **state)
{
    (void) state;

    const int rc = decode ("RESYNC", "{\"later\":{\"a\":[1.5,null]},\"epoch\":\"3\",\"Epoch\":4}");

    assert_int_equal (rc, 0);
    assert_true (s_message.as.epoch == 3);
}

static void unknown_verb_keeps_the_id_for_its_answer (void **state)
{
    (void) state;

    assert_refused ("FETCH", "{\"id\":\"18446744073709551615\",\"x\":1}", HWS_EUNKNOWN_VERB,
                    "the verb is not known");
    assert_true (s_message.has_id && s_message.id == UINT64_MAX);

    assert_refused ("hello", "{\"id\":", HWS_EUNKNOWN_VERB, "the verb is not known");
    assert_false (s_message.has_id);
    assert_refused ("", "{}", HWS_EUNKNOWN_VERB, "the verb is not known");
    assert_refused ("PINGS", "{\"id\":[]}", HWS_EUNKNOWN_VERB, "the verb is not known");
}

static void refused_request_keeps_its_id_and_verb (void **state)
{
    (void) state;

    assert_refused ("DETACH", "{\"id\":7}", HWS_EBAD_REQUEST, "handle is missing");

    assert_int_equal (s_message.verb, HWS_VERB_DETACH);
    assert_true (s_message.has_id && s_message.id == 7);
}

static void verb_with_a_nul_in_it_is_unknown (void **state)
{
    (void) state;

    const int rc =
        hws_control_decode (hws_bytes ("PING\0", 5), hws_bytes_of_text ("{}"), &s_message, s_fault);

    assert_int_equal (rc, HWS_EUNKNOWN_VERB);
}

static void random_damage_gives_one_answer (void **state)
{
    (void) state;
    static const char json[] =
        "{\"id\":\"12\",\"handle\":{\"hi\":1,\"lo\":2},\"session_id\":\"3\","
        "\"label\":\"a\\u00fcb\",\"supported_transport_keys\":[\"router-mux-v1\"],"
        "\"resume\":{\"sender_id\":\"1\",\"resume_token\":"
        "\"000102030405060708090a0b0c0d0e0f\",\"ending\":\"detached\"}}";
    hws_random_t random;
    test_seed (&random);
    for (size_t i = 0; i < test_scaled (100000); i++) {
        char damaged[sizeof json];
        memcpy (damaged, json, sizeof json);
        for (size_t damage = 1 + hws_random_below (&random, 3); damage > 0; damage--) {
            damaged[hws_random_below (&random, sizeof json - 1)] = (char) hws_random_next (&random);
        }

        const int rc = decode_bytes ("ATTACH", damaged, sizeof json - 1);

        assert_true (rc == 0 || rc == HWS_EMALFORMED || rc == HWS_EBAD_REQUEST);
        assert_int_equal (s_fault[0] == '\0', rc == 0);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (old_attach_request_decodes),
        cmocka_unit_test (old_attach_response_decodes),
        cmocka_unit_test (mux_answer_without_window_is_refused),
        cmocka_unit_test (answer_with_an_unknown_transport_is_refused),
        cmocka_unit_test (answer_that_tells_of_an_ending_needs_no_window),
        cmocka_unit_test (zero_byte_budget_means_default),
        cmocka_unit_test (transport_keys_that_are_unknown_are_kept_or_skipped),
        cmocka_unit_test (handle_is_read_in_both_forms),
        cmocka_unit_test (handle_that_is_wrong_is_refused),
        cmocka_unit_test (numbers_beyond_2_53_are_refused),
        cmocka_unit_test (numbers_as_strings_are_exact),
        cmocka_unit_test (numbers_of_a_wrong_form_are_refused),
        cmocka_unit_test (times_are_limited_so_that_sums_do_not_overflow),
        cmocka_unit_test (null_is_no_limit_where_it_has_that_meaning_and_absence_elsewhere),
        cmocka_unit_test (malformed_control_when_a_member_is_wrong),
        cmocka_unit_test (malformed_control_is_placed),
        cmocka_unit_test (control_size_is_limited),
        cmocka_unit_test (texts_are_limited),
        cmocka_unit_test (more_than_64_ranges_are_refused),
        cmocka_unit_test (unknown_members_are_ignored),
        cmocka_unit_test (unknown_verb_keeps_the_id_for_its_answer),
        cmocka_unit_test (refused_request_keeps_its_id_and_verb),
        cmocka_unit_test (verb_with_a_nul_in_it_is_unknown),
        cmocka_unit_test (random_damage_gives_one_answer),
    };
    return cmocka_run_group_tests_name ("control read", tests, NULL, NULL);
}
