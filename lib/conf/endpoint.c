#include "conf/endpoint.h"

#include "base/utf8.h"
#include "proto/control.h"

#include <stdarg.h>
#include <stdio.h>

#define INTERFACE_SIZE_MAX 15 /* of a Linux interface's name */

/*  A parse in progress.  */
typedef struct {
    hws_endpoint_use_t use;
    hws_endpoint_parts_t *parts;
    char *why;   /* or null */
    size_t size; /* of `why` */
} parse_t;

static int refuse (const parse_t *parse, const char *format, ...)
    __attribute__ ((format (printf, 2, 3)));

static int refuse (const parse_t *parse, const char *format, ...)
{
    if (parse->why && parse->size > 0) {
        va_list arguments;
        va_start (arguments, format);
        vsnprintf (parse->why, parse->size, format, arguments);
        va_end (arguments);
    }
    return HWS_EINVALID;
}

static bool begins_with (hws_bytes_t text, const char *start)
{
    const size_t size = strlen (start);
    return text.size >= size && memcmp (text.data, start, size) == 0;
}

static hws_bytes_t from (hws_bytes_t text, size_t at)
{
    return hws_bytes (text.data + at, text.size - at);
}

static bool is_text (hws_bytes_t text, const char *expected)
{
    return hws_bytes_equal (text, hws_bytes_of_text (expected));
}

