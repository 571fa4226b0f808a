#include "broker/settings.h"

#include "base/limits.h"
#include "base/version.h"
#include "conf/endpoint.h"
#include "conf/fields.h"

#include <inttypes.h>

#define AT(member) offsetof (hws_broker_settings_t, member)
#define DAY_MS     86400000
#define KIB        1024
#define MIB        (1024 * KIB)
#define GIB        (UINT64_C (1024) * MIB)

static const hws_field_t s_fields[] = {
    {.key = "listen",
     .type = HWS_FIELD_LIST,
     .offset = AT (listen),
     .preset = HWS_DEFAULT_ENDPOINT,
     .min = 1,
     .max = 64,
     .check = hws_endpoint_check_listen,
     .option = {"listen", 'l', "ENDPOINT"},
     .help = "endpoint to listen on, tcp://HOST:PORT or ipc://PATH; may be repeated"},
    {.key = "state_dir",
     .type = HWS_FIELD_TEXT,
     .offset = AT (state_dir),
     .is_nullable = true,
     .preset = "auto",
     .check = hws_check_path,
     .option = {"state-dir", 0, "DIR"},
     .help = "directory of what outlives a restart; auto: the system's or the user's; null: none"},

    {.key = "anchors.heartbeat_interval_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (anchors.heartbeat_interval_ms),
     .preset = "5s",
     .min = 10,
     .max = DAY_MS,
     .help = "a sender silent for three of these is dropped"},
    {.key = "anchors.reconnect_grace_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (anchors.reconnect_grace_ms),
     .preset = "10s",
     .max = DAY_MS,
     .help = "how long a sender may be away before it is dropped"},
    {.key = "anchors.unattached_timeout_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (anchors.unattached_timeout_ms),
     .is_nullable = true,
     .preset = "none",
     .min = 1,
     .max = HWS_INTEGER_MAX,
     .help = "an anchor without senders for so long is closed; null: never"},
    {.key = "anchors.orphan_ttl_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (anchors.orphan_ttl_ms),
     .preset = "30s",
     .max = DAY_MS,
     .help = "how long senders wait for a receiver that is away"},
    {.key = "anchors.max_senders",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (anchors.max_senders),
     .is_nullable = true,
     .preset = "none",
     .min = 1,
     .max = UINT32_MAX,
     .help = "senders of one anchor at one time; null: as many as the limits allow"},
    {.key = "anchors.buffer_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (anchors.buffer_bytes),
     .preset = "64M",
     .min = 64 * KIB,
     .max = HWS_INTEGER_MAX,
     .help = "records of one anchor that may be sent and not yet acknowledged"},
    {.key = "anchors.window_bytes_min",
     .type = HWS_FIELD_SIZE,
     .offset = AT (anchors.window_bytes_min),
     .preset = "16K",
     .min = HWS_EARLY_BYTES,
     .max = GIB,
     .help = "the window that every sender has; all of them take half of buffer_bytes"},
    {.key = "anchors.window_bytes_max",
     .type = HWS_FIELD_SIZE,
     .offset = AT (anchors.window_bytes_max),
     .preset = "4M",
     .min = HWS_EARLY_BYTES,
     .max = GIB,
     .help = "the largest window, lent to a sender that uses it, out of the other half"},
    {.key = "anchors.window_records",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (anchors.window_records),
     .preset = "65536",
     .min = HWS_EARLY_RECORDS,
     .max = 1 << 30,
     .help = "how many records every sender may run ahead of the receiver"},

    {.key = "cancel.orphan_ttl_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (limits.cancel_orphan_ttl_ms),
     .preset = "120s",
     .max = DAY_MS,
     .help = "how long a cancelled token is remembered, for what comes later"},
    {.key = "cancel.sweep_interval_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (limits.cancel_sweep_ms),
     .preset = "1s",
     .max = DAY_MS,
     .help = "the least time between two searches for those that are over"},

    {.key = "limits.heartbeat_min_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (limits.heartbeat_min_ms),
     .preset = "100ms",
     .min = 10,
     .max = 60000,
     .help = "the shortest heartbeat interval that an anchor may ask for"},
    {.key = "limits.peers",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.peers),
     .preset = "10000",
     .min = 1,
     .max = 1000000,
     .help = "clients at one time"},
    {.key = "limits.anchors",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.anchors),
     .preset = "4096",
     .min = 1,
     .max = 1000000,
     .help = "anchors at one time"},
    {.key = "limits.anchors_per_peer",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.anchors_per_peer),
     .preset = "1024",
     .min = 1,
     .max = 1000000,
     .help = "anchors of one client"},
    {.key = "limits.senders_per_anchor",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.senders_per_anchor),
     .preset = "4096",
     .min = 1,
     .max = 1000000,
     .help = "senders of one anchor at one time"},
    {.key = "limits.seats_per_peer",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.seats_per_peer),
     .preset = "4096",
     .min = 1,
     .max = 1000000,
     .help = "senders of one client at one time"},
    {.key = "limits.exiting_seats",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.exiting_seats),
     .preset = "4096",
     .min = 1,
     .max = 1000000,
     .help = "senders of one anchor whose ending is not yet acknowledged"},
    {.key = "limits.fronts",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.fronts),
     .preset = "256",
     .max = 16384,
     .help = "dedicated anchors, each with a socket of its own, at one time"},
    {.key = "limits.waiting_attaches",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.waiting_attaches),
     .preset = "4096",
     .max = 1000000,
     .help = "attaches that wait for an anchor, or for the front of a dedicated one"},
    {.key = "limits.wait_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (limits.wait_ms),
     .preset = "24h",
     .max = HWS_INTEGER_MAX,
     .help = "the longest that such an attach waits"},
    {.key = "limits.tombstones",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.tombstones),
     .preset = "65536",
     .max = 10000000,
     .help = "ended streams that are remembered"},
    {.key = "limits.record_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (limits.record_bytes),
     .preset = "16M",
     .min = 1,
     .max = GIB,
     .help = "the largest record"},
    {.key = "limits.batch_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (limits.batch_bytes),
     .preset = "256K",
     .min = HWS_BATCH_BYTES_MIN,
     .max = MIB,
     .help = "the largest message"},
    {.key = "limits.buffer_bytes",
     .type = HWS_FIELD_SIZE,
     .offset = AT (limits.buffer_bytes),
     .is_nullable = true,
     .preset = "none",
     .min = 64 * KIB,
     .max = HWS_INTEGER_MAX,
     .help = "the buffers of all anchors together; null: unlimited"},
    {.key = "limits.cancel_orphans",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.cancel_orphans),
     .preset = "65536",
     .max = 10000000,
     .help = "cancelled tokens that are remembered"},
    {.key = "limits.cancel_orphans_per_peer",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (limits.cancel_orphans_per_peer),
     .preset = "1024",
     .max = 10000000,
     .help = "those of one client"},
    {.key = "limits.send_queue",
     .type = HWS_FIELD_INTEGER,
     .offset = AT (send_queue),
     .preset = "1024",
     .min = 16,
     .max = 1000000,
     .help = "messages that wait for one connection"},

    HWS_FIELD_OF_LOG_LEVEL (AT (log_level), "what is logged: error, warn, info or debug"),
    {.key = "drain_timeout_ms",
     .type = HWS_FIELD_DURATION,
     .offset = AT (drain_timeout_ms),
     .preset = "5s",
     .max = 3600000,
     .help = "the longest that a stop by SIGTERM or SIGINT takes"},
    {.key = "allow_insecure",
     .type = HWS_FIELD_FLAG,
     .offset = AT (allow_insecure),
     .preset = "false",
     .help = "allow plain TCP beyond this machine"},
};

