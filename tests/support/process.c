#include "tests/support/process.h"

#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS   60000 /* far beyond anything that is awaited, also under valgrind */
#define PROCESSES_MAX 256

/*  One pipe from a program.  */
typedef struct {
    int fd;       /* -1 after its end */
    bool held;    /* not read for now */
    char *data;   /* always ended by a NUL */
    size_t size;  /* without it */
    size_t room;  /* of `data` */
    size_t found; /* up to here the lines have been looked at by a wait */
    size_t lines; /* that are whole */
} pipe_t;

struct process {
    char name[64];
    pid_t pid;
    int pidfd; /* readable when it has ended */
    int input; /* -1: none, or closed */
    pipe_t output;
    pipe_t errors;
    bool ended;
    int status; /* once ended: exit status, or 128 + signal */
};

static struct {
    process_t *processes[PROCESSES_MAX];
    size_t process_count;
    size_t descriptors; /* open at the setup */
} s_run;

int64_t process_now (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static unsigned long read_scale (void)
{
    const char *text = getenv ("SCALE");
    const unsigned long scale = text ? strtoul (text, NULL, 10) : 1;

    return scale > 0 ? scale : 1;
}

size_t process_scaled (size_t full, size_t least)
{
    const size_t count = full / read_scale ();

    return count > least ? count : least;
}

bool process_sizes_matter (void)
{
    return read_scale () == 1 && !getenv ("HAWSER_WRAP");
}

/*  ---- Failing ---- */

static void print_tail (const char *name, const char *what, const pipe_t *pipe)
{
    const size_t shown = pipe->size > 4000 ? 4000 : pipe->size;
    if (shown > 0) {
        print_message ("%s of %s (%zu bytes):\n%.*s\n", what, name, pipe->size, (int) shown,
                       pipe->data + pipe->size - shown);
    }
}

static void print_all (void)
{
    for (size_t i = 0; i < s_run.process_count; i++) {
        const process_t *process = s_run.processes[i];
        if (process->ended) {
            print_message ("-- %s (pid %d) ended with %d\n", process->name, (int) process->pid,
                           process->status);
        } else {
            print_message ("-- %s (pid %d) runs\n", process->name, (int) process->pid);
        }
        print_tail (process->name, "stdout", &process->output);
        print_tail (process->name, "stderr", &process->errors);
    }
}

void process_fail (const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);

    print_all ();
    fail_msg ("%s", text);
    abort ();
}

/*  ---- Setup ---- */

int process_setup (void)
{
    signal (SIGPIPE, SIG_IGN);
    s_run.descriptors = count_entries ("/proc/self/fd");
    if (scratch_make () != 0) {
        return -1;
    }
    setenv ("XDG_STATE_HOME", process_directory (), 1);
    setenv ("TMPDIR", process_directory (), 1);
    unsetenv ("STATE_DIRECTORY");
    unsetenv ("HAWSER_BROKER");
    return 0;
}

/*  ---- Starting ---- */

/*  The programs' directory: given, or two above the test's own (build/tests/e2e/x).  */
static void find_program (const char *name, char path[PATH_MAX])
{
    const char *build = getenv ("HAWSER_BUILD");
    char own[PATH_MAX];

    if (strchr (name, '/')) {
        snprintf (path, PATH_MAX, "%s", name);
        return;
    }
    if (build) {
        char *absolute = realpath (build, NULL);
        snprintf (path, PATH_MAX, "%s/%s", absolute ? absolute : build, name);
        free (absolute);
        return;
    }
    const ssize_t size = readlink ("/proc/self/exe", own, sizeof own - 1);
    assert_true (size > 0);
    own[size] = '\0';
    for (int level = 0; level < 3; level++) {
        char *slash = strrchr (own, '/');
        assert_non_null (slash);
        *slash = '\0';
    }
    assert_true (snprintf (path, PATH_MAX, "%s/%s", own, name) < PATH_MAX);
}

const char *process_program (const char *name)
{
    char path[PATH_MAX];

    find_program (name, path);
    return scratch_keep (strdup (path));
}

