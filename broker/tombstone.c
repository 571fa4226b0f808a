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

/*  Whether anything is to be remembered.  */
static bool has_room (const hws_engine_t *engine)
{
    return engine->options.limits.tombstones > 0;
}

static void file (hws_engine_t *engine, hws_tombstone_t *self)
{
    while (engine->tombstones.count > 0 &&
           engine->tombstones.count >= engine->options.limits.tombstones) {
        forget (engine, oldest (engine));
    }
    self->expires_at = engine->now + (hws_ms_t) engine->options.anchors.orphan_ttl_ms;
    hws_list_append (&engine->tombstones, &self->in_engine);
    arm (engine); /* the oldest may be another now */
}

/*  A stream's; under nobody, the first that goes by a session id keeps it.  */
static void file_stream (hws_engine_t *engine, hws_tombstone_t *self, bool is_nobodys)
{
    const hws_bytes_t key = hws_bytes (&self->owner_key, sizeof self->owner_key);
    file (engine, self);
    if (!is_nobodys || hws_map_find (&engine->tombstones_by_session, key) == NULL) {
        hws_map_insert (&engine->tombstones_by_session, &self->by_session, key);
    }
    hws_map_insert (&engine->tombstones_by_sender, &self->by_sender,
                    hws_bytes (&self->sender_key, sizeof self->sender_key));
}

void hws_tombstone_of_seat (hws_engine_t *engine, hws_seat_t *seat)
{
    _Static_assert (sizeof (hws_tombstone_t) <= sizeof (hws_seat_t), "it takes the seat's place");

    if (!has_room (engine)) {
        hws_seat_free (engine, seat);
        return;
    }
    hws_tombstone_t rest = {.ending = seat->ending,
                            .cause = seat->cause,
                            .acked_seq = seat->acked_seq,
                            .acked_bytes = seat->acked_bytes,
                            .handle = seat->anchor->handle,
                            .owner_key.number = seat->session_id,
                            .sender_key = {seat->anchor->handle.lo, seat->sender_id},
                            .reason = seat->reason};
    memcpy (rest.owner_key.client_id, seat->peer->client_id.bytes, HWS_ID_SIZE);
    seat->reason = NULL;
    const bool is_nobodys = seat->peer == &engine->nobody;
    hws_seat_take_out (engine, seat);
    void *const smaller = realloc (seat, sizeof rest);
    hws_tombstone_t *const self = smaller ? smaller : (void *) seat;
    *self = rest;
    file_stream (engine, self, is_nobodys);
}

void hws_tombstone_of_position (hws_engine_t *engine, hws_handle_t handle,
                                const hws_position_t *position, hws_tombstone_t *self)
{
    if (!has_room (engine)) {
        free (self);
        return;
    }
    *self = (hws_tombstone_t){.ending = position->type,
                              .cause = position->cause,
                              .acked_seq = position->acked_seq,
                              .acked_bytes = position->acked_bytes,
                              .handle = handle,
                              .owner_key.number = position->seat_key,
                              .sender_key = {handle.lo, position->sender_id}};
    memcpy (self->owner_key.client_id, engine->nobody.client_id.bytes, HWS_ID_SIZE);
    file_stream (engine, self, true);
}

static void file_open (hws_engine_t *engine, const hws_anchor_t *anchor, hws_tombstone_t *self)
{
    file (engine, self);
    self->ending = HWS_RUN_CANCELLED;
    self->handle = anchor->handle;
    memcpy (self->owner_key.client_id, anchor->owner->client_id.bytes, HWS_ID_SIZE);
    self->owner_key.number = anchor->open_id;
    hws_map_insert (&engine->tombstones_by_open, &self->by_open,
                    hws_bytes (&self->owner_key, sizeof self->owner_key));
}

void hws_tombstone_of_owner (hws_engine_t *engine, const hws_anchor_t *anchor,
                             hws_tombstone_t *self)
{
    if (!has_room (engine)) {
        free (self);
        return;
    }
    self->cause = HWS_CAUSE_SUPERSEDED;
    file_open (engine, anchor, self);
}

void hws_tombstone_of_anchor (hws_engine_t *engine, hws_anchor_t *anchor)
{
    if (!has_room (engine)) {
        return;
    }
    hws_tombstone_t *const self = anchor->tombstone;
    self->reason = anchor->reason;
    anchor->tombstone = NULL;
    anchor->reason = NULL;
    self->cause = anchor->cause;
    file_open (engine, anchor, self);
    hws_map_insert (&engine->tombstones_by_handle, &self->by_handle,
                    hws_bytes (&self->handle, sizeof self->handle));
}

static hws_map_node_t *find_of_client (const hws_map_t *map, const hws_peer_t *peer,
                                       uint64_t number)
{
    hws_owner_key_t key = {.number = number};
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
