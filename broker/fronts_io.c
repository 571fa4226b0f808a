#include "broker/fronts_io.h"

#include "base/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <zmq.h>

#define LAST_WORDS_MS 1000 /* for what is not sent when a front is closed at last */
#define EVENTS_MAX    64   /* of one call of epoll_wait */
#define PROBE_SPARE   16   /* descriptors that others may take while we bind */
#define PROBE_MAX                                                                                  \
    (HWS_FRONT_DESCRIPTORS + HWS_LISTENER_DESCRIPTORS * HWS_FRONT_ENDPOINTS_MAX + PROBE_SPARE)

typedef struct {
    hws_front_t *front;
    uint8_t key[4];        /* its number, of the map */
    hws_map_node_t node;   /* in by_number */
    hws_link_t in_all;     /* in all */
    hws_link_t in_ready;   /* in ready: may have something to read */
    hws_link_t in_touched; /* in touched: was sent to */
    hws_link_t in_closing; /* in closing: given up */
    hws_ms_t close_at;     /* then, in closing */
} entry_t;

struct hws_fronts {
    hws_fronts_options_t options;
    int epoll;   /* -1: none */
    size_t cost; /* descriptors of one front */
    size_t endpoint_count;
    hws_map_t by_number; /* of entry_t */
    hws_list_t all;      /* of entry_t */
    hws_list_t ready;    /* in the order of their turns */
    hws_list_t touched;
    hws_list_t closing; /* in the order of close_at */
};

/*  ---- Life ---- */

static void share_descriptors (hws_fronts_t *self)
{
    const size_t left = self->options.room.descriptors - self->all.count * self->cost;
    hws_connections_limit (self->options.front.connections, left < self->options.room.connections
                                                                ? left
                                                                : self->options.room.connections);
}

int hws_fronts_new (hws_fronts_t **self, const hws_fronts_options_t *options)
{
    hws_fronts_t *made = calloc (1, sizeof *made);
    if (!made) {
        return HWS_ENO_MEMORY;
    }
    made->options = *options;
    while (hws_front_endpoint (options->shared, made->endpoint_count)) {
        made->endpoint_count++;
    }
    made->cost = hws_room_front_cost (made->endpoint_count);
    made->epoll = epoll_create1 (EPOLL_CLOEXEC);
    int rc = made->epoll < 0 ? HWS_ESYSTEM : 0;
    if (rc == 0) {
        rc = hws_map_init (&made->by_number, options->hash_key);
    }
    if (rc != 0) {
        hws_fronts_destroy (&made, 0);
        return rc;
    }
    share_descriptors (made);
    *self = made;
    return 0;
}

/*  libzmq closes descriptors later, so epoll has to be told. There may be no front.  */
static void free_entry (const hws_fronts_t *self, entry_t *entry, int linger_ms)
{
    if (entry->front) {
        epoll_ctl (self->epoll, EPOLL_CTL_DEL, hws_front_descriptor (entry->front), NULL);
        epoll_ctl (self->epoll, EPOLL_CTL_DEL, hws_front_monitor_descriptor (entry->front), NULL);
    }
    hws_front_destroy (&entry->front, linger_ms);
    free (entry);
}

static void close_entry (hws_fronts_t *self, entry_t *entry, int linger_ms)
{
    hws_log (self->options.log, HWS_LOG_DEBUG, "event=front_closed front=%u",
             hws_front_number (entry->front));
    hws_list_remove (&entry->in_all);
    hws_list_remove (&entry->in_ready);
    hws_list_remove (&entry->in_touched);
    hws_list_remove (&entry->in_closing);
    hws_map_remove (&self->by_number, &entry->node);
    free_entry (self, entry, linger_ms);
    share_descriptors (self);
}

void hws_fronts_destroy (hws_fronts_t **self, int linger_ms)
{
    hws_fronts_t *const fronts = *self;
    if (!fronts) {
        return;
    }
    hws_link_t *link;
    while ((link = fronts->all.head) != NULL) {
        close_entry (fronts, hws_container_of (link, entry_t, in_all), linger_ms);
    }
    hws_map_fini (&fronts->by_number);
    if (fronts->epoll >= 0) {
        close (fronts->epoll);
    }
    free (fronts);
    *self = NULL;
}

