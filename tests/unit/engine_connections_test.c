/*  The engine: HELLO, OPEN, connections that move, faults of peers, BYE, leaving.
 */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"

/*  ---- HELLO ---- */

static void hello_tells_broker_epoch_and_limits (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);

    client_hello (client);

    const hws_hello_ok_t *const ok = &client_take_ok (client, HWS_VERB_HELLO)->as.hello_ok;
    assert_true (ok->broker_id == 0xb0b0);
    assert_int_equal (ok->epoch, 7);
    assert_int_equal (ok->protocol, 1);
    assert_int_equal (ok->batch_bytes, 16384);
    assert_int_equal (ok->early_records, HWS_EARLY_RECORDS);
    client_expect_silence (client);
}

static void hello_of_another_protocol_is_refused (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    hws_control_t hello = {.verb = HWS_VERB_HELLO,
                           .as.hello = {.client_id = client->id, .protocol = 2}};

    client_ask (client, &hello);

    client_take_refusal (client, HWS_VERB_HELLO, HWS_EPROTOCOL);
}

static void first_message_that_is_no_hello_is_answered_resync (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    client_disconnect (client);
    client->address.id[0] = 99;

    client_ping (client);
    client_send_frames (client, hws_bytes ("\x01\x01\0\0\0\0\0\0", 8), NULL);
    client_send_frames (client, hws_bytes ("?", 1), NULL);

    for (int i = 0; i < 3; i++) {
        assert_int_equal (client_take (client, HWS_VERB_RESYNC)->as.epoch, 7);
    }
    client_expect_silence (client);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 1);
}

static void malformed_hello_is_refused_and_not_asked_again (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    client->address.id[0] = 99;

    client_send_frames (client, hws_bytes_of_text ("HELLO"),
                        "{\"id\":\"5\",\"client_id\":\"short\",\"protocol\":1}");
    client_send_frames (client, hws_bytes_of_text ("HELLO"), "{\"protocol\":1}");

    client_take_refusal (client, HWS_VERB_HELLO, HWS_EBAD_REQUEST);
    client_take_refusal (client, HWS_VERB_ERROR, HWS_EBAD_REQUEST);
    client_expect_silence (client);
}

static void hello_for_another_client_on_one_connection_is_a_fault (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    hws_control_t hello = {.verb = HWS_VERB_HELLO, .as.hello = {.protocol = 1}};

    client_ask (client, &hello);

    client_take_refusal (client, HWS_VERB_ERROR, HWS_EPROTOCOL);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 1);
}

static void peers_are_limited (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.peers = 1;
    begin_with (&options);
    client_connect (&s_world);
    client_t *const second = &s_world.clients[s_world.client_count++];
    *second = (client_t){.world = &s_world, .id = {{2}}, .address = {.size = 1, .id = {77}}};

    client_hello (second);

    client_take_refusal (second, HWS_VERB_HELLO, HWS_ELIMIT);
}

static void no_peers_at_all_with_a_limit_of_0 (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.peers = 0;
    begin_with (&options);
    client_t *const client = &s_world.clients[s_world.client_count++];
    *client = (client_t){.world = &s_world, .id = {{2}}, .address = {.size = 1, .id = {77}}};

    client_hello (client);

    client_take_refusal (client, HWS_VERB_HELLO, HWS_ELIMIT);
}

static void strangers_at_the_limit_do_not_fill_the_log (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.peers = 0;
    begin_with (&options);
    client_t *const client = &s_world.clients[s_world.client_count++];
    *client = (client_t){.world = &s_world, .id = {{2}}, .address = {.size = 1, .id = {77}}};

    for (int i = 0; i < 100; i++) {
        client_hello (client);
        client_take_refusal (client, HWS_VERB_HELLO, HWS_ELIMIT);
    }

    assert_int_equal (s_world.logged_count, 1);
}

static void client_without_anything_is_forgotten_when_silent (void **state)
{
    (void) state;
    client_connect (&s_world);

    world_advance (&s_world, 3 * WORLD_INTERVAL_MS - 1);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 1);
    world_advance (&s_world, 1);

    assert_int_equal (hws_engine_counts (s_world.engine).peers, 0);
}

static void client_without_anything_is_forgotten_a_second_after_its_connection (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);

    client_disconnect (client);
    world_advance (&s_world, 999);
    assert_int_equal (hws_engine_counts (s_world.engine).peers, 1);
    world_advance (&s_world, 1);

    assert_int_equal (hws_engine_counts (s_world.engine).peers, 0);
}

