/*  What a simulated run has to have come to, once it is over: what each end was told, and that
 *  they were told the same.
 */
#ifndef TEST_SIM_VERDICT_H
#define TEST_SIM_VERDICT_H

#include "tests/support/sim_world.h"

/*  Fails the run if a promise was not kept.  */
void sim_verdict (void);

/*  Says what the sender and its receivers learned.  */
void sim_describe (const sim_sender_t *sender);

#endif
