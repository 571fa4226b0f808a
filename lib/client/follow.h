/*  Where a dedicated anchor is: from the endpoint that the broker tells to the one that this
 *  client connects to (docs/protocol.md, "ATTACH").
 */
#ifndef HWS_FOLLOW_H
#define HWS_FOLLOW_H

#include "conf/endpoint.h"
#include "proto/control.h"

/*  Takes apart what the answer to an ATTACH `told` and writes it anew into `endpoint`. A host
 *  that stands for every address of the broker's machine is replaced by the host of `reached`,
 *  by which the broker was reached; by this machine if that was a path. Returns 0, or
 *  HWS_EPROTOCOL for what nobody can connect to.  */
int hws_follow (const char *told, const hws_endpoint_parts_t *reached, hws_endpoint_parts_t *parts,
                hws_endpoint_t endpoint);

#endif
