/*  The session: a client's side of the protocol, without sockets.
 *
 *  It says HELLO, asks and asks again, keeps the connection alive and judges it, makes
 *  a new one, says everything again there, and turns the streams' state into messages.
 *  It is told what arrived, what became of the connection and what time it is, and
 *  yields what to do: connect, disconnect, send. So many sessions and an engine run in
 *  one thread over a virtual network; client_io runs one over a DEALER.
 *
 *  Its states: docs/protocol.md, "State tables": "Connection, at the client". LOST is an
 *  event also when the connection was refused, or brought nothing for two intervals.
 */
#ifndef HWS_SESSION_H
#define HWS_SESSION_H

#include "base/heap.h"
#include "base/random.h"
#include "client/rx.h"
#include "client/tx.h"

#define HWS_REQUEST_RETRY_MS 3000   /* an answer that did not come is asked for again */
#define HWS_TOKEN_TTL_MS     120000 /* a cancelled token is remembered so long */
#define HWS_TOKENS_MAX       1024
#define HWS_HELLO_WAIT_MS    5000 /* the greeting; then the connection is given up */
#define HWS_WANT_RETRY_MS    500
#define HWS_OPEN_AGAIN_MS    500 /* an anchor that goes on was refused for the present */

#define HWS_ORPHAN_MS        30000 /* an ending that was not clean is remembered so long … */
#define HWS_ENDED_MAX        1024  /*   … and so many of them, the last ones */
#define HWS_RECEIVER_BACK_MS 10000 /* after a restart a name is waited for at least so long */

#define HWS_AGAIN_MS 200 /* between two times that the broker has everything said again */

#define HWS_ATTACH_WAIT_MAX_MS 60000 /* of one ATTACH; then it is asked again */
#define HWS_ATTACH_AGAIN_MS    500   /* before that, lest a broker that does not wait is flooded */

#define HWS_BACKOFF_MIN_MS   100
#define HWS_BACKOFF_MAX_MS   5000
#define HWS_BACKOFF_NEW_MS   500  /* the most while no broker was ever there: it may just begin */
#define HWS_INTERVAL_DEFAULT 5000 /* heartbeat interval while no stream says one */

typedef struct hws_session hws_session_t;
typedef struct hws_session_sender hws_session_sender_t;
typedef struct hws_session_receiver hws_session_receiver_t;

typedef enum {
    HWS_SESSION_DOWN,     /* no connection; one will be made at `retry` */
    HWS_SESSION_GREETING, /* HELLO is said, not answered */
    HWS_SESSION_UP,
    HWS_SESSION_LEAVING, /* BYE is said, not answered */
    HWS_SESSION_GONE     /* over */
} hws_session_state_t;

typedef enum {
    HWS_SESSION_EVENT_RETRY,
    HWS_SESSION_EVENT_WELCOMED,
    HWS_SESSION_EVENT_LOST,
    HWS_SESSION_EVENT_RESYNC,
    HWS_SESSION_EVENT_LEAVE,
    HWS_SESSION_EVENT_BYE_ANSWERED
} hws_session_event_t;

/*  What a timer or a request is about.  */
typedef enum {
    HWS_ABOUT_HELLO,         /* owner: the session */
    HWS_ABOUT_BYE,           /* the session */
    HWS_ABOUT_OPEN,          /* a receiver */
    HWS_ABOUT_PARTING,       /* the session: what it asks in place of BYE */
    HWS_ABOUT_CLOSE,         /* a receiver: CANCEL of its anchor */
    HWS_ABOUT_LEAVE,         /* a receiver: what shows that its acknowledgements were heard */
    HWS_ABOUT_ATTACH,        /* a sender */
    HWS_ABOUT_CANCEL,        /* a sender: its own CANCEL */
    HWS_ABOUT_CANCEL_ANCHOR, /* a sender: CANCEL of the whole anchor */
    HWS_ABOUT_ENDED,         /* a remembered ending: ATTACH; then when it is forgotten */
    HWS_ABOUT_TOKEN,         /* a cancelled token; then when it is forgotten */
    HWS_ABOUT_WANT,          /* a sender: WINDOW; a timer only */
    HWS_ABOUT_RETRY,         /* the session: connect, or say HELLO, again; a timer only */
    HWS_ABOUT_PULSE,         /* the session: ping and judge; a timer only */
    HWS_ABOUT_FLUSH,         /* a receiver: what its reader consumed is said; a timer only */
    HWS_ABOUT_LINGER,        /* the session: what waits to leave together leaves; a timer only */
    HWS_ABOUT_GIVE_UP        /* the session: no broker for too long; a timer only */
} hws_about_t;

