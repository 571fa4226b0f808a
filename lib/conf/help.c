/*  --help out of a table, and the shared options.  */
#include "conf/options.h"

#include "conf/near.h"
#include "conf/print.h"

#include <stdio.h>

#define COLUMN 30 /* where the texts begin */
#define WIDTH  79

const hws_shared_option_t hws_shared_options[HWS_SHARED_COUNT] = {
    [HWS_SHARED_CONFIG] = {{"config", 'c', "FILE"}, "take settings from this JSON file"},
    [HWS_SHARED_CHECK] = {{"check-config", 't', NULL},
                          "check all settings, without a run, and leave"},
    [HWS_SHARED_PRINT] = {{"print-config", 0, NULL},
                          "print all settings as JSON, with where each came from, and leave"},
    [HWS_SHARED_SCHEMA] = {{"schema", 0, NULL}, "print the JSON Schema of the file and leave"},
    [HWS_SHARED_HELP] = {{"help", 'h', NULL}, "print this and leave"},
    [HWS_SHARED_VERSION] = {{"version", 'V', NULL}, "print versions and leave"},
};

typedef struct {
    const char *name; /* or null */
    size_t distance;
} nearest_t;

static void consider (nearest_t *nearest, const char *name, const char *candidate)
{
    const size_t distance = candidate ? hws_near_distance (name, candidate) : HWS_NEAR_FAR;
    if (distance < nearest->distance) {
        *nearest = (nearest_t){.name = candidate, .distance = distance};
    }
}

const char *hws_option_nearest (const hws_program_t *program, const char *name)
{
    nearest_t nearest = {.name = NULL, .distance = HWS_NEAR_FAR};
    for (size_t i = 0; i < program->field_count; i++) {
        consider (&nearest, name, program->fields[i].option.name);
    }
    for (size_t i = 0; i < program->alias_count; i++) {
        consider (&nearest, name, program->aliases[i].option.name);
    }
    for (size_t i = 0; i < HWS_SHARED_COUNT; i++) {
        consider (&nearest, name, hws_shared_options[i].option.name);
    }
    return nearest.name;
}

/*  Appends words so that no line passes WIDTH; `column` is where the line stands.  */
static void add_wrapped (hws_writer_t *text, const char *words, size_t column)
{
    while (*words) {
        const size_t size = strcspn (words, " ");
        if (column > COLUMN && column + 1 + size > WIDTH) {
            hws_writer_add (text, "\n");
            hws_writer_indent (text, COLUMN);
            column = COLUMN;
        } else if (column > COLUMN) {
            hws_writer_add (text, " ");
            column++;
        }
        hws_writer_add_bytes (text, words, size);
        column += size;
        words += size + strspn (words + size, " ");
    }
    hws_writer_add (text, "\n");
}

static void add_option (hws_writer_t *text, const hws_option_t *option, const char *help)
{
    char head[128];
    const char letter[] = {'-', option->letter, ',', ' ', '\0'};
    snprintf (head, sizeof head, "  %s--%s%s%s", option->letter ? letter : "    ", option->name,
              option->argument ? " " : "", option->argument ? option->argument : "");
    hws_writer_add (text, head);
    if (strlen (head) + 2 > COLUMN) {
        hws_writer_add (text, "\n");
        hws_writer_indent (text, COLUMN);
    } else {
        hws_writer_indent (text, COLUMN - strlen (head));
    }
    add_wrapped (text, help, COLUMN);
}

static void add_field (hws_writer_t *text, const hws_field_t *field)
{
    const bool has_default = field->preset && field->type != HWS_FIELD_FLAG;
    char help[512];
    snprintf (help, sizeof help, "%s%s%s%s", field->help, has_default ? " (default " : "",
              has_default ? field->preset : "", has_default ? ")" : "");
    add_option (text, &field->option, help);
}

static void add_precedence (hws_writer_t *text, const hws_program_t *program)
{
    for (size_t i = 0; i < program->field_count; i++) {
        if (program->fields[i].environment) {
            hws_writer_format (text, "%s in the environment sets --%s, if no option does.\n",
                               program->fields[i].environment, program->fields[i].option.name);
        }
    }
    hws_writer_add (text, "Options override the file; --print-config shows all that it can say.\n");
}

char *hws_program_help (const hws_program_t *program)
{
    hws_writer_t text = {0};
    hws_writer_format (&text, "Usage: %s [OPTION]...%s%s\n%s\n\n", program->name,
                       program->operands ? " " : "", program->operands ? program->operands : "",
                       program->summary);
    for (size_t i = 0; i < program->field_count; i++) {
        if (program->fields[i].option.name) {
            add_field (&text, &program->fields[i]);
        }
    }
    for (size_t i = 0; i < program->alias_count; i++) {
        add_option (&text, &program->aliases[i].option, program->aliases[i].help);
    }
    hws_writer_add (&text, "\n");
    for (size_t i = 0; i < HWS_SHARED_COUNT; i++) {
        add_option (&text, &hws_shared_options[i].option, hws_shared_options[i].help);
    }
    hws_writer_add (&text, "\nDurations: 0.5, 500ms, 2s, 3m, 1h; a bare number is seconds. Sizes: "
                           "4096, 64K,\n16M, 1G.\n");
    add_precedence (&text, program);
    return hws_writer_take (&text);
}
