/*  One direction of a virtual connection: messages under way, which arrive in order.
 */
#ifndef TEST_SIM_LANE_H
#define TEST_SIM_LANE_H

#include "base/list.h"
#include "base/time.h"

#include <stdint.h>

typedef struct {
    hws_link_t link;
    hws_ms_t at;      /* when it arrives */
    const char *verb; /* static; null for a batch */
    size_t size;
    uint8_t bytes[];
} sim_packet_t;

typedef struct {
    hws_list_t packets;
    hws_ms_t last_at; /* when the last of them arrives */
} sim_lane_t;

/*  Sends a message that arrives at `at`, or with the one before it.  */
void sim_lane_put (sim_lane_t *self, hws_ms_t at, const char *verb, const uint8_t *data,
                   size_t size);

/*  Takes the next that has arrived, or null; it is the caller's to free.  */
sim_packet_t *sim_lane_take (sim_lane_t *self, hws_ms_t now);

/*  When the next arrives; HWS_NEVER without one.  */
hws_ms_t sim_lane_next_at (const sim_lane_t *self);

/*  Loses what is under way, but for the first `kept`.  */
void sim_lane_cut (sim_lane_t *self, size_t kept);

/*  What is under way arrives so much later.  */
void sim_lane_delay (sim_lane_t *self, hws_ms_t length_ms);

#endif
