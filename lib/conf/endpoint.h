/*  Endpoints, taken apart and checked before libzmq sees them.
 *
 *  libzmq does not check ports (99999 listens on 34463), takes names for
 *  printf formats in places, and answers a name that does not exist with
 *  silence. So only what is understood here reaches it: tcp://HOST:PORT, with an
 *  IPv6 address in brackets, and ipc://PATH. Nothing is resolved. The library, the
 *  broker and the programs all check with this.
 */
#ifndef HWS_ENDPOINT_H
#define HWS_ENDPOINT_H

#include "base/bytes.h"
#include "base/error.h"

#define HWS_ENDPOINT_HOST_SIZE_MAX 253
#define HWS_ENDPOINT_PATH_SIZE_MAX 107 /* of a UNIX socket's name, without the NUL */

typedef enum {
    HWS_ENDPOINT_CONNECT, /* host and port must be given */
    HWS_ENDPOINT_LISTEN   /* host `*` is every interface, port `*` or 0 any free one */
} hws_endpoint_use_t;

typedef enum { HWS_ENDPOINT_TCP, HWS_ENDPOINT_IPC } hws_endpoint_kind_t;

typedef struct {
    hws_endpoint_kind_t kind;
    char host[HWS_ENDPOINT_HOST_SIZE_MAX + 1]; /* TCP: without brackets, zone included; "*" */
    uint16_t port;                             /* TCP: 0 is any free one */
    bool is_ipv6;                              /* TCP: the host is an IPv6 address */
    bool is_local; /* reachable from this machine only: ipc, 127.x.x.x, ::1 */
    char path[HWS_ENDPOINT_PATH_SIZE_MAX + 1]; /* IPC */
} hws_endpoint_parts_t;

/*  Takes an endpoint apart. Returns 0, or HWS_EINVALID with one sentence in
 *  `why` of `size` bytes; `why` may be null.  */
int hws_endpoint_parse (hws_bytes_t text, hws_endpoint_use_t use, hws_endpoint_parts_t *parts,
                        char *why, size_t size);

/*  The same as checks of a field table (hws_text_check_t).  */
bool hws_endpoint_check_connect (hws_bytes_t text, char *why, size_t size);
bool hws_endpoint_check_listen (hws_bytes_t text, char *why, size_t size);

#endif
