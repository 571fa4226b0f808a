/*  How a receiver goes and leaves its anchor open, for another process or for itself later: what it
 *  has acknowledged is said, and heard. The client says no BYE then, which would close the anchor.
 *
 *  The broker answers in order, so an answer to anything shows that it has heard what was said
 *  before. RESERVE_TOKEN is asked for that; nothing comes of the token.
 */
#include "client/session_part.h"

enum { ROUNDS_AGAIN = 2 }; /* of the answer to OPEN, and of the acknowledgements behind it */

static void ask (hws_session_t *self, hws_ms_t now, hws_request_t *request)
{
    hws_session_ask (self, now, request, &(hws_control_t){.verb = HWS_VERB_RESERVE_TOKEN},
                     HWS_REQUEST_RETRY_MS);
}

void hws_session_leave_anchor (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (receiver->rx.state != HWS_RX_OPEN) {
        return;
    }
    self->has_left = true;
    receiver->leave_rounds = 1;
    if (self->state == HWS_SESSION_UP) {
        ask (self, now, &receiver->leave);
    }
}

void hws_session_leave_again (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (receiver->leave_rounds > 0) {
        receiver->leave_rounds = ROUNDS_AGAIN;
        ask (self, now, &receiver->leave);
    }
}

void hws_session_leave_answered (hws_session_t *self, hws_ms_t now,
                                 hws_session_receiver_t *receiver)
{
    hws_session_settle (self, &receiver->leave);
    if (receiver->epoch != self->epoch) {
        return; /* it could not open the anchor yet: until it has */
    }
    if (--receiver->leave_rounds > 0) {
        ask (self, now, &receiver->leave);
        return;
    }
    receiver->is_left = true;
    receiver->notify (receiver);
}

void hws_session_leave_due (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver)
{
    if (self->state == HWS_SESSION_UP) {
        ask (self, now, &receiver->leave);
    }
}

void hws_session_part (hws_session_t *self, hws_ms_t now)
{
    hws_request_init (&self->bye, HWS_ABOUT_PARTING, self);
    ask (self, now, &self->bye);
}
