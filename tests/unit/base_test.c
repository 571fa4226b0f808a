/*  The containers and helpers of lib/base, against naive models where there is one.
 */
#include "base/bytes.h"
#include "base/error.h"
#include "base/heap.h"
#include "base/hex.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/time.h"
#include "base/utf8.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

/*  ---- Bytes ---- */

static void integers_are_big_endian_and_come_back (void **state)
{
    (void) state;
    uint8_t bytes[14];

    hws_put_u16 (bytes, 0x0102);
    hws_put_u32 (bytes + 2, 0x03040506);
    hws_put_u64 (bytes + 6, 0x0708090a0b0c0dfe);

    static const uint8_t expected[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xfe};
    assert_memory_equal (bytes, expected, sizeof expected);
    assert_int_equal (hws_get_u16 (bytes), 0x0102);
    assert_int_equal (hws_get_u32 (bytes + 2), 0x03040506);
    assert_true (hws_get_u64 (bytes + 6) == 0x0708090a0b0c0dfe);
}

static void cursor_reads_forward_to_the_last_byte (void **state)
{
    (void) state;
    static const uint8_t bytes[15] = {9, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3};
    hws_cursor_t cursor = hws_cursor (hws_bytes (bytes, sizeof bytes));

    assert_int_equal (hws_cursor_u8 (&cursor), 9);
    assert_int_equal (hws_cursor_u16 (&cursor), 1);
    assert_int_equal (hws_cursor_u32 (&cursor), 2);
    assert_int_equal (hws_cursor_u64 (&cursor), 3);

    assert_false (cursor.bad);
    assert_int_equal (cursor.left, 0);
}

static void cursor_is_bad_for_good_after_reading_too_far (void **state)
{
    (void) state;
    static const uint8_t bytes[3] = {1, 2, 3};
    hws_cursor_t cursor = hws_cursor (hws_bytes (bytes, sizeof bytes));

    assert_int_equal (hws_cursor_u32 (&cursor), 0);

    assert_true (cursor.bad);
    assert_int_equal (hws_cursor_u8 (&cursor), 0);
    assert_null (hws_cursor_take (&cursor, 0));
    assert_int_equal (cursor.left, 3);
}

static void cursor_takes_nothing_of_nothing (void **state)
{
    (void) state;
    hws_cursor_t cursor = hws_cursor (hws_bytes (NULL, 0));

    assert_non_null (hws_cursor_take (&cursor, 0));
    assert_null (hws_cursor_take (&cursor, SIZE_MAX));
    assert_true (cursor.bad);
}

static void bytes_are_equal_by_content (void **state)
{
    (void) state;

    assert_true (hws_bytes_equal (hws_bytes (NULL, 0), hws_bytes ("", 0)));
    assert_true (hws_bytes_equal (hws_bytes_of_text ("ab"), hws_bytes ("abc", 2)));
    assert_false (hws_bytes_equal (hws_bytes_of_text ("ab"), hws_bytes_of_text ("ac")));
    assert_false (hws_bytes_equal (hws_bytes_of_text ("ab"), hws_bytes_of_text ("abc")));
}

static void hex_is_printed_lower_and_read_in_both_cases (void **state)
{
    (void) state;
    char text[9];
    uint8_t bytes[4];

    hws_hex_print (hws_bytes ("\x00\xaf\x10\xff", 4), text);

    assert_string_equal (text, "00af10ff");
    assert_int_equal (hws_hex_parse (hws_bytes_of_text ("00Af10fF"), bytes, 4), 0);
    assert_memory_equal (bytes, "\x00\xaf\x10\xff", 4);
    assert_int_equal (hws_hex_parse (hws_bytes_of_text ("00af10f"), bytes, 4), HWS_EMALFORMED);
    assert_int_equal (hws_hex_parse (hws_bytes_of_text ("00af10fg"), bytes, 4), HWS_EMALFORMED);
    assert_int_equal (hws_hex_parse (hws_bytes_of_text ("00af10ff0"), bytes, 4), HWS_EMALFORMED);
}

/*  ---- UTF-8 ---- */

