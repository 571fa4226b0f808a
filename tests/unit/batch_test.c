/*  Batches: what is written is read back, and nothing that a peer can send makes the
 *  reader touch a byte outside the message.
 */
#include "base/error.h"
#include "base/limits.h"
#include "proto/batch.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define COUNT(array) (sizeof array / sizeof *array)

/*  A batch under construction.  */
typedef struct {
    uint8_t data[1024];
    size_t size;
} build_t;

static void begin (build_t *build, hws_batch_kind_t kind, uint16_t count)
{
    memset (build, 0, sizeof *build);
    hws_batch_put (build->data, kind, count);
    build->size = HWS_BATCH_HEADER_SIZE;
}

/*  Appends a run; returns the address of its header.  */
static uint8_t *add_run (build_t *build, hws_run_t run)
{
    uint8_t *const header = build->data + build->size;
    hws_run_put (header, &run);
    if (run.body.size > 0) {
        memcpy (header + HWS_RUN_HEADER_SIZE, run.body.data, run.body.size);
    }
    build->size += HWS_RUN_HEADER_SIZE + run.body.size;
    return header;
}

static hws_bytes_t message_of (const build_t *build)
{
    return hws_bytes (build->data, build->size);
}

/*  Three records: "a", "", "bcd".  */
static hws_bytes_t record_area (void)
{
    static uint8_t area[16];
    hws_record_put (area, 1);
    area[4] = 'a';
    hws_record_put (area + 5, 0);
    hws_record_put (area + 9, 3);
    memcpy (area + 13, "bcd", 3);
    return hws_bytes (area, sizeof area);
}

/*  Two runs of different streams: three records and an ending.  */
static void build_two_runs (build_t *build)
{
    begin (build, HWS_BATCH_DATA, 2);
    add_run (build, (hws_run_t){.stream = 7,
                                .first_seq = UINT64_MAX - 9,
                                .count = 3,
                                .type = HWS_RUN_RECORDS,
                                .body = record_area ()});
    uint8_t body[HWS_ENDING_HEADER_SIZE + 4];
    hws_ending_put (body, &(hws_ending_t){.cause = HWS_CAUSE_REQUESTED,
                                          .records = 3,
                                          .bytes = 4,
                                          .text = hws_bytes_of_text ("stop")});
    add_run (build, (hws_run_t){.stream = UINT64_MAX,
                                .first_seq = 3,
                                .type = HWS_RUN_CANCELLED,
                                .body = hws_bytes (body, sizeof body)});
}

typedef union {
    hws_run_t run;
    hws_grant_t grant;
    hws_ack_t ack;
    hws_position_t position;
    hws_window_t window;
} item_t;

static int next_item (hws_batch_t *batch, item_t *item)
{
    switch (batch->kind) {
    case HWS_BATCH_DATA:
        return hws_batch_next_run (batch, &item->run);
    case HWS_BATCH_GRANT:
        return hws_batch_next_grant (batch, &item->grant);
    case HWS_BATCH_ACK:
        return hws_batch_next_ack (batch, &item->ack);
    case HWS_BATCH_POSITION:
        return hws_batch_next_position (batch, &item->position);
    case HWS_BATCH_WINDOW:
        return hws_batch_next_window (batch, &item->window);
    default:
        return 0;
    }
}

static volatile unsigned s_sum; /* keeps the reads below from being optimised away */

static void touch (hws_bytes_t bytes)
{
    for (size_t i = 0; i < bytes.size; i++) {
        s_sum += bytes.data[i];
    }
}

static void read_body (hws_bytes_t body)
{
    hws_cursor_t cursor = hws_cursor (body);
    hws_bytes_t record;
    while (hws_run_next_record (&cursor, &record) > 0) {
        touch (record);
    }
    hws_ending_t ending;
    if (hws_ending_decode (body, &ending) == 0) {
        touch (ending.text);
    }
}

/*  Reads a whole message, of any kind, to its end: every item, record and ending.
 *  Returns the first error, else the number of items. The message is copied to
 *  memory of its exact size, so that the sanitizers see every step beyond it.  */
static int read_all (hws_bytes_t message)
{
    uint8_t *const copy = malloc (message.size + (message.size == 0));
    if (message.size > 0) {
        memcpy (copy, message.data, message.size);
    }
    hws_batch_t batch;
    item_t item;
    int items = 0;
    int rc = hws_batch_open (&batch, hws_bytes (copy, message.size));
    if (rc == 0) {
        while ((rc = next_item (&batch, &item)) > 0) {
            items++;
            if (batch.kind == HWS_BATCH_DATA) {
                read_body (item.run.body);
            }
        }
    }
    free (copy);
    return rc < 0 ? rc : items;
}

