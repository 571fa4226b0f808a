#include "client/session.h"

#include "base/assert.h"
#include "client/session_part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REFUSED = -1,
    GOAWAY_TEXT_MAX = 900,
    BATCH_BYTES_MAX = 1 << 30 /* of our buffer, whatever the broker would take */
};

/*  docs/protocol.md, "State tables".  */
static const int8_t states[][HWS_SESSION_GONE + 1] = {
    [HWS_SESSION_EVENT_RETRY] = {HWS_SESSION_GREETING, REFUSED, REFUSED, REFUSED, REFUSED},
    [HWS_SESSION_EVENT_WELCOMED] = {REFUSED, HWS_SESSION_UP, REFUSED, REFUSED, REFUSED},
    [HWS_SESSION_EVENT_LOST] = {HWS_SESSION_DOWN, HWS_SESSION_DOWN, HWS_SESSION_DOWN,
                                HWS_SESSION_GONE, REFUSED},
    [HWS_SESSION_EVENT_RESYNC] = {REFUSED, REFUSED, HWS_SESSION_GREETING, HWS_SESSION_GONE,
                                  REFUSED},
    [HWS_SESSION_EVENT_LEAVE] = {HWS_SESSION_GONE, HWS_SESSION_GONE, HWS_SESSION_LEAVING, REFUSED,
                                 REFUSED},
    [HWS_SESSION_EVENT_BYE_ANSWERED] = {REFUSED, REFUSED, REFUSED, HWS_SESSION_GONE, REFUSED},
};

static bool advance (hws_session_t *self, hws_session_event_t event)
{
    const int8_t state = states[event][self->state];
    if (state == REFUSED) {
        return false;
    }
    self->state = (hws_session_state_t) state;
    return true;
}

void hws_session_set_error (hws_session_t *self, int code, const char *reason)
{
    snprintf (self->error, sizeof self->error, "%s", reason[0] ? reason : hws_strerror (code));
}

/*  ---- The connection ---- */

static void say_hello (hws_session_t *self, hws_ms_t now)
{
    hws_control_t control = {.verb = HWS_VERB_HELLO};
    hws_hello_t *const hello = &control.as.hello;
    hello->client_id = self->options.client_id;
    hello->protocol = HWS_PROTOCOL_VERSION;
    memcpy (hello->client_name, self->options.name, sizeof hello->client_name);
    snprintf (hello->client_version, sizeof hello->client_version, "%s", HWS_VERSION);
    hws_session_ask (self, now, &self->hello, &control, HWS_HELLO_WAIT_MS);
}

/*  Says HELLO on a connection that stands, after a RESYNC. One that asks for it again and
 *  again does not get it at full speed.  */
static void greet_again (hws_session_t *self, hws_ms_t now)
{
    if (now < self->again_at) {
        hws_heap_set (&self->timers, &self->retry.timer, self->again_at);
        return;
    }
    self->again_at = hws_time_after (now, HWS_AGAIN_MS);
    say_hello (self, now);
}

static void connect_now (hws_session_t *self, hws_ms_t now)
{
    if (!advance (self, HWS_SESSION_EVENT_RETRY)) {
        return;
    }
    self->is_connect_due = true;
    self->stats.connects++;
    say_hello (self, now);
    for (hws_link_t *link = self->senders.head; link && !self->was_up; link = link->next) {
        hws_session_attach_behind_hello (self, now,
                                         hws_container_of (link, hws_session_sender_t, link));
    }
}

/*  The back-off doubles; a random half of it is jitter.  */
static hws_ms_t next_backoff (hws_session_t *self)
{
    const hws_ms_t length = self->backoff_ms;
    const hws_ms_t longest = self->was_up ? HWS_BACKOFF_MAX_MS : HWS_BACKOFF_NEW_MS;
    self->backoff_ms = hws_time_min (2 * length, longest);
    const uint64_t half = (uint64_t) length / 2;
    return (hws_ms_t) (half + hws_random_below (&self->random, half + 1));
}

