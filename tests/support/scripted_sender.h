/*  One sender of a session whose broker is scripted: the few steps that stories of outages are made
 *  of.
 */
#ifndef TEST_SCRIPTED_SENDER_H
#define TEST_SCRIPTED_SENDER_H

#include "tests/support/scripted.h"

enum { SENDER_ID = 5, TOKEN_BYTE = 0xab, WIRE = 5 /* of a record of one byte */ };

extern const hws_handle_t s_handle; /* of the anchor, of the epoch that the broker begins with */
extern scripted_t s_broker;
extern hws_session_sender_t s_sender;

hws_session_t *scripted_session (void);

/*  A session that is up; the end of it, and of the sender, if there is one.  */
int scripted_set_up (void **state);
int scripted_tear_down (void **state);

/*  The sender says its first ATTACH. scripted_attach: and is answered.  */
void scripted_ask (hws_session_sender_t sender);
void scripted_attach (void);
void scripted_remove (void);

/*  An answer: `acked` records are consumed, `next` is what the receiver expects.  */
hws_control_t scripted_seat_at (uint64_t acked, uint64_t next);

/*  The program appends records of one byte; or has changed something else.  */
void scripted_send (int count);
void scripted_changed (void);

/*  The receiver has consumed up to here.  */
void scripted_consume (uint64_t acked);

void scripted_expect_end (int result, const char *cause);

/*  ATTACHes that were said so far, and the last of them.  */
unsigned scripted_attaches (void);
const hws_attach_t *scripted_attach_asked (void);

/*  The connection is lost and made again, at the epoch of before or at the next. What was said
 *  before is forgotten.  */
void scripted_come_back (void);
void scripted_restart (void);

void scripted_goaway (void);

/*  Lets the time pass at a broker that lives.  */
void scripted_live (hws_ms_t length_ms);

/*  What was said of streams since the connection was lost, in order, each word once.  */
void scripted_expect_said (const char *const *words, size_t count);

#define EXPECT_SAID(...)                                                                           \
    do {                                                                                           \
        static const char *const said[] = {__VA_ARGS__};                                           \
        scripted_expect_said (said, sizeof said / sizeof *said);                                   \
    } while (0)

#define SCRIPTED_TEST(name)                                                                        \
    cmocka_unit_test_setup_teardown (name, scripted_set_up, scripted_tear_down)

#endif
