/*  The broker's settings: its field table and the structure they land in.
 *
 *  The table is the only place that knows the defaults and the ranges. Security
 *  and admin keys come with the issues that need them.
 */
#ifndef HWS_BROKER_SETTINGS_H
#define HWS_BROKER_SETTINGS_H

#include "broker/engine.h"
#include "conf/conf.h"

typedef struct {
    hws_texts_t listen; /* endpoints of the shared front; at least one */
    hws_anchor_defaults_t anchors;
    hws_limits_t limits;
    uint64_t send_queue;       /* messages that wait for one connection */
    uint64_t drain_timeout_ms; /* the longest a stop takes */
    int log_level;             /* hws_log_level_t */
    char *state_dir;           /* a path, HWS_STATE_AUTO, or null for none */
    bool allow_insecure;       /* plain TCP beyond loopback */
} hws_broker_settings_t;

/*  For hws_program_start.  */
extern const hws_program_t hws_broker_program;

#endif
