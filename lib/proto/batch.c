#include "proto/batch.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"

#include <string.h>

#define IGNORED_FROM    128u        /* kinds and run types from here on may be unknown */
#define RUN_FLAGS_MUST  0x0fu       /* flags that must be understood: the lower half */
#define ITEM_FLAGS_MUST 0x0000ffffu /* the same of a GRANT, ACK or POSITION */

/*  Offsets in a run's header (docs/protocol.md, "Runs").  */
#define RUN_TYPE_AT 24

static int malformed (hws_batch_t *self)
{
    self->cursor.bad = true;
    return HWS_EMALFORMED;
}

static int not_understood (hws_batch_t *self)
{
    self->cursor.bad = true;
    return HWS_EPROTOCOL;
}

/*  ---- Reading ---- */

int hws_batch_open (hws_batch_t *self, hws_bytes_t message)
{
    *self = (hws_batch_t){.cursor = hws_cursor (message)};
    const uint8_t mark = hws_cursor_u8 (&self->cursor);
    self->kind = hws_cursor_u8 (&self->cursor);
    self->count = hws_cursor_u16 (&self->cursor);
    hws_cursor_u32 (&self->cursor);
    if (self->cursor.bad || mark != HWS_BATCH_MARK) {
        return malformed (self);
    }
    if (self->kind < HWS_BATCH_DATA ||
        (self->kind > HWS_BATCH_WINDOW && self->kind < IGNORED_FROM)) {
        return not_understood (self);
    }
    return 0;
}

/*  Begins the next item. Returns 1 if there is one, 0 after the last.  */
static int next_item (hws_batch_t *self)
{
    if (self->cursor.bad) {
        return HWS_EMALFORMED;
    }
    if (self->count == 0) {
        return self->cursor.left == 0 ? 0 : malformed (self);
    }
    self->count--;
    return 1;
}

/*  Ends an item whose fields have been read; `must` has the flags that this version
 *  has to know, `known` those that it does.  */
static int end_item (hws_batch_t *self, uint32_t flags, uint32_t must, uint32_t known)
{
    if (self->cursor.bad) {
        return malformed (self);
    }
    return flags & must & ~known ? not_understood (self) : 1;
}

int hws_batch_next_run (hws_batch_t *self, hws_run_t *run)
{
    hws_assert (self->kind == HWS_BATCH_DATA);

    const int rc = next_item (self);
    if (rc <= 0) {
        return rc;
    }
    hws_cursor_t *const cursor = &self->cursor;
    run->stream = hws_cursor_u64 (cursor);
    run->first_seq = hws_cursor_u64 (cursor);
    run->count = hws_cursor_u32 (cursor);
    const uint32_t size = hws_cursor_u32 (cursor);
    run->type = hws_cursor_u8 (cursor);
    run->flags = hws_cursor_u8 (cursor);
    hws_cursor_u16 (cursor);
    hws_cursor_u32 (cursor);
    run->body = hws_bytes (hws_cursor_take (cursor, size), size);
    if (!cursor->bad && run->type > HWS_RUN_VOID && run->type < IGNORED_FROM) {
        return not_understood (self);
    }
    /*  The other fields of a VOID run mean nothing, whatever they are.  */
    const uint32_t must = run->type == HWS_RUN_VOID ? 0 : RUN_FLAGS_MUST;
    return end_item (self, run->flags, must, HWS_RUN_MORE);
}

int hws_batch_next_grant (hws_batch_t *self, hws_grant_t *grant)
{
    hws_assert (self->kind == HWS_BATCH_GRANT);

    const int rc = next_item (self);
    if (rc <= 0) {
        return rc;
    }
    grant->stream = hws_cursor_u64 (&self->cursor);
    grant->acked_seq = hws_cursor_u64 (&self->cursor);
    grant->next_seq = hws_cursor_u64 (&self->cursor);
    grant->limit_seq = hws_cursor_u64 (&self->cursor);
    grant->limit_bytes = hws_cursor_u64 (&self->cursor);
    grant->flags = hws_cursor_u32 (&self->cursor);
    hws_cursor_u32 (&self->cursor);
    return end_item (self, grant->flags, ITEM_FLAGS_MUST, HWS_GRANT_REWIND | HWS_GRANT_RETURN);
}

