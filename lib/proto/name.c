#include "proto/name.h"

#include "base/error.h"
#include "base/hex.h"
#include "base/utf8.h"

bool hws_name_is_valid (hws_bytes_t name)
{
    hws_id_t id;
    if (name.size == 0 || name.size > HWS_NAME_SIZE_MAX || hws_id_parse (name, &id) == 0) {
        return false;
    }
    hws_cursor_t cursor = hws_cursor (name);
    uint32_t code_point;
    int rc;
    while ((rc = hws_utf8_next (&cursor, &code_point)) > 0) {
        if (hws_utf8_is_control (code_point)) {
            return false;
        }
    }
    return rc == 0;
}

void hws_id_print (const hws_id_t *self, char text[2 * HWS_ID_SIZE + 1])
{
    hws_hex_print (hws_bytes (self->bytes, HWS_ID_SIZE), text);
}

int hws_id_parse (hws_bytes_t text, hws_id_t *self)
{
    hws_id_t id;
    const int rc = hws_hex_parse (text, id.bytes, HWS_ID_SIZE);
    if (rc == 0) {
        *self = id;
    }
    return rc;
}
