/*  One sender's stream: the window, its memory, parts, rewinds, endings.  */
#include "client/tx.h"
#include "tests/support/blocks.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { STREAM = 77, BATCH = 4096, BATCH_MOST = 1 << 16, WINDOW = 1 << 20, RECORDS = 1000 };

/*  A stream that was attached with a window of `records` and `bytes`.  */
static void attach (hws_tx_t *tx, uint64_t records, uint64_t bytes)
{
    hws_tx_init (tx, &s_test_blocks);
    hws_tx_set_batch_bytes (tx, BATCH);
    hws_tx_attached (tx, &(hws_attach_ok_t){.sender_id = 1,
                                            .initial_credit = records,
                                            .slot_byte_budget = bytes,
                                            .record_bytes = 1 << 24});
}

static void acknowledge (hws_tx_t *tx, uint64_t seq)
{
    hws_tx_grant (tx, &(hws_grant_t){.stream = STREAM, .acked_seq = seq, .next_seq = seq});
}

static void rewind_stream (hws_tx_t *tx, uint64_t acked, uint64_t next)
{
    hws_tx_grant (
        tx, &(hws_grant_t){
                .stream = STREAM, .acked_seq = acked, .next_seq = next, .flags = HWS_GRANT_REWIND});
}

/*  What one batch brought: its runs, and the bytes that they view into.  */
typedef struct {
    uint8_t bytes[BATCH_MOST];
    uint32_t count;
    hws_run_t runs[256];
} taken_t;

static void read_runs (taken_t *taken, const uint8_t *message, size_t size)
{
    hws_batch_t batch;
    assert_int_equal (hws_batch_open (&batch, hws_bytes (message, size)), 0);
    taken->count = 0;
    while (hws_batch_next_run (&batch, &taken->runs[taken->count]) == 1) {
        taken->count++;
    }
}

static void take_into (hws_tx_t *tx, taken_t *taken, size_t room)
{
    uint32_t runs;
    const size_t size = hws_tx_take (tx, STREAM, taken->bytes + HWS_BATCH_HEADER_SIZE,
                                     room - HWS_BATCH_HEADER_SIZE, 256, &runs);
    hws_batch_put (taken->bytes, HWS_BATCH_DATA, (uint16_t) runs);
    read_runs (taken, taken->bytes, HWS_BATCH_HEADER_SIZE + size);
    assert_int_equal (taken->count, runs);
}

static void take (hws_tx_t *tx, taken_t *taken)
{
    take_into (tx, taken, BATCH);
}

static void fill (uint8_t *data, size_t size, uint64_t seq)
{
    for (size_t i = 0; i < size; i++) {
        data[i] = (uint8_t) (seq * 31 + i);
    }
}

/*  ---- The window ---- */

static void probe_says_what_append_would (void **state)
{
    (void) state;
    static const uint8_t data[20000];
    hws_tx_t tx;
    attach (&tx, 10, 10000);

    assert_int_equal (hws_tx_probe (&tx, (1 << 24) + 1), HWS_ETOO_LARGE);
    assert_int_equal (hws_tx_probe (&tx, sizeof data), HWS_EWOULD_BLOCK);
    assert_true (tx.want_bytes > sizeof data);
    assert_int_equal (hws_tx_probe (&tx, 5000), 0);
    assert_int_equal (tx.end_seq, 0);
    hws_tx_append (&tx, data, 5000);
    assert_int_equal (hws_tx_probe (&tx, 5000), HWS_EWOULD_BLOCK);
    hws_tx_detach (&tx);
    assert_int_equal (hws_tx_probe (&tx, 1), HWS_EENDED);
    hws_tx_fini (&tx);
}

static void sender_stops_at_the_window (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 3, WINDOW);

    assert_int_equal (hws_tx_append (&tx, "a", 1), 0);
    assert_int_equal (hws_tx_append (&tx, "b", 1), 0);
    assert_int_equal (hws_tx_append (&tx, "c", 1), 0);
    assert_int_equal (hws_tx_append (&tx, "d", 1), HWS_EWOULD_BLOCK);

    assert_int_equal (tx.end_seq, 3);
    assert_int_equal (tx.end_bytes, 15);
    hws_tx_fini (&tx);
}

static void window_in_bytes_counts_the_record_headers (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, 10);

    assert_int_equal (hws_tx_append (&tx, "123456", 6), 0);

    assert_int_equal (hws_tx_append (&tx, "", 0), HWS_EWOULD_BLOCK);
    hws_tx_fini (&tx);
}

static void grants_are_absolute (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 2, WINDOW);
    taken_t taken;
    for (int i = 0; i < 2; i++) {
        assert_int_equal (hws_tx_append (&tx, "x", 1), 0);
    }
    take (&tx, &taken);
    const hws_grant_t newer = {.acked_seq = 2, .limit_seq = 5, .limit_bytes = WINDOW};
    const hws_grant_t older = {.acked_seq = 1, .limit_seq = 4, .limit_bytes = WINDOW};

    hws_tx_grant (&tx, &newer);
    hws_tx_grant (&tx, &newer);
    hws_tx_grant (&tx, &older);

    assert_int_equal (tx.acked_seq, 2);
    assert_int_equal (tx.limit_seq, 5);
    hws_tx_fini (&tx);
}

