#include "tests/support/model_part.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

/*  ---- Sums (clause 9) ---- */

static uint64_t floor_of (const model_t *self)
{
    return self->options.anchors.window_bytes_min;
}

static uint64_t minus (uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void raise (uint64_t *limit, uint64_t to)
{
    *limit = to > *limit ? to : *limit;
}

/*  What the receiver may have to hold of it: up to its limit while it lives, then up to
 *  what was forwarded.  */
static uint64_t reserved (const model_t *self, const model_seat_t *seat)
{
    if (seat->has_ended) {
        const bool is_within = seat->high_bytes < seat->limit_bytes;
        return minus (is_within ? seat->high_bytes : seat->limit_bytes, seat->acked_bytes);
    }
    const uint64_t bytes = minus (seat->limit_bytes, seat->acked_bytes);
    return bytes > floor_of (self) ? bytes : floor_of (self);
}

static uint64_t lent (const model_t *self, const model_seat_t *seat)
{
    return seat->has_ended ? 0 : reserved (self, seat) - floor_of (self);
}

static uint64_t reserved_of (const model_t *self, const model_anchor_t *anchor)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < self->seat_count; i++) {
        const model_seat_t *const seat = &self->seats[i];
        sum += seat->anchor == anchor->count ? reserved (self, seat) : 0;
    }
    return sum;
}

/*  Half of the budget is for floors, whether they are taken or not.  */
static uint64_t room (const model_t *self, const model_anchor_t *anchor)
{
    const uint64_t floors = model_seats_of (self, anchor->count, true) * floor_of (self);
    return minus (anchor->buffer_bytes - reserved_of (self, anchor),
                  minus (anchor->buffer_bytes / 2, floors));
}

bool model_has_room (const model_t *self, const model_anchor_t *anchor)
{
    const uint64_t floors = (model_seats_of (self, anchor->count, true) + 1) * floor_of (self);
    return floors <= anchor->buffer_bytes / 2 &&
           reserved_of (self, anchor) + floor_of (self) <= anchor->buffer_bytes;
}

/*  ---- Lending ---- */

static void extend (const model_t *self, model_seat_t *seat)
{
    if (!seat->is_asked) {
        raise (&seat->limit_seq, seat->acked_seq + self->options.anchors.window_records);
        raise (&seat->limit_bytes, seat->acked_bytes + floor_of (self));
    }
}

void model_window_begin (const model_t *self, model_seat_t *seat)
{
    extend (self, seat);
}

/*  Who was used last is asked last.  */
static void note_use (model_t *self, model_seat_t *seat)
{
    const bool may_be_asked = !seat->is_away && !seat->has_ended && !seat->is_asked;
    seat->use_number = may_be_asked && lent (self, seat) > 0 ? ++self->use_count : 0;
}

void model_window_resume (model_t *self, model_seat_t *seat)
{
    const model_anchor_t *const anchor = model_anchor (self, seat->anchor);
    if (seat->has_ended) {
        return;
    }
    seat->is_asked = false;
    extend (self, seat);
    if (seat->limit_bytes == seat->next_bytes &&
        reserved_of (self, anchor) < anchor->buffer_bytes) {
        seat->limit_bytes++; /* a budget of 0 would mean the default */
    }
    note_use (self, seat);
}

/*  The one of the anchor that was not used for the longest time; or null.  */
static model_seat_t *least_used (model_t *self, const model_anchor_t *anchor,
                                 const model_seat_t *but)
{
    model_seat_t *least = NULL;
    for (size_t i = 0; i < self->seat_count; i++) {
        model_seat_t *const seat = &self->seats[i];
        if (seat->anchor == anchor->count && seat != but && seat->use_number > 0 &&
            (least == NULL || seat->use_number < least->use_number)) {
            least = seat;
        }
    }
    return least;
}

/*  What it could give back: what it has neither sent nor as its floor.  */
static uint64_t unused (const model_t *self, const model_seat_t *seat)
{
    const uint64_t least = seat->acked_bytes + floor_of (self);
    return minus (seat->limit_bytes, seat->high_bytes > least ? seat->high_bytes : least);
}

static void recall (model_t *self, const model_anchor_t *anchor, uint64_t bytes,
                    const model_seat_t *taker)
{
    model_seat_t *seat;
    while (bytes > 0 && (seat = least_used (self, anchor, taker))) {
        seat->use_number = 0;
        if (unused (self, seat) > 0) {
            seat->is_asked = seat->is_asked_anew = true;
            model_grant (seat);
            seat->limit_seq++; /* names this RETURN */
        }
        bytes = minus (bytes, unused (self, seat));
    }
}

static model_seat_t *first_want (model_t *self, const model_anchor_t *anchor)
{
    model_seat_t *first = NULL;
    for (size_t i = 0; i < self->seat_count; i++) {
        model_seat_t *const seat = &self->seats[i];
        if (seat->anchor == anchor->count && seat->want_bytes > 0 &&
            (first == NULL || seat->want_number < first->want_number)) {
            first = seat;
        }
    }
    return first;
}

