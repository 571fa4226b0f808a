#include "client/block_io.h"

#include "base/list.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    SIZES = 9,                       /* powers of two, from HWS_BLOCK_SIZE_MIN on, that are kept */
    KEPT_BYTES_MAX = 4 * 1024 * 1024 /* of all sizes together */
};

typedef struct {
    hws_blocks_t base;
    pthread_mutex_t lock;
    hws_list_t kept[SIZES]; /* blocks without a holder; under the lock, as the next */
    size_t kept_bytes;
} source_t;

typedef struct {
    hws_block_t base;
    source_t *source;
    unsigned power; /* of its size; SIZES: it is not kept */
    atomic_uint holders;
    hws_link_t link; /* in `kept` */
    alignas (max_align_t) uint8_t bytes[];
} counted_t;

static counted_t *counted_of (hws_block_t *block)
{
    return hws_container_of (block, counted_t, base);
}

static void hold (hws_block_t *block)
{
    atomic_fetch_add_explicit (&counted_of (block)->holders, 1, memory_order_relaxed);
}

/*  Puts a block aside for the next. False when enough are.  */
static bool keep (counted_t *block)
{
    source_t *const source = block->source;
    if (block->power == SIZES) {
        return false;
    }
    pthread_mutex_lock (&source->lock);
    const bool is_kept = block->base.size <= KEPT_BYTES_MAX - source->kept_bytes;
    if (is_kept) {
        source->kept_bytes += block->base.size;
        hws_list_prepend (&source->kept[block->power], &block->link);
    }
    pthread_mutex_unlock (&source->lock);
    return is_kept;
}

static void release (hws_block_t *block)
{
    counted_t *const self = counted_of (block);
    if (atomic_fetch_sub_explicit (&self->holders, 1, memory_order_acq_rel) == 1 && !keep (self)) {
        free (self);
    }
}

static counted_t *take_kept (source_t *self, unsigned power)
{
    pthread_mutex_lock (&self->lock);
    hws_link_t *const link = hws_list_pop (&self->kept[power]);
    counted_t *const block = link ? hws_container_of (link, counted_t, link) : NULL;
    self->kept_bytes -= block ? block->base.size : 0;
    pthread_mutex_unlock (&self->lock);
    return block;
}

static hws_block_t *take (hws_blocks_t *blocks, size_t size)
{
    source_t *const self = hws_container_of (blocks, source_t, base);
    size_t whole = HWS_BLOCK_SIZE_MIN + HWS_BLOCK_EXTRA;
    unsigned power = 0;
    for (; power < SIZES && whole < size; power++) {
        whole = 2 * whole - HWS_BLOCK_EXTRA;
    }
    whole = power < SIZES ? whole : size;
    counted_t *block = power < SIZES ? take_kept (self, power) : NULL;
    if (!block) {
        block = malloc (sizeof *block + whole);
        if (!block) {
            return NULL;
        }
        block->base =
            (hws_block_t){.hold = hold, .release = release, .bytes = block->bytes, .size = whole};
        block->source = self;
        block->power = power;
        block->link = (hws_link_t){.list = NULL};
    }
    atomic_init (&block->holders, 1);
    return &block->base;
}

hws_blocks_t *hws_blocks_new (void)
{
    source_t *const self = calloc (1, sizeof *self);
    if (!self) {
        return NULL;
    }
    self->base.take = take;
    pthread_mutex_init (&self->lock, NULL);
    return &self->base;
}

void hws_blocks_destroy (hws_blocks_t **blocks)
{
    if (!*blocks) {
        return;
    }
    source_t *const self = hws_container_of (*blocks, source_t, base);
    *blocks = NULL;
    for (unsigned power = 0; power < SIZES; power++) {
        counted_t *block;
        while ((block = take_kept (self, power)) != NULL) {
            free (block);
        }
    }
    pthread_mutex_destroy (&self->lock);
    free (self);
}
