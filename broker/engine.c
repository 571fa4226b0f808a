#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/young.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>

/*  ---- Life ---- */

static hws_map_t *map_at (hws_engine_t *self, size_t i)
{
    hws_map_t *const maps[] = {&self->peers_by_client,      &self->peers_by_address,
                               &self->anchors_by_handle,    &self->anchors_by_name,
                               &self->seats_by_session,     &self->seats_by_sender,
                               &self->seats_by_routing,     &self->tombstones_by_session,
                               &self->tombstones_by_open,   &self->tombstones_by_sender,
                               &self->tombstones_by_handle, &self->anchors_by_open,
                               &self->waiting_by_session,   &self->lines};
    return i < sizeof maps / sizeof *maps ? maps[i] : NULL;
}

int hws_engine_new (hws_engine_t **self_p, const hws_engine_options_t *options)
{
    hws_engine_t *self = calloc (1, sizeof *self);
    if (self == NULL) {
        return HWS_ENO_MEMORY;
    }
    self->options = *options;
    self->pulse_at = HWS_NEVER;
    self->shortest_interval_ms = options->anchors.heartbeat_interval_ms;
    self->tombstone_deadline.kind = HWS_DEADLINE_TOMBSTONES;
    self->cancel_deadline.kind = HWS_DEADLINE_CANCELS;
    self->young_deadline.kind = HWS_DEADLINE_YOUNG;
    self->young_until_at = HWS_NEVER;
    hws_peer_init_nobody (self, &self->nobody);
    self->scratch = malloc (HWS_CONTROL_SIZE_MAX);
    const hws_cancels_options_t cancels = {.is_lasting = true,
                                           .hash_key = {{options->secret[1], options->secret[0]}}};
    bool is_good = hws_cancels_init (&self->cancels, &cancels) == 0 && self->scratch != NULL;
    for (size_t i = 0; map_at (self, i); i++) {
        const hws_hash_key_t key = {{options->secret[0], options->secret[1] + i}};
        is_good = hws_map_init (map_at (self, i), key) == 0 && is_good;
    }
    if (!is_good) {
        hws_engine_destroy (&self);
        return HWS_ENO_MEMORY;
    }
    hws_tokens_configure (self);
    *self_p = self;
    return 0;
}

static void drop_loose (hws_engine_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->loose))) {
        hws_outgoing_t *const loose = hws_container_of (link, hws_outgoing_t, link);
        free (loose->effect.data);
        free (loose);
    }
}

void hws_engine_destroy (hws_engine_t **self_p)
{
    hws_engine_t *const self = *self_p;
    if (self == NULL) {
        return;
    }
    hws_link_t *link;
    while ((link = self->anchors.head)) {
        hws_anchor_free (self, hws_container_of (link, hws_anchor_t, in_engine));
    }
    hws_map_node_t *node;
    while (self->peers_by_client.buckets && (node = hws_map_any (&self->peers_by_client))) {
        hws_peer_free (self, hws_container_of (node, hws_peer_t, by_client_id));
    }
    hws_tombstone_clear (self);
    hws_cancels_fini (&self->cancels);
    drop_loose (self);
    for (size_t i = 0; map_at (self, i); i++) {
        hws_map_fini (map_at (self, i));
    }
    free (self->scratch);
    free (self);
    *self_p = NULL;
}

void hws_engine_abandon (hws_engine_t *self)
{
    for (size_t i = 0; i < self->peers_by_client.bucket_count; i++) {
        for (hws_map_node_t *node = self->peers_by_client.buckets[i]; node; node = node->next) {
            hws_out_clear (self, &hws_container_of (node, hws_peer_t, by_client_id)->out);
        }
    }
}

void hws_engine_configure (hws_engine_t *self, const hws_anchor_defaults_t *anchors,
                           const hws_limits_t *limits)
{
    self->options.anchors = *anchors;
    self->options.limits = *limits;
    hws_tokens_configure (self);
    hws_engine_measure (self);
}

void hws_engine_measure (hws_engine_t *self)
{
    const hws_ms_t by_default = (hws_ms_t) self->options.anchors.heartbeat_interval_ms;
    self->shortest_interval_ms =
        (uint64_t) hws_time_min (by_default, hws_heap_first_at (&self->intervals));
}

