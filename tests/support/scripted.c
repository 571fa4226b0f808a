#include "tests/support/scripted.h"

#include "tests/support/blocks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/*  A received batch: the bytes and who holds them.  */
typedef struct {
    hws_payload_t base;
    unsigned holders;
    uint8_t bytes[];
} received_t;

static void hold (hws_payload_t *payload)
{
    ((received_t *) (void *) payload)->holders++;
}

static void release (hws_payload_t *payload)
{
    received_t *const received = (received_t *) (void *) payload;
    if (--received->holders == 0) {
        free (received);
    }
}

/*  ---- What the session does ---- */

static void hear_control (scripted_t *self, const hws_action_t *action)
{
    hws_control_t message;
    hws_control_fault_t fault;
    assert_int_equal (hws_control_decode (hws_bytes_of_text (action->verb),
                                          hws_bytes (action->data, action->size), &message, fault),
                      0);
    if (message.has_id) {
        self->asked_id[message.verb] = message.id;
        self->asked[message.verb] = message;
        self->asked_count[message.verb]++;
    }
    if (message.verb == HWS_VERB_OPEN) {
        self->position_count = 0;
    }
    const bool is_of_stream = message.verb == HWS_VERB_OPEN || message.verb == HWS_VERB_ATTACH ||
                              message.verb == HWS_VERB_CANCEL ||
                              message.verb == HWS_VERB_CANCEL_TOKEN;
    words_add (is_of_stream ? &self->of_streams : &self->of_connection, "%s", action->verb);
}

static void hear_run (scripted_t *self, const hws_run_t *run)
{
    static const char *const words[] = {"RECORDS", "ERROR", "DETACHED", "FINALIZED"};
    assert_true (run->type < sizeof words / sizeof *words);
    words_add (&self->of_streams, "%s", words[run->type]);
}

/*  They belong to the OPEN with resume before them, and end with LAST.  */
static void hear_positions (scripted_t *self, hws_batch_t *batch)
{
    hws_position_t position;
    assert_true (self->asked[HWS_VERB_OPEN].as.open.has_resume);
    while (hws_batch_next_position (batch, &position) == 1) {
        assert_true (self->position_count < SCRIPTED_POSITIONS);
        const size_t before = self->position_count++;
        assert_true (before == 0 || !(self->positions[before - 1].flags & HWS_POSITION_LAST));
        assert_true (position.acked_seq <= position.next_seq);
        assert_true (position.acked_bytes <= position.next_bytes);
        self->positions[before] = position;
    }
    words_add (&self->of_streams, "POSITION");
}

static void hear_batch (scripted_t *self, hws_action_t *action)
{
    hws_batch_t batch;
    hws_run_t run;
    hws_ack_t ack;
    test_gather (action, self->buffer, sizeof self->buffer);
    assert_int_equal (hws_batch_open (&batch, hws_bytes (action->data, action->size)), 0);
    switch (batch.kind) {
    case HWS_BATCH_DATA:
        while (hws_batch_next_run (&batch, &run) == 1) {
            hear_run (self, &run);
        }
        break;
    case HWS_BATCH_ACK:
        while (hws_batch_next_ack (&batch, &ack) == 1) {
            words_add (&self->of_streams, ack.flags & HWS_ACK_ENDED ? "ACK ENDED" : "ACK");
        }
        break;
    case HWS_BATCH_POSITION:
        hear_positions (self, &batch);
        break;
    default:
        assert_int_equal (batch.kind, HWS_BATCH_WINDOW);
        words_add (&self->of_streams, "WINDOW");
        break;
    }
}

void scripted_pump (scripted_t *self)
{
    hws_action_t action;
    while (
        hws_session_pop (&self->session, self->now, self->buffer, sizeof self->buffer, &action)) {
        switch (action.kind) {
        case HWS_ACTION_CONNECT:
            words_add (&self->of_connection, "connect");
            if (self->is_refused) {
                hws_session_lost (&self->session, self->now, "no broker", false);
            }
            break;
        case HWS_ACTION_DISCONNECT:
            words_add (&self->of_connection, "disconnect");
            break;
        case HWS_ACTION_CONTROL:
            hear_control (self, &action);
            free (action.data);
            break;
        case HWS_ACTION_BATCH:
            hear_batch (self, &action);
            break;
        case HWS_ACTION_NONE:
            break;
        }
    }
}

void scripted_pass (scripted_t *self, hws_ms_t length_ms)
{
    const hws_ms_t end = self->now + length_ms;
    hws_ms_t at;
    while ((at = hws_session_wake_at (&self->session)) <= end) {
        self->now = at > self->now ? at : self->now;
        hws_session_expire (&self->session, self->now);
        scripted_pump (self);
    }
    self->now = end;
}

