/*  The line of progress.  */
#include "io/meter.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void expect_text (hws_meter_t *meter, hws_ms_t now, uint64_t records, uint64_t bytes,
                         const char *expected)
{
    char text[160];

    hws_meter_text (meter, now, (hws_amount_t){.records = records, .bytes = bytes}, text,
                    sizeof text);

    assert_string_equal (text, expected);
}

static void nothing_yet_is_zero (void **state)
{
    hws_meter_t meter;

    (void) state;
    hws_meter_init (&meter, 1000);

    expect_text (&meter, 1000, 0, 0, "0 records, 0 B, 0 records/s, 0 B/s");
}

static void one_record_is_singular (void **state)
{
    hws_meter_t meter;

    (void) state;
    hws_meter_init (&meter, 1000);

    expect_text (&meter, 2000, 1, 5, "1 record, 5 B, 1 records/s, 5 B/s");
}

static void numbers_are_grouped_and_sizes_scaled (void **state)
{
    hws_meter_t meter;

    (void) state;
    hws_meter_init (&meter, 1000);

    expect_text (&meter, 3000, 1204000, 73500000,
                 "1,204,000 records, 73.5 MB, 602,000 records/s, 36.8 MB/s");
}

static void the_rate_is_that_of_the_last_second (void **state)
{
    hws_meter_t meter;

    (void) state;
    hws_meter_init (&meter, 0);
    expect_text (&meter, 1000, 100, 1000, "100 records, 1.0 kB, 100 records/s, 1.0 kB/s");
    expect_text (&meter, 1500, 150, 1500, "150 records, 1.5 kB, 100 records/s, 1.0 kB/s");

    expect_text (&meter, 2000, 600, 6000, "600 records, 6.0 kB, 500 records/s, 5.0 kB/s");
    expect_text (&meter, 3000, 600, 6000, "600 records, 6.0 kB, 0 records/s, 0 B/s");
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (nothing_yet_is_zero),
        cmocka_unit_test (one_record_is_singular),
        cmocka_unit_test (numbers_are_grouped_and_sizes_scaled),
        cmocka_unit_test (the_rate_is_that_of_the_last_second),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
