/*  What an anchor remembers of a sender when the application has consumed its ending: where it
 *  stood, and how it ended, for a broker that missed the acknowledgement or is another one since.
 *  Little of each, for they are many.
 */
#ifndef HWS_RX_PAST_H
#define HWS_RX_PAST_H

#include "client/rx.h"

struct hws_rx_past {
    hws_map_node_t node; /* in the client's map of them, by `key` */
    uint8_t key[HWS_RX_KEY_SIZE];
    hws_link_t link;     /* in `past` of its rx, oldest first */
    hws_link_t ack_link; /* in `past_acks` of its rx */
    uint64_t id;         /* routing session id, when the broker has told it again */
    uint64_t sender_id;
    uint64_t seat_key;
    uint64_t acked_seq, acked_bytes;
    uint16_t cause;
    uint8_t ending; /* hws_run_type_t; 0: it was made here, the broker has none */
};

/*  Remembers a sender; of too many the oldest is forgotten. Null without memory.  */
hws_rx_past_t *hws_rx_past_new (hws_rx_t *rx, uint64_t sender_id);
void hws_rx_past_free (hws_rx_t *rx, hws_rx_past_t *past);

/*  The broker is to be told again that its ending is consumed.  */
void hws_rx_past_ask_ack (hws_rx_t *rx, hws_rx_past_t *past);

#endif
