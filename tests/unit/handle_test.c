/*  Handles, ids and names.
 */
#include "base/error.h"
#include "proto/handle.h"
#include "proto/name.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

static void handle_round_trips (void **state)
{
    (void) state;
    static const uint64_t numbers[] = {0, 1, INT64_MAX, UINT64_C (1) << 63, UINT64_MAX};
    for (size_t i = 0; i < COUNT (numbers) * COUNT (numbers); i++) {
        const hws_handle_t handle = {.hi = numbers[i / COUNT (numbers)],
                                     .lo = numbers[i % COUNT (numbers)]};
        char text[HWS_HANDLE_TEXT_SIZE];
        hws_handle_t back = {.hi = 3, .lo = 4};

        hws_handle_print (handle, text);

        assert_int_equal (strlen (text), 32);
        assert_int_equal (hws_handle_parse (hws_bytes_of_text (text), &back), 0);
        assert_true (hws_handle_equal (handle, back));
    }
}

static void handle_keeps_its_parts (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    for (int i = 0; i < 1000; i++) {
        const uint64_t broker_id = hws_random_next (&random);
        const hws_kind_t kind = hws_random_below (&random, 2) ? HWS_KIND_SPSC : HWS_KIND_MPSC;
        const uint32_t epoch = (uint32_t) hws_random_below (&random, UINT64_C (1) << 31);
        const uint32_t count = (uint32_t) hws_random_next (&random);

        const hws_handle_t handle = hws_handle_make (broker_id, kind, epoch, count);

        assert_true (handle.hi == broker_id);
        assert_int_equal (hws_handle_kind (handle), kind);
        assert_int_equal (hws_handle_epoch (handle), epoch);
        assert_int_equal (hws_handle_count (handle), count);
    }
}

static void kinds_of_one_counter_never_collide (void **state)
{
    (void) state;
    const hws_handle_t mpsc = hws_handle_make (1, HWS_KIND_MPSC, INT32_MAX, UINT32_MAX);
    const hws_handle_t spsc = hws_handle_make (1, HWS_KIND_SPSC, INT32_MAX, UINT32_MAX);

    assert_false (hws_handle_equal (mpsc, spsc));
    assert_true (mpsc.lo == UINT64_MAX);
    assert_true (spsc.lo == INT64_MAX);
}

static void same_numbers_on_two_brokers_are_two_handles (void **state)
{
    (void) state;

    assert_false (hws_handle_equal (hws_handle_make (1, HWS_KIND_MPSC, 1, 1),
                                    hws_handle_make (2, HWS_KIND_MPSC, 1, 1)));
}

static void handle_is_printed_hi_first_in_lower_case (void **state)
{
    (void) state;
    char text[HWS_HANDLE_TEXT_SIZE];

    hws_handle_print ((hws_handle_t){.hi = 0x0123456789ABCDEF, .lo = 0xF}, text);

    assert_string_equal (text, "0123456789abcdef000000000000000f");
}

static void handle_text_is_strict (void **state)
{
    (void) state;
    static const char *const bad[] = {
        "",
        "0",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdef0",
        "0123456789abcdef0123456789abcdeg",
        "0x23456789abcdef0123456789abcdef",
        " 123456789abcdef0123456789abcdef",
        "0123456789abcdef 123456789abcdef",
        "0123456789abcdef-123456789abcdef",
    };
    for (size_t i = 0; i < COUNT (bad); i++) {
        hws_handle_t handle = {.hi = 3, .lo = 4};

        assert_int_equal (hws_handle_parse (hws_bytes_of_text (bad[i]), &handle), HWS_EMALFORMED);

        assert_true (handle.hi == 3 && handle.lo == 4);
    }
}

static void handle_text_is_read_in_upper_case (void **state)
{
    (void) state;
    hws_handle_t handle;

    const int rc =
        hws_handle_parse (hws_bytes_of_text ("0123456789ABCDEF0123456789aBcDeF"), &handle);

    assert_int_equal (rc, 0);
    assert_true (handle.hi == 0x0123456789abcdef && handle.lo == 0x0123456789abcdef);
}

