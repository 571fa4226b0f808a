#include "receiver/resume_io.h"

#include "base/error.h"
#include "base/text.h"
#include "io/clock_io.h"
#include "io/random_io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_RETRY_MS 20

typedef hws_resume_sender_t sender_t;

/*  A sender and the place of its line.  */
typedef struct {
    sender_t sender;
    hws_map_node_t node;   /* in `senders`, by sender.sender_id */
    hws_link_t dirty_link; /* in `dirty` while its line is behind it */
    hws_link_t ended_link; /* in `ended` or `doubted`, in their order */
    size_t line;           /* from 1 on; the first line of the file is the anchor's */
} entry_t;

struct hws_resume {
    char *path;      /* as the user named it */
    char *temporary; /* that of a file which is being made, or null */
    int fd;          /* -1: none */
    bool is_there;   /* it was there, so that an anchor is to be continued */
    hws_resume_anchor_t anchor;
    char handle[HWS_HANDLE_TEXT_SIZE];     /* the anchor's, as texts */
    char owner_token[2 * HWS_ID_SIZE + 1]; /* the same */
    uint64_t records, ended_count, bad;    /* of all that was read */
    hws_map_t senders;
    entry_t *last;      /* the sender that was found last, or null */
    hws_list_t dirty;   /* those whose lines have to be written */
    hws_list_t ended;   /* those that have ended, the oldest first */
    hws_list_t doubted; /* those whose ending may be only ours */
    size_t line_count;  /* lines of the file */
    char error[512];
};

/*  ---- Errors ---- */

static int fail (hws_resume_t *self, int code, const char *text)
{
    snprintf (self->error, sizeof self->error, "%.300s: %s", self->path, text);
    return code;
}

static int fail_system (hws_resume_t *self)
{
    return fail (self, HWS_ESYSTEM, strerror (errno));
}

static int fail_memory (hws_resume_t *self)
{
    return fail (self, HWS_ENO_MEMORY, hws_strerror (HWS_ENO_MEMORY));
}

const char *hws_resume_error (const hws_resume_t *self)
{
    return self->error;
}

/*  ---- Lines ---- */

/*  Writes a line in its place. One that is new and does not fit on the disk is taken back, so
 *  that the file stays whole.  */
static int write_line (hws_resume_t *self, size_t line, const char *text)
{
    const off_t offset = (off_t) (line * HWS_RESUME_LINE_SIZE);
    ssize_t rc;
    do {
        rc = pwrite (self->fd, text, HWS_RESUME_LINE_SIZE, offset);
    } while (rc < 0 && errno == EINTR);
    if (rc == HWS_RESUME_LINE_SIZE) {
        self->line_count = line < self->line_count ? self->line_count : line + 1;
        return 0;
    }
    const int error = rc < 0 ? errno : ENOSPC;
    if (line >= self->line_count && ftruncate (self->fd, offset) < 0) {
        return fail_system (self);
    }
    errno = error;
    return fail_system (self);
}

static int write_anchor (hws_resume_t *self)
{
    char line[HWS_RESUME_LINE_SIZE];
    hws_resume_anchor_write (&self->anchor, line);
    return write_line (self, 0, line);
}

static int write_sender (hws_resume_t *self, const entry_t *entry)
{
    char line[HWS_RESUME_LINE_SIZE];
    hws_resume_sender_write (&entry->sender, line);
    return write_line (self, entry->line, line);
}

/*  ---- Senders ---- */

static entry_t *find (hws_resume_t *self, uint64_t sender_id)
{
    if (self->last && self->last->sender.sender_id == sender_id) {
        return self->last;
    }
    hws_map_node_t *const node =
        hws_map_find (&self->senders, hws_bytes (&sender_id, sizeof sender_id));
    self->last = node ? hws_container_of (node, entry_t, node) : NULL;
    return self->last;
}

static entry_t *add_entry (hws_resume_t *self, const sender_t *sender, size_t line)
{
    entry_t *const entry = calloc (1, sizeof *entry);
    if (entry == NULL) {
        return NULL;
    }
    entry->sender = *sender;
    entry->line = line;
    hws_map_insert (&self->senders, &entry->node,
                    hws_bytes (&entry->sender.sender_id, sizeof (uint64_t)));
    return entry;
}

static void free_entry (hws_resume_t *self, entry_t *entry)
{
    hws_map_remove (&self->senders, &entry->node);
    hws_list_remove (&entry->dirty_link);
    hws_list_remove (&entry->ended_link);
    self->last = NULL;
    free (entry);
}

static void forget_all (hws_resume_t *self)
{
    hws_map_node_t *node;
    while ((node = hws_map_any (&self->senders)) != NULL) {
        free_entry (self, hws_container_of (node, entry_t, node));
    }
    self->records = self->ended_count = self->bad = 0;
    self->line_count = 0;
}

