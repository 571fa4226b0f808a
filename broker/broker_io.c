#include "broker/broker_io.h"

#include "base/json_writer.h"
#include "broker/fixed.h"
#include "broker/process_io.h"
#include "io/clock_io.h"
#include "io/random_io.h"

#include <czmq.h>
#include <inttypes.h>

/*  What one turn takes of a socket. One message a wake costs five times the CPU, more
 *  than 64 gain nothing, and without a bound timers and other sockets starve.  */
#define TURN_MESSAGES 64
#define TURN_BYTES    ((size_t) 1048576)
#define TURN_FRAMES   4096 /* one message may have a million; it then takes several turns */

#define SEND_PASSES_MAX 16 /* what sending brings about is sent, so often in one turn */

#define CONNECTIONS_SPARE 64   /* beyond limits.peers: for those that are refused politely */
#define DESCRIPTORS_OWN   32   /* stdio, libzmq's own, signals */
#define LINGER_MS         1000 /* for the last messages of a drain */
#define REFUSALS_LOG_MS   1000 /* at most one line about refused connections in so long */
#define IDLE_RETURNS_MAX  100  /* zloop returns without having called us: polling fails */

#define EPOCH_BEGIN_S INT64_C (1577836800) /* 2020-01-01, where epochs begin */

struct hws_broker {
    hws_log_t log;
    void *context; /* of libzmq; ours, not czmq's */
    zloop_t *loop;
    hws_front_t *front; /* the shared one */
    hws_engine_t *engine;
    int signals; /* not owned */
    hws_broker_reload_t *reload;
    void *reload_arg;

    hws_fixed_t fixed;
    uint64_t drain_timeout_ms;
    size_t connection_limit;
    int timer_id;             /* of zloop; -1: none */
    hws_ms_t timer_at;        /* when it fires, HWS_NEVER for none */
    hws_ms_t drain_end_at;    /* HWS_NEVER unless draining */
    hws_ms_t refusals_log_at; /* earliest next line about refused connections */
    uint64_t refusals_logged; /* refused connections that a line has told of */
    uint64_t turns;
    bool is_draining;
    bool is_stopped; /* the loop ends */
    bool is_hurried; /* stopped by a second signal: nothing is waited for */
};

/*  ---- One turn ---- */

static void report_gone (hws_broker_t *self, hws_ms_t now)
{
    hws_address_t address;
    hws_front_read_monitor (self->front, now);
    while (hws_front_pop_gone (self->front, &address)) {
        hws_engine_peer_gone (self->engine, now, &address);
    }
}

static void take_message (hws_broker_t *self, hws_ms_t now, hws_message_t *message,
                          const hws_address_t *from)
{
    const bool is_hello = hws_front_is_hello (message);
    if (is_hello) {
        report_gone (self, now);
    }
    const int rc = hws_engine_recv (self->engine, now, from, message);
    if (rc != 0) {
        hws_log (&self->log, HWS_LOG_ERROR, "event=message_lost reason=\"%s\"", hws_strerror (rc));
    }
    if (is_hello) {
        hws_front_tie (self->front, from);
    }
    hws_front_release (self->front, message);
}

static void drain_front (hws_broker_t *self, hws_ms_t now)
{
    size_t bytes = 0;
    size_t frame_budget = TURN_FRAMES;
    hws_message_t message;
    hws_address_t from;
    for (int taken = 0; taken < TURN_MESSAGES && bytes < TURN_BYTES; taken++) {
        if (hws_front_recv (self->front, &frame_budget, &message, &from) == 0) {
            return;
        }
        bytes += message.frame[0].size + message.frame[1].size;
        take_message (self, now, &message, &from);
    }
}