/*  A request that waits for its answer, or a bare timer.  */
typedef struct {
    hws_map_node_t node; /* by `key`, while the answer is awaited */
    hws_timer_t timer;   /* when to ask again */
    uint64_t id;         /* of the request */
    uint8_t key[8];      /* the same, as bytes of the map */
    hws_about_t about;
    void *owner;
} hws_request_t;

/*  One sender, with what it asked for. Embedded in the caller's object; only the fields
 *  of the first group are the caller's to set, before hws_session_attach.  */
struct hws_session_sender {
    void (*notify) (hws_session_sender_t *self); /* something changed that may be waited for */
    bool has_handle;                             /* the anchor: its handle, or its name */
    hws_handle_t handle;
    hws_name_t anchor;
    hws_name_t label;
    uint64_t wait_ms;      /* for an anchor that is not there yet */
    uint64_t cancel_token; /* 0: none */
    bool is_early;         /* records are appended and sent before ATTACH is answered */

    hws_endpoint_t endpoint; /* it ended with HWS_EMOVED, or is in `moved`: attach by `handle`
                                there; else "" */

    hws_tx_t tx;
    hws_session_t *session;
    hws_link_t link;       /* in `senders` */
    hws_link_t ready_link; /* in `ready`: it may have runs */
    hws_link_t want_link;  /* in `wants`: WINDOW is to be said */
    hws_link_t moved_link; /* in `moved` */
    hws_link_t held_link;  /* in `held`: it has records that wait for a flush */
    hws_map_node_t node;   /* by `key` */
    uint8_t key[8];        /* session id, as bytes of the map */
    uint64_t session_id;   /* names the stream to the broker */
    uint64_t epoch;        /* of the broker that has answered ATTACH last; 0: none yet */
    hws_id_t resume_token; /* from there: another epoch wants to see it */
    hws_ms_t asked_at;     /* ATTACH; or when the connection was lost since */
    hws_ms_t wait_until;   /* asked_at + wait_ms */
    bool is_heard_maybe;   /* an earlier epoch may have seated it, and did not answer */
    hws_ms_t again_at;     /* an unknown stream is attached again then at the earliest */
    uint64_t interval_ms;  /* the anchor's heartbeat interval; 0: not told yet */
    uint64_t want_said;    /* what the last WINDOW asked for */
    size_t held_bytes;     /* what it has in `held_bytes` of the session; 0: nothing */
    uint64_t held_seq;     /*   up to here, exclusive, in numbers */
    uint64_t held_end;     /*   and in bytes of the stream */
    bool is_cancel_owed;   /* it ended here, cancelled; the broker is to be told when it is back */
    bool is_ended_here;    /* likewise, told or not */
    hws_reason_t cancel_reason;
    bool is_anchor_cancel_owed; /* CANCEL of the anchor is to be said, or to be answered */
    int anchor_result;          /* of that; HWS_EWOULD_BLOCK until the program may know more */
    hws_reason_t anchor_reason;
    hws_request_t attach;
    hws_request_t cancel;
    hws_request_t cancel_anchor;
    hws_request_t want;
};

/*  One receiver; likewise.  */
struct hws_session_receiver {
    void (*notify) (hws_session_receiver_t *self);
    void (*flush) (hws_session_receiver_t *self); /* the time of hws_session_flush_at has come */
    hws_open_t options; /* all but open_id; with `resume`, of which handle and owner_token count: an
                           anchor of another process goes on */

