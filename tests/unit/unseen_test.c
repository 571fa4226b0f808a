/*  Which sender ids of earlier epochs nobody has heard of.  */
#include "broker/unseen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

enum { END = 20 }; /* ids from here on are of this epoch */

static hws_unseen_t s_unseen;

static void begin (const hws_range_t *ranges, uint32_t count, uint64_t highest)
{
    hws_open_t request = {.has_resume = true,
                          .resume = {.highest_sender_id = highest, .unseen_count = count}};
    for (uint32_t i = 0; i < count; i++) {
        request.resume.unseen[i] = ranges[i];
    }
    assert_int_equal (hws_unseen_init (&s_unseen, &request, END), 0);
}

static void forget (uint64_t sender_id)
{
    assert_int_equal (hws_unseen_reserve (&s_unseen), 0);
    hws_unseen_remove (&s_unseen, sender_id);
}

/*  `ids` has an x for each id from 0 on that is unseen.  */
static void expect (const char *ids)
{
    for (uint64_t id = 0; id < END + 2; id++) {
        const bool is_unseen = id < strlen (ids) && ids[id] == 'x';
        assert_int_equal (hws_unseen_has (&s_unseen, id), is_unseen);
    }
}

static void what_is_told_and_above_the_highest_is_unseen (void **state)
{
    (void) state;
    begin ((hws_range_t[]){{2, 3}, {5, 8}}, 2, 15);
    expect ("..x..xxx........xxxx");
    hws_unseen_fini (&s_unseen);

    begin (NULL, 0, END - 1);
    expect ("");
    hws_unseen_fini (&s_unseen);
}

static void who_was_heard_of_is_unseen_no_more (void **state)
{
    (void) state;
    begin ((hws_range_t[]){{2, 7}}, 1, 19);
    expect ("..xxxxx");
    forget (4);
    expect ("..xx.xx");
    forget (2);
    expect ("...x.xx");
    forget (6);
    expect ("...x.x.");
    forget (3);
    forget (3);
    forget (5);
    expect ("");
    forget (11);
    expect ("");
    hws_unseen_fini (&s_unseen);
}

static void ranges_that_do_not_ascend_are_each_counted_once (void **state)
{
    (void) state;
    begin ((hws_range_t[]){{4, 9}, {0, 6}, {3, 11}, {18, UINT64_MAX}}, 4, 1);
    assert_true (s_unseen.count <= 5);
    expect ("....xxxxxxx.......xx");
    for (uint64_t id = 0; id < END; id += 2) {
        forget (id);
    }
    expect (".....x.x.x.........x");
    hws_unseen_fini (&s_unseen);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_is_told_and_above_the_highest_is_unseen),
        cmocka_unit_test (who_was_heard_of_is_unseen_no_more),
        cmocka_unit_test (ranges_that_do_not_ascend_are_each_counted_once),
    };
    return cmocka_run_group_tests_name ("unseen", tests, NULL, NULL);
}
