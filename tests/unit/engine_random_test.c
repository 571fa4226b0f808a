/*  The engine under everything that clients may do and much that they may not, at
 *  random: after every step its invariants hold, and every receiver hears streams in
 *  order, with one ending. A failure is replayed with the seed that was printed.
 */
#include "tests/support/engine_test.h"

#include "broker/engine_state.h"
#include "tests/support/test_seed.h"

#define CLIENTS     6
#define SESSIONS    5 /* of each client */
#define OPENS       3
#define TOKENS      12
#define STREAMS_MAX 4096 /* that one run of the test may have */
#define STEPS       200000

/*  What a receiver knows of a stream.  */
typedef struct {
    uint64_t routing;
    uint32_t address; /* of the connection it was announced on */
    uint64_t next_seq;
    uint8_t ending; /* run type, on this connection */
} heard_stream_t;

static hws_random_t s_random;
static heard_stream_t s_streams[STREAMS_MAX];

static uint64_t below (uint64_t bound)
{
    return hws_random_below (&s_random, bound);
}

static client_t *any_client (void)
{
    return &s_world.clients[below (CLIENTS)];
}

static hws_peer_t *peer_of (const client_t *client)
{
    return hws_peer_of_client (s_world.engine, &client->id);
}

static hws_link_t *any_link (const hws_list_t *list)
{
    hws_link_t *link = list->head;
    for (uint64_t i = list->count ? below (list->count) : 0; i > 0; i--) {
        link = link->next;
    }
    return link;
}

static hws_anchor_t *any_anchor (void)
{
    hws_link_t *const link = any_link (&s_world.engine->anchors);
    return link ? hws_container_of (link, hws_anchor_t, in_engine) : NULL;
}

static hws_seat_t *any_seat (void)
{
    const hws_anchor_t *const anchor = any_anchor ();
    hws_link_t *const link = anchor ? any_link (&anchor->seats) : NULL;
    return link ? hws_container_of (link, hws_seat_t, in_anchor) : NULL;
}

static client_t *client_of (const hws_peer_t *peer)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (memcmp (&s_world.clients[i].id, &peer->client_id, sizeof peer->client_id) == 0) {
            return &s_world.clients[i];
        }
    }
    fail_msg ("a peer of no client");
    return NULL;
}

static hws_handle_t any_handle (void)
{
    const hws_anchor_t *const anchor = any_anchor ();
    if (anchor && below (10) > 0) {
        return anchor->handle;
    }
    return hws_handle_make (0xb0b0 + below (8) / 7, below (4) ? HWS_KIND_MPSC : HWS_KIND_SPSC,
                            7 - (uint32_t) below (2), (uint32_t) below (100));
}

static uint64_t any_token (void)
{
    return below (3) ? 0 : 1 + below (TOKENS);
}

/*  ---- What receivers hear ---- */

static void hear_run (client_t *client, const hws_run_t *run)
{
    if (run->type == HWS_RUN_VOID) {
        return;
    }
    heard_stream_t *const stream = &s_streams[(run->stream & 0xffffffff) % STREAMS_MAX];
    const uint32_t address = hws_get_u32 (client->address.id + 4);
    if (run->type == HWS_RUN_ATTACHED) {
        *stream = (heard_stream_t){
            .routing = run->stream, .address = address, .next_seq = run->first_seq};
        return;
    }
    assert_true (stream->routing == run->stream);
    assert_int_equal (stream->address, address);
    if (run->count == 0) {
        assert_true (run->type == HWS_RUN_DROPPED || run->type == HWS_RUN_CANCELLED);
        assert_true (stream->ending <= HWS_RUN_FINALIZED); /* none, or a clean one */
        stream->ending = run->type;
        return;
    }
    assert_int_equal (stream->ending, 0);
    /* These receivers acknowledge what the engine ever forwarded, also on an earlier
       connection: then the stream goes on there. */
    const hws_seat_t *const seat = hws_seat_of_routing (s_world.engine, run->stream);
    const bool is_acked =
        run->first_seq > stream->next_seq && (seat == NULL || run->first_seq <= seat->acked_seq);
    assert_true (run->first_seq == stream->next_seq || is_acked);
    stream->next_seq = run->first_seq + run->count;
    if (hws_run_is_ending (run->type)) {
        const bool is_shared = seat && !hws_anchor_is_exclusive (seat->anchor);
        assert_in_range (run->type, HWS_RUN_DETACHED,
                         is_shared ? HWS_RUN_DETACHED : HWS_RUN_FINALIZED);
        stream->ending = run->type;
    }
}

