/*  The settings of hawser-send: its field table and the structure they land in.  */
#ifndef HWS_SENDER_SETTINGS_H
#define HWS_SENDER_SETTINGS_H

#include "conf/conf.h"
#include "framing/framing.h"
#include "hawser.h"
#include "proto/control.h"

typedef struct {
    char *broker;              /* its endpoint */
    char *anchor;              /* name or handle; never null once checked */
    char *label;               /* or null */
    char *cancel_token;        /* in decimal, or null */
    hws_optional_t wait_ms;    /* for the broker and the anchor; 0: not at all, null: for ever */
    hws_optional_t give_up_ms; /* for a broker that went away; null: never */
    int framing;               /* hws_framing_t */
    uint64_t chunk_bytes;      /* of one record with framing chunk */
    bool finalize;             /* close an exclusive anchor at the end */
    bool progress;             /* draw it, when stderr is a terminal */
    int log_level;             /* hws_log_level_t */
    hws_texts_t files;         /* operands, "-" for stdin; empty: stdin */
} hws_send_settings_t;

/*  For hws_program_start.  */
extern const hws_program_t hws_send_program;

/*  What the library is to be called with; the texts belong to the settings.  */
hws_client_options_t hws_send_client_options (const hws_send_settings_t *self);
hws_sender_options_t hws_send_sender_options (const hws_send_settings_t *self);

#endif