/*  ---- Time ---- */

/*  Begins a turn. A turn comes within half an interval of the one before; one that is
 *  later than that by more than half an interval moves every deadline on, by the
 *  lateness and one interval (docs/protocol.md, "Liveness", "A late broker").  */
static void begin_turn (hws_engine_t *self, hws_ms_t now_ms)
{
    const hws_ms_t interval = (hws_ms_t) self->shortest_interval_ms;
    self->now = now_ms - self->skew;
    if (self->peers_by_client.count > 0 && self->now - self->pulse_at > interval / 2) {
        self->skew += self->now - self->pulse_at + interval;
        self->now = now_ms - self->skew;
        self->stats.late_turns++;
    }
    self->pulse_at = self->now + interval / 2;
    hws_young_begin (self);
}

static void expire_one (hws_engine_t *self, hws_deadline_t *deadline)
{
    switch (deadline->kind) {
    case HWS_DEADLINE_PEER:
        hws_peer_expire (self, hws_container_of (deadline, hws_peer_t, silence));
        return;
    case HWS_DEADLINE_FULL: {
        hws_out_t *const out = hws_container_of (deadline, hws_out_t, retry);
        hws_peer_t *const peer = hws_container_of (out, hws_peer_t, out);
        if (!hws_out_retry (self, peer)) {
            hws_engine_log (self, HWS_LOG_WARN, "event=full peer=%s", peer->network_address);
            peer->owes_resync = true;
            hws_peer_lose (self, peer);
        }
        return;
    }
    case HWS_DEADLINE_ANCHOR:
        hws_anchor_expire (self, hws_container_of (deadline, hws_anchor_t, deadline));
        return;
    case HWS_DEADLINE_SEAT:
        hws_seat_expire (self, hws_container_of (deadline, hws_seat_t, deadline));
        return;
    case HWS_DEADLINE_WAITING:
        hws_waiting_expire (self, hws_container_of (deadline, hws_waiting_t, deadline));
        return;
    case HWS_DEADLINE_TOMBSTONES:
        hws_tombstone_expire (self);
        return;
    case HWS_DEADLINE_CANCELS:
        hws_tokens_expire (self);
        return;
    case HWS_DEADLINE_YOUNG:
        hws_young_expire (self);
        return;
    }
}

void hws_engine_expire (hws_engine_t *self, hws_ms_t now_ms)
{
    begin_turn (self, now_ms);
    hws_timer_t *timer;
    while ((timer = hws_heap_pop_due (&self->deadlines, self->now))) {
        expire_one (self, hws_container_of (timer, hws_deadline_t, timer));
    }
}

hws_ms_t hws_engine_wake_at (const hws_engine_t *self)
{
    hws_ms_t at = hws_heap_first_at (&self->deadlines);
    if (self->peers_by_client.count > 0) {
        at = hws_time_min (at, self->pulse_at);
    }
    return hws_time_after (at, self->skew);
}

/*  ---- Messages ---- */

static void handle_request (hws_engine_t *self, hws_peer_t *peer, const hws_control_t *message)
{
    switch (message->verb) {
    case HWS_VERB_OPEN:
        hws_on_open (self, peer, message);
        return;
    case HWS_VERB_ATTACH:
        hws_on_attach (self, peer, message);
        return;
    case HWS_VERB_DETACH:
        hws_on_detach (self, peer, message);
        return;
    case HWS_VERB_CANCEL:
        hws_on_cancel (self, peer, message);
        return;
    case HWS_VERB_CANCEL_TOKEN:
        hws_on_cancel_token (self, peer, message);
        return;
    case HWS_VERB_RESERVE_TOKEN:
        hws_on_reserve_token (self, peer, message);
        return;
    case HWS_VERB_PING:
        hws_on_ping (self, peer, message);
        return;
    case HWS_VERB_PONG:
        return;
    case HWS_VERB_BYE:
        hws_on_bye (self, peer, message);
        return;
    case HWS_VERB_HELLO:
    case HWS_VERB_STREAM_CANCEL:
    case HWS_VERB_ANCHOR_CLOSED:
    case HWS_VERB_RESYNC:
    case HWS_VERB_GOAWAY:
    case HWS_VERB_ERROR:
    case HWS_VERB_COUNT:
        break;
    }
    self->stats.protocol_errors++;
    hws_engine_refuse (self, peer, message, HWS_EUNKNOWN_VERB, "this broker does not serve %s",
                       hws_verb_word (message->verb));
}