static void runs_come_back_as_they_were_put (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);
    hws_batch_t batch;
    hws_run_t run;

    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (batch.kind, HWS_BATCH_DATA);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);

    assert_true (run.stream == 7 && run.first_seq == UINT64_MAX - 9 && run.count == 3);
    assert_int_equal (run.type, HWS_RUN_RECORDS);
    assert_int_equal (run.flags, 0);
    assert_true (hws_bytes_equal (run.body, record_area ()));
    assert_ptr_equal (run.body.data, build.data + HWS_BATCH_HEADER_SIZE + HWS_RUN_HEADER_SIZE);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (run.body, &ending), 0);
    assert_true (run.stream == UINT64_MAX && run.count == 0);
    assert_int_equal (ending.cause, HWS_CAUSE_REQUESTED);
    assert_true (ending.records == 3 && ending.bytes == 4);
    assert_true (hws_bytes_equal (ending.text, hws_bytes_of_text ("stop")));
    assert_int_equal (hws_batch_next_run (&batch, &run), 0);
    assert_int_equal (hws_batch_next_run (&batch, &run), 0);
}

static void zero_length_and_binary_records_come_back (void **state)
{
    (void) state;
    hws_cursor_t cursor = hws_cursor (record_area ());
    hws_bytes_t record;

    assert_int_equal (hws_run_next_record (&cursor, &record), 1);
    assert_true (hws_bytes_equal (record, hws_bytes_of_text ("a")));
    assert_int_equal (hws_run_next_record (&cursor, &record), 1);
    assert_int_equal (record.size, 0);
    assert_int_equal (hws_run_next_record (&cursor, &record), 1);
    assert_true (hws_bytes_equal (record, hws_bytes_of_text ("bcd")));
    assert_int_equal (hws_run_next_record (&cursor, &record), 0);
    assert_int_equal (hws_run_next_record (&cursor, &record), 0);
}

static void item_kinds_come_back_as_they_were_put (void **state)
{
    (void) state;
    build_t build;
    hws_batch_t batch;

    begin (&build, HWS_BATCH_GRANT, 1);
    const hws_grant_t grant = {1, 2, 3, 4, UINT64_MAX, HWS_GRANT_REWIND | 0x80000000};
    hws_grant_put (build.data + build.size, &grant);
    build.size += HWS_GRANT_SIZE;
    hws_grant_t grant_back;
    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_grant (&batch, &grant_back), 1);
    assert_memory_equal (&grant, &grant_back, offsetof (hws_grant_t, flags) + 4);
    assert_int_equal (hws_batch_next_grant (&batch, &grant_back), 0);

    begin (&build, HWS_BATCH_ACK, 1);
    const hws_ack_t ack = {UINT64_MAX, 5, 6, HWS_ACK_ENDED};
    hws_ack_put (build.data + build.size, &ack);
    build.size += HWS_ACK_SIZE;
    hws_ack_t ack_back;
    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_ack (&batch, &ack_back), 1);
    assert_memory_equal (&ack, &ack_back, offsetof (hws_ack_t, flags) + 4);
    assert_int_equal (hws_batch_next_ack (&batch, &ack_back), 0);

    begin (&build, HWS_BATCH_WINDOW, 1);
    const hws_window_t window = {1, 0, UINT64_MAX, 3};
    hws_window_put (build.data + build.size, &window);
    build.size += HWS_WINDOW_SIZE;
    hws_window_t window_back;
    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_window (&batch, &window_back), 1);
    assert_memory_equal (&window, &window_back, sizeof window);
    assert_int_equal (hws_batch_next_window (&batch, &window_back), 0);
}

static void position_comes_back_as_it_was_put (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_POSITION, 1);
    const hws_position_t position = {
        1, 2, 3, 4, 5, UINT64_MAX, HWS_POSITION_ENDED, HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT};
    hws_position_put (build.data + build.size, &position);
    build.size += HWS_POSITION_SIZE;
    hws_batch_t batch;
    hws_position_t back;

    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_position (&batch, &back), 1);

    assert_memory_equal (&position, &back, offsetof (hws_position_t, flags));
    assert_int_equal (back.flags, HWS_POSITION_ENDED);
    assert_int_equal (back.type, HWS_RUN_DROPPED);
    assert_int_equal (back.cause, HWS_CAUSE_HEARTBEAT);
    assert_int_equal (hws_batch_next_position (&batch, &back), 0);
}

