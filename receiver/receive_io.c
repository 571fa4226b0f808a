#include "receiver/receive_io.h"

#include "base/text.h"
#include "conf/connection_io.h"
#include "conf/program_io.h"
#include "io/clock_io.h"
#include "io/console_io.h"
#include "io/meter.h"
#include "io/wake_io.h"
#include "io/watch_io.h"
#include "receiver/collector_io.h"
#include "receiver/resume_io.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*  Bytes and records that are written and acknowledged together when there is always
 *  more to read. Less than a sender's usual window, so that it need not wait.  */
#define ACK_BYTES   131072
#define ACK_RECORDS 4096

#define CLOSE_MS      1000 /* that the broker gets to answer a close */
#define LAST_WORDS_MS 1000 /* and then to bring the endings */
#define TICK_MS       100  /* between two drawings of the progress */
#define RETRY_MS      200  /* between two tries for a name in use */
#define WAIT_MS_MAX   60000
#define LEAVE_MS      1000  /* that what was acknowledged gets to reach the broker */
#define ANNOUNCE_MS   500   /* that senders which the broker has not given up get to come again */
#define SETTLE_MS     5000  /* and to end again */
#define LOCK_MS       10000 /* that a receiver which was taken over gets to end */

#define GOES_ON HWS_COLLECTOR_GOES_ON

typedef struct {
    const hws_recv_settings_t *settings;
    hws_console_t console;
    hws_connection_words_t words; /* for the client's thread */
    hws_watch_t watch;
    hws_client_t *client;
    hws_receiver_t *receiver;
    hws_collector_t collector;
    hws_resume_t *resume;   /* with --resume, else null */
    int stop_fd;            /* readable when a signal has come and there is one; else -1 */
    bool is_pipe;           /* stdout is one, so that its end can be seen */
    bool is_closing;        /* we have closed the anchor; endings are our doing */
    hws_ms_t end_at;        /* --timeout */
    uint64_t unacked_bytes; /* received since the last acknowledgement */
    uint64_t unacked_count; /* events, the same */
    hws_meter_t meter;      /* the watching thread's own */
} receive_t;

/*  ---- The watching thread ---- */

/*  Whatever the broker says, or does not say, the endings come. With --resume nothing ends but
 *  the loop.  */
static bool stop (void *context, int signal)
{
    receive_t *const self = context;
    if (self->resume) {
        hws_wake_set (self->stop_fd);
        return true;
    }
    hws_receiver_close (self->receiver,
                        signal == SIGINT ? "the receiver got SIGINT" : "the receiver got SIGTERM",
                        CLOSE_MS);
    return true;
}

static void draw_progress (void *context)
{
    receive_t *const self = context;
    const hws_collector_t *const collector = &self->collector;
    const hws_amount_t amount = {.records = collector->record_count,
                                 .bytes = collector->record_bytes};
    char text[160];
    hws_meter_text (&self->meter, hws_clock_ms (), amount, text, sizeof text);
    char line[240];
    const uint64_t ended = collector->ended_count;
    const uint64_t attached = collector->attached_count - ended;
    snprintf (line, sizeof line, "%s, %" PRIu64 " sender%s, %" PRIu64 " ended", text, attached,
              hws_plural (attached), ended);
    hws_console_draw (&self->console, line);
}

/*  ---- The loop ---- */

static void take (receive_t *self, const hws_event_t *event)
{
    self->unacked_count++;
    self->unacked_bytes += event->size;
    const bool closes_on_signal = self->resume == NULL;
    hws_collector_take (&self->collector, event,
                        self->is_closing ||
                            (closes_on_signal && hws_watch_signal (&self->watch) != 0));
}

/*  Writes what was gathered and only then acknowledges it.  */
static void flush (receive_t *self)
{
    if (hws_collector_flush (&self->collector) == 0 && self->unacked_count > 0) {
        hws_receiver_ack (self->receiver);
        self->unacked_count = 0;
        self->unacked_bytes = 0;
    }
}

static void check_time (receive_t *self)
{
    if (self->collector.status == GOES_ON && hws_clock_ms () >= self->end_at) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "the time limit of --timeout has passed");
        self->collector.status = HWS_EXIT_TIMEOUT;
    }
}

