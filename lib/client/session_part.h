/*  What the files of the session share with each other; nobody else includes this.
 *
 *  session.c has the connection and time; session_liveness.c the pulse; session_again.c what is
 *  said again on a new connection; session_request.c requests and the outbox; session_attach.c how
 *  a stream begins, session_open.c how an anchor does; session_sender.c and session_receiver.c what
 *  the broker and the application say of one stream or anchor; session_anchor.c a sender's cancel
 *  of its anchor; session_ended.c what ended otherwise than clean; session_leave.c how a receiver
 *  leaves its anchor; session_token.c the cancel tokens; session_batch.c the batches, in and out;
 * session_flush.c what waits to leave together.
 */
#ifndef HWS_SESSION_PART_H
#define HWS_SESSION_PART_H

#include "client/session.h"

/*  ---- session.c ---- */

/*  The last word on what went wrong: the reason, or what the code says.  */
void hws_session_set_error (hws_session_t *self, int code, const char *reason);

/*  Whether there was a connection and is none: nobody answers.  */
static inline bool hws_session_is_away (const hws_session_t *self)
{
    return self->is_lost_since_up;
}

/*  Whether the broker of this epoch has not yet told what it knows of the stream, which an earlier
 *  one had seated.  */
static inline bool hws_session_is_resuming (const hws_session_sender_t *sender)
{
    return sender->tx.sender_id != 0 && sender->epoch != sender->session->epoch;
}

/*  Whether a refusal of a stream that is to go on ends nothing: it is asked again, after
 *  HWS_ATTACH_AGAIN_MS.  */
static inline bool hws_session_is_not_now (int code)
{
    return code == HWS_ELIMIT || code == HWS_EBUSY || code == HWS_EBUFFER_FULL;
}

/*  ---- session_liveness.c ---- */

/*  A stream has told its heartbeat interval: pings and judgement may be due earlier.  */
void hws_session_add_interval (hws_session_t *self, uint64_t interval_ms);

/*  The connection is up: sets the time of the first pulse. The pulse is due: pings, judges.  */
void hws_session_set_pulse (hws_session_t *self);
void hws_session_pulse (hws_session_t *self, hws_ms_t now);

/*  ---- session_again.c ---- */

/*  The connection is lost. A new one is up, at the broker of before, perhaps in a new epoch.  */
void hws_session_suspend (hws_session_t *self, hws_ms_t now, bool was_up);
void hws_session_resume (hws_session_t *self, hws_ms_t now, bool is_new_epoch);

/*  The connection is lost: what waits for nothing but the broker's word on its cancel ends
 *  here.  */
void hws_session_forsake (hws_session_t *self);
void hws_session_end_all (hws_session_t *self, uint16_t cause, const char *reason);
void hws_session_refuse_new (hws_session_t *self, int code, const char *reason);

/*  The broker is leaving. Nothing ends: what is seated goes on here as long as the connection
 *  does, and what is not waits for the next one.  */
void hws_session_hold_new (hws_session_t *self, hws_ms_t now);

/*  ---- session_request.c ---- */

void hws_request_init (hws_request_t *self, hws_about_t about, void *owner);

/*  Puts a control message in the outbox. False without memory: it is as if it had been lost,
 *  and a request is asked again when it is not answered.  */
bool hws_session_say (hws_session_t *self, const hws_control_t *control);

/*  The same for what nobody would miss, and say again: without memory the connection is lost, too,
 *  and the broker lets go of what is not named on the next.  */
void hws_session_say_once (hws_session_t *self, const hws_control_t *control);

/*  The same for a batch of at most hws_session_batch_bytes, from malloc: it leaves behind what was
 *  said before. It is freed here, also without memory.  */
bool hws_session_say_batch (hws_session_t *self, uint8_t *batch, size_t size);

/*  The same for a request, with an id of its own, to be asked again after `retry_ms`.  */
bool hws_session_ask (hws_session_t *self, hws_ms_t now, hws_request_t *request,
                      hws_control_t *control, hws_ms_t retry_ms);

/*  The request is answered, or nobody wants the answer any more.  */
void hws_session_settle (hws_session_t *self, hws_request_t *request);

/*  The request that is answered here, or null. Under another verb it is no answer: the
 *  members would be taken for others.  */
hws_request_t *hws_session_find_request (const hws_session_t *self, const hws_control_t *control);

/*  Takes the next message out of the outbox; a batch is written into `buffer`. False when there is
 *  none.  */
bool hws_session_pop_outbox (hws_session_t *self, uint8_t *buffer, hws_action_t *out);

void hws_session_drop_outbox (hws_session_t *self);