void hws_session_lost (hws_session_t *self, hws_ms_t now, const char *why, bool is_next)
{
    const bool was_connected = self->state != HWS_SESSION_DOWN;
    const bool was_up = self->state == HWS_SESSION_UP;
    if (!was_connected || !advance (self, HWS_SESSION_EVENT_LOST)) {
        return;
    }
    snprintf (self->error, sizeof self->error, "%s", why);
    self->is_disconnect_due = !self->is_connect_due;
    self->is_connect_due = self->is_word_lost = false;
    hws_session_drop_outbox (self);
    hws_session_settle (self, &self->hello);
    hws_session_settle (self, &self->bye);
    hws_heap_clear (&self->timers, &self->pulse.timer);
    self->is_broker_leaving = false;
    if (self->state == HWS_SESSION_GONE) {
        return;
    }
    hws_session_suspend (self, now, was_up);
    if (self->was_up && !self->is_lost_since_up) {
        self->is_lost_since_up = true;
        if (self->options.give_up_ms >= 0) {
            hws_heap_set (&self->timers, &self->give_up.timer,
                          hws_time_after (now, self->options.give_up_ms));
        }
    }
    if (self->was_up) {
        hws_session_forsake (self);
    }
    const hws_ms_t wait_ms = is_next ? 0 : next_backoff (self);
    hws_heap_set (&self->timers, &self->retry.timer, now + wait_ms);
}

/*  HELLO was answered. What was there before goes on when it is the same broker, also in another
 *  epoch; at another broker it is lost.  */
static void welcomed (hws_session_t *self, hws_ms_t now, const hws_hello_ok_t *answer)
{
    if (!advance (self, HWS_SESSION_EVENT_WELCOMED)) {
        return;
    }
    const bool is_another = self->was_up && answer->broker_id != self->broker_id;
    const bool is_new_epoch = self->was_up && !is_another && answer->epoch != self->epoch;
    hws_heap_clear (&self->timers, &self->give_up.timer);
    self->is_lost_since_up = false;
    self->was_up = true;
    self->backoff_ms = HWS_BACKOFF_MIN_MS;
    self->is_broker_leaving &= !is_another && !is_new_epoch;
    self->broker_id = answer->broker_id;
    self->epoch = answer->epoch;
    self->error[0] = '\0';
    self->early_records = answer->early_records;
    self->early_bytes = answer->early_bytes;
    self->batch_bytes = answer->batch_bytes;
    if (self->batch_bytes < HWS_BATCH_BYTES_MIN) {
        self->batch_bytes = HWS_BATCH_BYTES_MIN;
    }
    if (self->batch_bytes > BATCH_BYTES_MAX) {
        self->batch_bytes = BATCH_BYTES_MAX;
    }
    if (is_another) {
        hws_session_end_all (self, HWS_CAUSE_LOST, "another broker answers");
        hws_session_forget_ended (self);
    }
    hws_session_resume_tokens (self, now, !is_another && !is_new_epoch);
    hws_session_resume (self, now, is_new_epoch);
    hws_session_set_pulse (self);
}

static void hello_answered (hws_session_t *self, hws_ms_t now, const hws_control_t *control)
{
    hws_session_settle (self, &self->hello);
    if (control->form == HWS_FORM_OK) {
        welcomed (self, now, &control->as.hello_ok);
        return;
    }
    hws_session_refuse_new (self, control->as.refusal.code, control->as.refusal.reason);
    hws_session_lost (self, now, control->as.refusal.reason, false);
}

void hws_session_leave (hws_session_t *self, hws_ms_t now)
{
    if (!advance (self, HWS_SESSION_EVENT_LEAVE)) {
        return;
    }
    if (self->state == HWS_SESSION_GONE) {
        return;
    }
    if (self->has_left) {
        hws_session_part (self, now);
        return;
    }
    hws_session_tell_ended (self, now, false);
    hws_session_ask (self, now, &self->bye, &(hws_control_t){.verb = HWS_VERB_BYE},
                     HWS_REQUEST_RETRY_MS);
}

