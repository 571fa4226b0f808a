#include "base/utf8.h"

#include "base/error.h"

/*  How a character begins, and the range that its second byte must be in: these
 *  ranges are what keeps overlong forms, surrogates and too large ones out (the
 *  table of RFC 3629, section 4).  */
typedef struct {
    uint8_t first, last;        /* of the leading byte */
    uint8_t second_low;         /* least second byte */
    uint8_t second_high;        /* greatest second byte */
    uint8_t continuation_count; /* bytes after the leading one */
    uint8_t mask;               /* bits of the leading byte that belong to the code point */
} lead_t;

static const lead_t s_leads[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 1, 0x1f}, {0xe0, 0xe0, 0xa0, 0xbf, 2, 0x0f},
    {0xe1, 0xec, 0x80, 0xbf, 2, 0x0f}, {0xed, 0xed, 0x80, 0x9f, 2, 0x0f},
    {0xee, 0xef, 0x80, 0xbf, 2, 0x0f}, {0xf0, 0xf0, 0x90, 0xbf, 3, 0x07},
    {0xf1, 0xf3, 0x80, 0xbf, 3, 0x07}, {0xf4, 0xf4, 0x80, 0x8f, 3, 0x07},
};

static const lead_t *find_lead (uint8_t byte)
{
    for (size_t i = 0; i < sizeof s_leads / sizeof *s_leads; i++) {
        if (byte >= s_leads[i].first && byte <= s_leads[i].last) {
            return &s_leads[i];
        }
    }
    return NULL;
}

int hws_utf8_next (hws_cursor_t *cursor, uint32_t *code_point)
{
    if (cursor->left == 0) {
        return 0;
    }
    const uint8_t *const at = cursor->at;
    if (at[0] < 0x80) {
        *code_point = hws_cursor_u8 (cursor);
        return 1;
    }
    const lead_t *const lead = find_lead (at[0]);
    if (lead == NULL || lead->continuation_count >= cursor->left || at[1] < lead->second_low ||
        at[1] > lead->second_high) {
        return HWS_EMALFORMED;
    }
    uint32_t value = at[0] & lead->mask;
    for (size_t i = 1; i <= lead->continuation_count; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return HWS_EMALFORMED;
        }
        value = value << 6 | (at[i] & 0x3fu);
    }
    hws_cursor_take (cursor, lead->continuation_count + 1u);
    *code_point = value;
    return 1;
}

/*  What takes no room or directs the text: Unicode's format characters (Cf) without the
 *  signs that are visible, its line and paragraph separators, and letters that are
 *  blank. Selectors of variants are not here: they follow what is visible.  */
static const struct {
    uint32_t first, last; /* both of them */
} s_hidden[] = {
    {0x00ad, 0x00ad},   /* soft hyphen */
    {0x034f, 0x034f},   /* grapheme joiner */
    {0x061c, 0x061c},   /* Arabic letter mark */
    {0x115f, 0x1160},   /* Hangul fillers */
    {0x17b4, 0x17b5},   /* inherent vowels of Khmer */
    {0x180e, 0x180e},   /* Mongolian vowel separator */
    {0x200b, 0x200f},   /* of no width, joiners, left-to-right and right-to-left mark */
    {0x2028, 0x202e},   /* separators; embeddings and overrides of direction */
    {0x2060, 0x206f},   /* invisible operators, isolates of direction, deprecated ones */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xfeff, 0xfeff},   /* byte order mark */
    {0xffa0, 0xffa0},   /* Hangul filler of half width */
    {0xfff9, 0xfffb},   /* annotations */
    {0x1bca0, 0x1bca3}, /* shorthand */
    {0x1d173, 0x1d17a}, /* music */
    {0xe0000, 0xe0fff}, /* tags */
};

bool hws_utf8_is_plain (uint32_t code_point)
{
    if (hws_utf8_is_control (code_point)) {
        return false;
    }
    for (size_t i = 0; i < sizeof s_hidden / sizeof *s_hidden; i++) {
        if (code_point >= s_hidden[i].first && code_point <= s_hidden[i].last) {
            return false;
        }
    }
    return true;
}

bool hws_utf8_is_valid (hws_bytes_t text)
{
    hws_cursor_t cursor = hws_cursor (text);
    uint32_t code_point;
    int rc;
    do {
        rc = hws_utf8_next (&cursor, &code_point);
    } while (rc > 0);
    return rc == 0;
}