/*  ---- What the broker says ---- */

void scripted_say (scripted_t *self, hws_control_t message)
{
    static uint8_t json[HWS_CONTROL_SIZE_MAX];
    size_t size = 0;
    assert_int_equal (hws_control_encode (&message, json, sizeof json, &size), 0);
    hws_session_control (&self->session, self->now,
                         hws_bytes_of_text (hws_verb_word (message.verb)), hws_bytes (json, size));
    scripted_pump (self);
}

void scripted_answer (scripted_t *self, hws_control_t message)
{
    message.form = message.form == HWS_FORM_ERR ? HWS_FORM_ERR : HWS_FORM_OK;
    message.has_id = true;
    message.id = self->asked_id[message.verb];
    if (message.id == 0) {
        message.id = 1000000; /* nothing was asked: a stray answer */
    }
    scripted_say (self, message);
}

void scripted_refuse (scripted_t *self, hws_verb_t verb, int code)
{
    scripted_answer (
        self, (hws_control_t){.verb = verb, .form = HWS_FORM_ERR, .as.refusal = {.code = code}});
}

static void send_batch (scripted_t *self, hws_batch_kind_t kind, const uint8_t *item, size_t size)
{
    received_t *const received = malloc (sizeof *received + HWS_BATCH_HEADER_SIZE + size);
    assert_non_null (received);
    received->base = (hws_payload_t){.hold = hold, .release = release};
    received->holders = 1;
    hws_batch_put (received->bytes, kind, 1);
    memcpy (received->bytes + HWS_BATCH_HEADER_SIZE, item, size);
    hws_session_batch (&self->session, self->now,
                       hws_bytes (received->bytes, HWS_BATCH_HEADER_SIZE + size), &received->base);
    release (&received->base);
    scripted_pump (self);
}

void scripted_run (scripted_t *self, const hws_run_t *run)
{
    uint8_t bytes[HWS_RUN_HEADER_SIZE + 1024];
    assert_true (run->body.size <= 1024);
    hws_run_put (bytes, run);
    if (run->body.size > 0) {
        memcpy (bytes + HWS_RUN_HEADER_SIZE, run->body.data, run->body.size);
    }
    send_batch (self, HWS_BATCH_DATA, bytes, HWS_RUN_HEADER_SIZE + run->body.size);
}

void scripted_grant (scripted_t *self, const hws_grant_t *grant)
{
    uint8_t bytes[HWS_GRANT_SIZE];
    hws_grant_put (bytes, grant);
    send_batch (self, HWS_BATCH_GRANT, bytes, sizeof bytes);
}

/*  ---- Connections ---- */

void scripted_welcome (scripted_t *self)
{
    hws_control_t message = {.verb = HWS_VERB_HELLO,
                             .as.hello_ok = {.broker_id = self->broker_id,
                                             .epoch = self->epoch,
                                             .protocol = HWS_PROTOCOL_VERSION,
                                             .batch_bytes = HWS_BATCH_BYTES_DEFAULT,
                                             .early_records = HWS_EARLY_RECORDS,
                                             .early_bytes = HWS_EARLY_BYTES}};
    scripted_answer (self, message);
}

void scripted_resync (scripted_t *self)
{
    scripted_say (self, (hws_control_t){.verb = HWS_VERB_RESYNC, .as.epoch = self->epoch});
}

void scripted_lose (scripted_t *self)
{
    hws_session_lost (&self->session, self->now, "cut", false);
    scripted_pump (self);
}

void scripted_return (scripted_t *self)
{
    scripted_pass (self, HWS_BACKOFF_MIN_MS);
    scripted_welcome (self);
}

/*  ---- Birth and death ---- */

void scripted_begin (scripted_t *self)
{
    memset (self, 0, sizeof *self);
    self->now = 1000000;
    self->broker_id = 99;
    self->epoch = 7;
    hws_session_options_t options = {.seed = 1,
                                     .name = "test",
                                     .hash_key = {{1, 2}},
                                     .blocks = &s_test_blocks,
                                     .connect_ms = SCRIPTED_CONNECT_MS,
                                     .give_up_ms = SCRIPTED_GIVE_UP_MS};
    options.client_id.bytes[0] = 1;
    assert_int_equal (hws_session_init (&self->session, &options, self->now), 0);
}

void scripted_end (scripted_t *self)
{
    hws_session_fini (&self->session);
}
