#include "tests/support/relay.h"

#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK_SIZE = 8192, CHUNKS = 64, LINKS_MAX = 512, BACKLOG = 128, BUFFER_SIZE = 256 * 1024 };

/*  What one read brought.  */
typedef struct {
    int64_t due_at;
    size_t size;
    size_t sent; /* of `size` */
    uint8_t bytes[CHUNK_SIZE];
} chunk_t;

/*  One direction of a link: from its own end to the other.  */
typedef struct {
    chunk_t *chunks; /* a ring of CHUNKS */
    size_t first;
    size_t count;
    bool has_ended; /* its writer closed */
    bool is_told;   /* and the reader knows */
} flow_t;

/*  Index 0 is who connected, 1 the target; flow i comes from end i.  */
typedef struct {
    int fd[2]; /* -1: closed */
    bool is_connecting;
    flow_t flow[2];
    uint64_t carried;
} link_t;

struct relay {
    struct sockaddr_in target;
    struct sockaddr_in own;
    char endpoint[64];
    int reserve;  /* bound to the port and deaf, so that nobody else gets it */
    int listener; /* -1 while connections are refused */
    int wake;     /* an eventfd */
    pthread_t thread;

    pthread_mutex_t lock;   /* of everything below; the thread leaves it only to poll */
    pthread_cond_t is_done; /* `applied` moved */
    uint64_t asked;         /* changes that the test made, and that the thread has seen */
    uint64_t applied;
    bool is_stopping;
    bool is_refusing;
    unsigned held;      /* directions */
    unsigned swallowed; /* directions */
    int64_t delay_ms[2];
    unsigned cut_ends; /* to be cut now */
    relay_end_t cut_how;
    uint64_t cut_after;
    relay_end_t cut_after_how;
    size_t taken;
    uint64_t carried[2];
    link_t *links[LINKS_MAX];
    size_t link_count;
};

/*  ---- Links ---- */

