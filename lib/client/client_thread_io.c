/*  The client's own thread: it connects, reads and sends, in turns, and sleeps when there is
 *  nothing to do.
 */
#include "client/client_io.h"

#include "client/payload_io.h"
#include "io/clock_io.h"
#include "io/wake_io.h"

#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MESSAGES_PER_TURN = 64, /* read, and sent, before the other side has its turn */
    MESSAGES_HELPED = 2,    /* rounds of a program's thread: one makes a message, one sends it */
    MESSAGES_AT_ONCE = 16,  /* read, before the session gets them under the lock */
    BLOCKED_POLL_MS = 100,  /* a full socket is looked at again at the latest then */
    COPIED_MAX = 32 * 1024  /* a larger batch leaves in the very buffer it was made in */
};

/*  ---- The connection ---- */

static void drop_unsent (hws_client_t *self)
{
    if (self->has_unsent) {
        zmq_msg_close (&self->unsent);
        self->has_unsent = false;
    }
}

static void close_connection (hws_client_t *self)
{
    drop_unsent (self);
    hws_dealer_close (&self->dealer);
}

typedef enum { NOT_CONNECTED, CONNECTION_ENDED, OUT_OF_MEMORY } loss_t;

/*  Tells the session that the connection is gone, with a sentence. A message that memory is
 *  out for is such a loss too: were it only dropped, and nothing came behind it, nobody would
 *  miss it.  */
static void report_lost (hws_client_t *self, loss_t loss)
{
    static const char *const sentences[] = {
        [NOT_CONNECTED] = "no broker at",
        [CONNECTION_ENDED] = "lost the connection to",
        [OUT_OF_MEMORY] = "memory is out for a message of",
    };
    const bool is_next = !self->is_welcome && self->next_address < self->addresses.count;
    char why[HWS_ENDPOINT_SIZE_MAX + 64];
    snprintf (why, sizeof why, "%s %s", sentences[loss], self->endpoint);
    hws_client_lock (self);
    hws_session_lost (&self->session, hws_clock_ms (), why, is_next);
    hws_client_unlock (self, false);
}

/*  Looks up where the broker may be. The front of a dedicated anchor goes with the anchor:
 *  then the parent's endpoint is the place to learn how its streams ended.  */
static void find_addresses (hws_client_t *self)
{
    self->next_address = 0;
    self->addresses.count = 0;
    hws_resolve (&self->parts, &self->addresses);
    self->own_addresses = self->addresses.count;
    if (self->parent) {
        hws_resolve (&self->parent->parts, &self->addresses);
    }
}

/*  Connects to the next address; after the last one the names are looked up again.  */
static void open_connection (hws_client_t *self)
{
    close_connection (self);
    if (self->is_welcome || self->next_address >= self->addresses.count) {
        find_addresses (self);
    }
    self->is_welcome = false;
    atomic_store (&self->is_aside, self->next_address >= self->own_addresses);
    if (self->addresses.count == 0 ||
        hws_dealer_connect (&self->dealer, self->context,
                            self->addresses.address[self->next_address++])) {
        report_lost (self, NOT_CONNECTED);
    }
}

/*  ---- Out ---- */

static void release_block (void *data, void *hint)
{
    (void) data;
    hws_block_t *const block = hint;
    block->release (block);
}

/*  Makes a message of what the session yielded. What lies in a block leaves with a hold of it,
 *  and a large batch takes the buffer along.  */
static int message_of (hws_client_t *self, const hws_action_t *out, zmq_msg_t *message)
{
    if (out->kind == HWS_ACTION_CONTROL || (!out->block && out->size <= COPIED_MAX)) {
        if (zmq_msg_init_size (message, out->size)) {
            return HWS_ENO_MEMORY;
        }
        memcpy (zmq_msg_data (message), out->data, out->size);
        return 0;
    }
    hws_block_t *const block = out->block ? out->block : self->buffer;
    if (zmq_msg_init_data (message, out->data, out->size, release_block, block)) {
        return HWS_ENO_MEMORY;
    }
    if (out->block) {
        block->hold (block);
    } else {
        self->buffer = NULL;
    }
    return 0;
}

