/*  Receivers at a broker that was restarted, and in the place of another process: what they say of
 *  their anchors, and what becomes of the answer. Linked so that memory can be missing.
 */
#include "client/rx_reader.h"
#include "tests/support/scripted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { TOKEN_BYTE = 0xab, OPENS_MAX = 8 };

static const hws_handle_t s_handles[] = {{.hi = 99, .lo = 0x8000000700000001},
                                         {.hi = 99, .lo = 0x8000000700000002}};

static scripted_t s_broker;
static hws_session_receiver_t s_receivers[2];
static hws_rx_reader_t s_readers[2];

static void ignore (hws_session_receiver_t *receiver)
{
    (void) receiver;
}

static hws_session_t *session (void)
{
    return &s_broker.session;
}

/*  ---- The broker ---- */

static hws_control_t open_ok (int i)
{
    return (hws_control_t){
        .verb = HWS_VERB_OPEN,
        .as.open_ok = {.handle = s_handles[i],
                       .owner_token.bytes[0] = TOKEN_BYTE,
                       .heartbeat_interval_ms = 4000,
                       .reconnect_grace_ms = 11000,
                       .unattached_timeout_ms = {.state = HWS_VALUE, .value = 90000},
                       .orphan_ttl_ms = 31000,
                       .max_senders = {.state = HWS_VALUE, .value = 7},
                       .buffer_bytes = 1 << 22,
                       .record_bytes = 1 << 16}};
}

/*  Its streams have the numbers 1000 and 2000 and up, after `anew` restarts others.  */
static uint64_t stream_id (int i, uint64_t sender_id, uint64_t anew)
{
    return anew * 100000 + (uint64_t) (i + 1) * 10000 + sender_id;
}

static void give_attached (int i, uint64_t sender_id, uint64_t anew)
{
    uint8_t body[512];
    size_t size = 0;
    const hws_attached_t attached = {
        .handle = s_handles[i], .sender_id = sender_id, .seat_key = 500 + sender_id};
    assert_int_equal (hws_attached_encode (&attached, body, sizeof body, &size), 0);
    scripted_run (&s_broker, &(hws_run_t){.stream = stream_id (i, sender_id, anew),
                                          .type = HWS_RUN_ATTACHED,
                                          .body = hws_bytes (body, size)});
}

/*  Records of one byte.  */
static void give_records (int i, uint64_t sender_id, uint64_t anew, uint64_t first, uint32_t count)
{
    uint8_t body[512] = {0};
    for (uint32_t at = 0; at < count; at++) {
        hws_record_put (body + 5 * at, 1);
    }
    scripted_run (&s_broker, &(hws_run_t){.stream = stream_id (i, sender_id, anew),
                                          .first_seq = first,
                                          .count = count,
                                          .body = hws_bytes (body, 5 * count)});
}

static void restart (void)
{
    scripted_lose (&s_broker);
    s_broker.epoch++;
    s_broker.of_streams.count = 0;
    scripted_return (&s_broker);
}

/*  ---- The program ---- */

static void open_anchor (int i, hws_open_t options)
{
    s_receivers[i] =
        (hws_session_receiver_t){.notify = ignore, .flush = ignore, .options = options};
    hws_session_open (session (), s_broker.now, &s_receivers[i]);
    hws_rx_reader_init (&s_readers[i], &s_receivers[i].rx);
    scripted_pump (&s_broker);
}

static void open_anchors (int count)
{
    for (int i = 0; i < count; i++) {
        open_anchor (i, (hws_open_t){.name = "a"});
        scripted_answer (&s_broker, open_ok (i));
    }
}

/*  Another process goes on with an anchor.  */
static hws_open_t going_on (void)
{
    return (hws_open_t){.has_resume = true,
                        .resume = {.handle = s_handles[0], .owner_token.bytes[0] = TOKEN_BYTE}};
}

/*  It reads all there is, or `count` events.  */
static void read_some (int i, int count)
{
    hws_event_t event;
    for (; count != 0; count--) {
        while (!hws_rx_reader_next (&s_readers[i], &event)) {
            hws_rx_reader_publish (&s_readers[i]);
            if (!hws_rx_has_events (&s_receivers[i].rx)) {
                scripted_pump (&s_broker);
                return;
            }
            hws_rx_reader_take (&s_readers[i]);
        }
    }
    hws_rx_reader_publish (&s_readers[i]);
    scripted_pump (&s_broker);
}

/*  ---- Memory ---- */

