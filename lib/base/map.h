/*  A hash table whose nodes live in the objects, keyed by bytes.
 *
 *  Peers choose many of our keys (client ids, names, session ids), so the hash
 *  is keyed with a secret of the process: SipHash-1-3 (Aumasson, Bernstein
 *  2012). The key bytes are a member of the object, as the node is, so that a node has no
 *  more than the way from one to the other; they must not change while it is in the map.
 *  Inserting never fails: when a larger table cannot be had, chains grow longer instead.
 */
#ifndef HWS_MAP_H
#define HWS_MAP_H

#include "base/bytes.h"

typedef struct hws_map_node hws_map_node_t;

struct hws_map_node {
    hws_map_node_t *next; /* in the same bucket */
    uint32_t hash;        /* its lower half */
    int16_t key_offset;   /* from the node to the key */
    uint16_t key_size;    /* 0 while in no map */
};

typedef struct {
    uint64_t key[2]; /* of the hash */
} hws_hash_key_t;

typedef struct {
    hws_map_node_t **buckets; /* a power of two of them */
    size_t bucket_count;
    size_t count;
    hws_hash_key_t hash_key;
} hws_map_t;

/*  SipHash-1-3 of the bytes under the key.  */
uint64_t hws_hash (hws_hash_key_t key, hws_bytes_t bytes);

/*  An empty map. Returns HWS_ENO_MEMORY, else 0.  */
int hws_map_init (hws_map_t *self, hws_hash_key_t hash_key);

/*  Frees the table. The nodes, if any are left, belong to their objects.  */
void hws_map_fini (hws_map_t *self);

/*  Puts the node in under `key`, which must not be in the map yet and must be in the same
 *  object, within 32 KiB of the node. The key may not be empty.  */
void hws_map_insert (hws_map_t *self, hws_map_node_t *node, hws_bytes_t key);

/*  Takes the node out; harmless when it is in no map.  */
void hws_map_remove (hws_map_t *self, hws_map_node_t *node);

/*  The node under `key`, or null.  */
hws_map_node_t *hws_map_find (const hws_map_t *self, hws_bytes_t key);

static inline bool hws_map_node_is_in (const hws_map_node_t *self)
{
    return self->key_size > 0;
}

/*  Any one node, or null when the map is empty: for emptying it.  */
hws_map_node_t *hws_map_any (const hws_map_t *self);

#endif
