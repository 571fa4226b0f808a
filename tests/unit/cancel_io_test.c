/*  The cancel registry of hawser.h: waiters, threads, time.
 */
#include "hawser.h"

#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define TTL_MS   120000
#define SWEEP_MS 1000
#define LIMIT    1000
#define PATIENCE 60000 /* for what another thread is about to do */

typedef struct {
    hws_registry_t *registry;
    int64_t now_ms;
} fixture_t;

static int64_t now_of (void *arg)
{
    return ((fixture_t *) arg)->now_ms;
}

static int set_up (void **state)
{
    fixture_t *const fixture = calloc (1, sizeof *fixture);
    *state = fixture;
    hws_registry_options_t options;
    hws_registry_options_init (&options);
    options.orphan_limit = LIMIT;
    options.now_ms = now_of;
    options.now_arg = fixture;
    return hws_registry_new (&fixture->registry, &options);
}

static int tear_down (void **state)
{
    fixture_t *const fixture = *state;
    hws_registry_destroy (&fixture->registry);
    free (fixture);
    return 0;
}

static hws_registry_t *registry_of (void **state)
{
    return ((fixture_t *) *state)->registry;
}

static size_t count (hws_registry_t *registry)
{
    hws_registry_counts_t counts;
    hws_registry_counts (registry, &counts);
    return counts.tokens;
}

static uint64_t sweeps (hws_registry_t *registry)
{
    hws_registry_counts_t counts;
    hws_registry_counts (registry, &counts);
    return counts.sweeps;
}

static hws_waiter_t *register_for (hws_registry_t *registry, uint64_t token)
{
    hws_waiter_t *waiter;
    assert_int_equal (hws_registry_register (registry, token, &waiter), 0);
    return waiter;
}

static bool is_readable (int descriptor)
{
    assert_true (descriptor >= 0);
    struct pollfd polled = {.fd = descriptor, .events = POLLIN};
    return poll (&polled, 1, 0) == 1;
}

/*  ---- Token 0 ---- */

static void cancel_zero_token_is_noop (void **state)
{
    hws_registry_t *const registry = registry_of (state);

    assert_int_equal (hws_registry_cancel (registry, 0, "everything"), 0);

    assert_int_equal (count (registry), 0);
}

static void register_zero_token_never_fires (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 0);

    assert_int_equal (hws_registry_cancel (registry, 0, "everything"), 0);

    assert_int_equal (count (registry), 0);
    assert_int_equal (hws_waiter_wait (waiter, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_waiter_wait (waiter, 10), HWS_ETIMEOUT);
    assert_null (hws_waiter_reason (waiter));
    assert_false (is_readable (hws_waiter_fd (waiter)));
    hws_waiter_destroy (&waiter);
}

static void zero_token_waiter_is_shared (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *first = register_for (registry, 0);
    hws_waiter_t *second = register_for (registry, 0);

    assert_ptr_equal (first, second);

    hws_waiter_destroy (&first);
    assert_null (first);
    assert_int_equal (hws_waiter_wait (second, 0), HWS_EWOULD_BLOCK);
    assert_ptr_equal (register_for (registry, 0), second);
}

static void release_zero_token_is_noop (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 7);

    hws_registry_release (registry, 0);
    hws_registry_release (registry, 8);

    assert_int_equal (count (registry), 1);
    hws_waiter_destroy (&waiter);
}

/*  ---- Cancels and waiters ---- */

static void cancel_then_register_is_prearmed (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    assert_int_equal (hws_registry_cancel (registry, 7, "before it began"), 0);

    hws_waiter_t *waiter = register_for (registry, 7);

    assert_int_equal (hws_waiter_wait (waiter, 0), 0);
    assert_string_equal (hws_waiter_reason (waiter), "before it began");
    assert_true (is_readable (hws_waiter_fd (waiter)));
    hws_waiter_destroy (&waiter);
}

/*  A thread that waits for a token, and what came of it.  */
typedef struct {
    hws_registry_t *registry;
    hws_waiter_t *waiter;
    int rc;
} waiting_t;

static void *wait_for_it (void *arg)
{
    waiting_t *const waiting = arg;
    waiting->rc = hws_waiter_wait (waiting->waiter, PATIENCE);
    return NULL;
}

