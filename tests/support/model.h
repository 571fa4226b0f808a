/*  A model of the broker, deliberately simple: what docs/protocol.md promises, as lists
 *  that are searched from one end to the other and sums that are made anew each time.
 *
 *  The model is a value: it can be copied, and tried. Each call is one thing that happens
 *  to the broker; what the broker has to say to whom is then in `lines`, one line of
 *  text a message or run, and the GRANTs that are due are marked at the seats. It shares
 *  nothing with the engine but the wire's numbers and the options.
 *
 *  Time. A call happens in a turn, which model_turn begins. What is due acts one by one,
 *  by model_act, in an order that the caller chooses: which of two things that are due in
 *  one turn comes first is nobody's promise.
 */
#ifndef TEST_MODEL_H
#define TEST_MODEL_H

#include "broker/engine.h"
#include "proto/batch.h"

enum {
    MODEL_CLIENTS = 6,
    MODEL_SHELL = MODEL_CLIENTS, /* as if it were one: hears of fronts, and what has no order */
    MODEL_FRONT = 100000,        /* a connection's number: its front times this, and a count */
    MODEL_ANCHORS = 8,           /* that there are at one time, as all up to MODEL_CANCELS */
    MODEL_SEATS = 64,
    MODEL_WAITING = 8,
    MODEL_TOMBSTONES = 64,
    MODEL_CANCELS = 16,
    MODEL_OPENED = 2048, /* anchors, ever */
    MODEL_LINES = 192,   /* said in one turn */
    MODEL_GRANTS = 32,   /* last ones, in one turn */
    MODEL_DUE = 128,
    MODEL_WORD = 24, /* names, labels and reasons with their NUL */
    MODEL_TEXT = 220 /* lines and bodies */
};

/*  A message to a client, or one run of one.  */
typedef struct {
    int client;
    uint32_t connection;
    char text[MODEL_TEXT];
} model_line_t;

/*  A GRANT as it must be heard.  */
typedef struct {
    int client;
    uint32_t connection;
    uint64_t session_id;
    uint64_t acked_seq, next_seq, limit_seq, limit_bytes; /* as on the wire */
    bool is_rewind, is_return;
} model_grant_t;

/*  A client as the broker knows it.  */
typedef struct {
    bool is_known;       /* it has said HELLO and is not forgotten */
    uint32_t connection; /* by which it said so last */
    bool is_away;        /* that connection has ended */
    bool owes_resync;    /* the broker took it for away: RESYNC when it speaks */
    hws_ms_t heard_at;   /* last message */
    hws_ms_t looked_at;  /* when the broker looks whether to forget it */
    hws_ms_t unknown_at; /* when it was last told of an unknown stream */
} model_client_t;

typedef enum { MODEL_UNBOUND, MODEL_BINDING, MODEL_BOUND } model_front_state_t;

typedef struct {
    uint32_t count; /* of its handle */
    int owner;
    uint64_t open_id;
    char name[MODEL_WORD];
    bool is_exclusive; /* one sender at a time */
    bool is_dedicated; /* it has a front of its own */
    uint64_t heartbeat_interval_ms, reconnect_grace_ms, orphan_ttl_ms, buffer_bytes; /* in force */
    hws_optional_t unattached_timeout_ms, max_senders;                               /* in force */

    bool is_present;         /* its receiver is there */
    bool is_closing;         /* takes no more senders, waits for its last ending */
    hws_ms_t away_at;        /* since when the receiver is away */
    hws_ms_t empty_at;       /* since when it has no seat, or its timeout runs anew */
    uint64_t next_sender_id; /* also for those that are gone: never given twice */
    uint64_t ended[4];       /* detached, finalized, dropped, cancelled */
    hws_cause_t cause;       /* of its end */
    char reason[MODEL_WORD]; /* likewise */

    model_front_state_t front_state;
    uint32_t front; /* its number; 0: none yet */
    bool is_told;   /* somebody was sent there */

    uint64_t token;                /* 0: none */
    uint64_t token_order;          /* in order of registering, with seats and attaches that wait */
    bool is_token_hit;             /* the token was cancelled */
    char token_reason[MODEL_WORD]; /* with that */
} model_anchor_t;

