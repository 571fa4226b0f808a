#include "broker/tombstone.h"

#include "broker/engine_state.h"

#include <stdlib.h>

static void forget (hws_engine_t *engine, hws_tombstone_t *self)
{
    hws_map_remove (&engine->tombstones_by_session, &self->by_session);
    hws_map_remove (&engine->tombstones_by_open, &self->by_open);
    hws_map_remove (&engine->tombstones_by_sender, &self->by_sender);
    hws_map_remove (&engine->tombstones_by_handle, &self->by_handle);
    hws_list_remove (&self->in_engine);
    free (self->reason);
    free (self);
}

static hws_tombstone_t *oldest (hws_engine_t *engine)
{
    hws_link_t *const link = engine->tombstones.head;
    return link ? hws_container_of (link, hws_tombstone_t, in_engine) : NULL;
}

static void arm (hws_engine_t *engine)
{
    const hws_tombstone_t *const first = oldest (engine);
    hws_heap_set (&engine->deadlines, &engine->tombstone_deadline.timer,
                  first ? first->expires_at : HWS_NEVER);
}

hws_tombstone_t *hws_tombstone_new (void)
{
    return calloc (1, sizeof (hws_tombstone_t));
}

/*  Files a tombstone that was made ahead; it and the reason are taken. Returns null when
 *  nothing is to be remembered.  */
static hws_tombstone_t *file (hws_engine_t *engine, hws_tombstone_t **tombstone, char **reason)
{
    if (engine->options.limits.tombstones == 0) {
        return NULL;
    }
    while (engine->tombstones.count > 0 &&
           engine->tombstones.count >= engine->options.limits.tombstones) {
        forget (engine, oldest (engine));
    }
    hws_tombstone_t *const self = *tombstone;
    self->reason = *reason;
    *tombstone = NULL;
    *reason = NULL;
    self->expires_at = engine->now + (hws_ms_t) engine->options.anchors.orphan_ttl_ms;
    hws_list_append (&engine->tombstones, &self->in_engine);
    arm (engine); /* the oldest may be another now */
    return self;
}

void hws_tombstone_of_seat (hws_engine_t *engine, hws_seat_t *seat)
{
    hws_tombstone_t *const self = file (engine, &seat->tombstone, &seat->reason);
    if (self == NULL) {
        return;
    }
    self->ending = seat->ending;
    self->cause = seat->cause;
    self->acked_seq = seat->acked_seq;
    self->acked_bytes = seat->acked_bytes;
    self->handle = seat->anchor->handle;
    self->session_key = seat->session_key;
    self->sender_key = seat->sender_key;
    hws_map_insert (&engine->tombstones_by_session, &self->by_session,
                    hws_bytes (&self->session_key, sizeof self->session_key));
    hws_map_insert (&engine->tombstones_by_sender, &self->by_sender,
                    hws_bytes (&self->sender_key, sizeof self->sender_key));
}

void hws_tombstone_of_anchor (hws_engine_t *engine, hws_anchor_t *anchor)
{
    hws_tombstone_t *const self = file (engine, &anchor->tombstone, &anchor->reason);
    if (self == NULL) {
        return;
    }
    self->ending = HWS_RUN_CANCELLED;
    self->cause = anchor->cause;
    self->handle = anchor->handle;
    memcpy (self->session_key.client_id, anchor->owner->client_id.bytes, HWS_ID_SIZE);
    self->session_key.session_id = anchor->open_id;
    hws_map_insert (&engine->tombstones_by_open, &self->by_open,
                    hws_bytes (&self->session_key, sizeof self->session_key));
    hws_map_insert (&engine->tombstones_by_handle, &self->by_handle,
                    hws_bytes (&self->handle, sizeof self->handle));
}

static hws_map_node_t *find_of_client (const hws_map_t *map, const hws_peer_t *peer,
                                       uint64_t number)
{
    hws_session_key_t key = {.session_id = number};
    memcpy (key.client_id, peer->client_id.bytes, HWS_ID_SIZE);
    return hws_map_find (map, hws_bytes (&key, sizeof key));
}

hws_tombstone_t *hws_tombstone_of_session (const hws_engine_t *engine, const hws_peer_t *peer,
                                           uint64_t session_id)
{
    hws_map_node_t *const node = find_of_client (&engine->tombstones_by_session, peer, session_id);
    return node ? hws_container_of (node, hws_tombstone_t, by_session) : NULL;
}

hws_tombstone_t *hws_tombstone_of_open (const hws_engine_t *engine, const hws_peer_t *peer,
                                        uint64_t open_id)
{
    hws_map_node_t *const node = find_of_client (&engine->tombstones_by_open, peer, open_id);
    return node ? hws_container_of (node, hws_tombstone_t, by_open) : NULL;
}

hws_tombstone_t *hws_tombstone_of_sender (const hws_engine_t *engine, hws_handle_t handle,
                                          uint64_t sender_id)
{
    const hws_sender_key_t key = {.handle_lo = handle.lo, .sender_id = sender_id};
    hws_map_node_t *const node =
        hws_map_find (&engine->tombstones_by_sender, hws_bytes (&key, sizeof key));
    if (node == NULL || handle.hi != engine->options.broker_id) {
        return NULL;
    }
    return hws_container_of (node, hws_tombstone_t, by_sender);
}

hws_tombstone_t *hws_tombstone_of_handle (const hws_engine_t *engine, hws_handle_t handle)
{
    hws_map_node_t *const node =
        hws_map_find (&engine->tombstones_by_handle, hws_bytes (&handle, sizeof handle));
    return node ? hws_container_of (node, hws_tombstone_t, by_handle) : NULL;
}

void hws_tombstone_expire (hws_engine_t *engine)
{
    hws_tombstone_t *first;
    while ((first = oldest (engine)) && first->expires_at <= engine->now) {
        forget (engine, first);
    }
    arm (engine);
}

void hws_tombstone_clear (hws_engine_t *engine)
{
    hws_tombstone_t *first;
    while ((first = oldest (engine))) {
        forget (engine, first);
    }
    arm (engine);
}
