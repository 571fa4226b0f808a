#include "base/text.h"

#include <string.h>

void hws_text_copy (char *to, size_t size, const char *from)
{
    size_t length = from ? strlen (from) : 0;
    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char) from[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    if (length > 0) {
        memcpy (to, from, length);
    }
    to[length] = '\0';
}

const char *hws_plural (uint64_t count)
{
    return count == 1 ? "" : "s";
}
