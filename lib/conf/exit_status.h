/*  The exit statuses of all programs; the README lists them for people.
 */
#ifndef HWS_EXIT_STATUS_H
#define HWS_EXIT_STATUS_H

#include <stdbool.h>

enum {
    HWS_EXIT_DONE = 0,
    HWS_EXIT_FAILED = 1,
    HWS_EXIT_USAGE = 2,
    HWS_EXIT_BAD_END = 3,
    HWS_EXIT_TIMEOUT = 4,
    HWS_EXIT_UNREACHABLE = 5,
    HWS_EXIT_REFUSED = 6
};

/*  The status of a program whose open or attach was refused with `code` (HWS_E…). With
 *  `has_wait` it was asked to wait (--wait) for what is not there, so that its time has
 *  passed.  */
int hws_exit_of_refusal (int code, bool has_wait);

#endif
