#include "broker/connections.h"

#include "base/list.h"

#include <stdlib.h>

typedef struct {
    hws_address_t address;
    uint8_t key[4 + HWS_ROUTING_ID_SIZE_MAX]; /* front and routing id, of the map */
    hws_map_node_t node;                      /* in by_address */
    hws_link_t link;                          /* in its connection's ties, or in gone */
} tie_t;

/*  A front that has had connections; it lasts until the front is dropped.  */
typedef struct {
    uint8_t key[4];      /* its number, of the map */
    hws_map_node_t node; /* in by_number */
    hws_list_t open;     /* of connection_t */
} front_t;

/*  A connection that is open.  */
typedef struct {
    uint8_t key[8];        /* front and descriptor, of the map */
    hws_map_node_t node;   /* in by_descriptor */
    hws_link_t in_front;   /* in its front's list of open ones */
    hws_link_t in_silent;  /* in silent while no HELLO has come */
    hws_list_t ties;       /* of tie_t */
    hws_ms_t hello_end_at; /* until when one must have come */
    int descriptor;
} connection_t;

struct hws_connections {
    size_t limit;
    size_t tie_limit;
    hws_map_t by_descriptor; /* of connection_t */
    hws_map_t by_address;    /* of tie_t, tied and gone ones */
    hws_map_t by_number;     /* of front_t */
    size_t open_count;
    hws_list_t gone;   /* of tie_t: closed, not yet taken */
    hws_list_t silent; /* of connection_t, in the order of hello_end_at */
    uint64_t refused_count;
    uint64_t silent_count;
};

int hws_connections_new (hws_connections_t **self, size_t tie_limit, hws_hash_key_t hash_key)
{
    hws_connections_t *made = calloc (1, sizeof *made);
    if (!made) {
        return HWS_ENO_MEMORY;
    }
    made->tie_limit = tie_limit;
    if (hws_map_init (&made->by_number, hash_key) != 0 ||
        hws_map_init (&made->by_descriptor, hash_key) != 0 ||
        hws_map_init (&made->by_address, hash_key) != 0) {
        hws_connections_destroy (&made);
        return HWS_ENO_MEMORY;
    }
    *self = made;
    return 0;
}

static void free_tie (hws_connections_t *self, tie_t *tie)
{
    hws_map_remove (&self->by_address, &tie->node);
    hws_list_remove (&tie->link);
    free (tie);
}

static void lose_ties (hws_connections_t *self, connection_t *connection)
{
    hws_list_remove (&connection->in_silent);
    hws_link_t *link;
    while ((link = hws_list_pop (&connection->ties)) != NULL) {
        hws_list_append (&self->gone, link);
    }
}

static void close_connection (hws_connections_t *self, connection_t *connection)
{
    lose_ties (self, connection);
    hws_map_remove (&self->by_descriptor, &connection->node);
    hws_list_remove (&connection->in_front);
    self->open_count--;
    free (connection);
}

static void free_front (hws_connections_t *self, front_t *front)
{
    hws_link_t *link;
    while ((link = front->open.head) != NULL) {
        close_connection (self, hws_container_of (link, connection_t, in_front));
    }
    hws_map_remove (&self->by_number, &front->node);
    free (front);
}

void hws_connections_destroy (hws_connections_t **self)
{
    if (!*self) {
        return;
    }
    hws_map_node_t *node;
    while ((node = hws_map_any (&(*self)->by_number)) != NULL) {
        free_front (*self, hws_container_of (node, front_t, node));
    }
    hws_link_t *link;
    while ((link = (*self)->gone.head) != NULL) {
        free_tie (*self, hws_container_of (link, tie_t, link));
    }
    hws_map_fini (&(*self)->by_number);
    hws_map_fini (&(*self)->by_descriptor);
    hws_map_fini (&(*self)->by_address);
    free (*self);
    *self = NULL;
}

void hws_connections_limit (hws_connections_t *self, size_t limit)
{
    self->limit = limit;
}

/*  ---- Connections ---- */

static hws_bytes_t connection_key (uint8_t key[8], uint32_t front, int descriptor)
{
    hws_put_u32 (key, front);
    hws_put_u32 (key + 4, (uint32_t) descriptor);
    return hws_bytes (key, 8);
}

static connection_t *find_connection (const hws_connections_t *self, uint32_t front, int descriptor)
{
    uint8_t key[8];
    hws_map_node_t *const node =
        hws_map_find (&self->by_descriptor, connection_key (key, front, descriptor));
    return node ? hws_container_of (node, connection_t, node) : NULL;
}

static front_t *find_front (const hws_connections_t *self, uint32_t number)
{
    uint8_t key[4];
    hws_put_u32 (key, number);
    hws_map_node_t *const node = hws_map_find (&self->by_number, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, front_t, node) : NULL;
}