/*  ---- What clients do ---- */

static void change_connection (client_t *client)
{
    switch (below (4)) {
    case 0:
        hws_engine_peer_gone (s_world.engine, s_world.now, &client->address);
        break;
    case 1:
        client_hello (client);
        break;
    default:
        hws_put_u32 (client->address.id + 4, ++s_world.address_count);
        client_hello (client);
        break;
    }
}

static void open_anchor (client_t *client)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN, .as.open = {.open_id = 1 + below (OPENS)}};
    hws_open_t *const open = &message.as.open;
    if (below (2)) {
        snprintf (open->name, sizeof open->name, "anchor %d", (int) below (4));
    }
    open->cancel_token = any_token ();
    open->kind = below (3) ? HWS_KIND_MPSC : HWS_KIND_SPSC;
    if (below (2)) {
        open->buffer_bytes = (hws_optional_t){HWS_VALUE, UINT64_C (4096) << below (4)};
    }
    if (below (3) == 0) {
        open->unattached_timeout_ms = (hws_optional_t){HWS_VALUE, below (2000)};
    }
    if (below (3) == 0) {
        open->heartbeat_interval_ms = (hws_optional_t){HWS_VALUE, 90 + below (400)};
    }
    if (below (3) == 0) {
        open->orphan_ttl_ms = (hws_optional_t){HWS_VALUE, below (3000)};
    }
    if (below (4) == 0) {
        open->max_senders = (hws_optional_t){HWS_VALUE, below (3)};
    }
    client_ask (client, &message);
}

static void attach (client_t *client)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH};
    hws_attach_t *const request = &message.as.attach;
    /* A stream that ended is not begun again: the next life of its number is another. */
    const uint64_t life = below (8) ? client->next_id / 40 : 0;
    request->session_id = 1 + below (SESSIONS) + 1000 * life;
    request->has_handle = below (3) > 0;
    if (request->has_handle) {
        request->handle = any_handle ();
    } else {
        snprintf (request->anchor, sizeof request->anchor, "anchor %d", (int) below (5));
    }
    request->cancel_token = any_token ();
    request->wait_ms = below (2) ? below (3000) : 0;
    if (below (20) == 0) {
        request->has_resume = true;
        strcpy (request->resume.ending, below (2) ? "cancelled" : "");
    }
    client_ask (client, &message);
}

/*  A run as an honest sender would send it next, often; else a little beside it.  */
static hws_run_t any_run (const hws_seat_t *seat)
{
    static const uint8_t types[] = {HWS_RUN_RECORDS, HWS_RUN_ERROR, HWS_RUN_DETACHED,
                                    HWS_RUN_FINALIZED};
    hws_run_t run = {.stream = seat->session_id,
                     .first_seq = seat->next_seq,
                     .count = 1,
                     .type = below (8) ? HWS_RUN_RECORDS : types[below (4)]};
    if (run.type == HWS_RUN_RECORDS) {
        run.count = 1 + (uint32_t) below (4);
        run.body.size = run.count * (4 + (below (4) ? below (50) : below (3000)));
        if (run.count == 1 && below (8) == 0) {
            run.flags = HWS_RUN_MORE;
        }
        const uint64_t room =
            seat->limit_bytes > seat->next_bytes ? seat->limit_bytes - seat->next_bytes : 0;
        if (below (4) == 0 && room > 9000) {
            run.count = 1;
            run.body.size = 8200; /* is forwarded whole */
        }
        if (below (50) && (run.body.size > room || run.first_seq + run.count > seat->limit_seq)) {
            run.type = HWS_RUN_VOID;
        }
    } else {
        run.body.size = run.type == HWS_RUN_ERROR ? below (9) : HWS_ENDING_HEADER_SIZE;
    }
    switch (below (60)) {
    case 0:
        run.first_seq += 1 + below (5);
        break;
    case 1:
        run.first_seq -= run.first_seq > 3 ? below (3) : 0;
        break;
    case 2:
        run.type = (uint8_t) below (256);
        break;
    case 3:
        run.count = (uint32_t) below (6);
        break;
    case 4:
        run.stream++;
        break;
    default:
        break;
    }
    return run;
}

