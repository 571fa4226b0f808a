/*  Who lives in a virtual network: anchors, their receivers with applications, and senders.
 *
 *  An anchor has one receiver after another: each is a process of its own, which continues the
 *  anchor by its handle and owner token. Whatever an application is shown is checked at once:
 *  order, one ending, nothing behind it, and of an exclusive anchor nobody behind a finalize.
 */
#ifndef TEST_SIM_WORLD_H
#define TEST_SIM_WORLD_H

#include "client/rx_reader.h"
#include "tests/support/sim_network.h"

enum {
    SIM_SENDERS_MAX = 12,
    SIM_ANCHORS_MAX = 2,
    SIM_RECEIVERS_MAX = 10, /* of all anchors, one after another */
    SIM_RECORD_MAX = 12000
};

/*  What happens in a run beyond latency.  */
typedef enum {
    SIM_CALM,    /* nothing */
    SIM_GENTLE,  /* faults that nobody dies of; receivers may return as another process */
    SIM_CANCELS, /* the same, and streams and anchors are cancelled */
    SIM_ROUGH,   /* everything, deaths included */
    SIM_WEATHERS
} sim_weather_t;

typedef struct {
    hws_session_sender_t core;
    hws_random_t random;
    int number;
    int client;
    int anchor;
    bool is_off;        /* it takes no part */
    uint64_t wanted;    /* records until it ends */
    bool is_finalizing; /* and how: FINALIZED, else DETACHED */
    bool leaves_early;  /* its object is destroyed as soon as it has ended */
    hws_ms_t starts_at; /* HWS_NEVER: has begun */
    hws_ms_t acts_at;
    bool waits;       /* until something changes */
    hws_ms_t pace_ms; /* between two of its turns, at most */

    bool is_added; /* its object is in a session */
    bool is_over;  /* it has ended, or it was destroyed; then: */
    int result;    /* 0, or HWS_E… */
    char cause[32];
    char reason[64];
    uint64_t records;
    uint64_t sender_id;
    hws_handle_t handle;   /* of the anchor that seated it; zero: none did */
    bool is_ended_here;    /* without the broker's word, or nobody was left to hear it */
    bool may_be_cancelled; /* somebody asked for it */
} sim_sender_t;

/*  What a receiver was shown of one sender.  */
typedef struct {
    uint64_t sender_id; /* as which it came last */
    bool is_known;
    bool has_ended;
    hws_ms_t ended_at;
    bool has_records;
    hws_event_kind_t ending;
    char cause[32];
    uint64_t first;    /* the number of its first record here */
    uint64_t next;     /* of the next */
    uint64_t consumed; /* behind the last record that the application is done with */
} sim_shown_t;

typedef struct {
    hws_session_receiver_t core;
    hws_rx_reader_t reader;
    hws_random_t random;
    int client;
    int anchor;
    bool is_successor; /* it continues an anchor that another opened */
    bool is_manual;    /* it acknowledges by hand */
    hws_ms_t acts_at;
    bool waits; /* for something to read */
    hws_ms_t pace_ms;
    sim_shown_t shown[SIM_SENDERS_MAX]; /* by label */
    bool has_event;                     /* the application has not asked for more since */
    int hand;                           /* whose record the application has in hand; -1: none */
    int live;                           /* senders that are shown and have not ended */
    bool is_finalized;                  /* it was shown a FINALIZED */
    bool is_cancelled;                  /* by itself */
    bool is_closed;                     /* it was shown CLOSED */
    char closed_cause[32];
} sim_receiver_t;

typedef struct {
    bool is_exclusive;
    bool is_manual; /* its receivers acknowledge by hand */
    int last;       /* its receiver that came last */
    bool has_token;
    hws_handle_t handle;
    hws_id_t owner_token;
    hws_ms_t returns_at;   /* another receiver process begins then; HWS_NEVER */
    bool may_be_cancelled; /* somebody asked for it, or its receiver is gone for good */
    bool is_finalized;
    int takeovers;      /* of living receivers */
    int told;           /* so many of these know it */
    uint32_t epoch;     /* of the broker */
    bool is_contested;  /* the broker was gone before they did: each may take it for its own */
    bool had_heirs;     /* more than one process has read it */
    bool was_abandoned; /* none was there for so long that the broker may end it */
} sim_anchor_t;

typedef struct {
    sim_network_t net;
    sim_weather_t weather;
    bool was_lost;             /* a broker is gone, and all it knew */
    hws_ms_t longest_stall_ms; /* of everybody at once */
    hws_ms_t begun_at;
    int client_count; /* in the beginning */
    int sender_count, receiver_count, anchor_count;
    sim_sender_t senders[SIM_SENDERS_MAX];
    sim_receiver_t receivers[SIM_RECEIVERS_MAX];
    sim_anchor_t anchors[SIM_ANCHORS_MAX];
    const sim_sender_t *at_hand; /* whom the verdict is about */
} sim_world_t;

extern sim_world_t sim_world;

/*  Begins another receiver process of the anchor: the first one, or, by handle and owner token,
 *  an heir. False when there is no room for it.  */
bool sim_receiver_begin (int anchor, int client);
void sim_sender_init (sim_sender_t *self, int number);

/*  One turn of the application, if its time has come.  */
void sim_receiver_run (sim_receiver_t *self);
void sim_sender_run (sim_sender_t *self);

/*  The application closes the anchor; it gives the living sender up without waiting.  */
void sim_receiver_close (sim_receiver_t *self);
void sim_sender_destroy (sim_sender_t *self);

/*  The object leaves its session.  */
void sim_receiver_fini (sim_receiver_t *self);
void sim_sender_fini (sim_sender_t *self);

static inline bool sim_client_lives (int client)
{
    return !sim_world.net.clients[client].is_dead;
}

static inline bool sim_client_acts (int client)
{
    return !sim_is_stalled (&sim_world.net, client);
}

#endif