static void handle_text_with_a_nul_in_it_is_refused (void **state)
{
    (void) state;
    hws_handle_t handle;

    const int rc = hws_handle_parse (hws_bytes ("0123456789abcdef\0"
                                                "123456789abcdef",
                                                32),
                                     &handle);

    assert_int_equal (rc, HWS_EMALFORMED);
}

static void id_round_trips (void **state)
{
    (void) state;
    hws_id_t id;
    hws_id_t back = {{0}};
    for (size_t i = 0; i < HWS_ID_SIZE; i++) {
        id.bytes[i] = (uint8_t) (0xf7 * i);
    }
    char text[2 * HWS_ID_SIZE + 1];

    hws_id_print (&id, text);

    assert_int_equal (hws_id_parse (hws_bytes_of_text (text), &back), 0);
    assert_memory_equal (id.bytes, back.bytes, HWS_ID_SIZE);
    assert_int_equal (hws_id_parse (hws_bytes_of_text ("abc"), &back), HWS_EMALFORMED);
    assert_memory_equal (id.bytes, back.bytes, HWS_ID_SIZE);
}

static void names_of_printable_utf8_are_valid (void **state)
{
    (void) state;
    static const char *const good[] = {
        "a",
        "results",
        "a b",
        " ",
        "../etc",
        "%s",
        "a\"b\\c",
        "Zürich",
        "\xf0\x9f\x98\x80",
        "0123456789abcdef0123456789abcde",
        "0123456789abcdef0123456789abcdeg",
        "\xc2\xa0",
    };
    for (size_t i = 0; i < COUNT (good); i++) {
        if (!hws_name_is_valid (hws_bytes_of_text (good[i]))) {
            fail_msg ("refused: %s", good[i]);
        }
    }
}

static void names_with_control_characters_or_bad_utf8_are_not (void **state)
{
    (void) state;
    static const char *const bad[] = {
        "",
        "a\n",
        "\t",
        "\x1b[0m",
        "a\x7f",
        "a\xc2\x80",
        "a\xc2\x9f",
        "\xff\xfe",
        "a\xc3",
        "\xed\xa0\x80",
        "0123456789abcdef0123456789abcdef",
        "0123456789ABCDEF0123456789abcdef",
    };
    for (size_t i = 0; i < COUNT (bad); i++) {
        if (hws_name_is_valid (hws_bytes_of_text (bad[i]))) {
            fail_msg ("row %zu was taken", i);
        }
    }
    assert_false (hws_name_is_valid (hws_bytes ("a\0b", 3)));
}

static void name_has_at_most_255_bytes (void **state)
{
    (void) state;
    char name[256];
    memset (name, 'n', sizeof name);

    assert_true (hws_name_is_valid (hws_bytes (name, 255)));
    assert_false (hws_name_is_valid (hws_bytes (name, 256)));
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (handle_round_trips),
        cmocka_unit_test (handle_keeps_its_parts),
        cmocka_unit_test (kinds_of_one_counter_never_collide),
        cmocka_unit_test (same_numbers_on_two_brokers_are_two_handles),
        cmocka_unit_test (handle_is_printed_hi_first_in_lower_case),
        cmocka_unit_test (handle_text_is_strict),
        cmocka_unit_test (handle_text_is_read_in_upper_case),
        cmocka_unit_test (handle_text_with_a_nul_in_it_is_refused),
        cmocka_unit_test (id_round_trips),
        cmocka_unit_test (names_of_printable_utf8_are_valid),
        cmocka_unit_test (names_with_control_characters_or_bad_utf8_are_not),
        cmocka_unit_test (name_has_at_most_255_bytes),
    };
    return cmocka_run_group_tests_name ("handle", tests, NULL, NULL);
}
