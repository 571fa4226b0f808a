/*  Every error that Hawser knows, in one list: number, wire word, text.
 *
 *  Functions return 0 or one of these, all below zero. The first group also travels
 *  on the wire as the `code` of an Err answer; its words are stable. The second group
 *  never leaves the process.
 *  This header is installed next to hawser.h and includes nothing.
 */
#ifndef HWS_ERROR_H
#define HWS_ERROR_H

/*  X (name, number, word, text)  */
#define HWS_ERROR_LIST(X)                                                                          \
    X (HWS_EBAD_REQUEST, -1, "bad_request", "the request is not valid")                            \
    X (HWS_EPROTOCOL, -2, "protocol", "the protocol was broken")                                   \
    X (HWS_EUNKNOWN_VERB, -3, "unknown_verb", "the verb is not known")                             \
    X (HWS_ENOT_FOUND, -4, "not_found", "there is no such anchor")                                 \
    X (HWS_EWRONG_KIND, -5, "wrong_kind", "the handle is of the other kind")                       \
    X (HWS_EWRONG_BROKER, -6, "wrong_broker", "the handle belongs to another broker")              \
    X (HWS_EMOVED, -7, "moved", "the anchor lives at another endpoint")                            \
    X (HWS_ENAME_IN_USE, -8, "name_in_use", "an anchor of that name is open")                      \
    X (HWS_EMAX_SENDERS, -9, "max_senders", "the anchor has all the senders it takes")             \
    X (HWS_ELIMIT, -10, "limit", "a configured limit is reached")                                  \
    X (HWS_EBUFFER_FULL, -11, "buffer_full", "the anchor's buffer has no room for a sender")       \
    X (HWS_EBUSY, -12, "busy", "in use by somebody else for now")                                  \
    X (HWS_EREMOVED_DURING_BIND, -13, "removed_during_bind", "the anchor went during the bind")    \
    X (HWS_ETRANSPORT, -14, "transport", "the connection failed")                                  \
    X (HWS_ECANCELLED, -15, "cancelled", "cancelled")                                              \
    X (HWS_ESUPERSEDED, -16, "superseded", "another receiver took over")                           \
    X (HWS_EDENIED, -17, "denied", "permission denied")                                            \
    X (HWS_EENDED, -18, "ended", "the stream has ended")                                           \
    X (HWS_ECLOSED, -19, "closed", "closed")                                                       \
    X (HWS_ENO_MEMORY, -40, "no_memory", "out of memory")                                          \
    X (HWS_EINVALID, -41, "invalid", "an argument is not valid")                                   \
    X (HWS_EWOULD_BLOCK, -42, "would_block", "it would have to wait")                              \
    X (HWS_ETIMEOUT, -43, "timeout", "the time limit passed")                                      \
    X (HWS_ETOO_LARGE, -44, "too_large", "larger than the limit")                                  \
    X (HWS_EMALFORMED, -45, "malformed", "the bytes are not well formed")                          \
    X (HWS_ESYSTEM, -46, "system", "the operating system refused")                                 \
    X (HWS_EADDRESS_IN_USE, -47, "address_in_use", "the endpoint is taken")                        \
    X (HWS_EUNREACHABLE, -48, "unreachable", "the broker cannot be reached")                       \
    X (HWS_EWRONG_PROCESS, -49, "wrong_process", "used after a fork, in the child")

typedef enum {
#define HWS_ERROR_ENUM(name, number, word, text) name = number,
    HWS_ERROR_LIST (HWS_ERROR_ENUM)
#undef HWS_ERROR_ENUM
} hws_error_t;

/*  The text of a code, for people; never null, static.  */
const char *hws_strerror (int code);

/*  The wire word of a code ("not_found"); never null, static.  */
const char *hws_error_word (int code);

/*  The code of a wire word of `size` bytes, or HWS_EPROTOCOL for a word that
 *  this version does not know: a newer broker's refusal stays a refusal.  */
int hws_error_from_word (const char *word, unsigned long size);

#endif
