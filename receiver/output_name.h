/*  The name of the file that a sender's records go to.
 *
 *  Labels are made by strangers. Whatever a label holds, the name is one that stands
 *  inside its directory, is seen by ls, is no option for a command, and fits
 *  every file system: `/`, control characters and what is not UTF-8 become `_`,
 *  so do the dots and the dash that it begins with, and it is cut at a character
 *  to at most 230 bytes.
 */
#ifndef HWS_OUTPUT_NAME_H
#define HWS_OUTPUT_NAME_H

#include <stdint.h>

#define HWS_OUTPUT_NAME_SIZE_MAX 255

typedef char hws_output_name_t[HWS_OUTPUT_NAME_SIZE_MAX + 1];

/*  Writes the name to try when `attempt` names, from 0 on, were in use: LABEL (the
 *  sender's id if it has none), then LABEL.ID, LABEL.ID.2, LABEL.ID.3 …  */
void hws_output_name (const char *label, uint64_t sender_id, unsigned attempt,
                      hws_output_name_t name);

#endif
