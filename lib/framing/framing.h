/*  How records stand in a stream of bytes, a file or a pipe.
 *
 *  hawser-send cuts its input into records (splitter.h) and hawser-recv writes
 *  records with the marks that are given here; the same framing on both ends
 *  gives the same bytes, except that `line` and `nul` add a last delimiter that
 *  was missing. A record never contains its delimiter or its length.
 */
#ifndef HWS_FRAMING_H
#define HWS_FRAMING_H

#include "base/bytes.h"

#include <stdbool.h>

typedef enum {
    HWS_FRAMING_LINE,   /* each record ends with a newline */
    HWS_FRAMING_NUL,    /* each record ends with a NUL */
    HWS_FRAMING_LENGTH, /* before each record its size, as u32 big-endian */
    HWS_FRAMING_CHUNK   /* no marks: the stream is cut anywhere, and joined again */
} hws_framing_t;

/*  The words of the enum, in its order, a null at the end.  */
extern const char *const hws_framing_words[];

/*  A good size for the records of `chunk`: one fits a message of the default size,
 *  so that it need not travel in parts.  */
#define HWS_FRAMING_CHUNK_SIZE 61440

/*  What is written before and after one record.  */
typedef struct {
    uint8_t before[4];
    size_t before_size; /* bytes used of `before` */
    uint8_t after[1];
    size_t after_size; /* bytes used of `after` */
} hws_framing_marks_t;

/*  What people call a record of this framing: "line" or "record"; static.  */
const char *hws_framing_unit (hws_framing_t framing);

/*  Whether the reader of such a stream can use each record when it has come, so
 *  that output should be cut between records.  */
bool hws_framing_is_delimited (hws_framing_t framing);

/*  Whether a record holds the delimiter of the framing, so that who reads the stream takes it
 *  for more than one record.  */
bool hws_framing_is_broken_by (hws_framing_t framing, hws_bytes_t record);

/*  The marks of a record of `size` bytes. Returns 0, or HWS_ETOO_LARGE when the
 *  size does not fit its prefix.  */
int hws_framing_marks (hws_framing_t framing, size_t size, hws_framing_marks_t *marks);

#endif
