/*  hawser-ctl: settings, then ctl_io.  */
#include "conf/program_io.h"
#include "ctl/ctl_io.h"
#include "ctl/settings.h"
#include "io/versions_io.h"

int main (int argc, char **argv)
{
    hws_conf_t *conf = NULL;
    int status = hws_program_start (&conf, &hws_ctl_program, argc, argv, hws_versions_print_zmq);
    if (status == HWS_PROGRAM_RUN) {
        status = hws_ctl (hws_conf_values (conf));
        hws_conf_destroy (&conf);
    }
    return status;
}
