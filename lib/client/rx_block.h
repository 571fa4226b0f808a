/*  What is queued for the reader of an anchor: for each batch one block with an entry for
 *  each event or run of records. For rx.c, which fills them, and rx_reader.c, which walks
 *  them.
 */
#ifndef HWS_RX_BLOCK_H
#define HWS_RX_BLOCK_H

#include "client/rx.h"

/*  One event or run of records in the queue.  */
typedef struct {
    hws_rx_stream_t *stream; /* null: the anchor is CLOSED */
    uint8_t type;            /* hws_run_type_t, VOID with CLOSED; above 127: is passed over */
    bool is_broker_made;     /* CLOSED, or an ending by the broker */
    uint16_t cause;          /* of an ending or CLOSED */
    uint32_t count;          /* numbers */
    uint32_t skip;           /* the first so many were seen before */
    uint64_t first_seq;
    uint64_t wire;    /* bytes that it counts; not of whole records and broker-made endings */
    uint8_t *joined;  /* a record of parts: its bytes, owned; else null */
    hws_bytes_t body; /* of the run, in the payload; the joined record; the text of an ending */
} hws_rx_entry_t;

/*  What one batch brought for this anchor.  */
struct hws_rx_block {
    hws_rx_block_t *next;
    hws_payload_t *payload; /* what the bodies view into, or null */
    uint32_t count;
    uint32_t room;
    hws_rx_entry_t entries[];
};

/*  An empty block with room for so many entries; null without memory.  */
hws_rx_block_t *hws_rx_block_new (uint32_t room);

/*  Frees a block, or it and all that follow, and lets go of their payloads.  */
void hws_rx_block_free (hws_rx_block_t *block);
void hws_rx_blocks_free (hws_rx_block_t *first);

#endif
