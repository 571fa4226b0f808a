/*  What the engine's work takes: allocations of messages and runs, memory of what is idle, how
 *  often attaches that wait are tried again.
 *
 *  Linked so that allocations, the calls of the engine that work on messages, and new tries of
 *  attaches go through the functions here.
 */
#include "tests/support/engine_test.h"

#include "broker/answer.h"
#include "broker/engine_state.h"

#include <malloc.h>

enum {
    RUNS = 1000,
    SMALL_RUNS = 100,
    MESSAGES = 10,
    SEATS = 1000,
    SEAT_BYTES = 512,
    ENDED = 10,
    WAITING = 50
};

static size_t s_depth;   /* inside of calls of the engine */
static size_t s_count;   /* allocations there */
static size_t s_tries;   /* of attaches that wait */
static size_t s_effects; /* messages that were sent, and payloads given back */

/*  ---- Wrapped ---- */

void *__real_malloc (size_t size);
void *__real_calloc (size_t count, size_t size);
void *__real_realloc (void *block, size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_realloc (void *block, size_t size);

void *__wrap_malloc (size_t size)
{
    s_count += s_depth > 0;
    return __real_malloc (size);
}

void *__wrap_calloc (size_t count, size_t size)
{
    s_count += s_depth > 0;
    return __real_calloc (count, size);
}

void *__wrap_realloc (void *block, size_t size)
{
    s_count += s_depth > 0;
    return __real_realloc (block, size);
}

int __real_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message);
void __real_hws_engine_flush (hws_engine_t *self);
bool __real_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect);
int __wrap_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message);
void __wrap_hws_engine_flush (hws_engine_t *self);
bool __wrap_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect);

int __wrap_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message)
{
    s_depth++;
    const int rc = __real_hws_engine_recv (self, now_ms, from, message);
    s_depth--;
    return rc;
}

void __wrap_hws_engine_flush (hws_engine_t *self)
{
    s_depth++;
    __real_hws_engine_flush (self);
    s_depth--;
}

bool __wrap_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect)
{
    s_depth++;
    const bool is_there = __real_hws_engine_pop (self, effect);
    s_depth--;
    s_effects += is_there;
    return is_there;
}

int __real_hws_attach_try (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                           hws_attach_ok_t *answer, hws_reason_t reason);
int __wrap_hws_attach_try (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                           hws_attach_ok_t *answer, hws_reason_t reason);

int __wrap_hws_attach_try (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                           hws_attach_ok_t *answer, hws_reason_t reason)
{
    s_tries++;
    return __real_hws_attach_try (engine, peer, request, answer, reason);
}

/*  ---- Allocations ---- */

static client_t *s_receiver;
static stream_t s_stream;

static int begin_stream (void **state)
{
    begin (state);
    hws_engine_options_t options = world_options ();
    options.limits.batch_bytes = 65536;
    options.anchors.window_records = 4 * RUNS;
    options.anchors.window_bytes_min = options.anchors.window_bytes_max = 65536;
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    s_stream = stream_attach (client_connect (&s_world), 1, anchor_open (s_receiver, 1, "", NULL));
    client_forget (s_receiver);
    s_receiver->is_deaf = true;
    return 0;
}

/*  Sends one message of so many runs of a record each, and acknowledges it. Returns what the
 *  engine allocated for the message alone.  */
static size_t pass (uint16_t runs)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    for (uint16_t i = 0; i < runs; i++) {
        batch_add_run (&batch, stream_records (&s_stream, 1, 8));
    }
    s_count = 0;
    batch_send (&batch, s_stream.client);
    const size_t count = s_count;
    anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, false);
    client_forget (s_stream.client);
    return count;
}

static void message_that_is_passed_on_whole_takes_one_allocation_however_many_runs (void **state)
{
    (void) state;
    pass (RUNS);

    for (int i = 0; i < MESSAGES; i++) {
        const uint64_t before = hws_engine_stats (s_world.engine)->batches_forwarded;
        assert_int_equal (pass (RUNS), 1);
        assert_true (hws_engine_stats (s_world.engine)->batches_forwarded == before + 1);
    }
}

static void message_that_is_copied_takes_three_allocations_however_many_runs (void **state)
{
    (void) state;
    pass (SMALL_RUNS);

    for (int i = 0; i < MESSAGES; i++) {
        const uint64_t before = hws_engine_stats (s_world.engine)->batches_copied;
        assert_in_range (pass (SMALL_RUNS), 1, 3);
        assert_true (hws_engine_stats (s_world.engine)->batches_copied == before + 1);
    }
}

/*  ---- Memory ---- */

/*  What mallinfo tells is 0 where another allocator is linked, of a sanitizer say.  */
static void idle_seat_takes_at_most_512_bytes (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.senders_per_anchor = options.limits.seats_per_peer = SEATS;
    options.anchors.max_senders.state = HWS_NULL;
    options.anchors.buffer_bytes = SEATS * UINT64_C (65536);
    begin_with (&options);
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    receiver->is_deaf = true;
    const size_t before = mallinfo2 ().uordblks;

    for (uint64_t i = 1; i <= SEATS; i++) {
        stream_attach (sender, i, handle);
    }

    assert_in_range (mallinfo2 ().uordblks - before, 0, SEATS * SEAT_BYTES);
}

/*  ---- Messages ---- */

/*  Each was a message, and a client whose thousand streams ended at once looked as if it did not
 *  read.  */
