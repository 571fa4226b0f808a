#include "proto/handle.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/hex.h"

hws_handle_t hws_handle_make (uint64_t broker_id, hws_kind_t kind, uint32_t epoch, uint32_t count)
{
    hws_assert (epoch <= INT32_MAX);

    const uint64_t kind_bit = kind == HWS_KIND_MPSC ? HWS_HANDLE_MPSC_BIT : 0;
    return (hws_handle_t){.hi = broker_id, .lo = kind_bit | (uint64_t) epoch << 32 | count};
}

bool hws_handle_equal (hws_handle_t a, hws_handle_t b)
{
    return a.hi == b.hi && a.lo == b.lo;
}

hws_kind_t hws_handle_kind (hws_handle_t self)
{
    return self.lo & HWS_HANDLE_MPSC_BIT ? HWS_KIND_MPSC : HWS_KIND_SPSC;
}

uint32_t hws_handle_epoch (hws_handle_t self)
{
    return (uint32_t) ((self.lo & ~HWS_HANDLE_MPSC_BIT) >> 32);
}

uint32_t hws_handle_count (hws_handle_t self)
{
    return (uint32_t) self.lo;
}

void hws_handle_print (hws_handle_t self, char text[HWS_HANDLE_TEXT_SIZE])
{
    uint8_t bytes[16];
    hws_put_u64 (bytes, self.hi);
    hws_put_u64 (bytes + 8, self.lo);
    hws_hex_print (hws_bytes (bytes, sizeof bytes), text);
}

int hws_handle_parse (hws_bytes_t text, hws_handle_t *self)
{
    uint8_t bytes[16];
    const int rc = hws_hex_parse (text, bytes, sizeof bytes);
    if (rc == 0) {
        *self = (hws_handle_t){.hi = hws_get_u64 (bytes), .lo = hws_get_u64 (bytes + 8)};
    }
    return rc;
}