const hws_resume_sender_t *hws_resume_find (hws_resume_t *self, uint64_t sender_id)
{
    const entry_t *const entry = find (self, sender_id);
    return entry ? &entry->sender : NULL;
}

bool hws_resume_is_known (hws_resume_t *self, const hws_event_t *event)
{
    const entry_t *const entry =
        event->kind == HWS_EVENT_CLOSED ? NULL : find (self, event->sender_id);
    if (entry == NULL || entry->sender.is_ended) {
        return entry != NULL;
    }
    const bool has_number = event->kind == HWS_EVENT_RECORD || event->kind == HWS_EVENT_ERROR;
    return has_number && event->seq < entry->sender.next_seq;
}

/*  The line of the sender that ended first is free for another one: the anchor's line has its
 *  numbers from now on. Returns its place, or a new one.  */
static int free_line (hws_resume_t *self, size_t *line)
{
    *line = self->line_count;
    if (self->ended.count <= HWS_RESUME_ENDED_MAX) {
        return 0;
    }
    entry_t *const oldest = hws_container_of (self->ended.head, entry_t, ended_link);
    self->anchor.records += oldest->sender.records;
    self->anchor.ended += oldest->sender.sender_id != self->anchor.folded;
    self->anchor.bad += oldest->sender.is_bad;
    self->anchor.folded = oldest->sender.sender_id;
    *line = oldest->line;
    free_entry (self, oldest);
    return write_anchor (self);
}

int hws_resume_add (hws_resume_t *self, uint64_t sender_id, const char *file)
{
    sender_t sender = {.sender_id = sender_id};
    hws_text_copy (sender.file, sizeof sender.file, file);
    size_t line;
    const int rc = free_line (self, &line);
    if (rc < 0) {
        return rc;
    }
    const entry_t *const entry = add_entry (self, &sender, line);
    return entry ? write_sender (self, entry) : fail_memory (self);
}

static void set_dirty (hws_resume_t *self, entry_t *entry)
{
    if (!hws_link_is_in_list (&entry->dirty_link)) {
        hws_list_append (&self->dirty, &entry->dirty_link);
    }
}

static void set_ended (hws_resume_t *self, entry_t *entry, bool is_bad)
{
    entry->sender.is_ended = true;
    entry->sender.is_bad = is_bad;
    hws_list_append (&self->ended, &entry->ended_link);
    set_dirty (self, entry);
}

static void take_ending (hws_resume_t *self, entry_t *entry, const hws_event_t *event)
{
    const char *const cause = event->cause ? event->cause : "";
    if (strcmp (cause, "superseded") == 0 || strcmp (cause, "transport") == 0) {
        hws_list_append (&self->doubted, &entry->ended_link);
    } else {
        set_ended (self, entry,
                   event->kind == HWS_EVENT_DROPPED || event->kind == HWS_EVENT_CANCELLED);
    }
}

void hws_resume_note (hws_resume_t *self, const hws_event_t *event, uint64_t size)
{
    entry_t *const entry = find (self, event->sender_id);
    if (entry == NULL) {
        return;
    }
    sender_t *const sender = &entry->sender;
    switch (event->kind) {
    case HWS_EVENT_RECORD:
        sender->records++;
        sender->bytes += event->size;
        sender->next_seq = event->seq + 1;
        sender->size = size;
        break;
    case HWS_EVENT_ERROR:
        sender->next_seq = event->seq + 1;
        sender->size = size;
        break;
    case HWS_EVENT_DETACHED:
    case HWS_EVENT_FINALIZED:
    case HWS_EVENT_DROPPED:
    case HWS_EVENT_CANCELLED:
        take_ending (self, entry, event);
        return;
    case HWS_EVENT_ATTACHED:
    case HWS_EVENT_CLOSED:
        return;
    }
    set_dirty (self, entry);
}

bool hws_resume_has_doubts (const hws_resume_t *self)
{
    return self->doubted.count > 0;
}

void hws_resume_believe (hws_resume_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->doubted)) != NULL) {
        set_ended (self, hws_container_of (link, entry_t, ended_link), true);
    }
}

int hws_resume_commit (hws_resume_t *self)
{
    while (self->dirty.head) {
        const int rc =
            write_sender (self, hws_container_of (self->dirty.head, entry_t, dirty_link));
        if (rc < 0) {
            return rc;
        }
        hws_list_pop (&self->dirty);
    }
    return 0;
}

void hws_resume_totals (const hws_resume_t *self, uint64_t *records, uint64_t *ended, uint64_t *bad)
{
    *records = self->records;
    *ended = self->ended_count;
    *bad = self->bad;
}

/*  ---- A file that is there ---- */

