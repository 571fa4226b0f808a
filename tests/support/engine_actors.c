#include "tests/support/engine_actors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/*  ---- Batches ---- */

void batch_begin (batch_t *self, hws_batch_kind_t kind)
{
    self->size = HWS_BATCH_HEADER_SIZE;
    self->count = 0;
    self->bytes[1] = (uint8_t) kind;
}

static uint8_t *grow (batch_t *self, size_t size)
{
    assert_true (size <= sizeof self->bytes - self->size);
    uint8_t *const at = self->bytes + self->size;
    self->size += size;
    self->count++;
    return at;
}

/*  Fills a body with `count` records, as even as can be; each says its number.  */
static void make_records (uint8_t *at, size_t size, uint32_t count, uint64_t first_seq)
{
    memset (at, 0, size);
    for (uint32_t i = 0; i < count; i++) {
        const size_t share = i + 1 < count ? size / count : size - (count - 1) * (size / count);
        hws_record_put (at, (uint32_t) share - HWS_RECORD_HEADER_SIZE);
        if (share > HWS_RECORD_HEADER_SIZE) {
            at[HWS_RECORD_HEADER_SIZE] = (uint8_t) (first_seq + i);
        }
        at += share;
    }
}

void batch_add_run (batch_t *self, hws_run_t run)
{
    uint8_t *const at = grow (self, HWS_RUN_HEADER_SIZE + run.body.size);
    hws_run_put (at, &run);
    if (run.body.data) {
        memcpy (at + HWS_RUN_HEADER_SIZE, run.body.data, run.body.size);
    } else if (run.type == HWS_RUN_RECORDS && run.count > 0) {
        make_records (at + HWS_RUN_HEADER_SIZE, run.body.size, run.count, run.first_seq);
    } else {
        memset (at + HWS_RUN_HEADER_SIZE, 0, run.body.size);
    }
}

void batch_add_ack (batch_t *self, hws_ack_t ack)
{
    hws_ack_put (grow (self, HWS_ACK_SIZE), &ack);
}

void batch_add_position (batch_t *self, hws_position_t position)
{
    hws_position_put (grow (self, HWS_POSITION_SIZE), &position);
}

void batch_add_window (batch_t *self, hws_window_t window)
{
    hws_window_put (grow (self, HWS_WINDOW_SIZE), &window);
}

void batch_send (batch_t *self, client_t *client)
{
    hws_batch_put (self->bytes, self->bytes[1], self->count);
    assert_int_equal (client_send_bytes (client, self->bytes, self->size), 0);
    world_pump (client->world);
}

/*  ---- Anchors ---- */

hws_handle_t anchor_open (client_t *receiver, uint64_t open_id, const char *name,
                          const hws_open_t *open)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN};
    if (open) {
        message.as.open = *open;
    }
    message.as.open.open_id = open_id;
    strcpy (message.as.open.name, name);
    client_ask (receiver, &message);
    return client_take_ok (receiver, HWS_VERB_OPEN)->as.open_ok.handle;
}

void anchor_ack (client_t *receiver, uint64_t routing, uint64_t seq, uint64_t bytes, bool ended)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_ACK);
    batch_add_ack (&batch, (hws_ack_t){.stream = routing,
                                       .acked_seq = seq,
                                       .acked_bytes = bytes,
                                       .flags = ended ? HWS_ACK_ENDED : 0});
    batch_send (&batch, receiver);
}

void anchor_cancel (client_t *client, hws_handle_t handle, uint64_t sender_id, const char *reason)
{
    hws_control_t message = {.verb = HWS_VERB_CANCEL,
                             .as.cancel = {.handle = handle, .sender_id = sender_id}};
    strcpy (message.as.cancel.reason, reason);
    client_ask (client, &message);
}

/*  ---- Streams ---- */

void stream_ask (client_t *client, uint64_t session_id, hws_handle_t handle)
{
    hws_control_t message = {
        .verb = HWS_VERB_ATTACH,
        .as.attach = {.has_handle = true, .handle = handle, .session_id = session_id}};
    client_ask (client, &message);
}

static void take_answer (stream_t *self)
{
    const hws_attach_ok_t *const ok = &client_take_ok (self->client, HWS_VERB_ATTACH)->as.attach_ok;
    assert_false (ok->has_ended);
    assert_string_equal (ok->streaming_transport_key, HWS_TRANSPORT_MUX);
    self->handle = ok->handle;
    self->sender_id = ok->sender_id;
    self->routing = ok->routing_session_id;
    self->next_seq = ok->next_seq;
    self->next_bytes = ok->next_bytes;
    self->limit_seq = ok->next_seq + ok->initial_credit;
    self->limit_bytes = ok->next_bytes + ok->slot_byte_budget;
}

stream_t stream_attach (client_t *client, uint64_t session_id, hws_handle_t handle)
{
    stream_t self = {.client = client, .session_id = session_id};
    stream_ask (client, session_id, handle);
    take_answer (&self);
    return self;
}

void stream_attach_again (stream_t *self)
{
    stream_ask (self->client, self->session_id, self->handle);
    take_answer (self);
}

