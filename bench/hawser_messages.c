#include "bench/hawser_messages.h"

#include "io/dealer_io.h"
#include "proto/batch.h"

#include <stdatomic.h>
#include <stdbool.h>

int __real_hws_dealer_send (hws_dealer_t *dealer, zmq_msg_t *message);
int __wrap_hws_dealer_send (hws_dealer_t *dealer, zmq_msg_t *message);
int __real_hws_dealer_recv (hws_dealer_t *dealer, zmq_msg_t frames[2]);
int __wrap_hws_dealer_recv (hws_dealer_t *dealer, zmq_msg_t frames[2]);

static _Atomic uint64_t s_count; /* the client's thread counts, another asks */

uint64_t hawser_messages (void)
{
    return s_count;
}

static bool has_records (zmq_msg_t *message)
{
    const uint8_t *const data = zmq_msg_data (message);
    return zmq_msg_size (message) >= HWS_BATCH_HEADER_SIZE && data[0] == HWS_BATCH_MARK &&
           data[1] == HWS_BATCH_DATA;
}

int __wrap_hws_dealer_send (hws_dealer_t *dealer, zmq_msg_t *message)
{
    const bool counts = has_records (message);
    const int rc = __real_hws_dealer_send (dealer, message);
    s_count += rc == 0 && counts;
    return rc;
}

int __wrap_hws_dealer_recv (hws_dealer_t *dealer, zmq_msg_t frames[2])
{
    const int count = __real_hws_dealer_recv (dealer, frames);
    s_count += count == 1 && has_records (&frames[0]);
    return count;
}
