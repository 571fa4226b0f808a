/*  Control messages: a verb and a JSON object, to a structure and back
 *  (docs/protocol.md, "Control messages").
 *
 *  Decoding is total and strict: any bytes give a structure or one error with a
 *  text that names the member. Unknown members are ignored, absent ones get the
 *  defaults that make older peers understood. 64-bit numbers travel as decimal
 *  strings and are exact; as JSON numbers they are taken below 2^53. The codec
 *  is driven by one table of members per verb. Texts are copied into the
 *  structure, so it owns nothing and can be copied.
 */
#ifndef HWS_CONTROL_H
#define HWS_CONTROL_H

#include "base/bytes.h"
#include "base/limits.h"
#include "proto/handle.h"
#include "proto/name.h"

#define HWS_ENDPOINT_SIZE_MAX 255
#define HWS_WORD_SIZE_MAX     31 /* transport keys, features, codes */
#define HWS_WORDS_MAX         8  /* further ones are ignored */
#define HWS_RANGES_MAX        64

#define HWS_TRANSPORT_MUX "router-mux-v1"
#define HWS_TRANSPORT_DEDICATED                                                                    \
    "router-dedicated-v1" /* attach at the endpoint that comes with it */

typedef enum {
    HWS_VERB_HELLO,
    HWS_VERB_OPEN,
    HWS_VERB_ATTACH,
    HWS_VERB_DETACH,
    HWS_VERB_CANCEL,
    HWS_VERB_CANCEL_TOKEN,
    HWS_VERB_RESERVE_TOKEN,
    HWS_VERB_PING,
    HWS_VERB_PONG,
    HWS_VERB_BYE,
    HWS_VERB_STREAM_CANCEL,
    HWS_VERB_ANCHOR_CLOSED,
    HWS_VERB_RESYNC,
    HWS_VERB_GOAWAY,
    HWS_VERB_ERROR,
    HWS_VERB_COUNT
} hws_verb_t;

typedef enum {
    HWS_FORM_REQUEST, /* a request, or a message that wants no answer */
    HWS_FORM_OK,      /* {"id":…,"Ok":{…}} */
    HWS_FORM_ERR      /* {"id":…,"Err":{"code":…,"reason":…}}; ERROR always has this form */
} hws_form_t;

/*  A number that may be absent (the other side's default) or null (none).  */
typedef struct {
    enum { HWS_ABSENT, HWS_NULL, HWS_VALUE } state;
    uint64_t value; /* 0 unless HWS_VALUE */
} hws_optional_t;

/*  Texts end with a NUL; an absent one is "".  */
typedef char hws_name_t[HWS_NAME_SIZE_MAX + 1];
typedef char hws_reason_t[HWS_TEXT_SIZE_MAX + 1];
typedef char hws_word_t[HWS_WORD_SIZE_MAX + 1];
typedef char hws_endpoint_t[HWS_ENDPOINT_SIZE_MAX + 1];

typedef struct {
    uint32_t count;
    hws_word_t word[HWS_WORDS_MAX];
} hws_words_t;

typedef struct {
    uint64_t first; /* inclusive */
    uint64_t end;   /* exclusive */
} hws_range_t;

typedef struct {
    hws_id_t client_id;
    uint32_t protocol;
    hws_name_t client_name; /* "client": {"name":…,"version":…} */
    hws_word_t client_version;
} hws_hello_t;

typedef struct {
    uint64_t broker_id;
    uint64_t epoch;
    uint32_t protocol;
    uint64_t record_bytes;     /* "limits": {…}: largest record */
    uint64_t batch_bytes;      /*   largest message */
    uint64_t heartbeat_min_ms; /*   smallest interval that OPEN may ask */
    hws_words_t transports;
    hws_words_t features;
    uint32_t early_records; /* "early": {"records":…,"bytes":…} */
    uint64_t early_bytes;
} hws_hello_ok_t;

