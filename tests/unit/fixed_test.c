/*  What a reload cannot change.  */
#include "broker/fixed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static char *s_endpoints[] = {"tcp://127.0.0.1:1", "ipc:///a"};

static hws_broker_settings_t make_settings (void)
{
    hws_broker_settings_t settings = {.listen = {2, s_endpoints}, .send_queue = 64};
    settings.limits.batch_bytes = 65536;
    settings.limits.peers = 100;
    return settings;
}

/*  What changes when `changed` is loaded over the settings that make_settings gives.  */
static size_t changes (const hws_broker_settings_t *changed, const char *keys[HWS_FIXED_KEYS_MAX])
{
    const hws_broker_settings_t settings = make_settings ();
    hws_fixed_t fixed;
    assert_int_equal (hws_fixed_init (&fixed, &settings), 0);
    const size_t count = hws_fixed_changes (&fixed, changed, keys);
    hws_fixed_fini (&fixed);
    return count;
}

static void a_reload_of_the_same_needs_no_restart (void **state)
{
    (void) state;
    const hws_broker_settings_t same = make_settings ();
    const char *keys[HWS_FIXED_KEYS_MAX];

    assert_int_equal (changes (&same, keys), 0);
}

static void another_endpoint_needs_a_restart (void **state)
{
    (void) state;
    char *other_endpoints[] = {"tcp://127.0.0.1:1", "ipc:///b"};
    hws_broker_settings_t other = make_settings ();
    hws_broker_settings_t fewer = make_settings ();
    const char *keys[HWS_FIXED_KEYS_MAX];

    other.listen.text = other_endpoints;
    assert_int_equal (changes (&other, keys), 1);
    assert_string_equal (keys[0], "listen");

    fewer.listen.count = 1;
    assert_int_equal (changes (&fewer, keys), 1);
    assert_string_equal (keys[0], "listen");
}

static void every_socket_setting_is_named (void **state)
{
    (void) state;
    hws_broker_settings_t changed = make_settings ();
    const char *keys[HWS_FIXED_KEYS_MAX];

    changed.state_dir = s_endpoints[1];
    changed.allow_insecure = true;
    changed.send_queue++;
    changed.limits.batch_bytes++;
    changed.limits.peers++;
    changed.limits.fronts++;

    assert_int_equal (changes (&changed, keys), 6);
    assert_string_equal (keys[0], "state_dir");
    assert_string_equal (keys[1], "allow_insecure");
    assert_string_equal (keys[2], "limits.send_queue");
    assert_string_equal (keys[3], "limits.batch_bytes");
    assert_string_equal (keys[4], "limits.peers");
    assert_string_equal (keys[5], "limits.fronts");
}

static void another_state_directory_needs_a_restart (void **state)
{
    (void) state;
    char *paths[] = {NULL, s_endpoints[0], s_endpoints[1]};

    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            hws_broker_settings_t settings = make_settings ();
            hws_fixed_t fixed;
            const char *keys[HWS_FIXED_KEYS_MAX];
            settings.state_dir = paths[i];
            assert_int_equal (hws_fixed_init (&fixed, &settings), 0);
            settings.state_dir = paths[j];
            assert_int_equal (hws_fixed_changes (&fixed, &settings, keys), i == j ? 0 : 1);
            hws_fixed_fini (&fixed);
        }
    }
}

static void limits_of_a_reload_keep_what_the_sockets_were_made_for (void **state)
{
    (void) state;
    const hws_broker_settings_t settings = make_settings ();
    hws_broker_settings_t changed = make_settings ();
    hws_fixed_t fixed;
    assert_int_equal (hws_fixed_init (&fixed, &settings), 0);

    changed.limits.batch_bytes = 1;
    changed.limits.peers = 101;
    changed.limits.fronts = 1;
    changed.limits.anchors = 7;
    const hws_limits_t more = hws_fixed_limits (&fixed, &changed);
    changed.limits.peers = 99;
    fixed.fronts = 2;
    const hws_limits_t fewer = hws_fixed_limits (&fixed, &changed);

    assert_int_equal (more.batch_bytes, 65536);
    assert_int_equal (more.peers, 100);
    assert_int_equal (more.anchors, 7);
    assert_int_equal (more.fronts, 0);
    assert_int_equal (fewer.fronts, 1);
    assert_int_equal (fewer.peers, 99);
    hws_fixed_fini (&fixed);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (a_reload_of_the_same_needs_no_restart),
        cmocka_unit_test (another_endpoint_needs_a_restart),
        cmocka_unit_test (every_socket_setting_is_named),
        cmocka_unit_test (another_state_directory_needs_a_restart),
        cmocka_unit_test (limits_of_a_reload_keep_what_the_sockets_were_made_for),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
