/*  The right to listen on an ipc path.
 *
 *  libzmq's bind removes whatever is at the path: a second broker would make the
 *  first deaf without an error, and a file of somebody else would be lost. So a
 *  broker first takes a lock, on a file beside the path, and then looks at
 *  the path: a socket that nobody answers on is a dead broker's and is removed,
 *  anything else is left alone and refused.
 */
#ifndef HWS_IPC_LOCK_IO_H
#define HWS_IPC_LOCK_IO_H

#include <stddef.h>

typedef struct {
    int descriptor; /* of the lock file, which is locked; -1: none */
    char *path;     /* of the lock file */
    char *socket;   /* the path that is claimed, or null */
} hws_ipc_lock_t;

/*  Claims the path of a socket. Returns 0; HWS_EADDRESS_IN_USE when a broker has it
 *  or something that is no dead socket is there; HWS_ESYSTEM; HWS_ENO_MEMORY. After an error
 *  the lock is empty and `fault` of `size` bytes says what was wrong, without the
 *  path.  */
int hws_ipc_lock_claim (hws_ipc_lock_t *self, const char *path, char *fault, size_t size);

/*  Removes the socket, which libzmq leaves behind, and the lock file, and gives the
 *  path up; harmless for an empty lock.  */
void hws_ipc_lock_release (hws_ipc_lock_t *self);

#endif
