/*  HELLO: a client says who it is (docs/protocol.md, "Connections").  */

#include "broker/answer.h"
#include "broker/engine_state.h"

#include "base/text.h"

#define LIMIT_LOG_MS 1000

void hws_hello_refuse (hws_engine_t *engine, const hws_address_t *to, const hws_control_t *request,
                       int code, const char *reason)
{
    hws_control_t message = {.verb = request->has_id ? HWS_VERB_HELLO : HWS_VERB_ERROR,
                             .form = HWS_FORM_ERR,
                             .has_id = request->has_id,
                             .id = request->id,
                             .as.refusal.code = code};
    hws_text_copy (message.as.refusal.reason, sizeof message.as.refusal.reason, reason);
    engine->stats.refused++;
    hws_engine_send_stranger (engine, to, &message);
}

static hws_control_t describe (const hws_engine_t *engine)
{
    hws_control_t message = {.verb = HWS_VERB_HELLO};
    hws_hello_ok_t *const it = &message.as.hello_ok;
    it->broker_id = engine->options.broker_id;
    it->epoch = engine->options.epoch;
    it->protocol = HWS_PROTOCOL_VERSION;
    it->record_bytes = engine->options.limits.record_bytes;
    it->batch_bytes = engine->options.limits.batch_bytes;
    it->heartbeat_min_ms = engine->options.limits.heartbeat_min_ms;
    it->transports.count = 2;
    hws_text_copy (it->transports.word[0], sizeof it->transports.word[0], HWS_TRANSPORT_MUX);
    hws_text_copy (it->transports.word[1], sizeof it->transports.word[1], HWS_TRANSPORT_DEDICATED);
    it->early_records = HWS_EARLY_RECORDS;
    it->early_bytes = HWS_EARLY_BYTES;
    return message;
}

/*  At most once a second: strangers could fill the log with it.  */
static void log_limit (hws_engine_t *engine)
{
    if (engine->now >= engine->limit_log_at) {
        engine->limit_log_at = hws_time_after (engine->now, LIMIT_LOG_MS);
        hws_engine_log (engine, HWS_LOG_WARN, "event=limit limit=peers value=%llu",
                        (unsigned long long) engine->options.limits.peers);
    }
}

void hws_on_hello (hws_engine_t *engine, const hws_address_t *from, const hws_control_t *message,
                   const hws_message_t *envelope)
{
    const hws_hello_t *const hello = &message->as.hello;
    hws_peer_t *peer = hws_peer_at (engine, from);
    if (hello->protocol != HWS_PROTOCOL_VERSION) {
        const char *const reason = "this broker speaks protocol 1";
        if (peer) {
            hws_engine_refuse (engine, peer, message, HWS_EPROTOCOL, "%s", reason);
        } else {
            hws_hello_refuse (engine, from, message, HWS_EPROTOCOL, reason);
        }
        return;
    }
    if (peer && memcmp (&peer->client_id, &hello->client_id, sizeof hello->client_id) != 0) {
        hws_engine_fault (engine, peer, HWS_EPROTOCOL,
                          "this connection said HELLO for another client");
        return;
    }
    peer = hws_peer_of_client (engine, &hello->client_id);
    if (peer) {
        hws_peer_move (engine, peer, from, envelope->address);
    } else if (engine->peers_by_client.count >= engine->options.limits.peers) {
        log_limit (engine);
        hws_hello_refuse (engine, from, message, HWS_ELIMIT,
                          "the broker has all the clients it takes");
        return;
    } else {
        peer = hws_peer_new (engine, &hello->client_id, from, envelope->address);
        if (peer == NULL) {
            hws_hello_refuse (engine, from, message, HWS_ELIMIT, "the broker is out of memory");
            return;
        }
    }
    peer->listener = envelope->listener;
    hws_control_t answer = describe (engine);
    hws_engine_answer (engine, peer, message, &answer);
    if (engine->is_draining) {
        hws_engine_say_leaving (engine, peer); /* so that no refusal is taken for final */
    }
}
