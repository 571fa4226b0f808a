/*  Bytes as hexadecimal digits and back.
 */
#ifndef HWS_HEX_H
#define HWS_HEX_H

#include "base/bytes.h"

/*  Writes two lower-case digits for each byte, and a NUL.  */
void hws_hex_print (hws_bytes_t bytes, char *text);

/*  Reads exactly `size` bytes, so 2 x `size` digits of either case, into `bytes`.
 *  Returns 0 or HWS_EMALFORMED; what is in `bytes` then means nothing.  */
int hws_hex_parse (hws_bytes_t text, uint8_t *bytes, size_t size);

/*  The value of one digit, or -1.  */
int hws_hex_digit (int character);

#endif
