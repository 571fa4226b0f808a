#include "conf/conf.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "conf/near.h"
#include "conf/number.h"
#include "conf/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/*  ---- Errors ---- */

/*  What a file or a shell put into the text must neither break the line in two nor
 *  drive a terminal.  */
static void make_one_line (char *text)
{
    hws_cursor_t cursor = hws_cursor (hws_bytes_of_text (text));
    while (cursor.left > 0) {
        char *const at = text + (cursor.at - (const uint8_t *) text);
        uint32_t code_point;
        if (hws_utf8_next (&cursor, &code_point) < 0) {
            hws_cursor_u8 (&cursor);
            *at = '?';
        } else if (hws_utf8_is_control (code_point)) {
            memset (at, '?', code_point < 0x80 ? 1 : 2);
        }
    }
}

static void write_error (hws_conf_t *self, const char *where, const char *format, va_list arguments)
    __attribute__ ((format (printf, 3, 0)));

static void write_error (hws_conf_t *self, const char *where, const char *format, va_list arguments)
{
    size_t used = 0;
    if (where) {
        const int size = snprintf (self->error, sizeof self->error, "%s: ", where);
        used = size < 0 ? 0 : (size_t) size;
    }
    if (used < sizeof self->error) {
        vsnprintf (self->error + used, sizeof self->error - used, format, arguments);
    }
    make_one_line (self->error);
}

int hws_conf_fail (hws_conf_t *self, const char *where, const char *format, ...)
{
    va_list arguments;
    va_start (arguments, format);
    write_error (self, where, format, arguments);
    va_end (arguments);
    return HWS_EINVALID;
}

const char *hws_conf_error (const hws_conf_t *self)
{
    return self->error;
}

void hws_why_range (const hws_field_t *field, bool is_file, char *why)
{
    const hws_field_type_t type = is_file ? HWS_FIELD_INTEGER : field->type;
    char min[HWS_NUMBER_TEXT_SIZE], max[HWS_NUMBER_TEXT_SIZE];
    hws_number_print (type, field->min, min);
    hws_number_print (type, field->max, max);
    const char *const or_nothing = is_file ? ", or null" : ", or none";
    snprintf (why, HWS_CONF_ERROR_SIZE, "must be from %s to %s%s", min, max,
              field->is_nullable ? or_nothing : "");
}

void hws_why_word (const hws_field_t *field, const char *text, char *why)
{
    const char *nearest = NULL;
    size_t nearest_distance = HWS_NEAR_FAR, used = 0;
    for (size_t i = 0; field->words[i]; i++) {
        const int more = snprintf (why + used, HWS_CONF_ERROR_SIZE - used, "%s%s",
                                   i == 0 ? "must be one of " : ", ", field->words[i]);
        used += more > 0 ? (size_t) more : 0;
        hws_assert (used < HWS_CONF_ERROR_SIZE);
        const size_t distance = hws_near_distance (text, field->words[i]);
        if (distance < nearest_distance) {
            nearest = field->words[i];
            nearest_distance = distance;
        }
    }
    if (nearest) {
        snprintf (why + used, HWS_CONF_ERROR_SIZE - used, "; did you mean \"%s\"?", nearest);
    }
}

/*  ---- Setting from texts ---- */

static int set_number (hws_conf_t *self, const hws_field_t *field, const char *text, char *why)
{
    if (field->is_nullable && strcmp (text, "none") == 0) {
        hws_store_null (self, field);
        return 0;
    }
    uint64_t number;
    const int rc = hws_number_parse (field->type, hws_bytes_of_text (text), &number);
    if (rc == HWS_EMALFORMED) {
        snprintf (why, HWS_CONF_ERROR_SIZE, "must be %s%s", hws_number_description (field->type),
                  field->is_nullable ? ", or none" : "");
        return HWS_EINVALID;
    }
    if (rc != 0 || number < field->min || number > field->max) {
        hws_why_range (field, false, why);
        return HWS_EINVALID;
    }
    hws_store_number (self, field, number);
    return 0;
}

