/*  The engine without memory: in a run that touches everything, every allocation of
 *  the engine fails once, alone and with all that follow. Nothing breaks, nothing
 *  leaks, and when there is memory again everybody can say everything again.
 */
#include "tests/support/engine_poor.h"

#include "broker/engine_state.h"

/*  ---- The run ---- */

#define TOKEN 7 /* of the anchor "later"; beyond it those of the sessions 1 and 2 */

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;

static void move (client_t *client)
{
    hws_put_u32 (client->address.id + 4, ++s_world.address_count);
    client_hello (client);
}

static void open_named (client_t *client, uint64_t open_id, const char *name)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN,
                             .as.open = {.open_id = open_id,
                                         .kind = *name == 'x' ? HWS_KIND_SPSC : HWS_KIND_MPSC,
                                         .dedicated = strcmp (name, "dedicated") == 0}};
    message.as.open.cancel_token = *name == 'l' ? TOKEN : 0;
    strcpy (message.as.open.name, name);
    client_ask (client, &message);
}

static void attach_named (client_t *client, uint64_t session_id, const char *name)
{
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.session_id = session_id, .label = "worker", .wait_ms = 500}};
    message.as.attach.cancel_token = session_id <= 2 ? TOKEN + session_id : 0;
    strcpy (message.as.attach.anchor, name);
    client_ask (client, &message);
}

static void cancel_token (client_t *client, uint64_t token, const char *reason)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = token};
    strcpy (message.as.token.reason, reason);
    client_ask (client, &message);
}

/*  Sends for every stream of the client, from where the engine expects it.  */
static void send_all (client_t *client, uint32_t count, size_t size)
{
    const hws_peer_t *const peer = hws_peer_of_client (s_world.engine, &client->id);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    for (hws_link_t *link = peer ? peer->seats.head : NULL; link; link = link->next) {
        const hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_peer);
        stream_t stream = {.session_id = seat->session_id, .next_seq = seat->next_seq};
        if (batch.size + count * size < 15000) {
            batch_add_run (&batch, count ? stream_records (&stream, count, size)
                                         : stream_ending (&stream, HWS_RUN_DETACHED));
        }
    }
    batch_send (&batch, client);
}

static void acknowledge_all (void)
{
    for (hws_link_t *link = s_world.engine->anchors.head; link; link = link->next) {
        const hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, in_engine);
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_ACK);
        for (hws_link_t *at = anchor->seats.head; at; at = at->next) {
            const hws_seat_t *const seat = hws_container_of (at, hws_seat_t, in_anchor);
            batch_add_ack (&batch, (hws_ack_t){.stream = seat->routing_session_id,
                                               .acked_seq = seat->high_seq,
                                               .acked_bytes = seat->high_bytes});
        }
        batch_send (&batch, s_receiver);
    }
}

static hws_handle_t handle_named (const char *name)
{
    const hws_anchor_t *const anchor = hws_anchor_named (s_world.engine, name);
    return anchor ? anchor->handle : (hws_handle_t){0};
}

