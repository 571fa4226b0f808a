/*  The state directory: what outlives a broker's process, so that its clients find the same broker
 *  again.
 *
 *  It has two files. `broker.json` is the identity (identity.h), secret, with the epoch of the last
 *  start; `lock` is locked while a broker runs, so that there are never two of one identity. Each
 *  start takes the next epoch, and that is on the disk before this returns: written to a new file
 *  under another name, which is synced, takes the place of the old one, and then the directory is
 *  synced. Whatever happens in between leaves the old file or the new one, whole.
 *
 *  A file that cannot be read or is broken is refused, never made anew: as another broker it would
 *  end all streams.
 */
#ifndef HWS_STATE_IO_H
#define HWS_STATE_IO_H

#include "broker/identity.h"

typedef char hws_state_fault_t[2048]; /* one line for people */

typedef struct {
    int lock;                /* descriptor of the lock file; -1: there is no state directory */
    char *directory;         /* its path, or null */
    hws_identity_t identity; /* of this life */
} hws_state_t;

#define HWS_STATE_NONE                                                                             \
    {                                                                                              \
        .lock = -1                                                                                 \
    }

/*  Locks a directory, which is made if it is missing (but not those above it), and begins the next
 *  epoch in it. Returns 0; HWS_EBUSY when another broker has it; HWS_ENOT_FOUND when it is not
 * there and cannot be made; HWS_EDENIED when it or a file is another user's or open to others;
 *  HWS_EMALFORMED; HWS_ELIMIT when all epochs are used; HWS_ESYSTEM; HWS_ENO_MEMORY. After an error
 *  `self` has no directory and `fault` says what was wrong, with the path.  */
int hws_state_open (hws_state_t *self, const char *directory, hws_state_fault_t fault);

/*  Gives the directory up; harmless without one.  */
void hws_state_close (hws_state_t *self);

#endif
