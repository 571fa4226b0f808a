/*  The engine against a model of it (support/model.h): whatever clients do, and however the
 *  time passes, everybody hears what the model says, and the counts are its counts.
 *
 *  A run is a trace of operations made from a seed. When engine and model differ, the trace
 *  is made shorter as long as they still do, and printed.
 *
 *      MODEL_SEED=N     one run
 *      MODEL_STEPS=N    so many operations in all (default 1,200,000)
 *      SCALE=N          a fraction of them
 */
#include "tests/support/model_play.h"
#include "tests/support/test_seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { STEPS = 1200000, RUN_STEPS = 2000, SHRINK_TRIES = 10000 };

static op_t s_ops[RUN_STEPS];
static play_t s_play;
static sigjmp_buf s_on_abort;
static char s_what[MODEL_REPORT]; /* how the last failure looked */

static void on_abort (int signal_number)
{
    siglongjmp (s_on_abort, signal_number);
}

/*  ---- Runs ---- */

/*  Makes a trace and plays it. Returns how many operations, the one at which engine and model
 *  differ last; 0 if they never do.  */
static size_t make_and_play (uint64_t seed)
{
    volatile size_t count = 0;
    op_maker_t maker = {0};
    hws_random_init (&maker.random, seed);
    play_begin (&s_play);
    maker.began_at = s_play.world.now;
    if (sigsetjmp (s_on_abort, 1) != 0) {
        strcpy (s_what, "  the engine aborted\n");
        return count;
    }
    op_t op = op_make (&maker, &s_play.world.model, s_play.world.now);
    while (count < RUN_STEPS) {
        s_ops[count] = op;
        count++;
        const op_t next = op_make (&maker, &s_play.world.model, s_play.world.now);
        const bool is_last = count == RUN_STEPS;
        if (!play (&s_play, &op, is_last ? NULL : &next)) {
            strcpy (s_what, s_play.world.report);
            play_end (&s_play);
            return count;
        }
        op = next;
    }
    play_end (&s_play);
    return 0;
}

/*  Plays a trace again, without what `is_left_out`. Returns whether engine and model differ,
 *  and at which operation.  */
static bool fails (const op_t *ops, size_t count, size_t *at)
{
    play_begin (&s_play);
    if (sigsetjmp (s_on_abort, 1) != 0) {
        strcpy (s_what, "  the engine aborted\n");
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        *at = i;
        if (!play (&s_play, &ops[i], i + 1 < count ? &ops[i + 1] : NULL)) {
            strcpy (s_what, s_play.world.report);
            play_end (&s_play);
            return true;
        }
    }
    play_end (&s_play);
    return false;
}

/*  ---- The shortest trace ---- */

/*  Copies a trace without a piece of it; with `keeps_time` the time that it took passes all
 *  the same. Returns how long it is.  */
static size_t leave_out (const op_t *ops, size_t count, size_t from, size_t piece, bool keeps_time,
                         op_t *fewer)
{
    op_t pause = {.kind = OP_ADVANCE};
    for (size_t i = from; i < from + piece; i++) {
        pause.ms += ops[i].kind <= OP_ADVANCE ? ops[i].ms : 0;
    }
    memcpy (fewer, ops, from * sizeof *ops);
    size_t used = from;
    if (keeps_time) {
        fewer[used++] = pause;
    }
    memcpy (fewer + used, ops + from + piece, (count - from - piece) * sizeof *ops);
    return used + count - from - piece;
}

/*  Tries to do without a piece. Returns how long the trace is then; 0 if it is needed.  */
static size_t try_without (op_t *ops, size_t count, size_t from, size_t piece)
{
    static op_t fewer[RUN_STEPS];
    const bool is_pause = piece == 1 && ops[from].kind == OP_ADVANCE;
    for (int keeps_time = 0; keeps_time < (is_pause ? 1 : 2); keeps_time++) {
        const size_t left = leave_out (ops, count, from, piece, keeps_time, fewer);
        size_t at = 0;
        if (fails (fewer, left, &at)) {
            memcpy (ops, fewer, (at + 1) * sizeof *ops);
            return at + 1;
        }
    }
    return 0;
}

