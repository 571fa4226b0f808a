/*  Views of bytes, and big-endian integers in them.
 *
 *  A view never owns; it lives as long as what it points into. The cursor is
 *  the only place where lengths are added and compared: it reads forward
 *  through a view, and the first read past the end makes it bad for good, so
 *  that a decoder may read all its fields and check once.
 */
#ifndef HWS_BYTES_H
#define HWS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    const uint8_t *data; /* null only when size is 0 */
    size_t size;
} hws_bytes_t;

static inline hws_bytes_t hws_bytes (const void *data, size_t size)
{
    return (hws_bytes_t){.data = data, .size = size};
}

static inline hws_bytes_t hws_bytes_of_text (const char *text)
{
    return hws_bytes (text, strlen (text));
}

static inline bool hws_bytes_equal (hws_bytes_t a, hws_bytes_t b)
{
    return a.size == b.size && (a.size == 0 || memcmp (a.data, b.data, a.size) == 0);
}

static inline void hws_put_u16 (uint8_t *at, uint16_t value)
{
    at[0] = (uint8_t) (value >> 8);
    at[1] = (uint8_t) value;
}

static inline void hws_put_u32 (uint8_t *at, uint32_t value)
{
    hws_put_u16 (at, (uint16_t) (value >> 16));
    hws_put_u16 (at + 2, (uint16_t) value);
}

static inline void hws_put_u64 (uint8_t *at, uint64_t value)
{
    hws_put_u32 (at, (uint32_t) (value >> 32));
    hws_put_u32 (at + 4, (uint32_t) value);
}

static inline uint16_t hws_get_u16 (const uint8_t *at)
{
    return (uint16_t) (at[0] << 8 | at[1]);
}

static inline uint32_t hws_get_u32 (const uint8_t *at)
{
    return (uint32_t) hws_get_u16 (at) << 16 | hws_get_u16 (at + 2);
}

static inline uint64_t hws_get_u64 (const uint8_t *at)
{
    return (uint64_t) hws_get_u32 (at) << 32 | hws_get_u32 (at + 4);
}

typedef struct {
    const uint8_t *at; /* next byte to read */
    size_t left;       /* bytes from there to the end */
    bool bad;          /* a read went past the end; every later one gives 0 */
} hws_cursor_t;

static inline hws_cursor_t hws_cursor (hws_bytes_t bytes)
{
    return (hws_cursor_t){.at = bytes.data, .left = bytes.size};
}

/*  The next `size` bytes, or null (and the cursor is bad) when fewer are left.
 *  For size 0 the pointer is not null as long as the cursor is good.  */
static inline const uint8_t *hws_cursor_take (hws_cursor_t *self, size_t size)
{
    if (self->bad || size > self->left) {
        self->bad = true;
        return NULL;
    }
    static const uint8_t nothing[1];
    const uint8_t *const taken = self->at ? self->at : nothing;
    if (size > 0) {
        self->at += size;
        self->left -= size;
    }
    return taken;
}

static inline uint8_t hws_cursor_u8 (hws_cursor_t *self)
{
    const uint8_t *const at = hws_cursor_take (self, 1);
    return at ? *at : 0;
}

static inline uint16_t hws_cursor_u16 (hws_cursor_t *self)
{
    const uint8_t *const at = hws_cursor_take (self, 2);
    return at ? hws_get_u16 (at) : (uint16_t) 0;
}

static inline uint32_t hws_cursor_u32 (hws_cursor_t *self)
{
    const uint8_t *const at = hws_cursor_take (self, 4);
    return at ? hws_get_u32 (at) : 0;
}

static inline uint64_t hws_cursor_u64 (hws_cursor_t *self)
{
    const uint8_t *const at = hws_cursor_take (self, 8);
    return at ? hws_get_u64 (at) : 0;
}

#endif