static void do_effect (hws_broker_t *self, hws_ms_t now, hws_effect_t *effect)
{
    if (effect->kind == HWS_EFFECT_SEND) {
        const int rc = hws_front_send (self->front, effect);
        if (rc == HWS_EWOULD_BLOCK) {
            hws_engine_refused (self->engine, now, effect);
            hws_front_dispose (effect); /* what the engine did not want back */
        } else if (rc != 0) {
            hws_engine_peer_gone (self->engine, now, &effect->to);
        }
        return;
    }
    if (effect->kind == HWS_EFFECT_BIND) {
        hws_engine_bound (self->engine, now, effect->to.front, HWS_ESYSTEM, NULL, 0,
                          "this broker has one front only");
    } else if (effect->kind == HWS_EFFECT_LOG) {
        hws_log_bytes (&self->log, effect->level, hws_bytes (effect->data, effect->size));
    }
    hws_front_dispose (effect);
}

/*  Returns false when there may be more to send: then the next turn goes on.  */
static bool do_effects (hws_broker_t *self, hws_ms_t now)
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

static void log_refusals (hws_broker_t *self, hws_ms_t now)
{
    const uint64_t refused = hws_front_refused_connections (self->front);
    if (refused != self->refusals_logged && now >= self->refusals_log_at) {
        hws_log (&self->log, HWS_LOG_WARN,
                 "event=connection_limit limit=%zu refused=%" PRIu64 " refused_total=%" PRIu64,
                 self->connection_limit, refused - self->refusals_logged, refused);
        self->refusals_logged = refused;
        self->refusals_log_at = hws_time_after (now, REFUSALS_LOG_MS);
    }
}

static int on_timer (zloop_t *loop, int timer_id, void *arg);

/*  Deadlines move on all the time, so a timer that is set too early is left to fire:
 *  that costs one idle turn, setting it anew costs at every turn.  */
static void set_timer (hws_broker_t *self, hws_ms_t now, hws_ms_t at)
{
    if (at >= self->timer_at) {
        return;
    }
    if (self->timer_id >= 0) {
        zloop_timer_end (self->loop, self->timer_id);
    }
    self->timer_id = zloop_timer (self->loop, (size_t) hws_time_until (now, at), 1, on_timer, self);
    self->timer_at = at;
}

static int run_turn (hws_broker_t *self)
{
    const hws_ms_t now = hws_clock_ms ();
    self->turns++;
    report_gone (self, now);
    drain_front (self, now);
    if (hws_engine_wake_at (self->engine) <= now) {
        hws_engine_expire (self->engine, now);
    }
    const bool is_all_sent = do_effects (self, now);
    log_refusals (self, now);

    if (self->is_draining &&
        (now >= self->drain_end_at || (is_all_sent && hws_engine_is_drained (self->engine)))) {
        self->is_stopped = true;
    }
    hws_ms_t wake_at = is_all_sent ? hws_engine_wake_at (self->engine) : now;
    wake_at = hws_time_min (wake_at, hws_front_wake_at (self->front));
    set_timer (self, now, hws_time_min (wake_at, self->drain_end_at));
    return self->is_stopped ? -1 : 0;
}

static int on_readable (zloop_t *loop, zmq_pollitem_t *item, void *arg)
{
    (void) loop;
    (void) item;
    return run_turn (arg);
}

static int on_timer (zloop_t *loop, int timer_id, void *arg)
{
    (void) loop;
    hws_broker_t *const self = arg;
    if (timer_id == self->timer_id) {
        self->timer_id = -1;
        self->timer_at = HWS_NEVER;
    }
    return run_turn (self);
}

/*  ---- Signals ---- */

static void stop (hws_broker_t *self, hws_ms_t now)
{
    if (self->is_draining) {
        hws_log (&self->log, HWS_LOG_INFO, "event=stop");
        self->is_stopped = true;
        self->is_hurried = true;
        return;
    }
    hws_log (&self->log, HWS_LOG_INFO, "event=drain timeout_ms=%" PRIu64, self->drain_timeout_ms);
    self->is_draining = true;
    self->drain_end_at = hws_time_after (now, (hws_ms_t) self->drain_timeout_ms);
    hws_engine_drain (self->engine, now, "the broker is stopping");
}

