#include "broker/local_endpoint_io.h"

#include "base/error.h"

#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

int hws_local_endpoint (int descriptor, hws_endpoint_t text)
{
    union {
        struct sockaddr any;
        struct sockaddr_un local;
        struct sockaddr_storage storage;
    } address = {0};
    socklen_t size = sizeof address;
    if (getsockname (descriptor, &address.any, &size) != 0) {
        return HWS_ESYSTEM;
    }
    if (address.any.sa_family == AF_UNIX) {
        const int path_size = (int) sizeof address.local.sun_path;
        snprintf (text, sizeof (hws_endpoint_t), "ipc://%.*s", path_size, address.local.sun_path);
        return 0;
    }
    char host[128], port[16];
    if (getnameinfo (&address.any, size, host, sizeof host, port, sizeof port,
                     NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
        return HWS_ESYSTEM;
    }
    const bool is_ipv6 = address.any.sa_family == AF_INET6;
    snprintf (text, sizeof (hws_endpoint_t), is_ipv6 ? "tcp://[%s]:%s" : "tcp://%s:%s", host, port);
    return 0;
}
