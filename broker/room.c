#include "broker/room.h"

#define OWN               32 /* stdio, libzmq's own, signals */
#define CONNECTIONS_SPARE 64 /* beyond limits.peers: for those that are refused politely */
#define FRONTS_SPARE      64 /* beyond limits.fronts: for those that are closing */
#define PEERS_MAX         UINT64_C (1000000)

static size_t own_of (const hws_broker_settings_t *settings)
{
    return OWN + HWS_LISTENER_DESCRIPTORS * settings->listen.count;
}

static size_t connections_of (const hws_broker_settings_t *settings)
{
    const uint64_t peers = settings->limits.peers;
    return (size_t) (peers < PEERS_MAX ? peers : PEERS_MAX) + CONNECTIONS_SPARE;
}

static size_t fronts_of (const hws_broker_settings_t *settings)
{
    return settings->limits.fronts > 0 ? (size_t) settings->limits.fronts + FRONTS_SPARE : 0;
}

size_t hws_room_front_cost (size_t endpoint_count)
{
    return HWS_FRONT_DESCRIPTORS + HWS_LISTENER_DESCRIPTORS * endpoint_count;
}

static size_t shared_of (const hws_broker_settings_t *settings)
{
    return connections_of (settings) +
           fronts_of (settings) * hws_room_front_cost (settings->listen.count);
}

size_t hws_room_wanted (const hws_broker_settings_t *settings)
{
    const size_t used = own_of (settings) + shared_of (settings);
    return used + used / 7 + 1;
}

/*  An eighth stays free for connections that come faster than they are refused. When what is left
 *  is not enough for all, fronts may take half of it.  */
int hws_room_share (hws_room_t *self, const hws_broker_settings_t *settings, size_t descriptors)
{
    const size_t kept = own_of (settings) + descriptors / 8;
    if (descriptors <= kept) {
        return HWS_ELIMIT;
    }
    *self = (hws_room_t){.descriptors = shared_of (settings),
                         .connections = connections_of (settings),
                         .fronts = fronts_of (settings)};
    const size_t left = descriptors - kept;
    const size_t fronts = left / 2 / hws_room_front_cost (settings->listen.count);
    if (left < self->descriptors) {
        self->descriptors = left;
        self->connections = left < self->connections ? left : self->connections;
        self->fronts = fronts < self->fronts ? fronts : self->fronts;
    }
    return 0;
}