static void messages_of_an_earlier_connection_are_dropped (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    const hws_address_t before = sender->address;
    client_reconnect (sender);
    const hws_address_t after = sender->address;
    client_forget (receiver);

    sender->address = before;
    stream_send (&stream, 3, 8);

    assert_null (client_find_run (receiver));
    sender->address = after;
}

static void sender_goes_on_from_a_new_connection (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    const uint64_t routing = stream.routing;
    stream_send (&stream, 3, 8);

    client_reconnect (sender);
    stream_attach_again (&stream);
    stream_send (&stream, 2, 8);

    expect_run (receiver, HWS_RUN_ATTACHED, routing, 0, 0);
    expect_run (receiver, HWS_RUN_RECORDS, routing, 0, 3);
    expect_run (receiver, HWS_RUN_RECORDS, routing, 3, 2);
    client_expect_silence (receiver);
    assert_true (stream.routing == routing);
}

static void announcement_has_the_address_of_the_present_connection (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);

    stream_attach (client_connect (&s_world), 9, handle);

    hws_attached_t attached;
    const hws_run_t *const run = client_take_run (receiver, HWS_RUN_ATTACHED);
    assert_int_equal (hws_attached_decode (run->body, &attached), 0);
    assert_string_equal (attached.address, "192.0.2.1:4711");
    assert_int_equal (attached.session_id, 9);
    assert_true (hws_handle_equal (attached.handle, handle));
}

/*  ---- OPEN ---- */

static void open_tells_the_values_in_force (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    hws_control_t open = {.verb = HWS_VERB_OPEN,
                          .as.open = {.open_id = 1,
                                      .heartbeat_interval_ms = {HWS_VALUE, 250},
                                      .max_senders = {HWS_VALUE, 3},
                                      .unattached_timeout_ms = {HWS_VALUE, 900},
                                      .buffer_bytes = {HWS_VALUE, 65536}}};

    client_ask (receiver, &open);

    const hws_open_ok_t *const ok = &client_take_ok (receiver, HWS_VERB_OPEN)->as.open_ok;
    assert_int_equal (ok->heartbeat_interval_ms, 250);
    assert_int_equal (ok->reconnect_grace_ms, WORLD_GRACE_MS);
    assert_int_equal (ok->unattached_timeout_ms.value, 900);
    assert_int_equal (ok->orphan_ttl_ms, WORLD_ORPHAN_MS);
    assert_int_equal (ok->max_senders.value, 3);
    assert_int_equal (ok->buffer_bytes, 65536);
    assert_true (ok->record_bytes < 65536 / 2);
}

static void open_refuses_what_it_does_not_take (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    const hws_open_t bad[] = {{.name = "\x01"},
                              {.heartbeat_interval_ms = {HWS_VALUE, 99}},
                              {.max_senders = {HWS_VALUE, 0}},
                              {.buffer_bytes = {HWS_VALUE, 32767}},
                              {.buffer_bytes = {HWS_VALUE, UINT64_MAX}},
                              {.orphan_ttl_ms = {HWS_VALUE, UINT64_MAX}},
                              {.heartbeat_interval_ms = {HWS_VALUE, UINT64_MAX}}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = bad[i]};
        open.as.open.open_id = i + 1;
        client_ask (receiver, &open);
        client_take_refusal (receiver, HWS_VERB_OPEN, HWS_EBAD_REQUEST);
    }
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void name_in_use_is_refused_until_its_anchor_is_closed (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const other = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "results", NULL);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1, .name = "results"}};

    client_ask (other, &open);
    client_take_refusal (other, HWS_VERB_OPEN, HWS_ENAME_IN_USE);
    anchor_cancel (receiver, handle, 0, "");

    assert_false (hws_handle_equal (anchor_open (other, 2, "results", NULL), handle));
}

static void open_is_idempotent_by_client_and_open_id (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const other = client_connect (&s_world);

    const hws_handle_t first = anchor_open (receiver, 1, "", NULL);
    const hws_handle_t again = anchor_open (receiver, 1, "", NULL);
    const hws_handle_t second = anchor_open (receiver, 2, "", NULL);
    const hws_handle_t others = anchor_open (other, 1, "", NULL);

    assert_true (hws_handle_equal (first, again));
    assert_false (hws_handle_equal (first, second));
    assert_false (hws_handle_equal (first, others));
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 3);
}

