#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#define SILENT_INTERVALS 3
#define AWAY_MS          1000 /* a client without a connection that owns nothing is kept so long */
#define UNKNOWN_MS       1000

void model_init (model_t *self, const hws_engine_options_t *options)
{
    memset (self, 0, sizeof *self);
    self->options = *options;
    self->turn_at = self->young_until_at = HWS_NEVER;
    assert_true (options->limits.anchors <= MODEL_ANCHORS);
    assert_true (options->limits.seats_per_peer * options->limits.peers <= MODEL_SEATS);
    assert_true (options->limits.waiting_attaches <= MODEL_WAITING);
    assert_true (options->limits.tombstones <= MODEL_TOMBSTONES);
    assert_true (options->limits.cancel_orphans < MODEL_CANCELS);
    self->sweep_from = INT64_MIN;
}

/*  ---- What is said ---- */

__attribute__ ((format (printf, 4, 0))) static void add_line (model_t *self, int client,
                                                              uint32_t connection,
                                                              const char *format, va_list arguments)
{
    assert_true (self->line_count < MODEL_LINES);
    model_line_t *const line = &self->lines[self->line_count++];
    line->client = client;
    line->connection = connection;
    vsnprintf (line->text, sizeof line->text, format, arguments);
}

void model_say_to (model_t *self, int client, uint32_t connection, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    add_line (self, client, connection, format, arguments);
    va_end (arguments);
}

void model_say (model_t *self, int client, const char *format, ...)
{
    const model_client_t *const to = &self->clients[client];
    va_list arguments;
    va_start (arguments, format);
    if (!to->is_away) {
        add_line (self, client, to->connection, format, arguments);
    }
    va_end (arguments);
}

void model_refuse (model_t *self, int client, const char *verb, uint64_t id, const char *code)
{
    if (id) {
        model_say (self, client, "%s %" PRIu64 " Err %s", verb, id, code);
    } else {
        model_say (self, client, "ERROR Err %s", code);
    }
}

void model_ok (model_t *self, int client, const char *verb, uint64_t id)
{
    if (id) {
        model_say (self, client, "%s %" PRIu64 " Ok", verb, id);
    }
}

void model_fault (model_t *self, int client)
{
    model_fault_of (self, client, "protocol");
}

void model_fault_of (model_t *self, int client, const char *code)
{
    model_refuse (self, client, "", 0, code);
}

/*  ---- Time ---- */

static size_t count_clients (const model_t *self)
{
    size_t count = 0;
    for (int i = 0; i < MODEL_CLIENTS; i++) {
        count += self->clients[i].is_known;
    }
    return count;
}

static hws_ms_t shortest_interval (const model_t *self)
{
    uint64_t shortest = self->options.anchors.heartbeat_interval_ms;
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (self->anchors[i].heartbeat_interval_ms < shortest) {
            shortest = self->anchors[i].heartbeat_interval_ms;
        }
    }
    return (hws_ms_t) shortest;
}

/*  Clause 11, "A late broker". A turn is to come every half interval.  */
void model_turn (model_t *self, hws_ms_t now)
{
    const hws_ms_t interval = shortest_interval (self);
    self->now = now - self->skew;
    if (count_clients (self) > 0 && self->now - self->turn_at > interval / 2) {
        const hws_ms_t lateness = self->now - self->turn_at;
        self->skew += lateness + interval;
        self->now = now - self->skew;
        self->late_turns++;
    }
    self->turn_at = self->now + interval / 2;
    if (self->young_until_at == HWS_NEVER) {
        self->young_until_at = self->now + (hws_ms_t) self->options.anchors.orphan_ttl_ms;
    }
    self->line_count = self->grant_count = 0;
}

/*  How long the broker keeps a client that owns nothing after its last message.  */
static hws_ms_t patience (const model_t *self, const model_client_t *client)
{
    return client->is_away
               ? AWAY_MS
               : SILENT_INTERVALS * (hws_ms_t) self->options.anchors.heartbeat_interval_ms;
}

