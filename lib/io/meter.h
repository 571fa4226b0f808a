/*  The line of progress of a program: how much went through, and how fast.  */
#ifndef HWS_METER_H
#define HWS_METER_H

#include "base/time.h"

#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t records; /* so far */
    uint64_t bytes;   /* of their contents */
} hws_amount_t;

typedef struct {
    hws_ms_t measured_at;  /* begin of the present stretch of measurement */
    hws_amount_t measured; /* what there was then */
    double record_rate;    /* in the stretch before it, a second */
    double byte_rate;      /* the same */
} hws_meter_t;

void hws_meter_init (hws_meter_t *self, hws_ms_t now);

/*  Writes "1,204,000 records, 73.5 MB, 2,410,000 records/s, 147.1 MB/s" into `text` of
 *  `size` bytes, which is always ended by a NUL. Rates are those of about the last
 *  second.  */
void hws_meter_text (hws_meter_t *self, hws_ms_t now, hws_amount_t amount, char *text, size_t size);

#endif