/*  The text quotes what it speaks of, so it is escaped for the quotes of the log.  */
static void log_reload_refused (const hws_broker_t *self, const char *text)
{
    char quoted[1200];
    hws_json_writer_t writer;
    hws_json_writer_init (&writer, quoted, sizeof quoted);
    hws_json_put_text (&writer, hws_bytes_of_text (text));
    hws_log (&self->log, HWS_LOG_ERROR, "event=reload_refused reason=%.*s", (int) writer.used,
             quoted);
}

static void reload (hws_broker_t *self)
{
    const hws_broker_settings_t *settings;
    char text[512];
    if (self->reload (self->reload_arg, &settings, text, sizeof text) != 0) {
        log_reload_refused (self, text);
        return;
    }
    const hws_limits_t limits = hws_fixed_limits (&self->fixed, settings);
    hws_engine_configure (self->engine, &settings->anchors, &limits);
    self->log.level = (hws_log_level_t) settings->log_level;
    self->drain_timeout_ms = settings->drain_timeout_ms;
    hws_log (&self->log, HWS_LOG_INFO, "event=reload");

    const char *keys[HWS_FIXED_KEYS_MAX];
    const size_t count = hws_fixed_changes (&self->fixed, settings, keys);
    for (size_t i = 0; i < count; i++) {
        hws_log (&self->log, HWS_LOG_WARN, "event=reload_needs_restart key=%s", keys[i]);
    }
}

static void log_statistics (const hws_broker_t *self)
{
    const hws_engine_counts_t now = hws_engine_counts (self->engine);
    const hws_engine_stats_t *const sum = hws_engine_stats (self->engine);
    hws_log (
        &self->log, HWS_LOG_INFO,
        "event=counts connections=%zu peers=%zu anchors=%zu dedicated=%zu seats=%zu waiting=%zu"
        " tombstones=%zu cancel_orphans=%zu turns=%" PRIu64 " refused_connections=%" PRIu64
        " silent_connections=%" PRIu64,
        hws_front_connections (self->front), now.peers, now.anchors, now.dedicated, now.seats,
        now.waiting, now.tombstones, now.cancel_orphans, self->turns,
        hws_front_refused_connections (self->front), hws_front_silent_connections (self->front));
    hws_log (&self->log, HWS_LOG_INFO,
             "event=statistics messages_in=%" PRIu64 " bytes_in=%" PRIu64 " runs_in=%" PRIu64
             " records_in=%" PRIu64 " batches_forwarded=%" PRIu64 " batches_copied=%" PRIu64
             " opened=%" PRIu64 " closed=%" PRIu64 " attached=%" PRIu64 " detached=%" PRIu64
             " finalized=%" PRIu64 " dropped=%" PRIu64 " cancelled=%" PRIu64,
             sum->messages_in, sum->bytes_in, sum->runs_in, sum->records_in, sum->batches_forwarded,
             sum->batches_copied, sum->opened, sum->closed, sum->attached, sum->detached,
             sum->finalized, sum->dropped, sum->cancelled);
    hws_log (&self->log, HWS_LOG_INFO,
             "event=faults refused=%" PRIu64 " refused_cancels=%" PRIu64 " protocol_errors=%" PRIu64
             " credit_violations=%" PRIu64 " gaps=%" PRIu64 " unknown_stream=%" PRIu64
             " missed_controls=%" PRIu64 " binds=%" PRIu64 " bind_failures=%" PRIu64
             " late_turns=%" PRIu64 " log_lines_lost=%" PRIu64,
             sum->refused, sum->refused_cancels, sum->protocol_errors, sum->credit_violations,
             sum->gaps, sum->unknown_stream, sum->missed_controls, sum->binds, sum->bind_failures,
             sum->late_turns, sum->log_lines_lost);
}

/*  SIGUSR1 is for a log file that was moved away; the log is stderr, so there is
 *  nothing to do, and nothing ends.  */