int hws_batch_next_ack (hws_batch_t *self, hws_ack_t *ack)
{
    hws_assert (self->kind == HWS_BATCH_ACK);

    const int rc = next_item (self);
    if (rc <= 0) {
        return rc;
    }
    ack->stream = hws_cursor_u64 (&self->cursor);
    ack->acked_seq = hws_cursor_u64 (&self->cursor);
    ack->acked_bytes = hws_cursor_u64 (&self->cursor);
    ack->flags = hws_cursor_u32 (&self->cursor);
    hws_cursor_u32 (&self->cursor);
    return end_item (self, ack->flags, ITEM_FLAGS_MUST, HWS_ACK_ENDED);
}

int hws_batch_next_position (hws_batch_t *self, hws_position_t *position)
{
    hws_assert (self->kind == HWS_BATCH_POSITION);

    const int rc = next_item (self);
    if (rc <= 0) {
        return rc;
    }
    position->sender_id = hws_cursor_u64 (&self->cursor);
    position->next_seq = hws_cursor_u64 (&self->cursor);
    position->next_bytes = hws_cursor_u64 (&self->cursor);
    position->acked_seq = hws_cursor_u64 (&self->cursor);
    position->acked_bytes = hws_cursor_u64 (&self->cursor);
    position->seat_key = hws_cursor_u64 (&self->cursor);
    position->flags = hws_cursor_u32 (&self->cursor);
    position->type = hws_cursor_u8 (&self->cursor);
    hws_cursor_u8 (&self->cursor);
    position->cause = hws_cursor_u16 (&self->cursor);
    return end_item (self, position->flags, ITEM_FLAGS_MUST,
                     HWS_POSITION_ENDED | HWS_POSITION_LAST | HWS_POSITION_CONSUMED);
}

int hws_batch_next_window (hws_batch_t *self, hws_window_t *window)
{
    hws_assert (self->kind == HWS_BATCH_WINDOW);

    const int rc = next_item (self);
    if (rc <= 0) {
        return rc;
    }
    window->stream = hws_cursor_u64 (&self->cursor);
    window->limit_seq = hws_cursor_u64 (&self->cursor);
    window->limit_bytes = hws_cursor_u64 (&self->cursor);
    window->want_bytes = hws_cursor_u64 (&self->cursor);
    return end_item (self, 0, 0, 0);
}

int hws_ending_decode (hws_bytes_t body, hws_ending_t *ending)
{
    hws_cursor_t cursor = hws_cursor (body);
    ending->cause = hws_cursor_u16 (&cursor);
    hws_cursor_u16 (&cursor);
    ending->records = hws_cursor_u64 (&cursor);
    ending->bytes = hws_cursor_u64 (&cursor);
    const size_t size = cursor.left;
    ending->text = hws_bytes (hws_cursor_take (&cursor, size), size);
    return cursor.bad || size > HWS_TEXT_SIZE_MAX ? HWS_EMALFORMED : 0;
}

/*  ---- Writing ---- */

void hws_batch_put (uint8_t *at, hws_batch_kind_t kind, uint16_t count)
{
    at[0] = HWS_BATCH_MARK;
    at[1] = (uint8_t) kind;
    hws_put_u16 (at + 2, count);
    hws_put_u32 (at + 4, 0);
}

void hws_run_put (uint8_t *at, const hws_run_t *run)
{
    hws_assert (run->body.size <= UINT32_MAX);

    hws_put_u64 (at, run->stream);
    hws_put_u64 (at + 8, run->first_seq);
    hws_put_u32 (at + 16, run->count);
    hws_put_u32 (at + 20, (uint32_t) run->body.size);
    at[RUN_TYPE_AT] = run->type;
    at[25] = run->flags;
    hws_put_u16 (at + 26, 0);
    hws_put_u32 (at + 28, 0);
}

void hws_record_put (uint8_t *at, uint32_t size)
{
    hws_assert (size <= HWS_RECORD_SIZE_MAX);

    hws_put_u32 (at, size);
}

void hws_ending_put (uint8_t *at, const hws_ending_t *ending)
{
    hws_assert (ending->text.size <= HWS_TEXT_SIZE_MAX);

    hws_put_u16 (at, ending->cause);
    hws_put_u16 (at + 2, 0);
    hws_put_u64 (at + 4, ending->records);
    hws_put_u64 (at + 12, ending->bytes);
    if (ending->text.size > 0) {
        memcpy (at + HWS_ENDING_HEADER_SIZE, ending->text.data, ending->text.size);
    }
}

