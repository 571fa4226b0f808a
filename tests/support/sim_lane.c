#include "tests/support/sim_lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static sim_packet_t *packet_of (hws_link_t *link)
{
    return hws_container_of (link, sim_packet_t, link);
}

void sim_lane_put (sim_lane_t *self, hws_ms_t at, const char *verb, const uint8_t *data,
                   size_t size)
{
    sim_packet_t *const packet = malloc (sizeof *packet + size);
    assert_non_null (packet);
    packet->at = at > self->last_at ? at : self->last_at;
    packet->verb = verb;
    packet->size = size;
    memcpy (packet->bytes, data, size);
    packet->link = (hws_link_t){0};
    hws_list_append (&self->packets, &packet->link);
    self->last_at = packet->at;
}

sim_packet_t *sim_lane_take (sim_lane_t *self, hws_ms_t now)
{
    if (sim_lane_next_at (self) > now) {
        return NULL;
    }
    return packet_of (hws_list_pop (&self->packets));
}

hws_ms_t sim_lane_next_at (const sim_lane_t *self)
{
    return self->packets.head ? packet_of (self->packets.head)->at : HWS_NEVER;
}

void sim_lane_cut (sim_lane_t *self, size_t kept)
{
    while (self->packets.count > kept) {
        hws_link_t *const link = self->packets.tail;
        hws_list_remove (link);
        free (packet_of (link));
    }
}

void sim_lane_delay (sim_lane_t *self, hws_ms_t length_ms)
{
    for (hws_link_t *link = self->packets.head; link; link = link->next) {
        packet_of (link)->at += length_ms;
    }
    self->last_at += length_ms;
}
