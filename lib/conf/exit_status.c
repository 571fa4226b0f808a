#include "conf/exit_status.h"

#include "base/error.h"

int hws_exit_of_refusal (int code, bool has_wait)
{
    switch (code) {
    case HWS_EINVALID:
        return HWS_EXIT_USAGE;
    case HWS_ENOT_FOUND:
    case HWS_ENAME_IN_USE:
        return has_wait ? HWS_EXIT_TIMEOUT : HWS_EXIT_FAILED;
    case HWS_EUNREACHABLE:
        return has_wait ? HWS_EXIT_TIMEOUT : HWS_EXIT_UNREACHABLE;
    case HWS_ETRANSPORT: /* the broker cannot bind the anchor's own front, however long one waits */
        return HWS_EXIT_UNREACHABLE;
    case HWS_ETIMEOUT:
        return HWS_EXIT_TIMEOUT;
    case HWS_EMAX_SENDERS:
    case HWS_EBUFFER_FULL:
    case HWS_ELIMIT:
    case HWS_EDENIED:
    case HWS_EBUSY:
        return HWS_EXIT_REFUSED;
    case HWS_ECANCELLED:
        return HWS_EXIT_BAD_END;
    default:
        return HWS_EXIT_FAILED;
    }
}
