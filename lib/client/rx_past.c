#include "client/rx_past.h"

#include "client/rx_part.h"

#include <stdlib.h>

void hws_rx_past_free (hws_rx_t *rx, hws_rx_past_t *past)
{
    hws_map_remove (&rx->streams->past, &past->node);
    hws_list_remove (&past->link);
    hws_list_remove (&past->ack_link);
    free (past);
}

hws_rx_past_t *hws_rx_past_new (hws_rx_t *rx, uint64_t sender_id)
{
    hws_rx_past_t *const past = malloc (sizeof *past);
    if (!past) {
        return NULL;
    }
    *past = (hws_rx_past_t){.sender_id = sender_id};
    hws_rx_key_put (past->key, rx, sender_id);
    hws_map_insert (&rx->streams->past, &past->node, hws_bytes (past->key, sizeof past->key));
    hws_list_append (&rx->past, &past->link);
    if (rx->past.count > HWS_RX_REMEMBERED_MAX) {
        hws_rx_past_free (rx, hws_container_of (rx->past.head, hws_rx_past_t, link));
    }
    return past;
}

void hws_rx_past_ask_ack (hws_rx_t *rx, hws_rx_past_t *past)
{
    const bool is_told_end = past->ending != 0;
    if ((is_told_end || !rx->is_cut) && past->id != 0 && !hws_link_is_in_list (&past->ack_link)) {
        hws_list_append (&rx->past_acks, &past->ack_link);
        hws_rx_note_busy (rx);
    }
}
