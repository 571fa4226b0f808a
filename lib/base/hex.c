#include "base/hex.h"

#include "base/error.h"

int hws_hex_digit (int character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    if (character >= 'a' && character <= 'f') {
        return character - 'a' + 10;
    }
    return character >= 'A' && character <= 'F' ? character - 'A' + 10 : -1;
}

void hws_hex_print (hws_bytes_t bytes, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < bytes.size; i++) {
        *text++ = digits[bytes.data[i] >> 4];
        *text++ = digits[bytes.data[i] & 15];
    }
    *text = '\0';
}

int hws_hex_parse (hws_bytes_t text, uint8_t *bytes, size_t size)
{
    if (text.size != 2 * size) {
        return HWS_EMALFORMED;
    }
    for (size_t i = 0; i < size; i++) {
        const int high = hws_hex_digit (text.data[2 * i]);
        const int low = hws_hex_digit (text.data[2 * i + 1]);
        if (high < 0 || low < 0) {
            return HWS_EMALFORMED;
        }
        bytes[i] = (uint8_t) (high << 4 | low);
    }
    return 0;
}
