/*  hws_sender_attach against a broker that sends it from place to place.  */
#include "tests/support/fake_broker.h"
#include "tests/support/fixture.h"

#include "hawser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/*  A port that is taken and where nobody listens.  */
static char s_nowhere[64];
static int s_taken = -1;

static int start (void **state)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl (0x7f000001)};
    socklen_t size = sizeof address;
    s_taken = socket (AF_INET, SOCK_STREAM, 0);
    assert_true (s_taken >= 0);
    assert_int_equal (bind (s_taken, (struct sockaddr *) &address, sizeof address), 0);
    assert_int_equal (getsockname (s_taken, (struct sockaddr *) &address, &size), 0);
    snprintf (s_nowhere, sizeof s_nowhere, "tcp://127.0.0.1:%u",
              (unsigned) ntohs (address.sin_port));
    return fixture_setup_bare (state);
}

static int stop (void **state)
{
    const int rc = fixture_teardown (state);
    close (s_taken);
    return rc;
}

static hws_client_t *connect_to (const fake_broker_t *broker)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    options.endpoint = fake_broker_endpoint (broker);
    hws_client_t *client = NULL;
    assert_int_equal (hws_client_new (&client, &options), 0);
    return client;
}

/*  Attaches to the anchor `a`, which does not succeed; `text` is the client's last word.  */
static int attach (const fake_broker_t *broker, char *text, size_t size)
{
    hws_client_t *client = connect_to (broker);
    hws_sender_t *sender = NULL;
    const int rc = hws_sender_attach (&sender, client, "a", NULL);
    assert_null (sender);
    hws_client_error (client, text, size);
    hws_client_destroy (&client);
    return rc;
}

static void send_to_itself (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) number;
    fake_answer_elsewhere (answer, fake_broker_endpoint (broker));
}

static void sent_again_and_again_is_a_breach_of_the_protocol (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (send_to_itself);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EPROTOCOL);

    assert_non_null (strstr (text, "again and again"));
    assert_int_equal (fake_broker_attaches (broker), 8);
    fake_broker_stop (&broker);
}

static void send_nowhere (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    (void) number;
    fake_answer_elsewhere (answer, s_nowhere);
}

static void front_that_cannot_be_reached_while_the_broker_can_is_unreachable (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (send_nowhere);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EUNREACHABLE);

    assert_non_null (strstr (text, s_nowhere));
    assert_int_equal (fake_broker_attaches (broker), 2);
    fake_broker_stop (&broker);
}

/*  The anchor ends while the sender is on its way; the next of that name has no room.  */
static void lose_the_front (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    static const int codes[] = {0, 0, HWS_ECLOSED, HWS_EMAX_SENDERS};
    if (number == 1) {
        fake_answer_elsewhere (answer, s_nowhere);
    } else {
        answer->as.refusal.code = codes[number > 3 ? 3 : number];
        snprintf (answer->as.refusal.reason, sizeof (hws_reason_t), "answer %d", number);
    }
}

static void front_that_is_gone_on_arrival_is_asked_for_by_name_again (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (lose_the_front);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EMAX_SENDERS);

    assert_string_equal (text, "answer 3");
    assert_int_equal (fake_broker_attaches (broker), 3);
    assert_false (fake_broker_attach (broker, 1)->has_handle);
    assert_true (fake_broker_attach (broker, 2)->has_handle);
    assert_int_equal (fake_broker_attach (broker, 2)->handle.lo, 2);
    assert_false (fake_broker_attach (broker, 3)->has_handle);
    assert_string_equal (fake_broker_attach (broker, 3)->anchor, "a");
    fake_broker_stop (&broker);
}

/*  The broker is another one when the sender is back from the front, which went with it.  */
static void lose_the_broker (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    lose_the_front (broker, number, answer);
    if (number == 2) {
        answer->as.refusal.code = HWS_EWRONG_BROKER;
    }
}

static void front_of_a_broker_of_before_is_asked_for_by_name_again (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (lose_the_broker);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EMAX_SENDERS);

    assert_int_equal (fake_broker_attaches (broker), 3);
    assert_false (fake_broker_attach (broker, 3)->has_handle);
    fake_broker_stop (&broker);
}

static void send_to_no_place (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    (void) number;
    fake_answer_elsewhere (answer, "udp://somewhere");
}

static void place_that_is_none_is_a_breach_of_the_protocol (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (send_to_no_place);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EPROTOCOL);

    assert_non_null (strstr (text, "udp://somewhere"));
    fake_broker_stop (&broker);
}

/*  Refuses whoever comes with a handle, which only the private client does.  */
static void refuse_there (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    if (number == 1) {
        fake_answer_elsewhere (answer, fake_broker_endpoint (broker));
    } else {
        answer->as.refusal.code = HWS_EBUFFER_FULL;
        snprintf (answer->as.refusal.reason, sizeof (hws_reason_t), "no room at its own front");
    }
}

