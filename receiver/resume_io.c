#include "receiver/resume_io.h"

#include "base/error.h"
#include "base/text.h"
#include "receiver/resume_part_io.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef hws_resume_sender_t sender_t;
typedef hws_resume_entry_t entry_t;

/*  ---- Errors ---- */

int hws_resume_fail (hws_resume_t *self, int code, const char *text)
{
    snprintf (self->error, sizeof self->error, "%.300s: %s", self->path, text);
    return code;
}

int hws_resume_fail_system (hws_resume_t *self)
{
    return hws_resume_fail (self, HWS_ESYSTEM, strerror (errno));
}

int hws_resume_fail_memory (hws_resume_t *self)
{
    return hws_resume_fail (self, HWS_ENO_MEMORY, hws_strerror (HWS_ENO_MEMORY));
}

const char *hws_resume_error (const hws_resume_t *self)
{
    return self->error;
}

/*  ---- Lines ---- */

/*  Writes a line in its place. One that is new and does not fit on the disk is taken back, so
 *  that the file stays whole.  */
static int write_line (hws_resume_t *self, size_t line, const char *text)
{
    const off_t offset = (off_t) (line * HWS_RESUME_LINE_SIZE);
    ssize_t rc;
    do {
        rc = pwrite (self->fd, text, HWS_RESUME_LINE_SIZE, offset);
    } while (rc < 0 && errno == EINTR);
    if (rc == HWS_RESUME_LINE_SIZE) {
        self->line_count = line < self->line_count ? self->line_count : line + 1;
        return 0;
    }
    const int error = rc < 0 ? errno : ENOSPC;
    if (line >= self->line_count && ftruncate (self->fd, offset) < 0) {
        return hws_resume_fail_system (self);
    }
    errno = error;
    return hws_resume_fail_system (self);
}

int hws_resume_write_anchor (hws_resume_t *self)
{
    char line[HWS_RESUME_LINE_SIZE];
    hws_resume_anchor_write (&self->anchor, line);
    return write_line (self, 0, line);
}

static int write_sender (hws_resume_t *self, const entry_t *entry)
{
    char line[HWS_RESUME_LINE_SIZE];
    hws_resume_sender_write (&entry->sender, line);
    return write_line (self, entry->line, line);
}

/*  ---- Senders ---- */

static entry_t *find (hws_resume_t *self, uint64_t sender_id)
{
    if (self->last && self->last->sender.sender_id == sender_id) {
        return self->last;
    }
    hws_map_node_t *const node =
        hws_map_find (&self->senders, hws_bytes (&sender_id, sizeof sender_id));
    self->last = node ? hws_container_of (node, entry_t, node) : NULL;
    return self->last;
}

entry_t *hws_resume_add_entry (hws_resume_t *self, const sender_t *sender, size_t line)
{
    entry_t *const entry = calloc (1, sizeof *entry);
    if (entry == NULL) {
        return NULL;
    }
    entry->sender = *sender;
    entry->line = line;
    hws_map_insert (&self->senders, &entry->node,
                    hws_bytes (&entry->sender.sender_id, sizeof (uint64_t)));
    return entry;
}

static void free_entry (hws_resume_t *self, entry_t *entry)
{
    hws_map_remove (&self->senders, &entry->node);
    hws_list_remove (&entry->dirty_link);
    hws_list_remove (&entry->ended_link);
    self->last = NULL;
    free (entry);
}

void hws_resume_forget_all (hws_resume_t *self)
{
    hws_map_node_t *node;
    while ((node = hws_map_any (&self->senders)) != NULL) {
        free_entry (self, hws_container_of (node, entry_t, node));
    }
    self->records = self->ended_count = self->bad = 0;
    self->line_count = 0;
    self->last_order = 0;
}

const hws_resume_sender_t *hws_resume_find (hws_resume_t *self, uint64_t sender_id)
{
    const entry_t *const entry = find (self, sender_id);
    return entry ? &entry->sender : NULL;
}

bool hws_resume_is_known (hws_resume_t *self, const hws_event_t *event)
{
    const entry_t *const entry =
        event->kind == HWS_EVENT_CLOSED ? NULL : find (self, event->sender_id);
    if (entry == NULL || entry->sender.is_ended) {
        return entry != NULL;
    }
    const bool has_number = event->kind == HWS_EVENT_RECORD || event->kind == HWS_EVENT_ERROR;
    return has_number && event->seq < entry->sender.next_seq;
}

/*  The line of the sender that ended first is free for another one: the anchor's line has its
 *  numbers from now on. Returns its place, or a new one.  */
