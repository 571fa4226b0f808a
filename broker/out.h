/*  What goes out to one client: a queue of messages, an open batch, grants.
 *
 *  Everything for a client leaves through here, in order. Runs for a receiver are
 *  collected in the open batch, which becomes a message when it is full, before a
 *  message is forwarded whole, and when the turn's work is done. Grants are kept
 *  as state, one per seat, and written when the queue is empty. While the
 *  connection is full, batches wait here, grants stay state, and control messages are
 *  not sent: the client is told to resynchronise once it reads again (docs/protocol.md,
 *  "Full connections"). The windows bound what waits, as long as the receiver does not
 *  acknowledge what it has not read or open again and again; so there is a bound of its
 *  own, beyond which the connection counts as gone.
 */
#ifndef HWS_OUT_H
#define HWS_OUT_H

#include "base/list.h"
#include "broker/deadline.h"
#include "broker/engine.h"
#include "proto/batch.h"

typedef struct hws_peer hws_peer_t;
typedef struct hws_seat hws_seat_t;

/*  One message that waits; its address is filled in when it leaves. The same object
 *  becomes the effect that gives a payload back, so that giving back needs no memory.  */
typedef struct {
    hws_link_t link;
    hws_effect_t effect;
} hws_outgoing_t;

typedef struct {
    hws_list_t queue;      /* of hws_outgoing_t */
    uint64_t queued_bytes; /* of the queue, objects included */
    hws_list_t grants;     /* of seats, through hws_seat_t.in_grants */
    hws_list_t said;       /* likewise: GRANTs that the next PONG brings again */
    hws_link_t ready;      /* in the engine's list of clients with something to send */
    hws_link_t opened;     /* in the engine's list of clients with an open batch */
    uint8_t *batch;        /* the open batch, or null */
    size_t batch_size;     /* bytes written to it */
    size_t batch_room;     /* bytes it can hold */
    size_t batch_before;   /* bytes of the one before: the next begins with room for as many */
    uint16_t run_count;    /* runs in it */
    bool is_full;          /* the connection refused a message; `retry` is armed */
    bool is_probing;       /* tried again, and not yet known to have worked */
    bool is_probe_sent;    /* a message was popped since */
    bool missed_control;
    hws_ms_t full_at; /* since when it is full, while is_full or is_probing */
    hws_deadline_t retry;
} hws_out_t;

void hws_out_init (hws_out_t *self);

/*  Drops all that waits; payloads are released through the engine's effects.  */
void hws_out_clear (hws_engine_t *engine, hws_out_t *self);

/*  Queues a control message. What cannot be queued, for the connection is full (or not
 *  yet known to have room again) or memory is short, counts as missed.  */
void hws_out_control (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);

/*  Makes sure that a run with a body of `size` bytes can be added to the open batch.
 *  Returns 0 or HWS_ENO_MEMORY.  */
int hws_out_reserve_run (hws_engine_t *engine, hws_peer_t *peer, size_t size);

/*  Adds a run to the open batch; run->body is copied. Room was reserved.  */
void hws_out_add_run (hws_peer_t *peer, const hws_run_t *run);

/*  Queues a whole message behind the open batch; `outgoing` was allocated by the
 *  caller, the queue owns it now.  */
void hws_out_forward (hws_engine_t *engine, hws_peer_t *peer, hws_outgoing_t *outgoing);

/*  Closes the open batch: it becomes a message.  */
void hws_out_close_batch (hws_engine_t *engine, hws_peer_t *peer);

/*  The seat's limits or position changed: its client gets a GRANT.  */
void hws_out_grant (hws_engine_t *engine, hws_seat_t *seat);

/*  PONG is queued, and behind it comes every GRANT again that was said since the last one; that
 *  with REWIND for a gap, and that with RETURN, with each. So one that was lost stops nobody.  */
void hws_out_grants_again (hws_engine_t *engine, hws_peer_t *peer);

/*  hws_out_grant for a seat whose clean ending was consumed and which is about to go: the
 *  GRANT is written at once, with others of that kind. If it cannot be, it counts as missed, and
 * the client learns the ending when it attaches again.  */
void hws_out_grant_last (hws_engine_t *engine, hws_seat_t *seat);

/*  Takes the next message of this client. Returns false when it has none, or none
 *  may be sent now.  */
bool hws_out_pop (hws_engine_t *engine, hws_peer_t *peer, hws_effect_t *effect);

/*  The message was not taken by the connection.  */
void hws_out_refused (hws_engine_t *engine, hws_peer_t *peer, hws_effect_t *effect);

/*  The retry deadline has come. Returns false when the connection has been full for
 *  so long, or so much waits for it, that it counts as gone.  */
bool hws_out_retry (hws_engine_t *engine, hws_peer_t *peer);

#endif
