#include "base/version.h"

const char *hws_version (void)
{
    return HWS_VERSION;
}
