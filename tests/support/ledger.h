/*  A ledger of streams: what sender programs are given to send, and what of it receiver programs
 *  have printed (hawser-recv --format json).
 *
 *  The records of a sender are its label and a number from 0 on, one to a line. Within one
 *  receiver every sender has to come in order, without a gap or a repeat, and nothing may follow
 *  its ending; whatever breaks that fails the test at once, with the line.
 */
#ifndef TESTS_LEDGER_H
#define TESTS_LEDGER_H

#include "tests/support/process.h"

#define LEDGER_SENDERS_MAX 128

typedef struct {
    char label[32];
    uint64_t sender;  /* its id */
    size_t records;   /* that came, so the number of the next */
    size_t repeats;   /* that a later receiver was given once more */
    size_t endings;   /* of all receivers */
    char ending[16];  /* the event of the last, "" for none */
    char cause[32];   /* its cause, "" for none */
    size_t next;      /* of the receiver that is read */
    bool is_attached; /* at it */
    bool is_new;      /* at it, no record of it has come */
    bool has_ended;   /* at it */
} ledger_sender_t;

typedef struct {
    ledger_sender_t senders[LEDGER_SENDERS_MAX];
    size_t count;
    char closed[32];     /* cause of the last closed, "" for none */
    bool may_begin_anew; /* at another receiver a sender may have another id: its first ATTACH was
                            not answered when receiver and broker died */
} ledger_t;

/*  Makes a file of `count` records for a sender of that label; returns its path.  */
const char *ledger_input (const char *label, size_t count);

/*  One record of it as a line, for process_write; lives until the next call.  */
const char *ledger_line (const char *label, size_t number);

void ledger_init (ledger_t *self);

/*  Reads all that a receiver has printed. Another receiver of the same anchor, that took over
 *  from it, may be read behind it: it begins each sender at any record up to the next.  */
void ledger_read (ledger_t *self, const process_t *receiver);

/*  Null if nothing of it has come.  */
const ledger_sender_t *ledger_find (const ledger_t *self, const char *label);

/*  Fails unless the sender has so many records, and ended once, so (`cause` "": none).  */
void ledger_expect (const ledger_t *self, const char *label, size_t records, const char *ending,
                    const char *cause);

#endif
