#include "broker/dedicated.h"

#include "base/assert.h"
#include "base/text.h"
#include "broker/answer.h"
#include "broker/engine_state.h"

#include <stdio.h>
#include <stdlib.h>

void hws_dedicated_begin (hws_engine_t *engine, hws_anchor_t *anchor)
{
    hws_list_append (&engine->dedicated, &anchor->dedicated.in_engine);
}

static bool is_dedicated (const hws_anchor_t *anchor)
{
    return hws_link_is_in_list (&anchor->dedicated.in_engine);
}

bool hws_dedicated_seats (const hws_anchor_t *anchor, const hws_peer_t *peer)
{
    return !is_dedicated (anchor) || (anchor->dedicated.state == HWS_DEDICATED_BOUND &&
                                      anchor->dedicated.front == peer->address.front);
}

/*  ---- Bind and unbind ---- */

/*  Forgets the front; an UNBIND that is due has been pushed.  */
static void reset (hws_dedicated_t *self)
{
    free (self->endpoints);
    free (self->unbind);
    self->state = HWS_DEDICATED_UNBOUND;
    self->front = 0;
    self->is_told = false;
    self->endpoints = NULL;
    self->endpoint_count = 0;
    self->unbind = NULL;
}

static hws_outgoing_t *new_effect (hws_effect_kind_t kind, uint32_t front)
{
    hws_outgoing_t *const self = calloc (1, sizeof *self);
    if (self) {
        self->effect.kind = kind;
        self->effect.to.front = front;
    }
    return self;
}

static int bind_front (hws_engine_t *engine, hws_dedicated_t *self)
{
    const uint32_t front = engine->front_count + 1;
    hws_outgoing_t *const bind = new_effect (HWS_EFFECT_BIND, front);
    self->unbind = new_effect (HWS_EFFECT_UNBIND, front);
    if (bind == NULL || self->unbind == NULL) {
        free (bind);
        reset (self);
        return HWS_ENO_MEMORY;
    }
    engine->front_count = front;
    engine->stats.binds++;
    self->front = front;
    self->state = HWS_DEDICATED_BINDING;
    hws_list_append (&engine->loose, &bind->link);
    return 0;
}

/*  The shell gives the front up, whether it has bound it by now or not.  */
static void unbind_front (hws_engine_t *engine, hws_dedicated_t *self)
{
    if (self->state != HWS_DEDICATED_UNBOUND) {
        hws_list_append (&engine->loose, &self->unbind->link);
        self->unbind = NULL;
    }
    reset (self);
}

void hws_dedicated_end (hws_engine_t *engine, hws_anchor_t *anchor)
{
    unbind_front (engine, &anchor->dedicated);
    hws_list_remove (&anchor->dedicated.in_engine);
}

/*  ---- Attach ---- */

static void describe (const hws_anchor_t *anchor, const hws_peer_t *peer, hws_attach_ok_t *answer)
{
    const hws_dedicated_t *const self = &anchor->dedicated;
    const size_t listener = peer->listener < self->endpoint_count ? peer->listener : 0;
    answer->handle = anchor->handle;
    answer->heartbeat_interval_ms = anchor->heartbeat_interval_ms;
    answer->record_bytes = anchor->record_bytes;
    hws_text_copy (answer->streaming_transport_key, sizeof answer->streaming_transport_key,
                   HWS_TRANSPORT_DEDICATED);
    hws_text_copy (answer->endpoint, sizeof answer->endpoint, self->endpoints[listener]);
}

int hws_dedicated_direct (hws_engine_t *engine, hws_anchor_t *anchor, const hws_peer_t *peer,
                          hws_attach_ok_t *answer, hws_reason_t reason)
{
    hws_dedicated_t *const self = &anchor->dedicated;
    if (self->state == HWS_DEDICATED_BOUND) {
        describe (anchor, peer, answer);
        self->is_told = true;
        return 0;
    }
    if (peer->state != HWS_PEER_CONNECTED) {
        snprintf (reason, sizeof (hws_reason_t), "the connection of this attach is closed");
        return HWS_ETRANSPORT; /* nobody would be there to be told */
    }
    if (self->state == HWS_DEDICATED_UNBOUND && engine->front_count == UINT32_MAX) {
        snprintf (reason, sizeof (hws_reason_t),
                  "the broker has bound all the fronts of this start");
        return HWS_ELIMIT; /* the number of a front never comes back */
    }
    if (self->state == HWS_DEDICATED_UNBOUND && bind_front (engine, self) != 0) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is out of memory");
        return HWS_ELIMIT;
    }
    return HWS_EWOULD_BLOCK;
}

/*  ---- The shell's answer ---- */

static hws_anchor_t *find (const hws_engine_t *engine, uint32_t front)
{
    for (hws_link_t *link = engine->dedicated.head; link; link = link->next) {
        hws_anchor_t *const anchor = hws_container_of (link, hws_anchor_t, dedicated.in_engine);
        if (anchor->dedicated.state == HWS_DEDICATED_BINDING && anchor->dedicated.front == front) {
            return anchor;
        }
    }
    return NULL;
}

static int take_endpoints (hws_dedicated_t *self, const hws_endpoint_t *endpoints, size_t count)
{
    hws_assert (count > 0);

    self->endpoints = calloc (count, sizeof *self->endpoints);
    if (self->endpoints == NULL) {
        return HWS_ENO_MEMORY;
    }
    memcpy (self->endpoints, endpoints, count * sizeof *self->endpoints);
    self->endpoint_count = count;
    return 0;
}

static void fail (hws_engine_t *engine, hws_anchor_t *anchor, const char *text)
{
    hws_reason_t reason;
    snprintf (reason, sizeof reason, "anchor %u: its front cannot be bound: %.900s",
              hws_handle_count (anchor->handle), text);
    engine->stats.bind_failures++;
    hws_waiting_fail (engine, anchor, HWS_ETRANSPORT, reason);
}

/*  The second check is that of the attaches that wait: they try again.  */
void hws_dedicated_bound (hws_engine_t *engine, uint32_t front, int rc,
                          const hws_endpoint_t *endpoints, size_t endpoint_count, const char *text)
{
    hws_anchor_t *const anchor = find (engine, front);
    if (anchor == NULL) {
        return; /* it ended meanwhile, and UNBIND was said */
    }
    hws_dedicated_t *const self = &anchor->dedicated;
    if (rc != 0) {
        reset (self);
        fail (engine, anchor, text);
        return;
    }
    if (take_endpoints (self, endpoints, endpoint_count) != 0) {
        unbind_front (engine, self);
        fail (engine, anchor, "the broker is out of memory");
        return;
    }
    self->state = HWS_DEDICATED_BOUND;
    hws_engine_log (engine, HWS_LOG_DEBUG, "event=bound anchor=%016llx front=%u",
                    (unsigned long long) anchor->handle.lo, front);
    hws_waiting_retry (engine, anchor);
    if (!self->is_told) {
        unbind_front (engine, self);
    }
}
