#include "framing/splitter.h"

#include "base/assert.h"
#include "base/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX_SIZE 4

/*  The least room, four good chunks: one read then makes four full messages.  */
#define ROOM_SIZE ((size_t) 4 * HWS_FRAMING_CHUNK_SIZE)

void hws_splitter_init (hws_splitter_t *self, hws_framing_t framing, uint64_t size_max,
                        uint64_t chunk_size)
{
    *self = (hws_splitter_t){
        .framing = framing,
        .size_max = size_max,
        .chunk_size = chunk_size < size_max ? chunk_size : size_max,
    };
}

void hws_splitter_fini (hws_splitter_t *self)
{
    free (self->buffer);
    *self = (hws_splitter_t){0};
}

static size_t pending (const hws_splitter_t *self)
{
    return self->end - self->begin;
}

static const uint8_t *first (const hws_splitter_t *self)
{
    return self->buffer ? self->buffer + self->begin : NULL;
}

uint8_t *hws_splitter_room (hws_splitter_t *self, size_t *size)
{
    const size_t kept = pending (self);
    if (kept == 0) {
        self->begin = self->end = 0;
    }
    if (self->capacity - self->end < ROOM_SIZE && self->begin > 0) {
        memmove (self->buffer, first (self), kept);
        self->begin = 0;
        self->end = kept;
    }
    if (self->capacity - self->end < ROOM_SIZE) {
        /*  Doubling; what is kept is less than a record, or next would have
         *  returned it or refused it, so that this ends at the largest record.  */
        const size_t capacity = self->capacity * 2 + ROOM_SIZE;
        uint8_t *const larger = capacity > self->capacity ? realloc (self->buffer, capacity) : NULL;
        if (larger == NULL) {
            return NULL;
        }
        self->buffer = larger;
        self->capacity = capacity;
    }
    *size = self->capacity - self->end;
    return self->buffer + self->end;
}

void hws_splitter_fill (hws_splitter_t *self, size_t size)
{
    hws_assert (!self->is_ended && size <= self->capacity - self->end);

    self->end += size;
}

void hws_splitter_end (hws_splitter_t *self)
{
    self->is_ended = true;
}

/*  Takes a record that begins `skip` bytes ahead; `mark` bytes follow it.  */
static int take (hws_splitter_t *self, size_t skip, size_t size, size_t mark, hws_bytes_t *record)
{
    *record = hws_bytes (first (self) + skip, size);
    self->begin += skip + size + mark;
    self->scanned = 0;
    self->record_count++;
    return 0;
}

static int next_delimited (hws_splitter_t *self, int delimiter, hws_bytes_t *record)
{
    const size_t size = pending (self);
    const size_t fresh = size - self->scanned;
    const uint8_t *const from = fresh > 0 ? first (self) + self->scanned : NULL;
    const uint8_t *const at = fresh > 0 ? memchr (from, delimiter, fresh) : NULL;
    const size_t record_size = at ? (size_t) (at - first (self)) : size;
    if (record_size > self->size_max) {
        return HWS_ETOO_LARGE;
    }
    if (at) {
        return take (self, 0, record_size, 1, record);
    }
    self->scanned = size;
    if (!self->is_ended) {
        return HWS_EWOULD_BLOCK;
    }
    return size > 0 ? take (self, 0, size, 0, record) : HWS_EENDED;
}

static int next_prefixed (hws_splitter_t *self, hws_bytes_t *record)
{
    hws_cursor_t cursor = hws_cursor (hws_bytes (first (self), pending (self)));
    if (cursor.left == 0 && self->is_ended) {
        return HWS_EENDED;
    }
    const uint32_t size = hws_cursor_u32 (&cursor);
    if (!cursor.bad && size > self->size_max) {
        return HWS_ETOO_LARGE;
    }
    if (hws_cursor_take (&cursor, size) == NULL) {
        return self->is_ended ? HWS_EMALFORMED : HWS_EWOULD_BLOCK;
    }
    return take (self, PREFIX_SIZE, size, 0, record);
}

static int next_chunk (hws_splitter_t *self, hws_bytes_t *record)
{
    size_t size = pending (self);
    if (size == 0) {
        return self->is_ended ? HWS_EENDED : HWS_EWOULD_BLOCK;
    }
    if (self->chunk_size == 0) {
        return HWS_ETOO_LARGE;
    }
    if (size > self->chunk_size) {
        size = (size_t) self->chunk_size;
    }
    return take (self, 0, size, 0, record);
}

int hws_splitter_next (hws_splitter_t *self, hws_bytes_t *record)
{
    switch (self->framing) {
    case HWS_FRAMING_LINE:
        return next_delimited (self, '\n', record);
    case HWS_FRAMING_NUL:
        return next_delimited (self, '\0', record);
    case HWS_FRAMING_LENGTH:
        return next_prefixed (self, record);
    case HWS_FRAMING_CHUNK:
        break;
    }
    return next_chunk (self, record);
}

void hws_splitter_refuse (hws_splitter_t *self, uint64_t size_max)
{
    self->size_max = size_max;
    self->record_count--;
}

void hws_splitter_explain (const hws_splitter_t *self, int code, char *text, size_t size)
{
    const char *const unit = hws_framing_unit (self->framing);
    const uint64_t number = self->record_count + 1;
    if (code == HWS_ETOO_LARGE) {
        snprintf (text, size, "%s %" PRIu64 " is over the limit of %" PRIu64 " bytes", unit, number,
                  self->size_max);
    } else if (code == HWS_EMALFORMED) {
        snprintf (text, size, "%s %" PRIu64 " is cut off: the input ends within it", unit, number);
    } else {
        snprintf (text, size, "%s %" PRIu64 ": %s", unit, number, hws_strerror (code));
    }
}