static void close_end (link_t *link, int end, relay_end_t how)
{
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};

    if (link->fd[end] >= 0) {
        if (how == RELAY_RESET) {
            setsockopt (link->fd[end], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close (link->fd[end]);
        link->fd[end] = -1;
    }
}

static void close_link (link_t *link, relay_end_t how)
{
    close_end (link, 0, how);
    close_end (link, 1, how);
}

static bool is_closed (const link_t *link)
{
    return link->fd[0] < 0 && link->fd[1] < 0;
}

static void free_link (link_t *link)
{
    free (link->flow[0].chunks);
    free (link->flow[1].chunks);
    free (link);
}

static link_t *make_link (const relay_t *self, int fd)
{
    const int one = 1;
    const int buffer = BUFFER_SIZE;
    link_t *link = calloc (1, sizeof *link);
    if (!link) {
        close (fd);
        return NULL;
    }
    *link = (link_t){.fd = {fd, socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)},
                     .is_connecting = true};
    link->flow[0].chunks = malloc (CHUNKS * sizeof *link->flow[0].chunks);
    link->flow[1].chunks = malloc (CHUNKS * sizeof *link->flow[1].chunks);
    if (link->fd[1] < 0 || !link->flow[0].chunks || !link->flow[1].chunks ||
        (connect (link->fd[1], (const struct sockaddr *) &self->target, sizeof self->target) != 0 &&
         errno != EINPROGRESS)) {
        close_link (link, RELAY_RESET);
        free_link (link);
        return NULL;
    }
    for (int end = 0; end < 2; end++) {
        setsockopt (link->fd[end], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt (link->fd[end], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
        setsockopt (link->fd[end], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    }
    return link;
}

static void take_links (relay_t *self)
{
    int fd;

    while (self->link_count < LINKS_MAX &&
           (fd = accept4 (self->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        link_t *const link = make_link (self, fd);
        if (link) {
            self->links[self->link_count++] = link;
            self->taken++;
        }
    }
}

static void drop_closed_links (relay_t *self)
{
    size_t kept = 0;

    for (size_t i = 0; i < self->link_count; i++) {
        if (is_closed (self->links[i])) {
            free_link (self->links[i]);
        } else {
            self->links[kept++] = self->links[i];
        }
    }
    self->link_count = kept;
}

/*  ---- Bytes ---- */

static bool is_held (const relay_t *self, int from)
{
    return (self->held & (from == 0 ? RELAY_UP : RELAY_DOWN)) != 0;
}

/*  Also when there is nobody at the other end any more.  */
static bool is_swallowed (const relay_t *self, const link_t *link, int from)
{
    return (self->swallowed & (from == 0 ? RELAY_UP : RELAY_DOWN)) != 0 || link->fd[1 - from] < 0;
}

static bool may_read (const relay_t *self, const link_t *link, int from)
{
    return link->fd[from] >= 0 && !(from == 1 && link->is_connecting) && !is_held (self, from) &&
           !link->flow[from].has_ended && link->flow[from].count < CHUNKS;
}

/*  Whether there is something that may go to the other end, an end too.  */
static bool may_write (const relay_t *self, const link_t *link, int from, int64_t now)
{
    const flow_t *const flow = &link->flow[from];

    return link->fd[1 - from] >= 0 && !link->is_connecting && !is_held (self, from) &&
           (flow->count > 0 ? flow->chunks[flow->first].due_at <= now
                            : flow->has_ended && !flow->is_told);
}

/*  Returns false when the link is broken.  */
static bool read_chunk (const relay_t *self, link_t *link, int from, int64_t now)
{
    flow_t *const flow = &link->flow[from];
    chunk_t *const chunk = &flow->chunks[(flow->first + flow->count) % CHUNKS];
    const ssize_t size = read (link->fd[from], chunk->bytes, sizeof chunk->bytes);

    if (size < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    if (size == 0) {
        flow->has_ended = true;
        if (is_swallowed (self, link, from)) {
            close_end (link, from, RELAY_FIN);
        }
    } else if (!is_swallowed (self, link, from)) {
        chunk->due_at = now + self->delay_ms[from];
        chunk->size = (size_t) size;
        chunk->sent = 0;
        flow->count++;
    }
    return true;
}

static bool write_chunk (relay_t *self, link_t *link, int from)
{
    flow_t *const flow = &link->flow[from];
    chunk_t *const chunk = &flow->chunks[flow->first];
    size_t size = chunk->size - chunk->sent;

    if (self->cut_after > 0 && size > self->cut_after - link->carried) {
        size = (size_t) (self->cut_after - link->carried);
    }
    const ssize_t sent = send (link->fd[1 - from], chunk->bytes + chunk->sent, size, MSG_NOSIGNAL);
    if (sent < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    chunk->sent += (size_t) sent;
    link->carried += (uint64_t) sent;
    self->carried[from] += (uint64_t) sent;
    if (chunk->sent == chunk->size) {
        flow->first = (flow->first + 1) % CHUNKS;
        flow->count--;
    }
    return true;
}

/*  Moves what can be moved in one direction. Both ends that closed close the link.  */
static bool move (relay_t *self, link_t *link, int from, int64_t now)
{
    flow_t *const flow = &link->flow[from];

    if (may_read (self, link, from) && !read_chunk (self, link, from, now)) {
        return false;
    }
    if (self->cut_after > 0 && link->carried >= self->cut_after) {
        close_link (link, self->cut_after_how);
        return true;
    }
    if (!may_write (self, link, from, now)) {
        return true;
    }
    if (flow->count > 0) {
        return write_chunk (self, link, from);
    }
    flow->is_told = true;
    shutdown (link->fd[1 - from], SHUT_WR);
    if (link->flow[1 - from].is_told) {
        close_link (link, RELAY_FIN);
    }
    return true;
}

static void serve_link (relay_t *self, link_t *link, const struct pollfd *polled, int64_t now)
{
    if (link->is_connecting && polled[1].revents) {
        int error = 0;
        socklen_t size = sizeof error;
        getsockopt (link->fd[1], SOL_SOCKET, SO_ERROR, &error, &size);
        if (error != 0) {
            close_link (link, RELAY_RESET);
            return;
        }
        link->is_connecting = false;
    }
    for (int from = 0; from < 2; from++) {
        if (!is_closed (link) && !move (self, link, from, now)) {
            close_link (link, RELAY_RESET);
        }
    }
}

/*  ---- The thread ---- */

static int open_port (const struct sockaddr_in *address)
{
    const int one = 1;
    const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    setsockopt (fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (fd >= 0 && bind (fd, (const struct sockaddr *) address, sizeof *address) != 0) {
        close (fd);
        return -1;
    }
    return fd;
}

/*  Does what the test asked for since the last time.  */
static void apply (relay_t *self)
{
    if (self->is_refusing && self->listener >= 0) {
        close (self->listener);
        self->listener = -1;
    } else if (!self->is_refusing && self->listener < 0) {
        self->listener = open_port (&self->own);
        listen (self->listener, BACKLOG);
    }
    for (size_t i = 0; i < self->link_count; i++) {
        link_t *const link = self->links[i];
        for (int end = 0; end < 2; end++) {
            if (self->cut_ends & (end == 0 ? RELAY_DOWN : RELAY_UP)) {
                close_end (link, end, self->cut_how);
                link->flow[0].count = link->flow[1].count = 0;
                link->flow[end].has_ended = link->flow[end].is_told = true;
            }
        }
    }
    self->cut_ends = 0;
    drop_closed_links (self);
    self->applied = self->asked;
    pthread_cond_broadcast (&self->is_done);
}

/*  Fills in what is waited for; returns for how long at most.  */
static int prepare (const relay_t *self, struct pollfd *polled, int64_t now)
{
    int64_t wait_ms = INT_MAX;

    polled[0] = (struct pollfd){self->wake, POLLIN, 0};
    polled[1] = (struct pollfd){self->link_count < LINKS_MAX ? self->listener : -1, POLLIN, 0};
    for (size_t i = 0; i < self->link_count; i++) {
        const link_t *const link = self->links[i];
        int events[2] = {0, 0};
        for (int from = 0; from < 2; from++) {
            const flow_t *const flow = &link->flow[from];
            if (may_read (self, link, from)) {
                events[from] |= POLLIN;
            }
            if (may_write (self, link, from, now)) {
                events[1 - from] |= POLLOUT;
            } else if (flow->count > 0 && !is_held (self, from) &&
                       flow->chunks[flow->first].due_at > now) {
                const int64_t until = flow->chunks[flow->first].due_at - now;
                wait_ms = until < wait_ms ? until : wait_ms;
            }
        }
        if (link->is_connecting) {
            events[1] = POLLOUT;
        }
        for (int end = 0; end < 2; end++) {
            /*  What nothing is wanted of would report its end over and over.  */
            polled[2 + 2 * i + (size_t) end] =
                (struct pollfd){events[end] ? link->fd[end] : -1, (short) events[end], 0};
        }
    }
    return wait_ms == INT_MAX ? -1 : (int) wait_ms;
}

static void *run (void *argument)
{
    static struct pollfd polled[2 + 2 * LINKS_MAX];
    relay_t *const self = argument;
    uint64_t wakes;

    pthread_mutex_lock (&self->lock);
    while (!self->is_stopping) {
        const size_t count = self->link_count;
        const int wait_ms = prepare (self, polled, process_now ());
        pthread_mutex_unlock (&self->lock);
        poll (polled, (nfds_t) (2 + 2 * count), wait_ms);
        pthread_mutex_lock (&self->lock);
        if (polled[0].revents) {
            const ssize_t size = read (self->wake, &wakes, sizeof wakes);
            (void) size; /* that it was readable is all that counts */
        }
        if (self->asked != self->applied) {
            apply (self);
            continue;
        }
        const int64_t now = process_now ();
        for (size_t i = 0; i < count; i++) {
            serve_link (self, self->links[i], &polled[2 + 2 * i], now);
        }
        drop_closed_links (self);
        if (self->listener >= 0) {
            take_links (self);
        }
    }
    pthread_mutex_unlock (&self->lock);
    return NULL;
}

/*  ---- For the test ---- */

static void begin_change (relay_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->asked++;
}

static void end_change (relay_t *self)
{
    const uint64_t asked = self->asked;
    const uint64_t one = 1;

    assert_int_equal (write (self->wake, &one, sizeof one), sizeof one);
    while (self->applied < asked) {
        pthread_cond_wait (&self->is_done, &self->lock);
    }
    pthread_mutex_unlock (&self->lock);
}

relay_t *relay_start (const char *target)
{
    relay_t *const self = calloc (1, sizeof *self);
    char address[64];
    unsigned port;
    socklen_t size = sizeof self->own;

    assert_non_null (self);
    assert_int_equal (sscanf (target, "tcp://%63[0-9.]:%u", address, &port), 2);
    self->target = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons ((uint16_t) port)};
    assert_int_equal (inet_pton (AF_INET, address, &self->target.sin_addr), 1);
    self->own =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
    self->reserve = open_port (&self->own);
    assert_true (self->reserve >= 0);
    assert_int_equal (getsockname (self->reserve, (struct sockaddr *) &self->own, &size), 0);
    self->listener = open_port (&self->own);
    assert_true (self->listener >= 0);
    assert_int_equal (listen (self->listener, BACKLOG), 0);
    snprintf (self->endpoint, sizeof self->endpoint, "tcp://127.0.0.1:%u",
              (unsigned) ntohs (self->own.sin_port));
    self->wake = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true (self->wake >= 0);
    pthread_mutex_init (&self->lock, NULL);
    pthread_cond_init (&self->is_done, NULL);
    assert_int_equal (pthread_create (&self->thread, NULL, run, self), 0);
    return self;
}

void relay_stop (relay_t **self_p)
{
    relay_t *const self = *self_p;
    const uint64_t one = 1;

    *self_p = NULL;
    pthread_mutex_lock (&self->lock);
    self->is_stopping = true;
    assert_int_equal (write (self->wake, &one, sizeof one), sizeof one);
    pthread_mutex_unlock (&self->lock);
    pthread_join (self->thread, NULL);
    for (size_t i = 0; i < self->link_count; i++) {
        close_link (self->links[i], RELAY_RESET);
    }
    drop_closed_links (self);
    if (self->listener >= 0) {
        close (self->listener);
    }
    close (self->reserve);
    close (self->wake);
    pthread_cond_destroy (&self->is_done);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

const char *relay_endpoint (const relay_t *self)
{
    return self->endpoint;
}

void relay_delay (relay_t *self, unsigned directions, int64_t ms)
{
    begin_change (self);
    for (int from = 0; from < 2; from++) {
        if (directions & (from == 0 ? RELAY_UP : RELAY_DOWN)) {
            self->delay_ms[from] = ms;
        }
    }
    end_change (self);
}

void relay_hold (relay_t *self, unsigned directions, bool hold)
{
    begin_change (self);
    self->held = hold ? self->held | directions : self->held & ~directions;
    end_change (self);
}

void relay_swallow (relay_t *self, unsigned directions, bool swallow)
{
    begin_change (self);
    self->swallowed = swallow ? self->swallowed | directions : self->swallowed & ~directions;
    end_change (self);
}

void relay_refuse (relay_t *self, bool refuse)
{
    begin_change (self);
    self->is_refusing = refuse;
    end_change (self);
}

void relay_cut (relay_t *self, unsigned ends, relay_end_t how)
{
    begin_change (self);
    self->cut_ends = ends;
    self->cut_how = how;
    end_change (self);
}

void relay_cut_after (relay_t *self, uint64_t bytes, relay_end_t how)
{
    begin_change (self);
    self->cut_after = bytes;
    self->cut_after_how = how;
    end_change (self);
}

size_t relay_taken (relay_t *self)
{
    pthread_mutex_lock (&self->lock);
    const size_t taken = self->taken;
    pthread_mutex_unlock (&self->lock);
    return taken;
}

size_t relay_present (relay_t *self)
{
    pthread_mutex_lock (&self->lock);
    const size_t present = self->link_count;
    pthread_mutex_unlock (&self->lock);
    return present;
}

uint64_t relay_carried (relay_t *self, unsigned direction)
{
    pthread_mutex_lock (&self->lock);
    const uint64_t carried = self->carried[direction == RELAY_UP ? 0 : 1];
    pthread_mutex_unlock (&self->lock);
    return carried;
}