    hws_rx_t rx;
    hws_session_t *session;
    hws_link_t link;        /* in `receivers` */
    hws_link_t batch_link;  /* in `touched`: the batch at hand brought it something */
    uint64_t epoch;         /* of the broker that has answered OPEN last; 0: none yet */
    hws_open_ok_t in_force; /* that answer */
    int refused;            /* a first OPEN, for the present only: the code */
    hws_ms_t asked_at;
    hws_ms_t again_at; /* after a gap it is opened again then at the earliest */
    uint64_t interval_ms;
    bool is_cancelled;         /* CANCEL is to be said, or was */
    bool is_close_owed;        /* and is not answered */
    int close_result;          /* of a close that ended here, without the broker's word; else 0 */
    uint64_t changes_asked;    /* of options, after the first answer */
    uint64_t changes_answered; /* so many of them, from the first on */
    int change_result;         /* how the last was answered: 0 or HWS_E… */
    unsigned leave_rounds;     /* it leaves: so many answers are still to come */
    bool is_left;              /* none is */
    hws_reason_t cancel_reason;
    hws_request_t open;
    hws_request_t close;
    hws_request_t leave;
    hws_request_t flush_timer;
};

typedef struct {
    hws_id_t client_id;
    hws_name_t name;         /* of the program */
    uint64_t seed;           /* of jitter */
    hws_hash_key_t hash_key; /* of the maps */
    hws_blocks_t *blocks;    /* where streams keep their records */
    int64_t connect_ms;      /* negative: for ever */
    int64_t give_up_ms;      /* likewise */
    int64_t linger_ms;       /* records wait so long for others; 0: not; negative: for a flush */
    void (*notify) (hws_session_t *self); /* more is known of a token's cancel; or null */
} hws_session_options_t;

/*  What happened that should not have.  */
typedef struct {
    uint64_t protocol_errors; /* messages of the broker that could not be read */
    uint64_t gaps;            /* runs ahead */
    uint64_t connects;
} hws_session_stats_t;

struct hws_session {
    hws_session_state_t state; /* written by advance () in session.c only */
    hws_session_options_t options;
    hws_random_t random;

    hws_list_t senders;
    hws_list_t receivers;
    hws_list_t ready;         /* senders that may have runs, in turn */
    hws_list_t wants;         /* senders with a WINDOW to say */
    hws_list_t moved;         /* early senders that have to go elsewhere */
    hws_list_t held;          /* senders with records that wait for a flush, in session_flush.c */
    size_t held_bytes;        /* these, as they would lie in a batch */
    hws_list_t touched;       /* receivers that the batch at hand brought something */
    hws_list_t tokens;        /* cancelled here, in session_token.c */
    hws_list_t ended;         /* streams that ended otherwise than clean, in session_ended.c */
    hws_list_t busy;          /* anchors (rx) that may have acknowledgements or cancels to say */
    hws_list_t left;          /* acknowledgements of receivers that are gone, in session_batch.c */
    hws_map_t sessions;       /* senders by session id */
    hws_rx_streams_t streams; /* of all receivers */
    hws_map_t requests;       /* by id */
    hws_heap_t timers;
    uint64_t last_session_id;
    uint64_t last_open_id;
    uint64_t last_request_id;

    /* the connection */
    bool is_connect_due;    /* HWS_ACTION_CONNECT is to be yielded */
    bool is_disconnect_due; /* HWS_ACTION_DISCONNECT is */
    bool was_up;            /* ever */
    bool is_lost_since_up;  /* the give-up timer runs */
    bool is_broker_leaving; /* GOAWAY came on this connection: it gets nothing new */
    bool is_word_lost;      /* there was no memory for one that is said once only */
    bool has_left;          /* an anchor was left open: nothing of this client is closed by it */
    uint64_t interval_ms;   /* the least of all streams at the last pulse or since; 0: none yet */
    hws_ms_t heard_at;
    hws_ms_t sent_at;
    hws_ms_t pinged_at;
    hws_ms_t pulse_at;   /* when the pulse should come, to know a late one */
    hws_ms_t backoff_ms; /* of the next retry */
    hws_ms_t again_at;   /* a RESYNC is answered then at the earliest */
    hws_request_t hello;
    hws_request_t bye;
    hws_request_t retry;
    hws_request_t pulse;
    hws_request_t give_up;
    hws_request_t linger;

