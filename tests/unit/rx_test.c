/*  One anchor's merged stream: numbers, parts, endings, acknowledgements, cancel.  */
#include "client/rx_reader.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

/*  An anchor with its reader, and the payload of every message, which counts its holders.  */
typedef struct {
    hws_rx_streams_t streams;
    hws_rx_t rx;
    hws_rx_reader_t reader;
    struct {
        hws_payload_t base;
        int holders;
    } payload;
} anchor_t;

enum { RECORD_BYTES = 1000 }; /* the anchor's limit */

static anchor_t s_anchor;

static void hold (hws_payload_t *payload)
{
    (void) payload;
    s_anchor.payload.holders++;
}

static void release (hws_payload_t *payload)
{
    (void) payload;
    s_anchor.payload.holders--;
}

static int open_anchor (void **state)
{
    (void) state;
    memset (&s_anchor, 0, sizeof s_anchor);
    s_anchor.payload.base = (hws_payload_t){.hold = hold, .release = release};
    const hws_hash_key_t key = {{1, 2}};
    if (hws_rx_streams_init (&s_anchor.streams, key)) {
        return -1;
    }
    hws_rx_init (&s_anchor.rx, &s_anchor.streams);
    hws_rx_opened (&s_anchor.rx, (hws_handle_t){.hi = 1, .lo = 1}, RECORD_BYTES);
    hws_rx_reader_init (&s_anchor.reader, &s_anchor.rx);
    return 0;
}

static int close_anchor (void **state)
{
    (void) state;
    hws_rx_reader_fini (&s_anchor.reader);
    hws_rx_fini (&s_anchor.rx);
    hws_rx_streams_fini (&s_anchor.streams);
    return s_anchor.payload.holders == 0 ? 0 : -1;
}

/*  ---- What the broker sends ---- */

static void give (const hws_run_t *run)
{
    hws_rx_stream_t *const stream = hws_rx_find (&s_anchor.streams, run->stream);
    if (stream) {
        assert_int_equal (hws_rx_run (&s_anchor.rx, stream, run, &s_anchor.payload.base, 0), 0);
        hws_rx_flush (&s_anchor.rx);
    }
}

static void give_attached (uint64_t id, uint64_t sender_id, uint64_t next_seq)
{
    const hws_run_t run = {.stream = id, .first_seq = next_seq, .type = HWS_RUN_ATTACHED};
    hws_attached_t attached = {.sender_id = sender_id};
    snprintf (attached.label, sizeof attached.label, "s%u", (unsigned) sender_id);
    assert_int_equal (hws_rx_attached (&s_anchor.rx, &run, &attached, &s_anchor.payload.base, 0),
                      0);
    hws_rx_flush (&s_anchor.rx);
}

/*  Bodies have to live until they are read: each test uses its own static room.  */
static size_t put_record (uint8_t *at, const char *text)
{
    const size_t size = strlen (text);
    hws_record_put (at, (uint32_t) size);
    memcpy (at + HWS_RECORD_HEADER_SIZE, text, size);
    return HWS_RECORD_HEADER_SIZE + size;
}

enum { BODIES = 4096, BODY = 512 };
static uint8_t s_bodies[BODIES][BODY];
static size_t s_body;

static uint8_t *new_body (void)
{
    return s_bodies[s_body++ % BODIES];
}

/*  A run of records of one letter each, from the number on: the letter is its number.  */
static void give_records (uint64_t id, uint64_t first_seq, uint32_t count)
{
    uint8_t *const body = new_body ();
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char text[2] = {(char) ('a' + (first_seq + i) % 26), '\0'};
        size += put_record (body + size, text);
    }
    give (&(hws_run_t){
        .stream = id, .first_seq = first_seq, .count = count, .body = hws_bytes (body, size)});
}

static void give_part (uint64_t id, uint64_t seq, const char *text, bool is_more)
{
    uint8_t *const body = new_body ();
    const size_t size = put_record (body, text);
    give (&(hws_run_t){.stream = id,
                       .first_seq = seq,
                       .count = 1,
                       .flags = is_more ? HWS_RUN_MORE : 0,
                       .body = hws_bytes (body, size)});
}

