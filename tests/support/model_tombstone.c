#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

const model_tombstone_t *model_tombstone (const model_t *self, bool is_anchor, int client,
                                          uint64_t number)
{
    for (size_t i = self->tombstone_count; i > 0; i--) {
        const model_tombstone_t *const it = &self->tombstones[i - 1];
        if (it->is_anchor == is_anchor && it->client == client && it->number == number) {
            return it;
        }
    }
    return NULL;
}

bool model_anchor_has_ended (const model_t *self, uint32_t count)
{
    for (size_t i = 0; i < self->tombstone_count; i++) {
        if (self->tombstones[i].is_anchor && self->tombstones[i].anchor == count) {
            return true;
        }
    }
    return false;
}

const model_tombstone_t *model_tombstone_of_sender (const model_t *self, hws_handle_t handle,
                                                    uint64_t sender_id)
{
    for (size_t i = 0; i < self->tombstone_count; i++) {
        const model_tombstone_t *const it = &self->tombstones[i];
        if (!it->is_anchor && hws_handle_equal (model_handle (self, it->anchor), handle) &&
            it->sender_id == sender_id) {
            return it;
        }
    }
    return NULL;
}

void model_remember (model_t *self, model_tombstone_t it)
{
    const size_t most = self->options.limits.tombstones;
    it.expires_at = self->now + (hws_ms_t) self->options.anchors.orphan_ttl_ms;
    if (self->tombstone_count >= most) {
        memmove (self->tombstones, self->tombstones + 1,
                 --self->tombstone_count * sizeof *self->tombstones);
    }
    self->tombstones[self->tombstone_count++] = it;
}