int hws_fronts_descriptor (const hws_fronts_t *self)
{
    return self->epoll;
}

size_t hws_fronts_count (const hws_fronts_t *self)
{
    return self->all.count;
}

static entry_t *find_entry (const hws_fronts_t *self, uint32_t number)
{
    uint8_t key[4];
    hws_put_u32 (key, number);
    hws_map_node_t *const node = hws_map_find (&self->by_number, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, entry_t, node) : NULL;
}

/*  ---- Bind ---- */

/*  Whether there are so many descriptors: libzmq aborts when it finds none in places.  */
static bool has_descriptors (size_t count)
{
    int taken[PROBE_MAX];
    size_t i = 0;
    while (i < count && i < PROBE_MAX && (taken[i] = fcntl (0, F_DUPFD_CLOEXEC, 0)) >= 0) {
        i++;
    }
    const bool is_enough = i == count;
    while (i > 0) {
        close (taken[--i]);
    }
    return is_enough;
}

static int check_room (const hws_fronts_t *self, hws_front_fault_t fault)
{
    const size_t used = (self->all.count + 1) * self->cost +
                        hws_connections_count (self->options.front.connections);
    if (self->all.count >= self->options.room.fronts) {
        snprintf (fault, sizeof (hws_front_fault_t),
                  "the broker has %zu fronts, which is its limit", self->all.count);
        return HWS_ELIMIT;
    }
    if (used > self->options.room.descriptors || !has_descriptors (self->cost + PROBE_SPARE)) {
        snprintf (fault, sizeof (hws_front_fault_t),
                  "the broker has no descriptors left (RLIMIT_NOFILE)");
        return HWS_ELIMIT;
    }
    return 0;
}

/*  The endpoint that belongs to one of the shared front's: any port, or another path. That
 *  has its real address by now, so no name is looked up.  */
static void print_endpoint (char *text, size_t size, const char *shared, uint32_t number)
{
    const char *const colon = strrchr (shared, ':');
    if (strncmp (shared, "tcp:", 4) == 0) {
        snprintf (text, size, "%.*s:0", (int) (colon - shared), shared);
    } else {
        snprintf (text, size, "%s.%u", shared, number);
    }
}

static int watch (const hws_fronts_t *self, entry_t *entry, int descriptor)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = entry};
    return epoll_ctl (self->epoll, EPOLL_CTL_ADD, descriptor, &event) == 0 ? 0 : HWS_ESYSTEM;
}

static int open_front (const hws_fronts_t *self, entry_t *entry, uint32_t number,
                       hws_front_fault_t fault)
{
    hws_front_options_t options = self->options.front;
    options.number = number;
    int rc = hws_front_new (&entry->front, self->options.context, &options);
    for (size_t i = 0; rc == 0 && i < self->endpoint_count; i++) {
        char endpoint[sizeof (hws_endpoint_t) + 16];
        print_endpoint (endpoint, sizeof endpoint, hws_front_endpoint (self->options.shared, i),
                        number);
        rc = hws_front_bind (entry->front, endpoint, fault);
    }
    if (rc == 0) {
        rc = watch (self, entry, hws_front_descriptor (entry->front));
    }
    if (rc == 0) {
        rc = watch (self, entry, hws_front_monitor_descriptor (entry->front));
    }
    return rc;
}

/*  Makes room by closing the front that was given up first; its time is nearly over.  */
static void hurry_one (hws_fronts_t *self)
{
    hws_link_t *const first = self->closing.head;
    if (self->all.count >= self->options.room.fronts && first) {
        close_entry (self, hws_container_of (first, entry_t, in_closing), LAST_WORDS_MS);
    }
}

