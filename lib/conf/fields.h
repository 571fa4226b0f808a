/*  Fields and aliases that the tables of several programs share, so that an option is the
 *  same everywhere. `at` is the offset of the field's value; endpoint.h and words.h have
 *  what they refer to.
 */
#ifndef HWS_FIELDS_H
#define HWS_FIELDS_H

#include "base/limits.h"
#include "conf/endpoint.h"
#include "conf/words.h"

/*  Of clients: where the broker is.  */
#define HWS_FIELD_OF_BROKER(at)                                                                    \
    {                                                                                              \
        .key = "broker", .type = HWS_FIELD_TEXT, .offset = (at), .preset = HWS_DEFAULT_ENDPOINT,   \
        .check = hws_endpoint_check_connect, .environment = "HAWSER_BROKER",                       \
        .option = {"broker", 'b', "ENDPOINT"}, .help = "where the broker listens"                  \
    }

/*  How long they wait for it at first; what that means is the program's to say.  */
#define HWS_FIELD_OF_WAIT(at, text)                                                                \
    {                                                                                              \
        .key = "wait_ms", .type = HWS_FIELD_DURATION, .offset = (at), .is_nullable = true,         \
        .preset = "0", .max = HWS_INTEGER_MAX, .option = {"wait", 'w', "DURATION"}, .help = text   \
    }

#define HWS_FIELD_OF_GIVE_UP(at)                                                                   \
    {                                                                                              \
        .key = "give_up_ms", .type = HWS_FIELD_DURATION, .offset = (at), .is_nullable = true,      \
        .preset = "1m", .max = HWS_INTEGER_MAX, .option = {"give-up", 0, "DURATION"},              \
        .help = "try so long to reach a broker that went away; none: for ever"                     \
    }

#define HWS_FIELD_OF_CANCEL_TOKEN(at, text)                                                        \
    {                                                                                              \
        .key = "cancel_token", .type = HWS_FIELD_TEXT, .offset = (at), .is_nullable = true,        \
        .check = hws_check_token, .option = {"cancel-token", 0, "TOKEN"}, .help = text             \
    }

/*  Of all programs that log.  */
#define HWS_FIELD_OF_LOG_LEVEL(at, text)                                                           \
    {                                                                                              \
        .key = "log.level", .type = HWS_FIELD_WORD, .offset = (at), .preset = "info",              \
        .words = hws_level_words, .option = {"log-level", 0, "LEVEL"}, .help = text                \
    }

#define HWS_ALIAS_OF_NULL                                                                          \
    {                                                                                              \
        .option = {"null", '0', NULL}, .key = "framing", .value = "nul", .help = "--framing nul"   \
    }
#define HWS_ALIAS_OF_VERBOSE(text)                                                                 \
    {                                                                                              \
        .option = {"verbose", 'v', NULL}, .key = "log.level", .step = 1, .help = text              \
    }
#define HWS_ALIAS_OF_QUIET(text)                                                                   \
    {                                                                                              \
        .option = {"quiet", 'q', NULL}, .key = "log.level", .step = -1, .help = text               \
    }

#endif
