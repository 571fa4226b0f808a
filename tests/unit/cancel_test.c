/*  The core of the cancel registry, both ways: what a cancel hits uses it up, or it is
 *  remembered whatever it hits.
 */
#include "cancel/cancel.h"
#include "base/limits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define TTL_MS   120000
#define SWEEP_MS 1000
#define LIMIT    100

/*  The registry, and what it may point to until it ends.  */
typedef struct {
    hws_cancels_t registry;
    hws_cancel_node_t node[3];
    hws_cancel_account_t account[2];
} fixture_t;

static int set_up (void **state, bool is_lasting)
{
    fixture_t *const fixture = calloc (1, sizeof *fixture);
    *state = fixture;
    hws_cancel_account_init (&fixture->account[0], LIMIT);
    hws_cancel_account_init (&fixture->account[1], LIMIT);
    const hws_cancels_options_t options = {.orphan_ttl_ms = TTL_MS,
                                           .sweep_interval_ms = SWEEP_MS,
                                           .orphan_limit = LIMIT,
                                           .is_lasting = is_lasting,
                                           .hash_key = {{1, 2}}};
    return hws_cancels_init (&fixture->registry, &options);
}

static int set_up_plain (void **state)
{
    return set_up (state, false);
}

static int set_up_lasting (void **state)
{
    return set_up (state, true);
}

static int tear_down (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_fini (&fixture->registry);
    free (fixture);
    return 0;
}

/*  How many nodes were hit since the last time.  */
static size_t take_hits (hws_cancels_t *self)
{
    size_t count = 0;
    while (hws_cancels_take_hit (self)) {
        count++;
    }
    return count;
}

/*  ---- Tokens ---- */

static void reserved_tokens_count_from_one (void **state)
{
    hws_cancels_t *const self = &((fixture_t *) *state)->registry;

    assert_true (hws_cancels_reserve (self) == 1);
    assert_true (hws_cancels_reserve (self) == 2);
    assert_true (hws_cancels_reserve (self) == 3);
    assert_int_equal (hws_cancels_count (self), 0);
}

static void token_zero_is_nothing_to_every_call (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];

    assert_int_equal (hws_cancels_cancel (self, 0, 0, "all", NULL), 0);
    assert_int_equal (hws_cancels_register (self, 0, 0, node), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 0, "all", NULL), 0);

    assert_null (hws_cancels_take_hit (self));
    assert_null (hws_cancel_node_reason (node));
    assert_null (hws_cancels_reason (self, 0));
    assert_int_equal (hws_cancels_count (self), 0);
    hws_cancels_release (self, node);
}

/*  ---- Nodes and cancels ---- */

static void a_cancel_that_came_first_is_found (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];

    assert_int_equal (hws_cancels_cancel (self, 0, 7, "too late", NULL), 0);
    assert_string_equal (hws_cancels_reason (self, 7), "too late");
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);

    assert_string_equal (hws_cancel_node_reason (node), "too late");
    assert_null (hws_cancels_take_hit (self));
}

static void every_node_of_the_token_is_hit_once_and_no_other (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const first = &fixture->node[0];
    hws_cancel_node_t *const second = &fixture->node[1];
    hws_cancel_node_t *const other = &fixture->node[2];
    assert_int_equal (hws_cancels_register (self, 0, 7, first), 0);
    assert_int_equal (hws_cancels_register (self, 0, 7, second), 0);
    assert_int_equal (hws_cancels_register (self, 0, 8, other), 0);

    assert_int_equal (hws_cancels_cancel (self, 0, 7, "enough", NULL), 0);

    assert_ptr_equal (hws_cancels_take_hit (self), first);
    assert_ptr_equal (hws_cancels_take_hit (self), second);
    assert_null (hws_cancels_take_hit (self));
    assert_string_equal (hws_cancel_node_reason (first), "enough");
    assert_null (hws_cancel_node_reason (other));
}

static void a_second_cancel_hits_nothing_and_the_first_reason_stays (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);

    assert_int_equal (hws_cancels_cancel (self, 0, 7, "first", NULL), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "second", NULL), 0);

    assert_int_equal (take_hits (self), 1);
    assert_string_equal (hws_cancel_node_reason (node), "first");
}

static void a_node_that_is_released_before_it_is_taken_is_not_hit (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = fixture->node;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal (hws_cancels_register (self, 0, 7, &node[i]), 0);
    }
    assert_int_equal (hws_cancels_cancel (self, 0, 7, NULL, NULL), 0);

    assert_ptr_equal (hws_cancels_take_hit (self), &node[0]);
    hws_cancels_release (self, &node[0]);
    hws_cancels_release (self, &node[1]);

    assert_ptr_equal (hws_cancels_take_hit (self), &node[2]);
    hws_cancels_release (self, &node[2]);
    assert_null (hws_cancels_take_hit (self));
}

