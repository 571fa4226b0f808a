/*  Batches: the one-frame messages that carry runs of records, grants and
 *  acknowledgements (docs/protocol.md, "Batches").
 *
 *  Reading is total: any bytes give either well-formed items or an error, and
 *  nothing outside the message is touched. Nothing here allocates; what is read
 *  are views into the message. Writing puts headers and items at an address
 *  whose room the caller has checked against the sizes below. All integers are
 *  big-endian, all positions exclusive.
 */
#ifndef HWS_BATCH_H
#define HWS_BATCH_H

#include "base/bytes.h"
#include "base/error.h"

#define HWS_BATCH_MARK 0x01 /* first byte of every batch */

#define HWS_BATCH_HEADER_SIZE  8
#define HWS_RUN_HEADER_SIZE    32
#define HWS_RECORD_HEADER_SIZE 4
#define HWS_ENDING_HEADER_SIZE 20
#define HWS_GRANT_SIZE         48
#define HWS_ACK_SIZE           32
#define HWS_POSITION_SIZE      56
#define HWS_WINDOW_SIZE        32

#define HWS_RECORD_SIZE_MAX   0x0fffffffu /* the upper four bits of a length are flags */
#define HWS_RECORD_FLAGS_MUST 0x30000000u /* of those, the ones that must be understood */
#define HWS_BATCH_ITEMS_MAX   65535u      /* the count is 16 bits wide */

typedef enum {
    HWS_BATCH_DATA = 1,
    HWS_BATCH_GRANT = 2,
    HWS_BATCH_ACK = 3,
    HWS_BATCH_POSITION = 4,
    HWS_BATCH_WINDOW = 5
} hws_batch_kind_t;

typedef enum {
    HWS_RUN_RECORDS = 0,
    HWS_RUN_ERROR = 1,
    HWS_RUN_DETACHED = 2,
    HWS_RUN_FINALIZED = 3,
    HWS_RUN_DROPPED = 4,
    HWS_RUN_CANCELLED = 5,
    HWS_RUN_ATTACHED = 6,
    HWS_RUN_VOID = 7
} hws_run_type_t;

/*  Why a stream ended: the code of an ending.  */
typedef enum {
    HWS_CAUSE_NONE = 0,
    HWS_CAUSE_HEARTBEAT = 1,
    HWS_CAUSE_TRANSPORT = 2,
    HWS_CAUSE_PROTOCOL = 3,
    HWS_CAUSE_LOST = 4,
    HWS_CAUSE_ABANDONED = 5,
    HWS_CAUSE_RECEIVER_CLOSED = 6,
    HWS_CAUSE_REQUESTED = 7,
    HWS_CAUSE_EXPIRED = 8,
    HWS_CAUSE_SUPERSEDED = 9,
    HWS_CAUSE_INTERRUPTED = 10,
    HWS_CAUSE_UNKNOWN = 11,
    HWS_CAUSE_FINALIZED = 12
} hws_cause_t;

#define HWS_RUN_MORE 0x01u /* run flag: one part of a record, and not its last */

#define HWS_GRANT_REWIND 0x01u /* begin a new run exactly at next_seq */
#define HWS_GRANT_RETURN 0x02u /* give back what is not used */

#define HWS_ACK_ENDED 0x01u /* the application has consumed the ending */

#define HWS_POSITION_ENDED    0x01u
#define HWS_POSITION_LAST     0x02u
#define HWS_POSITION_CONSUMED 0x04u

typedef struct {
    uint64_t stream;    /* session id towards the client, routing session id towards a receiver */
    uint64_t first_seq; /* number of its first record */
    uint32_t count;     /* numbers it takes */
    uint8_t type;       /* hws_run_type_t, or above 127: to be ignored */
    uint8_t flags;      /* HWS_RUN_… */
    hws_bytes_t body;   /* a view into the message */
} hws_run_t;

typedef struct {
    uint64_t stream;
    uint64_t acked_seq;
    uint64_t next_seq;
    uint64_t limit_seq;
    uint64_t limit_bytes;
    uint32_t flags; /* HWS_GRANT_… */
} hws_grant_t;

typedef struct {
    uint64_t stream;
    uint64_t acked_seq;
    uint64_t acked_bytes;
    uint32_t flags; /* HWS_ACK_… */
} hws_ack_t;

typedef struct {
    uint64_t sender_id;
    uint64_t next_seq;
    uint64_t next_bytes;
    uint64_t acked_seq;
    uint64_t acked_bytes;
    uint64_t seat_key;
    uint32_t flags; /* HWS_POSITION_… */
    uint8_t type;   /* of the ending, with HWS_POSITION_ENDED */
    uint16_t cause; /* of the ending */
} hws_position_t;

typedef struct {
    uint64_t stream;
    uint64_t limit_seq;
    uint64_t limit_bytes;
    uint64_t want_bytes;
} hws_window_t;