/*  Takes the WINDOW that is owed.  */
static hws_window_t take_window (hws_tx_t *tx)
{
    hws_window_t window;
    assert_true (hws_tx_next_window (tx, &window));
    return window;
}

static void return_gives_back_all_but_what_is_appended (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 2, WINDOW);
    hws_tx_append (&tx, "x", 1);

    hws_tx_grant (&tx, &(hws_grant_t){.limit_seq = 3, .flags = HWS_GRANT_RETURN});
    const hws_window_t window = take_window (&tx);

    assert_int_equal (window.limit_seq, 3);
    assert_int_equal (window.limit_bytes, 5);
    assert_int_equal (window.want_bytes, 0);
    assert_int_equal (hws_tx_append (&tx, "x", 1), HWS_EWOULD_BLOCK);
    assert_false (hws_tx_next_window (&tx, &(hws_window_t){0})); /* it is said once */
    hws_tx_fini (&tx);
}

static void return_names_the_limit_that_it_lowers (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 2, 10);
    static const uint8_t large[100];
    assert_int_equal (hws_tx_append (&tx, large, sizeof large), HWS_EWOULD_BLOCK);

    hws_tx_grant (&tx, &(hws_grant_t){.limit_bytes = 500, .flags = HWS_GRANT_RETURN});

    assert_int_equal (take_window (&tx).limit_bytes, 104); /* is allowed with the same word */
    assert_int_equal (hws_tx_append (&tx, large, sizeof large), 0);
    hws_tx_fini (&tx);
}

static void return_takes_the_room_of_a_record_that_is_wanted_no_longer (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 2, 10);
    assert_int_equal (hws_tx_probe (&tx, 100), HWS_EWOULD_BLOCK);
    assert_int_equal (take_window (&tx).want_bytes, 104);
    hws_tx_grant (&tx, &(hws_grant_t){.limit_bytes = 104});

    hws_tx_want_nothing (&tx);
    assert_false (hws_tx_next_window (&tx, &(hws_window_t){0}));
    hws_tx_grant (&tx, &(hws_grant_t){.flags = HWS_GRANT_RETURN});

    assert_int_equal (take_window (&tx).limit_bytes, 0);
    hws_tx_fini (&tx);
}

static void return_leaves_what_was_reserved (void **state)
{
    (void) state;
    hws_tx_t tx;
    void *room;
    attach (&tx, 2, WINDOW);
    assert_int_equal (hws_tx_reserve (&tx, &room, 20), 0);

    hws_tx_grant (&tx, &(hws_grant_t){.flags = HWS_GRANT_RETURN});

    assert_in_range (take_window (&tx).limit_bytes, 24, 32);
    assert_int_equal (hws_tx_commit (&tx, 20), 0);
    hws_tx_fini (&tx);
}

static void return_is_cancelled_by_the_answer_to_attach (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, 2, WINDOW);
    hws_tx_grant (&tx, &(hws_grant_t){.flags = HWS_GRANT_RETURN});
    hws_tx_suspend (&tx);
    hws_tx_grant (&tx, &(hws_grant_t){.flags = HWS_GRANT_RETURN}); /* under way before that */
    assert_false (hws_tx_next_window (&tx, &(hws_window_t){0}));

    hws_tx_attached (&tx, &(hws_attach_ok_t){.initial_credit = 2, .slot_byte_budget = WINDOW});

    assert_false (hws_tx_next_window (&tx, &(hws_window_t){0}));
    assert_int_equal (hws_tx_append (&tx, "x", 1), 0);
    hws_tx_fini (&tx);
}

static void grant_beyond_what_was_sent_acknowledges_nothing (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "x", 1);

    acknowledge (&tx, 1);

    assert_int_equal (tx.acked_seq, 0);
    hws_tx_fini (&tx);
}

static void record_larger_than_the_window_is_asked_for_when_nothing_is_before_it (void **state)
{
    (void) state;
    static uint8_t large[3000];
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, 1000);
    hws_tx_append (&tx, "x", 1);
    take (&tx, &taken);

    assert_int_equal (hws_tx_append (&tx, large, sizeof large), HWS_EWOULD_BLOCK);
    assert_int_equal (tx.want_bytes, 0);
    acknowledge (&tx, 1);
    assert_int_equal (hws_tx_append (&tx, large, sizeof large), HWS_EWOULD_BLOCK);
    assert_int_equal (tx.want_bytes, sizeof large + HWS_RECORD_HEADER_SIZE);
    hws_tx_grant (&tx, &(hws_grant_t){.acked_seq = 1, .limit_bytes = 5 + 4 + sizeof large});

    assert_int_equal (hws_tx_append (&tx, large, sizeof large), 0);
    assert_int_equal (tx.want_bytes, 0);
    hws_tx_fini (&tx);
}

