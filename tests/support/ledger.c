#include "tests/support/ledger.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *ledger_line (const char *label, size_t number)
{
    static char line[64];

    snprintf (line, sizeof line, "%s %zu\n", label, number);
    return line;
}

const char *ledger_input (const char *label, size_t count)
{
    const char *path = process_path ("%s.records", label);
    FILE *file = fopen (path, "we");

    assert_non_null (file);
    for (size_t i = 0; i < count; i++) {
        assert_true (fputs (ledger_line (label, i), file) >= 0);
    }
    assert_int_equal (fclose (file), 0);
    return path;
}

void ledger_init (ledger_t *self)
{
    *self = (ledger_t){.count = 0};
}

/*  ---- Reading ---- */

static const char *member (const cJSON *object, const char *name)
{
    const char *text = cJSON_GetStringValue (cJSON_GetObjectItemCaseSensitive (object, name));
    return text ? text : "";
}

static size_t index_of (const ledger_t *self, const char *label)
{
    size_t i = 0;

    while (i < self->count && strcmp (self->senders[i].label, label) != 0) {
        i++;
    }
    return i;
}

/*  Behind a restart of the broker a new receiver may not be told the label: then the id counts.  */
static ledger_sender_t *find_or_add (ledger_t *self, const char *label, uint64_t sender)
{
    size_t i = index_of (self, label);

    if (*label == '\0') {
        for (i = 0; i < self->count && self->senders[i].sender != sender; i++) {
        }
    }
    if (i == self->count) {
        assert_true (self->count < LEDGER_SENDERS_MAX);
        self->senders[self->count++] = (ledger_sender_t){.sender = sender, .is_new = true};
        snprintf (self->senders[i].label, sizeof self->senders[i].label, "%s", label);
    }
    return &self->senders[i];
}

/*  Returns what is wrong with the record, or null.  */
static const char *take_record (ledger_sender_t *sender, const char *data)
{
    const size_t size = strlen (sender->label);
    char *rest = NULL;

    if (strncmp (data, sender->label, size) != 0 || data[size] != ' ') {
        return "a record of somebody else";
    }
    const size_t number = strtoull (data + size + 1, &rest, 10);
    if (*rest != '\0') {
        return "a damaged record";
    }
    const size_t most = sender->is_new ? sender->records : sender->next;
    if (number > most || (!sender->is_new && number < most)) {
        return number > most ? "a gap" : "a repeat";
    }
    sender->is_new = false;
    sender->next = number + 1;
    if (number < sender->records) {
        sender->repeats++;
    } else {
        sender->records++;
    }
    return NULL;
}

/*  Returns what is wrong with the event, or null.  */
static const char *take_event (ledger_t *self, const cJSON *object)
{
    const char *const event = member (object, "event");
    const uint64_t id = strtoull (member (object, "sender"), NULL, 10);

    if (strcmp (event, "opened") == 0) {
        return NULL;
    }
    if (strcmp (event, "closed") == 0) {
        snprintf (self->closed, sizeof self->closed, "%s", member (object, "cause"));
        return NULL;
    }
    ledger_sender_t *const sender = find_or_add (self, member (object, "label"), id);
    if (sender->sender != id) {
        if (!self->may_begin_anew || sender->is_attached || sender->endings > 0) {
            return "another sender id";
        }
        sender->sender = id;
    }
    if (sender->has_ended) {
        return "an event behind the ending";
    }
    if (strcmp (event, "attached") == 0) {
        const bool is_second = sender->is_attached;
        sender->is_attached = true;
        return is_second ? "attached once more" : NULL;
    }
    if (!sender->is_attached) {
        return "nothing was attached";
    }
    if (strcmp (event, "record") == 0) {
        return take_record (sender, member (object, "data"));
    }
    sender->has_ended = true;
    sender->endings++;
    snprintf (sender->ending, sizeof sender->ending, "%s", event);
    snprintf (sender->cause, sizeof sender->cause, "%s", member (object, "cause"));
    return NULL;
}

void ledger_read (ledger_t *self, const process_t *receiver)
{
    size_t size;
    const char *line = process_output (receiver, &size);
    const char *const end = line + size;
    const char *stop;

    for (size_t i = 0; i < self->count; i++) {
        self->senders[i].is_attached = false;
        self->senders[i].is_new = true;
        self->senders[i].has_ended = false;
    }
    for (; (stop = memchr (line, '\n', (size_t) (end - line))) != NULL; line = stop + 1) {
        cJSON *object = cJSON_ParseWithLength (line, (size_t) (stop - line));
        const char *const fault = object ? take_event (self, object) : "no JSON";
        cJSON_Delete (object);
        if (fault) {
            process_fail ("%s: %.*s", fault, (int) (stop - line), line);
        }
    }
}

/*  ---- Looking ---- */

const ledger_sender_t *ledger_find (const ledger_t *self, const char *label)
{
    const size_t i = index_of (self, label);

    return i < self->count ? &self->senders[i] : NULL;
}

void ledger_expect (const ledger_t *self, const char *label, size_t records, const char *ending,
                    const char *cause)
{
    const ledger_sender_t *const sender = ledger_find (self, label);

    if (!sender) {
        process_fail ("nothing of %s came", label);
    }
    if (sender->records != records || sender->endings != 1 ||
        strcmp (sender->ending, ending) != 0 || strcmp (sender->cause, cause) != 0) {
        process_fail ("%s has %zu records, not %zu, and %zu endings, the last %s(%s), not %s(%s)",
                      label, sender->records, records, sender->endings, sender->ending,
                      sender->cause, ending, cause);
    }
}