    /* what the broker said of itself */
    uint64_t broker_id;
    uint64_t epoch;
    uint64_t batch_bytes;
    uint64_t early_records, early_bytes; /* the early window */

    hws_list_t outbox; /* control messages, encoded */
    uint8_t *scratch;  /* HWS_CONTROL_SIZE_MAX bytes to encode in */
    hws_session_stats_t stats;
    hws_reason_t error; /* the last word on what went wrong */
};

typedef enum {
    HWS_ACTION_NONE,
    HWS_ACTION_CONNECT,    /* make a connection; it counts as made at once */
    HWS_ACTION_DISCONNECT, /* close it, drop what was not sent */
    HWS_ACTION_CONTROL,    /* send two frames: `verb` and `data` */
    HWS_ACTION_BATCH       /* send one frame: `data` */
} hws_action_kind_t;

typedef struct {
    hws_action_kind_t kind;
    const char *verb; /* static; of a batch null */
    uint8_t *data; /* CONTROL: from malloc, the caller's to free; BATCH: in `block` or the buffer */
    size_t size;
    hws_block_t *block; /* BATCH: what `data` lies in, held for the caller; null: his buffer */
} hws_action_t;

/*  Begins at `now` with a connection to make. Returns 0 or HWS_ENO_MEMORY.  */
int hws_session_init (hws_session_t *self, const hws_session_options_t *options, hws_ms_t now);

/*  Frees what the session keeps; all senders and receivers have been removed.  */
void hws_session_fini (hws_session_t *self);

/*  ---- The world ---- */

/*  A message arrived on the present connection. `payload` owns the batch's bytes and is
 *  held as long as they are needed; the caller keeps its own hold. What cannot be read is
 *  no sign of life.  */
void hws_session_control (hws_session_t *self, hws_ms_t now, hws_bytes_t verb, hws_bytes_t json);
void hws_session_batch (hws_session_t *self, hws_ms_t now, hws_bytes_t message,
                        hws_payload_t *payload);

/*  The connection ended, or could not be made. With `is_next` there is another address
 *  to try at once.  */
void hws_session_lost (hws_session_t *self, hws_ms_t now, const char *why, bool is_next);

/*  Time has passed.  */
void hws_session_expire (hws_session_t *self, hws_ms_t now);
hws_ms_t hws_session_wake_at (const hws_session_t *self);

/*  Takes the next thing to do. A batch is written into `buffer`, which has at least
 *  hws_session_batch_bytes, unless a stream has it ready. False when there is nothing.  */
bool hws_session_pop (hws_session_t *self, hws_ms_t now, uint8_t *buffer, size_t size,
                      hws_action_t *out);

static inline size_t hws_session_batch_bytes (const hws_session_t *self)
{
    return (size_t) self->batch_bytes;
}

/*  Says goodbye; the session is GONE when it is answered.  */
void hws_session_leave (hws_session_t *self, hws_ms_t now);

/*  ---- Receivers ---- */

/*  Asks for the anchor; notify tells when rx is OPEN or CLOSED. The object may not move
 *  until hws_session_remove_receiver.  */
void hws_session_open (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);

/*  Changes how long the open anchor may be without a sender: OPEN is said again, now or on
 *  the next connection. Returns the change's number in `changes_asked`; notify tells when it
 *  is answered. A value that the broker refuses is forgotten.  */
uint64_t hws_session_set_unattached (hws_session_t *self, hws_ms_t now,
                                     hws_session_receiver_t *receiver, hws_optional_t timeout_ms);

/*  Has the receiver's `flush` called at `at`; HWS_NEVER: not.  */
void hws_session_flush_at (hws_session_receiver_t *receiver, hws_ms_t at);