/*  Waits for an event, for --timeout, or for the reader of stdout to go away.  */
static void wait_for_event (receive_t *self)
{
    struct pollfd items[3] = {
        {.fd = hws_receiver_fd (self->receiver), .events = POLLIN},
        {.fd = self->is_pipe ? STDOUT_FILENO : -1, .events = 0},
        {.fd = self->stop_fd, .events = POLLIN},
    };
    const hws_ms_t left_ms = hws_time_until (hws_clock_ms (), self->end_at);
    poll (items, 3, (int) hws_time_min (left_ms, WAIT_MS_MAX));
    if (items[1].revents & POLLERR) {
        hws_collector_lose_reader (&self->collector);
    }
}

/*  With --resume a signal ends the loop and nothing else.  */
static bool is_to_leave (receive_t *self)
{
    return self->resume && hws_watch_signal (&self->watch) != 0;
}

static void run (receive_t *self)
{
    while (self->collector.status == GOES_ON && !self->collector.is_closed && !is_to_leave (self)) {
        hws_event_t event;
        const int rc = hws_receiver_recv (self->receiver, &event, 0);
        if (rc == 0) {
            take (self, &event);
            if ((self->unacked_bytes < ACK_BYTES && self->unacked_count < ACK_RECORDS) ||
                hws_collector_is_in_doubt (&self->collector)) {
                continue;
            }
        } else if (rc != HWS_EWOULD_BLOCK && rc != HWS_ETIMEOUT) {
            hws_console_say (&self->console, HWS_LOG_ERROR, "%s", hws_strerror (rc));
            self->collector.status = HWS_EXIT_FAILED;
            return;
        }
        flush (self);
        check_time (self);
        if (rc < 0 && self->collector.status == GOES_ON) {
            wait_for_event (self);
        }
    }
}

/*  All that was wanted had been written by a process before this one. If the broker does not know
 *  yet, it tells the last of it once more: we take that, or closing the anchor would end senders
 *  badly that are done.  */
static void settle (receive_t *self)
{
    const hws_ms_t give_up_at = hws_time_after (hws_clock_ms (), SETTLE_MS);
    for (;;) {
        hws_event_t event;
        const hws_ms_t left_ms = hws_time_until (hws_clock_ms (), give_up_at);
        const hws_ms_t wait_ms =
            self->collector.owed_count > 0 ? left_ms : hws_time_min (left_ms, ANNOUNCE_MS);
        if (hws_receiver_recv (self->receiver, &event, wait_ms) < 0) {
            return;
        }
        take (self, &event);
        flush (self);
    }
}

/*  Whether the anchor is to stay for another receiver: we have not got all that was wanted.  */
static bool leaves_anchor (receive_t *self)
{
    return self->resume && (self->collector.status == HWS_EXIT_FAILED || is_to_leave (self));
}

/*  The anchor is over; but one that another receiver took, or that we cannot reach, is not.  */
static void remove_resume_file (receive_t *self)
{
    if (self->resume && !self->collector.is_left) {
        hws_resume_remove (self->resume);
    }
}

/*  We have all we wanted and the broker has not heard of it: without it the senders, who are done,
 *  would end badly. A signal ends this wait, and the process.  */
static void wait_until_heard (receive_t *self)
{
    if (hws_receiver_close (self->receiver, NULL, self->words.give_up_ms) < 0) {
        hws_console_say (&self->console, HWS_LOG_WARN,
                         "no broker has heard that all came: senders may report a bad end");
    }
}

/*  Leaves the anchor, or closes it, when that is not what ended us, and hears the endings.  */
static void finish (receive_t *self)
{
    static const char *const reasons[] = {
        [HWS_EXIT_DONE] = "the receiver has all it wanted",
        [HWS_EXIT_FAILED] = "the receiver failed",
        [HWS_EXIT_TIMEOUT] = "the receiver's time limit passed",
    };
    flush (self);
    if (self->collector.is_closed) {
        remove_resume_file (self);
        return;
    }
    if (leaves_anchor (self)) {
        hws_receiver_leave (&self->receiver, LEAVE_MS);
        hws_console_say (&self->console, HWS_LOG_INFO,
                         "the anchor stays open for the next --resume %s", self->settings->resume);
        return;
    }
    self->is_closing = true;
    const int status = self->collector.status;
    const int rc = hws_receiver_close (
        self->receiver, status >= 0 && status <= HWS_EXIT_TIMEOUT ? reasons[status] : NULL,
        CLOSE_MS);
    const hws_ms_t give_up_at = hws_time_after (hws_clock_ms (), LAST_WORDS_MS);
    while (!self->collector.is_closed) {
        hws_event_t event;
        const hws_ms_t left_ms = hws_time_until (hws_clock_ms (), give_up_at);
        if (hws_receiver_recv (self->receiver, &event, left_ms) < 0) {
            break;
        }
        take (self, &event);
    }
    flush (self);
    if (rc < 0 && status == HWS_EXIT_DONE) {
        wait_until_heard (self);
    }
    remove_resume_file (self);
}

