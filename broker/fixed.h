/*  The settings that a reload cannot change, as they are in force.
 *
 *  Endpoints and socket options are set once, when the broker starts. A reload that
 *  asks for others is told so, key by key, and the rest of it holds.
 */
#ifndef HWS_FIXED_H
#define HWS_FIXED_H

#include "broker/settings.h"

typedef struct {
    hws_texts_t listen; /* own copies */
    char *state_dir;    /* the same; null for none */
    bool allow_insecure;
    uint64_t send_queue;
    uint64_t batch_bytes;
    uint64_t peers;  /* the most that the sockets were prepared for */
    uint64_t fronts; /* the same */
} hws_fixed_t;

/*  Copies them. Returns 0 or HWS_ENO_MEMORY; hws_fixed_fini is right after both.  */
int hws_fixed_init (hws_fixed_t *self, const hws_broker_settings_t *settings);
void hws_fixed_fini (hws_fixed_t *self);

/*  The keys that `settings` would change are put into `keys`, of HWS_FIXED_KEYS_MAX;
 *  returns how many.  */
#define HWS_FIXED_KEYS_MAX 7
size_t hws_fixed_changes (const hws_fixed_t *self, const hws_broker_settings_t *settings,
                          const char *keys[HWS_FIXED_KEYS_MAX]);

/*  The limits of a reload, with what cannot change as it was.  */
hws_limits_t hws_fixed_limits (const hws_fixed_t *self, const hws_broker_settings_t *settings);

#endif
