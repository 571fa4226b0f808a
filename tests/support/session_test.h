/*  What tests of the session share: three clients of the real engine over a virtual
 *  network and a virtual clock, and the few steps that most stories are made of.
 */
#ifndef TEST_SESSION_TEST_H
#define TEST_SESSION_TEST_H

#include "client/rx_reader.h"
#include "client/session_part.h"
#include "tests/support/network.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { RECEIVER, SENDER, OTHER };

extern network_t s_network; /* begun by `start` */

/*  One receiver with its reader, and what it was shown.  */
typedef struct {
    hws_session_receiver_t core;
    hws_rx_reader_t reader;
    bool is_paused; /* the application reads nothing */
    uint64_t records, bytes, attached, endings, errors, closed;
    uint64_t next[32];            /* by sender id: the count that its next record has to hold */
    bool has_ended[32];           /* by sender id */
    uint64_t clean;               /* endings that senders made themselves */
    hws_event_kind_t last_ending; /* and its cause */
    char last_cause[32];
    char last_reason[64];
    char closed_cause[32];
} receiver_t;

void receiver_notified (hws_session_receiver_t *core);
void sender_notified (hws_session_sender_t *core);

/*  The application reads one event; false when it would have to wait, and then all that it
 *  has read is consumed.  */
bool read_event (receiver_t *self);

/*  The application reads all there is; true when there was something.  */
bool read_all (receiver_t *self);

/*  Passes messages, and lets the application read, until there is nothing more.  */
void settle (receiver_t *receiver);

/*  Lets time pass, with a reading application.  */
void pass (receiver_t *receiver, hws_ms_t length_ms);

void open_anchor (receiver_t *self, const char *name);
void remove_anchor (receiver_t *self);
void attach (hws_session_sender_t *self, int client, const char *name);

/*  Sends a record that holds the count of those before it.  */
int send_record (hws_session_sender_t *self, size_t size);

void detach (hws_session_sender_t *self);
hws_session_t *session (int client);

int start (void **state);
int stop (void **state);

#define TEST(name) cmocka_unit_test_setup_teardown (name, start, stop)

#endif
