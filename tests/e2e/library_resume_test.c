/*  hawser.h and receivers that take the place of others: the one that has left, the one that is
 *  still there, the one that comes too late; and whose broker is killed meanwhile.
 */
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

enum { LONG_MS = 20000 };

/*  What another process needs to go on.  */
typedef struct {
    char handle[64];
    char owner_token[64];
} credentials_t;

static credentials_t credentials_of (const hws_receiver_t *receiver)
{
    credentials_t it;
    snprintf (it.handle, sizeof it.handle, "%s", hws_receiver_handle (receiver));
    snprintf (it.owner_token, sizeof it.owner_token, "%s", hws_receiver_owner_token (receiver));
    assert_int_equal (strlen (it.owner_token), 32);
    return it;
}

static int go_on (hws_receiver_t **receiver, hws_client_t *client, const credentials_t *credentials,
                  bool manual_ack)
{
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.handle = credentials->handle;
    options.owner_token = credentials->owner_token;
    options.manual_ack = manual_ack;
    return hws_receiver_open (receiver, client, NULL, &options);
}

static hws_receiver_t *open_manual (hws_client_t *client)
{
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.manual_ack = true;
    hws_receiver_t *receiver;
    assert_int_equal (hws_receiver_open (&receiver, client, "a", &options), 0);
    return receiver;
}

static hws_event_t expect (hws_receiver_t *receiver, hws_event_kind_t kind)
{
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (receiver, &event, LONG_MS), 0);
    assert_int_equal (event.kind, kind);
    return event;
}

static void expect_record (hws_receiver_t *receiver, const char *text)
{
    const hws_event_t event = expect (receiver, HWS_EVENT_RECORD);
    assert_int_equal (event.size, strlen (text));
    assert_memory_equal (event.data, text, event.size);
}

static void send_text (hws_sender_t *sender, const char *text)
{
    assert_int_equal (hws_sender_send (sender, text, strlen (text), LONG_MS), 0);
}

static void receiver_that_left_is_followed_by_another (void **state)
{
    (void) state;
    hws_client_t *first = fixture_client (), *senders = fixture_client ();
    hws_receiver_t *receiver = open_manual (first);
    const credentials_t credentials = credentials_of (receiver);
    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, senders, "a", NULL), 0);
    const uint64_t id = hws_sender_id (sender);
    send_text (sender, "one");
    send_text (sender, "two");
    send_text (sender, "three");
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "one");
    assert_int_equal (hws_receiver_ack (receiver), 0);
    expect_record (receiver, "two"); /* received, and not acknowledged */

    assert_int_equal (hws_receiver_leave (&receiver, LONG_MS), 0);
    assert_null (receiver);
    hws_client_destroy (&first);
    send_text (sender, "four");

    hws_client_t *second = fixture_client ();
    assert_int_equal (go_on (&receiver, second, &credentials, false), 0);
    assert_string_equal (hws_receiver_handle (receiver), credentials.handle);
    assert_string_equal (hws_receiver_owner_token (receiver), credentials.owner_token);
    assert_int_equal (expect (receiver, HWS_EVENT_ATTACHED).sender_id, id);
    expect_record (receiver, "two");
    expect_record (receiver, "three");
    expect_record (receiver, "four");
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);
    expect (receiver, HWS_EVENT_DETACHED);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), 0); /* it is consumed */
    uint64_t records, bytes;
    hws_sender_progress (sender, &records, &bytes);
    assert_int_equal (records, 4);
    hws_sender_destroy (&sender);
    hws_client_destroy (&senders);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&second);
}

static void receiver_that_is_there_is_superseded (void **state)
{
    (void) state;
    hws_client_t *first = fixture_client (), *second = fixture_client ();
    hws_receiver_t *old, *receiver;
    hws_sender_t *sender;
    assert_int_equal (hws_receiver_open (&old, first, "a", NULL), 0);
    const credentials_t credentials = credentials_of (old);
    assert_int_equal (hws_sender_attach (&sender, second, "a", NULL), 0);
    send_text (sender, "one");
    expect (old, HWS_EVENT_ATTACHED);
    expect_record (old, "one");
    hws_event_t event;
    assert_int_equal (hws_receiver_recv (old, &event, 0), HWS_EWOULD_BLOCK);
    assert_int_equal (hws_sender_flush (sender, LONG_MS), 0);

    assert_int_equal (go_on (&receiver, second, &credentials, false), 0);
    send_text (sender, "two");

    assert_string_equal (expect (old, HWS_EVENT_CANCELLED).cause, "superseded");
    assert_string_equal (expect (old, HWS_EVENT_CLOSED).cause, "superseded");
    assert_int_equal (hws_receiver_recv (old, &event, LONG_MS), HWS_ECLOSED);
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "two");
    hws_receiver_destroy (&old); /* which closes nothing any more */
    hws_client_destroy (&first);
    send_text (sender, "three");
    expect_record (receiver, "three");
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&second);
}

