/*  accept4 as libzmq calls it: its listener on a Unix socket takes "the system has no descriptors"
 *  for weather and aborts on "the process has none", which any peer that connects fast enough can
 *  bring about. It is told the former; the connection waits until there are some.
 */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/*  Without <sys/socket.h>, which declares a union in the place of the address.  */
int accept4 (int descriptor, void *address, void *size, int flags);

int accept4 (int descriptor, void *address, void *size, int flags)
{
    const long accepted = syscall (SYS_accept4, descriptor, address, size, flags);
    if (accepted < 0 && errno == EMFILE) {
        errno = ENFILE;
    }
    return (int) accepted;
}
