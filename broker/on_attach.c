/*  ATTACH: a sender takes a seat at an anchor, or finds the one it has
 *  (docs/protocol.md, "ATTACH"). The order of the checks is the protocol's: its
 *  seat, its tombstone, the anchor's existence, kind, room.
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/resume.h"
#include "broker/window.h"
#include "broker/young.h"

#include "base/text.h"

#include <stdio.h>

void hws_attach_describe_end (uint8_t ending, uint16_t cause, const char *reason,
                              hws_attach_ok_t *answer)
{
    answer->has_ended = true;
    hws_text_copy (answer->streaming_transport_key, sizeof answer->streaming_transport_key,
                   HWS_TRANSPORT_MUX);
    hws_text_copy (answer->ending, sizeof answer->ending, hws_ending_word (ending));
    hws_text_copy (answer->code, sizeof answer->code, hws_cause_word (cause));
    hws_text_copy (answer->reason, sizeof answer->reason, reason);
}

void hws_attach_describe_ended (const hws_tombstone_t *ended, hws_attach_ok_t *answer)
{
    answer->handle = ended->handle;
    answer->sender_id = ended->sender_key.sender_id;
    answer->next_seq = answer->acked_seq = ended->acked_seq;
    answer->next_bytes = answer->acked_bytes = ended->acked_bytes;
    hws_attach_describe_end (ended->ending, ended->cause, ended->reason, answer);
}

static int find_by_handle (const hws_engine_t *engine, hws_handle_t handle, hws_anchor_t **found,
                           hws_reason_t reason)
{
    char text[HWS_HANDLE_TEXT_SIZE];
    hws_handle_print (handle, text);
    if (handle.hi != engine->options.broker_id) {
        snprintf (reason, sizeof (hws_reason_t), "handle %s belongs to another broker", text);
        return HWS_EWRONG_BROKER;
    }
    *found = hws_anchor_find (engine, handle);
    if (*found) {
        return 0;
    }
    if (hws_anchor_find_other (engine, handle)) {
        snprintf (reason, sizeof (hws_reason_t), "handle %s is of the other kind", text);
        return HWS_EWRONG_KIND;
    }
    const hws_tombstone_t *const ended = hws_tombstone_of_handle (engine, handle);
    const bool was_given = hws_handle_epoch (handle) == engine->options.epoch &&
                           hws_handle_count (handle) <= engine->anchor_count &&
                           hws_handle_count (handle) > 0;
    if (ended || was_given || hws_handle_epoch (handle) < engine->options.epoch) {
        snprintf (reason, sizeof (hws_reason_t), "anchor %s is closed%s%.900s", text,
                  ended && ended->reason ? ": " : "", ended && ended->reason ? ended->reason : "");
        return HWS_ECLOSED;
    }
    snprintf (reason, sizeof (hws_reason_t), "there is no anchor %s", text);
    return HWS_ENOT_FOUND;
}

static int find_anchor (const hws_engine_t *engine, const hws_attach_t *request,
                        hws_anchor_t **found, hws_reason_t reason)
{
    if (request->has_handle) {
        return find_by_handle (engine, request->handle, found, reason);
    }
    *found = hws_anchor_named (engine, request->anchor);
    if (*found == NULL) {
        snprintf (reason, sizeof (hws_reason_t), "there is no anchor named %s", request->anchor);
        return HWS_ENOT_FOUND;
    }
    return 0;
}

int hws_attach_check (const hws_engine_t *engine, const hws_peer_t *peer,
                      const hws_anchor_t *anchor, hws_reason_t reason)
{
    const hws_limits_t *const limits = &engine->options.limits;
    const size_t size = sizeof (hws_reason_t);
    const unsigned count = hws_handle_count (anchor->handle);
    const bool is_exclusive = hws_anchor_is_exclusive (anchor);
    const char *const kind = is_exclusive ? "exclusive" : "mpsc";
    if (anchor->state == HWS_ANCHOR_CLOSING) {
        snprintf (reason, size, "%s anchor %u is closing", kind, count);
        return HWS_ECLOSED;
    }
    if (is_exclusive && anchor->live_count > 0) {
        snprintf (reason, size, "exclusive anchor %u %s has its sender", count, anchor->name);
        return HWS_EMAX_SENDERS;
    }
    if (anchor->max_senders.state == HWS_VALUE && anchor->live_count >= anchor->max_senders.value) {
        snprintf (reason, size, "mpsc anchor %u %s reached max_senders limit %llu", count,
                  anchor->name, (unsigned long long) anchor->max_senders.value);
        return HWS_EMAX_SENDERS;
    }
    if (anchor->live_count >= limits->senders_per_anchor) {
        snprintf (reason, size, "mpsc anchor %u %s reached the broker's limit of %llu senders",
                  count, anchor->name, (unsigned long long) limits->senders_per_anchor);
        return HWS_ELIMIT;
    }
    if (peer->seats.count >= limits->seats_per_peer) {
        snprintf (reason, size, "the client reached the limit of %llu senders",
                  (unsigned long long) limits->seats_per_peer);
        return HWS_ELIMIT;
    }
    if (anchor->seats.count - anchor->live_count >= limits->exiting_seats) {
        snprintf (reason, size, "%s anchor %u has %zu endings that its receiver has not read", kind,
                  count, (size_t) (anchor->seats.count - anchor->live_count));
        return HWS_EBUSY;
    }
    if (!hws_window_has_room (anchor)) {
        snprintf (reason, size, "%s anchor %u: %llu buffer bytes leave no room for a sender", kind,
                  count, (unsigned long long) anchor->buffer_bytes);
        return HWS_EBUFFER_FULL;
    }
    return 0;
}

void hws_attach_return (hws_engine_t *engine, hws_seat_t *seat, const hws_attach_t *request,
                        hws_attach_ok_t *answer)
{
    const uint8_t ending = request->has_resume ? hws_ending_from_word (request->resume.ending) : 0;
    if (ending != 0) {
        hws_seat_end (engine, seat,
                      ending == HWS_RUN_CANCELLED ? HWS_RUN_CANCELLED : HWS_RUN_DROPPED,
                      hws_cause_from_word (request->resume.code), NULL, false);
    }
    hws_seat_return (engine, seat);
    hws_seat_describe (engine, seat, answer);
}

int hws_attach_try (hws_engine_t *engine, hws_peer_t *peer, const hws_attach_t *request,
                    hws_attach_ok_t *answer, hws_reason_t reason)
{
    hws_seat_t *seat = hws_seat_of_session (engine, peer, request->session_id);
    if (seat) {
        hws_attach_return (engine, seat, request, answer);
        return 0;
    }
    const hws_tombstone_t *const ended =
        hws_tombstone_of_session (engine, peer, request->session_id);
    if (ended) {
        hws_attach_describe_ended (ended, answer);
        return 0;
    }
    if (request->has_resume) {
        return hws_resume_attach (engine, peer, request, answer, reason);
    }
    hws_anchor_t *anchor = NULL;
    int code = find_anchor (engine, request, &anchor, reason);
    int resumed;
    if (code == 0 && hws_resume_first (engine, anchor, peer, request, answer, reason, &resumed)) {
        return resumed;
    }
    if (hws_young_holds (engine, request)) {
        return HWS_ENOT_FOUND; /* before its token is looked at: it may have a seat to be ended */
    }
    if (hws_token_check (engine, request->cancel_token, reason) != 0) {
        return HWS_ECANCELLED;
    }
    if (*request->label && !hws_name_is_valid (hws_bytes_of_text (request->label))) {
        snprintf (reason, sizeof (hws_reason_t),
                  "label: 1 to 255 bytes of printable UTF-8, and not a handle");
        return HWS_EBAD_REQUEST;
    }
    if (engine->is_draining) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is leaving");
        return HWS_ECLOSED;
    }
    if (code == 0) {
        code = hws_attach_check (engine, peer, anchor, reason);
    }
    if (code != 0) {
        return code;
    }
    if (!hws_dedicated_seats (anchor, peer)) {
        return hws_dedicated_direct (engine, anchor, peer, answer, reason);
    }
    seat = hws_seat_new (engine, anchor, peer, request);
    if (seat == NULL) {
        snprintf (reason, sizeof (hws_reason_t), "the broker is out of memory");
        return HWS_ELIMIT;
    }
    hws_seat_describe (engine, seat, answer);
    return 0;
}

