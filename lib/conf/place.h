/*  Where in a JSON text something is: line, column, and the path of keys to it.
 *
 *  cJSON's tree knows no places, so they are found by going through the text once
 *  more, up to an offset. The text before that offset must be well formed; what
 *  follows may be anything. The walk over a checked text, beside cJSON's tree, is
 *  here as well.
 */
#ifndef HWS_PLACE_H
#define HWS_PLACE_H

#include "base/bytes.h"

#define HWS_PLACE_PATH_SIZE 256

typedef struct {
    size_t line;                    /* from 1 */
    size_t column;                  /* from 1, in characters */
    char path[HWS_PLACE_PATH_SIZE]; /* "limits.peers", "listen[1]"; "" at the top */
} hws_place_t;

/*  The place of the byte at `offset`, which may be the size of the text. The opening quote of
 *  a key is within that key.  */
void hws_place_find (hws_bytes_t json, size_t offset, hws_place_t *place);

/*  In a text that hws_json_check has passed: the offset behind white space, commas
 *  and colons from `at` on, and behind the value or key that begins at `at`.  */
size_t hws_place_next (hws_bytes_t json, size_t at);
size_t hws_place_after (hws_bytes_t json, size_t at);

/*  The characters of the number that begins at `at`.  */
hws_bytes_t hws_place_number (hws_bytes_t json, size_t at);

#endif