static const hws_alias_t s_aliases[] = {
    HWS_ALIAS_OF_VERBOSE ("log more"),
    HWS_ALIAS_OF_QUIET ("log less"),
};

/*  ---- Rules between fields ---- */

static bool is_same_endpoint (const hws_endpoint_parts_t *a, const hws_endpoint_parts_t *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    if (a->kind == HWS_ENDPOINT_IPC) {
        return strcmp (a->path, b->path) == 0;
    }
    return a->port != 0 && a->port == b->port && strcmp (a->host, b->host) == 0;
}

static int check_listen (hws_conf_t *conf, const hws_broker_settings_t *settings)
{
    hws_endpoint_parts_t parts, earlier;
    for (size_t i = 0; i < settings->listen.count; i++) {
        const char *const text = settings->listen.text[i];
        hws_endpoint_parse (hws_bytes_of_text (text), HWS_ENDPOINT_LISTEN, &parts, NULL, 0);
        if (!parts.is_local && !settings->allow_insecure) {
            return hws_conf_blame (conf, "listen",
                                   "\"%s\" is plain TCP beyond this machine; if that is meant, set "
                                   "\"allow_insecure\": true in the file given with -c",
                                   text);
        }
        for (size_t j = 0; j < i; j++) {
            hws_endpoint_parse (hws_bytes_of_text (settings->listen.text[j]), HWS_ENDPOINT_LISTEN,
                                &earlier, NULL, 0);
            if (is_same_endpoint (&parts, &earlier)) {
                return hws_conf_blame (conf, "listen", "\"%s\" comes twice", text);
            }
        }
    }
    return 0;
}

