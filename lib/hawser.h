/*  Hawser: streams that many senders write and one receiver reads.
 *
 *  A receiver opens an anchor at a broker. Any number of senders attach to it,
 *  by its name or its handle. The receiver reads one merged stream of events:
 *  every record carries the id of its sender, every sender's records come in
 *  order, and every sender has exactly one ending that says how and why it
 *  ended. A slow receiver makes its senders wait; nothing is lost while both
 *  live.
 *
 *      int read_results (void)
 *      {
 *          hws_client_t *client = NULL;
 *          hws_receiver_t *receiver = NULL;
 *          hws_event_t event;
 *          int rc = hws_client_new (&client, NULL);
 *          if (rc == 0) {
 *              rc = hws_receiver_open (&receiver, client, "results", NULL);
 *          }
 *          while (rc == 0) {
 *              rc = hws_receiver_recv (receiver, &event, HWS_FOREVER);
 *              if (rc == 0 && event.kind == HWS_EVENT_RECORD) {
 *                  fwrite (event.data, 1, event.size, stdout);
 *              }
 *          }
 *          hws_receiver_destroy (&receiver);
 *          hws_client_destroy (&client);
 *          return rc == HWS_ECLOSED ? 0 : rc;
 *      }
 *
 *      int send_result (void)
 *      {
 *          hws_client_t *client = NULL;
 *          hws_sender_t *sender = NULL;
 *          int rc = hws_client_new (&client, NULL);
 *          if (rc == 0) {
 *              rc = hws_sender_attach (&sender, client, "results", NULL);
 *          }
 *          if (rc == 0) {
 *              rc = hws_sender_send (sender, "42", 2, HWS_FOREVER);
 *          }
 *          if (rc == 0) {
 *              rc = hws_sender_detach (sender, HWS_FOREVER);
 *          }
 *          hws_sender_destroy (&sender);
 *          hws_client_destroy (&client);
 *          return rc;
 *      }
 *
 *  Errors. Functions that can fail return 0 or a negative code of
 *  base/error.h; hws_strerror gives its text, hws_client_error and
 *  hws_sender_reason the broker's own sentence. What would make an object sets the
 *  caller's pointer to null when it fails. The library prints nothing, handles no
 *  signals and never ends the process on account of input.
 *
 *  Threads. A client runs one thread of its own, with all signals blocked: it
 *  talks to the broker, so a program that computes for a minute is not dead. Any
 *  function may be called from any thread, but one thread at a time receives on
 *  a receiver and one sends on a sender: a second gets HWS_EBUSY. Destroying an
 *  object while another thread is inside a call on it is a bug of the program.
 *
 *  Fork. After a fork the child may use nothing that the parent made; calls
 *  on a client and its streams return HWS_EWRONG_PROCESS, and destroying them only
 *  frees memory.
 *
 *  Times are in milliseconds. HWS_FOREVER waits without a limit, 0 does not wait
 *  (HWS_EWOULD_BLOCK); a limit that passes is HWS_ETIMEOUT. Every wait also ends
 *  when the stream ends.
 */
#ifndef HWS_HAWSER_H
#define HWS_HAWSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/error.h"
#include "base/version.h"

#define HWS_FOREVER (-1)

/*  ---- Clients: one connection to one broker ---- */

typedef struct hws_client hws_client_t;

typedef struct {
    const char *endpoint; /* tcp://HOST:PORT or ipc://PATH; null: HWS_DEFAULT_ENDPOINT */
    const char *name;     /* of the program, told to the broker; null: "hawser" */
    int64_t connect_ms;   /* an open, or an attach beyond its wait_ms, gives up with
                             HWS_EUNREACHABLE when there is no broker for so long, or one
                             that does not answer; HWS_FOREVER: keep trying */
    int64_t give_up_ms;   /* a lost broker: streams end dropped(transport) after so long;
                             HWS_FOREVER: never */
    int64_t linger_ms;    /* flushing: a record waits so long at most for others to leave with
                             it. 0: it leaves as soon as the client's thread takes it, and under
                             load with those that came meanwhile; HWS_FOREVER: manual, it waits
                             for hws_client_flush */

    /* Called when the connection is lost (false; `text` says how, and is valid during the
       call) and when it is there again (true, ""); not for the first connection. With
       connections to dedicated anchors: when the first of all is lost, and when none is
       any longer; one that no stream needs does not count. On the
       client's thread: it calls nothing of the library and returns soon. May be null. */
    void (*on_connection) (void *arg, bool is_connected, const char *text);
    void *on_connection_arg; /* its first argument; lives as long as the client */
} hws_client_options_t;