static bool is_digit (uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

static bool is_letter (uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_hex (uint8_t byte)
{
    return is_digit (byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

/*  The offset of the first (or last) such byte, or the size.  */
static size_t find (hws_bytes_t text, uint8_t byte)
{
    size_t at = 0;
    while (at < text.size && text.data[at] != byte) {
        at++;
    }
    return at;
}

static size_t find_last (hws_bytes_t text, uint8_t byte)
{
    for (size_t at = text.size; at > 0; at--) {
        if (text.data[at - 1] == byte) {
            return at - 1;
        }
    }
    return text.size;
}

/*  ---- Addresses ---- */

/*  Four decimal numbers up to 255, without leading zeros (which some read as octal).  */
static bool is_ipv4 (hws_bytes_t text)
{
    for (int i = 0; i < 4; i++) {
        const size_t end = find (text, '.');
        if ((end == text.size) != (i == 3) || end < 1 || end > 3 ||
            (end > 1 && text.data[0] == '0')) {
            return false;
        }
        int value = 0;
        for (size_t at = 0; at < end; at++) {
            if (!is_digit (text.data[at])) {
                return false;
            }
            value = value * 10 + (text.data[at] - '0');
        }
        if (value > 255) {
            return false;
        }
        text = from (text, i == 3 ? end : end + 1);
    }
    return true;
}

/*  Groups of one to four hexadecimal digits with colons between them; returns how
 *  many 16-bit groups, or -1. An IPv4 address may stand for the last two.  */
static int count_groups (hws_bytes_t text)
{
    int count = 0;
    while (text.size > 0) {
        const size_t end = find (text, ':');
        const hws_bytes_t group = hws_bytes (text.data, end);
        if (end == text.size && is_ipv4 (group)) {
            return count + 2;
        }
        if (end < 1 || end > 4 || end + 1 == text.size) {
            return -1;
        }
        for (size_t at = 0; at < end; at++) {
            if (!is_hex (group.data[at])) {
                return -1;
            }
        }
        count++;
        text = from (text, end == text.size ? end : end + 1);
    }
    return count;
}

/*  RFC 4291, 2.2, without a zone.  */
static bool is_ipv6 (hws_bytes_t text)
{
    for (size_t at = 0; at + 1 < text.size; at++) {
        if (text.data[at] == ':' && text.data[at + 1] == ':') {
            const int before = count_groups (hws_bytes (text.data, at));
            const int after = count_groups (from (text, at + 2));
            const bool has_ipv4_before = find (hws_bytes (text.data, at), '.') < at;
            return before >= 0 && after >= 0 && before + after <= 7 && !has_ipv4_before;
        }
    }
    return count_groups (text) == 8;
}

/*  Letters, digits, `-`, `_` and dots: a host's or an interface's name.  */
static bool is_name (hws_bytes_t text)
{
    for (size_t at = 0; at < text.size; at++) {
        const uint8_t byte = text.data[at];
        if (!is_letter (byte) && !is_digit (byte) && byte != '.' && byte != '-' && byte != '_') {
            return false;
        }
    }
    return text.size > 0 && text.data[0] != '.' && text.data[0] != '-';
}

/*  Whether a name can only be meant as an address: digits and dots.  */
static bool is_numeric (hws_bytes_t text)
{
    for (size_t at = 0; at < text.size; at++) {
        if (!is_digit (text.data[at]) && text.data[at] != '.') {
            return false;
        }
    }
    return true;
}

/*  ---- tcp://HOST:PORT ---- */

static int parse_ipv6_host (parse_t *parse, hws_bytes_t host)
{
    if (host.size < 2 || host.data[host.size - 1] != ']') {
        return refuse (parse, "the bracket of the IPv6 address is not closed");
    }
    host = hws_bytes (host.data + 1, host.size - 2);
    const size_t address_size = find (host, '%');
    const hws_bytes_t address = hws_bytes (host.data, address_size);
    if (!is_ipv6 (address)) {
        return refuse (parse, "\"%.*s\" is not an IPv6 address", (int) host.size,
                       (const char *) host.data);
    }
    if (address_size < host.size) {
        const hws_bytes_t zone = from (host, address_size + 1);
        if (zone.size > INTERFACE_SIZE_MAX || !is_name (zone)) {
            return refuse (parse, "the zone of the IPv6 address is not an interface");
        }
    }
    parse->parts->is_ipv6 = true;
    parse->parts->is_local = is_text (address, "::1");
    memcpy (parse->parts->host, host.data, host.size);
    return 0;
}

static int parse_name_host (parse_t *parse, hws_bytes_t host)
{
    if (is_text (host, "*")) {
        if (parse->use == HWS_ENDPOINT_CONNECT) {
            return refuse (parse, "\"*\" is no host to connect to");
        }
    } else if (find (host, ':') < host.size) {
        return refuse (parse, "an IPv6 address must stand in brackets");
    } else if (!is_name (host) || (is_numeric (host) && !is_ipv4 (host))) {
        return refuse (parse, "\"%.*s\" is not a host", (int) host.size, (const char *) host.data);
    } else if (parse->use == HWS_ENDPOINT_LISTEN && !is_ipv4 (host) &&
               (host.size > INTERFACE_SIZE_MAX || is_text (host, "localhost"))) {
        return refuse (parse, "a listener needs an address such as 127.0.0.1, an interface or *");
    }
    parse->parts->is_local =
        is_text (host, "localhost") || (is_ipv4 (host) && begins_with (host, "127."));
    memcpy (parse->parts->host, host.data, host.size);
    return 0;
}

static int parse_port (parse_t *parse, hws_bytes_t text)
{
    const bool may_be_any = parse->use == HWS_ENDPOINT_LISTEN;
    if (is_text (text, "*") && may_be_any) {
        return 0;
    }
    uint32_t port = 0;
    bool is_number = text.size >= 1 && text.size <= 5;
    for (size_t at = 0; is_number && at < text.size; at++) {
        is_number = is_digit (text.data[at]);
        port = port * 10 + (uint32_t) (text.data[at] - '0');
    }
    if (!is_number || port > 65535 || (port == 0 && !may_be_any)) {
        return refuse (parse, "the port must be from %s",
                       may_be_any ? "0 to 65535, or *" : "1 to 65535");
    }
    parse->parts->port = (uint16_t) port;
    return 0;
}

static int parse_tcp (parse_t *parse, hws_bytes_t text)
{
    parse->parts->kind = HWS_ENDPOINT_TCP;
    const size_t colon = find_last (text, ':');
    if (colon == text.size || (text.size > 0 && text.data[text.size - 1] == ']')) {
        return refuse (parse, "the port is missing: tcp://HOST:PORT");
    }
    const hws_bytes_t host = hws_bytes (text.data, colon);
    if (host.size == 0) {
        return refuse (parse, "the host is missing: tcp://HOST:PORT");
    }
    if (host.size > HWS_ENDPOINT_HOST_SIZE_MAX) {
        return refuse (parse, "the host has more than %d bytes", HWS_ENDPOINT_HOST_SIZE_MAX);
    }
    const int rc =
        host.data[0] == '[' ? parse_ipv6_host (parse, host) : parse_name_host (parse, host);
    return rc == 0 ? parse_port (parse, from (text, colon + 1)) : rc;
}

/*  ---- ipc://PATH ---- */

static int parse_ipc (parse_t *parse, hws_bytes_t path)
{
    parse->parts->kind = HWS_ENDPOINT_IPC;
    parse->parts->is_local = true;
    if (path.size == 0) {
        return refuse (parse, "the path is missing: ipc://PATH");
    }
    if (path.size > HWS_ENDPOINT_PATH_SIZE_MAX) {
        return refuse (parse, "the path has more than %d bytes", HWS_ENDPOINT_PATH_SIZE_MAX);
    }
    if (path.data[0] == '@' || is_text (path, "*")) {
        return refuse (parse, "the path must be one of the file system");
    }
    if (path.data[path.size - 1] == '/') {
        return refuse (parse, "the path must not end with a slash");
    }
    memcpy (parse->parts->path, path.data, path.size);
    return 0;
}

static bool has_control_character (hws_bytes_t text)
{
    for (size_t at = 0; at < text.size; at++) {
        if (text.data[at] < 0x20 || text.data[at] == 0x7f) {
            return true;
        }
    }
    return false;
}

int hws_endpoint_parse (hws_bytes_t text, hws_endpoint_use_t use, hws_endpoint_parts_t *parts,
                        char *why, size_t size)
{
    *parts = (hws_endpoint_parts_t){0};
    parse_t parse = {.use = use, .parts = parts, .why = why, .size = size};
    if (text.size > HWS_ENDPOINT_SIZE_MAX) {
        return refuse (&parse, "the endpoint has more than %d bytes", HWS_ENDPOINT_SIZE_MAX);
    }
    if (!hws_utf8_is_valid (text) || has_control_character (text)) {
        return refuse (&parse, "the endpoint has control characters or is not UTF-8");
    }
    if (begins_with (text, "tcp://")) {
        return parse_tcp (&parse, from (text, 6));
    }
    if (begins_with (text, "ipc://")) {
        return parse_ipc (&parse, from (text, 6));
    }
    return refuse (&parse, "an endpoint begins with tcp:// or ipc://");
}

bool hws_endpoint_check_connect (hws_bytes_t text, char *why, size_t size)
{
    hws_endpoint_parts_t parts;
    return hws_endpoint_parse (text, HWS_ENDPOINT_CONNECT, &parts, why, size) == 0;
}

bool hws_endpoint_check_listen (hws_bytes_t text, char *why, size_t size)
{
    hws_endpoint_parts_t parts;
    return hws_endpoint_parse (text, HWS_ENDPOINT_LISTEN, &parts, why, size) == 0;
}
