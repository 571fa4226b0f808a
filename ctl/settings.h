/*  The settings of hawser-ctl: its field table, the structure they land in, and what its
 *  operands ask for.
 */
#ifndef HWS_CTL_SETTINGS_H
#define HWS_CTL_SETTINGS_H

#include "conf/conf.h"
#include "hawser.h"
#include "proto/control.h"

typedef struct {
    char *broker;           /* its endpoint */
    char *reason;           /* of a cancel, or null */
    hws_optional_t wait_ms; /* for the broker; 0: not at all, null: for ever */
    hws_texts_t words;      /* operands: a command and what it is about */
} hws_ctl_settings_t;

typedef enum { HWS_CTL_TOKEN, HWS_CTL_CANCEL_TOKEN } hws_ctl_command_t;

/*  For hws_program_start.  */
extern const hws_program_t hws_ctl_program;

/*  What the operands ask for: a command and, for one that has one, its token. Returns 0, or
 *  HWS_EINVALID and one line in `why` of `size` bytes.  */
int hws_ctl_read (const hws_ctl_settings_t *self, hws_ctl_command_t *command, uint64_t *token,
                  char *why, size_t size);

bool hws_ctl_has_wait (const hws_ctl_settings_t *self);

/*  What the library is to be called with; the texts belong to the settings.  */
hws_client_options_t hws_ctl_client_options (const hws_ctl_settings_t *self);

#endif