/*  Leaves out what is not needed for the failure, in ever smaller pieces; returns how many
 *  operations are left.  */
static size_t shrink (op_t *ops, size_t count)
{
    size_t tries = 0;
    for (size_t piece = count / 2; piece > 0; piece /= 2) {
        bool is_shorter = true;
        while (is_shorter && tries < SHRINK_TRIES) {
            is_shorter = false;
            for (size_t from = 0; from + piece <= count && tries < SHRINK_TRIES; tries++) {
                const size_t left = try_without (ops, count, from, piece);
                if (left > 0) {
                    count = left;
                    is_shorter = true;
                }
                from += left > 0 && piece > 1 ? 0 : piece;
            }
        }
    }
    return count;
}

/*  Makes what is left simpler, one member after the other.  */
static void simplify (op_t *ops, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const op_t before = ops[i];
        const op_t simpler[] = {{.ms = before.kind < OP_ADVANCE ? before.ms : 0},
                                {.wait_ms = before.wait_ms},
                                {.is_more = before.is_more},
                                {.token = before.token},
                                {.unattached_ms = before.unattached_ms},
                                {.buffer_bytes = before.buffer_bytes},
                                {.senders = before.senders}};
        for (size_t j = 0; j < sizeof simpler / sizeof *simpler; j++) {
            const op_t kept = ops[i];
            ops[i].ms -= simpler[j].ms;
            ops[i].wait_ms -= simpler[j].wait_ms;
            ops[i].is_more = ops[i].is_more && !simpler[j].is_more;
            ops[i].token -= simpler[j].token;
            ops[i].unattached_ms -= simpler[j].unattached_ms;
            ops[i].buffer_bytes -= simpler[j].buffer_bytes;
            ops[i].senders -= simpler[j].senders;
            size_t at = 0;
            if (!fails (ops, count, &at)) {
                ops[i] = kept;
            }
        }
    }
}

static void print_failure (uint64_t seed, size_t count)
{
    printf ("MODEL_SEED=%" PRIu64 ": engine and model differ after %zu operations:\n%s", seed,
            count, s_what);
    const size_t left = shrink (s_ops, count);
    simplify (s_ops, left);
    size_t at = 0;
    fails (s_ops, left, &at);
    printf ("The shortest trace, of %zu operations:\n", left);
    for (size_t i = 0; i < left; i++) {
        char text[600];
        op_print (&s_ops[i], text, sizeof text);
        printf ("%4zu  %s\n", i + 1, text);
    }
    printf ("ends in:\n%s", s_what);
    fflush (stdout);
}

static uint64_t number_of (const char *variable, uint64_t otherwise)
{
    const char *const given = getenv (variable);
    return given ? strtoull (given, NULL, 10) : otherwise;
}

static void run (uint64_t seed)
{
    const size_t count = make_and_play (seed);
    if (count > 0) {
        print_failure (seed, count);
        fail_msg ("replay it with MODEL_SEED=%" PRIu64, seed);
    }
}

static void engine_says_and_counts_what_the_model_does (void **state)
{
    (void) state;
    signal (SIGABRT, on_abort);
    const uint64_t one = number_of ("MODEL_SEED", 0);
    if (one) {
        run (one);
        return;
    }
    const uint64_t first = number_of ("SEED", (uint64_t) time (NULL)) * 100000;
    const size_t steps = test_scaled (number_of ("MODEL_STEPS", STEPS));
    printf ("MODEL_SEED=%" PRIu64 " and those behind it\n", first);
    for (size_t i = 0; i * RUN_STEPS < steps; i++) {
        run (first + i);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (engine_says_and_counts_what_the_model_does)};
    return cmocka_run_group_tests_name ("engine and model", tests, NULL, NULL);
}
