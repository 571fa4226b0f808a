/*  What --version says of libzmq.  */
#ifndef HWS_VERSIONS_IO_H
#define HWS_VERSIONS_IO_H

#include <stdio.h>

/*  Writes one line: its version at run time, and whether it has CURVE.  */
void hws_versions_print_zmq (FILE *stream);

#endif
