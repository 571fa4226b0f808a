#include "broker/young.h"

#include "broker/engine_state.h"

bool hws_young_is_earlier (const hws_engine_t *engine, hws_handle_t handle)
{
    return handle.hi == engine->options.broker_id &&
           hws_handle_epoch (handle) < engine->options.epoch;
}

bool hws_young_awaits (const hws_engine_t *engine, hws_handle_t handle)
{
    return engine->now < engine->young_until_at && hws_young_is_earlier (engine, handle) &&
           !hws_anchor_find (engine, handle) && !hws_anchor_find_other (engine, handle) &&
           !hws_tombstone_of_handle (engine, handle);
}

bool hws_young_holds (const hws_engine_t *engine, const hws_attach_t *request)
{
    return request->has_handle && !engine->is_draining &&
           hws_young_awaits (engine, request->handle);
}

uint64_t hws_young_first_id (const hws_engine_t *engine, hws_handle_t handle)
{
    const uint64_t lives = engine->options.epoch - hws_handle_epoch (handle);
    return (lives << 32) + 1;
}

void hws_young_begin (hws_engine_t *engine)
{
    if (engine->young_until_at == HWS_NEVER) {
        engine->young_until_at = engine->now + (hws_ms_t) engine->options.anchors.orphan_ttl_ms;
    }
}

void hws_young_arm (hws_engine_t *engine)
{
    if (!hws_timer_is_armed (&engine->young_deadline.timer)) {
        hws_heap_set (&engine->deadlines, &engine->young_deadline.timer, engine->young_until_at);
    }
}

void hws_young_expire (hws_engine_t *engine)
{
    for (hws_link_t *link = engine->waiting.head, *next; link; link = next) {
        next = link->next;
        hws_waiting_t *const waiting = hws_container_of (link, hws_waiting_t, in_engine);
        const hws_attach_t *const request = &waiting->request;
        if (request->has_handle && hws_young_is_earlier (engine, request->handle) &&
            !hws_anchor_find (engine, request->handle)) {
            hws_waiting_expire (engine, waiting);
        }
    }
}
