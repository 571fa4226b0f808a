/*  A file into settings: the strict scan, then cJSON's tree and the text side by side, so
 *  that every member has its place and every number its digits.
 */
#include "conf/conf.h"

#include "base/json.h"
#include "conf/near.h"
#include "conf/number.h"
#include "conf/store.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    hws_conf_t *conf;
    hws_bytes_t json;
} load_t;

/*  ---- Errors ---- */

static int fail_at (load_t *load, size_t offset, const char *format, ...)
    __attribute__ ((format (printf, 3, 4)));

static int fail_at (load_t *load, size_t offset, const char *format, ...)
{
    hws_place_t place;
    hws_place_find (load->json, offset, &place);
    char where[HWS_CONF_ERROR_SIZE];
    snprintf (where, sizeof where, "%s:%zu:%zu%s%s", load->conf->file, place.line, place.column,
              place.path[0] ? ": " : "", place.path);

    char text[HWS_CONF_ERROR_SIZE];
    va_list arguments;
    va_start (arguments, format);
    vsnprintf (text, sizeof text, format, arguments);
    va_end (arguments);
    return hws_conf_fail (load->conf, where, "%s", text);
}

static const char *kind_of (const cJSON *item)
{
    if (cJSON_IsBool (item)) {
        return cJSON_IsTrue (item) ? "true" : "false";
    }
    if (cJSON_IsNumber (item)) {
        return "a number";
    }
    if (cJSON_IsString (item)) {
        return "a text";
    }
    if (cJSON_IsNull (item)) {
        return "null";
    }
    return cJSON_IsArray (item) ? "a list" : "an object";
}

static int fail_kind (load_t *load, size_t offset, const char *wanted, bool is_nullable,
                      const cJSON *item)
{
    return fail_at (load, offset, "must be %s%s, not %s", wanted, is_nullable ? " or null" : "",
                    kind_of (item));
}

/*  ---- Unknown keys ---- */

/*  The part of a key behind its last dot.  */
static const char *leaf_of (const char *key)
{
    const char *const dot = strrchr (key, '.');
    return dot ? dot + 1 : key;
}

/*  How far an unknown key at `path` called `name` is from a field or one of its
 *  groups. A sibling is nearer than the same word elsewhere.  */
static size_t distance_of (const char *path, const char *name, const char *candidate)
{
    const size_t by_name = hws_near_distance (name, leaf_of (candidate));
    if (by_name == HWS_NEAR_FAR) {
        return HWS_NEAR_FAR;
    }
    const size_t above = strlen (path) - strlen (name);
    const size_t candidate_above = (size_t) (leaf_of (candidate) - candidate);
    const bool is_sibling = above == candidate_above && strncmp (path, candidate, above) == 0;
    return 2 * by_name + !is_sibling;
}

static int fail_unknown (load_t *load, size_t offset, const char *path, const char *name)
{
    const hws_program_t *const program = load->conf->program;
    char best[HWS_PLACE_PATH_SIZE] = "";
    size_t best_distance = HWS_NEAR_FAR;
    for (size_t i = 0; i < program->field_count; i++) {
        char candidate[HWS_PLACE_PATH_SIZE];
        snprintf (candidate, sizeof candidate, "%s",
                  program->fields[i].key ? program->fields[i].key : "");
        while (candidate[0]) {
            const size_t distance = distance_of (path, name, candidate);
            if (distance < best_distance) {
                best_distance = distance;
                memcpy (best, candidate, sizeof best);
            }
            char *const dot = strrchr (candidate, '.');
            *(dot ? dot : candidate) = '\0';
        }
    }
    if (best[0]) {
        return fail_at (load, offset, "unknown key; did you mean \"%s\"?", best);
    }
    return fail_at (load, offset, "unknown key");
}

/*  ---- Values ---- */

static int load_number (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (!cJSON_IsNumber (item)) {
        return fail_kind (load, at, "a whole number", field->is_nullable, item);
    }
    hws_bytes_t digits = hws_place_number (load->json, at);
    const bool is_negative = digits.data[0] == '-';
    if (is_negative) {
        digits = hws_bytes (digits.data + 1, digits.size - 1);
    }
    uint64_t number;
    const int rc = hws_number_parse (HWS_FIELD_INTEGER, digits, &number);
    if (rc == HWS_EMALFORMED) {
        return fail_at (load, at, "must be a whole number, without point and exponent");
    }
    if (is_negative || rc != 0 || number < field->min || number > field->max) {
        char why[HWS_CONF_ERROR_SIZE];
        hws_why_range (field, true, why);
        return fail_at (load, at, "%s", why);
    }
    hws_store_number (load->conf, field, number);
    return 0;
}

static int load_flag (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (!cJSON_IsBool (item)) {
        return fail_kind (load, at, "true or false", false, item);
    }
    hws_store_number (load->conf, field, cJSON_IsTrue (item) ? 1 : 0);
    return 0;
}

static int load_word (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (!cJSON_IsString (item)) {
        return fail_kind (load, at, "a text", false, item);
    }
    int place;
    if (!hws_store_find_word (field, item->valuestring, &place)) {
        char why[HWS_CONF_ERROR_SIZE];
        hws_why_word (field, item->valuestring, why);
        return fail_at (load, at, "%s", why);
    }
    hws_store_number (load->conf, field, (uint64_t) place);
    return 0;
}

static int load_text (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (!cJSON_IsString (item)) {
        return fail_kind (load, at, "a text", field->is_nullable, item);
    }
    char why[HWS_CONF_ERROR_SIZE];
    if (field->check && !field->check (hws_bytes_of_text (item->valuestring), why, sizeof why)) {
        return fail_at (load, at, "%s", why);
    }
    return hws_store_text (load->conf, field, item->valuestring);
}