/*  ---- What arrives ---- */

static void answered (hws_session_t *self, hws_ms_t now, hws_request_t *request,
                      const hws_control_t *control)
{
    switch (request->about) {
    case HWS_ABOUT_HELLO:
        hello_answered (self, now, control);
        break;
    case HWS_ABOUT_BYE:
    case HWS_ABOUT_PARTING:
        hws_session_settle (self, request);
        advance (self, HWS_SESSION_EVENT_BYE_ANSWERED);
        hws_heap_clear (&self->timers, &self->pulse.timer);
        break;
    case HWS_ABOUT_OPEN:
        hws_session_open_answered (self, now, request->owner, control);
        break;
    case HWS_ABOUT_CLOSE:
        hws_session_close_answered (self, now, request->owner, control);
        break;
    case HWS_ABOUT_LEAVE:
        hws_session_leave_answered (self, now, request->owner);
        break;
    case HWS_ABOUT_ATTACH:
        hws_session_attach_answered (self, now, request->owner, control);
        break;
    case HWS_ABOUT_CANCEL:
        hws_session_cancel_answered (self, now, request->owner, control);
        break;
    case HWS_ABOUT_CANCEL_ANCHOR:
        hws_session_cancel_anchor_answered (self, now, request->owner, control);
        break;
    case HWS_ABOUT_ENDED:
        hws_session_ended_answered (self, now, request, control);
        break;
    case HWS_ABOUT_TOKEN:
        hws_session_token_answered (self, request, control);
        break;
    case HWS_ABOUT_WANT:
    case HWS_ABOUT_RETRY:
    case HWS_ABOUT_PULSE:
    case HWS_ABOUT_FLUSH:
    case HWS_ABOUT_GIVE_UP:
    case HWS_ABOUT_LINGER:
        break;
    }
}

/*  The broker knows nothing of this client, or has missed to tell it something. Who is leaving
 *  has nothing to say again, and no answer to BYE to wait for.  */
static void say_again (hws_session_t *self, hws_ms_t now)
{
    if (!advance (self, HWS_SESSION_EVENT_RESYNC)) {
        return;
    }
    hws_heap_clear (&self->timers, &self->pulse.timer);
    if (self->state == HWS_SESSION_GONE) {
        hws_session_settle (self, &self->bye);
        return;
    }
    hws_session_drop_outbox (self);
    hws_session_suspend (self, now, true);
    greet_again (self, now);
}

/*  A message that the broker sends by itself.  */
static void told (hws_session_t *self, hws_ms_t now, const hws_control_t *control)
{
    switch (control->verb) {
    case HWS_VERB_PING:
        hws_session_say (self, &(hws_control_t){.verb = HWS_VERB_PONG, .form = HWS_FORM_REQUEST});
        break;
    case HWS_VERB_STREAM_CANCEL:
        hws_session_stream_cancelled (self, now, &control->as.stream_cancel);
        break;
    case HWS_VERB_ANCHOR_CLOSED:
        hws_session_anchor_closed (self, &control->as.anchor_closed);
        break;
    case HWS_VERB_RESYNC:
        say_again (self, now);
        break;
    case HWS_VERB_GOAWAY:
        snprintf (self->error, sizeof self->error, "the broker is leaving: %.*s", GOAWAY_TEXT_MAX,
                  control->as.reason);
        hws_session_hold_new (self, now);
        break;
    case HWS_VERB_HELLO:
    case HWS_VERB_OPEN:
    case HWS_VERB_ATTACH:
    case HWS_VERB_DETACH:
    case HWS_VERB_CANCEL:
    case HWS_VERB_CANCEL_TOKEN:
    case HWS_VERB_RESERVE_TOKEN:
    case HWS_VERB_PONG:
    case HWS_VERB_BYE:
    case HWS_VERB_ERROR:
    case HWS_VERB_COUNT:
        break;
    }
}