static size_t s_missing; /* there is no memory of this size; SIZE_MAX: of the next, whatever size */

void *__real_malloc (size_t size);
void *__wrap_malloc (size_t size);

void *__wrap_malloc (size_t size)
{
    if (s_missing == SIZE_MAX) {
        s_missing = 0;
        return NULL;
    }
    return s_missing == size && size > 0 ? NULL : __real_malloc (size);
}

static int set_up (void **state)
{
    (void) state;
    scripted_begin (&s_broker);
    scripted_pass (&s_broker, 0);
    scripted_welcome (&s_broker);
    return 0;
}

static int tear_down (void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        if (s_receivers[i].session) {
            hws_rx_reader_fini (&s_readers[i]);
            hws_session_remove_receiver (&s_receivers[i]);
        }
        s_receivers[i] = (hws_session_receiver_t){.notify = NULL};
    }
    scripted_end (&s_broker);
    return 0;
}

static const hws_open_t *asked (void)
{
    return &s_broker.asked[HWS_VERB_OPEN].as.open;
}

/*  ---- What a new epoch is told ---- */

static void a_new_epoch_is_told_the_values_in_force (void **state)
{
    (void) state;
    open_anchor (0, (hws_open_t){.name = "a", .dedicated = true, .cancel_token = 77});
    assert_false (asked ()->has_resume);
    scripted_answer (&s_broker, open_ok (0));

    restart ();

    assert_true (asked ()->has_resume);
    assert_int_equal (asked ()->open_id, s_receivers[0].options.open_id);
    assert_true (hws_handle_equal (asked ()->resume.handle, s_handles[0]));
    assert_int_equal (asked ()->resume.owner_token.bytes[0], TOKEN_BYTE);
    assert_string_equal (asked ()->name, "a");
    assert_true (asked ()->dedicated);
    assert_int_equal (asked ()->cancel_token, 77);
    assert_int_equal (asked ()->heartbeat_interval_ms.value, 4000);
    assert_int_equal (asked ()->reconnect_grace_ms.value, 11000);
    assert_int_equal (asked ()->unattached_timeout_ms.value, 90000);
    assert_int_equal (asked ()->orphan_ttl_ms.value, 31000);
    assert_int_equal (asked ()->max_senders.value, 7);
    assert_int_equal (asked ()->buffer_bytes.value, 1 << 22);
}

static void a_timeout_that_was_not_answered_is_asked_of_the_new_epoch (void **state)
{
    (void) state;
    open_anchors (1);
    hws_session_set_unattached (session (), s_broker.now, &s_receivers[0],
                                (hws_optional_t){.state = HWS_VALUE, .value = 5000});

    restart ();

    assert_int_equal (asked ()->unattached_timeout_ms.value, 5000);
    hws_control_t answer = open_ok (0);
    answer.as.open_ok.unattached_timeout_ms.value = 5000;
    scripted_answer (&s_broker, answer);
    assert_int_equal (s_receivers[0].changes_answered, 1);
    assert_int_equal (s_receivers[0].change_result, 0);
}

static void an_epoch_that_has_answered_is_asked_as_ever (void **state)
{
    (void) state;
    open_anchors (1);
    restart ();
    scripted_lose (&s_broker);
    scripted_return (&s_broker); /* it has not answered */
    assert_true (asked ()->has_resume);
    scripted_answer (&s_broker, open_ok (0));

    scripted_lose (&s_broker);
    scripted_return (&s_broker);

    assert_false (asked ()->has_resume);
    assert_int_equal (asked ()->buffer_bytes.state, HWS_ABSENT);
}

static void an_anchor_without_senders_has_a_mark_that_is_the_last (void **state)
{
    (void) state;
    open_anchors (1);

    restart ();

    assert_int_equal (s_broker.position_count, 1);
    assert_int_equal (s_broker.positions[0].sender_id, 0);
    assert_int_equal (s_broker.positions[0].flags, HWS_POSITION_LAST);
}

static void positions_say_what_is_expected_and_what_is_consumed (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    give_records (0, 1, 0, 0, 10);
    read_some (0, 1 + 4); /* ATTACHED, and records of which the last is in hand */

    restart ();

    assert_int_equal (s_broker.position_count, 1);
    const hws_position_t *const position = &s_broker.positions[0];
    assert_int_equal (position->sender_id, 1);
    assert_int_equal (position->next_seq, 10);
    assert_int_equal (position->next_bytes, 10 * 5);
    assert_int_equal (position->acked_seq, 3);
    assert_int_equal (position->acked_bytes, 3 * 5);
    assert_int_equal (position->seat_key, 501);
    assert_int_equal (position->flags, HWS_POSITION_LAST);
    assert_int_equal (asked ()->resume.highest_sender_id, 1);
    assert_int_equal (asked ()->resume.unseen_count, 0);
}

