/*  A broker that says what a test wants: it greets every client, answers PING and BYE, and
 *  leaves ATTACH to the test. On a thread of its own, at a free port of loopback.
 */
#ifndef TESTS_FAKE_BROKER_H
#define TESTS_FAKE_BROKER_H

#include "proto/control.h"

#define FAKE_ATTACHES_MAX 16

typedef struct fake_broker fake_broker_t;

/*  Makes the answer to the ATTACH `number` (from 1), on the broker's thread, which does not
 *  assert. `answer` is a refusal (HWS_FORM_ERR) until it says otherwise.  */
typedef void fake_attach_t (const fake_broker_t *broker, int number, hws_control_t *answer);

fake_broker_t *fake_broker_start (fake_attach_t *on_attach);

/*  Stops and frees; sets `*self` to null.  */
void fake_broker_stop (fake_broker_t **self);

const char *fake_broker_endpoint (const fake_broker_t *self);

/*  How many times a client said HELLO.  */
int fake_broker_hellos (const fake_broker_t *self);

/*  How many messages with records came, once it is so many, or after a while.  */
int fake_broker_batches (fake_broker_t *self, int count);

/*  How many ATTACHes came, and what the one of that number (from 1) asked for.  */
int fake_broker_attaches (const fake_broker_t *self);
const hws_attach_t *fake_broker_attach (const fake_broker_t *self, int number);

/*  Makes of the answer that the anchor is at `endpoint`; that the sender has a seat.  */
void fake_answer_elsewhere (hws_control_t *answer, const char *endpoint);
void fake_answer_seat (hws_control_t *answer);

#endif