static void send_resync (hws_engine_t *self, const hws_address_t *to)
{
    const hws_control_t resync = {.verb = HWS_VERB_RESYNC, .as.epoch = self->options.epoch};
    hws_engine_send_stranger (self, to, &resync);
}

/*  Any message shows that its client lives; a client that was taken for away, as a
 *  receiver or for it did not read, is told to say everything again.  */
static void note_alive (hws_engine_t *self, hws_peer_t *peer)
{
    hws_peer_heard (self, peer);
    if (!peer->owes_resync) {
        return;
    }
    if (peer->state == HWS_PEER_AWAY) {
        send_resync (self, &peer->address); /* may be refused again: until its HELLO */
    } else {
        peer->owes_resync = false;
        const hws_control_t resync = {.verb = HWS_VERB_RESYNC, .as.epoch = self->options.epoch};
        hws_out_control (self, peer, &resync);
    }
}

static int handle_control (hws_engine_t *self, const hws_address_t *from,
                           const hws_message_t *message)
{
    hws_control_t request;
    hws_control_fault_t fault = "";
    const int rc = hws_control_decode (message->frame[0], message->frame[1], &request, fault);
    hws_peer_t *const peer = hws_peer_at (self, from);
    const bool is_hello =
        rc == 0 && request.verb == HWS_VERB_HELLO && request.form == HWS_FORM_REQUEST;
    if (is_hello) {
        hws_on_hello (self, from, &request, message);
        return 0;
    }
    const int code = rc == HWS_EBAD_REQUEST || rc == HWS_EUNKNOWN_VERB ? rc
                     : rc != 0                                         ? HWS_EPROTOCOL
                                                                       : 0;
    self->stats.protocol_errors += rc != 0 && rc != HWS_ENO_MEMORY;
    if (peer == NULL && rc != 0 && rc != HWS_ENO_MEMORY && request.verb == HWS_VERB_HELLO) {
        hws_hello_refuse (self, from, &request, code, fault); /* else it said the same again */
        return 0;
    }
    if (peer == NULL) {
        send_resync (self, from);
        return 0;
    }
    note_alive (self, peer);
    if (rc == HWS_ENO_MEMORY) {
        peer->owes_resync = true;
        return rc;
    }
    if (rc != 0) {
        hws_engine_refuse (self, peer, &request, code, "%s", fault);
    } else if (request.form != HWS_FORM_REQUEST) {
        hws_engine_fault (self, peer, HWS_EPROTOCOL, "a broker sends no requests to answer");
    } else {
        handle_request (self, peer, &request);
    }
    return 0;
}

static void handle_batch (hws_engine_t *self, const hws_address_t *from, hws_message_t *message)
{
    hws_peer_t *const peer = hws_peer_at (self, from);
    if (peer == NULL) {
        send_resync (self, from);
        return;
    }
    note_alive (self, peer);
    if (message->frame[0].size > self->options.limits.batch_bytes) {
        hws_engine_fault (self, peer, HWS_EPROTOCOL, "a batch is larger than batch_bytes");
        return;
    }
    hws_batch_t batch;
    if (hws_batch_open (&batch, message->frame[0]) != 0) {
        hws_engine_fault (self, peer, HWS_EPROTOCOL, "a batch is malformed");
        return;
    }
    switch (batch.kind) {
    case HWS_BATCH_DATA:
        hws_on_data (self, peer, message, &batch);
        return;
    case HWS_BATCH_ACK:
        hws_on_ack (self, peer, &batch);
        return;
    case HWS_BATCH_WINDOW:
        hws_on_window (self, peer, &batch);
        return;
    case HWS_BATCH_POSITION:
        hws_on_position (self, peer, &batch);
        return;
    case HWS_BATCH_GRANT:
        hws_engine_fault (self, peer, HWS_EPROTOCOL, "this kind of batch is not expected");
        return;
    default:
        return; /* of the upper half: ignored */
    }
}

int hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                     hws_message_t *message)
{
    begin_turn (self, now_ms);
    self->stats.messages_in++;
    self->stats.bytes_in += message->frame[0].size + message->frame[1].size;
    int rc = 0;
    if (message->frame_count == 1 && message->frame[0].size > 0 &&
        message->frame[0].data[0] == HWS_BATCH_MARK) {
        handle_batch (self, from, message);
    } else if (message->frame_count == 2 && message->frame[0].size > 0 &&
               message->frame[0].data[0] >= 'A' && message->frame[0].data[0] <= 'Z') {
        rc = handle_control (self, from, message);
    } else {
        hws_peer_t *const peer = hws_peer_at (self, from);
        if (peer) {
            note_alive (self, peer);
            hws_engine_fault (self, peer, HWS_EPROTOCOL, "neither a control message nor a batch");
        } else {
            self->stats.protocol_errors++;
            send_resync (self, from);
        }
    }
    return rc;
}

void hws_engine_peer_gone (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *address)
{
    begin_turn (self, now_ms);
    hws_peer_t *const peer = hws_peer_at (self, address);
    if (peer) {
        hws_peer_lose (self, peer);
    }
}

void hws_engine_refused (hws_engine_t *self, hws_ms_t now_ms, hws_effect_t *effect)
{
    begin_turn (self, now_ms);
    hws_peer_t *const peer = hws_peer_at (self, &effect->to);
    if (peer && peer->state == HWS_PEER_CONNECTED) {
        hws_out_refused (self, peer, effect);
    }
}

void hws_engine_bound (hws_engine_t *self, hws_ms_t now_ms, uint32_t front, int rc,
                       const hws_endpoint_t *endpoints, size_t endpoint_count, const char *text)
{
    begin_turn (self, now_ms);
    hws_dedicated_bound (self, front, rc, endpoints, endpoint_count, text);
}

void hws_engine_flush (hws_engine_t *self)
{
    hws_link_t *link;
    while ((link = self->opened.head)) {
        hws_out_t *const out = hws_container_of (link, hws_out_t, opened);
        hws_out_close_batch (self, hws_container_of (out, hws_peer_t, out));
    }
}

bool hws_engine_pop (hws_engine_t *self, hws_effect_t *effect)
{
    hws_link_t *link = hws_list_pop (&self->loose);
    if (link) {
        hws_outgoing_t *const loose = hws_container_of (link, hws_outgoing_t, link);
        *effect = loose->effect;
        free (loose);
        return true;
    }
    while ((link = self->ready.head)) {
        hws_out_t *const out = hws_container_of (link, hws_out_t, ready);
        if (hws_out_pop (self, hws_container_of (out, hws_peer_t, out), effect)) {
            return true;
        }
        hws_list_remove (link);
    }
    return false;
}

/*  ---- The shell's questions ---- */

void hws_engine_drain (hws_engine_t *self, hws_ms_t now_ms, const char *reason)
{
    begin_turn (self, now_ms);
    self->is_draining = true;
    hws_text_copy (self->leaving, sizeof self->leaving, reason);
    for (size_t i = 0; i < self->peers_by_client.bucket_count; i++) {
        for (hws_map_node_t *node = self->peers_by_client.buckets[i]; node; node = node->next) {
            hws_engine_say_leaving (self, hws_container_of (node, hws_peer_t, by_client_id));
        }
    }
}

bool hws_engine_is_drained (const hws_engine_t *self)
{
    for (size_t i = 0; i < self->peers_by_client.bucket_count; i++) {
        for (hws_map_node_t *node = self->peers_by_client.buckets[i]; node; node = node->next) {
            if (hws_container_of (node, hws_peer_t, by_client_id)->out.queue.count > 0) {
                return false;
            }
        }
    }
    return self->loose.count == 0;
}

const hws_engine_stats_t *hws_engine_stats (const hws_engine_t *self)
{
    return &self->stats;
}

hws_engine_counts_t hws_engine_counts (const hws_engine_t *self)
{
    return (hws_engine_counts_t){.peers = self->peers_by_client.count,
                                 .anchors = self->anchors.count,
                                 .dedicated = self->dedicated.count,
                                 .seats = self->seats_by_routing.count,
                                 .waiting = self->waiting.count,
                                 .tombstones = self->tombstones.count,
                                 .cancel_orphans = hws_cancels_orphan_count (&self->cancels)};
}
