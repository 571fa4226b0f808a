/*  Where the senders of an anchor stand, as a broker of another epoch is told; and how they are
 *  found again there.
 */
#include "client/rx_position.h"
#include "client/rx_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

enum { HEADER = HWS_RECORD_HEADER_SIZE, ENDING = HWS_ENDING_HEADER_SIZE };

static hws_rx_streams_t s_streams;
static hws_rx_t s_rx;
static hws_rx_reader_t s_reader;
static hws_payload_t s_payload;

static void nobody_holds (hws_payload_t *payload)
{
    (void) payload;
}

static int open_anchor (void **state)
{
    (void) state;
    s_payload = (hws_payload_t){.hold = nobody_holds, .release = nobody_holds};
    if (hws_rx_streams_init (&s_streams, (hws_hash_key_t){{1, 2}})) {
        return -1;
    }
    hws_rx_init (&s_rx, &s_streams);
    hws_rx_opened (&s_rx, (hws_handle_t){.hi = 1, .lo = 1}, 1000);
    hws_rx_reader_init (&s_reader, &s_rx);
    return 0;
}

static int close_anchor (void **state)
{
    (void) state;
    hws_rx_reader_fini (&s_reader);
    hws_rx_fini (&s_rx);
    hws_rx_streams_fini (&s_streams);
    return 0;
}

/*  ---- What the broker sends, of the sender 7 under the number 70 ---- */

static int attach (uint64_t id, uint64_t sender_id, uint64_t seat_key)
{
    const hws_run_t run = {.stream = id, .type = HWS_RUN_ATTACHED};
    const hws_attached_t attached = {
        .sender_id = sender_id, .seat_key = seat_key, .label = "a label"};
    const int rc = hws_rx_attached (&s_rx, &run, &attached, &s_payload, 0);
    hws_rx_flush (&s_rx);
    return rc;
}

static void give_run (uint64_t id, const hws_run_t *run)
{
    hws_rx_stream_t *const stream = hws_rx_find (&s_streams, id);
    assert_non_null (stream);
    assert_int_equal (hws_rx_run (&s_rx, stream, run, &s_payload, 0), 0);
    hws_rx_flush (&s_rx);
}

/*  The record with the number n has n % 5 bytes.  */
static void give_records (uint64_t id, uint64_t first, uint32_t count)
{
    static uint8_t bodies[8][512]; /* each lives until it is read */
    static size_t used;
    uint8_t *const body = bodies[used++ % 8];
    size_t size = 0;
    for (uint64_t seq = first; seq < first + count; seq++) {
        hws_record_put (body + size, (uint32_t) (seq % 5));
        size += HEADER + seq % 5;
    }
    assert_true (size <= sizeof bodies[0]);
    give_run (id, &(hws_run_t){.first_seq = first, .count = count, .body = hws_bytes (body, size)});
}

static uint64_t bytes_of (uint64_t count)
{
    uint64_t bytes = 0;
    for (uint64_t seq = 0; seq < count; seq++) {
        bytes += HEADER + seq % 5;
    }
    return bytes;
}

static void give_ending (uint64_t id, uint64_t seq, hws_run_type_t type, uint16_t cause)
{
    static uint8_t body[ENDING];
    hws_ending_put (body, &(hws_ending_t){.cause = cause});
    give_run (id, &(hws_run_t){.first_seq = seq,
                               .count = type == HWS_RUN_DETACHED,
                               .type = (uint8_t) type,
                               .body = hws_bytes (body, sizeof body)});
}

/*  ---- The program ---- */

static bool read_one (hws_event_t *event)
{
    while (!hws_rx_reader_next (&s_reader, event)) {
        hws_rx_reader_publish (&s_reader);
        if (!hws_rx_has_events (&s_rx)) {
            return false;
        }
        hws_rx_reader_take (&s_reader);
    }
    hws_rx_reader_publish (&s_reader);
    return true;
}

static void read_all (void)
{
    hws_event_t event;
    while (read_one (&event)) {
    }
}

/*  Two takes behind an ending nothing of its stream can be in use.  */
static void let_takes_pass (void)
{
    hws_rx_reader_take (&s_reader);
    hws_rx_reader_take (&s_reader);
}

static hws_position_t only_position (void)
{
    hws_position_t position = {.sender_id = 0};
    hws_position_t other;
    hws_rx_walk_t walk = hws_rx_walk (&s_rx);
    assert_int_equal (hws_rx_position_count (&s_rx), 1);
    assert_true (hws_rx_walk_next (&walk, &position));
    assert_false (hws_rx_walk_next (&walk, &other));
    assert_false (hws_rx_walk_next (&walk, &other));
    assert_int_equal (position.sender_id, 7);
    assert_int_equal (position.seat_key, 77);
    return position;
}

