/*  What the engine said to a client, as the words of the state tables
 *  (docs/protocol.md, "State tables").
 */
#ifndef TEST_ENGINE_WORDS_H
#define TEST_ENGINE_WORDS_H

#include "tests/support/engine_world.h"
#include "tests/support/machine.h"

/*  Takes everything out of the client's inbox and adds its words. Of streams only one is
 *  heard, under its routing session id and its session id; 0: all.  */
void engine_words (words_t *said, client_t *client, uint64_t routing, uint64_t session_id);

#endif
