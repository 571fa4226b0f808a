#include "cancel/cancel.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/text.h"

#include <stdlib.h>

/*  A token that is cancelled, or has nodes, or both; with neither it is freed. One that was
 *  forgotten has nodes only, and is in no map.  */
struct hws_cancel_entry {
    hws_map_node_t node;   /* by `key` */
    uint8_t key[8];        /* the token */
    hws_list_t nodes;      /* registered, but for those in `hit` */
    size_t node_count;     /* registered */
    bool is_cancelled;     /* for good, as far as this entry goes */
    char *reason;          /* null for none */
    hws_ms_t cancelled_at; /* the last time, while it is remembered */
    hws_link_t in_orphans; /* while it is remembered */
    hws_link_t in_account; /* likewise, if somebody's account counts it */
};

static hws_cancel_entry_t *find (const hws_cancels_t *self, uint64_t token)
{
    uint8_t key[8];
    hws_put_u64 (key, token);
    hws_map_node_t *const node = hws_map_find (&self->entries, hws_bytes (key, sizeof key));
    return node ? hws_container_of (node, hws_cancel_entry_t, node) : NULL;
}

static hws_cancel_entry_t *add (hws_cancels_t *self, uint64_t token)
{
    hws_cancel_entry_t *const entry = calloc (1, sizeof *entry);
    if (entry) {
        hws_put_u64 (entry->key, token);
        hws_map_insert (&self->entries, &entry->node, hws_bytes (entry->key, sizeof entry->key));
    }
    return entry;
}

static void forget_cancel (hws_cancel_entry_t *entry)
{
    hws_list_remove (&entry->in_orphans);
    hws_list_remove (&entry->in_account);
}

static void drop (hws_cancels_t *self, hws_cancel_entry_t *entry)
{
    forget_cancel (entry);
    hws_map_remove (&self->entries, &entry->node);
    free (entry->reason);
    free (entry);
}

static void drop_unused (hws_cancels_t *self, hws_cancel_entry_t *entry)
{
    if (entry->node_count == 0 && !hws_link_is_in_list (&entry->in_orphans)) {
        drop (self, entry);
    }
}

int hws_cancels_init (hws_cancels_t *self, const hws_cancels_options_t *options)
{
    *self = (hws_cancels_t){.options = *options, .sweep_from = INT64_MIN};
    return hws_map_init (&self->entries, options->hash_key);
}

static void release_all (hws_list_t *nodes)
{
    hws_link_t *link;
    while ((link = hws_list_pop (nodes)) != NULL) {
        hws_container_of (link, hws_cancel_node_t, link)->entry = NULL;
    }
}

void hws_cancels_fini (hws_cancels_t *self)
{
    release_all (&self->hit);
    hws_map_node_t *node;
    while ((node = hws_map_any (&self->entries)) != NULL) {
        hws_cancel_entry_t *const entry = hws_container_of (node, hws_cancel_entry_t, node);
        release_all (&entry->nodes);
        drop (self, entry);
    }
    hws_map_fini (&self->entries);
}

uint64_t hws_cancels_reserve (hws_cancels_t *self)
{
    return ++self->reserved;
}

void hws_cancels_forget (hws_cancels_t *self, uint64_t token)
{
    hws_cancel_entry_t *const entry = find (self, token);
    if (entry) {
        forget_cancel (entry);
        hws_map_remove (&self->entries, &entry->node);
        drop_unused (self, entry);
    }
}

/*  ---- Nodes ---- */

int hws_cancels_register (hws_cancels_t *self, hws_ms_t now, uint64_t token,
                          hws_cancel_node_t *node)
{
    hws_assert (node->entry == NULL);

    hws_cancels_sweep (self, now);
    if (token == 0) {
        return 0;
    }
    hws_cancel_entry_t *entry = find (self, token);
    if (entry == NULL) {
        entry = add (self, token);
    }
    if (entry == NULL) {
        return HWS_ENO_MEMORY;
    }
    if (!self->options.is_lasting) {
        forget_cancel (entry);
    }
    node->entry = entry;
    hws_list_append (&entry->nodes, &node->link);
    entry->node_count++;
    return 0;
}

void hws_cancels_release (hws_cancels_t *self, hws_cancel_node_t *node)
{
    hws_cancel_entry_t *const entry = node->entry;
    if (entry) {
        hws_list_remove (&node->link);
        node->entry = NULL;
        entry->node_count--;
        drop_unused (self, entry);
    }
}

hws_cancel_node_t *hws_cancels_take_hit (hws_cancels_t *self)
{
    hws_link_t *const link = hws_list_pop (&self->hit);
    if (link == NULL) {
        return NULL;
    }
    hws_cancel_node_t *const node = hws_container_of (link, hws_cancel_node_t, link);
    hws_list_append (&node->entry->nodes, link);
    return node;
}

