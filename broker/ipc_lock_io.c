#include "broker/ipc_lock_io.h"

#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*  Whether the open file is still the one of that name: its last owner removes it
 *  while holding the lock, perhaps between our open and our lock.  */
static bool is_at (int descriptor, const char *path)
{
    struct stat opened, named;
    return fstat (descriptor, &opened) == 0 && lstat (path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

static int take_lock (hws_ipc_lock_t *self, char *fault, size_t size)
{
    for (;;) {
        self->descriptor = open (self->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (self->descriptor < 0) {
            snprintf (fault, size, "cannot open its lock file %s: %s", self->path,
                      strerror (errno));
            return HWS_ESYSTEM;
        }
        if (flock (self->descriptor, LOCK_EX | LOCK_NB) != 0) {
            const int code = errno;
            close (self->descriptor);
            self->descriptor = -1;
            if (code == EWOULDBLOCK) {
                snprintf (fault, size, "another broker listens there");
                return HWS_EADDRESS_IN_USE;
            }
            snprintf (fault, size, "cannot lock %s: %s", self->path, strerror (code));
            return HWS_ESYSTEM;
        }
        if (is_at (self->descriptor, self->path)) {
            return 0;
        }
        close (self->descriptor);
        self->descriptor = -1;
    }
}

/*  Whether anybody accepts connections on the socket at the path.  */
static bool is_answered (const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen (path);
    const int probe = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0 || length >= sizeof address.sun_path) {
        if (probe >= 0) {
            close (probe);
        }
        return true;
    }
    memcpy (address.sun_path, path, length + 1);
    const bool is_refused =
        connect (probe, (const struct sockaddr *) &address, sizeof address) != 0 &&
        errno == ECONNREFUSED;
    close (probe);
    return !is_refused;
}

static int clear_path (const char *path, char *fault, size_t size)
{
    struct stat found;
    if (lstat (path, &found) != 0) {
        if (errno == ENOENT) {
            return 0;
        }
        snprintf (fault, size, "%s", strerror (errno));
        return HWS_ESYSTEM;
    }
    if (!S_ISSOCK (found.st_mode)) {
        snprintf (fault, size, "something that is not a socket is there");
        return HWS_EADDRESS_IN_USE;
    }
    if (is_answered (path)) {
        snprintf (fault, size, "another program listens there");
        return HWS_EADDRESS_IN_USE;
    }
    if (unlink (path) != 0) {
        snprintf (fault, size, "cannot remove the socket of a dead broker: %s", strerror (errno));
        return HWS_ESYSTEM;
    }
    return 0;
}

int hws_ipc_lock_claim (hws_ipc_lock_t *self, const char *path, char *fault, size_t size)
{
    *self = (hws_ipc_lock_t){.descriptor = -1};
    if (asprintf (&self->path, "%s.lock", path) < 0) {
        self->path = NULL;
        snprintf (fault, size, "out of memory");
        return HWS_ENO_MEMORY;
    }
    int rc = take_lock (self, fault, size);
    if (rc == 0) {
        rc = clear_path (path, fault, size);
    }
    if (rc == 0) {
        self->socket = strdup (path);
        if (!self->socket) {
            snprintf (fault, size, "out of memory");
            rc = HWS_ENO_MEMORY;
        }
    }
    if (rc != 0) {
        hws_ipc_lock_release (self);
    }
    return rc;
}

void hws_ipc_lock_release (hws_ipc_lock_t *self)
{
    struct stat found;
    if (self->socket && lstat (self->socket, &found) == 0 && S_ISSOCK (found.st_mode)) {
        unlink (self->socket);
    }
    if (self->descriptor >= 0) {
        unlink (self->path);
        close (self->descriptor);
    }
    free (self->path);
    free (self->socket);
    *self = (hws_ipc_lock_t){.descriptor = -1};
}