static void anchor_goes_on_for_its_owner_alone (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *owner, *receiver = NULL;
    assert_int_equal (hws_receiver_open (&owner, client, "a", NULL), 0);
    const credentials_t credentials = credentials_of (owner);

    credentials_t wrong = credentials;
    wrong.owner_token[0] = wrong.owner_token[0] == '0' ? '1' : '0';
    assert_int_equal (go_on (&receiver, client, &wrong, false), HWS_EDENIED);
    wrong = credentials;
    wrong.owner_token[31] = '\0';
    assert_int_equal (go_on (&receiver, client, &wrong, false), HWS_EINVALID);
    hws_receiver_options_t options;
    hws_receiver_options_init (&options);
    options.handle = credentials.handle;
    assert_int_equal (hws_receiver_open (&receiver, client, NULL, &options), HWS_EINVALID);
    assert_null (receiver);

    hws_event_t event;
    assert_int_equal (hws_receiver_recv (owner, &event, 0), HWS_EWOULD_BLOCK); /* it stays */
    hws_receiver_destroy (&owner);
    assert_int_equal (go_on (&receiver, client, &credentials, false), HWS_ECLOSED);
    hws_client_destroy (&client);
}

static void leaving_what_has_ended_says_so (void **state)
{
    (void) state;
    hws_client_t *client = fixture_client ();
    hws_receiver_t *receiver = NULL;
    assert_int_equal (hws_receiver_leave (&receiver, LONG_MS), 0);
    assert_int_equal (hws_receiver_open (&receiver, client, "a", NULL), 0);
    assert_int_equal (hws_receiver_close (receiver, NULL, LONG_MS), 0);

    assert_int_equal (hws_receiver_leave (&receiver, LONG_MS), HWS_ECLOSED);

    assert_null (receiver);
    hws_client_destroy (&client);
}

/*  Without waiting: what was acknowledged is said before the client ends.  */
static void receiver_may_leave_without_waiting (void **state)
{
    (void) state;
    hws_client_t *first = fixture_client (), *second = fixture_client ();
    hws_receiver_t *receiver = open_manual (first);
    const credentials_t credentials = credentials_of (receiver);
    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, second, "a", NULL), 0);
    send_text (sender, "one");
    send_text (sender, "two");
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "one");
    assert_int_equal (hws_receiver_ack (receiver), 0);

    const int rc = hws_receiver_leave (&receiver, 0);
    hws_client_destroy (&first);

    assert_true (rc == 0 || rc == HWS_EWOULD_BLOCK);
    assert_int_equal (go_on (&receiver, second, &credentials, false), 0);
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "two");
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&second);
}

/*  ---- A broker that is killed ---- */

static void receiver_and_broker_come_again (void **state)
{
    (void) state;
    hws_client_t *first = fixture_client (), *senders = fixture_client ();
    hws_receiver_t *receiver = open_manual (first);
    const credentials_t credentials = credentials_of (receiver);
    hws_sender_t *sender;
    assert_int_equal (hws_sender_attach (&sender, senders, "a", NULL), 0);
    send_text (sender, "one");
    send_text (sender, "two");
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "one");
    assert_int_equal (hws_receiver_ack (receiver), 0);
    assert_int_equal (hws_sender_send (sender, "three", 5, LONG_MS), 0);

    assert_int_equal (hws_receiver_leave (&receiver, LONG_MS), 0);
    hws_client_destroy (&first);
    fixture_kill (fixture_broker ());
    send_text (sender, "four");
    fixture_restart (fixture_broker ());
    hws_client_t *second = fixture_client ();

    assert_int_equal (go_on (&receiver, second, &credentials, false), 0);
    assert_string_equal (hws_receiver_owner_token (receiver), credentials.owner_token);
    expect (receiver, HWS_EVENT_ATTACHED);
    expect_record (receiver, "two");
    expect_record (receiver, "three");
    expect_record (receiver, "four");
    assert_int_equal (hws_sender_detach (sender, 0), HWS_EWOULD_BLOCK);
    expect (receiver, HWS_EVENT_DETACHED);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), 0);
    hws_sender_destroy (&sender);
    hws_client_destroy (&senders);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&second);
}