static void client_has_the_word_of_the_anchors_own_front (void **state)
{
    (void) state;
    char text[1100];
    fake_broker_t *broker = fake_broker_start (refuse_there);

    assert_int_equal (attach (broker, text, sizeof text), HWS_EBUFFER_FULL);

    assert_string_equal (text, "no room at its own front");
    fake_broker_stop (&broker);
}

/*  ---- The connection to the anchor's own front ---- */

static fake_broker_t *s_front; /* has the seats */
static atomic_int s_losses, s_returns;

static void connection_changed (void *arg, bool is_connected, const char *text)
{
    (void) arg;
    (void) text;
    atomic_fetch_add (is_connected ? &s_returns : &s_losses, 1);
}

static void give_seat (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    (void) number;
    fake_answer_seat (answer);
}

/*  The first comes by the shared front; who comes with a handle finds its seat.  */
static void send_to_front (const fake_broker_t *broker, int number, hws_control_t *answer)
{
    (void) broker;
    if (number == 1) {
        fake_answer_elsewhere (answer, fake_broker_endpoint (s_front));
    } else {
        fake_answer_seat (answer);
    }
}

/*  A sender at the front, and the broker that sent it there.  */
static void attach_at_front (fake_broker_t **broker, hws_client_t **client, hws_sender_t **sender)
{
    hws_client_options_t options;
    hws_client_options_init (&options);
    atomic_store (&s_losses, 0);
    atomic_store (&s_returns, 0);
    s_front = fake_broker_start (give_seat);
    *broker = fake_broker_start (send_to_front);
    options.endpoint = fake_broker_endpoint (*broker);
    options.on_connection = connection_changed;
    assert_int_equal (hws_client_new (client, &options), 0);
    assert_int_equal (hws_sender_attach (sender, *client, "a", NULL), 0);
    assert_int_equal (fake_broker_attaches (s_front), 1);
}

static void wait_until (const atomic_int *number, int value)
{
    for (int i = 0; i < 2000 && atomic_load (number) < value; i++) {
        process_watch (10);
    }
    assert_int_equal (atomic_load (number), value);
}

static void loss_of_the_front_is_told_and_the_stream_goes_on_at_the_broker (void **state)
{
    (void) state;
    fake_broker_t *broker;
    hws_client_t *client;
    hws_sender_t *sender;
    attach_at_front (&broker, &client, &sender);

    fake_broker_stop (&s_front);

    wait_until (&s_losses, 1);
    wait_until (&s_returns, 1);
    for (int i = 0; i < 2000 && fake_broker_attaches (broker) < 2; i++) {
        process_watch (10); /* it is there again before it has attached */
    }
    assert_int_equal (fake_broker_attaches (broker), 2);
    assert_true (fake_broker_attach (broker, 2)->has_handle);
    assert_int_equal (hws_sender_reason (sender, NULL, NULL), 0);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
    fake_broker_stop (&broker);
    assert_int_equal (atomic_load (&s_losses), 1);
}

static void loss_of_a_front_that_no_stream_needs_is_not_told (void **state)
{
    (void) state;
    fake_broker_t *broker;
    hws_client_t *client;
    hws_sender_t *sender;
    attach_at_front (&broker, &client, &sender);
    assert_int_equal (hws_sender_cancel (sender, "enough", 20000), 0);

    fake_broker_stop (&s_front);
    for (int i = 0; i < 2000 && fake_broker_hellos (broker) < 2; i++) {
        process_watch (10);
    }

    assert_int_equal (fake_broker_hellos (broker), 2);
    assert_int_equal (atomic_load (&s_losses), 0);
    hws_sender_destroy (&sender);
    hws_client_destroy (&client);
    assert_int_equal (atomic_load (&s_losses), 0);
    fake_broker_stop (&broker);
}

#define TEST(name) cmocka_unit_test_setup_teardown (name, start, stop)

int main (void)
{
    const struct CMUnitTest tests[] = {
        TEST (sent_again_and_again_is_a_breach_of_the_protocol),
        TEST (front_that_cannot_be_reached_while_the_broker_can_is_unreachable),
        TEST (front_that_is_gone_on_arrival_is_asked_for_by_name_again),
        TEST (front_of_a_broker_of_before_is_asked_for_by_name_again),
        TEST (place_that_is_none_is_a_breach_of_the_protocol),
        TEST (client_has_the_word_of_the_anchors_own_front),
        TEST (loss_of_the_front_is_told_and_the_stream_goes_on_at_the_broker),
        TEST (loss_of_a_front_that_no_stream_needs_is_not_told),
    };
    return cmocka_run_group_tests (tests, NULL, NULL);
}
