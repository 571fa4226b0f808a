#include "broker/window.h"

#include "base/assert.h"
#include "broker/engine_state.h"

/*  ---- The account ---- */

static uint64_t later (uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t sooner (uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*  What is left of `a` without `b`.  */
static uint64_t beyond (uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t floor_of (const hws_seat_t *seat)
{
    return seat->anchor->window_bytes_min;
}

static uint64_t lent_to (const hws_seat_t *seat)
{
    return seat->state == HWS_SEAT_EXITING ? 0 : beyond (seat->reserved_bytes, floor_of (seat));
}

static void reserve (hws_seat_t *seat, uint64_t bytes)
{
    hws_anchor_t *const anchor = seat->anchor;
    anchor->lent_bytes -= lent_to (seat);
    anchor->lent_count -= lent_to (seat) > 0;
    anchor->reserved_bytes += bytes - seat->reserved_bytes;
    seat->reserved_bytes = bytes;
    anchor->lent_bytes += lent_to (seat);
    anchor->lent_count += lent_to (seat) > 0;
    hws_assert (anchor->reserved_bytes <= anchor->buffer_bytes);
}

/*  A live seat needs everything up to its limit, and its floor also while it may not be told
 *  of it.  */
static void reserve_live (hws_seat_t *seat)
{
    reserve (seat, later (beyond (seat->limit_bytes, seat->acked_bytes), floor_of (seat)));
}

/*  What may be given out beside the floors, those of seats to come included.  */
static uint64_t room_of (const hws_anchor_t *anchor)
{
    const uint64_t floors = anchor->live_count * anchor->window_bytes_min;
    const uint64_t kept = beyond (anchor->buffer_bytes / 2, floors);
    return beyond (anchor->buffer_bytes - anchor->reserved_bytes, kept);
}

bool hws_window_has_room (const hws_anchor_t *anchor)
{
    const uint64_t floor = anchor->window_bytes_min;
    return (anchor->live_count + 1) * floor <= anchor->buffer_bytes / 2 &&
           floor <= anchor->buffer_bytes - anchor->reserved_bytes;
}

bool hws_window_fits (const hws_anchor_t *anchor, uint64_t bytes, bool is_live)
{
    const uint64_t needed = is_live ? later (bytes, anchor->window_bytes_min) : bytes;
    return needed <= anchor->buffer_bytes - anchor->reserved_bytes;
}

/*  ---- Limits ---- */

/*  The seat was used, or is there again: it is the last to be asked.  */
static void stand_last (hws_seat_t *seat)
{
    hws_list_remove (&seat->in_lent);
    if (seat->state == HWS_SEAT_ATTACHED && !seat->is_asked && lent_to (seat) > 0) {
        hws_list_append (&seat->anchor->lent, &seat->in_lent);
    }
}

/*  Moves the limits on to the floor beyond what is acknowledged. They stand still from RETURN to
 *  WINDOW, for the client could not be told.  */
static void extend (hws_seat_t *seat)
{
    if (!seat->is_asked) {
        seat->limit_bytes = later (seat->limit_bytes, seat->acked_bytes + floor_of (seat));
        seat->limit_seq = later (seat->limit_seq, seat->acked_seq + seat->anchor->window_records);
    }
    reserve_live (seat);
}

/*  RETURN. Its limit_seq was in no GRANT before, so the WINDOW that names it was made after it
 *  was read: one that is late cannot be taken for the answer.  */
static void ask (hws_engine_t *engine, hws_seat_t *seat)
{
    seat->is_asked = true;
    seat->grant_flags |= HWS_GRANT_RETURN;
    seat->limit_seq++;
    engine->stats.returns++;
    hws_out_grant (engine, seat);
}

/*  Asks those that were not used for the longest time, until they have `bytes` to give; not
 *  the one that it is for.  */
static void recall (hws_engine_t *engine, hws_anchor_t *anchor, uint64_t bytes,
                    const hws_seat_t *taker)
{
    for (hws_link_t *link = anchor->lent.head, *next; link && bytes > 0; link = next) {
        next = link->next;
        hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_lent);
        if (seat == taker) {
            continue;
        }
        hws_list_remove (link);
        const uint64_t needed = later (seat->high_bytes, seat->acked_bytes + floor_of (seat));
        const uint64_t unused = beyond (seat->limit_bytes, needed);
        if (unused > 0) {
            ask (engine, seat);
        }
        bytes = beyond (bytes, unused);
    }
}

/*  The window of a seat that borrows: its floor and an equal share of what there is to lend.  */
static uint64_t target_of (const hws_seat_t *seat)
{
    const hws_anchor_t *const anchor = seat->anchor;
    const uint64_t takers = anchor->lent_count + (lent_to (seat) == 0);
    const uint64_t share = (anchor->lent_bytes + room_of (anchor)) / takers;
    return sooner (floor_of (seat) + share, anchor->window_bytes_max);
}

/*  Lends to a seat of which half a floor or more was on its way and half a window or less is
 *  left: who sends little at a time is content with its floor. Returns what it lacks then.  */
static uint64_t lend (hws_seat_t *seat, uint64_t unacked_bytes, uint64_t unused_bytes)
{
    const hws_anchor_t *const anchor = seat->anchor;
    if (seat->is_asked || seat->state != HWS_SEAT_ATTACHED || anchor->wants.count > 0 ||
        unacked_bytes < floor_of (seat) / 2) {
        return 0;
    }
    const uint64_t target = target_of (seat);
    const uint64_t wanted = beyond (seat->acked_bytes + target, seat->limit_bytes);
    if (wanted == 0 || unused_bytes > target / 2) {
        return 0;
    }
    const uint64_t given = sooner (wanted, room_of (anchor));
    seat->limit_bytes += given;
    reserve_live (seat);
    stand_last (seat);
    return wanted - given;
}

void hws_window_used (hws_engine_t *engine, hws_seat_t *seat)
{
    const uint64_t unused_bytes = beyond (seat->limit_bytes, seat->next_bytes);
    if (unused_bytes > floor_of (seat) / 2) {
        return;
    }
    const uint64_t before = seat->limit_bytes;
    lend (seat, beyond (seat->next_bytes, seat->acked_bytes), unused_bytes);
    if (seat->limit_bytes > before) {
        hws_out_grant (engine, seat);
    }
}

void hws_window_acked (hws_engine_t *engine, hws_seat_t *seat, uint64_t unacked_bytes)
{
    const uint64_t unused_bytes = beyond (seat->limit_bytes, seat->next_bytes);
    extend (seat);
    stand_last (seat);
    recall (engine, seat->anchor, lend (seat, unacked_bytes, unused_bytes), seat);
}

/*  ---- Large records ---- */

static void allow (hws_engine_t *engine, hws_seat_t *seat)
{
    const uint64_t part_bytes =
        engine->options.limits.batch_bytes - HWS_BATCH_HEADER_SIZE - HWS_RUN_HEADER_SIZE;
    const uint64_t parts = seat->want_bytes / part_bytes + 2;
    hws_list_remove (&seat->in_wants);
    seat->limit_bytes = later (seat->limit_bytes, seat->acked_bytes + seat->want_bytes);
    seat->limit_seq = later (seat->limit_seq, seat->acked_seq + parts);
    seat->want_bytes = 0;
    reserve_live (seat);
    stand_last (seat);
    hws_out_grant (engine, seat);
}

void hws_window_serve (hws_engine_t *engine, hws_anchor_t *anchor)
{
    hws_link_t *link;
    while ((link = anchor->wants.head)) {
        hws_seat_t *const seat = hws_container_of (link, hws_seat_t, in_wants);
        const uint64_t fits = room_of (anchor) + seat->reserved_bytes;
        if (seat->want_bytes > fits) {
            recall (engine, anchor, seat->want_bytes - fits, seat);
            return;
        }
        if (seat->is_asked) {
            return; /* it is told when it has answered */
        }
        allow (engine, seat);
    }
}

static int want (hws_engine_t *engine, hws_seat_t *seat, uint64_t bytes)
{
    hws_anchor_t *const anchor = seat->anchor;
    if (bytes > anchor->buffer_bytes / 2) {
        return HWS_EPROTOCOL;
    }
    seat->want_bytes = bytes;
    if (hws_link_is_in_list (&seat->in_wants)) {
        return 0;
    }
    if (!seat->is_asked && seat->limit_bytes - seat->acked_bytes >= bytes) {
        allow (engine, seat); /* it fits, or the answer was lost */
        return 0;
    }
    hws_list_append (&anchor->wants, &seat->in_wants);
    return 0;
}

/*  ---- WINDOW ---- */

/*  The answer to RETURN. A sender can give back neither its floor nor what it has sent.  */
static void give_back (hws_engine_t *engine, hws_seat_t *seat, uint64_t limit_bytes)
{
    const uint64_t least = later (seat->high_bytes, seat->acked_bytes + floor_of (seat));
    seat->limit_bytes = sooner (seat->limit_bytes, later (limit_bytes, least));
    seat->is_asked = false;
    seat->grant_flags &= ~HWS_GRANT_RETURN;
    extend (seat);
    hws_out_grant (engine, seat);
}

int hws_window_said (hws_engine_t *engine, hws_seat_t *seat, const hws_window_t *window)
{
    hws_anchor_t *const anchor = seat->anchor;
    const bool had_room = hws_window_has_room (anchor);
    if (seat->is_asked && window->limit_seq >= seat->limit_seq) {
        give_back (engine, seat, window->limit_bytes);
    }
    const int rc = window->want_bytes > 0 ? want (engine, seat, window->want_bytes) : 0;
    hws_window_serve (engine, anchor);
    if (!had_room && hws_window_has_room (anchor)) {
        hws_waiting_retry (engine, anchor);
    }
    return rc;
}

/*  ---- Life ---- */

void hws_window_begin (hws_seat_t *seat)
{
    extend (seat);
}

void hws_window_restore (hws_seat_t *seat)
{
    seat->limit_seq = seat->next_seq; /* all that came may be rewound */
    seat->limit_bytes = seat->next_bytes;
    extend (seat);
}

void hws_window_resume (hws_seat_t *seat)
{
    hws_anchor_t *const anchor = seat->anchor;
    if (seat->state == HWS_SEAT_EXITING) {
        return;
    }
    seat->is_asked = false;
    extend (seat);
    /* A full window leaves room for one byte, which nothing but an error of one letter
       fits in: an answer with a budget of 0 would mean the default. */
    if (seat->limit_bytes == seat->next_bytes && anchor->reserved_bytes < anchor->buffer_bytes) {
        seat->limit_bytes++;
        reserve_live (seat);
    }
    stand_last (seat);
}

/*  What it wants it says again when it is back.  */
void hws_window_suspend (hws_seat_t *seat)
{
    hws_list_remove (&seat->in_lent);
    hws_list_remove (&seat->in_wants);
    seat->is_asked = false;
    seat->grant_flags &= ~HWS_GRANT_RETURN;
}

void hws_window_exit (hws_seat_t *seat)
{
    hws_list_remove (&seat->in_lent);
    hws_list_remove (&seat->in_wants);
    seat->is_asked = false;
    seat->grant_flags &= ~HWS_GRANT_RETURN;
    reserve (seat, floor_of (seat)); /* nothing is lent to it any more */
}

/*  Its ending may lie beyond the limit, and counts in no budget.  */
void hws_window_settle (hws_seat_t *seat)
{
    const uint64_t end_bytes = sooner (seat->limit_bytes, seat->high_bytes);
    reserve (seat, beyond (end_bytes, seat->acked_bytes));
}

void hws_window_end (hws_seat_t *seat)
{
    hws_list_remove (&seat->in_lent);
    hws_list_remove (&seat->in_wants);
    reserve (seat, 0);
}