/*  ---- Beginning and end ---- */

/*  Says why the broker did not do it, in its own words if it has any, and of what.  */
static int refuse (receive_t *self, int code)
{
    char text[1200] = "";
    if (self->client) {
        hws_client_error (self->client, text, sizeof text);
    }
    const bool is_about_broker =
        code == HWS_EUNREACHABLE || code == HWS_ETRANSPORT || self->settings->anchor == NULL;
    const char *const subject = is_about_broker ? self->settings->broker : self->settings->anchor;
    const char *const hint = code == HWS_ENAME_IN_USE && !hws_recv_has_wait (self->settings)
                                 ? " (its receiver may be away: try --wait)"
                                 : "";
    if (code == HWS_ECANCELLED) {
        hws_console_say (&self->console, HWS_LOG_ERROR,
                         "cancelled(requested) before it was open: %s", text);
    } else if (strstr (text, subject)) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s%s", text, hint);
    } else {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s: %s%s", subject,
                         text[0] ? text : hws_strerror (code), hint);
    }
    return hws_exit_of_refusal (code, hws_recv_has_wait (self->settings));
}

/*  Opens, again and again while the name is in use and there is time: a receiver that died
 *  holds its name for the anchor's orphan_ttl_ms. Returns 0, a code, or the status 128 +
 *  a signal's number.  */
static int open_in_time (receive_t *self)
{
    const int64_t wait_ms = hws_recv_wait_ms (self->settings);
    const hws_ms_t give_up_at =
        wait_ms == HWS_FOREVER ? HWS_NEVER : hws_time_after (hws_clock_ms (), wait_ms);
    hws_receiver_options_t options = hws_recv_receiver_options (self->settings);
    options.manual_ack = true;
    if (self->resume && hws_resume_is_there (self->resume)) {
        options.handle = hws_resume_handle (self->resume);
        options.owner_token = hws_resume_owner_token (self->resume);
    }
    for (;;) {
        const int rc =
            hws_receiver_open (&self->receiver, self->client, self->settings->anchor, &options);
        const hws_ms_t left_ms = hws_time_until (hws_clock_ms (), give_up_at);
        if (rc != HWS_ENAME_IN_USE || left_ms == 0) {
            return rc;
        }
        poll (NULL, 0, (int) hws_time_min (left_ms, RETRY_MS));
        const int signal = hws_watch_signal (&self->watch);
        if (signal) {
            return 128 + signal;
        }
    }
}

/*  What the file names has ended while nobody used it.  */
static int forget_anchor (receive_t *self)
{
    char text[1200];
    hws_client_error (self->client, text, sizeof text);
    hws_console_say (&self->console, HWS_LOG_ERROR,
                     "%s: its anchor has ended meanwhile, the file is removed: %s",
                     self->settings->resume, text);
    hws_resume_remove (self->resume);
    return HWS_EXIT_FAILED;
}

static int tell_resume_error (receive_t *self, int code)
{
    hws_console_say (&self->console, HWS_LOG_ERROR, "%s",
                     self->resume ? hws_resume_error (self->resume) : hws_strerror (code));
    return code == HWS_EMALFORMED || code == HWS_EDENIED ? HWS_EXIT_USAGE : HWS_EXIT_FAILED;
}

/*  Before the first event. An anchor that somebody has begun before us stays, whatever is wrong
 *  here; a new one that could not be found again does not.  */
static int begin_resume (receive_t *self)
{
    const int rc = hws_resume_begin (self->resume, self->settings->anchor,
                                     hws_receiver_handle (self->receiver),
                                     hws_receiver_owner_token (self->receiver), LOCK_MS);
    if (rc == 0) {
        hws_collector_resume (&self->collector, self->resume);
        return GOES_ON;
    }
    if (hws_resume_is_there (self->resume)) {
        hws_receiver_leave (&self->receiver, LEAVE_MS);
    }
    return tell_resume_error (self, rc);
}