static void utf8_takes_every_code_point_and_no_surrogate (void **state)
{
    (void) state;
    for (uint32_t expected = 0; expected <= 0x10ffff; expected++) {
        const uint8_t four[4] = {
            (uint8_t) (0xf0 | expected >> 18), (uint8_t) (0x80 | (expected >> 12 & 0x3f)),
            (uint8_t) (0x80 | (expected >> 6 & 0x3f)), (uint8_t) (0x80 | (expected & 0x3f))};
        const uint8_t three[3] = {(uint8_t) (0xe0 | expected >> 12), four[2], four[3]};
        const uint8_t two[2] = {(uint8_t) (0xc0 | expected >> 6), four[3]};
        const uint8_t one = (uint8_t) expected;
        const bool fits[4] = {expected < 0x80, expected >= 0x80 && expected < 0x800,
                              expected >= 0x800 && expected < 0x10000 &&
                                  (expected < 0xd800 || expected > 0xdfff),
                              expected >= 0x10000};
        const hws_bytes_t forms[4] = {hws_bytes (&one, 1), hws_bytes (two, 2), hws_bytes (three, 3),
                                      hws_bytes (four, 4)};
        for (size_t i = 0; i < 4; i++) {
            const bool can_be_formed = expected >> (i == 0 ? 7 : 5 * i + 6) == 0;
            if (!can_be_formed) {
                continue;
            }
            hws_cursor_t cursor = hws_cursor (forms[i]);
            uint32_t code_point = UINT32_MAX;
            const int rc = hws_utf8_next (&cursor, &code_point);
            if (rc != (fits[i] ? 1 : HWS_EMALFORMED) || (fits[i] && code_point != expected)) {
                fail_msg ("U+%04X in %zu bytes: %d", (unsigned) expected, i + 1, rc);
            }
        }
    }
}

static void utf8_tells_what_shows_from_what_does_not (void **state)
{
    static const uint32_t hidden[] = {0x00,   0x1b,   0x7f,   0x9b,   0xad,   0x61c,   0x200b,
                                      0x200d, 0x200e, 0x200f, 0x2028, 0x202a, 0x202e,  0x2060,
                                      0x2066, 0x2069, 0x206f, 0xfeff, 0xfff9, 0xe0001, 0xe007f};
    static const uint32_t plain[] = {' ',    'a',    '~',     0xa0,    0xac,   0xe4,
                                     0x200a, 0x2010, 0x2027,  0x202f,  0x205f, 0x2070,
                                     0x4e2d, 0xfe0f, 0x1f600, 0x10ffff};

    (void) state;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
        assert_false (hws_utf8_is_plain (hidden[i]));
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        assert_true (hws_utf8_is_plain (plain[i]));
    }
}

static void utf8_refuses_what_is_not (void **state)
{
    (void) state;
    static const char *const bad[] = {"\x80",
                                      "\xbf",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "a\xc2",
                                      "\xc2\x41",
                                      "\xe0\x80\x80",
                                      "\xe2\x82",
                                      "\xed\xa0\x80",
                                      "\xf0\x80\x80\x80",
                                      "\xf0\x9f\x98",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xfe",
                                      "\xff",
                                      "\xe2\x82\xc0",
                                      "\xf0\x9f\x98\x41"};

    for (size_t i = 0; i < COUNT (bad); i++) {
        if (hws_utf8_is_valid (hws_bytes_of_text (bad[i]))) {
            fail_msg ("row %zu was taken", i);
        }
    }

    assert_false (hws_utf8_is_valid (hws_bytes ("\xc2\x80", 1)));
    assert_false (hws_utf8_is_valid (hws_bytes ("\xf0\x9f\x98\x80", 3)));
    assert_true (hws_utf8_is_valid (hws_bytes (NULL, 0)));
    assert_true (hws_utf8_is_valid (hws_bytes ("a\0b", 3)));
    assert_true (hws_utf8_is_valid (hws_bytes_of_text ("Zürich \xf0\x9f\x98\x80")));
}

/*  ---- Errors ---- */

static void every_wire_error_has_a_word_that_leads_back (void **state)
{
    (void) state;
    for (int code = HWS_EBAD_REQUEST; code >= HWS_ECLOSED; code--) {
        const char *const word = hws_error_word (code);

        assert_string_not_equal (word, "unknown");
        assert_int_equal (hws_error_from_word (word, strlen (word)), code);
        assert_string_not_equal (hws_strerror (code), "unknown error");
    }
}