/*  Sends what is in `unsent`. False when the socket does not take it now.  */
static bool send_unsent (hws_client_t *self)
{
    if (!self->has_unsent) {
        return true;
    }
    const int rc = self->unsent_verb
                       ? hws_dealer_send_control (&self->dealer, self->unsent_verb, &self->unsent)
                       : hws_dealer_send (&self->dealer, &self->unsent);
    if (rc == HWS_EWOULD_BLOCK) {
        return false;
    }
    drop_unsent (self); /* after a success the message is empty */
    if (rc) {
        report_lost (self, CONNECTION_ENDED);
    }
    return true;
}

/*  Whether the session has given up the connection that `unsent` is for. A full socket must
 *  not hide that: nobody may ever take from it again.  */
static bool is_given_up (hws_client_t *self)
{
    hws_client_lock (self);
    const bool is_due = self->session.is_disconnect_due || self->session.is_connect_due;
    hws_client_unlock (self, false);
    return is_due;
}

static void do_out (hws_client_t *self, hws_action_t *out)
{
    switch (out->kind) {
    case HWS_ACTION_CONNECT:
        open_connection (self);
        break;
    case HWS_ACTION_DISCONNECT:
        close_connection (self);
        break;
    case HWS_ACTION_CONTROL:
    case HWS_ACTION_BATCH:
        if (hws_dealer_is_open (&self->dealer)) {
            self->unsent_verb = out->verb;
            self->has_unsent = message_of (self, out, &self->unsent) == 0;
            if (!self->has_unsent) {
                report_lost (self, OUT_OF_MEMORY);
            }
        }
        break;
    case HWS_ACTION_NONE:
        break;
    }
    if (out->kind == HWS_ACTION_CONTROL) {
        free (out->data);
    }
    if (out->block) {
        out->block->release (out->block);
    }
}

/*  The buffer for the next batch: as large as the broker takes.  */
static bool has_buffer (hws_client_t *self, size_t size)
{
    if (self->buffer && self->buffer->size < size) {
        self->buffer->release (self->buffer);
        self->buffer = NULL;
    }
    if (!self->buffer) {
        self->buffer = self->blocks->take (self->blocks, size);
    }
    return self->buffer != NULL;
}

typedef enum { IDLE, BLOCKED, BUSY } turn_t;

/*  Sends what there is, up to the turn's share. IDLE: there was nothing more, and whoever
 *  queues something from now on wakes the thread.  */
static turn_t send_turn (hws_client_t *self, int messages)
{
    size_t batch_bytes = HWS_BATCH_BYTES_MIN;
    for (int i = 0; i < messages; i++) {
        if (!send_unsent (self)) {
            if (!is_given_up (self)) {
                return BLOCKED;
            }
            drop_unsent (self);
        }
        if (!has_buffer (self, batch_bytes)) {
            return BLOCKED; /* memory may be there in a moment */
        }
        if (i > 0 && messages == MESSAGES_PER_TURN) {
            /* Who fills the streams goes first, if processors are short: then the next message
             * is a long one. Otherwise this returns at once, and the first has left anyway.  */
            sched_yield ();
        }
        hws_action_t out = {.kind = HWS_ACTION_NONE};
        hws_client_lock (self);
        batch_bytes = hws_session_batch_bytes (&self->session);
        const bool has_room = batch_bytes <= self->buffer->size;
        const bool has_out =
            has_room && hws_session_pop (&self->session, hws_clock_ms (), self->buffer->bytes,
                                         self->buffer->size, &out);
        self->is_asleep = has_room && !has_out;
        hws_client_unlock (self, false);
        if (has_room && !has_out) {
            return IDLE;
        }
        do_out (self, &out);
    }
    return BUSY;
}

/*  Whether there is a connection that stands, and nothing to do but to send.  */
static bool is_calm (hws_client_t *self)
{
    if (!hws_dealer_is_open (&self->dealer) || self->has_unsent) {
        return false;
    }
    hws_client_lock (self);
    const hws_session_t *const session = &self->session;
    const bool is_up = session->state == HWS_SESSION_UP && !session->is_disconnect_due &&
                       hws_session_wake_at (session) >= self->sleeps_until;
    hws_client_unlock (self, false);
    return is_up;
}

