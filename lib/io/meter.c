#include "io/meter.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define STRETCH_MS 1000

typedef char number_t[32];

/*  A number with commas between thousands.  */
static const char *grouped (uint64_t value, number_t text)
{
    number_t digits;
    const size_t count = (size_t) snprintf (digits, sizeof digits, "%" PRIu64, value);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0) {
            text[size++] = ',';
        }
        text[size++] = digits[i];
    }
    text[size] = '\0';
    return text;
}

static const char *scaled (double bytes, number_t text)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    size_t unit = 0;
    while (bytes >= 1000 && unit + 1 < sizeof units / sizeof *units) {
        bytes /= 1000;
        unit++;
    }
    snprintf (text, sizeof (number_t), unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
    return text;
}

void hws_meter_init (hws_meter_t *self, hws_ms_t now)
{
    *self = (hws_meter_t){.measured_at = now};
}

/*  Until the first stretch is over its own rate so far counts.  */
static void measure (hws_meter_t *self, hws_ms_t now, hws_amount_t amount)
{
    const hws_ms_t length_ms = now - self->measured_at;
    const bool is_first = self->measured.records == 0 && self->record_rate <= 0;
    if (length_ms <= 0 || (length_ms < STRETCH_MS && !is_first)) {
        return;
    }
    self->record_rate =
        (double) (amount.records - self->measured.records) * 1e3 / (double) length_ms;
    self->byte_rate = (double) (amount.bytes - self->measured.bytes) * 1e3 / (double) length_ms;
    if (length_ms >= STRETCH_MS) {
        self->measured_at = now;
        self->measured = amount;
    }
}

void hws_meter_text (hws_meter_t *self, hws_ms_t now, hws_amount_t amount, char *text, size_t size)
{
    measure (self, now, amount);
    number_t records, bytes, record_rate, byte_rate;
    snprintf (text, size, "%s record%s, %s, %s records/s, %s/s", grouped (amount.records, records),
              hws_plural (amount.records), scaled ((double) amount.bytes, bytes),
              grouped ((uint64_t) self->record_rate, record_rate),
              scaled (self->byte_rate, byte_rate));
}
