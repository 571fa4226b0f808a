#include "sender/settings.h"

#include "conf/fields.h"

#define AT(member) offsetof (hws_send_settings_t, member)

#define CONNECT_MS 5000 /* how long a broker may be absent when nothing is waited for */

static const hws_field_t s_fields[] = {
    HWS_FIELD_OF_BROKER (AT (broker)),
    {.key = "anchor",
     .type = HWS_FIELD_TEXT,
     .offset = AT (anchor),
     .is_required = true,
     .check = hws_check_name_or_handle,
     .option = {"anchor", 'a', "NAME|HANDLE"},
     .help = "anchor to send to"},
    {.key = "label",
     .type = HWS_FIELD_TEXT,
     .offset = AT (label),
     .is_nullable = true,
     .check = hws_check_label,
     .option = {"label", 'l', "LABEL"},
     .help = "what the receiver calls this sender"},
    HWS_FIELD_OF_CANCEL_TOKEN (
        AT (cancel_token),
        "whoever knows this number can cancel the stream, also before it is attached "
        "(hawser-ctl)"),
    HWS_FIELD_OF_WAIT (
        AT (wait_ms),
        "wait so long for a broker that is not there yet, and as long for the anchor or room in "
        "its buffer, but not for another sender to leave; 0: 5 s for a broker and not at all "
        "for an anchor; none: for ever"),
    HWS_FIELD_OF_GIVE_UP (AT (give_up_ms)),
    {.key = "framing",
     .type = HWS_FIELD_WORD,
     .offset = AT (framing),
     .preset = "line",
     .words = hws_framing_words,
     .option = {"framing", 'f', "HOW"},
     .help = "how records lie in the input: line, nul, length (u32, big-endian) or chunk; not "
             "sent along: give both ends the same"},
    {.key = "chunk_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (chunk_bytes),
     .preset = "60K",
     .min = 1,
     .max = 1 << 30,
     .option = {"chunk-bytes", 0, "SIZE"},
     .help = "size of a record with --framing chunk"},
    {.key = "finalize",
     .type = HWS_FIELD_FLAG,
     .offset = AT (finalize),
     .preset = "false",
     .option = {"finalize", 0, NULL},
     .help = "close an exclusive anchor (hawser-recv --exclusive) with the end of the input; any "
             "other stays open"},
    {.key = "progress",
     .type = HWS_FIELD_FLAG,
     .offset = AT (progress),
     .preset = "false",
     .option = {"progress", 'p', NULL},
     .help = "show records, rate and bytes on stderr if it is a terminal"},
    HWS_FIELD_OF_LOG_LEVEL (AT (log_level), "what is said on stderr: error, warn, info or debug"),
    {.type = HWS_FIELD_OPERANDS, .offset = AT (files), .max = 65536, .check = hws_check_path},
};

static const hws_alias_t s_aliases[] = {
    HWS_ALIAS_OF_NULL,
    HWS_ALIAS_OF_VERBOSE ("say more"),
    HWS_ALIAS_OF_QUIET ("say less"),
};

const hws_program_t hws_send_program = {
    .name = "hawser-send",
    .summary = "Sends records from files, or standard input, to an anchor. It ends when the\n"
               "receiver has acknowledged everything.",
    .operands = "[FILE]...",
    .fields = s_fields,
    .field_count = sizeof s_fields / sizeof *s_fields,
    .aliases = s_aliases,
    .alias_count = sizeof s_aliases / sizeof *s_aliases,
    .values_size = sizeof (hws_send_settings_t),
};

static int64_t length_of (hws_optional_t optional)
{
    return optional.state == HWS_VALUE ? (int64_t) optional.value : HWS_FOREVER;
}

hws_client_options_t hws_send_client_options (const hws_send_settings_t *self)
{
    const int64_t wait_ms = length_of (self->wait_ms);
    return (hws_client_options_t){
        .endpoint = self->broker,
        .name = hws_send_program.name,
        .connect_ms = wait_ms == 0 ? CONNECT_MS : wait_ms,
        .give_up_ms = length_of (self->give_up_ms),
    };
}

/*  What is to wait waits for the answer too; and how long a chunk may be is known from there.  */
hws_sender_options_t hws_send_sender_options (const hws_send_settings_t *self)
{
    const int64_t wait_ms = length_of (self->wait_ms);
    return (hws_sender_options_t){
        .label = self->label,
        .wait_ms = wait_ms,
        .early = wait_ms == 0 && self->framing != HWS_FRAMING_CHUNK,
        .cancel_token = hws_token_of (self->cancel_token),
    };
}