static void clean_endings_that_are_consumed_together_share_their_grants (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.senders_per_anchor = options.limits.seats_per_peer = SEATS;
    options.limits.exiting_seats = SEATS;
    options.limits.batch_bytes = 65536;
    options.anchors.max_senders.state = HWS_NULL;
    options.anchors.buffer_bytes = SEATS * UINT64_C (65536);
    begin_with (&options);
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_ACK);
    for (uint64_t i = 1; i <= SEATS; i++) {
        stream_t stream = stream_attach (sender, i, handle);
        stream_end (&stream);
        batch_add_ack (&batch, (hws_ack_t){.stream = stream.routing,
                                           .acked_seq = 1,
                                           .acked_bytes = HWS_ENDING_HEADER_SIZE,
                                           .flags = HWS_ACK_ENDED});
    }
    client_forget (sender);
    s_effects = 0;

    batch_send (&batch, receiver);

    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
    assert_in_range (s_effects, 1, 8);
    for (uint64_t i = 1; i <= SEATS; i++) {
        assert_int_equal (client_take_grant (sender)->acked_seq, 1);
    }
}

/*  ---- Attaches that wait ---- */

/*  An anchor with room for two senders: `ENDED` have ended and are not acknowledged, two live,
 *  `WAITING` more wait.  */
static void fill_anchor (stream_t ended[ENDED], stream_t live[2])
{
    hws_engine_options_t options = world_options ();
    options.limits.waiting_attaches = WAITING;
    options.limits.exiting_seats = options.limits.seats_per_peer = ENDED + 2;
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    client_t *const waiting = client_connect (&s_world);
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, 4 * WORLD_WINDOW}};
    const hws_handle_t handle = anchor_open (s_receiver, 1, "", &open);
    for (uint64_t i = 0; i < ENDED; i++) {
        ended[i] = stream_attach (sender, i + 1, handle);
        stream_end (&ended[i]);
    }
    live[0] = stream_attach (sender, ENDED + 1, handle);
    live[1] = stream_attach (sender, ENDED + 2, handle);
    hws_control_t attach = {.verb = HWS_VERB_ATTACH,
                            .as.attach = {.has_handle = true, .handle = handle, .wait_ms = 30000}};
    for (uint64_t i = 0; i < WAITING; i++) {
        attach.as.attach.session_id = i;
        client_ask (waiting, &attach);
    }
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, WAITING);
    client_forget (s_receiver);
    client_forget (sender);
}

static void endings_that_make_no_room_try_no_attach_that_waits (void **state)
{
    (void) state;
    stream_t ended[ENDED], live[2];
    fill_anchor (ended, live);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_ACK);
    for (size_t i = 0; i < ENDED; i++) {
        batch_add_ack (&batch, (hws_ack_t){.stream = ended[i].routing,
                                           .acked_seq = ended[i].next_seq,
                                           .acked_bytes = ended[i].next_bytes,
                                           .flags = HWS_ACK_ENDED});
    }
    s_tries = 0;

    batch_send (&batch, s_receiver);

    assert_int_equal (hws_engine_counts (s_world.engine).seats, 2);
    assert_int_equal (s_tries, 0);
}

static void room_for_one_tries_no_attach_behind_the_first_that_finds_none (void **state)
{
    (void) state;
    stream_t ended[ENDED], live[2];
    fill_anchor (ended, live);
    stream_end (&live[0]);
    s_tries = 0;

    anchor_ack (s_receiver, live[0].routing, live[0].next_seq, live[0].next_bytes, true);

    assert_int_equal (hws_engine_counts (s_world.engine).waiting, WAITING - 1);
    assert_int_equal (s_tries, 2);
}

/*  ---- Resume ---- */

/*  The broker's next life: `SEATS` senders wait for their receiver, which names them all.  */
static void resume_of_thousands_tries_each_attach_once (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.senders_per_anchor = options.limits.seats_per_peer = SEATS;
    options.limits.waiting_attaches = SEATS;
    options.limits.batch_bytes = 65536;
    options.anchors.buffer_bytes = SEATS * UINT64_C (65536);
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    stream_t stream = {.client = sender, .handle = anchor_open (s_receiver, 1, "", NULL)};
    world_restart (&s_world);
    client_reconnect (s_receiver);
    client_reconnect (sender);
    s_receiver->is_deaf = sender->is_deaf = true;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    for (uint64_t i = 1; i <= SEATS; i++) {
        stream.session_id = stream.sender_id = i;
        stream_resume (&stream, 0, 0);
        batch_add_position (&batch, stream_position (&stream, 0, 0, 0, 0));
    }
    assert_int_equal (hws_engine_counts (s_world.engine).waiting, SEATS);
    batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    const hws_open_t open = {.buffer_bytes = {HWS_VALUE, options.anchors.buffer_bytes}};
    anchor_resuming (s_receiver, 1, stream.handle, &open);
    s_tries = s_count = 0;

    batch_send (&batch, s_receiver);

    assert_int_equal (hws_engine_counts (s_world.engine).waiting, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, SEATS);
    assert_int_equal (s_tries, SEATS);
    assert_in_range (s_count, SEATS, 70 * SEATS); /* most of them of the JSON of two answers */
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown (
            message_that_is_passed_on_whole_takes_one_allocation_however_many_runs, begin_stream,
            end),
        cmocka_unit_test_setup_teardown (
            message_that_is_copied_takes_three_allocations_however_many_runs, begin_stream, end),
        TEST (idle_seat_takes_at_most_512_bytes),
        TEST (clean_endings_that_are_consumed_together_share_their_grants),
        TEST (endings_that_make_no_room_try_no_attach_that_waits),
        TEST (room_for_one_tries_no_attach_behind_the_first_that_finds_none),
        TEST (resume_of_thousands_tries_each_attach_once),
    };
    return cmocka_run_group_tests_name ("engine_cost", tests, NULL, NULL);
}
