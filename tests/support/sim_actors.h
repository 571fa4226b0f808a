/*  Who lives in a virtual network: senders and receivers with their applications, and what these
 *  were shown. Whatever an application sees is checked at once: order, one ending, nothing
 *  behind it, and of an exclusive anchor nobody behind a finalize.
 */
#ifndef TEST_SIM_ACTORS_H
#define TEST_SIM_ACTORS_H

#include "client/rx_reader.h"
#include "tests/support/sim_network.h"

enum { SENDERS_MAX = 12, RECEIVERS_MAX = 2, RECORD_SIZE_MAX = 12000 };

/*  What happens in a run beyond latency.  */
typedef enum {
    CALM,    /* nothing */
    GENTLE,  /* faults that nobody dies of */
    CANCELS, /* the same, and streams and anchors are cancelled */
    ROUGH    /* everything, deaths included */
} weather_t;

typedef struct {
    hws_session_sender_t core;
    int client;
    int receiver;
    uint64_t wanted;    /* records until it ends */
    bool is_finalizing; /* and how: FINALIZED, else DETACHED */
    hws_ms_t starts_at; /* HWS_NEVER: has begun */
    hws_ms_t cancels_at;
    hws_ms_t token_at; /* somebody cancels its token then */
    bool is_added;
} sender_t;

/*  What a receiver was shown of one sender.  */
typedef struct {
    uint64_t sender_id; /* as which it came last */
    bool is_known;
    bool has_ended;
    hws_event_kind_t ending;
    char cause[32];
    uint64_t records;
} shown_t;

typedef struct {
    hws_session_receiver_t core;
    hws_rx_reader_t reader;
    int client;
    hws_ms_t pauses_until;
    hws_ms_t cancels_at;
    bool is_exclusive;
    shown_t shown[SENDERS_MAX]; /* by label */
    int live;                   /* senders that are shown and have not ended */
    bool is_finalized;          /* it was shown a FINALIZED */
    bool is_closed;
    char closed_cause[32];
} receiver_t;

extern sim_network_t s_net;
extern sender_t s_senders[SENDERS_MAX];
extern receiver_t s_receivers[RECEIVERS_MAX];
extern int s_sender_count, s_receiver_count;
extern weather_t s_weather;

/*  Opens the receiver's anchor, with the number for a name; gives the sender its callback and
 *  the name of its receiver's anchor.  */
void receiver_begin (receiver_t *self, int number);
void sender_begin (sender_t *self, int number);

/*  One turn of the application.  */
void run_receiver (receiver_t *self);
void run_sender (sender_t *self);

#endif