/*  Fills in the defaults: connect_ms 5,000, give_up_ms 60,000, linger_ms 0, nobody to tell.  */
void hws_client_options_init (hws_client_options_t *options);

/*  Makes a client and starts its thread; the connection is made in the
 *  background. `options` may be null and is not kept. On success `*client` is the
 *  caller's, to be destroyed after all its senders and receivers. Returns 0,
 *  HWS_EINVALID (an endpoint that breaks the rules), HWS_ENO_MEMORY,
 *  HWS_ESYSTEM.  */
int hws_client_new (hws_client_t **client, const hws_client_options_t *options);

/*  Says goodbye to the broker (at most a second), stops the thread, frees, sets
 *  `*client` to null. A stream that is still there is dropped(transport) at the
 *  broker, an anchor closed, unless it was left (hws_receiver_leave). Accepts null.  */
void hws_client_destroy (hws_client_t **client);

/*  Hands all that the client's senders have queued to the wire: as one message if it fits into
 *  one (limits.batch_bytes of the broker), else as few as can be; the senders at a dedicated
 *  anchor have a connection, and so a message, of their own. Does not wait, neither for the
 *  socket nor for the receiver: hws_sender_flush does.
 *
 *  It is for a client with a linger_ms, HWS_FOREVER above all: a program that writes one record
 *  to each of many streams and then flushes has one message per pass. Without a linger nothing
 *  waits for it. Nothing that was queued before the call stays behind; what other threads queue
 *  meanwhile, or before the message is written, belongs to the next one. With or without it
 *  these leave at once: what would fill a message; an ending, and the records of its stream
 *  before it; the records before one that finds its window full; the records of a stream that
 *  hws_sender_flush waits for. An hws_sender_error waits like a record; acknowledgements,
 *  cancels and heartbeats never do.
 *
 *  Returns 0, or HWS_EWRONG_PROCESS.  */
int hws_client_flush (hws_client_t *client);

/*  The broker's or the network's last word on this client ("no broker at
 *  tcp://…"), copied into `text` of `size` bytes, always ended by a NUL.  */
void hws_client_error (hws_client_t *client, char *text, size_t size);

/*  ---- Receivers ---- */

typedef struct hws_receiver hws_receiver_t;

/*  Fields set to HWS_DEFAULT take the broker's default.  */
#define HWS_DEFAULT (-2)

typedef struct {
    int64_t heartbeat_interval_ms; /* a sender silent for three of them is dropped */
    int64_t reconnect_grace_ms;    /* how long a sender may be away */
    int64_t unattached_timeout_ms; /* the anchor expires when it has no sender for so long;
                                      HWS_FOREVER: never */
    int64_t orphan_ttl_ms;         /* how long senders wait for a receiver that is away */
    int64_t max_senders;           /* at one time; HWS_FOREVER: unlimited; exclusive: always 1 */
    int64_t buffer_bytes;          /* all records that are sent and not yet acknowledged */
    int64_t wait_ms;               /* how long hws_receiver_open waits for the broker's answer */
    bool manual_ack;               /* records count as consumed by hws_receiver_ack only */
    uint64_t cancel_token;         /* cancels the anchor, see hws_token_new; 0: none */
    bool exclusive;                /* one sender at a time, and one that finalizes closes it */
    bool dedicated;                /* a socket of its own at the broker, which senders find */
    const char *handle;            /* of an anchor that goes on, see hws_receiver_owner_token; */
    const char *owner_token;       /*   and the token of its owner; null, both: a new one */
} hws_receiver_options_t;

/*  Fills in the defaults: all HWS_DEFAULT, wait_ms HWS_FOREVER (an absent broker
 *  still ends it after the client's connect_ms), automatic acknowledgement, neither
 *  exclusive nor dedicated, a new anchor.  */
void hws_receiver_options_init (hws_receiver_options_t *options);

