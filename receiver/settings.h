/*  The settings of hawser-recv: its field table and the structure they land in.  */
#ifndef HWS_RECEIVER_SETTINGS_H
#define HWS_RECEIVER_SETTINGS_H

#include "conf/conf.h"
#include "framing/framing.h"
#include "hawser.h"
#include "proto/control.h"

typedef enum {
    HWS_FORMAT_TEXT, /* records as they are, framed */
    HWS_FORMAT_JSON, /* one object a line for every event */
    HWS_FORMAT_RAW   /* the records' bytes and nothing between them */
} hws_format_t;

extern const char *const hws_format_words[];

typedef struct {
    char *broker;              /* its endpoint */
    char *anchor;              /* its name, or null: handle only */
    hws_optional_t wait_ms;    /* for the broker and a name in use; 0: not at all, null: for ever */
    hws_optional_t senders;    /* end when so many have come and ended; null: no end */
    hws_optional_t timeout_ms; /* end with status 4 after so long; null: no limit */
    hws_optional_t count;      /* end after so many records; null: no end */
    int format;                /* hws_format_t */
    int framing;               /* hws_framing_t */
    char *output_dir;          /* one file for each sender, or null: all to stdout */
    char *resume;              /* file that outlives the process, or null: none */
    bool progress;             /* draw it, where hws_recv_draws_progress allows */
    hws_optional_t give_up_ms; /* for a broker that went away; null: never */
    int log_level;             /* hws_log_level_t */
    char *cancel_token;        /* in decimal, or null */
    bool exclusive;            /* the anchor takes one sender at a time */
    bool dedicated;            /* the anchor has a socket of its own at the broker */

    /*  The anchor's own; HWS_ABSENT: what the broker has for a default.  */
    hws_optional_t heartbeat_interval_ms;
    hws_optional_t reconnect_grace_ms;
    hws_optional_t unattached_timeout_ms; /* null: never */
    hws_optional_t orphan_ttl_ms;
    hws_optional_t max_senders; /* null: unlimited */
    hws_optional_t buffer_bytes;
} hws_recv_settings_t;

/*  For hws_program_start.  */
extern const hws_program_t hws_recv_program;

/*  Whether progress is to be drawn, if stderr is a terminal: not when records go to a terminal
 *  too, where the two would overwrite each other.  */
bool hws_recv_draws_progress (const hws_recv_settings_t *self, bool is_stdout_terminal);

/*  Whether something is waited for, and how long: milliseconds, or HWS_FOREVER.  */
bool hws_recv_has_wait (const hws_recv_settings_t *self);
int64_t hws_recv_wait_ms (const hws_recv_settings_t *self);

/*  What the library is to be called with; the texts belong to the settings.  */
hws_client_options_t hws_recv_client_options (const hws_recv_settings_t *self);
hws_receiver_options_t hws_recv_receiver_options (const hws_recv_settings_t *self);

#endif
