/*  What waits to leave together. With a linger, what a program appends is held back until
 *  hws_session_flush, which the linger's end calls too; or until a batch is full. A stream's own
 *  ending, and whatever is before a record that finds no room, is not held back (client/tx.h).
 *
 *  Who calls hws_session_changed after each append has all of it counted here: so a flush says,
 *  for each stream, up to which record it may leave, and what other threads append meanwhile is
 *  of the next batch.
 */
#include "client/session_part.h"

/*  Takes the sender out of those that wait.  */
void hws_session_unhold (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    if (hws_link_is_in_list (&sender->held_link)) {
        hws_list_remove (&sender->held_link);
        self->held_bytes -= sender->held_bytes;
        sender->held_bytes = 0;
    }
    if (self->held.count == 0) {
        hws_heap_clear (&self->timers, &self->linger.timer);
    }
}

/*  What is counted of the sender may leave.  */
static bool let_go (hws_session_sender_t *sender)
{
    hws_session_unhold (sender);
    hws_tx_flush_to (&sender->tx, sender->held_seq, sender->held_end);
    return hws_session_file_ready (sender);
}

bool hws_session_flush (hws_session_t *self)
{
    bool has_news = false;
    while (self->held.head) {
        has_news |= let_go (hws_container_of (self->held.head, hws_session_sender_t, held_link));
    }
    return has_news;
}

/*  What the sender has that is held back, as it would lie in a batch.  */
static size_t batch_size (const hws_tx_t *tx)
{
    return (size_t) (tx->end_bytes - tx->due_bytes) + HWS_RUN_HEADER_SIZE;
}

/*  Counts all that the sender has.  */
static void count (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    const size_t size = batch_size (&sender->tx);
    self->held_bytes += size - sender->held_bytes;
    sender->held_bytes = size;
    sender->held_seq = sender->tx.end_seq;
    sender->held_end = sender->tx.end_bytes;
    if (!hws_link_is_in_list (&sender->held_link)) {
        hws_list_append (&self->held, &sender->held_link);
    }
}

bool hws_session_hold (hws_session_sender_t *sender)
{
    hws_session_t *const self = sender->session;
    const hws_tx_t *const tx = &sender->tx;
    if (tx->due_seq == tx->end_seq) {
        hws_session_unhold (sender);
        return false;
    }
    const size_t room = (size_t) self->batch_bytes - HWS_BATCH_HEADER_SIZE;
    bool has_news = false;
    if (self->held_bytes + batch_size (tx) - sender->held_bytes > room) {
        has_news = hws_session_flush (self); /* a full batch, without what came last */
    }
    const bool is_first = self->held.count == 0; /* the linger begins with it */
    count (sender);
    if (self->held_bytes >= room) {
        has_news |= hws_session_flush (self);
    }
    return has_news || (is_first && self->held.count > 0 && self->options.linger_ms > 0);
}

void hws_session_linger (hws_session_t *self, hws_ms_t now)
{
    if (self->held.count > 0 && self->options.linger_ms > 0 &&
        !hws_timer_is_armed (&self->linger.timer)) {
        hws_heap_set (&self->timers, &self->linger.timer,
                      hws_time_after (now, self->options.linger_ms));
    }
}
