/*  The strictness that cJSON lacks: whether bytes are exactly one JSON text of
 *  RFC 8259, and within limits.
 *
 *  Checked before cJSON sees them, because cJSON takes trailing text, "007",
 *  "0x10", "1.", a byte order mark, raw control bytes and invalid UTF-8, keeps
 *  duplicate members and cuts strings at \u0000. What passes here, cJSON parses;
 *  if it then fails, memory is out. Numbers are checked for their form only:
 *  they may still be out of range ("1e400"). Control messages and configuration
 *  files both come through here.
 */
#ifndef HWS_JSON_H
#define HWS_JSON_H

#include "base/bytes.h"

#define HWS_JSON_NUMBER_SIZE_MAX 63 /* characters; cJSON cuts longer ones in two */

typedef struct {
    size_t size_max;  /* bytes of the whole text */
    size_t depth_max; /* arrays and objects within each other; the outermost is 1 deep */
} hws_json_limits_t;

typedef struct {
    size_t offset;    /* of the byte that is wrong; the size of the text when it ends too early */
    const char *text; /* static; a sentence without a full stop: "a member's name comes twice" */
} hws_json_fault_t;

/*  Checks the whole text. Returns 0; HWS_EMALFORMED and the first fault, where a
 *  duplicate member counts after every fault of form; HWS_ENO_MEMORY. Takes time
 *  proportional to n log n and, for texts of many members, memory of 24 bytes for
 *  each while it runs.  */
int hws_json_check (hws_bytes_t json, hws_json_limits_t limits, hws_json_fault_t *fault);

#endif