static void ids_that_never_came_are_named (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 2, 0);
    give_attached (0, 3, 0);
    give_attached (0, 9, 0);

    restart ();

    assert_int_equal (asked ()->resume.highest_sender_id, 9);
    assert_int_equal (asked ()->resume.unseen_count, 2);
    assert_int_equal (asked ()->resume.unseen[0].first, 1);
    assert_int_equal (asked ()->resume.unseen[0].end, 2);
    assert_int_equal (asked ()->resume.unseen[1].first, 4);
    assert_int_equal (asked ()->resume.unseen[1].end, 9);
}

/*  More than a batch holds; and each OPEN has its own behind it, up to the last, before the next
 *  OPEN: the fixture looks at that.  */
static void positions_of_many_senders_are_directly_behind_their_open (void **state)
{
    (void) state;
    enum { SENDERS = 5000 };
    static uint8_t buffer[HWS_BATCH_BYTES_DEFAULT];
    size_t behind[OPENS_MAX] = {0};
    size_t batches = 0, opens = 0;
    open_anchors (2);
    for (uint64_t id = 1; id <= SENDERS; id++) {
        give_attached (0, id, 0);
        give_attached (1, id, 0);
    }
    scripted_lose (&s_broker);
    s_broker.epoch++;
    scripted_pass (&s_broker, HWS_BACKOFF_MIN_MS);
    const hws_control_t welcome = {.verb = HWS_VERB_HELLO,
                                   .form = HWS_FORM_OK,
                                   .has_id = true,
                                   .id = s_broker.asked_id[HWS_VERB_HELLO],
                                   .as.hello_ok = {.broker_id = s_broker.broker_id,
                                                   .epoch = s_broker.epoch,
                                                   .protocol = HWS_PROTOCOL_VERSION,
                                                   .batch_bytes = HWS_BATCH_BYTES_DEFAULT}};
    uint8_t json[1024];
    size_t size;
    assert_int_equal (hws_control_encode (&welcome, json, sizeof json, &size), 0);

    hws_session_control (session (), s_broker.now, hws_bytes_of_text ("HELLO"),
                         hws_bytes (json, size));

    hws_action_t action;
    bool is_complete = true;
    while (hws_session_pop (session (), s_broker.now, buffer, sizeof buffer, &action)) {
        if (action.kind == HWS_ACTION_CONTROL) {
            assert_string_equal (action.verb, "OPEN");
            assert_true (is_complete);
            is_complete = false;
            opens++;
            free (action.data);
            continue;
        }
        hws_batch_t batch;
        hws_position_t position;
        assert_int_equal (hws_batch_open (&batch, hws_bytes (action.data, action.size)), 0);
        assert_int_equal (batch.kind, HWS_BATCH_POSITION);
        assert_true (action.size <= HWS_BATCH_BYTES_DEFAULT);
        batches++;
        while (hws_batch_next_position (&batch, &position) == 1) {
            assert_false (is_complete);
            behind[opens]++;
            is_complete = position.flags & HWS_POSITION_LAST;
        }
    }
    assert_true (is_complete);
    assert_int_equal (opens, 2);
    assert_int_equal (batches, 4);
    assert_int_equal (behind[1], SENDERS);
    assert_int_equal (behind[2], SENDERS);
}

static void an_open_that_is_said_again_has_the_present_positions (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    give_records (0, 1, 0, 0, 10);
    restart ();
    assert_int_equal (s_broker.positions[0].acked_seq, 0);
    read_some (0, -1);

    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);

    assert_int_equal (s_broker.asked_count[HWS_VERB_OPEN], 3);
    assert_int_equal (s_broker.position_count, 1);
    assert_int_equal (s_broker.positions[0].acked_seq, 10);
    assert_int_equal (s_broker.positions[0].flags, HWS_POSITION_LAST);
}

static void positions_that_find_no_memory_follow_the_next_open (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    s_missing = HWS_BATCH_HEADER_SIZE + HWS_POSITION_SIZE;
    restart ();
    assert_true (asked ()->has_resume);
    assert_int_equal (s_broker.position_count, 0);
    s_missing = 0;

    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);

    assert_int_equal (s_broker.asked_count[HWS_VERB_OPEN], 3);
    assert_int_equal (s_broker.position_count, 1);
}

