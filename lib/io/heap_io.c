#include "io/heap_io.h"

#include <pthread.h>
#include <stdlib.h>

enum { KEPT_BYTES = 4 * 1024 * 1024 };

/*  Volatile, or the compiler sees that nobody needs the block.  */
static void free_large_block (void)
{
    void *volatile block = malloc (KEPT_BYTES);
    free (block);
}

void hws_heap_keep (void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once (&once, free_large_block);
}
