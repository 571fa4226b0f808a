/*  Who gets a seat, and under which number: sender ids, refusals that name the anchor, and
 *  clients whose own numbers are the same.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static process_t *start_receiver (const char *senders)
{
    return process_start (NULL, "hawser-recv", "--anchor", "port", "--format", "json", "--senders",
                          senders, NULL);
}

static process_t *start_sender (const char *label)
{
    return process_start (NULL, "hawser-send", "--anchor", "port", "--label", label, "--wait", "30",
                          NULL);
}

/*  Writes the sender's record of that number: its label, and which it is.  */
static void write_record (process_t *sender, const char *label, size_t number)
{
    char line[64];
    const int size = snprintf (line, sizeof line, "%s %zu\n", label, number);

    process_write (sender, line, (size_t) size);
}

/*  All records that came under the label are that sender's, in order, `count` of them.  */
static void expect_records (process_t *receiver, const char *label, uint64_t id, size_t count)
{
    assert_int_equal (event_count (receiver, "record", label), count);
    for (size_t i = 1; i <= count; i++) {
        char text[64];
        snprintf (text, sizeof text, "%s %zu", label, i);
        const event_t record = event_wait (receiver, "record", label, i);
        assert_int_equal (record.sender, id);
        assert_string_equal (record.data, text);
    }
}

static void sender_ids_start_at_one (void **state)
{
    static const char *const labels[] = {"first", "second"};
    process_t *senders[2];
    process_t *receiver = start_receiver ("2");

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        senders[i] = start_sender (labels[i]);
        assert_int_equal (event_wait (receiver, "attached", labels[i], 1).sender, i + 1);
    }
    for (size_t number = 1; number <= 5; number++) {
        for (size_t i = 0; i < 2; i++) {
            write_record (senders[i], labels[i], number);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);

    for (size_t i = 0; i < 2; i++) {
        expect_records (receiver, labels[i], i + 1, 5);
        assert_int_equal (event_wait (receiver, "detached", labels[i], 1).sender, i + 1);
    }
}

/*  Every client counts its streams from 1, so both senders have the same session id.  */
static void two_clients_same_session_id (void **state)
{
    static const char *const labels[] = {"a", "b"};
    process_t *senders[2];
    process_t *receiver = start_receiver ("2");

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        senders[i] = start_sender (labels[i]);
        event_wait (receiver, "attached", labels[i], 1);
    }
    for (size_t number = 1; number <= 50; number++) {
        write_record (senders[0], labels[0], number);
        write_record (senders[1], labels[1], number);
    }
    for (size_t i = 0; i < 2; i++) {
        process_close_input (senders[i]);
        process_expect_exit (senders[i], 0);
    }
    process_expect_exit (receiver, 0);

    assert_int_equal (event_count (receiver, "record", NULL), 100);
    expect_records (receiver, "a", 1, 50);
    expect_records (receiver, "b", 2, 50);
}

/*  A handle as this broker makes them, for an anchor that it has not opened yet.  */
static void attach_to_unknown_anchor_is_not_found (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;
    hws_sender_t *sender = NULL;
    char handle[33];
    char text[256];
    char expected[256];

    (void) state;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", NULL), 0);
    snprintf (handle, sizeof handle, "%.24sffffffff", hws_receiver_handle (receiver));

    assert_int_equal (hws_sender_attach (&sender, client, handle, NULL), HWS_ENOT_FOUND);
    hws_client_error (client, text, sizeof text);
    snprintf (expected, sizeof expected, "there is no anchor %s", handle);
    assert_string_equal (text, expected);

    assert_int_equal (hws_sender_attach (&sender, client, "harbour", NULL), HWS_ENOT_FOUND);
    hws_client_error (client, text, sizeof text);
    assert_string_equal (text, "there is no anchor named harbour");

    /*  Nothing came of it, and no sender id was used up.  */
    assert_int_equal (fixture_statistic ("attached"), 0);
    assert_int_equal (hws_sender_attach (&sender, client, "port", NULL), 0);
    assert_int_equal (hws_sender_id (sender), 1);
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

static void max_senders_refuses_the_next (void **state)
{
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;
    hws_sender_t *senders[2] = {NULL};
    hws_sender_t *third = NULL;
    hws_receiver_options_t options;
    char text[256];

    (void) state;
    hws_receiver_options_init (&options);
    options.max_senders = 2;
    assert_int_equal (hws_receiver_open (&receiver, client, "port", &options), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal (hws_sender_attach (&senders[i], client, "port", NULL), 0);
    }

    assert_int_equal (hws_sender_attach (&third, client, "port", NULL), HWS_EMAX_SENDERS);

    hws_client_error (client, text, sizeof text);
    assert_non_null (strstr (text, "port reached max_senders limit 2"));
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal (hws_sender_send (senders[i], "on", 2, 30000), 0);
        hws_sender_destroy (&senders[i]);
    }
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&client);
}

#define OVER_TCP(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_tcp, fixture_teardown)
#define OVER_IPC(test)                                                                             \
    cmocka_unit_test_setup_teardown (test, fixture_setup_calm_ipc, fixture_teardown)
#define OVER_BOTH(test) OVER_TCP (test), OVER_IPC (test)

int main (void)
{
    const struct CMUnitTest tests[] = {
        OVER_BOTH (sender_ids_start_at_one),
        OVER_BOTH (attach_to_unknown_anchor_is_not_found),
        OVER_BOTH (max_senders_refuses_the_next),
        OVER_BOTH (two_clients_same_session_id),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