static void give_ending (uint64_t id, uint64_t seq, uint8_t type, uint32_t count, uint16_t cause)
{
    uint8_t *const body = new_body ();
    const hws_bytes_t text = hws_bytes_of_text ("why");
    hws_ending_put (body, &(hws_ending_t){.cause = cause, .text = text});
    give (&(hws_run_t){.stream = id,
                       .first_seq = seq,
                       .count = count,
                       .type = type,
                       .body = hws_bytes (body, HWS_ENDING_HEADER_SIZE + text.size)});
}

/*  ---- What the application sees ---- */

/*  As a receive does it: first where it is cheap.  */
static bool next_of_what_was_taken (hws_event_t *event)
{
    return hws_rx_reader_next_in_run (&s_anchor.reader, event) ||
           hws_rx_reader_next (&s_anchor.reader, event);
}

/*  The next event, or false when it would have to wait.  */
static bool next (hws_event_t *event)
{
    while (!next_of_what_was_taken (event)) {
        hws_rx_reader_publish (&s_anchor.reader);
        if (!hws_rx_has_events (&s_anchor.rx)) {
            return false;
        }
        hws_rx_reader_take (&s_anchor.reader);
    }
    return true;
}

static void expect (hws_event_kind_t kind, uint64_t sender_id)
{
    hws_event_t event;
    assert_true (next (&event));
    assert_int_equal (event.kind, kind);
    assert_int_equal (event.sender_id, sender_id);
}

static void expect_record (uint64_t sender_id, uint64_t seq, const char *text)
{
    hws_event_t event;
    assert_true (next (&event));
    assert_int_equal (event.kind, HWS_EVENT_RECORD);
    assert_int_equal (event.sender_id, sender_id);
    assert_int_equal (event.seq, seq);
    assert_int_equal (event.size, strlen (text));
    assert_memory_equal (event.data, text, event.size);
}

static void expect_nothing (void)
{
    hws_event_t event;
    assert_false (next (&event));
}

static hws_ack_t expect_ack (void)
{
    hws_ack_t ack;
    assert_true (hws_rx_next_ack (&s_anchor.rx, &ack));
    return ack;
}

static void expect_no_ack (void)
{
    hws_ack_t ack;
    assert_false (hws_rx_next_ack (&s_anchor.rx, &ack));
}

/*  ---- Numbers ---- */

static void records_come_in_order_under_their_senders_id (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_attached (71, 2, 0);
    give_records (70, 0, 2);
    give_records (71, 0, 1);

    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_ATTACHED, 2);
    expect_record (1, 0, "a");
    expect_record (1, 1, "b");
    expect_record (2, 0, "a");
    expect_nothing ();
}

static void what_was_seen_is_skipped (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 3);
    give_records (70, 0, 3);
    give_records (70, 1, 4);

    expect (HWS_EVENT_ATTACHED, 1);
    for (uint64_t seq = 0; seq < 5; seq++) {
        expect_record (1, seq, (char[2]){(char) ('a' + seq), '\0'});
    }
    expect_nothing ();
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 5);
    assert_int_equal (ack.acked_bytes, 25);
}

static void give_unknown (uint64_t id, uint8_t type, uint64_t first_seq, uint32_t count)
{
    give (&(hws_run_t){.stream = id,
                       .first_seq = first_seq,
                       .count = count,
                       .type = type,
                       .body = hws_bytes ("0123456789", 10)});
}

static void run_of_a_later_type_is_passed_over_and_counts (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 1);
    give_unknown (70, 128, 1, 3);
    give_unknown (70, 255, 4, 1);
    give_records (70, 5, 1);

    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");
    expect_record (1, 5, "f");
    expect_nothing ();
    assert_false (s_anchor.rx.has_gap);
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 6);
    assert_int_equal (ack.acked_bytes, 5 + 10 + 10 + 5);
}

