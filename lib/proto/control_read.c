#include "proto/control_read.h"

#include "base/error.h"

#include <stdio.h>

#define TWO_TO_53 9007199254740992.0

/*  Each read function returns null or what is wrong, to stand behind the member's
 *  name in the fault.  */
typedef const char *complaint_t;

static complaint_t read_digits (const char *text, uint64_t *value)
{
    const complaint_t complaint = "must be a string of decimal digits";
    if (*text == '\0' || (text[0] == '0' && text[1] != '\0')) {
        return complaint;
    }
    uint64_t sum = 0;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') {
            return complaint;
        }
        const unsigned digit = (unsigned) (*text - '0');
        if (sum > (UINT64_MAX - digit) / 10) {
            return "is above 2^64 - 1";
        }
        sum = sum * 10 + digit;
    }
    *value = sum;
    return NULL;
}

const char *hws_number_read (const cJSON *item, uint64_t *value)
{
    if (cJSON_IsString (item)) {
        return read_digits (item->valuestring, value);
    }
    if (!cJSON_IsNumber (item)) {
        return "must be a number or a string of decimal digits";
    }
    const double number = item->valuedouble;
    if (number < 0) {
        return "must not be negative";
    }
    if (!(number < TWO_TO_53)) {
        return "is not exact as a number from 2^53 on: write it as a string of decimal digits";
    }
    *value = (uint64_t) number;
    return (double) *value == number ? NULL : "must be a whole number";
}

static complaint_t read_number (const hws_member_t *member, const cJSON *item, uint64_t most,
                                uint64_t *value)
{
    const complaint_t complaint = hws_number_read (item, value);
    if (complaint) {
        return complaint;
    }
    if (*value < member->least) {
        return "must be at least 1";
    }
    return *value > most ? "is too large" : NULL;
}

static complaint_t read_small (const hws_member_t *member, const cJSON *item, uint32_t *value)
{
    uint64_t number = 0;
    const complaint_t complaint = read_number (member, item, UINT32_MAX, &number);
    *value = (uint32_t) number;
    return complaint;
}

static complaint_t read_optional (const hws_member_t *member, const cJSON *item, uint64_t most,
                                  hws_optional_t *optional)
{
    if (cJSON_IsNull (item)) {
        optional->state = HWS_NULL;
        return NULL;
    }
    optional->state = HWS_VALUE;
    return read_number (member, item, most, &optional->value);
}

static complaint_t read_bool (const cJSON *item, bool *value)
{
    *value = cJSON_IsTrue (item);
    return cJSON_IsBool (item) ? NULL : "must be true or false";
}

static complaint_t read_handle (const cJSON *item, hws_handle_t *handle)
{
    const complaint_t complaint = "must be 32 hexadecimal digits or {\"hi\":…,\"lo\":…}";
    if (cJSON_IsString (item)) {
        return hws_handle_parse (hws_bytes_of_text (item->valuestring), handle) == 0 ? NULL
                                                                                     : complaint;
    }
    const cJSON *const hi = cJSON_GetObjectItemCaseSensitive (item, "hi");
    const cJSON *const lo = cJSON_GetObjectItemCaseSensitive (item, "lo");
    if (!cJSON_IsObject (item) || hi == NULL || lo == NULL) {
        return complaint;
    }
    const complaint_t wrong = hws_number_read (hi, &handle->hi);
    return wrong ? wrong : hws_number_read (lo, &handle->lo);
}

static complaint_t read_id (const cJSON *item, hws_id_t *id)
{
    if (cJSON_IsString (item) && hws_id_parse (hws_bytes_of_text (item->valuestring), id) == 0) {
        return NULL;
    }
    return "must be 32 hexadecimal digits";
}

static complaint_t read_text (const cJSON *item, char *text, size_t size)
{
    if (!cJSON_IsString (item)) {
        return "must be a string";
    }
    const size_t length = strlen (item->valuestring);
    if (length >= size) {
        return "is too long";
    }
    memcpy (text, item->valuestring, length + 1);
    return NULL;
}

/*  An empty name is the same as none.  */
static complaint_t read_name (const cJSON *item, char *name, size_t size)
{
    const complaint_t complaint = read_text (item, name, size);
    if (complaint || *name == '\0' || hws_name_is_valid (hws_bytes_of_text (name))) {
        return complaint;
    }
    return "must have no control characters and not be 32 hexadecimal digits";
}

static complaint_t read_code (const cJSON *item, int *code)
{
    if (!cJSON_IsString (item)) {
        return "must be a string";
    }
    *code = hws_error_from_word (item->valuestring, strlen (item->valuestring));
    /*  The words of errors that never leave a process mean nothing on the wire.  */
    if (*code < HWS_ECLOSED) {
        *code = HWS_EPROTOCOL;
    }
    return NULL;
}

static complaint_t read_kind (const cJSON *item, hws_kind_t *kind)
{
    if (cJSON_IsString (item) && strcmp (item->valuestring, "mpsc") == 0) {
        *kind = HWS_KIND_MPSC;
        return NULL;
    }
    if (cJSON_IsString (item) && strcmp (item->valuestring, "spsc") == 0) {
        *kind = HWS_KIND_SPSC;
        return NULL;
    }
    return "must be \"mpsc\" or \"spsc\"";
}

