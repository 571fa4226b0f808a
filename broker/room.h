/*  How a process' descriptors are shared out: to connections, to dedicated fronts, and some
 *  that stay free.
 */
#ifndef HWS_ROOM_H
#define HWS_ROOM_H

#include "broker/settings.h"

/*  Descriptors of a dedicated front: its socket's, two of its monitor; for each endpoint the
 *  listener and, over ipc, a lock file.  */
#define HWS_FRONT_DESCRIPTORS    3
#define HWS_LISTENER_DESCRIPTORS 2

typedef struct {
    size_t descriptors; /* of connections and dedicated fronts together */
    size_t connections; /* the most, if fronts leave so many */
    size_t fronts;      /* the most, those that are closing included */
} hws_room_t;

/*  How many descriptors the process needs for what the settings ask for.  */
size_t hws_room_wanted (const hws_broker_settings_t *settings);

/*  Shares out those that it has. Returns 0, or HWS_ELIMIT when they are too few to work with.  */
int hws_room_share (hws_room_t *self, const hws_broker_settings_t *settings, size_t descriptors);

/*  What one dedicated front takes of them.  */
size_t hws_room_front_cost (size_t endpoint_count);

#endif
