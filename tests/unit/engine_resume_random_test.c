/*  The engine under receivers and senders that resume at random, with true tokens and any
 *  positions, at this life of the broker and the next: after every step its invariants hold, and
 *  in the end nothing is left.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"
#include "tests/support/test_seed.h"

#define CLIENTS 5
#define HANDLES 8 /* the last ones that were given */
#define SENDERS 12
#define STEPS   60000

static hws_random_t s_random;
static hws_handle_t s_handles[HANDLES];
static uint32_t s_given;

static uint64_t below (uint64_t bound)
{
    return hws_random_below (&s_random, bound);
}

static client_t *any_client (void)
{
    return &s_world.clients[below (CLIENTS)];
}

static hws_handle_t any_handle (void)
{
    return s_handles[below (HANDLES)];
}

static uint64_t any_sender_id (void)
{
    const uint64_t epochs = below (6) ? 0 : below (3);
    return (epochs << 32) + 1 + below (SENDERS);
}

static void note_handles (void)
{
    for (hws_link_t *link = s_world.engine->anchors.head; link; link = link->next) {
        const hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, in_engine);
        s_handles[s_given++ % HANDLES] = anchor->handle;
    }
}

/*  ---- Receivers ---- */

static hws_open_t any_open (void)
{
    hws_open_t open = {.kind = below (4) ? HWS_KIND_MPSC : HWS_KIND_SPSC,
                       .dedicated = below (8) == 0,
                       .cancel_token = below (8) ? 0 : 1 + below (5)};
    if (below (3) == 0) {
        snprintf (open.name, sizeof open.name, "anchor %d", (int) below (3));
    }
    if (below (3)) {
        open.buffer_bytes = (hws_optional_t){HWS_VALUE, UINT64_C (2048) << below (4)};
    }
    if (below (4) == 0) {
        open.max_senders = (hws_optional_t){HWS_VALUE, 1 + below (3)};
    }
    if (below (5) == 0) {
        open.unattached_timeout_ms = (hws_optional_t){HWS_VALUE, below (2000)};
    }
    return open;
}

static void open_anchor (client_t *client)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN, .as.open = any_open ()};
    message.as.open.open_id = 1 + below (30);
    client_ask (client, &message);
    note_handles ();
}

/*  Near what the broker has, if it has the seat; else near the beginning; or absurd.  */
static hws_position_t any_position (hws_handle_t handle)
{
    const hws_anchor_t *const anchor = hws_anchor_find (s_world.engine, handle);
    hws_position_t it = {.sender_id = any_sender_id (), .seat_key = 1 + below (20)};
    const hws_seat_t *const seat =
        anchor ? hws_seat_of_sender (s_world.engine, anchor, it.sender_id) : NULL;
    if (below (2)) {
        it.seat_key =
            hws_credential_seat_key (s_world.options.key, &any_client ()->id, 1 + below (SENDERS));
    }
    it.acked_seq = (seat ? seat->acked_seq : 0) + below (4);
    it.acked_bytes = (seat ? seat->acked_bytes : 0) + below (100);
    it.next_seq = below (4) && seat ? seat->high_seq : it.acked_seq + below (5);
    it.next_bytes = below (4) && seat ? seat->high_bytes : it.acked_bytes + below (2000);
    if (below (3) == 0) {
        it.type = (uint8_t) (below (20) ? HWS_RUN_DETACHED + below (4) : below (256));
        it.cause = (uint16_t) below (14);
        it.flags = HWS_POSITION_ENDED | (below (2) ? HWS_POSITION_CONSUMED : 0);
    }
    switch (below (80)) {
    case 0:
        it.next_seq = hws_random_next (&s_random);
        break;
    case 1:
        it.next_bytes = hws_random_next (&s_random);
        break;
    case 2:
        it.acked_seq = hws_random_next (&s_random);
        break;
    case 3:
        it.sender_id = hws_random_next (&s_random);
        break;
    case 4:
        it.flags = (uint32_t) below (8);
        break;
    default:
        break;
    }
    return it;
}

static void resume_anchor (client_t *client)
{
    hws_open_t open = any_open ();
    const hws_handle_t handle = any_handle ();
    open.resume.highest_sender_id = below (10) ? below (SENDERS) : hws_random_next (&s_random);
    open.resume.unseen_count = (uint32_t) below (4);
    for (uint32_t i = 0; i < open.resume.unseen_count; i++) {
        open.resume.unseen[i].first = below (SENDERS);
        open.resume.unseen[i].end = open.resume.unseen[i].first + below (4);
    }
    if (below (20)) {
        anchor_resuming (client, 1 + below (30), handle, &open);
    }
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    for (uint64_t count = below (2 * SENDERS); count > 0; count--) {
        batch_add_position (&batch, any_position (handle));
    }
    if (below (10)) {
        batch_add_position (&batch, (hws_position_t){.flags = HWS_POSITION_LAST});
    }
    batch_send (&batch, client);
}