static void register_then_cancel_wakes_waiter (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    waiting_t waiting = {.waiter = register_for (registry, 7), .rc = 1};
    const int descriptor = hws_waiter_fd (waiting.waiter);
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, wait_for_it, &waiting), 0);
    assert_false (is_readable (descriptor));

    assert_int_equal (hws_registry_cancel (registry, 7, "enough"), 0);
    pthread_join (thread, NULL);

    assert_int_equal (waiting.rc, 0);
    assert_true (is_readable (descriptor));
    assert_string_equal (hws_waiter_reason (waiting.waiter), "enough");
    hws_waiter_destroy (&waiting.waiter);
}

static void count_call (void *arg)
{
    ++*(int *) arg;
}

static void cancel_twice_is_one_signal (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 7);
    int calls = 0;
    hws_waiter_on_cancel (waiter, count_call, &calls);

    assert_int_equal (hws_registry_cancel (registry, 7, "first"), 0);
    assert_int_equal (hws_registry_cancel (registry, 7, "second"), 0);

    assert_int_equal (calls, 1);
    assert_string_equal (hws_waiter_reason (waiter), "first");
    hws_waiter_destroy (&waiter);
}

static void every_waiter_of_a_token_is_signalled (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter[3] = {register_for (registry, 7), register_for (registry, 7),
                               register_for (registry, 8)};

    assert_int_equal (hws_registry_cancel (registry, 7, NULL), 0);

    assert_int_equal (hws_waiter_wait (waiter[0], 0), 0);
    assert_int_equal (hws_waiter_wait (waiter[1], 0), 0);
    assert_int_equal (hws_waiter_wait (waiter[2], 0), HWS_EWOULD_BLOCK);
    for (size_t i = 0; i < 3; i++) {
        hws_waiter_destroy (&waiter[i]);
    }
    assert_int_equal (count (registry), 0);
}

static void a_call_that_is_set_after_the_cancel_comes_at_once (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *prearmed;
    hws_waiter_t *hit = register_for (registry, 7);
    int calls = 0;
    assert_int_equal (hws_registry_cancel (registry, 7, NULL), 0);
    prearmed = register_for (registry, 7);

    hws_waiter_on_cancel (hit, count_call, &calls);
    hws_waiter_on_cancel (prearmed, count_call, &calls);

    assert_int_equal (calls, 2);
    hws_waiter_destroy (&hit);
    hws_waiter_destroy (&prearmed);
}

/*  ---- Release ---- */

static void release_removes_entry (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 7);
    assert_int_equal (count (registry), 1);

    hws_registry_release (registry, 7);
    assert_int_equal (count (registry), 0);
    hws_registry_release (registry, 7);
    hws_waiter_destroy (&waiter);
    hws_waiter_destroy (&waiter);

    assert_int_equal (count (registry), 0);
    waiter = register_for (registry, 7);
    hws_waiter_destroy (&waiter);
    assert_int_equal (count (registry), 0);
}

static void a_waiter_of_a_released_token_stays_as_it_is (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *cancelled = register_for (registry, 7);
    hws_waiter_t *waiting = register_for (registry, 8);
    assert_int_equal (hws_registry_cancel (registry, 7, "in time"), 0);

    hws_registry_release (registry, 7);
    hws_registry_release (registry, 8);
    assert_int_equal (hws_registry_cancel (registry, 7, "too late"), 0);
    assert_int_equal (hws_registry_cancel (registry, 8, "too late"), 0);

    assert_string_equal (hws_waiter_reason (cancelled), "in time");
    assert_int_equal (hws_waiter_wait (waiting, 0), HWS_EWOULD_BLOCK);
    hws_waiter_destroy (&cancelled);
    hws_waiter_destroy (&waiting);
}

static void cancel_after_release_is_safe (void **state)
{
    fixture_t *const fixture = *state;
    hws_registry_t *const registry = fixture->registry;
    hws_waiter_t *waiter = register_for (registry, 7);
    hws_waiter_destroy (&waiter);

    assert_int_equal (hws_registry_cancel (registry, 7, NULL), 0);
    assert_int_equal (hws_registry_cancel (registry, 7, NULL), 0);
    assert_int_equal (count (registry), 1);
    fixture->now_ms = TTL_MS;
    hws_registry_sweep (registry);

    assert_int_equal (count (registry), 0);
}

