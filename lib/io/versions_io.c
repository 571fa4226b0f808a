#include "io/versions_io.h"

#include <zmq.h>

void hws_versions_print_zmq (FILE *stream)
{
    int major, minor, patch;
    zmq_version (&major, &minor, &patch);
    fprintf (stream, "libzmq %d.%d.%d, CURVE %s\n", major, minor, patch,
             zmq_has ("curve") ? "yes" : "no");
}
