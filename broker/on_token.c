/*  CANCEL_TOKEN and RESERVE_TOKEN: numbers that name what can be cancelled before it
 *  exists (docs/protocol.md, "CANCEL_TOKEN").
 *
 *  Cancels are in the registry of lib/cancel, which remembers them; what they do to the
 *  engine's objects is here.
 */
#include "broker/answer.h"
#include "broker/engine_state.h"
#include "broker/young.h"

#include "base/text.h"

/*  What a refused attach or open is told.  */
static const char *sentence (const char *reason)
{
    return *reason ? reason : "its token was cancelled";
}

/*  A cancel by somebody else, for each kind of thing.  */
static void hit (hws_engine_t *engine, hws_target_t *target, const char *reason)
{
    switch (target->kind) {
    case HWS_TARGET_ANCHOR:
        hws_anchor_cancel (engine, hws_container_of (target, hws_anchor_t, target),
                           HWS_CAUSE_REQUESTED, reason);
        return;
    case HWS_TARGET_SEAT:
        hws_seat_end (engine, hws_container_of (target, hws_seat_extra_t, target)->seat,
                      HWS_RUN_CANCELLED, HWS_CAUSE_REQUESTED, reason, false);
        return;
    case HWS_TARGET_WAITING: {
        hws_waiting_t *const waiting = hws_container_of (target, hws_waiting_t, target);
        if (!hws_young_holds (engine,
                              &waiting->request)) { /* else it may have a seat to be ended */
            hws_waiting_refuse (engine, waiting, HWS_ECANCELLED, sentence (reason));
        }
        return;
    }
    }
}

void hws_on_cancel_token (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    const hws_token_t *const request = &message->as.token;
    peer->cancels.limit = engine->options.limits.cancel_orphans_per_peer;
    const int rc = hws_cancels_cancel (&engine->cancels, engine->now, request->token,
                                       request->reason, &peer->cancels);
    hws_tokens_arm (engine);
    if (rc == 0) {
        hws_control_t answer = {.verb = HWS_VERB_CANCEL_TOKEN};
        hws_engine_answer (engine, peer, message, &answer);
    } else {
        engine->stats.refused_cancels++;
        hws_engine_refuse (engine, peer, message, HWS_ELIMIT, "%s",
                           rc == HWS_ELIMIT ? "the broker has all the cancels that it remembers"
                                            : "the broker is out of memory");
    }
    hws_cancel_node_t *node;
    while ((node = hws_cancels_take_hit (&engine->cancels))) {
        hit (engine, hws_container_of (node, hws_target_t, node), request->reason);
    }
}

void hws_on_reserve_token (hws_engine_t *engine, hws_peer_t *peer, const hws_control_t *message)
{
    hws_control_t answer = {.verb = HWS_VERB_RESERVE_TOKEN};
    while (answer.as.token.token == 0) {
        /* A keyed hash of a counter: nobody guesses somebody else's. The epoch is in it, for the
           key may be that of the broker's life before. */
        const hws_handle_t life = {.hi = engine->options.broker_id, .lo = engine->options.epoch};
        const hws_id_t id = hws_credential_make (engine->options.key, HWS_CREDENTIAL_CANCEL, life,
                                                 ++engine->token_count);
        answer.as.token.token = hws_get_u64 (id.bytes);
    }
    hws_engine_answer (engine, peer, message, &answer);
}

/*  ---- Registered and remembered ---- */

int hws_token_register (hws_engine_t *engine, hws_target_t *target, uint64_t token)
{
    return hws_cancels_register (&engine->cancels, engine->now, token, &target->node);
}

int hws_token_check (const hws_engine_t *engine, uint64_t token, hws_reason_t reason)
{
    const char *const cancelled = hws_cancels_reason (&engine->cancels, token);
    if (cancelled == NULL) {
        return 0;
    }
    hws_text_copy (reason, sizeof (hws_reason_t), sentence (cancelled));
    return HWS_ECANCELLED;
}

void hws_tokens_configure (hws_engine_t *engine)
{
    const hws_limits_t *const limits = &engine->options.limits;
    hws_cancels_options_t *const options = &engine->cancels.options;
    options->orphan_ttl_ms = (hws_ms_t) limits->cancel_orphan_ttl_ms;
    options->sweep_interval_ms = (hws_ms_t) limits->cancel_sweep_ms;
    options->orphan_limit = (size_t) limits->cancel_orphans;
    hws_tokens_arm (engine);
}

void hws_tokens_expire (hws_engine_t *engine)
{
    hws_cancels_sweep (&engine->cancels, engine->now);
    hws_tokens_arm (engine);
}

void hws_tokens_arm (hws_engine_t *engine)
{
    hws_heap_set (&engine->deadlines, &engine->cancel_deadline.timer,
                  hws_cancels_sweep_at (&engine->cancels));
}