static hws_ms_t anchor_due (const model_t *self, const model_anchor_t *anchor)
{
    hws_ms_t at = anchor->is_present
                      ? self->clients[anchor->owner].heard_at +
                            SILENT_INTERVALS * (hws_ms_t) anchor->heartbeat_interval_ms
                      : anchor->away_at + (hws_ms_t) anchor->orphan_ttl_ms;
    if (anchor->unattached_timeout_ms.state == HWS_VALUE &&
        model_seats_of (self, anchor->count, false) == 0) {
        at = hws_time_min (at, anchor->empty_at + (hws_ms_t) anchor->unattached_timeout_ms.value);
    }
    return at;
}

/*  Calls `visit` with everything that has a time.  */
static void each_time (const model_t *self, void (*visit) (void *of, model_due_t due), void *of)
{
    for (int i = 0; i < MODEL_CLIENTS; i++) {
        if (self->clients[i].is_known) {
            visit (of, (model_due_t){MODEL_CLIENT_DUE, self->clients[i].looked_at, (uint64_t) i});
        }
    }
    for (size_t i = 0; i < self->seat_count; i++) {
        const model_seat_t *const seat = &self->seats[i];
        visit (of, (model_due_t){MODEL_SEAT_DUE, model_seat_due (self, seat), seat->routing_id});
    }
    for (size_t i = 0; i < self->waiting_count; i++) {
        if (self->waiting[i].is_over) {
            continue;
        }
        visit (of, (model_due_t){MODEL_WAITING_DUE, self->waiting[i].until_at, i});
    }
    for (size_t i = 0; i < self->anchor_count; i++) {
        const model_anchor_t *const anchor = &self->anchors[i];
        visit (of, (model_due_t){MODEL_ANCHOR_DUE, anchor_due (self, anchor), anchor->count});
    }
    visit (of, (model_due_t){MODEL_TOKEN_DUE, model_token_due (self), 0});
    if (self->is_young_due) {
        visit (of, (model_due_t){MODEL_YOUNG_DUE, self->young_until_at, 0});
    }
    if (self->tombstone_count > 0) {
        visit (of, (model_due_t){MODEL_TOMBSTONE_DUE, self->tombstones[0].expires_at, 0});
    }
}

static void note_earliest (void *of, model_due_t due)
{
    hws_ms_t *const at = of;
    *at = hws_time_min (*at, due.at);
}

hws_ms_t model_deadline (const model_t *self)
{
    hws_ms_t at = HWS_NEVER;
    each_time (self, note_earliest, &at);
    return hws_time_after (at, self->skew);
}

hws_ms_t model_wake_at (const model_t *self)
{
    const hws_ms_t at = model_deadline (self);
    return count_clients (self) > 0 ? hws_time_min (at, self->turn_at + self->skew) : at;
}

typedef struct {
    hws_ms_t now;
    model_due_t *due;
    size_t count;
} due_list_t;

static void note_due (void *of, model_due_t due)
{
    due_list_t *const list = of;
    if (due.at > list->now) {
        return;
    }
    assert_true (list->count < MODEL_DUE);
    size_t place = list->count++;
    for (; place > 0 && list->due[place - 1].at > due.at; place--) {
        list->due[place] = list->due[place - 1];
    }
    list->due[place] = due;
}

size_t model_due (const model_t *self, model_due_t due[MODEL_DUE])
{
    due_list_t list = {self->now, due, 0};
    each_time (self, note_due, &list);
    return list.count;
}

static bool owns_something (const model_t *self, int client)
{
    bool does = false;
    for (size_t i = 0; i < self->seat_count; i++) {
        does = does || self->seats[i].client == client;
    }
    for (size_t i = 0; i < self->anchor_count; i++) {
        does = does || self->anchors[i].owner == client;
    }
    for (size_t i = 0; i < self->waiting_count; i++) {
        does = does || self->waiting[i].client == client;
    }
    return does;
}

/*  What was said in this turn to a client that is now forgotten is not sent.  */
static void unsay (model_t *self, int client)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->line_count; i++) {
        if (self->lines[i].client != client) {
            self->lines[kept++] = self->lines[i];
        }
    }
    self->line_count = kept;
}

/*  Clause 4, rule 7. The broker looks again after that time, whether the client owns
 *  something by then or not.  */