static int set_flag (hws_conf_t *self, const hws_field_t *field, const char *text, char *why)
{
    const bool is_true = strcmp (text, "true") == 0;
    if (!is_true && strcmp (text, "false") != 0) {
        snprintf (why, HWS_CONF_ERROR_SIZE, "must be true or false");
        return HWS_EINVALID;
    }
    hws_store_number (self, field, is_true);
    return 0;
}

static int set_word (hws_conf_t *self, const hws_field_t *field, const char *text, char *why)
{
    int place;
    if (!hws_store_find_word (field, text, &place)) {
        hws_why_word (field, text, why);
        return HWS_EINVALID;
    }
    hws_store_number (self, field, (uint64_t) place);
    return 0;
}

static int set_text (hws_conf_t *self, const hws_field_t *field, const char *text, char *why)
{
    if (field->check && !field->check (hws_bytes_of_text (text), why, HWS_CONF_ERROR_SIZE)) {
        return HWS_EINVALID;
    }
    const bool is_list = field->type != HWS_FIELD_TEXT;
    if (is_list && hws_store_get (self, field).texts.count >= field->max) {
        snprintf (why, HWS_CONF_ERROR_SIZE, "comes more than %" PRIu64 " times", field->max);
        return HWS_EINVALID;
    }
    return hws_store_text (self, field, text);
}

static int set (hws_conf_t *self, const hws_field_t *field, const char *text, char *why)
{
    switch (field->type) {
    case HWS_FIELD_FLAG:
        return set_flag (self, field, text, why);
    case HWS_FIELD_WORD:
        return set_word (self, field, text, why);
    case HWS_FIELD_TEXT:
    case HWS_FIELD_LIST:
    case HWS_FIELD_OPERANDS:
        return set_text (self, field, text, why);
    case HWS_FIELD_INTEGER:
    case HWS_FIELD_SIZE:
    case HWS_FIELD_DURATION:
        break;
    }
    return set_number (self, field, text, why);
}

int hws_conf_set (hws_conf_t *self, const hws_field_t *field, hws_source_t source, const char *text)
{
    const hws_origin_t origin = {.source = source, .option = &field->option};
    if (field->type == HWS_FIELD_LIST && hws_store_origin (self, field)->source != source) {
        hws_store_clear (self, field);
    }
    char why[HWS_CONF_ERROR_SIZE];
    const int rc = set (self, field, text, why);
    if (rc == HWS_EINVALID) {
        char spelling[HWS_PLACE_PATH_SIZE];
        hws_store_spelling (field, &origin, spelling, sizeof spelling);
        return hws_conf_fail (self, self->program->name, "%s: %s", spelling, why);
    }
    if (rc == 0) {
        *hws_store_origin (self, field) = origin;
    }
    return rc;
}

/*  Moves a word up or down its list, no further than its ends.  */
static void step (hws_conf_t *self, const hws_field_t *field, int length)
{
    hws_assert (field->type == HWS_FIELD_WORD);
    int last = 0;
    while (field->words[last + 1]) {
        last++;
    }
    const int place = (int) hws_store_get (self, field).number + length;
    hws_store_number (self, field, (uint64_t) (place < 0 ? 0 : place > last ? last : place));
}

int hws_conf_set_alias (hws_conf_t *self, const hws_alias_t *alias)
{
    const hws_field_t *const field = hws_program_field (self->program, alias->key);
    hws_assert (field != NULL);
    if (alias->value) {
        const int rc = hws_conf_set (self, field, HWS_SOURCE_COMMAND_LINE, alias->value);
        if (rc != 0) {
            return rc;
        }
    } else {
        step (self, field, alias->step);
    }
    *hws_store_origin (self, field) =
        (hws_origin_t){.source = HWS_SOURCE_COMMAND_LINE, .option = &alias->option};
    return 0;
}

/*  ---- Rules between fields ---- */

int hws_conf_check (hws_conf_t *self)
{
    return self->program->check ? self->program->check (self, self->values) : 0;
}