/*  Positions are pairs of number and byte.  */
typedef struct {
    uint32_t anchor; /* its count */
    int client;
    uint64_t session_id, sender_id, routing_id;
    char label[MODEL_WORD];
    uint64_t token, token_order; /* as an anchor's */

    bool is_away;         /* not attached since its client's connection ended or said HELLO */
    hws_ms_t away_at;     /* since when */
    hws_ms_t attached_at; /* no older silence counts */
    hws_ms_t replayed_at; /* when the receiver last opened again */
    hws_ms_t rewound_at;  /* when REWIND was last due */
    bool has_gap;         /* REWIND is due again with each PONG */
    bool is_granted;      /* a GRANT is due in this turn */
    bool is_again;        /* and says nothing new */
    bool is_said;         /* one was said, and the next PONG brings it again */
    bool is_rewound;      /* and says REWIND */
    bool is_asked;        /* to give back: GRANTs say RETURN */
    bool is_asked_anew;   /* and this one tells the limit that is to be lowered */

    uint64_t next_seq, next_bytes;   /* what comes next */
    uint64_t high_seq, high_bytes;   /* the highest that was ever forwarded */
    uint64_t acked_seq, acked_bytes; /* what the receiver has consumed */
    uint64_t limit_seq, limit_bytes; /* how far the sender may go */
    uint64_t want_bytes;             /* of the large record that waits; 0: none */
    uint64_t want_number;            /* in order of asking */
    uint64_t use_number;             /* in order of last use; 0: it is not to be asked */
    uint64_t records, bytes;         /* whole ones, forwarded, and their payload */
    uint64_t part_bytes;             /* payload of a record that is not whole yet */

    bool has_ended;          /* exiting: its ending is not yet acknowledged */
    bool is_ending_ours;     /* the broker has made it */
    bool is_unclaimed;       /* its client left, or cancelled it, and has not attached since */
    bool is_dead;            /* it has ended, and its client is gone */
    uint8_t ending;          /* run type */
    uint8_t own_ending;      /* the sender's, which ours may have replaced; 0: none */
    uint64_t end_seq;        /* the number of that */
    hws_cause_t cause;       /* of the ending */
    char reason[MODEL_WORD]; /* likewise */
} model_seat_t;

/*  What ATTACH asks.  */
typedef struct {
    uint64_t session_id;
    bool has_handle; /* else it asks by name */
    hws_handle_t handle;
    char name[MODEL_WORD];
    char label[MODEL_WORD];
    uint64_t wait_ms;
    uint64_t token;
    bool is_resume;
    bool is_cancelled; /* the resume says so: the client has ended it */
} model_attach_t;

/*  One that waits.  */
typedef struct {
    int client;
    uint64_t id; /* of the request; 0: none */
    hws_ms_t until_at;
    bool is_over;         /* that has come, but it waits for its anchor's front */
    bool is_binding;      /* waits for that */
    uint64_t token_order; /* as an anchor's */
    bool is_token_hit;    /* its token was cancelled, and yet it waits */
    char token_reason[MODEL_WORD];
    model_attach_t request;
} model_waiting_t;

/*  The cancel of a token, remembered.  */
typedef struct {
    uint64_t token;
    int client;              /* whose limit counts it; -1: nobody's */
    hws_ms_t cancelled_at;   /* last */
    char reason[MODEL_WORD]; /* of the first time */
} model_cancel_t;

/*  A stream or an anchor that has ended.  */
typedef struct {
    bool is_anchor;
    int client;         /* the sender's, or the receiver's */
    uint64_t number;    /* session id, or open id */
    uint32_t anchor;    /* its count */
    uint64_t sender_id; /* a stream's, as what follows */
    uint64_t acked_seq, acked_bytes;
    uint8_t ending;
    hws_cause_t cause; /* of both */
    char reason[MODEL_WORD];
    hws_ms_t expires_at;
} model_tombstone_t;

typedef enum {
    MODEL_SEAT_DUE,
    MODEL_WAITING_DUE,
    MODEL_ANCHOR_DUE,
    MODEL_TOMBSTONE_DUE,
    MODEL_TOKEN_DUE,
    MODEL_YOUNG_DUE,
    MODEL_CLIENT_DUE
} model_due_kind_t;

/*  Something that the time brings.  */
typedef struct {
    model_due_kind_t kind;
    hws_ms_t at;
    uint64_t which; /* routing id, place in `waiting`, anchor's count, or client */
} model_due_t;