/*  Positions without their OPEN would be a violation.  */
static void positions_of_an_open_that_finds_no_memory_are_not_said (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    restart ();
    s_broker.of_streams.count = 0;
    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS - 1);

    s_missing = SIZE_MAX;
    scripted_pass (&s_broker, 1);

    assert_int_equal (s_missing, 0);
    assert_int_equal (s_broker.of_streams.count, 0);
    scripted_pass (&s_broker, HWS_REQUEST_RETRY_MS);
    assert_int_equal (s_broker.asked_count[HWS_VERB_OPEN], 3);
    assert_int_equal (s_broker.position_count, 1);
}

/*  The CANCEL would make it cancelled, and it can be acknowledged only when ATTACHED has come.  */
static void an_ending_that_is_consumed_before_the_answer_is_told_before_a_close (void **state)
{
    (void) state;
    static uint8_t body[HWS_ENDING_HEADER_SIZE];
    open_anchors (1);
    give_attached (0, 1, 0);
    scripted_run (&s_broker, &(hws_run_t){.stream = stream_id (0, 1, 0),
                                          .count = 1,
                                          .type = HWS_RUN_DETACHED,
                                          .body = hws_bytes (body, sizeof body)});
    restart ();
    assert_int_equal (s_broker.positions[0].flags, HWS_POSITION_ENDED | HWS_POSITION_LAST);
    read_some (0, -1);
    s_broker.of_streams.count = 0;

    hws_session_close (session (), s_broker.now, &s_receivers[0], "enough");
    scripted_pump (&s_broker);

    assert_int_equal (s_broker.of_streams.count, 3);
    assert_string_equal (s_broker.of_streams.word[0], "OPEN");
    assert_string_equal (s_broker.of_streams.word[1], "POSITION");
    assert_string_equal (s_broker.of_streams.word[2], "CANCEL");
    assert_int_equal (s_broker.positions[0].flags,
                      HWS_POSITION_ENDED | HWS_POSITION_CONSUMED | HWS_POSITION_LAST);
}

/*  ---- What becomes of it ---- */

static void the_stream_goes_on_under_another_number (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    give_records (0, 1, 0, 0, 3);
    read_some (0, -1);
    restart ();
    scripted_answer (&s_broker, open_ok (0));

    s_broker.of_streams.count = 0;
    give_attached (0, 1, 1);

    assert_int_equal (s_broker.of_streams.count, 1);
    assert_string_equal (s_broker.of_streams.word[0], "ACK");
    give_records (0, 1, 1, 3, 2);
    read_some (0, -1);
    const hws_rx_stream_t *const stream = hws_rx_find (&session ()->streams, stream_id (0, 1, 1));
    assert_non_null (stream);
    assert_int_equal (stream->acked_seq, 5);
    assert_int_equal (stream->records, 5);
    assert_null (hws_rx_find (&session ()->streams, stream_id (0, 1, 0)));
}

static void nothing_is_acknowledged_before_the_new_number_is_told (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    give_records (0, 1, 0, 0, 3);
    restart ();
    scripted_answer (&s_broker, open_ok (0));
    s_broker.of_streams.count = 0;

    read_some (0, -1);

    assert_int_equal (s_broker.of_streams.count, 0);
}

static void a_broker_that_cannot_now_is_asked_twice_a_second (void **state)
{
    (void) state;
    open_anchors (1);
    restart ();
    const unsigned before = s_broker.asked_count[HWS_VERB_OPEN];
    for (unsigned i = 1; i <= 3; i++) {
        scripted_refuse (&s_broker, HWS_VERB_OPEN, i == 1 ? HWS_ELIMIT : HWS_EBUSY);
        scripted_pass (&s_broker, HWS_OPEN_AGAIN_MS - 1);
        assert_int_equal (s_broker.asked_count[HWS_VERB_OPEN], before + i - 1);
        scripted_pass (&s_broker, 1);
        assert_int_equal (s_broker.asked_count[HWS_VERB_OPEN], before + i);
        assert_int_equal (s_broker.position_count, 1);
    }

    scripted_answer (&s_broker, open_ok (0));

    assert_int_equal (s_receivers[0].rx.state, HWS_RX_OPEN);
}

/*  ---- Another process ---- */

