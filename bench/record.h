/*  The records that the bench sends: a head that says whose they are and when they were sent,
 *  a pattern, and the number again at the end, so that a record that was cut, mixed up or
 *  changed is seen.
 */
#ifndef BENCH_RECORD_H
#define BENCH_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RECORD_BYTES_MIN = 40, RECORD_BYTES_MAX = 65536 };

typedef struct {
    uint32_t stream; /* among all of the run */
    uint32_t size;   /* of the record */
    uint64_t seq;    /* of the stream, from 0 */
    int64_t sent_at; /* nanoseconds of the monotonic clock; 0 where nobody asks */
} record_head_t;

/*  Fills in everything but the stamps.  */
void record_fill (uint8_t *record, size_t size);

/*  Stamps a filled record.  */
void record_stamp (uint8_t *record, size_t size, const record_head_t *head);

/*  Reads the head of what arrived, and says whether it is whole: all of it is compared up to
 *  1 KiB; beyond that its ends, and a piece that moves on with each record.  */
bool record_check (const void *data, size_t size, size_t expected_size, record_head_t *head);

#endif
