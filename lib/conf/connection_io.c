#include "conf/connection_io.h"

#include "conf/number.h"

void hws_connection_say (void *words, bool is_connected, const char *text)
{
    const hws_connection_words_t *const self = words;
    if (is_connected) {
        hws_console_say (self->console, HWS_LOG_INFO, "the broker at %s is back", self->broker);
        return;
    }
    char length[HWS_NUMBER_TEXT_SIZE] = "ever";
    if (self->give_up_ms >= 0) {
        hws_number_print (HWS_FIELD_DURATION, (uint64_t) self->give_up_ms, length);
    }
    hws_console_say (self->console, HWS_LOG_INFO, "the broker at %s went away, trying for %s",
                     self->broker, length);
    hws_console_say (self->console, HWS_LOG_DEBUG, "%s", text);
}