static void every_truncation_is_malformed (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);
    assert_int_equal (read_all (message_of (&build)), 2);

    for (size_t size = 0; size < build.size; size++) {
        assert_int_equal (read_all (hws_bytes (build.data, size)), HWS_EMALFORMED);
    }
}

static void truncated_items_are_malformed (void **state)
{
    (void) state;
    static const size_t sizes[] = {[HWS_BATCH_GRANT] = HWS_GRANT_SIZE,
                                   [HWS_BATCH_ACK] = HWS_ACK_SIZE,
                                   [HWS_BATCH_POSITION] = HWS_POSITION_SIZE,
                                   [HWS_BATCH_WINDOW] = HWS_WINDOW_SIZE};
    for (hws_batch_kind_t kind = HWS_BATCH_GRANT; kind <= HWS_BATCH_WINDOW; kind++) {
        build_t build;
        begin (&build, kind, 2);
        const size_t whole = build.size + 2 * sizes[kind];
        assert_int_equal (read_all (hws_bytes (build.data, whole)), 2);
        for (size_t size = 0; size < whole; size++) {
            assert_int_equal (read_all (hws_bytes (build.data, size)), HWS_EMALFORMED);
        }
        assert_int_equal (read_all (hws_bytes (build.data, whole + 1)), HWS_EMALFORMED);
    }
}

static void absurd_lengths_are_malformed (void **state)
{
    (void) state;
    static const uint32_t lengths[] = {17,        0x10, 0x7fffffff, 0x80000000, UINT32_MAX - 31,
                                       UINT32_MAX};
    for (size_t i = 0; i < COUNT (lengths); i++) {
        build_t build;
        begin (&build, HWS_BATCH_DATA, 1);
        uint8_t *const header = add_run (&build, (hws_run_t){.stream = 1, .count = 1});

        hws_put_u32 (header + 20, lengths[i]);

        assert_int_equal (read_all (message_of (&build)), HWS_EMALFORMED);
    }
}

static void absurd_record_lengths_are_malformed (void **state)
{
    (void) state;
    static const uint32_t lengths[] = {2, 255, HWS_RECORD_SIZE_MAX};
    for (size_t i = 0; i < COUNT (lengths); i++) {
        uint8_t area[5] = {0};
        hws_put_u32 (area, lengths[i]);
        hws_cursor_t cursor = hws_cursor (hws_bytes (area, sizeof area));
        hws_bytes_t record;

        assert_int_equal (hws_run_next_record (&cursor, &record), HWS_EMALFORMED);
        assert_int_equal (hws_run_next_record (&cursor, &record), HWS_EMALFORMED);
    }
}

static void record_flags_of_the_lower_half_must_be_understood (void **state)
{
    (void) state;
    for (unsigned bit = 28; bit < 32; bit++) {
        uint8_t area[4];
        hws_put_u32 (area, UINT32_C (1) << bit);
        hws_cursor_t cursor = hws_cursor (hws_bytes (area, sizeof area));
        hws_bytes_t record;

        const int rc = hws_run_next_record (&cursor, &record);

        assert_int_equal (rc, bit < 30 ? HWS_EMALFORMED : 1);
    }
}

static void runs_before_a_malformed_one_are_read (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);
    hws_batch_t batch;
    hws_run_t run;

    assert_int_equal (hws_batch_open (&batch, hws_bytes (build.data, build.size - 1)), 0);

    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    assert_true (hws_bytes_equal (run.body, record_area ()));
    assert_int_equal (hws_batch_next_run (&batch, &run), HWS_EMALFORMED);
    assert_int_equal (hws_batch_next_run (&batch, &run), HWS_EMALFORMED);
}

static void bytes_after_the_last_item_are_malformed (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);
    build.size++;

    assert_int_equal (read_all (message_of (&build)), HWS_EMALFORMED);
}

static void more_items_than_the_count_are_malformed (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);

    hws_put_u16 (build.data + 2, 1);

    assert_int_equal (read_all (message_of (&build)), HWS_EMALFORMED);
}