/*  ---- Positions ---- */

static void nobody_has_a_position_before_he_came (void **state)
{
    (void) state;
    hws_rx_walk_t walk = hws_rx_walk (&s_rx);
    hws_position_t position;

    assert_int_equal (hws_rx_position_count (&s_rx), 0);
    assert_false (hws_rx_walk_next (&walk, &position));
}

static void position_tells_what_is_expected_and_what_is_consumed (void **state)
{
    (void) state;
    hws_event_t event;
    attach (70, 7, 77);
    give_records (70, 0, 9);
    for (int i = 0; i < 1 + 4; i++) { /* ATTACHED, and records of which one is in hand */
        read_one (&event);
    }

    const hws_position_t position = only_position ();

    assert_int_equal (position.next_seq, 9);
    assert_int_equal (position.next_bytes, bytes_of (9));
    assert_int_equal (position.acked_seq, 3);
    assert_int_equal (position.acked_bytes, bytes_of (3));
    assert_int_equal (position.flags, 0);
}

static void bytes_that_were_seen_before_count_once (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_records (70, 0, 4);
    give_records (70, 2, 7);
    give_records (70, 8, 1);
    assert_int_equal (only_position ().next_bytes, bytes_of (9));

    read_all ();

    assert_int_equal (only_position ().acked_bytes, bytes_of (9));
}

static void parts_that_came_are_not_sent_again (void **state)
{
    (void) state;
    static const uint8_t part[] = {0, 0, 0, 2, 'a', 'b'};
    attach (70, 7, 77);
    give_run (
        70, &(hws_run_t){.count = 1, .flags = HWS_RUN_MORE, .body = hws_bytes (part, sizeof part)});
    read_all ();

    const hws_position_t position = only_position ();

    assert_int_equal (position.next_seq, 1);
    assert_int_equal (position.next_bytes, sizeof part);
    assert_int_equal (position.acked_seq, 0);
    assert_int_equal (position.acked_bytes, 0);
}

static void expect_ending (uint32_t flags, hws_run_type_t type, uint16_t cause)
{
    const hws_position_t position = only_position ();
    assert_int_equal (position.flags, flags);
    assert_int_equal (position.type, type);
    assert_int_equal (position.cause, cause);
}