hws_run_t stream_records (stream_t *self, uint32_t count, size_t size)
{
    const hws_run_t run = {.stream = self->session_id,
                           .first_seq = self->next_seq,
                           .count = count,
                           .type = HWS_RUN_RECORDS,
                           .body = {NULL, count * (HWS_RECORD_HEADER_SIZE + size)}};
    self->next_seq += count;
    self->next_bytes += run.body.size;
    return run;
}

void stream_send (stream_t *self, uint32_t count, size_t size)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_records (self, count, size));
    batch_send (&batch, self->client);
}

hws_run_t stream_ending (stream_t *self, hws_run_type_t type)
{
    const hws_run_t run = {.stream = self->session_id,
                           .first_seq = self->next_seq,
                           .count = 1,
                           .type = (uint8_t) type,
                           .body = {NULL, HWS_ENDING_HEADER_SIZE}};
    self->next_seq += 1;
    self->next_bytes += run.body.size;
    return run;
}

void stream_end (stream_t *self)
{
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_DATA);
    batch_add_run (&batch, stream_ending (self, HWS_RUN_DETACHED));
    batch_send (&batch, self->client);
}

/*  ---- Resume ---- */

void anchor_resuming (client_t *receiver, uint64_t open_id, hws_handle_t handle,
                      const hws_open_t *open)
{
    hws_control_t message = {.verb = HWS_VERB_OPEN};
    hws_open_t *const it = &message.as.open;
    if (open) {
        *it = *open;
    }
    it->open_id = open_id;
    it->has_resume = true;
    it->resume.handle = handle;
    it->resume.owner_token =
        hws_credential_make (receiver->world->options.key, HWS_CREDENTIAL_OWNER, handle, 0);
    client_ask (receiver, &message);
}

void anchor_resume (client_t *receiver, uint64_t open_id, hws_handle_t handle, uint64_t highest,
                    const hws_position_t *positions, size_t count)
{
    const hws_open_t open = {.resume.highest_sender_id = highest};
    const hws_position_t mark = {.flags = HWS_POSITION_LAST};
    anchor_resuming (receiver, open_id, handle, &open);
    batch_t batch;
    batch_begin (&batch, HWS_BATCH_POSITION);
    for (size_t i = 0; i < count; i++) {
        hws_position_t position = positions[i];
        position.flags |= i + 1 == count ? HWS_POSITION_LAST : 0;
        batch_add_position (&batch, position);
    }
    if (count == 0) {
        batch_add_position (&batch, mark);
    }
    batch_send (&batch, receiver);
}

hws_position_t stream_position (const stream_t *self, uint64_t got, uint64_t got_bytes,
                                uint64_t acked, uint64_t acked_bytes)
{
    return (hws_position_t){.sender_id = self->sender_id,
                            .next_seq = got,
                            .next_bytes = got_bytes,
                            .acked_seq = acked,
                            .acked_bytes = acked_bytes,
                            .seat_key =
                                hws_credential_seat_key (self->client->world->options.key,
                                                         &self->client->id, self->session_id)};
}

hws_attach_t stream_request (const stream_t *self, uint64_t acked, uint64_t acked_bytes)
{
    hws_attach_t request = {.has_handle = true,
                            .handle = self->handle,
                            .session_id = self->session_id,
                            .has_resume = true,
                            .resume = {.sender_id = self->sender_id,
                                       .acked_seq = acked,
                                       .acked_bytes = acked_bytes,
                                       .next_seq = self->next_seq}};
    request.resume.resume_token = hws_credential_make (
        self->client->world->options.key, HWS_CREDENTIAL_SENDER, self->handle, self->sender_id);
    return request;
}

void stream_resume (stream_t *self, uint64_t acked, uint64_t acked_bytes)
{
    hws_control_t message = {.verb = HWS_VERB_ATTACH,
                             .as.attach = stream_request (self, acked, acked_bytes)};
    client_ask (self->client, &message);
}

/*  ---- What is expected ---- */

const hws_run_t *expect_run (client_t *receiver, hws_run_type_t type, uint64_t routing,
                             uint64_t first_seq, uint32_t count)
{
    const hws_run_t *const run = client_take_run (receiver, type);
    assert_true (run->stream == routing);
    assert_true (run->first_seq == first_seq);
    assert_int_equal (run->count, count);
    return run;
}

void expect_ending (client_t *receiver, uint64_t routing, hws_run_type_t type, const char *cause)
{
    const hws_run_t *const run = client_take_run (receiver, type);
    assert_true (run->stream == routing);
    assert_int_equal (run->count, 0);
    hws_ending_t ending;
    assert_int_equal (hws_ending_decode (run->body, &ending), 0);
    assert_string_equal (hws_cause_word (ending.cause), cause);
}

void expect_told (client_t *sender, uint64_t session_id, const char *ending, const char *cause)
{
    const hws_stream_cancel_t *const told =
        &client_take (sender, HWS_VERB_STREAM_CANCEL)->as.stream_cancel;
    assert_int_equal (told->session_id, session_id);
    assert_string_equal (told->ending, ending);
    assert_string_equal (told->code, cause);
}
