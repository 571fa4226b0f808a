/*  What the files of the model share (model.h).
 */
#ifndef TEST_MODEL_PART_H
#define TEST_MODEL_PART_H

#include "tests/support/model.h"

/*  The broker says something to a client; nothing to one whose connection has ended.  */
__attribute__ ((format (printf, 3, 4))) void model_say (model_t *self, int client,
                                                        const char *format, ...);

/*  Says it to a connection, whoever has it.  */
__attribute__ ((format (printf, 4, 5))) void model_say_to (model_t *self, int client,
                                                           uint32_t connection, const char *format,
                                                           ...);

/*  An answer under the request's verb. Without an id, refusals are an ERROR and Ok is not said.  */
void model_refuse (model_t *self, int client, const char *verb, uint64_t id, const char *code);
void model_ok (model_t *self, int client, const char *verb, uint64_t id);

/*  Everything of the client is away from now on.  */
void model_leave (model_t *self, int client);

/*  ---- Anchors ---- */

/*  Null: there is none, or the name is empty.  */
model_anchor_t *model_anchor_named (model_t *self, const char *name);

/*  What is asked, or what is usual.  */
uint64_t model_value_or (hws_optional_t asked, uint64_t otherwise);
/*  The largest record.  */
uint64_t model_record_bytes (const model_t *self, const model_anchor_t *anchor);

/*  Its receiver is away from now on.  */
void model_anchor_leave (model_t *self, model_anchor_t *anchor);

/*  The receiver, or nobody, reads on: everything ends, and the anchor is gone.  */
void model_anchor_close (model_t *self, uint32_t count, hws_cause_t cause, const char *reason);

/*  Somebody else cancels it.  */
void model_anchor_cancel (model_t *self, uint32_t count, hws_cause_t cause, const char *reason);

/*  Its sender finalizes the exclusive anchor; it got another ending after all.  */
void model_anchor_finalize (model_anchor_t *anchor);
void model_anchor_reopen (model_anchor_t *anchor);

/*  The anchor is gone, its last word is said.  */
void model_anchor_finish (model_t *self, uint32_t count);

/*  A seat has gone.  */
void model_anchor_left (model_t *self, uint32_t count);

/*  Large records that wait get their room, in order of asking.  */
void model_serve (model_t *self, const model_anchor_t *anchor);

/*  ---- What is remembered ---- */

void model_remember (model_t *self, model_tombstone_t tombstone);

/*  What is to be remembered of the seat.  */
model_tombstone_t model_tombstone_for (const model_seat_t *seat);

/*  Of a client's stream or anchor, of a sender's id; or null.  */
const model_tombstone_t *model_tombstone (const model_t *self, bool is_anchor, int client,
                                          uint64_t number);
const model_tombstone_t *model_tombstone_of_sender (const model_t *self, hws_handle_t handle,
                                                    uint64_t sender_id);
bool model_anchor_has_ended (const model_t *self, uint32_t count);

/*  ---- Attaches that wait ---- */

/*  The anchor came, went or has room: those that ask for it try again, in order.  */
void model_retry (model_t *self, uint32_t count, const char *name);

/*  The time of the one at this place is over.  */
void model_wait_over (model_t *self, size_t place);

/*  Whether the anchor of the handle, or the one that an ATTACH asks for, may yet come back.  */
bool model_young_awaits (const model_t *self, hws_handle_t handle);
bool model_young_holds (const model_t *self, const model_attach_t *request);

/*  Nothing comes back any more: who waited for it is told.  */
void model_young_over (model_t *self);

/*  Its token was cancelled; the front that it waits for cannot be bound.  */
void model_wait_cancel (model_t *self, const model_waiting_t *waiting);
void model_wait_fail (model_t *self, uint32_t count, const char *name);

/*  Whether an ATTACH of this stream waits.  */
bool model_is_waiting (const model_t *self, int client, uint64_t session_id);

/*  ---- Tokens ---- */

/*  Something registers, whether it has a token or not; returns its place in the order.  */
uint64_t model_token_register (model_t *self);

/*  Why the token is cancelled, or null: it is not.  */
const char *model_token_reason (model_t *self, uint64_t token);

/*  Old cancels are forgotten, at most once an interval.  */
void model_token_sweep (model_t *self);
hws_ms_t model_token_due (const model_t *self);

/*  ---- Fronts ---- */

/*  Whether the client is seated where it came.  */
bool model_front_seats (const model_t *self, const model_anchor_t *anchor, int client);

/*  Tells it where to go and returns null; or the word of a refusal, "would_block" when it
 *  has to wait until the front is bound.  */
const char *model_front_direct (model_t *self, model_anchor_t *anchor, int client, uint64_t id);
/*  Nobody is sent there any more.  */
void model_front_end (model_t *self, model_anchor_t *anchor);

/*  ---- Seats ---- */

model_seat_t *model_seat_of_sender (model_t *self, uint32_t anchor, uint64_t sender_id);

/*  How many the anchor has, with or without those that have ended.  */
size_t model_seats_of (const model_t *self, uint32_t anchor, bool only_live);

/*  A GRANT is due that says something new.  */
static inline void model_grant (model_seat_t *seat)
{
    seat->is_granted = true;
    seat->is_again = false;
}

/*  Whether the anchor's budget has room for another sender's floor.  */
bool model_has_room (const model_t *self, const model_anchor_t *anchor);

/*  The first limits of a seat; those that it comes back to; what becomes of them when
 *  records came, and with an acknowledgement, before which so many bytes were not acknowledged.  */
void model_window_begin (const model_t *self, model_seat_t *seat);
void model_window_resume (model_t *self, model_seat_t *seat);
void model_window_used (model_t *self, model_seat_t *seat);
void model_window_acked (model_t *self, model_seat_t *seat, uint64_t unacked_bytes);

/*  Tells the receiver of it; the same, and what it has missed; makes the sender begin again
 *  at the next number.  */
void model_announce (model_t *self, const model_seat_t *seat);
void model_replay (model_t *self, model_seat_t *seat);
void model_rewind (model_t *self, model_seat_t *seat);

/*  The broker ends it, if nobody has, or in place of the sender's own ending.  */
void model_end (model_t *self, model_seat_t *seat, uint8_t type, hws_cause_t cause,
                const char *reason, bool is_override);

/*  Takes it out, without a word.  */
void model_seat_remove (model_t *self, model_seat_t *seat);

/*  When its client is judged, and that.  */
hws_ms_t model_seat_due (const model_t *self, const model_seat_t *seat);
void model_seat_expire (model_t *self, model_seat_t *seat);

#endif
