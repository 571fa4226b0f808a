/*  Writes a structure as the members of a JSON object, in the order of a table.
 */
#ifndef HWS_CONTROL_WRITE_H
#define HWS_CONTROL_WRITE_H

#include "base/json_writer.h"
#include "proto/control_table.h"

/*  Writes the members into the object that is open in `writer`. Members that have
 *  their default are left out; with `is_complete` only absent ones and empty texts
 *  are.  */
void hws_table_write (const hws_table_t *table, const void *structure, bool is_complete,
                      hws_json_writer_t *writer);

#endif
