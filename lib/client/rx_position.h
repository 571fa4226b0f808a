/*  Where every sender of an anchor stands at its receiver, as POSITION says it to a broker that
 *  knows nothing of it (docs/protocol.md, "OPEN").
 */
#ifndef HWS_RX_POSITION_H
#define HWS_RX_POSITION_H

#include "client/rx.h"

/*  A walk over the senders; nothing may change meanwhile.  */
typedef struct {
    const hws_rx_t *rx;
    const hws_link_t *link; /* of the next one, or null: the list is at its end */
    unsigned list;          /* of the lists, the one it is in */
} hws_rx_walk_t;

hws_rx_walk_t hws_rx_walk (const hws_rx_t *rx);

/*  The next position. False after the last.  */
bool hws_rx_walk_next (hws_rx_walk_t *self, hws_position_t *position);

/*  So many there are.  */
size_t hws_rx_position_count (const hws_rx_t *rx);

#endif
