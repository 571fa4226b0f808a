/*  The addresses behind an endpoint.
 *
 *  libzmq tries only the first address of a name; here all are found, and the caller
 *  tries one after the other.
 */
#ifndef HWS_RESOLVE_IO_H
#define HWS_RESOLVE_IO_H

#include "conf/endpoint.h"
#include "proto/control.h"

#define HWS_ADDRESSES_MAX 16 /* of an endpoint; further ones are ignored */

typedef struct {
    uint32_t count;
    hws_endpoint_t address[2 * HWS_ADDRESSES_MAX]; /* as libzmq takes them, nothing to resolve */
} hws_addresses_t;

/*  Looks an endpoint to connect to up and adds its addresses to those that are there, of one
 *  other endpoint at most; it may take as long as the resolver. Returns 0, or HWS_EUNREACHABLE
 *  when the name is not known.  */
int hws_resolve (const hws_endpoint_parts_t *endpoint, hws_addresses_t *addresses);

#endif