static void repeated_open_announces_every_sender_again_and_rewinds (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    stream_send (&stream, 5, 8);
    anchor_ack (receiver, stream.routing, 2, 24, false);
    client_reconnect (receiver);
    client_forget (receiver);
    client_forget (sender);

    anchor_open (receiver, 1, "", NULL);

    /* A receiver that missed the first announcement begins where this one says.  */
    expect_run (receiver, HWS_RUN_ATTACHED, stream.routing, 2, 0);
    client_expect_silence (receiver);
    const hws_grant_t *const grant = client_take_grant (sender);
    assert_int_equal (grant->flags, HWS_GRANT_REWIND);
    assert_int_equal (grant->next_seq, 2);
    assert_int_equal (grant->acked_seq, 2);
}

static void open_of_an_anchor_that_ended_is_told_its_cause_and_reason (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    anchor_cancel (receiver, handle, 0, "enough");
    client_forget (receiver);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};

    client_ask (receiver, &open);

    const hws_anchor_closed_t *const closed =
        &client_take (receiver, HWS_VERB_ANCHOR_CLOSED)->as.anchor_closed;
    assert_true (hws_handle_equal (closed->handle, handle));
    assert_string_equal (closed->code, "receiver_closed");
    assert_string_equal (closed->reason, "enough");
    assert_string_equal (client_take_refusal (receiver, HWS_VERB_OPEN, HWS_ECLOSED)->reason,
                         "enough");
    client_expect_silence (receiver);
}

static void anchors_are_limited (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const other = client_connect (&s_world);
    for (uint64_t i = 1; i <= 6; i++) {
        anchor_open (receiver, i, "", NULL);
    }
    anchor_open (other, 1, "", NULL);
    anchor_open (other, 2, "", NULL);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 100}};

    client_ask (receiver, &open); /* its own limit is 6 */
    client_ask (other, &open);    /* the broker's is 8 */

    client_take_refusal (receiver, HWS_VERB_OPEN, HWS_ELIMIT);
    client_take_refusal (other, HWS_VERB_OPEN, HWS_ELIMIT);
}

static void handle_never_comes_back_when_their_count_is_at_its_end (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    s_world.engine->anchor_count = UINT32_MAX - 1;
    const hws_handle_t last = anchor_open (receiver, 1, "", NULL);
    assert_int_equal (hws_handle_count (last), UINT32_MAX);

    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 2}};
    client_ask (receiver, &open);

    client_take_refusal (receiver, HWS_VERB_OPEN, HWS_ELIMIT);
}

static void buffers_of_all_anchors_are_limited (void **state)
{
    (void) state;
    hws_engine_options_t options = world_options ();
    options.limits.buffer_bytes = (hws_optional_t){HWS_VALUE, 100000};
    begin_with (&options);
    client_t *const receiver = client_connect (&s_world);
    const hws_open_t small = {.buffer_bytes = {HWS_VALUE, 50000}};
    const hws_handle_t first = anchor_open (receiver, 1, "", &small);
    anchor_open (receiver, 2, "", &small);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = small};
    open.as.open.open_id = 3;

    client_ask (receiver, &open);
    client_take_refusal (receiver, HWS_VERB_OPEN, HWS_ELIMIT);
    anchor_cancel (receiver, first, 0, "");

    anchor_open (receiver, 3, "", &small);
}

/*  ---- Faults ---- */

static void malformed_control_is_answered_with_one_error (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    static const char whole[] = "{\"id\":\"3\",\"open_id\":\"1\"}";

    for (size_t size = 0; size < sizeof whole - 1; size++) {
        char cut[sizeof whole];
        memcpy (cut, whole, size);
        cut[size] = '\0';
        client_send_frames (client, hws_bytes_of_text ("OPEN"), cut);
        client_take_refusal (client, HWS_VERB_ERROR, HWS_EPROTOCOL);
        client_expect_silence (client);
    }

    assert_int_equal (hws_engine_stats (s_world.engine)->protocol_errors, sizeof whole - 1);
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 0);
}

static void unknown_verb_is_answered_with_and_without_an_id (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);

    client_send_frames (client, hws_bytes_of_text ("FROB"), "{\"id\":\"3\"}");
    client_send_frames (client, hws_bytes_of_text ("FROB"), "{}");
    client_send_frames (client, hws_bytes_of_text ("FROB"), "not json");

    for (int i = 0; i < 3; i++) {
        client_take_refusal (client, HWS_VERB_ERROR, HWS_EUNKNOWN_VERB);
    }
    client_expect_silence (client);
}