static void record_over_the_limit_is_too_large (void **state)
{
    (void) state;
    static uint8_t data[101];
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);
    tx.record_bytes = 100;

    assert_int_equal (hws_tx_append (&tx, data, 101), HWS_ETOO_LARGE);

    assert_int_equal (hws_tx_append (&tx, data, 100), 0);
    hws_tx_fini (&tx);
}

/*  ---- Runs ---- */

static void records_leave_as_one_run (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "one", 3);
    hws_tx_append (&tx, "", 0);
    hws_tx_append (&tx, "two", 3);

    take (&tx, &taken);

    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].stream, STREAM);
    assert_int_equal (taken.runs[0].first_seq, 0);
    assert_int_equal (taken.runs[0].count, 3);
    static const uint8_t body[] = {0, 0, 0, 3, 'o', 'n', 'e', 0,   0,
                                   0, 0, 0, 0, 0,   3,   't', 'w', 'o'};
    assert_int_equal (taken.runs[0].body.size, sizeof body);
    assert_memory_equal (taken.runs[0].body.data, body, sizeof body);
    assert_false (hws_tx_has_runs (&tx));
    hws_tx_fini (&tx);
}

static void errors_keep_their_place_among_records (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "a", 1);
    hws_tx_append_error (&tx, "oops", 4);
    hws_tx_append (&tx, "b", 1);

    take (&tx, &taken);

    assert_int_equal (taken.count, 3);
    assert_int_equal (taken.runs[1].type, HWS_RUN_ERROR);
    assert_int_equal (taken.runs[1].first_seq, 1);
    assert_memory_equal (taken.runs[1].body.data, "oops", 4);
    assert_int_equal (taken.runs[2].first_seq, 2);
    hws_tx_fini (&tx);
}

static void large_record_travels_in_parts (void **state)
{
    (void) state;
    static uint8_t large[10000];
    fill (large, sizeof large, 5);
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    const size_t full =
        BATCH - HWS_BATCH_HEADER_SIZE - HWS_RUN_HEADER_SIZE - HWS_RECORD_HEADER_SIZE;
    uint8_t joined[sizeof large];
    size_t size = 0;

    assert_int_equal (hws_tx_append (&tx, large, sizeof large), 0);
    for (uint64_t part = 0; part < 3; part++) {
        take (&tx, &taken);
        assert_int_equal (taken.count, 1);
        assert_int_equal (taken.runs[0].count, 1);
        assert_int_equal (taken.runs[0].first_seq, part);
        assert_int_equal (taken.runs[0].flags, part < 2 ? HWS_RUN_MORE : 0);
        hws_cursor_t cursor = hws_cursor (taken.runs[0].body);
        hws_bytes_t record;
        assert_int_equal (hws_run_next_record (&cursor, &record), 1);
        assert_true (part == 2 || record.size == full);
        memcpy (joined + size, record.data, record.size);
        size += record.size;
    }

    assert_int_equal (size, sizeof large);
    assert_memory_equal (joined, large, size);
    assert_int_equal (tx.end_bytes, sizeof large + 3 * HWS_RECORD_HEADER_SIZE);
    assert_int_equal (tx.records, 1);
    hws_tx_fini (&tx);
}

static void largest_whole_record_fills_one_batch (void **state)
{
    (void) state;
    static uint8_t data[BATCH];
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);

    hws_tx_append (&tx, data, tx.part_bytes);
    take (&tx, &taken);
    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].flags, 0);
    hws_tx_append (&tx, data, tx.part_bytes + 1);
    take (&tx, &taken);

    assert_int_equal (taken.runs[0].flags, HWS_RUN_MORE);
    hws_tx_fini (&tx);
}

/*  Streams of records from every offset on, each acknowledged after it was read back: past the
 *  ends of many slices, blocks, and stretches between two marks.  */
static void ring_wraps (void **state)
{
    (void) state;
    uint8_t data[64];
    static taken_t taken;
    for (size_t offset = 0; offset < HWS_RECORD_HEADER_SIZE + sizeof data; offset++) {
        hws_tx_t tx;
        uint8_t first[HWS_RECORD_HEADER_SIZE + sizeof data] = {0};
        attach (&tx, RECORDS, 4096);
        assert_int_equal (hws_tx_append (&tx, first, offset), 0);
        take (&tx, &taken);
        hws_tx_grant (&tx, &(hws_grant_t){.limit_seq = UINT64_MAX, .limit_bytes = UINT64_MAX});
        for (uint64_t seq = 1; seq < 300; seq++) {
            fill (data, sizeof data, seq);
            assert_int_equal (hws_tx_append (&tx, data, sizeof data), 0);
            take (&tx, &taken);
            hws_cursor_t cursor = hws_cursor (taken.runs[0].body);
            hws_bytes_t record;
            assert_int_equal (hws_run_next_record (&cursor, &record), 1);
            assert_int_equal (record.size, sizeof data);
            assert_memory_equal (record.data, data, sizeof data);
            acknowledge (&tx, seq > 50 ? seq - 50 : 0); /* something is always kept */
            assert_int_equal (tx.acked_bytes, seq > 50 ? 4 + offset + (seq - 51) * 68 : 0);
        }
        assert_true (test_block_bytes () <= (size_t) 3 * 4096 + 1024);
        hws_tx_fini (&tx);
        assert_int_equal (test_block_bytes (), 0);
    }
}

