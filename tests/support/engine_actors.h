/*  Receivers and senders in a world of the engine: the few steps that most stories
 *  are made of, with the positions that a true client keeps.
 */
#ifndef TEST_ENGINE_ACTORS_H
#define TEST_ENGINE_ACTORS_H

#include "tests/support/engine_world.h"

/*  A batch that is being written.  */
typedef struct {
    uint8_t bytes[65536];
    size_t size;
    uint16_t count;
} batch_t;

void batch_begin (batch_t *self, hws_batch_kind_t kind);

/*  Adds a run; with a null body, records of `size` - 4 x count bytes together are made
 *  up.  */
void batch_add_run (batch_t *self, hws_run_t run);
void batch_add_ack (batch_t *self, hws_ack_t ack);
void batch_add_window (batch_t *self, hws_window_t window);
void batch_add_position (batch_t *self, hws_position_t position);

/*  Sends it and pumps.  */
void batch_send (batch_t *self, client_t *client);

/*  Opens an anchor; the answer must be Ok. `open` may be null or have members set.  */
hws_handle_t anchor_open (client_t *receiver, uint64_t open_id, const char *name,
                          const hws_open_t *open);

/*  OPEN with resume of the anchor, by its true token and with `highest` as the highest sender id;
 *  then its positions, the last of them marked, or the mark alone. The answer stays in the inbox.
 *  `anchor_resuming` is only the OPEN, with what else `open` says.  */
void anchor_resuming (client_t *receiver, uint64_t open_id, hws_handle_t handle,
                      const hws_open_t *open);
void anchor_resume (client_t *receiver, uint64_t open_id, hws_handle_t handle, uint64_t highest,
                    const hws_position_t *positions, size_t count);

/*  One sender's stream.  */
typedef struct {
    client_t *client;
    uint64_t session_id;
    hws_handle_t handle;
    uint64_t sender_id;
    uint64_t routing;
    uint64_t next_seq, next_bytes;
    uint64_t limit_seq, limit_bytes;
} stream_t;

/*  Sends ATTACH and takes what the answer says. `stream_ask` leaves the answer in the
 *  inbox. After `stream_attach` of a new seat nothing was sent; of an old one the
 *  stream is rewound.  */
void stream_ask (client_t *client, uint64_t session_id, hws_handle_t handle);
stream_t stream_attach (client_t *client, uint64_t session_id, hws_handle_t handle);
void stream_attach_again (stream_t *self);

/*  Where a receiver stands that has got `got` numbers of the stream, and consumed `acked`, of as
 *  many bytes.  */
hws_position_t stream_position (const stream_t *self, uint64_t got, uint64_t got_bytes,
                                uint64_t acked, uint64_t acked_bytes);

/*  ATTACH with resume by its true token, where its sender knows to be acknowledged up to; the
 *  answer stays in the inbox.  */
hws_attach_t stream_request (const stream_t *self, uint64_t acked, uint64_t acked_bytes);
void stream_resume (stream_t *self, uint64_t acked, uint64_t acked_bytes);

/*  A run of `count` records of `size` bytes each, at the stream's position.  */
hws_run_t stream_records (stream_t *self, uint32_t count, size_t size);
void stream_send (stream_t *self, uint32_t count, size_t size);

/*  The clean ending as a run.  */
hws_run_t stream_ending (stream_t *self, hws_run_type_t type);
void stream_end (stream_t *self);

/*  The receiver acknowledges: `ended` sets the flag.  */
void anchor_ack (client_t *receiver, uint64_t routing, uint64_t seq, uint64_t bytes, bool ended);

/*  CANCEL of an anchor, or of one sender of it.  */
void anchor_cancel (client_t *client, hws_handle_t handle, uint64_t sender_id, const char *reason);

/*  Takes the next run of the receiver and checks its stream and numbers.  */
const hws_run_t *expect_run (client_t *receiver, hws_run_type_t type, uint64_t routing,
                             uint64_t first_seq, uint32_t count);

/*  Takes the ending that the broker made, at the receiver and at the sender; cause as a
 *  word.  */
void expect_ending (client_t *receiver, uint64_t routing, hws_run_type_t type, const char *cause);
void expect_told (client_t *sender, uint64_t session_id, const char *ending, const char *cause);

#endif
