/*  The state table of an ATTACH that waits at the broker in docs/protocol.md, driven through
 *  the engine.
 */
#include "broker/engine_state.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

enum { SESSION = 5, TOKEN = 77, WAIT_MS = 2000, SMALLEST_BUFFER = 2 * WORLD_WINDOW };

static client_t *s_receiver;
static client_t *s_other;   /* has the only seat that fits, while one waits for room */
static client_t *s_waiting; /* sent the ATTACH */
static hws_handle_t s_handle;
static stream_t s_stream; /* of the other */

static client_t *connect_beating (void)
{
    client_t *const client = client_connect (&s_world);
    client->is_beating = true;
    return client;
}

static void begin_world (void)
{
    begin (NULL);
    s_world.is_slow_to_bind = true;
    s_receiver = connect_beating ();
    s_other = connect_beating ();
    s_waiting = connect_beating ();
}

static void end_world (void)
{
    end (NULL);
}

static void hear (words_t *said)
{
    words_t elsewhere = {0};
    engine_words (&elsewhere, s_receiver, 0, 0);
    engine_words (&elsewhere, s_other, 0, 0);
    engine_words (said, s_waiting, 0, 0);
}

/*  ---- States ---- */

static const char *state_now (void)
{
    const hws_link_t *const link = s_world.engine->waiting.head;
    if (link == NULL) {
        return "over";
    }
    switch (hws_container_of (link, hws_waiting_t, in_engine)->code) {
    case HWS_ENOT_FOUND:
        return "for the anchor";
    case HWS_EBUFFER_FULL:
        return "for room";
    default:
        return "for the front";
    }
}

static void ask (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {
            .anchor = "a", .session_id = SESSION, .wait_ms = WAIT_MS, .cancel_token = TOKEN}};
    client_ask (s_waiting, &message);
}

static void wait_for_room (void)
{
    const hws_open_t small = {.buffer_bytes = {.state = HWS_VALUE, .value = SMALLEST_BUFFER}};
    s_handle = anchor_open (s_receiver, 1, "a", &small);
    s_stream = stream_attach (s_other, 1, s_handle);
    ask ();
}

static void wait_for_front (void)
{
    s_handle = anchor_open (s_receiver, 1, "a", &(hws_open_t){.dedicated = true});
    ask ();
}

static void let_time_pass (void)
{
    world_advance (&s_world, WAIT_MS);
}

static void wait_in_vain (void)
{
    ask ();
    let_time_pass ();
}

static const step_t states[] = {
    {"for the anchor", ask, NULL},
    {"for room", wait_for_room, NULL},
    {"for the front", wait_for_front, NULL},
    {"over", wait_in_vain, NULL},
    {NULL, NULL, NULL},
};

/*  ---- Events ---- */

static void open_anchor (void)
{
    s_handle = anchor_open (s_receiver, 1, "a", NULL);
}

static void make_room (void)
{
    stream_end (&s_stream);
    anchor_ack (s_receiver, s_stream.routing, s_stream.next_seq, s_stream.next_bytes, true);
}

static void bound (void)
{
    world_bound (&s_world, s_world.last_front);
}

static void bind_fails (void)
{
    world_bind_failed (&s_world, s_world.last_front, "the port is taken");
}

static void end_anchor (void)
{
    anchor_cancel (s_receiver, s_handle, 0, "");
}

static void cancel_token (void)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = TOKEN};
    client_ask (s_other, &message);
}

static void send_run (void)
{
    stream_t stream = {.client = s_waiting, .session_id = SESSION};
    stream_send (&stream, 1, 8);
}

static void lose_connection (void)
{
    client_disconnect (s_waiting);
}

static void say_bye (void)
{
    hws_control_t message = {.verb = HWS_VERB_BYE};
    client_ask (s_waiting, &message);
}

static void leave_and_let_time_pass (void)
{
    hws_engine_drain (s_world.engine, s_world.now, "enough");
    let_time_pass ();
}

static const step_t events[] = {
    {"ATTACH again", ask, NULL},
    {"anchor opened", open_anchor, "for room, for the front"},
    {"room for another sender", make_room, "for the anchor, for the front, over"},
    {"front bound", bound, "for the anchor, for room, over"},
    {"front cannot be bound", bind_fails, "for the anchor, for room, over"},
    {"anchor ends", end_anchor, "for the anchor, over"},
    {"CANCEL_TOKEN of its token", cancel_token, NULL},
    {"wait_ms over", let_time_pass, NULL},
    {"broker leaves, wait_ms over", leave_and_let_time_pass, NULL},
    {"run of its stream", send_run, NULL},
    {"connection closed", lose_connection, NULL},
    {"BYE of its client", say_bye, NULL},
    {NULL, NULL, NULL},
};

static void attaches_that_wait_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "ATTACH that waits, at the broker",
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
    const struct CMUnitTest tests[] = {TABLE_TEST (attaches_that_wait_follow_their_table)};
    return cmocka_run_group_tests_name ("waiting table", tests, NULL, NULL);
}
