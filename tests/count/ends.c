/*  What a program calls, at both ends of a real broker, for counting what a record costs there
 *  with the locks and wakes that path.c has none of. tests/count/run.sh runs it and the broker,
 *  which is not counted.
 *
 *    ends ROUNDS ENDPOINT
 *
 *  Each round is RECORDS records of RECORD_BYTES, sent and received. It fails unless all of them
 *  arrive.
 */
#include "hawser.h"

#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 500, RECORD_BYTES = 64, PATIENCE_MS = 60000 };

static void check (int rc, const char *what)
{
    if (rc) {
        fprintf (stderr, "ends: %s: %s\n", what, hws_strerror (rc));
        exit (1);
    }
}

static hws_client_t *connect_to (const char *endpoint)
{
    hws_client_options_t options;
    hws_client_t *client;
    hws_client_options_init (&options);
    options.endpoint = endpoint;
    check (hws_client_new (&client, &options), "client");
    return client;
}

static void send_records (hws_sender_t *sender)
{
    static const char record[RECORD_BYTES];
    for (int i = 0; i < RECORDS; i++) {
        check (hws_sender_send (sender, record, sizeof record, PATIENCE_MS), "send");
    }
}

static void receive_records (hws_receiver_t *receiver)
{
    hws_event_t event;
    for (int i = 0; i < RECORDS; i += event.kind == HWS_EVENT_RECORD) {
        check (hws_receiver_recv (receiver, &event, PATIENCE_MS), "receive");
    }
}

int main (int count, char *arguments[])
{
    const int rounds = count == 3 ? atoi (arguments[1]) : 0;
    if (rounds < 1) {
        fprintf (stderr, "usage: ends ROUNDS ENDPOINT\n");
        return 2;
    }
    hws_client_t *clients[2] = {connect_to (arguments[2]), connect_to (arguments[2])};
    hws_receiver_t *receiver;
    hws_sender_t *sender;
    check (hws_receiver_open (&receiver, clients[0], "counted", NULL), "open");
    check (hws_sender_attach (&sender, clients[1], "counted", NULL), "attach");

    for (int round = 0; round < rounds; round++) {
        send_records (sender);
        receive_records (receiver);
    }

    check (hws_sender_cancel (sender, "counted", PATIENCE_MS), "cancel");
    hws_sender_destroy (&sender);
    check (hws_receiver_close (receiver, "counted", PATIENCE_MS), "close");
    hws_receiver_destroy (&receiver);
    hws_client_destroy (&clients[0]);
    hws_client_destroy (&clients[1]);
    return 0;
}
