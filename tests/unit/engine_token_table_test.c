/*  The state table of cancel tokens at the broker in docs/protocol.md, driven through the
 *  engine.
 */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

enum { SESSION = 1, NEW_SESSION = 9, TOKEN = 77, OTHER_TOKEN = 100 };

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_stranger; /* cancels */
static hws_handle_t s_handle;

static client_t *connect_beating (void)
{
    client_t *const client = client_connect (&s_world);
    client->is_beating = true;
    return client;
}

static void begin_world (void)
{
    begin (NULL);
    s_receiver = connect_beating ();
    s_sender = connect_beating ();
    s_stranger = connect_beating ();
    s_handle = anchor_open (s_receiver, 1, "", NULL);
}

static void end_world (void)
{
    end (NULL);
}

static void hear (words_t *said)
{
    engine_words (said, s_receiver, 0, 0);
    engine_words (said, s_sender, 0, 0);
    engine_words (said, s_stranger, 0, 0);
}

static void ignore_all (void)
{
    words_t said = {0};
    hear (&said);
}

/*  ---- States ---- */

static const char *state_now (void)
{
    const hws_cancels_t *const cancels = &s_world.engine->cancels;
    return hws_cancels_reason (cancels, TOKEN)                                ? "cancelled"
           : hws_cancels_count (cancels) > hws_cancels_orphan_count (cancels) ? "carried"
                                                                              : "unknown";
}

static void attach (uint64_t session_id)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = {.has_handle = true,
                                           .handle = s_handle,
                                           .session_id = session_id,
                                           .cancel_token = TOKEN}};
    client_ask (s_sender, &message);
}

static void cancel (uint64_t token)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = token};
    client_ask (s_stranger, &message);
}

static void cancel_it (void)
{
    cancel (TOKEN);
}

static const hws_seat_t *seat (void)
{
    const hws_peer_t *const peer = hws_peer_of_client (s_world.engine, &s_sender->id);
    return hws_seat_of_session (s_world.engine, peer, SESSION);
}

static void ack_ending (void)
{
    anchor_ack (s_receiver, seat ()->routing_session_id, seat ()->high_seq, seat ()->high_bytes,
                true);
}

static void leave_unknown (void)
{
}

static void carry (void)
{
    attach (SESSION);
}

/*  By now nothing carries it any more.  */
static void reach_cancelled (void)
{
    carry ();
    cancel_it ();
    ack_ending ();
}

static const step_t states[] = {
    {"unknown", leave_unknown, NULL},
    {"carried", carry, NULL},
    {"cancelled", reach_cancelled, NULL},
    {NULL, NULL, NULL},
};

/*  ---- Events ---- */

static void attach_new (void)
{
    attach (NEW_SESSION);
}

static void open_new (void)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN,
                             .as.open = {.open_id = 2, .cancel_token = TOKEN}};
    client_ask (s_receiver, &message);
}

static void cancel_too_many (void)
{
    for (uint64_t i = 0; i < s_world.options.limits.cancel_orphans_per_peer; i++) {
        cancel (OTHER_TOKEN + i);
    }
    ignore_all ();
    cancel_it ();
}

static void end_stream (void)
{
    stream_t stream = {.client = s_sender, .session_id = SESSION};
    stream_end (&stream);
}

static void let_time_pass (void)
{
    const hws_limits_t *const limits = &s_world.options.limits;
    world_advance (&s_world, (hws_ms_t) (limits->cancel_orphan_ttl_ms + limits->cancel_sweep_ms));
}

static const step_t events[] = {
    {"ATTACH with it", attach_new, NULL},
    {"OPEN with it", open_new, NULL},
    {"ATTACH again, of the stream that came with it", carry, "unknown"},
    {"CANCEL_TOKEN", cancel_it, NULL},
    {"CANCEL_TOKEN, as many as are remembered were before", cancel_too_many, "cancelled"},
    {"DETACHED of the stream that carries it", end_stream, "unknown, cancelled"},
    {"cancel.orphan_ttl_ms and cancel.sweep_interval_ms over", let_time_pass, NULL},
    {NULL, NULL, NULL},
};

static void tokens_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Cancel token, at the broker",
                               .states = states,
                               .events = events,
                               .begin = begin_world,
                               .end = end_world,
                               .state = state_now,
                               .hear = hear};

    machine_drive (&machine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {TABLE_TEST (tokens_follow_their_table)};
    return cmocka_run_group_tests_name ("token table", tests, NULL, NULL);
}