/*  Opens an anchor. `name` may be null: the anchor then has only its handle.
 *  `options` may be null. On success `*receiver` is the caller's. Returns 0,
 *  HWS_EINVALID (a name that breaks the rules, handle or owner_token alone or malformed),
 *  HWS_ENAME_IN_USE, HWS_ELIMIT, HWS_EBAD_REQUEST, HWS_EDENIED, HWS_ECANCELLED (its token was
 *  cancelled), HWS_EUNREACHABLE, HWS_ETIMEOUT, HWS_ENO_MEMORY; hws_client_error has the sentence.
 *
 *  With `handle` and `owner_token` it goes on with an anchor that another receiver has left, or
 *  had when its process died, or still has: that one is superseded, and sees CLOSED. Senders stay
 *  attached; each comes anew as ATTACHED, with the id it had, and its records begin behind the last
 *  that was acknowledged. So what was received and not acknowledged comes twice, and so does an
 *  ending. Name and options count only if the broker was restarted meanwhile and does not know
 *  the anchor: give those of before. HWS_ECLOSED: it has ended, or waited too long; HWS_EDENIED:
 *  the token is another's; HWS_EWRONG_BROKER.
 *
 *  The first one of a process also frees a block of 4 MiB. glibc learns from that to keep up to
 *  8 MiB of freed memory in each of its heaps (see mallopt, M_MMAP_THRESHOLD), without which
 *  the memory of every batch is taken from the system anew. What the program or its environment
 *  has set of this stays.  */
int hws_receiver_open (hws_receiver_t **receiver, hws_client_t *client, const char *name,
                       const hws_receiver_options_t *options);

/*  The anchor's handle, 32 hexadecimal digits; lives as long as the receiver.  */
const char *hws_receiver_handle (const hws_receiver_t *receiver);

/*  The token with which a receiver may go on with the anchor, in this process or in another, after
 *  this one has died or was left (hws_receiver_leave): 32 hexadecimal digits, which live as long as
 *  the receiver. Who knows it and the handle can take the anchor: keep it as a secret.  */
const char *hws_receiver_owner_token (const hws_receiver_t *receiver);

/*  Changes how long the anchor may be without a sender; HWS_FOREVER: for ever, 0: it closes as
 *  soon as it has none. While it has none the new time begins now, in full; while it has one,
 *  when the last is gone. Waits for the broker's answer. Returns 0, HWS_EINVALID,
 *  HWS_EBAD_REQUEST (the broker does not take it, all stays as it was), HWS_ECLOSED, or
 *  HWS_EUNREACHABLE after the client's connect_ms: a broker that comes back is told.  */
int hws_receiver_set_unattached_timeout (hws_receiver_t *receiver, int64_t timeout_ms);

typedef enum {
    HWS_EVENT_ATTACHED = 1, /* a sender came; `label` */
    HWS_EVENT_RECORD,       /* `data`, `size`, `seq` */
    HWS_EVENT_ERROR,        /* a sender reports an error and goes on; its text in `data`, `size` */
    HWS_EVENT_DETACHED,     /* endings: a sender is done, nothing of it follows */
    HWS_EVENT_FINALIZED,    /*   done, and the exclusive anchor with it */
    HWS_EVENT_DROPPED,      /*   it died or was thrown out; `cause` */
    HWS_EVENT_CANCELLED,    /*   somebody cancelled it; `cause` */
    HWS_EVENT_CLOSED        /* the anchor is gone; `cause`; the last event of a receiver */
} hws_event_kind_t;

/*  Causes, the stable words of DROPPED, CANCELLED, CLOSED and hws_sender_reason; a clean
 *  ending has none:
 *
 *      heartbeat        silent for three of its intervals
 *      transport        its connection did not come back in time
 *      protocol         it broke the rules
 *      lost             the broker was restarted without its state, or is another
 *      abandoned        the receiver did not come back
 *      receiver_closed  the receiver closed the anchor
 *      requested        somebody asked for it, or cancelled its token
 *      expired          it had no sender for unattached_timeout_ms
 *      superseded       another receiver took over
 *      interrupted      the sender cancelled it itself
 *      unknown          nobody remembers, or a newer broker's word
 *      finalized        the sender of an exclusive anchor was done, and the anchor with it
 */

typedef struct {
    hws_event_kind_t kind;
    uint64_t sender_id; /* 0 with CLOSED */
    uint64_t seq;       /* RECORD and ERROR: the sender's number for it, rising */
    const char *label;  /* the sender's, "" for none; null with CLOSED */
    const void *data;   /* RECORD, ERROR: not null; at any address, aligned to nothing */
    size_t size;
    const char *cause;  /* DROPPED, CANCELLED, CLOSED: one stable word ("heartbeat"), else null */
    const char *reason; /* endings and CLOSED: a sentence, may be "", else null */
    uint64_t records;   /* endings: whole records of that sender that were delivered here */
    uint64_t bytes;     /* endings: their bytes */
} hws_event_t;

