/*  The JSON Schema (draft 7, which editors understand) of a program's file.  */
#include "conf/print.h"

#include <inttypes.h>

/*  Writes one member of a schema object at a depth, after the first with a comma.  */
typedef struct {
    hws_writer_t text;
    const hws_conf_t *defaults;
    size_t depth;
    bool needs_comma;
} schema_t;

static void begin_member (schema_t *schema, const char *name, size_t size)
{
    hws_writer_add (&schema->text, schema->needs_comma ? ",\n" : "\n");
    hws_writer_indent (&schema->text, 4 * schema->depth);
    hws_writer_format (&schema->text, "\"%.*s\": ", (int) size, name);
    schema->needs_comma = true;
}

static void open_member (schema_t *schema, const char *name, size_t size)
{
    begin_member (schema, name, size);
    hws_writer_add (&schema->text, "{");
    schema->depth++;
    schema->needs_comma = false;
}

static void close_member (schema_t *schema)
{
    schema->depth--;
    hws_writer_add (&schema->text, "\n");
    hws_writer_indent (&schema->text, 4 * schema->depth);
    hws_writer_add (&schema->text, "}");
    schema->needs_comma = true;
}

static void put_text (schema_t *schema, const char *name, const char *value)
{
    begin_member (schema, name, strlen (name));
    hws_writer_add_json (&schema->text, value);
}

static void put_number (schema_t *schema, const char *name, uint64_t value)
{
    begin_member (schema, name, strlen (name));
    hws_writer_format (&schema->text, "%" PRIu64, value);
}

static void put_raw (schema_t *schema, const char *name, const char *json)
{
    begin_member (schema, name, strlen (name));
    hws_writer_add (&schema->text, json);
}

static void put_type (schema_t *schema, const hws_field_t *field, const char *type)
{
    begin_member (schema, "type", strlen ("type"));
    hws_writer_format (&schema->text, field->is_nullable ? "[\"%s\", \"null\"]" : "\"%s\"", type);
}

static void put_words (schema_t *schema, const hws_field_t *field)
{
    begin_member (schema, "enum", strlen ("enum"));
    for (size_t i = 0; field->words[i]; i++) {
        hws_writer_add (&schema->text, i == 0 ? "[" : ", ");
        hws_writer_add_json (&schema->text, field->words[i]);
    }
    hws_writer_add (&schema->text, "]");
}

static void put_shape (schema_t *schema, const hws_field_t *field)
{
    switch (field->type) {
    case HWS_FIELD_FLAG:
        put_type (schema, field, "boolean");
        break;
    case HWS_FIELD_WORD:
        put_words (schema, field);
        break;
    case HWS_FIELD_TEXT:
        put_type (schema, field, "string");
        break;
    case HWS_FIELD_LIST:
        put_type (schema, field, "array");
        put_raw (schema, "items", "{\"type\": \"string\"}");
        put_number (schema, "minItems", field->min);
        put_number (schema, "maxItems", field->max);
        break;
    case HWS_FIELD_INTEGER:
    case HWS_FIELD_SIZE:
    case HWS_FIELD_DURATION:
    case HWS_FIELD_OPERANDS:
        put_type (schema, field, "integer");
        put_number (schema, "minimum", field->min);
        put_number (schema, "maximum", field->max);
        break;
    }
}

static void put_field (schema_t *schema, const hws_field_t *field, const char *name)
{
    open_member (schema, name, strlen (name));
    put_text (schema, "description", field->help);
    put_shape (schema, field);
    const hws_stored_t stored = hws_store_get (schema->defaults, field);
    if (stored.state != HWS_STORED_ABSENT) {
        begin_member (schema, "default", strlen ("default"));
        hws_print_value (&schema->text, field, &stored);
    }
    close_member (schema);
}

/*  An object's own members, before its properties.  */
static void open_object (schema_t *schema, const char *name, size_t size)
{
    open_member (schema, name, size);
    put_text (schema, "type", "object");
    put_raw (schema, "additionalProperties", "false");
    open_member (schema, "properties", strlen ("properties"));
}

static void close_object (schema_t *schema)
{
    close_member (schema);
    close_member (schema);
}

/*  The fields in the table's order, groups as objects.  */
static void put_fields (schema_t *schema, const hws_program_t *program)
{
    const char *group = NULL;
    size_t group_size = 0;
    for (size_t i = 0; i < program->field_count; i++) {
        const hws_field_t *const field = &program->fields[i];
        if (field->key == NULL) {
            continue;
        }
        const char *const dot = strchr (field->key, '.');
        const size_t size = dot ? (size_t) (dot - field->key) : 0;
        const bool is_same = group && size == group_size && strncmp (group, field->key, size) == 0;
        if (group && !is_same) {
            close_object (schema);
            group = NULL;
        }
        if (dot && group == NULL) {
            open_object (schema, field->key, size);
            group = field->key;
            group_size = size;
        }
        put_field (schema, field, dot ? dot + 1 : field->key);
    }
    if (group) {
        close_object (schema);
    }
}

char *hws_program_schema (const hws_program_t *program)
{
    hws_conf_t *defaults;
    if (hws_conf_new (&defaults, program) != 0) {
        return NULL;
    }
    schema_t schema = {.defaults = defaults, .depth = 1};
    hws_writer_add (&schema.text, "{");
    put_text (&schema, "$schema", "http://json-schema.org/draft-07/schema#");
    put_text (&schema, "title", program->name);
    put_text (&schema, "type", "object");
    put_raw (&schema, "additionalProperties", "false");
    open_member (&schema, "properties", strlen ("properties"));
    put_raw (&schema, "$schema", "{\"type\": \"string\"}");
    put_raw (&schema, "$sources", "{\"type\": \"object\"}");
    put_fields (&schema, program);
    close_member (&schema);
    hws_writer_add (&schema.text, "\n}\n");
    hws_conf_destroy (&defaults);
    return hws_writer_take (&schema.text);
}
