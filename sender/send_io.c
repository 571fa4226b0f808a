#include "sender/send_io.h"

#include "conf/connection_io.h"
#include "conf/program_io.h"
#include "framing/splitter.h"
#include "io/clock_io.h"
#include "io/console_io.h"
#include "io/meter.h"
#include "io/watch_io.h"
#include "proto/batch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CANCEL_MS 1000 /* that the broker gets to answer a cancel */
#define TICK_MS   100  /* between two drawings of the progress */

#define GOES_ON (-1) /* no exit status yet */

typedef struct {
    const hws_send_settings_t *settings;
    hws_console_t console;
    hws_connection_words_t words; /* for the client's thread */
    hws_watch_t watch;
    hws_client_t *client;
    hws_sender_t *sender;
    hws_meter_t meter; /* the drawing thread's */
} send_t;

/*  One file, or stdin.  */
typedef struct {
    const char *name; /* for messages */
    int fd;
    bool may_wait; /* a read may take for ever: a pipe, a terminal */
    hws_splitter_t splitter;
} input_t;

/*  ---- The watching thread ---- */

/*  While the broker says nothing of the cancel the stream does not end, and nor would we.  */
static bool stop (void *context, int signal)
{
    send_t *const self = context;
    const char *const reason =
        signal == SIGINT ? "the sender got SIGINT" : "the sender got SIGTERM";
    return hws_sender_cancel (self->sender, reason, CANCEL_MS) == 0;
}

static void draw_progress (void *context)
{
    send_t *const self = context;
    hws_amount_t amount;
    hws_sender_progress (self->sender, &amount.records, &amount.bytes);
    char text[160];
    hws_meter_text (&self->meter, hws_clock_ms (), amount, text, sizeof text);
    hws_console_draw (&self->console, text);
}

/*  ---- Ends ---- */

static bool has_wait (const send_t *self)
{
    const hws_optional_t wait = self->settings->wait_ms;
    return wait.state == HWS_NULL || (wait.state == HWS_VALUE && wait.value > 0);
}

/*  Says why the broker did not do it, in its own words if it has any, and of what.  */
static int refuse (send_t *self, int code)
{
    char text[1200] = "";
    if (self->client) {
        hws_client_error (self->client, text, sizeof text);
    }
    const int status = hws_exit_of_refusal (code, has_wait (self));
    const bool is_about_broker = code == HWS_EUNREACHABLE || code == HWS_ETRANSPORT;
    const char *const subject = is_about_broker ? self->settings->broker : self->settings->anchor;
    if (code == HWS_ECANCELLED) {
        hws_console_say (&self->console, HWS_LOG_ERROR,
                         "cancelled(requested) before it was attached: %s", text);
    } else if (strstr (text, subject)) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s", text);
    } else {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s: %s", subject,
                         text[0] ? text : hws_strerror (code));
    }
    return status;
}

/*  How the stream ended, to the user and as exit status. A signal of our own needs no
 *  words.  */
static int tell_end (send_t *self, int code)
{
    if (hws_watch_signal (&self->watch)) {
        return HWS_EXIT_BAD_END;
    }
    const char *cause = "";
    const char *reason = "";
    const int end = hws_sender_reason (self->sender, &cause, &reason);
    if (end != 0 && hws_sender_id (self->sender) == 0) {
        return refuse (self, end);
    }
    if (end == 0) {
        hws_console_say (&self->console, HWS_LOG_ERROR, "%s", hws_strerror (code));
        return HWS_EXIT_FAILED;
    }
    hws_console_say (&self->console, HWS_LOG_ERROR, "the stream was %s(%s)%s%s",
                     end == HWS_ECANCELLED ? "cancelled" : "dropped", cause, reason[0] ? ": " : "",
                     reason);

    /*  dropped(transport): there was no way to the broker for too long, whichever of
     *  the two said so.  */
    return end != HWS_ECANCELLED && strcmp (cause, "transport") == 0 ? HWS_EXIT_UNREACHABLE
                                                                     : HWS_EXIT_BAD_END;
}

