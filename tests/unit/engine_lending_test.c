/*  The engine: windows that are lent to who uses them up, and asked back from who does not.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"

/*  Half of the buffer is for floors; so much can be lent.  */
enum { FLOOR = 1024, BUFFER = 131072, POOL = BUFFER / 2, WINDOW_MAX = 32768, SENDERS = 10 };

static client_t *s_receiver;
static client_t *s_sender;
static hws_handle_t s_handle;
static stream_t s_streams[SENDERS];

static int begin_open (void **state)
{
    begin (state);
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = BUFFER;
    options.anchors.window_bytes_min = FLOOR;
    options.anchors.window_bytes_max = WINDOW_MAX;
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    for (uint64_t i = 0; i < SENDERS; i++) {
        s_streams[i] = stream_attach (s_sender, 1 + i, s_handle);
    }
    client_forget (s_receiver);
    return 0;
}

static const hws_seat_t *seat_of (const stream_t *stream)
{
    return hws_seat_of_routing (s_world.engine, stream->routing);
}

static uint64_t window_of (const stream_t *stream)
{
    return stream->limit_bytes - seat_of (stream)->acked_bytes;
}

static uint64_t reserved (void)
{
    const hws_anchor_t *const anchor = hws_anchor_find (s_world.engine, s_handle);
    assert_true (anchor->reserved_bytes <= BUFFER);
    return anchor->reserved_bytes;
}

/*  Takes a GRANT in, as a sender does: limits rise. Returns its flags.  */
static uint32_t take_in (const hws_grant_t *grant)
{
    stream_t *const stream = &s_streams[grant->stream - 1];
    if (grant->limit_seq > stream->limit_seq) {
        stream->limit_seq = grant->limit_seq;
    }
    if (grant->limit_bytes > stream->limit_bytes) {
        stream->limit_bytes = grant->limit_bytes;
    }
    return grant->flags;
}

/*  Takes in all GRANTs; returns the streams that were asked to give back, as bits.  */
static unsigned take_in_all (void)
{
    unsigned asked = 0;
    const hws_grant_t *grant;
    while ((grant = client_find_grant (s_sender))) {
        const uint64_t stream = grant->stream;
        if (take_in (grant) & HWS_GRANT_RETURN) {
            asked |= 1u << (stream - 1);
        }
    }
    return asked;
}

static void say_window (const stream_t *stream, uint64_t limit_bytes, uint64_t want_bytes)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = stream->session_id,
                                             .limit_seq = stream->limit_seq,
                                             .limit_bytes = limit_bytes,
                                             .want_bytes = want_bytes});
    batch_send (&batch, s_sender);
}

static void want (const stream_t *stream, uint64_t bytes)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = stream->session_id, .want_bytes = bytes});
    batch_send (&batch, s_sender);
}

/*  Gives back all that is not sent.  */
static void give_back (stream_t *stream)
{
    stream->limit_bytes = stream->next_bytes;
    say_window (stream, stream->limit_bytes, 0);
}

/*  Takes in all GRANTs, and whoever is asked gives back all that it can. Returns who was.  */
static unsigned obey_all (void)
{
    const unsigned asked = take_in_all ();
    for (unsigned i = 0; i < SENDERS; i++) {
        if (asked >> i & 1) {
            give_back (&s_streams[i]);
        }
    }
    take_in_all ();
    return asked;
}

static void acknowledge (const stream_t *stream)
{
    anchor_ack (s_receiver, stream->routing, stream->next_seq, stream->next_bytes, false);
    client_forget (s_receiver);
}

/*  Sends `size` bytes of wire in one record.  */
static void send_bytes (stream_t *stream, uint64_t size)
{
    stream_send (stream, 1, size - HWS_RECORD_HEADER_SIZE);
}

/*  Uses the whole window up, and the receiver consumes it.  */
static void use_up (stream_t *stream)
{
    while (stream->next_bytes < stream->limit_bytes) {
        const uint64_t left = stream->limit_bytes - stream->next_bytes;
        send_bytes (stream, left < 8000 ? left : left < 8004 ? left - 4 : 8000);
    }
    acknowledge (stream);
}

/*  ---- Lending ---- */

static void fast_sender_gets_the_largest_window_at_once (void **state)
{
    (void) state;

    send_bytes (&s_streams[0], FLOOR); /* nobody has acknowledged any of it */
    take_in_all ();

    assert_int_equal (window_of (&s_streams[0]), WINDOW_MAX);
}

