/*  Fills a structure from a JSON object, member by member of a table.
 */
#ifndef HWS_CONTROL_READ_H
#define HWS_CONTROL_READ_H

#include "proto/control_table.h"

#include <cjson/cJSON.h>

/*  Reads the members of `table` from `object` into `structure`, which is all
 *  zeroes before: absent members are left so. Returns 0, or HWS_EBAD_REQUEST and a
 *  fault that names the member.  */
int hws_table_read (const hws_table_t *table, const cJSON *object, void *structure,
                    hws_control_fault_t fault);

/*  A number as it may be written anywhere on the wire: a string of decimal digits
 *  without leading zeros, exact to 2^64 - 1, or a whole JSON number below 2^53.
 *  Returns null, or what is wrong with it, to stand behind the member's name.  */
const char *hws_number_read (const cJSON *item, uint64_t *value);

#endif
