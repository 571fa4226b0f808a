/*  The whole path of a record in one thread, for counting what it costs: a sender's stream,
 *  its session, the engine, the receiver's session, the reader. tests/count/run.sh runs it
 *  under a tool that counts the instructions of one function of it.
 *
 *    path ROUNDS     (what follows is not used)
 *
 *  Each round is RECORDS records of RECORD_BYTES: kept, sent in a batch as soon as the window lets
 *  it, forwarded, read, acknowledged. It fails unless all of them arrive.
 */
#include "tests/support/session_test.h"

enum { RECORDS = 500, RECORD_BYTES = 64 };

static void round_trip (hws_session_sender_t *sender, receiver_t *receiver)
{
    for (int i = 0; i < RECORDS; i++) {
        int rc = send_record (sender, RECORD_BYTES);
        if (rc == HWS_EWOULD_BLOCK) { /* a window begins small */
            settle (receiver);
            rc = send_record (sender, RECORD_BYTES);
        }
        assert_int_equal (rc, 0);
    }
    settle (receiver);
}

static int s_rounds;

static void every_record_arrives (void **state)
{
    (void) state;
    receiver_t receiver;
    hws_session_sender_t sender = {.notify = NULL};
    open_anchor (&receiver, "a");
    attach (&sender, SENDER, "a");
    settle (&receiver);

    for (int round = 0; round < s_rounds; round++) {
        round_trip (&sender, &receiver);
    }

    assert_int_equal (receiver.records, (uint64_t) s_rounds * RECORDS);
    detach (&sender);
    settle (&receiver);
    hws_session_remove_sender (&sender);
    remove_anchor (&receiver);
}

int main (int count, char *arguments[])
{
    const struct CMUnitTest tests[] = {TEST (every_record_arrives)};
    s_rounds = count >= 2 ? atoi (arguments[1]) : 0;
    if (s_rounds < 1) {
        fprintf (stderr, "usage: path ROUNDS\n");
        return 2;
    }
    return cmocka_run_group_tests (tests, NULL, NULL);
}
