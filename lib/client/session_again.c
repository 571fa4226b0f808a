/*  What all streams of a session share when its connection is lost, made anew, about to end, or
 *  given up: each says everything again, in the order that docs/protocol.md asks for
 * ("Connections", rule 5), waits, or ends.
 */
#include "client/session_part.h"

static hws_session_receiver_t *receiver_of (hws_link_t *link)
{
    return hws_container_of (link, hws_session_receiver_t, link);
}

static hws_session_sender_t *sender_of (hws_link_t *link)
{
    return hws_container_of (link, hws_session_sender_t, link);
}

void hws_session_suspend (hws_session_t *self, hws_ms_t now, bool was_up)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_receiver_t *const receiver = receiver_of (link);
        hws_session_suspend_receiver (self, was_up ? now : receiver->asked_at, receiver);
    }
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_sender_t *const sender = sender_of (link);
        hws_session_suspend_sender (self, was_up ? now : sender->asked_at, sender);
    }
    hws_session_suspend_tokens (self, now, was_up);
    hws_session_drop_acks (self);
}

void hws_session_resume (hws_session_t *self, hws_ms_t now, bool is_new_epoch)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_resume_receiver (self, now, receiver_of (link), is_new_epoch);
    }
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_close_again (self, now, receiver_of (link));
    }
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_resume_sender (self, now, sender_of (link), is_new_epoch);
    }
    hws_session_tell_ended (self, now, is_new_epoch);
}

void hws_session_forsake (hws_session_t *self)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_close_here (receiver_of (link), HWS_EUNREACHABLE);
    }
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_forsake_sender (sender_of (link));
    }
}

void hws_session_hold_new (hws_session_t *self, hws_ms_t now)
{
    self->is_broker_leaving = true;
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_hold_attach (self, now, sender_of (link));
    }
}

void hws_session_end_all (hws_session_t *self, uint16_t cause, const char *reason)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_end_receiver (receiver_of (link), cause, reason);
    }
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_end_sender (sender_of (link), cause, reason);
    }
}

void hws_session_refuse_new (hws_session_t *self, int code, const char *reason)
{
    for (hws_link_t *link = self->receivers.head; link; link = link->next) {
        hws_session_refuse_receiver (receiver_of (link), code, reason);
    }
    for (hws_link_t *link = self->senders.head; link; link = link->next) {
        hws_session_refuse_sender (sender_of (link), code, reason);
    }
    hws_session_refuse_tokens (self, code);
}