static void verbs_of_the_broker_are_refused_from_a_client (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    static const char *const frames[][2] = {
        {"STREAM_CANCEL", "{\"id\":\"3\",\"session_id\":\"1\",\"code\":\"x\"}"},
        {"ANCHOR_CLOSED", "{\"id\":\"3\",\"handle\":\"00000000000000010000000000000001\"}"},
        {"RESYNC", "{\"id\":\"3\",\"epoch\":\"1\"}"},
        {"GOAWAY", "{\"id\":\"3\",\"reason\":\"\"}"},
        {"ERROR", "{\"id\":\"3\",\"Err\":{\"code\":\"busy\",\"reason\":\"\"}}"},
        {"OPEN", "{\"id\":\"3\",\"Err\":{\"code\":\"busy\",\"reason\":\"\"}}"}};

    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        client_send_frames (client, hws_bytes_of_text (frames[i][0]), frames[i][1]);
        const heard_t *const heard = client_next (client);
        assert_non_null (heard);
        assert_int_equal (heard->control.form, HWS_FORM_ERR);
        client_expect_silence (client);
    }
}

static void message_of_neither_form_is_a_fault (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);

    client_send_frames (client, hws_bytes ("", 0), NULL);
    client_send_frames (client, hws_bytes_of_text ("open"), "{}");
    client_send_frames (client, hws_bytes_of_text ("OPEN"), NULL);
    client_send_frames (client, hws_bytes ("\x01\x01\0\0\0\0\0\0", 8), "{}");
    client_send_frames (client, hws_bytes ("\x01", 1), NULL);
    client_send_frames (client, hws_bytes ("\x01\x02\0\0\0\0\0\0", 8), NULL);
    client_send_frames (client, hws_bytes ("\x01\x04\0\0\0\0\0\0", 8), NULL);
    client_send_frames (client, hws_bytes ("\x01\x7f\0\0\0\0\0\0", 8), NULL);

    for (int i = 0; i < 8; i++) {
        client_take_refusal (client, HWS_VERB_ERROR, HWS_EPROTOCOL);
    }
    client_expect_silence (client);
}

static void kind_of_batch_from_the_upper_half_is_ignored (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);

    client_send_frames (client, hws_bytes ("\x01\x80\0\0\0\0\0\0", 8), NULL);

    client_expect_silence (client);
    assert_int_equal (hws_engine_stats (s_world.engine)->protocol_errors, 0);
}

static void batch_above_batch_bytes_is_a_fault_of_any_kind (void **state)
{
    (void) state;
    client_t *const client = client_connect (&s_world);
    const size_t room = s_world.options.limits.batch_bytes - HWS_BATCH_HEADER_SIZE;
    const hws_batch_kind_t kinds[] = {HWS_BATCH_DATA, HWS_BATCH_ACK, HWS_BATCH_WINDOW};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        batch_t batch;
        batch_begin (&batch, kinds[i]);
        for (size_t size = 0; size <= room; size += 32) { /* the size of each kind's item */
            if (kinds[i] == HWS_BATCH_DATA) {
                batch_add_run (&batch, (hws_run_t){.type = HWS_RUN_VOID});
            } else if (kinds[i] == HWS_BATCH_ACK) {
                batch_add_ack (&batch, (hws_ack_t){0});
            } else {
                batch_add_window (&batch, (hws_window_t){0});
            }
        }

        batch_send (&batch, client);

        client_take_refusal (client, HWS_VERB_ERROR, HWS_EPROTOCOL);
        client_expect_silence (client);
    }
}

/*  ---- Leaving ---- */

static void bye_drops_the_senders_and_closes_the_anchors (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const both = client_connect (&s_world);
    const hws_handle_t others = anchor_open (receiver, 1, "", NULL);
    const hws_handle_t own = anchor_open (both, 1, "", NULL);
    const stream_t out = stream_attach (both, 1, others);
    const stream_t in = stream_attach (receiver, 1, own);
    client_forget (receiver);
    client_forget (both);
    hws_control_t bye = {.verb = HWS_VERB_BYE};

    client_ask (both, &bye);

    client_take_ok (both, HWS_VERB_BYE);
    expect_ending (receiver, out.routing, HWS_RUN_DROPPED, "transport");
    expect_told (receiver, in.session_id, "cancelled", "receiver_closed");
    assert_int_equal (hws_engine_counts (s_world.engine).anchors, 1);
}

static void draining_refuses_new_streams_and_tells_everybody (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    client_forget (receiver);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 2}};

    hws_engine_drain (s_world.engine, s_world.now, "maintenance");
    world_pump (&s_world);
    client_ask (receiver, &open);
    stream_attach_again (&stream);
    stream_send (&stream, 1, 8);
    stream_ask (sender, 2, handle);

    assert_string_equal (client_take (receiver, HWS_VERB_GOAWAY)->as.reason, "maintenance");
    assert_string_equal (client_take (sender, HWS_VERB_GOAWAY)->as.reason, "maintenance");
    client_take_refusal (receiver, HWS_VERB_OPEN, HWS_ECLOSED);
    client_take_refusal (sender, HWS_VERB_ATTACH, HWS_ECLOSED);
    expect_run (receiver, HWS_RUN_RECORDS, stream.routing, 0, 1);
    assert_true (hws_engine_is_drained (s_world.engine));
}

