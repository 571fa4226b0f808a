/*  "Did you mean": how far apart two words are.  */
#ifndef HWS_NEAR_H
#define HWS_NEAR_H

#include <stddef.h>

#define HWS_NEAR_FAR 1000 /* more than any distance */

/*  The edits (a character more, less, another, or two swapped) between the words, or
 *  HWS_NEAR_FAR when they are too different for a typing error: more than a third
 *  of the longer one, or longer than 64 bytes.  */
size_t hws_near_distance (const char *a, const char *b);

#endif
