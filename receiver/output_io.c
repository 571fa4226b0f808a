#include "receiver/output_io.h"

#include "base/error.h"
#include "base/list.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define BUFFER_SIZE   262144
#define PIECE_COUNT   8192
#define VECTOR_COUNT  64
#define ATTEMPT_COUNT 1000
#define NO_PIECE      PIECE_COUNT

/*  A record this large is written from where it lies.  */
#define DIRECT_SIZE (BUFFER_SIZE / 8)

/*  Consecutive bytes of one output in the buffer.  */
typedef struct {
    size_t offset; /* where they begin */
    size_t size;
    size_t next; /* the output's next piece, or NO_PIECE */
} piece_t;

struct hws_output {
    hws_outputs_t *outputs; /* that it belongs to */
    int fd;
    size_t first_piece; /* of what was gathered for it, or NO_PIECE */
    size_t last_piece;
    uint64_t size;          /* of the file, with what was gathered */
    hws_link_t dirty_link;  /* in `dirty` while there is such a piece */
    hws_output_name_t name; /* "" for stdout */
};

struct hws_outputs {
    char *directory;      /* as the user named it, or null: stdout */
    int directory_fd;     /* -1: stdout */
    hws_output_t stdout_; /* only used without a directory */
    hws_list_t dirty;     /* outputs that something was gathered for */
    size_t used;          /* bytes of `buffer` */
    size_t piece_count;   /* used of `pieces` */
    int failure;          /* 0, or what every call returns from now on */
    bool is_unread;       /* the failure is EPIPE on stdout */
    char error[512];      /* its text */
    piece_t pieces[PIECE_COUNT];
    uint8_t buffer[BUFFER_SIZE];
};

/*  ---- Outputs ---- */

static void output_init (hws_output_t *self, hws_outputs_t *outputs, int fd)
{
    *self = (hws_output_t){
        .outputs = outputs, .fd = fd, .first_piece = NO_PIECE, .last_piece = NO_PIECE};
}

