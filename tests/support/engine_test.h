/*  What every test of the engine begins and ends with.
 */
#ifndef TEST_ENGINE_TEST_H
#define TEST_ENGINE_TEST_H

#include "tests/support/engine_actors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static world_t s_world;

static inline int begin (void **state)
{
    (void) state;
    const hws_engine_options_t options = world_options ();
    world_begin (&s_world, &options);
    return 0;
}

static inline int end (void **state)
{
    (void) state;
    world_end (&s_world);
    return 0;
}

/*  Begins again, with other options.  */
static inline void begin_with (const hws_engine_options_t *options)
{
    world_end (&s_world);
    world_begin (&s_world, options);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, begin, end)

#endif
