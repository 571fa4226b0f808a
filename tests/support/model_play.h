/*  Plays operations of the model test (model_ops.h): each becomes real messages for the
 *  engine and calls of the model, with the numbers that a client would have at that point.
 */
#ifndef TEST_MODEL_PLAY_H
#define TEST_MODEL_PLAY_H

#include "tests/support/model_ops.h"
#include "tests/support/model_world.h"

enum { PLAY_KNOWN = 512, PLAY_BATCH = 16384 };

/*  A stream that there was, for requests about what has ended.  */
typedef struct {
    int client;
    uint64_t session_id;
    uint32_t anchor;
    uint64_t sender_id;
    uint64_t routing_id;
} known_stream_t;

/*  An anchor that there was.  */
typedef struct {
    int owner;
    uint64_t open_id;
    uint32_t count;
} known_anchor_t;

typedef struct {
    model_world_t world;
    uint32_t connections[MODEL_CLIENTS]; /* the present one of each; 0: none yet */
    uint32_t connection_count;           /* of all, ever */
    uint64_t ids[MODEL_CLIENTS];         /* of the latest request of each */
    known_stream_t streams[PLAY_KNOWN];  /* the latest, round and round */
    size_t stream_count;                 /* ever */
    uint64_t last_routing_id;            /* of them */
    known_anchor_t anchors[PLAY_KNOWN];  /* the latest, round and round */
    size_t anchor_count;                 /* ever */
    uint32_t last_anchor;                /* the count of the latest */

    uint8_t batch[PLAY_BATCH]; /* that is being written */
    size_t batch_size;         /* 0: none is */
    uint16_t batch_count;      /* items in it */
    bool is_cut;               /* its last item does not fit */
    bool is_faulty;            /* one of its items cannot be true */
    bool is_used;              /* the broker makes something of it */
} play_t;

/*  A broker that has just started.  */
void play_begin (play_t *self);
void play_end (play_t *self);

/*  Plays one. `next` may join the batch that it begins; null at the end. Returns false when
 *  engine and model differ: world.report says how.  */
bool play (play_t *self, const op_t *op, const op_t *next);

#endif
