/*  Sizes that the protocol fixes, each with the clause that sets it in
 *  docs/protocol.md. What can be configured is not here.
 */
#ifndef HWS_LIMITS_H
#define HWS_LIMITS_H

#define HWS_PROTOCOL_VERSION 1

#define HWS_CONTROL_SIZE_MAX  65536 /* bytes of the JSON frame of a control message */
#define HWS_CONTROL_DEPTH_MAX 16    /* nesting of that JSON */
#define HWS_NAME_SIZE_MAX     255   /* bytes of an anchor's name or a label */
#define HWS_TEXT_SIZE_MAX     1024  /* bytes of a reason or any other text for people */

#define HWS_EARLY_RECORDS 64    /* what a sender may send behind its ATTACH, before the answer */
#define HWS_EARLY_BYTES   16384 /* the same in bytes */

#define HWS_BATCH_BYTES_DEFAULT 262144  /* a broker's largest message, batch header included */
#define HWS_BATCH_BYTES_MIN     4096    /* what any broker takes: the longest ATTACHED fits */
#define HWS_SLOT_BYTES_DEFAULT  1048576 /* slot_byte_budget when it is 0 or absent */

#endif