/*  ---- session_attach.c ---- */

/*  Says the sender's ATTACH, and what is early behind it. One that the broker does not know is
 *  attached again, but not at full speed if the broker says so after each attach.  */
void hws_session_ask_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);
void hws_session_attach_again (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  Sets the time when ATTACH is asked again, or given up; when a sender that waits for its first
 *  answer gives the broker up.  */
void hws_session_await_answer (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);
void hws_session_await_broker (hws_session_t *self, hws_session_sender_t *sender);

void hws_session_attach_answered (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                  const hws_control_t *control);
void hws_session_attach_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  The broker is leaving: who has no seat yet waits for the next one.  */
void hws_session_hold_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  HELLO was said on a first connection: an early sender asks for its seat without waiting for
 *  the answer (docs/protocol.md, "Connections", rule 4).  */
void hws_session_attach_behind_hello (hws_session_t *self, hws_ms_t now,
                                      hws_session_sender_t *sender);

/*  An ATTACH was answered that nobody waits for any more: its seat, if it is no living
 *  sender's, is cancelled. `request` is the id in the answer.  */
void hws_session_stray_seat (hws_session_t *self, uint64_t request, const hws_attach_ok_t *answer);

/*  ---- session_sender.c ---- */

/*  Ends the stream, unless it has ended.  */
void hws_session_tell_end (hws_session_sender_t *sender, int result, const char *cause,
                           const char *reason);

/*  It has ended: takes the sender out of everything that would still act for it, and tells.  */
void hws_session_finish_sender (hws_session_sender_t *sender);

/*  Takes the sender out of the session.  */
void hws_session_take_out (hws_session_sender_t *sender);

/*  The broker's word for a cause, or that of one which this version does not know.  */
const char *hws_session_known_cause (const char *word);

/*  The program's cancel of its stream.  */
void hws_session_say_own_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  Cancels a seat that nobody here uses. Without a sender id there is none: the CANCEL would be
 *  of the whole anchor.  */
void hws_session_disown (hws_session_t *self, const hws_attach_ok_t *answer, const char *reason);

void hws_session_cancel_answered (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                  const hws_control_t *control);
void hws_session_cancel_due (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);
void hws_session_want_due (hws_session_sender_t *sender);
void hws_session_granted (hws_session_t *self, const hws_grant_t *grant);
void hws_session_stream_cancelled (hws_session_t *self, hws_ms_t now,
                                   const hws_stream_cancel_t *message);

/*  Puts the sender in `ready` if it has runs and is not there. True when it was not.  */
bool hws_session_file_ready (hws_session_sender_t *sender);

/*  The sender's part of: a lost connection, a new one, the end of all streams, a HELLO
 *  that was refused.  */
void hws_session_suspend_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);
void hws_session_resume_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                bool is_new_epoch);
void hws_session_forsake_sender (hws_session_sender_t *sender);
void hws_session_end_sender (hws_session_sender_t *sender, uint16_t cause, const char *reason);

/*  ---- session_anchor.c ---- */

/*  A sender's CANCEL of its anchor: it was answered; it is to be said, or said again; the
 *  program is told what became of it, of which the first word counts.  */
void hws_session_cancel_anchor_answered (hws_session_t *self, hws_ms_t now,
                                         hws_session_sender_t *sender,
                                         const hws_control_t *control);
void hws_session_cancel_anchor_due (hws_session_t *self, hws_ms_t now,
                                    hws_session_sender_t *sender);
void hws_session_tell_anchor_result (hws_session_sender_t *sender, int result);

/*  It is owed, and may be said now: the broker heeds only who has a sender attached.  */
void hws_session_cancel_anchor_owed (hws_session_t *self, hws_ms_t now,
                                     hws_session_sender_t *sender);

/*  The sender has ended: what waited for its seat waits no longer.  */
void hws_session_cancel_anchor_soon (hws_session_sender_t *sender);

/*  ---- session_ended.c ---- */

/*  Remembers how the stream has ended, unless it was seated nowhere or its receiver has all of it.
 *  A broker that has not answered it yet is told so at once.  */
void hws_session_remember_ended (hws_session_t *self, const hws_session_sender_t *sender);

void hws_session_ended_answered (hws_session_t *self, hws_ms_t now, hws_request_t *request,
                                 const hws_control_t *control);
void hws_session_ended_due (hws_session_t *self, hws_ms_t now, hws_request_t *request);

/*  A new connection, or the last word before BYE: says what is owed. The end, or another broker:
 *  forgets all.  */
void hws_session_tell_ended (hws_session_t *self, hws_ms_t now, bool is_new_epoch);
void hws_session_forget_ended (hws_session_t *self);