static int free_line (hws_resume_t *self, size_t *line)
{
    *line = self->line_count;
    if (self->ended.count <= HWS_RESUME_ENDED_MAX) {
        return 0;
    }
    entry_t *const oldest = hws_container_of (self->ended.head, entry_t, ended_link);
    self->anchor.records += oldest->sender.records;
    self->anchor.ended += oldest->sender.sender_id != self->anchor.folded;
    self->anchor.bad += oldest->sender.is_bad;
    self->anchor.folded = oldest->sender.sender_id;
    *line = oldest->line;
    free_entry (self, oldest);
    return hws_resume_write_anchor (self);
}

int hws_resume_add (hws_resume_t *self, uint64_t sender_id, const char *file)
{
    sender_t sender = {.sender_id = sender_id};
    hws_text_copy (sender.file, sizeof sender.file, file);
    size_t line;
    const int rc = free_line (self, &line);
    if (rc < 0) {
        return rc;
    }
    const entry_t *const entry = hws_resume_add_entry (self, &sender, line);
    return entry ? write_sender (self, entry) : hws_resume_fail_memory (self);
}

static void set_dirty (hws_resume_t *self, entry_t *entry)
{
    if (!hws_link_is_in_list (&entry->dirty_link)) {
        hws_list_append (&self->dirty, &entry->dirty_link);
    }
}

static void set_ended (hws_resume_t *self, entry_t *entry, bool is_bad)
{
    entry->sender.is_ended = true;
    entry->sender.is_bad = is_bad;
    entry->sender.order = ++self->last_order;
    hws_list_append (&self->ended, &entry->ended_link);
    set_dirty (self, entry);
}

static void take_ending (hws_resume_t *self, entry_t *entry, const hws_event_t *event)
{
    const char *const cause = event->cause ? event->cause : "";
    if (strcmp (cause, "superseded") == 0 || strcmp (cause, "transport") == 0) {
        hws_list_append (&self->doubted, &entry->ended_link);
    } else {
        set_ended (self, entry,
                   event->kind == HWS_EVENT_DROPPED || event->kind == HWS_EVENT_CANCELLED);
    }
}

void hws_resume_note (hws_resume_t *self, const hws_event_t *event, uint64_t size)
{
    entry_t *const entry = find (self, event->sender_id);
    if (entry == NULL) {
        return;
    }
    sender_t *const sender = &entry->sender;
    switch (event->kind) {
    case HWS_EVENT_RECORD:
        sender->records++;
        sender->bytes += event->size;
        sender->next_seq = event->seq + 1;
        sender->size = size;
        break;
    case HWS_EVENT_ERROR:
        sender->next_seq = event->seq + 1;
        sender->size = size;
        break;
    case HWS_EVENT_DETACHED:
    case HWS_EVENT_FINALIZED:
    case HWS_EVENT_DROPPED:
    case HWS_EVENT_CANCELLED:
        take_ending (self, entry, event);
        return;
    case HWS_EVENT_ATTACHED:
    case HWS_EVENT_CLOSED:
        return;
    }
    set_dirty (self, entry);
}

bool hws_resume_has_doubts (const hws_resume_t *self)
{
    return self->doubted.count > 0;
}

void hws_resume_believe (hws_resume_t *self)
{
    hws_link_t *link;
    while ((link = hws_list_pop (&self->doubted)) != NULL) {
        set_ended (self, hws_container_of (link, entry_t, ended_link), true);
    }
}

int hws_resume_commit (hws_resume_t *self)
{
    while (self->dirty.head) {
        const int rc =
            write_sender (self, hws_container_of (self->dirty.head, entry_t, dirty_link));
        if (rc < 0) {
            return rc;
        }
        hws_list_pop (&self->dirty);
    }
    return 0;
}

void hws_resume_totals (const hws_resume_t *self, uint64_t *records, uint64_t *ended, uint64_t *bad)
{
    *records = self->records;
    *ended = self->ended_count;
    *bad = self->bad;
}

/*  ---- What it says of the anchor ---- */

bool hws_resume_is_there (const hws_resume_t *self)
{
    return self->is_there;
}

const char *hws_resume_handle (const hws_resume_t *self)
{
    return self->handle;
}

const char *hws_resume_owner_token (const hws_resume_t *self)
{
    return self->owner_token;
}

bool hws_resume_is_of (const hws_resume_t *self, const char *anchor)
{
    return strcmp (self->anchor.anchor, anchor ? anchor : "") == 0;
}