static void sender_of_little_at_a_time_keeps_its_floor (void **state)
{
    (void) state;

    for (int i = 0; i < 100; i++) {
        send_bytes (&s_streams[0], FLOOR / 2 - 1);
        acknowledge (&s_streams[0]);
        take_in_all ();
    }

    assert_int_equal (window_of (&s_streams[0]), FLOOR);
}

static void senders_at_full_speed_share_equally_and_nobody_is_asked (void **state)
{
    (void) state;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++) {
            use_up (&s_streams[i]);
            obey_all ();
        }
    }

    const uint64_t asked_before = hws_engine_stats (s_world.engine)->returns;
    for (int i = 0; i < 100; i++) {
        use_up (&s_streams[i % 4]);
        take_in_all ();
    }

    assert_int_equal (hws_engine_stats (s_world.engine)->returns, asked_before);

    for (int i = 0; i < 4; i++) {
        assert_int_equal (window_of (&s_streams[i]), FLOOR + POOL / 4);
    }
    assert_int_equal (reserved (), POOL + SENDERS * FLOOR);
}

/*  Nobody tells it: the limits stand still while others have come to share.  */
static void active_sender_above_its_share_shrinks_by_itself (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    use_up (&s_streams[1]);
    take_in_all ();
    assert_int_equal (window_of (&s_streams[0]), WINDOW_MAX - FLOOR);
    use_up (&s_streams[2]); /* is asked for, and the first one does not answer yet */
    const unsigned asked = take_in_all ();
    assert_int_equal (asked, 1);
    say_window (&s_streams[0], s_streams[0].limit_bytes, 0);
    take_in_all ();

    uint64_t before = window_of (&s_streams[0]);
    while (before > FLOOR + POOL / 3) {
        send_bytes (&s_streams[0], 4000);
        acknowledge (&s_streams[0]);
        take_in_all ();
        assert_true (window_of (&s_streams[0]) < before);
        before = window_of (&s_streams[0]);
    }

    use_up (&s_streams[0]);
    take_in_all ();
    assert_int_equal (window_of (&s_streams[0]), FLOOR + POOL / 3);
}

static void sender_that_was_slow_for_a_while_shrinks_to_its_floor (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    take_in_all ();

    for (int i = 0; i < WINDOW_MAX / 400; i++) {
        send_bytes (&s_streams[0], 400);
        acknowledge (&s_streams[0]);
        take_in_all ();
    }

    assert_int_equal (window_of (&s_streams[0]), FLOOR);
}

/*  ---- RETURN ---- */

/*  Nine had it all, one after the other, and are idle. The tenth gets its share, and a large
 *  record its room.  */
static void idle_window_is_lent_on (void **state)
{
    (void) state;
    for (int i = 0; i < SENDERS - 1; i++) {
        do {
            use_up (&s_streams[i]);
            obey_all ();
        } while (window_of (&s_streams[i]) < FLOOR + POOL / SENDERS);
    }
    stream_t *const tenth = &s_streams[SENDERS - 1];

    int rounds = 0;
    while (window_of (tenth) < FLOOR + POOL / SENDERS) {
        use_up (tenth);
        obey_all ();
        assert_true (++rounds < 4);
    }
    use_up (tenth);
    take_in_all ();
    want (tenth, POOL); /* half of the buffer */
    obey_all ();

    assert_int_equal (window_of (tenth), POOL);
    assert_int_equal (hws_engine_stats (s_world.engine)->credit_violations, 0);
    reserved ();
}

static void longest_unused_is_asked_first_and_only_as_many_as_are_needed (void **state)
{
    (void) state;
    for (int i = 0; i < 2; i++) {
        use_up (&s_streams[i]);
        take_in_all ();
    }
    send_bytes (&s_streams[0], 100); /* is used once more */
    acknowledge (&s_streams[0]);
    assert_int_equal (take_in_all (), 0);

    use_up (&s_streams[2]);

    assert_int_equal (take_in_all (), 1 << 1);
}

