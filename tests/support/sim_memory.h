/*  An engine without memory: of its allocations the `first`-th from now on fails, and `more`
 *  behind it. Works in a program that is linked with --wrap for malloc, calloc, realloc, strdup
 *  and strndup; elsewhere nothing fails.
 */
#ifndef TEST_SIM_MEMORY_H
#define TEST_SIM_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool is_in_engine;  /* what is allocated now is allocated by the engine */
    uint64_t countdown; /* allocations until one fails; 0: none does */
    uint64_t more;      /* so many behind it fail too */
    uint64_t failures;  /* since the beginning of the run */
} sim_memory_t;

extern sim_memory_t sim_memory;

/*  To be asked at each allocation: does it fail?  */
bool sim_memory_fails (void);

#endif