void hws_grant_put (uint8_t *at, const hws_grant_t *grant)
{
    hws_put_u64 (at, grant->stream);
    hws_put_u64 (at + 8, grant->acked_seq);
    hws_put_u64 (at + 16, grant->next_seq);
    hws_put_u64 (at + 24, grant->limit_seq);
    hws_put_u64 (at + 32, grant->limit_bytes);
    hws_put_u32 (at + 40, grant->flags);
    hws_put_u32 (at + 44, 0);
}

void hws_ack_put (uint8_t *at, const hws_ack_t *ack)
{
    hws_put_u64 (at, ack->stream);
    hws_put_u64 (at + 8, ack->acked_seq);
    hws_put_u64 (at + 16, ack->acked_bytes);
    hws_put_u32 (at + 24, ack->flags);
    hws_put_u32 (at + 28, 0);
}

void hws_position_put (uint8_t *at, const hws_position_t *position)
{
    hws_put_u64 (at, position->sender_id);
    hws_put_u64 (at + 8, position->next_seq);
    hws_put_u64 (at + 16, position->next_bytes);
    hws_put_u64 (at + 24, position->acked_seq);
    hws_put_u64 (at + 32, position->acked_bytes);
    hws_put_u64 (at + 40, position->seat_key);
    hws_put_u32 (at + 48, position->flags);
    at[52] = position->type;
    at[53] = 0;
    hws_put_u16 (at + 54, position->cause);
}

void hws_window_put (uint8_t *at, const hws_window_t *window)
{
    hws_put_u64 (at, window->stream);
    hws_put_u64 (at + 8, window->limit_seq);
    hws_put_u64 (at + 16, window->limit_bytes);
    hws_put_u64 (at + 24, window->want_bytes);
}

void hws_run_set_stream (uint8_t *header, uint64_t stream)
{
    hws_put_u64 (header, stream);
}

void hws_run_set_type (uint8_t *header, hws_run_type_t type)
{
    header[RUN_TYPE_AT] = (uint8_t) type;
}

/*  ---- Words ---- */

static const char *const s_ending_words[] = {
    [HWS_RUN_DETACHED] = "detached",
    [HWS_RUN_FINALIZED] = "finalized",
    [HWS_RUN_DROPPED] = "dropped",
    [HWS_RUN_CANCELLED] = "cancelled",
};

static const char *const s_cause_words[] = {
    [HWS_CAUSE_NONE] = "none",
    [HWS_CAUSE_HEARTBEAT] = "heartbeat",
    [HWS_CAUSE_TRANSPORT] = "transport",
    [HWS_CAUSE_PROTOCOL] = "protocol",
    [HWS_CAUSE_LOST] = "lost",
    [HWS_CAUSE_ABANDONED] = "abandoned",
    [HWS_CAUSE_RECEIVER_CLOSED] = "receiver_closed",
    [HWS_CAUSE_REQUESTED] = "requested",
    [HWS_CAUSE_EXPIRED] = "expired",
    [HWS_CAUSE_SUPERSEDED] = "superseded",
    [HWS_CAUSE_INTERRUPTED] = "interrupted",
    [HWS_CAUSE_UNKNOWN] = "unknown",
    [HWS_CAUSE_FINALIZED] = "finalized",
};

#define CAUSE_COUNT (sizeof s_cause_words / sizeof *s_cause_words)

const char *hws_ending_word (uint8_t type)
{
    return hws_run_is_ending (type) ? s_ending_words[type] : "unknown";
}

const char *hws_cause_word (uint16_t cause)
{
    return cause < CAUSE_COUNT ? s_cause_words[cause] : "unknown";
}

uint8_t hws_ending_from_word (const char *word)
{
    for (uint8_t type = HWS_RUN_DETACHED; type <= HWS_RUN_CANCELLED; type++) {
        if (strcmp (word, s_ending_words[type]) == 0) {
            return type;
        }
    }
    return 0;
}

uint16_t hws_cause_from_word (const char *word)
{
    for (uint16_t cause = 0; cause < CAUSE_COUNT; cause++) {
        if (strcmp (word, s_cause_words[cause]) == 0) {
            return cause;
        }
    }
    return HWS_CAUSE_UNKNOWN;
}
