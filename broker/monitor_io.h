/*  What a front's monitor tells: connections taken and closed.
 *
 *  libzmq's I/O thread waits when nobody reads the monitor, so it is read to its
 *  end at every turn that it has something to say in, and again before a HELLO is handled
 *  (connections.h says why). It also keeps the number of connections within bounds: a
 *  process without descriptors makes that thread spin on accept, so what comes beyond
 *  the limit is shut down at once, which the peer sees as a closed connection.
 */
#ifndef HWS_MONITOR_IO_H
#define HWS_MONITOR_IO_H

#include "broker/connections.h"

typedef struct {
    void *front;                    /* the ROUTER; not owned */
    uint32_t front_number;          /* in addresses */
    void *socket;                   /* the reading end, or null */
    size_t open_count;              /* connections of this front */
    hws_connections_t *connections; /* of all fronts; not owned */
} hws_monitor_t;

/*  Begins to watch the front, before it is bound. Returns 0 or HWS_ESYSTEM.  */
int hws_monitor_init (hws_monitor_t *self, void *context, void *front, uint32_t front_number,
                      hws_connections_t *connections);

/*  Before the front is closed.  */
void hws_monitor_fini (hws_monitor_t *self);

/*  Takes everything that there is.  */
void hws_monitor_read (hws_monitor_t *self, hws_ms_t now);

/*  Shuts down connections that have said no HELLO for too long. Every monitor was just read,
 *  or a descriptor may be another connection's by now.  */
void hws_monitor_end_silent (hws_connections_t *connections, hws_ms_t now);

#endif
