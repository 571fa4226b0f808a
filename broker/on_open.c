/*  OPEN: a receiver opens an anchor, or says again that it is there
 *  (docs/protocol.md, "OPEN").
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/opening.h"

#include "base/text.h"

#include <stdio.h>

#define LENGTH_MS_MAX   (UINT64_C (1) << 40) /* about 35 years: sums never overflow */
#define BUFFER_SIZE_MAX (UINT64_C (1) << 44) /* 16 TiB: products with counts never overflow */

static bool is_above (hws_optional_t number, uint64_t most)
{
    return number.state == HWS_VALUE && number.value > most;
}

static int check_times (const hws_open_t *request, char *reason, size_t size)
{
    if (is_above (request->heartbeat_interval_ms, LENGTH_MS_MAX) ||
        is_above (request->reconnect_grace_ms, LENGTH_MS_MAX) ||
        is_above (request->unattached_timeout_ms, LENGTH_MS_MAX) ||
        is_above (request->orphan_ttl_ms, LENGTH_MS_MAX)) {
        snprintf (reason, size, "a length of time is above %llu ms",
                  (unsigned long long) LENGTH_MS_MAX);
        return HWS_EBAD_REQUEST;
    }
    return 0;
}

/*  Checks what the request asks for. Returns 0, or a code and the sentence.  */
static int check_values (const hws_engine_t *engine, const hws_open_t *request, char *reason,
                         size_t size)
{
    const uint64_t least_ms = engine->options.limits.heartbeat_min_ms;
    const uint64_t least_buffer = 2 * engine->options.anchors.window_bytes_min;
    if (*request->name && !hws_name_is_valid (hws_bytes_of_text (request->name))) {
        snprintf (reason, size, "name: 1 to 255 bytes of printable UTF-8, and not a handle");
        return HWS_EBAD_REQUEST;
    }
    if (request->heartbeat_interval_ms.state == HWS_VALUE &&
        request->heartbeat_interval_ms.value < least_ms) {
        snprintf (reason, size, "heartbeat_interval_ms: this broker takes at least %llu",
                  (unsigned long long) least_ms);
        return HWS_EBAD_REQUEST;
    }
    if (request->max_senders.state == HWS_VALUE && request->max_senders.value == 0) {
        snprintf (reason, size, "max_senders: at least 1, or null for unlimited");
        return HWS_EBAD_REQUEST;
    }
    if (request->buffer_bytes.state == HWS_VALUE &&
        (request->buffer_bytes.value < least_buffer ||
         request->buffer_bytes.value > BUFFER_SIZE_MAX)) {
        snprintf (reason, size, "buffer_bytes: this broker takes %llu to %llu",
                  (unsigned long long) least_buffer, (unsigned long long) BUFFER_SIZE_MAX);
        return HWS_EBAD_REQUEST;
    }
    return check_times (request, reason, size);
}

static int check_room (const hws_engine_t *engine, const hws_peer_t *peer,
                       const hws_open_t *request, char *reason, size_t size)
{
    const hws_limits_t *const limits = &engine->options.limits;
    if (engine->is_draining) {
        snprintf (reason, size, "the broker is leaving");
        return HWS_ECLOSED;
    }
    if (hws_anchor_named (engine, request->name)) {
        snprintf (reason, size, "an anchor named %s is open", request->name);
        return HWS_ENAME_IN_USE;
    }
    if (engine->anchor_count == UINT32_MAX && !request->has_resume) {
        snprintf (reason, size, "the broker has given all the handles of this start");
        return HWS_ELIMIT; /* a handle never comes back */
    }
    if (engine->anchors.count >= limits->anchors) {
        snprintf (reason, size, "the broker reached its limit of %llu anchors",
                  (unsigned long long) limits->anchors);
        return HWS_ELIMIT;
    }
    if (peer->anchors.count >= limits->anchors_per_peer) {
        snprintf (reason, size, "the client reached the limit of %llu anchors",
                  (unsigned long long) limits->anchors_per_peer);
        return HWS_ELIMIT;
    }
    if (request->dedicated && engine->dedicated.count >= limits->fronts) {
        snprintf (reason, size, "the broker reached its limit of %llu dedicated anchors",
                  (unsigned long long) limits->fronts);
        return HWS_ELIMIT;
    }
    const uint64_t buffer = request->buffer_bytes.state == HWS_VALUE
                                ? request->buffer_bytes.value
                                : engine->options.anchors.buffer_bytes;
    if (limits->buffer_bytes.state == HWS_VALUE &&
        (engine->buffer_bytes > limits->buffer_bytes.value ||
         buffer > limits->buffer_bytes.value - engine->buffer_bytes)) {
        snprintf (reason, size, "the broker's limit of %llu buffer bytes leaves no room for %llu",
                  (unsigned long long) limits->buffer_bytes.value, (unsigned long long) buffer);
        return HWS_ELIMIT;
    }
    return 0;
}

