/*  An event of a receiver as one line of JSON. docs/json.md is for those who read them.
 *
 *  {"event":"opened","anchor":"results","handle":"…"}
 *  {"event":"record","sender":"1","label":"gpu0","seq":"17","data":"…"}
 *  {"event":"dropped","sender":"1","label":"gpu0","cause":"heartbeat",
 *   "reason":"silent for …","records":"18","bytes":"4096"}
 *
 *  The 64-bit numbers are strings of digits, as on the wire: most readers of JSON
 *  have doubles for numbers and would change large ones. `label` is null for a
 *  sender without one. A record that is not UTF-8 has `data_base64` in the place
 *  of `data`; the text of an error is its `text`. What is written is valid UTF-8 without
 *  control characters below space, whatever the peer sent.
 */
#ifndef HWS_JSON_EVENT_H
#define HWS_JSON_EVENT_H

#include "base/bytes.h"
#include "hawser.h"

/*  A buffer that lines are made in, one at a time.  */
typedef struct {
    uint8_t *buffer; /* null at first */
    size_t size;     /* allocated */
} hws_json_event_t;

/*  An empty one is {0}. Frees the buffer.  */
void hws_json_event_fini (hws_json_event_t *self);

/*  Makes the line of an event, without a newline; `*line` lives until the next
 *  call. Returns 0 or HWS_ENO_MEMORY.  */
int hws_json_event_write (hws_json_event_t *self, const hws_event_t *event, hws_bytes_t *line);

/*  The same for what comes first: the anchor is open. `anchor` is its name, null for one
 *  that has only its handle.  */
int hws_json_event_write_opened (hws_json_event_t *self, const char *anchor, const char *handle,
                                 hws_bytes_t *line);

#endif