/*  In the child: connects the three descriptors and becomes the program.  */
static _Noreturn void become (const process_files_t *files, char *const *arguments, int input,
                              int output, int errors)
{
    sigset_t none;

    prctl (PR_SET_PDEATHSIG, SIGKILL);
    if (dup2 (input, 0) < 0 || dup2 (output, 1) < 0 || dup2 (errors, 2) < 0) {
        _exit (126);
    }
    if (files && files->directory && chdir (files->directory) != 0) {
        _exit (126);
    }
    sigemptyset (&none);
    sigprocmask (SIG_SETMASK, &none, NULL);
    signal (SIGPIPE, SIG_DFL);
    execvp (arguments[0], arguments);
    dprintf (2, "cannot start %s: %s\n", arguments[0], strerror (errno));
    _exit (127);
}

/*  Both ends of a program's descriptor; `ours` is -1 when it is a file.  */
typedef struct {
    int ours;
    int theirs;
} ends_t;

static ends_t make_ends (const char *path, bool to_program)
{
    ends_t ends = {-1, -1};
    if (path) {
        ends.theirs =
            open (path, (to_program ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC) | O_CLOEXEC, 0600);
    } else {
        int fds[2];
        assert_int_equal (pipe2 (fds, O_CLOEXEC), 0);
        ends.ours = to_program ? fds[1] : fds[0];
        ends.theirs = to_program ? fds[0] : fds[1];
        fcntl (ends.ours, F_SETFL, O_NONBLOCK);
    }
    if (ends.theirs < 0) {
        process_fail ("cannot open %s: %s", path ? path : "a pipe", strerror (errno));
    }
    return ends;
}

process_t *process_start_list (const process_files_t *files, const char *const *arguments)
{
    char path[PATH_MAX];
    char wrap[256] = "";
    char *list[128];
    size_t count = 0;

    /*  valgrind and the like come first, word by word.  */
    snprintf (wrap, sizeof wrap, "%s", getenv ("HAWSER_WRAP") ? getenv ("HAWSER_WRAP") : "");
    for (char *rest = wrap, *word; (word = strtok_r (rest, " ", &rest)) != NULL;) {
        list[count++] = word;
    }
    find_program (arguments[0], path);
    list[count++] = path;
    for (size_t i = 1; arguments[i]; i++) {
        assert_true (count < 127);
        list[count++] = (char *) (uintptr_t) arguments[i];
    }
    list[count] = NULL;

    assert_true (s_run.process_count < PROCESSES_MAX);
    process_t *self = calloc (1, sizeof *self);
    assert_non_null (self);
    const ends_t input = make_ends (files ? files->input : NULL, true);
    const ends_t output = make_ends (files ? files->output : NULL, false);
    const ends_t errors = make_ends (NULL, false);

    fflush (NULL);
    self->pid = fork ();
    if (self->pid == 0) {
        become (files, list, input.theirs, output.theirs, errors.theirs);
    }
    close (input.theirs);
    close (output.theirs);
    close (errors.theirs);
    assert_true (self->pid > 0);

    self->pidfd = (int) syscall (SYS_pidfd_open, self->pid, 0);
    assert_true (self->pidfd >= 0);
    fcntl (self->pidfd, F_SETFD, FD_CLOEXEC);
    self->input = input.ours;
    self->output.fd = output.ours;
    self->errors.fd = errors.ours;
    self->output.data = calloc (1, 1);
    self->errors.data = calloc (1, 1);
    const char *base = strrchr (arguments[0], '/');
    snprintf (self->name, sizeof self->name, "%s#%zu", base ? base + 1 : arguments[0],
              s_run.process_count);
    s_run.processes[s_run.process_count++] = self;
    return self;
}

process_t *process_start (const process_files_t *files, const char *program, ...)
{
    const char *list[100] = {program};
    size_t count = 1;
    va_list arguments;

    va_start (arguments, program);
    while (count < 99 && (list[count] = va_arg (arguments, const char *)) != NULL) {
        count++;
    }
    va_end (arguments);
    assert_true (count < 99);
    return process_start_list (files, list);
}

pid_t process_pid (const process_t *self)
{
    return self->pid;
}

/*  ---- Waiting ---- */

/*  Reads what is there. Returns false when the program closed it.  */
static bool read_some (pipe_t *pipe)
{
    for (;;) {
        if (pipe->size + 65536 >= pipe->room) {
            pipe->room = pipe->room * 2 + 131072;
            pipe->data = realloc (pipe->data, pipe->room);
            assert_non_null (pipe->data);
        }
        const ssize_t size = read (pipe->fd, pipe->data + pipe->size, 65536);
        if (size < 0) {
            return errno == EAGAIN || errno == EINTR;
        }
        if (size == 0) {
            return false;
        }
        for (ssize_t i = 0; i < size; i++) {
            pipe->lines += pipe->data[pipe->size + (size_t) i] == '\n' ? 1 : 0;
        }
        pipe->size += (size_t) size;
        pipe->data[pipe->size] = '\0';
        if (size < 65536) {
            return true;
        }
    }
}

