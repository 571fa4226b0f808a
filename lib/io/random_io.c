#include "io/random_io.h"

#include "base/error.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

int hws_random_fill (void *data, size_t size)
{
    uint8_t *at = data;
    while (size > 0) {
        const ssize_t got = getrandom (at, size, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            return HWS_ESYSTEM;
        }
        at += got;
        size -= (size_t) got;
    }
    return 0;
}

int hws_random_seed_rand (void)
{
    unsigned seed;
    const int rc = hws_random_fill (&seed, sizeof seed);
    if (rc == 0) {
        srand (seed);
    }
    return rc;
}
