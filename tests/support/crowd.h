/*  A crowd: a program of many senders, for tests that need more of them than it is
 *  reasonable to start programs for.
 *
 *  The test program starts itself again with arguments that its main gives to crowd_main.
 *  A crowd attaches its senders to the anchor, sends one record of each, prints "ready"
 *  and lives until its stdin ends; then it detaches them all.
 */
#ifndef TESTS_CROWD_H
#define TESTS_CROWD_H

#include "tests/support/process.h"

/*  Clients are connections.  */
typedef struct {
    const char *anchor;
    size_t clients;
    size_t senders_each; /* of one client */
    pid_t space;         /* a process whose network namespace it runs in; 0: the test's own */
} crowd_options_t;

/*  The first thing in main: does not return in a crowd.  */
void crowd_main (int argc, char **argv);

/*  Starts one; the broker is HAWSER_BROKER.  */
process_t *crowd_start (const crowd_options_t *options);

#endif