/*  The input cannot be sent whole: says so here, lets the receiver have what came before,
 *  and says so to it.  */
static int abandon (send_t *self, const input_t *input, const char *text)
{
    char reason[1024];
    snprintf (reason, sizeof reason, "%.500s: %s", input->name, text);
    hws_console_say (&self->console, HWS_LOG_ERROR, "%s", reason);
    hws_sender_flush (self->sender, HWS_FOREVER);
    hws_sender_cancel (self->sender, reason, CANCEL_MS);
    return HWS_EXIT_FAILED;
}

/*  ---- Inputs ---- */

/*  Waits until a read would not. Returns HWS_EENDED if the stream ended meanwhile.  */
static int wait_readable (const send_t *self, const input_t *input)
{
    struct pollfd items[2] = {
        {.fd = input->fd, .events = POLLIN},
        {.fd = hws_sender_fd (self->sender), .events = POLLIN},
    };
    while (items[0].revents == 0) {
        if (poll (items, 2, -1) > 0 && items[1].revents) {
            return HWS_EENDED;
        }
    }
    return 0;
}

/*  How long a record may be is told with the answer to the attach, for which nobody waits.  */
static void learn_limit (const send_t *self, input_t *input)
{
    const uint64_t record_bytes = hws_sender_record_bytes (self->sender);
    if (record_bytes > 0) {
        input->splitter.size_max = record_bytes;
    }
}

/*  Reads what there is. Returns GOES_ON or the exit status.  */
static int read_more (send_t *self, input_t *input)
{
    size_t size;
    learn_limit (self, input);
    uint8_t *const room = hws_splitter_room (&input->splitter, &size);
    if (room == NULL) {
        return abandon (self, input, hws_strerror (HWS_ENO_MEMORY));
    }
    if (input->may_wait && wait_readable (self, input) < 0) {
        return tell_end (self, HWS_EENDED);
    }
    const ssize_t rc = read (input->fd, room, size);
    if (rc > 0) {
        hws_splitter_fill (&input->splitter, (size_t) rc);
    } else if (rc == 0) {
        hws_splitter_end (&input->splitter);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        input->may_wait = true;
    } else if (errno != EINTR) {
        return abandon (self, input, strerror (errno));
    }
    return GOES_ON;
}

/*  The input holds what is no record.  */
static int abandon_record (send_t *self, const input_t *input, int code)
{
    char text[160];
    hws_splitter_explain (&input->splitter, code, text, sizeof text);
    return abandon (self, input, text);
}

static int send_records (send_t *self, input_t *input)
{
    for (;;) {
        hws_bytes_t record;
        int rc = hws_splitter_next (&input->splitter, &record);
        if (rc == 0) {
            rc = hws_sender_send (self->sender, record.data, record.size, HWS_FOREVER);
            if (rc == HWS_ETOO_LARGE) {
                hws_splitter_refuse (&input->splitter, hws_sender_record_bytes (self->sender));
                return abandon_record (self, input, rc);
            }
            if (rc < 0) {
                return tell_end (self, rc);
            }
        } else if (rc == HWS_EWOULD_BLOCK) {
            const int status = read_more (self, input);
            if (status != GOES_ON) {
                return status;
            }
        } else if (rc == HWS_EENDED) {
            return GOES_ON;
        } else {
            return abandon_record (self, input, rc);
        }
    }
}

static bool is_stdin (const char *file)
{
    return strcmp (file, "-") == 0;
}

static int send_file (send_t *self, const char *file)
{
    input_t input = {.name = is_stdin (file) ? "standard input" : file, .fd = STDIN_FILENO};
    if (!is_stdin (file)) {
        input.fd = open (file, O_RDONLY | O_CLOEXEC);
        if (input.fd < 0) {
            return abandon (self, &input, strerror (errno));
        }
    }
    struct stat status;
    input.may_wait = fstat (input.fd, &status) < 0 || !S_ISREG (status.st_mode);
    const uint64_t record_bytes = hws_sender_record_bytes (self->sender);
    hws_splitter_init (&input.splitter, (hws_framing_t) self->settings->framing,
                       record_bytes > 0 ? record_bytes : HWS_RECORD_SIZE_MAX,
                       self->settings->chunk_bytes);
    const int result = send_records (self, &input);
    hws_splitter_fini (&input.splitter);
    if (!is_stdin (file)) {
        close (input.fd);
    }
    return result;
}

