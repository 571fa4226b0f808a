/*  The simulation: whole runs in a virtual network, each from its seed, with everything going
 *  wrong that a plan from the same seed says; after each the promises are checked.
 *
 *      sim [--seeds N] [--first N] [--jobs N] [--off LIST] [--trace] [--no-shrink]
 *          [--until-failure]
 *
 *  Runs seeds `first` to `first` + N - 1 in `jobs` processes. A seed that fails is run again
 *  alone, and then with one fault or sender after another switched off as long as it still fails;
 *  what is left is printed, with the command that runs just that. LIST is what to switch off:
 *  numbers of faults, and of senders with an s before them, as 0,3,s2. --until-failure stops at the
 *  first that fails. The last line is "N passed, N failed"; before it stands what happened in all
 *  runs.
 */
#include "tests/support/sim_count.h"
#include "tests/support/sim_memory.h"
#include "tests/support/sim_run.h"
#include "tests/support/test_seed.h"

#include <fcntl.h>
#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

enum { SEEDS = 6000, JOBS_MAX = 16, FAILURES_MAX = 8, RUN_SECONDS = 60 };

/*  What a worker tells its parent.  */
typedef struct {
    uint64_t seed; /* at hand */
    uint64_t passed;
    uint64_t counts[SIM_COUNTS];
} shared_t;

typedef struct {
    uint64_t seeds, first, jobs;
    sim_off_t off;
    bool is_traced, is_shrinking;
    size_t failures; /* behind so many it stops */
} options_t;

static options_t s_options;
static shared_t *s_shared; /* of all workers, then of attempts */
static shared_t *s_own;    /* of this process */

/*  ---- Without memory ---- */

void *__real_malloc (size_t size);
void *__real_calloc (size_t count, size_t size);
void *__real_realloc (void *block, size_t size);
char *__real_strdup (const char *text);
char *__real_strndup (const char *text, size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_realloc (void *block, size_t size);
char *__wrap_strdup (const char *text);
char *__wrap_strndup (const char *text, size_t size);

void *__wrap_malloc (size_t size)
{
    return sim_memory_fails () ? NULL : __real_malloc (size);
}

void *__wrap_calloc (size_t count, size_t size)
{
    return sim_memory_fails () ? NULL : __real_calloc (count, size);
}

void *__wrap_realloc (void *block, size_t size)
{
    return sim_memory_fails () ? NULL : __real_realloc (block, size);
}

char *__wrap_strdup (const char *text)
{
    return sim_memory_fails () ? NULL : __real_strdup (text);
}

char *__wrap_strndup (const char *text, size_t size)
{
    return sim_memory_fails () ? NULL : __real_strndup (text, size);
}

/*  ---- In a process of its own ---- */

static uint64_t s_first, s_end, s_stride;
static sim_off_t s_off;
static bool s_is_over;

static void runs (void **state)
{
    (void) state;
    for (uint64_t seed = s_first; seed < s_end; seed += s_stride) {
        sim_script_t script;
        sim_script_init (&script, seed);
        s_own->seed = seed;
        alarm (RUN_SECONDS);
        sim_run (&script, s_off, s_options.is_traced);
        s_own->passed++;
    }
    s_is_over = true;
}

static int describe (void **state)
{
    (void) state;
    if (!s_is_over) {
        sim_run_describe ();
    }
    return 0;
}

/*  Runs seeds from `first` on, and says what it has to say to `output`; negative: as this
 *  process. Returns the child.  */
static pid_t spawn (shared_t *shared, uint64_t first, uint64_t end, uint64_t stride, sim_off_t off,
                    int output)
{
    fflush (NULL);
    const pid_t child = fork ();
    if (child != 0) {
        return child;
    }
    if (output >= 0) {
        dup2 (output, STDOUT_FILENO);
        dup2 (output, STDERR_FILENO);
    }
    s_own = shared;
    sim_counts = shared->counts;
    s_first = first;
    s_end = end;
    s_stride = stride;
    s_off = off;
    const struct CMUnitTest tests[] = {cmocka_unit_test_teardown (runs, describe)};
    exit (cmocka_run_group_tests_name ("sim", tests, NULL, NULL) != 0);
}

/*  Runs one seed. Returns whether it failed.  */
static bool fails (uint64_t seed, sim_off_t off, int output)
{
    int status = 0;
    const pid_t child = spawn (&s_shared[JOBS_MAX], seed, seed + 1, 1, off, output);
    if (child < 0 || waitpid (child, &status, 0) != child) {
        perror ("sim");
        exit (1);
    }
    return status != 0;
}

/*  ---- A seed that failed ---- */

static void print_command (uint64_t seed, sim_off_t off)
{
    printf ("  make sim SEEDS=1 FIRST=%" PRIu64, seed);
    const char *between = " OFF=";
    for (int i = 0; i < 64; i++) {
        if (off >> i & 1) {
            const bool is_sender = i >= SIM_OFF_SENDERS;
            printf ("%s%s%d", between, is_sender ? "s" : "", is_sender ? i - SIM_OFF_SENDERS : i);
            between = ",";
        }
    }
    printf ("\n");
}

/*  Switches off what is not needed for the failure.  */
static sim_off_t shrink (const sim_script_t *script, sim_off_t off)
{
    const int nowhere = open ("/dev/null", O_WRONLY);
    for (bool is_smaller = true; is_smaller;) {
        is_smaller = false;
        for (int i = 0; i < SIM_OFF_SENDERS + script->sender_count; i++) {
            const sim_off_t more = off | (sim_off_t) 1 << i;
            const bool is_there = i >= SIM_OFF_SENDERS || i < script->plan.count;
            if (is_there && more != off && fails (script->seed, more, nowhere)) {
                off = more;
                is_smaller = true;
            }
        }
    }
    close (nowhere);
    return off;
}

static void explain (uint64_t seed)
{
    sim_script_t script;
    sim_script_init (&script, seed);
    sim_off_t off = s_options.off;
    printf ("---- seed %" PRIu64 " failed; again:\n", seed);
    print_command (seed, off);
    if (!fails (seed, off, -1)) {
        printf ("  alone it passes: a run depends on the ones before it\n");
        return;
    }
    if (s_options.is_shrinking) {
        off = shrink (&script, off);
        printf ("  it takes no more than:\n");
        sim_script_print (&script, off);
        print_command (seed, off);
        fails (seed, off, -1);
    }
    printf ("----\n");
}

/*  ---- All seeds ---- */

static int compare (const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;
    return x < y ? -1 : x > y;
}

/*  Returns how many failed; sets the first of them.  */
static size_t sweep (uint64_t failed[FAILURES_MAX])
{
    const uint64_t end = s_options.first + s_options.seeds;
    pid_t workers[JOBS_MAX];
    size_t count = 0, alive = 0;
    const int output = s_options.is_traced ? -1 : open ("/dev/null", O_WRONLY);
    for (uint64_t i = 0; i < s_options.jobs; i++, alive++) {
        workers[i] =
            spawn (&s_shared[i], s_options.first + i, end, s_options.jobs, s_options.off, output);
    }
    while (alive > 0) {
        int status = 0;
        const pid_t child = wait (&status);
        uint64_t i = 0;
        while (i < s_options.jobs && workers[i] != child) {
            i++;
        }
        alive--;
        if (i == s_options.jobs || status == 0) {
            continue;
        }
        failed[count++ % FAILURES_MAX] = s_shared[i].seed;
        const uint64_t next = s_shared[i].seed + s_options.jobs;
        if (count < s_options.failures && next < end) {
            workers[i] = spawn (&s_shared[i], next, end, s_options.jobs, s_options.off, output);
            alive++;
        }
    }
    qsort (failed, count < FAILURES_MAX ? count : FAILURES_MAX, sizeof *failed, compare);
    return count;
}

static uint64_t sum_up (sim_count_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < s_options.jobs; i++) {
        sum += s_shared[i].counts[count];
    }
    return sum;
}