static void run_of_a_later_type_alone_is_acknowledged (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_unknown (70, 200, 0, 2);

    expect (HWS_EVENT_ATTACHED, 1);
    expect_nothing ();

    assert_int_equal (expect_ack ().acked_seq, 2);
}

static void run_ahead_is_dropped_and_noticed (void **state)
{
    (void) state;
    give_attached (70, 1, 0);

    give_records (70, 2, 2);

    assert_true (s_anchor.rx.has_gap);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_nothing ();
}

static void second_attached_is_no_event_and_is_acknowledged (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 1);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");
    expect_nothing ();
    expect_ack ();

    give_attached (70, 1, 1);

    expect_nothing ();
    assert_int_equal (expect_ack ().acked_seq, 1);
}

static void payload_is_held_until_the_reader_has_passed (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 1);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");

    assert_int_equal (s_anchor.payload.holders, 1);
    expect_nothing ();

    assert_int_equal (s_anchor.payload.holders, 0);
}

static void soft_error_keeps_the_sender (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 1);
    give (&(hws_run_t){.stream = 70,
                       .first_seq = 1,
                       .count = 1,
                       .type = HWS_RUN_ERROR,
                       .body = hws_bytes_of_text ("oops")});
    give_records (70, 2, 1);

    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");
    hws_event_t event;
    assert_true (next (&event));
    assert_int_equal (event.kind, HWS_EVENT_ERROR);
    assert_int_equal (event.seq, 1);
    assert_memory_equal (event.data, "oops", event.size);
    expect_record (1, 2, "c");
    expect_nothing ();
    assert_int_equal (expect_ack ().acked_bytes, 5 + 4 + 5);
}

/*  ---- Parts ---- */

static void parts_are_joined_and_acknowledged_whole (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    expect (HWS_EVENT_ATTACHED, 1);
    give_part (70, 0, "one ", true);
    give_part (70, 1, "two ", true);
    expect_nothing ();
    expect_no_ack ();

    give_part (70, 2, "three", false);
    give_records (70, 3, 1);

    expect_record (1, 0, "one two three");
    expect_record (1, 3, "d");
    expect_nothing ();
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 4);
    assert_int_equal (ack.acked_bytes, 3 * 4 + 13 + 5);
}

static void half_a_record_is_never_delivered (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    expect (HWS_EVENT_ATTACHED, 1);
    give_part (70, 0, "half", true);

    give_ending (70, 1, HWS_RUN_DROPPED, 0, HWS_CAUSE_HEARTBEAT);

    hws_event_t event;
    assert_true (next (&event));
    assert_int_equal (event.kind, HWS_EVENT_DROPPED);
    assert_int_equal (event.records, 0);
    expect_nothing ();
    assert_int_equal (expect_ack ().acked_seq, 0);
}

