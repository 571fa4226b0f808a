/*  hawser-send: settings, then send_io.  */
#include "conf/program_io.h"
#include "io/versions_io.h"
#include "sender/send_io.h"
#include "sender/settings.h"

int main (int argc, char **argv)
{
    hws_conf_t *conf = NULL;
    int status = hws_program_start (&conf, &hws_send_program, argc, argv, hws_versions_print_zmq);
    if (status == HWS_PROGRAM_RUN) {
        status = hws_send (hws_conf_values (conf));
        hws_conf_destroy (&conf);
    }
    return status;
}
