/*  A crew: one receiver program and several sender programs of files, for tests that make
 *  trouble while records flow. Labels are s0, s1, …; the anchor is "port".
 */
#ifndef TESTS_CREW_H
#define TESTS_CREW_H

#include "tests/support/ledger.h"

typedef struct {
    size_t senders;
    size_t records;              /* of each */
    const char *sender_broker;   /* endpoint for the senders; null: HAWSER_BROKER */
    const char *receiver_broker; /* for the receiver, likewise */
    const char *give_up;         /* of all; null: their default */
    pid_t sender_space;          /* a process whose network namespace the senders run in; 0: none */
} crew_options_t;

typedef struct {
    crew_options_t options;
    process_t *receiver;
    process_t *senders[LEDGER_SENDERS_MAX];
} crew_t;

/*  Starts the receiver, then the senders.  */
void crew_start (crew_t *self, const crew_options_t *options);

/*  Waits until the receiver has printed so many records in all, or a few less: its other events
 *  are lines too.  */
void crew_wait_records (crew_t *self, size_t count);

/*  Waits for their ends: every sender with 0, the receiver with 0, and every record has come
 *  once, in order, and one detached behind it.  */
void crew_expect_whole (crew_t *self);

#endif