static void close_fd (int *fd)
{
    if (*fd >= 0) {
        close (*fd);
        *fd = -1;
    }
}

static void reap (process_t *self)
{
    int status = 0;

    if (waitpid (self->pid, &status, WNOHANG) != self->pid) {
        return;
    }
    self->ended = true;
    self->status = WIFEXITED (status) ? WEXITSTATUS (status) : 128 + WTERMSIG (status);
    close_fd (&self->pidfd);
    close_fd (&self->input);
}

static void pump_pipe (pipe_t *pipe, const struct pollfd *polled)
{
    if (polled->fd >= 0 && polled->revents && !read_some (pipe)) {
        close_fd (&pipe->fd);
    }
}

/*  Waits for any event of any program, at most `timeout_ms`, and takes it in. `writer`,
 *  if not null, also ends the wait when its stdin takes more.  */
static void pump (int64_t timeout_ms, const process_t *writer)
{
    static struct pollfd polled[3 * PROCESSES_MAX + 1];
    const size_t count = s_run.process_count;

    for (size_t i = 0; i < count; i++) {
        const process_t *process = s_run.processes[i];
        polled[3 * i] = (struct pollfd){process->output.held ? -1 : process->output.fd, POLLIN, 0};
        polled[3 * i + 1] = (struct pollfd){process->errors.fd, POLLIN, 0};
        polled[3 * i + 2] = (struct pollfd){process->ended ? -1 : process->pidfd, POLLIN, 0};
    }
    polled[3 * count] = (struct pollfd){writer ? writer->input : -1, POLLOUT, 0};

    if (poll (polled, (nfds_t) (3 * count + 1), timeout_ms < 0 ? 0 : (int) timeout_ms) <= 0) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        process_t *process = s_run.processes[i];
        pump_pipe (&process->output, &polled[3 * i]);
        pump_pipe (&process->errors, &polled[3 * i + 1]);
        if (polled[3 * i + 2].fd >= 0 && polled[3 * i + 2].revents) {
            reap (process);
        }
    }
}

void process_write (process_t *self, const void *data, size_t size)
{
    const int64_t until = process_now () + PATIENCE_MS;
    const char *next = data;

    while (size > 0) {
        const ssize_t written = self->input < 0 ? -1 : write (self->input, next, size);
        if (written > 0) {
            next += written;
            size -= (size_t) written;
        } else if (self->input < 0 || errno != EAGAIN || process_now () > until) {
            process_fail ("%s does not take its input", self->name);
        } else {
            pump (1000, self);
        }
    }
}

void process_close_input (process_t *self)
{
    close_fd (&self->input);
}

void process_hold_output (process_t *self, bool hold)
{
    self->output.held = hold;
}

void process_close_output (process_t *self)
{
    close_fd (&self->output.fd);
}

/*  The next whole line with `part` behind what was found before; null if not there.  */
static const char *find_line (pipe_t *pipe, const char *part)
{
    for (;;) {
        const char *line = pipe->data + pipe->found;
        const char *end = memchr (line, '\n', pipe->size - pipe->found);
        if (!end) {
            return NULL;
        }
        const size_t size = (size_t) (end - line);
        pipe->found += size + 1;
        if (memmem (line, size, part, strlen (part))) {
            return scratch_keep (strndup (line, size));
        }
    }
}

static const char *wait_line (process_t *self, pipe_t *pipe, const char *part)
{
    const int64_t until = process_now () + PATIENCE_MS;

    for (;;) {
        const char *line = find_line (pipe, part);
        if (line) {
            return line;
        }
        if (pipe->fd < 0) {
            process_fail ("%s ended its output without \"%s\"", self->name, part);
        }
        if (process_now () > until) {
            process_fail ("%s did not say \"%s\"", self->name, part);
        }
        pump (until - process_now (), NULL);
    }
}

const char *process_wait_output (process_t *self, const char *part)
{
    return wait_line (self, &self->output, part);
}

