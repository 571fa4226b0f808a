/*  The streams of all anchors of a client, found by the number that the broker has for each, which
 *  is another one in every epoch, and by rx and sender, which stays.
 */
#ifndef HWS_RX_STREAMS_H
#define HWS_RX_STREAMS_H

#include "base/map.h"

#define HWS_RX_KEY_SIZE (sizeof (void *) + 8) /* an rx and a sender id, as bytes */

typedef struct hws_rx hws_rx_t;
typedef struct hws_rx_stream hws_rx_stream_t;
typedef struct hws_rx_past hws_rx_past_t;

typedef struct {
    hws_map_t by_id;     /* hws_rx_stream_t, by routing session id */
    hws_map_t by_sender; /* the same, by rx and sender id */
    hws_map_t past;      /* hws_rx_past_t, likewise */
} hws_rx_streams_t;

/*  Returns 0 or HWS_ENO_MEMORY; either way hws_rx_streams_fini may be called.  */
int hws_rx_streams_init (hws_rx_streams_t *self, hws_hash_key_t hash_key);
void hws_rx_streams_fini (hws_rx_streams_t *self);

/*  The stream of a routing session id, or null.  */
hws_rx_stream_t *hws_rx_find (const hws_rx_streams_t *self, uint64_t id);

/*  The stream of a sender of the rx, or what is remembered of it; or null. Another rx of the same
 *  anchor has other streams.  */
hws_rx_stream_t *hws_rx_find_sender (const hws_rx_t *rx, uint64_t sender_id);
hws_rx_past_t *hws_rx_find_past (const hws_rx_t *rx, uint64_t sender_id);

/*  Writes the key of a sender.  */
void hws_rx_key_put (uint8_t key[HWS_RX_KEY_SIZE], const hws_rx_t *rx, uint64_t sender_id);

#endif