/*  ---- Time and limits ---- */

static void orphan_expires_after_ttl (void **state)
{
    fixture_t *const fixture = *state;
    hws_registry_options_t options;
    hws_registry_options_init (&options);
    options.sweep_interval_ms = 0;
    options.now_ms = now_of;
    options.now_arg = fixture;
    hws_registry_t *registry;
    assert_int_equal (hws_registry_new (&registry, &options), 0);
    hws_registry_cancel (registry, 7, NULL);
    hws_registry_cancel (registry, 8, NULL);

    fixture->now_ms = TTL_MS - 1;
    hws_waiter_t *in_time = register_for (registry, 7);
    assert_int_equal (hws_waiter_wait (in_time, 0), 0);
    assert_int_equal (count (registry), 2);
    fixture->now_ms = TTL_MS;
    hws_registry_sweep (registry);
    assert_int_equal (count (registry), 1);
    fixture->now_ms = TTL_MS + 1;
    hws_waiter_t *late = register_for (registry, 8);

    assert_int_equal (hws_waiter_wait (late, 0), HWS_EWOULD_BLOCK);
    hws_waiter_destroy (&in_time);
    hws_waiter_destroy (&late);
    assert_int_equal (count (registry), 0);
    hws_registry_destroy (&registry);
}

static void registered_entry_never_expires (void **state)
{
    fixture_t *const fixture = *state;
    hws_waiter_t *waiter = register_for (fixture->registry, 7);

    fixture->now_ms = 10 * TTL_MS;
    hws_registry_sweep (fixture->registry);

    assert_int_equal (count (fixture->registry), 1);
    assert_int_equal (hws_registry_cancel (fixture->registry, 7, NULL), 0);
    assert_int_equal (hws_waiter_wait (waiter, 0), 0);
    hws_waiter_destroy (&waiter);
}

static void sweep_is_rate_limited (void **state)
{
    fixture_t *const fixture = *state;
    hws_registry_t *const registry = fixture->registry;
    hws_registry_cancel (registry, 1, NULL);
    fixture->now_ms = TTL_MS - 1;
    hws_registry_sweep (registry);
    const uint64_t before = sweeps (registry);

    for (uint64_t token = 10; token < 10010; token++) {
        fixture->now_ms = TTL_MS - 1 + (int64_t) (token - 10) % SWEEP_MS;
        hws_waiter_t *waiter = register_for (registry, token);
        hws_waiter_destroy (&waiter);
    }
    assert_int_equal (sweeps (registry), before);
    assert_int_equal (count (registry), 1);
    fixture->now_ms = TTL_MS - 1 + SWEEP_MS;
    hws_waiter_t *waiter = register_for (registry, 10);

    assert_int_equal (sweeps (registry), before + 1);
    assert_int_equal (count (registry), 1);
    hws_waiter_destroy (&waiter);
    assert_int_equal (count (registry), 0);
}

static void orphan_count_is_bounded (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 10 * LIMIT);

    for (uint64_t token = 1; token <= 2 * LIMIT; token++) {
        const int rc = hws_registry_cancel (registry, token, NULL);
        assert_int_equal (rc, token <= LIMIT ? 0 : HWS_ELIMIT);
    }

    hws_registry_counts_t counts;
    hws_registry_counts (registry, &counts);
    assert_int_equal (counts.orphans, LIMIT);
    assert_int_equal (counts.tokens, LIMIT + 1);
    assert_int_equal (counts.refused, LIMIT);
    assert_int_equal (hws_registry_cancel (registry, 10 * LIMIT, NULL), 0);
    assert_int_equal (hws_waiter_wait (waiter, 0), 0);
    hws_waiter_destroy (&waiter);
}

