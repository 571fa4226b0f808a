#include "broker/broker_io.h"

#include "base/json_writer.h"
#include "broker/fixed.h"
#include "broker/process_io.h"
#include "broker/room.h"
#include "broker/turn_io.h"
#include "io/clock_io.h"
#include "io/random_io.h"

#include <czmq.h>
#include <inttypes.h>

#define FRONT_SOCKETS     3    /* of libzmq: the ROUTER and both ends of its monitor */
#define FRONT_GENERATIONS 8    /* of all fronts, that may be on their way out at one time */
#define LINGER_MS         1000 /* for the last messages of a drain */
#define TURNS_MAX         8    /* before other descriptors are looked at */
#define REFUSALS_LOG_MS   1000 /* at most one line about refused connections in so long */
#define IDLE_RETURNS_MAX  100  /* zloop returns without having called us: polling fails */

#define EPOCH_BEGIN_S INT64_C (1577836800) /* 2020-01-01, where epochs begin */

struct hws_broker {
    hws_log_t log;
    void *context; /* of libzmq; ours, not czmq's */
    zloop_t *loop;
    hws_turn_t turn; /* its objects are owned here */
    int signals;     /* not owned */
    hws_broker_reload_t *reload;
    void *reload_arg;

    hws_fixed_t fixed;
    uint64_t drain_timeout_ms;
    hws_room_t room;
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

static void log_refusals (hws_broker_t *self, hws_ms_t now)
{
    const uint64_t refused = hws_connections_refused (self->turn.connections);
    if (refused != self->refusals_logged && now >= self->refusals_log_at) {
        hws_log (&self->log, HWS_LOG_WARN,
                 "event=connection_limit limit=%zu refused=%" PRIu64 " refused_total=%" PRIu64,
                 self->room.connections, refused - self->refusals_logged, refused);
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

/*  Returns when the next one is due.  */
static hws_ms_t run_one (hws_broker_t *self)
{
    const hws_ms_t now = hws_clock_ms ();
    self->turns++;
    hws_turn_read (&self->turn, now);
    if (hws_engine_wake_at (self->turn.engine) <= now) {
        hws_engine_expire (self->turn.engine, now);
    }
    const bool is_all_sent = hws_turn_act (&self->turn, now);
    log_refusals (self, now);

    if (self->is_draining &&
        (now >= self->drain_end_at || (is_all_sent && hws_engine_is_drained (self->turn.engine)))) {
        self->is_stopped = true;
    }
    hws_ms_t wake_at = is_all_sent ? hws_engine_wake_at (self->turn.engine) : now;
    wake_at = hws_time_min (wake_at, hws_turn_wake_at (&self->turn, now));
    return hws_time_min (wake_at, self->drain_end_at);
}

/*  Some turns follow each other without a wake-up between; deadlines are met in each, signals
 *  and the monitor wait for them all.  */
static int run_turn (hws_broker_t *self)
{
    hws_ms_t wake_at = HWS_NEVER;
    for (int i = 0; i < TURNS_MAX && !self->is_stopped; i++) {
        wake_at = run_one (self);
        if (!self->turn.has_more) {
            break;
        }
    }
    set_timer (self, hws_clock_ms (), wake_at);
    return self->is_stopped ? -1 : 0;
}

static int on_readable (zloop_t *loop, zmq_pollitem_t *item, void *arg)
{
    (void) loop;
    (void) item;
    return run_turn (arg);
}

/*  What the monitor tells is heard before anything is read.  */
static int on_news (zloop_t *loop, zmq_pollitem_t *item, void *arg)
{
    hws_broker_t *const self = arg;
    hws_turn_hear (&self->turn, hws_clock_ms ());
    return on_readable (loop, item, arg);
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
    hws_engine_drain (self->turn.engine, now, "the broker is stopping");
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
    hws_engine_configure (self->turn.engine, &settings->anchors, &limits);
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
    const hws_engine_counts_t now = hws_engine_counts (self->turn.engine);
    const hws_engine_stats_t *const sum = hws_engine_stats (self->turn.engine);
    hws_log (
        &self->log, HWS_LOG_INFO,
        "event=counts connections=%zu peers=%zu anchors=%zu dedicated=%zu seats=%zu waiting=%zu"
        " tombstones=%zu cancel_orphans=%zu fronts=%zu turns=%" PRIu64
        " refused_connections=%" PRIu64 " silent_connections=%" PRIu64,
        hws_connections_count (self->turn.connections), now.peers, now.anchors, now.dedicated,
        now.seats, now.waiting, now.tombstones, now.cancel_orphans,
        hws_fronts_count (self->turn.fronts), self->turns,
        hws_connections_refused (self->turn.connections),
        hws_connections_silent (self->turn.connections));
    hws_log (&self->log, HWS_LOG_INFO,
             "event=statistics messages_in=%" PRIu64 " bytes_in=%" PRIu64 " runs_in=%" PRIu64
             " records_in=%" PRIu64 " batches_forwarded=%" PRIu64 " batches_copied=%" PRIu64
             " opened=%" PRIu64 " closed=%" PRIu64 " attached=%" PRIu64 " detached=%" PRIu64
             " finalized=%" PRIu64 " dropped=%" PRIu64 " cancelled=%" PRIu64 " returns=%" PRIu64,
             sum->messages_in, sum->bytes_in, sum->runs_in, sum->records_in, sum->batches_forwarded,
             sum->batches_copied, sum->opened, sum->closed, sum->attached, sum->detached,
             sum->finalized, sum->dropped, sum->cancelled, sum->returns);
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

/*  For a broker without a state directory.  */
static int make_identity (hws_identity_t *identity)
{
    identity->epoch = (uint32_t) (hws_clock_unix_us () / 1000000 - EPOCH_BEGIN_S) & HWS_EPOCH_MAX;
    int rc = hws_random_fill (&identity->broker_id, sizeof identity->broker_id);
    return rc == 0 ? hws_random_fill (identity->key, sizeof identity->key) : rc;
}

static int new_engine (hws_broker_t *self, const hws_broker_options_t *broker)
{
    hws_identity_t identity;
    hws_engine_options_t options = {.anchors = broker->settings->anchors,
                                    .limits = hws_fixed_limits (&self->fixed, broker->settings)};
    int rc = hws_random_fill (options.secret, sizeof options.secret);
    if (broker->identity) {
        identity = *broker->identity;
    } else if (rc == 0) {
        rc = make_identity (&identity);
    }
    if (rc != 0) {
        return rc;
    }
    options.broker_id = identity.broker_id;
    options.epoch = identity.epoch;
    memcpy (options.key, identity.key, sizeof options.key);
    return hws_engine_new (&self->turn.engine, &options);
}

/*  As many connections and fronts as the settings ask for and the descriptors allow.  */
static int make_room (hws_broker_t *self, const hws_broker_settings_t *settings,
                      hws_front_fault_t fault)
{
    const uint64_t peers = settings->limits.peers;
    const size_t descriptors = hws_process_raise_descriptors (hws_room_wanted (settings));
    hws_room_t *const room = &self->room;
    if (hws_room_share (room, settings, descriptors) != 0) {
        snprintf (fault, sizeof (hws_front_fault_t),
                  "cannot work with %zu descriptors (RLIMIT_NOFILE)", descriptors);
        return HWS_ELIMIT;
    }
    if (room->connections < peers || room->fronts < settings->limits.fronts) {
        if (room->connections < peers) {
            self->fixed.peers = room->connections - room->connections / 8;
        }
        hws_log (&self->log, HWS_LOG_WARN,
                 "event=descriptors_low descriptors=%zu connections=%zu limits.peers=%" PRIu64
                 " fronts=%zu limits.fronts=%" PRIu64,
                 descriptors, room->connections, peers, room->fronts, settings->limits.fronts);
    }
    return 0;
}

static int new_fronts (hws_broker_t *self, const hws_broker_settings_t *settings,
                       hws_front_fault_t fault)
{
    const uint64_t batch_bytes = settings->limits.batch_bytes;
    hws_fronts_options_t options = {
        .context = self->context,
        .front = {.message_bytes =
                      (size_t) (batch_bytes > HWS_CONTROL_SIZE_MAX ? batch_bytes
                                                                   : HWS_CONTROL_SIZE_MAX),
                  .send_queue = settings->send_queue,
                  .allow_insecure = settings->allow_insecure},
        .room = self->room,
        .log = &self->log,
    };
    int rc = hws_random_fill (&options.hash_key, sizeof options.hash_key);
    if (rc == 0) {
        /*  Twice as many ties as connections: late HELLOs of closed ones have ties too.  */
        rc = hws_connections_new (&self->turn.connections, 2 * self->room.connections,
                                  options.hash_key);
    }
    options.front.connections = self->turn.connections;
    if (rc == 0) {
        rc = hws_front_new (&self->turn.front, self->context, &options.front);
    }
    for (size_t i = 0; rc == 0 && i < settings->listen.count; i++) {
        rc = hws_front_bind (self->turn.front, settings->listen.text[i], fault);
    }
    options.shared = self->turn.front;
    return rc == 0 ? hws_fronts_new (&self->turn.fronts, &options) : rc;
}

/*  Room for all dedicated fronts, several times: a socket that is closed is gone only when libzmq
 *  has sent its last words, and anchors may come and go faster.  */
static int new_context (hws_broker_t *self)
{
    const size_t sockets = FRONT_SOCKETS * (1 + FRONT_GENERATIONS * self->room.fronts);
    self->context = zmq_ctx_new ();
    if (!self->context) {
        return HWS_ENO_MEMORY;
    }
    const int most = zmq_ctx_get (self->context, ZMQ_SOCKET_LIMIT);
    const int wanted = sockets < (size_t) most ? (int) sockets : most;
    return zmq_ctx_set (self->context, ZMQ_MAX_SOCKETS, wanted) == 0 ? 0 : HWS_ESYSTEM;
}

/*  Sockets are polled by their descriptors: for each socket libzmq would make two system calls
 *  more at every wake.  */
static int new_loop (hws_broker_t *self)
{
    const struct {
        int descriptor;
        zloop_fn *handler;
    } polled[] = {
        {hws_front_monitor_descriptor (self->turn.front), on_news},
        {hws_front_descriptor (self->turn.front), on_readable},
        {hws_fronts_descriptor (self->turn.fronts), on_readable},
        {self->signals, on_signal},
    };
    self->loop = zloop_new ();
    if (!self->loop) {
        return HWS_ENO_MEMORY;
    }
    for (size_t i = 0; i < sizeof polled / sizeof *polled; i++) {
        zmq_pollitem_t item = {.fd = polled[i].descriptor, .events = ZMQ_POLLIN};
        if (item.fd < 0) {
            return HWS_ESYSTEM;
        }
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
    made->turn.log = &made->log;
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

    int rc = hws_random_seed_rand ();
    if (rc == 0) {
        rc = hws_fixed_init (&made->fixed, settings);
    }
    if (rc == 0) {
        rc = make_room (made, settings, fault);
    }
    if (rc == 0) {
        rc = new_context (made);
    }
    if (rc == 0) {
        rc = new_engine (made, options);
    }
    if (rc == 0) {
        rc = new_fronts (made, settings, fault);
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
    if (broker->turn.engine) {
        hws_effect_t effect;
        hws_engine_abandon (broker->turn.engine);
        while (hws_engine_pop (broker->turn.engine, &effect)) {
            hws_front_dispose (&effect);
        }
        hws_engine_destroy (&broker->turn.engine);
    }
    zloop_destroy (&broker->loop);
    const int linger_ms = broker->is_hurried ? 0 : LINGER_MS;
    hws_fronts_destroy (&broker->turn.fronts, linger_ms);
    hws_front_destroy (&broker->turn.front, linger_ms);
    hws_connections_destroy (&broker->turn.connections);
    while (broker->context && zmq_ctx_term (broker->context) != 0 && errno == EINTR) {
    }
    hws_fixed_fini (&broker->fixed);
    free (broker);
    *self = NULL;
}

const char *hws_broker_endpoint (const hws_broker_t *self, size_t i)
{
    return hws_front_endpoint (self->turn.front, i);
}
