#include "broker/credential.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static const uint8_t s_key[HWS_CREDENTIAL_KEY_SIZE] = {1, 2, 3};
static const hws_handle_t s_handle = {.hi = 5, .lo = 6};

static void same_credential_is_made_again (void **state)
{
    (void) state;
    const hws_id_t first = hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, s_handle, 7);

    const hws_id_t second = hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, s_handle, 7);

    assert_true (hws_credential_equal (&first, &second));
}

static void whatever_differs_makes_another_credential (void **state)
{
    (void) state;
    static const uint8_t other_key[HWS_CREDENTIAL_KEY_SIZE] = {1, 2, 3, [31] = 1};
    const hws_id_t mine = hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, s_handle, 7);
    const hws_id_t others[] = {
        hws_credential_make (other_key, HWS_CREDENTIAL_SENDER, s_handle, 7),
        hws_credential_make (s_key, HWS_CREDENTIAL_OWNER, s_handle, 7),
        hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, (hws_handle_t){5, 7}, 7),
        hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, (hws_handle_t){4, 6}, 7),
        hws_credential_make (s_key, HWS_CREDENTIAL_SENDER, s_handle, 8),
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false (hws_credential_equal (&mine, &others[i]));
    }
}

static void seat_key_depends_on_client_and_session (void **state)
{
    (void) state;
    const hws_id_t client = {.bytes = {1}};
    const hws_id_t other = {.bytes = {2}};
    const uint64_t mine = hws_credential_seat_key (s_key, &client, 9);

    assert_true (hws_credential_seat_key (s_key, &client, 9) == mine);
    assert_true (hws_credential_seat_key (s_key, &client, 10) != mine);
    assert_true (hws_credential_seat_key (s_key, &other, 9) != mine);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (same_credential_is_made_again),
        cmocka_unit_test (whatever_differs_makes_another_credential),
        cmocka_unit_test (seat_key_depends_on_client_and_session),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
