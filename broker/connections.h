/*  Which connection is whose: descriptors of the transport to addresses of peers.
 *
 *  The monitor of a front tells that a descriptor was accepted or closed; a HELLO
 *  tells which descriptor it came in on. Together they make a closed connection
 *  known at once, to the one peer that had it. Descriptors are reused, so the
 *  order is what counts: everything that the monitor has to say is told here
 *  before a HELLO is. Then a tie made while the descriptor is open is true, or it
 *  is that of an earlier connection whose HELLO was read late; the latter is
 *  dead already and may be reported at any time. Hence a descriptor can have
 *  several ties, and they end together.
 *
 *  Pure. What peers can make grow, the ties, has a limit; beyond it a peer that
 *  closes is found by its silence only.
 */
#ifndef HWS_CONNECTIONS_H
#define HWS_CONNECTIONS_H

#include "broker/engine.h"

typedef struct hws_connections hws_connections_t;

/*  A table for descriptors below `descriptor_limit` and so many ties; `hash_key`
 *  is secret, since peers choose addresses. Returns 0 or HWS_ENO_MEMORY.  */
int hws_connections_new (hws_connections_t **self, size_t descriptor_limit, size_t tie_limit,
                         hws_hash_key_t hash_key);

/*  Accepts null.  */
void hws_connections_destroy (hws_connections_t **self);

/*  The transport took a connection, or closed it: whoever was tied to the descriptor
 *  is gone.  */
void hws_connections_accepted (hws_connections_t *self, int descriptor, hws_ms_t now);
void hws_connections_closed (hws_connections_t *self, int descriptor);

/*  A HELLO from the address came in on the descriptor. If that is closed already,
 *  the address is gone at once. Returns 0; HWS_EINVALID for a descriptor that
 *  cannot be (-1 included), HWS_ELIMIT or HWS_ENO_MEMORY: then there is no tie.  */
int hws_connections_tie (hws_connections_t *self, int descriptor, const hws_address_t *address);

/*  The address is known to be gone: its tie is undone, nothing is reported.  */
void hws_connections_forget (hws_connections_t *self, const hws_address_t *address);

/*  Takes the next address whose connection is closed. Returns true with one.  */
bool hws_connections_pop_gone (hws_connections_t *self, hws_address_t *address);

/*  A connection that has brought no HELLO for HWS_HELLO_MS is to be closed: takes the next
 *  such descriptor, or -1. It is open until the transport says otherwise, and is
 *  not named again. silent_at is when the next one is due, or HWS_NEVER.  */
#define HWS_HELLO_MS 30000
int hws_connections_pop_silent (hws_connections_t *self, hws_ms_t now);
hws_ms_t hws_connections_silent_at (const hws_connections_t *self);

/*  Open descriptors now.  */
size_t hws_connections_count (const hws_connections_t *self);

#endif
