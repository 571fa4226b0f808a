/*  The text that a broker's identity is kept as.  */
#include "broker/identity.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static const char *const s_text = "{\n"
                                  "    \"version\": 1,\n"
                                  "    \"broker_id\": \"0123456789abcdef\",\n"
                                  "    \"epoch\": 7,\n"
                                  "    \"key\": \"" KEY "\"\n"
                                  "}\n";

static hws_identity_t make_identity (void)
{
    hws_identity_t identity = {.broker_id = 0x0123456789abcdef, .epoch = 7};
    for (size_t i = 0; i < sizeof identity.key; i++) {
        identity.key[i] = (uint8_t) i;
    }
    return identity;
}

static void assert_same (const hws_identity_t *a, const hws_identity_t *b)
{
    assert_true (a->broker_id == b->broker_id);
    assert_int_equal (a->epoch, b->epoch);
    assert_memory_equal (a->key, b->key, sizeof a->key);
}

static int parse (const char *text, hws_identity_t *identity, char fault[256])
{
    return hws_identity_parse (identity, "DIR/broker.json", hws_bytes_of_text (text), fault, 256);
}

static void an_identity_is_printed_as_a_small_object (void **state)
{
    const hws_identity_t identity = make_identity ();
    char text[HWS_IDENTITY_TEXT_SIZE];
    (void) state;

    const size_t size = hws_identity_print (&identity, text);

    assert_string_equal (text, s_text);
    assert_int_equal (size, strlen (s_text));
}

static void what_is_printed_is_read_again (void **state)
{
    hws_identity_t identity = make_identity ();
    hws_identity_t again;
    char text[HWS_IDENTITY_TEXT_SIZE];
    char fault[256];
    (void) state;
    memset (identity.key, 0xff, sizeof identity.key);
    identity.broker_id = UINT64_MAX;
    identity.epoch = HWS_EPOCH_MAX;

    hws_identity_print (&identity, text);

    assert_int_equal (parse (text, &again, fault), 0);
    assert_same (&again, &identity);
}

static void every_shorter_text_is_refused (void **state)
{
    hws_identity_t identity;
    char text[HWS_IDENTITY_TEXT_SIZE];
    char fault[256];
    (void) state;

    for (size_t size = 0; size < strlen (s_text) - 1; size++) {
        snprintf (text, sizeof text, "%.*s", (int) size, s_text);
        assert_int_equal (parse (text, &identity, fault), HWS_EMALFORMED);
        assert_ptr_equal (strstr (fault, "DIR/broker.json:"), fault);
    }
}

static void a_member_that_is_wrong_is_named (void **state)
{
    static const struct {
        const char *text;
        const char *fault;
    } cases[] = {
        {"{}", "DIR/broker.json: version is missing"},
        {"{\"version\": 1, \"broker_id\": \"0123456789abcdef\", \"epoch\": 7}", "key is missing"},
        {"{\"version\": 2}", ":1:13: version: "},
        {"{\"epoch\": 0}", ":1:11: epoch: "},
        {"{\"epoch\": 2147483648}", ":1:11: epoch: "},
        {"{\"epoch\": \"7\"}", ":1:11: epoch: "},
        {"{\"epoch\": 7, \"epoch\": 8}", "twice"},
        {"{\"broker_id\": \"0123456789abcde\"}", "broker_id: must be 16 hexadecimal digits"},
        {"{\"key\": \"00\"}", "key: must be 64 hexadecimal digits"},
        {"{\"more\": 1}", ":1:2: more: "},
        {"[]", ":1:1: "},
    };
    (void) state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hws_identity_t identity;
        char fault[256] = "";
        assert_int_equal (parse (cases[i].text, &identity, fault), HWS_EMALFORMED);
        if (!strstr (fault, cases[i].fault)) {
            fail_msg ("%s: \"%s\" is not in \"%s\"", cases[i].text, cases[i].fault, fault);
        }
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_identity_is_printed_as_a_small_object),
        cmocka_unit_test (what_is_printed_is_read_again),
        cmocka_unit_test (every_shorter_text_is_refused),
        cmocka_unit_test (a_member_that_is_wrong_is_named),
    };
    return cmocka_run_group_tests_name ("identity", tests, NULL, NULL);
}
