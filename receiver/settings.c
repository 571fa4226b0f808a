#include "receiver/settings.h"

#include "conf/fields.h"

#define AT(member) offsetof (hws_recv_settings_t, member)
#define DAY_MS     86400000
#define CONNECT_MS 5000 /* how long a broker may be absent at first */

const char *const hws_format_words[] = {
    [HWS_FORMAT_TEXT] = "text",
    [HWS_FORMAT_JSON] = "json",
    [HWS_FORMAT_RAW] = "raw",
    [HWS_FORMAT_RAW + 1] = NULL,
};

static const hws_field_t s_fields[] = {
    HWS_FIELD_OF_BROKER (AT (broker)),
    {.key = "anchor",
     .type = HWS_FIELD_TEXT,
     .offset = AT (anchor),
     .is_nullable = true,
     .check = hws_check_name,
     .option = {"anchor", 'a', "NAME"},
     .help =
         "name of the anchor to open; without one it has only a handle, which the line \"open - "
         "HANDLE\" on stderr tells"},
    HWS_FIELD_OF_WAIT (
        AT (wait_ms),
        "wait so long for a broker that is not there yet, and until the name is free; 0: 5 s "
        "for a broker and not at all for the name; none: for ever"),
    {.key = "senders",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (senders),
     .is_nullable = true,
     .preset = "none",
     .min = 1,
     .max = HWS_INTEGER_MAX,
     .option = {"senders", 'n', "N"},
     .help = "end when so many senders have come and ended"},
    {.key = "timeout_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (timeout_ms),
     .is_nullable = true,
     .preset = "none",
     .max = HWS_INTEGER_MAX,
     .option = {"timeout", 'T', "DURATION"},
     .help = "end after so long, with status 4"},
    {.key = "count",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (count),
     .is_nullable = true,
     .preset = "none",
     .min = 1,
     .max = HWS_INTEGER_MAX,
     .option = {"count", 0, "N"},
     .help = "end after so many records"},
    {.key = "format",
     .type = HWS_FIELD_WORD,
     .offset = AT (format),
     .preset = "text",
     .words = hws_format_words,
     .option = {"format", 'F', "FORMAT"},
     .help = "text (the records, framed, without the ids of their senders), json (an object a "
             "line for each event, see docs/json.md) or raw (the bytes of the records, nothing "
             "between them)"},
    {.key = "framing",
     .type = HWS_FIELD_WORD,
     .offset = AT (framing),
     .preset = "line",
     .words = hws_framing_words,
     .option = {"framing", 'f', "HOW"},
     .help = "how records lie in the output: line, nul, length (u32, big-endian) or chunk; not "
             "sent along: give both ends the same"},
    {.key = "output_dir",
     .type = HWS_FIELD_TEXT,
     .offset = AT (output_dir),
     .is_nullable = true,
     .check = hws_check_path,
     .option = {"output-dir", 'o', "DIR"},
     .help = "write one file for each sender into DIR and nothing to standard output"},
    {.key = "resume",
     .type = HWS_FIELD_TEXT,
     .offset = AT (resume),
     .is_nullable = true,
     .check = hws_check_path,
     .option = {"resume", 'r', "FILE"},
     .help =
         "keep in FILE what another hawser-recv needs to go on with this anchor, and go on with "
         "it if FILE is there; the anchor then stays when this receiver is stopped or dies"},
    {.key = "progress",
     .type = HWS_FIELD_FLAG,
     .offset = AT (progress),
     .preset = "false",
     .option = {"progress", 'p', NULL},
     .help = "show records, rate, bytes and senders on stderr if it is a terminal and no records "
             "go to one"},
    HWS_FIELD_OF_GIVE_UP (AT (give_up_ms)),
    HWS_FIELD_OF_LOG_LEVEL (AT (log_level), "what is said on stderr: error, warn, info or debug"),

    HWS_FIELD_OF_CANCEL_TOKEN (
        AT (cancel_token),
        "whoever knows this number can cancel the anchor, also before it is open "
        "(hawser-ctl)"),
    {.key = "exclusive",
     .type = HWS_FIELD_FLAG,
     .offset = AT (exclusive),
     .preset = "false",
     .option = {"exclusive", 0, NULL},
     .help = "take one sender at a time, and end when one finalizes (hawser-send --finalize)"},
    {.key = "dedicated",
     .type = HWS_FIELD_FLAG,
     .offset = AT (dedicated),
     .preset = "false",
     .option = {"dedicated", 0, NULL},
     .help = "have a socket of the broker's for this anchor alone, a port or a path of its own; "
             "senders find it"},
    {.key = "heartbeat_interval_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (heartbeat_interval_ms),
     .min = 10,
     .max = DAY_MS,
     .option = {"heartbeat", 0, "DURATION"},
     .help = "a sender silent for three of these is dropped"},
    {.key = "reconnect_grace_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (reconnect_grace_ms),
     .max = DAY_MS,
     .option = {"grace", 0, "DURATION"},
     .help = "how long a sender may be away before it is dropped; at least four heartbeats"},
    {.key = "unattached_timeout_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (unattached_timeout_ms),
     .is_nullable = true,
     .min = 1,
     .max = HWS_INTEGER_MAX,
     .option = {"unattached-timeout", 0, "DURATION"},
     .help = "close the anchor when it has no senders for so long; none: never"},
    {.key = "orphan_ttl_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (orphan_ttl_ms),
     .max = DAY_MS,
     .option = {"orphan-ttl", 0, "DURATION"},
     .help = "how long senders wait for this receiver when it is away, and the anchor for one that "
             "goes on (--resume)"},
    {.key = "max_senders",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (max_senders),
     .is_nullable = true,
     .min = 1,
     .max = UINT32_MAX,
     .option = {"max-senders", 0, "N"},
     .help = "senders at one time; none: as many as the broker allows; with --exclusive always 1"},
    {.key = "buffer_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (buffer_bytes),
     .min = 64 * 1024,
     .max = HWS_INTEGER_MAX,
     .option = {"buffer", 0, "SIZE"},
     .help = "records that may be sent and not yet acknowledged"},
};

