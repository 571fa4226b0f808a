/*  UTF-8, as strict as RFC 3629: no surrogates, no overlong forms, nothing above
 *  U+10FFFF, no half characters.
 */
#ifndef HWS_UTF8_H
#define HWS_UTF8_H

#include "base/bytes.h"

/*  Takes the next character. Returns 1 and its code point, 0 at the end, or
 *  HWS_EMALFORMED and then leaves the cursor at the byte where no character
 *  begins.  */
int hws_utf8_next (hws_cursor_t *cursor, uint32_t *code_point);

/*  Whether a character is a control character: C0, DEL or C1.  */
static inline bool hws_utf8_is_control (uint32_t code_point)
{
    return code_point < 0x20 || (code_point >= 0x7f && code_point < 0xa0);
}

/*  Whether a character shows people what is there: no control character, none that is
 *  invisible, and none that turns the direction of the text around it, by which one
 *  name is made to look like another.  */
bool hws_utf8_is_plain (uint32_t code_point);

/*  Whether the bytes are valid UTF-8; no bytes are.  */
bool hws_utf8_is_valid (hws_bytes_t text);

#endif
