/*  The engine without memory: resume is whole, or there is nothing of it, whichever of its
 *  allocations fails; and with memory again it works.
 */
#include "tests/support/engine_poor.h"

enum { RECORD = 12 }; /* bytes that a record of 8 takes in the stream */

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_live, s_exiting, s_over, s_unseen;

static void begin_streams (void)
{
    const hws_engine_options_t options = world_options ();
    begin_with (&options);
    s_world.is_poor = true;
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "results", NULL);
    s_live = stream_attach (s_sender, 1, s_handle);
    s_exiting = stream_attach (s_sender, 2, s_handle);
    s_over = stream_attach (s_sender, 3, s_handle);
    s_unseen = stream_attach (s_other, 4, s_handle);
    stream_send (&s_live, 2, 8);
    client_forget (s_receiver);
    client_forget (s_sender);
    client_forget (s_other);
}

static void connect_again (void)
{
    client_reconnect (s_receiver);
    client_reconnect (s_sender);
    client_reconnect (s_other);
}

static void resume (void)
{
    const hws_open_t open = {.name = "results",
                             .cancel_token = 9,
                             .resume = {.highest_sender_id = 3,
                                        .unseen_count = 1,
                                        .unseen = {{s_unseen.sender_id, s_unseen.sender_id + 1}}}};
    hws_position_t exiting = stream_position (&s_exiting, 1, 20, 0, 0);
    hws_position_t over = stream_position (&s_over, 1, 20, 1, 20);
    exiting.flags = HWS_POSITION_ENDED;
    over.flags = HWS_POSITION_ENDED | HWS_POSITION_CONSUMED | HWS_POSITION_LAST;
    exiting.type = over.type = HWS_RUN_DETACHED;
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, stream_position (&s_live, 1, RECORD, 1, RECORD));
    batch_add_position (&batch, exiting);
    batch_add_position (&batch, over);
    anchor_resuming (s_receiver, 1, s_handle, &open);
    batch_send (&batch, s_receiver);
}

static void expect_all_or_nothing (void)
{
    const hws_engine_counts_t counts = hws_engine_counts (s_world.engine);
    const size_t anchors = counts.anchors;
    assert_true (anchors <= 1);
    assert_int_equal (counts.tombstones, anchors);
    assert_true (anchors ? counts.seats >= 2 : counts.seats == 0);
}

static void expect_resumed (client_t *client, stream_t *stream, uint64_t next_seq)
{
    client_forget (client);
    stream_resume (stream, 0, 0);
    const hws_attach_ok_t *const ok = &client_take_ok (client, HWS_VERB_ATTACH)->as.attach_ok;
    assert_int_equal (ok->sender_id, stream->sender_id);
    assert_int_equal (ok->next_seq, next_seq);
}

/*  Returns whether there was something left to fail.  */
static bool fail_the_nth (size_t n, bool is_for_good)
{
    begin_streams ();
    world_restart (&s_world);
    connect_again ();

    s_is_for_good = is_for_good;
    s_failures = 0;
    s_countdown = n;
    stream_resume (&s_live, 0, 0);
    resume ();
    expect_all_or_nothing ();
    stream_resume (&s_unseen, 0, 0);
    stream_resume (&s_live, 0, 0);
    stream_resume (&s_over, 0, 0);
    s_countdown = 0;

    connect_again ();
    client_forget (s_receiver);
    resume ();
    client_take_ok (s_receiver, HWS_VERB_OPEN);
    expect_resumed (s_sender, &s_live, 1);
    expect_resumed (s_sender, &s_exiting, 1);
    expect_resumed (s_other, &s_unseen, 0);
    assert_int_equal (hws_engine_counts (s_world.engine).seats, 3);
    assert_int_equal (hws_engine_counts (s_world.engine).tombstones, 1);
    return s_failures > 0;
}

static void resume_is_whole_or_nothing_when_one_allocation_fails (void **state)
{
    (void) state;
    size_t n = 1;

    while (fail_the_nth (n, false)) {
        n++;
    }

    print_message ("%zu allocations\n", n - 1);
    assert_true (n > 30);
}

static void resume_is_whole_or_nothing_when_all_fail_from_one_on (void **state)
{
    (void) state;

    for (size_t n = 1; fail_the_nth (n, true); n++) {
    }
}

/*  Either the one or the other has it.  */
static void takeover_without_memory_leaves_the_anchor_where_it_is (void **state)
{
    (void) state;
    bool is_left = true;
    size_t refused_count = 0;
    for (size_t n = 1; is_left; n++) {
        begin_streams ();
        s_is_for_good = false;
        s_failures = 0;
        s_countdown = n;

        anchor_resume (s_other, 5, s_handle, 0, NULL, 0);

        s_countdown = 0;
        is_left = s_failures > 0;
        const hws_control_t *const answer = client_find_control (s_other, HWS_VERB_OPEN);
        const bool is_refused = answer && answer->form == HWS_FORM_ERR;
        refused_count += is_refused;
        anchor_ack (s_receiver, s_live.routing, 1, RECORD, false);
        if (is_refused) {
            assert_int_equal (client_take_grant (s_sender)->acked_seq, 1);
            client_expect_silence (s_receiver);
        }
        client_forget (s_other);
        anchor_resume (s_other, 5, s_handle, 0, NULL, 0);
        client_take_ok (s_other, HWS_VERB_OPEN);
        assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
    }
    assert_true (refused_count > 1);
}

int main (void)
{
    poor_begin ();
    const struct CMUnitTest tests[] = {
        TEST (resume_is_whole_or_nothing_when_one_allocation_fails),
        TEST (resume_is_whole_or_nothing_when_all_fail_from_one_on),
        TEST (takeover_without_memory_leaves_the_anchor_where_it_is),
    };
    return cmocka_run_group_tests_name ("resume without memory", tests, NULL, NULL);
}