static void run_through_everything (void)
{
    move (s_receiver);
    move (s_sender);
    move (s_other);
    open_named (s_receiver, 1, "a");
    open_named (s_other, 1, "b");
    attach_named (s_sender, 1, "a");
    attach_named (s_sender, 2, "a");
    attach_named (s_sender, 3, "b");
    attach_named (s_sender, 4, "later");
    attach_named (s_sender, 5, "dedicated");
    attach_named (s_other, 1, "a");
    open_named (s_other, 2, "x");
    attach_named (s_sender, 6, "x");
    cancel_token (s_other, TOKEN + 9, "too early");
    send_all (s_sender, 3, 100);
    send_all (s_sender, 1, 4500); /* for two receivers: split */
    send_all (s_other, 1, 9000);  /* forwarded */
    acknowledge_all ();
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    batch_add_window (&batch, (hws_window_t){.stream = 1, .want_bytes = 100000});
    batch_send (&batch, s_sender);
    s_receiver->is_full = true;
    send_all (s_sender, 1, 10);
    send_all (s_other, 1, 9000);
    anchor_cancel (s_receiver, handle_named ("a"), 3, "stop");
    world_advance (&s_world, 30);
    s_receiver->is_full = false;
    world_advance (&s_world, 30);
    client_send_frames (s_sender, hws_bytes_of_text ("FROB"), "{\"id\":\"1\"}");
    client_send_frames (s_sender, hws_bytes ("\x01\x01\0\x01\0\0\0\0", 8), NULL);
    move (s_receiver);
    open_named (s_receiver, 1, "a");
    open_named (s_receiver, 2, "later");
    open_named (s_receiver, 3, "dedicated");
    attach_named (s_other, 2, "dedicated");
    cancel_token (s_other, TOKEN + 2, "not wanted");
    client_ping (s_sender);
    send_all (s_sender, 0, 0);
    acknowledge_all ();
    hws_engine_peer_gone (s_world.engine, s_world.now, &s_other->address);
    world_advance (&s_world, 1000);
    cancel_token (s_sender, TOKEN, "neither");
    anchor_cancel (s_receiver, handle_named ("a"), 0, "enough");
    anchor_cancel (s_receiver, handle_named ("dedicated"), 0, "enough");
    attach_named (s_sender, 1, "a");
    hws_control_t bye = {.verb = HWS_VERB_BYE};
    client_ask (s_sender, &bye);
    world_advance (&s_world, WORLD_GRACE_MS);
}

/*  Everybody says everything again, as after a RESYNC, and it works.  */
static void begin_anew (void)
{
    const hws_handle_t handle = (move (s_receiver), client_forget (s_receiver),
                                 anchor_open (s_receiver, 100, "fresh", NULL));
    move (s_sender);
    client_forget (s_sender);
    stream_t stream = stream_attach (s_sender, 100, handle);
    client_take_run (s_receiver, HWS_RUN_ATTACHED);
    stream_send (&stream, 2, 8);
    stream_send (&stream, 1, 9000);
    stream_end (&stream);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 0, 2);
    expect_run (s_receiver, HWS_RUN_RECORDS, stream.routing, 2, 1);
    expect_run (s_receiver, HWS_RUN_DETACHED, stream.routing, 3, 1);
    anchor_ack (s_receiver, stream.routing, stream.next_seq, stream.next_bytes, true);
    assert_int_equal (client_take_grant (s_sender)->acked_seq, 4);
}

static size_t fail_the_nth (size_t n)
{
    const hws_engine_options_t options = world_options ();
    begin_with (&options);
    s_world.is_poor = true;
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);

    s_failures = 0;
    s_countdown = n;
    run_through_everything ();
    s_countdown = 0;

    begin_anew ();
    return s_failures;
}

static void begin_attached (stream_t *stream)
{
    s_world.is_poor = true;
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    *stream = stream_attach (s_sender, 1, anchor_open (s_receiver, 1, "", NULL));
    stream_send (stream, 2, 8);
}

static void grant_that_could_not_be_made_comes_with_the_next_acknowledgement (void **state)
{
    (void) state;
    stream_t stream;
    begin_attached (&stream);
    s_countdown = 1;
    anchor_ack (s_receiver, stream.routing, 1, 12, false);
    assert_int_equal (s_countdown, 0);
    client_expect_silence (s_sender);

    anchor_ack (s_receiver, stream.routing, 2, 24, false);

    assert_int_equal (client_take_grant (s_sender)->acked_seq, 2);
}

/*  ---- Endings ---- */

/*  Lets the time pass, and there is no memory for what it brings.  */
static void live_without_memory (hws_ms_t length_ms)
{
    s_failures = 0;
    s_is_for_good = true;
    s_countdown = 1;
    world_advance (&s_world, length_ms);
    s_countdown = 0;
    s_is_for_good = false;
    assert_true (s_failures > 0);
}

/*  The seat itself is what is kept of an ending: when there was no memory even for the run,
 *  both ends are made to say everything again, and hear it then, once.  */
