/*  Numbers, durations and sizes as people write them.
 *
 *  A duration is a decimal number with ms, s, m or h, and bare seconds: 0.5,
 *  500ms, 2s, 3m, 1h. A size is a whole number with K, M or G (powers of
 *  1024), and bare bytes. In a file both are plain numbers, in milliseconds and
 *  bytes.
 */
#ifndef HWS_NUMBER_H
#define HWS_NUMBER_H

#include "conf/table.h"

#define HWS_NUMBER_TEXT_SIZE 32 /* enough for any of them and a NUL */

/*  Reads a number of that type (INTEGER, SIZE, DURATION). Returns 0; HWS_EMALFORMED
 *  when it is none; HWS_ETOO_LARGE when it passes 2^64; `value` is set only
 *  on success.  */
int hws_number_parse (hws_field_type_t type, hws_bytes_t text, uint64_t *value);

/*  Writes a number the shortest way that reads back the same: "64M", "500ms".  */
void hws_number_print (hws_field_type_t type, uint64_t value, char text[HWS_NUMBER_TEXT_SIZE]);

/*  How such a number is written, for error lines: "a duration such as …".  */
const char *hws_number_description (hws_field_type_t type);

#endif
