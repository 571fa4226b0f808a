/*  Blocks for streams in one thread, each from malloc and freed by its last holder, so that
 *  AddressSanitizer sees who is late; and how many bytes of them there are.
 */
#ifndef TEST_BLOCKS_H
#define TEST_BLOCKS_H

#include "client/session.h"

/*  The source.  */
extern hws_blocks_t s_test_blocks;

/*  Bytes of all blocks that somebody holds.  */
size_t test_block_bytes (void);

/*  Moves a batch that is yielded in a block of its own to the caller's buffer, and lets the
 *  block go: the one that gets it may write into it.  */
void test_gather (hws_action_t *action, uint8_t *buffer, size_t size);

#endif
