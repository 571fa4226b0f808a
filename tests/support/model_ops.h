/*  Operations for the model test: what clients and the time do, as plain structs that name
 *  what they act on by the clients' own numbers. So a trace of them can be played again,
 *  and still means something when some of it is left out.
 */
#ifndef TEST_MODEL_OPS_H
#define TEST_MODEL_OPS_H

#include "base/random.h"
#include "tests/support/model.h"

typedef enum {
    OP_HELLO,
    OP_GONE,
    OP_OPEN,
    OP_ATTACH,
    OP_DATA,
    OP_ACK,
    OP_WANT,
    OP_DETACH,
    OP_CANCEL,
    OP_CANCEL_TOKEN,
    OP_RESERVE_TOKEN,
    OP_BOUND,
    OP_BYE,
    OP_DRAIN,
    OP_RUBBISH,
    OP_PING,
    OP_STALE,
    OP_ADVANCE,
    OP_DEADLINE,
    OP_SLEEP
} op_kind_t;

typedef enum { HELLO_NEW, HELLO_AGAIN, HELLO_WRONG_PROTOCOL, HELLO_OTHER_CLIENT } hello_how_t;

typedef enum {
    HANDLE_RIGHT,
    HANDLE_NAME, /* ATTACH only: by the name instead */
    HANDLE_OTHER_BROKER,
    HANDLE_OTHER_KIND,
    HANDLE_NEVER_GIVEN,
    HANDLE_OLDER_EPOCH
} handle_how_t;

typedef enum {
    DATA_NEXT,   /* `count` numbers at most, as far as the window goes */
    DATA_BEYOND, /* the same, whatever the window says */
    DATA_SEEN,   /* what was sent before */
    DATA_ACROSS, /* begins before the next number and ends behind it */
    DATA_AHEAD,  /* leaves a gap */
    DATA_ENDING, /* DETACHED at the next number */
    DATA_FINAL,  /* FINALIZED there */
    DATA_FAULTY, /* a run that cannot be; `count` says how */
    DATA_VOID,
    DATA_CUT /* the batch's last run does not fit */
} data_how_t;

typedef enum {
    WANT_NEXT,     /* room for the next number */
    WANT_SOME,     /* `count` bytes */
    WANT_MOST,     /* as much as may be wanted */
    WANT_LESS,     /* gives back but for some bytes, by `count` */
    WANT_LESS_LATE /* the same, to an earlier RETURN */
} want_how_t;

typedef enum {
    ACK_ALL,    /* what was forwarded */
    ACK_SOME,   /* a part of it, by `count` */
    ACK_SAME,   /* what was acknowledged before */
    ACK_BEYOND, /* more than was forwarded */
    ACK_ENDED,  /* with the flag, whether it has ended or not */
    ACK_BACK    /* fewer bytes than before for no fewer numbers */
} ack_how_t;

typedef enum {
    CANCEL_SENDER,
    CANCEL_ANCHOR,
    CANCEL_INTERRUPTED, /* the sender, with this code */
    CANCEL_NO_SENDER    /* one that the anchor never had */
} cancel_how_t;

/*  Which fields mean something depends on the kind.  */
typedef struct {
    op_kind_t kind;
    int how;
    int client;          /* who does it */
    int owner;           /* whose anchor */
    uint64_t open_id;    /* which of them */
    int sender;          /* whose stream; the client's own for DATA */
    uint64_t session_id; /* which of them */
    bool is_exclusive, is_dedicated;
    uint64_t token; /* 0: none */
    int name;       /* number of a name; -1: none */
    uint32_t count;
    bool has_id;      /* the request wants an answer */
    bool is_more;     /* is in one batch with the next operation, if that is of the kind */
    unsigned beating; /* clients that PING while the time passes, as bits */
    hws_ms_t ms;      /* how long; before everything else: how much time passes first */
    uint64_t wait_ms;
    uint64_t interval_ms, grace_ms, orphan_ms, unattached_ms, senders, buffer_bytes; /* 0: absent */
} op_t;

/*  What the maker of operations remembers.  */
typedef struct {
    hws_random_t random;
    hws_ms_t began_at;
    hws_ms_t mute_until[MODEL_CLIENTS]; /* clients that say nothing for a while */
    op_t last;                          /* made */
} op_maker_t;

/*  Makes one that is likely to matter, for the broker as the model sees it.  */
op_t op_make (op_maker_t *self, model_t *model, hws_ms_t now);

/*  As one line of text.  */
void op_print (const op_t *self, char *text, size_t size);

#endif
