/*  Handles: 128 bits that name an anchor for ever (docs/protocol.md, "Handles").
 *
 *  hi is the broker id; in lo, bit 63 tells the kind (set: many senders, clear:
 *  exclusive), bits 62 to 32 hold the broker's epoch, bits 31 to 0 a count. A
 *  handle is never looked at without its broker id.
 */
#ifndef HWS_HANDLE_H
#define HWS_HANDLE_H

#include "base/bytes.h"

#define HWS_HANDLE_TEXT_SIZE 33                   /* 32 lower-case hexadecimal digits and a NUL */
#define HWS_HANDLE_MPSC_BIT  (UINT64_C (1) << 63) /* of lo */

typedef struct {
    uint64_t hi; /* broker id */
    uint64_t lo; /* kind, epoch, count */
} hws_handle_t;

typedef enum {
    HWS_KIND_MPSC, /* many senders */
    HWS_KIND_SPSC  /* exclusive */
} hws_kind_t;

/*  A handle of its parts; `epoch` is below 2^31.  */
hws_handle_t hws_handle_make (uint64_t broker_id, hws_kind_t kind, uint32_t epoch, uint32_t count);

bool hws_handle_equal (hws_handle_t a, hws_handle_t b);
hws_kind_t hws_handle_kind (hws_handle_t self);
uint32_t hws_handle_epoch (hws_handle_t self);
uint32_t hws_handle_count (hws_handle_t self);

/*  Writes 32 lower-case hexadecimal digits, hi first, and a NUL.  */
void hws_handle_print (hws_handle_t self, char text[HWS_HANDLE_TEXT_SIZE]);

/*  Reads exactly 32 hexadecimal digits of either case. Returns 0 or
 *  HWS_EMALFORMED, and then leaves `self` alone.  */
int hws_handle_parse (hws_bytes_t text, hws_handle_t *self);

#endif
