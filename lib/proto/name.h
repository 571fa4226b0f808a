/*  The texts by which peers name things: names, labels, ids, tokens
 *  (docs/protocol.md, "Names and texts").
 */
#ifndef HWS_NAME_H
#define HWS_NAME_H

#include "base/bytes.h"
#include "base/limits.h"

#define HWS_ID_SIZE 16 /* client ids and tokens: 128 random bits */

typedef struct {
    uint8_t bytes[HWS_ID_SIZE]; /* written as 32 hexadecimal digits */
} hws_id_t;

/*  Whether the bytes may be an anchor's name or a label: 1 to HWS_NAME_SIZE_MAX
 *  bytes of valid UTF-8 without control characters (C0, DEL, C1), and not 32
 *  hexadecimal digits, which are a handle.  */
bool hws_name_is_valid (hws_bytes_t name);

/*  32 lower-case hexadecimal digits and a NUL; and back, returning 0 or
 *  HWS_EMALFORMED, and then `self` is left alone.  */
void hws_id_print (const hws_id_t *self, char text[2 * HWS_ID_SIZE + 1]);
int hws_id_parse (hws_bytes_t text, hws_id_t *self);

#endif