static const char *reason_of (const hws_cancel_entry_t *entry)
{
    if (entry == NULL || !entry->is_cancelled) {
        return NULL;
    }
    return entry->reason ? entry->reason : "";
}

const char *hws_cancels_reason (const hws_cancels_t *self, uint64_t token)
{
    return reason_of (find (self, token));
}

const char *hws_cancel_node_reason (const hws_cancel_node_t *node)
{
    return reason_of (node->entry);
}

/*  ---- Cancel ---- */

/*  A copy no longer than a text may be; null for none. Without memory there is no reason
 *  rather than no cancel.  */
static char *copy_reason (const char *reason)
{
    const size_t length = reason ? strnlen (reason, HWS_TEXT_SIZE_MAX) : 0;
    char *const copy = length > 0 ? malloc (length + 1) : NULL;
    if (copy) {
        hws_text_copy (copy, length + 1, reason);
    }
    return copy;
}

static bool is_within_limits (const hws_cancels_t *self, const hws_cancel_account_t *account)
{
    return self->orphans.count < self->options.orphan_limit &&
           (account == NULL || account->orphans.count < account->limit);
}

/*  Has the cancel remembered from now on; the queue stays in the order of time. A cancel
 *  that is remembered already stays in the account that it is in.  */
static int remember (hws_cancels_t *self, hws_cancel_entry_t *entry, hws_ms_t now,
                     hws_cancel_account_t *account)
{
    if (hws_link_is_in_list (&entry->in_orphans)) {
        hws_list_remove (&entry->in_orphans);
    } else if (!is_within_limits (self, account)) {
        self->refused++;
        return HWS_ELIMIT;
    } else if (account) {
        hws_list_append (&account->orphans, &entry->in_account);
    }
    entry->cancelled_at = now;
    hws_list_append (&self->orphans, &entry->in_orphans);
    return 0;
}

static void hit_nodes (hws_cancels_t *self, hws_cancel_entry_t *entry)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&entry->nodes)) != NULL) {
        hws_list_append (&self->hit, link);
    }
}

int hws_cancels_cancel (hws_cancels_t *self, hws_ms_t now, uint64_t token, const char *reason,
                        hws_cancel_account_t *account)
{
    hws_cancels_sweep (self, now);
    if (token == 0) {
        return 0;
    }
    hws_cancel_entry_t *entry = find (self, token);
    if (entry == NULL) {
        entry = add (self, token);
    }
    if (entry == NULL) {
        return HWS_ENO_MEMORY;
    }
    const bool has_nodes = entry->node_count > 0;
    int rc = 0;
    if (!has_nodes || self->options.is_lasting) {
        rc = remember (self, entry, now, account);
    }
    if (rc != 0 && !has_nodes) {
        drop (self, entry);
        return rc;
    }
    if (!entry->is_cancelled) {
        entry->is_cancelled = true;
        entry->reason = copy_reason (reason);
        hit_nodes (self, entry);
    }
    return rc;
}

/*  ---- Time ---- */

static hws_cancel_entry_t *oldest (const hws_cancels_t *self)
{
    hws_link_t *const link = self->orphans.head;
    return link ? hws_container_of (link, hws_cancel_entry_t, in_orphans) : NULL;
}

static hws_ms_t expires_at (const hws_cancels_t *self, const hws_cancel_entry_t *entry)
{
    return hws_time_after (entry->cancelled_at, self->options.orphan_ttl_ms);
}

void hws_cancels_sweep (hws_cancels_t *self, hws_ms_t now)
{
    if (now < self->sweep_from) {
        return;
    }
    self->sweep_from = hws_time_after (now, self->options.sweep_interval_ms);
    self->sweeps++;
    hws_cancel_entry_t *entry;
    while ((entry = oldest (self)) != NULL && expires_at (self, entry) <= now) {
        forget_cancel (entry);
        drop_unused (self, entry);
    }
}

hws_ms_t hws_cancels_sweep_at (const hws_cancels_t *self)
{
    const hws_cancel_entry_t *const entry = oldest (self);
    if (entry == NULL) {
        return HWS_NEVER;
    }
    const hws_ms_t at = expires_at (self, entry);
    return at > self->sweep_from ? at : self->sweep_from;
}

/*  ---- Counts ---- */

size_t hws_cancels_count (const hws_cancels_t *self)
{
    return self->entries.count;
}

size_t hws_cancels_orphan_count (const hws_cancels_t *self)
{
    return self->orphans.count;
}

void hws_cancel_account_init (hws_cancel_account_t *self, size_t limit)
{
    *self = (hws_cancel_account_t){.limit = limit};
}

void hws_cancel_account_fini (hws_cancel_account_t *self)
{
    while (hws_list_pop (&self->orphans)) {
    }
}