static void unknown_errors_have_a_text_too (void **state)
{
    (void) state;

    assert_string_equal (hws_strerror (0), "no error");
    assert_string_equal (hws_strerror (-1000), "unknown error");
    assert_string_equal (hws_error_word (1), "unknown");
    assert_int_equal (hws_error_from_word ("invented_later", 14), HWS_EPROTOCOL);
    assert_int_equal (hws_error_from_word ("not_found_", 9), HWS_ENOT_FOUND);
    assert_int_equal (hws_error_from_word ("not_found", 8), HWS_EPROTOCOL);
}

/*  ---- Time ---- */

static void time_stays_at_never_and_does_not_wrap (void **state)
{
    (void) state;

    assert_true (hws_time_after (5, 7) == 12);
    assert_true (hws_time_after (HWS_NEVER, 7) == HWS_NEVER);
    assert_true (hws_time_after (7, HWS_NEVER) == HWS_NEVER);
    assert_true (hws_time_after (HWS_NEVER - 1, 2) == HWS_NEVER);
    assert_true (hws_time_after (-5, 3) == -2);
    assert_true (hws_time_until (10, 3) == 0);
    assert_true (hws_time_until (3, 10) == 7);
    assert_true (hws_time_min (3, HWS_NEVER) == 3);
}

/*  ---- Random numbers ---- */

static void the_same_seed_gives_the_same_numbers (void **state)
{
    (void) state;
    hws_random_t a, b, c;
    hws_random_init (&a, 42);
    hws_random_init (&b, 42);
    hws_random_init (&c, 43);
    bool differs = false;

    for (int i = 0; i < 100; i++) {
        const uint64_t number = hws_random_next (&a);
        assert_true (number == hws_random_next (&b));
        differs |= number != hws_random_next (&c);
    }

    assert_true (differs);
}

static void numbers_below_a_bound_take_every_value (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    unsigned counts[7] = {0};

    for (int i = 0; i < 7000; i++) {
        const uint64_t number = hws_random_below (&random, COUNT (counts));
        assert_true (number < COUNT (counts));
        counts[number]++;
    }

    for (size_t i = 0; i < COUNT (counts); i++) {
        assert_in_range (counts[i], 700, 1300);
    }
    assert_true (hws_random_below (&random, 1) == 0);
}

/*  ---- Lists ---- */

typedef struct {
    hws_link_t link;
    int number;
} item_t;

static int number_of (const hws_link_t *link)
{
    return hws_container_of (link, item_t, link)->number;
}

static void list_keeps_the_order_of_a_naive_array (void **state)
{
    (void) state;
    enum { ITEMS = 20 };
    item_t items[ITEMS] = {0};
    for (int i = 0; i < ITEMS; i++) {
        items[i].number = i;
    }
    hws_list_t list = {0};
    int model[ITEMS];
    size_t count = 0;
    hws_random_t random;
    test_seed (&random);

    for (size_t step = 0; step < test_scaled (100000); step++) {
        item_t *const item = &items[hws_random_below (&random, ITEMS)];
        if (!hws_link_is_in_list (&item->link)) {
            const bool at_front = hws_random_below (&random, 2);
            (at_front ? hws_list_prepend : hws_list_append) (&list, &item->link);
            if (at_front) {
                memmove (model + 1, model, count * sizeof *model);
            }
            model[at_front ? 0 : count] = item->number;
            count++;
        } else {
            size_t at = 0;
            if (hws_random_below (&random, 4) == 0) {
                assert_int_equal (number_of (hws_list_pop (&list)), model[0]);
            } else {
                while (model[at] != item->number) {
                    at++;
                }
                hws_list_remove (&item->link);
            }
            count--;
            memmove (model + at, model + at + 1, (count - at) * sizeof *model);
        }

        assert_int_equal (list.count, count);
        const hws_link_t *link = list.head;
        for (size_t i = 0; i < count; i++, link = link->next) {
            assert_int_equal (number_of (link), model[i]);
            assert_ptr_equal (link->prev ? link->prev->next : list.head, link);
        }
        assert_null (link);
        assert_ptr_equal (list.tail ? list.tail->next : NULL, NULL);
    }
}

