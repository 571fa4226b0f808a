/*  The cancel registry, without locks and clocks: numbers that name something
 *  cancellable before it exists, and what happened to them.
 *
 *  Whoever has something to cancel registers a node under its token; cancelling the
 *  token hits every node, now or when it comes. A cancel that nobody registered for is an
 *  orphan: it is remembered for a time, and in a bounded number. What is registered never
 *  expires. Token 0 means none: every call takes it and does nothing.
 *
 *  With `is_lasting` a cancel is remembered for that time whatever it hits, so that what
 *  comes again under the token is cancelled again; without, what it hits uses it up, and
 *  the token is forgotten with its last node. The engine embeds a lasting one; cancel_io
 *  puts a lock around the other.
 */
#ifndef HWS_CANCEL_H
#define HWS_CANCEL_H

#include "base/error.h"
#include "base/list.h"
#include "base/map.h"
#include "base/time.h"

typedef struct hws_cancel_entry hws_cancel_entry_t;

/*  Something that a token cancels. Embedded in the caller's object, zero before its first
 *  use.  */
typedef struct {
    hws_link_t link;           /* in its entry's `nodes`, or in `hit` until it is taken */
    hws_cancel_entry_t *entry; /* of its token; null while it is not registered */
} hws_cancel_node_t;

/*  Who cancels: counts the orphans of one, against a limit of its own. It may not move,
 *  and may end before they expire.  */
typedef struct {
    hws_list_t orphans; /* of entries, through in_account */
    size_t limit;
} hws_cancel_account_t;

typedef struct {
    hws_ms_t orphan_ttl_ms;     /* how long a cancel is remembered */
    hws_ms_t sweep_interval_ms; /* between two searches for old ones */
    size_t orphan_limit;        /* cancels that are remembered at one time */
    bool is_lasting;            /* remembered whatever they hit */
    hws_hash_key_t hash_key;
} hws_cancels_options_t;

typedef struct {
    hws_cancels_options_t options; /* all but the last two may change at any time */
    hws_map_t entries;             /* by token */
    hws_list_t orphans;            /* cancels that are remembered, oldest first */
    hws_list_t hit;                /* nodes that a cancel hit and nobody has taken yet */
    uint64_t reserved;             /* tokens given out */
    hws_ms_t sweep_from;           /* no sweep before */
    uint64_t sweeps;               /* searches for old cancels */
    uint64_t refused;              /* cancels beyond a limit */
} hws_cancels_t;

/*  Returns 0 or HWS_ENO_MEMORY. The options are copied. The registry may not move.  */
int hws_cancels_init (hws_cancels_t *self, const hws_cancels_options_t *options);

/*  Forgets everything. Nodes and accounts that are left are as if released and ended; only
 *  those of a forgotten token are still to be released.  */
void hws_cancels_fini (hws_cancels_t *self);

/*  A token that this registry has not given out before: 1, 2, 3 …  */
uint64_t hws_cancels_reserve (hws_cancels_t *self);

/*  Registers the node under the token. It must not be registered; it may not move until it
 *  is released. hws_cancel_node_reason tells whether the token was cancelled before, then
 *  the node is registered all the same, and does not count as hit. Returns 0 or
 *  HWS_ENO_MEMORY.  */
int hws_cancels_register (hws_cancels_t *self, hws_ms_t now, uint64_t token,
                          hws_cancel_node_t *node);

/*  Takes the node out, hit or not. Idempotent.  */
void hws_cancels_release (hws_cancels_t *self, hws_cancel_node_t *node);

/*  What the token names is over: the token is forgotten, with its cancel. Nodes that are
 *  registered under it stay as they are, cancelled or not, and are still to be released.
 *  Idempotent.  */
void hws_cancels_forget (hws_cancels_t *self, uint64_t token);

/*  Cancels the token: every node under it is hit, to be taken with hws_cancels_take_hit,
 *  and later ones find it cancelled. `reason` may be null and is copied, as far as a text
 *  may go; the first one stays. Cancelling again hits nothing a second time, but is
 *  remembered from then on. `account` may be null. Returns 0, or HWS_ELIMIT or HWS_ENO_MEMORY
 *  when the token has to be remembered and cannot be. What has nodes is cancelled whatever
 *  the limits; a lasting one is beyond them forgotten with its last node, and HWS_ELIMIT
 *  says so.  */
int hws_cancels_cancel (hws_cancels_t *self, hws_ms_t now, uint64_t token, const char *reason,
                        hws_cancel_account_t *account);

/*  The next node that was hit, each once, or null. Nodes may be registered and released
 *  between two calls.  */
hws_cancel_node_t *hws_cancels_take_hit (hws_cancels_t *self);

/*  Why the token is cancelled, "" for no reason, or null: it is not, or not any more. Lives
 *  until the next call that changes the registry.  */
const char *hws_cancels_reason (const hws_cancels_t *self, uint64_t token);

/*  The same for the node's token, null also when the node is not registered. Lives until the
 *  node is released.  */
const char *hws_cancel_node_reason (const hws_cancel_node_t *node);

/*  Forgets cancels that are older than the time, if the last sweep was an interval ago;
 *  register and cancel do so too.  */
void hws_cancels_sweep (hws_cancels_t *self, hws_ms_t now);

/*  When hws_cancels_sweep will find something, or HWS_NEVER.  */
hws_ms_t hws_cancels_sweep_at (const hws_cancels_t *self);

/*  Tokens that are known, and cancels that are remembered.  */
size_t hws_cancels_count (const hws_cancels_t *self);
size_t hws_cancels_orphan_count (const hws_cancels_t *self);

void hws_cancel_account_init (hws_cancel_account_t *self, size_t limit);

/*  Its orphans stay, and count in nobody's account.  */
void hws_cancel_account_fini (hws_cancel_account_t *self);

#endif