static void a_new_process_asks_for_the_anchor_by_its_handle_and_token (void **state)
{
    (void) state;

    open_anchor (0, going_on ());

    assert_true (asked ()->has_resume);
    assert_true (hws_handle_equal (asked ()->resume.handle, s_handles[0]));
    assert_int_equal (asked ()->resume.owner_token.bytes[0], TOKEN_BYTE);
    assert_int_equal (asked ()->resume.highest_sender_id, 0);
    assert_int_equal (asked ()->buffer_bytes.state, HWS_ABSENT);
    assert_int_equal (s_broker.position_count, 1);
    assert_int_equal (s_broker.positions[0].flags, HWS_POSITION_LAST);
    scripted_answer (&s_broker, open_ok (0));
    assert_int_equal (s_receivers[0].rx.state, HWS_RX_OPEN);
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
    assert_false (asked ()->has_resume); /* it is this client's now */
}

static void a_new_process_counts_from_where_the_broker_says (void **state)
{
    (void) state;
    open_anchor (0, going_on ());
    scripted_answer (&s_broker, open_ok (0));
    uint8_t body[512];
    size_t size;
    const hws_attached_t attached = {.handle = s_handles[0], .sender_id = 4, .next_bytes = 35};
    assert_int_equal (hws_attached_encode (&attached, body, sizeof body, &size), 0);

    scripted_run (&s_broker, &(hws_run_t){.stream = stream_id (0, 4, 0),
                                          .first_seq = 7,
                                          .type = HWS_RUN_ATTACHED,
                                          .body = hws_bytes (body, size)});
    give_records (0, 4, 0, 7, 2);
    read_some (0, -1);

    const hws_rx_stream_t *const stream = hws_rx_find (&session ()->streams, stream_id (0, 4, 0));
    assert_int_equal (stream->acked_seq, 9);
    assert_int_equal (stream->acked_bytes, 35 + 2 * 5);
    assert_int_equal (stream->next_bytes, 35 + 2 * 5);
}

static void an_anchor_that_is_denied_is_not_opened (void **state)
{
    (void) state;
    open_anchor (0, going_on ());

    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_EDENIED);

    assert_int_equal (s_receivers[0].rx.state, HWS_RX_CLOSED);
    assert_int_equal (s_receivers[0].rx.result, HWS_EDENIED);
}

static void a_new_process_waits_for_a_broker_that_cannot_now (void **state)
{
    (void) state;
    open_anchor (0, going_on ());
    for (hws_ms_t at = 0; at < SCRIPTED_CONNECT_MS; at += HWS_OPEN_AGAIN_MS) {
        assert_int_equal (s_receivers[0].rx.state, HWS_RX_OPENING);
        scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_ELIMIT);
        scripted_pass (&s_broker, HWS_OPEN_AGAIN_MS);
    }

    assert_int_equal (s_receivers[0].rx.state, HWS_RX_CLOSED);
    assert_int_equal (s_receivers[0].rx.result, HWS_ELIMIT);
}

/*  The program does not wait any more, and the broker has given it the anchor all the same.  */
static void an_anchor_that_was_to_go_on_is_not_cancelled_for_a_late_answer (void **state)
{
    (void) state;
    open_anchor (0, going_on ());
    hws_session_close (session (), s_broker.now, &s_receivers[0], "no patience");
    hws_rx_reader_fini (&s_readers[0]);
    hws_session_remove_receiver (&s_receivers[0]);
    s_receivers[0].session = NULL;
    s_broker.of_streams.count = 0;

    scripted_answer (&s_broker, open_ok (0));

    assert_int_equal (s_broker.of_streams.count, 0);
    hws_session_leave (session (), s_broker.now);
    scripted_pump (&s_broker);
    assert_int_equal (s_broker.asked_count[HWS_VERB_BYE], 0);
}

/*  ---- Leaving ---- */

static void what_was_acknowledged_is_heard_before_the_receiver_has_left (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    give_records (0, 1, 0, 0, 3);
    read_some (0, 2);
    hws_rx_reader_settle (&s_readers[0]);
    hws_rx_reader_publish (&s_readers[0]);
    s_broker.of_streams.count = 0;

    hws_session_leave_anchor (session (), s_broker.now, &s_receivers[0]);
    scripted_pump (&s_broker);

    assert_string_equal (s_broker.of_streams.word[0], "ACK");
    assert_int_equal (s_broker.asked_count[HWS_VERB_RESERVE_TOKEN], 1);
    assert_false (s_receivers[0].is_left);
    scripted_answer (&s_broker,
                     (hws_control_t){.verb = HWS_VERB_RESERVE_TOKEN, .as.token.token = 1});
    assert_true (s_receivers[0].is_left);
}

