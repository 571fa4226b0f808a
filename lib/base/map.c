#include "base/map.h"

#include "base/assert.h"
#include "base/error.h"

#include <stddef.h>
#include <stdlib.h>

#define FIRST_BUCKET_COUNT 16
#define NODES_PER_BUCKET   2 /* at most, on average: a table is a part of what an object takes */

static uint64_t rotate (uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static void sip_round (uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate (v[1], 13) ^ v[0];
    v[0] = rotate (v[0], 32);
    v[2] += v[3];
    v[3] = rotate (v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate (v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate (v[1], 17) ^ v[2];
    v[2] = rotate (v[2], 32);
}

uint64_t hws_hash (hws_hash_key_t key, hws_bytes_t bytes)
{
    uint64_t v[4] = {key.key[0] ^ 0x736f6d6570736575, key.key[1] ^ 0x646f72616e646f6d,
                     key.key[0] ^ 0x6c7967656e657261, key.key[1] ^ 0x7465646279746573};
    hws_cursor_t cursor = hws_cursor (bytes);
    while (cursor.left >= 8) {
        uint64_t word;
        memcpy (&word, hws_cursor_take (&cursor, 8), 8);
        v[3] ^= word;
        sip_round (v);
        v[0] ^= word;
    }
    uint64_t last = (uint64_t) bytes.size << 56;
    for (unsigned shift = 0; cursor.left > 0; shift += 8) {
        last |= (uint64_t) hws_cursor_u8 (&cursor) << shift;
    }
    v[3] ^= last;
    sip_round (v);
    v[0] ^= last;
    v[2] ^= 0xff;
    sip_round (v);
    sip_round (v);
    sip_round (v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

int hws_map_init (hws_map_t *self, hws_hash_key_t hash_key)
{
    *self = (hws_map_t){.bucket_count = FIRST_BUCKET_COUNT, .hash_key = hash_key};
    self->buckets = calloc (FIRST_BUCKET_COUNT, sizeof (hws_map_node_t *));
    return self->buckets ? 0 : HWS_ENO_MEMORY;
}

void hws_map_fini (hws_map_t *self)
{
    free (self->buckets);
    *self = (hws_map_t){0};
}

static hws_map_node_t **bucket (const hws_map_t *self, uint32_t hash)
{
    return &self->buckets[hash & (self->bucket_count - 1)];
}

static hws_bytes_t key_of (const hws_map_node_t *node)
{
    return hws_bytes ((const uint8_t *) node + node->key_offset, node->key_size);
}

static void grow (hws_map_t *self)
{
    hws_map_node_t **const larger = calloc (self->bucket_count * 2, sizeof (hws_map_node_t *));
    if (larger == NULL) {
        return;
    }
    hws_map_t old = *self;
    self->buckets = larger;
    self->bucket_count *= 2;
    for (size_t i = 0; i < old.bucket_count; i++) {
        while (old.buckets[i]) {
            hws_map_node_t *const node = old.buckets[i];
            old.buckets[i] = node->next;
            hws_map_node_t **const to = bucket (self, node->hash);
            node->next = *to;
            *to = node;
        }
    }
    free (old.buckets);
}

void hws_map_insert (hws_map_t *self, hws_map_node_t *node, hws_bytes_t key)
{
    const ptrdiff_t offset = key.data - (const uint8_t *) node;
    hws_assert (!hws_map_node_is_in (node));
    hws_assert (key.size > 0 && key.size <= UINT16_MAX);
    hws_assert (offset >= INT16_MIN && offset <= INT16_MAX);

    if (self->count / NODES_PER_BUCKET >= self->bucket_count) {
        grow (self);
    }
    node->key_offset = (int16_t) offset;
    node->key_size = (uint16_t) key.size;
    node->hash = (uint32_t) hws_hash (self->hash_key, key);
    hws_map_node_t **const to = bucket (self, node->hash);
    node->next = *to;
    *to = node;
    self->count++;
}

void hws_map_remove (hws_map_t *self, hws_map_node_t *node)
{
    if (!hws_map_node_is_in (node)) {
        return;
    }
    hws_map_node_t **at = bucket (self, node->hash);
    while (*at != node) {
        hws_assert (*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    *node = (hws_map_node_t){0};
    self->count--;
}

hws_map_node_t *hws_map_find (const hws_map_t *self, hws_bytes_t key)
{
    const uint32_t hash = (uint32_t) hws_hash (self->hash_key, key);
    for (hws_map_node_t *node = *bucket (self, hash); node; node = node->next) {
        if (node->hash == hash && hws_bytes_equal (key_of (node), key)) {
            return node;
        }
    }
    return NULL;
}

hws_map_node_t *hws_map_any (const hws_map_t *self)
{
    for (size_t i = 0; i < self->bucket_count && self->count > 0; i++) {
        if (self->buckets[i]) {
            return self->buckets[i];
        }
    }
    return NULL;
}
