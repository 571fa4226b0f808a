/*  Cancel tokens at a client with private ones, and no broker anywhere.  */
#include "client/client_io.h"
#include "io/clock_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

enum { TOKEN = 77 };

static void ignore (hws_session_sender_t *sender)
{
    (void) sender;
}

static hws_tx_state_t state_of (hws_client_t *client, const hws_session_sender_t *sender)
{
    hws_client_lock (client);
    const hws_tx_state_t state = sender->tx.state;
    hws_client_unlock (client, false);
    return state;
}

static hws_client_t *follow (hws_client_t *root)
{
    hws_client_t *private;
    hws_client_lock (root);
    const int rc = hws_client_follow (root, "ipc:///nonexistent/front", root, &private);
    hws_client_unlock (root, false);
    assert_int_equal (rc, 0);
    return private;
}

static void an_attach_at_a_private_client_is_cancelled_at_once (void **state)
{
    (void) state;
    hws_client_t *root, *private;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "ipc:///nonexistent/broker";
    options.connect_ms = HWS_FOREVER;
    hws_session_sender_t sender = {.notify = ignore, .anchor = "a", .cancel_token = TOKEN};
    hws_session_sender_t other = {.notify = ignore, .anchor = "a", .cancel_token = TOKEN + 1};
    assert_int_equal (hws_client_new (&root, &options), 0);
    private = follow (root);
    hws_client_lock (private);
    hws_session_attach (&private->session, hws_clock_ms (), &sender);
    hws_session_attach (&private->session, hws_clock_ms (), &other);
    hws_client_unlock (private, true);

    assert_int_equal (hws_client_cancel_token (root, 0, NULL, 0), 0);
    assert_int_equal (state_of (private, &sender), HWS_TX_ATTACHING);
    assert_int_equal (hws_client_cancel_token (root, TOKEN, "enough", 0), HWS_EWOULD_BLOCK);

    assert_int_equal (state_of (private, &sender), HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (sender.tx.reason, "enough");
    assert_int_equal (state_of (private, &other), HWS_TX_ATTACHING);
    hws_client_lock (private);
    hws_session_remove_sender (&sender);
    hws_session_remove_sender (&other);
    hws_client_unlock (private, true);
    hws_client_unfollow (&private);
    hws_client_destroy (&root);
}

static void a_token_that_was_cancelled_on_the_way_holds_at_a_private_client (void **state)
{
    (void) state;
    hws_client_t *root, *private;
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = "ipc:///nonexistent/broker";
    options.connect_ms = HWS_FOREVER;
    hws_session_sender_t sender = {.notify = ignore, .anchor = "a", .cancel_token = TOKEN};
    assert_int_equal (hws_client_new (&root, &options), 0);
    assert_int_equal (hws_client_cancel_token (root, TOKEN, "enough", 0), HWS_EWOULD_BLOCK);
    private = follow (root);

    hws_client_lock (private);
    hws_session_attach (&private->session, hws_clock_ms (), &sender);
    hws_client_unlock (private, true);
    hws_client_heed_token (private, 0);
    hws_client_heed_token (private, TOKEN + 1);
    assert_int_equal (state_of (private, &sender), HWS_TX_ATTACHING);
    hws_client_heed_token (private, TOKEN);

    assert_int_equal (state_of (private, &sender), HWS_TX_ENDED);
    assert_int_equal (sender.tx.result, HWS_ECANCELLED);
    assert_string_equal (sender.tx.reason, "enough");
    hws_client_lock (private);
    hws_session_remove_sender (&sender);
    hws_client_unlock (private, true);
    hws_client_unfollow (&private);
    hws_client_destroy (&root);
}

static void new_tokens_are_not_0_and_differ (void **state)
{
    (void) state;
    uint64_t token[2] = {0, 0};

    assert_int_equal (hws_token_new (&token[0]), 0);
    assert_int_equal (hws_token_new (&token[1]), 0);

    assert_true (token[0] != 0 && token[1] != 0);
    assert_true (token[0] != token[1]);
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (an_attach_at_a_private_client_is_cancelled_at_once),
        cmocka_unit_test (a_token_that_was_cancelled_on_the_way_holds_at_a_private_client),
        cmocka_unit_test (new_tokens_are_not_0_and_differ),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
