/*  What is true of an engine between any two calls, whatever its clients do.
 */
#ifndef TEST_ENGINE_CHECK_H
#define TEST_ENGINE_CHECK_H

#include "broker/engine.h"

/*  Fails the test if an invariant is broken. `payloads` is how many the engine has taken
 *  and not given back.  */
void engine_check (const hws_engine_t *engine, size_t payloads);

/*  Fronts of dedicated anchors that are bound or being bound; sets how many of them are
 *  being bound.  */
size_t engine_front_count (const hws_engine_t *engine, size_t *binding_count);

#endif