/*  The body of an ending.  */
typedef struct {
    uint16_t cause;   /* hws_cause_t, or one that this version does not know */
    uint64_t records; /* whole records of the stream, as far as the maker of the ending knows */
    uint64_t bytes;   /* their payload bytes */
    hws_bytes_t text; /* for people; at most HWS_TEXT_SIZE_MAX */
} hws_ending_t;

/*  A reader of one batch. The message must live as long as it.  */
typedef struct {
    hws_cursor_t cursor;
    uint8_t kind;   /* hws_batch_kind_t, or above 127: to be ignored */
    uint16_t count; /* items not yet read */
} hws_batch_t;

/*  Begins to read a message. Returns 0, HWS_EMALFORMED when the header does not
 *  fit or the mark is missing, HWS_EPROTOCOL when the kind must be understood
 *  (0 to 127) and is not.  */
int hws_batch_open (hws_batch_t *self, hws_bytes_t message);

/*  The next run of a DATA batch. Returns 1 with a run, 0 after the last one,
 *  HWS_EMALFORMED when a header or body does not fit or bytes are left over
 *  after the last, HWS_EPROTOCOL for a type or flag that must be understood
 *  (lower half) and is not. After an error only errors follow; runs returned
 *  earlier stay good.  */
int hws_batch_next_run (hws_batch_t *self, hws_run_t *run);

/*  The next item of a batch of the kind; returns as hws_batch_next_run.  */
int hws_batch_next_grant (hws_batch_t *self, hws_grant_t *grant);
int hws_batch_next_ack (hws_batch_t *self, hws_ack_t *ack);
int hws_batch_next_position (hws_batch_t *self, hws_position_t *position);
int hws_batch_next_window (hws_batch_t *self, hws_window_t *window);

/*  The next record of a RECORDS run's body, read through `cursor`, which begins
 *  at hws_cursor (run.body). Returns 1 with a view of the payload, 0 at the end
 *  of the body, HWS_EMALFORMED when a record does not fit or has a flag set that
 *  must be understood. The caller checks that it got `run.count` of them. Here, because
 *  it is what each single record costs.  */
static inline int hws_run_next_record (hws_cursor_t *cursor, hws_bytes_t *record)
{
    if (!cursor->bad && cursor->left == 0) {
        *record = hws_bytes (NULL, 0);
        return 0;
    }
    const uint32_t length = hws_cursor_u32 (cursor);
    const uint32_t size = length & HWS_RECORD_SIZE_MAX;
    if (length & HWS_RECORD_FLAGS_MUST) {
        cursor->bad = true;
    }
    const uint8_t *const data = hws_cursor_take (cursor, size);
    *record = hws_bytes (data, data ? size : 0);
    return data ? 1 : HWS_EMALFORMED;
}

/*  Reads the body of an ending (types 2 to 5). Returns 0 or HWS_EMALFORMED, also
 *  for a text over HWS_TEXT_SIZE_MAX.  */
int hws_ending_decode (hws_bytes_t body, hws_ending_t *ending);

/*  Writes; each fills exactly the size named above. `hws_run_put` writes the
 *  header only: the body of run->body.size bytes is the caller's to place behind
 *  it, run->body.data is not looked at. An ending takes HWS_ENDING_HEADER_SIZE and
 *  its text.  */
void hws_batch_put (uint8_t *at, hws_batch_kind_t kind, uint16_t count);
void hws_run_put (uint8_t *at, const hws_run_t *run);
void hws_record_put (uint8_t *at, uint32_t size);
void hws_ending_put (uint8_t *at, const hws_ending_t *ending);
void hws_grant_put (uint8_t *at, const hws_grant_t *grant);
void hws_ack_put (uint8_t *at, const hws_ack_t *ack);
void hws_position_put (uint8_t *at, const hws_position_t *position);
void hws_window_put (uint8_t *at, const hws_window_t *window);

/*  Changes a run where it lies in a received message; `header` is the address of
 *  its header, HWS_RUN_HEADER_SIZE before its body.  */
void hws_run_set_stream (uint8_t *header, uint64_t stream);
void hws_run_set_type (uint8_t *header, hws_run_type_t type);

static inline bool hws_run_is_ending (uint8_t type)
{
    return type >= HWS_RUN_DETACHED && type <= HWS_RUN_CANCELLED;
}

/*  The word of an ending's run type ("detached") and of its cause ("heartbeat");
 *  never null, "unknown" for what this version does not know.  */
const char *hws_ending_word (uint8_t type);
const char *hws_cause_word (uint16_t cause);

/*  And back: the run type, or 0 for no ending's word; the cause, or
 *  HWS_CAUSE_UNKNOWN.  */
uint8_t hws_ending_from_word (const char *word);
uint16_t hws_cause_from_word (const char *word);

#endif