/*  Waits for the next event. What it points to lives until the next call on this
 *  receiver, which also counts it as consumed (with automatic acknowledgement; the
 *  senders learn it within some 10 ms, whether or not another receive follows). An ending
 *  counts as consumed as soon as it is returned. Returns
 *  0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK, HWS_EBUSY, HWS_ENO_MEMORY (call again), or
 *  HWS_ECLOSED after the CLOSED event.  */
int hws_receiver_recv (hws_receiver_t *receiver, hws_event_t *event, int64_t timeout_ms);

/*  With manual acknowledgement: the events received so far are consumed. Returns 0
 *  or HWS_EBUSY. A program that waits for more than a window without it waits for
 *  ever.  */
int hws_receiver_ack (hws_receiver_t *receiver);

/*  A descriptor that is readable while hws_receiver_recv would not wait. It belongs
 *  to the receiver; poll it, never read it. After the poll call hws_receiver_recv with 0
 *  until HWS_EWOULD_BLOCK: that last call is the one that consumes the last record, without
 *  which its sender's flush goes on waiting. Negative: HWS_ESYSTEM.  */
int hws_receiver_fd (hws_receiver_t *receiver);

/*  Cancels one sender; its ending will be cancelled(requested) with the reason.
 *  Does not wait. `reason` may be null. Returns 0 or HWS_ENOT_FOUND for an id that
 *  was never here or has ended.  */
int hws_receiver_cancel_sender (hws_receiver_t *receiver, uint64_t sender_id, const char *reason);

/*  Cancels the anchor: every sender ends cancelled(receiver_closed) and is told;
 *  records and errors not yet received are discarded, the endings still come, then CLOSED.
 *  Waits for the broker's word at most `timeout_ms` (0: not at all, the events come
 *  when they come). Without it, after the time or at once when there is no connection,
 *  the anchor ends here with the same events; a broker that comes back is told while
 *  the receiver is there. Until then a clean ending that was consumed here may end badly at its
 *  sender: who is to be sure calls again, and waits at most `timeout_ms` for a broker that has
 *  heard. `reason` may be null; only the first counts. Returns 0, HWS_EWOULD_BLOCK, or, ended
 *  without the broker's word, HWS_ETIMEOUT or HWS_EUNREACHABLE.  */
int hws_receiver_close (hws_receiver_t *receiver, const char *reason, int64_t timeout_ms);

/*  Goes and leaves the anchor open: senders stay attached and wait, for the orphan_ttl_ms of the
 *  anchor from when its client is destroyed or loses its connection, until a receiver goes on with
 *  it (`handle` and `owner_token` of its options). Waits at most `timeout_ms` until the broker has
 *  all that was acknowledged: what it has not comes again. Frees; sets `*receiver` to null. Accepts
 *  null. Returns 0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK, or HWS_ECLOSED: the anchor has ended already,
 *  or was cancelled.  */
int hws_receiver_leave (hws_receiver_t **receiver, int64_t timeout_ms);

/*  Closes without waiting for long (a second), if it is still open; frees; sets
 *  `*receiver` to null. Accepts null.  */
void hws_receiver_destroy (hws_receiver_t **receiver);

/*  ---- Senders ---- */

typedef struct hws_sender hws_sender_t;

typedef struct {
    const char *label;     /* shown to the receiver; null: none */
    int64_t wait_ms;       /* also wait so long for a broker, an anchor or room in its buffer that
                              are not there yet, but not for another sender to leave
                              (HWS_EMAX_SENDERS); HWS_FOREVER; 0: do not */
    uint64_t cancel_token; /* cancels the attach and the stream, see hws_token_new; 0: none */
    bool early;            /* do not wait for the answer, see hws_sender_attach */
} hws_sender_options_t;

/*  Fills in the defaults: no label, wait_ms 0, not early.  */
void hws_sender_options_init (hws_sender_options_t *options);