static void a_release_is_harmless_a_second_time (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    hws_cancel_node_t *const stranger = &fixture->node[1];
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    assert_int_equal (hws_cancels_register (self, 0, 7, stranger), 0);

    hws_cancels_release (self, node);
    hws_cancels_release (self, node);

    assert_int_equal (hws_cancels_count (self), 1);
    hws_cancels_release (self, stranger);
    assert_int_equal (hws_cancels_count (self), 0);
}

static void a_reason_is_cut_where_a_text_ends (void **state)
{
    hws_cancels_t *const self = &((fixture_t *) *state)->registry;
    char reason[HWS_TEXT_SIZE_MAX + 100];
    memset (reason, 'x', sizeof reason);
    reason[sizeof reason - 1] = '\0';
    memcpy (reason + HWS_TEXT_SIZE_MAX - 1, "\xc3\xbc", 2);

    assert_int_equal (hws_cancels_cancel (self, 0, 7, reason, NULL), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 8, NULL, NULL), 0);

    assert_int_equal (strlen (hws_cancels_reason (self, 7)), HWS_TEXT_SIZE_MAX - 1);
    assert_string_equal (hws_cancels_reason (self, 8), "");
}

static void nodes_that_are_left_at_the_end_are_released (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const taken = &fixture->node[0];
    hws_cancel_node_t *const waiting = &fixture->node[1];
    hws_cancel_node_t *const idle = &fixture->node[2];
    hws_cancel_account_t *const account = &fixture->account[0];
    assert_int_equal (hws_cancels_register (self, 0, 7, taken), 0);
    assert_int_equal (hws_cancels_register (self, 0, 7, waiting), 0);
    assert_int_equal (hws_cancels_register (self, 0, 8, idle), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "end", account), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 9, "end", account), 0);
    assert_ptr_equal (hws_cancels_take_hit (self), taken);

    hws_cancels_fini (self);

    assert_null (hws_cancel_node_reason (taken));
    assert_null (hws_cancel_node_reason (waiting));
    hws_cancels_release (self, waiting);
    hws_cancels_release (self, idle);
    assert_int_equal (account->orphans.count, 0);
    assert_int_equal (hws_cancels_init (self, &self->options), 0);
}

static void a_forgotten_token_begins_anew_and_its_nodes_stay_as_they_are (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const old = &fixture->node[0];
    hws_cancel_node_t *const fresh = &fixture->node[1];
    assert_int_equal (hws_cancels_register (self, 0, 7, old), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "old", NULL), 0);
    assert_int_equal (take_hits (self), 1);

    hws_cancels_forget (self, 7);
    hws_cancels_forget (self, 7);
    hws_cancels_forget (self, 8);

    assert_int_equal (hws_cancels_count (self), 0);
    assert_int_equal (hws_cancels_orphan_count (self), 0);
    assert_int_equal (hws_cancels_register (self, 0, 7, fresh), 0);
    assert_null (hws_cancel_node_reason (fresh));
    assert_string_equal (hws_cancel_node_reason (old), "old");
    hws_cancels_release (self, old);
    hws_cancels_release (self, fresh);
}

/*  ---- What is remembered ---- */

static void a_cancel_is_used_up_by_what_it_hits (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "once", NULL), 0);
    assert_int_equal (hws_cancels_orphan_count (self), 1);

    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    assert_int_equal (hws_cancels_orphan_count (self), 0);
    hws_cancels_release (self, node);

    assert_null (hws_cancels_reason (self, 7));
    assert_int_equal (hws_cancels_count (self), 0);
}

static void a_lasting_cancel_is_remembered_after_it_hit_something (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "for good", NULL), 0);
    assert_int_equal (take_hits (self), 1);
    hws_cancels_release (self, node);

    hws_cancels_sweep (self, TTL_MS - 1);
    assert_string_equal (hws_cancels_reason (self, 7), "for good");
    assert_int_equal (hws_cancels_register (self, TTL_MS - 1, 7, node), 0);
    assert_string_equal (hws_cancel_node_reason (node), "for good");
    hws_cancels_release (self, node);
    hws_cancels_sweep (self, TTL_MS - 1 + SWEEP_MS);

    assert_null (hws_cancels_reason (self, 7));
    assert_int_equal (hws_cancels_count (self), 0);
}

