#include "broker/fixed.h"

#include <stdlib.h>

int hws_fixed_init (hws_fixed_t *self, const hws_broker_settings_t *settings)
{
    *self = (hws_fixed_t){.allow_insecure = settings->allow_insecure,
                          .send_queue = settings->send_queue,
                          .batch_bytes = settings->limits.batch_bytes,
                          .peers = settings->limits.peers,
                          .fronts = settings->limits.fronts};
    self->state_dir = settings->state_dir ? strdup (settings->state_dir) : NULL;
    self->listen.text = calloc (settings->listen.count, sizeof *self->listen.text);
    if (!self->listen.text || (settings->state_dir && !self->state_dir)) {
        return HWS_ENO_MEMORY;
    }
    for (; self->listen.count < settings->listen.count; self->listen.count++) {
        char *const copy = strdup (settings->listen.text[self->listen.count]);
        if (!copy) {
            return HWS_ENO_MEMORY;
        }
        self->listen.text[self->listen.count] = copy;
    }
    return 0;
}

void hws_fixed_fini (hws_fixed_t *self)
{
    for (size_t i = 0; i < self->listen.count; i++) {
        free (self->listen.text[i]);
    }
    free (self->listen.text);
    self->listen = (hws_texts_t){0};
    free (self->state_dir);
    self->state_dir = NULL;
}

static bool is_same_text (const char *a, const char *b)
{
    return a && b ? strcmp (a, b) == 0 : a == b;
}

static bool is_same_list (const hws_texts_t *a, const hws_texts_t *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (strcmp (a->text[i], b->text[i]) != 0) {
            return false;
        }
    }
    return true;
}

size_t hws_fixed_changes (const hws_fixed_t *self, const hws_broker_settings_t *settings,
                          const char *keys[HWS_FIXED_KEYS_MAX])
{
    const struct {
        const char *key;
        bool is_changed;
    } all[HWS_FIXED_KEYS_MAX] = {
        {"listen", !is_same_list (&self->listen, &settings->listen)},
        {"state_dir", !is_same_text (self->state_dir, settings->state_dir)},
        {"allow_insecure", self->allow_insecure != settings->allow_insecure},
        {"limits.send_queue", self->send_queue != settings->send_queue},
        {"limits.batch_bytes", self->batch_bytes != settings->limits.batch_bytes},
        {"limits.peers", settings->limits.peers > self->peers},
        {"limits.fronts", settings->limits.fronts > self->fronts},
    };
    size_t count = 0;
    for (size_t i = 0; i < HWS_FIXED_KEYS_MAX; i++) {
        if (all[i].is_changed) {
            keys[count++] = all[i].key;
        }
    }
    return count;
}

hws_limits_t hws_fixed_limits (const hws_fixed_t *self, const hws_broker_settings_t *settings)
{
    hws_limits_t limits = settings->limits;
    limits.batch_bytes = self->batch_bytes;
    if (limits.peers > self->peers) {
        limits.peers = self->peers;
    }
    if (limits.fronts > self->fronts) {
        limits.fronts = self->fronts;
    }
    return limits;
}