void hws_on_attach (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    const hws_attach_t *const request = &message->as.attach;
    hws_control_t answer = {.verb = HWS_VERB_ATTACH};
    hws_reason_t reason = "";
    int code = hws_attach_try (engine, peer, request, &answer.as.attach_ok, reason);
    const bool may_wait = (code == HWS_ENOT_FOUND || code == HWS_EBUFFER_FULL) &&
                          (request->wait_ms > 0 || hws_young_holds (engine, request)) &&
                          peer->state == HWS_PEER_CONNECTED;
    if (may_wait || code == HWS_EWOULD_BLOCK) {
        code = hws_waiting_add (engine, peer, message, code);
        if (code == 0) {
            return;
        }
        snprintf (reason, sizeof reason, "%s",
                  code == HWS_ELIMIT ? "the broker has all the waiting attaches it takes"
                                     : "the broker is out of memory");
    } else {
        hws_waiting_forget (engine, peer, request->session_id);
    }
    if (code != 0) {
        hws_engine_refuse (engine, peer, message, code, "%s", reason);
        return;
    }
    hws_attach_ok_t *const ok = &answer.as.attach_ok;
    ok->early_kept = !ok->has_ended && *ok->endpoint == '\0';
    hws_engine_answer (engine, peer, message, &answer);
}