typedef struct {
    uint64_t open_id; /* the client's own number for this anchor */
    hws_name_t name;  /* "" for none */
    hws_kind_t kind;  /* "mpsc" (default) or "spsc" */
    hws_optional_t heartbeat_interval_ms;
    hws_optional_t reconnect_grace_ms;
    hws_optional_t unattached_timeout_ms; /* null: never */
    hws_optional_t orphan_ttl_ms;
    hws_optional_t max_senders; /* null: unlimited */
    hws_optional_t buffer_bytes;
    bool dedicated;
    uint64_t cancel_token; /* 0: none */
    bool has_resume;
    struct {
        hws_handle_t handle;
        hws_id_t owner_token;
        uint64_t highest_sender_id;
        uint32_t unseen_count;
        hws_range_t unseen[HWS_RANGES_MAX]; /* written as [[first, end], …] */
    } resume;
} hws_open_t;

typedef struct {
    hws_handle_t handle;
    hws_id_t owner_token;
    uint64_t heartbeat_interval_ms;
    uint64_t reconnect_grace_ms;
    hws_optional_t unattached_timeout_ms; /* null: never */
    uint64_t orphan_ttl_ms;
    hws_optional_t max_senders; /* null: unlimited */
    uint64_t buffer_bytes;
    uint64_t record_bytes; /* largest record that fits this anchor */
} hws_open_ok_t;

typedef struct {
    bool has_handle; /* else `anchor` names it */
    hws_handle_t handle;
    hws_name_t anchor;
    uint64_t session_id;
    hws_handle_t stream_cancel_handle;    /* the client's own, echoed; zero when absent */
    hws_words_t supported_transport_keys; /* default none */
    hws_name_t label;
    uint64_t cancel_token; /* 0: none */
    uint64_t wait_ms;      /* for an anchor that is not there yet; 0: do not wait */
    bool has_resume;
    struct {
        uint64_t sender_id;
        hws_id_t resume_token;
        uint64_t acked_seq;
        uint64_t acked_bytes;
        uint64_t next_seq;
        hws_word_t ending; /* the stream has ended so; "" while it lives */
        hws_word_t code;
    } resume;
} hws_attach_t;

typedef struct {
    hws_handle_t handle;
    hws_word_t streaming_transport_key;
    uint64_t heartbeat_interval_ms;
    uint64_t sender_id;
    uint64_t routing_session_id; /* default 0 */
    uint64_t initial_credit;     /* records beyond next_seq; default 0 */
    uint64_t slot_byte_budget;   /* bytes beyond next_bytes; default 0: HWS_SLOT_BYTES_DEFAULT */
    uint64_t next_seq;
    uint64_t next_bytes;
    uint64_t acked_seq;
    uint64_t acked_bytes;
    uint64_t record_bytes; /* largest record the anchor takes; default 0: not told */
    bool early_kept;       /* "early": "kept" or "dropped" (default) */
    hws_id_t resume_token;
    hws_endpoint_t endpoint; /* of a dedicated anchor, else "" */
    bool has_ended;          /* "ended": {"ending":…,"code":…,"reason":…} */
    hws_word_t ending;
    hws_word_t code;
    hws_reason_t reason;
} hws_attach_ok_t;

typedef struct {
    hws_handle_t handle;
    uint64_t sender_id;
    uint64_t seq; /* the number that the ending takes */
} hws_detach_t;

typedef struct {
    hws_handle_t handle;
    uint64_t sender_id; /* 0: the whole anchor */
    hws_reason_t reason;
    uint64_t wait_ms;
    hws_word_t code; /* "" for requested; "interrupted" from the stream's own client */
} hws_cancel_t;

typedef struct {
    uint64_t token;
    hws_reason_t reason; /* CANCEL_TOKEN only */
} hws_token_t;

typedef struct {
    uint64_t session_id;
    hws_handle_t stream_cancel_handle;
    hws_word_t ending; /* "dropped", "cancelled", …; "" with code unknown_stream */
    hws_word_t code;   /* the cause's word, or "unknown_stream" */
    hws_reason_t reason;
    uint64_t next_seq;
} hws_stream_cancel_t;

typedef struct {
    hws_handle_t handle;
    hws_word_t code; /* the cause's word */
    hws_reason_t reason;
    uint64_t detached; /* "counts": {…}: endings of each kind since the anchor was opened */
    uint64_t finalized;
    uint64_t dropped;
    uint64_t cancelled;
} hws_anchor_closed_t;

