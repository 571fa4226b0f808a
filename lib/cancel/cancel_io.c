/*  The cancel registry of hawser.h: the core under a lock, and waiters.
 *
 *  The lock guards the core and every waiter. What a cancel hit is marked under it and
 *  signalled outside of it, one after the other, so that what a signal sets off may call
 *  back into the registry; a waiter that is being signalled is not freed meanwhile.
 */
#include "cancel/cancel.h"
#include "hawser.h"
#include "io/clock_io.h"
#include "io/random_io.h"
#include "io/wait_io.h"
#include "io/wake_io.h"

#include <stdlib.h>
#include <unistd.h>

struct hws_registry {
    pthread_mutex_t lock;
    pthread_cond_t signalled; /* some waiter is not being signalled any more */
    hws_cancels_t cancels;
    int64_t (*now_ms) (void *arg); /* or null */
    void *now_arg;
};

struct hws_waiter {
    hws_cancel_node_t node;
    hws_registry_t *registry; /* null for the one of token 0 */
    pthread_mutex_t *lock;    /* the registry's */
    pthread_cond_t changed;   /* cancelled */
    int descriptor;           /* readable when it is; -1: nobody asked yet */
    void (*call) (void *arg); /* when it is; or null */
    void *call_arg;
    bool is_told;       /* its cancel came first, or is signalled: `call` comes too late for that */
    bool is_signalling; /* somebody signals it, outside of the lock */
    bool is_destroyed;  /* by its own `call`: whoever signals it frees it */
    pthread_t signaller; /* while is_signalling */
};

static hws_ms_t now_of (const hws_registry_t *self)
{
    return self->now_ms ? self->now_ms (self->now_arg) : hws_clock_ms ();
}

/*  ---- Birth and death ---- */

void hws_registry_options_init (hws_registry_options_t *options)
{
    *options = (hws_registry_options_t){
        .orphan_ttl_ms = 120000, .sweep_interval_ms = 1000, .orphan_limit = 65536};
}

int hws_registry_new (hws_registry_t **registry, const hws_registry_options_t *options)
{
    *registry = NULL;
    hws_registry_options_t defaults;
    hws_registry_options_init (&defaults);
    options = options ? options : &defaults;
    hws_cancels_options_t core = {.orphan_ttl_ms = options->orphan_ttl_ms,
                                  .sweep_interval_ms = options->sweep_interval_ms,
                                  .orphan_limit = (size_t) options->orphan_limit};
    if (core.orphan_ttl_ms < 0 || core.sweep_interval_ms < 0) {
        return HWS_EINVALID;
    }
    if (hws_random_fill (&core.hash_key, sizeof core.hash_key)) {
        return HWS_ESYSTEM;
    }
    hws_registry_t *const self = calloc (1, sizeof *self);
    if (!self) {
        return HWS_ENO_MEMORY;
    }
    self->now_ms = options->now_ms;
    self->now_arg = options->now_arg;
    pthread_mutex_init (&self->lock, NULL);
    int rc = hws_cond_init (&self->signalled);
    if (rc) {
        goto no_cond;
    }
    rc = hws_cancels_init (&self->cancels, &core);
    if (rc) {
        goto no_cancels;
    }
    *registry = self;
    return 0;

no_cancels:
    pthread_cond_destroy (&self->signalled);
no_cond:
    pthread_mutex_destroy (&self->lock);
    free (self);
    return rc;
}

void hws_registry_destroy (hws_registry_t **registry)
{
    hws_registry_t *const self = *registry;
    if (!self) {
        return;
    }
    *registry = NULL;
    hws_cancels_fini (&self->cancels);
    pthread_cond_destroy (&self->signalled);
    pthread_mutex_destroy (&self->lock);
    free (self);
}

static hws_registry_t *s_shared;
static pthread_once_t s_shared_once = PTHREAD_ONCE_INIT;

static void make_shared (void)
{
    hws_registry_new (&s_shared, NULL);
}

hws_registry_t *hws_registry_shared (void)
{
    pthread_once (&s_shared_once, make_shared);
    return s_shared;
}

/*  ---- Tokens ---- */

uint64_t hws_registry_reserve (hws_registry_t *registry)
{
    pthread_mutex_lock (&registry->lock);
    const uint64_t token = hws_cancels_reserve (&registry->cancels);
    pthread_mutex_unlock (&registry->lock);
    return token;
}

static void free_waiter (hws_waiter_t *self)
{
    if (self->descriptor >= 0) {
        close (self->descriptor);
    }
    pthread_cond_destroy (&self->changed);
    free (self);
}

/*  Wakes whoever waits, under the lock only to look and to say so.  */
static void signal_waiter (hws_registry_t *self, hws_waiter_t *waiter)
{
    const int descriptor = waiter->descriptor;
    void (*const call) (void *arg) = waiter->call;
    void *const call_arg = waiter->call_arg;
    waiter->is_told = waiter->is_signalling = true;
    waiter->signaller = pthread_self ();
    pthread_mutex_unlock (&self->lock);

    pthread_cond_broadcast (&waiter->changed);
    if (descriptor >= 0) {
        hws_wake_set (descriptor);
    }
    if (call) {
        call (call_arg);
    }

    pthread_mutex_lock (&self->lock);
    waiter->is_signalling = false;
    pthread_cond_broadcast (&self->signalled);
    if (waiter->is_destroyed) {
        free_waiter (waiter);
    }
}