static void empty_batch_has_no_items (void **state)
{
    (void) state;
    for (hws_batch_kind_t kind = HWS_BATCH_DATA; kind <= HWS_BATCH_WINDOW; kind++) {
        build_t build;
        begin (&build, kind, 0);

        assert_int_equal (read_all (message_of (&build)), 0);
    }
}

static void message_without_the_mark_is_malformed (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_DATA, 0);
    hws_batch_t batch;

    for (unsigned mark = 0; mark < 256; mark++) {
        build.data[0] = (uint8_t) mark;
        assert_int_equal (hws_batch_open (&batch, message_of (&build)),
                          mark == HWS_BATCH_MARK ? 0 : HWS_EMALFORMED);
    }
}

static void kinds_of_the_lower_half_must_be_understood (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_DATA, 1);
    for (unsigned kind = 0; kind < 256; kind++) {
        hws_batch_t batch;
        build.data[1] = (uint8_t) kind;

        const int rc = hws_batch_open (&batch, message_of (&build));

        const bool is_known = kind >= HWS_BATCH_DATA && kind <= HWS_BATCH_WINDOW;
        assert_int_equal (rc, is_known || kind >= 128 ? 0 : HWS_EPROTOCOL);
    }
}

static void run_types_of_the_lower_half_must_be_understood (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_DATA, 1);
    uint8_t *const header = add_run (&build, (hws_run_t){.stream = 1});
    for (unsigned type = 0; type < 256; type++) {
        header[24] = (uint8_t) type;

        const int rc = read_all (message_of (&build));

        assert_int_equal (rc, type <= HWS_RUN_VOID || type >= 128 ? 1 : HWS_EPROTOCOL);
    }
}

static void run_flags_of_the_lower_half_must_be_understood (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_DATA, 1);
    uint8_t *const header = add_run (&build, (hws_run_t){.stream = 1});
    for (unsigned bit = 0; bit < 8; bit++) {
        header[25] = (uint8_t) (1u << bit);

        const int rc = read_all (message_of (&build));

        assert_int_equal (rc, bit == 0 || bit >= 4 ? 1 : HWS_EPROTOCOL);
    }
}

static void item_flags_of_the_lower_half_must_be_understood (void **state)
{
    (void) state;
    static const struct {
        hws_batch_kind_t kind;
        size_t size;
        size_t flags_at;
        uint32_t known;
    } rows[] = {{HWS_BATCH_GRANT, HWS_GRANT_SIZE, 40, 0x3},
                {HWS_BATCH_ACK, HWS_ACK_SIZE, 24, 0x1},
                {HWS_BATCH_POSITION, HWS_POSITION_SIZE, 48, 0x7}};
    for (size_t i = 0; i < COUNT (rows) * 32; i++) {
        const uint32_t flag = UINT32_C (1) << i % 32;
        build_t build;
        begin (&build, rows[i / 32].kind, 1);
        hws_put_u32 (build.data + build.size + rows[i / 32].flags_at, flag);
        build.size += rows[i / 32].size;

        const int rc = read_all (message_of (&build));

        const bool is_taken = flag & rows[i / 32].known || flag > 0xffff;
        assert_int_equal (rc, is_taken ? 1 : HWS_EPROTOCOL);
    }
}

static void void_run_is_skipped_whatever_else_it_says (void **state)
{
    (void) state;
    build_t build;
    begin (&build, HWS_BATCH_DATA, 2);
    uint8_t *const header =
        add_run (&build, (hws_run_t){.stream = 5, .count = 3, .body = record_area ()});
    add_run (&build, (hws_run_t){.stream = 6, .type = HWS_RUN_ERROR});
    header[25] = 0x0f;
    hws_batch_t batch;
    hws_run_t run;

    hws_run_set_type (header, HWS_RUN_VOID);

    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    assert_int_equal (run.type, HWS_RUN_VOID);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    assert_true (run.stream == 6);
    assert_int_equal (hws_batch_next_run (&batch, &run), 0);
}

static void stream_is_rewritten_in_place (void **state)
{
    (void) state;
    build_t build;
    build_two_runs (&build);
    build_t before = build;
    hws_batch_t batch;
    hws_run_t run;

    hws_run_set_stream (build.data + HWS_BATCH_HEADER_SIZE, 0x1122334455667788);

    assert_int_equal (hws_batch_open (&batch, message_of (&build)), 0);
    assert_int_equal (hws_batch_next_run (&batch, &run), 1);
    assert_true (run.stream == 0x1122334455667788);
    memcpy (before.data + HWS_BATCH_HEADER_SIZE, build.data + HWS_BATCH_HEADER_SIZE, 8);
    assert_memory_equal (build.data, before.data, build.size);
}