static void reserved_room_is_sent_with_its_true_size (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    void *room;

    assert_int_equal (hws_tx_reserve (&tx, &room, 100), 0);
    memcpy (room, "abc", 3);
    assert_int_equal (hws_tx_commit (&tx, 3), 0);
    take (&tx, &taken);

    assert_int_equal (taken.runs[0].body.size, 7);
    assert_memory_equal (taken.runs[0].body.data + 4, "abc", 3);
    assert_int_equal (hws_tx_commit (&tx, 3), HWS_EINVALID);
    hws_tx_fini (&tx);
}

/*  ---- Memory ---- */

enum { RECORD = 100 };

/*  A stream of large batches with `size` bytes of records to send.  */
static void attach_with_records (hws_tx_t *tx, size_t size)
{
    uint8_t data[RECORD];
    hws_tx_init (tx, &s_test_blocks);
    hws_tx_set_batch_bytes (tx, BATCH_MOST);
    hws_tx_attached (tx, &(hws_attach_ok_t){
                             .sender_id = 1, .initial_credit = WINDOW, .slot_byte_budget = WINDOW});
    for (uint64_t seq = 0; tx->end_bytes < size; seq++) {
        fill (data, sizeof data, seq);
        assert_int_equal (hws_tx_append (tx, data, sizeof data), 0);
    }
}

/*  Sends, copying, what is before the first slice that can be lent.  */
static void send_until_lent (hws_tx_t *tx)
{
    static taken_t taken;
    while (!hws_tx_can_lend (tx)) {
        assert_true (hws_tx_has_runs (tx));
        take_into (tx, &taken, 8192);
    }
}

static void expect_records (const hws_run_t *run)
{
    uint8_t data[RECORD];
    hws_cursor_t cursor = hws_cursor (run->body);
    hws_bytes_t record;
    for (uint64_t seq = run->first_seq; seq < run->first_seq + run->count; seq++) {
        fill (data, sizeof data, seq);
        assert_int_equal (hws_run_next_record (&cursor, &record), 1);
        assert_int_equal (record.size, sizeof data);
        assert_memory_equal (record.data, data, sizeof data);
    }
    assert_int_equal (cursor.left, 0);
}

static void long_piece_leaves_as_it_lies (void **state)
{
    (void) state;
    hws_tx_t tx;
    static taken_t taken;
    attach_with_records (&tx, 4 * BATCH_MOST);
    uint8_t *message;
    size_t size;
    send_until_lent (&tx);
    const uint64_t first = tx.next_seq;

    hws_block_t *const block = hws_tx_lend (&tx, STREAM, &message, &size);

    read_runs (&taken, message, size);
    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].stream, STREAM);
    assert_int_equal (taken.runs[0].first_seq, first);
    assert_int_equal (taken.runs[0].count, tx.next_seq - first);
    assert_true (size >= HWS_TX_LENT_MIN && size <= BATCH_MOST);
    assert_true (message > block->bytes && message + size <= block->bytes + block->size);
    expect_records (&taken.runs[0]);
    block->release (block);
    hws_tx_fini (&tx);
}

static void short_piece_is_copied (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach_with_records (&tx, 2000);

    assert_true (hws_tx_has_runs (&tx));
    assert_false (hws_tx_can_lend (&tx));

    hws_tx_fini (&tx);
}

static void piece_that_is_too_long_for_a_smaller_batch_is_not_lent (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach_with_records (&tx, 4 * BATCH_MOST);
    send_until_lent (&tx);

    hws_tx_set_batch_bytes (&tx, HWS_TX_LENT_MIN);

    assert_false (hws_tx_can_lend (&tx));
    hws_tx_fini (&tx);
}

/*  What the stream does while its message is still in the socket: it goes on behind, is sent
 *  again, acknowledged, detached and gone.  */
