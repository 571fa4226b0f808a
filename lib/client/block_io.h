/*  The client's blocks: counted atomically, and kept for the next who asks, so that steady
 *  sending neither allocates nor touches fresh pages.
 */
#ifndef HWS_BLOCK_IO_H
#define HWS_BLOCK_IO_H

#include "client/block.h"

/*  A source of blocks, for any thread. Null without memory.  */
hws_blocks_t *hws_blocks_new (void);

/*  Frees the source with all that it kept; every block has been released.  */
void hws_blocks_destroy (hws_blocks_t **blocks);

#endif
