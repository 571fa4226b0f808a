/*  Settings as JSON: what --print-config writes, and the reference files.  */
#include "conf/print.h"

#include <inttypes.h>
#include <stdio.h>

#define INDENT 4

/*  An object with groups in progress: fields come in the table's order, siblings
 *  together, so a change of group is a change of the key's head.  */
typedef struct {
    hws_writer_t text;
    const char *group; /* key of a field in the open group, or null at the top */
    size_t group_size; /* of the group's part of it */
    bool needs_comma;
} object_t;

static void begin_line (object_t *object)
{
    hws_writer_add (&object->text, object->needs_comma ? ",\n" : "\n");
    hws_writer_indent (&object->text, object->group ? 2 * INDENT : INDENT);
    object->needs_comma = true;
}

static void end_group (object_t *object)
{
    if (object->group) {
        object->group = NULL;
        hws_writer_add (&object->text, "\n");
        hws_writer_indent (&object->text, INDENT);
        hws_writer_add (&object->text, "}");
        object->needs_comma = true;
    }
}

static void add_name (object_t *object, const char *name, size_t size)
{
    begin_line (object);
    hws_writer_format (&object->text, "\"%.*s\": ", (int) size, name);
}

/*  Writes the name of a field's key and opens and closes groups as needed.  */
static void add_key (object_t *object, const char *key)
{
    const char *const dot = strchr (key, '.');
    const size_t size = dot ? (size_t) (dot - key) : 0;
    const bool is_same =
        object->group && size == object->group_size && strncmp (object->group, key, size) == 0;
    if (!is_same) {
        end_group (object);
    }
    if (dot && !is_same) {
        add_name (object, key, size);
        hws_writer_add (&object->text, "{");
        object->group = key;
        object->group_size = size;
        object->needs_comma = false;
    }
    const char *const leaf = dot ? dot + 1 : key;
    add_name (object, leaf, strlen (leaf));
}

static void add_list (hws_writer_t *text, const hws_texts_t *texts)
{
    hws_writer_add (text, "[");
    for (size_t i = 0; i < texts->count; i++) {
        hws_writer_add (text, i > 0 ? ", " : "");
        hws_writer_add_json (text, texts->text[i]);
    }
    hws_writer_add (text, "]");
}

void hws_print_value (hws_writer_t *text, const hws_field_t *field, const hws_stored_t *stored)
{
    if (stored->state != HWS_STORED_VALUE) {
        hws_writer_add (text, "null");
    } else if (field->type == HWS_FIELD_TEXT) {
        hws_writer_add_json (text, stored->text);
    } else if (field->type == HWS_FIELD_LIST) {
        add_list (text, &stored->texts);
    } else if (field->type == HWS_FIELD_WORD) {
        hws_writer_add_json (text, field->words[stored->number]);
    } else if (field->type == HWS_FIELD_FLAG) {
        hws_writer_add (text, stored->number ? "true" : "false");
    } else {
        hws_writer_format (text, "%" PRIu64, stored->number);
    }
}

static void add_fields (object_t *object, const hws_conf_t *conf)
{
    for (size_t i = 0; i < conf->program->field_count; i++) {
        const hws_field_t *const field = &conf->program->fields[i];
        const hws_stored_t stored = hws_store_get (conf, field);
        if (field->key && stored.state != HWS_STORED_ABSENT) {
            add_key (object, field->key);
            hws_print_value (&object->text, field, &stored);
        }
    }
    end_group (object);
}

static void add_source (hws_writer_t *text, const hws_conf_t *conf, const hws_field_t *field)
{
    const hws_origin_t *const origin = hws_store_origin (conf, field);
    char spelling[HWS_PLACE_PATH_SIZE];
    hws_store_spelling (field, origin, spelling, sizeof spelling);
    char source[HWS_CONF_ERROR_SIZE];
    switch (origin->source) {
    case HWS_SOURCE_FILE:
        snprintf (source, sizeof source, "file %s:%zu:%zu", conf->file, origin->line,
                  origin->column);
        break;
    case HWS_SOURCE_ENVIRONMENT:
        snprintf (source, sizeof source, "environment %s", spelling);
        break;
    case HWS_SOURCE_COMMAND_LINE:
        snprintf (source, sizeof source, "command line %s", spelling);
        break;
    case HWS_SOURCE_DEFAULT:
        snprintf (source, sizeof source, "%s",
                  hws_store_get (conf, field).state == HWS_STORED_ABSENT ? "not set" : "default");
        break;
    }
    hws_writer_add_json (text, source);
}

static void add_sources (object_t *object, const hws_conf_t *conf)
{
    add_name (object, "$sources", strlen ("$sources"));
    hws_writer_add (&object->text, "{");
    object->group = "";
    object->needs_comma = false;
    for (size_t i = 0; i < conf->program->field_count; i++) {
        const hws_field_t *const field = &conf->program->fields[i];
        if (field->key) {
            add_name (object, field->key, strlen (field->key));
            add_source (&object->text, conf, field);
        }
    }
    end_group (object);
}

char *hws_conf_print (const hws_conf_t *self)
{
    object_t object = {0};
    hws_writer_add (&object.text, "{");
    add_fields (&object, self);
    add_sources (&object, self);
    hws_writer_add (&object.text, "\n}\n");
    return hws_writer_take (&object.text);
}

char *hws_program_reference (const hws_program_t *program)
{
    hws_conf_t *conf;
    if (hws_conf_new (&conf, program) != 0) {
        return NULL;
    }
    object_t object = {0};
    hws_writer_add (&object.text, "{");
    add_name (&object, "$schema", strlen ("$schema"));
    hws_writer_format (&object.text, "\"%s.schema.json\"", program->name);
    add_fields (&object, conf);
    hws_writer_add (&object.text, "\n}\n");
    hws_conf_destroy (&conf);
    return hws_writer_take (&object.text);
}