static void lent_bytes_outlive_all_that_the_stream_does (void **state)
{
    (void) state;
    hws_tx_t tx;
    static taken_t taken;
    static uint8_t sent[BATCH_MOST];
    attach_with_records (&tx, 4 * BATCH_MOST);
    uint8_t *message;
    size_t size;
    send_until_lent (&tx);
    const uint64_t first = tx.next_seq;
    hws_block_t *const block = hws_tx_lend (&tx, STREAM, &message, &size);
    memcpy (sent, message, size);
    const uint64_t end = tx.next_seq;

    hws_tx_append (&tx, "behind", 6);
    rewind_stream (&tx, 0, first);
    assert_false (hws_tx_can_lend (&tx)); /* once only */
    while (tx.next_seq < end) {
        take_into (&tx, &taken, 8192);
        expect_records (&taken.runs[0]);
    }
    hws_tx_suspend (&tx);
    hws_tx_attached (&tx, &(hws_attach_ok_t){.sender_id = 1, .acked_seq = first, .next_seq = end});
    assert_memory_equal (message, sent, size);
    hws_tx_detach (&tx);
    acknowledge (&tx, end);
    assert_memory_equal (message, sent, size);
    hws_tx_fini (&tx);

    assert_memory_equal (message, sent, size);
    assert_int_equal (test_block_bytes (), block->size);
    block->release (block);
    assert_int_equal (test_block_bytes (), 0);
}

static void reservation_does_not_hold_up_what_is_before_it (void **state)
{
    (void) state;
    hws_tx_t tx;
    static taken_t taken;
    attach_with_records (&tx, 4 * BATCH_MOST);
    uint8_t *message;
    size_t size;
    void *room;

    assert_int_equal (hws_tx_reserve (&tx, &room, 100), 0);
    uint64_t sent = 0;
    while (hws_tx_has_runs (&tx)) {
        if (hws_tx_can_lend (&tx)) {
            hws_block_t *const block = hws_tx_lend (&tx, STREAM, &message, &size);
            block->release (block);
        } else {
            take_into (&tx, &taken, BATCH_MOST);
        }
        sent++;
    }
    assert_true (sent >= 4);
    acknowledge (&tx, tx.end_seq);
    memcpy (room, "written", 7);
    assert_int_equal (hws_tx_commit (&tx, 7), 0);
    take (&tx, &taken);

    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].count, 1);
    assert_memory_equal (taken.runs[0].body.data + 4, "written", 7);
    hws_tx_fini (&tx);
}

/*  Detaches: the ending is the only thing left to send, and has that number.  */
static void finish_at (hws_tx_t *tx, uint64_t seq)
{
    static taken_t taken;
    hws_tx_detach (tx);
    take (tx, &taken);

    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].type, HWS_RUN_DETACHED);
    assert_int_equal (taken.runs[0].first_seq, seq);
    acknowledge (tx, seq + 1);
    assert_int_equal (tx->state, HWS_TX_ENDED);
    hws_tx_fini (tx);
}

static void reservation_that_nothing_comes_of_leaves_no_gap (void **state)
{
    (void) state;
    hws_tx_t tx;
    static taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    void *room;

    assert_int_equal (hws_tx_reserve (&tx, &room, 100), 0);
    hws_tx_append_error (&tx, "oops", 4);
    assert_int_equal (hws_tx_reserve (&tx, &room, 100), 0);
    take (&tx, &taken);
    finish_at (&tx, 1);
}

/*  An acknowledgement overtakes what was to be sent again, up to the end of the slice that the
 *  room lies in.  */
static void reservation_given_up_after_a_rewind_holds_nothing_up (void **state)
{
    (void) state;
    hws_tx_t tx;
    static taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    void *room;
    for (int i = 0; i < 10; i++) {
        assert_int_equal (hws_tx_append (&tx, "record", 6), 0);
    }
    take (&tx, &taken);
    assert_int_equal (hws_tx_reserve (&tx, &room, 100), 0);
    rewind_stream (&tx, 0, 5);
    acknowledge (&tx, 10);

    finish_at (&tx, 10);
}

static void every_position_is_found (void **state)
{
    (void) state;
    static uint8_t data[1000];
    static taken_t taken;
    enum { COUNT = 400 };
    uint64_t at[COUNT + 1] = {0};
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_set_batch_bytes (&tx, BATCH_MOST);
    for (uint64_t seq = 0; seq < COUNT; seq++) {
        const size_t size = seq * 37 % 300;
        assert_int_equal (hws_tx_append (&tx, data, size), 0);
        at[seq + 1] = at[seq] + HWS_RECORD_HEADER_SIZE + size;
    }
    while (hws_tx_has_runs (&tx)) {
        take_into (&tx, &taken, BATCH_MOST);
    }

    for (uint64_t seq = 0; seq <= COUNT; seq++) {
        rewind_stream (&tx, 0, seq);
        assert_int_equal (tx.next_bytes, at[seq]);
    }
    for (uint64_t seq = 0; seq <= COUNT; seq++) {
        acknowledge (&tx, seq);
        assert_int_equal (tx.acked_bytes, at[seq]);
        assert_int_equal (tx.acked_record_payload, at[seq] - seq * HWS_RECORD_HEADER_SIZE);
    }
    hws_tx_fini (&tx);
}

