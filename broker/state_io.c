#include "broker/state_io.h"

#include "base/error.h"
#include "io/random_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK      "lock"
#define FILE_NAME "broker.json"
#define NEW_NAME  "broker.json.new"

/*  What to do when the identity is lost; ends every line that says so.  */
#define ADVICE "restore it from a backup, or move it away to begin as another broker"

/*  A state directory that is being opened.  */
typedef struct {
    const char *path;
    int directory; /* descriptor, or -1 */
    int lock;      /* the same */
    char *fault;   /* a hws_state_fault_t */
} opening_t;

/*  ---- Errors ---- */

__attribute__ ((format (printf, 3, 4))) static int fail (opening_t *self, int code,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (self->fault, sizeof (hws_state_fault_t), format, arguments);
    va_end (arguments);
    return code;
}

/*  "cannot lock DIR/lock: No space left on device"; `name` null: the directory itself.  */
static int fail_system (opening_t *self, const char *verb, const char *name)
{
    const int code = errno;
    return fail (self, HWS_ESYSTEM, "cannot %s %s%s%s: %s", verb, self->path, name ? "/" : "",
                 name ? name : "", strerror (code));
}

/*  Secrets are nobody else's.  */
static int check_owner (opening_t *self, const struct stat *found, const char *name)
{
    const char *const slash = *name ? "/" : "";
    if (found->st_uid != geteuid ()) {
        return fail (self, HWS_EDENIED, "%s%s%s belongs to user %u, not to user %u who runs this",
                     self->path, slash, name, found->st_uid, geteuid ());
    }
    if ((found->st_mode & 077) != 0) {
        return fail (self, HWS_EDENIED,
                     "%s%s%s is open to other users (mode %04o); say chmod go= on it, and if they "
                     "may have read it, begin as another broker",
                     self->path, slash, name, found->st_mode & 07777);
    }
    return 0;
}

/*  ---- Directory and lock ---- */

/*  So that a new directory is there after a crash of the machine. It may be above what we may
 *  read; then that is how it is.  */
static void sync_above (const opening_t *self)
{
    const int above = openat (self->directory, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above >= 0) {
        fsync (above);
        close (above);
    }
}

static int open_directory (opening_t *self)
{
    bool is_new = false;
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    self->directory = open (self->path, flags);
    if (self->directory < 0 && errno == ENOENT) {
        if (mkdir (self->path, 0700) != 0) {
            fail_system (self, "make", NULL);
            return HWS_ENOT_FOUND;
        }
        self->directory = open (self->path, flags);
        is_new = true;
    }
    struct stat found;
    if (self->directory < 0 || fstat (self->directory, &found) != 0) {
        return fail_system (self, "open", NULL);
    }
    if (is_new) {
        sync_above (self);
    }
    return check_owner (self, &found, "");
}

/*  The lock file stays when the broker goes: who removed it could remove one that the
 *  next broker has just locked.  */
