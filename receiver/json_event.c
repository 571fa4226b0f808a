#include "receiver/json_event.h"

#include "base/assert.h"
#include "base/json_writer.h"
#include "base/utf8.h"

#include <stdlib.h>

/*  Room for everything but the data: a label and a reason, escaped.  */
#define FIRST_SIZE 16384

/*  More than the name and the quotes of `data_base64` take.  */
#define NAME_ROOM 32

void hws_json_event_fini (hws_json_event_t *self)
{
    free (self->buffer);
    *self = (hws_json_event_t){0};
}

static const char *event_word (hws_event_kind_t kind)
{
    switch (kind) {
    case HWS_EVENT_ATTACHED:
        return "attached";
    case HWS_EVENT_RECORD:
        return "record";
    case HWS_EVENT_ERROR:
        return "error";
    case HWS_EVENT_DETACHED:
        return "detached";
    case HWS_EVENT_FINALIZED:
        return "finalized";
    case HWS_EVENT_DROPPED:
        return "dropped";
    case HWS_EVENT_CANCELLED:
        return "cancelled";
    case HWS_EVENT_CLOSED:
        return "closed";
    }
    return "unknown";
}

static size_t base64_size (size_t size)
{
    return (size / 3 + (size % 3 > 0)) * 4;
}

static void encode_base64 (hws_bytes_t data, uint8_t *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    hws_cursor_t cursor = hws_cursor (data);
    while (cursor.left > 0) {
        const size_t taken = cursor.left < 3 ? cursor.left : 3;
        uint32_t bits = 0;
        for (size_t i = 0; i < 3; i++) {
            bits = bits << 8 | (i < taken ? hws_cursor_u8 (&cursor) : 0u);
        }
        for (size_t i = 0; i < 4; i++) {
            *text++ = (uint8_t) (i > taken ? '=' : digits[bits >> (18 - 6 * i) & 0x3f]);
        }
    }
}

/*  `data` of a record. The base64 text is made at the end of the buffer, far enough
 *  behind its place that the writer, who copies it there, stays before it.  */
static void put_data (hws_json_writer_t *writer, hws_bytes_t data)
{
    if (hws_utf8_is_valid (data)) {
        hws_json_put_name (writer, "data");
        hws_json_put_text (writer, data);
        return;
    }
    const size_t size = base64_size (data.size);
    const size_t left = writer->size - writer->used;
    if (left < NAME_ROOM || size > (left - NAME_ROOM) / 2) {
        writer->is_full = true;
        return;
    }
    uint8_t *const text = writer->buffer + writer->size - size;
    encode_base64 (data, text);
    hws_json_put_name (writer, "data_base64");
    hws_json_put_text (writer, hws_bytes (text, size));
}

static void put_member_text (hws_json_writer_t *writer, const char *name, const char *text)
{
    hws_json_put_name (writer, name);
    hws_json_put_text (writer, hws_bytes_of_text (text));
}

static void put_member_decimal (hws_json_writer_t *writer, const char *name, uint64_t value)
{
    hws_json_put_name (writer, name);
    hws_json_put_decimal (writer, value);
}

/*  Null for a text that is not there.  */
static void put_member_name (hws_json_writer_t *writer, const char *name, const char *text)
{
    hws_json_put_name (writer, name);
    if (text && text[0]) {
        hws_json_put_text (writer, hws_bytes_of_text (text));
    } else {
        hws_json_put_null (writer);
    }
}

static void put_sender (hws_json_writer_t *writer, const hws_event_t *event)
{
    put_member_decimal (writer, "sender", event->sender_id);
    put_member_name (writer, "label", event->label);
}

/*  The stable word, which a clean ending has not, and the sentence, which may be empty.  */
static void put_cause (hws_json_writer_t *writer, const hws_event_t *event)
{
    const bool is_clean = event->kind == HWS_EVENT_DETACHED || event->kind == HWS_EVENT_FINALIZED;
    if (!is_clean) {
        put_member_text (writer, "cause", event->cause ? event->cause : "");
    }
    put_member_text (writer, "reason", event->reason ? event->reason : "");
}

static void put_event (hws_json_writer_t *writer, const hws_event_t *event)
{
    hws_json_open (writer, '{');
    put_member_text (writer, "event", event_word (event->kind));
    if (event->kind != HWS_EVENT_CLOSED) {
        put_sender (writer, event);
    }
    switch (event->kind) {
    case HWS_EVENT_RECORD:
        put_member_decimal (writer, "seq", event->seq);
        put_data (writer, hws_bytes (event->data, event->size));
        break;
    case HWS_EVENT_ERROR:
        put_member_decimal (writer, "seq", event->seq);
        hws_json_put_name (writer, "text");
        hws_json_put_text (writer, hws_bytes (event->data, event->size));
        break;
    case HWS_EVENT_DETACHED:
    case HWS_EVENT_FINALIZED:
    case HWS_EVENT_DROPPED:
    case HWS_EVENT_CANCELLED:
        put_cause (writer, event);
        put_member_decimal (writer, "records", event->records);
        put_member_decimal (writer, "bytes", event->bytes);
        break;
    case HWS_EVENT_CLOSED:
        put_cause (writer, event);
        break;
    case HWS_EVENT_ATTACHED:
        break;
    }
    hws_json_close (writer, '}');
}

static void put_opened (hws_json_writer_t *writer, const char *anchor, const char *handle)
{
    hws_json_open (writer, '{');
    put_member_text (writer, "event", "opened");
    put_member_name (writer, "anchor", anchor);
    put_member_text (writer, "handle", handle);
    hws_json_close (writer, '}');
}

static int grow (hws_json_event_t *self)
{
    const size_t size = self->size == 0 ? FIRST_SIZE : self->size * 2;
    uint8_t *const larger = size > self->size ? realloc (self->buffer, size) : NULL;
    if (larger == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->buffer = larger;
    self->size = size;
    return 0;
}

int hws_json_event_write (hws_json_event_t *self, const hws_event_t *event, hws_bytes_t *line)
{
    for (;;) {
        hws_json_writer_t writer;
        hws_json_writer_init (&writer, self->buffer, self->size);
        put_event (&writer, event);
        if (!writer.is_full) {
            *line = hws_bytes (writer.buffer, writer.used);
            return 0;
        }
        const int rc = grow (self);
        if (rc < 0) {
            return rc;
        }
    }
}

int hws_json_event_write_opened (hws_json_event_t *self, const char *anchor, const char *handle,
                                 hws_bytes_t *line)
{
    const int rc = self->size == 0 ? grow (self) : 0;
    if (rc < 0) {
        return rc;
    }
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, self->buffer, self->size);
    put_opened (&writer, anchor, handle);
    hws_assert (!writer.is_full);
    *line = hws_bytes (writer.buffer, writer.used);
    return 0;
}