void hws_open_answer (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                      const hws_anchor_t *anchor)
{
    hws_control_t answer = {.verb = HWS_VERB_OPEN};
    hws_open_ok_t *const it = &answer.as.open_ok;
    it->handle = anchor->handle;
    it->owner_token =
        hws_credential_make (engine->options.key, HWS_CREDENTIAL_OWNER, anchor->handle, 0);
    it->heartbeat_interval_ms = anchor->heartbeat_interval_ms;
    it->reconnect_grace_ms = anchor->reconnect_grace_ms;
    it->unattached_timeout_ms = anchor->unattached_timeout_ms;
    it->orphan_ttl_ms = anchor->orphan_ttl_ms;
    it->max_senders = anchor->max_senders;
    it->buffer_bytes = anchor->buffer_bytes;
    it->record_bytes = anchor->record_bytes;
    hws_engine_answer (engine, peer, message, &answer);
}

int hws_open_make (hws_engine_t *engine, hws_peer_t *peer, const hws_open_t *request,
                   hws_anchor_t **anchor, hws_reason_t reason)
{
    const size_t size = sizeof (hws_reason_t);
    int code = check_values (engine, request, reason, size);
    if (code == 0 && !request->has_resume) {
        code = hws_token_check (engine, request->cancel_token, reason);
    }
    if (code == 0) {
        code = check_room (engine, peer, request, reason, size);
    }
    if (code != 0) {
        return code;
    }
    *anchor = hws_anchor_new (engine, peer, request);
    if (*anchor == NULL) {
        snprintf (reason, size, "the broker is out of memory");
        return HWS_ELIMIT;
    }
    return 0;
}

void hws_open_answer_ended (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message,
                            const hws_tombstone_t *ended)
{
    hws_control_t last_word = {.verb = HWS_VERB_ANCHOR_CLOSED};
    hws_anchor_closed_t *const it = &last_word.as.anchor_closed;
    it->handle = ended->handle;
    hws_text_copy (it->code, sizeof it->code, hws_cause_word (ended->cause));
    hws_text_copy (it->reason, sizeof it->reason, ended->reason);
    hws_out_control (engine, peer, &last_word);
    hws_engine_refuse (engine, peer, message, HWS_ECLOSED, "%s",
                       ended->reason ? ended->reason : "the anchor is not there any more");
}

void hws_on_open (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    const hws_open_t *const request = &message->as.open;
    if (request->has_resume) {
        if (hws_opening_begin (engine, peer, message) != 0) {
            hws_engine_refuse (engine, peer, message, HWS_ELIMIT, "the broker is out of memory");
        }
        return; /* it is answered when its positions are complete */
    }
    hws_opening_forget (peer);
    hws_anchor_t *anchor = hws_anchor_of_open (engine, peer, request->open_id);
    hws_reason_t reason = "";
    int code = 0;
    if (anchor) {
        code = check_times (request, reason, sizeof reason);
    } else {
        const hws_tombstone_t *const ended = hws_tombstone_of_open (engine, peer, request->open_id);
        if (ended) {
            hws_open_answer_ended (engine, peer, message, ended);
            return;
        }
        code = hws_open_make (engine, peer, request, &anchor, reason);
    }
    if (code != 0) {
        hws_engine_refuse (engine, peer, message, code, "%s", reason);
        return;
    }
    hws_anchor_set_timeout (engine, anchor, request->unattached_timeout_ms);
    hws_open_answer (engine, peer, message, anchor);
    if (peer->state == HWS_PEER_CONNECTED) { /* else it does not even hear of this */
        hws_anchor_fall_back (anchor);
    }
    hws_engine_log (engine, HWS_LOG_DEBUG, "event=open anchor=%016llx address=%s",
                    (unsigned long long) anchor->handle.lo, peer->network_address);
    hws_anchor_present (engine, anchor);
}