static void options_that_make_no_sense_are_refused (void **state)
{
    (void) state;
    hws_registry_t *registry;
    hws_registry_options_t options;
    hws_registry_options_init (&options);

    options.orphan_ttl_ms = -1;
    assert_int_equal (hws_registry_new (&registry, &options), HWS_EINVALID);
    assert_null (registry);
    options.orphan_ttl_ms = 0;
    options.sweep_interval_ms = -1;
    assert_int_equal (hws_registry_new (&registry, &options), HWS_EINVALID);
    options.sweep_interval_ms = 0;
    assert_int_equal (hws_registry_new (&registry, &options), 0);

    hws_registry_destroy (&registry);
    hws_registry_destroy (&registry);
}

/*  ---- Threads ---- */

enum { TOKEN_THREADS = 8, TOKENS_EACH = 100000 };

typedef struct {
    hws_registry_t *registry;
    pthread_barrier_t *all;
    uint64_t token[TOKENS_EACH];
} taker_t;

static void *take_tokens (void *arg)
{
    taker_t *const taker = arg;
    pthread_barrier_wait (taker->all);
    for (size_t i = 0; i < TOKENS_EACH; i++) {
        taker->token[i] = hws_registry_reserve (taker->registry);
    }
    return NULL;
}

static void tokens_start_at_one_and_never_repeat (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    taker_t *const taker = calloc (TOKEN_THREADS, sizeof *taker);
    bool *const is_taken = calloc (TOKEN_THREADS * TOKENS_EACH + 1, sizeof *is_taken);
    assert_true (taker && is_taken);
    pthread_t thread[TOKEN_THREADS];
    pthread_barrier_t all;
    pthread_barrier_init (&all, NULL, TOKEN_THREADS);

    for (size_t i = 0; i < TOKEN_THREADS; i++) {
        taker[i].registry = registry;
        taker[i].all = &all;
        assert_int_equal (pthread_create (&thread[i], NULL, take_tokens, &taker[i]), 0);
    }
    for (size_t i = 0; i < TOKEN_THREADS; i++) {
        pthread_join (thread[i], NULL);
    }
    pthread_barrier_destroy (&all);

    for (size_t i = 0; i < TOKEN_THREADS; i++) {
        for (size_t k = 0; k < TOKENS_EACH; k++) {
            const uint64_t token = taker[i].token[k];
            assert_in_range (token, 1, TOKEN_THREADS * TOKENS_EACH);
            assert_true (k == 0 || token > taker[i].token[k - 1]);
            assert_false (is_taken[token]);
            is_taken[token] = true;
        }
    }
    free (taker);
    free (is_taken);
}

/*  Cancels another token and registers for a third, from within the signal of the first.  */
static void call_back (void *arg)
{
    hws_registry_t *const registry = arg;
    hws_waiter_t *waiter = register_for (registry, 9);
    assert_int_equal (hws_registry_cancel (registry, 8, "in turn"), 0);
    assert_int_equal (hws_registry_cancel (registry, 7, "again"), 0);
    assert_int_equal (hws_waiter_wait (waiter, 0), HWS_EWOULD_BLOCK);
    hws_waiter_destroy (&waiter);
}

static void signal_happens_outside_the_lock (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *first = register_for (registry, 7);
    hws_waiter_t *second = register_for (registry, 8);
    hws_waiter_on_cancel (first, call_back, registry);

    assert_int_equal (hws_registry_cancel (registry, 7, "first"), 0);

    assert_string_equal (hws_waiter_reason (first), "first");
    assert_string_equal (hws_waiter_reason (second), "in turn");
    hws_waiter_destroy (&first);
    hws_waiter_destroy (&second);
    assert_int_equal (count (registry), 0);
}

static void destroy_waiter (void *arg)
{
    hws_waiter_destroy (arg);
}

static void a_waiter_may_be_destroyed_by_its_own_signal (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 7);
    hws_waiter_t *late = register_for (registry, 7);
    hws_waiter_on_cancel (waiter, destroy_waiter, &waiter);

    assert_int_equal (hws_registry_cancel (registry, 7, NULL), 0);
    hws_waiter_on_cancel (late, destroy_waiter, &late);

    assert_null (waiter);
    assert_null (late);
    assert_int_equal (count (registry), 0);
}

/*  A signal that is on its way while another thread destroys the waiter.  */
typedef struct {
    pthread_barrier_t begun;
    bool is_over;
} slow_call_t;

