#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <string.h>
#include <cmocka.h>

bool model_front_seats (const model_t *self, const model_anchor_t *anchor, int client)
{
    const uint32_t front = model_front_of (self->clients[client].connection);
    return !anchor->is_dedicated || (anchor->front_state == MODEL_BOUND && anchor->front == front);
}

const char *model_front_direct (model_t *self, model_anchor_t *anchor, int client, uint64_t id)
{
    if (anchor->front_state == MODEL_BOUND) {
        anchor->is_told = true;
        if (id) {
            model_say (self, client,
                       "ATTACH %" PRIu64 " Ok anchor=%u endpoint=%u/%d heartbeat=%" PRIu64
                       " record=%" PRIu64,
                       id, anchor->count, anchor->front, client % 2, anchor->heartbeat_interval_ms,
                       model_record_bytes (self, anchor));
        }
        return NULL;
    }
    if (self->clients[client].is_away) {
        return "transport";
    }
    if (anchor->front_state == MODEL_UNBOUND) {
        anchor->front_state = MODEL_BINDING;
        anchor->front = ++self->fronts;
        model_say_to (self, MODEL_SHELL, 0, "bind %u", anchor->front);
    }
    return "would_block";
}

void model_front_end (model_t *self, model_anchor_t *anchor)
{
    if (anchor->front_state != MODEL_UNBOUND) {
        model_say_to (self, MODEL_SHELL, 0, "unbind %u", anchor->front);
    }
    anchor->front_state = MODEL_UNBOUND;
    anchor->front = 0;
    anchor->is_told = false;
}

void model_bound (model_t *self, uint32_t front, bool is_bound)
{
    model_anchor_t *anchor = NULL;
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (self->anchors[i].front == front && self->anchors[i].front_state == MODEL_BINDING) {
            anchor = &self->anchors[i];
        }
    }
    if (anchor == NULL) {
        return; /* it has ended meanwhile */
    }
    const uint32_t count = anchor->count;
    if (!is_bound) {
        anchor->front_state = MODEL_UNBOUND;
        anchor->front = 0;
        model_wait_fail (self, count, anchor->name);
        return;
    }
    anchor->front_state = MODEL_BOUND;
    model_retry (self, count, anchor->name);
    if (!anchor->is_told) {
        model_front_end (self, anchor);
    }
}