static void ending_is_refused_short_or_with_too_long_a_text (void **state)
{
    (void) state;
    static uint8_t body[HWS_ENDING_HEADER_SIZE + HWS_TEXT_SIZE_MAX + 1];
    hws_ending_t ending;

    for (size_t size = 0; size < HWS_ENDING_HEADER_SIZE; size++) {
        assert_int_equal (hws_ending_decode (hws_bytes (body, size), &ending), HWS_EMALFORMED);
    }

    assert_int_equal (hws_ending_decode (hws_bytes (body, HWS_ENDING_HEADER_SIZE), &ending), 0);
    assert_int_equal (ending.text.size, 0);
    assert_int_equal (hws_ending_decode (hws_bytes (body, sizeof body - 1), &ending), 0);
    assert_int_equal (ending.text.size, HWS_TEXT_SIZE_MAX);
    assert_int_equal (hws_ending_decode (hws_bytes (body, sizeof body), &ending), HWS_EMALFORMED);
}

static void words_of_endings_and_causes_lead_back (void **state)
{
    (void) state;
    for (uint8_t type = HWS_RUN_DETACHED; type <= HWS_RUN_CANCELLED; type++) {
        assert_int_equal (hws_ending_from_word (hws_ending_word (type)), type);
    }
    for (uint16_t cause = HWS_CAUSE_NONE; cause <= HWS_CAUSE_FINALIZED; cause++) {
        assert_int_equal (hws_cause_from_word (hws_cause_word (cause)), cause);
    }

    assert_string_equal (hws_ending_word (HWS_RUN_RECORDS), "unknown");
    assert_string_equal (hws_ending_word (255), "unknown");
    assert_string_equal (hws_cause_word (13), "unknown");
    assert_string_equal (hws_cause_word (UINT16_MAX), "unknown");
    assert_int_equal (hws_ending_from_word ("gone"), 0);
    assert_int_equal (hws_cause_from_word ("invented_later"), HWS_CAUSE_UNKNOWN);
}

static void random_damage_is_read_to_the_end (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    size_t taken = 0;
    for (size_t i = 0; i < test_scaled (200000); i++) {
        build_t build;
        build_two_runs (&build);
        for (size_t damage = hws_random_below (&random, 4); damage > 0; damage--) {
            build.data[hws_random_below (&random, build.size)] =
                (uint8_t) hws_random_next (&random);
        }
        const size_t size =
            hws_random_below (&random, 4) ? build.size : hws_random_below (&random, build.size);

        taken += read_all (hws_bytes (build.data, size)) >= 0;
    }

    assert_true (taken > 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (runs_come_back_as_they_were_put),
        cmocka_unit_test (zero_length_and_binary_records_come_back),
        cmocka_unit_test (item_kinds_come_back_as_they_were_put),
        cmocka_unit_test (position_comes_back_as_it_was_put),
        cmocka_unit_test (every_truncation_is_malformed),
        cmocka_unit_test (truncated_items_are_malformed),
        cmocka_unit_test (absurd_lengths_are_malformed),
        cmocka_unit_test (absurd_record_lengths_are_malformed),
        cmocka_unit_test (record_flags_of_the_lower_half_must_be_understood),
        cmocka_unit_test (runs_before_a_malformed_one_are_read),
        cmocka_unit_test (bytes_after_the_last_item_are_malformed),
        cmocka_unit_test (more_items_than_the_count_are_malformed),
        cmocka_unit_test (empty_batch_has_no_items),
        cmocka_unit_test (message_without_the_mark_is_malformed),
        cmocka_unit_test (kinds_of_the_lower_half_must_be_understood),
        cmocka_unit_test (run_types_of_the_lower_half_must_be_understood),
        cmocka_unit_test (run_flags_of_the_lower_half_must_be_understood),
        cmocka_unit_test (item_flags_of_the_lower_half_must_be_understood),
        cmocka_unit_test (void_run_is_skipped_whatever_else_it_says),
        cmocka_unit_test (stream_is_rewritten_in_place),
        cmocka_unit_test (ending_is_refused_short_or_with_too_long_a_text),
        cmocka_unit_test (words_of_endings_and_causes_lead_back),
        cmocka_unit_test (random_damage_is_read_to_the_end),
    };
    return cmocka_run_group_tests_name ("batch", tests, NULL, NULL);
}
