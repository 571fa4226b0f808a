/*  Cuts a stream of bytes into records.
 *
 *  The program reads into the splitter's room and takes records until there is
 *  none; bytes are copied only when a record spans two reads. Memory is bounded
 *  by the largest record and one read. Bytes of a record are never looked at
 *  except for the delimiter, so NULs and invalid UTF-8 pass untouched.
 *
 *      while ((rc = hws_splitter_next (&splitter, &record)) == HWS_EWOULD_BLOCK) {
 *          room = hws_splitter_room (&splitter, &size);
 *          n = read (fd, room, size);
 *          n > 0 ? hws_splitter_fill (&splitter, n) : hws_splitter_end (&splitter);
 *      }
 */
#ifndef HWS_SPLITTER_H
#define HWS_SPLITTER_H

#include "base/bytes.h"
#include "framing/framing.h"

#include <stdbool.h>

typedef struct {
    hws_framing_t framing;
    uint64_t size_max;     /* bytes of the largest record */
    uint64_t chunk_size;   /* bytes of the largest record that `chunk` makes */
    uint8_t *buffer;       /* null until there was need of room */
    size_t capacity;       /* bytes of it */
    size_t begin;          /* offset of the first byte that was not taken */
    size_t end;            /* offset behind the last byte that has come */
    size_t scanned;        /* bytes from `begin` on that hold no delimiter */
    bool is_ended;         /* nothing more comes */
    uint64_t record_count; /* records taken */
} hws_splitter_t;

/*  A splitter at the beginning of a stream. `chunk_size` is for HWS_FRAMING_CHUNK,
 *  which makes records of at most so many bytes out of whatever has come.  */
void hws_splitter_init (hws_splitter_t *self, hws_framing_t framing, uint64_t size_max,
                        uint64_t chunk_size);

/*  Frees the buffer; records taken are gone.  */
void hws_splitter_fini (hws_splitter_t *self);

/*  Where to put the bytes that come next, and how many fit, which is never little.
 *  The records taken so far are gone. Returns null when memory is out.  */
uint8_t *hws_splitter_room (hws_splitter_t *self, size_t *size);

/*  So many bytes were put into the room.  */
void hws_splitter_fill (hws_splitter_t *self, size_t size);

/*  The stream has ended; what is left is its last record.  */
void hws_splitter_end (hws_splitter_t *self);

/*  The largest record is known only now, and the one that was taken last is over it: that counts
 *  as not taken.  */
void hws_splitter_refuse (hws_splitter_t *self, uint64_t size_max);

/*  Takes the next record, which lives until hws_splitter_room. Returns 0;
 *  HWS_EWOULD_BLOCK when more bytes are needed; HWS_EENDED after the last record;
 *  HWS_ETOO_LARGE for a record over the limit, known as early as possible;
 *  HWS_EMALFORMED when the stream ends within a length or its record, so that a
 *  cut-off input is never taken for a whole one. The last three stay.  */
int hws_splitter_next (hws_splitter_t *self, hws_bytes_t *record);

/*  A sentence about HWS_ETOO_LARGE or HWS_EMALFORMED: which record, counted from 1,
 *  and which limit. `text` of `size` bytes is always ended by a NUL.  */
void hws_splitter_explain (const hws_splitter_t *self, int code, char *text, size_t size);

#endif