static void who_was_asked_is_told_no_limit_until_it_answers (void **state)
{
    (void) state;
    stream_t *const first = &s_streams[0];
    use_up (first);
    use_up (&s_streams[1]);
    use_up (&s_streams[2]);
    assert_int_equal (take_in_all (), 1);

    send_bytes (first, 4000);
    acknowledge (first);
    const hws_grant_t waiting = *client_take_grant (s_sender);
    take_in (&waiting);
    give_back (first);
    const hws_grant_t answer = *client_take_grant (s_sender);

    assert_int_equal (waiting.acked_seq, first->next_seq);
    assert_int_equal (waiting.limit_bytes, 0);
    assert_int_equal (waiting.flags, HWS_GRANT_RETURN); /* said again: it may have been lost */
    assert_int_equal (answer.limit_bytes, first->next_bytes + FLOOR);
    assert_int_equal (answer.flags, 0);
}

static void late_answer_is_not_taken_for_the_next_one (void **state)
{
    (void) state;
    stream_t *const first = &s_streams[0];
    use_up (first);
    use_up (&s_streams[1]);
    use_up (&s_streams[2]);
    assert_int_equal (take_in_all (), 1);
    const hws_window_t late = {.stream = first->session_id,
                               .limit_seq = first->limit_seq,
                               .limit_bytes = first->next_bytes};
    give_back (first);
    take_in_all ();
    for (int i = 1; i < 3; i++) {
        use_up (&s_streams[i]);
        take_in_all ();
    }
    use_up (first);
    take_in_all ();
    want (&s_streams[3], POOL);
    assert_true (seat_of (first)->is_asked);
    const uint64_t before = seat_of (first)->limit_bytes;

    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, late);
    batch_send (&batch, s_sender);

    assert_true (seat_of (first)->is_asked);
    assert_int_equal (seat_of (first)->limit_bytes, before);
}

static void who_has_answered_is_asked_again_when_more_of_it_is_acknowledged (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    use_up (&s_streams[1]);
    want (&s_streams[2], POOL);
    assert_int_equal (take_in_all (), 3);
    for (int i = 0; i < 2; i++) {
        say_window (&s_streams[i], s_streams[i].limit_bytes, 0); /* needs it all */
    }
    assert_int_equal (take_in_all (), 0);
    want (&s_streams[2], POOL);
    assert_int_equal (take_in_all (), 0);

    send_bytes (&s_streams[1], 4000);
    acknowledge (&s_streams[1]);

    assert_int_equal (take_in_all (), 1 << 1);
}

static void attach_answer_cancels_the_return (void **state)
{
    (void) state;
    stream_t *const first = &s_streams[0];
    use_up (first);
    use_up (&s_streams[1]);
    use_up (&s_streams[2]);
    assert_int_equal (take_in_all (), 1);

    stream_attach_again (first);
    give_back (first); /* comes too late */

    client_expect_silence (s_sender);
    assert_int_equal (seat_of (first)->limit_bytes, WINDOW_MAX);
    want (&s_streams[3], POOL);
    assert_int_equal (take_in_all () & 1, 1); /* it may be asked again */
}

static void who_is_away_is_not_asked (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t away = stream_attach (other, 77, s_handle);
    client_forget (s_receiver);
    use_up (&away);
    away.limit_bytes = client_take_grant (other)->limit_bytes;
    use_up (&s_streams[0]);
    take_in_all ();
    const uint64_t asked_before = hws_engine_stats (s_world.engine)->returns;
    hws_engine_peer_gone (s_world.engine, s_world.now, &other->address);

    want (&s_streams[1], POOL);

    assert_int_equal (take_in_all (), 1);
    assert_int_equal (hws_engine_stats (s_world.engine)->returns, asked_before + 1);
}

/*  Its want came behind a RETURN that it never answers: its connection ended. Neither holds up
 *  the others until it is back.  */
static void who_goes_away_while_asked_holds_nobody_up (void **state)
{
    (void) state;
    client_t *const other = client_connect (&s_world);
    stream_t away = stream_attach (other, 77, s_handle);
    client_forget (s_receiver);
    use_up (&away);
    use_up (&s_streams[0]);
    client_forget (other);
    use_up (&s_streams[1]);
    assert_int_equal (client_take_grant (other)->flags, HWS_GRANT_RETURN);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = away.session_id, .want_bytes = POOL});
    batch_send (&batch, other);
    hws_engine_peer_gone (s_world.engine, s_world.now, &other->address);

    want (&s_streams[2], 2 * FLOOR);
    obey_all ();
    assert_int_equal (window_of (&s_streams[2]), 2 * FLOOR);
    use_up (&s_streams[3]);
    take_in_all ();

    assert_true (window_of (&s_streams[3]) > FLOOR);
    reserved ();
}

