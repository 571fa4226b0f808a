#include "client/rx_streams.h"

#include "client/rx.h"
#include "client/rx_past.h"

#include <string.h>

int hws_rx_streams_init (hws_rx_streams_t *self, hws_hash_key_t hash_key)
{
    memset (self, 0, sizeof *self);
    int rc = hws_map_init (&self->by_id, hash_key);
    rc = rc ? rc : hws_map_init (&self->by_sender, hash_key);
    return rc ? rc : hws_map_init (&self->past, hash_key);
}

void hws_rx_streams_fini (hws_rx_streams_t *self)
{
    hws_map_fini (&self->by_id);
    hws_map_fini (&self->by_sender);
    hws_map_fini (&self->past);
}

hws_rx_stream_t *hws_rx_find (const hws_rx_streams_t *self, uint64_t id)
{
    uint8_t key[8];
    hws_put_u64 (key, id);
    hws_map_node_t *const node = hws_map_find (&self->by_id, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, hws_rx_stream_t, node) : NULL;
}

void hws_rx_key_put (uint8_t key[HWS_RX_KEY_SIZE], const hws_rx_t *rx, uint64_t sender_id)
{
    memcpy (key, &rx, sizeof rx);
    hws_put_u64 (key + sizeof rx, sender_id);
}

static hws_map_node_t *find (const hws_map_t *map, const hws_rx_t *rx, uint64_t sender_id)
{
    uint8_t key[HWS_RX_KEY_SIZE];
    hws_rx_key_put (key, rx, sender_id);
    return hws_map_find (map, hws_bytes (key, sizeof key));
}

hws_rx_stream_t *hws_rx_find_sender (const hws_rx_t *rx, uint64_t sender_id)
{
    hws_map_node_t *const node = find (&rx->streams->by_sender, rx, sender_id);
    return node ? hws_container_of (node, hws_rx_stream_t, sender_node) : NULL;
}

hws_rx_past_t *hws_rx_find_past (const hws_rx_t *rx, uint64_t sender_id)
{
    hws_map_node_t *const node = find (&rx->streams->past, rx, sender_id);
    return node ? hws_container_of (node, hws_rx_past_t, node) : NULL;
}
