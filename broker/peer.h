/*  Peers: the clients as the broker sees them (docs/protocol.md, "State tables": "Client,
 *  at the broker").
 *
 *  A peer is made by its first HELLO and lasts while anything belongs to it or its
 *  connection speaks; then for a second more. Its connection is an address; a HELLO
 *  from another address moves it there. What is still read of an earlier connection of
 *  a peer that is away is used.
 */
#ifndef HWS_PEER_H
#define HWS_PEER_H

#include "broker/out.h"
#include "cancel/cancel.h"

#define HWS_UNKNOWN_STREAM_MS 1000 /* a client is told of unknown streams at most so often */

typedef struct hws_opening hws_opening_t;

typedef enum { HWS_PEER_CONNECTED, HWS_PEER_AWAY } hws_peer_state_t;

struct hws_peer {
    hws_map_node_t by_client_id;
    hws_map_node_t by_address;
    hws_id_t client_id;
    hws_address_t address; /* of the present or last connection */
    uint32_t listener;     /* by which of its front's endpoints it came */
    hws_peer_state_t state;
    hws_ms_t heard_at; /* last message, on the engine's clock */
    hws_deadline_t silence;
    hws_list_t seats;       /* of hws_seat_t, through in_peer */
    hws_list_t anchors;     /* of hws_anchor_t, through in_owner */
    hws_list_t waiting;     /* of hws_waiting_t, through in_peer */
    uint64_t buffer_bytes;  /* of its anchors together */
    size_t sender_count;    /* seats at its anchors */
    hws_opening_t *opening; /* owned; an OPEN whose positions are coming, or null */
    hws_seat_t *last_seat;  /* of the last run: most batches hold runs of one stream */
    hws_out_t out;
    hws_cancel_account_t cancels; /* of tokens, that are remembered */
    bool owes_resync;             /* its receiver was taken for away: tell it when it speaks */
    hws_ms_t unknown_at;          /* when it was last told of an unknown stream */
    hws_name_t network_address;   /* for people */
};

/*  Makes a peer for a client that said HELLO. Returns null without memory.  */
hws_peer_t *hws_peer_new (hws_engine_t *engine, const hws_id_t *client_id,
                          const hws_address_t *address, const char *network_address);

/*  Nobody: has the seats whose clients have not come back from the broker's life before. It is
 *  always away, is found by nobody, and has an id that no client knows. It owns nothing that is
 *  to be freed.  */
void hws_peer_init_nobody (const hws_engine_t *engine, hws_peer_t *self);

/*  Frees a peer that owns nothing.  */
void hws_peer_free (hws_engine_t *engine, hws_peer_t *self);

/*  The peer at an address or of a client, or null.  */
hws_peer_t *hws_peer_at (const hws_engine_t *engine, const hws_address_t *address);
hws_peer_t *hws_peer_of_client (const hws_engine_t *engine, const hws_id_t *client_id);

/*  The peer said HELLO, from this address: all that belongs to it is away until it is
 *  attached and opened again, and nothing queued for it is sent.  */
void hws_peer_move (hws_engine_t *engine, hws_peer_t *self, const hws_address_t *address,
                    const char *network_address);

/*  A message of it came. A late turn sets the engine's clock back; what was heard before
 *  stays, for deadlines are armed for it.  */
void hws_peer_heard (const hws_engine_t *engine, hws_peer_t *self);

/*  Its connection is closed or dead.  */
void hws_peer_lose (hws_engine_t *engine, hws_peer_t *self);

/*  The silence deadline has come.  */
void hws_peer_expire (hws_engine_t *engine, hws_peer_t *self);

#endif
