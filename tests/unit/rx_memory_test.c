/*  An anchor without memory: what must be told is told when there is memory again.
 *
 *  Linked so that allocations go through the functions here.
 */
#include "client/rx_reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

static bool s_is_out; /* of memory */

void *__real_malloc (size_t size);
char *__real_strndup (const char *text, size_t size);
void *__wrap_malloc (size_t size);
char *__wrap_strndup (const char *text, size_t size);

void *__wrap_malloc (size_t size)
{
    return s_is_out ? NULL : __real_malloc (size);
}

char *__wrap_strndup (const char *text, size_t size)
{
    return s_is_out ? NULL : __real_strndup (text, size);
}

/*  An anchor with one sender, whose ATTACHED the application has seen.  */
typedef struct {
    hws_rx_streams_t streams;
    hws_rx_t rx;
    hws_rx_reader_t reader;
    hws_payload_t payload;
} anchor_t;

static anchor_t s_anchor;

static void nobody_holds (hws_payload_t *payload)
{
    (void) payload;
}

static int open_anchor (void **state)
{
    (void) state;
    memset (&s_anchor, 0, sizeof s_anchor);
    s_anchor.payload = (hws_payload_t){.hold = nobody_holds, .release = nobody_holds};
    const hws_hash_key_t key = {{1, 2}};
    const hws_run_t run = {.stream = 70, .type = HWS_RUN_ATTACHED};
    const hws_attached_t attached = {.sender_id = 1};
    hws_event_t event;
    if (hws_rx_streams_init (&s_anchor.streams, key)) {
        return -1;
    }
    hws_rx_init (&s_anchor.rx, &s_anchor.streams);
    hws_rx_opened (&s_anchor.rx, (hws_handle_t){.hi = 1, .lo = 1}, 0);
    hws_rx_reader_init (&s_anchor.reader, &s_anchor.rx);
    const int rc = hws_rx_attached (&s_anchor.rx, &run, &attached, &s_anchor.payload, 0);
    hws_rx_flush (&s_anchor.rx);
    hws_rx_reader_take (&s_anchor.reader);
    return rc == 0 && hws_rx_reader_next (&s_anchor.reader, &event) ? 0 : -1;
}

static int close_anchor (void **state)
{
    (void) state;
    hws_rx_reader_fini (&s_anchor.reader);
    hws_rx_fini (&s_anchor.rx);
    hws_rx_streams_fini (&s_anchor.streams);
    return 0;
}

static void closed_comes_when_there_is_memory_again (void **state)
{
    (void) state;
    hws_event_t event;
    assert_false (hws_rx_reader_next (&s_anchor.reader, &event));

    s_is_out = true;
    hws_rx_closed (&s_anchor.rx, HWS_CAUSE_LOST, "the broker was restarted");
    const bool has_events = hws_rx_has_events (&s_anchor.rx);
    const int rc = hws_rx_reader_take (&s_anchor.reader);
    s_is_out = false;

    assert_true (has_events);
    assert_int_equal (rc, HWS_ENO_MEMORY);
    assert_int_equal (hws_rx_reader_take (&s_anchor.reader), 0);
    assert_true (hws_rx_reader_next (&s_anchor.reader, &event));
    assert_int_equal (event.kind, HWS_EVENT_DROPPED);
    assert_string_equal (event.cause, "lost");
    assert_true (hws_rx_reader_next (&s_anchor.reader, &event));
    assert_int_equal (event.kind, HWS_EVENT_CLOSED);
    assert_string_equal (event.reason, "the broker was restarted");
}

static void malformed_run_cancels_its_sender_without_memory (void **state)
{
    (void) state;
    hws_rx_stream_t *const stream = hws_rx_find (&s_anchor.streams, 70);
    const hws_run_t run = {
        .stream = 70, .count = 1, .flags = HWS_RUN_MORE, .body = hws_bytes ("x", 1)};

    s_is_out = true;
    const int rc = hws_rx_run (&s_anchor.rx, stream, &run, &s_anchor.payload, 0);
    s_is_out = false;

    assert_int_equal (rc, 0);
    assert_ptr_equal (hws_rx_next_cancel (&s_anchor.rx), stream);
    assert_memory_equal (stream->cancel_reason, "protocol: ", 10);
}

/*  What is remembered of it is an allocation: without it the id is, and says enough.  */
static void consumed_ending_is_known_although_it_could_not_be_remembered (void **state)
{
    (void) state;
    static uint8_t body[HWS_ENDING_HEADER_SIZE];
    hws_rx_stream_t *const stream = hws_rx_find (&s_anchor.streams, 70);
    const hws_run_t attached_run = {.stream = 700, .type = HWS_RUN_ATTACHED};
    const hws_attached_t attached = {.sender_id = 1};
    hws_event_t event;
    hws_ack_t ack;
    const hws_run_t ending = {
        .stream = 70, .type = HWS_RUN_DROPPED, .body = hws_bytes (body, sizeof body)};
    assert_false (hws_rx_reader_next (&s_anchor.reader, &event));
    assert_int_equal (hws_rx_run (&s_anchor.rx, stream, &ending, &s_anchor.payload, 0), 0);
    hws_rx_flush (&s_anchor.rx);
    hws_rx_reader_take (&s_anchor.reader);
    assert_true (hws_rx_reader_next (&s_anchor.reader, &event));
    hws_rx_reader_publish (&s_anchor.reader);
    assert_true (hws_rx_next_ack (&s_anchor.rx, &ack));
    assert_false (hws_rx_reader_next (&s_anchor.reader, &event));

    s_is_out = true;
    hws_rx_reader_take (&s_anchor.reader);
    hws_rx_reader_take (&s_anchor.reader);
    const int rc = hws_rx_attached (&s_anchor.rx, &attached_run, &attached, &s_anchor.payload, 0);
    s_is_out = false;

    assert_null (hws_rx_find (&s_anchor.streams, 70));
    assert_int_equal (rc, HWS_ENO_MEMORY);
    assert_int_equal (
        hws_rx_attached (&s_anchor.rx, &attached_run, &attached, &s_anchor.payload, 0), 0);
    assert_false (hws_rx_has_events (&s_anchor.rx));
    assert_true (hws_rx_next_ack (&s_anchor.rx, &ack));
    assert_int_equal (ack.stream, 700);
    assert_int_equal (ack.flags, HWS_ACK_ENDED);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, open_anchor, close_anchor)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (closed_comes_when_there_is_memory_again),
        TEST (malformed_run_cancels_its_sender_without_memory),
        TEST (consumed_ending_is_known_although_it_could_not_be_remembered),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