static void parts_beyond_the_record_limit_cancel_the_sender (void **state)
{
    (void) state;
    char text[401];
    memset (text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    give_attached (70, 1, 0);
    for (uint64_t seq = 0; seq < RECORD_BYTES / 400 + 1; seq++) {
        give_part (70, seq, text, true);
    }
    give_part (70, RECORD_BYTES / 400 + 1, "end", false);

    expect (HWS_EVENT_ATTACHED, 1);
    expect_nothing ();
    const hws_rx_stream_t *const refused = hws_rx_next_cancel (&s_anchor.rx);
    assert_non_null (refused);
    assert_int_equal (refused->sender_id, 1);
    assert_null (refused->join);
}

static void rewound_parts_are_not_doubled (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    expect (HWS_EVENT_ATTACHED, 1);
    give_part (70, 0, "one ", true);

    give_part (70, 0, "one ", true);
    give_part (70, 1, "two", false);

    expect_record (1, 0, "one two");
    expect_nothing ();
}

static void nothing_may_stand_between_the_parts_of_a_record (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_part (70, 0, "one ", true);
    give (&(hws_run_t){.stream = 70,
                       .first_seq = 1,
                       .count = 1,
                       .type = HWS_RUN_ERROR,
                       .body = hws_bytes ("oops", 4)});
    give_part (70, 2, "two", false);

    expect (HWS_EVENT_ATTACHED, 1);
    expect_nothing ();

    const hws_rx_stream_t *const stream = hws_rx_next_cancel (&s_anchor.rx);
    assert_non_null (stream);
    assert_int_equal (stream->sender_id, 1);
}

/*  ---- Endings ---- */

static void ending_has_its_cause_reason_and_counts (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 3);
    give_ending (70, 3, HWS_RUN_CANCELLED, 0, HWS_CAUSE_REQUESTED);
    expect (HWS_EVENT_ATTACHED, 1);
    for (uint64_t seq = 0; seq < 3; seq++) {
        expect (HWS_EVENT_RECORD, 1);
    }

    hws_event_t event;
    assert_true (next (&event));

    assert_int_equal (event.kind, HWS_EVENT_CANCELLED);
    assert_string_equal (event.cause, "requested");
    assert_string_equal (event.reason, "why");
    assert_string_equal (event.label, "s1");
    assert_int_equal (event.records, 3);
    assert_int_equal (event.bytes, 3);
}

static void clean_ending_has_no_cause (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);

    hws_event_t event;
    assert_true (next (&event));

    assert_int_equal (event.kind, HWS_EVENT_DETACHED);
    assert_null (event.cause);
    assert_non_null (event.reason);
}

static void endings_come_exactly_once (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    give_ending (70, 1, HWS_RUN_DROPPED, 0, HWS_CAUSE_HEARTBEAT);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);

    expect (HWS_EVENT_DETACHED, 1);

    expect_nothing ();
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 1);
    assert_int_equal (ack.flags, HWS_ACK_ENDED);
}

static void nothing_after_the_ending (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DROPPED, 0, HWS_CAUSE_TRANSPORT);
    give_records (70, 0, 2);
    expect (HWS_EVENT_ATTACHED, 1);

    expect (HWS_EVENT_DROPPED, 1);

    expect_nothing ();
}

static void broker_made_ending_moves_no_position (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 2);
    give_ending (70, 9, HWS_RUN_CANCELLED, 0, HWS_CAUSE_REQUESTED);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_RECORD, 1);
    expect (HWS_EVENT_RECORD, 1);
    expect (HWS_EVENT_CANCELLED, 1);
    expect_nothing ();

    const hws_ack_t ack = expect_ack ();

    assert_int_equal (ack.acked_seq, 2);
    assert_int_equal (ack.acked_bytes, 10);
    assert_int_equal (ack.flags, HWS_ACK_ENDED);
}

static void ending_is_consumed_when_it_is_shown (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 1);
    give_ending (70, 1, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_RECORD, 1);
    assert_false (hws_rx_reader_is_due (&s_anchor.reader, false));

    expect (HWS_EVENT_DETACHED, 1);

    assert_true (hws_rx_reader_is_due (&s_anchor.reader, false));
    assert_true (hws_rx_reader_publish (&s_anchor.reader));
    assert_false (hws_rx_reader_is_due (&s_anchor.reader, false));
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 2);
    assert_int_equal (ack.flags, HWS_ACK_ENDED);
    expect_nothing ();
    expect_no_ack ();
}

static void ending_is_acknowledged_only_when_the_program_says_so (void **state)
{
    (void) state;
    s_anchor.reader.is_manual = true;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_DETACHED, 1);
    hws_rx_reader_publish (&s_anchor.reader);
    expect_no_ack ();

    hws_rx_reader_settle (&s_anchor.reader);
    hws_rx_reader_publish (&s_anchor.reader);

    assert_int_equal (expect_ack ().flags, HWS_ACK_ENDED);
}

