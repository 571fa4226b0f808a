/*  Writes JSON text into a buffer, without allocating.
 *
 *  Commas are placed by the writer; names and values come in the order in which
 *  they are asked for. Writing past the end is remembered, not done, so that a
 *  caller writes everything and looks once. 64-bit numbers are exact, which
 *  cJSON's printing is not (it goes through doubles).
 */
#ifndef HWS_JSON_WRITER_H
#define HWS_JSON_WRITER_H

#include "base/bytes.h"

typedef struct {
    uint8_t *buffer;
    size_t size;      /* room in the buffer */
    size_t used;      /* bytes written */
    bool is_full;     /* something did not fit; nothing was written from there on */
    bool needs_comma; /* a value has been written at this level */
} hws_json_writer_t;

void hws_json_writer_init (hws_json_writer_t *self, void *buffer, size_t size);

/*  The name of the member whose value comes next.  */
void hws_json_put_name (hws_json_writer_t *self, const char *name);

/*  Opens and closes an object ("{", "}") or an array ("[", "]").  */
void hws_json_open (hws_json_writer_t *self, char bracket);
void hws_json_close (hws_json_writer_t *self, char bracket);

/*  A string in quotes, escaped; bytes that are not UTF-8 become "?", so that what
 *  is written can always be read.  */
void hws_json_put_text (hws_json_writer_t *self, hws_bytes_t text);

/*  A number; the same as a string of decimal digits, for those that may be above
 *  2^53.  */
void hws_json_put_number (hws_json_writer_t *self, uint64_t value);
void hws_json_put_decimal (hws_json_writer_t *self, uint64_t value);

void hws_json_put_bool (hws_json_writer_t *self, bool value);
void hws_json_put_null (hws_json_writer_t *self);

#endif
