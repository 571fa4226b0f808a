#include "tests/support/model_hear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/*  ---- Bodies of runs ---- */

static void ending_text (hws_bytes_t body, char text[MODEL_TEXT])
{
    hws_ending_t ending;
    if (hws_ending_decode (body, &ending) != 0) {
        strcpy (text, "malformed");
        return;
    }
    char reason[MODEL_WORD] = "";
    snprintf (reason, sizeof reason, "%.*s", (int) ending.text.size,
              (const char *) ending.text.data);
    snprintf (text, MODEL_TEXT, "%s records=%" PRIu64 " bytes=%" PRIu64 " reason '%s'",
              hws_cause_word (ending.cause), ending.records, ending.bytes,
              strncmp (reason, "because", 7) == 0 ? reason : "");
}

static void attached_text (hws_bytes_t body, char text[MODEL_TEXT])
{
    hws_attached_t attached;
    if (hws_attached_decode (body, &attached) != 0 || attached.handle.hi != 0xb0b0) {
        strcpy (text, "malformed");
        return;
    }
    snprintf (text, MODEL_TEXT, "anchor=%u sender=%" PRIu64 " session=%" PRIu64 " label='%.20s'",
              hws_handle_count (attached.handle), attached.sender_id, attached.session_id,
              attached.label);
}

void model_body_text (const hws_run_t *run, char text[MODEL_TEXT])
{
    if (run->type == HWS_RUN_ATTACHED) {
        attached_text (run->body, text);
    } else if (hws_run_is_ending (run->type)) {
        ending_text (run->body, text);
    } else {
        uint64_t sum = run->body.size;
        for (size_t i = 0; i + 4 <= run->body.size; i += 4) {
            sum = sum * 31 + hws_get_u32 (run->body.data + i);
        }
        snprintf (text, MODEL_TEXT, "size=%zu sum=%" PRIx64, run->body.size, sum);
    }
}

/*  ---- Messages ---- */

__attribute__ ((format (printf, 4, 5))) static void heard (model_world_t *self, int client,
                                                           uint32_t connection, const char *format,
                                                           ...)
{
    assert_true (self->heard_count < MODEL_LINES);
    model_line_t *const line = &self->heard[self->heard_count++];
    line->client = client;
    line->connection = connection;
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (line->text, sizeof line->text, format, arguments);
    va_end (arguments);
}

/*  Reasons that clients gave reach both ends; the broker's own are for people.  */
static const char *given (const char *reason)
{
    return strncmp (reason, "because", 7) == 0 ? reason : "";
}

static const char *word_of (hws_optional_t number, char text[MODEL_WORD])
{
    if (number.state == HWS_VALUE) {
        snprintf (text, MODEL_WORD, "%" PRIu64, number.value);
        return text;
    }
    return "null";
}

static void hear_attach (model_world_t *self, int client, uint32_t connection,
                         const hws_control_t *message)
{
    const hws_attach_ok_t *const it = &message->as.attach_ok;
    const uint32_t count = hws_handle_count (it->handle);
    if (it->has_ended) {
        heard (self, client, connection,
               "ATTACH %" PRIu64 " Ok anchor=%u sender=%" PRIu64 " ended %s(%s) acked=%" PRIu64
               "/%" PRIu64 " reason '%s'",
               message->id, count, it->sender_id, it->ending, it->code, it->acked_seq,
               it->acked_bytes, given (it->reason));
        return;
    }
    if (*it->endpoint) {
        heard (self, client, connection,
               "ATTACH %" PRIu64 " Ok anchor=%u endpoint=%s heartbeat=%" PRIu64 " record=%" PRIu64,
               message->id, count, it->endpoint, it->heartbeat_interval_ms, it->record_bytes);
        return;
    }
    heard (self, client, connection,
           "ATTACH %" PRIu64 " Ok anchor=%u sender=%" PRIu64 " routing=%" PRIu64
           " heartbeat=%" PRIu64 " next=%" PRIu64 "/%" PRIu64 " acked=%" PRIu64 "/%" PRIu64
           " credit=%" PRIu64 "/%" PRIu64 " record=%" PRIu64 " early=%s",
           message->id, count, it->sender_id, it->routing_session_id, it->heartbeat_interval_ms,
           it->next_seq, it->next_bytes, it->acked_seq, it->acked_bytes, it->initial_credit,
           it->slot_byte_budget, it->record_bytes, it->early_kept ? "kept" : "dropped");
}

static void hear_ok (model_world_t *self, int client, uint32_t connection,
                     const hws_control_t *message)
{
    char unattached[MODEL_WORD], senders[MODEL_WORD];
    const hws_open_ok_t *const open = &message->as.open_ok;
    const hws_hello_ok_t *const hello = &message->as.hello_ok;
    switch ((int) message->verb) {
    case HWS_VERB_HELLO:
        heard (self, client, connection,
               "HELLO %" PRIu64 " Ok epoch=%" PRIu64 " batch=%" PRIu64 " record=%" PRIu64,
               message->id, hello->epoch, hello->batch_bytes, hello->record_bytes);
        return;
    case HWS_VERB_OPEN:
        heard (self, client, connection,
               "OPEN %" PRIu64 " Ok anchor=%u heartbeat=%" PRIu64 " grace=%" PRIu64
               " unattached=%s orphan=%" PRIu64 " senders=%s buffer=%" PRIu64 " record=%" PRIu64,
               message->id, hws_handle_count (open->handle), open->heartbeat_interval_ms,
               open->reconnect_grace_ms, word_of (open->unattached_timeout_ms, unattached),
               open->orphan_ttl_ms, word_of (open->max_senders, senders), open->buffer_bytes,
               open->record_bytes);
        return;
    case HWS_VERB_ATTACH:
        hear_attach (self, client, connection, message);
        return;
    default:
        heard (self, client, connection, "%s %" PRIu64 " Ok%s", hws_verb_word (message->verb),
               message->id,
               message->verb == HWS_VERB_RESERVE_TOKEN && message->as.token.token == 0 ? " 0" : "");
        return;
    }
}

