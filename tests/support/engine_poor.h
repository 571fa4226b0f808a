/*  The engine without memory: allocations in its calls fail when a test says so. For programs that
 *  are linked so that its allocations, and its calls, go through the functions here (Makefile).
 */
#ifndef TEST_ENGINE_POOR_H
#define TEST_ENGINE_POOR_H

#include "tests/support/engine_test.h"

#include <cjson/cJSON.h>

static size_t s_depth;     /* inside of calls of the engine */
static size_t s_countdown; /* allocations until one fails; 0: none does */
static size_t s_failures;
static bool s_is_for_good;

static bool fails (void)
{
    if (s_depth == 0 || s_countdown == 0) {
        return false;
    }
    if (s_countdown > 1) {
        s_countdown--;
        return false;
    }
    s_failures++;
    s_countdown = s_is_for_good ? 1 : 0;
    return true;
}

/*  ---- Wrapped ---- */

void *__real_malloc (size_t size);
void *__real_calloc (size_t count, size_t size);
void *__real_realloc (void *block, size_t size);
char *__real_strdup (const char *text);
char *__real_strndup (const char *text, size_t size);
void *__wrap_malloc (size_t size);
void *__wrap_calloc (size_t count, size_t size);
void *__wrap_realloc (void *block, size_t size);
char *__wrap_strdup (const char *text);
char *__wrap_strndup (const char *text, size_t size);

void *__wrap_malloc (size_t size)
{
    return fails () ? NULL : __real_malloc (size);
}

void *__wrap_calloc (size_t count, size_t size)
{
    return fails () ? NULL : __real_calloc (count, size);
}

void *__wrap_realloc (void *block, size_t size)
{
    return fails () ? NULL : __real_realloc (block, size);
}

char *__wrap_strdup (const char *text)
{
    return fails () ? NULL : __real_strdup (text);
}

char *__wrap_strndup (const char *text, size_t size)
{
    return fails () ? NULL : __real_strndup (text, size);
}

int __real_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message);
void __real_hws_engine_peer_gone (hws_engine_t *self, hws_ms_t now_ms,
                                  const hws_address_t *address);
void __real_hws_engine_refused (hws_engine_t *self, hws_ms_t now_ms, hws_effect_t *effect);
void __real_hws_engine_expire (hws_engine_t *self, hws_ms_t now_ms);
void __real_hws_engine_flush (hws_engine_t *self);
bool __real_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect);
void __real_hws_engine_drain (hws_engine_t *self, hws_ms_t now_ms, const char *reason);
void __real_hws_engine_bound (hws_engine_t *self, hws_ms_t now_ms, uint32_t front, int rc,
                              const hws_endpoint_t *endpoints, size_t endpoint_count,
                              const char *text);
int __wrap_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message);
void __wrap_hws_engine_peer_gone (hws_engine_t *self, hws_ms_t now_ms,
                                  const hws_address_t *address);
void __wrap_hws_engine_refused (hws_engine_t *self, hws_ms_t now_ms, hws_effect_t *effect);
void __wrap_hws_engine_expire (hws_engine_t *self, hws_ms_t now_ms);
void __wrap_hws_engine_flush (hws_engine_t *self);
bool __wrap_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect);
void __wrap_hws_engine_drain (hws_engine_t *self, hws_ms_t now_ms, const char *reason);
void __wrap_hws_engine_bound (hws_engine_t *self, hws_ms_t now_ms, uint32_t front, int rc,
                              const hws_endpoint_t *endpoints, size_t endpoint_count,
                              const char *text);

int __wrap_hws_engine_recv (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *from,
                            hws_message_t *message)
{
    s_depth++;
    const int rc = __real_hws_engine_recv (self, now_ms, from, message);
    s_depth--;
    return rc;
}

void __wrap_hws_engine_peer_gone (hws_engine_t *self, hws_ms_t now_ms, const hws_address_t *address)
{
    s_depth++;
    __real_hws_engine_peer_gone (self, now_ms, address);
    s_depth--;
}

void __wrap_hws_engine_refused (hws_engine_t *self, hws_ms_t now_ms, hws_effect_t *effect)
{
    s_depth++;
    __real_hws_engine_refused (self, now_ms, effect);
    s_depth--;
}

void __wrap_hws_engine_expire (hws_engine_t *self, hws_ms_t now_ms)
{
    s_depth++;
    __real_hws_engine_expire (self, now_ms);
    s_depth--;
}

void __wrap_hws_engine_flush (hws_engine_t *self)
{
    s_depth++;
    __real_hws_engine_flush (self);
    s_depth--;
}

bool __wrap_hws_engine_pop (hws_engine_t *self, hws_effect_t *effect)
{
    s_depth++;
    const bool is_one = __real_hws_engine_pop (self, effect);
    s_depth--;
    return is_one;
}

void __wrap_hws_engine_drain (hws_engine_t *self, hws_ms_t now_ms, const char *reason)
{
    s_depth++;
    __real_hws_engine_drain (self, now_ms, reason);
    s_depth--;
}

void __wrap_hws_engine_bound (hws_engine_t *self, hws_ms_t now_ms, uint32_t front, int rc,
                              const hws_endpoint_t *endpoints, size_t endpoint_count,
                              const char *text)
{
    s_depth++;
    __real_hws_engine_bound (self, now_ms, front, rc, endpoints, endpoint_count, text);
    s_depth--;
}

/*  JSON is read with the same memory.  */
static inline void poor_begin (void)
{
    cJSON_InitHooks (&(cJSON_Hooks){.malloc_fn = __wrap_malloc, .free_fn = free});
}

#endif
