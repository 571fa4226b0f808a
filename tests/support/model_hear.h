/*  What the engine says, as the lines of text in which the model says it.
 */
#ifndef TEST_MODEL_HEAR_H
#define TEST_MODEL_HEAR_H

#include "tests/support/model_world.h"

/*  A message to a client's connection: adds to `heard` and `granted`. What cannot be read
 *  becomes a line that the model never says.  */
void model_hear_control (model_world_t *self, int client, uint32_t connection, const char *verb,
                         hws_bytes_t json);
void model_hear_batch (model_world_t *self, int client, uint32_t connection, hws_bytes_t bytes);

/*  An order to the shell.  */
void model_hear_shell (model_world_t *self, bool is_bind, uint32_t front);

/*  Text of a run's body: of endings and ATTACHED what they say, of others a sum.  */
void model_body_text (const hws_run_t *run, char text[MODEL_TEXT]);

#endif