/*  Its floor and an equal share of all that is lent or could be.  */
static uint64_t target (const model_t *self, const model_anchor_t *anchor,
                        const model_seat_t *taker)
{
    uint64_t bytes = room (self, anchor), takers = 0;
    for (size_t i = 0; i < self->seat_count; i++) {
        const model_seat_t *const seat = &self->seats[i];
        if (seat->anchor == anchor->count && (seat == taker || lent (self, seat) > 0)) {
            bytes += lent (self, seat);
            takers++;
        }
    }
    const uint64_t window = floor_of (self) + bytes / takers;
    const uint64_t most = self->options.anchors.window_bytes_max;
    return window < most ? window : most;
}

static uint64_t lend (model_t *self, model_seat_t *seat, uint64_t unacked_bytes, uint64_t left)
{
    const model_anchor_t *const anchor = model_anchor (self, seat->anchor);
    if (seat->is_asked || seat->is_away || first_want (self, anchor) ||
        unacked_bytes < floor_of (self) / 2) {
        return 0;
    }
    const uint64_t window = target (self, anchor, seat);
    const uint64_t wanted = minus (seat->acked_bytes + window, seat->limit_bytes);
    if (wanted == 0 || left > window / 2) {
        return 0;
    }
    const uint64_t given = wanted < room (self, anchor) ? wanted : room (self, anchor);
    seat->limit_bytes += given;
    note_use (self, seat);
    return wanted - given;
}

void model_window_used (model_t *self, model_seat_t *seat)
{
    const uint64_t left = minus (seat->limit_bytes, seat->next_bytes);
    const uint64_t before = seat->limit_bytes;
    if (left <= floor_of (self) / 2 && !seat->has_ended) {
        lend (self, seat, seat->next_bytes - seat->acked_bytes, left);
        if (seat->limit_bytes > before) {
            model_grant (seat);
        }
    }
}

void model_window_acked (model_t *self, model_seat_t *seat, uint64_t unacked_bytes)
{
    const uint64_t left = minus (seat->limit_bytes, seat->next_bytes);
    extend (self, seat);
    note_use (self, seat);
    recall (self, model_anchor (self, seat->anchor), lend (self, seat, unacked_bytes, left), seat);
}

/*  ---- Large records ---- */

static void allow (model_t *self, model_seat_t *seat)
{
    const uint64_t part_bytes =
        self->options.limits.batch_bytes - HWS_BATCH_HEADER_SIZE - HWS_RUN_HEADER_SIZE;
    raise (&seat->limit_bytes, seat->acked_bytes + seat->want_bytes);
    raise (&seat->limit_seq, seat->acked_seq + seat->want_bytes / part_bytes + 2);
    seat->want_bytes = 0;
    model_grant (seat);
    note_use (self, seat);
}

void model_serve (model_t *self, const model_anchor_t *anchor)
{
    model_seat_t *first;
    while ((first = first_want (self, anchor))) {
        const uint64_t fits = room (self, anchor) + reserved (self, first);
        if (first->want_bytes > fits) {
            recall (self, anchor, first->want_bytes - fits, first);
            return;
        }
        if (first->is_asked) {
            return;
        }
        allow (self, first);
    }
}

static void want (model_t *self, model_seat_t *seat, uint64_t bytes)
{
    const bool is_waiting = seat->want_bytes > 0;
    seat->want_bytes = bytes;
    if (is_waiting) {
        return;
    }
    if (!seat->is_asked && seat->limit_bytes - seat->acked_bytes >= bytes) {
        allow (self, seat); /* it fits as it is */
        return;
    }
    seat->want_number = ++self->want_count;
}

bool model_window (model_t *self, int client, const hws_window_t *window)
{
    model_seat_t *const seat = model_seat (self, client, window->stream);
    if (seat == NULL || seat->has_ended) {
        return true;
    }
    const model_anchor_t *const anchor = model_anchor (self, seat->anchor);
    const bool had_room = model_has_room (self, anchor);
    const bool is_possible = window->want_bytes <= anchor->buffer_bytes / 2;
    if (seat->is_asked && window->limit_seq >= seat->limit_seq) {
        const uint64_t most = minus (seat->limit_bytes, window->limit_bytes);
        seat->limit_bytes -= most < unused (self, seat) ? most : unused (self, seat);
        seat->is_asked = false;
        extend (self, seat);
        model_grant (seat);
    }
    if (window->want_bytes > 0 && is_possible) {
        want (self, seat, window->want_bytes);
    }
    model_serve (self, anchor);
    if (!had_room && model_has_room (self, anchor)) {
        model_retry (self, anchor->count, anchor->name);
    }
    return is_possible;
}