/*  A file that is not there is found before anybody sees a stream of us.  */
static int check_files (send_t *self)
{
    for (size_t i = 0; i < self->settings->files.count; i++) {
        const char *const file = self->settings->files.text[i];
        struct stat status;
        if (is_stdin (file)) {
            continue;
        }
        if (access (file, R_OK) < 0 || stat (file, &status) < 0) {
            hws_console_say (&self->console, HWS_LOG_ERROR, "%s: %s", file, strerror (errno));
            return HWS_EXIT_FAILED;
        }
        if (S_ISDIR (status.st_mode)) {
            hws_console_say (&self->console, HWS_LOG_ERROR, "%s: %s", file, strerror (EISDIR));
            return HWS_EXIT_FAILED;
        }
    }
    return GOES_ON;
}

static int send_files (send_t *self)
{
    if (self->settings->files.count == 0) {
        return send_file (self, "-");
    }
    int status = GOES_ON;
    for (size_t i = 0; i < self->settings->files.count && status == GOES_ON; i++) {
        status = send_file (self, self->settings->files.text[i]);
    }
    return status;
}

/*  ---- Attach ---- */

static int attach (send_t *self)
{
    hws_client_options_t client_options = hws_send_client_options (self->settings);
    self->words = (hws_connection_words_t){.console = &self->console,
                                           .broker = self->settings->broker,
                                           .give_up_ms = client_options.give_up_ms};
    client_options.on_connection = hws_connection_say;
    client_options.on_connection_arg = &self->words;
    int rc = hws_client_new (&self->client, &client_options);
    if (rc == 0) {
        const hws_sender_options_t options = hws_send_sender_options (self->settings);
        rc = hws_sender_attach (&self->sender, self->client, self->settings->anchor, &options);
    }
    return rc == 0 ? GOES_ON : refuse (self, rc);
}

/*  ---- Beginning and end ---- */

/*  From the attach to the end of the stream.  */
static int stream (send_t *self)
{
    hws_watch_guard (&self->watch, stop, self);
    if (self->console.draws_progress) {
        hws_meter_init (&self->meter, hws_clock_ms ());
        hws_watch_tick (&self->watch, draw_progress, self, TICK_MS);
    }
    int status = send_files (self);
    if (status == GOES_ON) {
        const int rc = self->settings->finalize ? hws_sender_finalize (self->sender, HWS_FOREVER)
                                                : hws_sender_detach (self->sender, HWS_FOREVER);
        status = rc == 0 ? HWS_EXIT_DONE : tell_end (self, rc);
    }
    const int signal = hws_watch_release (&self->watch);
    hws_watch_tick (&self->watch, NULL, NULL, 0);
    if (self->console.draws_progress) {
        draw_progress (self);
    }
    return signal && status != HWS_EXIT_DONE ? 128 + signal : status;
}

int hws_send (const hws_send_settings_t *settings)
{
    send_t self = {.settings = settings};
    hws_console_init (&self.console, "hawser-send", (hws_log_level_t) settings->log_level,
                      settings->progress);
    int status = check_files (&self);
    if (status == GOES_ON) {
        const int rc = hws_watch_start (&self.watch);
        if (rc == 0) {
            status = attach (&self);
            if (status == GOES_ON) {
                status = stream (&self);
            }
            hws_sender_destroy (&self.sender);
            hws_client_destroy (&self.client);
            hws_watch_end (&self.watch);
        } else {
            hws_console_say (&self.console, HWS_LOG_ERROR, "%s", hws_strerror (rc));
            status = HWS_EXIT_FAILED;
        }
    }
    hws_console_fini (&self.console);
    return status;
}
