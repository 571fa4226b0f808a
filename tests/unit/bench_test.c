/*  What the bench calculates with: its records and its statistics.  */
#include "bench/record.h"
#include "bench/statistics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const record_head_t s_head = {.stream = 3, .size = 0, .seq = 7, .sent_at = 11};

static void make_record (uint8_t *record, size_t size)
{
    record_head_t head = s_head;
    head.size = (uint32_t) size;
    record_fill (record, size);
    record_stamp (record, size, &head);
}

/*  ---- Records ---- */

static void a_whole_record_says_whose_it_is (void **state)
{
    static const size_t sizes[] = {RECORD_BYTES_MIN, 64, 1024, 1025, RECORD_BYTES_MAX};
    static uint8_t record[RECORD_BYTES_MAX];
    (void) state;

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        record_head_t head;
        make_record (record, sizes[i]);

        assert_true (record_check (record, sizes[i], sizes[i], &head));

        assert_int_equal (head.stream, 3);
        assert_int_equal (head.seq, 7);
        assert_int_equal (head.sent_at, 11);
    }
}

static void a_changed_byte_behind_the_head_is_seen (void **state)
{
    uint8_t record[64];
    record_head_t head;
    (void) state;

    for (size_t i = sizeof head; i < sizeof record; i++) {
        make_record (record, sizeof record);
        record[i] ^= 1;

        assert_false (record_check (record, sizeof record, sizeof record, &head));
    }
}

static void another_size_is_seen (void **state)
{
    uint8_t record[128];
    record_head_t head;
    (void) state;
    make_record (record, 128);

    assert_false (record_check (record, 127, 128, &head));
    assert_false (record_check (record, 64, 64, &head));
}

static void a_large_record_with_another_end_is_seen (void **state)
{
    static uint8_t record[RECORD_BYTES_MAX];
    record_head_t head;
    (void) state;
    make_record (record, sizeof record);
    memset (record + sizeof record - 100, 0, 50);

    assert_false (record_check (record, sizeof record, sizeof record, &head));
}

/*  ---- Statistics ---- */

static void a_median_is_the_middle_or_between_the_middle_two (void **state)
{
    double odd[] = {9, 1, 5};
    double even[] = {4, 1, 100, 2};
    (void) state;

    assert_true (median_of (odd, 3) == 5.0);
    assert_true (median_of (even, 4) == 3.0);
}

static void a_histogram_is_exact_to_a_sixty_fourth (void **state)
{
    (void) state;

    for (uint64_t value = 1; value < (uint64_t) 1 << 45; value = value * 3 + 1) {
        histogram_t histogram = {0};
        histogram_add (&histogram, value);

        const uint64_t found = histogram_at (&histogram, 500);

        assert_true (found <= value && value - found <= value / 64);
    }
}

static void a_histogram_knows_its_tail (void **state)
{
    histogram_t histogram = {0};
    histogram_t slow = {0};
    (void) state;
    for (int i = 0; i < 990; i++) {
        histogram_add (&histogram, 10);
    }
    for (int i = 0; i < 10; i++) {
        histogram_add (&slow, 60);
    }
    histogram_merge (&histogram, &slow);

    assert_int_equal (histogram_at (&histogram, 500), 10);
    assert_int_equal (histogram_at (&histogram, 990), 10);
    assert_int_equal (histogram_at (&histogram, 991), 60);
    assert_int_equal (histogram_at (&histogram, 1000), 60);
}

static void a_histogram_of_nothing_is_zero (void **state)
{
    const histogram_t histogram = {0};
    (void) state;

    assert_int_equal (histogram_at (&histogram, 500), 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_whole_record_says_whose_it_is),
        cmocka_unit_test (a_changed_byte_behind_the_head_is_seen),
        cmocka_unit_test (another_size_is_seen),
        cmocka_unit_test (a_large_record_with_another_end_is_seen),
        cmocka_unit_test (a_median_is_the_middle_or_between_the_middle_two),
        cmocka_unit_test (a_histogram_is_exact_to_a_sixty_fourth),
        cmocka_unit_test (a_histogram_knows_its_tail),
        cmocka_unit_test (a_histogram_of_nothing_is_zero),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
