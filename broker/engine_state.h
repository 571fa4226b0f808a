/*  The engine's own state, for the files of the engine only.
 */
#ifndef HWS_ENGINE_STATE_H
#define HWS_ENGINE_STATE_H

#include "broker/anchor.h"
#include "broker/credential.h"
#include "broker/peer.h"
#include "broker/seat.h"
#include "broker/tombstone.h"
#include "broker/waiting.h"

struct hws_engine {
    hws_engine_options_t options;
    hws_engine_stats_t stats;
    hws_ms_t now;            /* the engine's clock in this turn */
    hws_ms_t skew;           /* how far it is behind the shell's */
    hws_ms_t pulse_at;       /* on the engine's clock: the next turn comes no later */
    hws_ms_t young_until_at; /* anchors of its life before may yet come back */
    bool is_draining;
    hws_reason_t leaving; /* why, for GOAWAY */

    hws_peer_t nobody; /* has the seats whose clients have not come back */

    hws_map_t peers_by_client;
    hws_map_t peers_by_address;
    hws_map_t anchors_by_handle;
    hws_map_t anchors_by_name;
    hws_map_t seats_by_session;
    hws_map_t seats_by_sender;
    hws_map_t seats_by_routing;
    hws_map_t anchors_by_open;
    hws_map_t waiting_by_session;
    hws_map_t lines; /* of attaches that wait, by what they name */
    hws_map_t tombstones_by_session;
    hws_map_t tombstones_by_open;
    hws_map_t tombstones_by_sender;
    hws_map_t tombstones_by_handle;

    hws_list_t anchors;    /* through in_engine */
    hws_list_t dedicated;  /* of anchors, through dedicated.in_engine */
    hws_list_t waiting;    /* through in_engine */
    hws_list_t tombstones; /* through in_engine, oldest first */
    hws_list_t ready;      /* clients with something to send, through out.ready */
    hws_list_t opened;     /* clients with an open batch, through out.opened */
    hws_list_t loose;      /* of hws_outgoing_t: effects that belong to no client */
    hws_heap_t deadlines;
    hws_heap_t intervals; /* of anchors, through in_intervals, the shortest first */
    hws_deadline_t tombstone_deadline;
    hws_cancels_t cancels; /* tokens, of hws_target_t */
    hws_deadline_t cancel_deadline;
    hws_deadline_t young_deadline;

    uint32_t anchor_count;  /* handles given in this epoch */
    uint32_t front_count;   /* numbers of dedicated fronts given; 0 is the shared one */
    uint64_t seat_count;    /* routing session ids given; they run on into the next epoch's */
    uint64_t token_count;   /* tokens reserved */
    uint64_t waiting_count; /* attaches that have waited */
    uint64_t buffer_bytes;  /* budgets of all anchors */
    uint64_t shortest_interval_ms;
    hws_ms_t limit_log_at; /* earliest next line about limits.peers */
    uint8_t *scratch;      /* HWS_CONTROL_SIZE_MAX bytes, for encoding */
};

/*  One handler per verb. The message was decoded; the peer has said HELLO (but for HELLO
 *  itself).  */
void hws_on_hello (hws_engine_t *engine, const hws_address_t *from, const hws_control_t *message,
                   const hws_message_t *envelope);

/*  Refuses the HELLO of an address that has no peer; a peer's refusal goes through its queue,
 *  which is bounded.  */
void hws_hello_refuse (hws_engine_t *engine, const hws_address_t *to, const hws_control_t *request,
                       int code, const char *reason);

void hws_on_open (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);

/*  Makes the anchor of a first OPEN, or of one that resumes. Returns 0, or a code and the
 *  sentence.  */
int hws_open_make (hws_engine_t *engine, hws_peer_t *peer, const hws_open_t *request,
                   hws_anchor_t **anchor, hws_reason_t reason);

/*  Answers with the anchor.  */
void hws_open_answer (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                      const hws_anchor_t *anchor);

/*  The anchor has ended, and its receiver may have missed the last word on it: that is said
 *  again, for the refusal cannot tell the cause.  */
void hws_open_answer_ended (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                            const hws_tombstone_t *ended);

void hws_on_attach (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);

/*  Seats the sender, or finds its seat or its tombstone, or sends it to the anchor's front,
 *  and fills the answer. Returns 0; HWS_EWOULD_BLOCK when it has to wait until that front is
 *  bound; or the code of a refusal, with its sentence in `reason`.  */
int hws_attach_try (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                    hws_attach_ok_t *answer, hws_reason_t reason);

/*  The parts of it that ATTACH with resume has too: whether the anchor takes another seat (0, or
 *  a code and the sentence); the client is back at its seat, or ends it; what the answer says of a
 *  stream that has ended.  */
int hws_attach_check (const hws_engine_t *engine, const hws_peer_t *peer,
                      const hws_anchor_t *anchor, hws_reason_t reason);
void hws_attach_return (hws_engine_t *engine, hws_seat_t *seat, const hws_attach_t *request,
                        hws_attach_ok_t *answer);
void hws_attach_describe_ended (const hws_tombstone_t *ended, hws_attach_ok_t *answer);
void hws_attach_describe_end (uint8_t ending, uint16_t cause, const char *reason,
                              hws_attach_ok_t *answer);

void hws_on_detach (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);
void hws_on_cancel (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);
void hws_on_cancel_token (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);
void hws_on_reserve_token (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);
void hws_on_bye (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);
void hws_on_ping (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message);

/*  One handler per kind of batch. A malformed batch is answered through
 *  hws_engine_fault, once.  */
void hws_on_data (hws_engine_t *engine, hws_peer_t *peer, hws_message_t *message,
                  hws_batch_t *batch);
void hws_on_position (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch);
void hws_on_ack (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch);
void hws_on_window (hws_engine_t *engine, hws_peer_t *peer, hws_batch_t *batch);

/*  Registers what a request with a cancel token made; 0 is no token. Its owner releases the
 *  node. Returns 0 or HWS_ENO_MEMORY.  */
int hws_token_register (hws_engine_t *engine, hws_target_t *target, uint64_t token);

/*  Whether a request with the token may make something: 0, or HWS_ECANCELLED and the reason
 *  that was given.  */
int hws_token_check (const hws_engine_t *engine, uint64_t token, hws_reason_t reason);

/*  The options changed; the deadline has come; its time is to be found again.  */
void hws_tokens_configure (hws_engine_t *engine);
void hws_tokens_expire (hws_engine_t *engine);
void hws_tokens_arm (hws_engine_t *engine);

/*  An anchor came or went: the shortest heartbeat interval of all is another.  */
void hws_engine_measure (hws_engine_t *self);

#endif