static bool read_off (const char *text)
{
    for (const char *at = text; *at != '\0';) {
        const bool is_sender = *at == 's';
        char *end;
        const unsigned long number = strtoul (at + is_sender, &end, 10);
        if (end == at + is_sender || number >= SIM_OFF_SENDERS) {
            return false;
        }
        s_options.off |= (sim_off_t) 1 << (number + (is_sender ? SIM_OFF_SENDERS : 0));
        at = *end == ',' ? end + 1 : end;
    }
    return true;
}

static bool read_options (int argc, char **argv)
{
    static const struct option options[] = {
        {"seeds", required_argument, NULL, 'n'},   {"first", required_argument, NULL, 'f'},
        {"jobs", required_argument, NULL, 'j'},    {"off", required_argument, NULL, 'o'},
        {"trace", no_argument, NULL, 't'},         {"no-shrink", no_argument, NULL, 's'},
        {"until-failure", no_argument, NULL, 'u'}, {NULL, 0, NULL, 0}};
    s_options = (options_t){.seeds = test_scaled (SEEDS),
                            .first = 1,
                            .jobs = 2,
                            .is_shrinking = true,
                            .failures = FAILURES_MAX};
    for (int option; (option = getopt_long (argc, argv, "", options, NULL)) != -1;) {
        switch (option) {
        case 'n':
            s_options.seeds = strtoull (optarg, NULL, 10);
            break;
        case 'f':
            s_options.first = strtoull (optarg, NULL, 10);
            break;
        case 'j':
            s_options.jobs = strtoull (optarg, NULL, 10);
            break;
        case 'o':
            if (!read_off (optarg)) {
                return false;
            }
            break;
        case 't':
            s_options.is_traced = true;
            s_options.is_shrinking = false;
            break;
        case 's':
            s_options.is_shrinking = false;
            break;
        case 'u':
            s_options.failures = 1;
            s_options.is_shrinking = false;
            break;
        default:
            return false;
        }
    }
    return optind == argc && s_options.jobs > 0 && s_options.jobs <= JOBS_MAX;
}

int main (int argc, char **argv)
{
    if (!read_options (argc, argv)) {
        fprintf (stderr, "usage: sim [--seeds N] [--first N] [--jobs N] [--off LIST] [--trace] "
                         "[--no-shrink] [--until-failure]\n");
        return 2;
    }
    s_shared = mmap (NULL, (JOBS_MAX + 1) * sizeof *s_shared, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (s_shared == MAP_FAILED) {
        perror ("sim");
        return 1;
    }
    const time_t begun = time (NULL);
    uint64_t failed[FAILURES_MAX], passed = 0;
    const size_t failures = sweep (failed);
    for (size_t i = 0; i < failures && i < FAILURES_MAX; i++) {
        explain (failed[i]);
    }
    for (uint64_t i = 0; i < s_options.jobs; i++) {
        passed += s_shared[i].passed;
    }
    for (int i = 0; i < SIM_COUNTS; i++) {
        printf ("%12" PRIu64 "  %s\n", sum_up ((sim_count_t) i), sim_count_words ((sim_count_t) i));
    }
    if (passed + failures < s_options.seeds) {
        printf ("stopped behind %zu failures\n", failures);
    }
    printf ("seeds %" PRIu64 " to %" PRIu64 ", %ld s\n", s_options.first,
            s_options.first + s_options.seeds - 1, (long) (time (NULL) - begun));
    printf ("%" PRIu64 " passed, %zu failed\n", passed, failures);
    return failures > 0 || passed == 0;
}
