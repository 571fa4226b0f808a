#include "bench/server_io.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define START_MS 10000 /* that a server may take until it listens */

/*  ---- Ports ---- */

static struct sockaddr_in loopback (int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons ((uint16_t) port),
                                .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
}

int server_find_ports (int *ports, size_t count)
{
    int sockets[PLACE_PORTS];
    int rc = count <= PLACE_PORTS ? 0 : -1;
    size_t opened = 0;
    for (; opened < count && rc == 0; opened++) {
        struct sockaddr_in address = loopback (0);
        socklen_t size = sizeof address;
        sockets[opened] = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        rc = bind (sockets[opened], (const struct sockaddr *) &address, size);
        if (rc == 0) {
            rc = getsockname (sockets[opened], (struct sockaddr *) &address, &size);
        }
        ports[opened] = ntohs (address.sin_port);
    }
    /*  All are held until the last is found, or two might be the same.  */
    while (opened > 0) {
        close (sockets[--opened]);
    }
    return rc;
}

static bool is_listening (int port)
{
    const struct sockaddr_in address = loopback (port);
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int rc = connect (fd, (const struct sockaddr *) &address, sizeof address);
    close (fd);
    return rc == 0;
}

/*  ---- The process ---- */

bool server_has_program (const char *program)
{
    const char *directory = getenv ("PATH");
    while (directory && *directory) {
        const size_t size = strcspn (directory, ":");
        char path[4096];
        snprintf (path, sizeof path, "%.*s/%s", (int) size, directory, program);
        if (access (path, X_OK) == 0) {
            return true;
        }
        directory += size + (directory[size] == ':');
    }
    return false;
}

typedef struct {
    const peer_t *peer;
    const place_t *place;
} start_t;

static int serve (void *arg)
{
    const start_t *const start = arg;
    return start->peer->serve (start->place);
}

int server_start (server_t *self, crew_t *crew, const peer_t *peer, const place_t *place,
                  const char *logs)
{
    self->pid = 0;
    if (peer->serve == NULL) {
        return 0;
    }
    char log[4096];
    snprintf (log, sizeof log, "%s/%s.log", logs, peer->name);
    start_t start = {.peer = peer, .place = place};
    self->pid = crew_start (crew, serve, &start, log);
    const int64_t deadline = clock_ns () + START_MS * 1000000LL;
    while (self->pid > 0 && !crew_has_failed (crew) && clock_ns () < deadline) {
        if (is_listening (place->ports[0])) {
            return 0;
        }
        sleep_ms (2);
    }
    return peer_fail ("the server of %s does not start, see %s", peer->name, log);
}

/*  ---- What it costs ---- */

int64_t server_cpu_ns (const server_t *self)
{
    clockid_t clock;
    struct timespec used = {0};
    if (self->pid > 0 && clock_getcpuclockid (self->pid, &clock) == 0) {
        clock_gettime (clock, &used);
    }
    return (int64_t) used.tv_sec * 1000000000 + used.tv_nsec;
}

/*  A line of /proc/PID/status, which is in KiB.  */
static uint64_t status_bytes (const server_t *self, const char *key)
{
    char path[64], line[256];
    uint64_t kib = 0;
    snprintf (path, sizeof path, "/proc/%d/status", (int) self->pid);
    FILE *const file = self->pid > 0 ? fopen (path, "re") : NULL;
    while (file && fgets (line, sizeof line, file)) {
        if (strncmp (line, key, strlen (key)) == 0) {
            kib = strtoull (line + strlen (key), NULL, 10);
        }
    }
    if (file) {
        fclose (file);
    }
    return kib * 1024;
}

uint64_t server_resident_bytes (const server_t *self)
{
    return status_bytes (self, "VmRSS:");
}

uint64_t server_peak_bytes (const server_t *self)
{
    return status_bytes (self, "VmHWM:");
}