/*  Attaches to an anchor by name or by handle (32 hexadecimal digits) and waits for
 *  the answer. `options` may be null. On success `*sender` is the caller's. Returns
 *  0, HWS_EINVALID, HWS_ENOT_FOUND, HWS_ECLOSED, HWS_EMAX_SENDERS, HWS_EBUFFER_FULL,
 *  HWS_ELIMIT, HWS_EBUSY, HWS_EDENIED, HWS_ECANCELLED, HWS_EWRONG_BROKER,
 *  HWS_EWRONG_KIND, HWS_EREMOVED_DURING_BIND, HWS_ETRANSPORT (the broker cannot bind the
 *  anchor's own socket), HWS_EPROTOCOL, HWS_EUNREACHABLE, HWS_ENO_MEMORY; hws_client_error
 *  has the sentence.
 *
 *  A dedicated anchor is where the broker says. The client then makes a connection to
 *  there, with a thread of its own, for all its senders at that anchor; the last one that
 *  is destroyed ends it (which may take a second). Nothing else is different: when the
 *  anchor is gone, and its socket with it, the stream learns its ending from the broker.
 *
 *  A broker that is away ends nothing for give_up_ms. What was sent is kept, and sends go on while
 *  the window has room. Be it that the connection broke or that the broker was restarted, with its
 *  state directory: the stream goes on behind what the receiver has. Only a receiver that does not
 *  come back then ends it, cancelled(abandoned).
 *
 *  An early sender is there at once, and the attach goes on without the program; with wait_ms
 *  too, and at a dedicated anchor. Its first records, and its ending, follow the request without
 *  waiting for the answer: so much less time does a short stream take. They are at most 64
 *  records of at most 4,052 bytes each and 16 KiB in all (less, if the broker says so); a send
 *  beyond that waits for the answer. What the broker could not keep, because the attach had to
 *  wait, is sent again by itself. Whether the attach succeeded, or with which of the codes above
 *  it did not, the first call tells that needs to know: hws_sender_flush, _detach, _finalize,
 *  _cancel_anchor, a send that has to wait or comes later; hws_sender_reason as soon as it is
 *  known, and hws_sender_fd. Returned here is only what this client knows by itself.  */
int hws_sender_attach (hws_sender_t **sender, hws_client_t *client, const char *anchor,
                       const hws_sender_options_t *options);

/*  The sender's id within the anchor; 0 while an early attach is not answered.  */
uint64_t hws_sender_id (const hws_sender_t *sender);

/*  The largest record that the anchor takes, in bytes; likewise 0.  */
uint64_t hws_sender_record_bytes (const hws_sender_t *sender);

/*  Sends one record; the bytes are copied. Waits while the window is full. After
 *  HWS_ETIMEOUT or HWS_EWOULD_BLOCK nothing of the record was sent. Returns 0,
 *  these two, HWS_ETOO_LARGE (over hws_sender_record_bytes), HWS_EBUSY,
 *  HWS_ENO_MEMORY, HWS_EENDED after hws_sender_detach or _finalize, or how the stream ended:
 *  HWS_ECANCELLED, HWS_ETRANSPORT (dropped); hws_sender_reason has cause and
 *  sentence.  */
int hws_sender_send (hws_sender_t *sender, const void *data, size_t size, int64_t timeout_ms);

/*  Room for one record of at most `size` bytes, to be written in place and then
 *  committed with its true size; `*room` lives until then. Another reserve forgets
 *  the first. Returns as hws_sender_send. A commit does not wait; HWS_ETOO_LARGE of it: the broker
 *  was restarted meanwhile, and takes only shorter records.  */
int hws_sender_reserve (hws_sender_t *sender, void **room, size_t size, int64_t timeout_ms);
int hws_sender_commit (hws_sender_t *sender, size_t size);

/*  Tells the receiver of an error, in order with the records; the stream goes on.
 *  `text` is UTF-8, at most 1,024 bytes. Returns as hws_sender_send.  */
int hws_sender_error (hws_sender_t *sender, const char *text, int64_t timeout_ms);

/*  Waits until the receiver has consumed everything sent so far. Returns 0,
 *  HWS_ETIMEOUT, HWS_EWOULD_BLOCK, or how the stream ended.  */
int hws_sender_flush (hws_sender_t *sender, int64_t timeout_ms);

/*  Ends the stream cleanly and waits until the receiver has consumed all of it and
 *  the ending. After HWS_ETIMEOUT it may be called again to go on waiting. Returns
 *  0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK, or how the stream ended instead.  */
int hws_sender_detach (hws_sender_t *sender, int64_t timeout_ms);