/*  Acknowledgements that are lost with their connection follow ATTACHED, behind the answer to
 *  OPEN.  */
static void a_receiver_that_leaves_says_on_the_next_connection_what_got_lost (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    hws_session_leave_anchor (session (), s_broker.now, &s_receivers[0]);
    scripted_pump (&s_broker);
    scripted_lose (&s_broker);
    scripted_return (&s_broker);
    assert_int_equal (s_broker.asked_count[HWS_VERB_RESERVE_TOKEN], 1);

    scripted_answer (&s_broker, open_ok (0));
    give_attached (0, 1, 0);

    for (int round = 0; round < 2; round++) {
        assert_false (s_receivers[0].is_left);
        scripted_answer (&s_broker,
                         (hws_control_t){.verb = HWS_VERB_RESERVE_TOKEN, .as.token.token = 1});
    }
    assert_true (s_receivers[0].is_left);
}

static void answer_round (void)
{
    scripted_answer (&s_broker,
                     (hws_control_t){.verb = HWS_VERB_RESERVE_TOKEN, .as.token.token = 1});
}

static void a_receiver_leaves_no_epoch_that_has_not_opened_its_anchor (void **state)
{
    (void) state;
    open_anchors (1);
    give_attached (0, 1, 0);
    restart ();
    hws_session_leave_anchor (session (), s_broker.now, &s_receivers[0]);
    scripted_pump (&s_broker);
    scripted_refuse (&s_broker, HWS_VERB_OPEN, HWS_EBUSY);

    answer_round ();

    assert_false (s_receivers[0].is_left);
    scripted_pass (&s_broker, HWS_OPEN_AGAIN_MS);
    scripted_answer (&s_broker, open_ok (0));
    answer_round ();
    assert_false (s_receivers[0].is_left);
    answer_round ();
    assert_true (s_receivers[0].is_left);
}

static void a_client_that_has_left_an_anchor_says_no_bye (void **state)
{
    (void) state;
    open_anchors (1);
    hws_session_leave_anchor (session (), s_broker.now, &s_receivers[0]);
    scripted_pump (&s_broker);

    hws_session_leave (session (), s_broker.now);
    scripted_pump (&s_broker);

    assert_int_equal (session ()->state, HWS_SESSION_LEAVING);
    assert_int_equal (s_broker.asked_count[HWS_VERB_BYE], 0);
    assert_int_equal (s_broker.asked_count[HWS_VERB_RESERVE_TOKEN], 2);
    scripted_answer (&s_broker,
                     (hws_control_t){.verb = HWS_VERB_RESERVE_TOKEN, .as.token.token = 1});
    assert_int_equal (session ()->state, HWS_SESSION_GONE);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (a_new_epoch_is_told_the_values_in_force),
        TEST (a_timeout_that_was_not_answered_is_asked_of_the_new_epoch),
        TEST (an_epoch_that_has_answered_is_asked_as_ever),
        TEST (an_anchor_without_senders_has_a_mark_that_is_the_last),
        TEST (positions_say_what_is_expected_and_what_is_consumed),
        TEST (ids_that_never_came_are_named),
        TEST (positions_of_many_senders_are_directly_behind_their_open),
        TEST (an_open_that_is_said_again_has_the_present_positions),
        TEST (positions_that_find_no_memory_follow_the_next_open),
        TEST (positions_of_an_open_that_finds_no_memory_are_not_said),
        TEST (an_ending_that_is_consumed_before_the_answer_is_told_before_a_close),
        TEST (the_stream_goes_on_under_another_number),
        TEST (nothing_is_acknowledged_before_the_new_number_is_told),
        TEST (a_broker_that_cannot_now_is_asked_twice_a_second),
        TEST (a_new_process_asks_for_the_anchor_by_its_handle_and_token),
        TEST (a_new_process_counts_from_where_the_broker_says),
        TEST (an_anchor_that_is_denied_is_not_opened),
        TEST (a_new_process_waits_for_a_broker_that_cannot_now),
        TEST (an_anchor_that_was_to_go_on_is_not_cancelled_for_a_late_answer),
        TEST (what_was_acknowledged_is_heard_before_the_receiver_has_left),
        TEST (a_receiver_that_leaves_says_on_the_next_connection_what_got_lost),
        TEST (a_receiver_leaves_no_epoch_that_has_not_opened_its_anchor),
        TEST (a_client_that_has_left_an_anchor_says_no_bye),
    };
    return cmocka_run_group_tests_name ("session_open", tests, NULL, NULL);
}
