/*  hawser-recv: settings, then receive_io.  */
#include "conf/program_io.h"
#include "receiver/receive_io.h"
#include "receiver/settings.h"

#include <stdio.h>
#include <zmq.h>

static void print_versions (FILE *stream)
{
    int major, minor, patch;
    zmq_version (&major, &minor, &patch);
    fprintf (stream, "libzmq %d.%d.%d, CURVE %s\n", major, minor, patch,
             zmq_has ("curve") ? "yes" : "no");
}

int main (int argc, char **argv)
{
    hws_conf_t *conf = NULL;
    int status = hws_program_start (&conf, &hws_recv_program, argc, argv, print_versions);
    if (status == HWS_PROGRAM_RUN) {
        status = hws_receive (hws_conf_values (conf));
        hws_conf_destroy (&conf);
    }
    return status;
}