typedef struct {
    int code; /* HWS_E…; an unknown word reads as HWS_EPROTOCOL */
    hws_reason_t reason;
    hws_endpoint_t endpoint; /* with HWS_EMOVED */
} hws_refusal_t;

/*  The body of an ATTACHED run.  */
typedef struct {
    hws_handle_t handle; /* the anchor it came to, for a client that has several; zero: not told */
    uint64_t sender_id;
    uint64_t session_id;
    uint64_t seat_key;
    uint64_t next_bytes; /* the byte position at the run's first_seq */
    hws_name_t label;
    hws_name_t user;    /* the authenticated user, or "" */
    hws_name_t address; /* the peer's network address, or "" */
} hws_attached_t;

typedef struct {
    hws_verb_t verb;
    hws_form_t form;
    bool has_id;
    uint64_t id; /* an answer repeats the request's */
    union {
        hws_hello_t hello;
        hws_hello_ok_t hello_ok;
        hws_open_t open;
        hws_open_ok_t open_ok;
        hws_attach_t attach;
        hws_attach_ok_t attach_ok;
        hws_detach_t detach;
        hws_cancel_t cancel;
        hws_token_t token; /* CANCEL_TOKEN request, RESERVE_TOKEN Ok */
        hws_stream_cancel_t stream_cancel;
        hws_anchor_closed_t anchor_closed;
        uint64_t epoch;        /* RESYNC */
        hws_reason_t reason;   /* GOAWAY */
        hws_refusal_t refusal; /* HWS_FORM_ERR of any verb */
    } as;                      /* nothing for the verbs and forms not listed */
} hws_control_t;

/*  What was wrong with a message, for the ERROR that answers it.  */
typedef char hws_control_fault_t[256];

/*  Decodes the two frames of a control message. Returns 0; HWS_EUNKNOWN_VERB
 *  (then only `has_id` and `id` are set, if they could be read);
 *  HWS_EBAD_REQUEST for a member that is missing, of the wrong type or out of
 *  range; HWS_EMALFORMED for anything else, too deep or too large included;
 *  HWS_ENO_MEMORY. After an error `fault` holds one line that names the member,
 *  and `has_id`, `id` and `verb` are set as far as they could be read.  */
int hws_control_decode (hws_bytes_t verb, hws_bytes_t json, hws_control_t *self,
                        hws_control_fault_t fault);

/*  Encodes the JSON frame into `buffer` of `size` bytes and sets `used`; the verb
 *  frame is hws_verb_word (self->verb). Members that are absent or have their
 *  default are left out, except in answers. Returns 0, HWS_ETOO_LARGE when it does
 *  not fit, HWS_ENO_MEMORY. HWS_CONTROL_SIZE_MAX bytes fit any message that
 *  respects the limits.  */
int hws_control_encode (const hws_control_t *self, uint8_t *buffer, size_t size, size_t *used);

/*  The same for the body of an ATTACHED run. decode returns 0, HWS_EMALFORMED,
 *  HWS_EBAD_REQUEST or HWS_ENO_MEMORY.  */
int hws_attached_decode (hws_bytes_t json, hws_attached_t *self);
int hws_attached_encode (const hws_attached_t *self, uint8_t *buffer, size_t size, size_t *used);

/*  Whether a client can use an answer to ATTACH that seats it or seated it before
 *  (docs/protocol.md, "ATTACH"): the transport is one that this version has, and a new
 *  seat of the multiplexed one has a window. Returns 0, or HWS_EPROTOCOL and a fault
 *  that names the cause. An answer that tells of an ending is always good.  */
int hws_attach_ok_check (const hws_attach_ok_t *self, bool is_new, hws_control_fault_t fault);

/*  The byte window of an answer: slot_byte_budget, or the default when it is 0.  */
uint64_t hws_attach_ok_window_bytes (const hws_attach_ok_t *self);

/*  The word of a verb, static, never null.  */
const char *hws_verb_word (hws_verb_t verb);

#endif
