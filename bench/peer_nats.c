/*  nats-server, core NATS, over its text protocol: a channel is a subject. Senders gather what
 *  they publish into writes of up to 64 KiB, as NATS's own clients do. NATS has no flow control
 *  from a subscriber to a publisher: a server whose subscriber is slow holds publishers up a
 *  little, then cuts the subscriber off; what is lost so is counted.
 */
#include "bench/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { WRITE_BYTES = 65536, READ_BYTES = 524288 };

typedef struct {
    int fd;
    unsigned channel, channels; /* of a sender */
    size_t filled;              /* a sender's bytes to write, or bytes read */
    size_t taken;               /* a receiver's, of them */
    char bytes[READ_BYTES];
} connection_t;

static int serve (const place_t *place)
{
    char port[8];
    snprintf (port, sizeof port, "%d", place->ports[0]);
    execlp ("nats-server", "nats-server", "-a", "127.0.0.1", "-p", port, (char *) NULL);
    return peer_fail ("cannot execute nats-server");
}

static int write_all (int fd, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t rc = write (fd, data, size);
        if (rc < 0 && errno != EINTR) {
            return peer_fail ("nats, write: %s", strerror (errno));
        }
        data += rc > 0 ? rc : 0;
        size -= rc > 0 ? (size_t) rc : 0;
    }
    return 0;
}

/*  Reads more behind what is there. Returns the count, 0 when nothing came for a tick, or
 *  -1.  */
static ssize_t read_more (connection_t *self)
{
    memmove (self->bytes, self->bytes + self->taken, self->filled - self->taken);
    self->filled -= self->taken;
    self->taken = 0;
    const ssize_t rc = read (self->fd, self->bytes + self->filled, READ_BYTES - self->filled);
    if (rc > 0) {
        self->filled += (size_t) rc;
        return rc;
    }
    if (rc < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    return peer_fail ("nats: the server closed the connection");
}

/*  The next line without its end, with a NUL instead; null when it is not there yet.  */
static char *next_line (connection_t *self)
{
    char *const line = self->bytes + self->taken;
    char *const end = memchr (line, '\n', self->filled - self->taken);
    if (end == NULL) {
        return NULL;
    }
    self->taken += (size_t) (end + 1 - line);
    *(end > line && end[-1] == '\r' ? end - 1 : end) = '\0';
    return line;
}

/*  Asks for a PONG and waits for it; then the server has all that was written before.  */
static int ping (connection_t *self)
{
    if (write_all (self->fd, "PING\r\n", 6) < 0) {
        return -1;
    }
    for (;;) {
        const char *const line = next_line (self);
        if (line == NULL) {
            if (read_more (self) < 0) {
                return -1;
            }
        } else if (strncmp (line, "-ERR", 4) == 0) {
            return peer_fail ("nats: %s", line);
        } else if (strcmp (line, "PONG") == 0) {
            return 0;
        }
    }
}

static connection_t *open_connection (const place_t *place)
{
    connection_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    const int one = 1;
    const struct timeval tick = {.tv_usec = RECEIVE_TICK_MS * 1000};
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons ((uint16_t) place->ports[0]),
                                        .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    self->fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    self->channel = place->channel;
    self->channels = place->channels;
    if (connect (self->fd, (const struct sockaddr *) &address, sizeof address) < 0 ||
        setsockopt (self->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0 ||
        setsockopt (self->fd, SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick) < 0) {
        peer_fail ("nats: %s", strerror (errno));
        return NULL;
    }
    static const char greeting[] = "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n";
    return write_all (self->fd, greeting, sizeof greeting - 1) == 0 && ping (self) == 0 ? self
                                                                                        : NULL;
}

static int open_sender (void **sender, const place_t *place)
{
    connection_t *const self = open_connection (place);
    *sender = self;
    if (self) {
        self->filled = self->taken = 0; /* from now on what is to be written */
    }
    return self ? 0 : -1;
}

static int push (void *sender)
{
    connection_t *const self = sender;
    const int rc = write_all (self->fd, self->bytes, self->filled);
    self->filled = 0;
    return rc;
}

static int send_record (void *sender, unsigned stream, const void *data, size_t size)
{
    connection_t *const self = sender;
    char *const head = self->bytes + self->filled;
    const int head_size =
        snprintf (head, 64, "PUB bench.%u %zu\r\n", self->channel + stream % self->channels, size);
    memcpy (head + head_size, data, size);
    memcpy (head + head_size + size, "\r\n", 2);
    self->filled += (size_t) head_size + size + 2;
    return self->filled >= WRITE_BYTES ? push (self) : 0;
}

static int settle (void *sender)
{
    return push (sender) == 0 ? ping (sender) : -1;
}

static int open_receiver (void **receiver, const place_t *place)
{
    connection_t *const self = open_connection (place);
    *receiver = self;
    char text[64];
    const int size = snprintf (text, sizeof text, "SUB bench.%u 1\r\n", place->channel);
    return self && write_all (self->fd, text, (size_t) size) == 0 ? ping (self) : -1;
}

static int receive (void *receiver, const void **data, size_t *size)
{
    connection_t *const self = receiver;
    for (;;) {
        const size_t begin = self->taken;
        char *const line = next_line (self);
        if (line && strncmp (line, "MSG ", 4) == 0) {
            *size = strtoul (strrchr (line, ' '), NULL, 10);
            if (*size + 2 <= self->filled - self->taken) {
                *data = self->bytes + self->taken;
                self->taken += *size + 2;
                return RECEIVED_RECORD;
            }
            line[strlen (line)] = '\r'; /* the line is read again, with its payload */
            self->taken = begin;
        } else if (line && strcmp (line, "PING") == 0) {
            if (write_all (self->fd, "PONG\r\n", 6) < 0) {
                return -1;
            }
            continue;
        } else if (line && strncmp (line, "-ERR", 4) == 0) {
            return peer_fail ("nats: %s", line);
        } else if (line) {
            continue;
        }
        const ssize_t rc = read_more (self);
        if (rc <= 0) {
            return rc < 0 ? -1 : RECEIVED_NOTHING;
        }
    }
}

const peer_t peer_nats = {
    .name = "nats",
    .program = "nats-server",
    .serve = serve,
    .open_sender = open_sender,
    .send = send_record,
    .push = push,
    .settle = settle,
    .open_receiver = open_receiver,
    .receive = receive,
};