static const hws_alias_t s_aliases[] = {
    HWS_ALIAS_OF_NULL,
    HWS_ALIAS_OF_VERBOSE ("say more"),
    HWS_ALIAS_OF_QUIET ("say less"),
};

static int check (hws_conf_t *conf, const void *values)
{
    const hws_recv_settings_t *const self = values;
    if (self->output_dir && self->format == HWS_FORMAT_JSON) {
        return hws_conf_blame (conf, "format",
                               "json goes to standard output, not into files of senders");
    }
    if (self->framing != HWS_FRAMING_LINE && self->format != HWS_FORMAT_TEXT) {
        return hws_conf_blame (conf, "framing",
                               "is for --format text; %s needs none, whatever the senders have",
                               hws_format_words[self->format]);
    }
    return 0;
}

const hws_program_t hws_recv_program = {
    .name = "hawser-recv",
    .summary =
        "Opens an anchor and prints the records of its senders as they come. What an option\n"
        "of the anchor does not say is the broker's to choose. The name of a file in DIR is\n"
        "the sender's label, or its id; a name in use gets .ID added, and what a file name\n"
        "should not hold (/, leading dots, control characters) is replaced by _. No file\n"
        "that is there is written to, but those that a receiver with the same --resume FILE\n"
        "has begun.",
    .fields = s_fields,
    .field_count = sizeof s_fields / sizeof *s_fields,
    .aliases = s_aliases,
    .alias_count = sizeof s_aliases / sizeof *s_aliases,
    .values_size = sizeof (hws_recv_settings_t),
    .check = check,
};

static int64_t length_of (hws_optional_t optional)
{
    if (optional.state == HWS_ABSENT) {
        return HWS_DEFAULT;
    }
    return optional.state == HWS_VALUE ? (int64_t) optional.value : HWS_FOREVER;
}

bool hws_recv_draws_progress (const hws_recv_settings_t *self, bool is_stdout_terminal)
{
    return self->progress && (self->output_dir || !is_stdout_terminal);
}

int64_t hws_recv_wait_ms (const hws_recv_settings_t *self)
{
    return length_of (self->wait_ms);
}

bool hws_recv_has_wait (const hws_recv_settings_t *self)
{
    return hws_recv_wait_ms (self) != 0;
}

hws_client_options_t hws_recv_client_options (const hws_recv_settings_t *self)
{
    return (hws_client_options_t){
        .endpoint = self->broker,
        .name = hws_recv_program.name,
        .connect_ms = hws_recv_has_wait (self) ? hws_recv_wait_ms (self) : CONNECT_MS,
        .give_up_ms = length_of (self->give_up_ms),
    };
}

hws_receiver_options_t hws_recv_receiver_options (const hws_recv_settings_t *self)
{
    return (hws_receiver_options_t){
        .heartbeat_interval_ms = length_of (self->heartbeat_interval_ms),
        .reconnect_grace_ms = length_of (self->reconnect_grace_ms),
        .unattached_timeout_ms = length_of (self->unattached_timeout_ms),
        .orphan_ttl_ms = length_of (self->orphan_ttl_ms),
        .max_senders = length_of (self->max_senders),
        .buffer_bytes = length_of (self->buffer_bytes),
        .wait_ms = HWS_FOREVER,
        .cancel_token = hws_token_of (self->cancel_token),
        .exclusive = self->exclusive,
        .dedicated = self->dedicated,
    };
}
