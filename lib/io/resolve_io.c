#include "io/resolve_io.h"

#include "base/error.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

typedef struct {
    char host[HWS_ENDPOINT_SIZE_MAX + 1]; /* without brackets */
    char port[6];
} target_t;

/*  Takes tcp://HOST:PORT apart.  */
static bool parse (const char *endpoint, target_t *target)
{
    static const char scheme[] = "tcp://";
    if (strncmp (endpoint, scheme, sizeof scheme - 1) != 0 ||
        strlen (endpoint) > HWS_ENDPOINT_SIZE_MAX) {
        return false;
    }
    const char *host = endpoint + sizeof scheme - 1;
    const char *const colon = strrchr (host, ':');
    if (!colon) {
        return false;
    }
    size_t size = (size_t) (colon - host);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        host++;
        size -= 2;
    } else if (memchr (host, ':', size) || memchr (host, '[', size)) {
        return false;
    }
    const size_t digits = strspn (colon + 1, "0123456789");
    if (size == 0 || memchr (host, '*', size) || digits == 0 || digits > 5 ||
        colon[1 + digits] != '\0') {
        return false;
    }
    const unsigned long port = strtoul (colon + 1, NULL, 10);
    if (port == 0 || port > 65535) {
        return false;
    }
    memcpy (target->host, host, size);
    target->host[size] = '\0';
    snprintf (target->port, sizeof target->port, "%lu", port);
    return true;
}

static bool is_ipc (const char *endpoint)
{
    static const char scheme[] = "ipc://";
    const size_t path_max = sizeof ((struct sockaddr_un *) NULL)->sun_path - 1;
    const size_t size = strncmp (endpoint, scheme, sizeof scheme - 1) == 0
                            ? strlen (endpoint + sizeof scheme - 1)
                            : 0;
    return size > 0 && size <= path_max;
}

bool hws_endpoint_is_valid (const char *endpoint)
{
    target_t target;
    return is_ipc (endpoint) || parse (endpoint, &target);
}

int hws_resolve (const char *endpoint, hws_addresses_t *addresses)
{
    addresses->count = 0;
    target_t target;
    if (!parse (endpoint, &target)) {
        snprintf (addresses->address[0], sizeof addresses->address[0], "%s", endpoint);
        addresses->count = 1;
        return 0;
    }
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo (target.host, target.port, &hints, &found)) {
        return HWS_EUNREACHABLE;
    }
    for (const struct addrinfo *at = found; at && addresses->count < HWS_ADDRESSES_MAX;
         at = at->ai_next) {
        char host[NI_MAXHOST];
        if (getnameinfo (at->ai_addr, at->ai_addrlen, host, sizeof host, NULL, 0, NI_NUMERICHOST)) {
            continue;
        }
        char *const text = addresses->address[addresses->count];
        const int size = snprintf (text, sizeof addresses->address[0],
                                   at->ai_family == AF_INET6 ? "tcp://[%s]:%s" : "tcp://%s:%s",
                                   host, target.port);
        if (size > 0 && (size_t) size < sizeof addresses->address[0]) {
            addresses->count++;
        }
    }
    freeaddrinfo (found);
    return addresses->count > 0 ? 0 : HWS_EUNREACHABLE;
}
