/*  Which connection is whose: descriptors of the transport to addresses of peers, for all
 *  fronts together.
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
 *  Descriptors are reused across fronts as well, and what two monitors tell has no
 *  order. So a connection is named by front and descriptor: each front's own
 *  monitor tells of its beginning and of its end, whatever the others say of the
 *  same number by then.
 *
 *  Pure. What peers can make grow, connections and ties, has limits. A connection
 *  beyond is to be shut down; a peer without a tie is found by its silence only.
 */
#ifndef HWS_CONNECTIONS_H
#define HWS_CONNECTIONS_H

#include "broker/engine.h"

typedef struct hws_connections hws_connections_t;

/*  An empty table that takes no connection until it has a limit, and so many ties;
 *  `hash_key` is secret, since peers choose addresses. Returns 0 or HWS_ENO_MEMORY.  */
int hws_connections_new (hws_connections_t **self, size_t tie_limit, hws_hash_key_t hash_key);

/*  Accepts null.  */
void hws_connections_destroy (hws_connections_t **self);

/*  How many connections may be open.  */
void hws_connections_limit (hws_connections_t *self, size_t limit);

/*  A front took a connection, or closed it: whoever was tied to it is gone. `accepted`
 *  returns 0; HWS_ELIMIT for one too many, or HWS_ENO_MEMORY: then it is to be shut down.  */
int hws_connections_accepted (hws_connections_t *self, uint32_t front, int descriptor,
                              hws_ms_t now);
void hws_connections_closed (hws_connections_t *self, uint32_t front, int descriptor);

/*  The front is closed, and with it all its connections.  */
void hws_connections_drop (hws_connections_t *self, uint32_t front);

/*  A HELLO from the address came in on the descriptor, at the address' front. If that is
 *  closed already, the address is gone at once. Returns 0; HWS_EINVALID for a descriptor
 *  that cannot be, HWS_ELIMIT or HWS_ENO_MEMORY: then there is no tie.  */
int hws_connections_tie (hws_connections_t *self, int descriptor, const hws_address_t *address);

/*  The address is known to be gone: its tie is undone, nothing is reported.  */
void hws_connections_forget (hws_connections_t *self, const hws_address_t *address);

/*  Takes the next address whose connection is closed. Returns true with one.  */
bool hws_connections_pop_gone (hws_connections_t *self, hws_address_t *address);

/*  A connection that has brought no HELLO for HWS_HELLO_MS is to be shut down: takes the
 *  descriptor of the next such, or -1. It is open until the transport says otherwise, and is
 *  not named again. silent_at is when the next one is due, or HWS_NEVER.  */
#define HWS_HELLO_MS 30000
int hws_connections_pop_silent (hws_connections_t *self, hws_ms_t now);
hws_ms_t hws_connections_silent_at (const hws_connections_t *self);

/*  Open connections now.  */
size_t hws_connections_count (const hws_connections_t *self);

/*  Since the beginning: refused because of the limit or for want of memory, and closed for
 *  their silence.  */
uint64_t hws_connections_refused (const hws_connections_t *self);
uint64_t hws_connections_silent (const hws_connections_t *self);

#endif
