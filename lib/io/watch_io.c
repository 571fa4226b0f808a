#include "io/watch_io.h"

#include "base/error.h"
#include "io/clock_io.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/*  How long the main thread may take until it is where it can be stopped, and how
 *  long to end after it was stopped.  */
#define GUARD_PATIENCE_MS 500
#define END_PATIENCE_MS   2500

/*  The longest wait of a poll; there is no harm in waking up more often.  */
#define WAIT_MS_MAX 60000

/*  Calls `stop`, once, if it is there and the signal too. With the lock held, so that
 *  release waits for it.  */
static void stop_if_due (hws_watch_t *self)
{
    hws_watch_stop_t *const stop = self->stop;
    if (stop && self->signal) {
        self->stop = NULL;
        const bool is_stopped = stop (self->stop_context, self->signal);
        self->leave_at = hws_time_after (hws_clock_ms (), is_stopped ? END_PATIENCE_MS : 0);
    }
}

/*  The main thread is busy with everything that exit would tidy up.  */
_Noreturn static void leave (int signal)
{
    _exit (128 + signal);
}

static void take_signal (hws_watch_t *self)
{
    struct signalfd_siginfo info;
    if (read (self->signal_fd, &info, sizeof info) != (ssize_t) sizeof info) {
        return;
    }
    if (self->signal) {
        leave (self->signal);
    }
    self->signal = (int) info.ssi_signo;
    self->leave_at = hws_time_after (hws_clock_ms (), GUARD_PATIENCE_MS);
    stop_if_due (self);
}

/*  Waits until there is something to do; returns false when the thread is to end.  */
static bool turn (hws_watch_t *self, hws_ms_t wait_ms)
{
    struct pollfd items[2] = {{.fd = self->signal_fd, .events = POLLIN},
                              {.fd = self->wake_fd, .events = POLLIN}};
    poll (items, 2, (int) hws_time_min (wait_ms, WAIT_MS_MAX));

    pthread_mutex_lock (&self->lock);
    uint64_t count;
    if (items[1].revents && read (self->wake_fd, &count, sizeof count) < 0) {
        items[1].revents = 0;
    }
    if (items[0].revents) {
        take_signal (self);
    }
    if (self->tick) {
        self->tick (self->tick_context);
    }
    if (!self->is_ending && hws_clock_ms () >= self->leave_at) {
        leave (self->signal);
    }
    const bool goes_on = !self->is_ending;
    pthread_mutex_unlock (&self->lock);
    return goes_on;
}

static void *run (void *argument)
{
    hws_watch_t *const self = argument;
    hws_ms_t wait_ms = 0;
    while (turn (self, wait_ms)) {
        pthread_mutex_lock (&self->lock);
        wait_ms = hws_time_until (hws_clock_ms (), self->leave_at);
        if (self->tick) {
            wait_ms = hws_time_min (wait_ms, self->tick_ms);
        }
        pthread_mutex_unlock (&self->lock);
    }
    return NULL;
}

static void wake (hws_watch_t *self)
{
    const uint64_t one = 1;
    if (write (self->wake_fd, &one, sizeof one) < 0) {
        /*  The count is full, so that the thread will wake anyway.  */
        return;
    }
}

/*  The lowest free number is taken, so that each gets its own: stdin one that cannot
 *  be read, stdout and stderr ones that cannot be written.  */
static void fill_standard_descriptors (void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl (fd, F_GETFD) < 0 && open ("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0) {
            return;
        }
    }
}

int hws_watch_start (hws_watch_t *self)
{
    fill_standard_descriptors ();
    *self = (hws_watch_t){.leave_at = HWS_NEVER, .signal_fd = -1, .wake_fd = -1};
    signal (SIGPIPE, SIG_IGN);
    signal (SIGINT, SIG_DFL);
    signal (SIGTERM, SIG_DFL);
    sigset_t signals;
    sigemptyset (&signals);
    sigaddset (&signals, SIGINT);
    sigaddset (&signals, SIGTERM);
    if (pthread_sigmask (SIG_BLOCK, &signals, NULL) != 0) {
        return HWS_ESYSTEM;
    }
    self->signal_fd = signalfd (-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    self->wake_fd = eventfd (0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init (&self->lock, NULL);
    if (self->signal_fd >= 0 && self->wake_fd >= 0 &&
        pthread_create (&self->thread, NULL, run, self) == 0) {
        return 0;
    }
    close (self->signal_fd);
    close (self->wake_fd);
    pthread_mutex_destroy (&self->lock);
    return HWS_ESYSTEM;
}

void hws_watch_guard (hws_watch_t *self, hws_watch_stop_t *stop, void *context)
{
    pthread_mutex_lock (&self->lock);
    self->stop = stop;
    self->stop_context = context;
    stop_if_due (self);
    pthread_mutex_unlock (&self->lock);
}

void hws_watch_tick (hws_watch_t *self, hws_watch_tick_t *tick, void *context, hws_ms_t tick_ms)
{
    pthread_mutex_lock (&self->lock);
    self->tick = tick;
    self->tick_context = context;
    self->tick_ms = tick_ms;
    pthread_mutex_unlock (&self->lock);
    wake (self);
}

int hws_watch_release (hws_watch_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->stop = NULL;
    pthread_mutex_unlock (&self->lock);
    return self->signal;
}

int hws_watch_signal (hws_watch_t *self)
{
    return self->signal;
}

void hws_watch_end (hws_watch_t *self)
{
    pthread_mutex_lock (&self->lock);
    self->is_ending = true;
    pthread_mutex_unlock (&self->lock);
    wake (self);
    pthread_join (self->thread, NULL);
    close (self->signal_fd);
    close (self->wake_fd);
    pthread_mutex_destroy (&self->lock);
}
