/*  A sender and a receiver of the library's, for tests of the two.  */
#ifndef TESTS_PAIR_H
#define TESTS_PAIR_H

#include "tests/support/fixture.h"

/*  An anchor "a" with one sender, each on a client of its own.  */
typedef struct {
    hws_client_t *clients[2];
    hws_receiver_t *receiver;
    hws_sender_t *sender;
} pair_t;

/*  `options` of the receiver may be null.  */
void pair_open (pair_t *self, const hws_receiver_options_t *options);
void pair_close (pair_t *self);

/*  Receives the next event, which has to be of that kind.  */
void expect_event (hws_receiver_t *receiver, hws_event_kind_t kind, hws_event_t *event);

/*  cmocka setups: a broker with the times of its defaults, so that nobody is judged here, and
 *  small windows, which soon are full.  */
int pair_setup_tcp (void **state);
int pair_setup_ipc (void **state);

#endif