static void own_ending_is_told_with_its_number (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_records (70, 0, 2);
    give_ending (70, 2, HWS_RUN_DETACHED, HWS_CAUSE_NONE);

    expect_ending (HWS_POSITION_ENDED, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    assert_int_equal (only_position ().next_seq, 3);
    assert_int_equal (only_position ().next_bytes, bytes_of (2) + ENDING);
    assert_int_equal (only_position ().acked_seq, 0);

    read_all ();

    expect_ending (HWS_POSITION_ENDED | HWS_POSITION_CONSUMED, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    assert_int_equal (only_position ().acked_seq, 3);
    assert_int_equal (only_position ().acked_bytes, bytes_of (2) + ENDING);
}

static void ending_of_the_broker_is_told_with_its_cause (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_records (70, 0, 2);
    give_ending (70, 2, HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT);

    expect_ending (HWS_POSITION_ENDED, HWS_RUN_DROPPED, HWS_CAUSE_HEARTBEAT);
    read_all ();
    expect_ending (HWS_POSITION_ENDED | HWS_POSITION_CONSUMED, HWS_RUN_DROPPED,
                   HWS_CAUSE_HEARTBEAT);
    assert_int_equal (only_position ().next_seq, 2);
    assert_int_equal (only_position ().acked_seq, 2);
}

static void ending_is_told_when_nothing_else_of_the_stream_is_kept (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_records (70, 0, 2);
    give_ending (70, 2, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    read_all ();

    let_takes_pass ();

    assert_null (hws_rx_find_sender (&s_rx, 7));
    expect_ending (HWS_POSITION_ENDED | HWS_POSITION_CONSUMED, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    assert_int_equal (only_position ().next_seq, 3);
    assert_int_equal (only_position ().acked_seq, 3);
    assert_int_equal (only_position ().acked_bytes, bytes_of (2) + ENDING);
}

static void latest_ending_is_told_first (void **state)
{
    (void) state;
    hws_position_t position;
    for (uint64_t id = 1; id <= 3; id++) {
        attach (id, id, 0);
        give_ending (id, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
        read_all ();
    }
    let_takes_pass ();

    hws_rx_walk_t walk = hws_rx_walk (&s_rx);

    for (uint64_t id = 3; id > 0; id--) {
        assert_true (hws_rx_walk_next (&walk, &position));
        assert_int_equal (position.sender_id, id);
    }
    assert_false (hws_rx_walk_next (&walk, &position));
}

/*  A manual program has the ending in hand, or has read on, and has not said that it consumed
 *  it.  */
static void ending_that_was_only_shown_is_not_consumed (void **state)
{
    (void) state;
    hws_event_t event;
    s_reader.is_manual = true;
    attach (70, 7, 77);
    give_ending (70, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    read_one (&event);
    read_one (&event);

    assert_int_equal (event.kind, HWS_EVENT_DETACHED);
    expect_ending (HWS_POSITION_ENDED, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
}

/*  The broker is asked to make it cancelled.  */
static void clean_ending_that_will_not_be_seen_is_not_told (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_ending (70, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);

    hws_rx_cancel (&s_rx);

    expect_ending (0, 0, 0);
    assert_int_equal (only_position ().next_seq, 1);
}

static void ending_that_was_made_here_is_not_told (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_records (70, 0, 2);
    hws_rx_cancel (&s_rx);
    hws_rx_cut (&s_rx);
    hws_rx_closed (&s_rx, HWS_CAUSE_RECEIVER_CLOSED, "enough");
    expect_ending (0, 0, 0);

    hws_rx_reader_discard (&s_reader);
    read_all ();

    expect_ending (0, 0, 0);
    let_takes_pass ();
    expect_ending (0, 0, 0);
}

/*  The sender had ended cleanly before, and nobody saw that.  */
static void clean_ending_that_was_replaced_here_is_not_told (void **state)
{
    (void) state;
    attach (70, 7, 77);
    give_ending (70, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    hws_rx_cancel (&s_rx);
    hws_rx_cut (&s_rx);

    hws_rx_closed (&s_rx, HWS_CAUSE_RECEIVER_CLOSED, "enough");

    expect_ending (0, 0, 0);
    hws_rx_reader_discard (&s_reader);
    read_all ();
    expect_ending (0, 0, 0);
}

/*  ---- Found again ---- */

static void sender_is_found_again_under_another_number (void **state)
{
    (void) state;
    hws_ack_t ack;
    attach (70, 7, 77);
    give_records (70, 0, 3);
    read_all ();
    assert_true (hws_rx_next_ack (&s_rx, &ack));

    hws_rx_unbind (&s_rx);
    assert_null (hws_rx_find (&s_streams, 70));
    assert_int_equal (attach (700, 7, 777), 0);

    assert_false (hws_rx_has_events (&s_rx)); /* nobody new */
    assert_true (hws_rx_next_ack (&s_rx, &ack));
    assert_int_equal (ack.stream, 700);
    assert_int_equal (ack.acked_seq, 3);
    assert_int_equal (ack.flags, 0);
    give_records (700, 3, 1);
    hws_event_t event;
    assert_true (read_one (&event));
    assert_int_equal (event.sender_id, 7);
    assert_int_equal (event.seq, 3);
}

static void other_sender_under_a_number_that_is_in_use_is_a_violation (void **state)
{
    (void) state;
    attach (70, 7, 77);

    assert_int_equal (attach (70, 8, 78), HWS_EPROTOCOL);
    assert_int_equal (attach (0, 8, 78), HWS_EPROTOCOL);

    assert_int_equal (hws_rx_position_count (&s_rx), 1);
}

static void consumed_ending_is_acknowledged_under_another_number (void **state)
{
    (void) state;
    for (int is_past = 0; is_past <= 1; is_past++) {
        hws_ack_t ack;
        const uint64_t id = 70 + (uint64_t) is_past;
        attach (id, id, 77);
        give_ending (id, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
        read_all ();
        if (is_past) {
            let_takes_pass ();
        }
        hws_rx_unbind (&s_rx);
        assert_false (hws_rx_next_ack (&s_rx, &ack)); /* the number of before means nothing */

        attach (700 + id, id, 77);

        assert_false (hws_rx_has_events (&s_rx));
        assert_true (hws_rx_next_ack (&s_rx, &ack));
        assert_int_equal (ack.stream, 700 + id);
        assert_int_equal (ack.acked_seq, 1);
        assert_int_equal (ack.flags, HWS_ACK_ENDED);
        assert_false (hws_rx_next_ack (&s_rx, &ack));
    }
}

static void what_is_consumed_between_the_numbers_is_acknowledged_with_the_next (void **state)
{
    (void) state;
    hws_ack_t ack;
    attach (70, 7, 77);
    give_records (70, 0, 3);
    hws_rx_unbind (&s_rx);

    read_all ();
    assert_false (hws_rx_next_ack (&s_rx, &ack));
    attach (700, 7, 77);

    assert_true (hws_rx_next_ack (&s_rx, &ack));
    assert_int_equal (ack.stream, 700);
    assert_int_equal (ack.acked_seq, 3);
}

/*  An event in hand views into its stream, also when it is an ending that is consumed.  */
static void label_of_an_ending_lives_until_the_next_event (void **state)
{
    (void) state;
    hws_event_t event;
    attach (70, 7, 77);
    give_ending (70, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    attach (71, 8, 78);
    read_one (&event);
    read_one (&event);
    assert_int_equal (event.kind, HWS_EVENT_DETACHED);

    assert_string_equal (event.label, "a label");

    assert_true (read_one (&event));
    assert_int_equal (event.kind, HWS_EVENT_ATTACHED);
}

/*  The anchor is closed while the program is about to be shown the clean ending: what is queued
 *  then for the stream outlives its end.  */
static void ending_that_another_was_queued_behind_is_shown_once (void **state)
{
    (void) state;
    hws_event_t event;
    attach (70, 7, 77);
    give_ending (70, 0, HWS_RUN_DETACHED, HWS_CAUSE_NONE);
    hws_rx_reader_take (&s_reader);
    hws_rx_closed (&s_rx, HWS_CAUSE_LOST, "the broker has forgotten the anchor");
    read_one (&event);
    read_one (&event);
    assert_int_equal (event.kind, HWS_EVENT_DETACHED);

    read_one (&event);

    assert_int_equal (event.kind, HWS_EVENT_CLOSED);
    assert_false (read_one (&event));
}

/*  ---- Ids ---- */

static void ids_that_never_came_are_known (void **state)
{
    (void) state;
    hws_seen_t seen = {.count = 0};
    hws_range_t holes[HWS_SEEN_RANGES_MAX];
    assert_int_equal (hws_seen_highest (&seen), 0);
    assert_int_equal (hws_seen_holes (&seen, holes), 0);

    for (uint64_t id = 3; id <= 9; id += 3) {
        hws_seen_mark (&seen, id);
    }

    assert_int_equal (hws_seen_highest (&seen), 9);
    assert_int_equal (hws_seen_holes (&seen, holes), 3);
    assert_int_equal (holes[0].first, 1);
    assert_int_equal (holes[0].end, 3);
    assert_int_equal (holes[2].first, 7);
    assert_int_equal (holes[2].end, 9);
    assert_true (hws_seen_has (&seen, 6));
    assert_false (hws_seen_has (&seen, 7));
}

static void too_many_holes_fit_into_an_open_all_the_same (void **state)
{
    (void) state;
    hws_seen_t seen = {.count = 0};
    hws_range_t holes[HWS_SEEN_RANGES_MAX];

    for (uint64_t id = 2; id <= 2000; id += 2) {
        hws_seen_mark (&seen, id);
        assert_true (hws_seen_holes (&seen, holes) <= HWS_RANGES_MAX);
    }

    assert_int_equal (hws_seen_highest (&seen), 2000);
    assert_int_equal (holes[hws_seen_holes (&seen, holes) - 1].end, 2000);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, open_anchor, close_anchor)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (nobody_has_a_position_before_he_came),
        TEST (position_tells_what_is_expected_and_what_is_consumed),
        TEST (bytes_that_were_seen_before_count_once),
        TEST (parts_that_came_are_not_sent_again),
        TEST (own_ending_is_told_with_its_number),
        TEST (ending_of_the_broker_is_told_with_its_cause),
        TEST (ending_is_told_when_nothing_else_of_the_stream_is_kept),
        TEST (latest_ending_is_told_first),
        TEST (ending_that_was_only_shown_is_not_consumed),
        TEST (clean_ending_that_will_not_be_seen_is_not_told),
        TEST (ending_that_was_made_here_is_not_told),
        TEST (clean_ending_that_was_replaced_here_is_not_told),
        TEST (sender_is_found_again_under_another_number),
        TEST (other_sender_under_a_number_that_is_in_use_is_a_violation),
        TEST (consumed_ending_is_acknowledged_under_another_number),
        TEST (what_is_consumed_between_the_numbers_is_acknowledged_with_the_next),
        TEST (label_of_an_ending_lives_until_the_next_event),
        TEST (ending_that_another_was_queued_behind_is_shown_once),
        TEST (ids_that_never_came_are_known),
        TEST (too_many_holes_fit_into_an_open_all_the_same),
    };
    return cmocka_run_group_tests_name ("rx_position", tests, NULL, NULL);
}
