#include "receiver/collector_io.h"

#include "base/list.h"
#include "base/text.h"
#include "conf/program_io.h"
#include "io/random_io.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOES_ON HWS_COLLECTOR_GOES_ON

/*  The file of a sender that is attached.  */
typedef struct hws_sender_file {
    hws_map_node_t node;  /* in `files`, by `sender_id` */
    uint64_t sender_id;   /* the key */
    hws_output_t *output; /* its file */
} file_t;

/*  A sender whose records hold the delimiter, and that this was said of.  */
typedef struct {
    hws_map_node_t node; /* in `warned`, by `sender_id` */
    uint64_t sender_id;  /* the key */
} warned_t;

/*  Counters have one writer, so that they need no locked addition.  */
static void add (_Atomic uint64_t *counter, uint64_t amount)
{
    const uint64_t value = atomic_load_explicit (counter, memory_order_relaxed);
    atomic_store_explicit (counter, value + amount, memory_order_relaxed);
}

/*  ---- Output ---- */

static bool is_json (const hws_collector_t *self)
{
    return self->settings->format == HWS_FORMAT_JSON;
}

/*  Nothing is acknowledged any more, and if all seemed done, it was not.  */
static void fail (hws_collector_t *self, const char *text)
{
    if (self->status != HWS_EXIT_FAILED) {
        hws_console_say (self->console, HWS_LOG_ERROR, "%s", text);
        self->status = HWS_EXIT_FAILED;
    }
}

/*  When nobody reads any longer, as behind `head`, all is done that was asked, unless somebody
 *  is to come back for the rest.  */
void hws_collector_lose_reader (hws_collector_t *self)
{
    if (self->resume) {
        fail (self, "standard output: nobody reads it any longer");
    } else {
        self->status = self->status == GOES_ON ? HWS_EXIT_DONE : self->status;
    }
}

static void give_up_output (hws_collector_t *self)
{
    if (hws_outputs_is_unread (self->outputs)) {
        hws_collector_lose_reader (self);
    } else {
        fail (self, hws_outputs_error (self->outputs));
    }
}

static void check_output (hws_collector_t *self, int rc)
{
    if (rc < 0) {
        give_up_output (self);
    }
}

static void check_resume (hws_collector_t *self, int rc)
{
    if (rc < 0) {
        fail (self, hws_resume_error (self->resume));
    }
}

/*  Writes what was gathered, and puts down that it is written.  */
static int write_out (hws_collector_t *self)
{
    int rc = hws_outputs_flush (self->outputs);
    check_output (self, rc);
    rc = rc == 0 && self->status == HWS_EXIT_FAILED ? HWS_ESYSTEM : rc;
    if (rc == 0 && self->resume) {
        rc = hws_resume_commit (self->resume);
        check_resume (self, rc);
    }
    return rc;
}

/*  What is said about a sender comes after its records, where both are read.  */
static void flush_before_words (hws_collector_t *self)
{
    if (self->settings->output_dir == NULL) {
        write_out (self);
    }
}

/*  `made` is what the making of the line returned.  */
static void put_line (hws_collector_t *self, int made, hws_bytes_t line)
{
    if (made == 0) {
        check_output (self, hws_output_put (hws_outputs_stdout (self->outputs), &self->eol, line));
    } else {
        fail (self, hws_strerror (made));
    }
}

static void put_json (hws_collector_t *self, const hws_event_t *event)
{
    hws_bytes_t line = hws_bytes (NULL, 0);
    const int rc = hws_json_event_write (&self->json, event, &line);
    put_line (self, rc, line);
}

/*  Records of a sender come in runs: the file is nearly always the one of the last.  */
static file_t *find_file (hws_collector_t *self, uint64_t sender_id)
{
    if (self->last_file && self->last_file->sender_id == sender_id) {
        return self->last_file;
    }
    hws_map_node_t *const node =
        hws_map_find (&self->files, hws_bytes (&sender_id, sizeof sender_id));
    self->last_file = node ? hws_container_of (node, file_t, node) : NULL;
    return self->last_file;
}

/*  Makes the file of a sender, or opens the one that `known` has; returns null when that
 *  failed.  */
static file_t *add_file (hws_collector_t *self, const hws_event_t *event,
                         const hws_resume_sender_t *known)
{
    file_t *const file = calloc (1, sizeof *file);
    if (file == NULL) {
        fail (self, hws_strerror (HWS_ENO_MEMORY));
        return NULL;
    }
    const int rc =
        known && known->file[0]
            ? hws_outputs_continue (self->outputs, known->file, known->size, &file->output)
            : hws_outputs_add (self->outputs, event->label, event->sender_id, &file->output);
    check_output (self, rc);
    if (rc < 0) {
        free (file);
        return NULL;
    }
    file->sender_id = event->sender_id;
    hws_map_insert (&self->files, &file->node, hws_bytes (&file->sender_id, sizeof (uint64_t)));
    return file;
}

