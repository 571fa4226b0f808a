/*  What hawser-ctl does once its settings are known: one command, and it ends.  */
#ifndef HWS_CTL_IO_H
#define HWS_CTL_IO_H

#include "ctl/settings.h"

/*  Runs; returns the exit status.  */
int hws_ctl (const hws_ctl_settings_t *settings);

#endif