static void ending_that_the_broker_made_without_memory_reaches_both_ends (void **state)
{
    (void) state;
    stream_t stream;
    begin_attached (&stream);
    s_receiver->is_beating = true;
    client_forget (s_receiver);
    client_disconnect (s_sender);
    world_advance (&s_world, WORLD_GRACE_MS - 1);
    s_receiver->is_beating = false; /* a PING that cannot be read makes for RESYNC too */

    live_without_memory (1);

    assert_int_equal (hws_engine_stats (s_world.engine)->dropped, 1);
    assert_null (client_find_run (s_receiver));
    client_ping (s_receiver);
    client_take (s_receiver, HWS_VERB_RESYNC);
    client_hello (s_receiver);
    anchor_open (s_receiver, 1, "", NULL);
    expect_run (s_receiver, HWS_RUN_ATTACHED, stream.routing, 0, 0);
    expect_ending (s_receiver, stream.routing, HWS_RUN_DROPPED, "transport");
    assert_null (client_find_run (s_receiver));
    anchor_ack (s_receiver, stream.routing, 0, 0, true);
    client_reconnect (s_sender);
    stream_ask (s_sender, 1, stream.handle);
    assert_string_equal (client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok.ending,
                         "dropped");
}

static void ending_that_was_acknowledged_without_memory_is_remembered (void **state)
{
    (void) state;
    stream_t stream;
    begin_attached (&stream);
    stream_end (&stream);
    client_forget (s_sender);

    s_is_for_good = true;
    s_countdown = 1;
    anchor_ack (s_receiver, stream.routing, stream.next_seq, stream.next_bytes, true);
    s_countdown = 0;
    s_is_for_good = false;

    assert_int_equal (hws_engine_counts (s_world.engine).seats, 0);
    assert_null (client_find_grant (s_sender)); /* there was no memory for it */
    client_ping (s_sender);
    client_take (s_sender, HWS_VERB_RESYNC);
    client_hello (s_sender);
    client_forget (s_sender);
    stream_ask (s_sender, 1, stream.handle);
    const hws_attach_ok_t *const ok = &client_take_ok (s_sender, HWS_VERB_ATTACH)->as.attach_ok;
    assert_true (ok->has_ended); /* and not seated for a second life */
    assert_string_equal (ok->ending, "detached");
    assert_int_equal (ok->acked_seq, 3);
}