void hws_session_control (hws_session_t *self, hws_ms_t now, hws_bytes_t verb, hws_bytes_t json)
{
    hws_control_t control;
    hws_control_fault_t fault;
    const int rc = hws_control_decode (verb, json, &control, fault);
    if (rc == 0 || rc == HWS_EUNKNOWN_VERB) {
        self->heard_at = now;
    }
    if (rc == HWS_EUNKNOWN_VERB) {
        return; /* of a newer broker */
    }
    if (rc) {
        self->stats.protocol_errors++;
        snprintf (self->error, sizeof self->error, "the broker sent: %s", fault);
        return;
    }
    if (control.form == HWS_FORM_REQUEST) {
        told (self, now, &control);
        return;
    }
    if (control.form == HWS_FORM_ERR) {
        snprintf (self->error, sizeof self->error, "%s", control.as.refusal.reason);
    }
    hws_request_t *const request = hws_session_find_request (self, &control);
    if (request) {
        answered (self, now, request, &control);
    } else if (control.verb == HWS_VERB_ATTACH && control.form == HWS_FORM_OK) {
        hws_session_stray_seat (self, control.id, &control.as.attach_ok);
    } else if (control.verb == HWS_VERB_OPEN && control.form == HWS_FORM_OK) {
        hws_session_stray_anchor (self, control.id, control.as.open_ok.handle);
    }
}

/*  ---- Time ---- */

static void due (hws_session_t *self, hws_ms_t now, hws_request_t *request)
{
    switch (request->about) {
    case HWS_ABOUT_HELLO:
        hws_session_lost (self, now, "the broker did not answer", false);
        break;
    case HWS_ABOUT_RETRY:
        if (self->state == HWS_SESSION_DOWN) {
            connect_now (self, now);
        } else if (self->state == HWS_SESSION_GREETING) {
            greet_again (self, now);
        }
        break;
    case HWS_ABOUT_PULSE:
        hws_session_pulse (self, now);
        break;
    case HWS_ABOUT_FLUSH: {
        hws_session_receiver_t *const receiver = request->owner;
        receiver->flush (receiver);
        break;
    }
    case HWS_ABOUT_LINGER:
        hws_session_flush (self);
        break;
    case HWS_ABOUT_GIVE_UP:
        hws_session_end_all (self, HWS_CAUSE_TRANSPORT, self->error);
        break;
    case HWS_ABOUT_BYE:
    case HWS_ABOUT_PARTING:
        break;
    case HWS_ABOUT_LEAVE:
        hws_session_leave_due (self, now, request->owner);
        break;
    case HWS_ABOUT_OPEN:
        hws_session_open_due (self, now, request->owner);
        break;
    case HWS_ABOUT_CLOSE:
        hws_session_close_due (self, now, request->owner);
        break;
    case HWS_ABOUT_ATTACH:
        hws_session_attach_due (self, now, request->owner);
        break;
    case HWS_ABOUT_CANCEL:
        hws_session_cancel_due (self, now, request->owner);
        break;
    case HWS_ABOUT_CANCEL_ANCHOR:
        hws_session_cancel_anchor_due (self, now, request->owner);
        break;
    case HWS_ABOUT_ENDED:
        hws_session_ended_due (self, now, request);
        break;
    case HWS_ABOUT_TOKEN:
        hws_session_token_due (self, now, request);
        break;
    case HWS_ABOUT_WANT:
        hws_session_want_due (request->owner);
        break;
    }
}

void hws_session_expire (hws_session_t *self, hws_ms_t now)
{
    hws_timer_t *timer;
    while ((timer = hws_heap_pop_due (&self->timers, now)) != NULL) {
        due (self, now, hws_container_of (timer, hws_request_t, timer));
    }
}

hws_ms_t hws_session_wake_at (const hws_session_t *self)
{
    return hws_heap_first_at (&self->timers);
}

/*  ---- What leaves ---- */

static bool pop_data (hws_session_t *self, uint8_t *buffer, size_t room, size_t used,
                      hws_action_t *out)
{
    if (used == 0) {
        used = hws_session_pop_data (self, buffer, room, out);
    }
    if (used == 0) {
        return false;
    }
    out->kind = HWS_ACTION_BATCH;
    out->data = out->block ? out->data : buffer;
    out->size = used;
    return true;
}