static int take_lock (opening_t *self)
{
    self->lock = openat (self->directory, LOCK,
                         O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (self->lock < 0) {
        return fail_system (self, "open", LOCK);
    }
    if (flock (self->lock, LOCK_EX | LOCK_NB) == 0) {
        return 0;
    }
    return errno == EWOULDBLOCK
               ? fail (self, HWS_EBUSY, "another broker runs with the state directory %s",
                       self->path)
               : fail_system (self, "lock", LOCK);
}

/*  ---- Reading ---- */

/*  Reads at most `size` bytes. Returns 0 or HWS_ESYSTEM.  */
static int read_all (int descriptor, char *data, size_t size, size_t *used)
{
    *used = 0;
    while (*used < size) {
        const ssize_t count = read (descriptor, data + *used, size - *used);
        if (count < 0 && errno != EINTR) {
            return HWS_ESYSTEM;
        }
        if (count == 0) {
            break;
        }
        *used += count > 0 ? (size_t) count : 0;
    }
    return 0;
}

static int parse (opening_t *self, hws_identity_t *identity, const char *text, size_t size)
{
    char file[sizeof (hws_state_fault_t)];
    char why[sizeof (hws_state_fault_t)];
    snprintf (file, sizeof file, "%s/" FILE_NAME, self->path);
    const int rc = hws_identity_parse (identity, file, (hws_bytes_t){(const uint8_t *) text, size},
                                       why, sizeof why);
    return rc == HWS_EMALFORMED ? fail (self, rc, "%.1900s; " ADVICE, why)
           : rc != 0            ? fail (self, rc, "%.1900s", why)
                                : 0;
}

static int read_file (opening_t *self, int descriptor, hws_identity_t *identity)
{
    struct stat found;
    char text[4 * HWS_IDENTITY_TEXT_SIZE]; /* more than any that we wrote */
    size_t size;
    if (fstat (descriptor, &found) != 0) {
        return fail_system (self, "read", FILE_NAME);
    }
    if (!S_ISREG (found.st_mode)) {
        return fail (self, HWS_EMALFORMED, "%s/" FILE_NAME " is not a file; " ADVICE, self->path);
    }
    int rc = check_owner (self, &found, FILE_NAME);
    if (rc == 0 && read_all (descriptor, text, sizeof text, &size) != 0) {
        rc = fail_system (self, "read", FILE_NAME);
    }
    if (rc == 0 && size == sizeof text) {
        rc = fail (self, HWS_EMALFORMED, "%s/" FILE_NAME " is too large; " ADVICE, self->path);
    }
    return rc == 0 ? parse (self, identity, text, size) : rc;
}

static int make (opening_t *self, hws_identity_t *identity)
{
    *identity = (hws_identity_t){0};
    if (hws_random_fill (&identity->broker_id, sizeof identity->broker_id) != 0 ||
        hws_random_fill (identity->key, sizeof identity->key) != 0) {
        return fail_system (self, "make a key for", NULL);
    }
    return 0;
}

/*  The identity of the last start, or a new one at the first.  */
static int load (opening_t *self, hws_identity_t *identity)
{
    const int descriptor =
        openat (self->directory, FILE_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (descriptor < 0) {
        return errno == ENOENT ? make (self, identity) : fail_system (self, "open", FILE_NAME);
    }
    const int rc = read_file (self, descriptor, identity);
    close (descriptor);
    return rc;
}

/*  ---- Writing ---- */

static int write_all (int descriptor, const char *data, size_t size)
{
    while (size > 0) {
        const ssize_t count = write (descriptor, data, size);
        if (count < 0 && errno != EINTR) {
            return HWS_ESYSTEM;
        }
        data += count > 0 ? count : 0;
        size -= count > 0 ? (size_t) count : 0;
    }
    return 0;
}

/*  The new file is whole on the disk before it has the name of the old one. What an earlier start
 *  that died left under its first name is removed, whoever may read it.  */
static int save (opening_t *self, const hws_identity_t *identity)
{
    char text[HWS_IDENTITY_TEXT_SIZE];
    const size_t size = hws_identity_print (identity, text);
    if (unlinkat (self->directory, NEW_NAME, 0) != 0 && errno != ENOENT) {
        return fail_system (self, "remove", NEW_NAME);
    }
    const int descriptor =
        openat (self->directory, NEW_NAME, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return fail_system (self, "make", NEW_NAME);
    }
    int rc = 0;
    if (write_all (descriptor, text, size) != 0 || fsync (descriptor) != 0) {
        rc = fail_system (self, "write", NEW_NAME);
    }
    if (close (descriptor) != 0 && rc == 0) {
        rc = fail_system (self, "write", NEW_NAME);
    }
    if (rc == 0 && renameat (self->directory, NEW_NAME, self->directory, FILE_NAME) != 0) {
        rc = fail_system (self, "replace", FILE_NAME);
    }
    if (rc != 0) {
        unlinkat (self->directory, NEW_NAME, 0);
    } else if (fsync (self->directory) != 0) {
        rc = fail_system (self, "sync", NULL);
    }
    return rc;
}

static int begin_epoch (opening_t *self, hws_identity_t *identity)
{
    int rc = load (self, identity);
    if (rc == 0 && identity->epoch == HWS_EPOCH_MAX) {
        rc = fail (self, HWS_ELIMIT,
                   "%s/" FILE_NAME " has used all its epochs; move it away to begin as another "
                   "broker",
                   self->path);
    }
    if (rc == 0) {
        identity->epoch++;
        rc = save (self, identity);
    }
    return rc;
}

/*  ---- Whole ---- */

static int open_all (opening_t *self, hws_state_t *state)
{
    int rc = open_directory (self);
    if (rc == 0) {
        rc = take_lock (self);
    }
    if (rc == 0 && !(state->directory = strdup (self->path))) {
        rc = fail (self, HWS_ENO_MEMORY, "%s", hws_strerror (HWS_ENO_MEMORY));
    }
    return rc == 0 ? begin_epoch (self, &state->identity) : rc;
}

int hws_state_open (hws_state_t *self, const char *directory, hws_state_fault_t fault)
{
    opening_t opening = {.path = directory, .directory = -1, .lock = -1, .fault = fault};
    *self = (hws_state_t) HWS_STATE_NONE;
    const int rc = open_all (&opening, self);
    if (opening.directory >= 0) {
        close (opening.directory);
    }
    self->lock = opening.lock;
    if (rc != 0) {
        hws_state_close (self);
    }
    return rc;
}

void hws_state_close (hws_state_t *self)
{
    if (self->lock >= 0) {
        close (self->lock);
    }
    free (self->directory);
    *self = (hws_state_t) HWS_STATE_NONE;
}
