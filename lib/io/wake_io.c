#include "io/wake_io.h"

#include "base/error.h"

#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int hws_wake_new (void)
{
    const int descriptor = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    return descriptor < 0 ? HWS_ESYSTEM : descriptor;
}

void hws_wake_set (int descriptor)
{
    const uint64_t one = 1;
    const ssize_t rc = write (descriptor, &one, sizeof one);
    (void) rc; /* it fails only when it is readable already */
}

void hws_wake_clear (int descriptor)
{
    uint64_t count;
    const ssize_t rc = read (descriptor, &count, sizeof count);
    (void) rc; /* it fails only when it is not readable */
}