static front_t *need_front (hws_connections_t *self, uint32_t number)
{
    front_t *front = find_front (self, number);
    if (!front && (front = calloc (1, sizeof *front)) != NULL) {
        hws_put_u32 (front->key, number);
        hws_map_insert (&self->by_number, &front->node, hws_bytes (front->key, sizeof front->key));
    }
    return front;
}

static connection_t *new_connection (hws_connections_t *self, uint32_t number, int descriptor)
{
    front_t *const front = need_front (self, number);
    connection_t *const made = front ? calloc (1, sizeof *made) : NULL;
    if (made) {
        made->descriptor = descriptor;
        hws_map_insert (&self->by_descriptor, &made->node,
                        connection_key (made->key, number, descriptor));
        hws_list_append (&front->open, &made->in_front);
        self->open_count++;
    }
    return made;
}

int hws_connections_accepted (hws_connections_t *self, uint32_t front, int descriptor, hws_ms_t now)
{
    connection_t *connection = find_connection (self, front, descriptor);
    if (connection) {
        lose_ties (self, connection);
    } else {
        connection = new_connection (self, front, descriptor);
    }
    if (!connection) {
        self->refused_count++;
        return HWS_ENO_MEMORY;
    }
    connection->hello_end_at = hws_time_after (now, HWS_HELLO_MS);
    hws_list_append (&self->silent, &connection->in_silent);
    if (self->open_count > self->limit) {
        self->refused_count++;
        return HWS_ELIMIT;
    }
    return 0;
}

void hws_connections_closed (hws_connections_t *self, uint32_t front, int descriptor)
{
    connection_t *const connection = find_connection (self, front, descriptor);
    if (connection) {
        close_connection (self, connection);
    }
}

void hws_connections_drop (hws_connections_t *self, uint32_t front)
{
    front_t *const found = find_front (self, front);
    if (found) {
        free_front (self, found);
    }
}

size_t hws_connections_count (const hws_connections_t *self)
{
    return self->open_count;
}

uint64_t hws_connections_refused (const hws_connections_t *self)
{
    return self->refused_count;
}

/*  ---- Ties ---- */

static hws_bytes_t tie_key (uint8_t *key, const hws_address_t *address)
{
    hws_put_u32 (key, address->front);
    memcpy (key + 4, address->id, address->size);
    return hws_bytes (key, 4 + (size_t) address->size);
}

static tie_t *find_tie (const hws_connections_t *self, const hws_address_t *address)
{
    uint8_t key[4 + HWS_ROUTING_ID_SIZE_MAX];
    hws_map_node_t *const node = hws_map_find (&self->by_address, tie_key (key, address));
    return node ? hws_container_of (node, tie_t, node) : NULL;
}

int hws_connections_tie (hws_connections_t *self, int descriptor, const hws_address_t *address)
{
    if (descriptor < 0) {
        return HWS_EINVALID;
    }
    connection_t *const connection = find_connection (self, address->front, descriptor);
    if (connection) {
        hws_list_remove (&connection->in_silent);
    }
    tie_t *tie = find_tie (self, address);
    if (tie) {
        hws_list_remove (&tie->link);
    } else {
        if (self->by_address.count >= self->tie_limit) {
            return HWS_ELIMIT;
        }
        tie = calloc (1, sizeof *tie);
        if (!tie) {
            return HWS_ENO_MEMORY;
        }
        tie->address = *address;
        hws_map_insert (&self->by_address, &tie->node, tie_key (tie->key, address));
    }
    hws_list_append (connection ? &connection->ties : &self->gone, &tie->link);
    return 0;
}

void hws_connections_forget (hws_connections_t *self, const hws_address_t *address)
{
    tie_t *const tie = find_tie (self, address);
    if (tie) {
        free_tie (self, tie);
    }
}

bool hws_connections_pop_gone (hws_connections_t *self, hws_address_t *address)
{
    if (self->gone.count == 0) {
        return false;
    }
    tie_t *const tie = hws_container_of (self->gone.head, tie_t, link);
    *address = tie->address;
    free_tie (self, tie);
    return true;
}

/*  ---- Silence ---- */

hws_ms_t hws_connections_silent_at (const hws_connections_t *self)
{
    hws_link_t *const first = self->silent.head;
    return first ? hws_container_of (first, connection_t, in_silent)->hello_end_at : HWS_NEVER;
}

int hws_connections_pop_silent (hws_connections_t *self, hws_ms_t now)
{
    if (hws_connections_silent_at (self) > now) {
        return -1;
    }
    self->silent_count++;
    hws_link_t *const first = hws_list_pop (&self->silent);
    return hws_container_of (first, connection_t, in_silent)->descriptor;
}

uint64_t hws_connections_silent (const hws_connections_t *self)
{
    return self->silent_count;
}
