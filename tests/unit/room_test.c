/*  How descriptors are shared out.  */
#include "broker/room.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static char *s_endpoints[] = {"tcp://127.0.0.1:1", "ipc:///a"};

static hws_broker_settings_t make_settings (void)
{
    hws_broker_settings_t settings = {.listen = {2, s_endpoints}};
    settings.limits.peers = 1000;
    settings.limits.fronts = 100;
    return settings;
}

static void what_is_wanted_is_enough_for_all_that_the_settings_ask_for (void **state)
{
    (void) state;
    const hws_broker_settings_t settings = make_settings ();
    hws_room_t room;

    assert_int_equal (hws_room_share (&room, &settings, hws_room_wanted (&settings)), 0);

    assert_true (room.connections > 1000);
    assert_true (room.fronts > 100);
    assert_true (room.descriptors >= room.connections + room.fronts * hws_room_front_cost (2));
}

static void more_descriptors_make_no_more_room (void **state)
{
    (void) state;
    const hws_broker_settings_t settings = make_settings ();
    hws_room_t room, larger;

    assert_int_equal (hws_room_share (&room, &settings, hws_room_wanted (&settings)), 0);
    assert_int_equal (hws_room_share (&larger, &settings, 1000000), 0);

    assert_memory_equal (&room, &larger, sizeof room);
}

static void few_descriptors_are_shared_and_some_stay_free (void **state)
{
    (void) state;
    const hws_broker_settings_t settings = make_settings ();

    for (size_t descriptors = 100; descriptors < 2500; descriptors++) {
        hws_room_t room;
        assert_int_equal (hws_room_share (&room, &settings, descriptors), 0);
        assert_true (room.descriptors <= descriptors - descriptors / 8);
        assert_true (room.connections <= room.descriptors);
        assert_true (room.fronts * hws_room_front_cost (2) <= room.descriptors / 2);
        assert_true (room.connections > 0);
    }
}

static void too_few_descriptors_are_refused (void **state)
{
    (void) state;
    const hws_broker_settings_t settings = make_settings ();
    hws_room_t room;

    assert_int_equal (hws_room_share (&room, &settings, 0), HWS_ELIMIT);
    assert_int_equal (hws_room_share (&room, &settings, 36), HWS_ELIMIT);
}

static void no_fronts_need_no_room (void **state)
{
    (void) state;
    hws_broker_settings_t settings = make_settings ();
    settings.limits.fronts = 0;
    hws_room_t room;

    assert_int_equal (hws_room_share (&room, &settings, hws_room_wanted (&settings)), 0);

    assert_int_equal (room.fronts, 0);
    assert_int_equal (room.descriptors, room.connections);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (what_is_wanted_is_enough_for_all_that_the_settings_ask_for),
        cmocka_unit_test (more_descriptors_make_no_more_room),
        cmocka_unit_test (few_descriptors_are_shared_and_some_stay_free),
        cmocka_unit_test (too_few_descriptors_are_refused),
        cmocka_unit_test (no_fronts_need_no_room),
    };
    return cmocka_run_group_tests_name ("room", tests, NULL, NULL);
}