static void acknowledge (void)
{
    hws_link_t *const link = s_world.engine->anchors.head;
    if (link == NULL) {
        return;
    }
    const hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, in_engine);
    for (size_t i = 0; i < CLIENTS; i++) {
        const bool is_owner =
            memcmp (&s_world.clients[i].id, &anchor->owner->client_id, sizeof (hws_id_t)) == 0;
        const hws_link_t *const first = anchor->seats.head;
        if (!is_owner || first == NULL) {
            continue;
        }
        const hws_seat_t *const seat = hws_container_of (first, hws_seat_t, in_anchor);
        anchor_ack (&s_world.clients[i], seat->routing_session_id, seat->high_seq, seat->high_bytes,
                    seat->state == HWS_SEAT_EXITING);
        return;
    }
}

/*  ---- Senders ---- */

static void attach (client_t *client)
{
    stream_t stream = {.client = client,
                       .session_id = 1 + below (SENDERS),
                       .handle = any_handle (),
                       .sender_id = any_sender_id ()};
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&stream, below (5), below (100))};
    hws_attach_t *const request = &message.as.attach;
    request->has_resume = below (3) > 0;
    request->cancel_token = below (8) ? 0 : 1 + below (5);
    request->wait_ms = below (2) ? below (3000) : 0;
    if (below (6) == 0) {
        strcpy (request->resume.ending, below (2) ? "cancelled" : "dropped");
        strcpy (request->resume.code, "requested");
    }
    if (below (40) == 0) {
        request->resume.acked_bytes = hws_random_next (&s_random);
    }
    client_ask (client, &message);
}

static void send_data (client_t *client)
{
    const hws_peer_t *const peer = hws_peer_of_client (s_world.engine, &client->id);
    if (peer == NULL || peer->seats.head == NULL) {
        return;
    }
    const hws_seat_t *const seat = hws_container_of (peer->seats.head, hws_seat_t, in_peer);
    stream_t stream = {.client = client,
                       .session_id = seat->session_id,
                       .next_seq = seat->next_seq,
                       .next_bytes = seat->next_bytes};
    if (below (6)) {
        stream_send (&stream, 1 + (uint32_t) below (3), below (60));
    } else {
        batch_t batch;
        batch_begin (&batch, HWS_BATCH_DATA);
        batch_add_run (&batch,
                       stream_ending (&stream, below (2) ? HWS_RUN_DETACHED : HWS_RUN_FINALIZED));
        batch_send (&batch, client);
    }
}

/*  ---- The rest ---- */

static void change_connection (client_t *client)
{
    if (below (2)) {
        client_disconnect (client);
    } else {
        client_reconnect (client);
    }
}

static void restart (void)
{
    world_restart (&s_world);
    for (size_t i = 0; i < CLIENTS; i++) {
        client_reconnect (&s_world.clients[i]);
    }
}

static void cancel (client_t *client)
{
    if (below (2)) {
        hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 1 + below (5)};
        client_ask (client, &message);
    } else {
        anchor_cancel (client, any_handle (), below (2) ? any_sender_id () : 0, "");
    }
}

static void step (void)
{
    client_t *const client = any_client ();
    const uint64_t kind = below (200);
    if (kind < 50) {
        resume_anchor (client);
    } else if (kind < 100) {
        attach (client);
    } else if (kind < 130) {
        send_data (client);
    } else if (kind < 150) {
        acknowledge ();
    } else if (kind < 165) {
        open_anchor (client);
    } else if (kind < 175) {
        change_connection (client);
    } else if (kind < 182) {
        cancel (client);
    } else if (kind < 184) {
        restart ();
    } else {
        world_advance (&s_world, (hws_ms_t) (kind < 187 ? below (9000) : below (300)));
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        client_forget (&s_world.clients[i]);
    }
}

static void invariants_hold_whoever_resumes (void **state)
{
    (void) state;
    test_seed (&s_random);
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = 8 * 1024;
    options.anchors.window_bytes_min = 1024;
    options.anchors.window_bytes_max = 4096;
    options.limits.senders_per_anchor = 6;
    options.limits.exiting_seats = 4;
    options.limits.seats_per_peer = 9;
    options.limits.tombstones = 20;
    begin_with (&options);
    for (size_t i = 0; i < CLIENTS; i++) {
        client_connect (&s_world);
    }

    for (size_t i = test_scaled (STEPS); i > 0; i--) {
        step ();
    }

    for (size_t i = 0; i < CLIENTS; i++) {
        client_reconnect (&s_world.clients[i]);
        hws_control_t bye = {.verb = HWS_VERB_BYE};
        client_ask (&s_world.clients[i], &bye);
    }
    world_advance (&s_world, 60000);
    const hws_engine_counts_t counts = hws_engine_counts (s_world.engine);
    assert_int_equal (counts.anchors + counts.seats + counts.waiting + counts.tombstones, 0);
    assert_int_equal (counts.peers, 0);
    assert_int_equal (s_world.engine->nobody.seats.count, 0);
    assert_int_equal (s_world.engine->buffer_bytes, 0);
    print_message ("epoch %u, attached in it %llu\n", s_world.options.epoch,
                   (unsigned long long) hws_engine_stats (s_world.engine)->attached);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TEST (invariants_hold_whoever_resumes)};
    return cmocka_run_group_tests_name ("resume at random", tests, NULL, NULL);
}