static void anchor_that_ended_without_memory_is_remembered (void **state)
{
    (void) state;
    s_world.is_poor = true;
    s_receiver = client_connect (&s_world);
    s_receiver->is_beating = true;
    const hws_open_t open = {.unattached_timeout_ms = {HWS_VALUE, 700}};
    const hws_handle_t handle = anchor_open (s_receiver, 1, "", &open);

    live_without_memory (700);

    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
    assert_null (client_find_control (s_receiver, HWS_VERB_ANCHOR_CLOSED));
    client_ping (s_receiver);
    client_take (s_receiver, HWS_VERB_RESYNC);
    client_hello (s_receiver);
    hws_control_t again = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
    client_ask (s_receiver, &again);
    const hws_anchor_closed_t *const closed =
        &client_take (s_receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_string_equal (closed->code, "expired");
    assert_true (hws_handle_equal (closed->handle, handle));
}

/*  ---- Tokens ---- */

/*  Whatever is short: a cancel that was answered Ok holds, one that was not may be asked
 *  again; none is lost in silence.  */
static void cancel_that_cannot_be_remembered_is_refused (void **state)
{
    (void) state;
    s_is_for_good = false;
    size_t refused_count = 0;
    bool did_fail = true;
    for (uint64_t n = 1; did_fail; n++) {
        const hws_engine_options_t options = world_options ();
        begin_with (&options);
        s_world.is_poor = true;
        s_receiver = client_connect (&s_world);
        s_sender = client_connect (&s_world);
        const hws_handle_t handle = anchor_open (s_receiver, 1, "a", NULL);

        s_countdown = n;
        cancel_token (s_receiver, TOKEN + 1, "not wanted");
        did_fail = s_countdown == 0;
        s_countdown = 0;

        const hws_control_t *const answer = client_find_control (s_receiver, HWS_VERB_CANCEL_TOKEN);
        const bool is_ok = answer && answer->form == HWS_FORM_OK;
        const bool is_refused = answer && answer->form == HWS_FORM_ERR;
        refused_count += is_refused;
        assert_true (!is_refused || answer->as.refusal.code == HWS_ELIMIT);
        attach_named (s_sender, 1, "a");
        if (is_ok) {
            client_take_refusal (s_sender, HWS_VERB_ATTACH, HWS_ECANCELLED);
        } else if (is_refused) {
            client_take_ok (s_sender, HWS_VERB_ATTACH);
        }
        anchor_cancel (s_receiver, handle, 0, "");
    }
    assert_true (refused_count > 0);
}

/*  A stream that its token does not find would escape the cancel.  */
static void stream_that_was_seated_is_found_by_its_token (void **state)
{
    (void) state;
    s_is_for_good = false;
    size_t refused_count = 0;
    bool did_fail = true;
    for (uint64_t n = 1; did_fail; n++) {
        const hws_engine_options_t options = world_options ();
        begin_with (&options);
        s_world.is_poor = true;
        s_receiver = client_connect (&s_world);
        s_sender = client_connect (&s_world);
        anchor_open (s_receiver, 1, "a", NULL);

        s_countdown = n;
        attach_named (s_sender, 1, "a");
        did_fail = s_countdown == 0;
        s_countdown = 0;
        cancel_token (s_receiver, TOKEN + 1, "");

        const hws_control_t *const answer = client_find_control (s_sender, HWS_VERB_ATTACH);
        refused_count += answer && answer->form == HWS_FORM_ERR;
        const hws_peer_t *const peer = hws_peer_of_client (s_world.engine, &s_sender->id);
        const hws_seat_t *const seat = hws_seat_of_session (s_world.engine, peer, 1);
        assert_true (seat == NULL || seat->is_ending_ours);
        assert_true (seat || answer == NULL || answer->form == HWS_FORM_ERR);
    }
    assert_true (refused_count > 0);
}

static void every_allocation_fails_once (void **state)
{
    (void) state;
    s_is_for_good = false;

    size_t n = 1;
    while (fail_the_nth (n) > 0) {
        n++;
    }

    print_message ("%zu allocations\n", n - 1);
    assert_true (n > 100);
}

static void memory_is_gone_for_good_from_every_allocation_on (void **state)
{
    (void) state;
    s_is_for_good = true;

    for (size_t n = 1; fail_the_nth (n) > 0; n++) {
    }
}

static void new_engine_without_memory_is_refused (void **state)
{
    (void) state;
    const hws_engine_options_t options = world_options ();
    size_t n = 0;
    int rc;
    s_is_for_good = false;
    do {
        hws_engine_t *engine = NULL;
        s_countdown = ++n;
        s_depth = 1;
        rc = hws_engine_new (&engine, &options);
        s_depth = 0;
        s_countdown = 0;
        assert_true (rc == 0 || (rc == HWS_ENO_MEMORY && engine == NULL));
        hws_engine_destroy (&engine);
    } while (rc != 0);
    assert_true (n > 3);
}

int main (void)
{
    poor_begin ();
    const struct CMUnitTest tests[] = {
        TEST (grant_that_could_not_be_made_comes_with_the_next_acknowledgement),
        TEST (ending_that_the_broker_made_without_memory_reaches_both_ends),
        TEST (ending_that_was_acknowledged_without_memory_is_remembered),
        TEST (anchor_that_ended_without_memory_is_remembered),
        TEST (cancel_that_cannot_be_remembered_is_refused),
        TEST (stream_that_was_seated_is_found_by_its_token),
        TEST (every_allocation_fails_once),
        TEST (memory_is_gone_for_good_from_every_allocation_on),
        TEST (new_engine_without_memory_is_refused),
    };
    return cmocka_run_group_tests_name ("engine without memory", tests, NULL, NULL);
}