static void look_at_client (model_t *self, int number)
{
    model_client_t *const client = &self->clients[number];
    const hws_ms_t at = client->heard_at + patience (self, client);
    if (at <= self->now && !owns_something (self, number)) {
        client->is_known = false;
        unsay (self, number);
        for (size_t i = 0; i < self->cancel_count; i++) {
            if (self->cancels[i].client == number) {
                self->cancels[i].client = -1;
            }
        }
    } else {
        client->looked_at = at > self->now ? at : self->now + patience (self, client);
    }
}

static void anchor_expire (model_t *self, model_anchor_t *anchor)
{
    const uint32_t count = anchor->count;
    if (anchor->unattached_timeout_ms.state == HWS_VALUE &&
        model_seats_of (self, count, false) == 0 &&
        anchor->empty_at + (hws_ms_t) anchor->unattached_timeout_ms.value <= self->now) {
        anchor->cause = HWS_CAUSE_EXPIRED;
        anchor->reason[0] = '\0';
        model_anchor_finish (self, count);
        return;
    }
    if (anchor->is_present) { /* the receiver is silent */
        self->clients[anchor->owner].owes_resync = true;
        model_anchor_leave (self, anchor);
        if (anchor->orphan_ttl_ms > 0) {
            return;
        }
    }
    model_anchor_close (self, count, HWS_CAUSE_ABANDONED, "");
}

static void forget_tombstones (model_t *self)
{
    size_t count = 0;
    while (count < self->tombstone_count && self->tombstones[count].expires_at <= self->now) {
        count++;
    }
    self->tombstone_count -= count;
    memmove (self->tombstones, self->tombstones + count,
             self->tombstone_count * sizeof *self->tombstones);
}

void model_act (model_t *self, const model_due_t *due)
{
    switch (due->kind) {
    case MODEL_SEAT_DUE:
        for (size_t i = 0; i < self->seat_count; i++) {
            if (self->seats[i].routing_id == due->which) {
                model_seat_expire (self, &self->seats[i]);
                return;
            }
        }
        return;
    case MODEL_WAITING_DUE:
        model_wait_over (self, due->which);
        return;
    case MODEL_ANCHOR_DUE:
        anchor_expire (self, model_anchor (self, (uint32_t) due->which));
        return;
    case MODEL_TOMBSTONE_DUE:
        forget_tombstones (self);
        return;
    case MODEL_TOKEN_DUE:
        model_token_sweep (self);
        return;
    case MODEL_YOUNG_DUE:
        model_young_over (self);
        return;
    case MODEL_CLIENT_DUE:
        look_at_client (self, (int) due->which);
        return;
    }
}

/*  ---- Connections ---- */

bool model_hears (const model_t *self, int client, uint32_t connection)
{
    return self->clients[client].is_known && self->clients[client].connection == connection;
}

static void say_resync (model_t *self, int client, uint32_t connection)
{
    model_say_to (self, client, connection, "RESYNC epoch=%u", self->options.epoch);
}

/*  What is heard never gets older, though a late turn sets the clock back.  */
static void hear (const model_t *self, model_client_t *client)
{
    if (client->heard_at < self->now) {
        client->heard_at = self->now;
    }
}

bool model_message (model_t *self, int number, uint32_t connection)
{
    model_client_t *const client = &self->clients[number];
    if (!model_hears (self, number, connection)) {
        say_resync (self, number, connection);
        return false;
    }
    hear (self, client);
    if (client->owes_resync) {
        say_resync (self, number, connection);
        client->owes_resync = client->is_away; /* then until it says HELLO */
    }
    return true;
}

void model_leave (model_t *self, int client)
{
    size_t kept = 0;
    for (size_t i = 0; i < self->waiting_count; i++) {
        if (self->waiting[i].client != client) {
            self->waiting[kept++] = self->waiting[i];
        }
    }
    self->waiting_count = kept;
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].client == client) {
            self->seats[i].is_away = self->seats[i].is_unclaimed = true;
            self->seats[i].use_number = 0;
            self->seats[i].want_bytes = 0;
            self->seats[i].is_said = self->seats[i].is_asked = false;
            self->seats[i].away_at = self->now;
        }
    }
    for (size_t i = 0; i < self->anchor_count; i++) {
        if (self->anchors[i].owner == client) {
            model_anchor_leave (self, &self->anchors[i]);
        }
    }
}