static void call_slowly (void *arg)
{
    slow_call_t *const slow = arg;
    pthread_barrier_wait (&slow->begun);
    for (volatile int i = 0; i < 1000000; i++) {
    }
    slow->is_over = true;
}

static void *cancel_seven (void *arg)
{
    hws_registry_cancel (arg, 7, NULL);
    return NULL;
}

static void destroy_waits_until_the_call_is_over (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    hws_waiter_t *waiter = register_for (registry, 7);
    slow_call_t slow = {.is_over = false};
    pthread_barrier_init (&slow.begun, NULL, 2);
    hws_waiter_on_cancel (waiter, call_slowly, &slow);
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, cancel_seven, registry), 0);
    pthread_barrier_wait (&slow.begun);

    hws_waiter_destroy (&waiter);

    assert_true (slow.is_over);
    pthread_join (thread, NULL);
    pthread_barrier_destroy (&slow.begun);
}

enum { RACES = 10000 };

/*  One thread cancels the token of each round while another registers for it.  */
typedef struct {
    hws_registry_t *registry;
    pthread_barrier_t round;
} race_t;

static void *cancel_in_rounds (void *arg)
{
    race_t *const race = arg;
    for (uint64_t token = 1; token <= RACES; token++) {
        pthread_barrier_wait (&race->round);
        hws_registry_cancel (race->registry, token, "race");
    }
    return NULL;
}

static void cancel_races_register (void **state)
{
    hws_registry_t *const registry = registry_of (state);
    race_t race = {.registry = registry};
    pthread_barrier_init (&race.round, NULL, 2);
    pthread_t thread;
    assert_int_equal (pthread_create (&thread, NULL, cancel_in_rounds, &race), 0);

    int lost = 0;
    for (uint64_t token = 1; token <= RACES; token++) {
        pthread_barrier_wait (&race.round);
        hws_waiter_t *waiter = register_for (registry, token);
        lost += hws_waiter_wait (waiter, PATIENCE) != 0;
        hws_waiter_destroy (&waiter);
    }
    pthread_join (thread, NULL);
    pthread_barrier_destroy (&race.round);

    assert_int_equal (lost, 0);
    assert_int_equal (count (registry), 0);
}

static void *shared_registry (void *arg)
{
    (void) arg;
    return hws_registry_shared ();
}

static void the_process_shares_one_registry (void **state)
{
    (void) state;
    pthread_t thread;
    void *other = NULL;
    assert_int_equal (pthread_create (&thread, NULL, shared_registry, NULL), 0);
    hws_registry_t *const registry = hws_registry_shared ();
    pthread_join (thread, &other);

    const uint64_t token = hws_registry_reserve (registry);
    assert_int_equal (hws_registry_cancel (registry, token, "shared"), 0);
    hws_waiter_t *waiter = register_for (other, token);

    assert_non_null (registry);
    assert_int_equal (hws_waiter_wait (waiter, 0), 0);
    hws_waiter_destroy (&waiter);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, set_up, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (cancel_zero_token_is_noop),
        TEST (register_zero_token_never_fires),
        TEST (zero_token_waiter_is_shared),
        TEST (release_zero_token_is_noop),
        TEST (cancel_then_register_is_prearmed),
        TEST (register_then_cancel_wakes_waiter),
        TEST (cancel_twice_is_one_signal),
        TEST (every_waiter_of_a_token_is_signalled),
        TEST (a_call_that_is_set_after_the_cancel_comes_at_once),
        TEST (release_removes_entry),
        TEST (a_waiter_of_a_released_token_stays_as_it_is),
        TEST (cancel_after_release_is_safe),
        TEST (orphan_expires_after_ttl),
        TEST (registered_entry_never_expires),
        TEST (sweep_is_rate_limited),
        TEST (orphan_count_is_bounded),
        TEST (options_that_make_no_sense_are_refused),
        TEST (tokens_start_at_one_and_never_repeat),
        TEST (signal_happens_outside_the_lock),
        TEST (a_waiter_may_be_destroyed_by_its_own_signal),
        TEST (destroy_waits_until_the_call_is_over),
        TEST (cancel_races_register),
        TEST (the_process_shares_one_registry),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
