/*  The options that every program has, beside those of its table; for lib/conf only.  */
#ifndef HWS_OPTIONS_H
#define HWS_OPTIONS_H

#include "conf/table.h"

typedef enum {
    HWS_SHARED_CONFIG,
    HWS_SHARED_CHECK,
    HWS_SHARED_PRINT,
    HWS_SHARED_SCHEMA,
    HWS_SHARED_HELP,
    HWS_SHARED_VERSION,
    HWS_SHARED_COUNT
} hws_shared_t;

typedef struct {
    hws_option_t option;
    const char *help;
} hws_shared_option_t;

extern const hws_shared_option_t hws_shared_options[HWS_SHARED_COUNT];

/*  The long option of the program most like `name`, or null.  */
const char *hws_option_nearest (const hws_program_t *program, const char *name);

#endif