static complaint_t read_early (const cJSON *item, bool *is_kept)
{
    if (!cJSON_IsString (item)) {
        return "must be a string";
    }
    *is_kept = strcmp (item->valuestring, "kept") == 0;
    return *is_kept || strcmp (item->valuestring, "dropped") == 0
               ? NULL
               : "must be \"kept\" or \"dropped\"";
}

/*  Words that are too long or too many are none that this version knows.  */
static complaint_t read_words (const cJSON *item, hws_words_t *words)
{
    if (!cJSON_IsArray (item)) {
        return "must be an array of strings";
    }
    for (const cJSON *word = item->child; word; word = word->next) {
        if (!cJSON_IsString (word)) {
            return "must be an array of strings";
        }
        const size_t length = strlen (word->valuestring);
        if (length <= HWS_WORD_SIZE_MAX && words->count < HWS_WORDS_MAX) {
            memcpy (words->word[words->count++], word->valuestring, length + 1);
        }
    }
    return NULL;
}

static complaint_t read_ranges (const cJSON *item, hws_range_t *ranges, uint32_t *count)
{
    const complaint_t complaint = "must be an array of [first, end], each first below its end";
    if (!cJSON_IsArray (item)) {
        return complaint;
    }
    for (const cJSON *pair = item->child; pair; pair = pair->next) {
        if (*count == HWS_RANGES_MAX) {
            return "has more than 64 ranges";
        }
        const cJSON *const first = cJSON_IsArray (pair) ? pair->child : NULL;
        const cJSON *const end = first ? first->next : NULL;
        hws_range_t *const range = &ranges[*count];
        if (end == NULL || end->next || hws_number_read (first, &range->first) ||
            hws_number_read (end, &range->end) || range->first >= range->end) {
            return complaint;
        }
        ++*count;
    }
    return NULL;
}

static complaint_t read_value (const hws_member_t *member, const cJSON *item, char *structure)
{
    void *const field = structure + member->offset;
    switch (member->type) {
    case HWS_MEMBER_DECIMAL:
        return read_number (member, item, UINT64_MAX, field);
    case HWS_MEMBER_MS:
        return read_number (member, item, HWS_MS_MAX, field);
    case HWS_MEMBER_SMALL:
        return read_small (member, item, field);
    case HWS_MEMBER_OPT_MS:
        return read_optional (member, item, HWS_MS_MAX, field);
    case HWS_MEMBER_OPT_DECIMAL:
        return read_optional (member, item, UINT64_MAX, field);
    case HWS_MEMBER_BOOL:
        return read_bool (item, field);
    case HWS_MEMBER_HANDLE:
        return read_handle (item, field);
    case HWS_MEMBER_ID:
        return read_id (item, field);
    case HWS_MEMBER_NAME:
        return read_name (item, field, member->size);
    case HWS_MEMBER_TEXT:
        return read_text (item, field, member->size);
    case HWS_MEMBER_CODE:
        return read_code (item, field);
    case HWS_MEMBER_KIND:
        return read_kind (item, field);
    case HWS_MEMBER_EARLY:
        return read_early (item, field);
    case HWS_MEMBER_WORDS:
        return read_words (item, field);
    case HWS_MEMBER_RANGES:
        return read_ranges (item, field, (void *) (structure + member->presence_offset));
    case HWS_MEMBER_OBJECT:
        return cJSON_IsObject (item) ? NULL : "must be an object";
    }
    return NULL;
}

static bool is_absent (const hws_member_t *member, const cJSON *item)
{
    const bool null_has_a_meaning =
        member->type == HWS_MEMBER_OPT_MS || member->type == HWS_MEMBER_OPT_DECIMAL;
    return item == NULL || (cJSON_IsNull (item) && !null_has_a_meaning);
}

static int read_members (const hws_table_t *table, const cJSON *object, char *structure,
                         const char *prefix, hws_control_fault_t fault)
{
    const char *const dot = *prefix ? "." : "";
    for (size_t i = 0; i < table->count; i++) {
        const hws_member_t *const member = &table->members[i];
        const cJSON *const item = cJSON_GetObjectItemCaseSensitive (object, member->name);
        complaint_t complaint = NULL;
        if (is_absent (member, item)) {
            complaint = member->is_required ? "is missing" : NULL;
        } else {
            complaint = read_value (member, item, structure);
        }
        if (complaint) {
            snprintf (fault, sizeof (hws_control_fault_t), "%s%s%s %s", prefix, dot, member->name,
                      complaint);
            return HWS_EBAD_REQUEST;
        }
        if (is_absent (member, item)) {
            continue;
        }
        if (member->has_presence && member->type != HWS_MEMBER_RANGES) {
            *(bool *) (void *) (structure + member->presence_offset) = true;
        }
        if (member->type == HWS_MEMBER_OBJECT) {
            const int rc = read_members (member->table, item, structure, member->name, fault);
            if (rc != 0) {
                return rc;
            }
        }
    }
    return 0;
}

int hws_table_read (const hws_table_t *table, const cJSON *object, void *structure,
                    hws_control_fault_t fault)
{
    return read_members (table, object, structure, "", fault);
}