static void who_comes_while_it_drains_is_told_before_anything_is_refused (void **state)
{
    (void) state;
    client_t *const known = client_connect (&s_world);
    hws_control_t open = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1}};
    hws_engine_drain (s_world.engine, s_world.now, "maintenance");
    world_pump (&s_world);
    client_forget (known);

    client_reconnect (known);
    client_t *const stranger = client_connect (&s_world);
    client_ask (stranger, &open);

    assert_string_equal (client_take (known, HWS_VERB_GOAWAY)->as.reason, "maintenance");
    assert_string_equal (client_take (stranger, HWS_VERB_GOAWAY)->as.reason, "maintenance");
    client_take_refusal (stranger, HWS_VERB_OPEN, HWS_ECLOSED);
}

static void draining_waits_for_a_full_connection (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    const hws_handle_t handle = anchor_open (receiver, 1, "", NULL);
    stream_t stream = stream_attach (sender, 1, handle);
    receiver->is_full = true;
    stream_send (&stream, 1, 8);

    hws_engine_drain (s_world.engine, s_world.now, "");
    world_pump (&s_world);
    assert_false (hws_engine_is_drained (s_world.engine));
    receiver->is_full = false;
    world_advance (&s_world, 50);

    assert_true (hws_engine_is_drained (s_world.engine));
}

static void abandoning_gives_every_payload_back (void **state)
{
    (void) state;
    client_t *const receiver = client_connect (&s_world);
    client_t *const sender = client_connect (&s_world);
    stream_t stream = stream_attach (sender, 1, anchor_open (receiver, 1, "", NULL));
    receiver->is_full = true;
    stream_send (&stream, 1, 9000);
    assert_true (s_world.tokens_back < s_world.tokens_made);

    hws_engine_abandon (s_world.engine);
    world_pump (&s_world);

    assert_int_equal (s_world.tokens_back, s_world.tokens_made);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (hello_tells_broker_epoch_and_limits),
        TEST (hello_of_another_protocol_is_refused),
        TEST (first_message_that_is_no_hello_is_answered_resync),
        TEST (malformed_hello_is_refused_and_not_asked_again),
        TEST (hello_for_another_client_on_one_connection_is_a_fault),
        TEST (peers_are_limited),
        TEST (no_peers_at_all_with_a_limit_of_0),
        TEST (strangers_at_the_limit_do_not_fill_the_log),
        TEST (client_without_anything_is_forgotten_when_silent),
        TEST (client_without_anything_is_forgotten_a_second_after_its_connection),
        TEST (messages_of_an_earlier_connection_are_dropped),
        TEST (sender_goes_on_from_a_new_connection),
        TEST (announcement_has_the_address_of_the_present_connection),
        TEST (open_tells_the_values_in_force),
        TEST (open_refuses_what_it_does_not_take),
        TEST (name_in_use_is_refused_until_its_anchor_is_closed),
        TEST (open_is_idempotent_by_client_and_open_id),
        TEST (repeated_open_announces_every_sender_again_and_rewinds),
        TEST (open_of_an_anchor_that_ended_is_told_its_cause_and_reason),
        TEST (anchors_are_limited),
        TEST (handle_never_comes_back_when_their_count_is_at_its_end),
        TEST (buffers_of_all_anchors_are_limited),
        TEST (malformed_control_is_answered_with_one_error),
        TEST (unknown_verb_is_answered_with_and_without_an_id),
        TEST (verbs_of_the_broker_are_refused_from_a_client),
        TEST (message_of_neither_form_is_a_fault),
        TEST (kind_of_batch_from_the_upper_half_is_ignored),
        TEST (batch_above_batch_bytes_is_a_fault_of_any_kind),
        TEST (bye_drops_the_senders_and_closes_the_anchors),
        TEST (draining_refuses_new_streams_and_tells_everybody),
        TEST (who_comes_while_it_drains_is_told_before_anything_is_refused),
        TEST (draining_waits_for_a_full_connection),
        TEST (abandoning_gives_every_payload_back),
    };
    return cmocka_run_group_tests_name ("engine connections", tests, NULL, NULL);
}
