/*  What makes a broker the same one in its next life: its id, the key of its credentials, and
 *  the count of its lives, the epoch; and the text that they are kept as.
 *
 *  The text is a small JSON object. Reading is as strict as for any configuration: a member that
 *  is missing, unknown or out of range is an error with file, line and column.
 */
#ifndef HWS_IDENTITY_H
#define HWS_IDENTITY_H

#include "base/bytes.h"
#include "broker/credential.h"

#define HWS_EPOCH_MAX          0x7fffffffu /* handles have 31 bits for it */
#define HWS_IDENTITY_TEXT_SIZE 256         /* of what is printed, with its NUL */

typedef struct {
    uint64_t broker_id;
    uint32_t epoch; /* of this life; what is kept is the last one that began */
    uint8_t key[HWS_CREDENTIAL_KEY_SIZE];
} hws_identity_t;

/*  Writes the text, which ends in a newline, and a NUL; returns its size without that.  */
size_t hws_identity_print (const hws_identity_t *self, char text[HWS_IDENTITY_TEXT_SIZE]);

/*  Reads it. `file` is its name for the fault. Returns 0; HWS_EMALFORMED and one line in `fault`
 *  of `size` bytes, which begins with the file's name; HWS_ENO_MEMORY.  */
int hws_identity_parse (hws_identity_t *self, const char *file, hws_bytes_t text, char *fault,
                        size_t size);

#endif