const hws_field_t *hws_conf_missing (const hws_conf_t *self)
{
    for (size_t i = 0; i < self->program->field_count; i++) {
        const hws_field_t *const field = &self->program->fields[i];
        if (field->is_required && hws_store_get (self, field).state != HWS_STORED_VALUE) {
            return field;
        }
    }
    return NULL;
}

int hws_conf_check_required (hws_conf_t *self)
{
    const hws_field_t *const field = hws_conf_missing (self);
    return field
               ? hws_conf_fail (self, self->program->name, "--%s must be given", field->option.name)
               : 0;
}

/*  What an error line about the present value of a field begins with.  */
static void write_where (const hws_conf_t *self, const hws_field_t *field, char *where, size_t size)
{
    const hws_origin_t *const origin = hws_store_origin (self, field);
    if (origin->source == HWS_SOURCE_FILE) {
        snprintf (where, size, "%s:%zu:%zu: %s", self->file, origin->line, origin->column,
                  field->key);
    } else {
        char spelling[HWS_PLACE_PATH_SIZE];
        hws_store_spelling (field, origin, spelling, sizeof spelling);
        snprintf (where, size, "%s: %s", self->program->name, spelling);
    }
}

int hws_conf_blame (hws_conf_t *self, const char *key, const char *format, ...)
{
    const hws_field_t *const field = hws_program_field (self->program, key);
    hws_assert (field != NULL);
    char where[HWS_CONF_ERROR_SIZE];
    write_where (self, field, where, sizeof where);

    va_list arguments;
    va_start (arguments, format);
    write_error (self, where, format, arguments);
    va_end (arguments);
    return HWS_EINVALID;
}

/*  ---- Looking up ---- */

const hws_field_t *hws_program_field (const hws_program_t *program, const char *key)
{
    for (size_t i = 0; i < program->field_count; i++) {
        const hws_field_t *const field = &program->fields[i];
        if (field->key && strcmp (field->key, key) == 0) {
            return field;
        }
    }
    return NULL;
}

hws_source_t hws_conf_source (const hws_conf_t *self, const char *key)
{
    const hws_field_t *const field = hws_program_field (self->program, key);
    hws_assert (field != NULL);
    return hws_store_origin (self, field)->source;
}

const void *hws_conf_values (const hws_conf_t *self)
{
    return self->values;
}

const hws_program_t *hws_conf_program (const hws_conf_t *self)
{
    return self->program;
}

/*  ---- Life ---- */

/*  Presets are written by us: one that does not parse is our own bug.  */
static int set_presets (hws_conf_t *self)
{
    for (size_t i = 0; i < self->program->field_count; i++) {
        const hws_field_t *const field = &self->program->fields[i];
        if (field->preset == NULL) {
            continue;
        }
        char why[HWS_CONF_ERROR_SIZE];
        const int rc = set (self, field, field->preset, why);
        hws_assert (rc != HWS_EINVALID);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

int hws_conf_new (hws_conf_t **self, const hws_program_t *program)
{
    *self = NULL;
    hws_conf_t *conf = calloc (1, sizeof *conf);
    if (conf == NULL) {
        return HWS_ENO_MEMORY;
    }
    conf->program = program;
    conf->values = calloc (1, program->values_size);
    conf->origins = calloc (program->field_count, sizeof *conf->origins);
    if (conf->values == NULL || conf->origins == NULL || set_presets (conf) != 0) {
        hws_conf_destroy (&conf);
        return HWS_ENO_MEMORY;
    }
    *self = conf;
    return 0;
}

void hws_conf_destroy (hws_conf_t **self)
{
    hws_conf_t *const conf = *self;
    if (conf == NULL) {
        return;
    }
    for (size_t i = 0; conf->values && i < conf->program->field_count; i++) {
        hws_store_clear (conf, &conf->program->fields[i]);
    }
    free (conf->values);
    free (conf->origins);
    free (conf->file);
    free (conf);
    *self = NULL;
}