/*  ---- Large records ---- */

static void nothing_is_lent_while_a_large_record_waits (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    want (&s_streams[1], POOL);
    assert_int_equal (take_in_all (), 1);

    use_up (&s_streams[2]);

    assert_int_equal (take_in_all () & ~1u, 0);
    assert_int_equal (window_of (&s_streams[2]), FLOOR);
}

/*  The room of one large record is the next one's as soon as it is acknowledged, and before
 *  that if it is given back.  */
static void raised_floors_are_recalled_in_order_of_asking (void **state)
{
    (void) state;
    want (&s_streams[0], POOL);
    want (&s_streams[1], POOL);
    want (&s_streams[2], POOL / 2);
    want (&s_streams[3], POOL / 2);
    assert_int_equal (take_in_all (), 1);
    assert_int_equal (window_of (&s_streams[0]), POOL);

    give_back (&s_streams[0]); /* the program does not want it any more */
    assert_int_equal (take_in_all (), 2);
    assert_int_equal (window_of (&s_streams[1]), POOL); /* was told with the RETURN */
    assert_int_equal (window_of (&s_streams[2]), FLOOR);
    say_window (&s_streams[1], s_streams[1].limit_bytes, 0); /* needs it all */
    take_in_all ();
    use_up (&s_streams[1]);
    take_in_all ();

    assert_int_equal (window_of (&s_streams[0]), FLOOR);
    assert_int_equal (window_of (&s_streams[2]), POOL / 2);
    assert_int_equal (window_of (&s_streams[3]), POOL / 2);
    reserved ();
}

static void who_waits_with_a_large_record_gives_back_for_who_asked_before (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    use_up (&s_streams[1]);
    take_in_all ();

    want (&s_streams[0], POOL);
    want (&s_streams[1], POOL);
    assert_int_equal (take_in_all (), 1 << 1);
    give_back (&s_streams[1]);
    assert_int_equal (take_in_all (), 1 << 0); /* for the second, who waits on */

    assert_int_equal (window_of (&s_streams[0]), POOL);
    assert_int_equal (window_of (&s_streams[1]), FLOOR);
}

/*  ---- Endings ---- */

static void ending_frees_what_was_lent (void **state)
{
    (void) state;
    use_up (&s_streams[0]);
    use_up (&s_streams[1]);
    want (&s_streams[2], POOL);
    assert_int_equal (take_in_all (), 3); /* and nobody answers */

    stream_end (&s_streams[0]);
    anchor_cancel (s_receiver, s_handle, s_streams[1].sender_id, "");

    anchor_ack (s_receiver, s_streams[0].routing, s_streams[0].next_seq, s_streams[0].next_bytes,
                true);
    take_in_all ();
    assert_int_equal (window_of (&s_streams[2]), POOL);
    reserved ();
}

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown (name, begin_open, end)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (fast_sender_gets_the_largest_window_at_once),
        TEST (sender_of_little_at_a_time_keeps_its_floor),
        TEST (senders_at_full_speed_share_equally_and_nobody_is_asked),
        TEST (active_sender_above_its_share_shrinks_by_itself),
        TEST (sender_that_was_slow_for_a_while_shrinks_to_its_floor),
        TEST (idle_window_is_lent_on),
        TEST (longest_unused_is_asked_first_and_only_as_many_as_are_needed),
        TEST (who_was_asked_is_told_no_limit_until_it_answers),
        TEST (late_answer_is_not_taken_for_the_next_one),
        TEST (who_has_answered_is_asked_again_when_more_of_it_is_acknowledged),
        TEST (attach_answer_cancels_the_return),
        TEST (who_is_away_is_not_asked),
        TEST (who_goes_away_while_asked_holds_nobody_up),
        TEST (nothing_is_lent_while_a_large_record_waits),
        TEST (raised_floors_are_recalled_in_order_of_asking),
        TEST (who_waits_with_a_large_record_gives_back_for_who_asked_before),
        TEST (ending_frees_what_was_lent),
    };
    return cmocka_run_group_tests_name ("engine lending", tests, NULL, NULL);
}
