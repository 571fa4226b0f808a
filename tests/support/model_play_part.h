/*  What the files that play operations share (model_play.h).
 */
#ifndef TEST_MODEL_PLAY_PART_H
#define TEST_MODEL_PLAY_PART_H

#include "tests/support/model_play.h"

/*  Begins a turn with a message of the client; false if the broker makes nothing of it.  */
bool play_begin_message (play_t *self, int client);

/*  The latest stream that the client had under this number; one that nobody knows if it had
 *  none.  */
known_stream_t play_stream_of (const play_t *self, int client, uint64_t session_id);

/*  Puts DATA, ACK or WINDOW into the batch, and sends it unless `next` goes into it too.  */
void play_in_batch (play_t *self, const op_t *op, const op_t *next);

#endif
