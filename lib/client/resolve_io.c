#include "client/resolve_io.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>

/*  Adds what was found, in the spelling of libzmq.  */
static void add (hws_addresses_t *addresses, const struct addrinfo *found, const char *port)
{
    char host[NI_MAXHOST];
    if (getnameinfo (found->ai_addr, found->ai_addrlen, host, sizeof host, NULL, 0,
                     NI_NUMERICHOST)) {
        return;
    }
    char *const text = addresses->address[addresses->count];
    const int size =
        snprintf (text, sizeof (hws_endpoint_t),
                  found->ai_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port);
    if (size > 0 && (size_t) size < sizeof (hws_endpoint_t)) {
        addresses->count++;
    }
}

int hws_resolve (const hws_endpoint_parts_t *endpoint, hws_addresses_t *addresses)
{
    const uint32_t before = addresses->count;
    if (endpoint->kind == HWS_ENDPOINT_IPC) {
        snprintf (addresses->address[before], sizeof (hws_endpoint_t), "ipc://%s", endpoint->path);
        addresses->count++;
        return 0;
    }
    char port[6];
    snprintf (port, sizeof port, "%u", (unsigned) endpoint->port);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo (endpoint->host, port, &hints, &found)) {
        return HWS_EUNREACHABLE;
    }
    for (const struct addrinfo *at = found; at && addresses->count - before < HWS_ADDRESSES_MAX;
         at = at->ai_next) {
        add (addresses, at, port);
    }
    freeaddrinfo (found);
    return addresses->count > before ? 0 : HWS_EUNREACHABLE;
}