/*  Reads the file, or sees that one can be made, before the broker hears of us.  */
static int open_resume (receive_t *self)
{
    const hws_recv_settings_t *const settings = self->settings;
    int rc = hws_resume_open (&self->resume, settings->resume);
    if (rc < 0) {
        return tell_resume_error (self, rc);
    }
    if (hws_resume_is_there (self->resume) && !hws_resume_is_of (self->resume, settings->anchor)) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s: is of another anchor than %s",
                         settings->resume,
                         settings->anchor ? settings->anchor : "one without a name");
        return HWS_EXIT_USAGE;
    }
    self->stop_fd = hws_wake_new ();
    if (self->stop_fd < 0) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s", hws_strerror (HWS_ESYSTEM));
        return HWS_EXIT_FAILED;
    }
    return GOES_ON;
}

static int open_anchor (receive_t *self)
{
    hws_client_options_t client_options = hws_recv_client_options (self->settings);
    self->words = (hws_connection_words_t){.console = &self->console,
                                           .broker = self->settings->broker,
                                           .give_up_ms = client_options.give_up_ms};
    client_options.on_connection = hws_connection_say;
    client_options.on_connection_arg = &self->words;
    int rc = hws_client_new (&self->client, &client_options);
    if (rc < 0) {
        return refuse (self, rc);
    }
    rc = open_in_time (self);
    if (rc == HWS_ECLOSED && self->resume && hws_resume_is_there (self->resume)) {
        return forget_anchor (self);
    }
    if (rc != 0) {
        return rc < 0 ? refuse (self, rc) : rc;
    }
    if (self->resume) {
        const int status = begin_resume (self);
        if (status != GOES_ON) {
            return status;
        }
    }
    hws_collector_take_opened (&self->collector, self->settings->anchor,
                               hws_receiver_handle (self->receiver));
    return GOES_ON;
}

/*  From the open anchor to its end; returns the exit status.  */
static int stream (receive_t *self)
{
    struct stat status;
    self->is_pipe = self->settings->output_dir == NULL && fstat (STDOUT_FILENO, &status) == 0 &&
                    (S_ISFIFO (status.st_mode) || S_ISSOCK (status.st_mode));
    if (self->settings->timeout_ms.state == HWS_VALUE) {
        self->end_at =
            hws_time_after (hws_clock_ms (), (hws_ms_t) self->settings->timeout_ms.value);
    }
    hws_watch_guard (&self->watch, stop, self);
    if (self->console.draws_progress) {
        hws_meter_init (&self->meter, hws_clock_ms ());
        hws_watch_tick (&self->watch, draw_progress, self, TICK_MS);
    }

    if (self->resume && self->collector.status == HWS_EXIT_DONE) {
        settle (self);
    }
    run (self);
    const int signal = hws_watch_release (&self->watch);
    finish (self);

    hws_watch_tick (&self->watch, NULL, NULL, 0);
    if (self->console.draws_progress) {
        draw_progress (self);
    }
    if (signal) {
        return 128 + signal;
    }
    return self->collector.status == HWS_EXIT_DONE && self->collector.bad_end_count > 0
               ? HWS_EXIT_BAD_END
               : self->collector.status;
}

/*  Everything between the start and the end of the watching thread.  */
static int receive (receive_t *self)
{
    if (hws_collector_init (&self->collector, self->settings, &self->console) < 0) {
        return HWS_EXIT_FAILED;
    }
    int status = self->settings->resume ? open_resume (self) : GOES_ON;
    if (status == GOES_ON) {
        status = open_anchor (self);
    }
    if (status == GOES_ON) {
        status = stream (self);
    }
    hws_receiver_destroy (&self->receiver);
    hws_client_destroy (&self->client);
    hws_collector_fini (&self->collector);
    hws_resume_destroy (&self->resume);
    if (self->stop_fd >= 0) {
        close (self->stop_fd);
    }
    return status;
}

int hws_receive (const hws_recv_settings_t *settings)
{
    receive_t self = {.settings = settings, .end_at = HWS_NEVER, .stop_fd = -1};
    hws_console_init (&self.console, "hawser-recv", (hws_log_level_t) settings->log_level,
                      hws_recv_draws_progress (settings, isatty (STDOUT_FILENO) == 1));
    int status = HWS_EXIT_FAILED;
    const int rc = hws_watch_start (&self.watch);
    if (rc == 0) {
        status = receive (&self);
        hws_watch_end (&self.watch);
    } else {
        hws_console_say (&self.console, HWS_LOG_ERROR, "%s", hws_strerror (rc));
    }
    hws_console_fini (&self.console);
    return status;
}