bool hws_client_send_now (hws_client_t *self)
{
    if (pthread_mutex_trylock (&self->socket_lock)) {
        return false;
    }
    bool is_done = false;
    const hws_ms_t now = hws_clock_ms ();
    if (now != self->helped_at && is_calm (self)) {
        self->helped_at = now;
        is_done = send_turn (self, MESSAGES_HELPED) == IDLE &&
                  hws_dealer_is_quiet (&self->dealer, false) && is_calm (self);
    }
    pthread_mutex_unlock (&self->socket_lock);
    return is_done;
}

/*  ---- In ---- */

/*  What was read: a batch, or the two frames of a control message.  */
typedef struct {
    zmq_msg_t frames[2];
    hws_payload_t *payload; /* of a batch, which has taken its frame; else null */
    hws_bytes_t batch;
    bool is_control;
    bool is_lost; /* a batch that memory is out for */
} message_t;

static void close_message (message_t *message)
{
    if (message->payload) {
        message->payload->release (message->payload);
    }
    zmq_msg_close (&message->frames[0]);
    zmq_msg_close (&message->frames[1]);
}

/*  Reads one message. False when there is none. What is neither a batch nor a control message
 *  is passed over.  */
static bool read_message (hws_client_t *self, message_t *message)
{
    message->payload = NULL;
    zmq_msg_init (&message->frames[0]);
    zmq_msg_init (&message->frames[1]);
    const int count = hws_dealer_recv (&self->dealer, message->frames);
    message->is_control = count == 2;
    if (count == 1) {
        message->payload = hws_payload_of (&message->frames[0], &message->batch);
    }
    if (message->payload) {
        zmq_msg_init (&message->frames[0]);
    }
    message->is_lost = count == 1 && !message->payload;
    if (count == 0) {
        close_message (message);
        return false;
    }
    self->is_welcome = true;
    return true;
}

static hws_bytes_t bytes_of (zmq_msg_t *frame)
{
    return hws_bytes (zmq_msg_data (frame), zmq_msg_size (frame));
}

/*  Reads a few messages and gives them to the session, so that whoever waits for them is woken
 *  once and finds the lock free. Returns how many there were.  */
static int read_some (hws_client_t *self)
{
    message_t messages[MESSAGES_AT_ONCE];
    int count = 0;
    while (count < MESSAGES_AT_ONCE && read_message (self, &messages[count])) {
        count++;
    }
    if (count == 0) {
        return 0;
    }
    const hws_ms_t now = hws_clock_ms ();
    hws_client_lock (self);
    for (int i = 0; i < count; i++) {
        message_t *const message = &messages[i];
        if (message->is_control) {
            hws_session_control (&self->session, now, bytes_of (&message->frames[0]),
                                 bytes_of (&message->frames[1]));
        } else if (message->payload) {
            hws_session_batch (&self->session, now, message->batch, message->payload);
        }
    }
    hws_client_unlock (self, false);
    bool is_lost = false;
    for (int i = 0; i < count; i++) {
        is_lost |= messages[i].is_lost;
        close_message (&messages[i]);
    }
    if (is_lost) {
        report_lost (self, OUT_OF_MEMORY);
    }
    return count;
}

/*  Reads what has come, up to the turn's share.  */
static turn_t read_turn (hws_client_t *self)
{
    for (int read = 0; read < MESSAGES_PER_TURN;) {
        const int count = read_some (self);
        if (count < MESSAGES_AT_ONCE) {
            return IDLE;
        }
        read += count;
    }
    return BUSY;
}

static void check_connection (hws_client_t *self)
{
    bool was_connected = false;
    if (hws_dealer_is_open (&self->dealer) && hws_dealer_is_lost (&self->dealer, &was_connected)) {
        read_turn (self); /* what it said last */
        report_lost (self, was_connected ? CONNECTION_ENDED : NOT_CONNECTED);
    }
}

/*  ---- Turns ---- */

static bool has_stream (const hws_session_t *session)
{
    for (hws_link_t *link = session->senders.head; link; link = link->next) {
        const hws_tx_t *const tx = &hws_container_of (link, hws_session_sender_t, link)->tx;
        if (tx->sender_id != 0 && tx->state != HWS_TX_ENDED) {
            return true;
        }
    }
    return false;
}

/*  A private client has nobody to tell but its parent, and nothing when only the front is gone
 *  with its anchor.  */