typedef struct {
    hws_engine_options_t options;
    hws_ms_t now;            /* the broker's own clock */
    hws_ms_t skew;           /* how far it is behind the true one */
    hws_ms_t turn_at;        /* the next turn comes no later */
    uint64_t late_turns;     /* since the start, as all counts below */
    bool is_draining;        /* the broker is leaving */
    hws_ms_t young_until_at; /* anchors of earlier epochs may yet come back */
    bool is_young_due;       /* somebody waits for one */

    model_client_t clients[MODEL_CLIENTS];
    model_anchor_t anchors[MODEL_ANCHORS]; /* in order of opening */
    size_t anchor_count;
    model_seat_t seats[MODEL_SEATS]; /* in order of attaching */
    size_t seat_count;
    model_waiting_t waiting[MODEL_WAITING]; /* in order of asking */
    size_t waiting_count;
    model_tombstone_t tombstones[MODEL_TOMBSTONES]; /* oldest first */
    size_t tombstone_count;
    model_cancel_t cancels[MODEL_CANCELS]; /* the latest last */
    size_t cancel_count;
    hws_ms_t sweep_from; /* no search for old cancels before */
    uint64_t hit_token;  /* the one whose cancel is at work, remembered or not; 0: none */
    const char *hit_reason;

    bool is_exclusive[MODEL_OPENED]; /* of the anchor with this count */
    uint32_t opened;                 /* anchors */
    uint64_t closed;                 /* anchors */
    uint64_t attached;               /* seats */
    uint64_t ended[4];               /* seats: detached, finalized, dropped, cancelled */
    uint32_t fronts;                 /* numbers of fronts given */
    uint64_t token_order;            /* registered: anchors, seats and attaches that wait */
    uint64_t want_count;             /* wishes for large records */
    uint64_t use_count;              /* uses of windows that are lent */

    model_line_t lines[MODEL_LINES]; /* said in this turn */
    size_t line_count;
    model_grant_t grants[MODEL_GRANTS]; /* likewise, of seats that are gone */
    size_t grant_count;
} model_t;

void model_init (model_t *self, const hws_engine_options_t *options);

/*  ---- Time ---- */

/*  A turn begins at this point of the true clock; what was said before is forgotten.  */
void model_turn (model_t *self, hws_ms_t now);

/*  When the next turn has to be, on the true clock; and the same without the turns in
 *  which nothing happens. HWS_NEVER: no turn is needed.  */
hws_ms_t model_wake_at (const model_t *self);
hws_ms_t model_deadline (const model_t *self);

/*  What is due in this turn, the oldest first; returns how many.  */
size_t model_due (const model_t *self, model_due_t due[MODEL_DUE]);
void model_act (model_t *self, const model_due_t *due);

/*  ---- What happens ---- */

/*  Whether the connection is the one by which the broker knows the client.  */
bool model_hears (const model_t *self, int client, uint32_t connection);

/*  A message comes. Returns false if nothing else is to be made of it, for its connection is
 *  not known; else it is handled by one of those below, all of which take this for granted.
 *  `id` is the request's; 0: it has none, and is answered only if it is refused.  */
bool model_message (model_t *self, int client, uint32_t connection);

void model_open (model_t *self, int client, uint64_t id, const hws_open_t *request);
void model_attach (model_t *self, int client, uint64_t id, const model_attach_t *request);
void model_detach (model_t *self, int client, uint64_t id, const hws_detach_t *request);
void model_cancel (model_t *self, int client, uint64_t id, const hws_cancel_t *request);
void model_cancel_token (model_t *self, int client, uint64_t id, const hws_token_t *request);
void model_reserve_token (model_t *self, int client, uint64_t id);
void model_bye (model_t *self, int client, uint64_t id);
void model_ping (model_t *self, int client);

/*  One run of a batch. `is_good`: its fields are possible. `body` is its body as text,
 *  which is passed on.  */
void model_run (model_t *self, int client, const hws_run_t *run, bool is_good, const char *body);

/*  One item. Both return false for a violation.  */
bool model_ack (model_t *self, int client, const hws_ack_t *ack);
bool model_window (model_t *self, int client, const hws_window_t *window);

/*  The message, or its batch as a whole, broke the rules: one ERROR, with this code or
 *  `protocol`.  */
void model_fault (model_t *self, int client);
void model_fault_of (model_t *self, int client, const char *code);

/*  These are not behind model_message. HELLO comes; the connection has ended; the broker is
 *  to leave; the shell has bound a front, or cannot.  */
void model_hello (model_t *self, int client, uint32_t connection, uint64_t id, uint32_t protocol);
void model_gone (model_t *self, int client, uint32_t connection);
void model_drain (model_t *self);
void model_bound (model_t *self, uint32_t front, bool is_bound);

/*  ---- What there is ---- */

/*  Of a handle's count; of its receiver's own number; of its client's own number. Null: none.
 *  What they return lives until the model changes.  */
model_anchor_t *model_anchor (model_t *self, uint32_t count);
model_anchor_t *model_anchor_of (model_t *self, int owner, uint64_t open_id);
model_seat_t *model_seat (model_t *self, int client, uint64_t session_id);

/*  The handle with this count, of an anchor that is there, was there or never was.  */
hws_handle_t model_handle (const model_t *self, uint32_t count);
hws_engine_counts_t model_counts (const model_t *self);

/*  The front of a connection; 0 is the shared one.  */
static inline uint32_t model_front_of (uint32_t connection)
{
    return connection / MODEL_FRONT;
}

#endif