/*  A rule that one number may not be above another, or its half.  */
typedef struct {
    const char *lower;
    uint64_t lower_value;
    const char *upper;
    uint64_t upper_value;
    enum { WHOLE = 1, HALF = 2 } part; /* that counts of the upper one */
} order_t;

static int check_order (hws_conf_t *conf, const order_t *order)
{
    if (order->lower_value <= order->upper_value / order->part) {
        return 0;
    }
    const char *const share = order->part == HALF ? "half of " : "";
    if (hws_conf_source (conf, order->upper) > hws_conf_source (conf, order->lower)) {
        return hws_conf_blame (conf, order->upper, "%s%smust be at least %s, which is %" PRIu64,
                               share, *share ? "it " : "", order->lower, order->lower_value);
    }
    return hws_conf_blame (conf, order->lower, "must be at most %s%s, which is %" PRIu64, share,
                           order->upper, order->upper_value);
}

/*  An absent upper bound is no bound, an absent value below every one.  */
static uint64_t upper_of (hws_optional_t optional)
{
    return optional.state == HWS_VALUE ? optional.value : UINT64_MAX;
}

static int check (hws_conf_t *conf, const void *values)
{
    const hws_broker_settings_t *const settings = values;
    const hws_anchor_defaults_t *const anchors = &settings->anchors;
    const hws_limits_t *const limits = &settings->limits;
    const order_t orders[] = {
        {"anchors.window_bytes_min", anchors->window_bytes_min, "anchors.window_bytes_max",
         anchors->window_bytes_max, WHOLE},
        {"anchors.window_bytes_min", anchors->window_bytes_min, "anchors.buffer_bytes",
         anchors->buffer_bytes, HALF},
        {"limits.record_bytes", limits->record_bytes, "anchors.buffer_bytes", anchors->buffer_bytes,
         HALF},
        {"limits.heartbeat_min_ms", limits->heartbeat_min_ms, "anchors.heartbeat_interval_ms",
         anchors->heartbeat_interval_ms, WHOLE},
        {"anchors.max_senders", anchors->max_senders.value, "limits.senders_per_anchor",
         limits->senders_per_anchor, WHOLE},
        {"anchors.buffer_bytes", anchors->buffer_bytes, "limits.buffer_bytes",
         upper_of (limits->buffer_bytes), WHOLE},
    };
    int rc = check_listen (conf, settings);
    for (size_t i = 0; rc == 0 && i < sizeof orders / sizeof *orders; i++) {
        rc = check_order (conf, &orders[i]);
    }
    return rc;
}

const hws_program_t hws_broker_program = {
    .name = "hawser-broker",
    .summary = "Hosts anchors: streams that many senders write and one receiver reads.",
    .fields = s_fields,
    .field_count = sizeof s_fields / sizeof *s_fields,
    .aliases = s_aliases,
    .alias_count = sizeof s_aliases / sizeof *s_aliases,
    .values_size = sizeof (hws_broker_settings_t),
    .check = check,
};