static void tell_parent (hws_client_t *self)
{
    hws_client_lock (self);
    const bool is_away = self->session.is_lost_since_up && has_stream (&self->session);
    hws_client_unlock (self, false);
    if (is_away != atomic_load (&self->is_away)) {
        atomic_store (&self->is_away, is_away);
        hws_wake_set (self->parent->wake);
    }
}

/*  Tells the program what became of the connection, or of one of several: that is one loss, and
 *  it is over when all are there again. Without the lock: the program may take its time, though
 *  it should not.  */
static void tell_connection (hws_client_t *self)
{
    if (self->parent) {
        tell_parent (self);
        return;
    }
    if (!self->on_connection) {
        return;
    }
    hws_reason_t text;
    hws_client_lock (self);
    hws_client_t *const away = hws_client_away (self);
    const bool is_lost = self->session.is_lost_since_up || away;
    memcpy (text, self->session.error, sizeof text);
    if (is_lost && !self->session.is_lost_since_up) {
        hws_client_last_word (away, text);
    }
    hws_client_unlock (self, false);
    if (is_lost != self->is_loss_told) {
        self->is_loss_told = is_lost;
        self->on_connection (self->on_connection_arg, !is_lost, is_lost ? text : "");
    }
}

static void sleep_until (hws_client_t *self, hws_ms_t wake_at, bool is_blocked)
{
    struct pollfd polled[3] = {{.fd = self->wake, .events = POLLIN}}; /* the rest stays 0 */
    nfds_t count = 1;
    if (hws_dealer_is_open (&self->dealer)) {
        polled[count++] = (struct pollfd){.fd = hws_dealer_fd (&self->dealer), .events = POLLIN};
        polled[count++] =
            (struct pollfd){.fd = hws_dealer_monitor_fd (&self->dealer), .events = POLLIN};
        if (!hws_dealer_is_quiet (&self->dealer, self->has_unsent)) {
            return;
        }
    }
    hws_ms_t wait_ms = wake_at == HWS_NEVER ? -1 : hws_time_until (hws_clock_ms (), wake_at);
    if (is_blocked && (wait_ms < 0 || wait_ms > BLOCKED_POLL_MS)) {
        wait_ms = BLOCKED_POLL_MS;
    }
    wait_ms = wait_ms > 60000 ? 60000 : wait_ms;
    self->sleeps_until = wake_at;
    pthread_mutex_unlock (&self->socket_lock);
    const int ready = poll (polled, count, (int) wait_ms);
    pthread_mutex_lock (&self->socket_lock);
    if (ready <= 0) {
        return;
    }
    if (polled[0].revents & POLLIN) {
        hws_wake_clear (self->wake);
    }
    if (polled[1].revents & POLLIN) {
        hws_dealer_note_input (&self->dealer);
    }
    if (polled[2].revents & POLLIN) {
        hws_dealer_note_news (&self->dealer);
    }
}

void *hws_client_run (void *argument)
{
    hws_client_t *const self = argument;
    bool is_stopping = false;
    pthread_mutex_lock (&self->socket_lock);
    while (!is_stopping) {
        const bool is_reading = hws_dealer_is_open (&self->dealer) && read_turn (self) == BUSY;
        check_connection (self);
        hws_client_lock (self);
        hws_session_expire (&self->session, hws_clock_ms ());
        const bool is_moving = self->session.moved.count > 0 || hws_client_moving (self);
        hws_client_unlock (self, false);
        if (is_moving) {
            hws_client_guide (self);
        }
        tell_connection (self);
        const turn_t sent = send_turn (self, MESSAGES_PER_TURN);

        hws_client_lock (self);
        is_stopping = self->is_stopping;
        const bool is_idle = sent == BLOCKED || (sent == IDLE && self->is_asleep);
        const hws_ms_t wake_at = hws_session_wake_at (&self->session);
        if (self->session.state == HWS_SESSION_GONE) {
            pthread_cond_broadcast (&self->gone);
        }
        hws_client_unlock (self, false);
        if (!is_reading && is_idle && !is_stopping) {
            sleep_until (self, wake_at, sent == BLOCKED);
        }
    }
    close_connection (self);
    pthread_mutex_unlock (&self->socket_lock);
    return NULL;
}
