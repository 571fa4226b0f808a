/*  A session whose broker is the test: what it asks is remembered, and answered when the
 *  test says so, with what the test says.
 *
 *  What it does and says is collected as the words of the state tables
 *  (docs/protocol.md, "State tables").
 */
#ifndef TEST_SCRIPTED_H
#define TEST_SCRIPTED_H

#include "client/session.h"
#include "tests/support/machine.h"

#define SCRIPTED_CONNECT_MS 5000
#define SCRIPTED_GIVE_UP_MS 60000
#define SCRIPTED_POSITIONS  512

typedef struct {
    hws_session_t session;
    hws_ms_t now;
    bool is_refused;                              /* connections cannot be made */
    uint64_t broker_id;                           /* of the broker … */
    uint64_t epoch;                               /*   … and its epoch */
    uint64_t asked_id[HWS_VERB_COUNT];            /* of the last request of each verb; 0: none */
    hws_control_t asked[HWS_VERB_COUNT];          /* that request */
    unsigned asked_count[HWS_VERB_COUNT];         /* so many so far */
    hws_position_t positions[SCRIPTED_POSITIONS]; /* behind the last OPEN; LAST has come with: */
    size_t position_count;
    words_t of_connection; /* said or done, of the connection itself */
    words_t of_streams;    /* said, of senders and anchors */
    uint8_t buffer[HWS_BATCH_BYTES_DEFAULT];
} scripted_t;

/*  A session with a connection to make.  */
void scripted_begin (scripted_t *self);

/*  The session's senders and receivers have been removed.  */
void scripted_end (scripted_t *self);

/*  Lets the session do and say all it has.  */
void scripted_pump (scripted_t *self);

/*  Lets the time pass, deadline by deadline.  */
void scripted_pass (scripted_t *self, hws_ms_t length_ms);

/*  The broker says something by itself; or answers the last request of the message's verb,
 *  Ok or, with a code, not.  */
void scripted_say (scripted_t *self, hws_control_t message);
void scripted_answer (scripted_t *self, hws_control_t message);
void scripted_refuse (scripted_t *self, hws_verb_t verb, int code);

/*  The broker sends one run, or one grant.  */
void scripted_run (scripted_t *self, const hws_run_t *run);
void scripted_grant (scripted_t *self, const hws_grant_t *grant);

/*  HELLO is answered Ok; RESYNC comes before that; the connection is lost, or made again
 *  and HELLO answered.  */
void scripted_welcome (scripted_t *self);
void scripted_resync (scripted_t *self);
void scripted_lose (scripted_t *self);
void scripted_return (scripted_t *self);

#endif
