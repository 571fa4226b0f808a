/*  Words and checks that the tables of several programs share.  */
#ifndef HWS_WORDS_H
#define HWS_WORDS_H

#include "conf/table.h"

/*  "error" to "debug", a null at the end; the place of a word is its
 *  hws_log_level_t.  */
extern const char *const hws_level_words[];

/*  Checks of texts (hws_text_check_t). A name of an anchor: 1 to 255 bytes of
 *  UTF-8 without control characters, and no 32 hexadecimal digits.  */
bool hws_check_name (hws_bytes_t text, char *why, size_t size);

/*  A name, or a handle.  */
bool hws_check_name_or_handle (hws_bytes_t text, char *why, size_t size);

/*  A label; its rules are those of names.  */
bool hws_check_label (hws_bytes_t text, char *why, size_t size);

/*  A sentence for people: at most 1,024 bytes of UTF-8.  */
bool hws_check_sentence (hws_bytes_t text, char *why, size_t size);

/*  A cancel token: from 1 to 2^64 - 1, in decimal. It is a text, for a number in a file
 *  has to be exact in every JSON reader.  */
bool hws_check_token (hws_bytes_t text, char *why, size_t size);

/*  The token of a text that hws_check_token took; 0 for null.  */
uint64_t hws_token_of (const char *text);

/*  Anything but nothing.  */
bool hws_check_path (hws_bytes_t text, char *why, size_t size);

#endif