static void send_data (client_t *client)
{
    const hws_peer_t *const peer = peer_of (client);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    hws_seat_t *last = NULL;
    for (uint64_t i = 1 + below (4); peer && peer->seats.count > 0 && i > 0; i--) {
        hws_seat_t *const seat = hws_container_of (any_link (&peer->seats), hws_seat_t, in_peer);
        if (seat == last) {
            continue; /* its next number is not known before this batch is handled */
        }
        last = seat;
        hws_run_t run = any_run (seat);
        if (run.type == HWS_RUN_RECORDS && run.body.size < 4 * (size_t) run.count) {
            run.body.size = 4 * (size_t) run.count;
        }
        batch_add_run (&batch, run);
    }
    if (below (4) == 0) {
        batch_add_run (&batch, (hws_run_t){.type = HWS_RUN_VOID, .body = {NULL, below (9000)}});
    }
    hws_batch_put (batch.bytes, HWS_BATCH_DATA, batch.count);
    size_t size = batch.size;
    if (below (100) == 0) {
        size = 1 + below (size);
    } else if (below (100) == 0) {
        batch.bytes[below (size)] ^= (uint8_t) (1 << below (8));
    }
    client_send_bytes (client, batch.bytes, size);
}

static void acknowledge (void)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_ACK);
    client_t *client = NULL;
    for (uint64_t i = 1 + below (3); i > 0; i--) {
        const hws_seat_t *const seat = any_seat ();
        if (seat == NULL) {
            break;
        }
        hws_ack_t ack = {.stream = seat->routing_session_id,
                         .acked_seq = seat->high_seq,
                         .acked_bytes = seat->high_bytes,
                         .flags = below (3) ? HWS_ACK_ENDED : 0};
        if (seat->state != HWS_SEAT_EXITING && below (40)) {
            ack.flags = 0;
        }
        switch (below (12)) {
        case 0:
            ack.acked_seq = seat->acked_seq;
            ack.acked_bytes = seat->acked_bytes;
            break;
        case 1:
            ack.acked_seq += below (2);
            ack.acked_bytes += below (2);
            break;
        case 2:
            ack.acked_seq = seat->acked_seq + below (seat->high_seq - seat->acked_seq + 1);
            ack.acked_bytes = seat->acked_bytes + below (seat->high_bytes - seat->acked_bytes + 1);
            break;
        default:
            break;
        }
        client = client_of (seat->anchor->owner);
        batch_add_ack (&batch, ack);
    }
    if (client) {
        batch_send (&batch, below (20) ? client : any_client ());
    }
}

static void ask_for_window (void)
{
    const hws_seat_t *const seat = any_seat ();
    if (seat == NULL) {
        return;
    }
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_WINDOW);
    hws_window_t window = {.stream = seat->session_id};
    if (below (3)) { /* the answer to RETURN, or to an earlier one */
        window.limit_seq = seat->limit_seq - below (10) / 9;
        window.limit_bytes = seat->high_bytes + below (2 * WORLD_WINDOW);
    }
    window.want_bytes = below (2) ? below (seat->anchor->buffer_bytes) : 0;
    batch_add_window (&batch, window);
    batch_send (&batch, client_of (seat->peer));
}

static void end_something (client_t *client)
{
    const hws_seat_t *const seat = any_seat ();
    hws_control_t message = {.verb = HWS_VERB_CANCEL};
    message.as.cancel.handle = any_handle ();
    strcpy (message.as.cancel.reason, "at random");
    switch (below (6)) {
    case 0:
        break;
    case 1:
        message = (hws_control_t){.verb = HWS_VERB_BYE};
        break;
    case 2:
    case 3:
        if (seat) {
            client = client_of (below (2) ? seat->peer : seat->anchor->owner);
            message.as.cancel.handle = seat->anchor->handle;
            message.as.cancel.sender_id = seat->sender_id;
        }
        break;
    default:
        message = (hws_control_t){.verb = HWS_VERB_DETACH,
                                  .as.detach = {.handle = any_handle (), .sender_id = 1}};
        if (seat) {
            client = client_of (seat->peer);
            message.as.detach = (hws_detach_t){.handle = seat->anchor->handle,
                                               .sender_id = seat->sender_id,
                                               .seq = seat->next_seq + below (10) / 9};
        }
        break;
    }
    client_ask (client, &message);
}