static bool pop_batch (hws_session_t *self, hws_ms_t now, uint8_t *buffer, size_t room,
                       hws_action_t *out)
{
    size_t used = hws_session_pop_acks (self, buffer, room);
    if (used == 0) {
        hws_session_say_cancels (self);
        if (hws_session_pop_outbox (self, buffer, out)) {
            return true;
        }
        used = hws_session_pop_wants (self, now, buffer, room);
    }
    return pop_data (self, buffer, room, used, out);
}

bool hws_session_pop (hws_session_t *self, hws_ms_t now, uint8_t *buffer, size_t size,
                      hws_action_t *out)
{
    *out = (hws_action_t){.kind = HWS_ACTION_NONE};
    hws_session_linger (self, now);
    if (self->is_word_lost) {
        hws_session_lost (self, now, "memory is out for a message", false);
    }
    if (self->is_disconnect_due) {
        self->is_disconnect_due = false;
        out->kind = HWS_ACTION_DISCONNECT;
        return true;
    }
    if (self->is_connect_due) {
        self->is_connect_due = false;
        self->heard_at = self->sent_at = self->pinged_at = now;
        out->kind = HWS_ACTION_CONNECT;
        return true;
    }
    const size_t room = size < self->batch_bytes ? size : (size_t) self->batch_bytes;
    bool has_something;
    if (self->state == HWS_SESSION_UP || self->state == HWS_SESSION_LEAVING) {
        has_something = pop_batch (self, now, buffer, room, out);
    } else { /* HELLO, and behind it what may be early */
        has_something =
            hws_session_pop_outbox (self, buffer, out) || pop_data (self, buffer, room, 0, out);
    }
    if (has_something) {
        self->sent_at = now;
    }
    return has_something;
}

/*  ---- Birth and death ---- */

int hws_session_init (hws_session_t *self, const hws_session_options_t *options, hws_ms_t now)
{
    memset (self, 0, sizeof *self);
    self->options = *options;
    self->backoff_ms = HWS_BACKOFF_MIN_MS;
    self->batch_bytes = HWS_BATCH_BYTES_MIN;
    self->early_records = HWS_EARLY_RECORDS;
    self->early_bytes = HWS_EARLY_BYTES;
    self->heard_at = self->sent_at = self->pinged_at = now;
    hws_random_init (&self->random, options->seed);
    hws_request_init (&self->hello, HWS_ABOUT_HELLO, self);
    hws_request_init (&self->bye, HWS_ABOUT_BYE, self);
    hws_request_init (&self->retry, HWS_ABOUT_RETRY, self);
    hws_request_init (&self->pulse, HWS_ABOUT_PULSE, self);
    hws_request_init (&self->give_up, HWS_ABOUT_GIVE_UP, self);
    hws_request_init (&self->linger, HWS_ABOUT_LINGER, self);
    self->scratch = malloc (HWS_CONTROL_SIZE_MAX);
    int rc = self->scratch ? 0 : HWS_ENO_MEMORY;
    rc = rc ? rc : hws_map_init (&self->sessions, options->hash_key);
    rc = rc ? rc : hws_rx_streams_init (&self->streams, options->hash_key);
    rc = rc ? rc : hws_map_init (&self->requests, options->hash_key);
    if (rc) {
        hws_session_fini (self);
        return rc;
    }
    hws_heap_set (&self->timers, &self->retry.timer, now);
    return 0;
}

void hws_session_fini (hws_session_t *self)
{
    hws_assert (self->senders.count == 0 && self->receivers.count == 0);
    hws_session_forget_tokens (self);
    hws_session_forget_ended (self);
    hws_session_drop_outbox (self);
    hws_session_drop_acks (self);
    hws_map_fini (&self->sessions);
    hws_rx_streams_fini (&self->streams);
    hws_map_fini (&self->requests);
    free (self->scratch);
    self->scratch = NULL;
}