/*  Its window, what is behind of the first block and before of the last, and what slices cost.  */
static void memory_is_bounded_by_the_window_and_two_blocks (void **state)
{
    (void) state;
    enum { MANY = 200000, BOUND = (1 << 18) + 2 * (BATCH_MOST + HWS_BLOCK_EXTRA) };
    hws_random_t random;
    test_seed (&random);
    static uint8_t data[RECORD];
    static taken_t taken;
    hws_tx_t tx;
    size_t most = 0;
    attach (&tx, UINT32_MAX, 1 << 18);
    hws_tx_set_batch_bytes (&tx, BATCH_MOST);

    for (int i = 0; i < MANY; i++) {
        if (hws_tx_append (&tx, data, (size_t) hws_random_below (&random, sizeof data)) != 0) {
            while (hws_tx_has_runs (&tx)) {
                take_into (&tx, &taken, BATCH_MOST);
            }
            const uint64_t kept = tx.end_seq - tx.acked_seq;
            acknowledge (&tx, tx.acked_seq + 1 + hws_random_below (&random, kept));
            hws_tx_grant (&tx, &(hws_grant_t){.limit_bytes = tx.acked_bytes + (1 << 18)});
        }
        most = test_block_bytes () > most ? test_block_bytes () : most;
    }

    assert_in_range (most, 1 << 18, BOUND + BOUND / 16);
    while (hws_tx_has_runs (&tx)) {
        take_into (&tx, &taken, BATCH_MOST);
    }
    acknowledge (&tx, tx.end_seq);
    assert_true (test_block_bytes () <= HWS_BLOCK_SIZE_MIN + HWS_BLOCK_EXTRA);
    hws_tx_fini (&tx);
}

/*  ---- Rewinds ---- */

static void rewind_begins_a_run_exactly_there (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    for (char c = 'a'; c < 'f'; c++) {
        hws_tx_append (&tx, &c, 1);
    }
    take (&tx, &taken);

    rewind_stream (&tx, 1, 3);
    take (&tx, &taken);

    assert_int_equal (taken.count, 1);
    assert_int_equal (taken.runs[0].first_seq, 3);
    assert_int_equal (taken.runs[0].count, 2);
    assert_int_equal (taken.runs[0].body.data[4], 'd');
    hws_tx_fini (&tx);
}

static void rewind_outside_of_what_is_kept_is_ignored (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    for (int i = 0; i < 4; i++) {
        hws_tx_append (&tx, "x", 1);
    }
    take (&tx, &taken);
    acknowledge (&tx, 2);
    hws_tx_append (&tx, "y", 1);

    rewind_stream (&tx, 2, 1);
    rewind_stream (&tx, 2, 5);

    assert_int_equal (tx.next_seq, 4);
    hws_tx_fini (&tx);
}

static void nothing_is_sent_between_two_connections (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "a", 1);
    hws_tx_append (&tx, "b", 1);
    take (&tx, &taken);

    hws_tx_suspend (&tx);
    assert_int_equal (hws_tx_append (&tx, "c", 1), 0);
    assert_false (hws_tx_has_runs (&tx));
    hws_tx_attached (&tx, &(hws_attach_ok_t){.sender_id = 1, .acked_seq = 1, .next_seq = 1});
    take (&tx, &taken);

    assert_int_equal (taken.runs[0].first_seq, 1);
    assert_int_equal (taken.runs[0].count, 2);
    hws_tx_fini (&tx);
}

/*  ---- Endings ---- */

static void ending_passes_a_full_window (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, 1, WINDOW);
    hws_tx_append (&tx, "abc", 3);
    assert_int_equal (hws_tx_append (&tx, "d", 1), HWS_EWOULD_BLOCK);

    assert_int_equal (hws_tx_detach (&tx), 0);
    take (&tx, &taken);

    assert_int_equal (taken.count, 2);
    assert_int_equal (taken.runs[1].type, HWS_RUN_DETACHED);
    assert_int_equal (taken.runs[1].first_seq, 1);
    assert_int_equal (taken.runs[1].count, 1);
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (taken.runs[1].body, &ending), 0);
    assert_int_equal (ending.records, 1);
    assert_int_equal (ending.bytes, 3);
    hws_tx_fini (&tx);
}

static void nothing_after_the_ending (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);

    hws_tx_detach (&tx);

    assert_int_equal (hws_tx_append (&tx, "x", 1), HWS_EENDED);
    assert_int_equal (hws_tx_append_error (&tx, "x", 1), HWS_EENDED);
    assert_int_equal (hws_tx_detach (&tx), 0);
    assert_int_equal (tx.end_seq, 1);
    hws_tx_fini (&tx);
}

static void clean_end_is_an_acknowledged_ending (void **state)
{
    (void) state;
    hws_tx_t tx;
    taken_t taken;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "x", 1);
    hws_tx_detach (&tx);
    take (&tx, &taken);

    acknowledge (&tx, 1);
    assert_int_equal (tx.state, HWS_TX_ENDING);
    acknowledge (&tx, 2);

    assert_int_equal (tx.state, HWS_TX_ENDED);
    assert_int_equal (tx.result, 0);
    assert_int_equal (tx.acked_records, 1);
    hws_tx_fini (&tx);
}