void model_hello (model_t *self, int number, uint32_t connection, uint64_t id, uint32_t protocol)
{
    model_client_t *const client = &self->clients[number];
    if (protocol != 1) {
        if (!model_hears (self, number, connection) || !client->is_away) {
            model_say_to (self, number, connection, "HELLO %" PRIu64 " Err protocol", id);
        }
        return;
    }
    if (!client->is_known) {
        if (count_clients (self) >= self->options.limits.peers) {
            model_say_to (self, number, connection, "HELLO %" PRIu64 " Err limit", id);
            return;
        }
        *client = (model_client_t){.is_known = true, .unknown_at = self->now - UNKNOWN_MS};
    } else {
        model_leave (self, number);
    }
    client->connection = connection;
    client->is_away = client->owes_resync = false;
    hear (self, client);
    client->looked_at = self->now + patience (self, client);
    model_say (self, number, "HELLO %" PRIu64 " Ok epoch=%u batch=%" PRIu64 " record=%" PRIu64, id,
               self->options.epoch, self->options.limits.batch_bytes,
               self->options.limits.record_bytes);
    if (self->is_draining) {
        model_say (self, number, "GOAWAY");
    }
}

void model_gone (model_t *self, int number, uint32_t connection)
{
    model_client_t *const client = &self->clients[number];
    if (!model_hears (self, number, connection) || client->is_away) {
        return;
    }
    model_leave (self, number);
    client->is_away = true;
    client->looked_at = self->now + patience (self, client);
}

void model_ping (model_t *self, int client)
{
    model_say (self, client, "PONG");
    for (size_t i = 0; i < self->seat_count; i++) {
        model_seat_t *const seat = &self->seats[i];
        if (seat->client != client || !seat->is_said || seat->is_granted) {
            continue;
        }
        if (!seat->has_gap) {
            seat->is_granted = seat->is_again = true;
        } else if (model_anchor (self, seat->anchor)->is_present) {
            model_rewind (self, seat);
        }
    }
}

void model_drain (model_t *self)
{
    self->is_draining = true;
    for (int i = 0; i < MODEL_CLIENTS; i++) {
        if (self->clients[i].is_known) {
            model_say (self, i, "GOAWAY");
        }
    }
}

void model_bye (model_t *self, int client, uint64_t id)
{
    for (size_t i = 0; i < self->seat_count; i++) {
        if (self->seats[i].client == client) {
            model_end (self, &self->seats[i], HWS_RUN_DROPPED, HWS_CAUSE_TRANSPORT, "", false);
        }
    }
    for (size_t i = 0; i < self->anchor_count;) {
        if (self->anchors[i].owner == client) {
            model_anchor_close (self, self->anchors[i].count, HWS_CAUSE_RECEIVER_CLOSED, "");
        } else {
            i++;
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < self->waiting_count; i++) {
        if (self->waiting[i].client != client) {
            self->waiting[kept++] = self->waiting[i];
        }
    }
    self->waiting_count = kept;
    model_ok (self, client, "BYE", id);
}

/*  ---- What there is ---- */

hws_handle_t model_handle (const model_t *self, uint32_t count)
{
    const bool is_exclusive = count < MODEL_OPENED && self->is_exclusive[count];
    return hws_handle_make (self->options.broker_id, is_exclusive ? HWS_KIND_SPSC : HWS_KIND_MPSC,
                            self->options.epoch, count);
}

hws_engine_counts_t model_counts (const model_t *self)
{
    size_t dedicated = 0;
    for (size_t i = 0; i < self->anchor_count; i++) {
        dedicated += self->anchors[i].is_dedicated;
    }
    return (hws_engine_counts_t){.peers = count_clients (self),
                                 .anchors = self->anchor_count,
                                 .seats = self->seat_count,
                                 .waiting = self->waiting_count,
                                 .tombstones = self->tombstone_count,
                                 .dedicated = dedicated,
                                 .cancel_orphans = self->cancel_count};
}
