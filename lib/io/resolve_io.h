/*  Endpoints and the addresses behind them.
 *
 *  libzmq tries only the first address of a name; here all are found, and the caller
 *  tries one after the other.
 */
#ifndef HWS_RESOLVE_IO_H
#define HWS_RESOLVE_IO_H

#include "proto/control.h"

#include <stdbool.h>

#define HWS_ADDRESSES_MAX 16 /* further ones are ignored */

typedef struct {
    uint32_t count;
    hws_endpoint_t address[HWS_ADDRESSES_MAX]; /* as libzmq takes them, nothing to resolve */
} hws_addresses_t;

/*  Whether it can be connected to: tcp://HOST:PORT, HOST a name, an IPv4 address or an IPv6
 *  address in brackets, PORT 1 to 65535; or ipc://PATH.  */
bool hws_endpoint_is_valid (const char *endpoint);

/*  Looks a valid endpoint up; it may take as long as the resolver. Returns 0, or
 *  HWS_EUNREACHABLE when the name is not known.  */
int hws_resolve (const char *endpoint, hws_addresses_t *addresses);

#endif
