#include "conf/store.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

static void *place_of (const hws_conf_t *self, const hws_field_t *field)
{
    return (char *) self->values + field->offset;
}

hws_origin_t *hws_store_origin (const hws_conf_t *self, const hws_field_t *field)
{
    return &self->origins[field - self->program->fields];
}

static bool is_optional (const hws_field_t *field)
{
    return field->is_nullable || field->preset == NULL;
}

static hws_stored_t get_number (const hws_field_t *field, const void *place)
{
    if (!is_optional (field)) {
        return (hws_stored_t){.state = HWS_STORED_VALUE, .number = *(const uint64_t *) place};
    }
    const hws_optional_t *const optional = place;
    if (optional->state == HWS_VALUE) {
        return (hws_stored_t){.state = HWS_STORED_VALUE, .number = optional->value};
    }
    return (hws_stored_t){.state =
                              optional->state == HWS_NULL ? HWS_STORED_NULL : HWS_STORED_ABSENT};
}

static hws_stored_t get_text (const hws_field_t *field, const char *text)
{
    if (text) {
        return (hws_stored_t){.state = HWS_STORED_VALUE, .text = text};
    }
    return (hws_stored_t){.state = field->is_nullable ? HWS_STORED_NULL : HWS_STORED_ABSENT};
}

hws_stored_t hws_store_get (const hws_conf_t *self, const hws_field_t *field)
{
    const void *const place = place_of (self, field);
    switch (field->type) {
    case HWS_FIELD_FLAG:
        return (hws_stored_t){.state = HWS_STORED_VALUE, .number = *(const bool *) place};
    case HWS_FIELD_WORD:
        return (hws_stored_t){.state = HWS_STORED_VALUE,
                              .number = (uint64_t) * (const int *) place};
    case HWS_FIELD_TEXT:
        return get_text (field, *(char *const *) place);
    case HWS_FIELD_LIST:
    case HWS_FIELD_OPERANDS:
        return (hws_stored_t){.state = HWS_STORED_VALUE, .texts = *(const hws_texts_t *) place};
    case HWS_FIELD_INTEGER:
    case HWS_FIELD_SIZE:
    case HWS_FIELD_DURATION:
        break;
    }
    return get_number (field, place);
}

void hws_store_number (hws_conf_t *self, const hws_field_t *field, uint64_t number)
{
    void *const place = place_of (self, field);
    if (field->type == HWS_FIELD_FLAG) {
        *(bool *) place = number != 0;
    } else if (field->type == HWS_FIELD_WORD) {
        *(int *) place = (int) number;
    } else if (is_optional (field)) {
        *(hws_optional_t *) place = (hws_optional_t){.state = HWS_VALUE, .value = number};
    } else {
        *(uint64_t *) place = number;
    }
}

void hws_store_null (hws_conf_t *self, const hws_field_t *field)
{
    hws_assert (field->is_nullable);
    if (field->type == HWS_FIELD_TEXT) {
        hws_store_clear (self, field);
    } else {
        *(hws_optional_t *) place_of (self, field) = (hws_optional_t){.state = HWS_NULL};
    }
}

static int append (hws_texts_t *texts, char *copy)
{
    char **const text = realloc (texts->text, (texts->count + 1) * sizeof *text);
    if (text == NULL) {
        free (copy);
        return HWS_ENO_MEMORY;
    }
    text[texts->count++] = copy;
    texts->text = text;
    return 0;
}

int hws_store_text (hws_conf_t *self, const hws_field_t *field, const char *text)
{
    char *const copy = strdup (text);
    if (copy == NULL) {
        return HWS_ENO_MEMORY;
    }
    if (field->type != HWS_FIELD_TEXT) {
        return append (place_of (self, field), copy);
    }
    hws_store_clear (self, field);
    *(char **) place_of (self, field) = copy;
    return 0;
}

void hws_store_clear (hws_conf_t *self, const hws_field_t *field)
{
    if (field->type == HWS_FIELD_TEXT) {
        char **const text = place_of (self, field);
        free (*text);
        *text = NULL;
    } else if (field->type == HWS_FIELD_LIST || field->type == HWS_FIELD_OPERANDS) {
        hws_texts_t *const texts = place_of (self, field);
        for (size_t i = 0; i < texts->count; i++) {
            free (texts->text[i]);
        }
        free (texts->text);
        *texts = (hws_texts_t){0};
    }
}

bool hws_store_find_word (const hws_field_t *field, const char *text, int *place)
{
    for (int i = 0; field->words[i]; i++) {
        if (strcmp (field->words[i], text) == 0) {
            *place = i;
            return true;
        }
    }
    return false;
}

void hws_store_spelling (const hws_field_t *field, const hws_origin_t *origin, char *text,
                         size_t size)
{
    if (origin->source == HWS_SOURCE_COMMAND_LINE && origin->option && origin->option->name) {
        snprintf (text, size, "--%s", origin->option->name);
    } else if (origin->source == HWS_SOURCE_ENVIRONMENT) {
        snprintf (text, size, "%s", field->environment);
    } else {
        snprintf (text, size, "%s", field->key ? field->key : "an argument");
    }
}
