/*  The dedicated fronts: ROUTER sockets that come and go with their anchors.
 *
 *  There may be thousands, so they are not polled one by one: an epoll descriptor tells which
 *  have something to read, once for each change, and the set remembers it until they are read
 *  to their end. Whoever polls polls that descriptor. A front that is given up stays while
 *  somebody is connected, for HWS_FRONT_LINGER_MS at the most, so that last words get out:
 *  closing, and unbinding too, ends its connections.
 *
 *  The set keeps within the descriptors that it is given, since libzmq aborts when it finds
 *  none while it binds: what fronts use is taken from the room for connections.
 */
#ifndef HWS_FRONTS_IO_H
#define HWS_FRONTS_IO_H

#include "broker/front_io.h"
#include "broker/room.h"
#include "io/log_io.h"

#define HWS_FRONT_LINGER_MS 2000

typedef struct hws_fronts hws_fronts_t;

typedef struct {
    void *context;             /* of libzmq; not owned */
    const hws_front_t *shared; /* each front listens where this one does; not owned */
    hws_front_options_t front; /* of every front, but for its number */
    hws_room_t room;           /* for fronts and connections */
    hws_hash_key_t hash_key;   /* secret */
    const hws_log_t *log;      /* not owned */
} hws_fronts_options_t;

/*  Makes an empty set, and limits the connections. Returns 0, HWS_ESYSTEM or HWS_ENO_MEMORY.  */
int hws_fronts_new (hws_fronts_t **self, const hws_fronts_options_t *options);

/*  Closes all fronts, see hws_front_destroy. Accepts null.  */
void hws_fronts_destroy (hws_fronts_t **self, int linger_ms);

/*  Readable when a front may have something to read.  */
int hws_fronts_descriptor (const hws_fronts_t *self);

/*  Binds the front of that number, on as many endpoints as the shared one has. Returns 0, or a
 *  code as hws_front_bind does (HWS_ELIMIT: no descriptors left) and `fault`.  */
int hws_fronts_bind (hws_fronts_t *self, uint32_t number, hws_front_fault_t fault);

/*  Gives the front up: closes it if nobody is connected, else see hws_fronts_reap. A number that
 *  is not bound is ignored.  */
void hws_fronts_unbind (hws_fronts_t *self, uint32_t number, hws_ms_t now);

/*  Closes the fronts that were given up and that everybody has left, or whose time has come.
 *  Called when they were read.  */
void hws_fronts_reap (hws_fronts_t *self, hws_ms_t now);

/*  When the next one's time comes whatever happens, or HWS_NEVER; `now` when a front waits to
 *  be read.  */
hws_ms_t hws_fronts_wake_at (const hws_fronts_t *self, hws_ms_t now);

/*  The front of that number to send to, or null.  */
hws_front_t *hws_fronts_find (hws_fronts_t *self, uint32_t number);

/*  Takes the next front that may have something to read, or null, in turn. It is to be read
 *  to its end, or kept: then its turn comes again, after all others.  */
hws_front_t *hws_fronts_next (hws_fronts_t *self);
void hws_fronts_keep (hws_fronts_t *self, const hws_front_t *front);

/*  Looks for new input: `wake` for what epoll knows, at the beginning of a turn; `settle` for
 *  what sends brought to light, at its end.  */
void hws_fronts_wake (hws_fronts_t *self);
void hws_fronts_settle (hws_fronts_t *self);

/*  Reads every front's monitor.  */
void hws_fronts_read_monitors (hws_fronts_t *self, hws_ms_t now);

/*  Open fronts, those that are closing included.  */
size_t hws_fronts_count (const hws_fronts_t *self);

#endif