/*  Reads exactly so much, from the beginning.  */
static int read_whole (hws_resume_t *self, char *text, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t rc = pread (self->fd, text + done, size - done, (off_t) done);
        if (rc < 0 && errno != EINTR) {
            return fail_system (self);
        }
        if (rc == 0) {
            return fail (self, HWS_EMALFORMED, "not a whole resume file");
        }
        done += rc > 0 ? (size_t) rc : 0;
    }
    return 0;
}

/*  A line that was folded into the anchor's is only a place.  */
static int take_sender (hws_resume_t *self, sender_t *sender, size_t line)
{
    if (sender->sender_id == self->anchor.folded) {
        sender->records = 0;
        sender->is_bad = false;
    } else {
        self->records += sender->records;
        self->ended_count += sender->is_ended;
        self->bad += sender->is_bad;
    }
    if (find (self, sender->sender_id)) {
        return HWS_EMALFORMED;
    }
    entry_t *const entry = add_entry (self, sender, line);
    if (entry == NULL) {
        return HWS_ENO_MEMORY;
    }
    if (sender->sender_id == self->anchor.folded) {
        hws_list_prepend (&self->ended, &entry->ended_link);
    } else if (sender->is_ended) {
        hws_list_append (&self->ended, &entry->ended_link);
    }
    return 0;
}

static int take_lines (hws_resume_t *self, const char *text, size_t count)
{
    int rc = hws_resume_anchor_read (&self->anchor, text);
    self->records = self->anchor.records;
    self->ended_count = self->anchor.ended;
    self->bad = self->anchor.bad;
    for (size_t line = 1; line < count && rc == 0; line++) {
        sender_t sender;
        rc = hws_resume_sender_read (&sender, text + line * HWS_RESUME_LINE_SIZE);
        rc = rc == 0 ? take_sender (self, &sender, line) : rc;
    }
    self->line_count = count;
    return rc == HWS_EMALFORMED   ? fail (self, rc, "not a resume file, or a broken one")
           : rc == HWS_ENO_MEMORY ? fail_memory (self)
                                  : 0;
}

/*  Takes all lines, or only the anchor's while another process may write the others.  */
static int load (hws_resume_t *self, bool is_ours)
{
    struct stat status;
    forget_all (self);
    if (fstat (self->fd, &status) < 0) {
        return fail_system (self);
    }
    if (!S_ISREG (status.st_mode) || status.st_size == 0 ||
        status.st_size % HWS_RESUME_LINE_SIZE != 0) {
        return fail (self, HWS_EMALFORMED, "not a resume file, or a broken one");
    }
    if (status.st_uid != geteuid ()) {
        return fail (self, HWS_EDENIED, "belongs to another user");
    }
    if ((status.st_mode & 077) != 0) {
        return fail (self, HWS_EDENIED,
                     "others may use it, who could take the anchor over: chmod 600 it");
    }
    const size_t size = is_ours ? (size_t) status.st_size : HWS_RESUME_LINE_SIZE;
    char *const text = malloc (size);
    if (text == NULL) {
        return fail_memory (self);
    }
    int rc = read_whole (self, text, size);
    rc = rc == 0 ? take_lines (self, text, size / HWS_RESUME_LINE_SIZE) : rc;
    free (text);
    hws_handle_print (self->anchor.handle, self->handle);
    hws_id_print (&self->anchor.owner_token, self->owner_token);
    return rc;
}