static void removing_from_no_list_is_harmless (void **state)
{
    (void) state;
    hws_list_t list = {0};
    item_t item = {0};

    hws_list_remove (&item.link);

    assert_null (hws_list_pop (&list));
    assert_int_equal (list.count, 0);
}

/*  ---- Heaps ---- */

enum { TIMERS = 50 };

typedef struct {
    hws_timer_t timers[TIMERS];
    hws_ms_t at[TIMERS];     /* the model: HWS_NEVER when not armed */
    uint64_t set_at[TIMERS]; /* the step in which it was armed */
} heap_model_t;

/*  The index of the timer that must come out first, or TIMERS.  */
static size_t model_first (const heap_model_t *model)
{
    size_t first = TIMERS;
    for (size_t i = 0; i < TIMERS; i++) {
        if (model->at[i] == HWS_NEVER) {
            continue;
        }
        if (first == TIMERS || model->at[i] < model->at[first] ||
            (model->at[i] == model->at[first] && model->set_at[i] < model->set_at[first])) {
            first = i;
        }
    }
    return first;
}

static void heap_gives_deadlines_in_order_of_time_then_setting (void **state)
{
    (void) state;
    hws_heap_t heap = {0};
    static heap_model_t model;
    memset (&model, 0, sizeof model);
    for (size_t i = 0; i < TIMERS; i++) {
        model.at[i] = HWS_NEVER;
    }
    hws_random_t random;
    test_seed (&random);

    for (uint64_t step = 0; step < test_scaled (200000); step++) {
        const size_t i = hws_random_below (&random, TIMERS);
        const hws_ms_t at = (hws_ms_t) hws_random_below (&random, 30);
        switch (hws_random_below (&random, 5)) {
        case 0:
            hws_heap_clear (&heap, &model.timers[i]);
            model.at[i] = HWS_NEVER;
            break;
        case 1: {
            const size_t first = model_first (&model);
            hws_timer_t *const due = hws_heap_pop_due (&heap, at);
            if (first == TIMERS || model.at[first] > at) {
                assert_null (due);
            } else {
                assert_ptr_equal (due, &model.timers[first]);
                assert_false (hws_timer_is_armed (due));
                model.at[first] = HWS_NEVER;
            }
            break;
        }
        case 2:
            hws_heap_set (&heap, &model.timers[i], HWS_NEVER);
            model.at[i] = HWS_NEVER;
            break;
        default:
            hws_heap_set (&heap, &model.timers[i], at);
            model.at[i] = at;
            model.set_at[i] = step;
            break;
        }
        const size_t first = model_first (&model);
        assert_true (hws_heap_first_at (&heap) == (first == TIMERS ? HWS_NEVER : model.at[first]));
    }
}

static void heap_of_many_timers_empties_in_order (void **state)
{
    (void) state;
    enum { MANY = 100000 };
    hws_timer_t *const timers = calloc (MANY, sizeof *timers);
    assert_non_null (timers);
    hws_heap_t heap = {0};
    hws_random_t random;
    test_seed (&random);
    for (size_t i = 0; i < MANY; i++) {
        hws_heap_set (&heap, &timers[i], (hws_ms_t) hws_random_below (&random, 1000000));
    }

    size_t count = 0;
    hws_ms_t last = 0;
    bool is_sorted = true;
    for (hws_timer_t *timer; (timer = hws_heap_pop_due (&heap, HWS_NEVER - 1)); count++) {
        is_sorted &= timer->at >= last;
        last = timer->at;
    }

    free (timers);
    assert_true (is_sorted);
    assert_int_equal (count, MANY);
    assert_true (hws_heap_first_at (&heap) == HWS_NEVER);
}

/*  ---- Maps ---- */

static void hash_is_siphash_1_3 (void **state)
{
    (void) state;
    /*  With a key of zeroes these are what CPython 3.11, which hashes strings with
     *  SipHash-1-3, gives under PYTHONHASHSEED=0.  */
    const hws_hash_key_t zero = {{0, 0}};
    const hws_hash_key_t counting = {{0x0706050403020100, 0x0f0e0d0c0b0a0908}};

    assert_true (hws_hash (zero, hws_bytes_of_text ("a")) == 0x407448d2b89b1813);
    assert_true (hws_hash (zero, hws_bytes_of_text ("12345678")) == 0x3489982430560a87);
    assert_true (hws_hash (zero, hws_bytes_of_text ("many senders, one receiver")) ==
                 0x228d17651ee8e485);
    assert_true (hws_hash (counting, hws_bytes (NULL, 0)) == 0xabac0158050fc4dc);
}

