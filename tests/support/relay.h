/*  A TCP relay between programs and their broker, through which a test spoils the connection:
 *  it delays, holds up, swallows, cuts and refuses.
 *
 *  It listens at a free port of loopback and makes a connection to its target for each that
 *  it takes; both together are a link. It runs on a thread of its own, keeps at most half a
 *  MiB for each direction of a link (behind that it stops reading, as a slow network does),
 *  and asserts only in the calls, which are for the test's thread. A setting counts for what is
 * read after the call has returned, on all links, present and later.
 */
#ifndef TESTS_RELAY_H
#define TESTS_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct relay relay_t;

/*  Directions, and the ends of a link that they lead to. Up is from who connects to the target.  */
enum { RELAY_UP = 1, RELAY_DOWN = 2, RELAY_BOTH = 3 };

/*  How an end is closed: with a FIN behind what was written, or with a reset.  */
typedef enum { RELAY_FIN, RELAY_RESET } relay_end_t;

/*  `target` is tcp://ADDRESS:PORT, IPv4.  */
relay_t *relay_start (const char *target);

/*  Resets all links, stops, frees; sets `*self` to null.  */
void relay_stop (relay_t **self);

/*  tcp://127.0.0.1:PORT, where it listens; lives as long as the relay.  */
const char *relay_endpoint (const relay_t *self);

/*  Bytes arrive so much later.  */
void relay_delay (relay_t *self, unsigned directions, int64_t ms);

/*  Nothing passes, nothing is read and no end is noticed until they are released.  */
void relay_hold (relay_t *self, unsigned directions, bool hold);

/*  Bytes are read and thrown away: the writer sees a connection that takes everything.  */
void relay_swallow (relay_t *self, unsigned directions, bool swallow);

/*  Nobody listens: connections are refused. Links stay.  */
void relay_refuse (relay_t *self, bool refuse);

/*  Cuts all present links at these ends; what was on its way is lost. The end that is not cut
 *  stays open and hears nothing; what it says is swallowed (half-open).  */
void relay_cut (relay_t *self, unsigned ends, relay_end_t how);

/*  From now on every link is cut at both ends when it has carried so many bytes in all, in
 *  the midst of whatever that is; 0: no longer.  */
void relay_cut_after (relay_t *self, uint64_t bytes, relay_end_t how);

/*  Links taken so far, and there now; bytes that arrived.  */
size_t relay_taken (relay_t *self);
size_t relay_present (relay_t *self);
uint64_t relay_carried (relay_t *self, unsigned direction);

#endif
