#include "broker/peer.h"

#include "base/assert.h"
#include "base/text.h"
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/opening.h"

#include <stdlib.h>

#define SILENT_INTERVALS 3
#define AWAY_MS          1000 /* what is still read of a closed connection comes sooner */

static hws_bytes_t address_key (const hws_address_t *address)
{
    return hws_bytes (address, offsetof (hws_address_t, id) + address->size);
}

/*  How long a peer that owns nothing is kept after its last message.  */
static hws_ms_t patience_ms (const hws_engine_t *engine, const hws_peer_t *self)
{
    return self->state == HWS_PEER_AWAY
               ? AWAY_MS
               : SILENT_INTERVALS * (hws_ms_t) engine->options.anchors.heartbeat_interval_ms;
}

/*  Looks at the peer again then, whether it owns something by now or not.  */
static void arm (hws_engine_t *engine, hws_peer_t *self)
{
    hws_heap_set (&engine->deadlines, &self->silence.timer,
                  engine->now + patience_ms (engine, self));
}

hws_peer_t *hws_peer_new (hws_engine_t *engine, const hws_id_t *client_id,
                          const hws_address_t *address, const char *network_address)
{
    hws_peer_t *const self = calloc (1, sizeof *self);
    if (self == NULL) {
        return NULL;
    }
    self->client_id = *client_id;
    self->address = *address;
    self->heard_at = engine->now;
    self->unknown_at = engine->now - HWS_UNKNOWN_STREAM_MS;
    self->silence.kind = HWS_DEADLINE_PEER;
    hws_out_init (&self->out);
    hws_cancel_account_init (&self->cancels, engine->options.limits.cancel_orphans_per_peer);
    hws_text_copy (self->network_address, sizeof self->network_address, network_address);
    hws_map_insert (&engine->peers_by_client, &self->by_client_id,
                    hws_bytes (self->client_id.bytes, HWS_ID_SIZE));
    hws_map_insert (&engine->peers_by_address, &self->by_address, address_key (&self->address));
    arm (engine, self);
    return self;
}

void hws_peer_init_nobody (const hws_engine_t *engine, hws_peer_t *self)
{
    const hws_handle_t life = {.hi = engine->options.broker_id, .lo = engine->options.epoch};
    self->client_id = hws_credential_make (engine->options.key, HWS_CREDENTIAL_NOBODY, life, 0);
    self->state = HWS_PEER_AWAY;
    hws_out_init (&self->out);
}

void hws_peer_free (hws_engine_t *engine, hws_peer_t *self)
{
    hws_assert (self->seats.count == 0 && self->anchors.count == 0);

    hws_opening_forget (self);
    hws_link_t *link;
    while ((link = self->waiting.head)) {
        hws_waiting_free (engine, hws_container_of (link, hws_waiting_t, in_peer));
    }
    hws_out_clear (engine, &self->out);
    hws_cancel_account_fini (&self->cancels);
    hws_heap_clear (&engine->deadlines, &self->silence.timer);
    hws_map_remove (&engine->peers_by_client, &self->by_client_id);
    hws_map_remove (&engine->peers_by_address, &self->by_address);
    free (self);
}

hws_peer_t *hws_peer_at (const hws_engine_t *engine, const hws_address_t *address)
{
    hws_map_node_t *const node = hws_map_find (&engine->peers_by_address, address_key (address));
    return node ? hws_container_of (node, hws_peer_t, by_address) : NULL;
}

hws_peer_t *hws_peer_of_client (const hws_engine_t *engine, const hws_id_t *client_id)
{
    hws_map_node_t *const node =
        hws_map_find (&engine->peers_by_client, hws_bytes (client_id->bytes, HWS_ID_SIZE));
    return node ? hws_container_of (node, hws_peer_t, by_client_id) : NULL;
}

/*  Everything that belongs to the peer is away; nothing queued for it is sent, for it
 *  will hear all again. Waiting attaches are asked again too.  */
static void leave_all (hws_engine_t *engine, hws_peer_t *self)
{
    hws_link_t *link;
    while ((link = self->waiting.head)) {
        hws_waiting_free (engine, hws_container_of (link, hws_waiting_t, in_peer));
    }
    hws_out_clear (engine, &self->out);
    for (link = self->seats.head; link; link = link->next) {
        hws_seat_leave (engine, hws_container_of (link, hws_seat_t, in_peer));
    }
    for (link = self->anchors.head; link; link = link->next) {
        hws_anchor_leave (engine, hws_container_of (link, hws_anchor_t, in_owner));
    }
}

void hws_peer_move (hws_engine_t *engine, hws_peer_t *self, const hws_address_t *address,
                    const char *network_address)
{
    self->state = HWS_PEER_CONNECTED; /* deadlines are armed by it */
    hws_peer_heard (engine, self);
    leave_all (engine, self);
    hws_opening_forget (self); /* its client says all of it again */
    hws_map_remove (&engine->peers_by_address, &self->by_address);
    self->address = *address;
    hws_map_insert (&engine->peers_by_address, &self->by_address, address_key (&self->address));
    hws_text_copy (self->network_address, sizeof self->network_address, network_address);
    self->owes_resync = false;
    arm (engine, self);
}

void hws_peer_heard (const hws_engine_t *engine, hws_peer_t *self)
{
    if (self->heard_at < engine->now) {
        self->heard_at = engine->now;
    }
}

void hws_peer_lose (hws_engine_t *engine, hws_peer_t *self)
{
    if (self->state == HWS_PEER_AWAY) {
        return;
    }
    self->state = HWS_PEER_AWAY; /* deadlines are armed by it */
    leave_all (engine, self);
    hws_engine_log (engine, HWS_LOG_DEBUG, "event=away address=%s senders=%zu anchors=%zu",
                    self->network_address, self->seats.count, self->anchors.count);
    arm (engine, self);
}

void hws_peer_expire (hws_engine_t *engine, hws_peer_t *self)
{
    const hws_ms_t due = self->heard_at + patience_ms (engine, self);
    const bool owns_nothing =
        self->seats.count == 0 && self->anchors.count == 0 && self->waiting.count == 0;
    if (engine->now >= due && owns_nothing) {
        hws_peer_free (engine, self);
        return;
    }
    if (due > engine->now) {
        hws_heap_set (&engine->deadlines, &self->silence.timer, due);
    } else {
        arm (engine, self);
    }
}