/*  The same, and an exclusive anchor is closed with it: its receiver sees FINALIZED, then
 *  CLOSED with cause finalized. After hws_sender_detach such an anchor waits for its next
 *  sender. Any other anchor stays open, and the ending is a detach. Of the two the first
 *  call counts; the other then only waits.  */
int hws_sender_finalize (hws_sender_t *sender, int64_t timeout_ms);

/*  Ends the stream at once: cancelled(interrupted); what was not yet consumed may be
 *  lost. Waits for the broker's word at most `timeout_ms`; without a connection there
 *  is none and the stream ends here, HWS_EUNREACHABLE: the broker is told when it is back
 *  while the client is there (for a dedicated anchor: the sender), else the receiver sees
 *  dropped(transport). Returns 0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK, HWS_EUNREACHABLE.  */
int hws_sender_cancel (hws_sender_t *sender, const char *reason, int64_t timeout_ms);

/*  Cancels the whole anchor that the sender is attached to: every stream ends
 *  cancelled(requested) with the reason, this one included; one that has ended cleanly stays
 *  so. Nobody attaches any more, and the anchor closes when the receiver has consumed the
 *  last ending. Waits for the broker's word at most `timeout_ms`; without a connection there
 *  is none, HWS_EUNREACHABLE: the broker is told when it is back while the sender is there.
 *  Returns 0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK, HWS_EUNREACHABLE, HWS_ETRANSPORT (the broker
 *  was lost for good), HWS_EDENIED (this stream has ended and gives no right any more),
 *  HWS_ECLOSED (the broker was restarted, and the anchor is gone).  */
int hws_sender_cancel_anchor (hws_sender_t *sender, const char *reason, int64_t timeout_ms);

/*  0 while the stream lives or after it detached cleanly, else how it ended
 *  (HWS_ECANCELLED, HWS_ETRANSPORT), or how its early attach was refused; does not wait. `cause`
 *  and `reason`, if not null, get the stable word and the sentence, "" while there are none; they
 *  live as long as the sender.  */
int hws_sender_reason (hws_sender_t *sender, const char **cause, const char **reason);

/*  A descriptor that becomes readable when the stream has ended, whoever ended it.
 *  It belongs to the sender; poll it, never read it.  */
int hws_sender_fd (hws_sender_t *sender);

/*  Records and payload bytes that the receiver has consumed; either may be null.  */
void hws_sender_progress (hws_sender_t *sender, uint64_t *records, uint64_t *bytes);

/*  Frees; sets `*sender` to null. A stream that has neither ended nor detached is
 *  cancelled(interrupted) without waiting. Accepts null.  */
void hws_sender_destroy (hws_sender_t **sender);

/*  ---- Cancel tokens ---- */

/*  A number that names a stream or an anchor before it exists: make one, give it to whoever
 *  shall be able to cancel, and attach or open with it. Several streams may carry one.
 *  Returns 0 or HWS_ESYSTEM.  */
int hws_token_new (uint64_t *token);

/*  Cancels what carries the token, here or at any other client of the broker, now or when it
 *  comes: streams end cancelled(requested) with the reason, an anchor as by
 *  hws_sender_cancel_anchor, attaches and opens that wait or come later fail with
 *  HWS_ECANCELLED. Those of this client end at once, broker or not, also when another thread
 *  waits for them. The broker remembers the cancel for its `cancel.orphan_ttl_ms`, the
 *  client for two minutes, in which it tells another broker too. Idempotent; 0 is no token
 *  and nothing is done.
 *
 *  Waits for the broker's word at most `timeout_ms`, and for a broker at most for the
 *  client's connect_ms; whatever it returns but HWS_ELIMIT and HWS_ENO_MEMORY, the client
 *  goes on asking until it is answered. `reason` may be null. Returns 0, HWS_ETIMEOUT,
 *  HWS_EWOULD_BLOCK, HWS_EUNREACHABLE, HWS_EDENIED, HWS_ELIMIT (the broker has too many cancels
 *  to remember: what is there by now is cancelled, what comes later is not; or this client has,
 *  and did not ask), HWS_ENO_MEMORY.  */
int hws_client_cancel_token (hws_client_t *client, uint64_t token, const char *reason,
                             int64_t timeout_ms);

/*  ---- Cancel registry ---- */

/*  For programs that cancel work of their own by a number, within the process: whoever knows
 *  the token may cancel what it names, also before it exists. Nothing of it goes to a
 *  broker; its tokens are not those of hws_token_new. All functions are safe from any
 *  thread. Token 0 means none: every call takes it and does nothing.  */

