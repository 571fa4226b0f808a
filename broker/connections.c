#include "broker/connections.h"

#include "base/list.h"

#include <stdlib.h>

typedef struct {
    hws_address_t address;
    uint8_t key[4 + HWS_ROUTING_ID_SIZE_MAX]; /* front and routing id, of the map */
    hws_map_node_t node;                      /* in by_address */
    hws_link_t link;                          /* in its descriptor's ties, or in gone */
} tie_t;

typedef struct {
    hws_list_t ties;       /* of tie_t */
    hws_link_t silent;     /* in silent while no HELLO has come */
    hws_ms_t hello_end_at; /* until when one must have come */
    bool is_open;          /* accepted and not yet closed */
} descriptor_t;

struct hws_connections {
    descriptor_t *descriptors; /* by number */
    size_t descriptor_limit;
    size_t tie_limit;
    size_t open_count;
    hws_map_t by_address; /* of tie_t, tied and gone ones */
    hws_list_t gone;      /* of tie_t: closed, not yet taken */
    hws_list_t silent;    /* of descriptor_t, in the order of hello_end_at */
};

int hws_connections_new (hws_connections_t **self, size_t descriptor_limit, size_t tie_limit,
                         hws_hash_key_t hash_key)
{
    hws_connections_t *const made = calloc (1, sizeof *made);
    if (!made) {
        return HWS_ENO_MEMORY;
    }
    made->descriptors = calloc (descriptor_limit, sizeof *made->descriptors);
    if (!made->descriptors || hws_map_init (&made->by_address, hash_key) != 0) {
        free (made->descriptors);
        free (made);
        return HWS_ENO_MEMORY;
    }
    made->descriptor_limit = descriptor_limit;
    made->tie_limit = tie_limit;
    *self = made;
    return 0;
}

static void free_tie (hws_connections_t *self, tie_t *tie)
{
    hws_map_remove (&self->by_address, &tie->node);
    hws_list_remove (&tie->link);
    free (tie);
}

void hws_connections_destroy (hws_connections_t **self)
{
    if (!*self) {
        return;
    }
    hws_map_node_t *node;
    while ((node = hws_map_any (&(*self)->by_address)) != NULL) {
        free_tie (*self, hws_container_of (node, tie_t, node));
    }
    hws_map_fini (&(*self)->by_address);
    free ((*self)->descriptors);
    free (*self);
    *self = NULL;
}

static descriptor_t *find_descriptor (const hws_connections_t *self, int number)
{
    const bool is_known = number >= 0 && (size_t) number < self->descriptor_limit;
    return is_known ? &self->descriptors[number] : NULL;
}

static void lose_ties (hws_connections_t *self, descriptor_t *descriptor)
{
    hws_list_remove (&descriptor->silent);
    hws_link_t *link;
    while ((link = hws_list_pop (&descriptor->ties)) != NULL) {
        hws_list_append (&self->gone, link);
    }
}

void hws_connections_accepted (hws_connections_t *self, int number, hws_ms_t now)
{
    descriptor_t *const descriptor = find_descriptor (self, number);
    if (descriptor) {
        lose_ties (self, descriptor);
        self->open_count += !descriptor->is_open;
        descriptor->is_open = true;
        descriptor->hello_end_at = hws_time_after (now, HWS_HELLO_MS);
        hws_list_append (&self->silent, &descriptor->silent);
    }
}

void hws_connections_closed (hws_connections_t *self, int number)
{
    descriptor_t *const descriptor = find_descriptor (self, number);
    if (descriptor) {
        lose_ties (self, descriptor);
        self->open_count -= descriptor->is_open;
        descriptor->is_open = false;
    }
}

static hws_bytes_t make_key (uint8_t *key, const hws_address_t *address)
{
    hws_put_u32 (key, address->front);
    memcpy (key + 4, address->id, address->size);
    return hws_bytes (key, 4 + (size_t) address->size);
}

static tie_t *find_tie (const hws_connections_t *self, const hws_address_t *address)
{
    uint8_t key[4 + HWS_ROUTING_ID_SIZE_MAX];
    hws_map_node_t *const node = hws_map_find (&self->by_address, make_key (key, address));
    return node ? hws_container_of (node, tie_t, node) : NULL;
}

int hws_connections_tie (hws_connections_t *self, int number, const hws_address_t *address)
{
    descriptor_t *const descriptor = find_descriptor (self, number);
    if (!descriptor) {
        return HWS_EINVALID;
    }
    hws_list_remove (&descriptor->silent);
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
        hws_map_insert (&self->by_address, &tie->node, make_key (tie->key, address));
    }
    hws_list_append (descriptor->is_open ? &descriptor->ties : &self->gone, &tie->link);
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

hws_ms_t hws_connections_silent_at (const hws_connections_t *self)
{
    hws_link_t *const first = self->silent.head;
    return first ? hws_container_of (first, descriptor_t, silent)->hello_end_at : HWS_NEVER;
}

int hws_connections_pop_silent (hws_connections_t *self, hws_ms_t now)
{
    if (hws_connections_silent_at (self) > now) {
        return -1;
    }
    hws_link_t *const first = hws_list_pop (&self->silent);
    return (int) (hws_container_of (first, descriptor_t, silent) - self->descriptors);
}

size_t hws_connections_count (const hws_connections_t *self)
{
    return self->open_count;
}