static int on_signal (zloop_t *loop, zmq_pollitem_t *item, void *arg)
{
    (void) loop;
    (void) item;
    hws_broker_t *const self = arg;
    int number;
    while ((number = hws_process_next_signal (self->signals)) != 0) {
        if (number == SIGTERM || number == SIGINT) {
            stop (self, hws_clock_ms ());
        } else if (number == SIGHUP) {
            reload (self);
        } else if (number == SIGUSR2) {
            log_statistics (self);
        }
    }
    return run_turn (self);
}

int hws_broker_run (hws_broker_t *self)
{
    uint64_t turns = 0;
    int idle_returns = 0;
    run_turn (self);
    while (!self->is_stopped) {
        /*  It returns also when a poll was interrupted, by a debugger say.  */
        zloop_start (self->loop);
        idle_returns = self->turns == turns ? idle_returns + 1 : 0;
        turns = self->turns;
        if (idle_returns == IDLE_RETURNS_MAX) {
            hws_log (&self->log, HWS_LOG_ERROR, "event=poll_failed reason=\"%s\"",
                     zmq_strerror (errno));
            return HWS_ESYSTEM;
        }
    }
    return 0;
}

/*  ---- Beginning and end ---- */

static int new_engine (hws_broker_t *self, const hws_broker_settings_t *settings)
{
    hws_engine_options_t options = {.anchors = settings->anchors,
                                    .limits = hws_fixed_limits (&self->fixed, settings)};
    if (hws_random_fill (&options.broker_id, sizeof options.broker_id) != 0 ||
        hws_random_fill (options.secret, sizeof options.secret) != 0) {
        return HWS_ESYSTEM;
    }
    /*  No state directory yet: the id is new at each start, the epoch is the time.  */
    options.epoch = (uint32_t) (hws_clock_unix_us () / 1000000 - EPOCH_BEGIN_S) & 0x7fffffffu;
    return hws_engine_new (&self->engine, &options);
}

/*  As many connections as limits.peers asks for and the descriptors allow.  */
static int count_connections (hws_broker_t *self, const hws_broker_settings_t *settings,
                              size_t *descriptors, hws_front_fault_t fault)
{
    const uint64_t peers_max = 1000000;
    const size_t peers =
        (size_t) (settings->limits.peers < peers_max ? settings->limits.peers : peers_max);
    const size_t wanted = peers + CONNECTIONS_SPARE;
    const size_t own = DESCRIPTORS_OWN + 2 * settings->listen.count;
    *descriptors = hws_process_raise_descriptors (own + wanted + wanted / 8);

    /*  An eighth stays free for connections that come faster than they are refused.  */
    const size_t spare = *descriptors / 8;
    const size_t left = *descriptors > own + spare ? *descriptors - own - spare : 0;
    if (left == 0) {
        snprintf (fault, sizeof (hws_front_fault_t),
                  "cannot work with %zu descriptors (RLIMIT_NOFILE)", *descriptors);
        return HWS_ELIMIT;
    }
    self->connection_limit = left < wanted ? left : wanted;
    if (self->connection_limit < peers) {
        self->fixed.peers = self->connection_limit - self->connection_limit / 8;
        hws_log (&self->log, HWS_LOG_WARN,
                 "event=descriptors_low descriptors=%zu connections=%zu limits.peers=%" PRIu64,
                 *descriptors, self->connection_limit, settings->limits.peers);
    }
    return 0;
}

static int new_front (hws_broker_t *self, const hws_broker_settings_t *settings, size_t descriptors,
                      hws_front_fault_t fault)
{
    const uint64_t batch_bytes = settings->limits.batch_bytes;
    hws_front_options_t options = {
        .message_bytes =
            (size_t) (batch_bytes > HWS_CONTROL_SIZE_MAX ? batch_bytes : HWS_CONTROL_SIZE_MAX),
        .send_queue = settings->send_queue,
        .connection_limit = self->connection_limit,
        .allow_insecure = settings->allow_insecure,
        .descriptor_limit = descriptors,
    };
    int rc = hws_random_fill (&options.hash_key, sizeof options.hash_key);
    if (rc == 0) {
        rc = hws_front_new (&self->front, self->context, &options);
    }
    for (size_t i = 0; rc == 0 && i < settings->listen.count; i++) {
        rc = hws_front_bind (self->front, settings->listen.text[i], fault);
    }
    return rc;
}