typedef struct hws_registry hws_registry_t;
typedef struct hws_waiter hws_waiter_t;

typedef struct {
    int64_t orphan_ttl_ms;         /* a cancel that nobody registered for is remembered so long */
    int64_t sweep_interval_ms;     /* old ones are looked for at most so often */
    uint64_t orphan_limit;         /* so many are remembered at one time */
    int64_t (*now_ms) (void *arg); /* the time, on a clock that nobody sets; called under a
                                      lock; null: the system's */
    void *now_arg;                 /* its argument */
} hws_registry_options_t;

/*  Fills in the defaults: orphan_ttl_ms 120,000, sweep_interval_ms 1,000, orphan_limit
 *  65,536, the system's clock.  */
void hws_registry_options_init (hws_registry_options_t *options);

/*  `options` may be null and is not kept. On success `*registry` is the caller's, to be
 *  destroyed after all its waiters. Returns 0, HWS_EINVALID (a negative time),
 *  HWS_ENO_MEMORY, HWS_ESYSTEM.  */
int hws_registry_new (hws_registry_t **registry, const hws_registry_options_t *options);

/*  Frees; sets `*registry` to null. Accepts null.  */
void hws_registry_destroy (hws_registry_t **registry);

/*  The one that all of the process shares, with the defaults; made by the first call, never
 *  destroyed. Null without memory.  */
hws_registry_t *hws_registry_shared (void);

/*  A token that this registry never gave out before: 1, 2, 3 …  */
uint64_t hws_registry_reserve (hws_registry_t *registry);

/*  Registers for the token; several may. `*waiter` is the caller's, signalled already when
 *  the cancel came first (which uses that cancel up). For token 0 it is one waiter that all
 *  share and nothing ever signals. Returns 0 or HWS_ENO_MEMORY.  */
int hws_registry_register (hws_registry_t *registry, uint64_t token, hws_waiter_t **waiter);

/*  Cancels the token: signals its waiters, or is remembered for those who register later.
 *  Idempotent. `reason` may be null; of a long one the first 1,024 bytes count. Returns 0,
 *  or HWS_ELIMIT, HWS_ENO_MEMORY when nobody has registered and it cannot be remembered.  */
int hws_registry_cancel (hws_registry_t *registry, uint64_t token, const char *reason);

/*  What the token names is over: forgets the token, with its cancel. Waiters that are still
 *  there stay as they are. Idempotent, harmless for a token that nobody knows.  */
void hws_registry_release (hws_registry_t *registry, uint64_t token);

/*  Forgets cancels that are older than orphan_ttl_ms, if it is time for that; register and
 *  cancel do so too.  */
void hws_registry_sweep (hws_registry_t *registry);

typedef struct {
    size_t tokens;    /* known: registered or remembered */
    size_t orphans;   /* cancels that wait for somebody to register */
    uint64_t sweeps;  /* since the start */
    uint64_t refused; /* cancels beyond orphan_limit, since the start */
} hws_registry_counts_t;

void hws_registry_counts (hws_registry_t *registry, hws_registry_counts_t *counts);

/*  Waits until the token is cancelled. Returns 0, HWS_ETIMEOUT, HWS_EWOULD_BLOCK.  */
int hws_waiter_wait (hws_waiter_t *waiter, int64_t timeout_ms);

/*  Why the token is cancelled, "" for no reason, null while it is not. Lives as long as the
 *  waiter.  */
const char *hws_waiter_reason (hws_waiter_t *waiter);

/*  A descriptor that becomes readable when the token is cancelled. It belongs to the waiter;
 *  poll it, never read it. Negative: HWS_ESYSTEM.  */
int hws_waiter_fd (hws_waiter_t *waiter);

/*  Has `call` called once when the token is cancelled, on a thread that cancels; at once
 *  when it is already. No lock is held: it may use the registry, and destroy this waiter. Set
 *  it at most once.  */
void hws_waiter_on_cancel (hws_waiter_t *waiter, void (*call) (void *arg), void *arg);

/*  Frees; sets `*waiter` to null. The token is forgotten with its last waiter. When it
 *  returns, `call` is over, unless it is `call` that destroys. Accepts null.  */
void hws_waiter_destroy (hws_waiter_t **waiter);

#ifdef __cplusplus
}
#endif

#endif
