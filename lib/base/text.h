/*  Texts in fixed fields, and the ends of words.
 */
#ifndef HWS_TEXT_H
#define HWS_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*  Copies a text into a field of `size` bytes and ends it with a NUL; what does not
 *  fit is cut off, never in the middle of a UTF-8 character. A null `from` counts as
 *  an empty text.  */
void hws_text_copy (char *to, size_t size, const char *from);

/*  What makes a word mean so many: "s", but "" for one.  */
const char *hws_plural (uint64_t count);

#endif