static void close_file (hws_collector_t *self, file_t *file)
{
    hws_map_remove (&self->files, &file->node);
    self->last_file = NULL;
    check_output (self, hws_output_close (&file->output));
    free (file);
}

/*  ---- Events ---- */

/*  `sender 3 "gpu0"`, in `text`, which is returned.  */
static const char *sender_name (const hws_event_t *event, char *text, size_t size)
{
    if (event->label && event->label[0]) {
        snprintf (text, size, "sender %" PRIu64 " \"%s\"", event->sender_id, event->label);
    } else {
        snprintf (text, size, "sender %" PRIu64, event->sender_id);
    }
    return text;
}

void hws_collector_take_opened (hws_collector_t *self, const char *anchor, const char *handle)
{
    hws_console_say (self->console, HWS_LOG_INFO, "open %s %s", anchor ? anchor : "-", handle);
    if (is_json (self)) {
        hws_bytes_t line = hws_bytes (NULL, 0);
        const int rc = hws_json_event_write_opened (&self->json, anchor, handle, &line);
        put_line (self, rc, line);
        write_out (self);
    }
}

static void take_attached (hws_collector_t *self, const hws_event_t *event)
{
    add (&self->attached_count, 1);
    if (is_json (self)) {
        put_json (self, event);
        return;
    }
    const hws_resume_sender_t *const known =
        self->resume ? hws_resume_find (self->resume, event->sender_id) : NULL;
    const char *const word = known ? "goes on" : "attached";
    char name[320];
    sender_name (event, name, sizeof name);
    flush_before_words (self);
    if (self->settings->output_dir == NULL) {
        hws_console_say (self->console, HWS_LOG_INFO, "%s %s", name, word);
        return;
    }
    const file_t *const file = add_file (self, event, known);
    if (file) {
        hws_console_say (self->console, HWS_LOG_INFO, "%s %s, writes %s/%s", name, word,
                         self->settings->output_dir, hws_output_file (file->output));
    }
}

static warned_t *find_warned (hws_collector_t *self, uint64_t sender_id)
{
    hws_map_node_t *const node =
        hws_map_find (&self->warned, hws_bytes (&sender_id, sizeof sender_id));
    return node ? hws_container_of (node, warned_t, node) : NULL;
}

static void forget_warned (hws_collector_t *self, warned_t *warned)
{
    if (warned) {
        hws_map_remove (&self->warned, &warned->node);
        free (warned);
    }
}

/*  A record with the delimiter in it looks like several to who reads the output. Said once of
 *  each sender; without memory, of each such record.  */
static void warn_of_delimiter (hws_collector_t *self, const hws_event_t *event)
{
    if (self->settings->format != HWS_FORMAT_TEXT ||
        !hws_framing_is_broken_by ((hws_framing_t) self->settings->framing,
                                   hws_bytes (event->data, event->size)) ||
        find_warned (self, event->sender_id)) {
        return;
    }
    char name[320];
    flush_before_words (self);
    hws_console_say (self->console, HWS_LOG_WARN,
                     "%s: a record holds the delimiter; give both ends another --framing",
                     sender_name (event, name, sizeof name));
    warned_t *const warned = calloc (1, sizeof *warned);
    if (warned) {
        warned->sender_id = event->sender_id;
        hws_map_insert (&self->warned, &warned->node,
                        hws_bytes (&warned->sender_id, sizeof (uint64_t)));
    }
}

static void take_record (hws_collector_t *self, const hws_event_t *event)
{
    add (&self->record_count, 1);
    add (&self->record_bytes, event->size);
    if (is_json (self)) {
        put_json (self, event);
        return;
    }
    warn_of_delimiter (self, event);
    hws_output_t *output = hws_outputs_stdout (self->outputs);
    if (self->settings->output_dir) {
        const file_t *const file = find_file (self, event->sender_id);
        if (file == NULL) {
            return;
        }
        output = file->output;
    }
    hws_framing_marks_t marks = {.before_size = 0};
    if (self->settings->format != HWS_FORMAT_RAW &&
        hws_framing_marks ((hws_framing_t) self->settings->framing, event->size, &marks) < 0) {
        char text[80];
        snprintf (text, sizeof text, "a record of %zu bytes is too large for framing length",
                  event->size);
        fail (self, text);
        return;
    }
    check_output (self, hws_output_put (output, &marks, hws_bytes (event->data, event->size)));
}

static void take_error (hws_collector_t *self, const hws_event_t *event)
{
    if (is_json (self)) {
        put_json (self, event);
        return;
    }
    char name[320];
    flush_before_words (self);
    hws_console_say (self->console, HWS_LOG_WARN, "%s error: %.*s",
                     sender_name (event, name, sizeof name), (int) event->size,
                     (const char *) event->data);
}

