#include "client/follow.h"

#include <stdio.h>
#include <string.h>

static bool is_any_host (const hws_endpoint_parts_t *parts)
{
    return parts->kind == HWS_ENDPOINT_TCP &&
           (strcmp (parts->host, "*") == 0 || strcmp (parts->host, "0.0.0.0") == 0 ||
            strcmp (parts->host, "::") == 0);
}

static void take_host (hws_endpoint_parts_t *parts, const hws_endpoint_parts_t *reached)
{
    const bool is_tcp = reached->kind == HWS_ENDPOINT_TCP;
    snprintf (parts->host, sizeof parts->host, "%s", is_tcp ? reached->host : "localhost");
    parts->is_ipv6 = is_tcp && reached->is_ipv6;
    parts->is_local = reached->is_local;
}

int hws_follow (const char *told, const hws_endpoint_parts_t *reached, hws_endpoint_parts_t *parts,
                hws_endpoint_t endpoint)
{
    const hws_bytes_t text = hws_bytes_of_text (told);
    if ((hws_endpoint_parse (text, HWS_ENDPOINT_CONNECT, parts, NULL, 0) &&
         hws_endpoint_parse (text, HWS_ENDPOINT_LISTEN, parts, NULL, 0)) ||
        (parts->kind == HWS_ENDPOINT_TCP && parts->port == 0)) {
        return HWS_EPROTOCOL;
    }
    if (is_any_host (parts)) {
        take_host (parts, reached);
    }
    const int size = parts->kind == HWS_ENDPOINT_IPC
                         ? snprintf (endpoint, sizeof (hws_endpoint_t), "ipc://%s", parts->path)
                         : snprintf (endpoint, sizeof (hws_endpoint_t),
                                     parts->is_ipv6 ? "tcp://[%s]:%u" : "tcp://%s:%u", parts->host,
                                     (unsigned) parts->port);
    return size > 0 && (size_t) size < sizeof (hws_endpoint_t) ? 0 : HWS_EPROTOCOL;
}
