/*  The model of a young broker: anchors of earlier epochs may yet come back (clause 6, ATTACH).  */
#include "tests/support/model_part.h"

bool model_young_awaits (const model_t *self, hws_handle_t handle)
{
    return self->now < self->young_until_at && handle.hi == self->options.broker_id &&
           hws_handle_epoch (handle) < self->options.epoch;
}

bool model_young_holds (const model_t *self, const model_attach_t *request)
{
    return request->has_handle && !self->is_draining && model_young_awaits (self, request->handle);
}

void model_young_over (model_t *self)
{
    self->is_young_due = false;
    for (size_t i = 0; i < self->waiting_count;) {
        const model_attach_t *const request = &self->waiting[i].request;
        if (request->has_handle && request->handle.hi == self->options.broker_id &&
            hws_handle_epoch (request->handle) < self->options.epoch) {
            model_wait_over (self, i);
        } else {
            i++;
        }
    }
}