/*  One descriptor per sender: as many as the system lets us have.  */
static void raise_descriptor_limit (void)
{
    struct rlimit limit;
    if (getrlimit (RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit (RLIMIT_NOFILE, &limit);
    }
}

static int open_directory (hws_outputs_t *self, const char *directory)
{
    self->directory = strdup (directory);
    if (self->directory == NULL) {
        return HWS_ENO_MEMORY;
    }
    if (mkdir (directory, 0777) < 0 && errno != EEXIST) {
        return HWS_ESYSTEM;
    }
    self->directory_fd = open (directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    raise_descriptor_limit ();
    return self->directory_fd < 0 ? HWS_ESYSTEM : 0;
}

int hws_outputs_new (hws_outputs_t **self, const char *directory)
{
    *self = calloc (1, sizeof **self);
    if (*self == NULL) {
        return HWS_ENO_MEMORY;
    }
    (*self)->directory_fd = -1;
    output_init (&(*self)->stdout_, *self, STDOUT_FILENO);
    const int rc = directory ? open_directory (*self, directory) : 0;
    if (rc < 0) {
        const int saved_errno = errno;
        hws_outputs_destroy (self);
        errno = saved_errno;
    }
    return rc;
}

void hws_outputs_destroy (hws_outputs_t **self)
{
    if (*self == NULL) {
        return;
    }
    if ((*self)->directory_fd >= 0) {
        close ((*self)->directory_fd);
    }
    free ((*self)->directory);
    free (*self);
    *self = NULL;
}

static int fail_with (hws_outputs_t *self, const char *name, int code, const char *reason)
{
    self->failure = code;
    if (name[0]) {
        snprintf (self->error, sizeof self->error, "%.200s/%s: %s", self->directory, name, reason);
    } else {
        snprintf (self->error, sizeof self->error, "standard output: %s", reason);
    }
    return code;
}

static int fail (hws_outputs_t *self, const char *name, int code, int error)
{
    self->is_unread = name[0] == '\0' && error == EPIPE;
    return fail_with (self, name, code,
                      code == HWS_ESYSTEM ? strerror (error) : hws_strerror (code));
}

static int make_file (hws_outputs_t *self, const char *label, hws_output_t *output,
                      uint64_t sender_id)
{
    for (unsigned attempt = 0; attempt < ATTEMPT_COUNT; attempt++) {
        hws_output_name (label, sender_id, attempt, output->name);
        output->fd = openat (self->directory_fd, output->name,
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (output->fd >= 0) {
            return 0;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return fail (self, output->name, HWS_ESYSTEM, errno);
}

/*  Opens a file that is there and cuts it to `size`.  */
static int open_file (hws_outputs_t *self, hws_output_t *output, uint64_t size)
{
    struct stat status;
    output->fd = openat (self->directory_fd, output->name,
                         O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (output->fd < 0 || fstat (output->fd, &status) < 0) {
        return fail (self, output->name, HWS_ESYSTEM, errno);
    }
    if (!S_ISREG (status.st_mode) || (uint64_t) status.st_size < size) {
        return fail_with (self, output->name, HWS_ESYSTEM,
                          "has not all that was written to it before");
    }
    if (ftruncate (output->fd, (off_t) size) < 0) {
        return fail (self, output->name, HWS_ESYSTEM, errno);
    }
    output->size = size;
    return 0;
}

int hws_outputs_continue (hws_outputs_t *self, const char *name, uint64_t size,
                          hws_output_t **output)
{
    *output = NULL;
    if (self->failure) {
        return self->failure;
    }
    hws_output_t *const added = malloc (sizeof *added);
    if (added == NULL) {
        return fail (self, name, HWS_ENO_MEMORY, 0);
    }
    output_init (added, self, -1);
    hws_text_copy (added->name, sizeof added->name, name);
    const int rc = open_file (self, added, size);
    if (rc < 0) {
        if (added->fd >= 0) {
            close (added->fd);
        }
        free (added);
        return rc;
    }
    *output = added;
    return 0;
}

int hws_outputs_add (hws_outputs_t *self, const char *label, uint64_t sender_id,
                     hws_output_t **output)
{
    *output = NULL;
    if (self->failure) {
        return self->failure;
    }
    if (self->directory == NULL) {
        *output = &self->stdout_;
        return 0;
    }
    hws_output_t *added = malloc (sizeof *added);
    if (added == NULL) {
        return fail (self, label, HWS_ENO_MEMORY, 0);
    }
    output_init (added, self, -1);
    const int rc = make_file (self, label, added, sender_id);
    if (rc < 0) {
        free (added);
        return rc;
    }
    *output = added;
    return 0;
}

hws_output_t *hws_outputs_stdout (hws_outputs_t *self)
{
    return &self->stdout_;
}

const char *hws_output_file (const hws_output_t *self)
{
    return self->name;
}

uint64_t hws_output_size (const hws_output_t *self)
{
    return self->size;
}

const char *hws_outputs_error (const hws_outputs_t *self)
{
    return self->error;
}

bool hws_outputs_is_unread (const hws_outputs_t *self)
{
    return self->is_unread;
}

/*  ---- Writing ---- */

/*  Steps over what was written; returns how many vectors are done with.  */
static size_t advance (struct iovec *vectors, size_t count, size_t written)
{
    size_t done = 0;
    while (done < count && written >= vectors[done].iov_len) {
        written -= vectors[done++].iov_len;
    }
    if (done < count) {
        vectors[done].iov_base = (uint8_t *) vectors[done].iov_base + written;
        vectors[done].iov_len -= written;
    }
    return done;
}

/*  Writes all of the vectors, which it changes. Waits when somebody has made the
 *  descriptor non-blocking.  */
static int write_vectors (hws_output_t *self, struct iovec *vectors, size_t count)
{
    size_t done = advance (vectors, count, 0);
    while (done < count) {
        const ssize_t rc = writev (self->fd, vectors + done, (int) (count - done));
        if (rc >= 0) {
            done += advance (vectors + done, count - done, (size_t) rc);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            poll (&(struct pollfd){.fd = self->fd, .events = POLLOUT}, 1, -1);
        } else if (errno != EINTR) {
            return fail (self->outputs, self->name, HWS_ESYSTEM, errno);
        }
    }
    return 0;
}

/*  Writes what was gathered for one output.  */
static int flush (hws_output_t *self)
{
    hws_outputs_t *const outputs = self->outputs;
    size_t piece = self->first_piece;
    hws_list_remove (&self->dirty_link);
    self->first_piece = self->last_piece = NO_PIECE;
    while (piece != NO_PIECE) {
        struct iovec vectors[VECTOR_COUNT];
        size_t count = 0;
        for (; piece != NO_PIECE && count < VECTOR_COUNT; count++) {
            const piece_t *const at = &outputs->pieces[piece];
            vectors[count] =
                (struct iovec){.iov_base = outputs->buffer + at->offset, .iov_len = at->size};
            piece = at->next;
        }
        const int rc = write_vectors (self, vectors, count);
        if (rc < 0) {
            return rc;
        }
    }
    return 0;
}

int hws_outputs_flush (hws_outputs_t *self)
{
    while (self->dirty.head && self->failure == 0) {
        flush (hws_container_of (self->dirty.head, hws_output_t, dirty_link));
    }
    if (self->failure == 0) {
        self->used = 0;
        self->piece_count = 0;
    }
    return self->failure;
}

/*  Makes bytes that come next in the buffer this output's.  */
static void add_piece (hws_output_t *self, size_t size)
{
    hws_outputs_t *const outputs = self->outputs;
    const size_t last = self->last_piece;
    if (last != NO_PIECE && last + 1 == outputs->piece_count) {
        outputs->pieces[last].size += size;
        return;
    }
    const size_t piece = outputs->piece_count++;
    outputs->pieces[piece] = (piece_t){.offset = outputs->used, .size = size, .next = NO_PIECE};
    if (last != NO_PIECE) {
        outputs->pieces[last].next = piece;
    } else {
        self->first_piece = piece;
        hws_list_append (&outputs->dirty, &self->dirty_link);
    }
    self->last_piece = piece;
}

static void gather (hws_outputs_t *self, const void *data, size_t size)
{
    if (size > 0) {
        memcpy (self->buffer + self->used, data, size);
        self->used += size;
    }
}

static int put_directly (hws_output_t *self, const hws_framing_marks_t *marks, hws_bytes_t record)
{
    hws_framing_marks_t copy = *marks;
    struct iovec vectors[3] = {
        {.iov_base = copy.before, .iov_len = copy.before_size},
        {.iov_base = (void *) (uintptr_t) record.data, .iov_len = record.size},
        {.iov_base = copy.after, .iov_len = copy.after_size},
    };
    const int rc = flush (self);
    return rc == 0 ? write_vectors (self, vectors, 3) : rc;
}

int hws_output_put (hws_output_t *self, const hws_framing_marks_t *marks, hws_bytes_t record)
{
    hws_outputs_t *const outputs = self->outputs;
    if (outputs->failure) {
        return outputs->failure;
    }
    const size_t size = marks->before_size + record.size + marks->after_size;
    self->size += size;
    if (record.size >= DIRECT_SIZE) {
        return put_directly (self, marks, record);
    }
    if (size > BUFFER_SIZE - outputs->used || outputs->piece_count == PIECE_COUNT) {
        const int rc = hws_outputs_flush (outputs);
        if (rc < 0) {
            return rc;
        }
    }
    add_piece (self, size);
    gather (outputs, marks->before, marks->before_size);
    gather (outputs, record.data, record.size);
    gather (outputs, marks->after, marks->after_size);
    return 0;
}

int hws_output_close (hws_output_t **self)
{
    hws_output_t *const output = *self;
    *self = NULL;
    hws_outputs_t *const outputs = output->outputs;
    if (output == &outputs->stdout_) {
        return outputs->failure;
    }
    if (outputs->failure == 0) {
        flush (output);
    }
    hws_list_remove (&output->dirty_link);
    if (close (output->fd) < 0 && errno != EINTR && outputs->failure == 0) {
        fail (outputs, output->name, HWS_ESYSTEM, errno);
    }
    free (output);
    return outputs->failure;
}