/*  Cancels the anchor. Idempotent. Without a connection it ends at once: nobody would say
 *  how.  */
void hws_session_close (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver,
                        const char *reason);

/*  The application does not wait for the broker's word any more: the anchor that it has
 *  cancelled ends here, every sender cancelled(receiver_closed). `result` is what it is
 *  told.  */
void hws_session_close_here (hws_session_receiver_t *receiver, int result);

/*  The receiver is going to be removed, and its open anchor stays: `is_left` and notify tell when
 *  the broker has all that was acknowledged.  */
void hws_session_leave_anchor (hws_session_t *self, hws_ms_t now, hws_session_receiver_t *receiver);
void hws_session_remove_receiver (hws_session_receiver_t *receiver);

/*  ---- Senders ---- */

/*  Asks for a seat; notify tells when tx is no longer ATTACHING. A dedicated anchor seats who
 *  comes on its own front only: then the stream, which has not begun, ends with HWS_EMOVED, and
 *  the caller may take the object out and attach it to a session of that endpoint. An early one
 *  does not end: it is in `moved` then, for hws_session_move_sender.  */
void hws_session_attach (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  Takes an early sender, whose stream has not begun, out of its session with all that was
 *  appended, and asks for a seat in this one.  */
void hws_session_move_sender (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender);

/*  Ends a stream that has not begun, by this client's word.  */
void hws_session_refuse_sender (hws_session_sender_t *sender, int code, const char *reason);

/*  The application appended, detached or wants a larger window. True when there is now
 *  something to send that was not there before.  */
bool hws_session_changed (hws_session_sender_t *sender);

/*  Whether hws_session_changed would find nothing new after a record was appended: the stream
 *  waits for its turn to send already.  */
static inline bool hws_session_is_filed (const hws_session_sender_t *sender)
{
    return hws_link_is_in_list (&sender->ready_link) && !sender->tx.is_gathered &&
           !sender->tx.owes_window && sender->want_said == 0;
}

/*  With a linger: all that is appended so far leaves, as full batches; what is appended from now
 *  on is not among it. True when there is now something to send that was not there before.  */
bool hws_session_flush (hws_session_t *self);

/*  Cancels the stream: interrupted. Idempotent. Without a connection it ends at once.  */
void hws_session_cancel (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                         const char *reason);

/*  Cancels the whole anchor that the sender is attached to: requested. `anchor_result` and
 *  notify tell what became of it. Without a connection that is nothing yet: the broker is
 *  told when it is back.  */
void hws_session_cancel_anchor (hws_session_t *self, hws_ms_t now, hws_session_sender_t *sender,
                                const char *reason);

/*  Takes the sender out; a stream that lives is cancelled without waiting.  */
void hws_session_remove_sender (hws_session_sender_t *sender);

/*  ---- Cancel tokens ---- */

/*  Cancels the token: what is being attached or opened here with it ends at once, the
 *  broker is asked until it answers, and another broker is told too. For HWS_TOKEN_TTL_MS
 *  it is remembered; until then nothing attaches or opens here with it. Idempotent, the
 *  first reason stays. Returns 0, HWS_ENO_MEMORY, or HWS_ELIMIT when so many wait for an
 *  answer that none may be forgotten.  */
int hws_session_cancel_token (hws_session_t *self, hws_ms_t now, uint64_t token,
                              const char *reason);

/*  What the broker has said to that: HWS_EWOULD_BLOCK, nothing yet; 0, done;
 *  HWS_EUNREACHABLE, nothing in time; or why it refused.  */
int hws_session_token_result (const hws_session_t *self, uint64_t token);

/*  Its first half alone: what is being attached or opened here with the token ends.  */
void hws_session_cancel_waiting (hws_session_t *self, uint64_t token, const char *reason);

/*  Why the token is cancelled here, or null: it is not, or no longer.  */
const char *hws_session_token_reason (const hws_session_t *self, hws_ms_t now, uint64_t token);

#endif
