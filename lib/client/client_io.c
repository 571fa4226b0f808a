#include "client/client_io.h"

#include "base/assert.h"
#include "client/block_io.h"
#include "io/clock_io.h"
#include "io/random_io.h"
#include "io/wake_io.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    GOODBYE_MS = 1000, /* for the answer to BYE */
    CONNECT_MS = 5000,
    GIVE_UP_MS = 60000
};

/*  ---- Forks ---- */

atomic_uint hws_client_forks;
static pthread_once_t s_forks_once = PTHREAD_ONCE_INIT;

static void count_fork (void)
{
    atomic_fetch_add (&hws_client_forks, 1);
}

static void watch_forks (void)
{
    pthread_atfork (NULL, NULL, count_fork);
}

/*  ---- Lock and waits ---- */

void hws_client_lock (hws_client_t *self)
{
    const int rc = pthread_mutex_lock (&self->lock);
    hws_assert (rc == 0);
}

void hws_client_unlock (hws_client_t *self, bool has_work)
{
    const bool is_wake_due = has_work && self->is_asleep;
    if (is_wake_due) {
        self->is_asleep = false;
    }
    pthread_mutex_unlock (&self->lock);
    if (is_wake_due && !hws_client_send_now (self)) {
        hws_wake_set (self->wake);
    }
}

int hws_client_wait (hws_client_t *self, pthread_cond_t *cond, const hws_time_limit_t *deadline)
{
    return hws_cond_wait (cond, &self->lock, deadline);
}

/*  ---- Birth and death ---- */

void hws_client_options_init (hws_client_options_t *options)
{
    *options = (hws_client_options_t){.connect_ms = CONNECT_MS, .give_up_ms = GIVE_UP_MS};
}

/*  The thread takes no signals: they are the program's.  */
static int start_thread (hws_client_t *self)
{
    sigset_t all, before;
    sigfillset (&all);
    if (pthread_sigmask (SIG_SETMASK, &all, &before)) {
        return HWS_ESYSTEM;
    }
    self->context = zmq_ctx_new (); /* its threads start with the first socket, in the thread */
    int rc = self->context ? 0 : HWS_ESYSTEM;
    if (!rc && pthread_create (&self->thread, NULL, hws_client_run, self)) {
        rc = HWS_ESYSTEM;
    }
    pthread_sigmask (SIG_SETMASK, &before, NULL);
    return rc;
}

static void token_notified (hws_session_t *session)
{
    hws_client_t *const self = hws_container_of (session, hws_client_t, session);
    pthread_cond_broadcast (&self->token_told);
}

static int session_of (hws_client_t *self, const hws_client_options_t *options)
{
    struct {
        hws_id_t client_id;
        uint64_t seed;
        hws_hash_key_t hash_key;
    } random;
    if (hws_random_fill (&random, sizeof random)) {
        return HWS_ESYSTEM;
    }
    hws_session_options_t session = {.client_id = random.client_id,
                                     .seed = random.seed,
                                     .hash_key = random.hash_key,
                                     .blocks = self->blocks,
                                     .connect_ms = options->connect_ms,
                                     .give_up_ms = options->give_up_ms,
                                     .linger_ms = options->linger_ms,
                                     .notify = token_notified};
    snprintf (session.name, sizeof session.name, "%s", options->name ? options->name : "hawser");
    return hws_session_init (&self->session, &session, hws_clock_ms ());
}

