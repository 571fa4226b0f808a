/*  The broker of a virtual network: an engine that is killed, drained and begun again.
 */
#ifndef TEST_SIM_BROKER_H
#define TEST_SIM_BROKER_H

#include "tests/support/sim_network.h"

/*  Begins with these options.  */
void sim_broker_begin (sim_network_t *self);

/*  kill -9: it is gone, and back after `down_ms`: the same broker in its next epoch, or, if the
 *  network is forgetful, another one. False when it is down already.  */
bool sim_broker_kill (sim_network_t *self, hws_ms_t down_ms);

/*  SIGTERM: it says GOAWAY, sends what it holds and goes. Likewise.  */
bool sim_broker_drain (sim_network_t *self, hws_ms_t down_ms);

/*  It stands still.  */
void sim_broker_stall (sim_network_t *self, hws_ms_t length_ms);

/*  Its turn: what has arrived, what is due, what it says.  */
void sim_broker_turn (sim_network_t *self);
hws_ms_t sim_broker_next_at (const sim_network_t *self);

/*  It ends for good; what it held comes out.  */
void sim_broker_end (sim_network_t *self);

#endif
