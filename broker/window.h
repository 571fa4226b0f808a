/*  Windows: how far each sender may run ahead of the receiver (docs/protocol.md, "Windows").
 *
 *  An anchor's budget is `buffer_bytes`. Half of it is kept for floors, one for each live seat;
 *  out of the rest windows are lent to seats that use theirs up, in equal shares, and room is
 *  found for records larger than a window. What a seat may have unacknowledged is reserved for
 *  it, and all reservations together never exceed the budget. A limit is never taken back: the
 *  longest unused seats are asked with RETURN, and lower their own.
 *
 *  Nothing here walks over an anchor's seats. Seats that have something lent stand in `lent`,
 *  in order of last use; one leaves that list when it is asked, or has nothing to give, and
 *  comes back when more of it is acknowledged. So each entry is looked at once.
 */
#ifndef HWS_WINDOW_H
#define HWS_WINDOW_H

#include "broker/seat.h"

/*  Whether another seat's floor fits.  */
bool hws_window_has_room (const hws_anchor_t *anchor);

/*  The seat is new and gets its floor. Room was checked.  */
void hws_window_begin (hws_seat_t *seat);

/*  Whether so many bytes beyond what is acknowledged fit, of a seat to come; with `is_live` its
 *  floor does too.  */
bool hws_window_fits (const hws_anchor_t *anchor, uint64_t bytes, bool is_live);

/*  The live seat is made of where its receiver stands. It fits.  */
void hws_window_restore (hws_seat_t *seat);

/*  The client attached again: the answer tells the limits, so it need not give back any more,
 *  and leaves room for at least one byte.  */
void hws_window_resume (hws_seat_t *seat);

/*  The client is away: it cannot be asked, and waits for nothing.  */
void hws_window_suspend (hws_seat_t *seat);

/*  The seat is about to be exiting: what it may send besides its ending is free for others.  */
void hws_window_exit (hws_seat_t *seat);

/*  The exiting seat keeps what the receiver may still hold of it.  */
void hws_window_settle (hws_seat_t *seat);

/*  The seat is about to be freed.  */
void hws_window_end (hws_seat_t *seat);

/*  Records of a live seat were forwarded. If they used its window up it gets its share, as far
 *  as nobody has to be asked for it, and GRANT is said.  */
void hws_window_used (hws_engine_t *engine, hws_seat_t *seat);

/*  More of a live seat is acknowledged, of `unacked_bytes` before that. Its limits move on, to
 *  its share if it used up what it had, and others are asked for what it lacks. The caller says
 *  GRANT.  */
void hws_window_acked (hws_engine_t *engine, hws_seat_t *seat, uint64_t unacked_bytes);

/*  A live seat's client said WINDOW: it gives back, or has a large record. Returns 0, or
 *  HWS_EPROTOCOL for a record that never fits.  */
int hws_window_said (hws_engine_t *engine, hws_seat_t *seat, const hws_window_t *window);

/*  Makes room for large records that wait, in order of asking.  */
void hws_window_serve (hws_engine_t *engine, hws_anchor_t *anchor);

#endif
