#include "bench/record.h"

#include <string.h>

enum { TAIL_BYTES = 8, WHOLE_MAX = 1024, PIECE_BYTES = 256 };

static uint8_t s_pattern[RECORD_BYTES_MAX];

static const uint8_t *pattern (void)
{
    if (s_pattern[1] == 0) {
        for (size_t i = 0; i < sizeof s_pattern; i++) {
            s_pattern[i] = (uint8_t) (i * 131 + i / 251);
        }
    }
    return s_pattern;
}

void record_fill (uint8_t *record, size_t size)
{
    memcpy (record, pattern (), size);
}

void record_stamp (uint8_t *record, size_t size, const record_head_t *head)
{
    memcpy (record, head, sizeof *head);
    memcpy (record + size - TAIL_BYTES, &head->seq, TAIL_BYTES);
}

static bool is_same (const uint8_t *data, size_t begin, size_t size)
{
    return memcmp (data + begin, pattern () + begin, size) == 0;
}

bool record_check (const void *data, size_t size, size_t expected_size, record_head_t *head)
{
    if (size != expected_size) {
        return false;
    }
    memcpy (head, data, sizeof *head);
    const uint8_t *const bytes = data;
    if (head->size != size || memcmp (bytes + size - TAIL_BYTES, &head->seq, TAIL_BYTES) != 0) {
        return false;
    }
    const size_t end = size - TAIL_BYTES;
    if (size <= WHOLE_MAX) {
        return is_same (bytes, sizeof *head, end - sizeof *head);
    }
    const size_t pieces = (end - sizeof *head) / PIECE_BYTES;
    return is_same (bytes, sizeof *head, PIECE_BYTES) &&
           is_same (bytes, end - PIECE_BYTES, PIECE_BYTES) &&
           is_same (bytes, sizeof *head + head->seq % pieces * PIECE_BYTES, PIECE_BYTES);
}