static void run_is_acknowledged_up_to_the_record_in_hand (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 5);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");
    expect_record (1, 1, "b");
    expect_record (1, 2, "c");

    hws_rx_reader_publish (&s_anchor.reader);
    const hws_ack_t before = expect_ack ();
    hws_rx_reader_settle (&s_anchor.reader);
    hws_rx_reader_publish (&s_anchor.reader);
    const hws_ack_t after = expect_ack ();

    assert_int_equal (before.acked_seq, 2);
    assert_int_equal (before.acked_bytes, 10);
    assert_int_equal (after.acked_seq, 3);
    assert_int_equal (after.acked_bytes, 15);
    expect_record (1, 3, "d");
}

static void last_record_of_a_run_is_looked_at_closely (void **state)
{
    (void) state;
    hws_event_t event;
    give_attached (70, 1, 0);
    give_records (70, 0, 3);
    expect (HWS_EVENT_ATTACHED, 1);

    assert_false (hws_rx_reader_next_in_run (&s_anchor.reader, &event)); /* it has not begun */
    expect_record (1, 0, "a");
    assert_true (hws_rx_reader_next_in_run (&s_anchor.reader, &event));
    assert_true (hws_rx_reader_has_more (&s_anchor.reader));
    assert_false (hws_rx_reader_next_in_run (&s_anchor.reader, &event));
    expect_record (1, 2, "c");
    assert_false (hws_rx_reader_has_more (&s_anchor.reader));
}

/*  Consumes so many records more without publishing.  */
static void consume (uint64_t first_seq, uint32_t count)
{
    hws_event_t event;
    give_records (70, first_seq, count);
    hws_rx_reader_take (&s_anchor.reader);
    while (next_of_what_was_taken (&event)) {
    }
}

static void few_records_are_due_at_once_and_many_with_more (void **state)
{
    (void) state;
    const hws_rx_reader_t *const reader = &s_anchor.reader;
    hws_event_t event;
    give_attached (70, 1, 0);
    expect (HWS_EVENT_ATTACHED, 1);

    assert_false (next_of_what_was_taken (&event));

    consume (0, HWS_RX_RECORDS_FEW - 1);
    assert_true (hws_rx_reader_is_due (reader, true));
    assert_false (hws_rx_reader_is_due (reader, false));
    consume (HWS_RX_RECORDS_FEW - 1, 1);
    assert_false (hws_rx_reader_is_due (reader, true));

    for (uint64_t seq = HWS_RX_RECORDS_FEW; seq * 5 < HWS_RX_PUBLISH_BYTES; seq += 1000) {
        assert_false (hws_rx_reader_is_due (reader, false));
        consume (seq, 1000);
    }
    assert_true (hws_rx_reader_is_due (reader, false));
    assert_true (hws_rx_reader_publish (&s_anchor.reader));
    assert_false (hws_rx_reader_is_due (reader, false));
}

static void ended_is_remembered (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_DETACHED, 1);
    expect_nothing ();
    expect_ack ();

    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);

    expect_nothing ();
    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 1);
    assert_int_equal (ack.flags, HWS_ACK_ENDED);
}

static void ended_is_remembered_when_its_position_is_forgotten (void **state)
{
    (void) state;
    for (uint64_t id = 1; id <= HWS_RX_REMEMBERED_MAX + 10; id++) {
        give_attached (id, id, 0);
        give_ending (id, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
        expect (HWS_EVENT_ATTACHED, id);
        expect (HWS_EVENT_DETACHED, id);
        expect_nothing ();
        expect_ack ();
    }
    assert_int_equal (s_anchor.rx.past.count, HWS_RX_REMEMBERED_MAX);
    assert_null (hws_rx_find (&s_anchor.streams, 1));

    give_attached (1, 1, 0);

    expect_nothing ();
    assert_int_equal (expect_ack ().flags, HWS_ACK_ENDED);
}

/*  ---- What is malformed ---- */

static void malformed_run_cancels_its_sender_alone (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_attached (71, 2, 0);
    uint8_t body[BODY];
    size_t size = put_record (body, "ok");
    hws_record_put (body + size, 1000);
    size += HWS_RECORD_HEADER_SIZE;
    give (&(hws_run_t){.stream = 70, .count = 2, .body = hws_bytes (body, size)});
    give_records (70, 2, 1);
    give_records (71, 0, 1);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_ATTACHED, 2);

    expect_record (1, 0, "ok");
    expect_record (2, 0, "a");
    expect_nothing ();

    const hws_rx_stream_t *const cancelled = hws_rx_next_cancel (&s_anchor.rx);
    assert_non_null (cancelled);
    assert_int_equal (cancelled->sender_id, 1);
    assert_memory_equal (cancelled->cancel_reason, "protocol: ", 10);
    assert_null (hws_rx_next_cancel (&s_anchor.rx));
    give_ending (70, 3, HWS_RUN_CANCELLED, 0, HWS_CAUSE_REQUESTED);
    expect (HWS_EVENT_CANCELLED, 1);
}

