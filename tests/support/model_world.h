/*  A broker's engine beside its model. What happens is told to the model first, by whoever
 *  makes it happen (model_play.h), then to the engine; what the engine says to everybody,
 *  and what it counts, has to be what the model says.
 */
#ifndef TEST_MODEL_WORLD_H
#define TEST_MODEL_WORLD_H

#include "tests/support/model.h"

enum { MODEL_HEARD_GRANTS = 256, MODEL_REPORT = 8192 };

typedef struct {
    model_t model;
    hws_engine_t *engine;
    hws_ms_t now;
    hws_control_t control; /* for reading and writing: it is large */

    model_line_t heard[MODEL_LINES]; /* what the engine said in this step */
    size_t heard_count;
    model_grant_t granted[MODEL_HEARD_GRANTS]; /* the last one for each stream */
    size_t granted_count;
    size_t payloads_held; /* by the engine */
    bool is_astray;       /* something was sent to a front where the connection is not */
    bool has_failed;
    char report[MODEL_REPORT]; /* what differed */
} model_world_t;

void model_world_begin (model_world_t *self);
void model_world_end (model_world_t *self);

/*  The address of a client's connection.  */
hws_address_t model_address (int client, uint32_t connection);

/*  Tells the engine; the model was told. Then compares.  */
void model_world_control (model_world_t *self, int client, uint32_t connection,
                          const hws_control_t *message);
void model_world_batch (model_world_t *self, int client, uint32_t connection, const uint8_t *data,
                        size_t size);
void model_world_gone (model_world_t *self, int client, uint32_t connection);

void model_world_drain (model_world_t *self);

/*  Frames that are no message: `json` null for one frame.  */
void model_world_frames (model_world_t *self, int client, uint32_t connection, const char *first,
                         const char *json);
void model_world_bound (model_world_t *self, uint32_t front, bool is_bound);

/*  A turn in which nothing came, now.  */
void model_world_turn (model_world_t *self);

/*  When the engine wants a turn, or the model. One that is too early is a turn in which the
 *  model says nothing.  */
hws_ms_t model_world_wake_at (const model_world_t *self);

/*  Turns until nothing is due any more.  */
void model_world_settle (model_world_t *self);

#endif