static void a_lasting_cancel_that_came_first_is_remembered_too (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "early", NULL), 0);

    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    assert_string_equal (hws_cancel_node_reason (node), "early");
    hws_cancels_release (self, node);

    assert_string_equal (hws_cancels_reason (self, 7), "early");
    assert_int_equal (hws_cancels_orphan_count (self), 1);
}

static void a_second_cancel_is_remembered_anew (void **state)
{
    hws_cancels_t *const self = &((fixture_t *) *state)->registry;
    assert_int_equal (hws_cancels_cancel (self, 0, 7, NULL, NULL), 0);
    assert_int_equal (hws_cancels_cancel (self, 10, 8, NULL, NULL), 0);
    assert_int_equal (hws_cancels_cancel (self, 5000, 7, NULL, NULL), 0);

    hws_cancels_sweep (self, TTL_MS + 10);
    assert_null (hws_cancels_reason (self, 8));
    assert_non_null (hws_cancels_reason (self, 7));
    hws_cancels_sweep (self, TTL_MS + 5000);

    assert_null (hws_cancels_reason (self, 7));
}

static void a_lasting_cancel_that_expires_leaves_what_is_registered (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "slow", NULL), 0);

    hws_cancels_sweep (self, TTL_MS);

    assert_int_equal (hws_cancels_orphan_count (self), 0);
    assert_string_equal (hws_cancel_node_reason (node), "slow");
    assert_ptr_equal (hws_cancels_take_hit (self), node);
    hws_cancels_release (self, node);
    assert_int_equal (hws_cancels_count (self), 0);
}

/*  ---- Time ---- */

static void sweep_is_due_when_the_oldest_expires_but_an_interval_after_the_last (void **state)
{
    hws_cancels_t *const self = &((fixture_t *) *state)->registry;
    assert_true (hws_cancels_sweep_at (self) == HWS_NEVER);

    assert_int_equal (hws_cancels_cancel (self, 500, 7, NULL, NULL), 0);
    assert_int_equal (hws_cancels_cancel (self, 600, 8, NULL, NULL), 0);
    assert_true (hws_cancels_sweep_at (self) == 500 + TTL_MS);
    hws_cancels_sweep (self, 500 + TTL_MS);

    assert_true (hws_cancels_sweep_at (self) == 500 + TTL_MS + SWEEP_MS);
    assert_int_equal (hws_cancels_count (self), 1);
    hws_cancels_sweep (self, hws_cancels_sweep_at (self));
    assert_true (hws_cancels_sweep_at (self) == HWS_NEVER);
    assert_int_equal (hws_cancels_count (self), 0);
}

static void sweeps_are_an_interval_apart_whoever_asks_for_them (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    const hws_ms_t before = TTL_MS - 1;
    assert_int_equal (hws_cancels_cancel (self, 0, 7, NULL, NULL), 0);

    hws_cancels_sweep (self, before);
    hws_cancels_sweep (self, before + SWEEP_MS - 1);
    assert_non_null (hws_cancels_reason (self, 7));
    assert_int_equal (hws_cancels_register (self, before + SWEEP_MS, 8, node), 0);
    assert_null (hws_cancels_reason (self, 7));
    assert_int_equal (hws_cancels_cancel (self, before + 2 * SWEEP_MS, 9, NULL, NULL), 0);

    assert_int_equal (self->sweeps, 4);
}

/*  ---- Limits ---- */

static void orphans_are_bounded_in_all (void **state)
{
    hws_cancels_t *const self = &((fixture_t *) *state)->registry;
    for (uint64_t token = 1; token <= LIMIT; token++) {
        assert_int_equal (hws_cancels_cancel (self, 0, token, NULL, NULL), 0);
    }

    assert_int_equal (hws_cancels_cancel (self, 0, LIMIT + 1, NULL, NULL), HWS_ELIMIT);
    assert_int_equal (hws_cancels_cancel (self, 0, 1, NULL, NULL), 0);

    assert_int_equal (hws_cancels_count (self), LIMIT);
    assert_int_equal (self->refused, 1);
    hws_cancels_sweep (self, TTL_MS);
    assert_int_equal (hws_cancels_cancel (self, TTL_MS, LIMIT + 1, NULL, NULL), 0);
}

static void a_limit_of_none_remembers_nothing (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_account_t *const account = &fixture->account[0];
    account->limit = 0;

    assert_int_equal (hws_cancels_cancel (self, 0, 7, NULL, account), HWS_ELIMIT);
    self->options.orphan_limit = 0;
    assert_int_equal (hws_cancels_cancel (self, 0, 7, NULL, NULL), HWS_ELIMIT);

    assert_int_equal (hws_cancels_count (self), 0);
}