static void clean_end_by_word_counts_everything_as_consumed (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "one", 3);
    hws_tx_detach (&tx);

    hws_tx_end (&tx, 0, "none", "");

    assert_int_equal (tx.acked_records, 1);
    assert_int_equal (tx.acked_record_payload, 3);
    assert_string_equal (tx.cause, "");
    hws_tx_fini (&tx);
}

static void first_ending_wins (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);

    hws_tx_end (&tx, HWS_ECANCELLED, "requested", "enough");
    hws_tx_end (&tx, HWS_ETRANSPORT, "heartbeat", "silent");

    assert_int_equal (hws_tx_append (&tx, "x", 1), HWS_ECANCELLED);
    assert_string_equal (tx.cause, "requested");
    assert_string_equal (tx.reason, "enough");
    assert_false (hws_tx_cancel (&tx));
    hws_tx_fini (&tx);
}

static void cancelled_stream_sends_nothing_more (void **state)
{
    (void) state;
    hws_tx_t tx;
    attach (&tx, RECORDS, WINDOW);
    hws_tx_append (&tx, "x", 1);

    assert_true (hws_tx_cancel (&tx));

    assert_false (hws_tx_has_runs (&tx));
    assert_int_equal (hws_tx_append (&tx, "x", 1), HWS_ECANCELLED);
    hws_tx_fini (&tx);
}

/*  ---- Against a naive model ---- */

enum { KEPT = 100000 };

/*  What was appended: the size of the record with its first number, or 0 for an error; its
 *  content follows from the number.  */
typedef struct {
    size_t size[KEPT];
    bool is_first[KEPT]; /* the number begins a record or error */
    uint64_t end, acked, bytes_end;
} model_t;

static model_t s_model;

static void check_runs (const taken_t *taken, uint64_t *next, size_t part_bytes)
{
    static uint8_t expected[3 * BATCH];
    for (uint32_t i = 0; i < taken->count; i++) {
        const hws_run_t *const run = &taken->runs[i];
        assert_int_equal (run->first_seq, *next);
        hws_cursor_t cursor = hws_cursor (run->body);
        for (uint32_t k = 0; k < run->count; k++, ++*next) {
            uint64_t first = *next;
            while (!s_model.is_first[first]) {
                first--;
            }
            const size_t whole = s_model.size[first];
            fill (expected, whole, first);
            if (run->type == HWS_RUN_ERROR) {
                assert_int_equal (run->body.size, whole);
                continue;
            }
            hws_bytes_t record;
            assert_int_equal (hws_run_next_record (&cursor, &record), 1);
            const size_t from = (size_t) (*next - first) * part_bytes;
            const size_t size = whole - from < part_bytes ? whole - from : part_bytes;
            assert_int_equal (record.size, size);
            assert_memory_equal (record.data, expected + from, size);
            assert_int_equal ((run->flags & HWS_RUN_MORE) != 0, from + size < whole);
        }
        assert_true (run->type == HWS_RUN_ERROR || cursor.left == 0);
    }
}

/*  A message that the socket still holds, and what it was when it was sent.  */
typedef struct {
    hws_block_t *block;
    uint8_t *message;
    size_t size;
    uint8_t sent[BATCH_MOST];
} held_t;

enum { HELD_MOST = 4 };

static held_t s_held[HELD_MOST];

static void let_go (held_t *held)
{
    if (held->block) {
        assert_memory_equal (held->message, held->sent, held->size);
        held->block->release (held->block);
        held->block = NULL;
    }
}

/*  Takes what the stream would send next: as it lies, or copied.  */
static void take_next (hws_tx_t *tx, taken_t *taken, size_t room, held_t *held)
{
    if (!hws_tx_can_lend (tx)) {
        take_into (tx, taken, room);
        return;
    }
    let_go (held);
    held->block = hws_tx_lend (tx, STREAM, &held->message, &held->size);
    memcpy (held->sent, held->message, held->size);
    read_runs (taken, held->message, held->size);
}

