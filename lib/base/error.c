#include "base/error.h"

#include <string.h>

typedef struct {
    int code;
    const char *word;
    const char *text;
} error_entry_t;

static const error_entry_t s_errors[] = {
#define HWS_ERROR_ENTRY(name, number, word, text) {number, word, text},
    HWS_ERROR_LIST (HWS_ERROR_ENTRY)
#undef HWS_ERROR_ENTRY
};

static const error_entry_t *find (int code)
{
    for (size_t i = 0; i < sizeof s_errors / sizeof *s_errors; i++) {
        if (s_errors[i].code == code) {
            return &s_errors[i];
        }
    }
    return NULL;
}

const char *hws_strerror (int code)
{
    if (code == 0) {
        return "no error";
    }
    const error_entry_t *const entry = find (code);
    return entry ? entry->text : "unknown error";
}

const char *hws_error_word (int code)
{
    if (code == 0) {
        return "ok";
    }
    const error_entry_t *const entry = find (code);
    return entry ? entry->word : "unknown";
}

int hws_error_from_word (const char *word, unsigned long size)
{
    for (size_t i = 0; i < sizeof s_errors / sizeof *s_errors; i++) {
        if (strlen (s_errors[i].word) == size && memcmp (s_errors[i].word, word, size) == 0) {
            return s_errors[i].code;
        }
    }
    return HWS_EPROTOCOL;
}
