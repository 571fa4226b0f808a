#include "broker/process_io.h"

#include "base/error.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

/*  Never blocked: the reports of crashes, and job control.  */
static const int untouched[] = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP,
                                SIGABRT, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU};

static const int handled[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2};

int hws_process_open_standard (void)
{
    for (int descriptor = 0; descriptor <= 2; descriptor++) {
        /*  The lowest free one is taken, which is this.  */
        if (fcntl (descriptor, F_GETFD) < 0 && open ("/dev/null", O_RDWR) != descriptor) {
            return HWS_ESYSTEM;
        }
    }
    return 0;
}

int hws_process_open_signals (void)
{
    sigset_t blocked, read_here;
    sigfillset (&blocked);
    for (size_t i = 0; i < sizeof untouched / sizeof *untouched; i++) {
        sigdelset (&blocked, untouched[i]);
    }
    sigemptyset (&read_here);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++) {
        sigaddset (&read_here, handled[i]);
    }
    if (pthread_sigmask (SIG_BLOCK, &blocked, NULL) != 0 || signal (SIGPIPE, SIG_IGN) == SIG_ERR) {
        return HWS_ESYSTEM;
    }
    const int descriptor = signalfd (-1, &read_here, SFD_NONBLOCK | SFD_CLOEXEC);
    return descriptor < 0 ? HWS_ESYSTEM : descriptor;
}

int hws_process_next_signal (int descriptor)
{
    struct signalfd_siginfo info;
    return read (descriptor, &info, sizeof info) == sizeof info ? (int) info.ssi_signo : 0;
}

size_t hws_process_raise_descriptors (size_t wanted)
{
    struct rlimit limit;
    if (getrlimit (RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    if (limit.rlim_cur < wanted) {
        struct rlimit raised = limit;
        raised.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit (RLIMIT_NOFILE, &raised) == 0) {
            limit = raised;
        }
    }
    /*  Nobody needs more, and tables are made for all of them.  */
    return limit.rlim_cur < 1048576 ? (size_t) limit.rlim_cur : 1048576;
}
