#include "conf/words.h"

#include "base/limits.h"
#include "base/utf8.h"
#include "conf/number.h"
#include "proto/handle.h"
#include "proto/name.h"

#include <stdio.h>

/*  In the order of hws_log_level_t; a unit test holds them together.  */
const char *const hws_level_words[] = {"error", "warn", "info", "debug", NULL};

static bool is_handle (hws_bytes_t text)
{
    hws_handle_t handle;
    return hws_handle_parse (text, &handle) == 0;
}

/*  The sentence for a name or label that hws_name_is_valid refuses.  */
static const char *fault_of (hws_bytes_t text)
{
    if (text.size == 0) {
        return "must not be empty";
    }
    if (text.size > HWS_NAME_SIZE_MAX) {
        return "must have at most 255 bytes";
    }
    if (!hws_utf8_is_valid (text)) {
        return "must be valid UTF-8";
    }
    return is_handle (text) ? "must not be 32 hexadecimal digits, which are a handle"
                            : "must not contain control characters";
}

bool hws_check_name (hws_bytes_t text, char *why, size_t size)
{
    if (hws_name_is_valid (text)) {
        return true;
    }
    snprintf (why, size, "%s", fault_of (text));
    return false;
}

bool hws_check_name_or_handle (hws_bytes_t text, char *why, size_t size)
{
    return is_handle (text) || hws_check_name (text, why, size);
}

bool hws_check_label (hws_bytes_t text, char *why, size_t size)
{
    return hws_check_name (text, why, size);
}

bool hws_check_sentence (hws_bytes_t text, char *why, size_t size)
{
    const bool is_long = text.size > HWS_TEXT_SIZE_MAX;
    if (!is_long && hws_utf8_is_valid (text)) {
        return true;
    }
    snprintf (why, size, "%s", is_long ? "must have at most 1024 bytes" : "must be valid UTF-8");
    return false;
}

bool hws_check_token (hws_bytes_t text, char *why, size_t size)
{
    uint64_t token;
    if (hws_number_parse (HWS_FIELD_INTEGER, text, &token) == 0 && token != 0) {
        return true;
    }
    snprintf (why, size, "must be a whole number from 1 to 18446744073709551615");
    return false;
}

uint64_t hws_token_of (const char *text)
{
    uint64_t token = 0;
    if (text) {
        hws_number_parse (HWS_FIELD_INTEGER, hws_bytes_of_text (text), &token);
    }
    return token;
}

bool hws_check_path (hws_bytes_t text, char *why, size_t size)
{
    if (text.size == 0) {
        snprintf (why, size, "must not be empty");
    }
    return text.size > 0;
}
