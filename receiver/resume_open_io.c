/*  How a resume file is found or made, and how it ends, behind resume_io.h.  */
#include "base/error.h"
#include "base/text.h"
#include "io/clock_io.h"
#include "io/random_io.h"
#include "receiver/resume_part_io.h"

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
typedef hws_resume_entry_t entry_t;

/*  ---- A file that is there ---- */

/*  Reads exactly so much, from the beginning.  */
static int read_whole (hws_resume_t *self, char *text, size_t size)
{
    size_t done = 0;
    while (done < size) {
        const ssize_t rc = pread (self->fd, text + done, size - done, (off_t) done);
        if (rc < 0 && errno != EINTR) {
            return hws_resume_fail_system (self);
        }
        if (rc == 0) {
            return hws_resume_fail (self, HWS_EMALFORMED, "not a whole resume file");
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
        sender->order = 0;
    } else {
        self->records += sender->records;
        self->ended_count += sender->is_ended;
        self->bad += sender->is_bad;
    }
    if (hws_resume_find (self, sender->sender_id)) {
        return HWS_EMALFORMED;
    }
    entry_t *const entry = hws_resume_add_entry (self, sender, line);
    if (entry == NULL) {
        return HWS_ENO_MEMORY;
    }
    if (sender->is_ended || sender->sender_id == self->anchor.folded) {
        hws_list_append (&self->ended, &entry->ended_link);
    }
    self->last_order = self->last_order > sender->order ? self->last_order : sender->order;
    return 0;
}

static int compare_orders (const void *left, const void *right)
{
    const uint64_t one = (*(entry_t *const *) left)->sender.order;
    const uint64_t other = (*(entry_t *const *) right)->sender.order;
    return one < other ? -1 : one > other;
}

/*  A line is used again, so that its place does not tell when its sender ended.  */
static int sort_ended (hws_resume_t *self)
{
    const size_t count = self->ended.count;
    entry_t **const entries = calloc (count + 1, sizeof *entries);
    if (entries == NULL) {
        return HWS_ENO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        entries[i] = hws_container_of (hws_list_pop (&self->ended), entry_t, ended_link);
    }
    qsort (entries, count, sizeof (entry_t *), compare_orders);
    for (size_t i = 0; i < count; i++) {
        hws_list_append (&self->ended, &entries[i]->ended_link);
    }
    free (entries);
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
    rc = rc == 0 ? sort_ended (self) : rc;
    self->line_count = count;
    return rc == HWS_EMALFORMED   ? hws_resume_fail (self, rc, "not a resume file, or a broken one")
           : rc == HWS_ENO_MEMORY ? hws_resume_fail_memory (self)
                                  : 0;
}

/*  Takes all lines, or only the anchor's while another process may write the others.  */
static int load (hws_resume_t *self, bool is_ours)
{
    struct stat status;
    hws_resume_forget_all (self);
    if (fstat (self->fd, &status) < 0) {
        return hws_resume_fail_system (self);
    }
    if (!S_ISREG (status.st_mode) || status.st_size == 0 ||
        status.st_size % HWS_RESUME_LINE_SIZE != 0) {
        return hws_resume_fail (self, HWS_EMALFORMED, "not a resume file, or a broken one");
    }
    if (status.st_uid != geteuid ()) {
        return hws_resume_fail (self, HWS_EDENIED, "belongs to another user");
    }
    if ((status.st_mode & 077) != 0) {
        return hws_resume_fail (self, HWS_EDENIED,
                                "others may use it, who could take the anchor over: chmod 600 it");
    }
    const size_t size = is_ours ? (size_t) status.st_size : HWS_RESUME_LINE_SIZE;
    char *const text = malloc (size);
    if (text == NULL) {
        return hws_resume_fail_memory (self);
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
            return hws_resume_fail_system (self);
        }
        if (hws_clock_ms () >= give_up_at) {
            return hws_resume_fail (self, HWS_EBUSY,
                                    "the receiver that used it before does not let it go");
        }
        poll (NULL, 0, LOCK_RETRY_MS);
    }
    return is_same_file (self)
               ? 0
               : hws_resume_fail (self, HWS_ESYSTEM, "was removed or replaced meanwhile");
}

/*  ---- A new file ---- */

/*  The directory that the file is in or is to be made in, in `*directory`, to be freed.  */
static int find_directory (hws_resume_t *self, char **directory)
{
    char *const copy = strdup (self->path);
    *directory = copy ? strdup (dirname (copy)) : NULL;
    free (copy);
    return *directory ? 0 : hws_resume_fail_memory (self);
}

static int check_directory (hws_resume_t *self)
{
    char *directory;
    int rc = find_directory (self, &directory);
    if (rc == 0 && access (directory, W_OK | X_OK) < 0) {
        rc = hws_resume_fail_system (self);
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
        rc = hws_resume_fail_system (self);
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
        return hws_resume_fail_memory (self);
    }
    self->fd = mkostemp (self->temporary, O_CLOEXEC);
    if (self->fd >= 0) {
        return 0;
    }
    const int rc = hws_resume_fail_system (self);
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
        return hws_resume_fail (self, HWS_EMALFORMED, "the broker gave no owner token");
    }
    int rc = make_temporary (self);
    rc = rc == 0 ? hws_resume_write_anchor (self) : rc;
    if (rc < 0) {
        return rc;
    }
    if (flock (self->fd, LOCK_EX | LOCK_NB) < 0 || give_name (self) < 0) {
        return hws_resume_fail_system (self);
    }

    /*  Senders may be attached by now, and a kill before the file has its name would abandon
     *  them: the disk, which may take long, comes after that.  */
    free (self->temporary);
    self->temporary = NULL;
    return fsync (self->fd) < 0 ? hws_resume_fail_system (self) : sync_directory (self);
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
    return errno == ENOENT ? check_directory (*self) : hws_resume_fail_system (*self);
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
    hws_resume_forget_all (resume);
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
