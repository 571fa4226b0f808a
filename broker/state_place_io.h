/*  Which state directory a broker uses: the one that the settings name; the default one, for
 *  "auto"; or none.
 *
 *  The default one is $STATE_DIRECTORY, which systemd sets, else hawser in $XDG_STATE_HOME, else
 *  ~/.local/state/hawser. Here the environment is read, and nowhere else in the broker.
 */
#ifndef HWS_STATE_PLACE_IO_H
#define HWS_STATE_PLACE_IO_H

#include "broker/state_io.h"

/*  The value of the setting that stands for the default directory.  */
#define HWS_STATE_AUTO "auto"

/*  Opens it; `wanted` is the setting, null for none. A directory that was named must be good. The
 *  default one may be another broker's, or impossible to make: then this broker has none. Returns
 * 0, or a code as hws_state_open. `fault` says what is wrong, also behind a 0; it is "" if nothing
 * is.
 */
int hws_state_take (hws_state_t *self, const char *wanted, hws_state_fault_t fault);

#endif
