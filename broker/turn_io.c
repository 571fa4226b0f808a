#include "broker/turn_io.h"

#include "broker/monitor_io.h"

#include <inttypes.h>
#include <stdio.h>

/*  What one turn takes of the shared front, and of the dedicated ones together. One message a
 *  wake costs five times the CPU, more than 64 gain nothing, and without a bound timers and
 *  other sockets starve.  */
#define TURN_MESSAGES 64
#define TURN_BYTES    ((size_t) 1048576)
#define TURN_FRAMES   4096 /* one message may have a million; it then takes several turns */

#define SEND_PASSES_MAX 16   /* what sending brings about is sent, so often in one turn */
#define BINDS_LOG_MS    1000 /* at most one line about fronts that are not bound in so long */

/*  ---- Reading ---- */

static void report_gone (hws_turn_t *self, hws_ms_t now)
{
    hws_address_t address;
    while (hws_connections_pop_gone (self->connections, &address)) {
        hws_engine_peer_gone (self->engine, now, &address);
    }
}

static void read_monitor (hws_turn_t *self, hws_ms_t now, hws_front_t *front)
{
    hws_front_read_monitor (front, now);
    report_gone (self, now);
}

static void take_message (hws_turn_t *self, hws_ms_t now, hws_front_t *front,
                          hws_message_t *message, const hws_address_t *from)
{
    const bool is_hello = hws_front_is_hello (message);
    if (is_hello) {
        read_monitor (self, now, front);
    }
    const int rc = hws_engine_recv (self->engine, now, from, message);
    if (rc != 0) {
        hws_log (self->log, HWS_LOG_ERROR, "event=message_lost reason=\"%s\"", hws_strerror (rc));
    }
    if (is_hello) {
        hws_front_tie (front, from);
    }
    hws_front_release (front, message);
}

/*  What may still be taken in a turn.  */
typedef struct {
    size_t messages;
    size_t bytes;
    size_t frames;
} budget_t;

static const budget_t s_turn = {TURN_MESSAGES, TURN_BYTES, TURN_FRAMES};

/*  Returns true when the front was read to its end, false when the budget is used up or there
 *  is no memory: then nothing more is to be read in this turn.  */
static bool drain_front (hws_turn_t *self, hws_ms_t now, hws_front_t *front, budget_t *budget)
{
    hws_message_t message;
    hws_address_t from;
    while (budget->messages > 0 && budget->bytes > 0) {
        const int rc = hws_front_recv (front, &budget->frames, &message, &from);
        if (rc != 1) {
            return rc == 0;
        }
        const size_t size = message.frame[0].size + message.frame[1].size;
        budget->messages--;
        budget->bytes -= size < budget->bytes ? size : budget->bytes;
        take_message (self, now, front, &message, &from);
    }
    return false;
}

/*  The dedicated fronts share one budget, in turn: together they weigh as much as the shared
 *  front, and one that has more than it may take waits for all others.  */
static void drain_fronts (hws_turn_t *self, hws_ms_t now)
{
    budget_t budget = s_turn;
    hws_front_t *front;
    hws_fronts_wake (self->fronts);
    while ((front = hws_fronts_next (self->fronts)) != NULL) {
        read_monitor (self, now, front);
        if (!drain_front (self, now, front, &budget)) {
            hws_fronts_keep (self->fronts, front);
            return;
        }
    }
}

/*  A connection that said nothing for too long is shut down by its descriptor, which must be
 *  its own still.  */
static void end_silent (hws_turn_t *self, hws_ms_t now)
{
    if (hws_connections_silent_at (self->connections) <= now) {
        hws_front_read_monitor (self->front, now);
        hws_fronts_read_monitors (self->fronts, now);
        hws_monitor_end_silent (self->connections, now);
    }
}

void hws_turn_hear (hws_turn_t *self, hws_ms_t now)
{
    read_monitor (self, now, self->front);
}

