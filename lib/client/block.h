/*  Blocks: shared memory that a stream keeps its records in and messages are made of.
 *
 *  A block is written by its first holder; who only sends its bytes holds it until they have
 *  left, while the stream may be gone or acknowledged. The shell has a source of them
 *  (block_io.h), tests their own. Bytes are let go by libzmq's threads, so all of it has
 *  to be safe from any thread.
 */
#ifndef HWS_BLOCK_H
#define HWS_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#define HWS_BLOCK_SIZE_MIN 4096
#define HWS_BLOCK_EXTRA                                                                            \
    128 /* a block is so much larger than a power of two: for its user's notes */

typedef struct hws_block hws_block_t;
typedef struct hws_blocks hws_blocks_t;

struct hws_block {
    void (*hold) (hws_block_t *self);    /* one more holder */
    void (*release) (hws_block_t *self); /* one less; after the last one it is the source's again */
    uint8_t *bytes;                      /* aligned for anything */
    size_t size;
};

/*  Where blocks come from. It outlives them.  */
struct hws_blocks {
    /*  A block of at least `size` bytes with one holder, or null without memory. The bytes
     *  have no defined content.  */
    hws_block_t *(*take) (hws_blocks_t *self, size_t size);
};

#endif
