#include "broker/answer.h"

#include "base/text.h"
#include "broker/engine_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LOOSE_MAX 4096 /* strangers' answers and log lines beyond are dropped */

/*  ---- Effects that belong to no client ---- */

static hws_effect_t *push_loose (hws_engine_t *self)
{
    hws_outgoing_t *const loose = calloc (1, sizeof *loose);
    if (loose == NULL) {
        return NULL;
    }
    hws_list_append (&self->loose, &loose->link);
    return &loose->effect;
}

void hws_engine_log (hws_engine_t *self, hws_log_level_t level, const char *format, ...)
{
    char line[2048];
    va_list arguments;
    va_start (arguments, format);
    const int length = vsnprintf (line, sizeof line, format, arguments);
    va_end (arguments);
    char *const text = length >= 0 && self->loose.count < LOOSE_MAX ? strdup (line) : NULL;
    hws_effect_t *const effect = text ? push_loose (self) : NULL;
    if (effect == NULL) {
        free (text);
        self->stats.log_lines_lost++;
        return;
    }
    effect->kind = HWS_EFFECT_LOG;
    effect->level = level;
    effect->data = (uint8_t *) text;
    effect->size = strlen (text);
}

void hws_engine_send_stranger (hws_engine_t *self, const hws_address_t *to,
                               const hws_control_t *message)
{
    size_t size = 0;
    if (self->loose.count >= LOOSE_MAX ||
        hws_control_encode (message, self->scratch, HWS_CONTROL_SIZE_MAX, &size) != 0) {
        return;
    }
    uint8_t *const data = malloc (size);
    hws_effect_t *const effect = data ? push_loose (self) : NULL;
    if (effect == NULL) {
        free (data);
        return;
    }
    memcpy (data, self->scratch, size);
    effect->kind = HWS_EFFECT_SEND;
    effect->to = *to;
    effect->verb = hws_verb_word (message->verb);
    effect->data = data;
    effect->size = size;
}

void hws_engine_say_leaving (hws_engine_t *self, hws_peer_t *peer)
{
    hws_control_t goaway = {.verb = HWS_VERB_GOAWAY};
    hws_text_copy (goaway.as.reason, sizeof goaway.as.reason, self->leaving);
    hws_out_control (self, peer, &goaway);
}

/*  ---- Answers ---- */

void hws_engine_answer (hws_engine_t *self, hws_peer_t *peer, const hws_control_t *request,
                        hws_control_t *answer)
{
    if (!request->has_id) {
        return; /* without an id only errors are answered */
    }
    answer->verb = request->verb;
    answer->form = HWS_FORM_OK;
    answer->has_id = true;
    answer->id = request->id;
    hws_out_control (self, peer, answer);
}

__attribute__ ((format (printf, 5, 0))) static void refuse (hws_engine_t *self, hws_peer_t *peer,
                                                            const hws_control_t *request, int code,
                                                            const char *format, va_list arguments)
{
    /*  A verb that we do not know cannot be written either.  */
    const bool has_verb = request->has_id && request->verb < HWS_VERB_COUNT;
    hws_control_t answer = {.verb = has_verb ? request->verb : HWS_VERB_ERROR,
                            .form = HWS_FORM_ERR,
                            .has_id = request->has_id,
                            .id = request->id,
                            .as.refusal.code = code};
    char text[2 * sizeof (hws_reason_t)];
    if (vsnprintf (text, sizeof text, format, arguments) > 0) {
        hws_text_copy (answer.as.refusal.reason, sizeof answer.as.refusal.reason, text);
    }
    hws_out_control (self, peer, &answer);
}

void hws_engine_refuse (hws_engine_t *self, hws_peer_t *peer, const hws_control_t *request,
                        int code, const char *format, ...)
{
    self->stats.refused++;
    va_list arguments;
    va_start (arguments, format);
    refuse (self, peer, request, code, format, arguments);
    va_end (arguments);
}

void hws_engine_fault (hws_engine_t *self, hws_peer_t *peer, int code, const char *format, ...)
{
    self->stats.protocol_errors++;
    const hws_control_t nothing = {.verb = HWS_VERB_ERROR};
    va_list arguments;
    va_start (arguments, format);
    refuse (self, peer, &nothing, code, format, arguments);
    va_end (arguments);
}
