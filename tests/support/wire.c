#include "tests/support/wire.h"

#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/*  ---- Words ---- */

static void put (wire_words_t *self, const void *data, size_t size)
{
    assert_true (size <= sizeof self->bytes - self->size);
    memcpy (self->bytes + self->size, data, size);
    self->size += size;
}

static void put_byte (wire_words_t *self, size_t value)
{
    const unsigned char byte = (unsigned char) value;
    put (self, &byte, 1);
}

/*  A frame of ZMTP 3 shorter than 256 bytes: flags, size, body.  */
static void put_frame (wire_words_t *self, unsigned flags, const void *body, size_t size)
{
    assert_true (size < 256);
    put_byte (self, flags);
    put_byte (self, size);
    put (self, body, size);
}

static void put_control (wire_words_t *self, const char *verb, const char *json)
{
    put_frame (self, 1, verb, strlen (verb)); /* more follows */
    put_frame (self, 0, json, strlen (json));
}

static void put_property (wire_words_t *self, const char *name, const void *value, size_t size)
{
    const unsigned char length[4] = {0, 0, 0, (unsigned char) size};

    put_byte (self, strlen (name));
    put (self, name, strlen (name));
    put (self, length, sizeof length);
    put (self, value, size);
}

/*  Signature, version 3.0, mechanism NULL, then the command READY.  */
static void put_greeting (wire_words_t *self, uint64_t number)
{
    static const unsigned char greeting[64] = {0xff, 0,    0, 0, 0,   0,   0,   0,
                                               1,    0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    wire_words_t ready = {.size = 0};
    char routing_id[17];

    snprintf (routing_id, sizeof routing_id, "%016llx", (unsigned long long) number);
    put (self, greeting, sizeof greeting);
    self->greeting_end = self->size;
    put_byte (&ready, 5);
    put (&ready, "READY", 5);
    put_property (&ready, "Socket-Type", "DEALER", 6);
    put_property (&ready, "Identity", routing_id, 16);
    put_frame (self, 4, ready.bytes, ready.size);
}

void wire_write_words (wire_words_t *words, uint64_t number, const char *anchor)
{
    char json[256];

    words->size = 0;
    put_greeting (words, number);
    words->ready_end = words->size;
    snprintf (json, sizeof json, "{\"id\":\"1\",\"client_id\":\"%016llx%016llx\",\"protocol\":1}",
              (unsigned long long) number, (unsigned long long) number);
    put_control (words, "HELLO", json);
    words->hello_end = words->size;
    snprintf (json, sizeof json,
              "{\"id\":\"2\",\"anchor\":\"%s\",\"session_id\":\"1\","
              "\"supported_transport_keys\":[\"router-mux-v1\"]}",
              anchor);
    put_control (words, "ATTACH", json);
}

/*  ---- Connections ---- */

static int connect_tcp (const char *endpoint)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    const char *colon = strrchr (endpoint, ':');
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_port = htons ((uint16_t) strtoul (colon + 1, NULL, 10));
    address.sin_addr.s_addr = htonl (INADDR_LOOPBACK);
    if (connect (fd, (struct sockaddr *) &address, sizeof address) != 0) {
        process_fail ("cannot connect to %s: %s", endpoint, strerror (errno));
    }
    return fd;
}

static int connect_ipc (const char *endpoint)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf (address.sun_path, sizeof address.sun_path, "%s", endpoint + strlen ("ipc://"));
    if (connect (fd, (struct sockaddr *) &address, sizeof address) != 0) {
        process_fail ("cannot connect to %s: %s", endpoint, strerror (errno));
    }
    return fd;
}

int wire_connect (void)
{
    const char *endpoint = fixture_endpoint ();
    return strncmp (endpoint, "ipc://", 6) == 0 ? connect_ipc (endpoint) : connect_tcp (endpoint);
}

void wire_say (int fd, const wire_words_t *words, size_t size)
{
    const struct timeval patience = {.tv_sec = 30};
    const size_t first = size < words->greeting_end ? size : words->greeting_end;
    char greeting[64];

    (void) !send (fd, words->bytes, first, MSG_NOSIGNAL);
    if (size > first) {
        setsockopt (fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        (void) !recv (fd, greeting, sizeof greeting, MSG_WAITALL);
        (void) !send (fd, words->bytes + first, size - first, MSG_NOSIGNAL);
    }
}

void wire_close (int fd, bool is_reset)
{
    if (is_reset) {
        const struct linger at_once = {.l_onoff = 1, .l_linger = 0};
        setsockopt (fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    close (fd);
}
