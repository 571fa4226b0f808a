/*  Real programs under test: started with pipes, watched for events, ended by pid.
 *
 *  Everything that waits here waits for something to happen (output, an exit) under
 *  one generous limit, and fails the running cmocka test with all that the programs
 *  said when it does not come. While one program is awaited the output of all is
 *  read, so none stands still because nobody listens. For the test's thread only.
 *
 *  Programs are found in $HAWSER_BUILD, else beside the directory that the test
 *  program is in. $HAWSER_WRAP, if set, is put before each ("valgrind -q").
 */
#ifndef TESTS_PROCESS_H
#define TESTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct process process_t;

/*  How a program is connected, beside its arguments.  */
typedef struct {
    const char *input;     /* file on stdin; null: a pipe, see process_write */
    const char *output;    /* file that gets stdout; null: it is collected */
    const char *directory; /* working directory; null: the test's */
} process_files_t;

/*  Remembers the descriptors that are open, makes an empty scratch directory
 *  (process_directory), and points XDG_STATE_HOME and TMPDIR of all programs into
 *  it. Returns 0, for a cmocka setup.  */
int process_setup (void);

/*  The end of a test: programs that still run are killed. Returns 0 only if there
 *  were none, no child is left, as many descriptors are open as at the setup, and
 *  nobody's stderr has a sanitizer's or an assertion's report; else prints why.  */
int process_teardown (void);

const char *process_directory (void);

/*  A path in the scratch directory; lives until the teardown.  */
const char *process_path (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

/*  Starts a program with the arguments up to a null. `files` may be null. The
 *  process lives until the teardown.  */
process_t *process_start (const process_files_t *files, const char *program, ...)
    __attribute__ ((sentinel));
process_t *process_start_list (const process_files_t *files, const char *const *arguments);

/*  Where a program of that name is, for those that start it through another.  */
const char *process_program (const char *name);

pid_t process_pid (const process_t *self);

/*  Writes to its stdin, all of it; a program that stopped reading fails the test.  */
void process_write (process_t *self, const void *data, size_t size);
void process_close_input (process_t *self);

/*  From now on its stdout is not read (or is again).  */
void process_hold_output (process_t *self, bool hold);

/*  Closes the reading end of its stdout, as `head` does.  */
void process_close_output (process_t *self);

/*  Waits for a whole line with `part` in it, behind the last line so found. The
 *  text lives until the teardown.  */
const char *process_wait_output (process_t *self, const char *part);
const char *process_wait_error (process_t *self, const char *part);

/*  Waits until at least `count` whole lines came out on stdout.  */
void process_wait_lines (process_t *self, size_t count);

/*  Waits for its end. Returns the exit status, or 128 + the signal.  */
int process_wait_exit (process_t *self);

/*  The same, and fails with all it said unless it is `status`.  */
void process_expect_exit (process_t *self, int status);

/*  Reads for `ms` what comes, to show that something does not happen.  */
void process_watch (int64_t ms);

bool process_is_running (process_t *self);
void process_signal (process_t *self, int signal);

/*  All that it has written so far, ended by a NUL; moves with the next wait.  */
const char *process_output (const process_t *self, size_t *size);
const char *process_errors (const process_t *self);

/*  Lines of stdout or stderr so far that have `part` in them.  */
size_t process_count_output (const process_t *self, const char *part);
size_t process_count_errors (const process_t *self, const char *part);

/*  What the system says of it.  */
size_t process_descriptors (const process_t *self);
uint64_t process_resident_bytes (const process_t *self);
uint64_t process_peak_bytes (const process_t *self);
int64_t process_cpu_ms (const process_t *self);

/*  Whether these sizes mean anything: not with SCALE above 1, which sanitizer builds run
 *  with, nor under HAWSER_WRAP; both keep shadows and freed blocks.  */
bool process_sizes_matter (void);

/*  Milliseconds of the monotonic clock; to bound, never to wait.  */
int64_t process_now (void);

/*  N from the environment: full / SCALE, at least `least`.  */
size_t process_scaled (size_t full, size_t least);

/*  Fails the test after printing what every program said.  */
_Noreturn void process_fail (const char *format, ...) __attribute__ ((format (printf, 1, 2)));

#endif
