#include "bench/crew_io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void redirect (const char *log)
{
    const int file = open (log, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file >= 0) {
        dup2 (file, STDOUT_FILENO);
        dup2 (file, STDERR_FILENO);
        close (file);
    }
}

pid_t crew_start (crew_t *self, int (*work) (void *arg), void *arg, const char *log)
{
    if (self->count == CREW_MAX) {
        return -1;
    }
    const pid_t parent = getpid ();
    fflush (NULL);
    const pid_t pid = fork ();
    if (pid == 0) {
        if (prctl (PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid () != parent) {
            _exit (1);
        }
        if (log) {
            redirect (log);
        }
        const int rc = work (arg);
        fflush (NULL);
        _exit (rc < 0 ? 1 : 0);
    }
    if (pid > 0) {
        self->pids[self->count++] = pid;
    }
    return pid;
}

bool crew_has_failed (crew_t *self)
{
    bool has_failed = false;
    for (size_t i = 0; i < self->count;) {
        int status;
        if (waitpid (self->pids[i], &status, WNOHANG) > 0) {
            has_failed = has_failed || status != 0;
            self->pids[i] = self->pids[--self->count];
        } else {
            i++;
        }
    }
    return has_failed;
}

void crew_end (crew_t *self)
{
    for (size_t i = 0; i < self->count; i++) {
        kill (self->pids[i], SIGKILL);
    }
    while (self->count > 0) {
        if (waitpid (self->pids[self->count - 1], NULL, 0) > 0 || errno != EINTR) {
            self->count--;
        }
    }
}

int64_t clock_ns (void)
{
    struct timespec now;
    clock_gettime (CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

void sleep_until_ns (int64_t at)
{
    const struct timespec time = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    while (clock_nanosleep (CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR) {
    }
}

void sleep_ms (int64_t length_ms)
{
    sleep_until_ns (clock_ns () + length_ms * 1000000);
}