static void an_account_has_a_limit_of_its_own (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_account_t *const one = &fixture->account[0];
    hws_cancel_account_t *const other = &fixture->account[1];
    one->limit = 2;
    other->limit = 2;
    assert_int_equal (hws_cancels_cancel (self, 0, 1, NULL, one), 0);
    assert_int_equal (hws_cancels_cancel (self, 10, 2, NULL, one), 0);

    assert_int_equal (hws_cancels_cancel (self, 10, 3, NULL, one), HWS_ELIMIT);
    assert_int_equal (hws_cancels_cancel (self, 10, 3, NULL, other), 0);
    assert_int_equal (one->orphans.count, 2);
    hws_cancels_sweep (self, TTL_MS);

    assert_int_equal (one->orphans.count, 1);
    assert_int_equal (hws_cancels_cancel (self, TTL_MS, 4, NULL, one), 0);
}

static void an_account_may_end_before_its_orphans (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_account_t *const account = &fixture->account[0];
    assert_int_equal (hws_cancels_cancel (self, 0, 1, NULL, account), 0);
    assert_int_equal (hws_cancels_cancel (self, 0, 2, NULL, account), 0);

    hws_cancel_account_fini (account);
    const hws_cancel_account_t other_use = {.orphans = {.count = 77}};
    *account = other_use;

    assert_int_equal (hws_cancels_count (self), 2);
    hws_cancels_sweep (self, TTL_MS);
    assert_int_equal (hws_cancels_count (self), 0);
    assert_memory_equal (account, &other_use, sizeof other_use);
}

static void what_is_registered_is_cancelled_beyond_the_limit (void **state)
{
    fixture_t *const fixture = *state;
    hws_cancels_t *const self = &fixture->registry;
    hws_cancel_node_t *const node = &fixture->node[0];
    assert_int_equal (hws_cancels_register (self, 0, 7, node), 0);
    self->options.orphan_limit = 0;

    /* A lasting one that is not remembered has to say so: what comes again escapes it. */
    assert_int_equal (hws_cancels_cancel (self, 0, 7, "now", NULL),
                      self->options.is_lasting ? HWS_ELIMIT : 0);

    assert_int_equal (take_hits (self), 1);
    assert_string_equal (hws_cancel_node_reason (node), "now");
    hws_cancels_release (self, node);
    assert_int_equal (hws_cancels_count (self), 0);
}

#define BOTH_WAYS(test)                                                                            \
    cmocka_unit_test_setup_teardown (test, set_up_plain, tear_down),                               \
        cmocka_unit_test_setup_teardown (test, set_up_lasting, tear_down)

int main (void)
{
    const struct CMUnitTest tests[] = {
        BOTH_WAYS (reserved_tokens_count_from_one),
        BOTH_WAYS (token_zero_is_nothing_to_every_call),
        BOTH_WAYS (a_cancel_that_came_first_is_found),
        BOTH_WAYS (every_node_of_the_token_is_hit_once_and_no_other),
        BOTH_WAYS (a_second_cancel_hits_nothing_and_the_first_reason_stays),
        BOTH_WAYS (a_node_that_is_released_before_it_is_taken_is_not_hit),
        BOTH_WAYS (a_release_is_harmless_a_second_time),
        BOTH_WAYS (a_reason_is_cut_where_a_text_ends),
        BOTH_WAYS (nodes_that_are_left_at_the_end_are_released),
        BOTH_WAYS (a_forgotten_token_begins_anew_and_its_nodes_stay_as_they_are),
        BOTH_WAYS (a_second_cancel_is_remembered_anew),
        BOTH_WAYS (sweep_is_due_when_the_oldest_expires_but_an_interval_after_the_last),
        BOTH_WAYS (sweeps_are_an_interval_apart_whoever_asks_for_them),
        BOTH_WAYS (orphans_are_bounded_in_all),
        BOTH_WAYS (a_limit_of_none_remembers_nothing),
        BOTH_WAYS (an_account_has_a_limit_of_its_own),
        BOTH_WAYS (an_account_may_end_before_its_orphans),
        BOTH_WAYS (what_is_registered_is_cancelled_beyond_the_limit),
        cmocka_unit_test_setup_teardown (a_cancel_is_used_up_by_what_it_hits, set_up_plain,
                                         tear_down),
        cmocka_unit_test_setup_teardown (a_lasting_cancel_is_remembered_after_it_hit_something,
                                         set_up_lasting, tear_down),
        cmocka_unit_test_setup_teardown (a_lasting_cancel_that_came_first_is_remembered_too,
                                         set_up_lasting, tear_down),
        cmocka_unit_test_setup_teardown (a_lasting_cancel_that_expires_leaves_what_is_registered,
                                         set_up_lasting, tear_down),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