static int load_list (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (!cJSON_IsArray (item)) {
        return fail_kind (load, at, "a list of texts", false, item);
    }
    const size_t count = (size_t) cJSON_GetArraySize (item);
    if (count < field->min || count > field->max) {
        return fail_at (load, at, "must have from %" PRIu64 " to %" PRIu64 " texts", field->min,
                        field->max);
    }
    hws_store_clear (load->conf, field);
    const cJSON *element;
    at++;
    cJSON_ArrayForEach (element, item)
    {
        at = hws_place_next (load->json, at);
        const int rc = load_text (load, field, element, at);
        if (rc != 0) {
            return rc;
        }
        at = hws_place_after (load->json, at);
    }
    return 0;
}

static int load_value (load_t *load, const hws_field_t *field, const cJSON *item, size_t at)
{
    if (cJSON_IsNull (item) && field->is_nullable) {
        hws_store_null (load->conf, field);
        return 0;
    }
    switch (field->type) {
    case HWS_FIELD_FLAG:
        return load_flag (load, field, item, at);
    case HWS_FIELD_WORD:
        return load_word (load, field, item, at);
    case HWS_FIELD_TEXT:
        return load_text (load, field, item, at);
    case HWS_FIELD_LIST:
        return load_list (load, field, item, at);
    case HWS_FIELD_INTEGER:
    case HWS_FIELD_SIZE:
    case HWS_FIELD_DURATION:
    case HWS_FIELD_OPERANDS:
        break;
    }
    return load_number (load, field, item, at);
}

/*  ---- Objects ---- */

static int load_object (load_t *load, const char *path, const cJSON *object, size_t at);

static bool is_group (const hws_program_t *program, const char *path)
{
    const size_t size = strlen (path);
    for (size_t i = 0; i < program->field_count; i++) {
        const char *const key = program->fields[i].key;
        if (key && strncmp (key, path, size) == 0 && key[size] == '.') {
            return true;
        }
    }
    return false;
}

/*  The two keys at the top that are no settings.  */
static bool is_remark (const char *path)
{
    return strcmp (path, "$schema") == 0 || strcmp (path, "$sources") == 0;
}

static int check_remark (load_t *load, const cJSON *item, size_t at)
{
    if (strcmp (item->string, "$schema") == 0) {
        return cJSON_IsString (item) ? 0 : fail_kind (load, at, "a text", false, item);
    }
    return cJSON_IsObject (item) ? 0 : fail_kind (load, at, "an object", false, item);
}

static int load_member (load_t *load, const char *above, const cJSON *item, size_t key_at,
                        size_t at)
{
    char path[HWS_PLACE_PATH_SIZE];
    const int size =
        snprintf (path, sizeof path, "%s%s%s", above, above[0] ? "." : "", item->string);
    if (strchr (item->string, '.') && hws_program_field (load->conf->program, item->string)) {
        return fail_at (load, key_at, "unknown key; groups are objects, not dots");
    }
    if (size < 0 || (size_t) size >= sizeof path || strchr (item->string, '.')) {
        return fail_unknown (load, key_at, item->string, item->string);
    }
    if (is_remark (path)) {
        return check_remark (load, item, at);
    }
    const hws_field_t *const field = hws_program_field (load->conf->program, path);
    if (field) {
        const int rc = load_value (load, field, item, at);
        if (rc == 0) {
            hws_place_t place;
            hws_place_find (load->json, at, &place);
            *hws_store_origin (load->conf, field) = (hws_origin_t){
                .source = HWS_SOURCE_FILE, .line = place.line, .column = place.column};
        }
        return rc;
    }
    if (!is_group (load->conf->program, path)) {
        return fail_unknown (load, key_at, path, item->string);
    }
    if (!cJSON_IsObject (item)) {
        return fail_kind (load, at, "an object", false, item);
    }
    return load_object (load, path, item, at);
}

/*  Walks the tree and the text together; `at` is the object's opening brace.  */
static int load_object (load_t *load, const char *path, const cJSON *object, size_t at)
{
    const cJSON *item;
    at++;
    cJSON_ArrayForEach (item, object)
    {
        const size_t key_at = hws_place_next (load->json, at);
        at = hws_place_next (load->json, hws_place_after (load->json, key_at));
        const int rc = load_member (load, path, item, key_at, at);
        if (rc != 0) {
            return rc;
        }
        at = hws_place_after (load->json, at);
    }
    return 0;
}

static int load_tree (load_t *load)
{
    cJSON *const tree = cJSON_ParseWithLength ((const char *) load->json.data, load->json.size);
    if (tree == NULL) {
        return HWS_ENO_MEMORY;
    }
    const size_t at = hws_place_next (load->json, 0);
    const int rc = cJSON_IsObject (tree) ? load_object (load, "", tree, at)
                                         : fail_kind (load, at, "an object", false, tree);
    cJSON_Delete (tree);
    return rc;
}

int hws_conf_load (hws_conf_t *self, const char *file, hws_bytes_t json)
{
    char *const name = strdup (file);
    if (name == NULL) {
        return HWS_ENO_MEMORY;
    }
    free (self->file);
    self->file = name;

    load_t load = {.conf = self, .json = json};
    const hws_json_limits_t limits = {.size_max = HWS_CONF_SIZE_MAX,
                                      .depth_max = HWS_CONF_DEPTH_MAX};
    hws_json_fault_t fault;
    const int rc = hws_json_check (json, limits, &fault);
    if (rc == HWS_EMALFORMED) {
        return fail_at (&load, fault.offset, "%s", fault.text);
    }
    return rc == 0 ? load_tree (&load) : rc;
}