int hws_fronts_bind (hws_fronts_t *self, uint32_t number, hws_front_fault_t fault)
{
    fault[0] = '\0';
    hurry_one (self);
    int rc = check_room (self, fault);
    if (rc != 0) {
        return rc;
    }
    entry_t *const entry = calloc (1, sizeof *entry);
    rc = entry ? open_front (self, entry, number, fault) : HWS_ENO_MEMORY;
    if (rc != 0) {
        if (entry) {
            free_entry (self, entry, 0);
        }
        if (fault[0] == '\0') {
            snprintf (fault, sizeof (hws_front_fault_t), "%s", hws_strerror (rc));
        }
        return rc;
    }
    hws_put_u32 (entry->key, number);
    hws_map_insert (&self->by_number, &entry->node, hws_bytes (entry->key, sizeof entry->key));
    hws_list_append (&self->all, &entry->in_all);
    hws_list_append (&self->ready, &entry->in_ready); /* what came before epoll knew it */
    share_descriptors (self);
    hws_log (self->options.log, HWS_LOG_DEBUG, "event=front_bound front=%u endpoint=%s", number,
             hws_front_endpoint (entry->front, 0));
    return 0;
}

/*  ---- Unbind ---- */

void hws_fronts_unbind (hws_fronts_t *self, uint32_t number, hws_ms_t now)
{
    entry_t *const entry = find_entry (self, number);
    if (!entry || hws_link_is_in_list (&entry->in_closing)) {
        return;
    }
    hws_front_read_monitor (entry->front, now);
    if (hws_front_connections (entry->front) == 0) {
        close_entry (self, entry, LAST_WORDS_MS);
        return;
    }
    entry->close_at = hws_time_after (now, HWS_FRONT_LINGER_MS);
    hws_list_append (&self->closing, &entry->in_closing);
}

void hws_fronts_reap (hws_fronts_t *self, hws_ms_t now)
{
    for (hws_link_t *link = self->closing.head, *next; link; link = next) {
        next = link->next;
        entry_t *const entry = hws_container_of (link, entry_t, in_closing);
        const bool is_deserted =
            hws_front_connections (entry->front) == 0 && !hws_link_is_in_list (&entry->in_ready);
        if (now >= entry->close_at || is_deserted) {
            close_entry (self, entry, LAST_WORDS_MS);
        }
    }
}

hws_ms_t hws_fronts_wake_at (const hws_fronts_t *self, hws_ms_t now)
{
    if (self->ready.count > 0) {
        return now;
    }
    hws_link_t *const first = self->closing.head;
    return first ? hws_container_of (first, entry_t, in_closing)->close_at : HWS_NEVER;
}

/*  ---- Turns ---- */

hws_front_t *hws_fronts_find (hws_fronts_t *self, uint32_t number)
{
    entry_t *const entry = find_entry (self, number);
    if (!entry) {
        return NULL;
    }
    if (!hws_link_is_in_list (&entry->in_touched)) {
        hws_list_append (&self->touched, &entry->in_touched);
    }
    return entry->front;
}

static void make_ready (hws_fronts_t *self, entry_t *entry)
{
    if (!hws_link_is_in_list (&entry->in_ready)) {
        hws_list_append (&self->ready, &entry->in_ready);
    }
}

hws_front_t *hws_fronts_next (hws_fronts_t *self)
{
    hws_link_t *const link = hws_list_pop (&self->ready);
    return link ? hws_container_of (link, entry_t, in_ready)->front : NULL;
}

void hws_fronts_keep (hws_fronts_t *self, const hws_front_t *front)
{
    entry_t *const entry = find_entry (self, hws_front_number (front));
    if (entry) {
        make_ready (self, entry);
    }
}

void hws_fronts_wake (hws_fronts_t *self)
{
    struct epoll_event events[EVENTS_MAX];
    int count = self->all.count > 0 ? EVENTS_MAX : 0;
    while (count == EVENTS_MAX) {
        count = epoll_wait (self->epoll, events, EVENTS_MAX, 0);
        for (int i = 0; i < count; i++) {
            make_ready (self, events[i].data.ptr);
        }
    }
}

void hws_fronts_settle (hws_fronts_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->touched)) != NULL) {
        entry_t *const entry = hws_container_of (link, entry_t, in_touched);
        if (hws_front_is_readable (entry->front)) {
            make_ready (self, entry);
        }
    }
}

void hws_fronts_read_monitors (hws_fronts_t *self, hws_ms_t now)
{
    for (hws_link_t *link = self->all.head; link; link = link->next) {
        hws_front_read_monitor (hws_container_of (link, entry_t, in_all)->front, now);
    }
}