void hws_turn_read (hws_turn_t *self, hws_ms_t now)
{
    budget_t budget = s_turn;
    end_silent (self, now);
    self->has_more = !drain_front (self, now, self->front, &budget);
    drain_fronts (self, now);
    hws_fronts_reap (self->fronts, now);
    report_gone (self, now);
}

/*  ---- Effects ---- */

static int send_effect (hws_turn_t *self, hws_effect_t *effect)
{
    hws_front_t *const front =
        effect->to.front == 0 ? self->front : hws_fronts_find (self->fronts, effect->to.front);
    if (!front) {
        hws_front_dispose (effect);
        return HWS_EUNREACHABLE;
    }
    return hws_front_send (front, effect);
}

static void do_send (hws_turn_t *self, hws_ms_t now, hws_effect_t *effect)
{
    const int rc = send_effect (self, effect);
    if (rc == HWS_EWOULD_BLOCK) {
        hws_engine_refused (self->engine, now, effect);
        hws_front_dispose (effect); /* what the engine did not want back */
    } else if (rc != 0) {
        hws_engine_peer_gone (self->engine, now, &effect->to);
    }
}

static void do_bind (hws_turn_t *self, hws_ms_t now, uint32_t number)
{
    hws_endpoint_t endpoints[HWS_FRONT_ENDPOINTS_MAX];
    hws_front_fault_t fault;
    size_t count = 0;
    const int rc = hws_fronts_bind (self->fronts, number, fault);
    if (rc == 0) {
        const hws_front_t *const front = hws_fronts_find (self->fronts, number);
        const char *endpoint;
        while ((endpoint = hws_front_endpoint (front, count)) != NULL) {
            snprintf (endpoints[count++], sizeof *endpoints, "%s", endpoint);
        }
    } else if (now >= self->binds_log_at) {
        hws_log (self->log, HWS_LOG_WARN, "event=bind_failed front=%" PRIu32 " reason=\"%s\"",
                 number, fault);
        self->binds_log_at = hws_time_after (now, BINDS_LOG_MS);
    }
    hws_engine_bound (self->engine, now, number, rc, endpoints, count, fault);
}

static void do_effect (hws_turn_t *self, hws_ms_t now, hws_effect_t *effect)
{
    switch (effect->kind) {
    case HWS_EFFECT_SEND:
        do_send (self, now, effect);
        return;
    case HWS_EFFECT_LOG:
        hws_log_bytes (self->log, effect->level, hws_bytes (effect->data, effect->size));
        break;
    case HWS_EFFECT_BIND:
        do_bind (self, now, effect->to.front);
        break;
    case HWS_EFFECT_UNBIND:
        hws_fronts_unbind (self->fronts, effect->to.front, now);
        break;
    case HWS_EFFECT_RELEASE:
        break;
    }
    hws_front_dispose (effect);
}

/*  Returns false when there may be more to send.  */
static bool do_effects (hws_turn_t *self, hws_ms_t now)
{
    for (int pass = 0; pass < SEND_PASSES_MAX; pass++) {
        hws_effect_t effect;
        bool is_done = true;
        hws_engine_flush (self->engine);
        while (hws_engine_pop (self->engine, &effect)) {
            is_done = false;
            do_effect (self, now, &effect);
        }
        if (is_done) {
            return true;
        }
    }
    return false;
}

/*  Sending may take in what the descriptor told of.  */
bool hws_turn_act (hws_turn_t *self, hws_ms_t now)
{
    const bool is_all_sent = do_effects (self, now);
    hws_fronts_settle (self->fronts);
    self->has_more = self->has_more || hws_front_is_readable (self->front);
    return is_all_sent;
}

hws_ms_t hws_turn_wake_at (const hws_turn_t *self, hws_ms_t now)
{
    if (self->has_more) {
        return now;
    }
    return hws_time_min (hws_connections_silent_at (self->connections),
                         hws_fronts_wake_at (self->fronts, now));
}