enum { KEYS = 3000 };

typedef struct {
    hws_map_node_t node;
    uint8_t key[8];
    size_t key_size;
    bool is_in; /* the model */
} entry_t;

static void map_finds_what_a_naive_model_holds (void **state)
{
    (void) state;
    static entry_t entries[KEYS];
    memset (entries, 0, sizeof entries);
    for (uint32_t i = 0; i < KEYS; i++) {
        hws_put_u32 (entries[i].key, i);
        entries[i].key_size = 4 + i % 5;
    }
    hws_random_t random;
    test_seed (&random);
    hws_map_t map;
    assert_int_equal (hws_map_init (&map, (hws_hash_key_t){{hws_random_next (&random), 7}}), 0);
    size_t count = 0;

    for (size_t step = 0; step < test_scaled (300000); step++) {
        entry_t *const entry = &entries[hws_random_below (&random, KEYS)];
        const hws_bytes_t key = hws_bytes (entry->key, entry->key_size);
        assert_ptr_equal (hws_map_find (&map, key), entry->is_in ? &entry->node : NULL);
        if (entry->is_in) {
            hws_map_remove (&map, &entry->node);
        } else {
            hws_map_insert (&map, &entry->node, key);
        }
        entry->is_in = !entry->is_in;
        count += entry->is_in ? 1 : (size_t) -1;
        assert_int_equal (map.count, count);
    }
    for (hws_map_node_t *node; (node = hws_map_any (&map)); count--) {
        assert_true (hws_container_of (node, entry_t, node)->is_in);
        hws_map_remove (&map, node);
    }

    assert_int_equal (count, 0);
    hws_map_fini (&map);
}

static void removing_from_no_map_is_harmless (void **state)
{
    (void) state;
    hws_map_t map;
    hws_map_node_t node = {0};
    assert_int_equal (hws_map_init (&map, (hws_hash_key_t){{1, 2}}), 0);

    hws_map_remove (&map, &node);

    assert_int_equal (map.count, 0);
    assert_null (hws_map_any (&map));
    assert_null (hws_map_find (&map, hws_bytes_of_text ("a")));
    hws_map_fini (&map);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (integers_are_big_endian_and_come_back),
        cmocka_unit_test (cursor_reads_forward_to_the_last_byte),
        cmocka_unit_test (cursor_is_bad_for_good_after_reading_too_far),
        cmocka_unit_test (cursor_takes_nothing_of_nothing),
        cmocka_unit_test (bytes_are_equal_by_content),
        cmocka_unit_test (hex_is_printed_lower_and_read_in_both_cases),
        cmocka_unit_test (utf8_takes_every_code_point_and_no_surrogate),
        cmocka_unit_test (utf8_tells_what_shows_from_what_does_not),
        cmocka_unit_test (utf8_refuses_what_is_not),
        cmocka_unit_test (every_wire_error_has_a_word_that_leads_back),
        cmocka_unit_test (unknown_errors_have_a_text_too),
        cmocka_unit_test (time_stays_at_never_and_does_not_wrap),
        cmocka_unit_test (the_same_seed_gives_the_same_numbers),
        cmocka_unit_test (numbers_below_a_bound_take_every_value),
        cmocka_unit_test (list_keeps_the_order_of_a_naive_array),
        cmocka_unit_test (removing_from_no_list_is_harmless),
        cmocka_unit_test (heap_gives_deadlines_in_order_of_time_then_setting),
        cmocka_unit_test (heap_of_many_timers_empties_in_order),
        cmocka_unit_test (hash_is_siphash_1_3),
        cmocka_unit_test (map_finds_what_a_naive_model_holds),
        cmocka_unit_test (removing_from_no_map_is_harmless),
    };
    return cmocka_run_group_tests_name ("base", tests, NULL, NULL);
}
