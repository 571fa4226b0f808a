#include "broker/resume.h"

#include "broker/engine_state.h"
#include "broker/young.h"

#include <stdio.h>

#define POSITION_MAX (UINT64_C (1) << 62) /* sums with windows never overflow */

/*  ---- Nobody's seats ---- */

/*  A receiver that another had superseded, and that was not told, stands before what the other has
 *  acknowledged: its sender has these records no more.  */
static void check_position (hws_engine_t *engine, hws_seat_t *seat, const hws_attach_t *request)
{
    if (request->has_resume && request->resume.acked_seq > seat->next_seq) {
        hws_seat_end (engine, seat, HWS_RUN_DROPPED, HWS_CAUSE_UNKNOWN,
                      "its receiver has less than what was acknowledged", false);
    }
}

/*  Gives nobody's seat to the client; a token that was cancelled before ends it.  */
static int take_seat (hws_engine_t *engine, hws_seat_t *seat, hws_peer_t *peer,
                      const hws_attach_t *request, hws_attach_ok_t *answer, hws_reason_t reason)
{
    if (peer->seats.count >= engine->options.limits.seats_per_peer) {
        snprintf (reason, sizeof (hws_reason_t), "the client reached the limit of %llu senders",
                  (unsigned long long) engine->options.limits.seats_per_peer);
        return HWS_ELIMIT;
    }
    if (hws_seat_take (engine, seat, peer, request) != 0) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is out of memory");
        return HWS_ELIMIT;
    }
    if (hws_token_check (engine, request->cancel_token, reason) != 0) {
        hws_seat_end (engine, seat, HWS_RUN_CANCELLED, HWS_CAUSE_REQUESTED, reason, false);
    }
    check_position (engine, seat, request);
    hws_attach_return (engine, seat, request, answer);
    return 0;
}

bool hws_resume_first (hws_engine_t *engine, const hws_anchor_t *anchor, hws_peer_t *peer,
                       const hws_attach_t *request, hws_attach_ok_t *answer, hws_reason_t reason,
                       int *code)
{
    if (!hws_young_is_earlier (engine, anchor->handle)) {
        return false;
    }
    const uint64_t seat_key =
        hws_credential_seat_key (engine->options.key, &peer->client_id, request->session_id);
    hws_seat_t *const seat = hws_seat_of_session (engine, &engine->nobody, seat_key);
    if (seat && seat->anchor == anchor) {
        *code = take_seat (engine, seat, peer, request, answer, reason);
        return true;
    }
    const hws_tombstone_t *const ended =
        hws_tombstone_of_session (engine, &engine->nobody, seat_key);
    if (ended && hws_handle_equal (ended->handle, anchor->handle)) {
        hws_attach_describe_ended (ended, answer);
        *code = 0;
        return true;
    }
    return false;
}

/*  ---- No seat ---- */

/*  The sender goes on where itself knows to be acknowledged.  */
static int make_seat (hws_engine_t *engine, hws_anchor_t *anchor, hws_peer_t *peer,
                      const hws_attach_t *request, hws_attach_ok_t *answer, hws_reason_t reason)
{
    if (engine->is_draining) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is leaving");
        return HWS_EBUSY; /* its next life may take it */
    }
    if (request->resume.acked_seq > POSITION_MAX || request->resume.acked_bytes > POSITION_MAX) {
        snprintf (reason, sizeof (hws_reason_t), "resume: no stream has such a position");
        return HWS_EBAD_REQUEST;
    }
    const int code = hws_attach_check (engine, peer, anchor, reason);
    if (code != 0) {
        return code;
    }
    hws_seat_t *const seat = hws_unseen_reserve (&anchor->unseen) == 0
                                 ? hws_seat_new (engine, anchor, peer, request)
                                 : NULL;
    if (seat == NULL) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is out of memory");
        return HWS_ELIMIT;
    }
    hws_unseen_remove (&anchor->unseen, request->resume.sender_id);
    if (hws_token_check (engine, request->cancel_token, reason) != 0) {
        hws_seat_end (engine, seat, HWS_RUN_CANCELLED, HWS_CAUSE_REQUESTED, reason, false);
    }
    hws_seat_describe (engine, seat, answer);
    return 0;
}

static int resume_at (hws_engine_t *engine, hws_anchor_t *anchor, hws_peer_t *peer,
                      const hws_attach_t *request, hws_attach_ok_t *answer, hws_reason_t reason)
{
    const uint64_t sender_id = request->resume.sender_id;
    hws_seat_t *const seat = hws_seat_of_sender (engine, anchor, sender_id);
    if (seat && seat->peer == &engine->nobody) {
        return take_seat (engine, seat, peer, request, answer, reason);
    }
    if (seat) {
        snprintf (reason, sizeof (hws_reason_t), "sender %llu is attached as another stream",
                  (unsigned long long) sender_id);
        return HWS_EDENIED;
    }
    if (!hws_unseen_has (&anchor->unseen, sender_id)) {
        hws_attach_describe_end (HWS_RUN_DROPPED, HWS_CAUSE_UNKNOWN, NULL, answer);
        return 0;
    }
    const uint8_t ending = hws_ending_from_word (request->resume.ending);
    if (ending != 0) {
        hws_attach_describe_end (ending, hws_cause_from_word (request->resume.code), NULL, answer);
        return 0;
    }
    if (anchor->state == HWS_ANCHOR_CLOSING) {
        hws_attach_describe_end (HWS_RUN_CANCELLED, anchor->cause, anchor->reason, answer);
        return 0;
    }
    return make_seat (engine, anchor, peer, request, answer, reason);
}

/*  ---- The request ---- */

/*  The handle and the token are what the sender was given. Returns 0, or a code and the
 *  sentence.  */
static int check (const hws_engine_t *engine, const hws_attach_t *request, hws_reason_t reason)
{
    if (!request->has_handle) {
        snprintf (reason, sizeof (hws_reason_t), "resume: a stream resumes by handle");
        return HWS_EBAD_REQUEST;
    }
    if (request->handle.hi != engine->options.broker_id) {
        snprintf (reason, sizeof (hws_reason_t), "the handle belongs to another broker");
        return HWS_EWRONG_BROKER;
    }
    const hws_id_t right = hws_credential_make (engine->options.key, HWS_CREDENTIAL_SENDER,
                                                request->handle, request->resume.sender_id);
    if (!hws_credential_equal (&right, &request->resume.resume_token)) {
        snprintf (reason, sizeof (hws_reason_t), "the resume token is not that of the sender");
        return HWS_EDENIED;
    }
    return 0;
}

int hws_resume_attach (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                       hws_attach_ok_t *answer, hws_reason_t reason)
{
    const int code = check (engine, request, reason);
    if (code != 0) {
        return code;
    }
    const hws_tombstone_t *ended =
        hws_tombstone_of_sender (engine, request->handle, request->resume.sender_id);
    if (ended == NULL) {
        ended = hws_tombstone_of_handle (engine, request->handle);
    }
    if (ended) {
        hws_attach_describe_ended (ended, answer);
        return 0;
    }
    hws_anchor_t *const anchor = hws_anchor_find (engine, request->handle);
    if (anchor) {
        return resume_at (engine, anchor, peer, request, answer, reason);
    }
    if (hws_young_awaits (engine, request->handle)) {
        snprintf (reason, sizeof (hws_reason_t), "the receiver has not come back yet");
        return engine->is_draining ? HWS_EBUSY : HWS_ENOT_FOUND;
    }
    snprintf (reason, sizeof (hws_reason_t), "the anchor is not there any more");
    return HWS_ECLOSED;
}
