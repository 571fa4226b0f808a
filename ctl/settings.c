#include "ctl/settings.h"

#include "conf/fields.h"

#include <stdio.h>

#define AT(member) offsetof (hws_ctl_settings_t, member)

#define CONNECT_MS 5000 /* how long a broker may be absent when nothing is waited for */

static const hws_field_t s_fields[] = {
    HWS_FIELD_OF_BROKER (AT (broker)),
    {.key = "reason",
     .type = HWS_FIELD_TEXT,
     .offset = AT (reason),
     .is_nullable = true,
     .check = hws_check_sentence,
     .option = {"reason", 'r', "TEXT"},
     .help = "what both ends of a cancelled stream are told"},
    HWS_FIELD_OF_WAIT (AT (wait_ms),
                       "wait so long for a broker that is not there yet; 0: 5 s; none: for ever"),
    {.type = HWS_FIELD_OPERANDS, .offset = AT (words), .max = 16},
};

const hws_program_t hws_ctl_program = {
    .name = "hawser-ctl",
    .summary = "Tells a broker what to do.\n\n"
               "  token               prints a new cancel token; no broker is asked\n"
               "  cancel-token TOKEN  cancels what carries the token, now or when it comes",
    .operands = "COMMAND [ARGUMENT]",
    .fields = s_fields,
    .field_count = sizeof s_fields / sizeof *s_fields,
    .values_size = sizeof (hws_ctl_settings_t),
};

int hws_ctl_read (const hws_ctl_settings_t *self, hws_ctl_command_t *command, uint64_t *token,
                  char *why, size_t size)
{
    const hws_texts_t *const words = &self->words;
    const char *const word = words->count > 0 ? words->text[0] : NULL;
    if (word == NULL) {
        snprintf (why, size, "a command is missing; see --help");
        return HWS_EINVALID;
    }
    const bool is_cancel = strcmp (word, "cancel-token") == 0;
    if (!is_cancel && strcmp (word, "token") != 0) {
        snprintf (why, size, "unknown command \"%s\"; see --help", word);
        return HWS_EINVALID;
    }
    const size_t count = is_cancel ? 2 : 1;
    if (words->count < count) {
        snprintf (why, size, "%s: TOKEN is missing", word);
        return HWS_EINVALID;
    }
    if (words->count > count) {
        snprintf (why, size, "unexpected argument \"%s\"", words->text[count]);
        return HWS_EINVALID;
    }
    char fault[128];
    if (is_cancel && !hws_check_token (hws_bytes_of_text (words->text[1]), fault, sizeof fault)) {
        snprintf (why, size, "%s: TOKEN %s", word, fault);
        return HWS_EINVALID;
    }
    *command = is_cancel ? HWS_CTL_CANCEL_TOKEN : HWS_CTL_TOKEN;
    *token = is_cancel ? hws_token_of (words->text[1]) : 0;
    return 0;
}

bool hws_ctl_has_wait (const hws_ctl_settings_t *self)
{
    return self->wait_ms.state == HWS_NULL || self->wait_ms.value > 0;
}

hws_client_options_t hws_ctl_client_options (const hws_ctl_settings_t *self)
{
    const int64_t wait_ms =
        self->wait_ms.state == HWS_NULL ? HWS_FOREVER : (int64_t) self->wait_ms.value;
    return (hws_client_options_t){
        .endpoint = self->broker,
        .name = hws_ctl_program.name,
        .connect_ms = wait_ms == 0 ? CONNECT_MS : wait_ms,
        .give_up_ms = HWS_FOREVER,
    };
}