static void random_streams_arrive_whole_and_in_order (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    static uint8_t data[3 * BATCH];
    for (size_t round = 0; round < test_scaled (20); round++) {
        memset (&s_model, 0, sizeof s_model);
        hws_tx_t tx;
        const bool is_wide = round % 2; /* then some of it is lent */
        const uint64_t window = (2000 + hws_random_below (&random, 30000)) << (is_wide ? 4 : 0);
        const uint64_t records = is_wide ? 2000 : 40;
        const size_t batch = is_wide ? BATCH_MOST : BATCH;
        attach (&tx, records, window);
        hws_tx_set_batch_bytes (&tx, batch);
        uint64_t next = 0;
        static taken_t taken;
        for (int step = 0; step < 20000 && s_model.end + 10 < KEPT; step++) {
            const uint64_t dice = hws_random_below (&random, 100);
            if (dice < (is_wide ? 78 : 50)) {
                const size_t most = dice < 3 ? sizeof data : dice < 40 ? 100 : 900;
                const size_t size = (size_t) hws_random_below (&random, most);
                fill (data, size, s_model.end);
                const bool is_error = dice == 30;
                const uint64_t before = tx.end_seq;
                const int rc = is_error ? hws_tx_append_error (&tx, (char *) data, size)
                                        : hws_tx_append (&tx, data, size);
                assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
                assert_true (rc == 0 || tx.end_seq == before);
                if (rc == 0) {
                    s_model.size[before] = size;
                    s_model.is_first[before] = true;
                    s_model.end = tx.end_seq;
                }
                if (rc != 0 && tx.want_bytes > 0) {
                    hws_tx_grant (&tx,
                                  &(hws_grant_t){.limit_seq = tx.acked_seq + records,
                                                 .limit_bytes = tx.acked_bytes + tx.want_bytes});
                }
            } else if (dice < 80) {
                take_next (&tx, &taken, batch - (size_t) hws_random_below (&random, 10) * 300,
                           &s_held[hws_random_below (&random, HELD_MOST)]);
                check_runs (&taken, &next, tx.part_bytes);
                assert_int_equal (next, tx.next_seq);
            } else if (dice < 95) {
                const uint64_t sent = tx.sent_seq - tx.acked_seq;
                const uint64_t acked = tx.acked_seq + hws_random_below (&random, sent + 1);
                acknowledge (&tx, acked);
                assert_int_equal (tx.acked_seq, acked);
                hws_tx_grant (&tx, &(hws_grant_t){.limit_seq = acked + records,
                                                  .limit_bytes = tx.acked_bytes + window});
                next = tx.next_seq;
            } else {
                const uint64_t kept = tx.sent_seq - tx.acked_seq;
                next = tx.acked_seq + hws_random_below (&random, kept + 1);
                rewind_stream (&tx, 0, next);
                assert_int_equal (tx.next_seq, next);
            }
            assert_true (tx.end_seq - tx.acked_seq <= records);
        }
        hws_tx_fini (&tx);
        for (int i = 0; i < HELD_MOST; i++) {
            let_go (&s_held[i]);
        }
        assert_int_equal (test_block_bytes (), 0);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (probe_says_what_append_would),
        cmocka_unit_test (sender_stops_at_the_window),
        cmocka_unit_test (window_in_bytes_counts_the_record_headers),
        cmocka_unit_test (grants_are_absolute),
        cmocka_unit_test (return_gives_back_all_but_what_is_appended),
        cmocka_unit_test (return_names_the_limit_that_it_lowers),
        cmocka_unit_test (return_takes_the_room_of_a_record_that_is_wanted_no_longer),
        cmocka_unit_test (return_leaves_what_was_reserved),
        cmocka_unit_test (return_is_cancelled_by_the_answer_to_attach),
        cmocka_unit_test (grant_beyond_what_was_sent_acknowledges_nothing),
        cmocka_unit_test (record_larger_than_the_window_is_asked_for_when_nothing_is_before_it),
        cmocka_unit_test (record_over_the_limit_is_too_large),
        cmocka_unit_test (records_leave_as_one_run),
        cmocka_unit_test (errors_keep_their_place_among_records),
        cmocka_unit_test (large_record_travels_in_parts),
        cmocka_unit_test (largest_whole_record_fills_one_batch),
        cmocka_unit_test (ring_wraps),
        cmocka_unit_test (reserved_room_is_sent_with_its_true_size),
        cmocka_unit_test (long_piece_leaves_as_it_lies),
        cmocka_unit_test (short_piece_is_copied),
        cmocka_unit_test (piece_that_is_too_long_for_a_smaller_batch_is_not_lent),
        cmocka_unit_test (lent_bytes_outlive_all_that_the_stream_does),
        cmocka_unit_test (reservation_does_not_hold_up_what_is_before_it),
        cmocka_unit_test (reservation_that_nothing_comes_of_leaves_no_gap),
        cmocka_unit_test (reservation_given_up_after_a_rewind_holds_nothing_up),
        cmocka_unit_test (every_position_is_found),
        cmocka_unit_test (memory_is_bounded_by_the_window_and_two_blocks),
        cmocka_unit_test (rewind_begins_a_run_exactly_there),
        cmocka_unit_test (rewind_outside_of_what_is_kept_is_ignored),
        cmocka_unit_test (nothing_is_sent_between_two_connections),
        cmocka_unit_test (ending_passes_a_full_window),
        cmocka_unit_test (nothing_after_the_ending),
        cmocka_unit_test (clean_end_is_an_acknowledged_ending),
        cmocka_unit_test (clean_end_by_word_counts_everything_as_consumed),
        cmocka_unit_test (first_ending_wins),
        cmocka_unit_test (cancelled_stream_sends_nothing_more),
        cmocka_unit_test (random_streams_arrive_whole_and_in_order),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