static void use_token (client_t *client)
{
    hws_control_t message = {.verb = HWS_VERB_RESERVE_TOKEN};
    if (below (4)) {
        message = (hws_control_t){.verb = HWS_VERB_CANCEL_TOKEN,
                                  .as.token = {.token = any_token (), .reason = "at random"}};
    }
    client_ask (client, &message);
}

static void send_rubbish (client_t *client)
{
    char text[64];
    const size_t size = below (sizeof text - 1);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char) hws_random_next (&s_random);
    }
    text[size] = '\0';
    if (below (2)) {
        text[0] = 1;
        text[1] = (char) below (7);
    }
    static const char *const verbs[] = {"HELLO", "OPEN", "ATTACH", "CANCEL", "NONSENSE"};
    if (below (2)) {
        client_send_frames (client, hws_bytes_of_text (verbs[below (5)]),
                            below (2) ? text : "{\"id\":\"1\",\"handle\":null}");
    } else {
        client_send_frames (client, hws_bytes (text, size), NULL);
    }
}

static void pass_time (void)
{
    const uint64_t kind = below (100);
    if (kind == 0) {
        world_oversleep (&s_world, (hws_ms_t) below (20000));
    } else {
        world_advance (&s_world, (hws_ms_t) (kind < 10 ? below (3000) : below (30)));
    }
}

static void step (void)
{
    client_t *const client = any_client ();
    const uint64_t kind = below (100);
    if (kind < 40) {
        send_data (client);
    } else if (kind < 60) {
        acknowledge ();
    } else if (kind < 70) {
        attach (client);
    } else if (kind < 74) {
        open_anchor (client);
    } else if (kind < 77) {
        change_connection (client);
    } else if (kind < 80) {
        ask_for_window ();
    } else if (kind < 83) {
        end_something (client);
    } else if (kind < 84) {
        use_token (client);
    } else if (kind < 86) {
        send_rubbish (client);
    } else if (kind < 88) {
        client->is_full = !client->is_full && below (3) == 0;
    } else if (kind < 92) {
        client_ping (client);
    } else {
        pass_time ();
    }
    if (below (3)) {
        world_pump (&s_world);
    }
    world_check (&s_world);
}

static void invariants_hold_whatever_clients_do (void **state)
{
    (void) state;
    test_seed (&s_random);
    hws_engine_options_t options = world_options ();
    options.anchors.buffer_bytes = 8 * WORLD_WINDOW;
    options.anchors.window_bytes_min = 1024;
    begin_with (&options);
    for (size_t i = 0; i < CLIENTS; i++) {
        client_t *const client = client_connect (&s_world);
        client->is_deaf = true;
        client->on_run = hear_run;
    }

    for (size_t i = test_scaled (STEPS); i > 0; i--) {
        step ();
    }

    /* Everybody leaves, and nothing stays. */
    for (size_t i = 0; i < CLIENTS; i++) {
        s_world.clients[i].is_full = false;
        hws_put_u32 (s_world.clients[i].address.id + 4, ++s_world.address_count);
        client_hello (&s_world.clients[i]);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        hws_control_t bye = {.verb = HWS_VERB_BYE};
        client_ask (&s_world.clients[i], &bye);
    }
    world_advance (&s_world, 60000);
    const hws_engine_counts_t counts = hws_engine_counts (s_world.engine);
    assert_int_equal (counts.anchors + counts.seats + counts.waiting + counts.tombstones, 0);
    assert_int_equal (counts.peers, 0);
    assert_int_equal (hws_cancels_count (&s_world.engine->cancels), 0);
    const hws_engine_stats_t *const stats = hws_engine_stats (s_world.engine);
    assert_true (stats->attached ==
                 stats->detached + stats->dropped + stats->cancelled + stats->finalized);
    print_message ("attached %llu detached %llu dropped %llu cancelled %llu forwarded %llu\n",
                   (unsigned long long) stats->attached, (unsigned long long) stats->detached,
                   (unsigned long long) stats->dropped, (unsigned long long) stats->cancelled,
                   (unsigned long long) stats->batches_forwarded);
    assert_true (test_scaled (STEPS) < STEPS || stats->returns > 0);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TEST (invariants_hold_whatever_clients_do)};
    return cmocka_run_group_tests_name ("engine at random", tests, NULL, NULL);
}
