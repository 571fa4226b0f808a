#include "framing/framing.h"

#include "base/error.h"

const char *const hws_framing_words[] = {"line", "nul", "length", "chunk", NULL};

const char *hws_framing_unit (hws_framing_t framing)
{
    return framing == HWS_FRAMING_LINE ? "line" : "record";
}

bool hws_framing_is_delimited (hws_framing_t framing)
{
    return framing == HWS_FRAMING_LINE || framing == HWS_FRAMING_NUL;
}

bool hws_framing_is_broken_by (hws_framing_t framing, hws_bytes_t record)
{
    return hws_framing_is_delimited (framing) && record.size > 0 &&
           memchr (record.data, framing == HWS_FRAMING_LINE ? '\n' : '\0', record.size) != NULL;
}

int hws_framing_marks (hws_framing_t framing, size_t size, hws_framing_marks_t *marks)
{
    *marks = (hws_framing_marks_t){0};
    switch (framing) {
    case HWS_FRAMING_LINE:
        marks->after[0] = '\n';
        marks->after_size = 1;
        break;
    case HWS_FRAMING_NUL:
        marks->after_size = 1;
        break;
    case HWS_FRAMING_LENGTH:
        if (size > UINT32_MAX) {
            return HWS_ETOO_LARGE;
        }
        hws_put_u32 (marks->before, (uint32_t) size);
        marks->before_size = 4;
        break;
    case HWS_FRAMING_CHUNK:
        break;
    }
    return 0;
}
