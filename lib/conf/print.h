/*  Pieces of printing that the schema and --help share; for lib/conf only.  */
#ifndef HWS_PRINT_H
#define HWS_PRINT_H

#include "conf/store.h"
#include "conf/writer.h"

/*  Appends a value as JSON; null for whatever is not set.  */
void hws_print_value (hws_writer_t *text, const hws_field_t *field, const hws_stored_t *stored);

#endif
