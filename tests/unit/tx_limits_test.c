/*  A stream that was appended more of than a broker of another epoch lets pass: nothing of it is
 *  lost, nothing is sent that the broker has not allowed, and nothing waits for ever.
 */
#include "client/tx.h"
#include "tests/support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { STREAM = 77, BATCH = 4096, WINDOW = 1 << 20, WIRE = 104 /* of a record of 100 bytes */ };

static hws_tx_t s_tx;
static uint8_t s_buffer[BATCH];

/*  The broker that the program has appended at allowed a lot.  */
static int set_up (void **state)
{
    (void) state;
    hws_tx_init (&s_tx, &s_test_blocks);
    hws_tx_set_batch_bytes (&s_tx, BATCH);
    hws_tx_attached (&s_tx, &(hws_attach_ok_t){.sender_id = 1,
                                               .initial_credit = 10000,
                                               .slot_byte_budget = WINDOW,
                                               .record_bytes = WINDOW});
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    hws_tx_fini (&s_tx);
    return 0;
}

static void append (size_t size)
{
    static uint8_t record[WINDOW];
    assert_int_equal (hws_tx_append (&s_tx, record, size), 0);
}

static void append_some (int count)
{
    for (int i = 0; i < count; i++) {
        append (100);
    }
}

/*  The next epoch answers: what is acknowledged, where the stream goes on, and windows in records
 *  and bytes from there.  */
static void resume_at (uint64_t acked, uint64_t next, uint64_t records, uint64_t bytes)
{
    hws_tx_suspend (&s_tx);
    hws_tx_forget_limits (&s_tx);
    hws_tx_attached (&s_tx, &(hws_attach_ok_t){.sender_id = 1,
                                               .initial_credit = records,
                                               .slot_byte_budget = bytes,
                                               .next_seq = next,
                                               .next_bytes = next * WIRE,
                                               .acked_seq = acked,
                                               .record_bytes = WINDOW});
}

static void resume (uint64_t acked, uint64_t records, uint64_t bytes)
{
    resume_at (acked, acked, records, bytes);
}

/*  Sends all it may, and returns how many numbers that were.  */
static uint64_t send_all (void)
{
    const uint64_t from = s_tx.next_seq;
    while (hws_tx_has_runs (&s_tx)) {
        uint32_t runs;
        uint8_t *message;
        size_t size;
        if (hws_tx_can_lend (&s_tx)) {
            hws_block_t *const block = hws_tx_lend (&s_tx, STREAM, &message, &size);
            block->release (block);
        } else {
            assert_true (hws_tx_take (&s_tx, STREAM, s_buffer, sizeof s_buffer, 100, &runs) > 0);
        }
    }
    return s_tx.next_seq - from;
}

static void grant (uint64_t acked, uint64_t limit_seq, uint64_t limit_bytes)
{
    hws_tx_grant (&s_tx, &(hws_grant_t){.stream = STREAM,
                                        .acked_seq = acked,
                                        .next_seq = acked,
                                        .limit_seq = limit_seq,
                                        .limit_bytes = limit_bytes});
}

/*  ---- What is sent ---- */

static void nothing_is_sent_beyond_the_bytes_of_a_new_epoch (void **state)
{
    (void) state;
    append_some (200);

    resume (0, 10000, 70 * WIRE + 50);

    assert_int_equal (send_all (), 70);
    grant (0, 0, 130 * WIRE);
    assert_int_equal (send_all (), 60);
    grant (70, 0, WINDOW);
    assert_int_equal (send_all (), 70);
    assert_false (s_tx.is_over);
}

static void nothing_is_sent_beyond_the_numbers_of_a_new_epoch (void **state)
{
    (void) state;
    append_some (200);

    resume (0, 65, WINDOW);

    assert_int_equal (send_all (), 65);
    grant (65, 199, 0);
    assert_int_equal (send_all (), 134);
    grant (65, 200, 0);
    assert_int_equal (send_all (), 1);
}

static void what_waits_is_sent_from_the_middle_of_what_was_sent_before (void **state)
{
    (void) state;
    append_some (200);
    send_all ();

    resume_at (100, 110, 10000, 20 * WIRE);

    assert_int_equal (s_tx.next_seq, 110);
    assert_int_equal (send_all (), 20);
}

static void nothing_is_lent_beyond_the_limits (void **state)
{
    (void) state;
    uint32_t runs;
    hws_tx_set_batch_bytes (&s_tx, 1 << 16);
    append_some (2500);
    while (!hws_tx_can_lend (&s_tx)) {
        assert_true (hws_tx_take (&s_tx, STREAM, s_buffer, sizeof s_buffer, 100, &runs) > 0);
    }
    const uint64_t first = s_tx.next_seq;

    resume_at (0, first, 10, WINDOW);

    assert_false (hws_tx_can_lend (&s_tx));
    assert_int_equal (send_all (), 10);
}

static void an_ending_is_free_of_the_limits_of_a_new_epoch (void **state)
{
    (void) state;
    append_some (10);
    hws_tx_detach (&s_tx);

    resume (0, 10, 10 * WIRE);

    assert_int_equal (send_all (), 11);
    assert_int_equal (s_tx.want_bytes, 0);
    grant (11, 0, 0);
    assert_int_equal (s_tx.state, HWS_TX_ENDED);
    assert_int_equal (s_tx.result, 0);
}

static void a_flush_releases_no_more_than_the_limits (void **state)
{
    (void) state;
    s_tx.is_gathered = true;
    append_some (100);

    resume (0, 10000, 50 * WIRE);

    assert_int_equal (send_all (), 0);
    hws_tx_flush (&s_tx);
    assert_int_equal (send_all (), 50);
}

/*  ---- What is appended ---- */