const char *process_wait_error (process_t *self, const char *part)
{
    return wait_line (self, &self->errors, part);
}

static size_t count_lines (const pipe_t *pipe, const char *part)
{
    size_t count = 0;
    const char *line = pipe->data;
    const char *const end = pipe->data + pipe->size;

    while (line < end) {
        const char *stop = memchr (line, '\n', (size_t) (end - line));
        if (!stop) {
            break;
        }
        if (memmem (line, (size_t) (stop - line), part, strlen (part))) {
            count++;
        }
        line = stop + 1;
    }
    return count;
}

void process_wait_lines (process_t *self, size_t count)
{
    const int64_t until = process_now () + PATIENCE_MS;

    while (self->output.lines < count) {
        if (self->output.fd < 0 || process_now () > until) {
            process_fail ("%s wrote fewer than %zu lines", self->name, count);
        }
        pump (until - process_now (), NULL);
    }
}

int process_wait_exit (process_t *self)
{
    const int64_t until = process_now () + PATIENCE_MS;

    while (!self->ended || self->errors.fd >= 0 || (self->output.fd >= 0 && !self->output.held)) {
        if (process_now () > until) {
            process_fail ("%s does not end", self->name);
        }
        pump (until - process_now (), NULL);
    }
    return self->status;
}

void process_expect_exit (process_t *self, int status)
{
    const int got = process_wait_exit (self);
    if (got != status) {
        process_fail ("%s ended with %d, not with %d", self->name, got, status);
    }
}

void process_watch (int64_t ms)
{
    const int64_t until = process_now () + ms;

    while (process_now () < until) {
        pump (until - process_now (), NULL);
    }
}

bool process_is_running (process_t *self)
{
    pump (0, NULL);
    return !self->ended;
}

void process_signal (process_t *self, int signal)
{
    if (!self->ended) {
        kill (self->pid, signal);
    }
}

/*  ---- Looking ---- */

const char *process_output (const process_t *self, size_t *size)
{
    if (size) {
        *size = self->output.size;
    }
    return self->output.data;
}

const char *process_errors (const process_t *self)
{
    return self->errors.data;
}

size_t process_count_output (const process_t *self, const char *part)
{
    return count_lines (&self->output, part);
}

size_t process_count_errors (const process_t *self, const char *part)
{
    return count_lines (&self->errors, part);
}

/*  ---- The end ---- */

/*  Whether a program's last words are a report of a bug.  */
static bool has_report (const process_t *self)
{
    static const char *const words[] = {
        "Sanitizer: ", "runtime error: ", "hawser: bug: ",    "Assertion",    "==ERROR",
        "dangling",    "Invalid read of", "Invalid write of", "uninitialised"};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (memmem (self->errors.data, self->errors.size, words[i], strlen (words[i]))) {
            return true;
        }
    }
    return false;
}

int process_teardown (void)
{
    size_t running = 0;
    size_t reports = 0;

    for (size_t i = 0; i < s_run.process_count; i++) {
        if (!s_run.processes[i]->ended) {
            running++;
        }
    }
    if (running > 0) {
        print_message ("%zu programs were still running:\n", running);
        print_all ();
    }
    for (size_t i = 0; i < s_run.process_count; i++) {
        process_t *process = s_run.processes[i];
        process->output.held = false;
        process_signal (process, SIGCONT);
        process_signal (process, SIGKILL);
        while (!process->ended || process->errors.fd >= 0 || process->output.fd >= 0) {
            pump (1000, NULL);
        }
    }
    for (size_t i = 0; i < s_run.process_count; i++) {
        process_t *process = s_run.processes[i];
        if (has_report (process)) {
            print_message ("a report on the stderr of %s:\n%s\n", process->name,
                           process->errors.data);
            reports++;
        }
        free (process->output.data);
        free (process->errors.data);
        free (process);
    }
    s_run.process_count = 0;
    unsetenv ("HAWSER_BROKER");
    scratch_remove ();

    const bool child = waitpid (-1, NULL, WNOHANG) >= 0 || errno != ECHILD;
    const size_t descriptors = count_entries ("/proc/self/fd");
    if (child) {
        print_message ("a child is left\n");
    }
    if (descriptors != s_run.descriptors) {
        print_message ("%zu descriptors are open, not %zu\n", descriptors, s_run.descriptors);
    }
    return running || reports || child || descriptors != s_run.descriptors ? -1 : 0;
}