/*  Whether the path still names the file that is open.  */
static bool is_same_file (const hws_resume_t *self)
{
    struct stat named;
    struct stat opened;
    return lstat (self->path, &named) == 0 && fstat (self->fd, &opened) == 0 &&
           named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

/*  Who holds the lock was told by the broker to leave.  */
static int lock (hws_resume_t *self, int64_t lock_ms)
{
    const hws_ms_t give_up_at = hws_time_after (hws_clock_ms (), lock_ms);
    while (flock (self->fd, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR) {
            return fail_system (self);
        }
        if (hws_clock_ms () >= give_up_at) {
            return fail (self, HWS_EBUSY, "the receiver that used it before does not let it go");
        }
        poll (NULL, 0, LOCK_RETRY_MS);
    }
    return is_same_file (self) ? 0 : fail (self, HWS_ESYSTEM, "was removed or replaced meanwhile");
}

/*  ---- A new file ---- */

/*  The directory that the file is in or is to be made in, in `*directory`, to be freed.  */
static int find_directory (hws_resume_t *self, char **directory)
{
    char *const copy = strdup (self->path);
    *directory = copy ? strdup (dirname (copy)) : NULL;
    free (copy);
    return *directory ? 0 : fail_memory (self);
}

static int check_directory (hws_resume_t *self)
{
    char *directory;
    int rc = find_directory (self, &directory);
    if (rc == 0 && access (directory, W_OK | X_OK) < 0) {
        rc = fail_system (self);
    }
    free (directory);
    return rc;
}

static int sync_directory (hws_resume_t *self)
{
    char *directory;
    int rc = find_directory (self, &directory);
    const int fd = rc == 0 ? open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (rc == 0 && (fd < 0 || fsync (fd) < 0)) {
        rc = fail_system (self);
    }
    if (fd >= 0) {
        close (fd);
    }
    free (directory);
    return rc;
}

static int make_temporary (hws_resume_t *self)
{
    if (asprintf (&self->temporary, "%s.XXXXXX", self->path) < 0) {
        self->temporary = NULL;
        return fail_memory (self);
    }
    self->fd = mkostemp (self->temporary, O_CLOEXEC);
    if (self->fd >= 0) {
        return 0;
    }
    const int rc = fail_system (self);
    free (self->temporary);
    self->temporary = NULL;
    return rc;
}

/*  A file that has come meanwhile is another receiver's. Some file systems do not know how to
 *  rename without replacing.  */
static int give_name (const hws_resume_t *self)
{
    const int rc = renameat2 (AT_FDCWD, self->temporary, AT_FDCWD, self->path, RENAME_NOREPLACE);
    return rc < 0 && (errno == EINVAL || errno == ENOSYS) ? rename (self->temporary, self->path)
                                                          : rc;
}

static int make (hws_resume_t *self, const char *anchor, const char *handle,
                 const char *owner_token)
{
    hws_text_copy (self->anchor.anchor, sizeof self->anchor.anchor, anchor ? anchor : "");
    if (hws_handle_parse (hws_bytes_of_text (handle), &self->anchor.handle) < 0 ||
        hws_id_parse (hws_bytes_of_text (owner_token), &self->anchor.owner_token) < 0) {
        return fail (self, HWS_EMALFORMED, "the broker gave no owner token");
    }
    int rc = make_temporary (self);
    rc = rc == 0 ? write_anchor (self) : rc;
    if (rc < 0) {
        return rc;
    }
    if (fsync (self->fd) < 0 || flock (self->fd, LOCK_EX | LOCK_NB) < 0 || give_name (self) < 0) {
        return fail_system (self);
    }
    free (self->temporary);
    self->temporary = NULL;
    return sync_directory (self);
}

/*  ---- Beginning and end ---- */

static int new (hws_resume_t **self, const char *path)
{
    hws_hash_key_t key;
    *self = calloc (1, sizeof **self);
    if (*self == NULL) {
        return HWS_ENO_MEMORY;
    }
    (*self)->fd = -1;
    (*self)->path = strdup (path);
    int rc = (*self)->path ? hws_random_fill (&key, sizeof key) : HWS_ENO_MEMORY;
    rc = rc == 0 ? hws_map_init (&(*self)->senders, key) : rc;
    if (rc < 0) {
        free ((*self)->path);
        free (*self);
        *self = NULL;
    }
    return rc;
}

int hws_resume_open (hws_resume_t **self, const char *path)
{
    const int rc = new (self, path);
    if (rc < 0) {
        return rc;
    }
    (*self)->fd = open (path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if ((*self)->fd >= 0) {
        (*self)->is_there = true;
        return load (*self, flock ((*self)->fd, LOCK_EX | LOCK_NB) == 0);
    }
    return errno == ENOENT ? check_directory (*self) : fail_system (*self);
}

int hws_resume_begin (hws_resume_t *self, const char *anchor, const char *handle,
                      const char *owner_token, int64_t lock_ms)
{
    if (!self->is_there) {
        return make (self, anchor, handle, owner_token);
    }
    const int rc = lock (self, lock_ms);
    return rc == 0 ? load (self, true) : rc;
}

void hws_resume_remove (hws_resume_t *self)
{
    if (self->fd >= 0 && is_same_file (self)) {
        unlink (self->path);
    }
}

void hws_resume_destroy (hws_resume_t **self)
{
    hws_resume_t *const resume = *self;
    if (resume == NULL) {
        return;
    }
    *self = NULL;
    forget_all (resume);
    hws_map_fini (&resume->senders);
    if (resume->temporary) {
        unlink (resume->temporary);
    }
    if (resume->fd >= 0) {
        close (resume->fd);
    }
    free (resume->temporary);
    free (resume->path);
    free (resume);
}

/*  ---- What it says of the anchor ---- */

bool hws_resume_is_there (const hws_resume_t *self)
{
    return self->is_there;
}

const char *hws_resume_handle (const hws_resume_t *self)
{
    return self->handle;
}

const char *hws_resume_owner_token (const hws_resume_t *self)
{
    return self->owner_token;
}

bool hws_resume_is_of (const hws_resume_t *self, const char *anchor)
{
    return strcmp (self->anchor.anchor, anchor ? anchor : "") == 0;
}