static void clean_ending_behind_a_malformed_run_is_replaced (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    uint8_t body[BODY];
    const size_t size = put_record (body, "ok");
    give (&(hws_run_t){.stream = 70, .count = 2, .body = hws_bytes (body, size)});
    give_ending (70, 2, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "ok");
    expect_nothing ();

    assert_non_null (hws_rx_next_cancel (&s_anchor.rx));
    give_ending (70, 3, HWS_RUN_CANCELLED, 0, HWS_CAUSE_REQUESTED);

    expect (HWS_EVENT_CANCELLED, 1);
    expect_nothing ();
}

/*  ---- Cancel and close ---- */

static void cancelled_anchor_shows_only_broker_made_endings (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_attached (71, 2, 0);
    give_records (70, 0, 3);
    give_ending (71, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_ATTACHED, 2);
    expect_record (1, 0, "a");

    assert_true (hws_rx_cancel (&s_anchor.rx));
    hws_rx_reader_discard (&s_anchor.reader);
    give_records (70, 3, 1);
    give_ending (70, 4, HWS_RUN_CANCELLED, 0, HWS_CAUSE_RECEIVER_CLOSED);
    give_ending (71, 1, HWS_RUN_CANCELLED, 0, HWS_CAUSE_RECEIVER_CLOSED);
    hws_rx_closed (&s_anchor.rx, HWS_CAUSE_RECEIVER_CLOSED, "done");

    expect (HWS_EVENT_CANCELLED, 1);
    expect (HWS_EVENT_CANCELLED, 2);
    expect (HWS_EVENT_CLOSED, 0);
    expect_nothing ();
    assert_false (hws_rx_cancel (&s_anchor.rx));
}

static void cancelled_anchor_shows_who_came_before_their_endings (void **state)
{
    (void) state;
    give_attached (70, 1, 0);

    assert_true (hws_rx_cancel (&s_anchor.rx));
    hws_rx_reader_discard (&s_anchor.reader);
    give_attached (71, 2, 0);
    give_ending (70, 0, HWS_RUN_CANCELLED, 0, HWS_CAUSE_RECEIVER_CLOSED);
    give_ending (71, 0, HWS_RUN_CANCELLED, 0, HWS_CAUSE_RECEIVER_CLOSED);

    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_ATTACHED, 2);
    expect (HWS_EVENT_CANCELLED, 1);
    expect (HWS_EVENT_CANCELLED, 2);
    expect_nothing ();
}

static void clean_ending_that_was_shown_is_not_replaced (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_ending (70, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_DETACHED, 1);

    hws_rx_cancel (&s_anchor.rx);
    hws_rx_reader_discard (&s_anchor.reader);
    give_ending (70, 1, HWS_RUN_CANCELLED, 0, HWS_CAUSE_RECEIVER_CLOSED);

    expect_nothing ();
    assert_int_equal (expect_ack ().flags, HWS_ACK_ENDED);
}