/*  ---- session_open.c ---- */

/*  Sets the time when a first answer, which cannot come now, is not waited for any more.  */
void hws_session_await_open (hws_session_t *self, hws_session_receiver_t *receiver);

/*  A new connection: OPEN is said again, at a broker of another epoch with all that is known.  */
void hws_session_open_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);

/*  An OPEN that is to tell where the senders stand, and is not answered, is said again with where
 *  they stand now.  */
void hws_session_tell_positions (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver);

/*  The anchor was seen to miss something: it is opened again.  */
void hws_session_reopen (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);

void hws_session_open_answered (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver,
                                const hws_control_t *control);
void hws_session_open_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);

/*  An OPEN was answered that nobody waits for any more: its anchor, if it is no
 *  receiver's, is cancelled. Likewise.  */
void hws_session_stray_anchor (hws_session_t *self, uint64_t request, hws_handle_t handle);

/*  ---- session_receiver.c ---- */

/*  The anchor is gone.  */
void hws_session_finish_receiver (hws_session_receiver_t *receiver, uint16_t cause,
                                  const char *reason);

void hws_session_close_answered (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver, const hws_control_t *control);
void hws_session_close_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);
void hws_session_anchor_closed (hws_session_t *self, const hws_anchor_closed_t *message);

/*  The receiver's part of: a lost connection, a new one, the CANCEL that it owes then, the end of
 *  all streams.  */
void hws_session_suspend_receiver (hws_session_t *self, hws_ms_t now,
                                   hws_session_receiver_t *receiver);
void hws_session_resume_receiver (hws_session_t *self, hws_ms_t now,
                                  hws_session_receiver_t *receiver, bool is_new_epoch);
void hws_session_close_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);
void hws_session_end_receiver (hws_session_receiver_t *receiver, uint16_t cause,
                               const char *reason);

/*  The anchor was not opened, by the broker's word or by this client's.  */
void hws_session_refuse_receiver (hws_session_receiver_t *receiver, int code, const char *reason);

/*  ---- session_leave.c ---- */

/*  What a receiver that leaves has to hear: its OPEN was answered anew; an answer came; or none
 *  did.  */
void hws_session_leave_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);
void hws_session_leave_answered (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver);
void hws_session_leave_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);

/*  In place of BYE.  */
void hws_session_part (hws_session_t *self, hws_ms_t now);

/*  ---- session_token.c ---- */

void hws_session_token_answered (hws_session_t *self, hws_request_t *request,
                                 const hws_control_t *control);
void hws_session_token_due (hws_session_t *self, hws_ms_t now, hws_request_t *request);

/*  A lost connection; a new one, to the broker of before or to another; a HELLO that was
 *  refused; the end.  */
void hws_session_suspend_tokens (hws_session_t *self, hws_ms_t now, bool was_up);
void hws_session_resume_tokens (hws_session_t *self, hws_ms_t now, bool is_same);
void hws_session_refuse_tokens (hws_session_t *self, int code);
void hws_session_forget_tokens (hws_session_t *self);

/*  ---- session_flush.c ---- */

/*  With a linger: counts what the sender has appended with what waits, and lets it go when that
 *  is a batch. True when the thread has to know of it.  */
bool hws_session_hold (hws_session_sender_t *sender);

/*  The sender has nothing that waits any more.  */
void hws_session_unhold (hws_session_sender_t *sender);

/*  Sets the time for what waits, if it has none yet.  */
void hws_session_linger (hws_session_t *self, hws_ms_t now);

/*  ---- session_batch.c ---- */

/*  Each writes one batch and returns its size, 0 for none. The last one's may lie elsewhere,
 *  whole: then `out` says so, and nothing is written.  */
size_t hws_session_pop_acks (hws_session_t *self, uint8_t *buffer, size_t room);
size_t hws_session_pop_wants (hws_session_t *self, hws_ms_t now, uint8_t *buffer, size_t room);
size_t hws_session_pop_data (hws_session_t *self, uint8_t *buffer, size_t room, hws_action_t *out);

/*  Keeps what a receiver that goes has acknowledged and not yet said: its CANCEL, which may
 *  still wait in the outbox, must not come before. `drop` frees it.  */
void hws_session_keep_acks (hws_session_t *self, hws_rx_t *rx);
void hws_session_drop_acks (hws_session_t *self);

/*  Puts the CANCELs of single senders that are due in the outbox. All acknowledgements are
 *  taken: nobody is busy any more.  */
void hws_session_say_cancels (hws_session_t *self);

#endif
