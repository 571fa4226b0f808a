/*  Our side of a connection, as an endpoint.
 */
#ifndef HWS_LOCAL_ENDPOINT_IO_H
#define HWS_LOCAL_ENDPOINT_IO_H

#include "proto/control.h"

/*  Writes the address that a connection came in at, in the form in which libzmq names what it
 *  listens on: tcp://127.0.0.1:7733, tcp://[::1]:7733, ipc:///run/hawser. Returns 0, or
 *  HWS_ESYSTEM when there is no such connection any more.  */
int hws_local_endpoint (int descriptor, hws_endpoint_t text);

#endif