/*  The acknowledgement waits for a connection while the anchor ends without one.  */
static void what_a_cut_anchor_shows_is_not_acknowledged (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_records (70, 0, 3);
    expect (HWS_EVENT_ATTACHED, 1);
    expect_record (1, 0, "a");
    expect_record (1, 1, "b");
    assert_true (hws_rx_reader_publish (&s_anchor.reader));

    hws_rx_cut (&s_anchor.rx);
    hws_rx_closed (&s_anchor.rx, HWS_CAUSE_TRANSPORT, "given up");
    expect_record (1, 2, "c");
    expect (HWS_EVENT_DROPPED, 1);
    expect (HWS_EVENT_CLOSED, 0);
    expect_nothing ();

    const hws_ack_t ack = expect_ack ();
    assert_int_equal (ack.acked_seq, 1);
    assert_int_equal (ack.flags, 0);
}

static void closed_anchor_ends_every_stream_first (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    give_attached (71, 2, 0);
    give_attached (72, 3, 0);
    give_ending (71, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
    expect (HWS_EVENT_ATTACHED, 1);
    expect (HWS_EVENT_ATTACHED, 2);
    expect (HWS_EVENT_ATTACHED, 3);
    expect (HWS_EVENT_DETACHED, 2);
    give_ending (72, 0, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);

    hws_rx_closed (&s_anchor.rx, HWS_CAUSE_LOST, "the broker was restarted");
    hws_rx_closed (&s_anchor.rx, HWS_CAUSE_LOST, "again");

    expect (HWS_EVENT_DROPPED, 1);
    expect (HWS_EVENT_DROPPED, 3); /* its clean ending was not seen, and is void */
    hws_event_t event;
    assert_true (next (&event));
    assert_int_equal (event.kind, HWS_EVENT_CLOSED);
    assert_string_equal (event.cause, "lost");
    assert_string_equal (event.reason, "the broker was restarted");
    expect_nothing ();
}

static void cancel_of_a_sender_is_said_again_on_a_new_connection (void **state)
{
    (void) state;
    give_attached (70, 1, 0);
    assert_int_equal (hws_rx_cancel_sender (&s_anchor.rx, 2, "no"), HWS_ENOT_FOUND);
    assert_int_equal (hws_rx_cancel_sender (&s_anchor.rx, 1, "no"), 0);
    assert_non_null (hws_rx_next_cancel (&s_anchor.rx));
    assert_null (hws_rx_next_cancel (&s_anchor.rx));

    hws_rx_reconnected (&s_anchor.rx);

    assert_non_null (hws_rx_next_cancel (&s_anchor.rx));
    give_ending (70, 0, HWS_RUN_CANCELLED, 0, HWS_CAUSE_REQUESTED);
    assert_int_equal (hws_rx_cancel_sender (&s_anchor.rx, 1, "no"), HWS_ENOT_FOUND);
}

/*  ---- Against a naive model ---- */

enum { SENDERS = 5 };

/*  What a sender of the model has sent and what of it the application has seen.  */
typedef struct {
    uint64_t sent, seen, acked;
    bool has_ended, is_ended_seen;
} model_t;

static void random_runs_are_seen_once_and_in_order (void **state)
{
    (void) state;
    hws_random_t random;
    test_seed (&random);
    model_t model[SENDERS + 1] = {{0}};
    for (uint64_t id = 1; id <= SENDERS; id++) {
        give_attached (id, id, 0);
        expect (HWS_EVENT_ATTACHED, id);
    }
    uint64_t ended = 0;
    uint64_t in_hand = 0; /* the sender of the last event */
    for (size_t step = 0; step < test_scaled (200000) && ended < SENDERS; step++) {
        const uint64_t id = 1 + hws_random_below (&random, SENDERS);
        model_t *const sender = &model[id];
        const uint64_t dice = hws_random_below (&random, 1000);
        if (dice < 80) {
            const uint64_t kept = sender->sent - sender->acked;
            const uint64_t first = sender->sent - hws_random_below (&random, kept + 1);
            const uint32_t count = 1 + (uint32_t) hws_random_below (&random, 20);
            give_records (id, first, count);
            if (!sender->has_ended && first + count > sender->sent) {
                sender->sent = first + count;
                const hws_rx_stream_t *const stream = hws_rx_find (&s_anchor.streams, id);
                assert_int_equal (stream->next_seq, sender->sent);
                assert_int_equal (stream->next_bytes, 5 * sender->sent);
            }
        } else if (dice == 80 && step > 10000) {
            give_ending (id, sender->sent, HWS_RUN_DETACHED, 1, HWS_CAUSE_NONE);
            sender->has_ended = true;
        } else {
            hws_event_t event;
            if (dice > 900) {
                hws_rx_reader_publish (&s_anchor.reader); /* the program has the last in hand */
            } else {
                in_hand = next (&event) ? event.sender_id : 0;
            }
            if (dice > 900 || in_hand == 0) {
                hws_ack_t ack;
                while (hws_rx_next_ack (&s_anchor.rx, &ack)) {
                    model_t *const acked = &model[ack.stream];
                    const uint64_t seen = acked->seen + acked->is_ended_seen;
                    const bool is_in_hand = ack.stream == in_hand && !acked->is_ended_seen;
                    assert_int_equal (ack.acked_seq, seen - is_in_hand);
                    assert_int_equal (ack.flags != 0, acked->is_ended_seen);
                    acked->acked = ack.acked_seq - (ack.flags != 0);
                }
                continue;
            }
            model_t *const seen = &model[event.sender_id];
            assert_false (seen->is_ended_seen);
            if (event.kind == HWS_EVENT_DETACHED) {
                assert_int_equal (seen->seen, seen->sent);
                assert_int_equal (event.records, seen->seen);
                seen->is_ended_seen = true;
                ended++;
                continue;
            }
            assert_int_equal (event.kind, HWS_EVENT_RECORD);
            assert_int_equal (event.seq, seen->seen);
            assert_int_equal (*(const char *) event.data, 'a' + (int) (seen->seen % 26));
            seen->seen++;
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, open_anchor, close_anchor)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (records_come_in_order_under_their_senders_id),
        TEST (what_was_seen_is_skipped),
        TEST (run_of_a_later_type_is_passed_over_and_counts),
        TEST (run_of_a_later_type_alone_is_acknowledged),
        TEST (run_ahead_is_dropped_and_noticed),
        TEST (second_attached_is_no_event_and_is_acknowledged),
        TEST (payload_is_held_until_the_reader_has_passed),
        TEST (soft_error_keeps_the_sender),
        TEST (parts_are_joined_and_acknowledged_whole),
        TEST (half_a_record_is_never_delivered),
        TEST (parts_beyond_the_record_limit_cancel_the_sender),
        TEST (rewound_parts_are_not_doubled),
        TEST (nothing_may_stand_between_the_parts_of_a_record),
        TEST (ending_has_its_cause_reason_and_counts),
        TEST (clean_ending_has_no_cause),
        TEST (endings_come_exactly_once),
        TEST (nothing_after_the_ending),
        TEST (broker_made_ending_moves_no_position),
        TEST (ending_is_consumed_when_it_is_shown),
        TEST (ending_is_acknowledged_only_when_the_program_says_so),
        TEST (run_is_acknowledged_up_to_the_record_in_hand),
        TEST (last_record_of_a_run_is_looked_at_closely),
        TEST (few_records_are_due_at_once_and_many_with_more),
        TEST (ended_is_remembered),
        TEST (ended_is_remembered_when_its_position_is_forgotten),
        TEST (malformed_run_cancels_its_sender_alone),
        TEST (clean_ending_behind_a_malformed_run_is_replaced),
        TEST (cancelled_anchor_shows_only_broker_made_endings),
        TEST (cancelled_anchor_shows_who_came_before_their_endings),
        TEST (clean_ending_that_was_shown_is_not_replaced),
        TEST (what_a_cut_anchor_shows_is_not_acknowledged),
        TEST (closed_anchor_ends_every_stream_first),
        TEST (cancel_of_a_sender_is_said_again_on_a_new_connection),
        TEST (random_runs_are_seen_once_and_in_order),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