static int new_loop (hws_broker_t *self)
{
    const struct {
        zmq_pollitem_t item;
        zloop_fn *handler;
    } polled[] = {
        {{hws_front_socket (self->front), 0, ZMQ_POLLIN, 0}, on_readable},
        {{hws_front_monitor_socket (self->front), 0, ZMQ_POLLIN, 0}, on_readable},
        {{NULL, self->signals, ZMQ_POLLIN, 0}, on_signal},
    };
    self->loop = zloop_new ();
    if (!self->loop) {
        return HWS_ENO_MEMORY;
    }
    for (size_t i = 0; i < sizeof polled / sizeof *polled; i++) {
        zmq_pollitem_t item = polled[i].item;
        if (zloop_poller (self->loop, &item, polled[i].handler, self) != 0) {
            return HWS_ENO_MEMORY;
        }
        zloop_poller_set_tolerant (self->loop, &item);
    }
    return 0;
}

int hws_broker_new (hws_broker_t **self, const hws_broker_options_t *options,
                    hws_front_fault_t fault)
{
    const hws_broker_settings_t *const settings = options->settings;
    fault[0] = '\0';
    hws_broker_t *made = calloc (1, sizeof *made);
    if (!made) {
        snprintf (fault, sizeof (hws_front_fault_t), "%s", hws_strerror (HWS_ENO_MEMORY));
        return HWS_ENO_MEMORY;
    }
    made->log = (hws_log_t){.descriptor = 2, .level = (hws_log_level_t) settings->log_level};
    made->signals = options->signals;
    made->reload = options->reload;
    made->reload_arg = options->reload_arg;
    made->drain_timeout_ms = settings->drain_timeout_ms;
    made->timer_id = -1;
    made->timer_at = HWS_NEVER;
    made->drain_end_at = HWS_NEVER;

    /*  czmq is told at once that signals are not its business.  */
    zsys_init ();
    zsys_handler_set (NULL);

    size_t descriptors = 0;
    int rc = hws_random_seed_rand ();
    if (rc == 0) {
        made->context = zmq_ctx_new ();
        rc = made->context ? 0 : HWS_ENO_MEMORY;
    }
    if (rc == 0) {
        rc = hws_fixed_init (&made->fixed, settings);
    }
    if (rc == 0) {
        rc = count_connections (made, settings, &descriptors, fault);
    }
    if (rc == 0) {
        rc = new_engine (made, settings);
    }
    if (rc == 0) {
        rc = new_front (made, settings, descriptors, fault);
    }
    if (rc == 0) {
        rc = new_loop (made);
    }
    if (rc != 0) {
        if (fault[0] == '\0') {
            snprintf (fault, sizeof (hws_front_fault_t), "cannot start: %s", hws_strerror (rc));
        }
        made->is_hurried = true;
        hws_broker_destroy (&made);
        return rc;
    }
    *self = made;
    return 0;
}

void hws_broker_destroy (hws_broker_t **self)
{
    hws_broker_t *const broker = *self;
    if (!broker) {
        return;
    }
    if (broker->engine) {
        hws_effect_t effect;
        hws_engine_abandon (broker->engine);
        while (hws_engine_pop (broker->engine, &effect)) {
            hws_front_dispose (&effect);
        }
        hws_engine_destroy (&broker->engine);
    }
    zloop_destroy (&broker->loop);
    hws_front_destroy (&broker->front, broker->is_hurried ? 0 : LINGER_MS);
    while (broker->context && zmq_ctx_term (broker->context) != 0 && errno == EINTR) {
    }
    hws_fixed_fini (&broker->fixed);
    free (broker);
    *self = NULL;
}

const char *hws_broker_endpoint (const hws_broker_t *self, size_t i)
{
    return hws_front_endpoint (self->front, i);
}
