/*  A session's liveness: it says PING when it has said or heard nothing for half an interval, and
 *  gives a connection up that brings nothing for two (docs/protocol.md, "Liveness"). The interval
 * is the smallest of its streams'.
 */
#include "client/session_part.h"

/*  The smaller of two intervals, of which 0 is none.  */
static uint64_t least_interval (uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/*  What has ended asks for no heartbeats, though its owner may keep it for long.  */
static void find_interval (hws_session_t *self)
{
    uint64_t least = 0;
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        const hws_session_sender_t *const sender =
            hws_container_of (link, hws_session_sender_t, link);
        if (sender->tx.state != HWS_TX_ENDED) {
            least = least_interval (least, sender->interval_ms);
        }
    }
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        const hws_session_receiver_t *const receiver =
            hws_container_of (link, hws_session_receiver_t, link);
        if (receiver->rx.state != HWS_RX_CLOSED) {
            least = least_interval (least, receiver->interval_ms);
        }
    }
    self->interval_ms = least;
}

static hws_ms_t interval (const hws_session_t *self)
{
    return self->interval_ms ? (hws_ms_t) self->interval_ms : HWS_INTERVAL_DEFAULT;
}

static hws_ms_t half_interval (const hws_session_t *self)
{
    return (interval (self) + 1) / 2;
}

void hws_session_set_pulse (hws_session_t *self)
{
    const hws_ms_t half = half_interval (self);
    const hws_ms_t quiet_at = hws_time_min (self->heard_at, self->sent_at) + half;
    const hws_ms_t ping_at = self->pinged_at + half;
    const hws_ms_t dead_at = self->heard_at + 2 * interval (self);
    self->pulse_at = hws_time_min (quiet_at > ping_at ? quiet_at : ping_at, dead_at);
    hws_heap_set (&self->timers, &self->pulse.timer, self->pulse_at);
}

void hws_session_add_interval (hws_session_t *self, uint64_t interval_ms)
{
    const uint64_t least = least_interval (self->interval_ms, interval_ms);
    if (least != self->interval_ms) {
        self->interval_ms = least;
        hws_session_set_pulse (self);
    }
}

/*  Two silent intervals end the connection, but a pulse that comes late proves only that
 *  this process slept: then what the broker said meanwhile has to be read first.  */
void hws_session_pulse (hws_session_t *self, hws_ms_t now)
{
    const hws_ms_t lateness = now - self->pulse_at;
    if (lateness > half_interval (self)) {
        self->heard_at = hws_time_min (now, self->heard_at + lateness + interval (self));
    }
    if (now - self->heard_at >= 2 * interval (self)) {
        hws_session_lost (self, now, "the broker was silent for two intervals", false);
        return;
    }
    find_interval (self);
    const hws_ms_t half = half_interval (self);
    if (now - hws_time_min (self->heard_at, self->sent_at) >= half &&
        now - self->pinged_at >= half) {
        hws_session_say (self, &(hws_control_t){.verb = HWS_VERB_PING, .form = HWS_FORM_REQUEST});
        self->pinged_at = now;
    }
    hws_session_set_pulse (self);
}
