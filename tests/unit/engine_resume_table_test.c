/*  The state table of an anchor of an earlier epoch at the broker in docs/protocol.md, driven
 *  through the engine.
 */
#include "broker/engine_state.h"
#include "broker/opening.h"
#include "tests/support/engine_test.h"
#include "tests/support/engine_words.h"

static client_t *s_receiver;
static client_t *s_sender;
static client_t *s_other;
static hws_handle_t s_handle;
static stream_t s_stream; /* the sender's, which the receiver names */

static void begin_world (void)
{
    begin (NULL);
    hws_engine_options_t options = world_options ();
    options.anchors.reconnect_grace_ms = 2 * WORLD_ORPHAN_MS; /* that nobody's seat stays */
    begin_with (&options);
    s_receiver = client_connect (&s_world);
    s_sender = client_connect (&s_world);
    s_other = client_connect (&s_world);
    s_handle = anchor_open (s_receiver, 1, "", NULL);
    s_stream = stream_attach (s_sender, 1, s_handle);
    world_restart (&s_world);
    client_reconnect (s_receiver);
    client_reconnect (s_sender);
    client_reconnect (s_other);
    s_receiver->is_beating = s_sender->is_beating = s_other->is_beating = true;
}

static void end_world (void)
{
    end (NULL);
}

static void hear (words_t *said)
{
    engine_words (said, s_receiver, 0, 0);
    engine_words (said, s_sender, 0, 0);
    engine_words (said, s_other, 0, 0);
}

/*  ---- States ---- */

static const char *state_now (void)
{
    const hws_engine_t *const engine = s_world.engine;
    const hws_anchor_t *const anchor = hws_anchor_find (engine, s_handle);
    if (anchor) {
        return engine->nobody.seats.count > 0 ? "back" : "taken";
    }
    if (engine->now >= engine->young_until_at) {
        return "gone";
    }
    const hws_peer_t *const receiver = hws_peer_of_client (engine, &s_receiver->id);
    return engine->waiting.count > 0       ? "awaited"
           : receiver && receiver->opening ? "opening"
                                           : "missing";
}

static void do_nothing (void)
{
}

static void resume_stream (void)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&s_stream, 0, 0)};
    message.as.attach.cancel_token = 77;
    client_ask (s_sender, &message);
}

static void begin_opening (void)
{
    const hws_open_t open = {
        .resume.highest_sender_id = 4, .resume.unseen_count = 1, .resume.unseen = {{3, 4}}};
    anchor_resuming (s_receiver, 1, s_handle, &open);
}

static void say_last (void)
{
    batch_t batch;
    hws_position_t position = stream_position (&s_stream, 0, 0, 0, 0);
    position.flags = HWS_POSITION_LAST;
    batch_begin (&batch, HWS_BATCH_POSITION);
    batch_add_position (&batch, position);
    batch_send (&batch, s_receiver);
}

static void resume (void)
{
    begin_opening ();
    say_last ();
}

static void resume_both (void)
{
    resume ();
    resume_stream ();
}

static void wait_in_vain (void)
{
    world_advance (&s_world, WORLD_ORPHAN_MS);
}

static const step_t states[] = {
    {"missing", do_nothing, NULL},
    {"awaited", resume_stream, NULL},
    {"opening", begin_opening, NULL},
    {"back", resume, NULL},
    {"taken", resume_both, NULL},
    {"gone", wait_in_vain, NULL},
    {NULL, NULL, NULL},
};

/*  ---- Events ---- */

static void resume_with_a_wrong_token (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_OPEN,
        .as.open = {.open_id = 1, .has_resume = true, .resume.handle = s_handle}};
    client_ask (s_receiver, &message);
    say_last ();
}

static void say_hello (void)
{
    client_hello (s_receiver);
}

static void lose_receiver (void)
{
    client_disconnect (s_receiver);
}

static void resume_stream_with_a_wrong_token (void)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (&s_stream, 0, 0)};
    message.as.attach.session_id = 9;
    message.as.attach.resume.resume_token.bytes[0]++;
    client_ask (s_sender, &message);
}

static void resume_other (uint64_t sender_id)
{
    stream_t stream = {
        .client = s_other, .session_id = sender_id, .handle = s_handle, .sender_id = sender_id};
    stream_resume (&stream, 0, 0);
}

static void resume_unseen (void)
{
    resume_other (3);
}

static void resume_forgotten (void)
{
    resume_other (2);
}

static void attach_first (void)
{
    stream_ask (s_sender, 1, s_handle);
}

static void attach_other (void)
{
    stream_ask (s_other, 5, s_handle);
}

static void cancel_anchor (void)
{
    anchor_cancel (s_other, s_handle, 0, "");
}

static void detach (void)
{
    hws_control_t message = {
        .verb = HWS_VERB_DETACH,
        .as.detach = {.handle = s_handle, .sender_id = s_stream.sender_id, .seq = 0}};
    client_ask (s_other, &message);
}

static void cancel_token (void)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL_TOKEN, .as.token.token = 77};
    client_ask (s_other, &message);
}

static void cancel_token_and_resume (void)
{
    cancel_token ();
    resume ();
}

static void drain (void)
{
    hws_engine_drain (s_world.engine, s_world.now, "restart");
    world_pump (&s_world);
}

static void drain_and_resume (void)
{
    drain ();
    resume ();
}

static void drain_and_resume_stream (void)
{
    drain ();
    resume_stream ();
}

static const step_t events[] = {
    {"OPEN with resume", begin_opening, NULL},
    {"its last POSITION", say_last, NULL},
    {"OPEN with resume and all POSITIONs", resume, NULL},
    {"OPEN with resume, another owner_token", resume_with_a_wrong_token, NULL},
    {"HELLO of its receiver", say_hello, NULL},
    {"connection of its receiver closed", lose_receiver, NULL},
    {"ATTACH with resume", resume_stream, NULL},
    {"ATTACH with resume, another resume_token", resume_stream_with_a_wrong_token, NULL},
    {"ATTACH with resume of a sender not seen", resume_unseen, "awaited"},
    {"ATTACH with resume of a sender forgotten", resume_forgotten, "awaited"},
    {"first ATTACH of that sender again", attach_first, NULL},
    {"ATTACH of another sender", attach_other, "awaited"},
    {"CANCEL by anybody else", cancel_anchor, NULL},
    {"DETACH by anybody else", detach, NULL},
    {"CANCEL_TOKEN of the sender's token", cancel_token, NULL},
    {"CANCEL_TOKEN of that, OPEN with resume and all POSITIONs", cancel_token_and_resume,
     "missing, opening, back, taken, gone"},
    {"broker leaves, OPEN with resume and all POSITIONs", drain_and_resume, NULL},
    {"broker leaves, ATTACH with resume", drain_and_resume_stream, NULL},
    {"orphan_ttl_ms over", wait_in_vain, NULL},
    {NULL, NULL, NULL},
};

static void anchors_of_an_earlier_epoch_follow_their_table (void **state)
{
    (void) state;
    const machine_t machine = {.heading = "Anchor of an earlier epoch, at the broker",
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
    const struct CMUnitTest tests[] = {TABLE_TEST (anchors_of_an_earlier_epoch_follow_their_table)};
    return cmocka_run_group_tests_name ("resume table", tests, NULL, NULL);
}