static void close_while_the_broker_was_down_is_told_to_the_next_epoch (void **state)
{
    (void) state;
    hws_client_t *first = fixture_client (), *second = fixture_client ();
    hws_receiver_t *receiver;
    hws_sender_t *sender;
    const char *cause;
    assert_int_equal (hws_receiver_open (&receiver, first, "a", NULL), 0);
    assert_int_equal (hws_sender_attach (&sender, second, "a", NULL), 0);
    expect (receiver, HWS_EVENT_ATTACHED);

    fixture_kill (fixture_broker ());
    const int rc = hws_receiver_close (receiver, "enough", LONG_MS);
    fixture_restart (fixture_broker ());

    assert_int_equal (rc, HWS_EUNREACHABLE);
    assert_string_equal (expect (receiver, HWS_EVENT_CANCELLED).cause, "receiver_closed");
    expect (receiver, HWS_EVENT_CLOSED);
    assert_int_equal (hws_sender_detach (sender, LONG_MS), HWS_ECANCELLED);
    hws_sender_reason (sender, &cause, NULL);
    assert_string_equal (cause, "receiver_closed");
    hws_sender_destroy (&sender);
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&second);
    hws_client_destroy (&first);
}

enum { ANCHORS = 2, SENDERS = 300, RECORDS = 4 };

typedef struct {
    hws_receiver_t *receiver;
    hws_sender_t *senders[SENDERS];
    uint64_t next[SENDERS + 1]; /* by sender id: the number in its next record */
    unsigned attached, ended;
} crowd_t;

/*  Reads until so many records and endings were seen of it.  */
static void read_crowd (crowd_t *self, uint64_t records, unsigned endings)
{
    while (records > 0 || self->ended < endings) {
        hws_event_t event;
        assert_int_equal (hws_receiver_recv (self->receiver, &event, LONG_MS), 0);
        if (event.kind == HWS_EVENT_RECORD) {
            uint64_t number;
            assert_int_equal (event.size, sizeof number);
            memcpy (&number, event.data, sizeof number);
            assert_int_equal (number, self->next[event.sender_id]++);
            records--;
        } else if (event.kind == HWS_EVENT_ATTACHED) {
            self->attached++;
        } else {
            assert_int_equal (event.kind, HWS_EVENT_DETACHED);
            assert_int_equal (event.records, 2 * RECORDS);
            self->ended++;
        }
    }
}

static void send_crowd (crowd_t *self, uint64_t first)
{
    for (uint64_t number = first; number < first + RECORDS; number++) {
        for (int i = 0; i < SENDERS; i++) {
            assert_int_equal (hws_sender_send (self->senders[i], &number, sizeof number, LONG_MS),
                              0);
        }
    }
}

static void many_senders_of_two_anchors_go_on_at_a_restarted_broker (void **state)
{
    (void) state;
    static crowd_t crowds[ANCHORS];
    hws_client_t *client = fixture_client (), *senders = fixture_client ();
    for (int at = 0; at < ANCHORS; at++) {
        crowds[at] = (crowd_t){.ended = 0};
        assert_int_equal (hws_receiver_open (&crowds[at].receiver, client, NULL, NULL), 0);
        for (int i = 0; i < SENDERS; i++) {
            assert_int_equal (hws_sender_attach (&crowds[at].senders[i], senders,
                                                 hws_receiver_handle (crowds[at].receiver), NULL),
                              0);
        }
        send_crowd (&crowds[at], 0);
        read_crowd (&crowds[at], SENDERS * RECORDS / 2, 0);
    }

    fixture_kill (fixture_broker ());
    fixture_restart (fixture_broker ());
    for (int at = 0; at < ANCHORS; at++) {
        send_crowd (&crowds[at], RECORDS);
        for (int i = 0; i < SENDERS; i++) {
            assert_int_equal (hws_sender_detach (crowds[at].senders[i], 0), HWS_EWOULD_BLOCK);
        }
    }

    for (int at = 0; at < ANCHORS; at++) {
        read_crowd (&crowds[at], SENDERS * RECORDS * 3 / 2, SENDERS);
        assert_int_equal (crowds[at].attached, SENDERS);
        for (int i = 0; i < SENDERS; i++) {
            assert_int_equal (hws_sender_detach (crowds[at].senders[i], LONG_MS), 0);
            hws_sender_destroy (&crowds[at].senders[i]);
        }
        hws_receiver_destroy (&crowds[at].receiver);
    }
    hws_client_destroy (&senders);
    hws_client_destroy (&client);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, fixture_setup_calm_tcp, fixture_teardown)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (receiver_that_left_is_followed_by_another),
        TEST (receiver_that_is_there_is_superseded),
        TEST (anchor_goes_on_for_its_owner_alone),
        TEST (leaving_what_has_ended_says_so),
        TEST (receiver_may_leave_without_waiting),
        TEST (receiver_and_broker_come_again),
        TEST (close_while_the_broker_was_down_is_told_to_the_next_epoch),
        TEST (many_senders_of_two_anchors_go_on_at_a_restarted_broker),
    };
    return cmocka_run_group_tests_name ("library_resume", tests, NULL, NULL);
}