int hws_client_make (hws_client_t **client, const hws_client_options_t *options,
                     const hws_endpoint_parts_t *parts, hws_client_t *parent)
{
    pthread_once (&s_forks_once, watch_forks);
    hws_client_t *self = calloc (1, sizeof *self);
    if (!self) {
        return HWS_ENO_MEMORY;
    }
    self->forks = atomic_load (&hws_client_forks);
    snprintf (self->endpoint, sizeof self->endpoint, "%s", options->endpoint);
    self->parts = *parts;
    self->parent = parent;
    atomic_init (&self->is_away, false);
    atomic_init (&self->is_aside, false);
    atomic_init (&self->is_moving, false);
    self->on_connection = options->on_connection;
    self->on_connection_arg = options->on_connection_arg;
    self->wake = -1;
    pthread_mutex_init (&self->lock, NULL);
    pthread_mutex_init (&self->socket_lock, NULL);
    int rc = hws_cond_init (&self->gone);
    if (rc) {
        goto no_cond;
    }
    rc = hws_cond_init (&self->token_told);
    if (rc) {
        goto no_token_cond;
    }
    self->blocks = hws_blocks_new ();
    if (!self->blocks) {
        rc = HWS_ENO_MEMORY;
        goto no_blocks;
    }
    rc = session_of (self, options);
    if (rc) {
        goto no_session;
    }
    self->wake = hws_wake_new ();
    rc = self->wake < 0 ? HWS_ESYSTEM : start_thread (self);
    if (rc) {
        goto no_thread;
    }
    *client = self;
    return 0;

no_thread:
    if (self->context) {
        zmq_ctx_term (self->context);
    }
    if (self->wake >= 0) {
        close (self->wake);
    }
    hws_session_fini (&self->session);
no_session:
    hws_blocks_destroy (&self->blocks);
no_blocks:
    pthread_cond_destroy (&self->token_told);
no_token_cond:
    pthread_cond_destroy (&self->gone);
no_cond:
    pthread_mutex_destroy (&self->socket_lock);
    pthread_mutex_destroy (&self->lock);
    free (self);
    return rc;
}

int hws_client_new (hws_client_t **client, const hws_client_options_t *options)
{
    *client = NULL;
    hws_client_options_t mine;
    hws_client_options_init (&mine);
    mine = options ? *options : mine;
    mine.endpoint = mine.endpoint ? mine.endpoint : HWS_DEFAULT_ENDPOINT;
    hws_endpoint_parts_t parts;
    if (mine.linger_ms < HWS_FOREVER ||
        hws_endpoint_parse (hws_bytes_of_text (mine.endpoint), HWS_ENDPOINT_CONNECT, &parts, NULL,
                            0) ||
        (mine.name && !hws_name_is_valid (hws_bytes_of_text (mine.name)))) {
        return HWS_EINVALID;
    }
    return hws_client_make (client, &mine, &parts, NULL);
}

/*  Says BYE and waits for its answer; closing is not delivery.  */
static void say_goodbye (hws_client_t *self)
{
    const hws_time_limit_t deadline = hws_time_limit_after (GOODBYE_MS);
    hws_client_lock (self);
    hws_session_leave (&self->session, hws_clock_ms ());
    hws_client_unlock (self, true);
    hws_client_lock (self);
    while (self->session.state != HWS_SESSION_GONE &&
           hws_client_wait (self, &self->gone, &deadline) == 0) {
    }
    self->is_stopping = true;
    hws_client_unlock (self, true);
    hws_wake_set (self->wake);
}

void hws_client_destroy (hws_client_t **client)
{
    hws_client_t *const self = *client;
    if (!self) {
        return;
    }
    *client = NULL;
    if (!hws_client_is_ours (self)) {
        free (self); /* the thread, the lock and the sockets are the parent's */
        return;
    }
    say_goodbye (self);
    pthread_join (self->thread, NULL);
    while (zmq_ctx_term (self->context) && zmq_errno () == EINTR) {
    }
    hws_session_fini (&self->session);
    close (self->wake);
    if (self->buffer) {
        self->buffer->release (self->buffer);
    }
    hws_blocks_destroy (&self->blocks);
    pthread_cond_destroy (&self->token_told);
    pthread_cond_destroy (&self->gone);
    pthread_mutex_destroy (&self->socket_lock);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

void hws_client_error (hws_client_t *client, char *text, size_t size)
{
    if (size == 0) {
        return;
    }
    if (!hws_client_is_ours (client)) {
        snprintf (text, size, "%s", hws_strerror (HWS_EWRONG_PROCESS));
        return;
    }
    hws_reason_t reason;
    hws_client_last_word (client, reason);
    snprintf (text, size, "%s", reason);
}
