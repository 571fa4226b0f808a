#include "client/rx_block.h"

#include <stdlib.h>

hws_rx_block_t *hws_rx_block_new (uint32_t room)
{
    hws_rx_block_t *const block = malloc (sizeof *block + room * sizeof block->entries[0]);
    if (block) {
        *block = (hws_rx_block_t){.room = room};
    }
    return block;
}

void hws_rx_block_free (hws_rx_block_t *block)
{
    for (uint32_t i = 0; i < block->count; i++) {
        free (block->entries[i].joined);
    }
    if (block->payload) {
        block->payload->release (block->payload);
    }
    free (block);
}

void hws_rx_blocks_free (hws_rx_block_t *first)
{
    while (first) {
        hws_rx_block_t *const next = first->next;
        hws_rx_block_free (first);
        first = next;
    }
}