static bool is_ending (hws_event_kind_t kind)
{
    return kind == HWS_EVENT_DETACHED || kind == HWS_EVENT_FINALIZED || kind == HWS_EVENT_DROPPED ||
           kind == HWS_EVENT_CANCELLED;
}

static const char *ending_word (hws_event_kind_t kind)
{
    return kind == HWS_EVENT_DETACHED    ? "detached"
           : kind == HWS_EVENT_FINALIZED ? "finalized"
           : kind == HWS_EVENT_DROPPED   ? "dropped"
                                         : "cancelled";
}

static void take_ending (hws_collector_t *self, const hws_event_t *event, bool is_our_doing)
{
    const bool is_bad = event->kind == HWS_EVENT_DROPPED || event->kind == HWS_EVENT_CANCELLED;
    add (&self->ended_count, 1);
    const bool is_news = is_bad && !is_our_doing;
    if (is_news) {
        self->bad_end_count++;
    }
    file_t *const file = self->settings->output_dir ? find_file (self, event->sender_id) : NULL;
    if (file) {
        close_file (self, file);
    }
    forget_warned (self, find_warned (self, event->sender_id));
    if (is_json (self)) {
        put_json (self, event);
        return;
    }
    char name[320];
    const bool has_cause = is_bad && event->cause && event->cause[0];
    const bool has_reason = event->reason && event->reason[0];
    flush_before_words (self);
    hws_console_say (self->console, is_news ? HWS_LOG_WARN : HWS_LOG_INFO,
                     "%s %s%s%s%s, %" PRIu64 " record%s, %" PRIu64 " byte%s%s%s",
                     sender_name (event, name, sizeof name), ending_word (event->kind),
                     has_cause ? "(" : "", has_cause ? event->cause : "", has_cause ? ")" : "",
                     event->records, hws_plural (event->records), event->bytes,
                     hws_plural (event->bytes), has_reason ? ": " : "",
                     has_reason ? event->reason : "");
}

/*  The anchor is gone. If nobody asked us to end, the cause decides the status; a sender that
 *  finalized it is done, and so are we.  */
static void take_closed (hws_collector_t *self, const hws_event_t *event, bool is_our_doing)
{
    const char *const cause = event->cause ? event->cause : "";
    const char *const reason = event->reason ? event->reason : "";
    if (self->status == GOES_ON && strcmp (cause, "finalized") == 0) {
        self->status = HWS_EXIT_DONE;
    }
    const bool is_news = !is_our_doing && self->status == GOES_ON;
    self->is_closed = true;
    self->is_left = strcmp (cause, "superseded") == 0 || strcmp (cause, "transport") == 0;
    if (is_json (self)) {
        put_json (self, event);
    }
    if (is_news || !is_json (self)) {
        flush_before_words (self);
        hws_console_say (self->console, is_news ? HWS_LOG_ERROR : HWS_LOG_INFO, "closed(%s)%s%s",
                         cause, reason[0] ? ": " : "", reason);
    }
    if (!is_news) {
        return;
    }
    self->status = strcmp (cause, "expired") == 0     ? HWS_EXIT_TIMEOUT
                   : strcmp (cause, "transport") == 0 ? HWS_EXIT_UNREACHABLE
                                                      : HWS_EXIT_BAD_END;
}

/*  ---- Limits, and what was written before ---- */

static bool is_reached (hws_optional_t limit, uint64_t value)
{
    return limit.state == HWS_VALUE && value >= limit.value;
}

static void check_limits (hws_collector_t *self)
{
    if (self->status == GOES_ON && !hws_collector_is_in_doubt (self) &&
        (is_reached (self->settings->count, self->record_count) ||
         is_reached (self->settings->senders, self->ended_count))) {
        self->status = HWS_EXIT_DONE;
    }
}

bool hws_collector_is_in_doubt (const hws_collector_t *self)
{
    return self->resume && hws_resume_has_doubts (self->resume);
}

int hws_collector_flush (hws_collector_t *self)
{
    if (hws_collector_is_in_doubt (self) && !self->is_left) {
        hws_resume_believe (self->resume);
        check_limits (self);
    }
    return write_out (self);
}

void hws_collector_resume (hws_collector_t *self, hws_resume_t *resume)
{
    uint64_t records = 0;
    uint64_t ended = 0;
    self->resume = resume;
    hws_resume_totals (resume, &records, &ended, &self->bad_end_count);
    add (&self->record_count, records);
    add (&self->attached_count, ended);
    add (&self->ended_count, ended);
    check_limits (self);
}

