/*  What the parts of the virtual network share.  */
#ifndef TEST_SIM_NETWORK_PART_H
#define TEST_SIM_NETWORK_PART_H

#include "tests/support/sim_network.h"

/*  The connection breaks now.  */
void sim_break_it (sim_network_t *self, sim_connection_t *connection, sim_told_t told);

/*  A message of the broker is on its way.  */
void sim_send_down (sim_network_t *self, sim_connection_t *connection, const hws_effect_t *effect);

#endif