static void the_program_waits_until_what_it_appended_has_passed (void **state)
{
    (void) state;
    append_some (100);
    resume (0, 10000, 50 * WIRE);

    assert_int_equal (hws_tx_append (&s_tx, "x", 1), HWS_EWOULD_BLOCK);
    grant (50, 0, 100 * WIRE);
    assert_int_equal (hws_tx_append (&s_tx, "x", 1), HWS_EWOULD_BLOCK);
    grant (100, 0, 101 * WIRE);

    assert_int_equal (hws_tx_append (&s_tx, "x", 1), 0);
}

static void room_that_was_reserved_before_is_kept (void **state)
{
    (void) state;
    void *room;
    assert_int_equal (hws_tx_reserve (&s_tx, &room, 100), 0);

    resume (0, 10000, 50);
    assert_int_equal (hws_tx_commit (&s_tx, 100), 0);

    assert_int_equal (s_tx.records, 1);
    assert_int_equal (send_all (), 0);
    grant (0, 0, WIRE);
    assert_int_equal (send_all (), 1);
}

static void room_that_was_reserved_for_parts_is_kept (void **state)
{
    (void) state;
    void *room;
    assert_int_equal (hws_tx_reserve (&s_tx, &room, 10000), 0);
    memset (room, 'x', 10000);

    resume (0, 10000, 50);
    assert_int_equal (hws_tx_commit (&s_tx, 10000), 0);

    assert_int_equal (s_tx.records, 1);
    assert_int_equal (s_tx.want_bytes, 10000 + 3 * HWS_RECORD_HEADER_SIZE);
}

/*  It would end the stream.  */
static void a_reserved_record_that_the_anchor_no_longer_takes_is_refused (void **state)
{
    (void) state;
    void *room;
    assert_int_equal (hws_tx_reserve (&s_tx, &room, 1000), 0);
    resume (0, 10000, 50);
    s_tx.record_bytes = 500;

    assert_int_equal (hws_tx_commit (&s_tx, 501), HWS_ETOO_LARGE);
    assert_int_equal (s_tx.records, 0);
    assert_int_equal (hws_tx_commit (&s_tx, 500), HWS_EINVALID); /* it is given up */
    assert_int_equal (hws_tx_append (&s_tx, "x", 1), 0);
    assert_int_equal (send_all (), 1);
}

/*  ---- What is asked for ---- */

static void a_record_that_is_larger_than_the_window_is_asked_for (void **state)
{
    (void) state;
    append (100);
    append (3000);
    append (100);

    resume (0, 10000, 2000);
    assert_int_equal (send_all (), 1);
    assert_int_equal (s_tx.want_bytes, 0); /* something is before it */
    grant (1, 0, WIRE + 2000);

    hws_window_t window;
    assert_true (hws_tx_next_window (&s_tx, &window));
    assert_int_equal (window.want_bytes, 3004);
    assert_int_equal (window.limit_bytes, 0);
    grant (1, 0, WIRE + 3004);
    assert_int_equal (send_all (), 1);
    assert_int_equal (s_tx.want_bytes, 0);
}

static void a_record_in_parts_is_asked_for_with_all_of_them (void **state)
{
    (void) state;
    const uint64_t size = 10000 + 3 * HWS_RECORD_HEADER_SIZE;
    append (100);
    append (10000);

    resume (0, 10000, 5000);
    assert_int_equal (s_tx.want_bytes, 0);
    send_all ();
    grant (1, 0, WIRE + 5000);

    assert_int_equal (s_tx.want_bytes, size);
    grant (1, 0, WIRE + size);
    send_all ();
    assert_int_equal (s_tx.next_seq, 4);
    assert_int_equal (s_tx.want_bytes, 0);
}

static void what_is_wanted_stays_when_the_program_waits_no_longer (void **state)
{
    (void) state;
    append (3000);
    resume (0, 10000, 2000);

    hws_tx_want_nothing (&s_tx);
    assert_int_equal (s_tx.want_bytes, 3004);
    assert_int_equal (hws_tx_detach (&s_tx), 0);

    assert_int_equal (s_tx.want_bytes, 3004);
    assert_true (hws_tx_cancel (&s_tx));
    assert_int_equal (s_tx.want_bytes, 0);
    grant (0, 0, 2100);
    assert_int_equal (s_tx.want_bytes, 0);
}

static void what_the_program_wants_is_asked_for_in_the_new_epoch (void **state)
{
    (void) state;
    resume (0, 10000, 2000);
    assert_int_equal (hws_tx_probe (&s_tx, 3000), HWS_EWOULD_BLOCK);

    resume (0, 10000, 2500);

    assert_int_equal (s_tx.want_bytes, 3004);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (nothing_is_sent_beyond_the_bytes_of_a_new_epoch),
        TEST (nothing_is_sent_beyond_the_numbers_of_a_new_epoch),
        TEST (what_waits_is_sent_from_the_middle_of_what_was_sent_before),
        TEST (nothing_is_lent_beyond_the_limits),
        TEST (an_ending_is_free_of_the_limits_of_a_new_epoch),
        TEST (a_flush_releases_no_more_than_the_limits),
        TEST (the_program_waits_until_what_it_appended_has_passed),
        TEST (room_that_was_reserved_before_is_kept),
        TEST (room_that_was_reserved_for_parts_is_kept),
        TEST (a_reserved_record_that_the_anchor_no_longer_takes_is_refused),
        TEST (a_record_that_is_larger_than_the_window_is_asked_for),
        TEST (a_record_in_parts_is_asked_for_with_all_of_them),
        TEST (what_is_wanted_stays_when_the_program_waits_no_longer),
        TEST (what_the_program_wants_is_asked_for_in_the_new_epoch),
    };
    return cmocka_run_group_tests_name ("limits of a stream", tests, NULL, NULL);
}