static void hear_word (model_world_t *self, int client, uint32_t connection,
                       const hws_control_t *message)
{
    const hws_stream_cancel_t *const cancel = &message->as.stream_cancel;
    const hws_anchor_closed_t *const closed = &message->as.anchor_closed;
    switch ((int) message->verb) {
    case HWS_VERB_STREAM_CANCEL:
        if (*cancel->ending == '\0') { /* of no stream: before the runs beside it, or behind */
            heard (self, MODEL_SHELL, connection, "client %d: STREAM_CANCEL session=%" PRIu64 " %s",
                   client, cancel->session_id, cancel->code);
            return;
        }
        heard (self, client, connection,
               "STREAM_CANCEL session=%" PRIu64 " handle=%" PRIx64 " %s(%s) next=%" PRIu64
               " reason '%s'",
               cancel->session_id, cancel->stream_cancel_handle.lo, cancel->ending, cancel->code,
               cancel->next_seq, given (cancel->reason));
        return;
    case HWS_VERB_ANCHOR_CLOSED:
        heard (self, client, connection,
               "ANCHOR_CLOSED anchor=%u code=%s %" PRIu64 " detached %" PRIu64 " finalized %" PRIu64
               " dropped %" PRIu64 " cancelled, reason '%s'",
               hws_handle_count (closed->handle), closed->code, closed->detached, closed->finalized,
               closed->dropped, closed->cancelled, given (closed->reason));
        return;
    case HWS_VERB_RESYNC:
        heard (self, client, connection, "RESYNC epoch=%" PRIu64, message->as.epoch);
        return;
    default:
        heard (self, client, connection, "%s", hws_verb_word (message->verb));
        return;
    }
}

void model_hear_control (model_world_t *self, int client, uint32_t connection, const char *verb,
                         hws_bytes_t json)
{
    hws_control_t *const message = &self->control;
    hws_control_fault_t fault = "";
    if (hws_control_decode (hws_bytes_of_text (verb), json, message, fault) != 0) {
        heard (self, client, connection, "%s that cannot be read: %s", verb, fault);
    } else if (message->form == HWS_FORM_ERR && message->verb == HWS_VERB_ERROR) {
        heard (self, client, connection, "ERROR Err %s", hws_error_word (message->as.refusal.code));
    } else if (message->form == HWS_FORM_ERR) {
        heard (self, client, connection, "%s %" PRIu64 " Err %s", verb, message->id,
               hws_error_word (message->as.refusal.code));
    } else if (message->form == HWS_FORM_OK) {
        hear_ok (self, client, connection, message);
    } else {
        hear_word (self, client, connection, message);
    }
}

/*  Only the last GRANT for a stream counts, but none of the REWINDs is forgotten.  */
static void hear_grant (model_world_t *self, int client, uint32_t connection, const hws_grant_t *it)
{
    model_grant_t grant = {.client = client,
                           .connection = connection,
                           .session_id = it->stream,
                           .acked_seq = it->acked_seq,
                           .next_seq = it->next_seq,
                           .limit_seq = it->limit_seq,
                           .limit_bytes = it->limit_bytes,
                           .is_rewind = (it->flags & HWS_GRANT_REWIND) != 0,
                           .is_return = (it->flags & HWS_GRANT_RETURN) != 0};
    size_t i = 0;
    while (i < self->granted_count &&
           (self->granted[i].client != client || self->granted[i].session_id != it->stream)) {
        i++;
    }
    assert_true (i < MODEL_HEARD_GRANTS);
    if (i == self->granted_count) {
        self->granted_count++;
    } else {
        grant.is_rewind = grant.is_rewind || self->granted[i].is_rewind;
        if (grant.limit_bytes == 0) { /* no change */
            grant.limit_bytes = self->granted[i].limit_bytes;
        }
    }
    self->granted[i] = grant;
}

void model_hear_batch (model_world_t *self, int client, uint32_t connection, hws_bytes_t bytes)
{
    hws_batch_t batch;
    hws_run_t run;
    hws_grant_t grant;
    int rc = hws_batch_open (&batch, bytes);
    const bool is_good = rc == 0 && bytes.size <= self->model.options.limits.batch_bytes &&
                         batch.count > 0 &&
                         (batch.kind == HWS_BATCH_GRANT || batch.kind == HWS_BATCH_DATA);
    if (is_good && batch.kind == HWS_BATCH_GRANT) {
        while ((rc = hws_batch_next_grant (&batch, &grant)) == 1) {
            hear_grant (self, client, connection, &grant);
        }
    } else if (is_good) {
        while ((rc = hws_batch_next_run (&batch, &run)) == 1) {
            if (run.type != HWS_RUN_VOID) {
                char body[MODEL_TEXT];
                model_body_text (&run, body);
                heard (self, client, connection,
                       "run %" PRIx64 " type=%u first=%" PRIu64 " count=%u flags=%x %s", run.stream,
                       run.type, run.first_seq, run.count, run.flags, body);
            }
        }
    }
    if (!is_good || rc != 0) {
        heard (self, client, connection, "a batch that cannot be read");
    }
}

void model_hear_shell (model_world_t *self, bool is_bind, uint32_t front)
{
    heard (self, MODEL_SHELL, 0, "%s %u", is_bind ? "bind" : "unbind", front);
}