int hws_registry_cancel (hws_registry_t *registry, uint64_t token, const char *reason)
{
    pthread_mutex_lock (&registry->lock);
    const int rc = hws_cancels_cancel (&registry->cancels, now_of (registry), token, reason, NULL);
    hws_cancel_node_t *node;
    while ((node = hws_cancels_take_hit (&registry->cancels)) != NULL) {
        signal_waiter (registry, hws_container_of (node, hws_waiter_t, node));
    }
    pthread_mutex_unlock (&registry->lock);
    return rc;
}

void hws_registry_release (hws_registry_t *registry, uint64_t token)
{
    pthread_mutex_lock (&registry->lock);
    hws_cancels_forget (&registry->cancels, token);
    pthread_mutex_unlock (&registry->lock);
}

void hws_registry_sweep (hws_registry_t *registry)
{
    pthread_mutex_lock (&registry->lock);
    hws_cancels_sweep (&registry->cancels, now_of (registry));
    pthread_mutex_unlock (&registry->lock);
}

void hws_registry_counts (hws_registry_t *registry, hws_registry_counts_t *counts)
{
    pthread_mutex_lock (&registry->lock);
    const hws_cancels_t *const cancels = &registry->cancels;
    *counts = (hws_registry_counts_t){.tokens = hws_cancels_count (cancels),
                                      .orphans = hws_cancels_orphan_count (cancels),
                                      .sweeps = cancels->sweeps,
                                      .refused = cancels->refused};
    pthread_mutex_unlock (&registry->lock);
}

/*  ---- Waiters ---- */

/*  The waiter of token 0.  */
static pthread_mutex_t s_never_lock = PTHREAD_MUTEX_INITIALIZER;
static hws_waiter_t s_never = {.lock = &s_never_lock, .descriptor = -1};
static pthread_once_t s_never_once = PTHREAD_ONCE_INIT;

static void make_never (void)
{
    hws_cond_init (&s_never.changed);
}

int hws_registry_register (hws_registry_t *registry, uint64_t token, hws_waiter_t **waiter)
{
    if (token == 0) {
        pthread_once (&s_never_once, make_never);
        *waiter = &s_never;
        return 0;
    }
    *waiter = NULL;
    hws_waiter_t *const self = calloc (1, sizeof *self);
    if (!self) {
        return HWS_ENO_MEMORY;
    }
    self->registry = registry;
    self->lock = &registry->lock;
    self->descriptor = -1;
    int rc = hws_cond_init (&self->changed);
    if (rc) {
        free (self);
        return rc;
    }
    pthread_mutex_lock (self->lock);
    rc = hws_cancels_register (&registry->cancels, now_of (registry), token, &self->node);
    self->is_told = hws_cancel_node_reason (&self->node) != NULL;
    pthread_mutex_unlock (self->lock);
    if (rc) {
        free_waiter (self);
        return rc;
    }
    *waiter = self;
    return 0;
}

int hws_waiter_wait (hws_waiter_t *waiter, int64_t timeout_ms)
{
    const hws_time_limit_t limit = hws_time_limit_after (timeout_ms);
    int rc = 0;
    pthread_mutex_lock (waiter->lock);
    while (!rc && !hws_cancel_node_reason (&waiter->node)) {
        rc = hws_cond_wait (&waiter->changed, waiter->lock, &limit);
    }
    rc = hws_cancel_node_reason (&waiter->node) ? 0 : rc;
    pthread_mutex_unlock (waiter->lock);
    return rc;
}

const char *hws_waiter_reason (hws_waiter_t *waiter)
{
    pthread_mutex_lock (waiter->lock);
    const char *const reason = hws_cancel_node_reason (&waiter->node);
    pthread_mutex_unlock (waiter->lock);
    return reason;
}

int hws_waiter_fd (hws_waiter_t *waiter)
{
    pthread_mutex_lock (waiter->lock);
    if (waiter->descriptor < 0) {
        waiter->descriptor = hws_wake_new ();
        if (waiter->descriptor >= 0 && hws_cancel_node_reason (&waiter->node)) {
            hws_wake_set (waiter->descriptor);
        }
    }
    const int descriptor = waiter->descriptor;
    pthread_mutex_unlock (waiter->lock);
    return descriptor;
}

void hws_waiter_on_cancel (hws_waiter_t *waiter, void (*call) (void *arg), void *arg)
{
    pthread_mutex_lock (waiter->lock);
    const bool is_late = waiter->is_told;
    if (!is_late) {
        waiter->call = call;
        waiter->call_arg = arg;
    }
    pthread_mutex_unlock (waiter->lock);
    if (is_late) {
        call (arg);
    }
}

void hws_waiter_destroy (hws_waiter_t **waiter)
{
    hws_waiter_t *const self = *waiter;
    *waiter = NULL;
    if (!self || !self->registry) {
        return;
    }
    hws_registry_t *const registry = self->registry;
    pthread_mutex_lock (&registry->lock);
    hws_cancels_release (&registry->cancels, &self->node);
    self->is_destroyed =
        self->is_signalling && pthread_equal (self->signaller, pthread_self ()) != 0;
    while (self->is_signalling && !self->is_destroyed) {
        pthread_cond_wait (&registry->signalled, &registry->lock);
    }
    if (!self->is_destroyed) {
        free_waiter (self);
    }
    pthread_mutex_unlock (&registry->lock);
}