/*  An ending tells of what was delivered to this process, with what came twice. To the user it
 *  tells of all that was ever written.  */
static void take_whole_ending (hws_collector_t *self, const hws_event_t *event, bool is_our_doing)
{
    hws_event_t copy = *event;
    const hws_resume_sender_t *const sender = hws_resume_find (self->resume, event->sender_id);
    if (sender) {
        copy.records = sender->records;
        copy.bytes = sender->bytes;
    }
    take_ending (self, &copy, is_our_doing);
}

/*  What the process has done with the event is to be put down with the next flush. A file that it
 *  does not write to, for want of --output-dir, stays as large as it was.  */
static void note (hws_collector_t *self, const hws_event_t *event)
{
    const file_t *const file =
        self->settings->output_dir ? find_file (self, event->sender_id) : NULL;
    const hws_resume_sender_t *const known = hws_resume_find (self->resume, event->sender_id);
    if (event->kind != HWS_EVENT_ATTACHED) {
        const uint64_t size = known ? known->size : 0;
        hws_resume_note (self->resume, event, file ? hws_output_size (file->output) : size);
    } else if (known == NULL) {
        check_resume (self, hws_resume_add (self->resume, event->sender_id,
                                            file ? hws_output_file (file->output) : ""));
    }
}

static void take_event (hws_collector_t *self, const hws_event_t *event, bool is_our_doing)
{
    switch (event->kind) {
    case HWS_EVENT_ATTACHED:
        take_attached (self, event);
        break;
    case HWS_EVENT_RECORD:
        take_record (self, event);
        break;
    case HWS_EVENT_ERROR:
        take_error (self, event);
        break;
    case HWS_EVENT_DETACHED:
    case HWS_EVENT_FINALIZED:
    case HWS_EVENT_DROPPED:
    case HWS_EVENT_CANCELLED:
        take_ending (self, event, is_our_doing);
        break;
    case HWS_EVENT_CLOSED:
        take_closed (self, event, is_our_doing);
        break;
    }
}

/*  What is known of a sender that has ended comes again only if the broker did not hear that it
 *  was taken.  */
static void count_owed (hws_collector_t *self, const hws_event_t *event)
{
    if (event->kind == HWS_EVENT_ATTACHED) {
        self->owed_count++;
    } else if (is_ending (event->kind)) {
        self->owed_count--;
    }
}

void hws_collector_take (hws_collector_t *self, const hws_event_t *event, bool is_our_doing)
{
    if (self->resume == NULL || event->kind == HWS_EVENT_CLOSED) {
        take_event (self, event, is_our_doing);
    } else if (!hws_resume_is_known (self->resume, event)) {
        if (is_ending (event->kind)) {
            take_whole_ending (self, event, is_our_doing);
        } else {
            take_event (self, event, is_our_doing);
        }
        note (self, event);
    } else {
        count_owed (self, event);
    }
    check_limits (self);
}

/*  ---- Beginning and end ---- */

static int init (hws_collector_t *self)
{
    hws_hash_key_t key;
    int rc = hws_random_fill (&key, sizeof key);
    rc = rc == 0 ? hws_map_init (&self->files, key) : rc;
    if (rc < 0) {
        return rc;
    }
    rc = hws_map_init (&self->warned, key);
    if (rc < 0) {
        hws_map_fini (&self->files);
    }
    return rc;
}

int hws_collector_init (hws_collector_t *self, const hws_recv_settings_t *settings,
                        hws_console_t *console)
{
    *self = (hws_collector_t){.settings = settings, .console = console, .status = GOES_ON};
    hws_framing_marks (HWS_FRAMING_LINE, 0, &self->eol);
    int rc = init (self);
    if (rc < 0) {
        hws_console_say (console, HWS_LOG_ERROR, "%s", hws_strerror (rc));
        return rc;
    }
    rc = hws_outputs_new (&self->outputs, settings->output_dir);
    if (rc < 0) {
        hws_console_say (console, HWS_LOG_ERROR, "%s: %s",
                         settings->output_dir ? settings->output_dir : "standard output",
                         rc == HWS_ESYSTEM ? strerror (errno) : hws_strerror (rc));
        hws_map_fini (&self->warned);
        hws_map_fini (&self->files);
    }
    return rc;
}

void hws_collector_fini (hws_collector_t *self)
{
    hws_map_node_t *node;
    while ((node = hws_map_any (&self->files)) != NULL) {
        close_file (self, hws_container_of (node, file_t, node));
    }
    while ((node = hws_map_any (&self->warned)) != NULL) {
        forget_warned (self, hws_container_of (node, warned_t, node));
    }
    hws_outputs_destroy (&self->outputs);
    hws_json_event_fini (&self->json);
    hws_map_fini (&self->warned);
    hws_map_fini (&self->files);
}
