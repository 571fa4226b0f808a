/*  A start that is killed while it writes the state directory, at every system call of it; and the
 *  order of these calls, which is what a crash of the machine leaves the old file or the new one
 * by.
 *
 *  The start runs in a child that is traced: it stops before and after each call. A SIGKILL cannot
 *  show that data is on the disk before the name, for the kernel lives on; the order of fsync and
 *  rename can.
 */
#include "broker/state_io.h"

#include "base/error.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>
#include <cmocka.h>

#define STOPS_MAX 20000 /* far beyond any start, also under valgrind */

typedef struct {
    char scratch[64];
    char directory[80];
    hws_state_fault_t fault;
} fixture_t;

static int make_scratch (void **state)
{
    fixture_t *const self = calloc (1, sizeof *self);
    strcpy (self->scratch, "/tmp/hawser-test-XXXXXX");
    if (!mkdtemp (self->scratch)) {
        return -1;
    }
    snprintf (self->directory, sizeof self->directory, "%s/state", self->scratch);
    *state = self;
    return 0;
}

static int remove_entry (const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void) status;
    (void) kind;
    (void) walk;
    return remove (path);
}

static void empty_scratch (const fixture_t *self)
{
    nftw (self->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static int remove_scratch (void **state)
{
    fixture_t *const self = *state;
    empty_scratch (self);
    const int rc = rmdir (self->scratch);
    free (self);
    return rc;
}

static hws_identity_t live (fixture_t *self)
{
    hws_state_t life;
    if (hws_state_open (&life, self->directory, self->fault) != 0) {
        fail_msg ("%s", self->fault);
    }
    const hws_identity_t identity = life.identity;
    hws_state_close (&life);
    return identity;
}

/*  ---- A traced start ---- */

/*  The calls that matter, in the order in which they came, as letters.  */
typedef struct {
    char calls[64];
    size_t count;
} trace_t;

static char letter_of (uint64_t number)
{
    switch (number) {
    case SYS_mkdirat:
#ifdef SYS_mkdir
    case SYS_mkdir:
#endif
        return 'm';
    case SYS_flock:
        return 'l';
    case SYS_openat:
        return 'o';
    case SYS_write:
        return 'w';
    case SYS_fsync:
        return 's';
#ifdef SYS_renameat
    case SYS_renameat:
#endif
    case SYS_renameat2:
        return 'r';
    case SYS_unlinkat:
        return 'u';
    default:
        return '\0';
    }
}

static pid_t start_traced (fixture_t *self)
{
    const pid_t child = fork ();
    if (child == 0) {
        hws_state_t life;
        if (ptrace (PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit (77);
        }
        raise (SIGSTOP);
        _exit (hws_state_open (&life, self->directory, self->fault) == 0 ? 0 : 1);
    }
    return child;
}

/*  Whether the child has stopped and not ended; takes its status.  */
static bool is_stopped (pid_t child, int *status)
{
    assert_int_equal (waitpid (child, status, 0), child);
    return WIFSTOPPED (*status);
}

/*  Kills a start at the stop of that number, of those before and after its calls. Returns whether
 *  it came to that stop; else it has ended, well. `trace` gets its calls.  */
static bool kill_at (fixture_t *self, size_t stop, trace_t *trace)
{
    int status;
    const pid_t child = start_traced (self);
    *trace = (trace_t){.count = 0};
    if (!is_stopped (child, &status)) {
        skip (); /* no tracing here */
    }
    ptrace (PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    for (size_t i = 0; i < stop; i++) {
        struct ptrace_syscall_info info = {.op = PTRACE_SYSCALL_INFO_NONE};
        assert_int_equal (ptrace (PTRACE_SYSCALL, child, NULL, NULL), 0);
        if (!is_stopped (child, &status)) {
            assert_int_equal (status, 0);
            return false;
        }
        if (ptrace (PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info) > 0 &&
            info.op == PTRACE_SYSCALL_INFO_ENTRY && letter_of (info.entry.nr) != '\0' &&
            trace->count < sizeof trace->calls - 1) {
            trace->calls[trace->count++] = letter_of (info.entry.nr);
        }
    }
    kill (child, SIGKILL);
    assert_false (is_stopped (child, &status));
    return true;
}

/*  ---- Tests ---- */

static void a_start_that_is_killed_leaves_the_old_file_or_the_new_one (void **state)
{
    fixture_t *const self = *state;
    hws_identity_t before = live (self);
    trace_t trace;
    bool was_new = false;

    for (size_t stop = 1; kill_at (self, stop, &trace); stop++) {
        const hws_identity_t after = live (self);
        const uint32_t taken = after.epoch - before.epoch - 1;
        assert_true (after.broker_id == before.broker_id);
        assert_memory_equal (after.key, before.key, sizeof after.key);
        assert_true (taken == 0 || taken == 1);
        assert_true (taken == 1 || !was_new);
        was_new = taken == 1;
        before = after;
    }

    assert_true (was_new);
}

static void a_first_start_that_is_killed_is_no_hindrance (void **state)
{
    fixture_t *const self = *state;
    trace_t trace;

    for (size_t stop = 1; kill_at (self, stop, &trace); stop++) {
        const uint32_t epoch = live (self).epoch;
        assert_true (epoch == 1 || epoch == 2);
        empty_scratch (self);
    }
}

/*  Whether it wrote between removing what an earlier start left and the next sync; the rest of its
 *  order has to be `expected`. Opens are left out, and writes: who watches the test may have some.
 */
static void expect_order (const trace_t *trace, const char *expected)
{
    char order[sizeof trace->calls];
    size_t count = 0;
    const char *const removed = strchr (trace->calls, 'u');
    assert_non_null (removed);
    const char *const written = strchr (removed, 'w');
    const char *const synced = strchr (removed, 's');

    for (const char *call = trace->calls; *call; call++) {
        if (*call != 'o' && *call != 'w') {
            order[count++] = *call;
        }
    }
    order[count] = '\0';
    assert_string_equal (order, expected);
    assert_true (written && written < synced);
}

/*  The first start makes the directory and syncs the one above. Then, as every start, it takes the
 *  lock, removes what is left over, writes and syncs the new file, names it, and syncs the
 *  directory.  */
static void the_new_file_is_on_the_disk_before_it_has_its_name (void **state)
{
    fixture_t *const self = *state;
    trace_t trace;

    assert_false (kill_at (self, STOPS_MAX, &trace));
    expect_order (&trace, "mslusrs");

    assert_false (kill_at (self, STOPS_MAX, &trace));
    expect_order (&trace, "lusrs");
}

#define ONE(test) cmocka_unit_test_setup_teardown (test, make_scratch, remove_scratch)

int main (void)
{
    const struct CMUnitTest tests[] = {
        ONE (a_start_that_is_killed_leaves_the_old_file_or_the_new_one),
        ONE (a_first_start_that_is_killed_is_no_hindrance),
        ONE (the_new_file_is_on_the_disk_before_it_has_its_name),
    };
    return cmocka_run_group_tests_name ("state_crash", tests, NULL, NULL);
}
